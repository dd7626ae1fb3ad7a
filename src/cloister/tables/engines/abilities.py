"""What an engine can be asked: public, and known from a table's source before anything is priced.

Engines that hold rows in one place can do all of it. One whose exact values exist nowhere (rows at several sites, or encrypted)
adds up integers and their noise, and nothing else. What it can't answer is refused by name when the question is planned.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cloister.noise import DiscreteGaussian, DiscreteLaplace
from cloister.noise.shares import gaussian_share, of_all


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """Of one engine, or of several together.

    >>> trusted, joint = Abilities(), Abilities(additive_noise_only=True, rows=False)
    >>> Abilities.of_all([trusted, joint]) == joint
    True
    """

    additive_noise_only: bool = False
    """It gives linear functions of the rows with additive noise. A choice by exact counts, or a number of different values, is
    not such a function."""
    declared_keys_only: bool = False
    """It counts groups that are known in advance; it can't look which keys occur."""
    rows: bool = True
    """Whether it hands out rows (to a method that declares its guarantee, and by the marked door)."""
    row_sums: bool = False
    """Whether it adds up, with noise, what each row adds to a descent, where it hands out no rows (`row_sums.py`)."""
    relations: bool = True
    """Whether it answers every question about computed columns, joins and whatever else is made of its rows."""
    parts_of_a_person: int = 1
    """In how many parts, each with a cap of its own, one person may have rows. The sensitivity is so many times larger."""
    shares: tuple[int, int] | None = None
    """Of how many parties the noise is made, and how many of their shares are enough by themselves; None: of one."""

    def noise_of(self, law: Any) -> Any:
        """The law that is in an answer when noise of that law is asked for, and every party takes part.

        >>> from cloister.noise import DiscreteLaplace
        >>> law = DiscreteLaplace(scale=10)
        >>> Abilities().noise_of(law) == law, Abilities(shares=(5, 3)).noise_of(law).variance > law.variance
        (True, True)
        """
        if self.shares is None or not isinstance(law, DiscreteLaplace | DiscreteGaussian):
            return law
        return of_all(law, *self.shares)

    def check_noise(self, law: Any) -> None:
        """Refuse noise that is too narrow to be made in shares."""
        if self.shares is not None and isinstance(law, DiscreteGaussian):
            gaussian_share(law, self.shares[1])

    @classmethod
    def of_all(cls, several: Iterable[Abilities]) -> Abilities:
        """What all of them can do."""
        each = list(several)
        return cls(
            additive_noise_only=any(one.additive_noise_only for one in each),
            declared_keys_only=any(one.declared_keys_only for one in each),
            rows=all(one.rows for one in each),
            row_sums=all(one.row_sums for one in each),
            relations=all(one.relations for one in each),
            parts_of_a_person=max((one.parts_of_a_person for one in each), default=1),
            shares=next((one.shares for one in each if one.shares is not None), None),
        )
