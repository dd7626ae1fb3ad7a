"""What Gaussian noise promises, to the last digit: the analytic Gaussian mechanism and its two inverses.

Guarantee. An answer of L2 sensitivity Δ with Gaussian noise of standard deviation σ tells neighbours apart exactly as well as one
draw from N(0, 1) or N(μ, 1) does, μ = Δ/σ; it is (ε, δ)-private if and only if δ ≥ Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ).
Neighbours: those that Δ is for. Assumption: the noise is a real number (for integers see `DiscreteGaussian`, whose exact curve
`cloister.privacy.loss` computes). Theorem: Balle & Wang (2018), Theorem 8. Proof sketch: the noise is spherically symmetric, so
only the length of the difference counts; the privacy loss is N(μ²/2, μ²), and δ = P[L > ε] − e^ε·P[−L′ > ε] under the two worlds.

Everything is stated in μ², which is rational where Δ² and σ² are, and which adds under composition: k Gaussian answers of any
μ₁, …, μₖ tell as much as one of μ² = Σμᵢ² (Dong, Roth & Su 2022, Corollary 3.3).
"""

from fractions import Fraction
from functools import lru_cache
from typing import Any

from cloister.errors import NotConvertible
from cloister.privacy.precision import DIGITS, context, down, real, up
from cloister.privacy.rational import Exact, exact_nonnegative, exact_positive, exact_probability

_MOST_DIGITS = 960


def delta_of_gaussian(mu_squared: Exact, epsilon: Exact) -> Fraction:
    """The least δ, rounded up, for which Gaussian noise of (Δ/σ)² = `mu_squared` is (ε, δ)-private.

    >>> float(delta_of_gaussian(1, 1))
    0.126936737506644
    """
    square, bound = exact_nonnegative(mu_squared, "mu_squared"), exact_nonnegative(epsilon, "epsilon")
    return min(Fraction(1), up(_delta(square, bound))) if square else Fraction(0)


def epsilon_of_gaussian(mu_squared: Exact, delta: Exact) -> Fraction:
    """The least ε, rounded up, for which Gaussian noise of (Δ/σ)² = `mu_squared` is (ε, δ)-private.

    >>> epsilon_of_gaussian(1, "1e-5") < 5
    True
    """
    square, wanted = exact_nonnegative(mu_squared, "mu_squared"), exact_probability(delta, "delta")
    if square == 0:
        return Fraction(0)
    _refuse_zero(wanted)
    if delta_of_gaussian(square, 0) <= wanted:
        return Fraction(0)
    number = context()
    rho, target = real(square) / 2, real(wanted)
    low, high = number.mpf(0), rho + 2 * number.sqrt(rho * -number.log(target))  # the zCDP bound is never below the truth
    for _ in range(400):
        middle = (low + high) / 2
        if high - low <= high * number.mpf(10) ** -17:
            break
        low, high = (low, middle) if _delta_at(number.sqrt(2 * rho), middle) <= target else (middle, high)
    return _first_that_holds(up(high), Fraction(1, 10**14), lambda epsilon: delta_of_gaussian(square, epsilon) <= wanted)


def mu_squared_of_gaussian(*, epsilon: Exact, delta: Exact) -> Fraction:
    """The largest μ² = (Δ/σ)², rounded down, for which Gaussian noise is (ε, δ)-private.

    >>> delta_of_gaussian(mu_squared_of_gaussian(epsilon=1, delta="1e-6"), 1) <= Fraction(1, 10**6)
    True
    """
    bound, wanted = exact_nonnegative(epsilon, "epsilon"), exact_probability(delta, "delta")
    _refuse_zero(wanted)
    return _mu_squared(bound, wanted)


@lru_cache(maxsize=1024)
def _mu_squared(bound: Fraction, wanted: Fraction) -> Fraction:
    number = context()
    epsilon_real, target = real(bound), real(wanted)
    low, high = number.mpf(0), number.mpf(1)
    while _delta_at(high, epsilon_real) <= target:
        low, high = high, 4 * high
    while low == 0:
        high /= 4
        if _delta_at(high, epsilon_real) <= target:
            low, high = high, 4 * high
    while high - low > high * number.mpf(10) ** -17:
        middle = (low + high) / 2
        low, high = (middle, high) if _delta_at(middle, epsilon_real) <= target else (low, middle)
    return _first_that_holds(down(low * low), -Fraction(1, 10**14), lambda square: delta_of_gaussian(square, bound) <= wanted)


def sigma_of_gaussian(*, epsilon: Exact, delta: Exact, sensitivity_squared: Exact = 1) -> Fraction:
    """The least standard deviation, rounded up, whose Gaussian noise makes an answer of that L2 sensitivity (ε, δ)-private.

    >>> float(sigma_of_gaussian(epsilon=1, delta="1e-6"))  # the classical formula asks for 5.30, and only below ε = 1
    4.22467...
    """
    square = exact_positive(sensitivity_squared, "sensitivity_squared")
    mu_squared = mu_squared_of_gaussian(epsilon=epsilon, delta=delta)
    return up(context().sqrt(real(square / mu_squared)))


def _delta(square: Fraction, epsilon: Fraction) -> Any:
    number = context()
    return _delta_at(number.sqrt(real(square)), real(epsilon))


def _delta_at(mu: Any, epsilon: Any, digits: int = DIGITS) -> Any:
    """The difference of two tails; where so many digits cancel that sixty are too few, again with twice as many.

    At the last precision the first tail alone stands in, which is more than the difference. Far out, a tail is its density times
    a ratio, since e^ε·φ(μ/2 + ε/μ) = φ(μ/2 − ε/μ): an error function's exponent would have too many digits there, and mpmath
    fails where that exceeds a float.
    """
    number = context(digits)
    mu, epsilon = number.mpf(mu), number.mpf(epsilon)
    low, high = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
    far = number.mpf(10) ** (digits // 8 + 1)
    first = number.npdf(low) * _mills(number, -low) if -low > far else number.ncdf(low)
    second = number.npdf(low) * _mills(number, high) if high > far else number.exp(epsilon) * number.ncdf(-high)
    difference = first - second
    if difference > first * number.mpf(10) ** (40 - digits):
        return context().mpf(difference)
    return _delta_at(mu, epsilon, 2 * digits) if digits < _MOST_DIGITS else context().mpf(first)


def _mills(number: Any, x: Any) -> Any:
    """Φ(−x)/φ(x) of a large x, by four terms of its series, which err by less than 105/x⁸ of it (Abramowitz & Stegun 26.2.12)."""
    square = x * x
    return (1 - 1 / square + 3 / square**2 - 15 / square**3) / x


def _first_that_holds(value: Fraction, step: Fraction, holds: Any) -> Fraction:
    """Moves a value by relative steps, outwards, until the rounded forward formula agrees that it holds."""
    moved = value
    while not holds(moved):
        moved, step = value * (1 + step), 2 * step
    return Fraction(moved)


def _refuse_zero(delta: Fraction) -> None:
    if delta == 0:
        raise NotConvertible(
            "δ = 0 is invalid for Gaussian noise",
            why="its privacy loss has no upper bound",
            instead='delta="1e-6", or Laplace noise',
        )
