"""A picture of a release: one bar or point a row, each with the interval that it may lie in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    import altair as alt

    from cloister.session.release import Release

_MOST_BARS = 500


def chart_of(release: Release, confidence: float = 0.95) -> alt.LayerChart:
    """Bars with error bars: the first statistic by the first key, coloured by the second."""
    import altair as alt

    measured = release.statistics()
    keys = [name for name in release.column_names if name not in measured]
    if not measured or release.num_rows > _MOST_BARS or release.num_rows == 0:
        raise InvalidParameter(
            "The chart was refused",
            why=f"it shows between 1 and {_MOST_BARS} rows of at least one statistic",
            instead=".take(range(50)).plot()",
        )
    statistic = measured[0]
    rows = _rows(release, keys, statistic, confidence)
    label = " · ".join(keys[:1]) or "all rows"
    base = alt.Chart(alt.Data(values=rows)).properties(
        width=max(120, min(600, 40 * len(rows))),
        title=alt.Title(statistic, subtitle=f"{release.cost}; bars of error at {confidence:.0%}"),
    )
    order = list(dict.fromkeys(row["key"] for row in rows))
    x = alt.X("key:N", sort=order, title=label, axis=alt.Axis(labelAngle=0 if len(order) <= 8 else -40))
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
