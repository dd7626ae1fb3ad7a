"""Cryptography: keys, what is encrypted under them, and the bytes that are signed and chained.

    keyring.py         a master key: keys derived for purposes, wrapped keys, signatures; the file that a key lies in
    encrypted_file.py  a stream of bytes as an encrypted file
    deterministic.py   encryption of lines and cells without a nonce
    gcm_siv.py         encryption of values under a random nonce, which may repeat
    prf.py             draws that follow from a secret
    canonical.py       one text for each value, for digests, chains and signatures
    tls.py             the two ends of a connection whose certificates are checked
    identities.py      keys that say who a party is, and keys that two parties agree on
    tweaked_hash.py    a quick hash of single blocks, for garbled circuits
    sealing.py         a secret for whoever holds a key, sealed by anybody
    masking.py         whole numbers masked by a key stream, modulo 2^(64·k)
    paillier.py        numbers that whoever adds them cannot read (needs gmpy2)
    paillier_pool.py   the same in several processes

What may live here: schemes that are published and proved, put together from the library `cryptography`, OpenSSL (`ssl`), GMP
(`gmpy2`) and Python's `hmac` and `hashlib`, and the formats of what they write. Keys that identify a party (X25519, TLS) belong
here too. What may not: rows and what is declared of them (`tables` has the source that reads an encrypted file), policy (whose
key it is, where it lies and when it changes is for the caller to say: for the hub, `hub/keys.py`), sockets, and a cipher of our
own. Randomness comes from `noise` and from nowhere else; nothing else of the calculus is used.

What was written once must open for ever: headers, purposes of derived keys and associated data are literals, and
`tests/crypto/test_formats.py` holds what each of them came to when it was written.
"""

from typing import TYPE_CHECKING

from cloister.lazily import Lazily

if TYPE_CHECKING:
    from cloister.crypto.canonical import canonical_json as canonical_json
    from cloister.crypto.deterministic import DeterministicCipher as DeterministicCipher
    from cloister.crypto.encrypted_file import CHUNK as CHUNK
    from cloister.crypto.encrypted_file import DecryptedReader as DecryptedReader
    from cloister.crypto.encrypted_file import EncryptedWriter as EncryptedWriter
    from cloister.crypto.encrypted_file import decrypted as decrypted
    from cloister.crypto.encrypted_file import salt_of as salt_of
    from cloister.crypto.gcm_siv import RandomizedCipher as RandomizedCipher
    from cloister.crypto.identities import AgreementKey as AgreementKey
    from cloister.crypto.identities import SigningKey as SigningKey
    from cloister.crypto.identities import fingerprint as fingerprint
    from cloister.crypto.identities import is_signed as is_signed
    from cloister.crypto.keyring import Keyring as Keyring
    from cloister.crypto.keyring import WrongKey as WrongKey
    from cloister.crypto.keyring import make_key_file as make_key_file
    from cloister.crypto.keyring import new_key as new_key
    from cloister.crypto.prf import PseudoRandomFunction as PseudoRandomFunction
    from cloister.crypto.sealing import seal as seal
    from cloister.crypto.sealing import unseal as unseal
    from cloister.crypto.tls import client_context as client_context
    from cloister.crypto.tls import server_context as server_context

__all__, __getattr__, __dir__ = Lazily(__name__).public
