"""Random numbers that promise nothing: public directions, noise that hides little, splits. They may repeat by a seed."""

import numpy as np

from cloister.compress.scatter import Floats
from cloister.noise import Random, default_random


def random_of(state: int | None) -> Random:
    """A generator that a number repeats: a matrix that everybody may know promises nothing."""
    return default_random() if state is None else Random.deterministic(int(state))


def normal(count: int, random: Random) -> Floats:
    """Normal numbers in floating point."""
    from scipy.special import ndtri

    return np.asarray(ndtri(random.uniform(count) + 2.0**-54))
