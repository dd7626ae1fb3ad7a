"""What an owner wants to be made of a data set: the part of each column, the models, the search, what is lost."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter
from cloister.hub.labels import check_purpose
from cloister.hub.services.anonymizing.modelling import Asked, check_models, check_number, models_of
from cloister.hub.services.catalogue import plain_word
from cloister.printable import is_text
from cloister.privacy.rational import exact
from cloister.stored import Stored

if TYPE_CHECKING:
    from cloister.anonymize import Anonymizer
    from cloister.anonymize.hierarchies.table import Written
    from cloister.anonymize.models.base import PrivacyModel
    from cloister.tables import PrivateTable

PARTS = ("quasi", "sensitive", "identifying", "kept")
SEARCHES = ("optimal", "mondrian", "local", "topdown", "greedy")
METRICS = ("loss", "discernibility", "entropy")
MISSING = ("value", "suppress", "refuse")
MOST_LEVELS = 50
"""Of a hierarchy: beyond it a tree is no picture, and as nested data it breaks what writes it."""
_LONGEST = 200_000


@dataclass(frozen=True, kw_only=True)
class Order(Asked):
    """A table as it was ordered, not yet looked at.

    >>> Order(table="people", parts={"age": "quasi", "ill": "sensitive"}, k=5, l=2).columns("quasi")
    ['age']
    """

    table: str
    parts: Mapping[str, str]
    """Of each column: quasi, sensitive, identifying, kept."""
    search: str = "optimal"
    metric: str = "loss"
    suppression: str = "0.02"
    missing: str = "value"
    """What a missing value is: a value of its own, a reason to leave the row out, or to refuse the table."""
    levels: Mapping[str, int] = field(default_factory=dict)
    """Of each quasi-identifier, where they were chosen: then nothing is searched for."""
    hierarchies: Mapping[str, str] = field(default_factory=dict)
    """Of a column: lines as ARX writes them."""
    title: str = ""
    name: str = ""
    """Of the data set that its rows become, in questions."""
    purpose: str = ""

    def __post_init__(self) -> None:
        wrong = next((part for part in self.parts.values() if part not in PARTS), None)
        if wrong is not None:
            raise InvalidParameter("The table is invalid", why="a column has an unknown role", instead=", ".join(PARTS))
        if not self.columns("quasi"):
            raise InvalidParameter(
                "The table is invalid", why="no column is one that others may know", instead="at least one such column"
            )
        if self.search not in SEARCHES or self.metric not in METRICS or self.missing not in MISSING:
            raise InvalidParameter(
                "The table is invalid",
                why="unknown search, metric or treatment of missing values",
                instead=", ".join((*SEARCHES, *METRICS, *MISSING)),
            )
        if self.levels and set(self.levels) != set(self.columns("quasi")):
            raise InvalidParameter(
                "The levels are invalid",
                why="they are not those of the columns that others may know",
                instead="a level for each such column, and for no other",
            )
        check_number("suppression", self.suppression or "0", 1)
        check_models(self, self.columns("sensitive"), self.hierarchies)
        if any(len(text) > _LONGEST for text in self.hierarchies.values()):
            raise InvalidParameter("The hierarchy is invalid", why=f"it is over {_LONGEST} characters", instead="fewer lines")
        if self.title and not is_text(self.title):
            raise InvalidParameter(
                "The title is invalid",
                why="it must be a line of at most 200 characters",
                instead="Patients, 5-anonymous",
            )
        check_purpose(self.purpose)
        if self.name and not plain_word(self.name):
            raise InvalidParameter(
                "The name is invalid",
                why="a name has lower-case letters, digits and underscores, and is not an SQL keyword",
                instead="patients_public",
            )

    project = algorithm = ""
    """It is made in no project, and under no algorithm."""

    def columns(self, part: str) -> list[str]:
        """The columns that have a part."""
        return [name for name, each in self.parts.items() if each == part]

    @property
    def left(self) -> list[str]:
        """The columns that are not dropped."""
        return [name for name, each in self.parts.items() if each != "identifying"]

    def settled(self, table: PrivateTable) -> Order:
        """The same with a part for each column of a table: one that is not named is dropped."""
        return replace(self, parts={name: self.parts.get(name, "identifying") for name in table.columns})

    def models(self, k: int | None = None) -> list[PrivacyModel]:
        """What every class has to meet."""
        written = {name: hierarchy_of(self.hierarchies[name]) for name in self.columns("sensitive")} if self.of_a_tree else {}
        return models_of(self, k or self.k, written)

    def anonymizer(self, stop: Callable[[], bool] | None = None, *, k: int | None = None, seconds: float = 60) -> Anonymizer:
        """What carries it out."""
        from cloister.anonymize import Anonymizer
        from cloister.anonymize.searches.at_levels import AtLevels

        quasi = self.columns("quasi")
        given = {name: text for name, text in self.hierarchies.items() if text.strip() and name in quasi}
        return Anonymizer(
            quasi=quasi,
            sensitive=self.columns("sensitive"),
            identifying=self.columns("identifying"),
            models=self.models(k),
            hierarchies={name: hierarchy_of(text) for name, text in given.items()},
            search=AtLevels(levels=dict(self.levels)) if self.levels else self.search,
            metric=self.metric,
            suppression=exact(self.suppression or "0"),
            missing=self.missing,
            seconds=seconds,
            shuffle=True,
            stop=stop,
        )


ORDER = Stored(
    Order,
    "Order",
    *("k", "l", "diversity", "c", "t", "distance", "beta", "likeness", "delta", "alpha", "table", "parts", "search", "metric"),
    *("suppression", "missing", "levels", "hierarchies", "title", "name", "purpose"),
)
"""As a job and a trial hold it, and as the digest of a form that was sent has it."""


def hierarchy_of(text: str) -> Written:
    """The hierarchy of lines that somebody wrote, of so many levels as people can look through."""
    from cloister.anonymize import Hierarchy
    from cloister.anonymize.hierarchies.table import lines_of

    try:
        lines = lines_of(text)
    except csv.Error:
        raise InvalidParameter(
            "The hierarchy is invalid", why="its lines cannot be read as those of a table", instead="value;level 1;level 2"
        ) from None
    if any(len(line) > MOST_LEVELS for line in lines):
        raise InvalidParameter("The hierarchy is invalid", why=f"it has more than {MOST_LEVELS} levels", instead="fewer levels")
    return Hierarchy.of(lines)
