"""Where the rows lie: their noisy number, mean, and mean squared distance from it.

Whatever groups or turns rows looks at them from their mean, within the distance that most of them keep: the noise of all that
follows is as large as that distance, and the declared box is often far larger.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.learn.frame.ball import noisy_group_sums, noisy_total
from cloister.learn.frame.bounds import Box, row_lengths
from cloister.learn.frame.margins import wider_quantile
from cloister.learn.frame.parameters import RADIUS
from cloister.noise import Random, Share

Floats = npt.NDArray[np.float64]

_SHORTEST = 1e-140
"""Squares of lengths as short as a millionth of this are precise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMean:
    """A noisy mean, with the variance of its noise by coordinate, and how far rows can be from it on the average."""

    mean: Floats
    variance: Floats
    most: float
    """No set of rows within the box, or the declared radius, has a mean squared distance from its own mean above this."""
    sums: Floats
    sum_noise: Floats
    """What the mean is made of: noisy sums about the middle of the box, by coordinate, and the variances of their noise."""
    moved: Floats
    """The mean less the middle."""
    step: Floats
    """To which the coordinates of rows were rounded."""


def declared_radius(box: Box, radius: float | None) -> float:
    """How far a row may be from the middle of the box: the half of its diagonal, or the declared radius where that is less.

    >>> from cloister.learn.frame.bounds import box_of
    >>> declared_radius(box_of((0, 6), features=4), None), declared_radius(box_of((0, 6), features=4), 2)
    (6.0, 2.0)
    """
    half = (box.high - box.low) / 2
    corner = wide_enough(float(half.max(initial=0.0))) and float(np.sqrt((half**2).sum()))
    if radius is None:
        return corner
    RADIUS.check("radius", radius)
    return min(corner, wide_enough(float(radius)))


def wide_enough(length: float) -> float:
    """A declared length whose square floating point can hold: else steps of it would be no numbers, and noise would hide nothing.

    >>> wide_enough(0.0), wide_enough(0.5)
    (0.0, 0.5)
    """
    if 0 < length < _SHORTEST:
        raise InvalidParameter(
            "The bounds or the radius are invalid", why=f"they are narrower than {_SHORTEST:g}", instead="bounds=(0, 1)"
        )
    return length


def size_variance(share: Share) -> float:
    """Of the noise in `noisy_size`."""
    return share.variance(l1=1, l2_squared=1)


def noisy_size(count: int, share: Share, random: Random | None) -> float:
    """The number of rows with noise, and at least 1."""
    noisy = share.add(np.array([count], dtype=np.int64), l1=1, l2_squared=1, random=random)[0]
    return max(float(noisy), 1.0)


def mean_of(X: Floats, box: Box, *, size: float, radius: float, share: Share, random: Random | None) -> NoisyMean:
    """The mean, from noisy sums about the middle of the box, drawn towards the middle by as much as the noise makes likely.

    Guarantee: what the share says; `size` is public (released before). Under a declared radius, a row is drawn into that ball,
    and the noise is the same in all directions. Else coordinates are measured in units of the roots of the box's half-widths h,
    in which a row is no longer than √Σh: that makes the sum of the variances least, (Σh)² against dΣh² without it.

    Drawing in is Stein's estimator (James & Stein 1961), on released values alone. `most` follows from Bhatia & Davis (2000): in
    a box, the variance of a feature is at most (high − mean)(mean − low); in a ball, the sum of all is at most R² − ‖mean‖².
    """
    half, middle = (box.high - box.low) / 2, box.middle
    active = half > 0
    if not active.any():
        none = np.zeros_like(middle)
        return NoisyMean(mean=middle.copy(), variance=none, most=0.0, sums=none, sum_noise=none, moved=none, step=none)
    wide = half[active]
    by_box = wide.sum() ** 2 <= len(wide) * radius**2
    unit = np.sqrt(wide) if by_box else np.ones_like(wide)
    reach = float(np.sqrt(wide.sum())) if by_box else radius
    rows = (X - middle)[:, active] / unit
    sums, variance, step = noisy_group_sums(
        rows, np.zeros(len(rows), dtype=np.int64), 1, radius=reach, share=share, random=random
    )
    offset, spread = sums[0] * unit / size, variance * unit**2 / size**2
    length = float((offset**2).sum())
    offset = offset * max(0.0, 1.0 - float(spread.sum()) / length) if length > 0 else offset
    offset = np.clip(offset, -wide, wide)
    most = min(float((wide**2 - offset**2).sum()), radius**2 - float((offset**2).sum()))
    found, noise, moved, steps = (np.zeros_like(middle) for _ in range(4))
    found[active], noise[active], moved[active], steps[active] = sums[0] * unit, variance * unit**2, offset, step * unit
    return NoisyMean(
        mean=middle + moved,
        variance=noise / size**2,
        most=max(most, 0.01 * radius**2),
        sums=found,
        sum_noise=noise,
        moved=moved,
        step=steps,
    )


class Spread(NamedTuple):
    """The released mean squared distance from the mean, and what it is made of: a noisy total and number, with the variances of
    their noises."""

    value: float
    total: float
    total_noise: float
    size: float
    size_noise: float

    def beyond(self, miss: float) -> float:
        """What the squared distances that a ball of that spread lost because of noise may add up to, but for that probability.

        0 where the exact spread is at most twice the released: such a ball is as wide as it would be without noise, or nearly.
        Else all of them, since nothing is known of the rows that were drawn in.

        >>> Spread(0.5, 500.0, 100.0, 1000.0, 100.0).beyond(0.01), round(Spread(0.5, 5.0, 100.0, 10.0, 100.0).beyond(0.01))
        (0.0, 42)
        """
        q = wider_quantile(1 - miss / 2)
        fewest, most = self.size - q * math.sqrt(self.size_noise), self.total + q * math.sqrt(self.total_noise)
        return max(most, 0.0) if most > 2 * self.value * fewest else 0.0


def spread_of(
    centred: Floats, place: NoisyMean, *, size: float, size_noise: float, share: Share, random: Random | None
) -> Spread:
    """The mean squared distance from the mean, with noise, between a hundredth of the greatest possible and that.

    Guarantee: what the share says, for rows about a mean that is released, by which a row adds at most `place.most`: greater
    distances count as that.
    """
    total, noise = noisy_total(row_lengths(centred) ** 2, most=place.most, share=share, random=random)
    value = float(np.clip(total / size, 0.01 * place.most, place.most))
    return Spread(value, total, noise, size, size_noise)
