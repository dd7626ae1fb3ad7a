"""Rounds of k-means on noisy counts and sums: what is measured in a round, and what is made of it.

Rows are given about a released mean, and within a ball (within a box, where a table's engine sums them: kmeans_tables.py). A
round assigns each to its nearest centre, and measures how many rows each centre has and their sum; the new centre is the ratio,
drawn towards the mean by as much as its noise makes likely.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.ball import in_ball, noisy_group_sums
from cloister.noise import Random, Share

Floats = npt.NDArray[np.float64]

_CHUNK = 1 << 16
_FINE_BITS = 24
_LEAST_PART = 0.1
"""A cell counts as no smaller than this part of an even share of the rows, or four deviations of its noise where these are fewer:
what divides noise must not be near 0."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Released: for each centre how many rows are nearest to it (never below the noise of an empty one), their mean, and the
    variance of a coordinate of that mean; and the noisy numbers and sums that these are made of, with the variances of their
    noises (of a sum, in the mean over coordinates), and the step to which coordinates of rows were rounded."""

    counts: Floats
    means: Floats
    variance: Floats
    noisy: Floats
    sums: Floats
    count_noise: float
    sum_noise: float
    step: float = 0.0


def nearest(rows: Floats, centres: Floats) -> npt.NDArray[np.int64]:
    """The number of the nearest centre of each row. Exact where both are whole numbers no longer than 2^24.

    >>> nearest(np.array([[0.0], [4.0], [9.0]]), np.array([[1.0], [10.0]])).tolist()
    [0, 0, 1]
    """
    lengths = (centres**2).sum(axis=1) / 2
    found = np.empty(len(rows), dtype=np.int64)
    for first in range(0, len(rows), _CHUNK):
        part = rows[first : first + _CHUNK]
        found[first : first + _CHUNK] = (part @ centres.T - lengths).argmax(axis=1)
    return found


def measured(
    rows: Floats, centres: Floats, *, size: float, radius: float, count: Share, total: Share, random: Random | None
) -> Cells:
    """One round's counts and sums.

    Guarantee: the two shares together, for one row more or less; the centres and the size are released or public. A row has one
    nearest centre: it changes one count by 1, and one sum by a vector within the ball (`noisy_group_sums`). Which centre that is
    follows from the row and the centres alone: both are rounded to whole steps, whose products are exact. In floating point, a
    product's last bits depend on how many rows it is made for, so a tie of many rows could break the other way with one row more.
    """
    cells = len(centres)
    unit = max(radius, float(np.sqrt((centres**2).sum(axis=1).max()))) * 2.0**-_FINE_BITS
    labels = nearest(np.rint(in_ball(rows, radius) / unit), np.rint(centres / unit))
    counts = count.add(np.bincount(labels, minlength=cells), l1=1, l2_squared=1, random=random)
    sums, variance, step = noisy_group_sums(rows, labels, cells, radius=radius, share=total, random=random)
    return cells_of(counts, sums, variance, size=size, count_noise=count.variance(l1=1, l2_squared=1), step=step)


def cells_of(counts: Floats, sums: Floats, variance: float, *, size: float, count_noise: float, step: float = 0.0) -> Cells:
    """Cells of noisy counts and sums; `variance` is that of a coordinate of a sum, in the mean over coordinates.

    >>> cells_of(np.array([4.0, -2.0]), np.array([[8.0], [1.0]]), 1.0, size=20.0, count_noise=2.0).means.tolist()
    [[2.0], [1.0]]
    """
    least = max(min(_LEAST_PART * size / len(counts), 4 * math.sqrt(count_noise)), 1.0)
    held = np.maximum(counts, least)
    return Cells(
        counts=held,
        means=sums / held[:, None],
        variance=variance / held**2,
        noisy=counts,
        sums=sums,
        count_noise=count_noise,
        sum_noise=variance,
        step=step,
    )


def drawn_in(means: Floats, variance: Floats, *, spread: float) -> tuple[Floats, Floats]:
    """Centres drawn towards the mean, and by which factor each: τ²/(τ² + its noise), τ² the likely squared distance of centres.

    Empirical Bayes on released values (Efron & Morris 1973). τ² is the mean of ‖mean‖² less its noise, where noisier means weigh
    less, between a twentieth of the rows' mean squared distance and all of it.

    >>> drawn_in(np.array([[3.0, 4.0]]), np.array([0.0]), spread=25.0)[1].tolist()
    [1.0]
    """
    noise = means.shape[1] * variance
    lengths = (means**2).sum(axis=1)
    weights = 1 / (noise + spread) ** 2
    likely = float(np.clip((weights * (lengths - noise)).sum() / weights.sum(), 0.05 * spread, spread))
    factors = likely / (likely + noise)
    return means * factors[:, None], factors


def rounds(
    rows: Floats,
    centres: Floats,
    *,
    size: float,
    radius: float,
    spread: float,
    shares: Sequence[tuple[Share, Share]],
    random: Random | None,
) -> tuple[Floats, Cells]:
    """As many rounds as there are pairs of shares: centres (`drawn_in`), and the cells of the last round.

    Guarantee: all shares together: each round is chosen by the releases of those before it (adaptive composition).
    """
    rows = in_ball(rows, radius)
    for count, total in shares:
        cells = measured(rows, centres, size=size, radius=radius, count=count, total=total, random=random)
        centres, _ = drawn_in(cells.means, cells.variance, spread=spread)
        centres = in_ball(centres, radius)
    return centres, cells
