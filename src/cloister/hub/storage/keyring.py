"""Keys that are kept wrapped, and how they pass from one master key to the next."""

from __future__ import annotations

from typing import Protocol

from cloister.errors import CloisterError
from cloister.tables.guard import tried

__all__ = ["Keyring", "rewrapped"]


class Keyring(Protocol):
    """What wraps secrets: the hub's `Keys`. What a secret is about is authenticated with it."""

    def wrap(self, secret: bytes, about: str) -> bytes:
        """The secret, encrypted."""

    def unwrap(self, wrapped: bytes, about: str) -> bytes:
        """The secret, or a `CloisterError`."""


def rewrapped(wrapped: bytes, about: str, old: Keyring, new: Keyring) -> bytes:
    """The same secret, wrapped by the new keys; as it is where they wrapped it already, so that this may be done again.

    >>> from cloister.hub.keys import Keys
    >>> old, new = Keys(bytes(32)), Keys(bytes(31) + b"1")
    >>> once = rewrapped(old.wrap(b"a data key", "table 1"), "table 1", old, new)
    >>> new.unwrap(once, "table 1"), rewrapped(once, "table 1", old, new) == once
    (b'a data key', True)
    """
    if tried(lambda: new.unwrap(wrapped, about), CloisterError) is not None:
        return wrapped
    return new.wrap(old.unwrap(wrapped, about), about)
