"""Noise that is too small for what one person can change."""

import math
from typing import Any

import numpy as np

from cloister.attacks.broken.draws import noised
from cloister.attacks.broken.twin import ChannelTwin, Matrix, Twin
from cloister.privacy.guarantee import PureDP

HALF_THE_SENSITIVITY = Twin(
    name="half the sensitivity",
    mistake="A histogram with noise of scale 1/ε, under the promise that a person may change an answer (bounded neighbours).",
    reason="A person who moves from one cell to another changes two counts by 1 each: the sensitivity is 2.",
    claims=PureDP(1),
    truth=2.0,
    left=(10, 10),
    right=(9, 11),
    broken=noised(1),
    mended=noised(2),
)


SCALE_ONE = Twin(
    name="scale 1 whatever ε",
    mistake="A published histogram function takes ε and always adds noise of scale 1.",
    reason="Noise of scale 1 on counts is ε = 1, also when 0.1 was asked for.",
    claims=PureDP("0.1"),
    truth=1.0,
    left=(10, 20, 30),
    right=(11, 20, 30),
    broken=noised(1),
    mended=noised(10),
)

_DIMENSIONS = 4
_STEP = 0.5
"""Each coordinate moves by ½ in 4 dimensions: a Euclidean length of 1."""


L2_FOR_L1 = Twin(
    name="Laplace noise for a Euclidean length",
    mistake=(
        "The vector mechanism of objective perturbation, implemented as independent Laplace noise scaled to the L2 sensitivity."
    ),
    reason="Independent Laplace noise covers the L1 length, which is √d times the L2 length in the worst direction.",
    claims=PureDP(1),
    truth=2.0,
    left=(0.0,) * _DIMENSIONS,
    right=(_STEP,) * _DIMENSIONS,
    broken=noised(1),
    mended=noised(math.sqrt(_DIMENSIONS)),
)

_UTILITY_PER_PERSON = 10


def _selection(sensitivity: int) -> Matrix:
    """The exponential mechanism between two candidates, ten points of utility a vote: votes 5 and 5, and one voter fewer."""
    rows = []
    for votes in ((5, 5), (5, 4)):
        advantage = _UTILITY_PER_PERSON * (votes[0] - votes[1]) / (2 * sensitivity)
        first = 1 / (1 + math.exp(-advantage))
        rows.append([first, 1 - first])
    return rows


UTILITY_OUTGROWS_SENSITIVITY = ChannelTwin(
    name="utilities that outgrow their sensitivity",
    mistake="The exponential mechanism on utilities of ten points a vote, with the sensitivity of one point a vote.",
    reason=(
        "A vote moves a utility by 10, so sensitivity 1 spends 10 times what it charges. (Divided by 1000 instead, it is "
        "safe but useless.)"
    ),
    claims=PureDP(1),
    truth=math.log(0.5 * (1 + math.exp(5))),
    broken=lambda: _selection(1),
    mended=lambda: _selection(_UTILITY_PER_PERSON),
)

CENTRED_SCATTER = Twin(
    name="a centred scatter, noised as an uncentred one",
    mistake="Σ(x − mean)² of values in [−1, 1], with the sensitivity 1 of Σx²: as in published covariance estimators.",
    reason=(
        "One more value moves the mean too; the scatter moves by up to 4n/(n+1). Noise Σx² and Σx apart, and centre afterwards."
    ),
    claims=PureDP(1),
    truth=4 * 15 / 16,
    left=(-1.0,) * 15,
    right=(-1.0,) * 15 + (1.0,),
    broken=noised(1, lambda data: np.square(data - np.mean(data)).sum()),
    mended=noised(2, lambda data: (np.square(data).sum(), np.sum(data))),
)

_LOW, _HIGH, _MEMBERS = 0.0, 82.0, 10


def _variance(data: Any) -> float:
    return float(np.round(np.var(np.asarray(data, dtype=np.float64)) * 1024) / 1024)


NAIVE_BAYES_VARIANCE = Twin(
    name="the variance of naive Bayes",
    mistake="Published private naive Bayes gives a variance the sensitivity n(u − l)/(n + 1): 74.5 for n = 10 and a range of 82.",
    reason=(
        "It has the unit of a range, not of its square: one more value at the other end moves the variance by n(u − l)²/(n "
        "+ 1)² = 555.7."
    ),
    claims=PureDP(1),
    truth=555.7 / 74.5454,
    left=(_LOW,) * _MEMBERS,
    right=(_LOW,) * _MEMBERS + (_HIGH,),
    broken=noised(_MEMBERS * (_HIGH - _LOW) / (_MEMBERS + 1), _variance),
    mended=noised((_HIGH - _LOW) ** 2 / 4, _variance),
)

MISSING_CLAMP = Twin(
    name="a missing clamp",
    mistake="A sum with noise for the declared bounds [0, 10], of values that nobody clamped to them.",
    reason=(
        "A declared bound is a promise about the data that only clamping makes true: a row of 100 weighs ten times what was "
        "charged."
    ),
    claims=PureDP(1),
    truth=10.0,
    left=(3, 5, 8),
    right=(3, 5, 8, 100),
    broken=noised(10, sum),
    mended=noised(10, lambda data: sum(min(10, max(0, each)) for each in data)),
)
