"""Models that don't keep what they promise, each reduced to the one step in which it goes wrong."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cloister.attacks.broken.draws import Floats, noised, noisy
from cloister.attacks.broken.twin import Twin
from cloister.noise import Random
from cloister.privacy.guarantee import PureDP


def _columns(data: Any) -> tuple[Floats, Floats]:
    rows = np.asarray(data, dtype=np.float64)
    return rows[:, 0], rows[:, 1]


def _moments(data: Any, scaled: Callable[[Floats], Floats]) -> tuple[float, float]:
    """A regression through the origin, y = w·x, from Σxy and Σx², after x was scaled."""
    x, y = _columns(data)
    x = scaled(x)
    return float((x * np.clip(y, -1, 1)).sum()), float(np.square(x).sum())


SCALED_REGRESSION = Twin(
    name="a regression that scaled its own rows",
    mistake="Features are divided by the largest that occurs, and noise is added for features within [−1, 1].",
    reason="One row of 8 among ones shrinks everybody else's share to an eighth: Σx² falls from 10 to 1.16, and Σxy with it.",
    claims=PureDP(1),
    truth=(10 - 10 / 64 - 1) / 2 + (10 - 10 / 8 + 1) / 2,
    left=((1.0, 1.0),) * 10,
    right=((1.0, 1.0),) * 10 + ((8.0, -1.0),),
    broken=noised(2, lambda data: _moments(data, lambda x: x / np.abs(x).max())),
    mended=noised(2, lambda data: _moments(data, lambda x: np.clip(x / 8, -1, 1))),
)


def _gradient(data: Any, most: float) -> float:
    """The sum over rows (x, y) of the gradient of the squared error at w = 0, each no longer than `most`."""
    x, y = _columns(data)
    return float(np.clip(-x * y, -most, most).sum())


GRADIENT_UNCLIPPED = Twin(
    name="a gradient unclipped",
    mistake="A step of private gradient descent adds the noise for gradients of length 1, and clips none of them.",
    reason="The gradient of a squared error has no bound: a row with x = 3 and y = −2 adds 6 to the sum.",
    claims=PureDP(1),
    truth=6.0,
    left=((1.0, 1.0), (0.5, -1.0)),
    right=((1.0, 1.0), (0.5, -1.0), (3.0, -2.0)),
    broken=noised(1, lambda data: _gradient(data, math.inf)),
    mended=noised(1, lambda data: _gradient(data, 1.0)),
)


def _noise_on_average(data: Any, n: int, random: Random) -> Floats:
    return noisy(1 / len(data), float(np.mean(data)), n, random)


NOISE_ON_THE_AVERAGE = Twin(
    name="noise on the average and not on the sum",
    mistake="The average of n gradients in [0, 1] gets noise of scale 1/(nε), where a person may come or go.",
    reason="It is the noisy sum divided by the exact n, which is private too: the width of the noise tells how many there are.",
    claims=PureDP(1),
    truth=math.inf,
    left=(0.0,),
    right=(0.0, 1.0),
    broken=_noise_on_average,
    mended=noised(2, lambda data: (np.sum(data), len(data))),  # at ½ each; the average is made of the two
)


def _support_vectors(data: Any, n: int, random: Random) -> Floats:
    """On a line: the largest row of the lower class, the smallest of the upper one, and a noisy weight for each."""
    x, label = _columns(data)
    stored = [float(x[label == 0].max()), float(x[label == 1].min())]
    return np.column_stack([np.tile(stored, (n, 1)), noisy(2, (1.0, -1.0), n, random)])


def _sums_of_classes(data: Any, n: int, random: Random) -> Floats:
    x, label = _columns(data)
    clipped = np.clip(x, 0, 8) / 8
    return noisy(1, (float(clipped[label == 0].sum()), float(clipped[label == 1].sum())), n, random)


STORES_ROWS = Twin(
    name="a support vector machine that stores rows",
    mistake="A kernel machine is published with noise on its weights, and with its support vectors as they are.",
    reason="Support vectors are people: the person closest to the other class is printed. Noise elsewhere hides nothing.",
    claims=PureDP(1),
    truth=math.inf,
    left=((1.0, 0), (2.0, 0), (6.0, 1), (7.0, 1)),
    right=((1.0, 0), (2.0, 0), (6.0, 1), (7.0, 1), (5.0, 1)),
    broken=_support_vectors,
    mended=_sums_of_classes,
)


def _one_draw(data: Any, n: int, random: Random) -> Floats:
    return noisy(1, 0.0, n, random)[:, None] + np.asarray(data, dtype=np.float64)


ONE_DRAW_FOR_ALL_CLASSES = Twin(
    name="one draw of noise for all classes",
    mistake="Naive Bayes adds one and the same draw of noise to the count of each class.",
    reason="What the classes differ by is then exact, and it is what the model predicts from.",
    claims=PureDP(1),
    truth=math.inf,
    left=(12, 30),
    right=(12, 31),
    broken=_one_draw,
    mended=noised(1),
)

_FEATURES = 3

SHARE_IN_EACH_FEATURE = Twin(
    name="one class's share spent in each feature",
    mistake="Naive Bayes spends the whole ε of a class on the sum of each of its three features, in [0, 1].",
    reason="Classes share out people, so they don't add up; features don't, so they do: 3ε.",
    claims=PureDP(1),
    truth=3.0,
    left=((0.5,) * _FEATURES,) * 2,
    right=((0.5,) * _FEATURES,) * 2 + ((1.0,) * _FEATURES,),
    broken=noised(1, lambda data: np.sum(data, axis=0)),
    mended=noised(_FEATURES, lambda data: np.sum(data, axis=0)),
)

_STRENGTH = 0.25


def _weight(data: Any) -> float:
    """The minimiser of −(1/n)Σ y·x·w + λw²/2: Σ y·x/(nλ)."""
    x, y = _columns(data)
    return float((np.clip(x, -1, 1) * y).sum() / (len(x) * _STRENGTH))


def _half_the_sensitivity(data: Any, n: int, random: Random) -> Floats:
    return noisy(1 / (len(data) * _STRENGTH), _weight(data), n, random)


def _whole_sensitivity(data: Any, n: int, random: Random) -> Floats:
    return noisy(2 / (len(data) * _STRENGTH), _weight(data), n, random)


OUTPUT_HALVED = Twin(
    name="output perturbation with half the sensitivity",
    mistake="A regularised linear model gets noise for 1/(nλ), where n is public and a person may change their row.",
    reason="A person who changes takes one gradient away and brings another: 2/(nλ) (Chaudhuri, Monteleoni & Sarwate 2011).",
    claims=PureDP(1),
    truth=2.0,
    left=((1.0, 1.0), (0.5, -1.0), (-0.5, 1.0), (1.0, 1.0)),
    right=((1.0, 1.0), (0.5, -1.0), (-0.5, 1.0), (1.0, -1.0)),
    broken=_half_the_sensitivity,
    mended=_whole_sensitivity,
)
