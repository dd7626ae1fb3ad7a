"""The chart of a release as SVG: drawn once for each confidence, kept in memory, in the colours of a light and of a dark page.

The words of pictures that the library draws are retold in the reader's language: axes, titles, the plan. What the data or the
person who asked has named is no such word, and stays, whatever it is called.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from cloister.hub.cache import cached
from cloister.hub.web.languages import N_, language_of
from cloister.hub.web.pictures import INK, LINE, MAIN, SOFT, themed
from cloister.hub.web.retelling import Shapes
from cloister.printable import escape
from cloister.session import Release
from cloister.session.releases.chart import drawable
from cloister.session.releases.drawing import svg

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.records.releases import StoredRelease
    from cloister.hub.web.languages import Language


MOST_ROWS, MOST_PANELS = 60, 4
_PART, _KEPT = "charts", 200
_GROUPS = ["#2f7d6b", "#c08a2b", "#4a6fa5", "#a5586a", "#6b8e23", "#7d5ba6"]


def has_chart(release: Release) -> bool:
    """Whether a picture says more than the table does."""
    return 1 < release.num_rows <= MOST_ROWS and bool(drawable(release))


def alt_text(release: Release, confidence: float, gettext: Callable[[str], str] = str) -> str:
    """What the picture shows, in the reader's words.

    >>> from cloister.session.examples import small_release
    >>> alt_text(small_release(), 0.95)
    'count by sex, with error bars at 95 %: the table has the same numbers'
    """
    keys = [name for name in release.column_names if name not in release.statistics()]
    drawn = ", ".join(drawable(release)[:MOST_PANELS])
    shown = gettext("{measured} by {key}").format(measured=drawn, key=keys[0]) if keys else drawn
    told = gettext("{shown}, with error bars at {share} %: the table has the same numbers")
    return told.format(shown=shown, share=f"{100 * confidence:g}")


def chart_svg(hub: Hub, row: StoredRelease, release: Release, confidence: float) -> bytes:
    """The picture; a release never changes, so it is drawn once in a process."""
    key = (hashlib.sha256(row.body).hexdigest(), confidence)
    return cached(hub, _PART, key, lambda: themed(_drawn(release, confidence)).encode(), most=_KEPT)


def _drawn(release: Release, confidence: float) -> str:
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
    config: dict[str, Any] = {
        "background": None,
        "view": {"stroke": None},
        "axis": axis,
        "bar": {"color": MAIN},
        "rule": {"color": INK},
        "range": {"category": [MAIN, *_GROUPS[1:]]},
        "title": {"color": INK, "subtitleColor": SOFT, "anchor": "start"},
        "legend": {"labelColor": SOFT, "titleColor": INK},
        "font": "sans-serif",
    }
    chart = release.plot(confidence).to_dict()
    return svg({**chart, "config": config})


_CHART = (
    N_("all rows"),
    N_("{cost}; error bars at {share}"),
    N_("{cost}; error bars at {share}; the first {shown} of {measured} statistics"),
    N_("{cost}; no group is left to show"),
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
