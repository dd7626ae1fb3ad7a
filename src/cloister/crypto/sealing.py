"""A secret sealed to whoever holds a key, by anybody who knows its public half: X25519, HKDF, AES-256-GCM-SIV.

The sender makes an agreement key for this one text and forgets it, so it can't open what it sealed. What the secret is about is
authenticated with it: who relays it can neither change that nor seal the same secret about something else. Assumptions: those of
`identities.py` and `gcm_siv.py`. Who sealed it is not said.
"""

from cloister.crypto.gcm_siv import RandomizedCipher
from cloister.crypto.identities import KEY_BYTES, AgreementKey

_PURPOSE = b"cloister sealed secret 1"
OVERHEAD = KEY_BYTES + 12 + 16
"""Bytes that a sealed secret is longer."""


def seal(public: bytes, secret: bytes, about: bytes) -> bytes:
    """The secret, for the holder of the agreement key with this public half.

    >>> key = AgreementKey.generate()
    >>> unseal(key, seal(key.public, b"a data key", b"batch 1"), b"batch 1")
    b'a data key'
    """
    own = AgreementKey.generate()
    return own.public + RandomizedCipher(own.shared(public, _PURPOSE)).encrypt(secret, about)


def unseal(key: AgreementKey, sealed: bytes, about: bytes) -> bytes:
    """What was sealed to this key about the same thing; `WrongKey` for anything else.

    >>> from cloister.crypto import WrongKey
    >>> key = AgreementKey.generate()
    >>> try:
    ...     unseal(key, seal(key.public, b"a data key", b"batch 1"), b"batch 2")
    ... except WrongKey as error:
    ...     print(error.what)
    A stored value could not be read
    """
    return RandomizedCipher(key.shared(sealed[:KEY_BYTES].ljust(KEY_BYTES, b"\x01"), _PURPOSE)).decrypt(sealed[KEY_BYTES:], about)
