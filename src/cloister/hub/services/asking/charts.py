"""The chart of a release as SVG: drawn once for each confidence, kept in memory, in the colours of a light and of a dark page."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cloister.hub.cache import cached
from cloister.hub.web.pictures import INK, LINE, MAIN, SOFT, themed
from cloister.session import Release
from cloister.session.releases.chart import drawable
from cloister.session.releases.drawing import svg

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.hub.records.releases import StoredRelease

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
