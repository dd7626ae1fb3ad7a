"""Strings as blocks of bits, for a search by prefixes: how texts and numbers are cut up, and where a prefix is counted."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

PLACES = 20
"""How many bits the number of a place has, at which a prefix is counted."""
FINGERPRINT = 12
"""How many bits of a hash of the whole string are counted with each prefix of it."""
_FIRST = PLACES - FINGERPRINT
_STEP = 14
_CHAIN = np.uint64(0x9E3779B97F4A7C15)
_FINGER = np.uint64(0xD1B54A32D192ED03)
_MIXING = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Strings of a fixed number of bytes, as blocks of bits: the first of 8 bits, the others of 14 or a little less.

    >>> Blocks(length=8, texts=False).widths
    (8, 14, 14, 14, 14)
    """

    length: int
    """In bytes. Shorter texts are followed by zeros; numbers are written from their highest byte on."""
    texts: bool

    @property
    def widths(self) -> tuple[int, ...]:
        """How many bits each block has."""
        rest = 8 * self.length - _FIRST
        count = -(-rest // _STEP)
        return (_FIRST, *(rest // count + (place < rest % count) for place in range(count)))

    def cut(self, values: Any) -> list[Numbers]:
        """For each block in turn, that block of each value.

        >>> [block.tolist() for block in Blocks(length=2, texts=True).cut(["a", "bc"])]
        [[97, 98], [0, 99]]
        """
        octets = self._octets(values).reshape(-1, self.length)
        bits = np.unpackbits(octets, axis=1)
        edges = np.concatenate([[0], np.cumsum(self.widths)]).tolist()
        return [bits[:, first:last].astype(np.int64) @ (1 << np.arange(last - first)[::-1]) for first, last in pairwise(edges)]

    def joined(self, blocks: Iterable[int]) -> str | int | None:
        """The value of these blocks; None where no text has them.

        >>> Blocks(length=2, texts=True).joined([98, 99]), Blocks(length=2, texts=False).joined([1, 2])
        ('bc', 258)
        """
        number = 0
        for block, width in zip(blocks, self.widths, strict=True):
            number = number << width | block
        if not self.texts:
            return number
        raw = number.to_bytes(self.length, "big").rstrip(b"\0")
        if b"\0" in raw:
            return None
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None

    def _octets(self, values: Any) -> npt.NDArray[np.uint8]:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidParameter("values are invalid", why="they are not a list of values", instead="randomize([value])")
        if isinstance(values, np.ndarray):
            if not self.texts and values.dtype.kind in "iu" and values.ndim == 1 and self.length <= 8:
                if bool((values < 0).any()) or (self.length < 8 and bool((values >= 1 << 8 * self.length).any())):
                    raise self._outside()
                wide = values.astype(">u8").view(np.uint8).reshape(-1, 8)
                return np.ascontiguousarray(wide[:, 8 - self.length :])
            values = values.tolist()
        written = b"".join(self._written(value) for value in values)
        return np.frombuffer(written, dtype=np.uint8)

    def _written(self, value: Any) -> bytes:
        try:
            if not self.texts:
                if isinstance(value, bool) or not isinstance(value, int | np.integer):
                    raise self._outside()
                return int(value).to_bytes(self.length, "big")
            raw = value.encode() if isinstance(value, str) else b"\0"
        except (OverflowError, UnicodeEncodeError):
            raise self._outside() from None
        if len(raw) > self.length or b"\0" in raw:
            raise self._outside()
        return raw.ljust(self.length, b"\0")

    def _outside(self) -> InvalidParameter:
        if self.texts:
            return InvalidParameter(
                "A text is invalid",
                why=f"it is not a text, has the character 0, or is longer than {self.length} bytes of UTF-8",
                instead="a larger length=, or texts that are cut before",
            )
        top = f"2^{8 * self.length} − 1"
        return InvalidParameter("A number is invalid", why=f"it is not an integer from 0 to {top}", instead="a larger bits=")


def fingerprints(blocks: list[Numbers]) -> Numbers:
    """A hash of the whole string, of 12 bits.

    >>> fingerprints([np.array([1, 1]), np.array([2, 3])]).tolist()
    [764, 4071]
    """
    state = np.full(len(blocks[0]), _FINGER)
    for block in blocks:
        state = extended(state, block)
    return (state >> np.uint64(64 - FINGERPRINT)).astype(np.int64)


def fingers_of(first: Numbers) -> Words:
    """The fingerprint's hash after the first block."""
    return extended(np.full(first.shape, _FINGER), first)


def first_state(place: Numbers) -> Words:
    """The hash of a prefix of one block: of its place on the first level, block·2¹² + fingerprint."""
    return mixed(_CHAIN ^ place.astype(np.uint64))


def extended(state: Words, block: Numbers) -> Words:
    """The hash of a prefix that is one block longer.

    >>> hex(extended(np.array([0], dtype=np.uint64), np.array([0]))[0])
    '0x5692161d100b05e5'
    """
    return mixed(state ^ (block + 1).astype(np.uint64))


def places_of(state: Words) -> Numbers:
    """Where a prefix of two or more blocks is counted."""
    return (state >> np.uint64(64 - PLACES)).astype(np.int64)


def mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Each word of 64 bits to another, one to one: x ^= x >> 30; x *= 0xBF58476D1CE4E5B9; x ^= x >> 27; x *= 0x94D049BB133111EB;
    x ^= x >> 31, all modulo 2⁶⁴ (the finaliser of SplitMix64: Steele, Lea & Flood 2014). Few lines in any language, and nothing
    about it is secret: it spreads what people send over the cells of a table, and no promise of privacy rests on it. Whoever
    wants two texts to collide can find such texts; that is one more way to send false reports, and no stronger than the others.

    >>> [hex(word) for word in mixed(np.array([0, 1], dtype=np.uint64)).tolist()]
    ['0x0', '0x5692161d100b05e5']
    """
    out = words.astype(np.uint64)
    for shift, factor in _MIXING:
        out ^= out >> np.uint64(shift)
        out *= np.uint64(factor)
    out ^= out >> np.uint64(31)
    return out
