"""What a synthetic model answers: a table of values, each with an interval and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.printable import finite
from cloister.privacy import Guarantee
from cloister.session import Frame, Series, text_table

Floats = npt.NDArray[np.float64]
Kind: TypeAlias = Literal["measured", "sure", "not known"]

KINDS: Mapping[str, str] = {
    "measured": "a sum of measured counts: the interval holds with the confidence",
    "sure": "bounds that follow from measured counts: they hold with the confidence, and are wide",
    "not known": "the model's own value; nothing that was measured says how far off it is",
}
_MOST_SHOWN = 40


@dataclass(frozen=True, eq=False)
class Statistic:
    """One column of numbers: values, the ends of their intervals (NaN where they are not known), and how sure each is."""

    value: Floats
    low: Floats
    high: Floats
    kind: npt.NDArray[np.object_]

    @classmethod
    def unknown(cls, value: Floats) -> Statistic:
        """Values of which nothing more is known."""
        nothing = np.full(len(value), np.nan)
        return cls(value, nothing, nothing.copy(), np.full(len(value), "not known", dtype=object))

    def tell(self, kind: Kind, where: npt.NDArray[np.bool_], low: Floats, high: Floats, value: Floats | None = None) -> None:
        """What is known better of some of its rows, in place."""
        self.kind[where], self.low[where], self.high[where] = kind, low[where], high[where]
        if value is not None:
            self.value[where] = value[where]

    def take(self, places: npt.NDArray[np.int64]) -> Statistic:
        """Some of its rows."""
        return Statistic(self.value[places], self.low[places], self.high[places], self.kind[places])


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Answer:
    """What `SyntheticModel.answer` gives.

    >>> import numpy as np
    >>> from cloister.privacy import PureDP
    >>> one = Statistic(np.array([10.0]), np.array([7.0]), np.array([13.0]), np.array(["measured"], dtype=object))
    >>> answer = Answer(keys={}, statistics={"n": one}, confidence=0.95, cost=PureDP(1), population="people")
    >>> answer.to_pydict()
    {'n': [10.0], 'n_low': [7.0], 'n_high': [13.0], 'n_kind': ['measured']}
    >>> answer.margin()["n"].tolist()
    [3.0]
    """

    keys: Mapping[str, Series]
    statistics: Mapping[str, Statistic]
    confidence: float
    cost: Guarantee
    """What was spent on the model: answers cost nothing more."""
    population: str
    marked: bool = False
    notes: tuple[str, ...] = ()
    order: tuple[str, ...] = field(default=())
    """The columns as the question has them; empty: keys, then statistics."""

    @property
    def column_names(self) -> list[str]:
        """Keys and statistics, without their intervals."""
        return list(self.order or (*self.keys, *self.statistics))

    @property
    def num_rows(self) -> int:
        """How many groups there are."""
        return next((len(each.value) for each in self.statistics.values()), 0)

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.table[name]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.table)

    @property
    def table(self) -> Frame:
        """Keys and values alone."""
        return self._framed(lambda one: one.value)

    def low(self) -> Frame:
        """The lower ends of the intervals; NaN where it is not known."""
        return self._framed(lambda one: one.low)

    def high(self) -> Frame:
        """The upper ends of the intervals; NaN where it is not known."""
        return self._framed(lambda one: one.high)

    def margin(self) -> Frame:
        """The distance from each value to the farther end of its interval; NaN where it is not known."""
        return self._framed(lambda one: np.maximum(one.high - one.value, one.value - one.low))

    def kind(self) -> Frame:
        """How sure each number is: measured, sure or not known (`KINDS` says what each means)."""
        return Frame({name: self.keys.get(name) or Series("text", self.statistics[name].kind) for name in self.column_names})

    @property
    def labelled(self) -> Frame:
        """The table as it is given away: beside each statistic the ends of its interval, and how sure it is."""
        found: dict[str, Series] = {}
        for name in self.column_names:
            if name in self.keys:
                found[name] = self.keys[name]
                continue
            one = self.statistics[name]
            found[name] = Series("real", one.value)
            found[f"{name}_low"], found[f"{name}_high"] = Series("real", one.low), Series("real", one.high)
            found[f"{name}_kind"] = Series("text", one.kind)
        return Frame(found)

    def to_pandas(self) -> Any:
        """A pandas DataFrame of the labelled table."""
        return self.labelled.to_pandas()

    def to_polars(self) -> Any:
        """A polars DataFrame of the labelled table."""
        return self.labelled.to_polars()

    def to_arrow(self) -> Any:
        """An Arrow table of the labelled table."""
        return self.labelled.to_arrow()

    def to_pydict(self) -> dict[str, list[Any]]:
        """The labelled table as plain lists; None where a number is not known."""
        found: dict[str, list[Any]] = finite(self.labelled.to_pydict())
        return found

    def take(self, rows: Sequence[int]) -> Answer:
        """Some of the rows, in this order."""
        places = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            keys={name: Series(series.kind, series.values[places]) for name, series in self.keys.items()},
            statistics={name: one.take(places) for name, one in self.statistics.items()},
        )

    def __repr__(self) -> str:
        shown = self.take(range(min(_MOST_SHOWN, self.num_rows)))
        columns = []
        for name in self.column_names:
            if name in self.keys:
                columns.append(["NULL" if value is None else str(value) for value in shown.keys[name].tolist()])
            else:
                columns.append(_cells(shown.statistics[name]))
        lines = [list(row) for row in zip(*columns, strict=True)]
        rest = self.num_rows - len(lines)
        text = text_table(self.column_names, lines) + (f"\n… and {rest:,} more rows" if rest > 0 else "")
        return "\n".join([text, *self.footer()])

    def footer(self) -> list[str]:
        """What the labels mean, and what it cost."""
        used = {kind for one in self.statistics.values() for kind in one.kind.tolist()}
        lines = [f"{kind}: {words}" for kind, words in KINDS.items() if kind in used]
        lines.append(f"confidence {self.confidence:.0%}; no further cost: the model cost {self.cost} of {self.population!r}")
        if self.marked:
            lines.append("MARKED: the noise came from a test's generator and protects nobody")
        return [*lines, *self.notes]

    def _framed(self, told: Callable[[Statistic], Floats]) -> Frame:
        return Frame({name: self.keys.get(name) or Series("real", told(self.statistics[name])) for name in self.column_names})


def _cells(one: Statistic) -> list[str]:
    """Each value with its interval and label, to as many places as the narrowest interval deserves."""
    wide = one.high - one.low
    narrowest = min((float(each) / 2 for each in wide if 0 < each < math.inf), default=1.0)
    places = min(max(0, 1 - math.floor(math.log10(narrowest))), 6)
    found = []
    for value, low, high, kind in zip(one.value, one.low, one.high, one.kind, strict=True):
        number = "NULL" if math.isnan(value) else f"{value:,.{places}f}"
        interval = "" if math.isnan(low) or math.isnan(high) else f" [{low:,.{places}f}, {high:,.{places}f}]"
        found.append(f"{number}{interval} {kind}")
    return found
