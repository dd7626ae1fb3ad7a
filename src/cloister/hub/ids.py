"""Names that nobody can guess, and secrets, from the library's one source of randomness."""

import base64
import hashlib
import hmac

from cloister.noise import default_random


def new_id() -> str:
    """A name for a new thing: 22 characters that may stand in an address (128 bits).

    >>> len(new_id()), new_id() == new_id()
    (22, False)
    """
    return _text(16)


def new_secret() -> str:
    """A secret to hand out once: 43 characters that may stand in an address (256 bits).

    >>> len(new_secret())
    43
    """
    return _text(32)


def digest(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits, so no slow hash is needed to keep it from being guessed.

    >>> digest("a") == digest("a"), len(digest("a"))
    (True, 64)
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two texts are equal, in a time that does not tell where they differ.

    >>> same("a", "a"), same("a", "b")
    (True, False)
    """
    return hmac.compare_digest(one.encode(), other.encode())


def _text(size: int) -> str:
    return base64.urlsafe_b64encode(default_random().bytes(size)).rstrip(b"=").decode()
