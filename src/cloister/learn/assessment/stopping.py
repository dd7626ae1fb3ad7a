"""Random stopping: how often to try at random, so that the best of all tries costs little more than one.

The law of the number of tries is public, the number itself is not: who knew it could be told more than the theorem allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP, RenyiCurve

Law: TypeAlias = Literal["logarithmic", "geometric"]
_UP = 1 + 2**-40


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """A number of tries K ≥ 1 with mean about `tries`: logarithmic (η = 0) or geometric (η = 1).

    Guarantee: let one try Q, whose parameters are drawn at random and which releases a model and its score, be private, and let
    the best of K tries be released, with its score and without K. Papernot & Steinke (2022), Theorem 2: if Q is (λ, ε)- and
    (λ̂, ε̂)-Rényi private, the whole is (λ, ε')-Rényi private with

        ε' = ε + (1 + η)(1 − 1/λ̂)ε̂ + (1 + η)·ln(1/γ)/λ̂ + ln E[K]/(λ − 1).

    As λ and λ̂ grow, a pure ε of one try becomes (2 + η)ε: 2ε for the logarithmic law and 3ε for the geometric one, which is the
    bound of Liu & Talwar (2019) for random stopping; neither depends on γ, so tries cost time alone. With ρ-zCDP tries, ε = λρ,
    and the best λ̂ = √(ln(1/γ)/ρ) leaves (1 + η)(2√(ρ·ln(1/γ)) − ρ) in the middle; (ε, δ) is read off the curve at its best order.

    >>> law = Stopping(law="logarithmic", tries=20)
    >>> law.one_try(PureDP(1)), Stopping(law="geometric", tries=20).one_try(PureDP(1))
    (PureDP(epsilon='0.5'), PureDP(epsilon='1/3'))
    """

    law: Law
    tries: int

    def __post_init__(self) -> None:
        if self.law not in ("logarithmic", "geometric"):
            raise InvalidParameter(
                f"law={self.law!r} is invalid", why='known are "logarithmic" and "geometric"', instead='law="logarithmic"'
            )
        if isinstance(self.tries, bool) or not isinstance(self.tries, int) or not 2 <= self.tries <= 100_000:
            raise InvalidParameter(
                f"tries={self.tries!r} is invalid", why="the mean number of tries lies between 2 and 100000", instead="tries=20"
            )

    @property
    def eta(self) -> int:
        """η of the truncated negative binomial law."""
        return 0 if self.law == "logarithmic" else 1

    @property
    def gamma(self) -> Fraction:
        """The probability to stop, as an exact number: 1/tries, or that for which (1/γ − 1)/ln(1/γ) is about `tries`."""
        if self.law == "geometric":
            return Fraction(1, self.tries)
        low, high = 1e-9, 1.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if (1 / middle - 1) / -math.log(middle) > self.tries else (low, middle)
        return Fraction(high).limit_denominator(10**7)

    def draw(self, *, random: Random | None = None) -> int:
        """K, exactly of its law: geometric by coins; logarithmic by keeping a geometric k with probability 1/k.

        >>> Stopping(law="geometric", tries=5).draw(random=Random.deterministic(1)) >= 1
        True
        """
        source = random or default_random()
        while True:
            count = _geometric(self.gamma, source)
            if self.law == "geometric" or source.below_one(count) == 0:
                return count

    def one_try(self, whole: Guarantee) -> Guarantee:
        """The most that one try may promise, if all together promise the whole."""
        match whole:
            case PureDP():
                return PureDP(whole.epsilon / (2 + self.eta))
            case ApproxDP() if whole.delta == 0:
                return PureDP(whole.epsilon / (2 + self.eta))
            case ApproxDP():
                return self._largest(whole)
        raise InvalidParameter(
            f"{whole!r} is invalid", why="the best of random tries is not ρ-private", instead='epsilon=1, delta="1e-6"'
        )

    def curve(self, rho: Fraction) -> RenyiCurve:
        """The Rényi curve of the whole, where each try is ρ-zCDP, rounded up."""
        gamma, eta = float(self.gamma), self.eta
        expected = 1 / gamma if eta else (1 / gamma - 1) / -math.log(gamma)
        size, spread = float(rho), -math.log(gamma)
        order = max(1.0, math.sqrt(spread / size))
        middle = (1 + eta) * ((order - 1) * size + spread / order)

        def divergence(alpha: Fraction) -> Fraction:
            return Fraction((float(alpha) * size + middle + math.log(expected) / (float(alpha) - 1)) * _UP)

        return RenyiCurve.of(divergence)

    def _largest(self, whole: ApproxDP) -> ZCDP:
        low, high = 0.0, float(whole.epsilon) ** 2 + float(whole.epsilon)
        for _ in range(40):
            middle = (low + high) / 2
            fits = self.curve(Fraction(middle)).to_approx(whole.delta).epsilon <= whole.epsilon
            low, high = (middle, high) if fits else (low, middle)
        rho = Fraction(math.floor(low * 2**40), 2**40)
        if rho <= 0:
            raise InvalidParameter(
                f"{whole} is invalid", why="nothing is left for a try after the cost of choosing", instead="a larger epsilon"
            )
        return ZCDP(rho)


def _geometric(stop: Fraction, source: Random) -> int:
    """The number of coins of bias `stop` until the first head."""
    count = 0
    while True:
        heads = np.flatnonzero(source.below(stop.denominator, 256) < stop.numerator)
        if len(heads):
            return count + int(heads[0]) + 1
        count += 256
