"""The leading eigenvectors of a symmetric matrix that nobody sees, as a program of the numeric language.

Householder's reflections bring the matrix to three diagonals, Sturm's sequences say how many eigenvalues are above a point,
two rounds of inverse iteration from public starts find the vectors of the three diagonals, and the reflections in reverse turn
these into the vectors of the matrix (Golub & Van Loan, Matrix Computations, chapter 8). All steps are public but their numbers:
no branch, no number of rounds and no pivot's place depends on a value.

The matrix is first moved by a power of two, so that its Frobenius norm is between 7/16 and 7/8, however generous the declared
bounds were. What the words lose is then relative to that norm.

Claim: for every symmetric matrix of up to `LARGEST` columns that the declared bounds allow, each `within` and `ldexp` holds.
Proof sketch, for a matrix of norm at most 15/16. A reflection H = I − βvvᵀ, β = 2/vᵀv, keeps the norm, so entries stay in
(−1, 1). Since x was moved to ¼ ≤ xᵀx < 1, ½ ≤ vᵀv ≤ 4: ‖Av‖ < 2, ‖p‖ = β‖Av‖ < 3, |pᵀv| < 2, |½βpᵀv| < 4, and
q = p − ½β(pᵀv)v is p without its part along v, so ‖q‖ ≤ ‖p‖. If x is 0 so are v, p and q. Rounding moves the norm by less
than 2^7·n steps of 2^−29 a reflection, so from 7/8 to no more than 57/64 in all. Sturm's pair is at most 1 each, |d − x| < 2
and e² < ½, so the next one is below 4. With rows exchanged, multipliers are at most 1, and by induction the two entries of a
row still to be reduced at most 3 and 1. What inverse iteration gives has no bound but the pivots' floor, and is clipped.
Columns of norm up to 1 stay so when projected and reflected: rounding adds less than ¼. ∎
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.together.circuits.language import SecretArray, concatenate, select

LARGEST = 256
"""Columns."""
MATRIX, REFLECTOR = 29, 28
"""Bits behind the point, of the matrix and of what updates it."""
EIGENVALUE, GUARD = 23, 12
"""Bits of an eigenvalue, and how many more a square beside the diagonal has, lest two halves of a matrix seem joined."""
VECTOR = 23
FLOOR, MOST, COARSE = 22, 36, 4
"""A pivot is at least 2^−FLOOR, a solution at most 2^MOST and in steps of 2^−COARSE: what it loses is relative to its size."""


def leading_eigenvectors(triangle: SecretArray, components: int) -> SecretArray:
    """So many eigenvectors of the largest eigenvalues, the columns of an array, from the upper triangle, row by row.

    The subspace of 50 columns is right to some 10^−8 divided by the gap between the last eigenvalue that is in and the first that
    is out, relative to the matrix's norm. Vectors of equal eigenvalues are some basis of their space, and signs are arbitrary.
    128 bits are enough for a program with entries of up to 56.

    >>> from cloister.together.circuits import FixedPoint, Program
    >>> kind = FixedPoint(bits=20, shape=(3,))
    >>> program = Program(lambda a, b: leading_eigenvectors(a + b, 1), garbler={"a": kind}, evaluator={"b": kind}, bits=128)
    >>> abs(program.as_numbers(a=[300, 0, 100], b=[0, 100, 50])).round(4).ravel().tolist()  # of 300, 100; 100, 150
    [0.8944, 0.4472]
    """
    side = (isqrt(8 * len(triangle) + 1) - 1) // 2
    if len(triangle.shape) != 1 or side * (side + 1) // 2 != len(triangle) or not 2 <= side <= LARGEST:
        raise InvalidParameter(
            "The triangle is invalid",
            why=f"its shape is {triangle.shape}, and n columns have n(n + 1)/2 entries, n from 2 to {LARGEST}",
            instead="matrix[np.triu_indices(n)]",
        )
    if isinstance(components, bool) or not isinstance(components, int) or not 1 <= components <= side:
        raise InvalidParameter(
            f"components={components!r} is invalid", why=f"the matrix has {side} columns", instead=f"components={side}"
        )
    upper = scaled(triangle, side)
    tridiagonal = _tridiagonal(upper[mirrored(side)])
    values = _eigenvalues(tridiagonal, components)
    rows = _factored(tridiagonal, values)
    found = orthonormal(_solved(rows, triangle.run.public(_starts(side, components), VECTOR)))
    return _reflected(orthonormal(_solved(rows, found)), tridiagonal.reflectors)


def step(fraction: int) -> Fraction:
    """The last bit."""
    return Fraction(1, 1 << fraction)


def stacked(arrays: Sequence[SecretArray]) -> SecretArray:
    """Arrays as the rows of one."""
    return concatenate([each.reshape(1, *each.shape) for each in arrays])


def squared(array: SecretArray) -> SecretArray:
    """The square, exactly."""
    return array.multiply(array, fraction=2 * array.fraction)


def mirrored(side: int) -> npt.NDArray[np.intp]:
    """Where in the upper triangle each entry of the matrix is."""
    places = np.zeros((side, side), dtype=np.intp)
    rows, columns = np.triu_indices(side)
    places[rows, columns] = places[columns, rows] = np.arange(len(rows))
    return places


def filled(array: SecretArray, squares: SecretArray) -> SecretArray:
    """Numbers times a power of two, so that a sum of squares is from ¼ to 1 (or 0)."""
    half = (squares.width + 1) // 2
    end, fraction = Fraction(1 << half, 1 << array.fraction), array.fraction
    moved = array.ldexp(squares.leading_zeros(bits=2 * half, group=2), low=-end, high=end - step(fraction))
    return moved.ldexp(fraction - half)


def scaled(triangle: SecretArray, side: int) -> SecretArray:
    """Times a power of two and 7/8, so that the norm is between 7/16 and 7/8 (or 0)."""
    rows, columns = np.triu_indices(side)
    squares = squared(triangle)
    full = filled(triangle, squares.sum() + squares[rows != columns].sum()).rounded(MATRIX + 1)
    return (full - full.ldexp(-3).rounded(MATRIX + 1)).rounded(MATRIX).within(-1, 1 - step(MATRIX))


@dataclass(frozen=True)
class _Tridiagonal:
    diagonal: SecretArray
    beside: SecretArray
    reflectors: list[tuple[SecretArray, SecretArray]]
    """v and β, of I − βvvᵀ on the last places."""


def _tridiagonal(matrix: SecretArray) -> _Tridiagonal:
    fraction, one, two = MATRIX, 1 - step(MATRIX), 2 - step(REFLECTOR)
    diagonal, beside, reflectors = [matrix[0, 0]], [], []
    for turn in range(len(matrix) - 2):
        x, matrix = matrix[0, 1:], matrix[1:, 1:]
        square = squared(x).sum().within(0, 1 - step(2 * fraction))
        # without leading zeros, or a short x would give a coarse direction
        moved = x.ldexp(square.leading_zeros(bits=2 * fraction, group=2), low=-1, high=one)
        roots = stacked([square, squared(moved).sum().within(0, 1 - step(2 * fraction))]).sqrt(fraction=fraction)
        roots = select(x[0].negative(), -roots, roots)
        v = concatenate([(moved[0] + roots[1]).reshape(1), moved[1:]]).rounded(REFLECTOR).within(-2, two)
        length = squared(v).sum().rounded(fraction).within(0, 4).clip(Fraction(3, 8), 4)  # below ½: x and v are 0
        beta = x.run.public(2, 0).divide(length, fraction=fraction)
        p = matrix.dot(v, fraction=fraction).within(-2, 2 - step(fraction)).multiply(beta, fraction=fraction).within(-3, 3)
        along = p.dot(v, fraction=fraction).within(-2, 2).multiply(beta, fraction=fraction)
        part = v.multiply(along.ldexp(-1).rounded(fraction).within(-4, 4), fraction=fraction)
        # products are rounded down, which would add up: each other step takes the opposite of what is rounded
        turned = turn % 2 == 1
        q = (part - p if turned else p - part).rounded(REFLECTOR).within(-3, 3)
        rows, columns = np.triu_indices(len(matrix))
        one_way = v[rows].multiply(q[columns], fraction=2 * REFLECTOR)
        change = (one_way + v[columns].multiply(q[rows], fraction=2 * REFLECTOR)).rounded(fraction)
        upper = matrix[rows, columns]
        upper = (upper + change if turned else upper - change).within(-1, one)
        beside.append(-roots[0])
        reflectors.append((v, beta))
        matrix = upper[mirrored(len(matrix))]
        diagonal.append(matrix[0, 0])
    return _Tridiagonal(stacked([*diagonal, matrix[1, 1]]), stacked([*beside, matrix[0, 1]]), reflectors)


def _eigenvalues(matrix: _Tridiagonal, components: int) -> SecretArray:
    """The middles of brackets of width 2^(1 − EIGENVALUE), by halving: all brackets at once.

    Sturm: with p₀ = 1, p₁ = d₁ − x and pᵢ = (dᵢ − x)pᵢ₋₁ − e²ᵢ₋₁pᵢ₋₂, signs change as often as eigenvalues are below x. Two
    neighbours are moved by one power of two a step, which keeps their signs; what rounding takes is a change of dᵢ by a step.
    Halving takes a third fewer gates than three points a round, and though it has twice the levels it is quicker.
    """
    side, fine, run = len(matrix.diagonal), EIGENVALUE + GUARD, matrix.diagonal.run
    diagonal = matrix.diagonal.rounded(EIGENVALUE)
    squares = matrix.beside.multiply(matrix.beside, fraction=fine).within(0, Fraction(1, 2) - step(fine))
    low = run.public(np.full(components, -1), 0).rounded(EIGENVALUE + 1)
    for turn in range(EIGENVALUE):
        width = Fraction(1, 1 << turn)
        distances = diagonal.reshape(side, 1) - (low + width).reshape(1, components)
        distances = distances.within(-2, 2 - step(EIGENVALUE + 1))
        this = distances[0].ldexp(-1).rounded(fine)
        changes = [this.negative()]
        pair = stacked([run.public(np.full(components, Fraction(1, 2)), EIGENVALUE), this]).within(-1, 1 - step(fine))
        for row in range(1, side):
            pair = pair.ldexp(pair.leading_zeros(0), low=-1, high=1 - step(pair.fraction))
            # the last bit is made 1: a pair of zeros would stay zeros
            pair = pair.rounded(EIGENVALUE - 1).rounded(EIGENVALUE) + step(EIGENVALUE)
            last, this = pair[0], pair[1]
            coming = this.multiply(distances[row], fraction=fine) - last.multiply(squares[row - 1], fraction=fine)
            coming = coming.ldexp(-2).within(-1, 1 - step(fine + 2))
            changes.append(coming.negative() ^ this.negative())
            pair = stacked([this.ldexp(-2), coming])
        above = side - stacked(changes).sum(0) >= np.arange(1, components + 1)
        low = (low + above.ldexp(-turn).rounded(EIGENVALUE + 1)).within(-1, 1 - width)
    return (low + width / 2).rounded(EIGENVALUE)


def _starts(side: int, components: int) -> npt.NDArray[np.object_]:
    """Public numbers without any pattern, from ½ to 1 in size: no matrix is likely to have a vector that is at right angles."""
    found = np.empty((side, components), dtype=object)
    for row, column in np.ndindex(side, components):
        word = int.from_bytes(hashlib.sha256(f"cloister circuits eigenvectors {row} {column}".encode()).digest()[:2], "big")
        found[row, column] = Fraction((word >> 1) + (1 << 15), 1 << 16) * (1 if word & 1 else -1)
    return found


@dataclass(frozen=True)
class _Row:
    swap: SecretArray
    """Whether the row below came first."""
    multiplier: SecretArray
    inverse: SecretArray
    """Of the pivot."""
    right: SecretArray
    further: SecretArray


def _factored(matrix: _Tridiagonal, values: SecretArray) -> list[_Row]:
    """T − λ as two triangles with rows exchanged, so that no multiplier is above 1: each λ a column."""
    side, count = len(matrix.diagonal), len(values)
    distances = (matrix.diagonal.reshape(side, 1) - values.reshape(1, count)).within(-2, 2 - step(MATRIX))
    beside = matrix.beside[np.arange(side).clip(0, side - 2)[:, None].repeat(count, axis=1)]
    zero = values.run.public(np.zeros(count, dtype=int), 0)
    pivot, right, rows = distances[0], beside[0], []
    for row in range(side):
        below, after = (beside[row], beside[row + 1]) if row < side - 2 else (beside[row] if row < side - 1 else zero, zero)
        diagonal = distances[row + 1] if row < side - 1 else zero
        swap = abs(below) > abs(pivot)
        first, second = select(swap, below, pivot), select(swap, pivot, below)
        inverse = values.run.public(1, 0).divide(abs(first).clip(step(FLOOR), 4), fraction=MATRIX)
        inverse = select(first.negative(), -inverse, inverse)
        multiplier = second.multiply(inverse, fraction=MATRIX).within(-1, 1)
        above, reduced = select(swap, diagonal, right), select(swap, right, diagonal)
        further, rest = select(swap, after, zero), select(swap, zero, after)
        rows.append(_Row(swap, multiplier, inverse, above, further))
        pivot = (reduced - multiplier.multiply(above, fraction=MATRIX)).within(-3, 3)
        right = (rest - multiplier.multiply(further, fraction=MATRIX)).within(-1, 1)
    return rows


def _solved(rows: list[_Row], sides: SecretArray) -> SecretArray:
    """(T − λ)⁻¹ times a column for each λ."""
    tops, left = [], sides[0]
    for place, row in enumerate(rows[:-1]):
        tops.append(select(row.swap, sides[place + 1], left))
        left = select(row.swap, left, sides[place + 1]) - row.multiplier.multiply(tops[-1], fraction=VECTOR)
    found: list[SecretArray] = []
    for row, top in zip(reversed(rows), reversed([*tops, left]), strict=True):
        for factor, known in zip((row.right, row.further), found[::-1], strict=False):
            top = top - factor.multiply(known, fraction=COARSE + 6)
        found.append(top.multiply(row.inverse, fraction=COARSE).clip(-(1 << MOST), 1 << MOST))
    return stacked(found[::-1])


def orthonormal(array: SecretArray) -> SecretArray:
    """Gram and Schmidt's columns, each taken from all that follow."""
    fraction = VECTOR + 2
    wide = array.width - 1
    end = Fraction(1 << wide, 1 << array.fraction)
    array = array.ldexp(array.leading_zeros(0), low=-end, high=end - step(array.fraction))
    array = array.ldexp(array.fraction - wide).rounded(fraction)
    array = filled(array, squared(array).sum(0)).rounded(fraction)
    found: list[SecretArray] = []
    while True:
        first = filled(array[:, 0], squared(array[:, 0]).sum()).rounded(fraction)
        size = squared(first).sum().within(0, 2).sqrt(fraction=fraction).clip(Fraction(3, 8), 2)
        first = first.multiply(first.run.public(1, 0).divide(size, fraction=fraction), fraction=VECTOR)
        found.append(first.within(Fraction(-3, 2), Fraction(3, 2)))
        if array.shape[1] == 1:
            return stacked(found).T
        rest = array[:, 1:]
        along = found[-1].dot(rest, fraction=fraction).within(Fraction(-3, 2), Fraction(3, 2))
        array = rest - found[-1].reshape(-1, 1).multiply(along.reshape(1, -1), fraction=fraction)
        array = array.within(Fraction(-3, 2), Fraction(3, 2))


def _reflected(columns: SecretArray, reflectors: list[tuple[SecretArray, SecretArray]]) -> SecretArray:
    for turn, (v, beta) in enumerate(reversed(reflectors)):
        v, rest = v.rounded(VECTOR).reshape(-1, 1), columns[-len(v) :]
        along = v.T.dot(rest, fraction=VECTOR).within(-3, 3).multiply(beta, fraction=VECTOR).within(-3, 3)
        # what is rounded down, in turns taken away and added
        rest = rest + v.multiply(-along, fraction=VECTOR) if turn % 2 else rest - v.multiply(along, fraction=VECTOR)
        columns = concatenate([columns[: -len(v)], rest.within(Fraction(-3, 2), Fraction(3, 2))])
    return columns
