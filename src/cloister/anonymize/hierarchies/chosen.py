"""What a column gets that was given no hierarchy: dates by the calendar, numbers by intervals, codes by their beginnings, and
categories by what is alike in the table."""

import math
from decimal import Decimal

import numpy as np

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.levels import text_of

_FINEST, _FINEST_OF_ALL = 32, 512
"""About how many intervals the first level of numbers has; at most, in a long table, whose intervals would
hold too many rows else."""
_ROWS_EACH = 3_000
"""Rows of an interval of the first level, about, from which a table counts as long."""
_DIGITS = 17
"""Digits that tell any two floating-point numbers apart."""
_LOPSIDED = 0.6
"""With a larger share of the rows in one of eight equal intervals, borders follow the rows."""


def choose_hierarchy(column: EncodedColumn, table: Encoded | None = None) -> Hierarchy:
    """A hierarchy for a column.

    >>> import numpy as np
    >>> postcodes = EncodedColumn(name="zip", codes=np.arange(50), values=[f"81{n:03}" for n in range(50)], kind="text")
    >>> print(choose_hierarchy(postcodes).describe())
    masked from the right, one character after the other
    """
    if column.kind == "date":
        return Hierarchy.dates("month", "quarter", "year", "decade")
    if column.kind in ("integer", "real"):
        return _for_numbers(column)
    if column.kind == "boolean" or len(column) - (column.missing is not None) < 3:
        return Hierarchy.flat()
    return Hierarchy.masking() if _looks_like_codes(column) else Hierarchy.learnt()


def _for_numbers(column: EncodedColumn) -> Hierarchy:
    numbers = column.numbers[~np.isnan(column.numbers)]
    if column.kind == "integer":  # floats don't tell large ones apart
        numbers = np.array([value - column.values[0] for value in column.values[: len(numbers)]], dtype=np.float64)
    if len(numbers) < 3:
        return Hierarchy.flat()
    low, high = float(numbers.min()), float(numbers.max())
    if not 0 < (high - low) / _FINEST_OF_ALL < math.inf:
        return Hierarchy.flat()
    counts = column.counts[: len(numbers)]
    eighths = np.minimum(((numbers - low) / (high - low) * 8).astype(int), 7)
    if np.bincount(eighths, weights=counts).max() > _LOPSIDED * counts.sum():
        return Hierarchy.intervals(cuts=_even_cuts(column))
    width = _round_width((high - low) / _finest(column))
    if column.kind == "integer":
        width = max(width, 1.0)
    finest = 2 * width if column.kind == "integer" and width == 1 else width
    widths = [finest]
    while widths[-1] * 2 < (high - low):
        widths.append(widths[-1] * 2)
    return Hierarchy.intervals(*widths)


def _finest(column: EncodedColumn) -> int:
    return int(np.clip(column.counts.sum() // _ROWS_EACH, _FINEST, _FINEST_OF_ALL))


def _round_width(width: float) -> float:
    """The next of 1, 2, 5, 10, … times a power of ten."""
    power = math.floor(math.log10(width))
    steps = (float(f"{step}e{power}") for step in (1, 2, 5, 10))
    return next(step for step in steps if step >= width * (1 - 1e-9))


def _even_cuts(column: EncodedColumn) -> list[list[float]]:
    """Borders between values, so that each interval of a level has about the same number of rows; coarser levels keep every other
    border. A border is a number of few digits, and no value of a row wherever two values leave room for one."""
    known = ~np.isnan(column.numbers)
    numbers, counts = column.numbers[known], column.counts[: int(known.sum())]
    before = np.cumsum(counts) - counts
    finest = _finest(column)
    places = np.searchsorted(before, np.arange(1, finest) / finest * counts.sum())
    inner = np.unique(np.clip(places, 1, len(numbers) - 1))
    whole = bool((numbers == np.floor(numbers)).all())
    between = {int(place): _border(float(numbers[place - 1]), float(numbers[place]), whole=whole) for place in inner}
    levels = []
    while len(inner):
        levels.append(sorted({between[int(place)] for place in inner}))
        if len(inner) == 1:
            break
        inner = inner[1::2]
    return levels


def _border(low: float, high: float, *, whole: bool) -> float:
    """A number over `low` and under `high`: of those with the fewest digits the one nearest to 0. `high` itself where none is
    between them, as between two neighbouring whole numbers.

    >>> _border(5.0, 7777.25, whole=False), _border(1234.0, 1300.0, whole=True), _border(12.0, 13.0, whole=True)
    (6.0, 1240.0, 13.0)
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return high
    if low < 0 < high:
        return 0.0
    near, far = sorted((Decimal(repr(abs(low))), Decimal(repr(abs(high)))))
    sign = -1 if low < 0 else 1
    start = near.adjusted() if near else min(far.adjusted(), 0)
    for digits in range(_DIGITS):
        step = Decimal(1).scaleb(start - digits)
        if whole and step < 1:
            break
        found = sign * float((near // step + 1) * step)
        if low < found < high:
            return found
    return high


def _looks_like_codes(column: EncodedColumn) -> bool:
    """Postcodes and the like: many values, of one length, with a digit in nearly all."""
    texts = [text_of(value) for value in column.values if value is not None]
    if len(texts) < 20:
        return False
    lengths = np.array([len(text) for text in texts])
    same = int(np.bincount(lengths).max())
    digits = sum(any(character.isdigit() for character in text) for text in texts)
    return same >= 0.9 * len(texts) and int(np.median(lengths)) >= 3 and digits >= 0.9 * len(texts)
