"""Proofs over the rationals for what the audit of sums has found modulo a prime.

A combination y of answered sets, yB = g on the pivots, is lifted digit by digit from the inverse modulo p (Dixon 1982): with
x_i = d B⁻¹ mod p and d ← (d − x_i B)/p, the sum of x_i pⁱ is y modulo higher and higher powers of p. From it the fractions are
read off and checked, in whole numbers, against all records. Simple combinations, which almost all are, need one digit or two;
after as many as Hadamard's bound asks for, the fractions are right for certain.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Isolated = tuple[list[Fraction], tuple[tuple[int, Fraction], ...]]


def combination(
    rows: npt.NDArray[Any], pivots: Integers, inverse: Integers, prime: int, wanted: Integers
) -> tuple[list[int], int] | None:
    """Whole numbers y and a denominator D with y · rows = D · wanted, or None where `wanted` is no combination of the rows.

    >>> rows = np.array([[1, 1, 0], [0, 1, 1]])
    >>> combination(rows, np.array([0, 1]), np.array([[1, 6], [0, 1]]), 7, np.array([1, 0, -1]))
    ([1, -1], 1)
    """
    solved = _solved(rows[:, pivots].astype(np.int64), inverse, prime, wanted[pivots])
    if solved is None:
        return None
    weights, denominator = solved
    return solved if np.array_equal(_product(weights, rows), wanted.astype(object) * denominator) else None


def isolating(matrix: Integers, pivots: Integers, inverse: Integers, prime: int, own: npt.NDArray[np.bool_]) -> Isolated | None:
    """A combination of the rows that is zero outside the records `own`, and not zero on them: coefficients of the rows, and of
    the records. None where there is none over the rationals.

    >>> matrix = np.array([[1, 1, 1], [1, 1, 0]])
    >>> answers, records = isolating(matrix, np.array([0, 2]), np.array([[0, 1], [1, 6]]), 7, np.array([False, False, True]))
    >>> [str(value) for value in answers], [(number, str(value)) for number, value in records]
    (['1', '-1'], [(2, '1')])
    """
    mine = np.flatnonzero(own[pivots])
    reduced: list[tuple[list[int], int, npt.NDArray[Any]]] = []
    for place in mine:
        goal = np.zeros(len(pivots), dtype=np.int64)
        goal[place] = 1
        solved = _solved(matrix[:, pivots], inverse, prime, goal)
        assert solved is not None  # B is invertible
        weights, denominator = solved
        reduced.append((weights, denominator, _product(weights, matrix)))
    columns = set(zip(*(row[~own].tolist() for _, _, row in reduced), strict=True))  # many records are in the same sets
    outside = [[Fraction(column[i], D) for column in sorted(columns)] for i, (_, D, _) in enumerate(reduced)]
    kernel = _left_kernel(outside)
    if kernel is None:
        return None
    answers = [
        sum((factor * Fraction(weights[i], D) for factor, (weights, D, _) in zip(kernel, reduced, strict=True)), Fraction(0))
        for i in range(len(matrix))
    ]
    records = [
        (
            int(number),
            sum((f * Fraction(int(row[number]), D) for f, (_, D, row) in zip(kernel, reduced, strict=True)), Fraction(0)),
        )
        for number in np.flatnonzero(own)
    ]
    return answers, tuple((number, value) for number, value in records if value)


def _left_kernel(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Coefficients, not all zero, with which the rows add up to zero."""
    basis: list[tuple[int, list[Fraction], list[Fraction]]] = []
    for number, row in enumerate(rows):
        left, made = list(row), [Fraction(int(number == i)) for i in range(len(rows))]
        for lead, other, coefficients in basis:
            factor = left[lead] / other[lead]
            if factor:
                left = [x - factor * y for x, y in zip(left, other, strict=True)]
                made = [x - factor * y for x, y in zip(made, coefficients, strict=True)]
        lead = next((place for place, value in enumerate(left) if value), -1)
        if lead < 0:
            return made
        basis.append((lead, left, made))
    return None


def _solved(block: Integers, inverse: Integers, prime: int, goal: Integers) -> tuple[list[int], int] | None:
    """Whole numbers y and D > 0 with y · block = D · goal."""
    rank = len(block)
    if rank == 0:
        return ([], 1) if not goal.any() else None
    norm = math.sqrt(float(goal @ goal)) + 1
    digits_at_most = 2 + int(2 * (rank * math.log2(math.sqrt(rank)) + math.log2(norm) + 1) / math.log2(prime - 1))
    left, power, lifted = goal.astype(np.int64), 1, np.zeros(rank, dtype=object)
    check = 1
    for digit in range(1, digits_at_most + 1):
        found = _times_inverse(left % prime, inverse, prime)
        lifted = lifted + found.astype(object) * power
        power *= prime
        left = (left - found @ block) // prime
        if digit in (check, digits_at_most):
            check *= 2
            read = _fractions(lifted, power)
            if read is not None and np.array_equal(_product(read[0], block), goal.astype(object) * read[1]):
                return read
    return None


def _times_inverse(row: Integers, inverse: Integers, prime: int) -> Integers:
    """row · inverse modulo p, by halves of 16 bits so that no sum passes 63."""
    high, low = row >> 16, row & 0xFFFF
    return np.asarray(((high @ inverse % prime << 16) + low @ inverse) % prime)


def _fractions(values: npt.NDArray[Any], modulus: int) -> tuple[list[int], int] | None:
    """Whole numbers and a common denominator, both at most √(modulus/2), that are the values modulo `modulus`."""
    limit = math.isqrt(modulus // 2)
    denominator = 1
    for value in values:
        numerator = int(value) * denominator % modulus
        if min(numerator, modulus - numerator) <= limit:
            continue
        before, after, s0, s1 = modulus, numerator, 0, 1
        while after > limit:
            quotient = before // after
            before, after, s0, s1 = after, before - quotient * after, s1, s0 - quotient * s1
        denominator *= abs(s1)
        if denominator > limit:
            return None
    found = []
    for value in values:
        numerator = int(value) * denominator % modulus
        found.append(numerator if numerator <= modulus // 2 else numerator - modulus)
    return found, denominator


def _product(weights: list[int], matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """weights · matrix in exact whole numbers, as Python integers."""
    used = [place for place, weight in enumerate(weights) if weight]
    weights, matrix = [weights[place] for place in used], matrix[used].astype(np.int64)
    largest = max((abs(weight) for weight in weights), default=0)
    if largest * max(len(weights), 1) < 2**62:
        return np.asarray(np.array(weights, dtype=np.int64) @ matrix).astype(object)
    return np.asarray(np.array(weights, dtype=object) @ matrix.astype(object))
