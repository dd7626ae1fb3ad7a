"""Textbook draws for broken mechanisms: fast, approximate, and unfit to protect anyone.

`laplace` rounds its noise to a grid, and the twins keep their data on that grid, so that an audit finds the mistake under test
and not floating point itself; `floating_laplace` is the mistake of floating point.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.noise import Random

Floats = NDArray[np.float64]
GRID = 2.0**-20


def uniform(shape: int | tuple[int, ...], random: Random) -> Floats:
    """Numbers strictly between 0 and 1, on a grid of 2⁻⁵³.

    >>> from cloister.noise import Random
    >>> bool((uniform(5, Random.deterministic(1)) > 0).all())
    True
    """
    words = random.words(int(np.prod(shape))).reshape(shape)
    draws: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return draws


def floating_laplace(scale: float, shape: int | tuple[int, ...], random: Random) -> Floats:
    """Laplace noise by the logarithm of a uniform double: what Mironov (2012) attacks.

    >>> from cloister.noise import Random
    >>> floating_laplace(1.0, 3, Random.deterministic(1)).shape
    (3,)
    """
    draws = uniform(shape, random)
    words = random.words(int(np.prod(shape))).reshape(shape)
    return scale * np.where((words & np.uint64(1)) == 0, np.log(draws), -np.log(draws))


def laplace(scale: float, shape: int | tuple[int, ...], random: Random) -> Floats:
    """Laplace noise rounded to multiples of 2⁻²⁰.

    >>> from cloister.noise import Random
    >>> noise = laplace(1.0, 3, Random.deterministic(1)); bool((noise * 2**20 == (noise * 2**20).round()).all())
    True
    """
    return on_grid(floating_laplace(scale, shape, random))


def noisy(scale: float, statistic: Any, n: int, random: Random) -> Floats:
    """n answers, each the statistic (a number or a list of them) plus Laplace noise on the grid, one draw for each number.

    >>> from cloister.noise import Random
    >>> noisy(1.0, (5, 6), 3, Random.deterministic(1)).shape
    (3, 2)
    """
    value = np.asarray(statistic, dtype=np.float64)
    answers: Floats = laplace(scale, (n, *value.shape), random) + value
    return answers


def noised(scale: float, statistic: Callable[[Any], Any] = lambda data: data) -> Callable[[Any, int, Random], Floats]:
    """The mechanism that gives a statistic of the data, or the data themselves, with this noise.

    >>> from cloister.noise import Random
    >>> noised(1.0, sum)((5, 6), 3, Random.deterministic(1)).shape
    (3,)
    """
    return lambda data, n, random: noisy(scale, statistic(data), n, random)


def exponential(mean: float, shape: int | tuple[int, ...], random: Random) -> Floats:
    """Exponential noise rounded to multiples of 2⁻²⁰.

    >>> from cloister.noise import Random
    >>> bool((exponential(1.0, 3, Random.deterministic(1)) >= 0).all())
    True
    """
    return on_grid(-mean * np.log(uniform(shape, random)))


def bernoulli(p: float | Floats, shape: int | tuple[int, ...], random: Random) -> NDArray[np.bool_]:
    """True with probability p.

    >>> from cloister.noise import Random
    >>> bernoulli(1.0, 2, Random.deterministic(1)).tolist()
    [True, True]
    """
    return np.asarray(uniform(shape, random) < p)


def on_grid(values: Any) -> Floats:
    """The nearest multiples of 2⁻²⁰.

    >>> float(on_grid(0.1)) == 0.1
    False
    """
    rounded: Floats = np.round(np.asarray(values, dtype=np.float64) / GRID) * GRID
    return rounded
