"""The chart of a release as SVG: drawn once for each confidence, kept in memory, in the colours of a light and of a dark page.

The words of pictures that the library draws are retold in the reader's language: axes, titles, the plan. What the data or the
person who asked has named is no such word, and stays, whatever it is called.
"""

import hashlib
import html
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal

from cloister.errors import InvalidParameter, Missing
from cloister.hub.cache import cached
from cloister.hub.hub import Hub
from cloister.hub.records.releases import StoredRelease
from cloister.hub.releases.kinds import File, View
from cloister.hub.web.languages import N_, Language, language_of
from cloister.hub.web.pictures import INK, LINE, MAIN, SOFT, themed
from cloister.hub.web.retelling import Shapes
from cloister.printable import escape
from cloister.session import Release
from cloister.session.releases.chart import Shape, chart_of, drawable, shape_of
from cloister.session.releases.drawing import png, svg

MOST_PANELS = 4
ON_A_PAGE: Mapping[Shape, int] = {"dots": 60, "lines": 500, "heat": 3600}
"""Rows on one page of a chart."""
MOST_ROWS = 600
"""Rows of a chart that leaves as a file: pages of it, one below the other."""
_PART, _KEPT = "charts", 200
_GROUPS = ["#2f7d6b", "#c08a2b", "#4a6fa5", "#a5586a", "#6b8e23", "#7d5ba6"]


def has_chart(release: Release) -> bool:
    """Whether a picture says more than the table does."""
    return release.num_rows > 1 and bool(drawable(release))


def fits_file(release: Release) -> bool:
    """Whether its chart leaves as one file: longer ones leave by the page."""
    return has_chart(release) and release.num_rows <= max(MOST_ROWS, ON_A_PAGE[shape_of(release)])


def chart_pages(release: Release) -> int:
    """On how many pages a chart shows all rows.

    >>> from cloister.session.examples import small_release
    >>> chart_pages(small_release())
    1
    """
    return max(1, -(-release.num_rows // ON_A_PAGE[shape_of(release)]))


def has_hollow(release: Release, confidence: float) -> bool:
    """Whether a mark of the chart says that its value is not to be read as it stands."""
    flags = release.drowned(confidence).columns
    return any(bool(flags[name].values.any()) for name in drawable(release)[:MOST_PANELS])


def alt_text(release: Release, confidence: float, gettext: Callable[[str], str] = str) -> str:
    """What the picture shows, in the reader's words.

    >>> from cloister.session.examples import small_release
    >>> alt_text(small_release(), 0.95)
    'count by sex, with error bars at 95 %: the table has the same numbers'
    """
    heat = shape_of(release) == "heat"
    keys = [name for name in release.column_names if name not in release.statistics()]
    drawn = ", ".join(drawable(release)[:MOST_PANELS])
    by = gettext("{first} and {second}").format(first=keys[0], second=keys[1]) if heat else keys[0] if keys else ""
    shown = gettext("{measured} by {key}").format(measured=drawn, key=by) if keys else drawn
    told = gettext("{shown}, with error bars at {share} %: the table has the same numbers")
    if heat:
        told = gettext("{shown} as a heat map, crossed out where it is mostly noise: the table has the same numbers")
    return told.format(shown=shown, share=f"{100 * confidence:g}")


def chart_svg(hub: Hub, row: StoredRelease, release: Release, confidence: float, language: Language, page: int = 1) -> str:
    """A page of the picture; a release never changes, so it is drawn once in a process."""
    shape, pages = shape_of(release), chart_pages(release)
    size = ON_A_PAGE[shape]
    if not 1 <= page <= pages:
        raise Missing("There is no such page of the chart", why=f"it has {pages}", instead=f"/releases/{row.id}/chart.svg")
    part = release.take(range((page - 1) * size, min(page * size, release.num_rows)))
    truth = _truth(language)
    key = (hashlib.sha256(row.body).hexdigest(), confidence, page, *truth)
    drawn = cached(hub, _PART, key, lambda: themed(_drawn(part, confidence, shape, release, truth)).encode(), most=_KEPT)
    return retold(drawn.decode(), language)


def chart_file(view: View, form: Literal["svg", "png"]) -> File:
    """The whole picture as a file, on white: the pages of it one below the other."""
    release = Release.from_json(view.row.body.decode())
    if not fits_file(release):
        raise InvalidParameter(
            "The file was not made",
            why=f"a chart shows numbers and dates, of 2 to {MOST_ROWS} rows",
            instead="the form csv, which has every row",
        )
    shape = shape_of(release)
    size, truth = ON_A_PAGE[shape], _truth(view.language)
    pages = (release.take(range(at, min(at + size, release.num_rows))) for at in range(0, release.num_rows, size))
    parts = [chart_of(each, view.confidence, shape, whole=release, truth=truth).to_dict(validate=False) for each in pages]
    schema = {"$schema": parts[0]["$schema"]}
    bare = [{name: value for name, value in each.items() if name not in ("$schema", "config")} for each in parts]
    whole = parts[0] if len(parts) == 1 else {**schema, "vconcat": bare}
    drawn = {**whole, "config": {**_config(), "background": "#ffffff"}}
    body = png(drawn) if form == "png" else retold(svg(drawn), view.language).encode()
    return File(name=f"release-{view.row.id}.{form}", body=body)


def _truth(language: Language) -> tuple[str, str]:
    """What the table beside the chart calls false and true."""
    return language.gettext("no"), language.gettext("yes")


def _drawn(part: Release, confidence: float, shape: Shape, whole: Release, truth: tuple[str, str]) -> str:
    return svg({**chart_of(part, confidence, shape, whole=whole, truth=truth).to_dict(validate=False), "config": _config()})


def _config() -> dict[str, Any]:
    axis = {
        "labelColor": SOFT,
        "titleColor": INK,
        "gridColor": LINE,
        "gridOpacity": 0.5,
        "domainColor": SOFT,
        "tickColor": SOFT,
        "labelFontSize": 12,
        "titleFontSize": 12,
    }
    return {
        "background": None,
        "view": {"stroke": None},
        "axis": axis,
        "axisY": {"titlePadding": 16},  # a browser's font may be wider than the one that was measured
        "point": {"color": MAIN},
        "line": {"color": MAIN},
        "rule": {"color": SOFT},
        "range": {"category": [MAIN, *_GROUPS[1:]]},
        "title": {"color": INK, "subtitleColor": SOFT, "anchor": "start"},
        "legend": {"labelColor": SOFT, "titleColor": INK},
        "font": "sans-serif",
    }


_CHART = (
    N_("all rows"),
    N_("{cost}; error bars at {share}"),
    N_("{cost}; error bars at {share}; the first {shown} of {measured} statistics"),
    N_("{cost}; no group is left to show"),
    N_("{cost}; crosses mark what is mostly noise, at {share}"),
    N_("{cost}; crosses mark what is mostly noise, at {share}; the first {shown} of {measured} statistics"),
)
_PLAN = (
    N_("rows"),
    N_("measured, exactly"),
    N_("noise"),
    N_("answer, at 95 %"),
    N_("Plan: {cost} of {population}"),
    N_("cost: {cost} of {population}; nothing was spent and no row was read"),
    N_("each row is one person"),
    N_("at most {most} of one {unit}"),
    N_("one unit: L1 ≤ {most}, L2² ≤ {squared}"),
    N_("one, all rows"),
)
_TEXT = re.compile(r"(<(text|title)\b[^>]*>)([^<]+)(</\2>)")


def retold(svg: str, language: Language, *, plan: bool = False) -> str:
    """A picture with the library's own words in a language.

    >>> picture = "<svg><text>all rows</text><text>ε = 1; error bars at 95%</text><text>rows</text></svg>"
    >>> retold(picture, language_of("en")) == picture
    True
    >>> retold(picture, language_of("zh_CN"))
    '<svg><text>所有行</text><text>ε = 1；误差线置信度 95%</text><text>rows</text></svg>'
    """
    told = _told(language.code, plan=plan)
    if told is None:
        return svg
    shapes, words = told

    def again(found: re.Match[str]) -> str:
        text = html.unescape(found[3]).strip()
        said = words.get(text) or shapes.told(text)
        return f"{found[1]}{escape(said, quote=False)}{found[4]}" if said else found[0]

    return _TEXT.sub(again, svg)


@cache
def _told(code: str, *, plan: bool) -> tuple[Shapes, dict[str, str]] | None:
    language = language_of(code)
    words = {text: language.gettext(text) for text in (_PLAN if plan else _CHART)} if language.messages else {}
    return (Shapes(words), words) if words else None
