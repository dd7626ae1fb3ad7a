"""What a party brings: arrays of fixed-point numbers, counted in whole steps, between declared bounds."""

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

MOST_BITS, MOST_FRACTION = 512, 256


@dataclass(frozen=True, kw_only=True)
class FixedPoint:
    """An array that a party brings: its shape, its bits, how many of them are behind the point, its bounds.

    >>> FixedPoint(bits=8, fraction=4, shape=(2,)).steps([1.5, -0.25]).tolist()
    [24, -4]
    """

    bits: int = 32
    fraction: int = 0
    shape: tuple[int, ...] = ()
    low: float | Fraction | None = None
    """None: as far as signed bits go. From 0 on, no bit is spent on the sign."""
    high: float | Fraction | None = None
    """None: as far as the bits go."""
    rising: bool = False
    """Whether each number is above the one before it, as in a set in its order; refused by its place where it is not."""

    def __post_init__(self) -> None:
        for name, value, low, high in (("bits", self.bits, 1, MOST_BITS), ("fraction", self.fraction, 0, MOST_FRACTION)):
            if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
                raise InvalidParameter(f"{name}={value!r} is invalid", why=f"it is from {low} to {high}", instead=f"{name}={low}")
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound is not None and _fraction(bound) is None:
                raise InvalidParameter(f"{name}={bound!r} is invalid", why="it is no finite number", instead=f"{name}=0")
        if not all(isinstance(side, int) and not isinstance(side, bool) and side > 0 for side in self.shape):
            raise InvalidParameter(
                f"shape={self.shape!r} is invalid", why="sides are whole numbers above 0", instead="shape=(50,)"
            )
        first, last = self.bounds
        most = (0, (1 << self.bits) - 1) if first >= 0 else (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1)
        if not most[0] <= first <= last <= most[1]:
            raise InvalidParameter(
                f"low={self.low}, high={self.high} are invalid",
                why=f"{self.bits} bits, {self.fraction} behind the point, don't hold them, or they are the wrong way round",
                instead=f"FixedPoint(bits={max(width_of(first, last), 1)}, …)",
            )

    @property
    def bounds(self) -> tuple[int, int]:
        """The least and the largest value, in steps."""
        first = -(1 << (self.bits - 1)) if self.low is None else -int(-Fraction(self.low) * (1 << self.fraction) // 1)
        most = (1 << (self.bits - (first < 0))) - 1
        return first, most if self.high is None else int(Fraction(self.high) * (1 << self.fraction) // 1)

    @property
    def width(self) -> int:
        """Wires a number."""
        return width_of(*self.bounds)

    def steps(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """Numbers, rounded to whole steps; one outside the bounds is refused, by its place."""
        given = np.asarray(values, dtype=object)
        if given.shape != self.shape:
            raise InvalidParameter(
                "The array is invalid", why=f"its shape is {given.shape}, and {self.shape} was declared", instead=f"{self.shape}"
            )
        found, (low, high) = list[int](), self.bounds
        for place, each in enumerate(given.ravel().tolist()):
            if (value := _fraction(each)) is None:
                raise InvalidParameter(f"The value at {place} is invalid", why="it is no finite number", instead="a number")
            steps = round(value * (1 << self.fraction))
            if not low <= steps <= high:
                raise InvalidParameter(
                    f"The value at {place} does not fit", why="it is outside the declared bounds", instead="FixedPoint(bits=…)"
                )
            if self.rising and found and steps <= found[-1]:
                raise InvalidParameter(
                    f"The value at {place} is not above the one before it",
                    why="a set is brought in rising order, with nothing twice",
                    instead="sorted(set(values))",
                )
            found.append(steps)
        return integers(found).reshape(self.shape)


def width_of(low: int, high: int) -> int:
    """The bits of numbers between two bounds: with a sign where they may be below 0."""
    return max(high.bit_length(), 1) if low >= 0 else max((-low - 1).bit_length(), max(high, 0).bit_length()) + 1


def exact(value: object) -> Fraction:
    """A public number."""
    if (found := _fraction(value)) is None:
        raise InvalidParameter("A public number is invalid", why="it is no finite number", instead="a number")
    return found


def behind_the_point(fraction: object) -> int:
    """How many bits an operation leaves behind the point, if it is a number of bits."""
    if isinstance(fraction, bool) or not isinstance(fraction, int) or not 0 <= fraction <= MOST_FRACTION:
        raise InvalidParameter(
            f"fraction={fraction!r} is invalid", why=f"it is from 0 to {MOST_FRACTION}", instead=f"fraction={MOST_FRACTION}"
        )
    return fraction


def _fraction(value: object) -> Fraction | None:
    """Exactly; None for what is no finite number."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, int | float | Fraction) or (isinstance(value, float) and not isfinite(value)):
        return None
    return Fraction(value)


def integers(values: list[int]) -> npt.NDArray[Any]:
    """Python's integers, which have no largest."""
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found
