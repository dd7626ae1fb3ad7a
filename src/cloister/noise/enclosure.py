"""exp(−x) of a rational x, pinned between two integers: the arithmetic that decides what floating point cannot.

No library function is trusted here. Everything is integer arithmetic whose rounding is counted, so a comparison that is
decided with these bounds is decided for the real number itself.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from cloister.noise.random import Random

Enclosure: TypeAlias = Callable[[int], tuple[int, int]]
"""For a number T in [0, 1]: bits ↦ (low, high) with low ≤ T·2^bits ≤ high, and the gap bounded for all bits."""


def exp_below(x: Fraction, bits: int) -> int:
    """An integer v with v ≤ exp(−x)·2^bits ≤ v + 2, for x ≥ 0.

    Proof. Choose j with y = x/2^j ≤ 1/16, and work in units of 2^−q, q = bits + j + room. Each Taylor term is rounded down
    from the one before it times y, itself rounded down: it is low by e′ ≤ e/16 + 2 < 2.2 units. At most q/4 + 2 terms are
    not zero, and an alternating sum is off by less than the first term left out: the sum for exp(−y) is off by less than
    2.2(q/4 + 2) + 3.2 ≤ q units. Squaring a number that is at most 1 and off by e units, and rounding down, leaves it off
    by at most 2e + 2 units (e² < 2^q since x ≤ 0.7(bits + 2) keeps j small). After j squarings the sum is off by less than
    2^j·(q + 2) ≤ ½·2^(q − bits) units, by the choice of `room`. Take half a unit of 2^−bits off and round down: the result
    is at most the truth, and less than 2 below it.

    >>> exp_below(Fraction(0), 10), exp_below(Fraction(1), 10), round(1024 / 2.718281828)
    (1023, 376, 377)
    """
    if x.numerator * 100 > 70 * (bits + 2) * x.denominator:  # exp(−x) < 2^(−bits), since ln 2 < 0.7
        return 0
    j = max(0, (x.numerator // x.denominator).bit_length() + 4)
    room = 16 if bits + j < 1 << 14 else (bits + j).bit_length() + 4
    places = bits + j + room
    y = (x.numerator << (places - j)) // x.denominator
    total = term = 1 << places
    n = 1
    while term:
        term = (term * y >> places) // n
        total += -term if n & 1 else term
        n += 1
    for _ in range(j):
        total = total * total >> places
    shift = places - bits
    return max(0, (total - (1 << (shift - 1))) >> shift)


def exp_above(x: Fraction) -> Fraction:
    """A number not below exp(−x): within a relative 2^−190 of it for any x ≥ 0 up to 2000; beyond, a power of two that is no
    less than exp(−x) up to x = 10⁵, since more digits of so small a number take seconds and tell nothing; beyond that,
    2^−144000.

    >>> abs(exp_above(Fraction(1)) - Fraction(1 / 2.718281828459045)) < Fraction(1, 10**15)
    True
    """
    if x > 100_000:
        return Fraction(1, 1 << 144_000)
    if x > 2_000:
        return min(Fraction(1, 1 << int(x * 1_442 // 1_000)), _at_two_thousand())  # log₂ e > 1.442; never above what is before
    bits = 200 + int(x * 3 / 2)
    return Fraction(min(exp_below(x, bits) + 2, 1 << bits), 1 << bits)


@lru_cache(maxsize=1)
def _at_two_thousand() -> Fraction:
    return exp_above(Fraction(2_000))


def exp_enclosure(x: Fraction) -> Enclosure:
    """exp(−x) as an `Enclosure`.

    >>> low, high = exp_enclosure(Fraction(1))(20)
    >>> low <= 2.718281828459045**-1 * 2**20 <= high <= low + 2
    True
    """

    def enclose(bits: int) -> tuple[int, int]:
        low = exp_below(x, bits)
        return low, min(low + 2, 1 << bits)

    return enclose


def rational_enclosure(p: Fraction) -> Enclosure:
    """A rational number as an `Enclosure`.

    >>> rational_enclosure(Fraction(1, 3))(4)
    (5, 6)
    """

    def enclose(bits: int) -> tuple[int, int]:
        scaled = p.numerator << bits
        return scaled // p.denominator, -(-scaled // p.denominator)

    return enclose


def lies_below(word: int, bits: int, threshold: Enclosure, random: Random) -> bool:
    """Is a uniform real number, of which the first `bits` bits are `word`, below `threshold`? Draws more of its bits while
    it must.

    The number lies in [word, word + 1]/2^bits (its ends have probability zero). Each round draws 64 more bits and encloses
    the threshold as much tighter, so a round is the last one but for a chance of about 2^−62.

    >>> from cloister.noise.random import Random
    >>> lies_below(0, 8, rational_enclosure(Fraction(1, 2)), Random())
    True
    >>> lies_below(0b10000000, 8, rational_enclosure(Fraction(1, 2)), Random())
    False
    """
    while True:
        low, high = threshold(bits)
        if word + 1 <= low:
            return True
        if word >= high:
            return False
        word = word << 64 | random.word()
        bits += 64
