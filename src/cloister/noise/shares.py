"""One noise made by several parties, and the law of what they made.

Each party adds a share to its integers; the sum of the shares is the noise. Shares are sized for the least number of honest
parties whose shares are in the sum. When more are, the sum has more noise than was asked for: `SummedNoise` is the law that is
really in it, and margins follow that law.

*Laplace.* The discrete Laplace law is infinitely divisible: the difference of two independent negative binomial (Pólya) numbers
of shape 1/n is a share of which n add up to it exactly (Goryczka & Xiong 2017, in integers). Its characteristic function is
that of the whole to the power of 1/n, so a sum of k shares is the whole to the power of k/n.

*Gauss.* The sum of n discrete Gaussian shares of variance parameter s² is no discrete Gaussian, but nearly. Claim: for every k
the probability of k under the sum and under the discrete Gaussian of n·s² differ by a factor of at most e^τ, where
τ = 10·Σ_{j<n} exp(−2π²·s²·j/(j + 1)). Proof: the product of e^(−i²/2a²) and e^(−(k−i)²/2b²) is e^(−k²/2(a²+b²)) times
e^(−(i−x)²/2c²) with c² = a²b²/(a² + b²), and by Poisson's summation formula Σ_i e^(−(i−x)²/2c²) lies within a factor of 1 ± η
of c·√(2π), whatever x is, with η ≤ 2·Σ_{m≥1} e^(−2π²c²m²) ≤ 2.1·e^(−2π²c²). Adding share j + 1 to the sum of j shares has
c² = s²·j/(j + 1) ≥ ½ for s ≥ 1, so η < 1/9000 and (1 + η)/(1 − η) ≤ e^(10·e^(−2π²c²)) (both the value and the constant that
normalises it are in the factor). The factors multiply. ∎ What that costs: Kairouz, Liu & Steinke (2021, "The distributed
discrete Gaussian mechanism"), Theorem 1 (s ≥ ½): with L2 sensitivity Δ and d numbers it is ½ε²-zCDP with ε = Δ/(√n·s) + τ·√d.
Numbers that one person leaves alone don't count, and whole numbers that change do so by 1 at least, so d ≤ Δ² however many there
are: ε ≤ Δ·(1/(√n·s) + τ). Below s = 2 τ is less than 6·10⁻⁴ for up to a thousand parties, from there on less than 10⁻¹⁵.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.gaussian import DiscreteGaussian
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import set_fields, source
from cloister.noise.polya import PolyaDifference
from cloister.noise.random import Random, check_count
from cloister.privacy.precision import context, real, up
from cloister.privacy.rational import Exact, exact_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

Whole: TypeAlias = DiscreteLaplace | DiscreteGaussian

LEAST_SHARE = 1
"""The least σ of a Gaussian share, in steps."""
_GROWN, _GROWN_NARROW = 1 + Fraction(1, 2**20), 1 + Fraction(1, 2**7)
"""By what factor Gaussian shares are larger than their part of the variance, to pay for τ; and those below 2 steps."""
_MOST_TERMS = 64
_MOST_PARTS, _MOST_NUMBER = 64, 10**6


@dataclass(frozen=True, init=False)
class SummedNoise:
    """The sum of independent integer noises: of each law, how many. Of a Laplace law the number may be a fraction.

    It describes the noise in a number. By itself it promises nothing: what the sum is worth follows from the shares that were
    asked for, since noise that is added to them is independent of the rows.

    >>> two_of_three = SummedNoise(parts=[(DiscreteLaplace(scale=10), "2/3")])
    >>> round(two_of_three.variance, 3), round(2 / 3 * DiscreteLaplace(scale=10).variance, 3)
    (133.222, 133.222)
    """

    parts: tuple[tuple[DiscreteLaplace | DiscreteGaussian, Fraction], ...]

    def __init__(self, *, parts: Sequence[tuple[Whole, Exact]]) -> None:
        found = tuple((law, exact_positive(number, "number")) for law, number in parts)
        whole = all(isinstance(law, DiscreteLaplace) or number.denominator == 1 for law, number in found)
        known = all(isinstance(law, DiscreteLaplace | DiscreteGaussian) for law, _ in found)
        if not 0 < len(found) <= _MOST_PARTS or not known or not whole or any(number > _MOST_NUMBER for _, number in found):
            raise InvalidParameter(
                "parts= is invalid",
                why="each is a discrete Laplace law and a number of shares, or a discrete Gaussian law and a whole number",
                instead="parts=[(DiscreteGaussian(scale=10), 3)]",
            )
        set_fields(self, parts=found)

    @property
    def scale(self) -> Fraction:
        """The least scale in the sum: how fine its steps are.

        >>> SummedNoise(parts=[(DiscreteLaplace(scale=10), 2), (DiscreteLaplace(scale=3), 1)]).scale
        Fraction(3, 1)
        """
        return min(law.scale for law, _ in self.parts)

    @property
    def variance(self) -> float:
        """Variances of independent noises add.

        >>> SummedNoise(parts=[(DiscreteGaussian(scale=10), 3)]).variance
        300.0
        """
        return math.fsum(float(number) * law.variance for law, number in self.parts)

    def sample(self, n: int, *, random: Random | None = None) -> NDArray[Any]:
        """`n` independent draws, exactly of this law.

        A fraction of a Laplace law is the difference of two Pólya numbers (`cloister.noise.polya`).

        >>> SummedNoise(parts=[(DiscreteLaplace(scale=10), "1/3")]).sample(5).dtype
        dtype('int64')
        """
        drawn, wanted = source(random), check_count(n)
        total: NDArray[Any] = np.zeros(wanted, dtype=np.int64)
        for law, number in self.parts:
            for _ in range(math.floor(number)):
                total = total + law.sample(wanted, random=drawn)
            rest = number - math.floor(number)
            if rest:
                assert isinstance(law, DiscreteLaplace)
                total = total + PolyaDifference(scale=law.scale, shape=rest).draw(wanted, drawn)
        return total


@dataclass(frozen=True, kw_only=True)
class NoiseShares:
    """A law of noise in shares of several parties, of which at least `honest` are in the sum and unknown to everybody else.

    Guarantee: that of the law, towards anyone who knows all shares in the sum but those of `honest` parties. Proof: the shares
    that are unknown add up to noise that promises what the law promises (see the top, and `gaussian_share`). All else in the sum
    is independent of the rows: adding it is post-processing. ∎ Parties follow the protocol: one that adds nothing is not honest.

    How many are honest is no choice of this class: with t colluders it is t less than the least number of parties that a sum is
    opened over, since a hub that lies leaves out honest parties and keeps its colluders (`cloister.together.Roster.honest`).

    >>> shares = NoiseShares(law=DiscreteLaplace(scale=10), parties=5, honest=3)
    >>> shares.share.parts[0][1], shares.total(3) == shares.law
    (Fraction(1, 3), True)
    >>> round(shares.total(5).variance / shares.law.variance, 6)
    1.666667
    """

    law: Whole
    parties: int
    honest: int

    def __post_init__(self) -> None:
        _checked(self.parties)
        if isinstance(self.honest, bool) or not isinstance(self.honest, int) or not 1 <= self.honest <= self.parties:
            raise InvalidParameter(
                f"honest={self.honest!r} is invalid",
                why=f"of {self.parties} parties at least one must be honest and present",
                instead=f"honest={max(1, self.parties // 2)}",
            )

    @property
    def share(self) -> SummedNoise | DiscreteGaussian:
        """What each party adds."""
        if isinstance(self.law, DiscreteLaplace):
            return SummedNoise(parts=[(self.law, Fraction(1, self.honest))])  # of which so many add up to the law exactly
        return gaussian_share(self.law, self.honest)

    def total(self, present: int) -> Whole | SummedNoise:
        """The law that is in the sum when so many parties added their share: what was asked for, and the surplus."""
        if not self.honest <= present <= self.parties:
            raise InvalidParameter(
                f"present={present!r} is invalid",
                why=f"the shares are sized for {self.honest} to {self.parties} parties",
                instead=f"present={self.parties}",
            )
        _ = self.share  # refused where it is too narrow
        return of_all(self.law, present, self.honest)


def gaussian_share(law: DiscreteGaussian, number: int) -> DiscreteGaussian:
    """A share of which `number`, or more, promise together what the law promises, of whole numbers.

    Its variance is a `number`th of the law's and a millionth more (a 128th below 2 steps), which pays for the sum not being a
    discrete Gaussian (see the top); refused where σ is below 1 step, or that does not pay for it.

    >>> share = gaussian_share(DiscreteGaussian(scale=10), 3)
    >>> rho_of_sum(share, 3) <= DiscreteGaussian(scale=10).guarantee.rho
    True
    """
    parts = _checked(number)
    share = _grown(law, parts)
    if share.scale_squared < LEAST_SHARE**2 or rho_of_sum(share, parts) > law.guarantee.rho:
        least = max(Fraction(LEAST_SHARE**2), share.scale_squared + 1)
        raise InvalidParameter(
            f"Gaussian noise of scale {float(law.scale):.6g} in {parts} shares is not supported",
            why=f"a share of it has a scale of {float(share.scale):.3g} and needs at least {LEAST_SHARE} step, "
            "or the sum is too far from Gaussian noise",
            instead=f"at most 1/{math.ceil(least / share.scale_squared)} of the spend=, or a finer step=; "
            "under a budget in ε the noise is Laplace's, of any scale",
        )
    return share


def of_all(law: Whole, parties: int, honest: int) -> Whole | SummedNoise:
    """The law that is in the sum when all parties add their share, as it is planned: a share that is too narrow is refused where
    it is drawn, and not here.

    >>> round(of_all(DiscreteLaplace(scale=10), 5, 3).variance / DiscreteLaplace(scale=10).variance, 6)
    1.666667
    """
    if isinstance(law, DiscreteLaplace):
        return law if parties == honest else SummedNoise(parts=[(law, Fraction(parties, honest))])
    return SummedNoise(parts=[(_grown(law, honest), parties)])


def _grown(law: DiscreteGaussian, number: int) -> DiscreteGaussian:
    square = law.scale_squared / number
    grown = square * (_GROWN_NARROW if square < 2**2 else _GROWN)
    return DiscreteGaussian(scale_squared=grown, sensitivity_squared=law.sensitivity_squared)


def rho_of_sum(share: DiscreteGaussian, number: int) -> Fraction:
    """The ρ that the sum of so many shares promises: ½Δ²(1/(√n·s) + τ)², rounded up.

    >>> float(rho_of_sum(DiscreteGaussian(scale=10), 4)) - 1 / 800 < 1e-12
    True
    """
    reals = context()
    power = -2 * reals.pi**2 * real(share.scale_squared)
    terms = [10 * reals.exp(power * each / (each + 1)) for each in range(1, min(number, _MOST_TERMS + 1))] or [reals.mpf(0)]
    closeness = sum(terms) + terms[-1] * max(0, number - 1 - _MOST_TERMS)  # no more than the last, each: they grow no further
    own = 1 / reals.sqrt(real(share.scale_squared * number))
    return up(real(share.sensitivity_squared) * (own + closeness) ** 2 / 2)


def _checked(number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= _MOST_NUMBER:
        raise InvalidParameter(f"number={number!r} is invalid", why="it is how many parties add a share", instead="number=3")
    return number
