"""A keyed index: which records have a word, found without showing the word, and forward private.

A word w of a field has a key K = PRF(field key, w). Its i-th entry is stored at address PRF(K, "address", i), and holds the
handle of a record, masked by PRF(K, "mask", i) and authenticated by PRF(K, "tag", i, masked handle). The client keeps, for each
word, how many positions were used. A search sends the addresses of all of them, sorted; the client unmasks what it gets. This is
Mitra (Ghareh Chamani, Papadopoulos, Papamanthou, Jalili 2018) without its deletions: the client's tree says which records are
alive.

Claim 1 (forward privacy): an entry that is added tells nothing about the word, not even whether it was searched before. Sketch: i
was never used for this K, so address and mask are fresh outputs of a PRF, uniform to anyone without K; a search reveals addresses
and no key. A position is never used twice, also after a crash: it is written down as used before the entry is sent, and one whose
write did not happen is skipped for ever.

Claim 2 (nothing is omitted): a result is every record that was filed under the word, or an error. Sketch: the client knows the
positions, so it misses each entry that does not come; one that was changed, or moved from another address, fails its tag.

What a search leaks: that the same addresses were asked before (search pattern), how many there are (volume), and which records
are read afterwards (access pattern).
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import NamedTuple

from cloister.vault.errors import Tampered

HANDLE = 16
"""Bytes of a record's handle, of an address and of a word's name in the client's state."""


class Word(NamedTuple):
    """What the client keeps of a word: how many positions were used, and the runs of them that hold no entry."""

    epoch: int
    used: int = 0
    skipped: tuple[tuple[int, int], ...] = ()

    def positions(self) -> Iterator[int]:
        """The positions that hold an entry."""
        at = 0
        for first, end in self.skipped:
            yield from range(at, first)
            at = end
        yield from range(at, self.used)

    @property
    def entries(self) -> int:
        """How many positions hold an entry."""
        return self.used - sum(end - first for first, end in self.skipped)

    def skipping(self, first: int, end: int) -> Word:
        """The word without the entries at positions first … end − 1."""
        before = [(low, high) for low, high in self.skipped if high < first]
        first = min([first, *(low for low, high in self.skipped if high >= first)])
        return self._replace(skipped=(*before, (first, end)))


class WordKey:
    """The key of one word: names, addresses and entries.

    >>> key = WordKey(bytes(32))
    >>> key.opened(3, key.entry(3, b"sixteen bytes...")[1])
    b'sixteen bytes...'
    """

    __slots__ = ("_key", "name")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.name = hmac.digest(key, b"name", "sha256")[:HANDLE]
        """What the client's state calls the word."""

    def address(self, position: int) -> bytes:
        """Where an entry is stored."""
        return hmac.digest(self._key, b"address %d" % position, "sha256")[:HANDLE]

    def entry(self, position: int, handle: bytes) -> tuple[bytes, bytes]:
        """Address and content of an entry."""
        masked = self._masked(position, handle)
        return self.address(position), masked + self._tag(position, masked)

    def opened(self, position: int, content: bytes) -> bytes:
        """The handle in an entry; a `Tampered` error where it was changed."""
        masked = content[:HANDLE]
        if not hmac.compare_digest(content[HANDLE:], self._tag(position, masked)):
            raise Tampered(
                "The index was changed",
                why="an entry is not the one that was written there",
                instead="the store's last good backup",
            )
        return self._masked(position, masked)

    def _masked(self, position: int, handle: bytes) -> bytes:
        stream = hmac.digest(self._key, b"mask %d" % position, "sha256")[:HANDLE]
        return (int.from_bytes(handle, "big") ^ int.from_bytes(stream, "big")).to_bytes(HANDLE, "big")

    def _tag(self, position: int, masked: bytes) -> bytes:
        return hmac.digest(self._key, b"tag %d " % position + masked, "sha256")[:HANDLE]
