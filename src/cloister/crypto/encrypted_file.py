"""A stream of bytes as an encrypted file: AES-256-GCM in chunks, so that gigabytes pass through a megabyte of memory.

Format: `MAGIC`, a salt of 32 random bytes, then chunks of 2^20 bytes (the last may be shorter, also empty), each followed by its
tag of 16 bytes. The key of the file is HKDF-SHA-256 of the key that was given and the salt. The nonce of chunk i is the number i
and a byte that says whether it is the last; magic and salt are authenticated with every chunk.

Claim: anyone who lacks the key learns the length and nothing else, and can neither change, reorder, drop, repeat nor truncate a
chunk without being found out when it is read. Proof: two files have the same key only if their salts are equal (2^-256 a pair),
and within a file no nonce repeats, so each chunk is an AES-GCM encryption under a nonce of its own (NIST SP 800-38D), with
fewer than 2^32 blocks. A chunk put in another place, or taken for the last one when it is not, is decrypted under another nonce
than it was encrypted under, and its tag fails. This is the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015,
"Online Authenticated-Encryption and its Nonce-Reuse Misuse-Resistance").

A chunk is handed on as soon as its own tag is right, before the chunks after it were seen: a reader acts on what it read only
after the last one.
"""

import hashlib
import io
from collections.abc import Iterator
from typing import IO, Any

from cloister.crypto.keyring import KEY_BYTES
from cloister.errors import EngineError, InvalidParameter
from cloister.noise import default_random

MAGIC = b"cloister sealed 1\n"
SALT_BYTES = 32
HEAD_BYTES = len(MAGIC) + SALT_BYTES
CHUNK = 2**20
TAG_BYTES = 16


class EncryptedWriter:
    """Writes what it is given, encrypted, to a binary file; whoever opened the file closes it.

    >>> file = io.BytesIO()
    >>> writer = EncryptedWriter(file, bytes(32))
    >>> writer.write(b"Alice, 39")
    >>> writer.finish()
    >>> b"Alice" in file.getvalue()
    False
    >>> _ = file.seek(0)
    >>> b"".join(decrypted(file, bytes(32)))
    b'Alice, 39'
    """

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        self._head = MAGIC + default_random().bytes(SALT_BYTES)
        self._cipher = _cipher(key, self._head)
        self._file = file
        self._waiting = bytearray()
        self._number = 0
        self._digest = hashlib.sha256()
        self.bytes = 0
        self._put(self._head)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """More of the content."""
        self._waiting += data
        if len(self._waiting) <= CHUNK:  # the last chunk is only known as such at the end, so a full one waits
            return
        whole = (len(self._waiting) - 1) // CHUNK * CHUNK
        with memoryview(self._waiting) as view:
            for start in range(0, whole, CHUNK):
                self._encrypt(view[start : start + CHUNK], last=False)
        del self._waiting[:whole]

    def finish(self) -> None:
        """The last chunk. What is not finished is not readable."""
        self._encrypt(self._waiting, last=True)
        self._waiting = bytearray()

    @property
    def digest(self) -> str:
        """SHA-256 of the file so far, as hexadecimal digits."""
        return self._digest.hexdigest()

    def _encrypt(self, chunk: Any, *, last: bool) -> None:
        self._put(self._cipher.encrypt(_nonce(self._number, last), chunk, self._head))
        self._number += 1

    def _put(self, data: bytes) -> None:
        self._file.write(data)
        self._digest.update(data)
        self.bytes += len(data)


def decrypted(file: IO[bytes], key: bytes) -> Iterator[bytes]:
    """The content of an encrypted file, chunk by chunk; an `EngineError` where it was changed, cut off, or has another key."""
    from cryptography.exceptions import InvalidTag

    head = _head(file)
    cipher = _cipher(key, head)
    number = 0
    current: bytes | None = file.read(CHUNK + TAG_BYTES)
    while current is not None:
        following = file.read(CHUNK + TAG_BYTES) or None
        content = None
        try:
            content = cipher.decrypt(_nonce(number, following is None), current, head)
        except (InvalidTag, ValueError):
            content = None
        if content is None:
            raise _damaged("it was changed, is not whole, or belongs to another key")
        yield content
        number, current = number + 1, following


def salt_of(file: IO[bytes]) -> str:
    """The salt, which differs each time something is encrypted: a name for this very writing of it.

    >>> file = io.BytesIO()
    >>> EncryptedWriter(file, bytes(32)).finish()
    >>> _ = file.seek(0)
    >>> len(salt_of(file))
    64
    """
    return _head(file)[len(MAGIC) :].hex()


class DecryptedReader(io.RawIOBase):
    """The content of an encrypted file as a readable binary file, for what wants one. Closing it closes the encrypted file.

    >>> file = io.BytesIO()
    >>> writer = EncryptedWriter(file, bytes(32))
    >>> writer.write(b"age\\n39\\n")
    >>> writer.finish()
    >>> _ = file.seek(0)
    >>> io.BufferedReader(DecryptedReader(file, bytes(32))).readlines()
    [b'age\\n', b'39\\n']
    """

    def __init__(self, file: IO[bytes], key: bytes) -> None:
        self._file = file
        self._chunks = decrypted(file, key)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Up to so many bytes; 0 at the end."""
        target = memoryview(buffer).cast("B")
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def close(self) -> None:
        """Lets go of the encrypted file."""
        self._file.close()
        super().close()


def _head(file: IO[bytes]) -> bytes:
    head = file.read(HEAD_BYTES)
    if len(head) != HEAD_BYTES or not head.startswith(MAGIC):
        raise _damaged("it is not a sealed file, or not whole")
    return head


def _cipher(key: bytes, head: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise InvalidParameter("The key is invalid", why=f"it is not {KEY_BYTES} bytes", instead="32 random bytes")
    return AESGCM(HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=head[len(MAGIC) :], info=MAGIC).derive(key))


def _nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _damaged(why: str) -> EngineError:
    return EngineError("The encrypted file could not be read", why=why, instead="the file as it was written, and its own key")
