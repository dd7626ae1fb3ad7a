"""What an adversary looks at: ways to turn one output, a number or a row of numbers, into one number.

An audit may look at anything, since every function of an output is a post-processing. These are the functions by which real
mechanisms have failed: the value and its low-order bits; of a row, each coordinate, differences, extremes, which coordinates are
equal or missing, the whole row, the direction in which the two worlds' means differ, and the likelihood ratio that the row
would have if its coordinates were independent.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.cells import Cells
from cloister.attacks.runs import Array

_COORDINATES = 64
_PAIRS_UP_TO = 4
_GRAINS_UP_TO = 4
_COARSE = 40
_OUT_OF_RANGE = 10_000


@dataclass(frozen=True)
class Feature:
    """One number of each output, with its name; `identity` says that only equality of it means anything.

    `labels` gives the texts or objects that codes stand for.
    """

    name: str
    of: Callable[[Array], Array]
    identity: bool = False
    labels: Mapping[int, str] = field(default_factory=dict)


def features_of(
    left: Array, right: Array, extra: Mapping[str, Callable[[Array], Any]], labels: Mapping[int, str]
) -> list[Feature]:
    """The features to look at, given some outputs of each world (those that the audit sets aside for learning).

    >>> [each.name for each in features_of(np.arange(4), np.arange(4), {}, {})]
    ['the value', 'the lowest bit set in the value']
    """
    own = [Feature(name, _one_dimensional(name, function)) for name, function in extra.items()]
    if labels:
        return [*own, *_of_codes(left, labels)]
    if left.ndim == 1:
        return [*own, Feature("the value", _itself), Feature("the lowest bit set in the value", grain)]
    return [*own, *_of_rows(left, right)]


def grain(values: Array) -> Array:
    """The exponent of the lowest bit that is set in each number: −1 for 0.5 and for 1.5, 2 for 12.

    Noise computed in floating point has a grain that depends on its size, and adding it to a value rounds to the grain of the
    sum; so the grain tells what the value was (Mironov 2012).

    >>> grain(np.array([0.5, 1.5, 12.0])).tolist(), grain(np.array([12, 7])).tolist()
    ([-1, -1, 2], [2, 0])
    """
    if values.dtype.kind == "i":
        lowest = values & -values
        return np.asarray(np.where(values == 0, _OUT_OF_RANGE, np.frexp(lowest.astype(np.float64))[1] - 1))
    usual = np.isfinite(values) & (values != 0)
    fraction, exponent = np.frexp(np.where(usual, values, 1.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return np.asarray(np.where(usual, exponent - 53 + zeros, _OUT_OF_RANGE))


def row_codes(rows: Array) -> Array:
    """A 63-bit code of each row: equal rows have equal codes, and different ones almost never do.

    >>> codes = row_codes(np.array([[1, 2], [2, 1], [1, 2]])); bool(codes[0] == codes[2]), bool(codes[0] == codes[1])
    (True, False)
    """
    bits = (rows + 0).view(np.uint64) if rows.dtype.kind == "f" else rows.astype(np.uint64)
    code = np.zeros(len(rows), dtype=np.uint64)
    for column in bits.T:
        code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    result: Array = (code >> np.uint64(1)).astype(np.int64)
    return result


def _of_codes(left: Array, labels: Mapping[int, str]) -> list[Feature]:
    if left.ndim == 1:
        return [Feature("the output", _itself, identity=True, labels=labels)]
    shown = range(min(left.shape[1], _COORDINATES))
    parts = [Feature(f"coordinate {i + 1}", _coordinate(i), identity=True, labels=labels) for i in shown]
    return [*parts, Feature("the whole row", row_codes, identity=True)]


def _of_rows(left: Array, right: Array) -> list[Feature]:
    width = left.shape[1]
    shown = range(min(width, _COORDINATES))
    found = [Feature(f"coordinate {i + 1}", _coordinate(i)) for i in shown]
    if width == 1:
        return [*found, Feature("the lowest bit set in coordinate 1", lambda rows: grain(rows[:, 0]))]
    pairs = [(i, j) for i in shown for j in shown if i < j and (width <= _PAIRS_UP_TO or j == i + 1)]
    found += [Feature(f"coordinate {j + 1} minus coordinate {i + 1}", _difference(i, j)) for i, j in pairs]
    if left.dtype.kind == "f":
        found += [Feature(f"the lowest bit set in coordinate {i + 1}", _grain_of(i)) for i in shown if i < _GRAINS_UP_TO]
        found.append(Feature("which coordinates are missing", _missing, identity=True))
    found += [
        Feature("the whole row", row_codes, identity=True),
        Feature("the number of neighbouring coordinates that are equal", lambda rows: (rows[:, 1:] == rows[:, :-1]).sum(axis=1)),
        Feature("the sum of the coordinates", lambda rows: rows.sum(axis=1)),
        Feature("the smallest coordinate", lambda rows: rows.min(axis=1)),
        Feature("the largest coordinate", lambda rows: rows.max(axis=1)),
        Feature("the length of the row", lambda rows: np.sqrt(np.square(rows.astype(np.float64)).sum(axis=1))),
    ]
    direction = _finite_mean(left) - _finite_mean(right)
    found.append(Feature("the projection on the difference of means", lambda rows: rows.astype(np.float64) @ direction))
    found.append(_product_of_ratios(left, right))
    return found


def _product_of_ratios(left: Array, right: Array) -> Feature:
    # Few cells, so that the errors of their estimated ratios, which add up over the coordinates, stay small.
    cells = [Cells.learned(left[:, i], right[:, i], quantiles=_COARSE) for i in range(left.shape[1])]
    ratios = [each.log_ratios(left[:, i], right[:, i]) for i, each in enumerate(cells)]

    def score(rows: Array) -> Array:
        total = np.zeros(len(rows))
        for i, (each, ratio) in enumerate(zip(cells, ratios, strict=True)):
            total += ratio[each.index(rows[:, i])]
        # Rounded, so that rows of one likelihood ratio share a value whatever the order of summation.
        return total.round(9)

    return Feature("the likelihood ratio of the coordinates", score)


def _finite_mean(rows: Array) -> NDArray[np.float64]:
    usual = np.where(np.isfinite(rows), rows, 0.0)
    low, high = np.quantile(usual, 0.01, axis=0), np.quantile(usual, 0.99, axis=0)
    mean: NDArray[np.float64] = np.clip(usual, low, high).mean(axis=0)
    return mean


def _one_dimensional(name: str, function: Callable[[Array], Any]) -> Callable[[Array], Array]:
    def of(values: Array) -> Array:
        result = np.asarray(function(values))
        return result.astype(np.int64) if result.dtype.kind in "bui" else result.astype(np.float64)

    of.__name__ = name
    return of


def _itself(values: Array) -> Array:
    return values


def _coordinate(i: int) -> Callable[[Array], Array]:
    return lambda rows: rows[:, i]


def _difference(i: int, j: int) -> Callable[[Array], Array]:
    return lambda rows: rows[:, j] - rows[:, i]


def _grain_of(i: int) -> Callable[[Array], Array]:
    return lambda rows: grain(rows[:, i])


def _missing(rows: Array) -> Array:
    return row_codes(np.isnan(rows).astype(np.int64))
