"""A public hash of whole numbers of 64 bits: few lines in any language, and nothing about it is secret.

It spreads what people send over the cells of a table. No promise of privacy rests on it. Whoever wants two texts to collide can
find such texts; that is one more way to send false reports, and no stronger than the others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each word of 64 bits to another, one to one: x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB;
    x ^= x >> 31, all modulo 2⁶⁴ (the finaliser of SplitMix64: Steele, Lea & Flood 2014).

    >>> [hex(word) for word in mixed(np.array([0, 1], dtype=np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5']
    """
    out = words.astype(np.uint64)
    for shift, factor in _STEPS:
        out ^= out >> np.uint64(shift)
        out *= np.uint64(factor)
    out ^= out >> np.uint64(31)
    return out
