"""Random Fourier features: a row as cosines and sines whose products are nearly a Gaussian kernel.

What is drawn depends on no row, and each row is mapped by itself: so a promise about mapped rows is one about the rows.
"""

import math

import numpy as np
import numpy.typing as npt

from cloister.learn.frame.bounds import row_products
from cloister.noise import Gaussian, Random

Floats = npt.NDArray[np.float64]

_BITS = 16
PARTS_OF_A_TURN = 2**_BITS
"""Angles are rounded to so many parts of a turn: an error of at most 5·10⁻⁵ in a cosine."""
_COSINES = np.cos(np.arange(PARTS_OF_A_TURN) * (2 * math.pi / PARTS_OF_A_TURN)).round(15) + 0.0
_STEP = "0.00000095367431640625"


def drawn_frequencies(count: int, dimension: int, gamma: float, random: Random) -> Floats:
    """Frequencies of the kernel exp(−γ‖x − y‖²), in turns a unit, one a row.

    Each is normal with variance 2γ (Bochner's theorem; Rahimi & Recht 2007, Figure 1), and in blocks of `dimension` they are at
    right angles (Yu, Suresh, Choromanski, Holtmann-Rice & Kumar 2016, Theorem 1): the mean product is still the kernel, and
    fewer are needed for the same error.

    >>> W = drawn_frequencies(3, 2, 0.5, Random.deterministic(1)) * 2 * np.pi
    >>> W.shape, bool(abs(W[0] @ W[1]) < 1e-9)
    ((3, 2), True)
    """
    blocks = -(-count // dimension)
    normal = Gaussian(scale=1, sensitivity=1, step=_STEP).sample(2 * blocks * dimension**2, random=random)
    turned, long = np.asarray(normal, dtype=np.float64).reshape(2, blocks, dimension, dimension)
    axes = np.concatenate([_right_angles(block) for block in turned])
    lengths = np.sqrt((long**2).sum(axis=2)).ravel()
    return np.asarray((axes * lengths[:, None])[:count] * (math.sqrt(2 * gamma) / (2 * math.pi)))


def fourier_features(rows: Floats, frequencies: Floats) -> Floats:
    """The cosines, then the sines, of each row's angles: numbers of [−1, 1] with cos² + sin² = 1 for each frequency.

    The mean over frequencies of cos·cos + sin·sin of two rows is nearly their kernel. An angle is a whole number of 2⁻¹⁶ turns,
    and its cosine is looked up: a row's features are a function of that row alone, to the last bit, whoever else is there.

    >>> fourier_features(np.array([[0.0], [0.125]]), np.array([[1.0]])).round(3).tolist()
    [[1.0, 0.0], [0.707, 0.707]]
    """
    places = np.floor(row_products(rows, frequencies.T) * PARTS_OF_A_TURN + 0.5).astype(np.int64) % PARTS_OF_A_TURN
    return np.concatenate([_COSINES[places], _COSINES[(places - PARTS_OF_A_TURN // 4) % PARTS_OF_A_TURN]], axis=1)


def _right_angles(normal: Floats) -> Floats:
    """A uniformly random rotation: the signs of the triangle's diagonal are taken out (Mezzadri 2007)."""
    axes, triangle = np.linalg.qr(normal)
    return np.asarray(axes * np.where(np.diag(triangle) < 0, -1.0, 1.0))
