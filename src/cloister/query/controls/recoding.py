"""Global recoding: an answer is given as the range of a fixed grid that it falls into, the same grid for everybody.

Not differential privacy. What it stops: reading one record's value off a maximum. What it does not: an answer that lies near an
edge of the grid tells on which side a record pushed it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from cloister.privacy import text_of


@dataclass(frozen=True, kw_only=True, order=True)
class Range:
    """From `low` up to, not including, `high`. Not differential privacy.

    >>> print(Range(low=Fraction(156_000), high=Fraction(157_000)))
    [156000, 157000)
    """

    low: Fraction
    high: Fraction

    def __str__(self) -> str:
        return f"[{text_of(self.low)}, {text_of(self.high)})"

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | float | Fraction) and self.low <= value < self.high


def recoded(value: Fraction, width: Fraction) -> Range:
    """The range of the grid 0, ±width, ±2·width, … that holds a value.

    >>> print(recoded(Fraction(156_400), Fraction(1000)), recoded(Fraction(-1), Fraction(5)))
    [156000, 157000) [-5, 0)
    """
    low = math.floor(value / width) * width
    return Range(low=low, high=low + width)
