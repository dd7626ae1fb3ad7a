"""The protocol of two parties: messages that any transport of bytes carries, and what each party does with them.

    both       hello: who runs which program, and 32 random bytes. The hash of both is the name of the session
    evaluator  A, of the base transfers                 garbler    B, 128 of them
    evaluator  columns of the extension                 garbler    a challenge
    evaluator  the proof                                garbler    labels of 1, masked
    garbler    the seed of the circuit's hash, labels of its own bits
    garbler    garbled gates, a megabyte a message, as many as the program has
    garbler    colours of the results' labels, if the evaluator learns them
    evaluator  labels of the results, if the garbler learns them

A message is 66 bytes (a name of the format, the session, who sends, its number, its kind, its length) and a body. Both
parties know at each step which message comes next and how long it is; each other one is refused: malformed, repeated, out of
order, of another session, of another program, cut off. There is one way to write a message.

Claim: against an evaluator that cheats as it likes, and a garbler that follows the protocol, each learns its result and what
the program is. The evaluator's view is simulated from its result: B hides the garbler's choices, transfers (`transfer.py`)
give it one label a bit, and garbled gates (`garbling.py`) with one label a wire are uniform blocks. The garbler's view is
simulated from its result: A is a random element, columns are masked by seeds that it lacks, the proof by a random block, and
labels of results stand for these alone. ∎ Each message's length follows from the program.

Outside: a garbler that cheats (a wrong circuit is not found out, and what the evaluator then returns could say something about
its numbers), an evaluator that enters other numbers than it has (the circuit moves them into the declared bounds) or stops before
it returns results, and whoever sits between the two: use a transport that encrypts and checks who is there, such as TLS with
certificates (`cloister.crypto`).
"""

from __future__ import annotations

import hashlib
import socket
import struct
import threading
import time
from collections.abc import Mapping
from math import prod
from queue import Empty, Full, Queue
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cloister.crypto.tweaked_hash import Blocks
from cloister.errors import InvalidParameter
from cloister.noise import Random, default_random
from cloister.together.circuits import transfer
from cloister.together.circuits.garbling import Evaluating, Garbling, colours
from cloister.together.circuits.program import GATE_BYTES, MOST_BYTES, Party, Program
from cloister.together.messages import RoundRefused

MAGIC = b"cloister circuits 1\n"
_HEADER = struct.Struct(f">{len(MAGIC)}s32sBBIQ")
HEADER_BYTES = _HEADER.size
KINDS = ("hello", "offer", "base", "columns", "challenge", "proof", "transfers", "labels", "gates", "colours", "results")
PARTIES: tuple[Party, Party] = ("garbler", "evaluator")
_MESSAGE = 32 << 15
_SLOWEST = 1 << 16
"""Bytes a second: a line that carries less is given up."""
_STOPPED = "the other party stopped"
_SILENT = "the other party was silent for too long, or too slow"
Values = Mapping[str, npt.ArrayLike]


class Transport(Protocol):
    """What carries messages: whole, in order. `receive` refuses one that is longer than `most`."""

    def send(self, message: bytes) -> None:
        """Sends one message."""

    def receive(self, most: int) -> bytes:
        """The next message."""


class SocketTransport:
    """Messages over a connected socket, plain or TLS, each after its length.

    A party that falls silent, or drips, is given up: sending or receiving a message may take `patience` seconds, and one more
    for each 64 KiB of it. The socket's own timeout is set so.

    >>> one, other = socket.socketpair()
    >>> SocketTransport(one).send(b"abc"); SocketTransport(other).receive(3)
    b'abc'
    >>> one.close(), other.close()
    (None, None)
    """

    def __init__(self, connection: socket.socket, *, patience: float = 600.0) -> None:
        if isinstance(patience, bool) or not isinstance(patience, int | float) or not 0 < patience <= 86_400:
            raise InvalidParameter(f"patience={patience!r} is invalid", why="it is in seconds, above 0", instead="patience=600.0")
        self._connection, self._patience = connection, float(patience)

    def send(self, message: bytes) -> None:
        """Sends one message."""
        try:
            self._connection.settimeout(self._patience + len(message) / _SLOWEST)
            length = len(message).to_bytes(8, "big")
            if len(message) > _SLOWEST:  # a long one is not copied behind its length
                self._connection.sendall(length)
                self._connection.sendall(message)
            else:
                self._connection.sendall(length + message)
        except TimeoutError:
            raise refused(_SILENT) from None
        except OSError:
            raise refused(_STOPPED) from None

    def receive(self, most: int) -> bytes:
        """The next message."""
        end = time.monotonic() + self._patience
        length = int.from_bytes(self._exactly(8, end), "big")
        if length > most:
            raise refused("it is longer than any message that may come now")
        return self._exactly(length, end + length / _SLOWEST)

    def _exactly(self, count: int, end: float) -> bytes:
        parts, missing = [], count
        while missing:
            try:
                if (left := end - time.monotonic()) <= 0:
                    raise TimeoutError
                self._connection.settimeout(left)
                part = self._connection.recv(min(missing, 1 << 20))
            except TimeoutError:
                raise refused(_SILENT) from None
            except OSError:
                part = b""
            if not part:
                raise refused(_STOPPED)
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)


class QueueTransport:
    """Messages between two threads; at most eight wait, so that a circuit is never held."""

    def __init__(self, going: Queue[bytes], coming: Queue[bytes], ended: threading.Event) -> None:
        self._going, self._coming, self._ended = going, coming, ended

    @classmethod
    def pair(cls) -> tuple[QueueTransport, QueueTransport]:
        """Two ends.

        >>> one, other = QueueTransport.pair()
        >>> one.send(b"abc"); other.receive(3)
        b'abc'
        """
        one: Queue[bytes] = Queue(8)
        other: Queue[bytes] = Queue(8)
        ended = threading.Event()
        return cls(one, other, ended), cls(other, one, ended)

    def send(self, message: bytes) -> None:
        """Sends one message."""
        while not self._ended.is_set():
            try:
                return self._going.put(message, timeout=0.1)
            except Full:
                continue
        raise refused(_STOPPED)

    def receive(self, most: int) -> bytes:
        """The next message."""
        while True:
            try:
                message = self._coming.get(timeout=0.1)
            except Empty:
                if self._ended.is_set() and self._coming.empty():
                    raise refused(_STOPPED) from None
                continue
            if len(message) > most:
                raise refused("it is longer than any message that may come now")
            return message

    def close(self) -> None:
        """Nothing more is sent, from either end; what was sent can be received."""
        self._ended.set()


class Line:
    """One party's end: numbers what it sends, and takes what comes next or nothing."""

    def __init__(self, party: Party, program: Program, transport: Transport, random: Random) -> None:
        self.party, self._transport = party, transport
        self._me = PARTIES.index(party)
        self._session = bytes.fromhex(program.digest)  # until both have said hello
        self._sent = self._received = 0
        mine = random.bytes(32)
        self.send("hello", mine)
        hellos = [mine, self.receive("hello", 32)]
        garbler, evaluator = hellos if party == "garbler" else hellos[::-1]
        self._session = hashlib.sha256(b"cloister circuits session " + self._session + garbler + evaluator).digest()

    @property
    def session(self) -> bytes:
        """The name of this run."""
        return self._session

    def send(self, kind: str, *body: bytes | memoryview) -> None:
        """The next message, whose body is these parts."""
        header = _HEADER.pack(MAGIC, self._session, self._me, KINDS.index(kind), self._sent, sum(map(len, body)))
        self._sent += 1
        self._transport.send(b"".join((header, *body)))

    def receive(self, kind: str, length: int) -> bytes:
        """The body of the next message, which is of this kind and length, or `RoundRefused`."""
        return bytes(self.view(kind, length))

    def view(self, kind: str, length: int) -> memoryview:
        """The same, not copied."""
        message = self._transport.receive(HEADER_BYTES + length)
        if len(message) < HEADER_BYTES:
            raise refused("it is cut off")
        magic, session, sender, told, number, size = _HEADER.unpack_from(message)
        if magic != MAGIC or sender not in (0, 1) or told >= len(KINDS):
            raise refused("it is not a message of this version of the protocol")
        if sender == self._me:
            raise refused("it was sent by this party itself")
        if session != self._session:
            raise refused("it is of another session" if told else "the other party runs another program")
        if (KINDS[told], number) != (kind, self._received):
            raise refused(f"it is message {number}, {KINDS[told]!r}, and {self._received}, {kind!r}, is awaited")
        if size != length or len(message) != HEADER_BYTES + length:
            raise refused(f"its body has {len(message) - HEADER_BYTES} bytes, and {length} are awaited")
        self._received += 1
        return memoryview(message)[HEADER_BYTES:]


def run_garbler(
    program: Program, values: Values, transport: Transport, *, most: int = MOST_BYTES, random: Random | None = None
) -> Any:
    """The garbler's part. Gives the result, if the garbler learns it, else None. A circuit of more than `most` bytes is refused
    before anything is sent, with its size and time."""
    program.check_size(most)
    random = default_random() if random is None else random
    bits = _own_bits(program, "garbler", values)
    line = Line("garbler", program, transport, random)
    seed = random.bytes(32)
    gates = _GatesOut(line)
    machine = Garbling(gates.send, seed=seed, random=random)
    zeros = _shaped(program, "evaluator", _give(line, program, machine, random))
    own = {name: machine.labels(*each.shape) for name, each in bits.items()}
    chosen = [machine.chosen(own[name], bits[name]) for name in own]
    line.send("labels", seed + b"".join(each.astype("<u8", copy=False).tobytes() for each in chosen))
    found = program.on(machine, {**own, **zeros})
    gates.close()
    if program.to != "garbler":
        line.send("colours", b"".join(np.packbits(colours(each)).tobytes() for each in found))
    if program.to == "evaluator":
        return None
    text, results, start = line.receive("results", 16 * sum(each.wires for each in program.outputs)), [], 0
    for output, each in zip(program.outputs, found, strict=True):
        labels = np.frombuffer(text, dtype="<u8", offset=start, count=each.size).reshape(each.shape)
        start += each.nbytes
        read = machine.read(labels, each)
        if read is None:
            raise refused("its labels are not those of the results")
        results.append(output.read(read))
    return program.results(results)


def run_evaluator(
    program: Program, values: Values, transport: Transport, *, most: int = MOST_BYTES, random: Random | None = None
) -> Any:
    """The evaluator's part. Gives the result, if the evaluator learns it, else None. `most` as for the garbler."""
    program.check_size(most)
    random = default_random() if random is None else random
    bits = _own_bits(program, "evaluator", values)
    line = Line("evaluator", program, transport, random)
    own = _shaped(program, "evaluator", _choose(line, bits, random))
    text = line.receive("labels", 32 + 16 * program.wires("garbler"))
    labels = np.frombuffer(text, dtype="<u8", offset=32).reshape(-1, 2).astype(np.uint64)
    machine = Evaluating(_GatesIn(line, program.gates).receive, seed=text[:32])
    found = program.on(machine, {**own, **_shaped(program, "garbler", labels)})
    results = []
    if program.to != "garbler":
        sizes = [-(-output.wires // 8) for output in program.outputs]
        told, start = line.receive("colours", sum(sizes)), 0
        for output, each, size in zip(program.outputs, found, sizes, strict=True):
            shown = np.unpackbits(np.frombuffer(told[start : start + size], dtype=np.uint8)).astype(np.bool_)
            if shown[output.wires :].any():
                raise refused("it has bits beyond those of the results")
            shown = shown[: output.wires]
            results.append(output.read(shown.reshape(each.shape[:2]) ^ colours(each)))
            start += size
    if program.to != "evaluator":
        line.send("results", b"".join(each.astype("<u8", copy=False).tobytes() for each in found))
    return program.results(results) if results else None


def run_both(
    program: Program, values: Values, *, most: int = MOST_BYTES, random: tuple[Random, Random] | None = None
) -> tuple[Any, Any]:
    """Both parties in one process, to try a program: the garbler's result and the evaluator's.

    >>> from cloister.together.circuits import FixedPoint
    >>> sizes = {"garbler": {"a": FixedPoint(bits=8)}, "evaluator": {"b": FixedPoint(bits=8)}}
    >>> garbler, evaluator = run_both(Program(lambda a, b: a < b, **sizes, to="both"), {"a": 3, "b": 5})
    >>> int(garbler), int(evaluator)
    (1, 1)
    """
    program.check_size(most)
    sides = {party: {name: values[name] for name in own if name in values} for party, own in program.inputs.items()}
    for party, own in sides.items():
        _own_bits(program, party, own)  # what is invalid is refused before anything runs
    one, other = random or (default_random(), default_random())
    garbler, evaluator = QueueTransport.pair()
    told: list[Any] = []

    def garble() -> None:
        try:
            told.append(run_garbler(program, sides["garbler"], garbler, most=most, random=one))
        except Exception as failed:
            told.append(failed)
            garbler.close()

    thread = threading.Thread(target=garble, daemon=True)
    thread.start()
    try:
        found = run_evaluator(program, sides["evaluator"], evaluator, most=most, random=other)
    except RoundRefused as stopped:
        evaluator.close()
        thread.join()
        if stopped.why == _STOPPED and isinstance(told[0], Exception):
            raise told[0] from None  # the garbler met it first
        raise
    finally:
        evaluator.close()
        thread.join()
    if isinstance(told[0], Exception):
        raise told[0]
    return told[0], found


class _GatesOut:
    """Garbled gates in messages of one size."""

    def __init__(self, line: Line) -> None:
        self._line, self._held, self._size = line, list[bytes | memoryview](), 0

    def send(self, gates: bytes) -> None:
        self._held.append(gates)
        self._size += len(gates)
        while self._size >= _MESSAGE:
            rest, last = self._size - _MESSAGE, memoryview(self._held.pop())
            self._line.send("gates", *self._held, last[: len(last) - rest])
            self._held, self._size = ([last[len(last) - rest :]] if rest else []), rest

    def close(self) -> None:
        if self._held:
            self._line.send("gates", *self._held)


class _GatesIn:
    """The same, taken apart; how many messages come follows from the program."""

    def __init__(self, line: Line, gates: int) -> None:
        self._line, self._left, self._held, self._at = line, GATE_BYTES * gates, memoryview(b""), 0

    def receive(self, size: int) -> bytes | memoryview:
        if size <= len(self._held) - self._at:  # the usual case, not copied
            self._at += size
            return self._held[self._at - size : self._at]
        parts = []
        while size:
            if self._at == len(self._held):
                self._held, self._at = self._line.view("gates", min(_MESSAGE, self._left)), 0
                self._left -= len(self._held)
            parts.append(self._held[self._at : self._at + size])
            self._at += len(parts[-1])
            size -= len(parts[-1])
        return b"".join(parts)


def _give(line: Line, program: Program, machine: Garbling, random: Random) -> Blocks:
    """The garbler's side of the transfers: the labels of 0 of all wires that the evaluator brings."""
    count = program.wires("evaluator")
    base = transfer.BaseReceiver(line.session, line.receive("offer", transfer.GROUP_BYTES), random)
    line.send("base", base.second)
    columns = line.receive("columns", transfer.columns_bytes(count))
    giver = transfer.Giver(line.session, base.keys, base.bits, count, columns)
    challenge = random.bytes(32)
    line.send("challenge", challenge)
    if not giver.check(challenge, line.receive("proof", transfer.PROOF_BYTES)):
        raise refused("it does not prove that the evaluator made one choice a bit")
    zeros, masked = giver.labels(machine.delta)
    line.send("transfers", masked)
    return zeros


def _choose(line: Line, bits: Mapping[str, npt.NDArray[np.bool_]], random: Random) -> Blocks:
    """The evaluator's side: the label of each of its bits."""
    choices = np.concatenate([each.ravel() for each in bits.values()])
    base = transfer.BaseSender(line.session, random)
    line.send("offer", base.first)
    keys = base.keys(line.receive("base", transfer.COLUMNS * transfer.GROUP_BYTES))
    chooser = transfer.Chooser(line.session, keys, choices, random)
    line.send("columns", chooser.columns)
    line.send("proof", chooser.proof(line.receive("challenge", 32)))
    return chooser.labels(line.receive("transfers", 16 * len(choices)))


def _own_bits(program: Program, party: Party, values: Values) -> dict[str, npt.NDArray[np.bool_]]:
    """What a party brings, in the order of the names."""
    names = sorted(program.inputs[party])
    if sorted(values) != names:
        raise InvalidParameter(
            "The inputs are invalid", why=f"they are {sorted(values)}, and the {party} brings {names}", instead="a value each"
        )
    return {name: program.bits_of(name, values[name]) for name in names}


def _shaped(program: Program, party: Party, labels: Blocks) -> dict[str, Blocks]:
    """Labels one after the other as wires of inputs."""
    found, start = {}, 0
    for name in sorted(program.inputs[party]):
        kind = program.inputs[party][name]
        end = start + kind.width * prod(kind.shape)
        found[name], start = labels[start:end].reshape(kind.width, -1, 2), end
    return found


def refused(why: str) -> RoundRefused:
    """A message that the protocol does not allow, or that did not come."""
    what, instead = "A message was refused", "the message as the other party's program writes it, once and in order"
    if why in (_STOPPED, _SILENT):
        what = "The circuit ended early"
        instead = "a new one when the other party is back; of a service provider, by a plan with a new key"
    return RoundRefused(what, why=why, instead=instead)
