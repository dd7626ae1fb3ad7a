"""Real numbers on a declared grid: exact rounding, what it does to a sensitivity, and mechanisms that release multiples of a
step."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.additive import least_integer
from cloister.noise.inversion import Inversion
from cloister.noise.mechanism import check_confidence, check_scale, narrowed, set_fields, source
from cloister.noise.random import Random, check_count
from cloister.privacy.rational import Exact, exact_positive, float_up, text_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Reals: TypeAlias = "int | float | Fraction | Decimal | np.number[Any] | Sequence[Any] | NDArray[Any]"
"""What a mechanism on a grid takes: real numbers. A float means the number that it is, not its decimal text."""

_HALF = Fraction(1, 2)
_FINENESS = 20


class GridNoise:
    """Noise of a continuous law, rounded to multiples of `step`; made for values that are rounded to them as well."""

    scale: Fraction
    sensitivity: Fraction
    step: Fraction
    coordinates: int | None

    def __init__(
        self, *, scale: Exact, sensitivity: Exact = 1, step: Exact | None = None, coordinates: int | None = None
    ) -> None:
        width = check_scale(scale)
        reach = exact_positive(sensitivity, "sensitivity")
        set_fields(
            self,
            scale=width,
            sensitivity=reach,
            step=default_step(width, reach) if step is None else exact_positive(step, "step"),
            coordinates=None if coordinates is None else max(1, check_count(coordinates)),
        )
        check_scale(width / self.step, "scale/step")

    def sample(self, n: int, *, random: Random | None = None) -> NDArray[np.float64]:
        """`n` independent draws of the noise: multiples of the step, as the nearest floats.

        >>> from cloister.noise import Laplace
        >>> Laplace(scale=3, step="0.5").sample(5).dtype
        dtype('float64')
        """
        return times_step(self._law.draw(check_count(n), source(random)), self.step)

    def release(self, value: Reals, *, random: Random | None = None) -> Any:
        """`value`, rounded to the grid, plus fresh noise of the grid in each coordinate: a float, or an array of floats.

        The released float is the one nearest to the exact multiple of the step: a function of what is released alone.

        >>> from cloister.noise import Laplace
        >>> Laplace(scale="0.001", step="0.5", coordinates=2).release([1.3, -0.3]).tolist()
        [1.5, -0.5]
        """
        drawn = source(random)
        if isinstance(value, int | float | Fraction | Decimal | np.number) and not isinstance(value, bool):
            return nearest_float((rounded_to_grid(value, self.step) + self._law.draw_one(drawn)) * self.step)
        if self.coordinates is None:
            raise InvalidParameter(
                "The array is invalid",
                why=(
                    "rounding each coordinate adds to the sensitivity, so it must be known how many coordinates one unit can move"
                ),
                instead="coordinates=1, or as many as the array is long",
            )
        places = to_grid(value, self.step)
        noise = self._law.draw(places.size, drawn).reshape(places.shape)
        return times_step(places.astype(object) + noise.astype(object), self.step)

    def margin(self, confidence: Exact = "0.95") -> float:
        """The least half-width, in half steps, such that |release − value| stays within it with probability ≥ `confidence`.

        It is the margin of the noise on the grid and half a step for the rounding of the value.

        >>> from cloister.noise import Laplace
        >>> Laplace(scale=10, step=1).margin(0.95)
        30.5
        """
        miss = 1 - check_confidence(confidence)
        m = least_integer(lambda m: self._tail_above(m) <= miss, self._guess(miss))
        return float_up((m + _HALF) * self.step)

    def tail(self, m: float | Fraction) -> float:
        """P(|noise| > m), m in the units of the value, rounded up; the noise is that of the grid.

        >>> from cloister.noise import Laplace
        >>> round(Laplace(scale=1).tail(3), 5)
        0.04979
        """
        if m < 0:
            return 1.0
        bound = self._tail_above(math.floor(Fraction(m) / self.step))
        return min(1.0, float_up(max(bound, Fraction(2) ** -1074)))

    @property
    @abstractmethod
    def _law(self) -> Inversion: ...

    @abstractmethod
    def _tail_above(self, m: int) -> Fraction: ...

    @abstractmethod
    def _guess(self, miss: Fraction) -> int: ...

    def _grid_text(self) -> str:
        moved = "" if self.coordinates is None else f", coordinates={self.coordinates}"
        return f"sensitivity={text_of(self.sensitivity)!r}, step={text_of(self.step)!r}{moved}"


def default_step(scale: Fraction, sensitivity: Fraction) -> Fraction:
    """sensitivity/2^j, j ≥ 0, and at most scale/2²⁰: a single number's sensitivity is then a whole number of steps.

    >>> default_step(Fraction(1), Fraction(3)) == Fraction(3, 2**22)
    True
    """
    step = sensitivity
    ratio = sensitivity * (1 << _FINENESS) / scale
    if ratio > 1:
        step /= 1 << math.ceil(ratio - 1).bit_length()
    return step


def l1_on_grid(sensitivity: Fraction, step: Fraction, coordinates: int | None) -> Fraction:
    """The L1 sensitivity of values rounded to the grid: step·(⌈sensitivity/step⌉ + coordinates − 1).

    Proof: coordinate i moves by D(i) steps before rounding, at most ⌈D(i)⌉ < D(i) + 1 after. The sum over c coordinates is an
    integer below sensitivity/step + c, hence at most ⌈sensitivity/step⌉ + c − 1.

    >>> l1_on_grid(Fraction(1), Fraction(3, 10), 1), l1_on_grid(Fraction(1), Fraction(1, 4), 3)
    (Fraction(6, 5), Fraction(3, 2))
    """
    return step * (math.ceil(sensitivity / step) + (coordinates or 1) - 1)


def l2_squared_on_grid(sensitivity_squared: Fraction, step: Fraction, coordinates: int | None) -> Fraction:
    """The square of the L2 sensitivity of values rounded to the grid, from above.

    Proof: with one coordinate it is ⌈D⌉ steps. With c of them each moves by less than D(i) + 1, and by Minkowski's
    inequality the length is at most D + √c steps. Both square roots are rounded up.

    >>> l2_squared_on_grid(Fraction(1), Fraction(3, 10), 1), l2_squared_on_grid(Fraction(1), Fraction(1, 4), 4)
    (Fraction(36, 25), Fraction(9, 4))
    """
    length = root_above(sensitivity_squared / step**2)
    if (coordinates or 1) == 1:
        # ⌈√x⌉ of a rational x without the rounding of `root_above`: the least n with n² ≥ x
        x = sensitivity_squared / step**2
        whole = math.isqrt(math.ceil(x))
        whole += whole * whole < x
        return (whole * step) ** 2
    return ((length + root_above(Fraction(coordinates or 1))) * step) ** 2


@lru_cache(maxsize=4096)
def root_above(x: Fraction, bits: int = 160) -> Fraction:
    """√x where it is rational, else a number above it by a relative 2^−bits at most.

    >>> root_above(Fraction(9, 4)), 0 < root_above(Fraction(2)) ** 2 - 2 < Fraction(1, 10**40)
    (Fraction(3, 2), True)
    """
    top, bottom = math.isqrt(x.numerator), math.isqrt(x.denominator)
    if top * top == x.numerator and bottom * bottom == x.denominator:
        return Fraction(top, bottom)
    shift = bits + max(0, x.denominator.bit_length() - x.numerator.bit_length())
    return Fraction(math.isqrt((x.numerator << 2 * shift) // x.denominator) + 1, 1 << shift)


def to_grid(value: Any, step: Fraction) -> NDArray[Any]:
    """The nearest multiples of `step`, halves upwards, decided exactly; int64 or Python ints.

    Division by the step in floating point is off by less than 2^−51 of the quotient; where that could turn the rounding, or the
    quotient is beyond 2^50, the rational numbers decide.

    >>> to_grid([0.5, 0.49999999999999994, 2.0**80], Fraction(1)).tolist()
    [1, 0, 1208925819614629174706176]
    """
    array = np.asarray(value, dtype=None if isinstance(value, np.ndarray) else object)
    if array.dtype.kind not in "iufO":
        raise _not_real()
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8 and Fraction(2) ** -900 < step < Fraction(2) ** 900:
        reals = array.astype(np.float64)
        if not np.isfinite(reals).all():
            raise _not_real()
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            quotient = reals.ravel() / float(step)
            places = np.floor(quotient + 0.5)
            near = np.abs(quotient + 0.5 - np.rint(quotient + 0.5)) <= (np.abs(quotient) + 1) * 2.0**-50
        unsure = np.flatnonzero(near | ~(np.abs(quotient) < 2.0**50))
        exactly = np.where(np.abs(places) < 2.0**62, places, 0.0).astype(np.int64)
        if unsure.size == 0:
            return exactly.reshape(array.shape)
        out = exactly.astype(object)
        for i in unsure.tolist():
            out[i] = rounded_to_grid(float(reals.flat[i]), step)
        return narrowed(out.reshape(array.shape))
    out = np.empty(array.size, dtype=object)
    out[:] = [rounded_to_grid(item, step) for item in array.ravel().tolist()]
    return narrowed(out.reshape(array.shape))


def times_step(places: NDArray[Any], step: Fraction) -> NDArray[np.float64]:
    """Multiples of the step as their nearest floats.

    >>> times_step(np.array([3, -1]), Fraction(1, 10)).tolist()
    [0.3, -0.1]
    """
    if step.denominator & (step.denominator - 1) == 0 and step.numerator == 1 and places.dtype != object:
        shift = step.denominator.bit_length() - 1
        if shift < 1000:
            return places.astype(np.float64) * 2.0**-shift  # one rounding at most: a power of two is exact
    flat = [nearest_float(int(place) * step) for place in places.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(places.shape)


def rounded_to_grid(value: Any, step: Fraction) -> int:
    """The nearest multiple of `step` to one real number, halves upwards, exactly.

    >>> rounded_to_grid(0.3, Fraction(1, 10)), rounded_to_grid("1/2", Fraction(1))
    Traceback (most recent call last):
        ...
    cloister.errors.InvalidParameter: The value is invalid: it must be made of finite real numbers, all of one shape.
      Instead: noise.release(12.5)
    """
    if isinstance(value, bool | np.bool_ | str) or (isinstance(value, np.generic) and value.dtype.kind not in "iuf"):
        raise _not_real()
    try:
        number = Fraction(value.item() if isinstance(value, np.generic) else value)
    except (TypeError, ValueError, OverflowError):
        raise _not_real() from None
    return math.floor(number / step + _HALF)


def nearest_float(value: Fraction) -> float:
    """The float nearest to a rational; infinite beyond the floats.

    >>> nearest_float(Fraction(1, 10))
    0.1
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _not_real() -> InvalidParameter:
    return InvalidParameter(
        "The value is invalid", why="it must be made of finite real numbers, all of one shape", instead="noise.release(12.5)"
    )
