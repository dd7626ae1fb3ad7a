"""Masks and shares of secrets against vectors of our own (`masking.json`), which were worked out without the library."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.crypto.masking import add_mask, decoded, encoded
from cloister.noise import Random
from cloister.together.shamir import joined, split

TOLD = json.loads((Path(__file__).parent / "masking.json").read_text(encoding="utf-8"))


def signed(number: int, words: int) -> int:
    """The whole number nearest to 0."""
    return number - (1 << 64 * words) if number >> (64 * words - 1) else number


@pytest.mark.parametrize("told", TOLD["masks"], ids=lambda told: f"{told['about']}, {'off' if told['subtract'] else 'on'}")
def test_masks_are_the_vectors(told: dict[str, Any]) -> None:
    numbers, words, key = [int(each) for each in told["numbers"]], told["words"], bytes.fromhex(told["key"])
    vector = encoded(np.array(numbers, dtype=object), words=words)
    add_mask(vector, key, subtract=told["subtract"])
    assert decoded(vector).tolist() == [signed(int(each), words) for each in told["masked"]]
    add_mask(vector, key, subtract=not told["subtract"])
    assert decoded(vector).tolist() == numbers


def test_a_long_mask_is_the_vector() -> None:
    """Longer than what is kept of the stream at a time."""
    told = TOLD["long"]
    vector = encoded(np.arange(told["count"]), words=1)
    add_mask(vector, bytes.fromhex(told["key"]))
    assert hashlib.sha256(vector.astype("<u8").tobytes()).hexdigest() == told["sha256"]


@pytest.mark.parametrize("told", TOLD["shares"], ids=lambda told: told["about"])
def test_shares_are_the_vectors(told: dict[str, Any]) -> None:
    coefficients = [int(each) for each in told["coefficients"]]

    class Scripted(Random):
        __slots__ = ()

        def below_one(self, bound: int) -> int:
            assert bound == 2**256 + 297
            return coefficients.pop(0)

    secret, points = bytes.fromhex(told["secret"]), [int(point) for point in told["shares"]]
    shares = split(secret, told["threshold"], points, Scripted())
    assert {str(point): share.hex() for point, share in shares.items()} == told["shares"]
    assert not coefficients
    if len(points) >= told["threshold"]:
        assert joined(dict(list(shares.items())[-told["threshold"] :])) == secret
