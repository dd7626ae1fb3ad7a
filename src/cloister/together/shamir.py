"""A secret in shares, of which any `threshold` give it back and fewer say nothing (Shamir 1979).

A secret of 32 bytes is a number below p = 2^256 + 297, a prime. It is the value at 0 of a polynomial of degree threshold − 1
whose other coefficients are uniform, and a share is the value at one point. Claim: the shares of fewer than `threshold`
points are independent of the secret. Proof: for each secret exactly one polynomial of that degree passes through it and any
threshold − 1 given values, so each set of values is as likely under every secret. ∎ The arithmetic is Python's, whose time
depends on the numbers; shares are made and joined once a round, on machines of their owners.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from cloister.noise import Random, default_random

PRIME = 2**256 + 297
SHARE_BYTES = 33


def split(secret: bytes, threshold: int, points: Iterable[int], random: Random | None = None) -> dict[int, bytes]:
    """A share for each point (whole numbers from 1 on).

    >>> shares = split(bytes(range(32)), 2, [1, 2, 3])
    >>> joined({1: shares[1], 3: shares[3]}) == bytes(range(32))
    True
    """
    drawn = random or default_random()
    coefficients = [drawn.below_one(PRIME) for _ in range(threshold - 1)]
    shares = {}
    for point in points:
        value = 0
        for coefficient in coefficients:
            value = (value + coefficient) * point % PRIME
        value = (value + int.from_bytes(secret, "big")) % PRIME
        shares[point] = value.to_bytes(SHARE_BYTES, "big")
    return shares


def joined(shares: Mapping[int, bytes]) -> bytes:
    """The secret, from as many shares as the threshold; ValueError where they are of no secret of 32 bytes."""
    weights = _weights(tuple(sorted(shares)))
    value = sum(weight * int.from_bytes(shares[point], "big") for point, weight in weights.items()) % PRIME
    if value >= 2**256:
        raise ValueError("these shares are not of one secret")
    return value.to_bytes(32, "big")


@lru_cache(maxsize=64)
def _weights(points: tuple[int, ...]) -> dict[int, int]:
    """Lagrange's weights at 0."""
    found = {}
    for point in points:
        above = below = 1
        for other in points:
            if other != point:
                above = above * other % PRIME
                below = below * (other - point) % PRIME
        found[point] = above * pow(below, -1, PRIME) % PRIME
    return found
