"""Microaggregation of a table: records in groups of k that are near one another, each published as its group's middle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.encoded import EncodedColumn
from cloister.anonymize.perturbing.columns import Columns
from cloister.anonymize.perturbing.microaggregation.mdav import blocked_mdav, mdav, vmdav
from cloister.anonymize.perturbing.microaggregation.replacing import REPLACEMENTS, information_loss, means, medians, modes
from cloister.anonymize.perturbing.microaggregation.univariate import best_groups
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random

_MOST_NAMES = 256


def places(
    columns: Columns, names: Sequence[str], *, orders: Mapping[str, Sequence[Any]], weights: Mapping[str, float]
) -> Floats:
    """The point of each record; NaN where a value is missing.

    Each column gets the same say: the mean squared distance of two random records is 2 in each of them, which for numbers is
    standardising. An order counts by ranks. Two names are equal or not.

    >>> rows = Columns.of({"age": [20, 40], "sex": ["F", "M"]})
    >>> places(rows, ["age", "sex"], orders={}, weights={}).round(2).tolist()
    [[-1.0, 1.41, 0.0], [1.0, 0.0, 1.41]]
    """
    parts = []
    for name in names:
        weight = float(np.sqrt(weights.get(name, 1.0)))
        numbers = numbers_or_ranks(columns, name, orders.get(name))
        part = _names(columns.coded(name)) if numbers is None else standardised(numbers)[:, None]
        parts.append(weight * part)
    return np.hstack(parts) if parts else np.zeros((columns.rows, 0))


def numbers_or_ranks(columns: Columns, name: str, order: Sequence[Any] | None) -> Floats | None:
    """The column as numbers: its own, or ranks in the given order or in that of dates; None where it holds mere names."""
    if order is None and (columns.numeric(name) or columns.rows == 0):
        return columns.numbers(name)
    coded = columns.coded(name)
    if order is None:
        return coded.numbers[coded.codes] if coded.kind == "date" else None
    given = list(order)
    strangers = [value for value in coded.values if value is not None and value not in given]
    if strangers or len(set(map(repr, given))) != len(given):
        raise InvalidParameter(
            f"The order of {name!r} is invalid",
            why=f"the table has {strangers[0]!r}, which it lacks" if strangers else "it names a value twice",
            instead=f"orders={{{name!r}: [the values, lowest first]}}",
        )
    ranks = np.array([np.nan if value is None else float(given.index(value)) for value in coded.values])
    return ranks[coded.codes]


def standardised(numbers: Floats) -> Floats:
    """With mean 0 and variance 1 over the values that are there; a constant column is 0.

    >>> standardised(np.array([2.0, 4.0, 6.0, np.nan])).round(3).tolist()
    [-1.225, 0.0, 1.225, nan]
    """
    there = numbers[~np.isnan(numbers)]
    if not there.size:
        return numbers.copy()
    largest = max(float(np.abs(there).max()), np.finfo(np.float64).tiny)
    scaled = there / largest  # so that squares of huge numbers stay finite
    middle, spread = float(scaled.mean()), float(scaled.std())
    if spread <= 1e-13:
        return np.asarray(numbers * 0.0)
    return np.asarray((numbers / largest - middle) / spread)


def _names(column: EncodedColumn) -> Floats:
    """One axis a name, so scaled that two random records are 2 apart in the mean of squares."""
    there = column.codes >= 0 if column.missing is None else column.codes != column.missing
    names = len(column) - (column.missing is not None)
    if names > _MOST_NAMES:
        raise InvalidParameter(
            f"The column {column.name!r} is invalid",
            why=f"it holds {names} names, and distances between so many mean nothing",
            instead="fewer, wider categories; an order (orders=); or the table without that column",
        )
    shares = column.counts[:names] / max(1, int(there.sum()))
    unlike = 1.0 - float((shares**2).sum())
    out = np.zeros((len(column.codes), max(names, 1)))
    out[~there] = np.nan
    if unlike > 0:
        out[np.flatnonzero(there), column.codes[there]] = 1 / np.sqrt(unlike)
    return out


Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

METHODS = ("auto", "mdav", "vmdav", "blocks")
_EXACT_UP_TO = 20_000
"""Records up to which "auto" is MDAV itself: a few seconds."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Microaggregated:
    """A table that was microaggregated, and what it lost."""

    frame: Any
    groups: Integers
    """Of each record; with `by="column"`, of the columns together: which records came out alike in all of them."""
    k: int
    """The smallest number of records that came out alike in the named columns, counted in the table that came out."""
    loss: float
    """SSE/SST of the columns of numbers and of orders: the share of their variance that is gone."""
    changed: Mapping[str, float]
    """By column of names: the share of records that got another value."""


@dataclass(frozen=True, kw_only=True)
class Microaggregation:
    """Publish each record as the middle of a group of at least k that are near it.

    Protects: in the named columns, every record of the result equals at least k − 1 others (k-anonymity, counted again in
    what comes out). Does not protect: a sensitive column that is the same for a whole group, and columns that were not
    named; who knows k − 1 members of a group can work out the last from its mean. With `by="column"` each column alone is
    k-anonymous, and records are not. It is not differentially private.

    `columns` are numbers, dates, names, or categories with an order (`orders={"school": ["none", "primary", "secondary"]}`).
    `method` is "mdav" (Domingo-Ferrer & Torra 2005; time n²/k), "vmdav" (groups of k to 2k − 1, with `gamma`), "blocks" (MDAV
    inside of blocks of neighbours, for millions of records) or "auto": MDAV up to 20,000 records, blocks above. With
    `by="column"` each column is grouped by itself, by the exact optimum of Hansen & Mukherjee (2003).
    `replace` is "mean" (names get the mode), "median" (the lower one: a value that somebody has), "mode", or one for each
    column. `weights` make distances in a column count more.
    `missing="refuse"` refuses empty cells. With "own", records with the same empty columns are grouped among themselves; where
    fewer than k share a pattern, all of their named columns are emptied; with `by="column"`, empty cells stay empty.

    >>> table = {"age": [21, 23, 24, 60, 61, 65], "pay": [900, 950, 940, 2000, 2400, 2200]}
    >>> done = Microaggregation(columns=["age", "pay"], k=3, replace="median").apply(table, random=Random.deterministic(1))
    >>> done.frame
    {'age': [23, 61, 61, 23, 23, 61], 'pay': [940, 2200, 2200, 940, 940, 2200]}
    >>> done.k, round(done.loss, 3)
    (3, 0.021)
    """

    columns: str | Sequence[str]
    k: int = 5
    method: str = "auto"
    by: str = "record"
    replace: str | Mapping[str, str] = "mean"
    orders: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    missing: str = "refuse"
    gamma: float = 0.2

    def __post_init__(self) -> None:
        given = list(self.replace.values()) if isinstance(self.replace, Mapping) else [self.replace]
        for name, value, allowed in (
            ("method", self.method, METHODS),
            ("by", self.by, ("record", "column")),
            ("missing", self.missing, ("refuse", "own")),
            *(("replace", each, REPLACEMENTS) for each in given),
        ):
            check_one_of(value, name, allowed, instead=f"{name}={allowed[0]!r}")
        if any(not (np.isfinite(weight) and weight > 0) for weight in self.weights.values()):
            raise InvalidParameter("weights= is invalid", why="a weight is a number above 0", instead='weights={"age": 2}')

    def apply(
        self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False
    ) -> Microaggregated:
        """The table with the named columns replaced: pandas, polars, Arrow or a dict of lists, as it came."""
        columns, names, _ = Columns.leaving(frame, self.columns, random, shuffle=shuffle, keep_index=keep_index)
        for option in (self.orders, self.weights, self.replace if isinstance(self.replace, Mapping) else {}):
            if option:
                columns.check(list(option), "named")
        gone = np.column_stack([columns.absent(name) for name in names]) if columns.rows else np.zeros((0, len(names)), bool)
        if self.missing == "refuse":
            for name in names:
                columns.refuse_missing(name, 'missing="own" (records with the same gaps form groups of their own)')
        if self.by == "column":
            fresh = {name: self._alone(columns, name, gone[:, place]) for place, name in enumerate(names)}
        else:
            groups, gone = self._grouped(columns, names, gone)
            fresh = {name: self._replaced(columns, name, groups, gone[:, place]) for place, name in enumerate(names)}
        out = columns.replaced(fresh)
        return self._judged(columns, Columns.of(out), names, out)

    def _grouped(
        self, columns: Columns, names: Sequence[str], gone: npt.NDArray[np.bool_]
    ) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """The group of each record, and which cells are empty after rare patterns were emptied."""
        groups = np.zeros(columns.rows, dtype=np.int64)
        if not columns.rows:
            return groups, gone
        patterns, number = alike([gone[:, place].astype(np.int64) for place in range(gone.shape[1])], [2] * gone.shape[1])
        rare = (np.bincount(patterns, minlength=number) < self.k)[patterns] & gone.any(axis=1)
        gone = gone | rare[:, None]
        points = [places(columns, [name], orders=self.orders, weights=self.weights) for name in names]
        patterns, number = alike([gone[:, place].astype(np.int64) for place in range(gone.shape[1])], [2] * gone.shape[1])
        first = 0
        for pattern in range(number):
            rows = np.flatnonzero(patterns == pattern)
            known = [part[rows] for place, part in enumerate(points) if not gone[rows[0], place]]
            if known or len(rows) < self.k:
                self._enough(len(rows), whole=number == 1)
                groups[rows] = first + self._near(np.hstack(known) if known else np.zeros((len(rows), 1)))
            else:
                groups[rows] = first
            first = int(groups[rows].max()) + 1
        return groups, gone

    def _enough(self, rows: int, *, whole: bool) -> None:
        if rows < self.k:
            raise InvalidParameter(
                f"k={self.k} is invalid",
                why=f"the table has {rows} records"
                if whole
                else f"{rows} records share what is missing in them, and are too few",
                instead=f"k={rows}" if whole else "a table without those records, or with their gaps filled",
            )

    def _near(self, points: Floats) -> Integers:
        method = self.method
        if method == "auto":
            method = "mdav" if len(points) <= _EXACT_UP_TO else "blocks"
        if points.shape[1] == 1 and self.method == "auto":
            return best_groups(points[:, 0], self.k)
        if method == "vmdav":
            return vmdav(points, self.k, gamma=self.gamma)
        return mdav(points, self.k) if method == "mdav" else blocked_mdav(points, self.k, size=max(1000, 3 * self.k))

    def _alone(self, columns: Columns, name: str, gone: npt.NDArray[np.bool_]) -> Any:
        """One column, grouped by itself."""
        numbers = numbers_or_ranks(columns, name, self.orders.get(name))
        if numbers is None:
            raise InvalidParameter(
                f"The column {name!r} is invalid",
                why="by itself a column is grouped along an order, and this one holds names",
                instead=f"orders={{{name!r}: [the values, lowest first]}}",
            )
        groups = np.zeros(columns.rows, dtype=np.int64)
        there = np.flatnonzero(~gone)
        if there.size:
            self._enough(there.size, whole=True)
            groups[there] = best_groups(standardised(numbers)[there], self.k)
        return self._replaced(columns, name, groups, gone)

    def _replaced(self, columns: Columns, name: str, groups: Integers, gone: npt.NDArray[np.bool_]) -> Any:
        how = self.replace.get(name, "mean") if isinstance(self.replace, Mapping) else self.replace
        order = self.orders.get(name)
        there = np.flatnonzero(~gone)
        mine = np.unique(groups[there], return_inverse=True)[1]  # groups of which nobody has a value here are left out
        number = columns.numeric(name) and order is None
        if number and how == "mean":
            fresh = np.full(columns.rows, np.nan)
            fresh[there] = means(columns.numbers(name)[there], mine)
            return fresh
        coded = columns.coded(name)
        codes = coded.codes[there].astype(np.int64)
        ranks = coded.codes.astype(np.float64) if number else numbers_or_ranks(columns, name, order)
        if ranks is not None and how != "mode":  # orders and dates: the middle member's value, as a mean of ranks names none
            middle = medians(ranks[there], mine)
            _, first = np.unique(ranks[there], return_index=True)
            by_rank = dict(zip(ranks[there][first].tolist(), codes[first].tolist(), strict=True))
            chosen = np.array([by_rank[rank] for rank in middle.tolist()], dtype=np.int64)
        else:
            chosen = modes(codes, mine)
        return columns.of_codes(name, coded, there, chosen)

    def _judged(self, before: Columns, after: Columns, names: Sequence[str], out: Any) -> Microaggregated:
        coded = [after.coded(name) for name in names]
        groups, count = (
            alike([each.codes for each in coded], [len(each) for each in coded]) if before.rows else (np.zeros(0, np.int64), 0)
        )
        raw, new, changed = [], [], {}
        for name in names:
            ranks = numbers_or_ranks(before, name, self.orders.get(name))
            if ranks is None:
                old, fresh = before.coded(name), after.coded(name)
                known = np.array([old.values[code] for code in old.codes.tolist()], dtype=object)
                given = np.array([fresh.values[code] for code in fresh.codes.tolist()], dtype=object)
                changed[name] = float((known != given).mean()) if before.rows else 0.0
            else:
                raw.append(ranks)
                new.append(numbers_or_ranks(after, name, self.orders.get(name)))
        loss = information_loss(np.column_stack(raw), np.column_stack(new)) if raw else 0.0  # type: ignore[arg-type]
        k = int(np.bincount(groups, minlength=count).min()) if count else 0
        return Microaggregated(frame=out, groups=groups, k=k, loss=loss, changed=changed)
