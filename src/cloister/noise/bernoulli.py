"""Exact coins: Bernoulli(p) for a rational p, or for a p that is known by its enclosure, such as exp(−x).

A coin compares a uniform real number, drawn bit by bit, with its probability. The first 64 bits decide but for a chance
near 2^−64 (rational p) or 2^−47 (exp, where the first look is in floating point); then more bits are drawn and compared
with integer bounds of the probability. The answer is that of infinitely many bits, so the law is exactly the one that is
named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.enclosure import Enclosure, lies_below, rational_enclosure
from cloister.noise.mechanism import source
from cloister.noise.random import Random
from cloister.privacy.rational import Exact, exact

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLACK = 2.0**-48
"""How far a float64 exp(−y) of a y that is right to 2^−50 (relatively), and a word rounded to float64, may be off together:
2^−51.4 by y, 2^−50 by 8 units in the last place of exp, 2^−53 by the word, 2^−64 by its unseen bits. The sum is below
2^−49."""


def bernoulli(p: Exact, n: int, *, random: Random | None = None) -> NDArray[np.bool_]:
    """`n` independent coins, each True with probability exactly `p`.

    >>> bernoulli("1/3", 4, random=Random.deterministic(1)).dtype
    dtype('bool')
    >>> bernoulli(1, 3).all(), bernoulli(0, 3).any()
    (np.True_, np.False_)
    """
    probability = exact(p, "p")
    if not 0 <= probability <= 1:
        raise InvalidParameter(f"p={p} is invalid", why="a probability is at least 0 and at most 1", instead='p="1/2"')
    return coins(rational_enclosure(probability), n, source(random))


def coins(probability: Enclosure, n: int, random: Random) -> NDArray[np.bool_]:
    """`n` coins whose probability is known by its `Enclosure`.

    >>> from fractions import Fraction
    >>> coins(rational_enclosure(Fraction(1)), 2, Random()).tolist()
    [True, True]
    """
    words = random.words(n)
    low, high = probability(64)
    if low == 1 << 64:
        return np.ones(words.size, dtype=bool)
    out: NDArray[np.bool_] = words < np.uint64(low)  # a word below `low` is at most low − 1: certainly below
    if high > low:
        for i in np.flatnonzero((words >= np.uint64(low)) & (words <= np.uint64(high - 1))):
            out[i] = lies_below(int(words[i]), 64, probability, random)
    return out
