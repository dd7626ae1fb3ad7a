"""Something that should have been declared was looked up in the data: a bound, a scale, a grid, a domain, a hierarchy level."""

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.broken.draws import Floats, bernoulli, exponential, noised, noisy, uniform
from cloister.attacks.broken.twin import Twin
from cloister.noise import Random
from cloister.privacy.guarantee import ApproxDP, PureDP


def _clamp_at_maximum(data: Any, n: int, random: Random) -> Floats:
    return noisy(max(data), sum(data), n, random)


BOUND_LOOKED_UP = Twin(
    name="a bound looked up",
    mistake="The clamping bound of a sum is the largest value in the data.",
    reason=(
        "The noise then says how large the largest value is: without the 100, an answer above 30 happens once in 10¹¹ times."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=(1, 1, 1, 1),
    right=(1, 1, 1, 1, 100),
    broken=_clamp_at_maximum,
    mended=noised(100, lambda data: sum(min(100, each) for each in data)),
)

_STEP, _SCALE, _RIVALS = Fraction(1, 1000), 0.16, 60


def _best_on(unit: Fraction, data: tuple[Fraction, ...], n: int, random: Random) -> NDArray[np.int64]:
    """Who is best after discrete Laplace noise on multiples of a unit, ties broken by lot."""
    places = np.array([float(each / unit) for each in data])
    up, down = (np.floor(exponential(_SCALE / float(unit), (n, len(data)), random)) for _ in range(2))
    found: NDArray[np.int64] = np.argmax(places + up - down + uniform((n, len(data)), random) / 2, axis=1).astype(np.int64)
    return found


def _best_on_their_own_grid(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    return _best_on(Fraction(1, math.lcm(*(each.denominator for each in data))), data, n, random)


GRID_LOOKED_UP = Twin(
    name="a grid looked up",
    mistake=(
        "Report-noisy-max with discrete Laplace noise on the common denominator of these utilities (our own, until an audit of"
        " fractions)."
    ),
    reason=(
        "A denominator is as private as the number above it: one thousandth more changes the grid, and with it the law of all"
        " noise. Declare the grid, and round to it."
    ),
    claims=PureDP("0.0125"),
    truth=math.inf,
    left=(Fraction(1), *(Fraction(0),) * _RIVALS),
    right=(Fraction(1), *(_STEP,) * _RIVALS),
    broken=_best_on_their_own_grid,
    mended=partial(_best_on, _STEP),
    runs=80_000,
)


def _scaled_by_data(data: Any, n: int, random: Random) -> Floats:
    low, high = min(data), max(data)
    return noisy(1, round(sum((each - low) / (high - low) for each in data) * 1024) / 1024, n, random)


SCALER = Twin(
    name="bounds that a scaler took",
    mistake="Features are brought to [0, 1] by the minimum and maximum of the data, and [0, 1] is then called a public bound.",
    reason="One extreme person changes everybody's scaled value, so the sum moves by as many as there are.",
    claims=PureDP(1),
    truth=7.9,
    left=(0, *(10,) * 9),
    right=(0, *(10,) * 9, 1000),
    broken=_scaled_by_data,
    mended=noised(1, lambda data: sum(min(1024, max(0, each)) / 1024 for each in data)),
)


def _occurring_cells(data: Any, n: int, random: Random) -> Floats:
    return np.where(np.asarray(data) > 0, noisy(1, data, n, random), np.nan)


OCCURRING_CELLS = Twin(
    name="only the cells that occur",
    mistake="A noisy marginal, published for those cells only that occur in the data: what GROUP BY returns.",
    reason=(
        "Whether a cell is there is exact: the only person of a village is seen to be in or out. Declare the keys, or "
        "spend δ on a threshold."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=(40, 0),
    right=(40, 1),
    broken=_occurring_cells,
    mended=noised(1),
)

_CLASS, _SAMPLED = 20, 0.5


def _sampled_counts(sizes: tuple[int, int], n: int, random: Random) -> NDArray[np.int64]:
    counts = np.stack([bernoulli(_SAMPLED, (n, size), random).sum(axis=1) for size in sizes], axis=1)
    return np.where(counts >= _CLASS, counts, 0)


def _level_by_looking(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    fine = min(data) >= 2 * _CLASS
    sizes = tuple(data) if fine else (sum(data), 0)
    return np.column_stack([np.full(n, 0 if fine else 1), _sampled_counts(sizes, n, random)])


def _level_fixed(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    return np.column_stack([np.zeros(n, dtype=np.int64), _sampled_counts(tuple(data), n, random)])


ANONYMISATION_BY_LOOKING = Twin(
    name="an anonymisation chosen by looking",
    mistake=(
        "Half of the rows are sampled and made k-anonymous with the finest hierarchy level that fits the data; (ε, δ) is "
        "claimed for the sampling."
    ),
    reason=(
        "The theorem (Li, Qardaji & Su 2012) is for a generalisation fixed in advance. The level that the data chose says "
        "that a class"
        " has at least so many members: δ = 1."
    ),
    claims=ApproxDP(1, "0.001"),
    truth=math.inf,
    left=(41, 40),
    right=(41, 39),
    broken=_level_by_looking,
    mended=_level_fixed,
)

_CODES = 5


def _encoded(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    return np.full(n, (3 * int(data) + 2) % _CODES)


def _randomised(data: Any, n: int, random: Random) -> NDArray[np.int64]:
    truthful = bernoulli(math.e / (math.e + _CODES - 1), n, random)
    other = (int(data) + 1 + random.below(_CODES - 1, n)) % _CODES
    return np.where(truthful, int(data), other)


LABEL_ENCODER = Twin(
    name="a label encoder called generalisation",
    mistake=(
        "Each category is replaced by a number, and the table is called generalised. (It claims no ε; here it is held "
        "against ε = 1.)"
    ),
    reason="A bijection hides nothing: equal values keep equal codes, and frequencies name them.",
    claims=PureDP(1),
    truth=math.inf,
    left=0,
    right=1,
    broken=_encoded,
    mended=_randomised,
)
