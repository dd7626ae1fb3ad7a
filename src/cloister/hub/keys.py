"""The master key, and what follows from it: keys that are wrapped, texts that are signed, secrets for one purpose each.

Wrapping is AES-256-GCM with a fresh 96-bit nonce; what a wrapped text is about is authenticated with it, so that the key of one
data set cannot be put in the place of another's. A signature is HMAC-SHA-256 under a key derived for its purpose.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from pathlib import Path

from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import default_random

__all__ = ["Keys", "WrongKey", "master_key"]

_SIZE = 32
_NONCE = 12


class WrongKey(CloisterError):
    """What was wrapped or signed under another key, or was changed."""

    stored = "WrongKey"


class Keys:
    """One master key of 32 bytes, which shows itself nowhere.

    >>> keys = Keys(bytes(32))
    >>> keys.unwrap(keys.wrap(b"the data key", "people 1"), "people 1")
    b'the data key'
    >>> keys
    <Keys>
    """

    __slots__ = ("_master",)

    def __init__(self, master: bytes) -> None:
        if len(master) != _SIZE:
            raise InvalidParameter(
                "The master key is invalid",
                why=f"it has {len(master)} bytes",
                instead="32 random bytes: cloister hub key > master.key",
            )
        self._master = master

    def derive(self, purpose: str) -> bytes:
        """32 bytes for one purpose; they tell nothing of the master key, nor of the bytes for another purpose.

        >>> Keys(bytes(32)).derive("cookies") == Keys(bytes(32)).derive("cookies")
        True
        """
        return hmac.digest(self._master, b"cloister hub\0" + purpose.encode(), "sha256")

    def wrap(self, secret: bytes, about: str) -> bytes:
        """The secret, encrypted and bound to what it is about."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = default_random().bytes(_NONCE)
        return nonce + AESGCM(self.derive("wrapping")).encrypt(nonce, secret, about.encode())

    def unwrap(self, wrapped: bytes, about: str) -> bytes:
        """What was wrapped about the same thing under this master key; anything else is refused."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self.derive("wrapping")).decrypt(wrapped[:_NONCE], wrapped[_NONCE:], about.encode())
        except (InvalidTag, ValueError):
            raise WrongKey(
                "A stored secret could not be read",
                why="it was written under another master key, or changed",
                instead="the master key that this hub was set up with",
            ) from None

    def sign(self, purpose: str, text: str) -> str:
        """A signature of a text for a purpose, 64 characters.

        >>> len(Keys(bytes(32)).sign("link", "a"))
        64
        """
        return hmac.new(self.derive("signing " + purpose), text.encode(), hashlib.sha256).hexdigest()

    def signed(self, purpose: str, text: str, signature: str) -> bool:
        """Whether the signature is that of the text for the purpose.

        >>> keys = Keys(bytes(32))
        >>> keys.signed("link", "a", keys.sign("link", "a")), keys.signed("link", "b", keys.sign("link", "a"))
        (True, False)
        """
        return hmac.compare_digest(self.sign(purpose, text).encode(), signature.encode())

    def __repr__(self) -> str:
        return "<Keys>"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")


def master_key(text: str | None, path: Path, *, make: bool) -> bytes:
    """The master key from the environment's text (base64), or from its file; with `make`, a missing file is made, readable by its
    owner alone.
    """
    if text is not None:
        return _decoded(text, "the environment")
    if path.exists():
        return _decoded(path.read_text(), path.name)
    if not make:
        raise InvalidParameter(
            "The hub was not opened",
            why=f"its master key {path.name} is missing",
            instead="put the key file back from your key backup",
        )
    key = default_random().bytes(_SIZE)
    path.touch(mode=0o600, exist_ok=False)
    path.write_text(base64.b64encode(key).decode() + "\n")
    return key


def _decoded(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidParameter(
            f"The master key of {where} is invalid", why="it is not base64", instead="32 random bytes in base64"
        ) from None
