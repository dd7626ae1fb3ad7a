"""One quantile of a column with many values: a leaf chosen by its rank, and a few noisy counts around it that say how sure it is.

A hierarchy answers all quantiles at once and pays for it: a cumulative count adds up a noise from every level. Where one quantile
is asked, most of the spend chooses its leaf, and the rest, a part f, measures a *ladder* of counts around the choice, whose rungs
are 1, 1, 2, 4, 8, … leaves wide on either side. The rungs are disjoint, so all of them together cost what one count costs. f is
public: small where the value itself matters, a half where a margin was asked for.

The choice. With B, I and A rows below, in and above leaf k, the leaf holds the quantile q exactly where neither
q·A − (1 − q)(B + I) nor (1 − q)·B − q(I + A) is above 0. The larger of the two is by how many rows it misses; below 0 it says
how deep inside the quantile lies. Utility is less that: so a leaf of many rows stands apart from its neighbours on both sides.
For q = a/b everything is multiplied by b, so utilities are integers.

Guarantee: ε-DP with Laplace noise, ρ-zCDP with Gaussian noise: c = 1 − f of it in the choice, f in the ladder. Neighbours: one
unit's rows added or removed, at most m in all groups together; say m_g of them in group g, Σ m_g ≤ m.
- Choice, cε-DP: a row moves each of the two by a or b − a, so a utility by at most max(a, b − a), and group g's by
  m_g·max(a, b − a). Permute-and-flip at the rate λ = cε/(2·m·max(a, b − a)) changes the law of group g's choice
  by a factor of at most exp(cε·m_g/m) (McKenna & Sheldon 2020), and the groups choose independently, so the factors multiply to
  e^(cε) at most.
- Choice, cρ-zCDP: the exponential mechanism, since its privacy loss has a bounded range. At the same rate with ε₁ in place of
  cε the losses of group g's outcomes lie within a range of ε₁·m_g/m, which is (ε₁·m_g/m)²/8-zCDP (Cesar & Rogers 2021, by
  Hoeffding's lemma); Σ (m_g/m)² ≤ 1, so all groups together are ε₁²/8-zCDP, and ε₁ is √(8cρ) rounded down. The range of
  permute-and-flip is up to twice as long, so it would be given half the rate.
- Ladder: where its rungs lie follows from the choice, which is already known, so this is adaptive composition (Dwork & Roth 2014,
  Theorem 3.16; Bun & Steinke 2016, Lemma 2.3). Given the choice each row lies in one rung of one group: a unit moves the counts
  by at most m in L1 and m in L2, and noise of scale m/fε (σ² = m²/2fρ) is fε-DP (fρ-zCDP).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise import DiscreteGaussian, DiscreteLaplace, Exponential, PermuteAndFlip, Random

Whole = npt.NDArray[np.int64]

MOST_DENOMINATOR = 10**6
HALF = Fraction(1, 2)
"""The ladder's part where a margin was asked for."""
_PRECISION = 10**12
_LAWS: dict[type, str] = {DiscreteLaplace: "DiscreteLaplace", DiscreteGaussian: "DiscreteGaussian"}
"""What stored releases call the law of a noise, in the line about their mechanism."""


@dataclass(frozen=True, kw_only=True)
class Zoom:
    """The mechanism: exact counts of the leaves in, a row a group; the chosen leaf and the noisy rungs out.

    >>> from cloister.noise import Random
    >>> counts = np.array([[0] * 500 + [40] + [0] * 499])
    >>> zoom = Zoom.laplace(leaves=1000, share=Fraction(1, 2), rows=1, epsilon=Fraction(100))
    >>> found = zoom.release(counts, random=Random.deterministic(1))
    >>> found.shape, int(found[0, 0]), int(found[0, 1 + zoom.height])
    ((1, 22), 500, 40)
    """

    leaves: int
    share: Fraction
    rows: int
    """The most rows of a unit."""
    noise: DiscreteLaplace | DiscreteGaussian
    """That of each rung."""

    @property
    def ladder(self) -> Fraction:
        """The ladder's part of the spend."""
        return HALF

    @classmethod
    def laplace(cls, *, leaves: int, share: Fraction, rows: int, epsilon: Fraction, ladder: Fraction = HALF) -> Zoom:
        """ε-DP of choice and ladder together."""
        noise = DiscreteLaplace(scale=rows / (ladder * epsilon), sensitivity=rows)
        return _zoom(ladder, leaves=leaves, share=share, rows=rows, noise=noise)

    @classmethod
    def gaussian(cls, *, leaves: int, share: Fraction, rows: int, rho: Fraction, ladder: Fraction = HALF) -> Zoom:
        """ρ-zCDP of choice and ladder together."""
        noise = DiscreteGaussian(scale_squared=rows**2 / (2 * ladder * rho), sensitivity_squared=rows**2)
        return _zoom(ladder, leaves=leaves, share=share, rows=rows, noise=noise)

    @property
    def selection(self) -> PermuteAndFlip | Exponential:
        """The mechanism of the choice; it costs (1 − f)/f times what the ladder costs."""
        larger = max(self.share.numerator, self.share.denominator - self.share.numerator)
        sensitivity, more = larger * self.rows, (1 - self.ladder) / self.ladder
        if isinstance(self.noise, DiscreteLaplace):
            return PermuteAndFlip(epsilon=more * self.rows / self.noise.scale, sensitivity=sensitivity)
        squared = 4 * more * self.rows**2 / self.noise.scale_squared  # 8 times the ρ of the choice
        root = Fraction(isqrt(squared.numerator * _PRECISION**2 // squared.denominator), _PRECISION)
        return Exponential(epsilon=root, sensitivity=sensitivity)

    @property
    def scale(self) -> Any:
        """The scale of the noise of a rung."""
        return self.noise.scale

    @property
    def variance(self) -> Any:
        """The variance of the noise of a rung."""
        return self.noise.variance

    def margin(self, confidence: float) -> Any:
        """The half-width of the noise of a rung."""
        return self.noise.margin(confidence)

    def tail(self, at: Any) -> Any:
        """P(the noise of a rung is larger than that on either side)."""
        return self.noise.tail(at)

    @property
    def height(self) -> int:
        """How many rungs there are on either side."""
        return height_of(self.leaves)

    def missed(self, confidence: float) -> float:
        """By how many rows the chosen leaf misses the quantile at most, with that confidence, by the theorem of the choice: the
        best utility is 0 or more."""
        return self.selection.margin(str(confidence), candidates=self.leaves) / self.share.denominator

    def rungs(self, counts: npt.NDArray[Any], chosen: Whole) -> npt.NDArray[Any]:
        """How many rows lie in each rung."""
        before = np.zeros((len(counts), self.leaves + 1), dtype=counts.dtype)
        np.cumsum(counts, axis=1, out=before[:, 1:])
        found: npt.NDArray[Any] = np.diff(np.take_along_axis(before, cuts_around(chosen, self.leaves), axis=1), axis=1)
        return found

    def utilities(self, counts: Whole) -> Whole:
        """Of each leaf, b times less the rows by which it misses the quantile; above 0, how deep inside that lies."""
        upto = np.cumsum(counts, axis=1)
        total = self.share.numerator * upto[:, -1:]
        over = self.share.denominator * upto - total  # b·(rows up to leaf k − q·n): below 0 where the leaf lies too low
        found = over.copy()
        np.minimum(over[:, :1], total, out=found[:, :1])
        np.minimum(over[:, 1:], -over[:, :-1], out=found[:, 1:])
        return found

    def release(self, counts: npt.NDArray[Any], *, random: Random | None = None) -> Whole:
        """The chosen leaf of each group, and beside it the noisy counts of its rungs."""
        selection, utilities = self.selection, self.utilities(counts)
        if isinstance(selection, PermuteAndFlip):
            chosen = selection.release_each(utilities, random=random)
        else:
            chosen = np.array([selection.release(each, random=random) for each in utilities], dtype=np.int64)
        noisy = np.asarray(self.noise.release(self.rungs(counts, chosen), random=random))
        return np.concatenate([chosen[:, None], noisy], axis=1)

    def foreseen(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The result without noise, for leaves that hold equally many rows, or none."""
        chosen = np.full(len(counts), min(int(self.share * self.leaves), self.leaves - 1), dtype=np.int64)
        return np.concatenate([chosen[:, None], self.rungs(counts, chosen)], axis=1)

    def words(self) -> str:
        """What is done, for plans and releases."""
        selection = self.selection
        how = "permute-and-flip" if isinstance(selection, PermuteAndFlip) else "the exponential mechanism"
        return (
            f"{how} of ε = {float(selection.epsilon):.4g} among {self.leaves:,} leaves, then {law_of(self.noise)} of scale"
            f" {float(self.noise.scale):,.6g} on the counts of {2 * self.height + 1} ranges around the choice"
        )


@dataclass(frozen=True, kw_only=True)
class Uneven(Zoom):
    """A `Zoom` whose ladder has another part of the spend: a class of its own, since it is stored with one field more.

    >>> Zoom.laplace(leaves=74, share=HALF, rows=1, epsilon=Fraction(1), ladder=Fraction(1, 32)).noise.scale
    Fraction(32, 1)
    """

    part: Fraction

    @property
    def ladder(self) -> Fraction:
        """The ladder's part of the spend."""
        return self.part


def _zoom(ladder: Fraction, **how: Any) -> Zoom:
    return Zoom(**how) if ladder == HALF else Uneven(**how, part=ladder)


def law_of(noise: DiscreteLaplace | DiscreteGaussian) -> str:
    """The name of a noise's law.

    >>> law_of(DiscreteLaplace(scale=10))
    'DiscreteLaplace'
    """
    return _LAWS[type(noise)]


def height_of(leaves: int) -> int:
    """How many rungs lead from any leaf to the farthest.

    >>> height_of(1000), height_of(1024), height_of(1025)
    (10, 10, 11)
    """
    return (leaves - 1).bit_length()


def cuts_around(chosen: Whole, leaves: int) -> Whole:
    """For each group the first leaf of each rung, and after the last the number of leaves; rungs off the edge are empty.

    >>> cuts_around(np.array([5]), 16).tolist()
    [[0, 0, 2, 4, 5, 6, 7, 9, 13, 16]]
    """
    steps = np.left_shift(1, np.arange(height_of(leaves) + 1, dtype=np.int64))
    found: Whole = np.clip(chosen[:, None] + np.concatenate([1 - steps[::-1], steps]), 0, leaves)
    return found


def ladder_part(*, gaussian: bool, margins: bool) -> Fraction:
    """The ladder's part of a spend: what is left for the choice grows 3 % less exact by it, unless margins are asked for.

    >>> ladder_part(gaussian=False, margins=False), ladder_part(gaussian=True, margins=False)
    (Fraction(1, 32), Fraction(1, 16))
    """
    return HALF if margins else Fraction(1, 16) if gaussian else Fraction(1, 32)


def ladder_variance(leaves: int, share: Fraction, *, gaussian: bool) -> float:
    """The variance of a cumulative count less its share of all, in units of one count's for the whole spend.

    Half of the rungs lie on either side. Halving the spend makes the variance of Laplace noise four times as large, of Gaussian
    noise twice.

    >>> ladder_variance(1000, Fraction(1, 2), gaussian=False)
    21.0
    """
    rungs, part = 2 * height_of(leaves) + 1, float(share)
    return (2 if gaussian else 4) * rungs * ((1 - part) ** 2 + part**2) / 2
