"""Noise made by several parties that is too small: for those who know a part of it, or when fewer take part than planned."""

import math
from typing import Any

import numpy as np

from cloister.attacks.broken.draws import Floats, laplace, on_grid, uniform
from cloister.attacks.broken.twin import ChannelTwin, Matrix, Twin
from cloister.noise import Random
from cloister.privacy.guarantee import PureDP

_PARTIES = 10


def _factors(n: int, random: Random) -> Floats:
    """B ~ Beta(1, N − 1)."""
    factors: Floats = 1 - uniform(n, random) ** (1 / (_PARTIES - 1))
    return factors


def _factored(data: Any, factors: Floats, random: Random) -> Floats:
    """√B·Σ Laplace of all parties, which is one Laplace noise of scale 1 for those who don't know B."""
    return on_grid(np.sqrt(factors) * laplace(1.0, (factors.size, _PARTIES), random).sum(axis=1)) + float(data)


def _known(data: Any, n: int, random: Random) -> Floats:
    factors = _factors(n, random)
    answers = _factored(data, factors, random)
    return np.column_stack([answers, on_grid((answers - 0.5) / factors)])


def _unknown(data: Any, n: int, random: Random) -> Floats:
    return _factored(data, _factors(n, random), random)


KNOWN_FACTOR = Twin(
    name="a Beta factor that one party knows",
    mistake=(
        "Ten owners make Laplace noise together as √B·ΣLap, and the party that draws the factor B ~ Beta(1, 9) knows it"
        " (Goryczka & Xiong 2017, without the secure product)."
    ),
    reason=(
        "The sum has the right law for those who don't know B. Given B, the noise has the scale √B: one B in eleven is below"
        " 0.01, and no ε holds for all of them. Shares that add up by themselves need no factor."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=0.0,
    right=1.0,
    broken=_known,
    mended=_unknown,
)

_SCALE, _REACH = 10.0, 60


def _of_shares(present: int, sized_for: int) -> Matrix:
    """The law of a count with the shares of those present, in two worlds that are 1 apart: on a circle far longer than the noise,
    what is beyond the reach together."""
    size = 1 << 13
    turns = 2 * np.pi * np.arange(size) / size
    transform = (1 + (np.sin(turns / 2) / math.sinh(0.5 / _SCALE)) ** 2) ** -(present / sized_for)
    chances = np.roll(np.fft.fft(transform).real / size, size // 2)
    middle = size // 2

    def world(shift: int) -> list[float]:
        inner = chances[middle - _REACH - shift : middle + _REACH + 1 - shift]
        return [*inner.tolist(), float(1 - inner.sum())]

    return [world(0), world(1)]


SHARES_FOR_ALL = ChannelTwin(
    name="shares for all, of whom half stay away",
    mistake="Ten owners add a tenth of the noise each (Pólya differences of scale 10), and five of them drop out or collude.",
    reason=(
        "What is left has half of the variance and a peak: the shape is 1/2, and 0 is far more likely than 1. Shares are sized"
        " for those who are honest and present at least."
    ),
    claims=PureDP("0.1"),
    truth=0.606,
    broken=lambda: _of_shares(5, 10),
    mended=lambda: _of_shares(5, 5),
)
