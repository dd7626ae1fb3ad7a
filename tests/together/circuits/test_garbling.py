"""Half gates: right on every input, uniform to the one who evaluates, and closed to anyone with another label."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cloister.noise import Random
from cloister.together.circuits import garbling as module
from cloister.together.circuits.garbling import Evaluating, Garbling, colours

SEED = bytes(range(32))


class Tape:
    """What the garbler sends, for an evaluator to take."""

    def __init__(self) -> None:
        self.text, self.at = b"", 0

    def send(self, gates: bytes) -> None:
        self.text += gates

    def receive(self, size: int) -> bytes:
        self.at += size
        return self.text[self.at - size : self.at]


def pair(seed: int = 1) -> tuple[Garbling, Evaluating, Tape]:
    tape = Tape()
    return Garbling(tape.send, seed=SEED, random=Random.deterministic(seed)), Evaluating(tape.receive, seed=SEED), tape


@pytest.mark.parametrize("gate", ["and", "xor", "not", "nand of xor", "constant"])
@pytest.mark.parametrize("seed", range(8))  # the colours of both inputs' labels take all four values
def test_truth_tables(gate: str, seed: int) -> None:
    def built(machine: Any, a: Any, b: Any) -> Any:
        return {
            "and": lambda: machine.both(a, b),
            "xor": lambda: a ^ b,
            "not": lambda: machine.opposite(a),
            "nand of xor": lambda: machine.opposite(machine.both(a ^ b, machine.opposite(b))),
            "constant": lambda: machine.both(machine.constant(1, 1, 1), a) ^ machine.both(machine.zeros(1, 1), b),
        }[gate]()

    meant = {
        "and": lambda a, b: a and b,
        "xor": lambda a, b: a != b,
        "not": lambda a, b: not a,
        "nand of xor": lambda a, b: not ((a != b) and not b),
        "constant": lambda a, b: a,
    }[gate]
    for one, two in itertools.product([False, True], repeat=2):
        garbler, evaluator, _ = pair(seed)
        a, b = garbler.labels(1, 1), garbler.labels(1, 1)
        zeros = built(garbler, a, b)
        held = built(evaluator, garbler.chosen(a, np.array([[one]])), garbler.chosen(b, np.array([[two]])))
        read = garbler.read(held, zeros)
        assert read is not None
        assert bool(read[0, 0]) is meant(one, two)
        assert bool((colours(zeros) ^ colours(held))[0, 0]) is meant(one, two)
        assert (garbler.gates, garbler.levels) == (evaluator.gates, evaluator.levels)


def test_all_colours_occur_in_the_truth_tables() -> None:
    seen = set()
    for seed in range(8):
        garbler = pair(seed)[0]
        seen.add((bool(colours(garbler.labels(1, 1))[0, 0]), bool(colours(garbler.labels(1, 1))[0, 0])))
    assert len(seen) == 4


def test_many_gates_across_pieces_and_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEY_GATES", 1000)
    monkeypatch.setattr(module, "_PIECE", 256)
    garbler, evaluator, tape = pair()
    bits = np.unpackbits(np.frombuffer(Random.deterministic(5).bytes(700), dtype=np.uint8)).astype(bool).reshape(2, 7, 400)
    a, b = garbler.labels(7, 400), garbler.labels(7, 400)
    zeros = garbler.both(garbler.both(a, b), b ^ a)
    one, two = garbler.chosen(a, bits[0]), garbler.chosen(b, bits[1])
    read = garbler.read(evaluator.both(evaluator.both(one, two), one ^ two), zeros)
    assert read is not None
    assert (read == ((bits[0] & bits[1]) & (bits[0] ^ bits[1]))).all()
    assert len(tape.text) == 32 * garbler.gates == 32 * 5600


def test_the_same_labels_give_other_blocks_at_another_place_and_under_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEY_GATES", 2)
    garbler, _, tape = pair()
    a, b = garbler.labels(1, 1), garbler.labels(1, 1)
    for _ in range(4):  # two gates under each of two keys; the third has the tweak of the first
        garbler.both(a, b)
    assert len({tape.text[at : at + 16] for at in range(0, len(tape.text), 16)}) == 8


def test_two_labels_of_a_wire_differ_by_one_secret_with_the_lowest_bit() -> None:
    garbler = pair()[0]
    zeros = garbler.labels(3, 5)
    ones = garbler.chosen(zeros, np.ones((3, 5), dtype=bool))
    assert (zeros ^ ones == garbler.delta).all()
    assert (colours(zeros) ^ colours(ones)).all()


def test_a_wrong_label_opens_nothing_and_is_noticed() -> None:
    garbler, evaluator, _ = pair()
    a, b = garbler.labels(1, 64), garbler.labels(1, 64)
    zeros = garbler.both(a, b)
    random = Random.deterministic(9)
    for wrong in (random.words(128).reshape(1, 64, 2), garbler.chosen(a, np.ones((1, 64), dtype=bool)) ^ np.uint64(2)):
        again = Evaluating(evaluator._receive, seed=SEED)
        evaluator._receive.__self__.at = 0  # type: ignore[attr-defined]
        held = again.both(wrong, b)
        assert not (held == zeros).all(axis=-1).any()
        assert not (held == zeros ^ garbler.delta).all(axis=-1).any()
        assert garbler.read(held, zeros) is None


def test_what_the_evaluator_sees_is_uniform() -> None:
    """Counts of each bit over blocks and labels, for the four inputs and gates of equal inputs: |z| below 6 for 3 · 128 bits.

    A false alarm: 384 · 4 · 2·10⁻⁹, below 10⁻⁵, and the words are fixed.
    """
    for one, two in itertools.product([False, True], repeat=2):
        garbler, evaluator, tape = pair(17)
        a, b = garbler.labels(1, 20_000), garbler.labels(1, 20_000)
        garbler.both(a, b)
        held = evaluator.both(garbler.chosen(a, np.full((1, 20_000), one)), garbler.chosen(b, np.full((1, 20_000), two)))
        blocks = np.concatenate(
            [
                np.frombuffer(tape.text[at : at + 32 * 4096], dtype=np.uint8).reshape(2, -1, 16)
                for at in range(0, len(tape.text), 32 * 4096)
            ],
            axis=1,
        )
        for seen in (blocks[0], blocks[1], held[0].view(np.uint8).reshape(-1, 16)):
            ones = np.unpackbits(np.ascontiguousarray(seen), axis=1).sum(axis=0)
            assert np.abs(ones.astype(int) - 10_000).max() < 6 * np.sqrt(20_000) / 2
