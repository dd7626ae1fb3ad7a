"""Masks of whole numbers modulo 2^(64·k): a key stream that is added to a vector, and taken off again.

A number is k words of 64 bits, the lowest first. The stream is AES-256 in counter mode from block 0, under a key that masks one
vector and nothing else. Assumption: AES-256 is a pseudo-random permutation; a stream of fewer than 2^48 blocks is then not told
from uniform words, and a number plus a uniform one modulo 2^(64·k) is uniform, whatever it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORDS = 1 << 15
"""256 KiB of stream at a time: what is added is still in the processor's cache."""


def add_mask(vector: NDArray[np.uint64], key: bytes, *, subtract: bool = False) -> None:
    """Adds the stream of a key to a vector of numbers (a row of words each), in place; or takes it off.

    >>> vector = encoded([5, -1], words=1)
    >>> add_mask(vector, bytes(32)); add_mask(vector, bytes(32), subtract=True)
    >>> decoded(vector).tolist()
    [5, -1]
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    count, words = vector.shape
    rows = max(1, _WORDS // words)
    zeros = bytes(8 * words * min(rows, count))
    room = bytearray(len(zeros))
    for start in range(0, count, rows):
        part = vector[start : start + rows]
        size = part.size * 8
        stream.update_into(zeros[:size], memoryview(room)[:size])
        add(part, np.frombuffer(room, dtype="<u8", count=part.size).reshape(part.shape), subtract=subtract)


def add(vector: NDArray[np.uint64], other: NDArray[np.uint64], *, subtract: bool = False) -> None:
    """Adds another vector, in place and modulo 2^(64·k); or takes it off.

    >>> vector = encoded([2**64 - 1], words=2)
    >>> add(vector, encoded([1], words=2)); decoded(vector).tolist()
    [18446744073709551616]
    """
    if vector.shape[1] == 1:
        (np.subtract if subtract else np.add)(vector, other, out=vector)
        return
    carry = np.full(len(vector), 1 if subtract else 0, dtype=np.uint64)  # x − y is x + (all ones − y) + 1
    for word in range(vector.shape[1]):
        addend = ~other[:, word] if subtract else other[:, word]
        total = vector[:, word] + addend
        over = total < addend
        total += carry
        carry = (over | (total < carry)).astype(np.uint64)
        vector[:, word] = total


def encoded(numbers: Any, *, words: int) -> NDArray[np.uint64]:
    """Whole numbers modulo 2^(64·words), a row of words each.

    >>> encoded([-1], words=2).tolist()
    [[18446744073709551615, 18446744073709551615]]
    """
    given = np.asarray(numbers)
    if given.dtype.kind not in "iuO" or (given.dtype == object and not all(isinstance(each, int) for each in given.flat)):
        raise InvalidParameter("The numbers are invalid", why="only whole numbers are masked", instead="[3, -1]")
    if given.dtype in (object, np.uint64):
        size, modulus = 8 * words, 1 << 64 * words
        raw = b"".join((int(number) % modulus).to_bytes(size, "little") for number in given.ravel().tolist())
        return np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(-1, words)
    narrow = given.astype(np.int64).ravel()
    out = np.empty((narrow.size, words), dtype=np.uint64)
    out[:, 0] = narrow.view(np.uint64)
    out[:, 1:] = (narrow >> 63).view(np.uint64)[:, None]
    return out


def decoded(vector: NDArray[np.uint64]) -> NDArray[Any]:
    """The whole numbers nearest to 0 that these are modulo 2^(64·words): int64, or Python ints where one does not fit.

    >>> decoded(encoded([3, -(2**70)], words=2)).tolist()
    [3, -1180591620717411303424]
    """
    count, words = vector.shape
    low = vector[:, 0].astype(np.uint64).view(np.int64)
    if words == 1 or bool((vector[:, 1:] == (low >> 63).view(np.uint64)[:, None]).all()):
        return low.copy()
    raw, size = vector.astype("<u8").tobytes(), 8 * words
    out = np.empty(count, dtype=object)
    out[:] = [int.from_bytes(raw[start : start + size], "little", signed=True) for start in range(0, len(raw), size)]
    return out
