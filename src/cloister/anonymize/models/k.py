"""k-anonymity: nobody stands in a class of fewer than k rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import Encoded
from cloister.anonymize.models.base import Attained, PrivacyModel
from cloister.errors import InvalidParameter, check_whole


@dataclass(frozen=True)
class KAnonymity(PrivacyModel):
    """Every combination of quasi-identifiers that is in the table stands there at least k times (Samarati and Sweeney 1998).

    The attack that made it necessary is linkage: a list with names, and the same quasi-identifiers, names the only row that fits.
    It promises nothing about the sensitive column: a class whose rows all have the same disease reveals it for each of them.

    >>> classes = Classes.of(np.array([0, 0, 1]), 2)
    >>> KAnonymity(2).satisfied(classes, None).tolist(), KAnonymity(2).attained(classes, None).reached
    ([True, False], 'k = 1')
    """

    k: int
    absorbing: ClassVar[bool] = True
    of_sensitive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.k, np.integer):
            object.__setattr__(self, "k", int(self.k))
        check_whole(self.k, "k", 1, why="it is not a whole number from 1 on", instead="KAnonymity(5)")

    @property
    def name(self) -> str:
        """k-anonymity with its k."""
        return f"{self.k}-anonymity"

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes of at least k rows."""
        return np.asarray(classes.sizes >= self.k)

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The size of the smallest class."""
        smallest = int(classes.sizes.min()) if classes.count else 0
        return Attained(
            model=self.name, asked=f"k ≥ {self.k}", reached=f"k = {smallest}", holds=classes.count == 0 or smallest >= self.k
        )

    def check(self, table: Encoded, columns: Sequence[str | None], limit: int | None = None) -> None:
        """A table of fewer than k rows has no class of k."""
        if 0 < table.total < self.k:
            raise InvalidParameter(
                f"{self.name} is invalid",
                why=f"the table has {table.total} rows: no class can have {self.k}",
                instead=f"KAnonymity({table.total})",
            )
