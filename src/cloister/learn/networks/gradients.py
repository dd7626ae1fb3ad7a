"""A small network, and the clipped gradients of its rows as whole numbers whose sum is exact.

A network is a list of matrices; the last row of each is the bias. Between layers stands tanh, at the end softmax, and the loss is
the cross-entropy. A row's gradient for a layer is the outer product of what comes in, a, and what comes back, d: its length is
‖a‖·‖d‖, known before the product is made.

Sensitivity, proved here: one row more or less moves `clipped_sum` by at most 2^bits in the L2 norm, exactly. The row's factors
become whole numbers, rounded towards 0: A = a·2^10 and D = s·d·2^(bits − 10), where s = min(1/length, 1/clip), slightly less. So
the square of the length of all its products, Σ‖A‖²‖D‖² over layers, is at most 4^bits·s²·Σ‖a‖²‖d‖² <= 4^bits; the slight
lessening, one part in 2^30, is more than the rounding of the squares that s is worked out from (fewer than 2^20 terms, one part
in 2^53 each). A product of two such numbers is a whole one of at most 2^30, so a sum over 2^16 rows stays below 2^53, where
doubles add whole numbers exactly, in whatever order a matrix product adds them.

What the others add stays as it was, bit for bit: a row's a and d follow from the row and the weights alone. For that, products on
the way are of whole numbers, too (`_product`): those of floating point end in bits that depend on how many rows are multiplied
at once, and one row more could move another across a whole number.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.noise import Random

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]

BITS = 30
"""The most bits of a row's gradient; fewer make coarser steps, for noise that is very wide."""

_IN = 10
_FINE, _EXACT = 22, 52
_ROWS = 2**16
_LESS = 1 - 2.0**-30


def first_weights(widths: list[int], random: Random) -> list[Floats]:
    """Weights to start from, drawn evenly from ±√(6/(in + out)), biases 0 (Glorot & Bengio 2010).

    >>> [one.shape for one in first_weights([4, 3, 2], Random.deterministic(1))]
    [(5, 3), (4, 2)]
    """
    found = []
    for width, after in pairwise(widths):
        reach = (6 / (width + after)) ** 0.5
        even = (random.below(2**52, width * after) + 0.5) / 2.0**51 - 1
        found.append(np.vstack([even.reshape(width, after) * reach, np.zeros(after)]))
    return found


def probabilities(weights: list[Floats], X: Floats) -> Floats:
    """Of the classes, for each row."""
    return _softmax(_forward(weights, X)[-1])


def clipped_sum(weights: list[Floats], X: Floats, y: Integers, clip: float, *, bits: int = BITS) -> Integers:
    """The sum of the rows' gradients, each clipped to the length `clip`, in steps of clip·2^−bits; all layers in one list.

    >>> weights = first_weights([2, 2], Random.deterministic(1))
    >>> one = clipped_sum(weights, np.array([[0.5, -1.0]]), np.array([1]), 0.01)
    >>> one.shape, 0.99 < float(one @ one) ** 0.5 / 2**30 <= 1
    ((6,), True)
    """
    total = np.zeros(sum(one.size for one in weights), dtype=np.int64)
    for start in range(0, len(X), _ROWS):
        rows = slice(start, start + _ROWS)
        total += _clipped_part(weights, X[rows], y[rows], clip, bits)
    return total


def unpacked(flat: Floats, weights: list[Floats]) -> list[Floats]:
    """One list as matrices of the shapes of the weights."""
    ends = np.cumsum([one.size for one in weights])
    return [part.reshape(one.shape) for part, one in zip(np.split(flat, ends[:-1]), weights, strict=True)]


def _clipped_part(weights: list[Floats], X: Floats, y: Integers, clip: float, bits: int) -> Integers:
    values = _forward(weights, X)
    back = _softmax(values[-1])
    back[np.arange(len(y)), y] -= 1
    arriving, returning, reach = [], [], 1.0
    for layer in range(len(weights) - 1, -1, -1):
        arriving.append(np.hstack([values[layer], np.ones((len(X), 1))]))
        returning.append(back)
        if layer:
            matrix = weights[layer][:-1].T
            back = _product(back, matrix, reach) * (1 - values[layer] ** 2)
            reach *= max(float(np.abs(matrix).sum(axis=0).max()), 1e-9)
    squares = sum((a * a).sum(axis=1) * (d * d).sum(axis=1) for a, d in zip(arriving, returning, strict=True))
    scale = _LESS / np.maximum(np.sqrt(squares), clip)
    products = [
        (np.trunc(a * 2.0**_IN).T @ np.trunc(d * scale[:, None] * 2.0 ** (bits - _IN))).ravel()
        for a, d in zip(arriving[::-1], returning[::-1], strict=True)
    ]
    return np.concatenate(products).astype(np.int64)


def _forward(weights: list[Floats], X: Floats) -> list[Floats]:
    """What each layer is given, and at last the scores of the classes."""
    values = [np.ascontiguousarray(X)]
    for layer, one in enumerate(weights):
        out = _product(values[-1], one[:-1], 1.0) + one[-1]
        values.append(out if layer == len(weights) - 1 else np.tanh(out))
    return values


def _product(values: Floats, matrix: Floats, reach: float) -> Floats:
    """values · matrix, where no value is larger than `reach`: each row by itself, the same in any company.

    Values are rounded to 22 bits and the matrix to so many that sums of their products are whole numbers up to 2^52: exact.
    """
    bits = _EXACT - _FINE - (len(matrix) - 1).bit_length()
    most = float(np.abs(matrix).max()) or 1.0
    whole = np.rint(np.clip(values / reach, -1.0, 1.0) * 2.0**_FINE)
    return np.asarray(whole @ np.rint(matrix / most * 2.0**bits) * (reach * most * 2.0 ** -(_FINE + bits)))


def _softmax(scores: Floats) -> Floats:
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
