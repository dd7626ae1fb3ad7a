"""Charts that draw with no network: the scripts that draw are in the notebook's output, or in the saved page.

Altair's own renderer writes a page that loads its scripts from a public address. On a machine with no network, as those with
private data are, nothing is drawn; and with one, that address learns who works. So the scripts of vl-convert are written in.
"""

from __future__ import annotations

import functools
import hashlib
import json
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import altair as alt

__all__ = ["offline"]

_Chart = TypeVar("_Chart", bound="alt.TopLevelMixin")

_EMBED = {"mode": "vega-lite", "actions": {"export": True, "source": False, "compiled": False, "editor": False}}
"""Pictures may be saved; the menu's other entries send the chart's numbers to a public site, or open what nobody asked for."""
_UNDRAWN = """A chart. To draw it with no network, install vl-convert-python.
To load scripts from a public address instead: altair.renderers.enable("html")"""


def offline(chart: _Chart) -> _Chart:
    """The same chart, which a notebook, `to_html` and `save` draw with no network. Changed or joined, it stays one.

    A renderer that the caller has enabled in Altair is used as it is. Without vl-convert, a notebook gets the chart in the forms
    that JupyterLab and VS Code draw by themselves.

    >>> import altair as alt
    >>> chart = offline(alt.Chart(alt.Data(values=[{"x": 1}])).mark_bar().encode(x="x:Q"))
    >>> isinstance(chart, alt.Chart), "cdn." in chart._repr_mimebundle_().get("text/html", "")
    (True, False)
    """
    object.__setattr__(
        chart, "__class__", _kind(cast(Any, type(chart)))
    )  # Altair takes a plain assignment for a part of the chart
    return chart


class _Offline:
    """Stands before a class of Altair's charts. Names that are not Altair's own stay out of it: a chart takes them for parts."""

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
        import altair as alt

        if alt.renderers.active != "default":
            return cast(Any, super())._repr_mimebundle_(*args, **options)
        return _bundle(cast(Any, self))

    def to_html(self, *args: Any, inline: bool = True, **options: Any) -> str:
        """A page with the scripts in it, where vl-convert is installed; `inline=False`, and any other choice, is Altair's."""
        if args or options or not inline or not _drawable():
            return str(cast(Any, super()).to_html(*args, inline=inline and _drawable(), **options))
        head = '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>A chart</title>\n'
        return f"{head}{_piece(cast(Any, self))}\n</html>\n"

    def save(self, fp: Any, format: str | None = None, *, inline: bool = True, **options: Any) -> None:  # noqa: A002
        """Into a file; a page has the scripts in it, where vl-convert is installed."""
        is_page = format == "html" or (format is None and str(fp).endswith(".html"))
        if not is_page or options or not inline or not _drawable():
            cast(Any, super()).save(fp, format, inline=inline and _drawable(), **options)
        elif hasattr(fp, "write"):
            fp.write(self.to_html())
        else:
            Path(fp).write_text(self.to_html(), encoding="utf-8")

    def __add__(self, other: Any) -> Any:
        return offline(cast(Any, super()).__add__(other))

    def __or__(self, other: Any) -> Any:
        return offline(cast(Any, super()).__or__(other))

    def __and__(self, other: Any) -> Any:
        return offline(cast(Any, super()).__and__(other))

    def __reduce__(self) -> Any:
        return _again, (type(self).__mro__[2], vars(self))


@functools.cache
def _kind(kind: type) -> type:
    return kind if issubclass(kind, _Offline) else type(kind.__name__, (_Offline, kind), {"__doc__": kind.__doc__})


def _again(kind: Any, parts: dict[str, Any]) -> Any:
    """The chart that was pickled or copied."""
    chart = kind.__new__(kind)
    vars(chart).update(parts)
    return offline(chart)


def _drawable() -> bool:
    return util.find_spec("vl_convert") is not None


@functools.cache
def _scripts() -> str:
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _bundle(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """What a notebook is given: a piece of a page, or the chart itself where a script is missing."""
    if _drawable():
        return {"text/html": _piece(chart), "text/plain": "A chart."}
    drawn = chart.to_dict(context={"pre_transform": False})
    return {"application/vnd.vegalite.v6.json": drawn, "application/vnd.vegalite.v5+json": drawn, "text/plain": _UNDRAWN}


def _piece(chart: alt.TopLevelMixin) -> str:
    """A piece of a page that draws itself, wherever it is put and however often."""
    drawn = {name: part for name, part in chart.to_dict(context={"pre_transform": False}).items() if name != "$schema"}
    spec = json.dumps(drawn).replace("<", "\\u003c")  # a name in the data must not end the script
    place = f"chart-{hashlib.sha256(spec.encode()).hexdigest()[:16]}"
    return (
        f'<div id="{place}" style="width: 100%"></div>\n<script>\n(function () {{\n'
        f"const before = document.currentScript && document.currentScript.previousElementSibling;\n"
        f'const place = before && before.id === "{place}" ? before : document.getElementById("{place}");\n'
        f"{_scripts()}\nwindow.vegaEmbed(place, {spec}, {json.dumps(_EMBED)});\n}})();\n</script>"
    )
