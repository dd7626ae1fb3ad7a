"""One source of random bits: AES-256 in counter mode, keyed by the operating system, safe across threads and forks.

The generator makes 64 KiB at a time. The first 32 bytes of every block become the next key and are never handed out, and
words are wiped from the block as they leave it (fast key erasure, Bernstein 2017): whoever reads this process's memory
learns nothing of the noise that was drawn before. Every 16 MiB, fresh entropy from the operating system is mixed into the
key.

This is the only module of cloister that asks for randomness; everything else takes a `Random`.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from cloister.errors import InvalidParameter

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KEY_BYTES = 32
_BLOCK_BYTES = 1 << 16
_BLOCK_WORDS = _BLOCK_BYTES // 8
_RESEED_BLOCKS = (1 << 24) // _BLOCK_BYTES
_ZEROS = bytes(_KEY_BYTES + _BLOCK_BYTES)

RESEED_BYTES = _RESEED_BLOCKS * _BLOCK_BYTES
"""How much is drawn between two reseedings from the operating system."""


class Random:
    """Uniform random bits: `Random()` from the operating system, `Random.deterministic(seed)` for tests.

    Assumptions: AES-256 is a pseudo-random permutation, and `os.urandom` is unpredictable. Then no feasible computation
    tells the words from independent uniform ones, and every guarantee of this package that is proved for uniform bits holds
    against a computationally bounded observer (Mironov, Pandey, Reingold & Vadhan 2009).

    Threads may share one source: a lock hands every word to exactly one of them. A forked child starts afresh from the
    operating system, whether it was forked through Python or behind its back. What no program can see, a virtual machine
    that is suspended and started twice, is healed by the next reseeding.

    >>> random = Random()
    >>> random.marked, len(random.bytes(5)), random.words(3).dtype
    (False, 5, dtype('uint64'))
    >>> Random.deterministic(7).word() == Random.deterministic(7).word()
    True
    """

    __slots__ = ("__weakref__", "_block", "_blocks_left", "_key", "_lock", "_pid", "_position", "_words", "marked")

    _block: bytearray
    _blocks_left: int
    _key: bytes
    _lock: threading.Lock
    _pid: int
    _position: int
    _words: NDArray[np.uint64]

    marked: bool
    """True where the words can be foretold: what was made with them must not enter a ledger."""

    def __init__(self) -> None:
        self.marked = False
        self._key = b""
        self._start()

    @classmethod
    def deterministic(cls, seed: int) -> Random:
        """The same words for the same seed: for tests, never for an answer. It is marked, and a forked child repeats its
        parent.

        >>> Random.deterministic(1).marked
        True
        """
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise InvalidParameter(f"seed={seed!r} is invalid", why="a seed is an integer", instead="Random.deterministic(1)")
        return cls._repeating(f"cloister deterministic {seed}".encode())

    @classmethod
    def derived(cls, secret: bytes) -> Random:
        """The same words for the same secret: for choices that protect nothing and have to be made alike once more, such as where
        k-means begins when it is begun again. It is marked, so that no noise of a durable ledger is made of it.

        >>> random = Random.derived(b"a secret of 32 bytes, or longer.")
        >>> random.marked, random.word() == Random.derived(b"a secret of 32 bytes, or longer.").word()
        (True, True)
        """
        if len(secret) < _KEY_BYTES:
            raise InvalidParameter(
                "The secret is invalid", why=f"it has fewer than {_KEY_BYTES} bytes", instead='Random.derived(ledger.derive("…"))'
            )
        return cls._repeating(b"cloister derived " + secret)

    @classmethod
    def _repeating(cls, seed: bytes) -> Random:
        random = cls.__new__(cls)
        random.marked = True
        random._key = hashlib.sha256(seed).digest()
        random._start()
        return random

    @property
    def fork_safe(self) -> bool:
        """Does a forked child draw words of its own? Always, except where determinism was asked for.

        >>> Random().fork_safe, Random.deterministic(1).fork_safe
        (True, False)
        """
        return not self.marked

    def word(self) -> int:
        """One uniform integer of 64 bits.

        >>> 0 <= Random().word() < 2**64
        True
        """
        with self._lock:
            if self._position == _BLOCK_WORDS or self._pid != os.getpid():
                self._refill()
            position = self._position
            value = int(self._words[position])
            self._position = position + 1  # before it is wiped: an interruption in between would hand out zeros
            self._words[position] = 0
        return value

    def words(self, n: int) -> NDArray[np.uint64]:
        """`n` independent uniform integers of 64 bits: the same words as `n` calls of `word`.

        >>> int(Random.deterministic(3).words(2)[0]) == Random.deterministic(3).word()
        True
        """
        wanted = check_count(n)
        with self._lock:
            if self._pid != os.getpid():
                self._refill()
            if (last := self._position + wanted) <= _BLOCK_WORDS:  # a nonce, a name: one slice of the block
                taken = self._words[self._position : last]
                out, self._position = taken.copy(), last
                taken.fill(0)
                return out
            out, done = np.empty(wanted, dtype=np.uint64), 0
            while done < wanted:
                if self._position == _BLOCK_WORDS:
                    self._refill()
                first = self._position
                last = min(_BLOCK_WORDS, first + wanted - done)
                out[done : done + last - first] = self._words[first:last]
                self._position = last
                self._words[first:last] = 0
                done += last - first
        return out

    def bytes(self, n: int) -> bytes:
        """`n` uniform bytes, from whole words: what is left over of the last word is thrown away.

        >>> len(Random().bytes(16))
        16
        """
        return self.words(-(-check_count(n) // 8)).astype("<u8", copy=False).tobytes()[:n]

    def bits(self, n: int) -> int:
        """A uniform integer of `n` bits, of any length.

        >>> Random().bits(200) < 2**200
        True
        """
        words = -(-check_count(n) // 64)
        return int.from_bytes(self.bytes(8 * words), "little") >> (64 * words - n)

    def uniform(self, n: int) -> NDArray[np.float64]:
        """`n` numbers from 0 to below 1, of 53 bits each: for what promises nothing, such as rows drawn from a released model.

        >>> bool((Random().uniform(9) < 1).all())
        True
        """
        return np.asarray((self.words(n) >> np.uint64(11)) * 2.0**-53)

    def below(self, bound: int, n: int) -> NDArray[Any]:
        """`n` integers, independent and exactly uniform on 0 … bound − 1: int64, or Python ints where the bound is above 2⁶³.

        A word of 64 bits is thrown away where it lies in the last, incomplete run of `bound` (with probability below bound
        / 2⁶⁴). Whether a word is thrown away says nothing of the words that stay.

        >>> bool((Random().below(6, 1000) < 6).all())
        True
        >>> 0 <= Random().below(10**30, 1)[0] < 10**30
        True
        """
        wanted = check_count(n)
        if isinstance(bound, bool) or not isinstance(bound, int | np.integer) or bound < 1:
            raise InvalidParameter("bound is invalid", why="it must be an integer above 0", instead="random.below(6, 100)")
        bound = int(bound)
        if bound > 1 << 63:
            many = np.empty(wanted, dtype=object)
            many[:] = [self.below_one(bound) for _ in range(wanted)]
            return many
        words = self.words(wanted)
        if bound & (bound - 1) == 0:
            return (words & np.uint64(bound - 1)).astype(np.int64)
        limit = np.uint64((1 << 64) - (1 << 64) % bound - 1)
        while (late := np.flatnonzero(words > limit)).size:
            words[late] = self.words(late.size)
        return (words % np.uint64(bound)).astype(np.int64)

    def below_one(self, bound: int) -> int:
        """One exactly uniform integer on 0 … bound − 1, of any size.

        >>> Random().below_one(1)
        0
        """
        if bound < 1:
            raise InvalidParameter("bound is invalid", why="it must be an integer above 0", instead="random.below_one(6)")
        if bound <= 1 << 63:
            limit = (1 << 64) - (1 << 64) % bound
            while (word := self.word()) >= limit:
                pass
            return word % bound
        size = (bound - 1).bit_length()
        while (value := self.bits(size)) >= bound:
            pass
        return value

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A uniformly random order of 0 … n − 1: the order of `n` words. Should two be equal, all are drawn again.

        >>> sorted(Random().permutation(4).tolist())
        [0, 1, 2, 3]
        """
        while True:
            words = self.words(n)
            order = np.argsort(words, kind="stable")
            ranked = words[order]
            if not (ranked[1:] == ranked[:-1]).any():
                return order.astype(np.int64)

    def __copy__(self) -> Random:
        return self

    def __deepcopy__(self, memo: object) -> Random:
        return self

    def __reduce__(self) -> tuple[type[Random], tuple[()]]:
        if self.marked:
            raise InvalidParameter(
                "A deterministic Random was not pickled",
                why="its copy would repeat its words",
                instead="Random.deterministic(seed)",
            )
        return (Random, ())  # the other process starts from its own operating system; no state travels

    def __repr__(self) -> str:
        return "Random.deterministic(…)" if self.marked else "Random()"

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._block = bytearray(_KEY_BYTES + _BLOCK_BYTES)
        self._words = np.frombuffer(self._block, dtype="<u8", offset=_KEY_BYTES)
        self._position = _BLOCK_WORDS
        self._blocks_left = 0
        self._pid = os.getpid()
        _living.add(self)

    def _refill(self) -> None:
        """Make the next block; the caller holds the lock."""
        if not self.marked and (self._blocks_left == 0 or self._pid != os.getpid()):
            fresh = os.urandom(_KEY_BYTES)
            self._key = hashlib.sha256(self._key + fresh).digest()
            self._blocks_left = _RESEED_BLOCKS
        self._pid = os.getpid()
        _fill(self._key, self._block)
        self._key = bytes(self._block[:_KEY_BYTES])
        self._block[:_KEY_BYTES] = bytes(_KEY_BYTES)
        self._blocks_left -= 1
        self._position = 0

    def _after_fork(self) -> None:
        """In the child: forget the parent's words. Its lock may be held by a thread that does not exist here."""
        self._lock = threading.Lock()
        if not self.marked:
            self._words[:] = 0
            self._position = _BLOCK_WORDS
            self._blocks_left = 0
        self._pid = os.getpid()


def default_random() -> Random:
    """The secure source that the whole process shares: what is used wherever no `random=` is given.

    >>> default_random() is default_random()
    True
    """
    return _default


def check_count(n: int) -> int:
    """`n` as a Python int, where it counts something.

    >>> check_count(3)
    3
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidParameter(f"n={n!r} is invalid", why="it must be a whole number of at least 0", instead="n=1000")
    return int(n)


def _fill(key: bytes, block: bytearray) -> None:
    """AES-256-CTR of zeros from counter 0: each key makes one block only, so no counter value is used twice under it."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update_into(_ZEROS, block)


def _after_fork_in_child() -> None:
    for random in list(_living):
        random._after_fork()


_living: weakref.WeakSet[Random] = weakref.WeakSet()
_default = Random()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
