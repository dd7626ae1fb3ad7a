"""The order of a unit's rows, of which only the first few may count: keyed by a secret, the same on every engine.

A row's rank is a number of 62 bits, made in 64-bit arithmetic from its unit and its own codes:

    x = (a₀ + Σ aᵢ·vᵢ) mod p,   y = (b₀ + Σ bᵢ·vᵢ) mod p,   rank = (x³ mod p)·2³¹ + y,   p = 2³¹ - 69

where v are the parts (below 2³⁰) of a number that follows from the unit's text and of each column's code, and a, b are drawn
from the secret. The cube scatters what a linear rank would leave in arcs (x ↦ x³ is one-to-one, as 3 does not divide p - 1); y
parts rows of equal x. Rows that are equal in every declared column have equal ranks and may swap places, and nothing can tell.

Claim: adding or removing one unit changes no other unit's places. Proof: the rank is a function of the secret and of what the
row says, not of the type in which the source holds it (a list's type follows from all of its values; the text of a unit does
not: 4 is "4" as an integer, as a float and as a text). The place is the position among the ranks of the same unit. So a
question that reads only places up to m reads at most m rows of any unit, and the others are unmoved. No cryptographic strength
is asked of the rank: any rule within a unit would do for the guarantee; a scattered one keeps a fair sample of each unit's
rows, a different one for each unit.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

PRIME = 2**31 - 69
_PART = 30
_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class Part:
    """SQL text of a whole number at least 0, and a bound that it stays below."""

    sql: str
    below: int


def parts_of(sql: str, below: int) -> list[Part]:
    """A number below `below` taken apart into 30 bits each, low bits first; `&` and `>>` mean the same on every engine.

    >>> [part.sql for part in parts_of("v", 2**40)]
    ['((v) & 1073741823)', '((v >> 30) & 1073741823)']
    """
    if below <= 2**_PART:
        return [Part(sql, below)]
    found: list[Part] = []
    while below > 1:
        shift = _PART * len(found)
        found.append(Part(f"(({sql}{f' >> {shift}' if shift else ''}) & {2**_PART - 1})", min(below, 2**_PART)))
        below = -(-below // 2**_PART)
    return found


def rank_sql(parts: Sequence[Part], secret: str) -> tuple[str, str, str]:
    """SQL of x, of y, and of the rank given columns named x and y."""
    drawn = _drawn(secret)
    return _linear(parts, drawn), _linear(parts, drawn), f"(x * x % {PRIME} * x % {PRIME}) * {2**31} + y"


def _drawn(secret: str) -> Iterator[int]:
    """Numbers from 1 to p - 1 that follow from the secret."""
    for index in count():
        digest = hashlib.sha256(f"{secret}:{index}".encode()).digest()
        yield int.from_bytes(digest) % (PRIME - 1) + 1


def _linear(parts: Sequence[Part], drawn: Iterator[int]) -> str:
    text, below = str(next(drawn)), PRIME
    for part in parts:
        factor = next(drawn)
        if below + (part.below - 1) * factor >= _LIMIT:
            text, below = f"({text}) % {PRIME}", PRIME
        text, below = f"{text} + {part.sql} * {factor}", below + (part.below - 1) * factor
    return f"({text}) % {PRIME}"
