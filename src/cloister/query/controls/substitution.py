"""Substitution: where an answer is one record's own value, a value is given that no record has.

A maximum is somebody's salary: who knows one salary recognises it. The value that is given instead lies near the true one and
does not occur in the column, so no equality with a known value ever holds. Not differential privacy: the substitute tells about
where the true value lies, and that this very value does not occur.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from cloister.crypto import PseudoRandomFunction
from cloister.errors import AccessDenied
from cloister.privacy.rational import Exact, exact_positive, text_of
from cloister.tables import Domain


@dataclass(frozen=True, init=False)
class Substitution:
    """For each column, how far from the true maximum or minimum the substitute may lie. Not differential privacy.

    >>> print(Substitution({"salary": 2000}))
    a maximum or minimum is replaced by a value that does not occur: salary within 2000
    """

    within: tuple[tuple[str, Fraction], ...]

    def __init__(self, within: Mapping[str, Exact]) -> None:
        checked = tuple((name, exact_positive(reach, f"within[{name!r}]")) for name, reach in sorted(within.items()))
        object.__setattr__(self, "within", checked)

    @property
    def columns(self) -> dict[str, Fraction]:
        """The reach by column."""
        return dict(self.within)

    def of(self, code: int, column: str, domain: Domain, codes: npt.NDArray[np.int64], keyed: PseudoRandomFunction) -> Fraction:
        """A value near that of `code` that no record has; the same each time. `codes` are those of all records.

        Refused where every value within reach occurs: the refusal tells that they do.

        >>> from cloister.tables import Integer
        >>> taken = np.array([10, 11, 13], dtype=np.int64)
        >>> Substitution({"age": 2}).of(13, "age", Integer(0, 14), taken, PseudoRandomFunction(b"secret")) in (12, 14)
        True
        """
        reach = int(self.columns[column] / domain.step)
        low, high = max(domain.low_code, code - reach), min(domain.high_code, code + reach)
        near = codes[(codes >= low) & (codes <= high)]
        occurring = set(np.unique(near).tolist())
        free = high - low + 1 - len(occurring)
        if free <= 0:
            raise AccessDenied(
                f"The answer about {column!r} was refused",
                why="no value near it is free to stand in its place",
                instead=f'Substitution({{"{column}": a longer reach}})',
            )
        place = keyed.below(free, "substitute", column, str(code))
        chosen = low
        for taken in [*sorted(occurring), high + 1]:  # the free values lie in the gaps between those that occur
            if place < taken - chosen:
                break
            place -= taken - chosen
            chosen = taken + 1
        return domain.origin + (chosen + place) * domain.step

    def __str__(self) -> str:
        reaches = ", ".join(f"{name} within {text_of(reach)}" for name, reach in self.within)
        return f"a maximum or minimum is replaced by a value that does not occur: {reaches}"
