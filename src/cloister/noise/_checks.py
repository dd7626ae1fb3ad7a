"""What the selection, matrix and online mechanisms check besides `mechanism`; messages name the argument, never a private
content.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise.mechanism import check_confidence, integer_array
from cloister.privacy.rational import Exact

IntegerArray: TypeAlias = npt.NDArray[Any]
"""A numpy array of int64, or of Python integers (dtype object) where int64 would not hold them."""


def whole(value: object, name: str, *, least: int) -> int:
    """`value` as an int that is at least `least`; for parameters that are public.

    >>> whole(3, "cells", least=1)
    3
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise InvalidParameter(
            f"{name}={value!r} was refused", why=f"it must be a whole number, at least {least}", instead=f"{name}={least}"
        )
    return number


def level(confidence: Exact) -> float:
    """A confidence strictly between 0 and 1, as a float.

    >>> level("0.95")
    0.95
    """
    return float(check_confidence(confidence))


def common_grid(values: object, name: str) -> tuple[IntegerArray, Fraction]:
    """Exact numbers as integers times one unit: (integers, unit). Integers have unit 1; fractions and decimals their common
    denominator.

    >>> common_grid([Fraction(1, 2), Fraction(1, 3)], "utilities")
    (array([3, 2]), Fraction(1, 6))
    """
    if isinstance(values, Sequence) and any(isinstance(item, Fraction | Decimal) for item in values):
        if not all(_is_exact(item) for item in values):
            raise InvalidParameter(
                f"{name} was refused", why="it mixes exact numbers with others", instead=f"{name}=[Fraction(1, 2), 3]"
            )
        fractions = [Fraction(item) for item in values]
        denominator = lcm(*(item.denominator for item in fractions))
        return integer_array([int(item * denominator) for item in fractions]), Fraction(1, denominator)
    try:
        return integer_array(values), Fraction(1)
    except InvalidParameter:
        raise InvalidParameter(
            f"{name} was refused",
            why="it must be made of integers, or of exact fractions; floating point is neither",
            instead=f"{name} in whole steps, numpy.rint(x / step).astype(int), with the sensitivity in steps too",
        ) from None


def vector(values: object, name: str, length: int) -> IntegerArray:
    """A private vector of integers of a public length.

    >>> vector([1, 2], "cells", 2)
    array([1, 2])
    """
    array, unit = common_grid(values, name)
    if array.shape != (length,) or unit != 1:
        raise InvalidParameter(
            f"{name} was refused",
            why=f"it must hold {length} whole numbers",
            instead=f"{name} as an integer array of that length",
        )
    return array


def _is_exact(item: object) -> bool:
    if isinstance(item, Decimal):
        return item.is_finite()
    return isinstance(item, int | Fraction | np.integer) and not isinstance(item, bool)
