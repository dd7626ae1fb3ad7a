"""Randomised encryption that survives a repeated nonce: AES-256-GCM-SIV (RFC 8452), for values that are written again and again.

The nonce is random and stands before the ciphertext. Under AES-GCM a nonce that comes twice gives away the key that
authenticates; here it shows that two equal texts in one place are equal, and nothing else (Gueron, Langley & Lindell 2017).
What it shows otherwise is the length, to the byte: the caller pads.
"""

from cloister.crypto.keyring import KEY_BYTES, WrongKey
from cloister.noise import default_random

NONCE_BYTES = 12


class RandomizedCipher:
    """AES-256-GCM-SIV under one key. What a text is bound to (its place) is authenticated with it.

    >>> cipher = RandomizedCipher(bytes(32))
    >>> cipher.decrypt(cipher.encrypt(b"39", b"row 1"), b"row 1")
    b'39'
    >>> cipher.encrypt(b"39", b"row 1") == cipher.encrypt(b"39", b"row 1")
    False
    """

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

        if len(key) != KEY_BYTES:  # the library takes shorter ones too, for AES-128
            raise ValueError("a key of AES-256-GCM-SIV has 32 bytes")
        self._cipher = AESGCMSIV(key)

    def encrypt(self, text: bytes, bound: bytes) -> bytes:
        """The text, encrypted under a random nonce and bound."""
        nonce = default_random().bytes(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text, bound)

    def decrypt(self, encrypted: bytes, bound: bytes) -> bytes:
        """What was encrypted and bound so under this key; anything else is refused."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], bound)
        except (InvalidTag, ValueError):
            raise WrongKey(
                "A stored value could not be read",
                why="it was written under another key or in another place, or changed",
                instead="the value as it was written, and its own key",
            ) from None
