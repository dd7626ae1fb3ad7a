"""Encrypted sums: right to the last bit at every size, refused where they could be wrong, and blind to whoever adds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gmpy2")

import gmpy2
from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.together import EncryptedVector, Paillier, PaillierPool, PublicKey, Slots

SMALL = Paillier.generate(1024, insecure=True, random=Random.deterministic(1))


@pytest.fixture(scope="module")
def keys() -> Paillier:
    return Paillier.generate(random=Random.deterministic(2))


def test_keys_are_as_long_and_as_shaped_as_they_say(keys: Paillier) -> None:
    p, q = keys.primes
    assert keys.public.bits == 2048
    assert p * q == keys.public.modulus
    assert (p % 4, q % 4, gmpy2.gcd(p - 1, q - 1)) == (3, 3, 2)
    assert gmpy2.is_prime(p, 40)
    assert gmpy2.is_prime(q, 40)
    # h is an N-th residue: it decrypts to 0, and so does its square
    assert keys.decrypt(vector(keys, [keys.public.residue]), exact=True).tolist() == [-(1 << 63)]
    for part in (repr(keys), str(keys), repr(keys.public)):
        assert str(p) not in part
        assert str(q) not in part


def vector(keys: Paillier, cells: list[int], length: int | None = None, **how: Any) -> EncryptedVector:
    """Ciphertexts made by hand."""
    return EncryptedVector(key=keys.public, cells=tuple(cells), length=length or len(cells), slots=Slots(**how), count=1)


def test_a_ciphertext_worked_out_by_hand() -> None:
    """p = 7, q = 11 as in the textbook: N = 77, N² = 5929; m = 42 with r = 23 is (1 + 42·77)·23⁷⁷ modulo 5929."""
    public = PublicKey(modulus=77, residue=4)
    by_hand = 1
    for _ in range(77):
        by_hand = by_hand * 23 % 5929
    assert by_hand == pow(23, 77, 5929) == 606
    cell = (1 + 42 * 77) * 606 % 5929
    keys = Paillier(public=public, primes=(7, 11))
    assert keys._plain(cell) == 42
    assert keys._plain(cell * cell % 5929) == 84 - 77


@settings(max_examples=30, deadline=None)
@given(
    values=st.lists(st.lists(st.integers(-(2**19), 2**19 - 1), min_size=7, max_size=7), min_size=1, max_size=5),
    times=st.integers(1, 8),
    quick=st.booleans(),
)
def test_sums_are_those_of_the_numbers(values: list[list[int]], times: int, quick: bool) -> None:
    how = Slots(bits=20, terms=64)
    assert SMALL.public.slots_in(how) < 7 * 3
    total = SMALL.public.encrypt(values[0], slots=how, quick=quick)
    for each in values[1:]:
        total = total + SMALL.public.encrypt(each, slots=how)
    total = times * total
    expected = times * np.array(values).sum(axis=0)
    assert SMALL.decrypt(total).tolist() == expected.tolist()
    assert SMALL.decrypt(total.hidden_again()).tolist() == expected.tolist()
    blinded, blinds = total.blinded()
    assert (SMALL.decrypt(blinded, exact=True) - blinds).tolist() == expected.tolist()
    assert SMALL.decrypt(EncryptedVector.from_json(total.to_json(), SMALL.public)).tolist() == expected.tolist()


def test_the_ends_of_a_slot_hold_through_all_terms_and_the_blind() -> None:
    how, n = Slots(bits=8, terms=1024), 40
    for value in (-128, 127):
        total = SMALL.public.encrypt([value] * n, slots=how) * 1024
        assert SMALL.decrypt(total).tolist() == [value * 1024] * n
        largest = Script(ones=True)
        blinded, blinds = total.blinded(random=largest)
        assert blinds[0] == (1 << (how.width - 1)) - 1
        assert (SMALL.decrypt(blinded, exact=True) - blinds).tolist() == [value * 1024] * n


class Script(Random):
    """Draws the largest blind, and real randomness otherwise."""

    def __init__(self, ones: bool) -> None:
        super().__init__()
        self.ones = ones

    def below_one(self, bound: int) -> int:
        return bound - 1 if bound & (bound - 1) == 0 else super().below_one(bound)


def test_a_slot_has_room_for_one_blind_and_another_is_refused() -> None:
    (blinded, blinds), other = SMALL.public.encrypt([5, 6]).blinded(), SMALL.public.encrypt([1, 2])
    read = EncryptedVector.from_json(blinded.to_json(), SMALL.public)
    assert (SMALL.decrypt(read + other, exact=True) - blinds).tolist() == [6, 8]
    assert "blinds" not in other.to_json()
    for add in (lambda: blinded * 4, lambda: blinded + read, lambda: read.blinded(), lambda: (read + other) * 2):
        with pytest.raises(InvalidParameter, match="room for one blind"):
            add()


def test_numbers_of_a_fixed_point_and_of_any_size() -> None:
    how = Slots(bits=40, fraction=20)
    found = SMALL.decrypt(SMALL.public.encrypt([0.5, -3.25, 7], slots=how) + SMALL.public.encrypt(np.full(3, 0.25), slots=how))
    assert found.tolist() == [0.75, -3.0, 7.25]
    large: Any = [2**63, -(2**63), np.int64(-1), True]
    assert SMALL.decrypt(SMALL.public.encrypt(large, slots=Slots(bits=70))).tolist() == [2**63, -(2**63), -1, 1]
    assert SMALL.decrypt(SMALL.public.encrypt([])).tolist() == []


def test_nobody_tells_ciphertexts_of_one_number_apart() -> None:
    """Each is new, no digit of the number shows in it, and a blinded sum says nothing: its law is that of the blind."""
    cells = {SMALL.public.encrypt([5], quick=quick).cells[0] for quick in (True, False) for _ in range(20)}
    assert len(cells) == 40
    again = SMALL.public.encrypt([5])
    assert again.hidden_again().cells != again.cells
    high = [int(SMALL.decrypt(SMALL.public.encrypt([value]).blinded()[0], exact=True)[0]).bit_length() for value in (0, 10**18)]
    assert max(high) - min(high) < 60  # of some 114 bits; equal but for 2^-50


def test_a_key_proves_itself_and_a_bad_one_cannot(keys: Paillier) -> None:
    proof = keys.prove()
    assert keys.public.check(proof)
    assert not keys.public.check(proof[1:])
    assert not keys.public.check([1, *proof[1:]])
    assert not replace(keys.public, modulus=keys.public.modulus + 2).check(proof)
    assert not SMALL.public.check(SMALL.prove()), "too short"
    p, _ = keys.primes
    divides = PublicKey(modulus=p * p, residue=keys.public.residue)  # N shares p with φ(N): most numbers have no N-th root
    assert not divides.check(proof)
    assert not PublicKey(modulus=keys.public.modulus * 65_521, residue=2).check(proof), "a small prime divides it"
    again = PublicKey.from_json(keys.public.to_json())
    assert again == keys.public
    assert keys.decrypt(again.encrypt([7])).tolist() == [7]


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda: Paillier.generate(1024), "it is even, and 2048"),
        (lambda: Paillier.generate(64, insecure=True), "it is even, and 256"),
        (lambda: Paillier.generate(2049), "even"),
        (lambda: SMALL.public.encrypt([float("nan")]), "finite number"),
        (lambda: SMALL.public.encrypt(["x"]), "finite number"),
        (lambda: SMALL.public.encrypt(np.array([None])), "finite number"),
        (lambda: SMALL.public.encrypt([128], slots=Slots(bits=8)), "does not fit"),
        (lambda: SMALL.public.encrypt([-129], slots=Slots(bits=8)), "does not fit"),
        (lambda: SMALL.public.encrypt([128.0], slots=Slots(bits=16, fraction=8)), "does not fit"),
        (lambda: Paillier.generate(256, insecure=True).public.encrypt([1], slots=Slots(bits=400)), "the key has 256"),
        (lambda: Slots(bits=1), "from 2 to 512"),
        (lambda: Slots(terms=0), "from 1"),
        (lambda: SMALL.public.encrypt([1]) + SMALL.public.encrypt([1, 2]), "other keys, lengths or slots"),
        (lambda: SMALL.public.encrypt([1]) + SMALL.public.encrypt([1], slots=Slots(bits=8)), "other keys, lengths or slots"),
        (lambda: SMALL.public.encrypt([1], slots=Slots(terms=1)) * 2, "hold 1 terms"),
        (lambda: SMALL.public.encrypt([1]) * 0, "hold 1024 terms"),
        (lambda: 3 * (SMALL.public.encrypt([1], slots=Slots(terms=3)) * 2), "hold 3 terms"),
        (lambda: SMALL.decrypt(SMALL.public.encrypt([1]).blinded()[0]), "blinded"),
        (lambda: SMALL.decrypt(Paillier.generate(512, insecure=True).public.encrypt([1])), "another key"),
        (lambda: SMALL.decrypt(vector(SMALL, [0])), "no unit"),
        (lambda: SMALL.decrypt(vector(SMALL, [SMALL.primes[0]])), "no unit"),
        (lambda: SMALL.decrypt(vector(SMALL, [(1 + (SMALL.public.modulus - 1) * SMALL.public.modulus)])), "not packed so"),
        (lambda: PublicKey.from_json("{}"), "no text of a key"),
        (lambda: PublicKey.from_json(SMALL.public.to_json()), "no text of a key"),
    ],
)
def test_what_could_be_wrong_is_refused(act: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        act()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"key": "0"},
        {"length": 99},
        {"length": -1},
        {"count": 0},
        {"count": 5000},
        {"cells": []},
        {"cells": ["0"]},
        {"cells": ["zz"]},
        {"slots": {"bits": 1}},
        {"slots": 3},
    ],
    ids=str,
)
def test_a_text_that_is_no_vector_is_refused(change: dict[str, Any]) -> None:
    text = json.dumps({**json.loads(SMALL.public.encrypt([1]).to_json()), **change})
    with pytest.raises(InvalidParameter):
        EncryptedVector.from_json(text, SMALL.public)


def test_a_sum_in_one_pass_is_that_of_many_additions() -> None:
    keys = Paillier.generate(512, insecure=True)
    slots = Slots(bits=100, terms=64, blind=False)
    vectors = [keys.public.encrypt([n, -(2**90) + n], slots=slots) for n in range(40)]
    total = EncryptedVector.total(iter(vectors))
    assert total == reduce(lambda one, two: one + two, vectors)
    assert keys.decrypt(total).tolist() == [sum(range(40)), -40 * 2**90 + sum(range(40))]
    assert EncryptedVector.total(vectors[:1]) == vectors[0]
    other = Paillier.generate(512, insecure=True).public.encrypt([1, 2], slots=slots)
    for wrong, why in (([*vectors, other], "other keys"), (vectors * 2, "hold 64 terms"), ([], "no vector")):
        with pytest.raises(InvalidParameter, match=why):
            EncryptedVector.total(wrong)
    blinded = keys.public.encrypt([1]).blinded()[0]
    with pytest.raises(InvalidParameter, match="one blind"):
        EncryptedVector.total([blinded, blinded])


def test_a_pool_gives_what_one_process_gives() -> None:
    keys = Paillier.generate(512, insecure=True)
    slots = Slots(bits=30, fraction=4, terms=5)
    vectors = [[1.5, -2.25, 7], [0, 0, 0], [3, 4, 5.5]]
    with PaillierPool(keys, processes=2) as pool:
        sent = pool.encrypt(vectors, slots=slots)
        assert [keys.decrypt(each).tolist() for each in sent] == vectors
        assert [each.tolist() for each in pool.decrypt(sent)] == vectors
        assert keys.decrypt(sent[0] + sent[2]).tolist() == [4.5, 1.75, 12.5]
        assert len({each.cells for each in pool.encrypt([vectors[1]] * 4, slots=slots)}) == 4  # randomness of their own
        with pytest.raises(InvalidParameter, match="does not fit"):
            pool.encrypt([[1], [2.0**40]], slots=slots)
    alone = PaillierPool(keys.public)
    assert keys.decrypt(alone.encrypt([[5]])[0]).tolist() == [5]  # one vector starts no process
    assert alone._pool is None
    with pytest.raises(InvalidParameter, match="public key alone"):
        alone.decrypt(sent)
    with pytest.raises(InvalidParameter, match="from 1 to 64"):
        PaillierPool(keys, processes=0)
