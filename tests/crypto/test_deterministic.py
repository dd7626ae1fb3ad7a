"""Lines without a nonce: equal in equal places, and every bit, place and key counts."""

from __future__ import annotations

import pytest

from cloister.crypto import DeterministicCipher, WrongKey

ONE = DeterministicCipher(bytes(range(64)))
PLACE = [b"table", b"1", b"state"]


def test_equal_texts_are_equal_in_the_same_place_alone() -> None:
    assert ONE.encrypt(b"a line", PLACE) == ONE.encrypt(b"a line", PLACE)
    assert ONE.encrypt(b"a line", PLACE) != ONE.encrypt(b"a line", [b"table", b"2", b"state"])
    assert b"line" not in ONE.encrypt(b"a line", PLACE)


def test_what_was_changed_moved_or_is_of_another_key_is_refused() -> None:
    made = ONE.encrypt(b"a line", PLACE)
    assert ONE.decrypt(made, PLACE) == b"a line"
    for place in ([], PLACE[:2], [b"table1", b"", b"state"], [*PLACE, b""]):
        with pytest.raises(WrongKey):
            ONE.decrypt(made, place)
    for bit in range(8 * len(made)):
        changed = bytearray(made)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(WrongKey):
            ONE.decrypt(bytes(changed), PLACE)
    for other, text in [(DeterministicCipher(bytes(64)), made), (ONE, b""), (ONE, made[:15]), (ONE, made[:-1])]:
        with pytest.raises(WrongKey):
            other.decrypt(text, PLACE)


@pytest.mark.parametrize("size", [0, 32, 48, 63, 65])
def test_a_key_has_64_bytes(size: int) -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        DeterministicCipher(bytes(size))
