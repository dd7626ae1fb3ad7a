"""A pseudo-random function: the same secret and the same words always give the same bits, which nobody else can foretell.

Assumption: HMAC-SHA-256 (Bellare 2006) and AES-256 are pseudo-random functions. AES runs in counter mode under a key of its own
for each stream, which HMAC derives, so no block is used for two purposes. The words of a call are written as JSON, so no two
lists of words are the same text.
"""

import hmac
import json

import numpy as np
import numpy.typing as npt


class PseudoRandomFunction:
    """HMAC-SHA-256 for single draws, AES-256 in counter mode for a word a record, under one secret.

    >>> keyed = PseudoRandomFunction(b"secret")
    >>> keyed.below(5, "count", "set 1") == keyed.below(5, "count", "set 1"), keyed.words("sample", count=3).dtype
    (True, dtype('uint64'))
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def _digest(self, *parts: str) -> bytes:
        """32 bytes that follow from the secret and the parts."""
        return hmac.digest(self._secret, json.dumps(parts).encode(), "sha256")

    def words(self, *parts: str, count: int) -> npt.NDArray[np.uint64]:
        """A uniform word of 64 bits for each of so many records; the first ones stay the same when there are more."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        stream = Cipher(algorithms.AES(self._digest("words", *parts)), modes.CTR(bytes(16))).encryptor()
        return np.frombuffer(stream.update(bytes(8 * count)), dtype="<u8").astype(np.uint64)

    def below(self, bound: int, *parts: str) -> int:
        """A uniform integer from 0 to bound - 1, exactly: 256 bits at a time, and what would favour one value is drawn again."""
        limit = 2**256 - 2**256 % bound
        attempt = 0
        while True:
            drawn = int.from_bytes(self._digest("below", str(bound), str(attempt), *parts), "big")
            if drawn < limit:
                return drawn % bound
            attempt += 1
