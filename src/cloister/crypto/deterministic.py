"""Deterministic encryption that finds changes: AES-SIV (RFC 5297; Rogaway & Shrimpton 2006), for lines and cells of a database.

What it shows: the length, and which texts that are bound to the same place are equal. So it is for texts whose places differ, or
where equality may be seen; in return it needs no nonce, so no counter that a restored backup would set back.
"""

from collections.abc import Sequence

from cloister.crypto.keyring import WrongKey


class DeterministicCipher:
    """AES-256-SIV under one key of 64 bytes. What a text is bound to (its place) is authenticated with it.

    >>> cipher = DeterministicCipher(bytes(64))
    >>> cipher.decrypt(cipher.encrypt(b"a line", [b"table", b"1"]), [b"table", b"1"])
    b'a line'
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESSIV

        if len(key) != 64:  # the library takes shorter ones too, for AES-128 and AES-192
            raise ValueError("a key of AES-256-SIV has 64 bytes")
        self._cipher = AESSIV(key)

    def encrypt(self, text: bytes, bound: Sequence[bytes]) -> bytes:
        """The text, encrypted and bound."""
        return self._cipher.encrypt(text, list(bound))

    def decrypt(self, encrypted: bytes, bound: Sequence[bytes]) -> bytes:
        """What was encrypted and bound so under this key; anything else is refused."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(encrypted, list(bound))
        except (InvalidTag, ValueError):
            raise WrongKey(
                "A stored line could not be read",
                why="it was written under another key or in another place, or changed",
                instead="the line as it was written, and its own key",
            ) from None
