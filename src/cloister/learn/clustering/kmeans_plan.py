"""How k-means goes on once the number of rows is released: how many rounds, of how many dimensions, from how many cells."""

from dataclasses import dataclass
from fractions import Fraction

from cloister.noise.allowance import Share

GROWTH = Fraction(3, 2)
"""Each round gets this much more than the one before: the last one is what is released."""
_MOST_ROUNDS, _MOST_CELLS = 7, 8
_WIDE = 0.3
_RICH, _FLAT = 4, 10
"""Where so many rounds are affordable, the first one looks at several cells a centre, and groups them; in up to ten
dimensions, where cells fill a space well, half as many will do."""


@dataclass(frozen=True, kw_only=True)
class KMeansPlan:
    """How a fit goes on, once the number of rows is released."""

    rounds: int
    dimension: int
    """Of the random subspace that the rounds look at."""
    mean: Fraction
    """The portion for the mean."""
    cells: int
    """How many cells a centre has in the first round."""
    affordable: float
    """How many rounds of all dimensions there is enough for, in one cell a centre."""

    @property
    def reach(self) -> float:
        """Within how many deviations of the mean rows count as where they are: more, where there is so much for each round that
        the rows that are drawn in would hurt more than noise."""
        return _WIDE * self.affordable / self.rounds


def plan_of(share: Share, *, size: float, clusters: int, features: int, method: str, rounds: int | None) -> KMeansPlan:
    """What follows of the whole allowance (of which `share` tells), the released number of rows, and the dimensions.

    In one round with all of ε, a mean of n/k rows in d dimensions has noise of length about d·R/(εn/k), beside which a centre is
    some part of R: so rounds are affordable while εn/k is six times d, and below that fewer dimensions are better: keeping p of
    d leaves p/d of the squared signal and (p/d)³ of the squared noise. Gaussian noise has length √d·R/(μn/k), and shrinks no
    faster than the signal where dimensions are left out.
    """
    pure = share.currency == "epsilon"
    rows = size / clusters
    worth = float((share.amount if pure else share.mu_squared) / share.portion) * (rows if pure else rows**2)
    affordable = worth / ((6 if pure else 8) * max(features, 1))
    rich = affordable >= (_RICH if features > _FLAT else _RICH / 2)
    cells = 1 if method == "lloyd" or (method == "auto" and not rich) else between(3, int(affordable / 2), _MOST_CELLS)
    if method == "coreset":
        usual = 1
    else:
        usual = between(1, int(affordable), _MOST_ROUNDS) if cells == 1 else between(2, 1 + int(affordable / 4), _MOST_ROUNDS)
    wanted = rounds or usual
    held = 1 if rich else wanted * cells
    dimension = between(min(4, features), round(worth / (4 * held)), features) if pure else features
    mean = Fraction(7, 20 if dimension < features else 70)
    return KMeansPlan(rounds=wanted, dimension=dimension, mean=mean, cells=cells, affordable=affordable)


def between(least: int, value: int, most: int) -> int:
    """The value, or the bound that it passes.

    >>> between(1, 9, 7)
    7
    """
    return max(least, min(value, most))
