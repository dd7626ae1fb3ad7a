"""The moments of several owners' rows with noise that they made together: what is measured, what one person changes, the noise.

An owner's rows are drawn into the declared box, centred on its middle, drawn into the ball of the declared radius B, and rounded
to steps of B·2^−16. Summed are 1, z and the upper triangle of zzᵀ: apart, each with noise of its own. The scatter about the mean,
R − vvᵀ/n, is made of the noisy sums afterwards. (One more row moves the centred scatter itself by up to 4n/(n + 1) and not by 1
times B², and its n would have to be exact: neither matters here.)

Guarantee: ρ-zCDP, one row more or less, towards anyone who lacks the noise shares of `honest` owners, for rows of finite
numbers, `MOST_ROWS` at most. Proof: what a row is rounded to follows from it alone (its squares are added in one order). So
with reach r ≥ ‖z‖ in steps, one row moves the numbers by 2^16, by z, by zᵢ² and by zᵢzⱼ (i < j). Measured by the deviations σ₀,
σ₁, σ and σ/√2 of their noises, that has the squared length 2^32/σ₀² + ‖z‖²/σ₁² + (Σzᵢ⁴ + 2Σ_{i<j}zᵢ²zⱼ²)/σ² ≤ 2^32/σ₀² + r²/σ₁²
+ r⁴/σ² = 2ρ, since the bracket is ‖z‖⁴ (Dwork, Talwar, Thakurta & Zhang 2014, "Analyze Gauss"). The noises are independent, and
their Rényi divergences add (Canonne, Kamath & Steinke 2020, Theorem 14). They are sums of shares: by `cloister.noise.shares` a
block of whole numbers that changes by Δ costs no more than Δ²/2σ², what a discrete Gaussian of σ would, or `gaussian_share`
refuses it. ∎

Rounding: n times a coordinate's half step at both factors, so n·B²·√d·2^−16 in the spectral norm and, for its square, at most a
5,000th of that more; `margin` counts it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteGaussian, Random
from cloister.noise.shares import gaussian_share
from cloister.privacy import ZCDP

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

BITS = 16
VALUE_BITS = 64
"""Of a sum of one owner, with its noise."""
MOST_ROWS = 1 << 26
_MOST_SCALE = 1 << 54
"""Rows add up to less than 2^60 steps, and 2^6 deviations of noise to no more."""
_PARTS = {"count": Fraction(4, 100), "sums": Fraction(10, 100), "products": Fraction(86, 100)}
"""Of ρ. Errors of the count and the mean come in by the mean's distance from the middle, those of products in full."""
_CHUNK = 1 << 16


def moments_of(rows: Floats, low: Floats, high: Floats, radius: float) -> Whole:
    """The count in steps of 2^−16, the sums, the diagonal and the upper triangle of the products, exactly.

    >>> moments_of(np.array([[1.0, 0.5]]), np.zeros(2), np.ones(2), 1.0).tolist() == [2**16, 2**15, 0, 2**30, 0, 0]
    True
    """
    features, total = len(low), np.zeros((len(low) + 1, len(low) + 1), dtype=np.int64)
    for first in range(0, len(rows), _CHUNK):
        # laid out by rows: by columns, the order in which a row's squares are added would depend on how many rows there are
        away = np.clip(np.ascontiguousarray(rows[first : first + _CHUNK]), low, high) - (low + high) / 2
        lengths = np.maximum(np.sqrt((away**2).sum(axis=1)), np.finfo(np.float64).tiny)
        whole = np.rint(away * (np.minimum(1.0, radius / lengths) * (2.0**BITS / radius))[:, None])
        wide = np.column_stack([np.full(len(whole), 2.0**BITS), whole])
        total += (wide.T @ wide).astype(np.int64)  # below 2^16 · 2^33: exact
    return np.concatenate(
        [[len(rows) << BITS], total[0, 1:] >> BITS, np.diag(total)[1:], total[1:, 1:][np.triu_indices(features, 1)]]
    )


@dataclass(frozen=True, kw_only=True)
class MomentNoise:
    """The noise of these moments, in shares of which `honest` are enough.

    >>> noise = MomentNoise(features=3, rho=Fraction(1, 10), honest=4)
    >>> noise.numbers, len(noise.sample(None)), noise.of_one_share
    (10, 10, ZCDP(rho='0.4'))
    """

    features: int
    rho: Fraction
    honest: int

    @property
    def numbers(self) -> int:
        """How many numbers are summed."""
        return 1 + self.features + self.features * (self.features + 1) // 2

    @property
    def reach(self) -> int:
        """The greatest length of a row in steps: rounding adds √d/2, and floating point less than the rest."""
        return (1 << BITS) + math.isqrt(self.features) // 2 + 2

    @property
    def of_one_share(self) -> ZCDP:
        """What the share of one owner alone promises its rows: where somebody opens the owner's own message."""
        return ZCDP(self.rho * self.honest)

    @cached_property
    def shares(self) -> tuple[tuple[DiscreteGaussian, int], ...]:
        """The law of each number's share, and of how many numbers: the count, the sums, the diagonal, the rest."""
        reach = {"count": 4**BITS, "sums": self.reach**2, "products": self.reach**4}
        squares = {name: reach[name] / (2 * self.rho * part) for name, part in _PARTS.items()}
        outer = self.features * (self.features - 1) // 2
        blocks = (
            (squares["count"], 1),
            (squares["sums"], self.features),
            (squares["products"], self.features),
            (squares["products"] / 2, outer),
        )
        if squares["products"] > _MOST_SCALE**2:
            raise InvalidParameter(
                "The privacy parameters are invalid",
                why=f"ρ = {float(self.rho):.2g} needs noise beyond 64 bits",
                instead="epsilon=1",
            )
        # as if the whole of ρ fell on each block: whether a share does follows from its width alone
        laws = [(DiscreteGaussian(scale_squared=each, sensitivity_squared=2 * self.rho * each), n) for each, n in blocks]
        return tuple((gaussian_share(law, self.honest), n) for law, n in laws)

    def sample(self, random: Random | None) -> Whole:
        """One owner's share of the noise of each number."""
        return np.concatenate([law.sample(number, random=random) for law, number in self.shares])

    def deviations(self, present: int) -> tuple[float, float, float]:
        """Of the noise in the count, a sum and a diagonal product, in steps, when so many owners added their share."""
        count, sums, diagonal = (math.sqrt(present * law.variance) for law, _ in self.shares[:3])
        return count, sums, diagonal


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMoments:
    """What the user of the key reads: sums over all owners' rows with their noise, in the units of the columns."""

    count: float
    sums: Floats
    """Of the rows' distances from `middle`."""
    products: Floats
    middle: Floats
    radius: float
    deviations: tuple[float, float, float]
    """Of the noise in the count, each sum, and the diagonal of the products; beside the diagonal 1/√2 of that."""
    owners: int
    """How many are in it."""
    guarantee: Any

    @classmethod
    def of_steps(
        cls, steps: npt.NDArray[Any], noise: MomentNoise, *, low: Floats, high: Floats, radius: float, owners: int, guarantee: Any
    ) -> NoisyMoments:
        """From sums in whole steps."""
        values, d, unit = steps.astype(np.float64), noise.features, radius * 2.0**-BITS
        products = np.zeros((d, d))
        products[np.triu_indices(d, 1)] = values[1 + 2 * d :]
        products = products + products.T + np.diag(values[1 + d : 1 + 2 * d])
        by_count, by_sum, by_product = noise.deviations(owners)
        return cls(
            count=max(float(values[0]) * 2.0**-BITS, 1.0),
            sums=values[1 : 1 + d] * unit,
            products=products * unit**2,
            middle=(low + high) / 2,
            radius=radius,
            deviations=(by_count * 2.0**-BITS, by_sum * unit, by_product * unit**2),
            owners=owners,
            guarantee=guarantee,
        )

    @property
    def scatter(self) -> Floats:
        """About the noisy mean: Σ(x − μ)(x − μ)ᵀ, noisy, and so with eigenvalues that may be below 0."""
        return np.asarray(self.products - np.outer(self.sums, self.sums) / self.count)

    def ridge(self, target: int, penalty: float | None = None) -> tuple[Floats, float]:
        """The coefficients of the other columns, in their order, and the intercept of the ridge regression of a column: made of
        the noisy moments alone, so at no further cost. A penalty that is not given is the norm that the noise has in the mean,
        without which the noisy scatter may have no inverse.

        >>> moments = NoisyMoments(
        ...     count=4.0, sums=np.zeros(2), products=np.array([[4.0, 8.0], [8.0, 16.0]]), middle=np.array([1.0, 5.0]),
        ...     radius=9.0, deviations=(0.0, 0.0, 0.0), owners=3, guarantee=None,
        ... )
        >>> coefficients, intercept = moments.ridge(1)
        >>> coefficients.tolist(), intercept
        ([2.0], 3.0)
        """
        scatter, mean = self.scatter, self.middle + self.sums / self.count
        others = [place for place in range(len(mean)) if place != target]
        weight = self.deviations[2] * math.sqrt(2 * len(mean)) if penalty is None else penalty
        inner = scatter[np.ix_(others, others)] + weight * np.eye(len(others))
        found = np.linalg.solve(inner, scatter[others, target])
        return np.asarray(found), float(mean[target] - found @ mean[others])

    def margin(self, confidence: float = 0.95) -> float:
        """The greatest error of the scatter in the spectral norm, so (Weyl) of each eigenvalue of it, at this confidence.

        A symmetric Gaussian matrix with deviations σ on the diagonal and σ/√2 beside it is below σ(√(2d) + t) in norm, a vector
        below σ₁(√d + t), but with probability 2e^(−t²/2) and e^(−t²/2) (Gordon; concentration of Lipschitz functions). The noise
        is sums of discrete Gaussians of thousands of steps, taken for Gaussian here. The centring adds what the errors of
        the count and the sums do to vvᵀ/n, and rounding of rows its worst.
        """
        if not 0 < confidence < 1:
            raise InvalidParameter(
                f"confidence={confidence!r} is invalid", why="it is between 0 and 1", instead="confidence=0.95"
            )
        d, tail = len(self.sums), math.sqrt(2 * math.log(6 / (1 - confidence)))
        by_count, by_sum, by_product = self.deviations
        matrix, vector = by_product * (math.sqrt(2 * d) + tail), by_sum * (math.sqrt(d) + tail)
        least, most = self.count - by_count * tail, self.count + by_count * tail
        if least <= 1:
            return math.inf
        size = float(np.linalg.norm(self.sums))
        centring = (2 * size * vector + vector**2) / self.count + (size + vector) ** 2 * (1 / least - 1 / self.count)
        return matrix + centring + most * self.radius**2 * math.sqrt(d) * 2.0**-BITS * 1.0002
