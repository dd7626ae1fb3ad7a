"""A picture of a release: one bar or point a row, each with the interval that it may lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    import altair as alt

    from cloister.session.release import Release

_MOST_BARS = 500
_MOST_PANELS = 4
_WIDTH, _WIDEST = 600, 1200
_BAR = 90
"""The widest bar, in pixels."""
_LETTER, _SIGN = 6.8, 12.5
"""How wide a letter of a label is at most on average, and a Chinese sign."""


def chart_of(release: Release, confidence: float = 0.95) -> alt.LayerChart | alt.VConcatChart:
    """Bars with error bars by the first key, coloured by the second: a panel for each statistic, the first four of them."""
    import altair as alt

    measured = release.statistics()
    keys = [name for name in release.column_names if name not in measured]
    if not measured or release.num_rows > _MOST_BARS or release.num_rows == 0:
        raise InvalidParameter(
            "The chart was refused",
            why=f"it shows between 1 and {_MOST_BARS} rows of at least one statistic",
            instead=".take(range(50)).plot()",
        )
    told = f"{release.cost}; bars of error at {confidence:.0%}"
    shown = measured[:_MOST_PANELS]
    if len(measured) > len(shown):
        told += f"; the first {len(shown)} of {len(measured)} statistics"
    first, *others = (_panel(release, keys, each, confidence) for each in shown)
    first = first.properties(title=alt.Title(", ".join(shown), subtitle=told))
    if not others:
        return first
    return alt.vconcat(*(each.properties(height=200) for each in (first, *others)))


def _panel(release: Release, keys: list[str], statistic: str, confidence: float) -> alt.LayerChart:
    """The bars of one statistic."""
    import altair as alt

    rows = _rows(release, keys, statistic, confidence)
    order = list(dict.fromkeys(row["key"] for row in rows))
    width = max(_WIDTH, min(_WIDEST, 16 * len(order)))
    step = width / len(order)
    turned = any(_length(each) > step - 6 for each in order)
    base = alt.Chart(alt.Data(values=rows)).properties(width=width)
    x = alt.X(
        "key:N",
        sort=order,
        title=" · ".join(keys[:1]) or "all rows",
        axis=alt.Axis(labelAngle=-40 if turned else 0, labelLimit=200),
        scale=alt.Scale(paddingInner=max(0.2, 1 - _BAR / step) if len(keys) < 2 else 0.2, paddingOuter=0.1),
    )
    groups: dict[str, Any] = {}
    if len(keys) > 1:
        second = list(dict.fromkeys(row["group"] for row in rows))
        groups = {"xOffset": alt.XOffset("group:N", sort=second), "color": alt.Color("group:N", sort=second, title=keys[1])}
    bars = base.mark_bar(opacity=0.75).encode(x=x, y=alt.Y("value:Q", title=statistic), **groups)
    whiskers = base.mark_rule(strokeWidth=1.5).encode(
        x=x,
        y=alt.Y("low:Q", title=statistic),
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
    return [
        {
            "key": str(columns[0][place]) if keys else "all",
            "group": " · ".join(str(column[place]) for column in columns[1:]),
            "value": float(value),
            "low": max(float(value - margin), least),
            "high": min(float(value + margin), most),
        }
        for place, (value, margin) in enumerate(zip(values[statistic], margins[statistic], strict=True))
    ]
