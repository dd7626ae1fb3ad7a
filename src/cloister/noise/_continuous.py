"""Standard normal and gamma numbers in floating point, for the few mechanisms that cannot be discrete.

What is drawn here is rounded to a declared step before it is added to integers; the mechanisms say what bounds the harm of
floating point. The number of words drawn depends on public shapes only.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise.mechanism import narrowed
from cloister.noise.random import Random

RELATIVE_ERROR = 2.0**-45
"""How far a computed normal, gamma or direction may be from its real value, relatively to the length of what is computed."""


def uniforms(n: int, random: Random) -> npt.NDArray[np.float64]:
    """n numbers in (0, 1]: the middles of 2⁶⁴ equal cells, rounded to floats.

    >>> from cloister.noise.random import Random
    >>> bool((uniforms(9, Random.deterministic(1)) > 0).all())
    True
    """
    return (random.words(n).astype(np.float64) + 0.5) * 2.0**-64


def normals(n: int, random: Random) -> npt.NDArray[np.float64]:
    """n standard normal numbers (Box & Muller 1958).

    >>> from cloister.noise.random import Random
    >>> normals(3, Random.deterministic(1)).shape
    (3,)
    """
    half = (n + 1) // 2
    radius = np.sqrt(-2 * np.log(uniforms(half, random)))
    angle = 2 * np.pi * uniforms(half, random)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:n]


def gammas(shape: int, n: int, random: Random) -> npt.NDArray[np.float64]:
    """n gamma numbers of a whole shape and scale 1: sums of exponential ones.

    >>> from cloister.noise.random import Random
    >>> gammas(2, 3, Random.deterministic(1)).shape
    (3,)
    """
    return np.asarray(-np.log(uniforms(shape * n, random)).reshape(n, shape).sum(axis=1))


def chi_square(degrees: int, random: Random) -> float:
    """One chi-square number: twice a gamma one, and a squared normal one where the degrees are odd.

    >>> from cloister.noise.random import Random
    >>> chi_square(3, Random.deterministic(1)) > 0
    True
    """
    total = 2 * float(gammas(degrees // 2, 1, random)[0])
    return total + float(normals(1, random)[0]) ** 2 if degrees % 2 else total


def in_steps(noise: npt.NDArray[np.float64], step: float) -> npt.NDArray[Any]:
    """Noise rounded to whole steps: int64, or Python integers where it would overflow.

    >>> in_steps(np.array([0.26, -1.0]), 0.5)
    array([ 1, -2])
    """
    steps = np.rint(noise / step)
    if np.abs(steps).max(initial=0.0) < 2.0**62:
        return steps.astype(np.int64)
    return narrowed(np.array([int(item) for item in steps.ravel().tolist()], dtype=object).reshape(steps.shape))


def check_step(step_over_scale: float) -> None:
    """Refuse a step so fine, against the noise, that floating point would show.

    >>> check_step(0.01)
    """
    if step_over_scale < 2.0**-20:
        raise InvalidParameter(
            "step is invalid",
            why="it is finer than a millionth of the noise, and only shows low-order bits",
            instead="a step near scale / 1000",
        )
