"""Between which values the mean and the variance of each class and feature lie, from the noisy sums that were measured.

Let n, S and Q be the noisy number of rows, Σc and Σc², with noises e, f and g. All is in c, in [−1, 1] (`moments.py`).

Mean. θ = S*/n* is the true one exactly where S − θn is nothing but the noise f − θe, so all θ for which S − θn lies within q
deviations of that noise make an interval that holds the truth as often as q says, however few rows there are (Fieller 1954).

Variance. With m = S/n and R = Q − 2mS + m²n these are identities: for the true variance v,

    R − vn = (g − 2mf + m²e) − ve + n*(θ − m)²,    and n*(θ − m)² = (f − me)²/n*.

The last is between 0 and t²/(n − u), where t and u are half-widths of f − me and of e that hardly ever fail: a twentieth of what
may be missed goes to them. What is neglected: m is itself noisy, and taken as it is.

From arrays, c and c² were rounded to steps (`moments.BITS`), by half a step at most: a mean is off by no more, a variance by no
more than three of these. From a table, noise is in steps that may be as large as itself: what lies within q deviations on the
line does so within half a step more, and (1 − θ)B₂ − (1 + θ)B₀ − θB₁ counts a part up to twice, Σ(c − m)² − vn up to 4 times.

Where the noise could make n nothing, every value is possible: a mean between −1 and 1, a variance between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cloister.learn.bayesian.moments import BITS, ClassMoments, Floats
from cloister.learn.frame.margins import miss_of, wider_quantile

_OTHERS = 0.05
_ROUNDED = 2.0 ** -(BITS + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The noisy numbers of rows, Σc and Σc², a row a class; the variances and covariances of their noises, a row a kind.

    >>> moments = ClassMoments(sizes=np.array([100.0]), counts=np.array([[100.0]]), sums=np.array([[0.0]]),
    ...     squares=np.array([[25.0]]), size_variance=4.0, count_variance=4.0, sum_variance=4.0, square_variance=4.0)
    >>> found = Measured.of(moments)
    >>> [round(float(end[0, 0]), 3) for end in found.means(0.95)], [round(float(end[0, 0]), 2) for end in found.variances(0.95)]
    ([-0.042, 0.042], [0.2, 0.29])
    """

    numbers: Floats
    """Counts, sums and sums of squares: 3 × classes × features."""
    noises: Floats
    """Of the counts, the sums, the squares; of squares with counts, of sums with counts; and the step of all of them, which older
    models did not keep: 6 × features."""

    @classmethod
    def of(cls, moments: ClassMoments) -> Measured:
        """What was measured."""
        parts = (
            moments.count_variance,
            moments.sum_variance,
            moments.square_variance,
            moments.covariance,
            moments.sum_covariance,
            moments.step,
        )
        noises = np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), (moments.features,)) for part in parts])
        return cls(numbers=np.stack([moments.counts, moments.sums, moments.squares]), noises=noises)

    def means(self, confidence: float) -> tuple[Floats, Floats]:
        """The least and the greatest mean, each by itself with that confidence."""
        n, S, _ = self.numbers
        e, f, _, _, fe, *step = self.noises
        off = _ROUNDED + self._step(step)
        low, high = fieller(S, n, q=wider_quantile(confidence), of_top=f, of_count=e, both=fe, ends=(-1.0, 1.0))
        return np.maximum(low - off, -1.0), np.minimum(high + off, 1.0)

    def variances(self, confidence: float) -> tuple[Floats, Floats]:
        """The least and the greatest variance."""
        n, S, Q = self.numbers
        e, f, g, ge, fe, *step = self.noises
        off = 3 * _ROUNDED + 2 * self._step(step)
        miss = miss_of(confidence)
        q, rare = wider_quantile(1 - miss * (1 - _OTHERS)), wider_quantile(1 - miss * _OTHERS / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            m = np.clip(np.where(n > 0, S / n, 0.0), -1.0, 1.0)
            left = n - rare * np.sqrt(e)
            extra = np.where(left > 0, rare**2 * (f - 2 * m * fe + m**2 * e) / left, np.inf)
        R = Q - 2 * m * S + m**2 * n
        top = g + 4 * m**2 * f + m**4 * e + 2 * m**2 * ge - 4 * m**3 * fe
        both = ge - 2 * m * fe + m**2 * e
        least, _ = fieller(R - extra, n, q=q, of_top=top, of_count=e, both=both, ends=(0.0, 1.0))
        _, most = fieller(R, n, q=q, of_top=top, of_count=e, both=both, ends=(0.0, 1.0))
        least, most = np.maximum(least - off, 0.0), np.minimum(most + off, 1.0)
        return np.where(left > 0, least, 0.0), np.where(left > 0, most, 1.0)

    def _step(self, step: list[Floats]) -> Floats:
        """A step of noise, over the rows of each class."""
        return np.asarray(sum(step, np.zeros(1)) / np.maximum(self.numbers[0], 1.0))


def fieller(
    top: Floats,
    count: Floats,
    *,
    q: float,
    of_top: Floats,
    of_count: Floats,
    both: Floats,
    ends: tuple[Floats | float, Floats | float],
) -> tuple[Floats, Floats]:
    """All θ between the ends with |top − θ·count| ≤ q deviations of its noise: between the roots of a parabola, or everywhere
    where it opens downwards. Its discriminant is never below 0: at θ = top/count the inequality holds."""
    a = count**2 - q**2 * of_count
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        b = top * count - q**2 * both
        c = top**2 - q**2 * of_top
        root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
        low, high = (b - root) / a, (b + root) / a
    known = (a > 0) & (count > 0) & np.isfinite(low) & np.isfinite(high)
    return np.where(known, np.clip(low, *ends), ends[0]), np.where(known, np.clip(high, *ends), ends[1])
