"""An array of values, some of them NULL, that can be used where the expressions use a column of Ibis.

Only what the expressions use is here. Logic is three-valued; whole numbers of 64 bits are int64, wider ones Python's own; what
is in the place of a NULL is some value of the same type, and never looked at.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.tables.expression.operations import Operations

Array = npt.NDArray[Any]


def _with_other(work: Callable[[Any, Any], Any]) -> Callable[[Lane, object], Any]:
    """An operator that gives NULL where either side is."""

    def done(self: Lane, other: object) -> Lane:
        there = other if isinstance(other, Lane) else lane(np.asarray(other, dtype=None if isinstance(other, int) else object))
        return Lane(np.asarray(work(self.values, there.values)), self.null | there.null)

    return done


def _compared(work: Callable[[Any, Any], Any]) -> Callable[[Lane, object], Any]:
    with_other = _with_other(work)

    def done(self: Lane, other: object) -> Any:
        if type(other) is int:  # as it is, however long: an array of it would have all values widened first
            return Lane(np.asarray(work(self.values, other)), self.null)
        return with_other(self, other)

    return done


class Lane:
    """Values and where they are NULL.

    >>> x = lane(np.array([1, 2]), np.array([False, True]))
    >>> (x + 1 > 1).values.tolist(), (x + 1 > 1).null.tolist()
    ([True, True], [False, True])
    """

    __slots__ = ("null", "values")

    def __init__(self, values: Array, null: Array) -> None:
        self.values = values
        self.null = null

    __add__ = _with_other(operator.add)
    __sub__ = _with_other(operator.sub)
    __mul__ = _with_other(operator.mul)
    __truediv__ = _with_other(operator.truediv)

    def __neg__(self) -> Lane:
        return Lane(-self.values, self.null)

    __eq__ = _compared(operator.eq)
    __ne__ = _compared(operator.ne)
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)
    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Lane) -> Lane:
        if self._certain and other._certain:
            return Lane(self._truths & other._truths, self.null)
        false = (~self.null & ~self._truths) | (~other.null & ~other._truths)
        return Lane(self._truths & other._truths, (self.null | other.null) & ~false)

    def __or__(self, other: Lane) -> Lane:
        if self._certain and other._certain:
            return Lane(self._truths | other._truths, self.null)
        true = (~self.null & self._truths) | (~other.null & other._truths)
        return Lane(true, (self.null | other.null) & ~true)

    def __invert__(self) -> Lane:
        return Lane(~self._truths, self.null)

    @property
    def _truths(self) -> Array:
        return self.values.astype(bool, copy=False)

    @property
    def _certain(self) -> bool:
        """That nothing is NULL, in a word; where it is said of each row, nobody looks."""
        return self.null.ndim == 0 and not self.null

    def abs(self) -> Lane:
        """As Ibis."""
        return Lane(np.abs(self.values), self.null)

    def isnull(self) -> Lane:
        """As Ibis."""
        return lane(self.null)

    def notnull(self) -> Lane:
        """As Ibis."""
        return lane(~self.null)

    def nullif(self, other: Lane) -> Lane:
        """As Ibis."""
        return Lane(self.values, self.null | (np.asarray(self.values == other.values) & ~other.null))

    def cast(self, dtype: str) -> Lane:
        """As Ibis, to int64."""
        assert dtype == "int64"
        return Lane(np.where(self.null, 0, self.values).astype(np.int64), self.null)

    def isin(self, values: Sequence[Any]) -> Lane:
        """As Ibis."""
        if self.values.dtype == object:
            known = set(values)
            return Lane(
                np.array([value in known for value in self.values.ravel()], dtype=bool).reshape(self.values.shape), self.null
            )
        return Lane(np.isin(self.values, values), self.null)

    def like(self, pattern: str) -> Lane:
        """As Ibis, with a backslash for an escape."""
        from cloister.tables.expression.expressions import matches

        plain = pattern.replace("\\\\", "\\")
        return Lane(np.array([matches(str(value), plain) for value in self.values], dtype=bool), self.null)


def lane(values: Array, null: Array | None = None) -> Lane:
    """Values, none of them NULL unless said."""
    values = np.asarray(values)
    return Lane(values, np.zeros(values.shape, dtype=bool) if null is None else null)


class LaneOperations(Operations):
    """What computed columns are made of, on arrays."""

    shortens = False

    def __init__(self) -> None:
        super().__init__("numpy")

    def whole(self, number: int, *, wide: bool = False) -> Lane:
        """One number for all rows."""
        return lane(np.array(number, dtype=object if wide else np.int64))

    def nothing(self, *, wide: bool = False) -> Lane:
        """NULL in all rows."""
        return Lane(np.array(0, dtype=object if wide else np.int64), np.array(True))

    def fitted(self, x: Lane, *, wide: bool) -> Lane:
        """Python's numbers, or int64."""
        return Lane(x.values.astype(object), x.null) if wide else x.cast("int64")

    def quotient(self, x: Lane, y: Lane, *, wide: bool) -> Lane:
        """Whole division."""
        null = x.null | y.null
        done = np.asarray(x.values // np.where(y.null, 1, y.values))
        return Lane(np.where(null, 0, done).astype(np.int64), null)

    def remainder(self, x: Lane, y: Lane) -> Lane:
        """With the sign of x."""
        left = np.abs(x.values) % np.abs(np.where(y.null, 1, y.values))
        return Lane(np.asarray(np.where(x.values < 0, -left, left)), x.null | y.null)

    def chosen(self, branches: Sequence[tuple[Lane, Lane]], otherwise: Lane) -> Lane:
        """From the last branch to the first."""
        values, null = otherwise.values, otherwise.null
        for condition, value in reversed(branches):
            holds = condition.values.astype(bool) & ~condition.null
            values, null = np.where(holds, value.values, values), np.where(holds, value.null, null)
        return Lane(values, null)

    def first(self, parts: Sequence[Lane]) -> Lane:
        """From the last part to the first."""
        return self.chosen([(part.notnull(), part) for part in parts[:-1]], parts[-1])

    def least(self, parts: Sequence[Lane]) -> Lane:
        """Without NULL."""
        return self._extreme(parts, operator.lt)

    def greatest(self, parts: Sequence[Lane]) -> Lane:
        """Without NULL."""
        return self._extreme(parts, operator.gt)

    def _extreme(self, parts: Sequence[Lane], better: Callable[[Any, Any], Any]) -> Lane:
        found = parts[0]
        for part in parts[1:]:
            wins = ~part.null & (found.null | np.asarray(better(part.values, found.values), dtype=bool))
            found = Lane(np.where(wins, part.values, found.values), np.where(wins, False, found.null))
        return found

    def truth(self, condition: Lane) -> Lane:
        """1, 0 or NULL."""
        return Lane(condition.values.astype(bool).astype(np.int64), condition.null)

    def double(self, x: Lane) -> Lane:
        """The nearest double."""
        return Lane(x.values.astype(np.float64), x.null)

    def floor(self, x: Lane) -> Lane:
        """Rounded down."""
        return Lane(np.where(x.null, 0, np.floor(x.values)).astype(np.int64), x.null)

    def sqrt(self, x: Lane) -> Lane:
        """Correctly rounded, as everywhere."""
        return Lane(np.sqrt(x.values), x.null)

    def ln(self, x: Lane) -> Lane:
        """NumPy's own."""
        return Lane(np.log(x.values), x.null)

    def exp(self, x: Lane) -> Lane:
        """NumPy's own."""
        return Lane(np.exp(x.values), x.null)

    def year(self, days: Lane) -> Lane:
        """Of the proleptic Gregorian calendar."""
        return Lane(_days(days).astype("datetime64[Y]").astype(np.int64) + 1970, days.null)

    def month(self, days: Lane) -> Lane:
        """1 to 12."""
        return Lane(_days(days).astype("datetime64[M]").astype(np.int64) % 12 + 1, days.null)

    def day(self, days: Lane) -> Lane:
        """1 to 31."""
        at = _days(days)
        return Lane((at - at.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64) + 1, days.null)

    def words(self, text: str) -> Lane:
        """One text for all rows."""
        return lane(np.array(text, dtype=object))

    def no_words(self) -> Lane:
        """NULL in all rows."""
        return Lane(np.array("", dtype=object), np.array(True))

    def length(self, text: Lane) -> Lane:
        """Characters."""
        return Lane(np.vectorize(len, otypes=[np.int64])(text.values), text.null)

    def part(self, text: Lane, start: int, length: int) -> Lane:
        """A slice."""
        return Lane(np.vectorize(lambda value: value[start : start + length], otypes=[object])(text.values), text.null)


def _days(days: Lane) -> Array:
    return np.asarray(np.where(days.null, 0, days.values)).astype(np.int64).astype("datetime64[D]")
