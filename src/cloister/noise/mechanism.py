"""What a mechanism is, the checks that all of them share, and how noise is added to integers of any size.

A mechanism is a frozen object: what it promises (`guarantee`) follows from its parameters, and `release` is the only thing
it does to a private value. Additive mechanisms also say in advance how far off they will be (`variance`, `margin`, `tail`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.random import Random, default_random
from cloister.privacy.rational import Exact, exact, exact_positive, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloister.privacy.guarantee import Guarantee

Integers: TypeAlias = "int | np.integer[Any] | Sequence[int] | NDArray[Any]"
"""What an integer mechanism takes: one integer of any size, a sequence of them, or an array of an integer type."""

_LARGEST = Fraction(10**100)
_INT64 = np.iinfo(np.int64)


@runtime_checkable
class Mechanism(Protocol):
    """Anything that releases a private value under a stated guarantee."""

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about one call of `release`."""

    def release(self, value: Any, *, random: Random | None = None) -> Any:
        """The private value, made safe."""


@runtime_checkable
class AdditiveNoise(Mechanism, Protocol):
    """A mechanism that adds noise whose law does not depend on the value."""

    @property
    def variance(self) -> float:
        """The variance of the noise in one coordinate."""

    def margin(self, confidence: Exact = ...) -> int | float:
        """The least m with P(|noise| ≤ m) ≥ confidence."""

    def tail(self, m: int) -> float:
        """P(|noise| > m), rounded up."""

    def sample(self, n: int, *, random: Random | None = None) -> NDArray[Any]:
        """`n` independent draws of the noise alone."""


def source(random: Random | None) -> Random:
    """The given source of randomness, or the process's own.

    >>> source(None) is default_random()
    True
    """
    if random is None:
        return default_random()
    if not isinstance(random, Random):
        raise InvalidParameter(
            f"random={type(random).__name__} is invalid",
            why="noise is drawn from cloister.noise.Random alone: other generators can be foretold",
            instead="random=Random()",
        )
    return random


def check_scale(scale: Exact, name: str = "scale") -> Fraction:
    """An exact scale of noise: above 0, and within 10^±100, beyond which there is only a mistake of units.

    >>> check_scale("0.1")
    Fraction(1, 10)
    """
    number = exact_positive(scale, name)
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise InvalidParameter(
            f"{name}={shown(scale)} is invalid", why="it must lie within 1e-100 and 1e100", instead=f"{name}=10"
        )
    return number


def check_confidence(confidence: Exact) -> Fraction:
    """A confidence strictly between 0 and 1.

    >>> check_confidence(0.95)
    Fraction(19, 20)
    """
    number = exact(confidence, "confidence")
    if not 0 < number < 1:
        raise InvalidParameter(f"confidence={confidence} is invalid", why="it lies between 0 and 1", instead="confidence=0.95")
    return number


def set_fields(target: object, **fields: object) -> None:
    """Store the checked fields of a frozen dataclass from its own `__init__`.

    >>> class Box: ...
    >>> box = Box(); set_fields(box, size=3); box.size
    3
    """
    for name, value in fields.items():
        object.__setattr__(target, name, value)


def release_integers(value: Integers, draw: Callable[[int], NDArray[Any]]) -> Any:
    """`value` plus one draw for each number in it, in the shape of `value`: an int, or an array.

    The array is int64 where every *released* number fits, and holds Python ints otherwise; so its type tells nothing that the
    released numbers don't.

    >>> release_integers(5, lambda n: np.ones(n, dtype=np.int64))
    6
    >>> release_integers([2**63 - 1, 0], lambda n: np.ones(n, dtype=np.int64)).dtype
    dtype('O')
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value) + int(draw(1)[0])
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype == np.int64:  # most answers are one number
        only = int(value.item()) + int(draw(1).item())
        return np.full(value.shape, only, dtype=np.int64 if -(2**63) <= only < 2**63 else object)
    exactly = integer_array(value)
    return added(exactly, draw(exactly.size).reshape(exactly.shape))


def added(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    """The exact sum of two arrays of integers: int64 where all sums fit, and Python ints otherwise.

    >>> added(np.array([2**62]), np.array([2**62])).tolist()
    [9223372036854775808]
    """
    if one.dtype == np.int64 and other.dtype == np.int64:
        with np.errstate(over="ignore"):
            total: NDArray[Any] = one + other
        if not (((one ^ total) & (other ^ total)) < 0).any():
            return total
    return narrowed(one.astype(object) + other.astype(object))


def integer_array(value: Any) -> NDArray[Any]:
    """A private sequence or array of integers as int64, or as Python ints where one is too large. No message shows a number
    of it.

    >>> integer_array([1, 2]).dtype, integer_array([2**80]).dtype
    (dtype('int64'), dtype('O'))
    """
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "i":
            return value.astype(np.int64)
        if value.dtype.kind == "u":
            return narrowed(value.astype(object)) if value.dtype.itemsize == 8 else value.astype(np.int64)
        if value.dtype.kind != "O":
            raise _not_integers()
        items, shape = value.ravel().tolist(), value.shape
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        items, shape = list(value), (len(value),)
        if any(isinstance(item, Sequence | np.ndarray) for item in items):
            items, shape = _flattened(items)
    else:
        raise _not_integers()
    if any(isinstance(item, bool | np.bool_) for item in items):
        raise _not_integers()
    try:
        whole = [operator.index(item) for item in items]
    except TypeError:
        raise _not_integers() from None
    out = np.empty(len(whole), dtype=object)
    out[:] = whole
    return narrowed(out.reshape(shape))


def narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """An array of integers as int64, if they all fit.

    >>> narrowed(np.array([1, 2], dtype=object)).dtype
    dtype('int64')
    """
    fits = array.dtype == np.int64 or all(_INT64.min <= item <= _INT64.max for item in array.ravel().tolist())
    return array.astype(np.int64) if fits else array


def _flattened(rows: list[Any]) -> tuple[list[Any], tuple[int, ...]]:
    """Nested sequences, with Python's own integers kept whole (numpy would turn large ones into floats)."""
    parts = [integer_array(row) for row in rows if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str | bytes)]
    if len(parts) != len(rows) or len({part.shape for part in parts}) != 1:
        raise _not_integers()
    return [item for part in parts for item in part.ravel().tolist()], (len(parts), *parts[0].shape)


def _not_integers() -> InvalidParameter:
    return InvalidParameter(
        "The value is invalid",
        why="this mechanism releases whole numbers only, all of one shape; a real number needs a declared step",
        instead="Laplace(scale=…, step=…) or Gaussian(scale=…, step=…)",
    )
