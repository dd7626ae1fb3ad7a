"""Chance that is a function of what it is applied to: the same set of records always gets the same draw.

Noise that is drawn afresh for each question can be averaged away by asking again, or by asking in other words. Here every draw
follows from a secret and from the records concerned, so a rewrite of the same question draws the same. (The statistical offices'
cell-key method rests on the same idea: Fraser & Wooton 2005.) No guarantee of differential privacy follows from it.
"""

from __future__ import annotations

import hashlib
import hmac
import json

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

__all__ = ["Keyed", "digest_of_set"]

Mask = npt.NDArray[np.bool_]


def digest_of_set(mask: Mask) -> str:
    """A name for a set of records, whatever the condition that chose them.

    >>> digest_of_set(np.array([True, False])) == digest_of_set(np.array([True, False]))
    True
    """
    return hashlib.sha256(f"{len(mask)}:".encode() + np.packbits(mask).tobytes()).hexdigest()


class Keyed:
    """A pseudo-random function under one secret: HMAC-SHA256 for single draws, AES-256 in counter mode for a word a record.

    Assumption: both are pseudo-random functions. Anyone who does not know the secret can then foretell no draw.

    >>> keyed = Keyed(b"secret")
    >>> keyed.below(5, "count", "set 1") == keyed.below(5, "count", "set 1"), keyed.words("sample", count=3).dtype
    (True, dtype('uint64'))
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def digest(self, *parts: str) -> bytes:
        """32 bytes that follow from the secret and the parts."""
        return hmac.new(self._secret, json.dumps(parts).encode(), hashlib.sha256).digest()

    def words(self, *parts: str, count: int) -> npt.NDArray[np.uint64]:
        """A uniform word of 64 bits for each of so many records; the first ones stay the same when there are more."""
        stream = Cipher(algorithms.AES(self.digest("words", *parts)), modes.CTR(bytes(16))).encryptor()
        return np.frombuffer(stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64)

    def below(self, bound: int, *parts: str) -> int:
        """A uniform integer from 0 to bound - 1, exactly: 256 bits at a time, and what would favour one value is drawn again."""
        limit = 2**256 - 2**256 % bound
        attempt = 0
        while True:
            drawn = int.from_bytes(self.digest("below", str(bound), str(attempt), *parts), "big")
            if drawn < limit:
                return drawn % bound
            attempt += 1
