"""What a report of Prio3 may hold, and the proof that it holds no more (Boneh, Boyle, Corrigan-Gibbs, Gilboa & Ishai 2019).

A value is a vector of a prime field. A *circuit* of it is zero exactly for values that may be sent; all that is not linear in
it is in one *gadget* of degree 2, called several times. The prover interpolates the inputs of these calls, wire by wire, with
a random seed in front, and sends the polynomial of the gadget's outputs. A verifier with a share of everything works out its
share of the circuit's result and of all these polynomials at a random point: there, and only by chance elsewhere, does a false
polynomial agree.

*Soundness.* A false proof passes with probability at most 2(n − 1)/(p − n), where n is the number of points of a wire's
polynomial, and a little more where results are joined by random weights: below 2⁻⁵⁰ for bits and numbers (p ≈ 2⁶⁴), below
2⁻¹⁰⁰ for buckets. These have p ≈ 2¹²⁸, since their random numbers follow from the shares, and a client can try many shares
before it sends one. *Zero knowledge.* What verifiers see of the value is a value of each wire polynomial at a point that is no
root of unity: the seed is uniform, so these values are uniform; the gadget's follows from them.

Polynomials are lists of their values at the roots of unity. Arithmetic is Python's, whose time depends on the numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from cloister.errors import InvalidParameter
from cloister.noise.mechanism import set_fields

Vector: TypeAlias = list[int]
Gadget: TypeAlias = Callable[[Sequence[int]], int]
MOST_BUCKETS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Field:
    """A prime field whose multiplicative group has roots of unity of order 2^32 and more."""

    modulus: int
    size: int
    """Bytes of a number."""
    generator: int
    order: int
    """Of the generator: a power of two."""

    def encode(self, vector: Sequence[int]) -> bytes:
        """Numbers as bytes, the least first."""
        return b"".join(each.to_bytes(self.size, "little") for each in vector)

    def decode(self, data: bytes) -> Vector:
        """Numbers of bytes; ValueError for bytes that are no numbers of this field."""
        if len(data) % self.size:
            raise ValueError("not a whole number of field elements")
        found = [int.from_bytes(data[at : at + self.size], "little") for at in range(0, len(data), self.size)]
        if any(each >= self.modulus for each in found):
            raise ValueError("a number is not below the modulus")
        return found

    def add(self, left: Sequence[int], right: Sequence[int]) -> Vector:
        """Sums, place by place."""
        return [(one + other) % self.modulus for one, other in zip(left, right, strict=True)]

    def subtract(self, left: Sequence[int], right: Sequence[int]) -> Vector:
        """Differences, place by place."""
        return [(one - other) % self.modulus for one, other in zip(left, right, strict=True)]

    def inverse(self, value: int) -> int:
        """One over a number."""
        return pow(value, -1, self.modulus)

    def roots(self, n: int) -> tuple[int, ...]:
        """The n roots of unity, in the order of powers; n is a power of two."""
        return _roots(self, n)

    def transform(self, coefficients: Sequence[int]) -> Vector:
        """The values of a polynomial at the roots of unity, as many as it has coefficients (a power of two)."""
        n = len(coefficients)
        if n == 1:
            return list(coefficients)
        even, odd = self.transform(coefficients[::2]), self.transform(coefficients[1::2])
        twisted = [root * each % self.modulus for root, each in zip(self.roots(n), odd, strict=False)]
        return self.add(even, twisted) + self.subtract(even, twisted)

    def doubled(self, values: Sequence[int]) -> Vector:
        """The values of the same polynomial at twice as many roots of unity."""
        n = len(values)
        found = self.transform(values)
        scale = self.inverse(n)
        coefficients = [found[-at % n] * scale % self.modulus for at in range(n)]
        shifted = [each * root % self.modulus for each, root in zip(coefficients, self.roots(2 * n), strict=False)]
        return [each for pair in zip(values, self.transform(shifted), strict=True) for each in pair]

    def weights_at(self, point: int, n: int) -> Vector:
        """Lagrange's weights: the value of a polynomial at a point is the sum of its values at the roots times these."""
        power = pow(point, n, self.modulus)
        if power == 1:
            raise ValueError("the point of a test is a root of unity")
        scale = (power - 1) * self.inverse(n) % self.modulus
        return [scale * root * self.inverse(point - root) % self.modulus for root in self.roots(n)]

    def dot(self, left: Sequence[int], right: Sequence[int]) -> int:
        """The sum of products."""
        return sum(one * other for one, other in zip(left, right, strict=True)) % self.modulus


@lru_cache(maxsize=128)
def _roots(field: Field, n: int) -> tuple[int, ...]:
    root, found = pow(field.generator, field.order // n, field.modulus), [1]
    while len(found) < n:
        found.append(found[-1] * root % field.modulus)
    return tuple(found)


FIELD64 = Field(modulus=2**32 * 4294967295 + 1, size=8, generator=pow(7, 4294967295, 2**32 * 4294967295 + 1), order=2**32)
_P128 = 2**66 * 4611686018427387897 + 1
FIELD128 = Field(modulus=_P128, size=16, generator=pow(7, 4611686018427387897, _P128), order=2**66)


@dataclass(frozen=True, kw_only=True)
class Count:
    """Nothing but 0 or 1: x² − x is 0. `evaluate` of each circuit is affine in the value but for what it asks of `gadget`, always
    in the same order.

    >>> Count().encode(1)
    [1]
    """

    field: Field = FIELD64
    identifier: int = 1  # of the draft: its domain separation
    length: int = 1  # of an encoded value
    arity: int = 2  # inputs of the gadget
    calls: int = 1  # of the gadget
    joint: int = 0  # random numbers that all parties know
    results: int = 1  # numbers that must all be 0
    largest: int = 1  # how much one person can add to any number of the sum
    changes: int = 1  # how far another value of one person moves the sum, in L1

    def encode(self, value: int) -> Vector:
        """A value as the numbers that are proved."""
        return [_whole(value, 1)]

    def gadget(self, inputs: Sequence[int]) -> int:
        """A product."""
        return inputs[0] * inputs[1] % self.field.modulus

    def evaluate(self, encoded: Sequence[int], joint: Sequence[int], parties: int, gadget: Gadget) -> Vector:
        """Zero for a valid value; a share of the result for a share of a value."""
        return [(gadget([encoded[0], encoded[0]]) - encoded[0]) % self.field.modulus]

    def decode(self, encoded: Sequence[int]) -> Vector:
        """What is added up; linear."""
        return list(encoded)


@dataclass(frozen=True, init=False)
class Sum:
    """A whole number from 0 to `largest`: bits whose weights add up to `largest`, each of them 0 or 1.

    >>> Sum(largest=9).encode(9), Sum(largest=9).weights
    ([1, 1, 1, 1], [1, 2, 4, 2])
    """

    largest: int
    field: Field = FIELD64
    identifier: int = 2
    arity: int = 1
    joint: int = 0

    def __init__(self, *, largest: int) -> None:
        if type(largest) is not int or not 0 < largest < 2**32:
            raise InvalidParameter(f"largest={largest!r} is invalid", why="it is from 1 to 2^32 − 1", instead="largest=100")
        set_fields(self, largest=largest)

    @cached_property
    def weights(self) -> Vector:
        """Powers of two, and what is left."""
        bits = self.largest.bit_length()
        return [1 << at for at in range(bits - 1)] + [self.largest - (1 << bits - 1) + 1]

    @property
    def length(self) -> int:
        """Of an encoded value: its bits."""
        return self.largest.bit_length()

    calls = results = length

    @property
    def changes(self) -> int:
        """How far another value of one person moves the sum."""
        return self.largest

    def encode(self, value: int) -> Vector:
        """A value as the bits that are proved."""
        _whole(value, self.largest)
        last = int(value >= 1 << self.length - 1)
        rest = value - last * self.weights[-1]
        return [rest >> at & 1 for at in range(self.length - 1)] + [last]

    def gadget(self, inputs: Sequence[int]) -> int:
        """x² − x, which only 0 and 1 make 0."""
        return inputs[0] * (inputs[0] - 1) % self.field.modulus

    def evaluate(self, encoded: Sequence[int], joint: Sequence[int], parties: int, gadget: Gadget) -> Vector:
        """Zeros for a valid value; shares of the results for a share of a value."""
        return [gadget([each]) for each in encoded]

    def decode(self, encoded: Sequence[int]) -> Vector:
        """What is added up; linear."""
        return [self.field.dot(self.weights, encoded)]


@dataclass(frozen=True, init=False)
class Histogram:
    """One of `buckets`: a vector of zeros with a single 1, checked `chunk` at a time with random weights.

    >>> Histogram(buckets=4).encode(2), Histogram(buckets=100).chunk
    ([0, 0, 1, 0], 10)
    """

    buckets: int
    chunk: int
    field: Field = FIELD128
    identifier: int = 4
    results: int = 2
    largest: int = 1
    changes: int = 2

    def __init__(self, *, buckets: int, chunk: int | None = None) -> None:
        if type(buckets) is not int or not 0 < buckets <= MOST_BUCKETS:
            raise InvalidParameter(
                f"buckets={buckets!r} is invalid", why=f"it is from 1 to {MOST_BUCKETS:,}", instead="buckets=20"
            )
        size = max(1, round(buckets**0.5)) if chunk is None else chunk
        if type(size) is not int or not 0 < size <= buckets:
            raise InvalidParameter(
                f"chunk={chunk!r} is invalid", why="it is from 1 to the number of buckets", instead="chunk=None"
            )
        set_fields(self, buckets=buckets, chunk=size)

    @property
    def length(self) -> int:
        """Of an encoded value."""
        return self.buckets

    @property
    def arity(self) -> int:
        """Inputs of the gadget: a pair for each bucket of a chunk."""
        return 2 * self.chunk

    @property
    def calls(self) -> int:
        """Chunks."""
        return -(-self.buckets // self.chunk)

    joint = calls

    def encode(self, value: int) -> Vector:
        """A value as the numbers that are proved."""
        _whole(value, self.buckets - 1)
        return [int(place == value) for place in range(self.buckets)]

    def gadget(self, inputs: Sequence[int]) -> int:
        """The sum of the products of pairs."""
        return self.field.dot(inputs[::2], inputs[1::2])

    def evaluate(self, encoded: Sequence[int], joint: Sequence[int], parties: int, gadget: Gadget) -> Vector:
        """Zeros for a valid value; shares of the results for a share of a value."""
        modulus, part = self.field.modulus, self.field.inverse(parties)
        filled, found = [*encoded, *[0] * (self.calls * self.chunk - self.buckets)], 0
        for start, weight in zip(range(0, len(filled), self.chunk), joint, strict=True):
            inputs, power = [], weight
            for each in filled[start : start + self.chunk]:
                inputs += [power * each % modulus, (each - part) % modulus]
                power = power * weight % modulus
            found += gadget(inputs)
        return [found % modulus, (sum(encoded) - part) % modulus]

    def decode(self, encoded: Sequence[int]) -> Vector:
        """What is added up; linear."""
        return list(encoded)


Circuit: TypeAlias = Count | Sum | Histogram
"""What may be sent."""


def prove(circuit: Circuit, encoded: Sequence[int], seeds: Sequence[int], joint: Sequence[int]) -> Vector:
    """The proof: the wires' seeds, and the polynomial of the gadget's outputs."""
    wires = _Wires(circuit, seeds)
    circuit.evaluate(encoded, joint, 1, lambda inputs: circuit.gadget(wires.note(inputs)))
    finer = [circuit.field.doubled(wire) for wire in wires.values]
    outputs = [circuit.gadget(inputs) for inputs in zip(*finer, strict=True)]
    return [*seeds, *outputs[:-1]]  # of degree below 2p − 1, so the last value follows from the others


def query(
    circuit: Circuit, encoded: Sequence[int], proof: Sequence[int], drawn: Sequence[int], joint: Sequence[int], parties: int
) -> Vector:
    """A share of what is looked at: the circuit's result, the wires at a random point, the gadget's polynomial there."""
    field = circuit.field
    wires = _Wires(circuit, proof[: circuit.arity])
    outputs = _completed(field, proof[circuit.arity :])
    results = circuit.evaluate(encoded, joint, parties, lambda inputs: outputs[2 * wires.count(inputs)])
    whole = field.dot(drawn[:-1], results) if circuit.results > 1 else results[0]
    point = drawn[-1]
    weights = field.weights_at(point, wires.length)
    return [
        whole,
        *(field.dot(weights, wire) for wire in wires.values),
        field.dot(field.weights_at(point, len(outputs)), outputs),
    ]


def decide(circuit: Circuit, seen: Sequence[int]) -> bool:
    """Whether a value is valid, from all shares of what was looked at, added up."""
    return seen[0] == 0 and circuit.gadget(seen[1:-1]) == seen[-1]


def points_of(circuit: Circuit) -> int:
    """How many wires' values a polynomial has: a seed and each call, filled up to a power of two."""
    return 1 << circuit.calls.bit_length()


def proof_length(circuit: Circuit) -> int:
    """Numbers of a proof."""
    return circuit.arity + 2 * points_of(circuit) - 1


def drawn_for_query(circuit: Circuit) -> int:
    """Random numbers that verifiers need: weights of results, and a point."""
    return 1 + (circuit.results if circuit.results > 1 else 0)


class _Wires:
    """The inputs of all calls of a gadget, wire by wire."""

    def __init__(self, circuit: Circuit, seeds: Sequence[int]) -> None:
        self.length, self._calls = points_of(circuit), 0
        self.values = [[seed, *[0] * (self.length - 1)] for seed in seeds]

    def count(self, inputs: Sequence[int]) -> int:
        """Note the inputs of the next call; which one it is."""
        self._calls += 1
        for wire, value in zip(self.values, inputs, strict=True):
            wire[self._calls] = value
        return self._calls

    def note(self, inputs: Sequence[int]) -> Sequence[int]:
        """Note the inputs of the next call, and hand them on."""
        self.count(inputs)
        return inputs


def _completed(field: Field, values: Sequence[int]) -> Vector:
    """All values at roots of unity of a polynomial whose highest coefficient is 0, from all but the last: times the roots they
    add up to 0.
    """
    n = len(values) + 1
    roots = field.roots(n)
    missing = -field.dot(values, roots[:-1]) * field.inverse(roots[-1]) % field.modulus
    return [*values, missing]


def _whole(value: int, largest: int) -> int:
    if type(value) is not int or not 0 <= value <= largest:
        raise InvalidParameter(f"{value!r} can't be sent", why=f"it is a whole number from 0 to {largest}", instead=f"{largest}")
    return value
