"""Rows of bits, 64 in a word: setting one bit in each row, and counting every column at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.local.protocols.coins import lanes_of

Words = npt.NDArray[np.uint64]

_CHUNK = 1 << 19


def set_bits(rows: Words, places: npt.NDArray[np.int64], bits: npt.NDArray[np.bool_]) -> None:
    """Make bit `places[i]` of row i what `bits[i]` says, in place.

    >>> rows = np.zeros((2, 2), dtype=np.uint64)
    >>> set_bits(rows, np.array([0, 65]), np.array([True, True])); rows.tolist()
    [[1, 0], [0, 2]]
    """
    here, lanes = np.arange(len(rows)), places >> 6
    shift = (places & 63).astype(np.uint64)
    rows[here, lanes] = rows[here, lanes] & ~(np.uint64(1) << shift) | bits.astype(np.uint64) << shift


def fits(rows: npt.NDArray[Any], width: int) -> npt.NDArray[np.bool_]:
    """Which rows have no bit beyond `width`.

    >>> fits(np.array([[7], [8]], dtype=np.uint64), 3).tolist()
    [True, False]
    """
    sound = (rows >= 0).all(axis=1) if rows.dtype.kind == "i" else np.ones(len(rows), dtype=np.bool_)
    if width % 64:
        sound &= rows[:, -1].astype(np.uint64) >> np.uint64(width % 64) == 0
    return np.asarray(sound, dtype=np.bool_)


def unpacked(rows: Words, width: int) -> npt.NDArray[np.uint8]:
    """The bits of each row, one in a byte.

    >>> unpacked(np.array([[5]], dtype=np.uint64), 4).tolist()
    [[1, 0, 1, 0]]
    """
    octets = np.ascontiguousarray(rows, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, count=width, bitorder="little")


def column_counts(rows: npt.NDArray[Any], width: int) -> npt.NDArray[np.int64]:
    """How many rows have each bit set.

    64 columns are counted at once by full adders on words: three words of one weight become their sum (exclusive or) and their
    carry (majority), which weighs twice as much. A word costs five operations in all, whatever the number of rows.

    >>> column_counts(np.array([[5], [4], [6]], dtype=np.uint64), 3).tolist()
    [1, 1, 3]
    """
    lanes = lanes_of(width)
    total = np.zeros(width, dtype=np.int64)
    step = max(1, _CHUNK // lanes)
    for first in range(0, len(rows), step):
        part = np.asarray(rows[first : first + step], dtype=np.uint64)
        weight = 1
        while len(part):
            part, left = _added(part)
            total += weight * unpacked(left, width).sum(axis=0, dtype=np.int64)
            weight *= 2
    return total


def _added(rows: Words) -> tuple[Words, Words]:
    """Rows of weight 1 as (carries, which weigh 2; at most two rows that are left)."""
    carries = []
    while len(rows) > 2:
        third = len(rows) // 3
        a, b, c = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
        either = a ^ b
        carries.append(a & b | c & either)
        rows = np.concatenate([either ^ c, rows[3 * third :]])
    return np.concatenate(carries) if carries else rows[:0], rows
