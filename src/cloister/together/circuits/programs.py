"""Ready programs: sums compared and ranked, sets intersected, and sums under encryption taken up where `Paillier` leaves them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.together.circuits.fixed_point import FixedPoint, integers
from cloister.together.circuits.geometric import COIN, GeometricNoise
from cloister.together.circuits.language import SecretArray, concatenate, select
from cloister.together.circuits.program import Program, Receiver

if TYPE_CHECKING:
    from cloister.crypto.paillier import EncryptedVector, Slots


def comparison_of_sums(garbler: int, evaluator: int, *, bits: int = 32, to: Receiver = "both") -> Program:
    """Whether the sum of the garbler's numbers is the larger one: `a`, so many, against `b`, so many, whole and signed.

    What it tells is one bit about both sums. Whoever may ask again with other numbers finds the other's sum by halving.

    >>> program = comparison_of_sums(2, 3, bits=8)
    >>> int(program.as_numbers(a=[10, 20], b=[5, 5, 19])), program.gates
    (1, 101)
    """
    one, other = (FixedPoint(bits=bits, shape=(count,)) for count in (garbler, evaluator))
    return Program(lambda a, b: a.sum() > b.sum(), garbler={"a": one}, evaluator={"b": other}, to=to)


def largest_sums(length: int, count: int, *, bits: int = 32, to: Receiver = "both") -> Program:
    """The places of the largest sums of two owners' lists of whole numbers, the largest first; of equal ones the first place.

    What it tells is an order, and no sum. Whoever may ask again with other numbers learns sums by it.

    >>> program = largest_sums(4, 2, bits=8)
    >>> program.as_numbers(a=[1, 50, 3, 20], b=[9, -45, 7, 0]).tolist()
    [3, 0]
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= length:
        raise InvalidParameter(f"count={count!r} is invalid", why=f"the lists have {length} places", instead="count=1")
    kind = FixedPoint(bits=bits, shape=(length,))

    def ranked(a: SecretArray, b: SecretArray) -> SecretArray:
        sums, found = a + b, []
        places = a.run.public(np.arange(length), 0)
        for turn in range(count):
            value, place = sums, places
            while len(value) > 1:  # a tree: of two neighbours the larger one, of equal ones the left
                pairs = len(value) // 2 * 2
                left = value[0:pairs:2] >= value[1:pairs:2]
                odd, last = ([each[pairs:]] if len(each) > pairs else [] for each in (value, place))
                value = select(left, value[0:pairs:2], value[1:pairs:2])
                place = select(left, place[0:pairs:2], place[1:pairs:2])
                value, place = concatenate([value, *odd]), concatenate([place, *last])
            found.append(place)
            if turn + 1 < count:  # below every sum
                sums = select(places == place, -(1 << (bits + 1)), sums)
        return concatenate(found)

    return Program(ranked, garbler={"a": kind}, evaluator={"b": kind}, to=to)


def intersection_size(
    garbler: int, evaluator: int, *, bits: int = 32, noise: GeometricNoise | None = None, to: Receiver = "both"
) -> Program:
    """How many numbers two sets of so many have in common: `a` and `b`, whole, from 0, each in rising order, none twice.

    Both lists are merged by a bitonic network, and neighbours compared (Huang, Evans & Katz, NDSS 2012): some
    n·log₂ n·bits gates of n = garbler + evaluator numbers. Names are brought as hashes; 64 bits make it unlikely that two of 10⁵
    meet. A list that is not in order, or has a number twice, is refused where it is brought, and the circuit looks as well: for a
    party that brings one all the same the count is 0. So whatever a party brings is a set or says nothing, and another number in
    the other's set moves the count by 1 at most. With `noise` (for sets of which a person is one number: sensitivity 1) each
    party brings coins as well.

    >>> program = intersection_size(3, 4, bits=8)
    >>> int(program.as_numbers(a=[2, 5, 9], b=[1, 2, 9, 200])), program.gates
    (2, 629)
    """
    if noise is not None and noise.numbers != 1:
        raise InvalidParameter(
            "The noise is invalid",
            why="each draw over the one count would be another answer, and one was charged",
            instead="GeometricNoise(epsilon=…)",
        )
    one, other = (FixedPoint(bits=bits, low=0, shape=(count,), rising=True) for count in (garbler, evaluator))
    size = 1 << (garbler + evaluator - 1).bit_length()
    empty = size - garbler - evaluator

    def common(a: SecretArray, b: SecretArray, **coins: SecretArray) -> SecretArray:
        filling = [a.run.public(np.full(empty, 1 << bits), 0)] if empty else []  # above every number
        merged = concatenate([a, *filling, b[::-1]])  # rises, and falls again
        step = size // 2
        while step:
            blocks = merged.reshape(-1, 2, step)
            low, high = blocks[:, 0], blocks[:, 1]
            turned = high < low
            merged = concatenate(
                [select(turned, high, low).reshape(-1, 1, step), select(turned, low, high).reshape(-1, 1, step)], axis=1
            ).reshape(size)
            step //= 2
        kept = merged[: garbler + evaluator]
        found = (kept[1:] == kept[:-1]).sum()
        if rises := [each[1:] > each[:-1] for each in (a, b) if len(each) > 1]:
            rising = concatenate(rises)
            found = select(rising.sum() == len(rising), found, 0)  # out of order, the network would not sort
        return found if noise is None else found + noise.sample(coins["coins_a"], coins["coins_b"])

    own, theirs = {"a": one}, {"b": other}
    if noise is not None:
        own["coins_a"], theirs["coins_b"] = noise.coins, noise.coins
    return Program(common, garbler=own, evaluator=theirs, to=to, bits=max(64, bits + 1, COIN if noise else 0))


@dataclass(frozen=True, kw_only=True)
class BlindedSum:
    """A sum of encrypted vectors that goes into a circuit without anybody having seen it.

    An adder blinds the sum (`EncryptedVector.blinded`) and keeps the blinds; the holder of the key decrypts what is blinded.
    Neither knows the sum. In the circuit the two are subtracted: the key's holder garbles, the adder evaluates. Only the
    lowest bits of both are brought, as many as a sum can have: Σ = (Σ + blind) − blind modulo 2^bits, and a sum lies between
    −2^(bits−1) and 2^(bits−1). Since the program is all that is computed with the sum, the one who learns its result learns
    no more.

    >>> from cloister.together import Slots
    >>> how = BlindedSum(slots=Slots(bits=16, terms=4, fraction=2), terms=2, length=3)
    >>> largest = how.program(lambda total: total[0].maximum(total[1]).maximum(total[2]))
    >>> blinds, total = np.array([2**50 + 7, 2**40, 3], dtype=object), np.array([-100, 20, 12], dtype=object)
    >>> float(largest.as_numbers(blinded=how.residues(total + blinds), blinds=how.residues(blinds)))
    5.0
    """

    slots: Slots
    terms: int
    """How many vectors were added."""
    length: int

    def __post_init__(self) -> None:
        if not 1 <= self.terms <= self.slots.terms:
            raise InvalidParameter(
                f"terms={self.terms} is invalid", why=f"the slots hold {self.slots.terms}", instead=f"terms={self.slots.terms}"
            )

    @classmethod
    def of(cls, encrypted: EncryptedVector) -> BlindedSum:
        """What a vector under encryption says of itself."""
        return cls(slots=encrypted.slots, terms=encrypted.count, length=encrypted.length)

    @property
    def bits(self) -> int:
        """Of a sum."""
        return self.slots.bits + (self.terms - 1).bit_length()

    def residues(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What a party brings: `keys.decrypt(…, exact=True)` of the blinded vector, or the blinds, cut to the lowest bits."""
        return integers([int(each) % (1 << self.bits) for each in values])

    def program(
        self,
        function: Callable[[SecretArray], SecretArray | tuple[SecretArray, ...]],
        *,
        to: Receiver = "evaluator",
        bits: int = 64,
    ) -> Program:
        """What is computed with the sum: the garbler brings `blinded`, the evaluator `blinds`."""
        kind = FixedPoint(bits=self.bits, low=0, shape=(self.length,))

        def unblinded(blinded: SecretArray, blinds: SecretArray) -> SecretArray | tuple[SecretArray, ...]:
            return function(blinded.minus_modulo(blinds, bits=self.bits, fraction=self.slots.fraction))

        return Program(unblinded, garbler={"blinded": kind}, evaluator={"blinds": kind}, to=to, bits=bits)
