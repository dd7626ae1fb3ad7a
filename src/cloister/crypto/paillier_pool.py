"""Encryption and decryption in several processes: a vector each, where there are two or more.

A power modulo N² holds Python's lock, so threads gain nothing. Processes are spawned, with the keys (the private ones, where
decrypting is asked for) over a pipe of this program's own; each makes its table of powers once, and draws from its own system
randomness. What they give is what `PublicKey.encrypt` and `Paillier.decrypt` give.
"""

import multiprocessing
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Self

import numpy.typing as npt

from cloister.crypto.paillier import EncryptedVector, Paillier, PublicKey, Slots
from cloister.errors import InvalidParameter, check_whole

_MOST = 64
_KEYS: list[Paillier | PublicKey] = []
"""Of a process of the pool."""


class PaillierPool:
    """Processes that encrypt, and decrypt where they have the private keys. One vector is worked on in this process.

    >>> keys = Paillier.generate(512, insecure=True)
    >>> with PaillierPool(keys, processes=2) as pool:
    ...     sent = pool.encrypt([[1, 2], [30, -5], [7, 7]])
    ...     [each.tolist() for each in pool.decrypt(sent)]
    [[1, 2], [30, -5], [7, 7]]
    """

    def __init__(self, keys: Paillier | PublicKey, *, processes: int = 2) -> None:
        check_whole(processes, "processes", 1, _MOST, why=f"it is from 1 to {_MOST}", instead="processes=2")
        self.keys, self.processes = keys, processes
        self._pool: ProcessPoolExecutor | None = None

    @property
    def public(self) -> PublicKey:
        """The public part."""
        return self.keys.public if isinstance(self.keys, Paillier) else self.keys

    def encrypt(
        self, vectors: Iterable[npt.ArrayLike], *, slots: Slots | None = None, quick: bool = True
    ) -> list[EncryptedVector]:
        """Each vector, in their order."""
        given, how = list(vectors), Slots() if slots is None else slots
        for each in given:
            how.whole(each)  # what does not fit is refused here, in its own words
        return [
            EncryptedVector(key=self.public, cells=cells, length=length, slots=how, count=1)
            for cells, length in self._each(_encrypted, [(each, how, quick) for each in given])
        ]

    def decrypt(self, vectors: Iterable[EncryptedVector], *, exact: bool = False) -> list[npt.NDArray[Any]]:
        """Each vector, in their order."""
        if not isinstance(self.keys, Paillier):
            raise InvalidParameter(
                "The vectors can't be decrypted", why="the pool has the public key alone", instead="PaillierPool(keys)"
            )
        return self._each(_decrypted, [(each, exact) for each in vectors])

    def close(self) -> None:
        """Ends the processes."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _each(self, work: Any, given: list[tuple[Any, ...]]) -> list[Any]:
        if len(given) < 2 or self.processes == 1:
            return [work(*each, keys=self.keys) for each in given]
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.processes, spawn, initializer=_begin, initargs=(self.keys,))
        return list(self._pool.map(work, *zip(*given, strict=True)))


def _begin(keys: Paillier | PublicKey) -> None:
    _KEYS.append(keys)


def _encrypted(
    vector: npt.ArrayLike, slots: Slots, quick: bool, keys: Paillier | PublicKey | None = None
) -> tuple[tuple[int, ...], int]:
    held = _KEYS[0] if keys is None else keys
    found = (held.public if isinstance(held, Paillier) else held).encrypt(vector, slots=slots, quick=quick)
    return found.cells, found.length


def _decrypted(vector: EncryptedVector, exact: bool, keys: Paillier | None = None) -> npt.NDArray[Any]:
    held = _KEYS[0] if keys is None else keys
    assert isinstance(held, Paillier)
    return held.decrypt(vector, exact=exact)
