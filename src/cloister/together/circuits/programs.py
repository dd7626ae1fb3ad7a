"""Ready programs: two sums compared, and sums under encryption taken up where `Paillier` leaves them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.together.circuits.fixed_point import FixedPoint
from cloister.together.circuits.language import SecretArray
from cloister.together.circuits.program import Program, Receiver

if TYPE_CHECKING:
    from cloister.together.paillier import EncryptedVector, Slots


def comparison_of_sums(garbler: int, evaluator: int, *, bits: int = 32, to: Receiver = "both") -> Program:
    """Whether the sum of the garbler's numbers is the larger one: `a`, so many, against `b`, so many, whole and signed.

    What it tells is one bit about both sums. Whoever may ask again with other numbers finds the other's sum by halving.

    >>> program = comparison_of_sums(2, 3, bits=8)
    >>> int(program.as_numbers(a=[10, 20], b=[5, 5, 19])), program.gates
    (1, 101)
    """
    one, other = (FixedPoint(bits=bits, shape=(count,)) for count in (garbler, evaluator))
    return Program(lambda a, b: a.sum() > b.sum(), garbler={"a": one}, evaluator={"b": other}, to=to)


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
        found = np.empty(len(values), dtype=object)
        found[:] = [int(each) % (1 << self.bits) for each in values]
        return found

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
