"""Pictures in the colours of the page that shows them, a light one or a dark one."""

from __future__ import annotations

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


def themed(svg: str) -> str:
    """A picture whose colours follow the page: as an image it is told of the dark scheme of the element that holds it.

    >>> "prefers-color-scheme" in themed('<svg xmlns="http://www.w3.org/2000/svg"><text fill="#222">a</text></svg>')
    True
    """
    rules = "".join(f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in _DARK.items())
    style = f"<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>"
    end = svg.index(">", svg.index("<svg")) + 1
    return svg[:end] + style + svg[end:]
