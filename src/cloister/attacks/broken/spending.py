"""More was released than was charged: noise used twice, parts forgotten, second tries for nothing, sums of ε that don't hold."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.broken.draws import Floats, bernoulli, laplace, noised, noisy
from cloister.attacks.broken.twin import ChannelTwin, Matrix, Twin
from cloister.noise import Random
from cloister.privacy.guarantee import ApproxDP, PureDP


def _reused(data: Any, n: int, random: Random) -> Floats:
    answers: Floats = laplace(2, (n, 1), random) + np.asarray(data, dtype=np.float64)
    return answers


NOISE_REUSED = Twin(
    name="noise used twice",
    mistake=(
        "Two counts are released at ε/2 each, with the same draw of noise (a fixed seed, a forked process, a cached generator)."
    ),
    reason="The difference of the two answers is the exact difference of the counts.",
    claims=PureDP(1),
    truth=math.inf,
    left=(30, 100),
    right=(30, 101),
    broken=_reused,
    mended=noised(2),
)


SPLIT_FORGETS_A_PART = Twin(
    name="a split that forgets a part",
    mistake=(
        "A variance from a noisy count, sum and sum of squares, each at ε/2: the count was forgotten when the budget was split."
    ),
    reason="Three releases at ε/2 are 1.5 ε.",
    claims=PureDP(1),
    truth=1.5,
    left=(10, 6, 4),
    right=(11, 7, 5),
    broken=noised(2),
    mended=noised(3),
)


def _with_row_count(data: Any) -> Any:
    return data[0], sum(data)


ROWS_UNCOUNTED = Twin(
    name="a number of rows for another ε",
    mistake=(
        "A synthesizer charges ε for its marginals, and releases the noisy number of rows for another ε that is counted nowhere."
    ),
    reason="The same person is in both: 2ε.",
    claims=PureDP(1),
    truth=2.0,
    left=(10, 30),
    right=(11, 30),
    broken=noised(1, _with_row_count),
    mended=noised(2, _with_row_count),
)

_TRIES = 30


def _failures(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    failed = noisy(1, (data,) * _TRIES, n, random) < 0.5
    return np.where(failed.all(axis=1), _TRIES, np.argmin(failed, axis=1))


def _one_try(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    return (noisy(1, data, n, random) < 0.5).astype(np.int64)


REFUND = Twin(
    name="a refund for a failed query",
    mistake="A query that fails (here: a noisy count too small to be of use) costs nothing, and may be asked again.",
    reason="That it failed is an answer. Thirty of them for nothing are a free oracle.",
    claims=PureDP(1),
    truth=_TRIES * math.log((2 - math.exp(-0.5)) / math.exp(-0.5)),
    left=0,
    right=1,
    broken=_failures,
    mended=_one_try,
)


def _replayed(data: Any, n: int, random: Random) -> Floats:
    return np.repeat(noisy(1, (data,), n, random), 3, axis=1)


REDRAW = Twin(
    name="a redraw on each retry",
    mistake="A client whose connection broke asks again, and the answer is drawn again under the first charge: three times here.",
    reason="Three draws are 3ε. A retry must return the stored answer.",
    claims=PureDP(1),
    truth=3.0,
    left=100,
    right=101,
    broken=noised(1, lambda data: (data,) * 3),
    mended=_replayed,
)


def _until_it_passes(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    noise = _integer_noise(n, random)
    while (copied := np.flatnonzero(noise == 0)).size:
        noise[copied] = _integer_noise(copied.size, random)
    return noise + int(data)


def _once(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    return _integer_noise(n, random) + int(data)


def _integer_noise(n: int, random: Random) -> NDArray[np.int64]:
    return np.round(laplace(1, n, random)).astype(np.int64)


UNTIL_A_TEST_PASSES = Twin(
    name="regenerated until a test passes",
    mistake="Synthetic data is drawn again until a privacy test finds no copy of the truth in it, and charged once.",
    reason="The test reads the data, and what passes it never equals the truth: each output rules out one truth for certain.",
    claims=PureDP(1),
    truth=math.inf,
    left=5,
    right=6,
    broken=_until_it_passes,
    mended=_once,
)

_EVERYTHING = 1_000_000
_MISHAP = 0.01


def _catastrophe(data: Any, n: int, random: Random) -> Floats:
    return np.where(bernoulli(_MISHAP, n, random), _EVERYTHING + float(data), noisy(1, data, n, random))


CATASTROPHE = Twin(
    name="the catastrophe mechanism",
    mistake="An ε-private answer with probability 1 − δ, and all the data with probability δ = 0.01.",
    reason=(
        "It is (ε, δ)-private to the letter: that is why δ must be far below one in the number of people. Without the "
        "δ it has no ε at all."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=100,
    right=101,
    broken=_catastrophe,
    mended=noised(1),
)

_QUERIES = 500
_TRUTHFUL = Fraction(731, 1000)
"""Just below e/(1 + e): each of the answers is private with ε = 0.9997."""


def _truthful_answers() -> Matrix:
    """How many of 500 randomised responses say "yes", when the truth is yes and when it is no."""
    yes, no = _TRUTHFUL, 1 - _TRUTHFUL
    weights = [math.comb(_QUERIES, k) for k in range(_QUERIES + 1)]
    row = [w * yes**k * no ** (_QUERIES - k) for k, w in enumerate(weights)]
    return [row, row[::-1]]


ADVANCED_COMPOSITION = ChannelTwin(
    name="a popular form of advanced composition",
    mistake='2ε√(2k ln(1/δ)), which is said to "win from about 70 queries on at ε = 1": 214.59 for k = 500, δ = 10⁻⁵.',
    reason="The theorem has ε√(2k ln(1/δ)) + kε(e^ε − 1). 500 randomised responses have δ = 0.78 at 214.59; they need 311.8.",
    claims=ApproxDP("214.59", "0.00001"),
    truth=311.8,
    broken=_truthful_answers,
    mended=_truthful_answers,
    keeps=ApproxDP("311.8", "0.00001"),
)
