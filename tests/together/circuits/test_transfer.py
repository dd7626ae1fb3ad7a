"""Oblivious transfer: the right label for each bit, the field and the group as published, and choosers that cheat."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

pytest.importorskip("gmpy2")

import gmpy2

from cloister.noise import Random
from cloister.together.circuits import transfer
from cloister.together.circuits.transfer import BaseReceiver, BaseSender, Chooser, Giver, folded_columns, times_x
from cloister.together.messages import RoundRefused

SESSION = b"a session"
CHALLENGE = bytes(range(32))
DELTA = np.array([0x123456789ABCDEF1, 0xFEDCBA9876543210], dtype=np.uint64)


@pytest.fixture(scope="module")
def base() -> tuple[BaseReceiver, tuple[list[bytes], list[bytes]]]:
    sender = BaseSender(SESSION, Random.deterministic(1))
    receiver = BaseReceiver(SESSION, sender.first, Random.deterministic(2))
    return receiver, sender.keys(receiver.second)


def test_the_group_is_that_of_rfc_3526() -> None:
    """2^3072 − 2^3008 − 1 + 2^64·(⌊2^2942·π⌋ + 1690314), a safe prime in which 2 is a square."""
    with mpmath.workprec(3200):
        digits = int(mpmath.floor(mpmath.ldexp(mpmath.pi, 2942)))
    assert 2**3072 - 2**3008 - 1 + 2**64 * (digits + 1690314) == transfer.PRIME
    assert gmpy2.is_prime(transfer.PRIME, 2)
    assert gmpy2.is_prime((transfer.PRIME - 1) // 2, 2)
    assert gmpy2.legendre(transfer.GENERATOR, transfer.PRIME) == 1


def test_base_transfers_give_one_key_of_each_pair(base: tuple[BaseReceiver, tuple[list[bytes], list[bytes]]]) -> None:
    receiver, (zeros, ones) = base
    assert 30 < receiver.bits.sum() < 98
    for key, zero, one, bit in zip(receiver.keys, zeros, ones, receiver.bits, strict=True):
        assert key == (one if bit else zero)
        assert key != (zero if bit else one)
    assert len({*zeros, *ones}) == 256


@pytest.mark.parametrize("value", [0, 1, int(transfer.PRIME) - 1, int(transfer.PRIME), 5, 2**3072 - 1])
def test_what_is_not_in_the_group_is_refused(value: int) -> None:
    assert value != 5 or gmpy2.legendre(5, transfer.PRIME) == -1
    with pytest.raises(RoundRefused, match="no element"):
        BaseReceiver(SESSION, value.to_bytes(384, "big"), Random.deterministic(1))
    sender = BaseSender(SESSION, Random.deterministic(1))
    with pytest.raises(RoundRefused, match="no element"):
        sender.keys(value.to_bytes(384, "big") * 128)


@pytest.mark.parametrize("count", [1, 127, 128, 129, 1000])
def test_each_bit_gets_its_label(
    base: tuple[BaseReceiver, tuple[list[bytes], list[bytes]]], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_AT_ONCE", 256)
    receiver, keys = base
    bits = Random.deterministic(count).below(2, count).astype(bool)
    chooser = Chooser(SESSION, keys, bits, Random.deterministic(3))
    assert len(chooser.columns) == transfer.columns_bytes(count)
    giver = Giver(SESSION, receiver.keys, receiver.bits, count, chooser.columns)
    proof = chooser.proof(CHALLENGE)
    assert len(proof) == transfer.PROOF_BYTES
    assert giver.check(CHALLENGE, proof)
    zeros, masked = giver.labels(DELTA)
    assert (chooser.labels(masked) == zeros ^ np.where(bits[:, None], DELTA, 0).astype(np.uint64)).all()
    assert len(np.unique(zeros, axis=0)) == count


def cheated(keys: tuple[list[bytes], list[bytes]], columns: list[int], where: int) -> Chooser:
    """A chooser whose bit `where` is another one in these columns; it knows so, and shows a proof as if nothing were."""
    chooser = Chooser(SESSION, keys, np.zeros(300, dtype=bool), Random.deterministic(3))
    sent = np.frombuffer(chooser.columns, dtype="<u8").reshape(128, -1).copy()
    sent[columns, where // 64] ^= np.uint64(1) << np.uint64(where % 64)
    chooser.columns = sent.tobytes()
    return chooser


@pytest.mark.parametrize("where", [0, 130, 299, 384, 500])  # in the first block, a later one, the last bit, the padding
def test_a_chooser_that_cheats_passes_only_by_guessing(
    base: tuple[BaseReceiver, tuple[list[bytes], list[bytes]]], where: int
) -> None:
    """One column off is asking for one bit of the secret: it passes where that bit is 0, as do several where all are."""
    receiver, keys = base
    for columns in (*([column] for column in range(8)), [5, 77], list(range(64))):
        chooser = cheated(keys, columns, where)
        giver = Giver(SESSION, receiver.keys, receiver.bits, 300, chooser.columns)
        assert giver.check(CHALLENGE, chooser.proof(CHALLENGE)) is not bool(receiver.bits[columns].any())
    assert set(receiver.bits[:8].tolist()) == {False, True}


def test_a_proof_of_another_challenge_or_with_a_bit_changed_fails(
    base: tuple[BaseReceiver, tuple[list[bytes], list[bytes]]],
) -> None:
    receiver, keys = base
    chooser = Chooser(SESSION, keys, np.ones(300, dtype=bool), Random.deterministic(3))
    giver = Giver(SESSION, receiver.keys, receiver.bits, 300, chooser.columns)
    proof = chooser.proof(CHALLENGE)
    assert giver.check(CHALLENGE, proof)
    assert not giver.check(CHALLENGE, chooser.proof(bytes(32)))
    for place in (0, 15, 16, 1000, len(proof) - 1):  # of x, wherever the secret has a 1, and of each column's sum
        assert not giver.check(CHALLENGE, proof[:place] + bytes([proof[place] ^ 1]) + proof[place + 1 :])


def test_the_field_is_that_of_galois_counter_mode() -> None:
    """x^128 + x^7 + x^2 + x + 1; products by folding against products bit by bit, and the inverse by Fermat against both."""

    def product(a: int, b: int) -> int:
        found = 0
        for place in range(128):
            if b >> place & 1:
                found ^= a << place
        for place in range(255, 127, -1):
            if found >> place & 1:
                found ^= ((1 << 128) | 0x87) << (place - 128)
        return found

    def words(value: int) -> np.ndarray:
        return np.frombuffer(value.to_bytes(16, "little"), dtype="<u8")

    a, b = Random.deterministic(4).bits(128), Random.deterministic(5).bits(128)
    assert times_x(words(a)[None])[0].tolist() == words(product(a, 2)).tolist()
    power = a
    for _ in range(126):
        power = product(product(power, power), a)
    assert product(product(power, power), a) == 1  # a^(2^128 − 1)
    factors = transfer.PseudoRandomFunction(CHALLENGE).words("check", count=2 * 70).reshape(-1, 2)
    blocks = Random.deterministic(6).words(2 * 71).reshape(1, -1)
    expected = int.from_bytes(blocks[0, -2:].tobytes(), "little")
    for place in range(70):
        expected ^= product(
            int.from_bytes(factors[place].tobytes(), "little"),
            int.from_bytes(blocks[0, 2 * place : 2 * place + 2].tobytes(), "little"),
        )
    assert folded_columns(blocks, CHALLENGE)[0].tolist() == words(expected).tolist()
    assert product(b, 1) == b
