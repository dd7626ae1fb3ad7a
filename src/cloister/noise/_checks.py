"""What the selection, matrix and online mechanisms check besides `mechanism`; messages name the argument, never a private
content.
"""

import operator
from typing import Any, TypeAlias

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
            f"{name}={value!r} is invalid", why=f"it must be a whole number, at least {least}", instead=f"{name}={least}"
        )
    return number


def level(confidence: Exact) -> float:
    """A confidence strictly between 0 and 1, as a float.

    >>> level("0.95")
    0.95
    """
    return float(check_confidence(confidence))


def integers_or_none(values: object) -> IntegerArray | None:
    """A private sequence or array of integers; None where it is not one.

    >>> integers_or_none([1.5]) is None
    True
    """
    try:
        return integer_array(values)
    except InvalidParameter:
        return None


def vector(values: object, name: str, length: int) -> IntegerArray:
    """A private vector of integers of a public length. A fraction is refused even where it is whole: what is refused must follow
    from the types, never from the values.

    >>> vector([1, 2], "cells", 2)
    array([1, 2])
    """
    array = integers_or_none(values)
    if array is None or array.shape != (length,):
        raise InvalidParameter(
            f"{name} is invalid",
            why=f"it must hold {length} whole numbers, all of them integers",
            instead=f"{name} as an integer array of that length, numpy.rint(x / step).astype(int) for real numbers",
        )
    return array
