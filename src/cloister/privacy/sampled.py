"""The worst pairs of a release about a Poisson sample: with Gaussian noise, what a step of stochastic gradient descent says about
one unit; and with any other release whose loss is bounded (Laplace noise, randomised response, an ε or (ε, δ) that is promised).

Guarantee. Each unit takes part with probability at most q, independently; the sum of those who do moves by at most Δ₂ with one of
them; Gaussian noise of standard deviation σ is added; μ = Δ₂/σ. Neighbours: a unit more or less. With the unit the output is
dominated by M = (1 − q)·N(0, 1) + q·N(μ, 1), without it by A = N(0, 1), in both directions: the unit removed is the pair (M, A),
the unit added is (A, M). Theorem: Zhu, Dong & Wang (2022), Theorem 11 (and Koskela, Jälkö & Honkela 2020 for the two directions);
pairs of one direction compose (their Theorem 10), also where a later step is chosen by the outputs of earlier ones, as long as q,
σ and the number of steps are fixed in advance. Proof sketch: condition on which of the others take part; the conditional outputs
are N(v, σ²) with probability 1 − q and N(v + d, σ²), ‖d‖ <= Δ₂, with probability q; only the coordinate along d matters, and a
shorter d, a smaller q or a mixture over v is post-processing of the worst case (a smaller q: replace the output by a draw from A
with probability 1 − q′/q).

Any pair. If (P, Q) dominates a release in one direction and (P′, Q′) in the other, then ((1 − q)·Q + q·P, Q) and (P′, (1 − q)·P′
+ q·Q′) dominate that release about the sample (the same theorem): `SampledPair`.

Rounding argument. The loss L(x) = ln(1 − q + q·exp(μx − μ²/2)) of (M, A) grows with x; that of (A, M) is −L(x). The grid of
losses cuts the line of x into cells, whose masses under both distributions are differences of normal tails; a cell's mass is
split between its two ends such that both masses stay what they were (`cloister.privacy.pairs`). Cut points err towards larger
losses, each mass grows by a bound on its floating-point error, and tails beyond 10 standard deviations go upwards.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cloister.errors import InvalidParameter
from cloister.privacy.amplification import poisson
from cloister.privacy.guarantee import PureDP
from cloister.privacy.loss import PrivacyLossDistribution
from cloister.privacy.pairs import (
    HOPELESS,
    UNIT,
    Atoms,
    Floats,
    GaussianPair,
    Gridded,
    Pair,
    RandomizedResponsePair,
    TooWide,
    size_of,
)
from cloister.privacy.rational import Exact, exact_nonnegative, float_up, text_of

_REACH = 10.0  # in standard deviations; the mass beyond is below 1e-23
_LONGEST = 2**20
_FAR = 700.0
_POINTS = 4096
_DEEPEST = 300


def sampled_gaussian(*, mu_squared: Exact, rate: Exact) -> PrivacyLossDistribution:
    """One vector with Gaussian noise, (Δ₂/σ)² = `mu_squared`, about a Poisson sample of that rate.

    >>> step = sampled_gaussian(mu_squared=1, rate="0.01")
    >>> 0.9 < (step * 1000).epsilon("1e-6") < 3
    True
    """
    square, share = exact_nonnegative(mu_squared, "mu_squared"), exact_nonnegative(rate, "rate")
    if share > 1:
        raise InvalidParameter(f"rate={text_of(share)} is invalid", why="it is a probability", instead='rate="0.01"')
    if not square or not share:
        return PrivacyLossDistribution(())
    if share == 1:
        return PrivacyLossDistribution.gaussian(mu_squared=square)
    return PrivacyLossDistribution(((SampledGaussianPair(square, share), 1),))


def sampled(release: PrivacyLossDistribution, rate: Exact) -> PrivacyLossDistribution | None:
    """One release of a bounded loss about a Poisson sample of that rate; None where it is not known how to bound it.

    >>> step = sampled(PrivacyLossDistribution.laplace(1), "0.01")
    >>> step is not None and (step * 1000).epsilon("1e-6") < (PrivacyLossDistribution.laplace("0.0171") * 1000).epsilon("1e-6")
    True
    """
    share = exact_nonnegative(rate, "rate")
    if not release.pairs or not share:
        return PrivacyLossDistribution(())
    if share == 1:
        return release
    if [count for _, count in release.pairs] != [1]:
        return None
    pair = release.pairs[0][0]
    reach = _reach_of(pair)
    return None if reach is None or reach > _DEEPEST else PrivacyLossDistribution(((SampledPair(pair, share), 1),))


@dataclass(frozen=True, slots=True)
class SampledPair:
    """A pair (P, Q) of bounded loss ℓ, sampled: ((1 − q)·Q + q·P, Q), or with `added` (P, (1 − q)·P + q·Q).

    Its loss is a function of ℓ: ln(1 − q + q·e^ℓ), of a mass (1 − q)·e^−ℓ + q times that of ℓ; or −ln(1 − q + q·e^−ℓ), of the
    same mass. Both rise with ℓ. The base is put on a fine grid of its own first, which makes it a finer experiment, and a sample
    of a finer experiment is finer. Q-mass that P never shows has a loss of ln(1 − q) in the first, P-mass that Q never shows one
    of −ln(1 − q) in the second.

    >>> from cloister.privacy.pairs import LaplacePair
    >>> pair = SampledPair(LaplacePair(Fraction(1)), Fraction(1, 2))
    >>> pair.reversed.added, round(float(pair.largest or 0), 4), 0.05 < pair.variance < 1
    (True, 0.6201, True)
    """

    base: Pair
    rate: Fraction
    added: bool = False

    @property
    def variance(self) -> float:
        """Of the loss; it chooses the grid."""
        return _atoms_variance(self)

    @property
    def largest(self) -> Fraction | None:
        """ln(1 + q(e^ε − 1)), rounded up: the larger of both directions."""
        if self.base.largest is None:
            return None
        amplified = poisson(PureDP(self.base.largest), self.rate)
        assert isinstance(amplified, PureDP)
        return amplified.epsilon

    @property
    def reversed(self) -> Pair:
        """The other direction."""
        return SampledPair(self.base.reversed, self.rate, not self.added)

    def on_grid(self, step: float) -> Gridded:
        """The loss on the multiples of `step`, never smaller than it is."""
        return self.base.on_grid(step) if float_up(self.rate) >= 1 else self.atoms().on_grid(step)

    def atoms(self) -> Atoms:
        """The loss as finitely many values, each moved up by a bound on its rounding."""
        q, rest = float_up(self.rate), float_up(1 - self.rate)
        fine = float_up(_reach_of(self.base) or Fraction(0)) / _POINTS
        base = self.base.on_grid(fine)
        loss: Floats = (base.first + np.arange(base.mass.size, dtype=np.float64)) * fine
        if self.added:
            found, error = _mixed(-loss, q)
            found, mass, never, infinite = -found, base.mass, base.infinite, 0.0
        else:
            found, error = _mixed(loss, q)
            without = base.mass * np.exp(-loss) * (1 + 8 * UNIT * (2 + np.abs(loss)))
            mass = q * base.mass + rest * without
            never = rest * (max(0.0, 1.0 - float(without.sum())) + 16 * UNIT * mass.size)
            infinite = q * base.infinite
        found, mass = np.append(found + error, -math.log1p(-q) * (1 if self.added else -1)), np.append(mass, never)
        kept = mass > 0
        return Atoms(found[kept] + 16 * UNIT * np.abs(found[kept]), mass[kept] * (1 + 32 * UNIT), infinite * (1 + 32 * UNIT))


def _mixed(loss: Floats, q: float) -> tuple[Floats, Floats]:
    """ln(1 − q + q·e^ℓ), and a bound on its error beyond some roundings of itself.

    Near 0 by the form in which nothing cancels; far below it by a sum of two positive numbers, which is right to some roundings
    of its own, and its logarithm by as many units.
    """
    near = loss > -1
    found = np.where(near, np.log1p(q * np.expm1(loss)), np.log((1 - q) + q * np.exp(loss)))
    return np.asarray(found), np.where(near, 0.0, 8 * UNIT * (2 + np.abs(loss)))


def _reach_of(pair: Pair) -> Fraction | None:
    """How far a finite loss may be from 0; None where there is no bound."""
    return pair.epsilon if isinstance(pair, RandomizedResponsePair) else pair.largest


@lru_cache(maxsize=64)
def _atoms_variance(pair: SampledPair) -> float:
    if float_up(pair.rate) >= 1:
        return pair.base.variance
    atoms = pair.atoms()
    weight = atoms.mass / atoms.mass.sum()
    return float(weight @ (atoms.loss - float(weight @ atoms.loss)) ** 2)


@dataclass(frozen=True, slots=True)
class SampledGaussianPair:
    """(M, A), or with `added` (A, M); see above.

    >>> pair = SampledGaussianPair(Fraction(1), Fraction(1, 2))
    >>> pair.reversed.added, pair.largest is None, 0.05 < pair.variance < 1
    (True, True, True)
    """

    mu_squared: Fraction
    rate: Fraction
    added: bool = False

    @property
    def variance(self) -> float:
        """Of the loss; it chooses the grid."""
        return _variance(size_of(self.mu_squared), float(self.rate), self.added)

    @property
    def largest(self) -> Fraction | None:
        """None: in one of the two directions the loss is unbounded."""
        return None

    @property
    def reversed(self) -> Pair:
        """The other direction."""
        return SampledGaussianPair(self.mu_squared, self.rate, not self.added)

    def on_grid(self, step: float) -> Gridded:
        """The loss on the multiples of `step`, never smaller than it is."""
        if self.mu_squared > 2 * HOPELESS:
            return Gridded(0, np.zeros(1), 1.0)
        mu, q = math.nextafter(math.sqrt(float_up(self.mu_squared)), math.inf), float_up(self.rate)
        if q >= 1:
            return GaussianPair(self.mu_squared).on_grid(step)
        if self.added:
            first, last = math.floor(-_loss(_REACH, mu, q) / step), math.ceil(-_loss(-_REACH, mu, q) / step) + 1
        else:
            first, last = math.floor(_loss(-_REACH, mu, q) / step) - 1, math.ceil(_loss(mu + _REACH, mu, q) / step)
        if last - first > _LONGEST:
            raise TooWide
        losses: Floats = np.arange(first, last + 1, dtype=np.float64) * step
        sign = -1.0 if self.added else 1.0
        cuts = _cuts(np.asarray(sign * losses, dtype=np.float64), mu, q, sign)
        masses, errors, tails = [], [], []
        for centre in (0.0, mu):
            mass, error, above = _between(sign * (cuts - centre))
            masses.append(mass)
            errors.append(error)
            tails.append(above)
        plain, mixed = masses[0], (1 - q) * masses[0] + q * masses[1]
        plain_error = errors[0]
        mixed_error = (1 - q) * errors[0] + q * errors[1] + 4 * UNIT * mixed
        p, p_error, other, other_error = (
            (plain, plain_error, mixed, mixed_error) if self.added else (mixed, mixed_error, plain, plain_error)
        )
        # `other` weighs e^l at the lower end of its cell; both together decide how much of p goes to the upper end.
        # Where that is no number any more, all of p goes up.
        far = losses[:-1] > _FAR
        weight = np.exp(np.minimum(losses[:-1], _FAR))
        rounding = 8 * UNIT * (1 + np.abs(losses[:-1]))
        share = -math.expm1(-step)
        slack = np.where(far, p_error, (p_error + weight * other_error + rounding * (p + weight * other)) / share)
        up = np.where(far, p, np.clip((p - weight * other) / share, 0, p))
        mass = np.zeros(losses.size)
        mass[:-1] += p - up + slack
        mass[1:] += up + slack
        low, high = tails[0] if self.added else (1 - q) * tails[0] + q * tails[1]
        mass[0] += low * (1 + 16 * UNIT)
        return Gridded(first, mass, float(high * (1 + 16 * UNIT)))


def _loss(x: float, mu: float, q: float) -> float:
    """L(x), whatever the size of the exponential."""
    exponent = mu * x - mu * mu / 2
    return math.log(q) + exponent if exponent > 600 else math.log1p(q * math.expm1(exponent))


def _cuts(losses: Floats, mu: float, q: float, sign: float) -> Floats:
    """The x where L is each of these, moved against its error such that no loss of a cell lies above its upper end.

    That is downwards where the loss grows with x (`sign` 1), upwards where it falls. Exact ends beyond the range are infinite.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near = np.expm1(losses) + q  # q·exp(μx − μ²/2)
        error = 4 * UNIT * (np.abs(np.expm1(losses)) + q)
        moved = near - sign * error
        far = losses > 30
        logs = np.where(far, losses + np.log1p(-(1 - q) * np.exp(-np.maximum(losses, 1.0))), np.log(np.maximum(moved, 0.0)))
        cuts = (logs - math.log(q) + mu * mu / 2) / mu
        size = (np.abs(logs) + abs(math.log(q)) + mu * mu) / mu
        return np.asarray(np.where(np.isneginf(cuts), cuts, cuts - sign * 16 * UNIT * (size + np.abs(cuts))))


def _between(z: Floats) -> tuple[Floats, Floats, Floats]:
    """The normal mass between neighbours of a growing list, a bound on its error, and the mass below and above all."""
    tail = np.array([math.erfc(value) for value in (np.abs(z) / math.sqrt(2)).tolist()]) / 2
    square = np.where(np.isfinite(z), z, 0.0) ** 2
    error = UNIT * (16 + 8 * square) * tail
    left, right = tail[:-1], tail[1:]
    mass = np.where(z[:-1] >= 0, left - right, np.where(z[1:] <= 0, right - left, 1 - left - right))
    low = tail[0] + error[0] if z[0] < 0 else 1.0
    high = tail[-1] + error[-1] if z[-1] > 0 else 1.0
    return np.maximum(mass, 0.0), error[:-1] + error[1:], np.array([low, high])


@lru_cache(maxsize=64)
def _variance(mu_squared: float, q: float, added: bool) -> float:
    mu = min(math.sqrt(mu_squared), 1e3)
    x = np.linspace(-8.0, 8.0 + mu, 4001)
    plain, moved = np.exp(-(x**2) / 2), np.exp(-((x - mu) ** 2) / 2)
    weight = plain if added else (1 - q) * plain + q * moved
    exponent = mu * x - mu * mu / 2
    loss = np.where(exponent > 600, math.log(max(q, 1e-300)) + exponent, np.log1p(q * np.expm1(np.minimum(exponent, 600))))
    weight = weight / weight.sum()
    mean = float(weight @ loss)
    return float(weight @ (loss - mean) ** 2)
