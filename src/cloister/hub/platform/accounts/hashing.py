"""Passwords as they are kept: Argon2id, so many at once, and one hash of work whatever is known of the person.

Parameters are those that OWASP's Password Storage Cheat Sheet names for Argon2id: 19 MiB, two passes, one lane. A hash made with
weaker ones is made again when its owner next signs in.
"""

import contextlib
import threading
import unicodedata
from collections.abc import Iterator

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from cloister.errors import TooMany
from cloister.hub.ids import new_secret
from cloister.noise import default_random

LONGEST = 1000
"""Characters of the longest password: more would only make work."""
_AT_ONCE = 4
_PATIENCE = 15.0
_SALT = 16


def plain(password: str) -> str:
    """A password as it is hashed: one form of each character, however a keyboard writes it (NFKC).

    >>> plain("ﬁsh") == plain("fish"), plain("Fish") == plain("fish")
    (True, False)
    """
    return unicodedata.normalize("NFKC", password)


class Hasher:
    """Hashes and verifies, a few at once: each takes 19 MiB for as long as it lasts.

    >>> hasher = Hasher()
    >>> kept = hasher.hash("a long sentence of mine")
    >>> hasher.verify(kept, "a long sentence of mine"), hasher.verify(kept, "another"), hasher.verify(None, "another")
    (True, False, False)
    """

    def __init__(self, *, at_once: int = _AT_ONCE) -> None:
        self._argon = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1, hash_len=32, salt_len=_SALT)
        self._slots = threading.BoundedSemaphore(at_once)
        self._nobody = self.hash(new_secret())

    def hash(self, password: str) -> str:
        """What is kept of a password."""
        with self._slot():
            return self._argon.hash(plain(password), salt=default_random().bytes(_SALT))

    def verify(self, kept: str | None, password: str) -> bool:
        """Whether it is the password; the work is the same where there is none to compare with."""
        known = kept is not None and len(password) <= LONGEST
        with self._slot():
            try:
                self._argon.verify(kept if known and kept is not None else self._nobody, plain(password[:LONGEST]))
            except (VerificationError, InvalidHashError):
                return False
        return known

    def weaker(self, kept: str) -> bool:
        """Whether a hash was made with weaker parameters than today's."""
        return self._argon.check_needs_rehash(kept)

    @contextlib.contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=_PATIENCE):
            raise TooMany(
                "The hub is busy with other sign-ins",
                why="many people are signing in at once",
                instead="try again in a moment",
                after=5,
            )
        try:
            yield
        finally:
            self._slots.release()
