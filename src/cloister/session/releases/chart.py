"""A picture of a release: a dot a row, with the interval that it may lie in; hollow where the value is not to be read as it
stands. Ordered keys are joined by lines, many values of two keys are a field of colours."""

from __future__ import annotations

import math
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cloister.errors import InvalidParameter
from cloister.printable import shown
from cloister.session.releases.frames import null_word

if TYPE_CHECKING:
    import altair as alt

    from cloister.session.releases.release import Release

_MOST_ROWS = 500
_MOST_PANELS, _MOST_COLOURS = 4, 7
_MOST_DOTS = 60
"""From here on two keys are a field of colours."""
_MOST_SIDE = 60
"""Values of one key in such a field."""
_WIDTH, _WIDEST = 600, 1200
_CELL, _TALLEST = 22, 900
_CROSS = "M-0.5,-0.5L0.5,0.5M-0.5,0.5L0.5,-0.5"
_LETTER, _SIGN = 6.8, 12.5
"""How wide a letter of a label is at most on average, and a Chinese sign."""
_TRUTH = ("False", "True")
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


Shape: TypeAlias = Literal["dots", "lines", "heat"]
"""How a chart is drawn: a dot with its interval a row; such dots on a line, where the first key has an order; or a field of
coloured cells, where two keys have more values than a reader tells apart by colour."""


def shape_of(release: Release) -> Shape:
    """How a release is drawn, by its keys alone.

    >>> from cloister.session.examples import small_release
    >>> shape_of(small_release())
    'dots'
    """
    columns = release.table.columns
    keys = [columns[name] for name in release.column_names if name not in release.statistics()]
    levels = [len(set(each.tolist())) for each in keys]
    if len(keys) == 2 and max(levels) <= _MOST_SIDE and (levels[1] > _MOST_COLOURS or release.num_rows > _MOST_DOTS):
        return "heat"
    if keys and keys[0].kind in _DRAWN and (len(keys) == 1 or (len(keys) == 2 and levels[1] <= _MOST_COLOURS)):
        return "lines"
    return "dots"


def chart_of(
    release: Release,
    confidence: float = 0.95,
    shape: Shape | None = None,
    *,
    whole: Release | None = None,
    truth: tuple[str, str] = _TRUTH,
) -> alt.LayerChart | alt.VConcatChart:
    """Dots with error bars by the first key, coloured by the second, or what `shape_of` says: a panel for each statistic, the
    first four of them. Without any group left it is an empty chart that says so. `whole`: of which this is a page, so that all
    pages have the same axes; `truth`: what false and true are called."""
    import altair as alt

    measured = drawable(release)
    keys = [name for name in release.column_names if name not in release.statistics()]
    if not measured:
        raise InvalidParameter(
            "The chart is invalid", why="a chart shows numbers and dates, and the answer has none", instead="print(answer)"
        )
    drawn_as = shape or shape_of(release)
    most = _MOST_SIDE**2 if drawn_as == "heat" else _MOST_ROWS
    if release.num_rows > most:
        raise InvalidParameter(
            "The chart is invalid", why=f"it shows at most {most} rows", instead="answer.take(range(50)).plot()"
        )
    told = f"{release.cost}; error bars at {confidence:.0%}"
    if drawn_as == "heat":
        told = f"{release.cost}; crosses mark what is mostly noise, at {confidence:.0%}"
    drawn = measured[:_MOST_PANELS]
    if len(measured) > len(drawn):
        told += f"; the first {len(drawn)} of {len(measured)} statistics"
    if not release.num_rows:
        told = f"{release.cost}; no group is left to show"
    panel = _heat if drawn_as == "heat" else partial(_dots, lines=drawn_as == "lines", whole=whole or release)
    first, *others = (panel(release, keys, each, confidence, truth) for each in drawn)
    first = first.properties(title=alt.Title(shown(", ".join(drawn)), subtitle=told))
    if not others:
        return first
    return alt.vconcat(*(each.properties(height=200) for each in (first, *others)))


def _dots(
    release: Release, keys: list[str], statistic: str, confidence: float, truth: tuple[str, str], *, lines: bool, whole: Release
) -> alt.LayerChart:
    """One statistic: intervals, dots, and hollow ones where the value is not to be read as it stands; on a line, where the first
    key has an order."""
    import altair as alt

    rows = _rows(release, keys, statistic, confidence, truth)
    order = _order(release, keys[0], truth) if lines else list(dict.fromkeys(row["key"] for row in rows))
    width = max(_WIDTH, min(_WIDEST, 16 * len(order)))
    step = width / max(len(order), 1)
    turned = any(_length(each) > step - 6 for each in order)
    base = alt.Chart(alt.Data(values=rows)).properties(width=width)
    x = alt.X(
        "key:N",
        sort=order,
        title=shown(keys[0]) if keys else "all rows",
        axis=alt.Axis(labelAngle=-40 if turned else 0, labelLimit=200, labelOverlap="greedy"),
        scale=alt.Scale(domain=order, paddingInner=0.2, paddingOuter=0.1) if order else alt.Scale(),
    )
    offset: dict[str, Any] = {}
    colour: dict[str, Any] = {}
    if len(keys) > 1:
        second = list(dict.fromkeys(row["group"] for row in rows))
        colour = {"color": alt.Color("group:N", sort=second, title=shown(keys[1]))}
        offset = {} if lines else {"xOffset": alt.XOffset("group:N", sort=second)}
    kind = "T" if release.take(range(0)).table.columns[statistic].kind == "date" else "Q"
    span = _span(rows if whole is release else _rows(whole, keys, statistic, confidence, truth))
    how = {"title": shown(statistic)} | ({"scale": alt.Scale(domain=span, nice=True, zero=False)} if span else {})
    y = alt.Y(f"value:{kind}", **how)
    whiskers = base.mark_rule(strokeWidth=1.5).encode(x=x, y=alt.Y(f"low:{kind}", **how), y2="high:Q", **offset, **colour)
    sure = base.transform_filter("!datum.weak").mark_point(filled=True, size=55, opacity=1)
    weak = base.transform_filter("datum.weak").mark_point(filled=False, size=45, strokeWidth=1.5, opacity=1)
    dots = [each.encode(x=x, y=y, **offset, **colour) for each in (sure, weak)]
    if not lines:
        return alt.layer(whiskers, *dots)
    known = base.transform_filter("isValid(datum.value) && !datum.missing")
    path = known.mark_line(strokeWidth=1.5, opacity=0.6).encode(x=x, y=y, **colour)
    return alt.layer(whiskers, path, *dots)


def _span(rows: list[dict[str, Any]]) -> list[float] | None:
    """Between which numbers an axis runs: all intervals, and 0 unless all lie so far from it that they could not be told from
    dots. None: the library decides.

    >>> _span([{"value": 5.0, "low": 4.0, "high": 9.0}]), _span([{"value": 205.0, "low": 200.0, "high": 210.0}])
    ([0.0, 9.0], [200.0, 210.0])
    """
    ends = [row[name] for row in rows for name in ("low", "value", "high") if isinstance(row[name], int | float)]
    if not ends:
        return None
    least, most = float(min(ends)), float(max(ends))
    if least < most and (least > most / 2 or most < least / 2):
        return [least, most]
    return [min(least, 0.0), max(most, 0.0)] if least or most else None


def _heat(release: Release, keys: list[str], statistic: str, confidence: float, truth: tuple[str, str]) -> alt.LayerChart:
    """One statistic by two keys as a field of colours, with a cross where the value is not to be read as it stands."""
    import altair as alt

    rows = _rows(release, keys, statistic, confidence, truth)
    across, down = _order(release, keys[0], truth), _order(release, keys[1], truth)
    base = alt.Chart(alt.Data(values=rows)).properties(width=max(_WIDTH, min(_WIDEST, 16 * len(across))))
    base = base.properties(height=max(_CELL * 6, min(_CELL * len(down), _TALLEST)))
    turned = any(_length(each) > max(_WIDTH, 16 * len(across)) / max(len(across), 1) - 6 for each in across)
    axis = alt.Axis(labelAngle=-40 if turned else 0, labelLimit=200, labelOverlap="greedy")
    x = alt.X("key:N", sort=across, title=shown(keys[0]), axis=axis, scale=alt.Scale(domain=across))
    y = alt.Y("group:N", sort=down, title=shown(keys[1]), axis=alt.Axis(labelLimit=200), scale=alt.Scale(domain=down))
    kind = "T" if release.take(range(0)).table.columns[statistic].kind == "date" else "Q"
    cells = base.mark_rect().encode(x=x, y=y, color=alt.Color(f"value:{kind}", title=shown(statistic)))
    crosses = base.transform_filter("datum.weak").mark_point(
        shape=_CROSS, filled=False, size=70, strokeWidth=1.5, color="#17211f"
    )
    return alt.layer(cells, crosses.encode(x=x, y=y))


def _order(release: Release, key: str, truth: tuple[str, str]) -> list[str]:
    """The values of a key as they are shown: in their own order where they have one, else in that of the answer; NULL last."""
    series = release.table.columns[key]
    values = list(dict.fromkeys(series.tolist()))
    known = [each for each in values if each is not None]
    if series.kind in _DRAWN:
        known.sort()
    return [_text(each, null_word(values), truth) for each in (*known, *([None] if len(known) < len(values) else []))]


def _text(value: Any, null: str, truth: tuple[str, str] = _TRUTH) -> str:
    """A key as it is shown, as the table shows it.

    >>> _text(None, "NULL"), _text(3, "NULL"), _text("a", "NULL")
    ('NULL', '3', 'a')
    """
    return null if value is None else truth[value] if isinstance(value, bool) else shown(str(value))


def _length(label: str) -> float:
    """About how many pixels a label takes."""
    return sum(_SIGN if sign >= "\u2e80" else _LETTER for sign in label)


def _rows(release: Release, keys: list[str], statistic: str, confidence: float, truth: tuple[str, str]) -> list[dict[str, Any]]:
    values, margins, weak = release.table, release.margin(confidence), release.drowned(confidence)
    columns = [values.columns[key].tolist() for key in keys]
    nulls, (least, most) = [null_word(column) for column in columns], release.bounds(statistic)
    found = []
    cells = zip(values.columns[statistic].tolist(), margins[statistic].tolist(), weak[statistic].tolist(), strict=True)
    for place, (value, margin, doubtful) in enumerate(cells):
        key = {
            "key": _text(columns[0][place], nulls[0], truth) if keys else "all",
            "group": " · ".join(_text(column[place], null, truth) for column, null in zip(columns[1:], nulls[1:], strict=True)),
            "missing": bool(keys) and columns[0][place] is None,
            "weak": bool(doubtful),
        }
        found.append({**key, **(_of_date(value, margin) if isinstance(value, date) else _of_number(value, margin, least, most))})
    return found


def _of_number(value: float | None, margin: float, least: float, most: float) -> dict[str, float | None]:
    """A number and the ends of its interval, within the declared bounds; None where there is none, or it has no end."""
    if value is None:
        return {"value": None, "low": None, "high": None}
    # of a value that cannot be, as a count below 0, the interval is shown as it is
    ends = {
        "value": float(value),
        "low": max(float(value - margin), min(least, float(value))),
        "high": min(float(value + margin), max(most, float(value))),
    }
    return {name: end if math.isfinite(end) else None for name, end in ends.items()}


def _of_date(value: date, margin: float) -> dict[str, str | None]:
    """A date and the days around it, within what a calendar has; None where they are not known."""
    if math.isnan(margin):
        return {"value": value.isoformat(), "low": None, "high": None}
    days = min(int(margin), (value - date.min).days, (date.max - value).days)
    reach = timedelta(days=days)
    return {"value": value.isoformat(), "low": (value - reach).isoformat(), "high": (value + reach).isoformat()}
