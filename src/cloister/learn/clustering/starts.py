"""Where k-means begins, and other public choices: directions and starts that depend on no row.

Everything here is drawn or worked out from public facts and released values; it costs nothing.
"""

import numpy as np
import numpy.typing as npt

from cloister.noise import Random, VectorMechanism, default_random

Floats = npt.NDArray[np.float64]

REACH = 1.5
"""Starts lie within so many times the root of the mean squared distance."""
_CANDIDATES = 60


def directions(count: int, dimension: int, random: Random | None) -> Floats:
    """Uniformly random vectors of length 1, one a row.

    >>> bool(np.allclose((directions(3, 5, Random.deterministic(1)) ** 2).sum(axis=1), 1))
    True
    """
    drawn = VectorMechanism(epsilon=1, sensitivity=1, dimension=dimension, step="0.001").sample(count, random=random)
    return np.asarray(drawn / np.sqrt((drawn**2).sum(axis=1))[:, None])


def frame(kept: int, dimension: int, random: Random | None) -> Floats:
    """A uniformly random subspace: its orthonormal vectors are the columns; the whole space where nothing is left out.

    Rows that are projected on it keep `kept`/`dimension` of a squared distance on the average (Johnson & Lindenstrauss 1984).

    >>> frame(2, 5, Random.deterministic(1)).shape, frame(2, 2, None).tolist()
    ((5, 2), [[1.0, 0.0], [0.0, 1.0]])
    """
    if kept >= dimension:
        return np.eye(dimension)
    return np.asarray(np.linalg.qr(directions(kept, dimension, random).T)[0])


def spread_starts(count: int, dimension: int, random: Random | None) -> Floats:
    """Points of the unit ball that keep away from each other: each the farthest from those before it among sixty random ones.

    Su, Cao, Li, Bertino & Jin (2016) pack spheres into the box by trial; in a ball about a noisy mean no start lies in an empty
    corner of the box.

    >>> spread_starts(4, 3, Random.deterministic(1)).shape
    (4, 3)
    """
    source = random or default_random()
    lengths = (source.words(_CANDIDATES * count) * 2.0**-64) ** (1 / dimension)
    candidates = (directions(_CANDIDATES * count, dimension, source) * lengths[:, None]).reshape(count, _CANDIDATES, dimension)
    chosen = np.empty((count, dimension))
    chosen[0] = candidates[0, 0]
    for place in range(1, count):
        apart = ((candidates[place][:, None, :] - chosen[None, :place]) ** 2).sum(axis=2).min(axis=1)
        chosen[place] = candidates[place, int(apart.argmax())]
    return chosen


def weighted_centres(points: Floats, weights: Floats, count: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """k-means of released points with released weights: post-processing. Centres, and the centre of each point.

    >>> points = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> weighted_centres(points, np.array([1.0, 1.0, 1.0, 3.0]), 2)[0].ravel().tolist()
    [0.5, 11.5]
    """
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=10, random_state=0).fit(points, sample_weight=weights)
    order = np.lexsort(found.cluster_centers_.T[::-1])
    back = np.argsort(order)
    return np.asarray(found.cluster_centers_[order]), np.asarray(back[found.labels_], dtype=np.int64)
