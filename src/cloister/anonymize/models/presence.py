"""δ-presence and k-map: whether somebody is in the table at all, when the attacker has the list of everybody."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes
from cloister.anonymize.encoded import Encoded, tally_of
from cloister.anonymize.models.base import Attained, PrivacyModel, attained_by
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.models.ratios import Ratios
from cloister.anonymize.recoding import Recoded
from cloister.errors import InvalidParameter
from cloister.privacy.rational import Exact, exact


def members(classes: Classes) -> npt.NDArray[np.int64]:
    """How many rows of each class are in the research table."""
    if classes.research is None:
        raise InvalidParameter(
            "The model is invalid",
            why="nothing says which rows are published, and which are only in the public list",
            instead='Anonymizer(…, research="in_study") with a column of booleans',
        )
    there = (classes.of_row >= 0) & classes.research
    weights = None if classes.weights is None else classes.weights[there]
    return tally_of(classes.of_row[there], classes.count, weights)


def of_what_leaves(models: Sequence[PrivacyModel], table: Encoded, research: npt.NDArray[np.bool_]) -> tuple[PrivacyModel, ...]:
    """The models as they are judged where a public list stands beside the table: δ-presence and k-map count the list, and all
    others the rows that leave alone. Rows that stay behind hide nobody in the table that is published."""
    leaving = table.take(research)
    overall = {name: column.counts for name, column in leaving.columns.items()}
    return tuple(model if isinstance(model, DeltaPresence | KMap) else _OfWhatLeaves(model, overall) for model in models)


def attained_of(models: Sequence[PrivacyModel], recoded: Recoded) -> tuple[Attained, ...]:
    """What a recoded table has of every model, counted again: of the whole list, or of the rows that leave."""
    found: list[Attained] = []
    for model in models:
        found += attained_by([model], (recoded if isinstance(model, DeltaPresence | KMap) else recoded.leaving).classes)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class _OfWhatLeaves(PrivacyModel):
    """A model of the rows that leave, in classes that hold rows of the public list as well. A class none of whose rows leave
    meets it, since nobody sees it; so no such model is absorbing."""

    model: PrivacyModel
    overall: Mapping[str, npt.NDArray[np.int64]]
    """By column: how often each value is in the whole table that leaves, suppressed rows included."""

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.model.name

    def _leaving(self, classes: Classes) -> Classes:
        members(classes)  # refuses where nothing says which rows leave
        there = (classes.of_row >= 0) & np.asarray(classes.research)
        sensitive = {name: replace(column, tally=self.overall[name]) for name, column in classes.sensitive.items()}
        return Classes.of(classes.of_row, classes.count, sensitive=sensitive, suppressed=~there, weights=classes.weights)

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes whose rows that leave meet it."""
        met = np.ones(classes.count, dtype=bool)
        met[members(classes) > 0] = self.model.satisfied(self._leaving(classes), column)
        return met

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """What the table that leaves has of it."""
        return self.model.attained(self._leaving(classes), column)

    def columns_of(self, sensitive: Iterable[str]) -> list[str | None]:
        """Which sensitive columns it is about."""
        return self.model.columns_of(sensitive)


@dataclass(frozen=True)
class DeltaPresence(PrivacyModel):
    """For everybody on the public list, the chance of being in the research table lies between `low` and `high` (Nergiz, Atzori
    and Clifton 2007).

    Rows are those of the public list; a column of booleans (`research=`) says who is in the table that gets published. In each
    class the share of them has to lie between the bounds. `low` is for those whose class is published: of others the table shows
    that they are not in it, or were suppressed.

    The attack that made it necessary is membership: to know that somebody is in a table of people with diabetes is to know the
    disease, whatever k is.

    >>> classes = Classes.of(np.array([0, 0, 0, 1, 1]), 2, research=np.array([True, False, False, True, True]))
    >>> DeltaPresence(0, "0.5").satisfied(classes, None).tolist(), DeltaPresence(0, "0.5").attained(classes, None).reached
    ([True, False], 'presence from 0.333333 to 1')
    """

    low: Exact
    high: Exact
    of_sensitive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not 0 <= exact(self.low, "low") <= exact(self.high, "high") <= 1:
            raise InvalidParameter(
                f"low={self.low!r}, high={self.high!r} is invalid",
                why="they are not two shares, the lower one first",
                instead='DeltaPresence(0, "0.5")',
            )

    @property
    def name(self) -> str:
        """δ-presence with its bounds."""
        return f"({self.low}, {self.high})-presence"

    def _shares(self, classes: Classes) -> Ratios:
        return Ratios(top=members(classes), bottom=classes.sizes)

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes in which the share of those who are in the table lies between the bounds."""
        found = self._shares(classes)
        return found.at_most(exact(self.high)) & ~found.at_most(exact(self.low), strictly=True)

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The smallest and the largest share."""
        shares = self._shares(classes).floats
        low, high = (float(shares.min()), float(shares.max())) if classes.count else (0.0, 0.0)
        return Attained(
            model=self.name,
            asked=f"presence from {self.low} to {self.high}",
            reached=f"presence from {low:.6g} to {high:.6g}",
            holds=bool(self.satisfied(classes, column).all()),
        )


@dataclass(frozen=True)
class KMap(PrivacyModel):
    """Everybody in the research table looks like at least k people of the public list (Sweeney 2002).

    Weaker than k-anonymity, since others who are not in the table hide the target as well: it holds against those who do not
    know that the target is in the table, and only where the list is what the attacker has.

    >>> classes = Classes.of(np.array([0, 0, 0, 1]), 2, research=np.array([True, False, False, False]))
    >>> KMap(3).satisfied(classes, None).tolist(), KMap(3).attained(classes, None).reached
    ([True, True], 'k = 3')
    """

    k: int
    of_sensitive: ClassVar[bool] = False

    def __post_init__(self) -> None:
        KAnonymity(self.k)

    @property
    def name(self) -> str:
        """k-map with its k."""
        return f"{self.k}-map"

    def satisfied(self, classes: Classes, column: str | None) -> npt.NDArray[np.bool_]:
        """Classes of k people of the list, or with nobody of the research table."""
        return np.asarray((classes.sizes >= self.k) | (members(classes) == 0))

    def attained(self, classes: Classes, column: str | None) -> Attained:
        """The smallest class with somebody of the research table."""
        sizes = classes.sizes[members(classes) > 0]
        smallest = int(sizes.min()) if len(sizes) else 0
        return Attained(
            model=self.name, asked=f"k ≥ {self.k}", reached=f"k = {smallest}", holds=not len(sizes) or smallest >= self.k
        )
