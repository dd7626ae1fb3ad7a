"""A picture of a release: one bar or point a row, each with the interval that it may lie in."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter
from cloister.printable import shown

if TYPE_CHECKING:
    import altair as alt

    from cloister.session.releases.release import Release

_MOST_BARS = 500
_MOST_PANELS = 4
_WIDTH, _WIDEST = 600, 1200
_BAR = 90
"""The widest bar, in pixels."""
_LETTER, _SIGN = 6.8, 12.5
"""How wide a letter of a label is at most on average, and a Chinese sign."""
_DRAWN = ("integer", "real", "date")
"""What has a place on an axis: a value of a list has none."""


def drawable(release: Release) -> list[str]:
    """The statistics that a chart can show: numbers and dates.

    >>> from cloister.session.examples import small_release
    >>> drawable(small_release())
    ['count']
    """
    kinds = release.take(range(0)).table.columns
    return [name for name in release.statistics() if kinds[name].kind in _DRAWN]


def chart_of(release: Release, confidence: float = 0.95) -> alt.LayerChart | alt.VConcatChart:
    """Bars (of dates, points) with error bars by the first key, coloured by the second: a panel for each statistic, the first
    four of them. Without any group left it is an empty chart that says so."""
    import altair as alt

    measured = drawable(release)
    keys = [name for name in release.column_names if name not in release.statistics()]
    if not measured:
        raise InvalidParameter(
            "The chart is invalid", why="a chart shows numbers and dates, and the answer has none", instead="print(answer)"
        )
    if release.num_rows > _MOST_BARS:
        raise InvalidParameter(
            "The chart is invalid", why=f"it shows at most {_MOST_BARS} rows", instead="answer.take(range(50)).plot()"
        )
    told = f"{release.cost}; error bars at {confidence:.0%}"
    drawn = measured[:_MOST_PANELS]
    if len(measured) > len(drawn):
        told += f"; the first {len(drawn)} of {len(measured)} statistics"
    if not release.num_rows:
        told = f"{release.cost}; no group is left to show"
    first, *others = (_panel(release, keys, each, confidence) for each in drawn)
    first = first.properties(title=alt.Title(shown(", ".join(drawn)), subtitle=told))
    if not others:
        return first
    return alt.vconcat(*(each.properties(height=200) for each in (first, *others)))


def _panel(release: Release, keys: list[str], statistic: str, confidence: float) -> alt.LayerChart:
    """The bars of one statistic."""
    import altair as alt

    rows = _rows(release, keys, statistic, confidence)
    order = list(dict.fromkeys(row["key"] for row in rows))
    width = max(_WIDTH, min(_WIDEST, 16 * len(order)))
    step = width / max(len(order), 1)
    turned = any(_length(each) > step - 6 for each in order)
    base = alt.Chart(alt.Data(values=rows)).properties(width=width)
    x = alt.X(
        "key:N",
        sort=order,
        title=shown(keys[0]) if keys else "all rows",
        axis=alt.Axis(labelAngle=-40 if turned else 0, labelLimit=200),
        scale=alt.Scale(paddingInner=max(0.2, 1 - _BAR / step) if len(keys) < 2 else 0.2, paddingOuter=0.1),
    )
    groups: dict[str, Any] = {}
    if len(keys) > 1:
        second = list(dict.fromkeys(row["group"] for row in rows))
        groups = {
            "xOffset": alt.XOffset("group:N", sort=second),
            "color": alt.Color("group:N", sort=second, title=shown(keys[1])),
        }
    of_dates = release.take(range(0)).table.columns[statistic].kind == "date"
    kind = "T" if of_dates else "Q"
    marks = base.mark_point(filled=True) if of_dates else base.mark_bar(opacity=0.75)
    bars = marks.encode(x=x, y=alt.Y(f"value:{kind}", title=shown(statistic)), **groups)
    whiskers = base.mark_rule(strokeWidth=1.5).encode(
        x=x,
        y=alt.Y(f"low:{kind}", title=shown(statistic)),
        y2="high:Q",
        **{name: value for name, value in groups.items() if name == "xOffset"},
    )
    return alt.layer(bars, whiskers)


def _length(label: str) -> float:
    """About how many pixels a label takes."""
    return sum(_SIGN if sign >= "\u2e80" else _LETTER for sign in label)


def _rows(release: Release, keys: list[str], statistic: str, confidence: float) -> list[dict[str, Any]]:
    values, margins = release.table, release.margin(confidence)
    columns = [values.columns[key].tolist() for key in keys]
    least, most = release.bounds(statistic)
    found = []
    for place, (value, margin) in enumerate(zip(values.columns[statistic].tolist(), margins[statistic].tolist(), strict=True)):
        key = {
            "key": shown(str(columns[0][place])) if keys else "all",
            "group": shown(" · ".join(str(column[place]) for column in columns[1:])),
        }
        found.append({**key, **(_of_date(value, margin) if isinstance(value, date) else _of_number(value, margin, least, most))})
    return found


def _of_number(value: float | None, margin: float, least: float, most: float) -> dict[str, float | None]:
    """A number and the ends of its interval, within the declared bounds; None where there is none, or it has no end."""
    if value is None:
        return {"value": None, "low": None, "high": None}
    ends = {"value": float(value), "low": max(float(value - margin), least), "high": min(float(value + margin), most)}
    return {name: end if math.isfinite(end) else None for name, end in ends.items()}


def _of_date(value: date, margin: float) -> dict[str, str | None]:
    """A date and the days around it, within what a calendar has; None where they are not known."""
    if math.isnan(margin):
        return {"value": value.isoformat(), "low": None, "high": None}
    days = min(int(margin), (value - date.min).days, (date.max - value).days)
    reach = timedelta(days=days)
    return {"value": value.isoformat(), "low": (value - reach).isoformat(), "high": (value + reach).isoformat()}
