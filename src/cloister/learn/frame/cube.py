"""Noise that fits a cube: for several whole numbers of which one person moves each by at most the same size, under pure ε.

Independent Laplace noise for D numbers, each moved by at most M, needs scale DM/ε each: variance 2D²(M/ε)². What a person can do
is not all of that: the change lies in a cube. Noise made for the cube has variance (D + 1)(D + 2)/3 · (M/ε)², six times less for
many numbers.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace, Random, default_random
from cloister.privacy import Exact, PureDP, exact_positive

_FEWEST_SPARE = 16


@dataclass(frozen=True, init=False)
class CubeNoise:
    """Noise z on the whole numbers in D dimensions with P(z) ∝ exp(−(ε/M)·‖z‖∞), where ‖z‖∞ is the largest size of a coordinate.

    Guarantee: ε-DP between neighbours whose vectors of whole numbers differ by at most M = `reach` in each coordinate (the
    K-norm mechanism, Hardt & Talwar 2010, for the cube; Awan & Slavković 2021 on which norm to choose). Proof: at any point y the
    probabilities in the two worlds are proportional, by the same constant, to α^‖y−v‖ and α^‖y−v′‖ with α = e^(−ε/M), and
    | ‖y−v‖ − ‖y−v′‖ | ≤ ‖v−v′‖ ≤ M. Where a person lies in one of several groups, each group's vector gets its own noise, and
    parallel composition makes the ε of one that of all.

    Exact. A radius R with P(R = r) ∝ (2r+1)^D αʳ, then a uniform point of the cube {−r … r}^D: P(z) ∝ Σ_{r ≥ ‖z‖} αʳ ∝ α^‖z‖.
    The radius is proposed by the sum of D+1 geometric numbers, P ∝ C(r+D, D) αʳ, and kept with probability ∏ (2r+1)/(2r+2i), i =
    1 … D, which is the ratio of the two up to a constant, and at most 1; the coin is thrown in whole numbers. A geometric number
    is a discrete Laplace one, given that it is not negative.

    Error: each coordinate has mean 0 and at most `variance`, that of the law on the real numbers, which the whole numbers come
    close to where M/ε is large; coordinates share their radius, and are uncorrelated.

    >>> noise = CubeNoise(dimension=11, reach=1, epsilon="0.1")
    >>> noise.guarantee, noise.variance, noise.sample(2, random=Random.deterministic(1)).shape
    (PureDP(epsilon='0.1'), 5200.0, (2, 11))
    """

    dimension: int
    reach: int
    epsilon: Fraction

    def __init__(self, *, dimension: int, reach: int, epsilon: Exact) -> None:
        if dimension < 1 or reach < 1:
            raise InvalidParameter(
                f"dimension={dimension}, reach={reach} is invalid", why="both are whole numbers above 0", instead="reach=1"
            )
        object.__setattr__(self, "dimension", int(dimension))
        object.__setattr__(self, "reach", int(reach))
        object.__setattr__(self, "epsilon", exact_positive(epsilon, "epsilon"))

    @property
    def guarantee(self) -> PureDP:
        """ε."""
        return PureDP(self.epsilon)

    @property
    def variance(self) -> float:
        """Of each coordinate, at most: (D+1)(D+2)/3 · (M/ε)²."""
        return float(Fraction((self.dimension + 1) * (self.dimension + 2), 3) * (self.reach / self.epsilon) ** 2)

    def sample(self, n: int, *, random: Random | None = None) -> npt.NDArray[Any]:
        """n draws, one a row: int64, or Python integers where a radius is above 2⁶²."""
        source = random or default_random()
        rows = [self._one(radius, source) for radius in self._radii(n, source)]
        if not rows:
            return np.zeros((0, self.dimension), dtype=np.int64)
        return np.stack(rows)

    def release(self, values: npt.NDArray[Any], *, random: Random | None = None) -> npt.NDArray[np.float64]:
        """Whole numbers with noise; each row is a vector of its own, of another group of people."""
        if values.dtype.kind not in "iu" or values.ndim != 2 or values.shape[1] != self.dimension:
            raise InvalidParameter(
                "The values are invalid", why=f"noise is added to rows of {self.dimension} whole numbers", instead="sums in steps"
            )
        return np.asarray((values.astype(object) + self.sample(len(values), random=random).astype(object)).astype(np.float64))

    def _radii(self, n: int, random: Random) -> list[int]:
        found: list[int] = []
        while len(found) < n:
            missing = n - len(found)
            parts = self._geometric(missing * (self.dimension + 1), random).reshape(missing, self.dimension + 1)
            found += [radius for radius in parts.sum(axis=1).tolist() if self._kept(radius, random)]
        return found

    def _kept(self, radius: int, random: Random) -> bool:
        whole = prod(2 * radius + 2 * i for i in range(1, self.dimension + 1))
        return bool(random.below_one(whole) < (2 * radius + 1) ** self.dimension)

    def _geometric(self, n: int, random: Random) -> npt.NDArray[Any]:
        law = DiscreteLaplace(scale=self.reach / self.epsilon, sensitivity=1)
        parts: list[npt.NDArray[Any]] = []
        have = 0
        while have < n:
            drawn = law.sample(2 * (n - have) + _FEWEST_SPARE, random=random)
            parts.append(drawn[drawn >= 0])
            have += len(parts[-1])
        return np.concatenate([part.astype(object) for part in parts])[:n]

    def _one(self, radius: int, random: Random) -> npt.NDArray[Any]:
        return np.asarray(random.below(2 * radius + 1, self.dimension) - radius)
