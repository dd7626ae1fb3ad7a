"""Garbled circuits by half gates: one party writes a circuit in labels, the other walks through it and sees only labels.

Each wire has two labels of 128 bits, W for 0 and W ⊕ Δ for 1, where Δ is one secret of the garbler whose lowest bit is 1. The
evaluator has one label of each wire. Exclusive or of wires is that of labels, and NOT is a change of names at the garbler, so
both are free. The lowest bit of a label, its colour, says which of the two it is to the garbler alone; at the evaluator it
picks a row (point and permute). An AND gate costs two blocks, one for each half (Zahur, Rosulek & Evans, EUROCRYPT 2015).

Claim (their theorem 1): if H is circular correlation robust, what the evaluator sees is simulated from the circuit and the
result: random labels, random blocks, and colours that make the result right. Proof sketch: label by label in the order of the
gates, each block is masked by H at a label that the evaluator lacks, tweaked by a number that never comes again; so blocks
are uniform, and which label of a wire it holds is independent of the wire's value. ∎ A label that was not held can't be
guessed either, but with probability 2^−127: so results that an evaluator gives back are labels (authenticity).

H is `cloister.crypto.tweaked_hash`, under a fresh key each 2^20 gates; its docstring says what that loses, and the colour takes
one bit of Δ: labels of 128 bits give security of about 104. The garbler must follow the protocol: one who garbles another
circuit is not found out.

A wire that everybody knows has the label 0 for 0: correlation robustness lets inputs of H be chosen.
"""

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from cloister.crypto.tweaked_hash import Blocks, TweakedHash
from cloister.noise import Random
from cloister.together.circuits.machines import Machine

KEY_GATES = 1 << 20
_PIECE = 1 << 12
"""Gates at a time: what they touch fits the processor's cache."""
_ONE = np.uint64(1)


class _Garbled(Machine):
    """What both sides share: gates are numbered through the circuit, and hashed under the key of their number."""

    words = 2
    dtype = np.uint64

    def __init__(self, seed: bytes) -> None:
        super().__init__()
        self._seed, self._number = seed, 0

    def _pieces(self, count: int) -> Iterator[tuple[slice, TweakedHash, int]]:
        start = 0
        while start < count:
            within = self._number % KEY_GATES
            if within == 0:
                text = b"cloister circuits gates " + self._seed + (self._number // KEY_GATES).to_bytes(8, "big")
                self._hash = TweakedHash(hashlib.sha256(text).digest()[:16])
            size = min(count - start, _PIECE, KEY_GATES - within)
            yield slice(start, start + size), self._hash, within
            start += size
            self._number += size


class Garbling(_Garbled):
    """The garbler's machine: its wires are the labels of 0. Garbled gates go to `send` as they are made.

    >>> told = []
    >>> random = Random.deterministic(1)
    >>> garbling = Garbling(told.append, seed=bytes(32), random=random)
    >>> a, b = garbling.labels(1, 1), garbling.labels(1, 1)
    >>> product = garbling.both(a, b)
    >>> evaluating = Evaluating(lambda size: b"".join(told), seed=bytes(32))
    >>> one, zero = garbling.chosen(a, np.array([[True]])), garbling.chosen(b, np.array([[False]]))
    >>> bool((evaluating.both(one, zero) == product).all())  # 1 AND 0 is the label of 0
    True
    """

    def __init__(self, send: Callable[[bytes], None], *, seed: bytes, random: Random) -> None:
        super().__init__(seed)
        self._send, self._random = send, random
        self.delta: Blocks = random.words(2)
        self.delta[0] |= _ONE
        self._deltas = np.tile(self.delta, (_PIECE, 1))  # as wide as a piece: numpy is slow on rows of two words

    def labels(self, bits: int, numbers: int) -> Blocks:
        """Fresh labels of 0."""
        return self._random.words(2 * bits * numbers).reshape(bits, numbers, 2)

    def chosen(self, labels: Blocks, bits: npt.NDArray[np.bool_]) -> Blocks:
        """The labels of these bits."""
        return labels ^ (_mask(bits.astype(np.uint64)) & self.delta)

    def opposite(self, a: Blocks) -> Blocks:
        """NOT: the label of 1 becomes that of 0."""
        return a ^ self.delta

    def read(self, labels: Blocks, zeros: Blocks) -> npt.NDArray[np.bool_] | None:
        """Which bits the evaluator's labels stand for; None where one of them is no label of its wire."""
        ones = (labels == (zeros ^ self.delta)).all(axis=-1)
        return ones if bool(((labels == zeros).all(axis=-1) | ones).all()) else None

    def _both(self, a: Blocks, b: Blocks) -> Blocks:
        shape, a, b = a.shape, np.ascontiguousarray(a).reshape(-1, 2), np.ascontiguousarray(b).reshape(-1, 2)
        out = np.empty_like(a)
        for part, hashed, first in self._pieces(len(a)):
            size = part.stop - part.start
            delta = self._deltas[:size]
            inputs = np.empty((2, 2, size, 2), dtype=np.uint64)  # of a and of b: the label of 0, and that of 1
            inputs[0, 0], inputs[1, 0] = a[part], b[part]
            np.bitwise_xor(inputs[:, 0], delta, out=inputs[:, 1])
            hashes = hashed(inputs.reshape(4, size, 2), first=first, halves=2).reshape(2, 2, size, 2)
            masks = _mask(inputs[:, 0, :, 0] & _ONE)
            table = np.bitwise_xor(hashes[:, 0], hashes[:, 1])
            table[0] ^= masks[1] & delta
            # the label of 0: the garbler's half, H(a) ⊕ colour(a)·first block, and the evaluator's, H(b) ⊕ colour(b)·(second ⊕ a)
            masks &= table
            masks ^= hashes[:, 0]
            np.bitwise_xor(masks[0], masks[1], out=out[part])
            table[1] ^= inputs[0, 0]
            self._send(table.astype("<u8", copy=False).tobytes())
        return out.reshape(shape)


class Evaluating(_Garbled):
    """The evaluator's machine: its wires are the labels that it holds. `receive(size)` gives the next bytes of garbled gates."""

    def __init__(self, receive: Callable[[int], bytes | memoryview], *, seed: bytes) -> None:
        super().__init__(seed)
        self._receive = receive

    def opposite(self, a: Blocks) -> Blocks:
        """NOT: nothing to do, the garbler changed the names."""
        return a

    def _both(self, a: Blocks, b: Blocks) -> Blocks:
        shape, a, b = a.shape, np.ascontiguousarray(a).reshape(-1, 2), np.ascontiguousarray(b).reshape(-1, 2)
        out = np.empty_like(a)
        for part, hashed, first in self._pieces(len(a)):
            size = part.stop - part.start
            table = np.frombuffer(self._receive(32 * size), dtype="<u8").reshape(2, size, 2)
            inputs = np.empty((2, size, 2), dtype=np.uint64)
            inputs[0], inputs[1] = a[part], b[part]
            hashes = hashed(inputs, first=first, halves=2)
            masks = _mask(inputs[:, :, 0] & _ONE)
            masks[0] &= table[0]
            masks[1] &= table[1] ^ inputs[0]
            masks ^= hashes
            np.bitwise_xor(masks[0], masks[1], out=out[part])
        return out.reshape(shape)


def colours(labels: Blocks) -> npt.NDArray[np.bool_]:
    """The lowest bit of each label."""
    return (labels[..., 0] & _ONE).astype(np.bool_)


def _mask(bits: npt.NDArray[np.uint64]) -> Blocks:
    """Blocks of ones where a bit is 1."""
    return np.negative(bits, out=bits)[..., None].repeat(2, axis=-1)
