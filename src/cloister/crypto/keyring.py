"""A master key, and what follows from it: keys that are wrapped, texts that are signed, secrets for one purpose each.

Wrapping is AES-256-GCM with a fresh 96-bit nonce (NIST SP 800-38D); what a wrapped key is about is authenticated with it, so that
the key of one table can't be put in the place of another's. A key for a purpose is HMAC-SHA-256 of the purpose under the master
key, and a signature is HMAC-SHA-256 under the key for its purpose. A program that needs keys of its own takes a domain of its
own: two programs that hold the same master key then share no derived key.
"""

import contextlib
import hmac
import os
import threading
from pathlib import Path

from cloister.errors import CloisterError, InvalidParameter
from cloister.noise import default_random

KEY_BYTES = 32
_NONCE = 12


class WrongKey(CloisterError):
    """What was wrapped or signed under another key, or was changed."""

    stored = "WrongKey"


class Keyring:
    """One master key of 32 bytes, which shows itself nowhere. What it derives is bound to the domain: a name without NUL, chosen
    once, since no other opens what was wrapped under it.

    >>> keys = Keyring(bytes(32), domain="example")
    >>> keys.unwrap(keys.wrap(b"the data key", "people 1"), "people 1")
    b'the data key'
    >>> keys
    <Keyring>
    """

    __slots__ = ("_domain", "_master")

    def __init__(self, master: bytes, *, domain: str) -> None:
        if len(master) != KEY_BYTES:
            raise InvalidParameter("The master key is invalid", why=f"it has {len(master)} bytes", instead="32 random bytes")
        if not domain or "\0" in domain:  # NUL ends it: without that, two domains could derive one key
            raise ValueError("a domain is a name without NUL")
        self._domain, self._master = domain.encode() + b"\0", master

    def derive(self, purpose: str) -> bytes:
        """32 bytes for one purpose; they tell nothing of the master key, nor of the bytes for another purpose.

        >>> Keyring(bytes(32), domain="example").derive("cookies") == Keyring(bytes(32), domain="other").derive("cookies")
        False
        """
        return hmac.digest(self._master, self._domain + purpose.encode(), "sha256")

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
                instead="the master key that it was written under",
            ) from None

    def sign(self, purpose: str, text: str) -> str:
        """A signature of a text for a purpose, 64 characters.

        >>> len(Keyring(bytes(32), domain="example").sign("link", "a"))
        64
        """
        return hmac.digest(self.derive("signing " + purpose), text.encode(), "sha256").hex()

    def signed(self, purpose: str, text: str, signature: str) -> bool:
        """Whether the signature is that of the text for the purpose.

        >>> keys = Keyring(bytes(32), domain="example")
        >>> keys.signed("link", "a", keys.sign("link", "a")), keys.signed("link", "b", keys.sign("link", "a"))
        (True, False)
        """
        return hmac.compare_digest(self.sign(purpose, text).encode(), signature.encode())

    def __repr__(self) -> str:
        return "<Keyring>"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")


def new_key() -> bytes:
    """32 random bytes.

    >>> len(new_key()), new_key() == new_key()
    (32, False)
    """
    return default_random().bytes(KEY_BYTES)


def make_key_file(path: Path, text: str) -> None:
    """A file of that text, readable by its owner alone; one that is there already stays. Complete or absent: it is written under
    another name, then linked, so that two processes agree on one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     make_key_file(Path(folder) / "a.key", new_key().hex())
    ...     len((Path(folder) / "a.key").read_text())
    64
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
