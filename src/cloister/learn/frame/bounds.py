"""Declared bounds of features and targets, and what is worked out from them: clipping, scaling, whole steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, MissingBound
from cloister.tables.engines.row_sums import centred

Floats = npt.NDArray[np.float64]
_LARGEST = 1e75
"""Fourth powers of what lies within, as variances of squares are, stay finite."""
_NARROWEST = 1e-75
"""What is divided by the width of an interval stays finite: 0 times infinity would be no number, and no step is made of that."""
_AT_ONCE = 8192
"""Numbers in numpy's buffer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """For each feature the lowest and the highest value that counts. Public: declared, never looked up.

    >>> box = box_of(([0, 10], [1, 30]), features=2)
    >>> box.clipped(np.array([[2.0, 5.0]])).tolist(), box.centred(np.array([[0.5, 30.0]])).tolist()
    ([[1.0, 10.0]], [[0.0, 1.0]])
    """

    low: Floats
    high: Floats

    @property
    def features(self) -> int:
        """How many."""
        return len(self.low)

    @property
    def width(self) -> Floats:
        """high − low; 1 where they are the same, so that nothing is divided by 0."""
        width = self.high - self.low
        return np.where(width > 0, width, 1.0)

    @property
    def middle(self) -> Floats:
        """Of each interval."""
        return (self.low + self.high) / 2

    def clipped(self, X: Floats) -> Floats:
        """Each value moved to the nearest that counts; infinities, too."""
        return np.clip(X, self.low, self.high)

    def unit(self, X: Floats) -> Floats:
        """Clipped and mapped to [0, 1]."""
        return (self.clipped(X) - self.low) / self.width

    def centred(self, X: Floats) -> Floats:
        """Clipped and mapped to [−1, 1], the middle to 0."""
        return centred(X, self.low, self.high)


def box_of(bounds: Any, *, features: int, name: str = "bounds") -> Box:
    """The bounds of an estimator: (low, high), each one number for all features or one for each.

    >>> box_of((0, 16), features=3).high.tolist()
    [16.0, 16.0, 16.0]
    >>> box_of(None, features=3)
    Traceback (most recent call last):
    cloister.errors.MissingBound: bounds= is missing: what a feature may hold is declared, never looked up in the data.
      Instead: bounds=([0, 0, 0], [1, 1, 1])
    """
    if bounds is None:
        zeros, ones = [0] * min(features, 3), [1] * min(features, 3)
        raise MissingBound(
            f"{name}= is missing",
            why="what a feature may hold is declared, never looked up in the data",
            instead=f"{name}=({zeros}, {ones})",
        )
    if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str | bytes) or len(bounds) != 2:
        raise _refused(name, "it is not a pair of the lowest and the highest values")
    low, high = (_row(side, features, name) for side in bounds)
    if (low > high).any():
        raise _refused(name, f"the lowest value of feature {int(np.argmax(low > high))} is above the highest")
    if (np.maximum(np.abs(low), np.abs(high)) > _LARGEST).any():
        raise _refused(name, f"a bound is beyond ±{_LARGEST:g}")
    if ((high > low) & (high - low < _NARROWEST)).any():
        raise _refused(name, f"an interval is narrower than {_NARROWEST:g}")
    return Box(low=low, high=high)


def interval_of(bounds: Any, *, name: str = "bounds_y") -> tuple[float, float]:
    """The bounds of one number.

    >>> interval_of((25, 346))
    (25.0, 346.0)
    """
    if bounds is None:
        raise MissingBound(
            f"{name}= is missing",
            why="what the target may be is declared, never looked up in the data",
            instead=f"{name}=(0, 100)",
        )
    box = box_of(bounds, features=1, name=name)
    if not box.low[0] < box.high[0]:
        raise _refused(name, "the interval is empty")
    return float(box.low[0]), float(box.high[0])


def steps_of(values: Floats, *, bits: int) -> npt.NDArray[np.int64]:
    """Numbers of [−1, 1] as whole multiples of 2^−bits, so that their sums are exact (promise 5). The size is at most 2^bits,
    whatever comes in: what lies outside is clipped, and NaN counts as 0 (as a whole number it would be −2⁶³).

    >>> steps_of(np.array([-1.0, 0.3]), bits=10)
    array([-1024,   307])
    """
    steps = np.asarray(np.clip(values, -1.0, 1.0) * 2.0**bits)
    np.copyto(steps, 0.0, where=np.isnan(steps))
    return np.rint(steps).astype(np.int64)


def _parts(rows: Floats) -> Iterator[Floats]:
    """Columns that numpy adds up in one go. Longer rows it breaks where its buffer is full, but not one that is alone: the last
    bits of a sum would say whether there are others. The sums of the parts are added from left to right, however many rows."""
    for begin in range(0, max(rows.shape[-1], 1), _AT_ONCE):
        yield np.ascontiguousarray(rows[..., begin : begin + _AT_ONCE])


def row_lengths(rows: Floats) -> Floats:
    """The length of each row: a function of that row alone, to the last bit.

    >>> row_lengths(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [5.0, 0.0]
    """
    return np.asarray(np.sqrt(sum(np.einsum("ij,ij->i", part, part) for part in _parts(rows))))


def row_products(rows: Floats, columns: Floats) -> Floats:
    """Rows times a vector, or times the columns of a matrix: of each row a function of that row alone, to the last bit.

    A product of matrices (`@`) is faster, and adds up in an order that depends on how many rows there are: one row more could
    move the last bits of all others, and with them what is rounded to whole steps, or which class is the most likely.

    >>> row_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    how = "ij,j->i" if columns.ndim == 1 else "ij,kj->ik"
    return np.asarray(sum(np.einsum(how, *parts) for parts in zip(_parts(rows), _parts(columns.T), strict=True)))


def _row(side: Any, features: int, name: str) -> Floats:
    try:
        row = np.asarray(side, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise _refused(name, "it holds something that is not a number") from None
    if row.size == 1:
        row = np.repeat(row, features)
    if row.size != features:
        raise _refused(name, f"it speaks of {row.size} features, and there are {features}")
    if not np.isfinite(row).all():
        raise _refused(name, "a bound is a finite number")
    return row


def _refused(name: str, why: str) -> InvalidParameter:
    return InvalidParameter(
        f"{name} is invalid", why=why, instead=f"{name}=(0, 1)" if name != "bounds" else "bounds=([0, 17], [1, 90])"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Private rows, checked: features within their bounds, the target as whole class numbers or as numbers within its bounds.

    Rows with a missing value, or with a class that is not declared, are not in it: they count for nothing, as in a table.
    """

    X: npt.NDArray[np.float64]
    y: npt.NDArray[Any] | None
    box: Box


def classes_of(declared: Any) -> npt.NDArray[Any]:
    """The declared classes; 0 and 1 where none are.

    >>> classes_of(None).tolist(), classes_of(["no", "yes"]).tolist()
    ([0, 1], ['no', 'yes'])
    """
    classes = np.array([0, 1]) if declared is None else np.asarray(list(declared))
    if classes.ndim != 1 or len(classes) < 2 or len(set(classes.tolist())) != len(classes):
        raise InvalidParameter(
            f"classes={declared!r} is invalid", why="a model tells at least two different classes apart", instead="classes=[0, 1]"
        )
    return classes
