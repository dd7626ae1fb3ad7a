"""Masks: numbers come back, sums add up at every width, and the stream is that of its key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import cloister as cl
from cloister.crypto.masking import add, add_mask, decoded, encoded


@given(some.lists(some.integers(-(2**190), 2**190 - 1), min_size=1, max_size=5), some.integers(3, 4))
def test_wide_numbers_come_back(numbers: list[int], words: int) -> None:
    assert decoded(encoded(np.array(numbers, dtype=object), words=words)).tolist() == numbers


@pytest.mark.parametrize("words", [1, 2, 3])
def test_sums_are_modulo_a_power_of_two(words: int) -> None:
    """At the edges of words, where a carry runs through."""
    size = 64 * words
    edges = [0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, -(2**64), 2 ** (size - 1) - 1, -(2 ** (size - 1))]
    left, right = np.array([(a, b) for a in edges for b in edges], dtype=object).T
    for subtract in (False, True):
        total = encoded(left, words=words)
        add(total, encoded(right, words=words), subtract=subtract)
        wanted = [(a - b if subtract else a + b) % 2**size for a, b in zip(left, right, strict=True)]
        assert [number % 2**size for number in decoded(total).tolist()] == wanted


@pytest.mark.parametrize("count", [1, 7, 1 << 15, (1 << 15) + 1, 70_000])
@pytest.mark.parametrize("words", [1, 2, 3])
def test_a_mask_comes_off_and_is_one_stream(count: int, words: int) -> None:
    """However long the pieces are in which it is added."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key, vector = bytes(range(32)), encoded(np.arange(count), words=words)
    add_mask(vector, key)
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * count * words))
    wanted = encoded(np.arange(count), words=words)
    add(wanted, np.frombuffer(stream, dtype="<u8").reshape(-1, words))
    np.testing.assert_array_equal(vector, wanted)
    add_mask(vector, key, subtract=True)
    assert decoded(vector).tolist() == list(range(count))


def test_the_stream_stays_what_it_is() -> None:
    """A vector: another stream would be another version of the protocol."""
    vector = encoded([0, 0], words=1)
    add_mask(vector, bytes(32))
    assert vector[:, 0].astype("<u8").tobytes().hex() == "dc95c078a2408989ad48a21492842087"


@pytest.mark.parametrize("numbers", [[0.5], ["1"], [None], [1 + 2j]])
def test_only_whole_numbers_are_masked(numbers: Any) -> None:
    with pytest.raises(cl.InvalidParameter, match="whole numbers"):
        encoded(numbers, words=1)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint32, np.int64, np.uint64])
def test_machine_numbers_of_every_width_are_taken(kind: Any) -> None:
    assert decoded(encoded(np.array([0, 1, 100], dtype=kind), words=2)).tolist() == [0, 1, 100]
