"""From the class of each row to what is in the published table: one label for each class and quasi-identifier."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.hierarchies.ladder import MISSING, STAR
from cloister.anonymize.hierarchies.levels import text_of
from cloister.anonymize.recoding import RecodedColumn
from cloister.anonymize.searches.axes import MANY, Axis
from cloister.anonymize.searches.parts import MARKS, Cut
from cloister.anonymize.sorting import order_of
from cloister.errors import InvalidParameter

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LARGE, _EPOCH = 2.0**900, datetime.datetime(1970, 1, 1)

AGGREGATES = ("range", "set", "mean", "median", "mode")
"""What stands for a class: the interval from its least to its largest value (for categories the smallest label of the hierarchy
that has them all, or their set); the set of its values; the mean; the median; the value that most of its rows have."""


def check_aggregates(aggregates: Mapping[str, str]) -> None:
    """Each is one that is known."""
    for column, aggregate in aggregates.items():
        if aggregate not in AGGREGATES:
            raise InvalidParameter(
                f"aggregates={{{column!r}: {aggregate!r}}} is invalid",
                why="it is not one of " + ", ".join(map(repr, AGGREGATES)),
                instead=f'aggregates={{{column!r}: "range"}}',
            )


@dataclass(frozen=True, eq=False)
class Region:
    """Rows in the order of their classes."""

    order: npt.NDArray[np.integer]
    first: Ints
    weights: Ints | None

    @classmethod
    def of(cls, of_row: npt.NDArray[np.integer], count: int, weights: Ints | None = None) -> Region:
        """From the class of each row; no class is empty."""
        order = order_of(of_row, max(count, 1)).astype(np.int32)
        edges = np.cumsum(np.bincount(of_row, minlength=count))
        return cls(order, np.concatenate([[0], edges]), None if weights is None else weights[order])

    @property
    def count(self) -> int:
        """How many classes."""
        return len(self.first) - 1

    @cached_property
    def owner(self) -> Ints:
        """The class of each row, in their order."""
        return np.repeat(np.arange(self.count), np.diff(self.first))

    def pairs(self, places: npt.NDArray[np.integer], width: int) -> tuple[Ints, Ints, Ints]:
        """Each class with each place that it has: the class, the place, and how many rows have it."""
        key = self.owner * width + places
        if self.weights is None:
            distinct, count = np.unique(key, return_counts=True)
        else:
            distinct, inside = np.unique(key, return_inverse=True)
            count = np.bincount(inside, weights=self.weights).astype(np.int64)
        owner, place = np.divmod(distinct, width)
        return owner, place, count


def regions(
    axes: Sequence[Axis],
    of_row: npt.NDArray[np.integer],
    count: int,
    *,
    aggregates: Mapping[str, str] | None = None,
    weights: Ints | None = None,
    cut: Cut | None = None,
) -> dict[str, RecodedColumn]:
    """The columns that publish each class by one label; `cut`, where there is one, knows what each class covers.

    >>> from cloister.anonymize.encoded import encode
    >>> from cloister.anonymize.frames import read_frame
    >>> from cloister.anonymize.searches.axes import axes_of
    >>> table = encode(read_frame({"age": [20, 35, 50], "sex": ["F", "M", "F"]}), ["age", "sex"])
    >>> found = regions(axes_of(table, ("age", "sex"), {}), np.array([0, 0, 1]), 2)
    >>> found["age"].labels, found["age"].codes.tolist(), found["sex"].labels
    (['20–35', '50'], [0, 0, 1], ['F', '*'])
    """
    asked = [(aggregates or {}).get(axis.column.name, "range") for axis in axes]
    region = None if cut is not None and set(asked) <= {"range"} else Region.of(of_row, count, weights)
    columns = {}
    for number, axis in enumerate(axes):
        name = axis.column.name
        if cut is not None and asked[number] == "range":
            made = _covered(axis, cut, number)
        else:
            assert region is not None
            made = _recode(axis, region, asked[number])
        codes = made.codes[of_row].astype(np.int32) if count else np.empty(0, dtype=np.int32)
        columns[name] = RecodedColumn(
            codes=codes, labels=made.labels, shares=made.shares, widths=made.widths, intact=made.single and made.original
        )
    return columns


@dataclass(frozen=True, eq=False, kw_only=True)
class _Labels:
    """A label for each class."""

    codes: npt.NDArray[np.integer]
    labels: list[Any]
    shares: Floats
    widths: Floats
    single: bool
    """Whether each class has one value."""
    original: bool
    """Whether a class of one value is called by that value."""
    apart: bool = False
    """Whether no two labels read alike."""


def _covered(axis: Axis, cut: Cut, number: int) -> _Labels:
    """One column, each class called by what it covers."""
    if not cut.count or not len(axis):
        return _nothing()
    low, high = cut.low[:, number], cut.high[:, number]
    return _finished(_sets_of(axis, cut.marks[number]) if axis.is_set else _spans(axis, low, high), low, high, "range")


def _recode(axis: Axis, region: Region, aggregate: str) -> _Labels:
    """One column: what each class is called, and how much of the column that covers."""
    if region.count == 0 or not len(axis):
        return _nothing()
    places = axis.place[axis.column.codes[region.order]]
    low = np.minimum.reduceat(places, region.first[:-1]).astype(np.int64)
    high = np.maximum.reduceat(places, region.first[:-1]).astype(np.int64)
    if aggregate == "range":
        found = _sets(axis, region, places) if axis.is_set else _spans(axis, low, high)
    elif aggregate == "set":
        found = _sets(axis, region, places)
    elif axis.column.is_number and aggregate in ("mean", "median"):
        found = _values(axis, *_centres(axis, region, places, aggregate), low, high)
    else:  # the mean or median of categories is the one that most rows have
        found = _values(axis, *_modes(axis, region, places), low, high)
    return _finished(found, low, high, aggregate)


def _nothing() -> _Labels:
    none = np.empty(0)
    return _Labels(codes=none.astype(np.int32), labels=[], shares=none, widths=none, single=True, original=True)


def _finished(found: _Labels, low: npt.NDArray[np.integer], high: npt.NDArray[np.integer], aggregate: str) -> _Labels:
    """Labels that read alike are one."""
    names, codes = (found.labels, np.arange(len(found.labels))) if found.apart else _by_text(found.labels)
    shares, widths = np.zeros(len(names)), np.zeros(len(names))
    np.maximum.at(shares, codes, found.shares)
    np.maximum.at(widths, codes, found.widths)
    return _Labels(
        codes=codes[found.codes],
        labels=names,
        shares=shares,
        widths=widths,
        single=bool((low == high).all()),
        # a missing value reads as the text "(missing)" does: where both stand there, they are published alike
        original=found.original and aggregate in ("range", "mode", "median", "set") and len(names) == len(found.labels),
    )


def _spans(axis: Axis, low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]) -> _Labels:
    """Intervals, or the smallest labels of a hierarchy."""
    if axis.ladder is None:
        codes, count = alike([low, high], [len(axis), len(axis)])
        one = np.empty(count, dtype=np.int64)
        one[codes] = np.arange(len(codes))
        low, high = low[one], high[one]
        labels: list[Any] = _intervals(axis, low, high)
        shares = (high - low + 1) / len(axis)
        widths = axis.widths(low, high) if axis.is_number else np.where(high > low, shares, 0.0)
        return _made(codes, labels, shares, widths, apart=axis.is_number)
    level = axis.levels(low, high)
    top = axis.ladder.height
    label = np.zeros(len(low), dtype=np.int64)
    for each in range(top):
        here = level == each
        label[here] = axis.ladder.codes[each][axis.code[low[here]]]
    width = max(map(len, axis.ladder.labels))
    key, codes = np.unique(level * width + label, return_inverse=True)
    labels, shares, widths = [], np.ones(len(key)), np.ones(len(key))
    columns = {int(each): RecodedColumn.at(axis.column, axis.ladder, int(each)) for each in np.unique(key // width) if each < top}
    for place, (each, code) in enumerate(zip(*np.divmod(key, width), strict=True)):
        labels.append(columns[each].labels[code] if each < top else STAR)
        if each < top:
            shares[place], widths[place] = columns[each].shares[code], columns[each].widths[code]
    return _made(codes, labels, shares, widths)


def _intervals(axis: Axis, low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]) -> list[Any]:
    """What lies between two places: there may be millions of them."""
    missing = axis.column.missing
    texts = [_text(axis.column.values[code]) for code in axis.code.tolist()]
    if missing is None:
        return [
            texts[begin] if begin == end else f"{texts[begin]}–{texts[end]}"
            for begin, end in zip(low.tolist(), high.tolist(), strict=True)
        ]
    known = np.where((high == len(axis) - 1) & (high > low), high - 1, high)
    return [
        (texts[begin] if begin == last else f"{texts[begin]}–{texts[last]}") + ("" if last == end else f" or {MISSING}")
        for begin, last, end in zip(low.tolist(), known.tolist(), high.tolist(), strict=True)
    ]


def _sets(axis: Axis, region: Region, places: npt.NDArray[np.integer]) -> _Labels:
    """Sets of values."""
    if len(axis) <= MANY:
        return _sets_of(axis, np.bitwise_or.reduceat(MARKS[places], region.first[:-1]))
    owner, place, _ = region.pairs(places, len(axis))
    edges = np.searchsorted(owner, np.arange(region.count + 1)).tolist()
    known: dict[tuple[int, ...], int] = {}
    listed = place.tolist()
    codes = np.array([known.setdefault(tuple(listed[begin:end]), len(known)) for begin, end in pairwise(edges)])
    return _sets_named(axis, codes, [list(each) for each in known])


def _sets_of(axis: Axis, marks: npt.NDArray[np.uint64]) -> _Labels:
    """Sets, a bit for each value."""
    masks, codes = _distinct_marks(marks, len(axis))
    return _sets_named(axis, codes, [[place for place in range(len(axis)) if mask >> place & 1] for mask in masks])


def _distinct_marks(marks: npt.NDArray[np.uint64], values: int) -> tuple[list[int], npt.NDArray[np.integer]]:
    if values >= 62:
        masks, codes = np.unique(marks, return_inverse=True)
        return masks.tolist(), codes
    codes, count = alike([marks], [1 << values])
    masks = np.empty(count, dtype=np.uint64)
    masks[codes] = marks
    return masks.tolist(), codes


def _sets_named(axis: Axis, codes: npt.NDArray[np.integer], members: list[list[int]]) -> _Labels:
    values = axis.column.values
    labels, sizes = [], np.array([len(each) for each in members], dtype=np.float64)
    for each in members:
        inside = [_text(values[code]) for code in sorted(int(axis.code[place]) for place in each)]
        whole = len(each) == len(axis) and not axis.column.is_number
        labels.append(inside[0] if len(inside) == 1 else STAR if whole else "{" + ", ".join(inside) + "}")
    shares = sizes / len(axis)
    ends = np.array([[each[0], each[-1]] for each in members])
    widths = axis.widths(ends[:, 0], ends[:, 1]) if axis.is_number else np.where(sizes > 1, shares, 0.0)
    return _made(codes, labels, shares, widths)


def _centres(axis: Axis, region: Region, places: npt.NDArray[np.integer], aggregate: str) -> tuple[Ints, list[Any]]:
    """Means or medians of numbers, missing ones left out, rounded to what the column has; a class of missing ones is missing."""
    numbers = axis.column.numbers[axis.code]
    missing = axis.column.missing
    weights = region.weights if region.weights is not None else np.ones(len(places), dtype=np.int64)
    known = weights if missing is None else np.where(places == axis.place[missing], 0, weights)
    total = np.add.reduceat(known, region.first[:-1])
    if aggregate == "median":
        order = np.lexsort((places, region.owner))
        upto = np.concatenate([[0], np.cumsum(known[order])])
        wanted = upto[region.first[:-1]] + (total + 1) // 2
        found = places[order][np.maximum(np.searchsorted(upto, wanted) - 1, 0)]
        middle = np.where(total > 0, axis.code[found], -1)
        distinct, codes = np.unique(middle, return_inverse=True)
        return codes, [MISSING if code < 0 else axis.column.values[code] for code in distinct.tolist()]
    shift = 64 if np.nanmax(np.abs(numbers), initial=0) > _LARGE else 0
    sums = np.add.reduceat(np.where(known > 0, np.ldexp(numbers[places], -shift), 0.0) * known, region.first[:-1])
    means = np.where(total > 0, np.ldexp(sums / np.maximum(total, 1), shift), np.nan)
    distinct, codes = np.unique(means, return_inverse=True)
    written = _date_texts if axis.column.kind == "date" else _number_texts
    texts = written(distinct[~np.isnan(distinct)].tolist())
    return codes, texts + [MISSING] * (len(distinct) - len(texts))


def _modes(axis: Axis, region: Region, places: npt.NDArray[np.integer]) -> tuple[Ints, list[Any]]:
    """The value that most rows of a class have; of several the first."""
    owner, place, count = region.pairs(places, len(axis))
    order = np.lexsort((axis.code[place], -count, owner))
    best = order[np.searchsorted(owner, np.arange(region.count))]
    distinct, codes = np.unique(axis.code[place[best]], return_inverse=True)
    return codes, [axis.column.values[code] for code in distinct.tolist()]


def _values(axis: Axis, codes: Ints, labels: list[Any], low: Ints, high: Ints) -> _Labels:
    """One value for each class; what it covers is still what the classes cover that read so."""
    names, merged = _by_text(labels)
    codes = merged[codes]
    least, most = np.full(len(names), len(axis), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
    np.minimum.at(least, codes, low)
    np.maximum.at(most, codes, high)
    shares = (most - least + 1) / len(axis)
    return _made(codes, names, shares, axis.widths(least, most), original=len(names) == len(labels))


def _made(
    codes: npt.NDArray[np.integer],
    labels: list[Any],
    shares: Floats,
    widths: Floats,
    *,
    apart: bool = False,
    original: bool = True,
) -> _Labels:
    return _Labels(codes=codes, labels=labels, shares=shares, widths=widths, single=False, original=original, apart=apart)


def _by_text(labels: list[Any]) -> tuple[list[str], Ints]:
    """Labels that read alike are one: what is published decides what looks alike."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(_text(label), len(known)) for label in labels], dtype=np.int64)
    return list(known), codes


def _number_texts(means: list[float]) -> list[str]:
    """Means in six digits, or in as many more as tell them apart."""
    texts: list[str] = []
    for digits in (6, 9, 12, 15, 17):
        texts = [f"{mean:.{digits}g}" for mean in means]
        if len(set(texts)) == len(means):
            break
    return texts


def _date_texts(means: list[float]) -> list[str]:
    """Means of days as days, or as seconds where days don't tell them apart."""
    moments = []
    for mean in means:
        try:
            moments.append(_EPOCH + datetime.timedelta(days=mean))
        except OverflowError:  # rounded up, over the last microsecond that there is
            moments.append(datetime.datetime.max)
    days = [moment.date().isoformat() for moment in moments]
    return days if len(set(days)) == len(days) else [moment.isoformat(sep=" ", timespec="seconds") for moment in moments]


def _text(value: Any) -> str:
    return MISSING if value is None else value if isinstance(value, str) else text_of(value)
