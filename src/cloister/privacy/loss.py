"""Privacy loss distributions: a batch of releases, fixed in advance, composed to (ε, δ) as closely as numbers allow.

Guarantee. `delta(ε)` and `epsilon(δ)` hold for releasing everything in the batch, for the neighbours and sensitivities that each
pair was made for. Assumption: *all parameters were fixed before the first release*. Which query is asked may depend on earlier
answers; its ε, σ or sensitivity may not. For a live budget use `cloister.privacy.filters`. Theorem: the δ(ε) of a composition is
that of the sum of the privacy losses of worst pairs (Sommer, Meiser & Mohammadi 2019; Zhu, Dong & Wang 2022, Theorem 10). Every
step of the computation errs upwards: `pairs` puts each loss on a grid without making it smaller, `spectrum` adds what it cuts off
and a bound on its round-off, Gaussians are added in closed form first. Neither the grid's step nor the length of a transform can
make a result too small; they make it slightly large.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from cloister.errors import InvalidParameter, NotConvertible
from cloister.privacy.gaussian import delta_of_gaussian, epsilon_of_gaussian
from cloister.privacy.guarantee import ApproxDP, Guarantee, PureDP, guarantee_of
from cloister.privacy.lattice import DiscreteGaussianPair, DiscreteLaplacePair
from cloister.privacy.pairs import (
    HOPELESS,
    FinitePair,
    GaussianPair,
    LaplacePair,
    Pair,
    RandomizedResponsePair,
    TooWide,
    grid_all,
)
from cloister.privacy.rational import (
    Exact,
    exact,
    exact_nonnegative,
    exact_positive,
    exact_probability,
    float_down,
    fraction_up,
    text_of,
    whole_number,
)
from cloister.privacy.spectrum import Spectrum

_FINEST = 2**15
_FINENESS = 0.015  # of the root mean square of a single loss: its rounding adds some 0.004 % to the variance of the sum


@dataclass(frozen=True, slots=True)
class PrivacyLossDistribution:
    """The privacy loss of a batch of releases; `+` puts two batches together, `*` repeats one.

    >>> batch = PrivacyLossDistribution.laplace("0.1") * 100 + PrivacyLossDistribution.gaussian(mu_squared="0.5")
    >>> 3.5 < batch.epsilon("1e-6") < 7.5
    True
    """

    pairs: tuple[tuple[Pair, int], ...]

    @classmethod
    def laplace(cls, epsilon: Exact) -> PrivacyLossDistribution:
        """One number with Laplace noise of scale Δ/ε.

        >>> PrivacyLossDistribution.laplace("0.5").epsilon(0)
        Fraction(1, 2)
        """
        return _of(LaplacePair(exact_nonnegative(epsilon, "epsilon")))

    @classmethod
    def gaussian(cls, *, mu_squared: Exact) -> PrivacyLossDistribution:
        """A vector with Gaussian noise, μ² = Δ₂²/σ².

        >>> batch = PrivacyLossDistribution.gaussian(mu_squared=1)
        >>> batch.delta(1) == delta_of_gaussian(1, 1)
        True
        """
        return _of(GaussianPair(exact_nonnegative(mu_squared, "mu_squared")))

    @classmethod
    def discrete_laplace(cls, *, scale: Exact, sensitivity: int = 1) -> PrivacyLossDistribution:
        """One integer with discrete Laplace noise.

        >>> PrivacyLossDistribution.discrete_laplace(scale=2).epsilon(0)
        Fraction(1, 2)
        """
        return _of(DiscreteLaplacePair(exact_positive(scale, "scale"), _whole(sensitivity)))

    @classmethod
    def discrete_gaussian(cls, *, sigma_squared: Exact, sensitivity: int = 1) -> PrivacyLossDistribution:
        """One integer with discrete Gaussian noise.

        >>> PrivacyLossDistribution.discrete_gaussian(sigma_squared=100).epsilon("1e-6") < Fraction("0.5")
        True
        """
        return _of(DiscreteGaussianPair(exact_positive(sigma_squared, "sigma_squared"), _whole(sensitivity)))

    @classmethod
    def of_guarantee(cls, guarantee: Guarantee | Exact) -> PrivacyLossDistribution:
        """Any mechanism with that pure or approximate guarantee: its worst pair is randomised response.

        >>> PrivacyLossDistribution.of_guarantee(PureDP(1)).epsilon(0)
        Fraction(1, 1)
        """
        guarantee = guarantee_of(guarantee)
        if isinstance(guarantee, PureDP | ApproxDP):
            return _of(RandomizedResponsePair(guarantee.epsilon, guarantee.delta))
        raise NotConvertible(
            f"{guarantee} was not made a privacy loss distribution",
            why="ρ-zCDP bounds the moments of a loss, and no one distribution is the worst of those",
            instead=f'ZCDP("{text_of(guarantee.rho)}").to_approx("1e-9") first, or compose in ρ and convert last',
        )

    @classmethod
    def of_pair(cls, p: Sequence[Exact], q: Sequence[Exact]) -> PrivacyLossDistribution:
        """A mechanism of finitely many outputs, with their probabilities on two neighbours; both directions are protected.

        >>> float(PrivacyLossDistribution.of_pair(["0.75", "0.25"], ["0.25", "0.75"]).delta(0))
        0.5...
        """
        left, right = _distribution(p, "p"), _distribution(q, "q")
        if len(left) != len(right):
            raise InvalidParameter(
                "p and q are invalid", why="they are not equally long", instead="one entry for each output, in each"
            )
        return _of(FinitePair(left, right))

    @classmethod
    def compose(cls, batches: Iterable[PrivacyLossDistribution]) -> PrivacyLossDistribution:
        """All batches together; equal releases are gathered, Gaussians become one.

        >>> PrivacyLossDistribution.compose([PrivacyLossDistribution.laplace(1)] * 3).epsilon(0)
        Fraction(3, 1)
        """
        found: Counter[Pair] = Counter()
        mu_squared = Fraction(0)
        for batch in batches:
            for pair, count in batch.pairs:
                if isinstance(pair, GaussianPair):
                    mu_squared += pair.mu_squared * count
                elif pair.largest != 0:
                    found[pair] += count
        if mu_squared:
            found[GaussianPair(mu_squared)] = 1
        return cls(tuple(found.items()))

    def __add__(self, other: PrivacyLossDistribution) -> PrivacyLossDistribution:
        return PrivacyLossDistribution.compose([self, other]) if isinstance(other, PrivacyLossDistribution) else NotImplemented

    def __mul__(self, times: int) -> PrivacyLossDistribution:
        count = _whole(times, "times")
        return PrivacyLossDistribution.compose([PrivacyLossDistribution(tuple((pair, n * count) for pair, n in self.pairs))])

    def delta(self, epsilon: Exact) -> Fraction:
        """The δ, rounded up, for which the batch is (ε, δ)-private.

        >>> PrivacyLossDistribution.laplace(1).delta(1)
        Fraction(0, 1)
        """
        bound = exact_nonnegative(epsilon, "epsilon")
        gaussian = self._only_gaussian()
        if gaussian is not None:
            return delta_of_gaussian(gaussian, bound)
        pure = self._pure()
        if pure is not None and bound >= pure:
            return Fraction(0)
        return max(min(Fraction(1), fraction_up(_delta(pairs, float_down(bound)), 12)) for pairs in self._directions())

    def epsilon(self, delta: Exact) -> Fraction:
        """The least ε, rounded up, for which the batch is (ε, δ)-private.

        >>> batch = PrivacyLossDistribution.laplace("0.1") * 50
        >>> batch.epsilon("1e-6") < batch.epsilon(0) == 5
        True
        """
        slack = exact_probability(delta, "delta")
        gaussian = self._only_gaussian()
        if gaussian is not None:
            return epsilon_of_gaussian(gaussian, slack)
        pure = self._pure()
        if pure is not None and (slack == 0 or pure == 0):
            return pure
        if pure is not None and any(pair.largest is None or pair.largest > HOPELESS for pair, _ in self.pairs):
            return pure
        worst = max(_epsilon(pairs, float_down(slack)) for pairs in self._directions())
        if math.isinf(worst):
            raise NotConvertible(
                f"No ε holds at δ = {text_of(slack)}",
                why="with a larger probability than that the loss is unbounded, or beyond all use",
                instead="a larger delta",
            )
        found = fraction_up(worst, 12)
        return found if pure is None else min(pure, found)

    def to_approx(self, delta: Exact) -> ApproxDP:
        """The batch's promise as (ε, δ).

        >>> PrivacyLossDistribution.laplace(1).to_approx("0") == ApproxDP(1, 0)
        True
        """
        return ApproxDP(self.epsilon(delta), delta)

    def _pure(self) -> Fraction | None:
        total = Fraction(0)
        for pair, count in self.pairs:
            if pair.largest is None:
                return None
            total += count * pair.largest
        return total

    def _only_gaussian(self) -> Fraction | None:
        if len(self.pairs) == 1 and isinstance(self.pairs[0][0], GaussianPair):
            return self.pairs[0][0].mu_squared * self.pairs[0][1]
        return None

    def _directions(self) -> set[tuple[tuple[Pair, int], ...]]:
        """A unit added, and a unit removed: one direction where all pairs are symmetric."""
        return {self.pairs, tuple((pair.reversed, count) for pair, count in self.pairs)}


def _of(pair: Pair) -> PrivacyLossDistribution:
    return PrivacyLossDistribution(() if pair.largest == 0 else ((pair, 1),))


def _delta(pairs: tuple[tuple[Pair, int], ...], epsilon: float) -> float:
    for coarser in range(64):
        try:
            return _spectrum(pairs, coarser).delta(epsilon)
        except TooWide:
            continue
    return 1.0


def _epsilon(pairs: tuple[tuple[Pair, int], ...], delta: float) -> float:
    for coarser in range(64):
        try:
            return _spectrum(pairs, coarser).epsilon(delta)
        except TooWide:
            continue
    return math.inf


@lru_cache(maxsize=4)
def _spectrum(pairs: tuple[tuple[Pair, int], ...], coarser: int) -> Spectrum:
    """All pairs on one grid, whose step is a small part of the typical loss and of the spread of their sum."""
    variance = sum(pair.variance * count for pair, count in pairs)
    releases = sum(count for _, count in pairs)
    spread = math.sqrt(variance) or 1.0
    step = min(_FINENESS * spread / math.sqrt(max(releases, 1)), 16 * spread / _FINEST) * 2.0**coarser
    largest = max(min(pair.largest or Fraction(0), Fraction(HOPELESS)) for pair, _ in pairs)
    step = max(step, float(largest) / _FINEST / 64)
    return Spectrum(grid_all([pair for pair, _ in pairs], step), [count for _, count in pairs], step)


def _whole(value: int, name: str = "sensitivity") -> int:
    return whole_number(exact_nonnegative(value, name), name)


def _distribution(values: Sequence[Exact], name: str) -> tuple[Fraction, ...]:
    found = tuple(exact_nonnegative(exact(value, name), name) for value in values)
    if sum(found) != 1:
        raise InvalidParameter(
            f"{name} is invalid",
            why=f"its probabilities sum to {text_of(sum(found, Fraction(0)))}",
            instead='exact ones, as "1/3" or Fraction(1, 3)',
        )
    return found
