"""The hash of blocks against its definition, and the permutation against published vectors."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.crypto.tweaked_hash import TweakedHash
from cloister.errors import InvalidParameter
from cloister.noise import Random

VECTORS = (  # FIPS 197, appendices B and C.1; NIST SP 800-38A, F.1.1
    ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),
    ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),
    ("2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a", "3ad77bb40d7a3660a89ecaf32466ef97"),
)


@pytest.mark.parametrize(("key", "plain", "encrypted"), VECTORS)
def test_the_permutation_is_aes(key: str, plain: str, encrypted: str) -> None:
    block = np.frombuffer(bytes.fromhex(plain), dtype="<u8")
    assert TweakedHash(bytes.fromhex(key)).permuted(block).tobytes().hex() == encrypted


def test_the_hash_is_its_definition_block_by_block() -> None:
    random = Random.deterministic(1)
    hashed, blocks = TweakedHash(random.bytes(16)), random.words(2 * 4 * 7).reshape(4, 7, 2)
    found = hashed(blocks, first=1000, halves=2).copy()
    for row in range(4):
        for place in range(7):
            once = hashed.permuted(blocks[row, place])
            tweak = np.array([1000 + place, row // 2], dtype=np.uint64)
            assert (found[row, place] == hashed.permuted(once ^ tweak) ^ once).all()


def test_shapes_and_orders_of_calls_do_not_matter() -> None:
    """Room is kept between calls: a hundred shapes later the answers are the same."""
    random = Random.deterministic(2)
    hashed = TweakedHash(random.bytes(16))
    blocks = random.words(2 * 2 * 100).reshape(2, 100, 2)
    first = hashed(blocks, first=3, halves=2).copy()
    for size in range(1, 100):
        part = blocks[:, :size]
        assert not part.flags.c_contiguous
        assert (hashed(part, first=3, halves=2) == first[:, :size]).all()
    assert (hashed(blocks, first=3, halves=2) == first).all()


def test_a_key_has_sixteen_bytes() -> None:
    with pytest.raises(InvalidParameter):
        TweakedHash(bytes(32))
