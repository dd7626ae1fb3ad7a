"""Keys of parties: the published vectors, keys for one purpose and one pair, and what is no key."""

from __future__ import annotations

import hmac
import pickle

import pytest
from cryptography.exceptions import InvalidSignature

import cloister as cl
from cloister.crypto import AgreementKey, SigningKey, is_signed
from cloister.crypto.identities import _SMALL_ORDER
from cloister.noise import Random

ED25519_SECRET = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
ED25519_PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
ED25519_OF_NOTHING = (
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
    "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)
"""RFC 8032, 7.1, test 1."""
ALICE_PUBLIC = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
BOB_SECRET = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"
BOB_PUBLIC = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
IN_COMMON = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"
"""RFC 7748, 6.1."""


def test_signatures_are_those_of_the_standard() -> None:
    key = SigningKey(bytes.fromhex(ED25519_SECRET))
    assert key.public.hex() == ED25519_PUBLIC
    assert key.sign(b"").hex() == ED25519_OF_NOTHING
    assert is_signed(key.public, b"", bytes.fromhex(ED25519_OF_NOTHING))


def test_agreement_is_that_of_the_standard() -> None:
    """And HKDF of RFC 5869, written out."""
    bob, alice = AgreementKey(bytes.fromhex(BOB_SECRET)), bytes.fromhex(ALICE_PUBLIC)
    assert bob.public.hex() == BOB_PUBLIC
    extracted = hmac.digest(b"".join(sorted((bob.public, alice))), bytes.fromhex(IN_COMMON), "sha256")
    assert bob.shared(alice, b"purpose") == hmac.digest(extracted, b"purpose\x01", "sha256")


def test_each_purpose_and_each_pair_has_a_key_of_its_own() -> None:
    random = Random.deterministic(1)
    one, other, third = (AgreementKey.generate(random) for _ in range(3))
    pairs = ((one, other), (one, third), (other, third))
    found = {key.shared(with_.public, purpose) for key, with_ in pairs for purpose in (b"a", b"b")}
    assert len(found) == 6


@pytest.mark.parametrize("public", [bytes(32), (1).to_bytes(32, "little"), bytes(31)])
def test_a_public_key_that_gives_no_secret_is_refused(public: bytes) -> None:
    with pytest.raises(cl.InvalidParameter, match="no secret follows"):
        AgreementKey(b"1" * 32).shared(public, b"mask")


def test_a_key_of_small_order_signs_nothing() -> None:
    """The neutral element, as key and as R with S = 0, satisfies the equation of RFC 8032 for every text; so does each of the
    eight points, for some texts."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    neutral = b"\x01" + bytes(31)
    Ed25519PublicKey.from_public_bytes(neutral).verify(neutral + bytes(32), b"any text")
    points = [each[:31] + bytes([each[31] | sign]) for each in _SMALL_ORDER for sign in (0, 0x80)]
    assert len(points) == 14
    forged = 0
    for public in points:
        for r in points:
            for text in (b"0", b"1", b"2"):
                assert not is_signed(public, text, r + bytes(32))
                try:
                    Ed25519PublicKey.from_public_bytes(public).verify(r + bytes(32), text)
                    forged += 1
                except (InvalidSignature, ValueError):
                    continue
    assert forged > 40


@pytest.mark.parametrize("public", [bytes(5), b"", b"x" * 32])
def test_what_is_no_key_has_signed_nothing(public: bytes) -> None:
    for signature in (bytes(64), b"\x01" + bytes(63), b""):
        assert not is_signed(public, b"text", signature)


def test_keys_are_neither_shown_nor_pickled() -> None:
    for key in (SigningKey(b"k" * 32), AgreementKey(b"k" * 32)):
        assert "kkk" not in repr(key)
        with pytest.raises(TypeError):
            pickle.dumps(key)
        with pytest.raises(cl.InvalidParameter):
            type(key)(b"short")
