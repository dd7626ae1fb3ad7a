"""One reading of arrays: every cell is a number, or counts as missing; no value decides whether there is an error.

A frame turns to objects, a list of lists to texts, an array to complex numbers or dates, for the sake of one cell: so the kind of
an array may be a fact about one person, and none is refused. A cell that is not a number (a text, a list, a day, nothing) is NaN,
one that is too large for a float is an infinity; bounds then take the infinities, and a row with a NaN counts for nothing. A text
that spells a number is that number, since one text among numbers makes texts of all.

What is refused is the shape: the number of dimensions of an array, the number of columns. That is public. (Of a list of rows that
differ in length it is what the bounds say; where these are one pair for all, what most rows have.)
"""

import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]
_NUMBERS = "biuf"
_PLAIN = {bool, int, float, np.bool_, *(np.dtype(code).type for code in "bBhHiIlLqQefd")}
"""Types of cells of which numpy makes numbers without asking the cells."""
_NO_ROWS = (str, bytes, bytearray, memoryview, Mapping, Set)


def matrix_of(X: Any, *, features: int | None = None) -> Floats:
    """A matrix of floats, a row a person, from an array, a frame or a list of rows. `features`: how many columns were declared.

    >>> matrix_of([[1, "2"], [10**400, None], [3]], features=2).tolist()
    [[1.0, 2.0], [inf, nan], [nan, nan]]
    >>> matrix_of([1, 2])
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: X is invalid: it has one dimension, and a matrix has a row a person.
      Instead: Reshape your data: X.reshape(-1, 1)
    """
    if hasattr(X, "tocsr"):
        raise InvalidParameter("A sparse X is invalid", why="models learn from dense rows", instead="X.toarray()")
    try:
        found = as_listed(X)
    except Exception:  # whatever stands there: its own words may show values
        raise _refused() from None
    if found.ndim == 1 and (found.dtype.kind == "O" or (isinstance(X, list | tuple) and not len(X))):
        found = _rows(found, features)
    if found.ndim == 1:
        raise InvalidParameter(
            "X is invalid",
            why="it has one dimension, and a matrix has a row a person",
            instead="Reshape your data: X.reshape(-1, 1)",
        )
    if found.ndim != 2 or not found.shape[1]:
        raise _refused()
    return numbers_of(found)


def as_listed(values: Any) -> npt.NDArray[Any]:
    """An array as numpy has it; but a list in which anything but plain numbers stands is an array of what stands there: one text
    among numbers would make texts of them all, and so one person's label would decide whether there is an error. What is masked
    is nothing.

    >>> as_listed([0, "x", 1]).tolist(), as_listed([0, [1]]).tolist(), as_listed([0, 1]).dtype.kind
    ([0, 'x', 1], [0, [1]], 'i')
    """
    if isinstance(values, np.ma.MaskedArray):
        cells = np.array(values.data, dtype=object)
        cells[np.ma.getmaskarray(values)] = None
        return cells
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    if _is_plain(values):
        try:
            found = np.asarray(values)
        except OverflowError:  # beyond a float
            found = np.empty(0, dtype=object)
        if found.dtype.kind in _NUMBERS:
            return found
    listed = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        listed[place] = value
    return listed


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether it holds plain numbers, or rows of one length that do."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN:
        return True
    if kinds <= {list, tuple}:
        return len(values[0]) > 0 and len(set(map(len, values))) == 1 and all(_PLAIN.issuperset(map(type, row)) for row in values)
    return kinds == {np.ndarray} and len({row.shape for row in values}) == 1 and all(row.dtype.kind in _NUMBERS for row in values)


def numbers_of(values: npt.NDArray[Any]) -> Floats:
    """Each cell as a float.

    >>> numbers_of(np.array([True, "1e9", "x", -(10**400), 2j, float("nan")], dtype=object)).tolist()
    [1.0, 1000000000.0, nan, -inf, nan, nan]
    """
    if values.dtype.kind == "c":
        return np.where(values.imag == 0, values.real, np.nan).astype(np.float64)
    if values.dtype.kind in _NUMBERS:
        with np.errstate(all="ignore"):  # an overflow may say something about a row
            return np.asarray(values, dtype=np.float64)
    cells = values.astype(object).ravel().tolist()
    return np.fromiter(map(number_of, cells), dtype=np.float64, count=len(cells)).reshape(values.shape)


def number_of(value: Any) -> float:
    """One cell.

    >>> number_of("0.5"), number_of(b"1"), number_of(10**400), number_of([1])
    (0.5, 1.0, inf, nan)
    """
    try:
        if isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real):
            return float(value.real) if value.imag == 0 else math.nan
        if not isinstance(value, numbers.Real | Decimal | str | bytes | np.bool_) or isinstance(value, np.timedelta64):
            return math.nan
        with np.errstate(all="ignore"):
            return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # a number of somebody's own making may raise anything
        return math.nan


def _rows(listed: npt.NDArray[Any], features: int | None) -> npt.NDArray[Any]:
    """Rows one by one; one of another length than declared, or than most have, holds nothing."""
    rows = [_cells(row) for row in listed.tolist()]
    lengths = Counter(len(row) for row in rows if row)
    width = features or max(sorted(lengths), key=lambda length: lengths[length], default=0)
    if not width:
        return listed
    found = np.full((len(rows), width), None, dtype=object)
    for place, row in enumerate(rows):
        if row is not None and len(row) == width:
            for column, cell in enumerate(row):
                found[place, column] = cell
    return found


def _cells(row: Any) -> list[Any] | None:
    """What stands in a row; None for what is none."""
    if isinstance(row, list | tuple):
        return list(row)
    try:
        return None if isinstance(row, _NO_ROWS) or not hasattr(row, "__len__") else list(row)
    except Exception:  # a row of somebody's own making may raise anything
        return None


def _refused() -> InvalidParameter:
    return InvalidParameter(
        "X is invalid", why="it is not a matrix of numbers, a row a person", instead="X = frame[names].to_numpy(float)"
    )


def width_of(bounds: Any) -> int | None:
    """How many features declared bounds speak of; None where they are one pair for all.

    >>> width_of(([0, 10], [1, 30])), width_of((0, 16)), width_of(None)
    (2, None, None)
    """
    if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str | bytes):
        return None
    sizes = {len(side) for side in bounds if isinstance(side, Sequence | np.ndarray) and np.ndim(side) == 1}
    return sizes.pop() if len(sizes) == 1 and sizes != {1} else None
