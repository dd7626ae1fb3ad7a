"""Two-sided geometric noise inside a circuit: made of both parties' random bits, so that neither knows it.

A geometric number G, Pr[G = k] = (1 − α)αᵏ, has binary digits that are independent coins: digit i is 1 with probability
pᵢ = α^(2^i)/(1 + α^(2^i)) (Dwork, Kenthapadi, McSherry, Mironov & Naor, "Our data, ourselves", EUROCRYPT 2006). So a digit is one
comparison: a uniform number of `COIN` bits with a public threshold. The difference of the parties' numbers modulo 2^COIN is
uniform and independent of what either party knows, if the other drew its own uniformly. G − G′ is the two-sided geometric law.

Guarantee: (ε, δ) for values of which one person changes the vector by `sensitivity` in all (ℓ1), towards each of the two parties,
if both follow the protocol and don't pool what they drew. Proof sketch. With α = e^(−ε/Δ) and all digits the law is ε-private
(Ghosh, Roughgarden & Sundararajan, STOC 2009). Here digits from `digits` on are left out, which changes G with probability
α^(2^digits), and each threshold is rounded by less than a step of 2^−COIN: so all the noise is within
η = 2·numbers·(α^(2^digits) + digits·2^−COIN) of that law in total variation, and each output is (ε, (1 + e^ε)η)-private. ∎
"""

from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random
from cloister.privacy import ApproxDP, Exact, exact_positive
from cloister.together.circuits.fixed_point import FixedPoint, integers
from cloister.together.circuits.language import SecretArray

COIN = 96
"""Bits of a uniform number."""
_EXACT = Context(prec=80)


@dataclass(frozen=True, kw_only=True)
class GeometricNoise:
    """Noise for so many whole numbers of a program.

    >>> from cloister.together.circuits import Program
    >>> noise, kind = GeometricNoise(epsilon="0.5"), FixedPoint(bits=16)
    >>> own = {"garbler": {"a": kind, "coins": noise.coins}, "evaluator": {"b": kind, "more": noise.coins}}
    >>> program = Program(lambda a, b, coins, more: a + b + noise.sample(coins, more), **own, bits=COIN)
    >>> draw = {"coins": noise.draw(Random.deterministic(1)), "more": noise.draw(Random.deterministic(2))}
    >>> int(program.as_numbers(a=100, b=23, **draw)), noise.guarantee.delta < Fraction(1, 10**20)
    (124, True)
    """

    epsilon: Exact
    sensitivity: int = 1
    numbers: int = 1

    def __post_init__(self) -> None:
        _ = exact_positive(self.epsilon, "epsilon")
        for name, value in (("sensitivity", self.sensitivity), ("numbers", self.numbers)):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 2**20:
                raise InvalidParameter(f"{name}={value!r} is invalid", why="it is from 1 to 1,048,576", instead=f"{name}=1")
        if self.digits > 40:
            raise InvalidParameter(
                f"epsilon={self.epsilon!r} is invalid",
                why="the noise would have more than 40 binary digits",
                instead='epsilon="0.1"',
            )

    @property
    def digits(self) -> int:
        """Binary digits of a geometric number: what is beyond has a probability below 2^−COIN."""
        least = COIN / float(self._rate) * 0.6932
        return max(int(np.ceil(np.log2(max(least, 1.0)))), 1)

    @property
    def coins(self) -> FixedPoint:
        """What each party brings."""
        return FixedPoint(bits=COIN, low=0, shape=(2 * self.numbers, self.digits))

    def draw(self, random: Random | None = None) -> npt.NDArray[Any]:
        """One party's uniform numbers."""
        random = default_random() if random is None else random
        return integers([random.bits(COIN) for _ in range(2 * self.numbers * self.digits)]).reshape(self.coins.shape)

    def sample(self, garbler: SecretArray, evaluator: SecretArray) -> SecretArray:
        """The noise, in a program; one number alone has no axis."""
        half = 1 << (COIN - 1)
        uniform = garbler.minus_modulo(evaluator, bits=COIN)  # from −half on
        ones = uniform < np.array([each - half for each in self.thresholds], dtype=object)
        drawn = ones[:, 0]
        for place in range(1, self.digits):
            drawn = drawn + ones[:, place].ldexp(place).rounded(0)
        found = drawn[: self.numbers] - drawn[self.numbers :]
        return found[0] if self.numbers == 1 else found

    @property
    def thresholds(self) -> list[int]:
        """Of each digit, of 2^COIN."""
        rate, found = self._rate, []
        for place in range(self.digits):
            power = _EXACT.exp(_EXACT.multiply(_EXACT.divide(Decimal(-rate.numerator), Decimal(rate.denominator)), 1 << place))
            found.append(int(_EXACT.multiply(_EXACT.divide(power, _EXACT.add(1, power)), Decimal(1 << COIN))))
        return found

    @property
    def distance(self) -> Fraction:
        """How far all the noise is from the two-sided geometric law at most, in total variation."""
        return 2 * self.numbers * (1 + self.digits) * Fraction(1, 1 << COIN)

    @property
    def guarantee(self) -> ApproxDP:
        """Of what leaves with the noise."""
        epsilon = exact_positive(self.epsilon, "epsilon")
        grown = Fraction(_EXACT.exp(Decimal(epsilon.numerator) / Decimal(epsilon.denominator))) * Fraction(1001, 1000)
        return ApproxDP(epsilon, min((1 + grown) * self.distance, Fraction(1)))

    @property
    def _rate(self) -> Fraction:
        """ε/Δ: α is e to its negative."""
        return exact_positive(self.epsilon, "epsilon") / self.sensitivity
