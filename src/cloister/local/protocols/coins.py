"""Coins that both twins can throw: probabilities that are whole numbers of 2⁻⁶⁴, thrown by comparing words of 64 bits.

A local report leaves a person's own machine, in Python or in a browser. So that both make the same report of the same words,
and so that what is promised is a fact about integers, every coin here has a probability of `heads`/2⁶⁴: it falls on heads
where a uniform word lies below `heads`. Rounding to 2⁻⁶⁴ is done once, when a protocol is made, towards less being told; the
likelihood ratios of the rounded coins are at most e^ε exactly, and no rounding is left for a report.

The rules by which words are used up are part of the protocols, since the browser follows them too (browser/cloister-local.js).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cloister.errors import InvalidParameter
from cloister.noise.enclosure import exp_above
from cloister.privacy.rational import Exact, exact_positive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cloister.noise import Random

WORD = 1 << 64
_MOST = 40
_CHUNK = 1 << 16


def check_epsilon(epsilon: Exact, name: str = "epsilon") -> Fraction:
    """An ε that a coin of 64 bits can keep.

    >>> check_epsilon("0.1")
    Fraction(1, 10)
    """
    number = exact_positive(epsilon, name)
    if not Fraction(1, 10**6) <= number <= _MOST:
        why = "nearly every report would be the truth" if number > _MOST else "reports would tell nothing of anybody"
        raise InvalidParameter(f"{name}={epsilon} is invalid", why=why, instead=f"{name}=1, or any number from 1e-6 to {_MOST}")
    return number


def odds_below(epsilon: Fraction) -> Fraction:
    """A rational number that is not above e^ε, and within a relative 2⁻¹⁹⁰ of it.

    >>> 2.718281828459045 - 1e-12 < float(odds_below(Fraction(1))) < 2.718281828459046
    True
    """
    return 1 / exp_above(epsilon)


def heads_below(p: Fraction) -> int:
    """The most heads of 2⁶⁴ that are no more likely than `p`.

    >>> heads_below(Fraction(1, 2)) == 2**63, heads_below(Fraction(1, 3)) * 3 < 2**64
    (True, True)
    """
    return p.numerator * WORD // p.denominator


def heads_above(p: Fraction) -> int:
    """The fewest heads of 2⁶⁴ that are no less likely than `p`.

    >>> heads_above(Fraction(1, 3)) - heads_below(Fraction(1, 3))
    1
    """
    return -(-p.numerator * WORD // p.denominator)


def probability(heads: int) -> Fraction:
    """The probability of a coin, exactly.

    >>> probability(2**62)
    Fraction(1, 4)
    """
    return Fraction(heads, WORD)


def flips(heads: int, n: int, random: Random) -> NDArray[np.bool_]:
    """`n` coins, each with `heads` chances of 2⁶⁴. A coin uses up one word, whatever its probability.

    >>> from cloister.noise import Random
    >>> flips(2**64, 3, Random()).all(), flips(0, 3, Random()).any()
    (np.True_, np.False_)
    """
    words = random.words(n)
    if heads >= WORD:
        return np.ones(n, dtype=np.bool_)
    below: NDArray[np.bool_] = words < np.uint64(heads)
    return below


def lanes_of(width: int) -> int:
    """How many words of 64 bits hold a row of `width` bits.

    >>> lanes_of(64), lanes_of(65)
    (1, 2)
    """
    return -(-width // 64)


def bit_rows(heads: int, n: int, width: int, random: Random) -> NDArray[np.uint64]:
    """`n` rows of `width` coins, 64 in a word: bit j of word i is coin 64·i + j. Bits beyond `width` are 0.

    The 64 coins of a word compare 64 uniform numbers with `heads` at once, from the highest bit down: a word of randomness
    holds one bit of each. Where a number's bit differs from that of `heads`, its coin is decided; a word takes randomness
    until all of its coins are, which is after some 8 words, or where only zeros are left of `heads` (a fair coin takes one
    word for 64 coins). In each step, the words of a row that are not yet decided draw in their order.

    >>> from cloister.noise import Random
    >>> bit_rows(2**64, 1, 70, Random()).tolist() == [[2**64 - 1, 2**6 - 1]]
    True
    """
    lanes = lanes_of(width)
    out = np.zeros(n * lanes, dtype=np.uint64)
    rows = max(1, _CHUNK // lanes)
    for first in range(0, n, rows):
        part = out[first * lanes : (first + rows) * lanes]
        part[:] = _lanes(heads, part.size, random)
    shaped = out.reshape(n, lanes)
    if width % 64:
        shaped[:, -1] &= np.uint64((1 << width % 64) - 1)
    return shaped


def _lanes(heads: int, size: int, random: Random) -> NDArray[np.uint64]:
    if heads >= WORD:
        return np.full(size, WORD - 1, dtype=np.uint64)
    result = np.zeros(size, dtype=np.uint64)
    if heads == 0:
        return result
    lowest = (heads & -heads).bit_length() - 1
    where = np.arange(size)
    undecided = np.full(size, WORD - 1, dtype=np.uint64)
    for place in range(63, lowest - 1, -1):
        drawn = random.words(where.size)
        if heads >> place & 1:
            result[where] |= undecided & ~drawn
            undecided &= drawn
        else:
            undecided &= ~drawn
        left = undecided != 0
        if not left.all():
            where, undecided = where[left], undecided[left]
            if not where.size:
                break
    return result


def least_epsilon(odds: Fraction) -> float:
    """ln of exact odds, rounded up: the ε that a channel of integers truly has.

    >>> 1.09861228866810 < least_epsilon(Fraction(3)) < 1.09861228866812
    True
    """
    return math.nextafter(math.log(odds.numerator) - math.log(odds.denominator), math.inf) if odds > 1 else 0.0
