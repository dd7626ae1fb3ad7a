"""Mistakes at the source: reports of single people that say more than their ε allows."""

import math
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.broken.draws import Floats, bernoulli, on_grid, uniform
from cloister.attacks.broken.twin import ChannelTwin, Matrix, Twin
from cloister.noise import Random
from cloister.privacy.guarantee import PureDP

_VALUES = 4
_TRUTHFUL = math.e / (math.e + _VALUES - 1)


def _off_by_one(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    return np.where(bernoulli(_TRUTHFUL, n, random), int(data), (int(data) + random.below(_VALUES - 1, n)) % _VALUES)


def _direct_encoding(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    other = random.below(_VALUES - 1, n)
    return np.where(bernoulli(_TRUTHFUL, n, random), int(data), other + (other >= int(data)))


OFF_BY_ONE = Twin(
    name="direct encoding, off by one",
    mistake=(
        "A textbook's listing draws the lie of a direct encoding 0 to d − 2 places after the truth, and not 1 to d − 1: it may "
        "be the truth a second time, and is never the value before it."
    ),
    reason="So each report proves that one value is not the truth: the one after it.",
    claims=PureDP(1),
    truth=math.inf,
    left=3,
    right=0,
    broken=_off_by_one,
    mended=_direct_encoding,
)

_HALF = math.exp(0.5)
_REACH = (_HALF + 1) / (_HALF - 1)
"""C, the largest report of the piecewise mechanism at ε = 1."""


def _piecewise(value: float, n: int, random: Random, *, right_tail: Any) -> Floats:
    low = (_REACH + 1) / 2 * value - (_REACH - 1) / 2
    high = low + _REACH - 1
    place = uniform((3, n), random)
    tail = np.where(place[1] < right_tail(low, high), high + place[2] * (_REACH - high), -_REACH + place[2] * (low + _REACH))
    return on_grid(np.where(place[0] < _HALF / (_HALF + 1), low + place[2] * (high - low), tail))


PIECEWISE_BY_COIN = Twin(
    name="piecewise, with the tail chosen by a coin",
    mistake="The piecewise mechanism leaves its middle for one of the two tails by a fair coin: a published textbook's code.",
    reason=(
        "A short tail then gets as much as a long one. At the end of the range it's a single point: the density ratio has "
        "no bound, and the mean is biased."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=1.0,
    right=-1.0,
    broken=partial(_piecewise, right_tail=lambda low, high: 0.5),
    mended=partial(_piecewise, right_tail=lambda low, high: (_REACH - high) / (_REACH - high + low + _REACH)),
)


def duchi_channel(dimensions: int, *, ties: str) -> Matrix:
    """The law of Duchi's mechanism for vectors at ε = 1, for each of the corners {−1, 1}^d as the truth.

    A report is a corner: with probability e/(1 + e) a uniform one of the half-space that agrees with the truth, else of the
    other. In an even number of dimensions some corners are at a right angle to the truth. `ties` says where they belong: "one"
    half-space, "both", or "half" of the time each.

    >>> [round(max(row) / min(row), 2) for row in (duchi_channel(2, ties=kind)[0] for kind in ("one", "both", "half"))]
    [8.15, 3.72, 2.72]
    """
    share = {"one": (0.0, 1.0), "both": (1.0, 1.0), "half": (0.5, 0.5)}[ties]
    corners = list(product((-1, 1), repeat=dimensions))
    rows = []
    for truth in corners:
        agreement = np.array([sum(a * b for a, b in zip(truth, corner, strict=True)) for corner in corners])
        near = (agreement > 0) + share[0] * (agreement == 0)
        far = (agreement < 0) + share[1] * (agreement == 0)
        row = math.e / (1 + math.e) * near / near.sum() + 1 / (1 + math.e) * far / far.sum()
        rows.append(row.tolist())
    return rows


TIES_ON_ONE_SIDE = ChannelTwin(
    name="ties dropped on one side",
    mistake=(
        "Duchi's mechanism in an even number of dimensions, with corners at a right angle to the truth in one half-space only."
    ),
    reason="The half-spaces then differ in size: the ratio is 8.15, 5.98, 5.19 in 2, 4, 6 dimensions where e = 2.72 is allowed.",
    claims=PureDP(1),
    truth=1 + math.log(3),
    broken=lambda: duchi_channel(2, ties="one"),
    mended=lambda: duchi_channel(2, ties="half"),
)

TIES_ON_BOTH_SIDES = ChannelTwin(
    name="ties on both sides",
    mistake=(
        "Duchi's mechanism in an even number of dimensions, as it is usually printed: corners at a right angle are in both "
        "half-spaces."
    ),
    reason=(
        "A tie is then reported with probability 1/|T| in all, against 1/((1 + e^ε)|T|) for a corner that disagrees: the "
        "ratio is 1 + e^ε, not e^ε."
        " Ties belong to each half-space half of the time, and the mean needs C_d = 2^(d−1)/binom(d−1, d/2)."
    ),
    claims=PureDP(1),
    truth=math.log(1 + math.e),
    broken=lambda: duchi_channel(4, ties="both"),
    mended=lambda: duchi_channel(4, ties="half"),
)


def _levels(strict_if_yes: float, strict_if_no: float) -> Matrix:
    """(level, report) of a person who may choose between ε = ½ and ε = 2, for the truths yes and no."""
    rows = []
    for truth, strict in ((1, strict_if_yes), (0, strict_if_no)):
        row = []
        for level, chosen in ((0.5, strict), (2.0, 1 - strict)):
            truthful = math.exp(level) / (1 + math.exp(level))
            row += [chosen * (truthful if report == truth else 1 - truthful) for report in (1, 0)]
        rows.append(row)
    return rows


LEVEL_IN_CLEAR = ChannelTwin(
    name="a level of privacy that tells",
    mistake="People choose their own ε after they have seen the question, and the choice is sent in clear.",
    reason=(
        "Those with something to hide choose the stricter level: four to one here. The choice gives ln 4 on top of the "
        "report's ε."
    ),
    claims=PureDP(2),
    truth=2 + math.log(4),
    broken=lambda: _levels(0.8, 0.2),
    mended=lambda: _levels(0.5, 0.5),
)
