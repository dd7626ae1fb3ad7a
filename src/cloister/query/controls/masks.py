"""Sets of records as masks. What chance does to a set is a function of the set: the same one always gets the same draw.

Noise that is drawn afresh for each question can be averaged away by asking again, or by asking in other words. Here every draw
follows from a secret and from the records concerned (`PseudoRandomFunction`), so a rewrite of the same question draws the same.
(The statistical offices' cell-key method rests on the same idea: Fraser & Wooton 2005.) No guarantee of differential privacy
follows from it.
"""

import hashlib

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


def digest_of_set(mask: Mask) -> str:
    """A name for a set of records, whatever the condition that chose them.

    >>> digest_of_set(np.array([True, False])) == digest_of_set(np.array([True, False]))
    True
    """
    return hashlib.sha256(f"{len(mask)}:".encode() + np.packbits(mask).tobytes()).hexdigest()
