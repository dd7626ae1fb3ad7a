"""Encrypted files: what was written comes back, and nothing else does."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloister.crypto.encrypted_file import CHUNK, HEAD_BYTES, TAG_BYTES, DecryptedReader, EncryptedWriter, decrypted, salt_of
from cloister.errors import EngineError, InvalidParameter

KEY = bytes(range(32))
WHOLE = CHUNK + TAG_BYTES


def encrypted(*parts: bytes, key: bytes = KEY) -> bytes:
    file = io.BytesIO()
    writer = EncryptedWriter(file, key)
    for part in parts:
        writer.write(part)
    writer.finish()
    assert writer.bytes == len(file.getvalue())
    return file.getvalue()


def back(content: bytes, key: bytes = KEY) -> bytes:
    return b"".join(decrypted(io.BytesIO(content), key))


@given(st.lists(st.binary(max_size=50), max_size=8))
def test_what_was_encrypted_comes_back(parts: list[bytes]) -> None:
    assert back(encrypted(*parts)) == b"".join(parts)


@pytest.mark.parametrize("length", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 7])
@pytest.mark.parametrize("step", [CHUNK // 3, 5 * CHUNK])
def test_every_length_around_a_chunk(length: int, step: int) -> None:
    content = (b"0123456789abcdef" * (length // 16 + 1))[:length]
    sealed = encrypted(*(content[i : i + step] for i in range(0, length, step)))
    assert back(sealed) == content
    chunks = max(1, -(-length // CHUNK))
    assert len(sealed) == HEAD_BYTES + length + chunks * TAG_BYTES
    with DecryptedReader(io.BytesIO(sealed), KEY) as raw:
        assert io.BufferedReader(raw, 1000).read() == content


def test_the_same_content_is_encrypted_differently_each_time() -> None:
    one, other = encrypted(b"x" * 100), encrypted(b"x" * 100)
    assert one != other
    assert salt_of(io.BytesIO(one)) != salt_of(io.BytesIO(other))


THREE = encrypted(b"a" * CHUNK, b"b" * CHUNK, b"c" * 10)


def chunk(number: int) -> bytes:
    return THREE[HEAD_BYTES + number * WHOLE :][:WHOLE]


@pytest.mark.parametrize(
    "change",
    [
        lambda: THREE[:-1],
        lambda: THREE + b"\0",
        lambda: THREE[: HEAD_BYTES + 2 * WHOLE],  # the last chunk dropped
        lambda: THREE[: HEAD_BYTES + WHOLE],
        lambda: THREE[:HEAD_BYTES],
        lambda: THREE[: HEAD_BYTES - 1],
        lambda: b"",
        lambda: THREE[:HEAD_BYTES] + chunk(1) + chunk(0) + chunk(2),  # two exchanged
        lambda: THREE[:HEAD_BYTES] + chunk(0) + chunk(2),  # one dropped
        lambda: THREE[:HEAD_BYTES] + chunk(0) + chunk(0) + chunk(2),  # one repeated
        lambda: THREE[:HEAD_BYTES] + chunk(0) + chunk(1) + chunk(2) + chunk(2),
        lambda: THREE[: HEAD_BYTES - 1] + bytes([THREE[HEAD_BYTES - 1] ^ 1]) + THREE[HEAD_BYTES:],  # another salt
        lambda: THREE[:HEAD_BYTES] + bytes([THREE[HEAD_BYTES] ^ 1]) + THREE[HEAD_BYTES + 1 :],
        lambda: b"X" + THREE[1:],
    ],
)
def test_every_change_is_found(change: Callable[[], bytes]) -> None:
    with pytest.raises(EngineError) as caught:
        back(change())
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_another_key_reads_nothing() -> None:
    with pytest.raises(EngineError, match="another key"):
        back(THREE, bytes(32))


@pytest.mark.parametrize("key", [b"", bytes(16), bytes(33), "0" * 32])
def test_a_key_of_another_length_is_refused(key: bytes) -> None:
    with pytest.raises(InvalidParameter, match="32 bytes"):
        encrypted(b"", key=key)
