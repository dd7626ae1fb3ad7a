"""Keys that say who a party is, and keys that two parties agree on: Ed25519 (RFC 8032), X25519 (RFC 7748), HKDF (RFC 5869).

A signing key lasts, and its fingerprint is what owners compare over the telephone. An agreement key is made for one round and
then forgotten. What two agreement keys have in common is turned into one key for each purpose; the purpose and both public
keys are in it, so that no two rounds, and no two pairs, share one.

Assumptions: Ed25519 can't be forged, and X25519 with HKDF gives keys that nobody tells from uniform ones (the gap
Diffie–Hellman assumption, with HKDF as a random oracle: Krawczyk 2010).
"""

from __future__ import annotations

import hashlib

from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random

KEY_BYTES = 32
_REMEMBERED = 1000
"""With how many others a key remembers what it agreed on."""
SIGNATURE_BYTES = 64
_SMALL_ORDER = frozenset(
    bytes.fromhex(each)
    for each in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""The points of order 1, 2, 4 and 8, in all spellings, less their sign: under such a key anybody "signs" any text, since a
multiple of it is one of eight points."""


class SigningKey:
    """An Ed25519 key: the lasting identity of one party. It shows itself nowhere and is not pickled.

    >>> key = SigningKey(bytes(32))
    >>> is_signed(key.public, b"a plan", key.sign(b"a plan")), is_signed(key.public, b"another", key.sign(b"a plan"))
    (True, False)
    """

    __slots__ = ("_key", "public")

    public: bytes

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._key = Ed25519PrivateKey.from_private_bytes(_checked(secret))
        self.public = self._key.public_key().public_bytes_raw()

    @classmethod
    def generate(cls, random: Random | None = None) -> SigningKey:
        """A fresh one.

        >>> SigningKey.generate().public == SigningKey.generate().public
        False
        """
        return cls((random or default_random()).bytes(KEY_BYTES))

    def sign(self, text: bytes) -> bytes:
        """64 bytes that only this key makes of this text."""
        return self._key.sign(text)

    def __repr__(self) -> str:
        return f"<SigningKey {fingerprint(self.public)}>"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")


def is_signed(public: bytes, text: bytes, signature: bytes) -> bool:
    """Whether the signature is that of the text under the key with this public half.

    >>> is_signed(bytes(32), b"a plan", bytes(64))
    False
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(public) != KEY_BYTES or public[:31] + bytes([public[31] & 0x7F]) in _SMALL_ORDER:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(public: bytes) -> str:
    """What owners read out to one another: 80 bits of the key's SHA-256, in groups of four digits.

    >>> fingerprint(bytes(32))
    '6668 7aad f862 bd77 6c8f'
    """
    digits = hashlib.sha256(public).hexdigest()[:20]
    return " ".join(digits[start : start + 4] for start in range(0, 20, 4))


class AgreementKey:
    """An X25519 key of one round.

    >>> one, other = AgreementKey.generate(), AgreementKey.generate()
    >>> one.shared(other.public, b"mask") == other.shared(one.public, b"mask") != one.shared(other.public, b"channel")
    True
    """

    __slots__ = ("_agreed", "_key", "public", "secret")

    public: bytes
    secret: bytes

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self.secret = _checked(secret)
        self._key, self._agreed = X25519PrivateKey.from_private_bytes(secret), dict[bytes, bytes]()
        self.public = self._key.public_key().public_bytes_raw()

    @classmethod
    def generate(cls, random: Random | None = None) -> AgreementKey:
        """A fresh one."""
        return cls((random or default_random()).bytes(KEY_BYTES))

    def shared(self, public: bytes, purpose: bytes, length: int = KEY_BYTES) -> bytes:
        """The bytes that both holders derive for a purpose, and nobody else."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        try:
            raw = self._agreed.get(public) or self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # a point of small order, which would make the key known to all
            raise InvalidParameter(
                "The public key is invalid", why="no secret follows from it", instead="the key that the other party made"
            ) from None
        if len(self._agreed) < _REMEMBERED:  # a round derives several keys from one secret
            self._agreed[public] = raw
        first, second = sorted((self.public, public))
        return HKDF(algorithm=SHA256(), length=length, salt=first + second, info=purpose).derive(raw)

    def __repr__(self) -> str:
        return "<AgreementKey>"

    def __reduce__(self) -> str:
        raise TypeError("keys are not pickled")


def _checked(secret: bytes) -> bytes:
    if len(secret) != KEY_BYTES:
        raise InvalidParameter("The key is invalid", why=f"it has {len(secret)} bytes", instead="32 random bytes")
    return secret
