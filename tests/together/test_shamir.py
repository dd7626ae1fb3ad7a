"""Secrets in shares: any so many give them back, fewer are independent of them."""

from __future__ import annotations

import itertools

import pytest

from cloister.noise import Random
from cloister.together import shamir
from cloister.together.shamir import PRIME, joined, split

SECRETS = [bytes(32), b"\xff" * 32, bytes(range(32))]


def test_the_modulus_is_prime() -> None:
    """Pratt's certificate would be longer than the number is doubtful: 40 strong tests, bases 2 to 41."""
    odd, twos = PRIME - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in range(2, 42):
        value = pow(base, odd, PRIME)
        assert value in (1, PRIME - 1) or any((value := value * value % PRIME) == PRIME - 1 for _ in range(twos))
    assert PRIME > 2**256


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("threshold", [1, 2, 4])
def test_any_so_many_give_it_back(secret: bytes, threshold: int) -> None:
    shares = split(secret, threshold, range(1, 6), Random.deterministic(1))
    assert {len(each) for each in shares.values()} == {shamir.SHARE_BYTES}
    for chosen in itertools.combinations(shares, threshold):
        assert joined({point: shares[point] for point in chosen}) == secret


def test_shares_of_two_secrets_do_not_fit_together() -> None:
    one, other = (split(secret, 3, range(1, 6), Random.deterministic(seed)) for seed, secret in enumerate(SECRETS[:2]))
    assert joined({1: one[1], 2: one[2], 3: other[3]}) not in SECRETS
    with pytest.raises(ValueError, match="one secret"):
        joined({1: (2**256).to_bytes(shamir.SHARE_BYTES, "big")})


def test_fewer_are_independent_of_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a field of 13 elements, over all coefficients: each pair of values at two points is as likely under every secret."""
    monkeypatch.setattr(shamir, "PRIME", 13)
    seen = {}
    for secret in range(13):
        pairs = []
        for one, other in itertools.product(range(13), repeat=2):

            class Given(Random):
                __slots__ = ("left",)

                def below_one(self, bound: int) -> int:
                    assert bound == 13
                    return self.left.pop()

            given = Given()
            given.left = [one, other]
            shares = split(bytes([secret]), 3, (2, 5), given)
            pairs.append((shares[2], shares[5]))
        seen[secret] = sorted(pairs)
    assert all(pairs == seen[0] for pairs in seen.values())
    assert len(set(seen[0])) == 13**2


def test_the_shares_stay_what_they_are() -> None:
    """A vector: shares made otherwise would be another version of the protocol."""

    class Ones(Random):
        __slots__ = ()

        def below_one(self, bound: int) -> int:
            return 1

    shares = split(bytes(31) + b"\x05", 3, (1, 10), Ones())
    assert [int.from_bytes(each, "big") for each in shares.values()] == [7, 115]
