"""The sparse vector technique, once right and four times wrong: the catalogue of Lyu, Su & Li (2017).

All of them compare noisy queries with a noisy threshold and report "above" (1) or "below" (0), and pay for the c queries that
are above; after the c-th they stop (−1). With ε₁ for the threshold and ε₂ for the queries, of sensitivity 1, right is
threshold noise of scale 1/ε₁ and query noise of scale 2c/ε₂ (their Algorithm 1).
"""

import math
from functools import partial
from typing import Any

import numpy as np

from cloister.attacks.broken.draws import Floats, laplace, noisy
from cloister.attacks.broken.twin import Twin
from cloister.noise import Random
from cloister.privacy.guarantee import PureDP


def sparse_vector(
    queries: Any,
    n: int,
    random: Random,
    *,
    threshold_scale: float,
    query_scale: float,
    most: int | None,
    threshold: float = 0.0,
    show_values: bool = False,
) -> Floats:
    """n runs on one list of answers: a row of 1, 0 and −1 for each; with `show_values`, the noisy answer in place of 1.

    >>> from cloister.noise import Random
    >>> sparse_vector((-9, 9, 9), 1, Random.deterministic(1), threshold_scale=0, query_scale=0, most=1).tolist()
    [[0.0, 1.0, -1.0]]
    """
    limit = laplace(threshold_scale, (n, 1), random) + threshold
    compared = noisy(query_scale, queries, n, random)
    above = compared >= limit
    shown = np.where(above, compared if show_values else 1.0, 0.0)
    if most is None:
        return shown
    before: Any = np.cumsum(above, axis=1) - above
    return np.where(before < most, shown, -1.0)


_REPEATS = 6


def _mended(most: int) -> Any:
    return partial(sparse_vector, threshold_scale=2, query_scale=4 * most, most=most)


SHOWS_VALUES = Twin(
    name="sparse vector that shows its values",
    mistake=(
        "Lecture notes of 2011: the noisy answer that was found above the threshold is released with the noise of the comparison."
    ),
    reason=(
        "The answer bounds the noisy threshold, which no longer hides the queries below it: (m − 1)ε/2 after m of them, "
        "without limit."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=(0,) * 5 + (1,),
    right=(1,) * 5 + (0,),
    broken=partial(sparse_vector, threshold_scale=2, query_scale=2, most=1, show_values=True),
    mended=_mended(1),
    runs=600_000,
)

TOO_LITTLE_FOR_MANY = Twin(
    name="sparse vector with noise for one",
    mistake=(
        "Lee & Clifton (2014): ε/4 for the threshold and noise of scale 4/(3ε) on each query, whatever the number c of "
        "answers above."
    ),
    reason="Each answer above costs again; the noise must grow with c. It is (1 + 6c)ε/4.",
    claims=PureDP(1),
    truth=(1 + 6 * _REPEATS) / 4,
    left=(0,) * _REPEATS + (1,) * _REPEATS,
    right=(1,) * _REPEATS + (0,) * _REPEATS,
    broken=partial(sparse_vector, threshold_scale=4, query_scale=4 / 3, most=_REPEATS),
    mended=_mended(_REPEATS),
    runs=300_000,
)

QUIET_QUERIES = Twin(
    name="sparse vector without noise on its queries",
    mistake="Stoddard, Chen & Machanavajjhala (2014): noise on the threshold only, and no limit on the answers above.",
    reason="Two queries that swap places between neighbours: below–above is possible in one world and impossible in the other.",
    claims=PureDP(1),
    truth=math.inf,
    left=(0, 1),
    right=(1, 0),
    broken=partial(sparse_vector, threshold_scale=2, query_scale=0, most=None),
    mended=_mended(1),
)

NO_LIMIT = Twin(
    name="sparse vector without a limit",
    mistake="Chen, Xiao, Zhang & Xu (2015): noise of scale 2/ε on threshold and queries, and any number of answers above.",
    reason="Answers below are free only while answers above are counted: mε/2 for m of each, without limit.",
    claims=PureDP(1),
    truth=math.inf,
    left=(0,) * _REPEATS + (1,) * _REPEATS,
    right=(1,) * _REPEATS + (0,) * _REPEATS,
    broken=partial(sparse_vector, threshold_scale=2, query_scale=2, most=None),
    mended=_mended(_REPEATS),
    runs=300_000,
)
