"""What a search makes of a table: for each quasi-identifier a label for each row, and which rows are suppressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes, alike
from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.ladder import Ladder


@dataclass(frozen=True, eq=False, kw_only=True)
class RecodedColumn:
    """One quasi-identifier after recoding: `labels[codes[row]]` is what is in the published table.

    `shares` is how much of the column a label covers, counted in leaves (1: everything; 1/N: one value of N); `widths` the same
    measured as the normalised certainty penalty does: the width of an interval over the range of the column, 0 for one value.
    """

    codes: npt.NDArray[np.int32]
    labels: list[Any]
    shares: npt.NDArray[np.float64]
    widths: npt.NDArray[np.float64]
    intact: bool = False
    """Whether its labels are the original values, so that the column keeps its type."""

    @classmethod
    def at(cls, column: EncodedColumn, ladder: Ladder, level: int) -> RecodedColumn:
        """A column on one level of its hierarchy."""
        shares = ladder.shares(level)
        codes = ladder.codes[level]
        return cls(
            codes=codes[column.codes],
            labels=ladder.labels[level],
            shares=shares,
            widths=_widths(column, codes, len(ladder.labels[level]), ladder.leaves[level], shares),
            intact=level == 0,
        )


@dataclass(frozen=True, kw_only=True)
class Proof:
    """How far a search can be from the best: `bound` is a number that no recoding of its kind scores below.

    >>> str(Proof(optimal=True, bound=12.0, what="all 6,480 nodes were searched or ruled out"))
    'optimal: all 6,480 nodes were searched or ruled out'
    """

    optimal: bool
    bound: float | None = None
    what: str = ""

    @classmethod
    def near(cls, score: float, bound: float, judged: str, ranged: bool) -> Proof:
        """Of the best of those that were judged. `ranged`: by a metric whose gap tells the range of all rows, left out or not."""
        known = bound > 0 and not ranged
        gap = f", so that it is at most {(score - bound) / bound:.1%} above the best" if known else ""
        return cls(optimal=bound >= score, bound=bound, what=judged + gap)

    def __str__(self) -> str:
        return f"{'optimal' if self.optimal else 'not proved optimal'}: {self.what}" if self.what else "nothing was proved"


@dataclass(frozen=True, eq=False, kw_only=True)
class Recoded:
    """A recoded table, and its classes."""

    columns: Mapping[str, RecodedColumn]
    suppressed: npt.NDArray[np.bool_]
    sensitive: Mapping[str, EncodedColumn] = field(default_factory=dict)
    levels: Mapping[str, int] | None = None
    """The level of each column, where every row has the same."""
    proof: Proof | None = None
    research: npt.NDArray[np.bool_] | None = None
    weights: npt.NDArray[np.int64] | None = None
    """How many rows of the table each row here stands for; None: one each."""
    again: Callable[[Mapping[str, EncodedColumn]], Recoded] | None = None
    """The same search over the same quasi-identifiers and other sensitive values: what an attacker can run who knows the
    algorithm. None where sensitive values decide nothing."""

    @cached_property
    def classes(self) -> Classes:
        """Rows that look alike in the published table: from the labels that are published, never from what a search says."""
        ids, count = alike(
            [column.codes for column in self.columns.values()], [len(column.labels) for column in self.columns.values()]
        )
        return Classes.of(
            ids, count, sensitive=self.sensitive, suppressed=self.suppressed, research=self.research, weights=self.weights
        )

    def among(self, kept: npt.NDArray[np.bool_], weights: npt.NDArray[np.int64] | None = None) -> Recoded:
        """The same recoding of a larger table, of which only the rows `kept` were recoded: the others are suppressed, and
        nothing is known of their sensitive values. `weights` are those of the larger table."""
        columns = {}
        for name, column in self.columns.items():
            codes = np.zeros(len(kept), dtype=np.int32)
            codes[kept] = column.codes
            columns[name] = replace(column, codes=codes)
        suppressed = np.ones(len(kept), dtype=bool)
        suppressed[kept] = self.suppressed
        return replace(self, columns=columns, suppressed=suppressed, sensitive={}, research=None, weights=weights)

    @cached_property
    def leaving(self) -> Recoded:
        """The same of those rows alone that are in the table which is published: itself, where there is no public list."""
        return self if self.research is None else self.only(self.research)

    def only(self, there: npt.NDArray[np.bool_]) -> Recoded:
        """The same of some rows alone, as if the table had no other."""
        weights = None if self.weights is None else self.weights[there]
        return replace(
            self,
            columns={name: replace(column, codes=column.codes[there]) for name, column in self.columns.items()},
            suppressed=self.suppressed[there],
            sensitive={name: column.among(there, weights) for name, column in self.sensitive.items()},
            research=None,
            weights=weights,
            again=None,
        )

    def measured(self, table: Encoded) -> Recoded:
        """The same with widths over the values of rows that are not suppressed: by all, they tell how far off somebody was."""
        if not self.suppressed.any():
            return self
        kept, columns = ~self.suppressed, dict(self.columns)
        for name in (each for each in self.columns if table.columns[each].is_number):
            raw, column, many = table.columns[name], self.columns[name], len(self.columns[name].labels)
            pairs = np.unique(raw.codes[kept].astype(np.int64) * many + column.codes[kept])
            seen = replace(raw, values=[raw.values[pair // many] for pair in pairs.tolist()], tally=None)
            if self.levels is None:  # a label of some rows covers more than these have
                widths = column.widths * np.divide(_span(raw), _span(seen), out=np.ones(1), where=_span(seen) > 0)
            else:
                widths = _widths(seen, pairs % many, many, column.widths, column.widths)
            columns[name] = replace(column, widths=np.minimum(widths, 1.0))
        return replace(self, columns=columns)

    @property
    def published(self) -> npt.NDArray[np.bool_]:
        """Which rows are in the table that is published, and say something there."""
        return ~self.suppressed if self.research is None else ~self.suppressed & self.research

    @property
    def suppressed_rows(self) -> int:
        """How many rows are suppressed."""
        return int(np.count_nonzero(self.suppressed) if self.weights is None else self.weights[self.suppressed].sum())


def _widths(
    column: EncodedColumn,
    codes: npt.NDArray[np.int32],
    labels: int,
    leaves: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    if not column.is_number or not len(column):
        return np.where(leaves <= 1, 0.0, shares)
    numbers, span = np.ldexp(column.numbers, -2), _span(column)
    known = ~np.isnan(numbers)
    low, high = np.full(labels, np.inf), np.full(labels, -np.inf)
    np.minimum.at(low, codes[known], numbers[known])
    np.maximum.at(high, codes[known], numbers[known])
    inside = np.where(high >= low, high - low, 0.0)
    return np.asarray(inside / span if span > 0 else np.zeros(labels), dtype=np.float64)


def _span(column: EncodedColumn) -> float:
    """A quarter of the distance of the two numbers that are furthest apart, which is a number, too."""
    known = np.ldexp(column.numbers[~np.isnan(column.numbers)], -2)
    return float(np.ptp(known)) if len(known) else 0.0
