"""Pictures in the colours of the page that shows them, a light one or a dark one."""

from collections.abc import Mapping, Sequence
from typing import Any

from cloister.session.releases.drawing import svg

INK, SOFT, LINE, MAIN = "#17211f", "#51605c", "#c9c6bc", "#2f7d6b"
"""The colours of pictures on a light page; `themed` knows their twins on a dark one."""
_DARK = {
    "#17211f": "#e6ecea",
    "#51605c": "#a2b1ac",
    "#c9c6bc": "#3a4745",
    "#2f7d6b": "#63b9a2",
    # the picture of a plan
    "#4a6b8a": "#9cc6ee",
    "#f4f7fa": "#171f1e",
    "#9db4c9": "#4c6270",
    "#222": "#e6ecea",
}


def svg_of(chart: Any) -> str:
    """An Altair chart as SVG, in the colours of the page that shows it."""
    axis = {"labelColor": SOFT, "titleColor": INK, "gridColor": LINE, "domainColor": SOFT, "tickColor": SOFT}
    config = {"background": None, "view": {"stroke": None}, "axis": axis, "font": "sans-serif"}
    return themed(svg({**chart.to_dict(), "config": config}))


def lines_of(lines: Mapping[str, Sequence[tuple[float, float]]], *, x: str, y: str, chosen: float) -> str:
    """Lines by their names, on two scales of equal factors; a rule where `chosen` is."""
    import altair as alt

    rows = [{"x": at, "y": value, "line": name} for name, points in lines.items() for at, value in points]
    across = alt.X("x:Q", scale=alt.Scale(type="log", nice=False), title=x)
    up = alt.Y("y:Q", scale=alt.Scale(type="log"), title=y)
    base = alt.Chart(alt.Data(values=rows)).encode(x=across, y=up).properties(width=420, height=200)
    dashes = alt.StrokeDash("line:N", title=None, legend=alt.Legend(orient="top", labelColor=SOFT, symbolStrokeColor=MAIN))
    rule = alt.Chart(alt.Data(values=[{"x": chosen}])).mark_rule(color=INK).encode(x=across)
    dots = base.mark_point(filled=True, size=30, color=MAIN, opacity=1)
    return svg_of(alt.layer(base.mark_line(color=MAIN).encode(strokeDash=dashes), dots, rule))


def bars_of(picture: Any, width: int, height: int) -> dict[str, Any]:
    """Where the bars of a column and their error bars stand (`cloister.synth.report.Picture`), in a picture of that size."""
    texts = zip(picture.labels, picture.counts or picture.model, picture.model, strict=True)
    bars = [
        {**{name: round(value, 2) for name, value in bar._asdict().items()}, "text": text}
        for bar, text in zip(picture.bars(width, height), texts, strict=True)
    ]
    return {"name": picture.name, "margin": picture.margin, "bars": bars, "width": width, "height": height}


def themed(svg: str) -> str:
    """A picture whose colours follow the page: as an image it is told about the dark scheme of the element that holds it.

    >>> "prefers-color-scheme" in themed('<svg xmlns="http://www.w3.org/2000/svg"><text fill="#222">a</text></svg>')
    True
    """
    rules = "".join(f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in _DARK.items())
    style = f"<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>"
    end = svg.index(">", svg.index("<svg")) + 1
    return svg[:end] + style + svg[end:]
