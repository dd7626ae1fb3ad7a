"""Two parties: the same result as the reference, a view that its result explains, and nothing but the next message taken."""

from __future__ import annotations

import copy
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gmpy2")

from hypothesis import given, settings
from hypothesis import strategies as st

from cloister.crypto import client_context
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.together import Paillier, RoundRefused, Slots
from cloister.together.circuits import (
    BlindedSum,
    FixedPoint,
    Program,
    QueueTransport,
    SocketTransport,
    comparison_of_sums,
    protocol,
    run_both,
    run_evaluator,
    run_garbler,
    select,
    transfer,
)
from cloister.together.circuits.garbling import _Garbled, colours
from tests.certificates import certificate

SMALL = {
    "garbler": {"a": FixedPoint(bits=12, shape=(3,), fraction=2)},
    "evaluator": {"b": FixedPoint(bits=12, shape=(3,), low=1)},
}
VALUES = {"a": [-3.25, 100, 7.5], "b": [1, 12, 4000]}
GARBLER, EVALUATOR = ({name: VALUES[name]} for name in "ab")


def work(a: Any, b: Any) -> Any:
    return a / b, select(a > b, a, b).sum()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short exponents, for tests that run the base transfers many times over."""
    monkeypatch.setattr(transfer, "_EXPONENT", 48)


def equal(one: Any, other: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("to", ["garbler", "evaluator", "both"])
def test_who_learns_the_result(to: Any) -> None:
    program = Program(work, **SMALL, to=to)
    garbler, evaluator = run_both(program, VALUES)
    for found, learns in ((garbler, to != "evaluator"), (evaluator, to != "garbler")):
        assert equal(found, program.as_numbers(**VALUES)) if learns else found is None


@pytest.mark.usefixtures("quick")
@given(
    a=st.lists(st.integers(-128, 127), min_size=4, max_size=4),
    b=st.lists(st.integers(-128, 127), min_size=4, max_size=4),
    divisor=st.integers(1, 255),
)
@settings(max_examples=8, deadline=None)
def test_garbled_and_clear_agree(a: list[int], b: list[int], divisor: int) -> None:
    sizes = {
        "garbler": {"a": FixedPoint(bits=8, shape=(2, 2))},
        "evaluator": {"b": FixedPoint(bits=8, shape=(2, 2)), "d": FixedPoint(bits=8, low=1)},
    }
    program = Program(lambda a, b, d: ((a @ b).divide(d, fraction=3), abs(a).sqrt(fraction=4), a == b.T), **sizes, to="both")
    values = {"a": np.reshape(a, (2, 2)), "b": np.reshape(b, (2, 2)), "d": divisor}
    garbler, evaluator = run_both(program, values)
    assert equal(garbler, program.as_numbers(**values))
    assert equal(evaluator, garbler)


@pytest.mark.usefixtures("quick")
def test_a_program_without_and_gates() -> None:
    sizes = {"garbler": {"a": FixedPoint(bits=3, shape=(2,))}, "evaluator": {"b": FixedPoint(bits=3, shape=(2,))}}
    program = Program(lambda a, b: (b[::-1].rounded(2), a[0]), **sizes, to="both")
    assert program.gates == program.bytes == 0
    garbler, evaluator = run_both(program, {"a": [-4, 3], "b": [1, -1]})
    assert equal(garbler, evaluator)
    assert [each.tolist() for each in garbler] == [[-1.0, 1.0], -4]


@pytest.mark.usefixtures("quick")
def test_a_party_that_fails_ends_the_other_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though more messages wait than the queue holds."""
    monkeypatch.setattr(protocol, "_MESSAGE", 32)

    class Failed(Exception):
        pass

    def fail(self: Any, what: Any) -> bytes:
        raise Failed

    for side, name in ((protocol._GatesIn, "receive"), (protocol._GatesOut, "send")):
        with monkeypatch.context() as patch:
            patch.setattr(side, name, fail)
            with pytest.raises(Failed):
                run_both(Program(work, **SMALL), VALUES)


CHILD = """
import socket, ssl, sys
from cloister.together.circuits import SocketTransport, comparison_of_sums, run_garbler
from cloister.crypto.tls import server_context
connection = socket.socket(fileno=int(sys.argv[1]))
if len(sys.argv) > 2:
    connection = server_context(sys.argv[2], sys.argv[3]).wrap_socket(connection, server_side=True)
print(int(run_garbler(comparison_of_sums(3, 2), {"a": [5, 6, 7]}, SocketTransport(connection))))
"""


@pytest.mark.parametrize("encrypted", [False, True])
def test_two_processes_compare_their_sums(encrypted: bool, tmp_path: Path) -> None:
    one, other = socket.socketpair()
    key, public = certificate(tmp_path / "tls", "garbler") if encrypted else (None, None)
    command = [sys.executable, "-c", CHILD, str(other.fileno()), *([str(public), str(key)] if encrypted else [])]
    with subprocess.Popen(command, pass_fds=[other.fileno()], stdout=subprocess.PIPE, env=os.environ) as child:
        other.close()
        connection = client_context(public).wrap_socket(one, server_hostname="garbler") if encrypted else one
        found = run_evaluator(comparison_of_sums(3, 2), {"b": [10, 7]}, SocketTransport(connection))
        assert child.communicate(timeout=60)[0] == b"1\n"
        assert int(found) == 1
    connection.close()


def test_a_sum_under_encryption_goes_into_a_circuit_and_nobody_sees_it() -> None:
    """The adder blinds and evaluates, the holder of the key decrypts and garbles; the mean of three owners comes out."""
    keys, slots = Paillier.generate(1024, insecure=True, random=Random.deterministic(1)), Slots(bits=24, fraction=6, terms=10)
    owners = [[1.5, -200.25], [3.0, -1.0], [10.25, 0.0]]
    first, *rest = [keys.public.encrypt(values, slots=slots) for values in owners]
    total = rest[0] + rest[1] + first
    blinded, blinds = total.blinded()
    how = BlindedSum.of(total)
    program = how.program(lambda total: total / 3)
    decrypted = keys.decrypt(blinded, exact=True)
    assert all(abs(int(each)) > 2**40 for each in decrypted)  # what the key's holder sees is the blinds
    _, mean = run_both(program, {"blinded": how.residues(decrypted), "blinds": how.residues(blinds)})
    assert mean.tolist() == [int(14.75 * 64 / 3) / 64, -int(201.25 * 64 / 3) / 64]
    low, high = (np.array([each] * 2, dtype=object) for each in (-3 * 2**23, 3 * (2**23 - 1)))  # the ends of what a sum can be
    for each in (low, high):
        values = {"blinded": how.residues(each + blinds), "blinds": how.residues(blinds)}
        whole = how.program(lambda total: total)
        assert whole.as_gates(**values).tolist() == whole.as_numbers(**values).tolist() == (each / 64).tolist()


class Tape:
    """Plays the other party from its messages, and keeps what is sent."""

    def __init__(self, coming: list[bytes]) -> None:
        self.coming, self.sent = list(coming), list[bytes]()

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def receive(self, most: int) -> bytes:
        if not self.coming:
            raise protocol.refused("the other party stopped")
        return self.coming.pop(0)


class Recorded(QueueTransport):
    """A transport whose messages are kept."""

    def __init__(self, inner: QueueTransport) -> None:
        super().__init__(inner._going, inner._coming, inner._ended)
        self.sent: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.sent.append(message)
        super().send(message)


def recorded(program: Program, monkeypatch: pytest.MonkeyPatch) -> tuple[list[bytes], list[bytes]]:
    """What the garbler and the evaluator sent in one run, whose randomness can be had again."""
    ends = [Recorded(each) for each in QueueTransport.pair()]
    with monkeypatch.context() as patch:
        patch.setattr(QueueTransport, "pair", classmethod(lambda cls: tuple(ends)))
        run_both(program, VALUES, random=(Random.deterministic(1), Random.deterministic(2)))
    return ends[0].sent, ends[1].sent


Change = Callable[[list[bytes], int], None]
HEADER = protocol.HEADER_BYTES


def replaced(change: Callable[[bytes], bytes]) -> Change:
    def act(messages: list[bytes], place: int) -> None:
        messages[place] = change(messages[place])

    return act


def byte(place: int) -> Change:
    return replaced(lambda message: message[:place] + bytes([message[place] ^ 1]) + message[place + 1 :])


CHANGES: dict[str, Change] = {
    "stops": lambda messages, place: messages.__delitem__(slice(place, None)),
    "left out": lambda messages, place: messages.__delitem__(place),
    "twice": lambda messages, place: messages.insert(place + 1, messages[place]),
    "swapped": lambda messages, place: messages.__setitem__(slice(place, place + 2), messages[place : place + 2][::-1]),
    "empty": replaced(lambda message: b""),
    "no whole header": replaced(lambda message: message[: HEADER - 1]),
    "cut off": replaced(lambda message: message[:-1]),
    "longer": replaced(lambda message: message + b"\0"),
    "another format": byte(0),
    "another session": byte(30),
    "another sender": byte(52),
    "another kind": byte(53),
    "another number": byte(57),
    "another length": byte(65),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", CHANGES)
def test_hostile_messages_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(work, **SMALL, to="both")
    sent = recorded(program, monkeypatch)
    for side, run, values, coming in (
        (2, run_evaluator, EVALUATOR, sent[0]),
        (1, run_garbler, GARBLER, sent[1]),
    ):
        assert equal(run(program, values, Tape(coming), random=Random.deterministic(side)), program.as_numbers(**VALUES))
        for place in range(len(coming)):
            if place == len(coming) - 1 and name in ("twice", "swapped"):
                continue  # nothing is read after the last one
            changed = list(coming)
            CHANGES[name](changed, place)
            with pytest.raises(RoundRefused):
                run(program, values, Tape(changed), random=Random.deterministic(side))


@pytest.mark.usefixtures("quick")
def test_messages_of_another_session_or_program_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(work, **SMALL, to="both")
    coming, _ = recorded(program, monkeypatch)
    with pytest.raises(RoundRefused, match="another session"):  # a replay: this evaluator's hello has other random bytes
        run_evaluator(program, EVALUATOR, Tape(coming), random=Random.deterministic(3))
    other = Program(lambda a, b: work(a, b + 1), **SMALL, to="both")
    with pytest.raises(RoundRefused, match="another program"):
        run_evaluator(other, EVALUATOR, Tape(coming), random=Random.deterministic(2))


@pytest.mark.usefixtures("quick")
def test_what_an_evaluator_changes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that differ, a proof that does not fit, and results that are no labels."""
    program = Program(work, **SMALL, to="garbler")
    _, coming = recorded(program, monkeypatch)
    kinds = [protocol.KINDS[message[53]] for message in coming]
    assert kinds == ["hello", "offer", "columns", "proof", "results"]
    for kind, why in (("columns", "one choice a bit"), ("proof", "one choice a bit"), ("results", "not those of the results")):
        place = kinds.index(kind)
        changed = list(coming)
        spot = HEADER if kind == "results" else HEADER + 16
        body = bytearray(changed[place])
        for column in range(100 if kind == "columns" else 1):  # one column alone passes where the secret's bit is 0
            body[spot + column * (transfer.columns_bytes(36) // 128)] ^= 1
        changed[place] = bytes(body)
        with pytest.raises(RoundRefused, match=why):
            run_garbler(program, GARBLER, Tape(changed), random=Random.deterministic(1))


class Simulating(_Garbled):
    """Plays the garbler's gates with nothing of the garbler's: blocks are random, and it walks along as an evaluator would."""

    def __init__(self, random: Random) -> None:
        super().__init__(bytes(32))
        self.random, self.blocks = random, list[bytes]()

    def opposite(self, a: Any) -> Any:
        return a

    def _both(self, a: Any, b: Any) -> Any:
        from cloister.together.circuits.garbling import Evaluating

        def drawn(size: int) -> bytes:
            self.blocks.append(self.random.bytes(size))
            return self.blocks[-1]

        inner = Evaluating(drawn, seed=self._seed)
        inner._number = self._number
        if inner._number % 2**20:
            inner._hash = self._hash
        found = inner._both(a, b)
        self._number, self._hash = inner._number, inner._hash
        return found


class SimulatedGarbler(Tape):
    """An evaluator's view, made from what it brings and its result: the garbler's numbers are in no place of it."""

    def __init__(self, program: Program, brings: dict[str, Any], result: tuple[Any, ...], random: Random) -> None:
        super().__init__([])
        self.made = self._made(program, brings, result, random)

    def receive(self, most: int) -> bytes:
        return next(self.made)

    def _made(self, program: Program, brings: dict[str, Any], result: tuple[Any, ...], random: Random) -> Iterator[bytes]:
        number, session = 0, bytes.fromhex(program.digest)

        def message(kind: str, body: bytes) -> bytes:
            nonlocal number
            number += 1
            return protocol._HEADER.pack(protocol.MAGIC, session, 0, protocol.KINDS.index(kind), number - 1, len(body)) + body

        hello = random.bytes(32)
        yield message("hello", hello)
        session = protocol.hashlib.sha256(b"cloister circuits session " + session + hello + self.sent[0][HEADER:]).digest()
        base = transfer.BaseReceiver(session, self.sent[1][HEADER:], random)
        yield message("base", base.second)
        bits = program.bits_of("b", brings["b"])
        giver = transfer.Giver(session, base.keys, base.bits, bits.size, self.sent[2][HEADER:])
        yield message("challenge", random.bytes(32))
        other = random.words(2)
        zeros, masked = giver.labels(other)
        yield message("transfers", masked)
        held = (zeros ^ np.where(bits.ravel()[:, None], other, 0).astype(np.uint64)).reshape(*bits.shape, 2)
        labels = random.words(2 * program.wires("garbler"))
        yield message("labels", bytes(32) + labels.tobytes())
        machine = Simulating(random)
        kind = program.kinds["a"]
        found = program.on(machine, {"b": held, "a": labels.reshape(kind.width, -1, 2)})
        stream = b"".join(machine.blocks)
        for start in range(0, len(stream), protocol._MESSAGE):
            yield message("gates", stream[start : start + protocol._MESSAGE])
        told = []
        for output, each, value in zip(program.outputs, found, result, strict=True):
            steps = [int(one * 2**output.fraction) for one in np.asarray(value).ravel().tolist()]
            shown = np.array([[step >> place & 1 for step in steps] for place in range(output.width)], dtype=bool)
            told.append(np.packbits(shown ^ colours(each)).tobytes())
        yield message("colours", b"".join(told))


@pytest.mark.usefixtures("quick")
def test_the_evaluators_view_is_simulated_from_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator is given a result, any result: the evaluator gets it, from messages as long and of the same kinds."""
    program = Program(work, **SMALL)
    real, _ = recorded(program, monkeypatch)
    for result in (program.as_numbers(**VALUES), (np.array([0.0, 1.25, -3.0]), np.array(17.5))):
        simulated = SimulatedGarbler(program, EVALUATOR, result, Random.deterministic(11))
        view: list[bytes] = []
        receive = simulated.receive
        simulated.receive = lambda most, receive=receive, view=view: view.append(receive(most)) or view[-1]  # type: ignore[method-assign]
        assert equal(run_evaluator(program, EVALUATOR, simulated, random=Random.deterministic(2)), result)
        assert [(message[53], len(message)) for message in view] == [(message[53], len(message)) for message in real]
        assert program.bytes == sum(len(message) - HEADER for message in view if protocol.KINDS[message[53]] == "gates")


def unlike_coins(bits: Any) -> float:
    """How far each column of bits is from fair coins, the worst of them: |z|."""
    bits = np.asarray(bits, dtype=float)
    return float(np.abs(bits.mean(axis=0) - 0.5).max() * 2 * np.sqrt(len(bits)))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("value", [0, 2**16 - 1])
def test_no_message_to_the_evaluator_leans_to_the_garblers_bits(value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the garbler's bits are 0, or all are 1: its labels, their colours and how they lie to one another don't say which.

    Bits of 1,600 labels: |z| below 6 for 128 + 1 + 127 columns, a false alarm below 10⁻⁶; the words are fixed.
    """
    kinds = {
        "garbler": {"a": FixedPoint(bits=16, low=0, shape=(100,))},
        "evaluator": {"b": FixedPoint(bits=16, low=0, shape=(100,))},
    }
    program = Program(lambda a, b: a > b, **kinds)
    monkeypatch.setitem(VALUES, "a", [value] * 100)
    monkeypatch.setitem(VALUES, "b", [5] * 100)
    told = {protocol.KINDS[message[53]]: message[HEADER:] for message in recorded(program, monkeypatch)[0]}
    labels = np.frombuffer(told["labels"][32:], dtype=np.uint8).reshape(1600, 16)
    gates = np.frombuffer(told["gates"], dtype=np.uint8).reshape(-1, 16)
    masked = np.frombuffer(told["transfers"], dtype=np.uint8).reshape(-1, 16)
    for blocks in (labels, gates, masked):
        assert unlike_coins(np.unpackbits(blocks, axis=1)) < 6
    neighbours = labels[:-1] ^ labels[1:]  # labels of one bit: were they of one wire's, they would be equal, or Δ apart
    assert len(np.unique(neighbours, axis=0)) == 1599
    assert unlike_coins(np.unpackbits(neighbours, axis=1)) < 6


@pytest.mark.usefixtures("quick")
def test_only_who_learns_the_result_is_told_how_to_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = {}
    for to in ("garbler", "evaluator", "both"):
        sides = recorded(Program(work, **SMALL, to=to), monkeypatch)
        sent[to] = tuple([protocol.KINDS[message[53]] for message in each] for each in sides)
    assert [sent[to][0].count("colours") for to in sent] == [0, 1, 1]
    assert [sent[to][1].count("results") for to in sent] == [1, 0, 1]
    for garbler, evaluator in sent.values():  # nothing of the circuit leaves before the proof came
        assert garbler[:7] == ["hello", "base", "challenge", "transfers", "labels", "gates", *garbler[6:7]]
        assert evaluator[:4] == ["hello", "offer", "columns", "proof"]


class SimulatedEvaluator(Tape):
    """A garbler's view, made from its result: the evaluator's numbers are in no place of it."""

    def __init__(self, program: Program, result: tuple[Any, ...], random: Random, zeros: list[Any]) -> None:
        super().__init__([])
        self.made = self._made(program, result, random, zeros)

    def receive(self, most: int) -> bytes:
        return next(self.made)

    def _made(self, program: Program, result: tuple[Any, ...], random: Random, zeros: list[Any]) -> Iterator[bytes]:
        number, session = 0, bytes.fromhex(program.digest)

        def message(kind: str, body: bytes) -> bytes:
            nonlocal number
            number += 1
            return protocol._HEADER.pack(protocol.MAGIC, session, 1, protocol.KINDS.index(kind), number - 1, len(body)) + body

        hello = random.bytes(32)
        yield message("hello", hello)
        session = protocol.hashlib.sha256(b"cloister circuits session " + session + self.sent[0][HEADER:] + hello).digest()
        base = transfer.BaseSender(session, random)
        yield message("offer", base.first)
        columns = random.bytes(transfer.columns_bytes(program.wires("evaluator")))
        yield message("columns", columns)
        # the garbler's own randomness is part of its view: q is what it makes of the columns, and x is uniform
        giver = self.giver
        challenge = self.sent[2][HEADER:]
        x = random.words(2)[None]
        shown = transfer.folded_columns(giver._columns, challenge) ^ (x * giver._choices.astype(np.uint64)[:, None])
        yield message("proof", np.concatenate([x, shown]).astype("<u8").tobytes())
        told = []
        for output, each, value in zip(program.outputs, zeros, result, strict=True):
            steps = [int(one * 2**output.fraction) for one in np.asarray(value).ravel().tolist()]
            bits = np.array([[step >> place & 1 for step in steps] for place in range(output.width)], dtype=bool)
            told.append(self.machine.chosen(each, bits).tobytes())
        yield message("results", b"".join(told))


@pytest.mark.usefixtures("quick")
def test_the_garblers_view_is_simulated_from_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator is given a result, any result: the garbler gets it, and messages as long, of the same kinds, like coins."""
    program = Program(work, **SMALL, to="garbler")
    _, real = recorded(program, monkeypatch)
    for result in (program.as_numbers(**VALUES), (np.array([0.0, 1.25, -3.0]), np.array(17.5))):
        zeros: list[Any] = []
        simulated = SimulatedEvaluator(program, result, Random.deterministic(11), zeros)
        view: list[bytes] = []
        receive = simulated.receive
        simulated.receive = lambda most, receive=receive, view=view: view.append(receive(most)) or view[-1]  # type: ignore[method-assign]

        class Giver(transfer.Giver):
            def __init__(self, *how: Any, simulated: SimulatedEvaluator = simulated) -> None:
                super().__init__(*how)
                simulated.giver = self  # type: ignore[attr-defined]

        class Garbling(protocol.Garbling):
            def __init__(self, *how: Any, simulated: SimulatedEvaluator = simulated, **more: Any) -> None:
                super().__init__(*how, **more)
                simulated.machine = self  # type: ignore[attr-defined]

        on = program.on
        with monkeypatch.context() as patch:
            patch.setattr(transfer, "Giver", Giver)
            patch.setattr(protocol, "Garbling", Garbling)
            patch.setattr(program, "on", lambda *how, on=on, zeros=zeros: zeros.extend(on(*how)) or zeros)
            assert equal(run_garbler(program, GARBLER, simulated, random=Random.deterministic(1)), result)
        assert [(message[53], len(message)) for message in view] == [(message[53], len(message)) for message in real]
    for messages in (real, view):  # beside the results' labels: columns and x
        columns = np.frombuffer(messages[2][HEADER:], dtype=np.uint8).reshape(-1, 1)
        assert unlike_coins(np.unpackbits(columns, axis=1)) < 6


@pytest.mark.usefixtures("quick")
def test_a_receiver_that_asks_for_both_labels_is_refused_before_a_label_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its columns say 0 in one half and 1 in the other, for one bit, and its proof is the best that there is."""
    program = Program(work, **SMALL, to="both")

    class Cheating(transfer.Chooser):
        def __init__(self, *how: Any) -> None:
            super().__init__(*how)
            sent = np.frombuffer(self.columns, dtype="<u8").reshape(128, -1).copy()
            sent[:64, 0] ^= np.uint64(1)
            self.columns = sent.tobytes()

    one, other = QueueTransport.pair()
    garbler = Recorded(one)
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as threads:
        patch.setattr(transfer, "Chooser", Cheating)
        evaluator = threads.submit(run_evaluator, program, EVALUATOR, other)
        try:
            with pytest.raises(RoundRefused, match="one choice a bit"):
                run_garbler(program, GARBLER, garbler)
        finally:
            one.close()
        with pytest.raises(RoundRefused):
            evaluator.result()
    assert [protocol.KINDS[message[53]] for message in garbler.sent] == ["hello", "base", "challenge"]


def test_what_the_garbler_sees_of_choices_is_uniform() -> None:
    """Columns of all zeros and of all ones, and the sum x: |z| < 6 for each bit of a byte, a false alarm below 10⁻⁶."""
    pairs = tuple([Random.deterministic(1000 * side + place).bytes(32) for place in range(128)] for side in (1, 2))
    for value in (False, True):
        chooser = transfer.Chooser(b"", pairs, np.full(20_000, value), Random.deterministic(7))  # type: ignore[arg-type]
        text = np.unpackbits(np.frombuffer(chooser.columns, dtype=np.uint8)).reshape(-1, 8)
        assert np.abs(text.sum(axis=0) - len(text) / 2).max() < 6 * np.sqrt(len(text)) / 2
    sums = [transfer.Chooser(b"", pairs, np.zeros(5, dtype=bool), Random()).proof(bytes(32))[:16] for _ in range(40)]  # type: ignore[arg-type]
    assert len(set(sums)) == 40  # a random block hides the choices in x
    ones = np.unpackbits(np.frombuffer(b"".join(sums), dtype=np.uint8)).sum()
    assert abs(int(ones) - 2_560) < 6 * np.sqrt(5_120) / 2


def test_inputs_are_checked_before_anything_is_sent() -> None:
    program = comparison_of_sums(2, 2)
    for values in ({}, {"b": [1, 2]}, {"a": [1, 2, 3]}, {"a": [2**40, 0]}, {"a": [1, 2], "b": [1, 2]}):
        tape = Tape([])
        with pytest.raises(InvalidParameter):
            run_garbler(program, values, tape)
        assert tape.sent == []
    with pytest.raises(InvalidParameter):
        run_both(program, {"a": [1, 2]})
    with pytest.raises(InvalidParameter):
        BlindedSum(slots=Slots(terms=3), terms=4, length=1)


def test_a_large_circuit_says_size_and_time_before_anything_is_sent() -> None:
    kind = FixedPoint(bits=24, shape=(300_000,))
    large = Program(lambda a, b: a * b, garbler={"a": kind}, evaluator={"b": kind})
    words = r"too large: 3\d\d,\d{3},\d{3} AND gates in .* GB to send, about \d+ s"
    for run in (run_garbler, run_evaluator):
        tape = Tape([])
        with pytest.raises(InvalidParameter, match=words) as told:
            run(large, {}, tape)
        assert tape.sent == []
        assert told.value.instead == f"most={large.bytes}"
    with pytest.raises(InvalidParameter, match="MB to send"):
        run_both(comparison_of_sums(300, 300), {}, most=10)
    with pytest.raises(InvalidParameter, match="number of bytes"):
        run_both(comparison_of_sums(2, 2), {}, most=-1)


def cheating(program: Program, value: int, width: int) -> Program:
    """The same program, for a party that enters bits as it likes for `b`."""
    own = copy.copy(program)
    honest = program.bits_of
    entered = np.array([[value >> place & 1] for place in range(width)], dtype=bool)
    own.bits_of = lambda name, values: entered if name == "b" else honest(name, values)  # type: ignore[method-assign]
    return own


@pytest.mark.parametrize(("low", "high"), [(1000, 1020), (-3, 2), (0, 5), (7, 7), (-8, -5)])
def test_an_evaluator_that_enters_an_undeclared_number_gets_the_result_of_the_nearest_declared_one(low: int, high: int) -> None:
    """A program means nothing, and may tell more, where an input is outside the bounds that it was built for."""
    kind = FixedPoint(bits=11, low=low, high=high)
    sizes = {"garbler": {"a": FixedPoint(bits=11)}, "evaluator": {"b": kind}}
    program = Program(lambda a, b: (a.divide(abs(b) + 1), a * b, b == low), **sizes)
    half = 2 ** (kind.width - 1)
    entered = range(-half, half) if low < 0 else range(2 * half)
    for value in entered if len(entered) < 20 else (0, 1, 2, low - 1, low, high, high + 1, 2 * half - 1):
        for own in (-1024, -7, 777, 1023):
            found = cheating(program, value, kind.width).as_gates(a=own, b=low)
            assert equal(found, program.as_numbers(a=own, b=min(max(value, low), high))), (own, value)


@pytest.mark.usefixtures("quick")
def test_a_coarse_quotient_stays_coarse_whatever_the_evaluator_enters() -> None:
    """Hundreds were agreed on: who enters 1 where 100 is the least would else read off the last digits."""
    sizes = {"garbler": {"a": FixedPoint(bits=10, low=0)}, "evaluator": {"b": FixedPoint(bits=7, low=100, high=101)}}
    program = Program(lambda a, b: a.divide(b), **sizes)
    one, other = QueueTransport.pair()
    with ThreadPoolExecutor(1) as threads:
        garbler = threads.submit(run_garbler, program, {"a": 587}, one)
        found = run_evaluator(cheating(program, 1, 7), {"b": 100}, other)
        garbler.result()
    assert int(found) == 5


def test_a_socket_that_ends_or_announces_too_much_is_refused() -> None:
    one, other = socket.socketpair()
    one.sendall((10**12).to_bytes(8, "big"))
    with pytest.raises(RoundRefused, match="longer"):
        SocketTransport(other).receive(100)
    one.sendall((50).to_bytes(8, "big") + b"abc")
    one.close()
    with pytest.raises(RoundRefused, match=r"ended early: the other party stopped\.\n.*a new one when .*a plan with a new key"):
        SocketTransport(other).receive(100)
    other.close()


def test_a_party_that_stalls_or_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence before a message, and a byte now and then, which would keep a timeout of each read from ever being reached."""
    one, other = socket.socketpair()
    with one, other:
        with pytest.raises(RoundRefused, match="The circuit ended early: the other party was silent"):
            SocketTransport(other, patience=0.05).receive(100)
        ended = threading.Event()

        def drip() -> None:
            one.sendall((100).to_bytes(8, "big"))
            while not ended.wait(0.05):
                one.sendall(b"a")

        with ThreadPoolExecutor(1) as threads:
            dripping = threads.submit(drip)
            with pytest.raises(RoundRefused, match="silent"):
                SocketTransport(other, patience=0.4).receive(100)
            ended.set()
            dripping.result()
        monkeypatch.setattr(protocol, "_SLOWEST", 1 << 30)
        with pytest.raises(RoundRefused, match="silent"):  # nobody reads
            SocketTransport(one, patience=0.05).send(bytes(1 << 23))
    with pytest.raises(InvalidParameter):
        SocketTransport(one, patience=0)


def test_sending_to_a_party_that_left_is_refused_in_our_words() -> None:
    one, other = socket.socketpair()
    other.close()
    with one, pytest.raises(RoundRefused, match="stopped"):
        SocketTransport(one).send(b"abc")


@pytest.mark.usefixtures("quick")
def test_results_are_written_in_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(lambda a, b: a < b, **SMALL)  # three bits in a byte
    coming, _ = recorded(program, monkeypatch)
    for place in range(5):
        changed = [*coming[:-1], coming[-1][:-1] + bytes([coming[-1][-1] ^ 1 << place])]
        with pytest.raises(RoundRefused, match="beyond"):
            run_evaluator(program, EVALUATOR, Tape(changed), random=Random.deterministic(2))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["labels", "gates", "transfers"])
def test_a_result_that_no_inputs_give_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A garbler that cheats is outside the model, but what is plainly no result is not handed on as one."""
    program = Program(lambda a, b: select(a > b, 5000, 4097), **SMALL)
    coming, _ = recorded(program, monkeypatch)
    place = [protocol.KINDS[message[53]] for message in coming].index(kind)
    coming[place] = coming[place][:HEADER] + Random.deterministic(4).bytes(len(coming[place]) - HEADER)
    with pytest.raises(RoundRefused, match="no declared inputs"):
        run_evaluator(program, EVALUATOR, Tape(coming), random=Random.deterministic(2))
