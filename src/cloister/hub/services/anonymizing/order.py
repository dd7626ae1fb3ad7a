"""What an owner wants to be made of a data set: the part of each column, the models (as they are typed, what is wrong with them,
and as every class has to meet them), the search, what is lost."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StrictFloat, StrictInt

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.labels import check_purpose, check_title
from cloister.hub.platform.catalogue import plain_word
from cloister.privacy.rational import exact, plain_number
from cloister.stored import Stored

if TYPE_CHECKING:
    from cloister.anonymize import Anonymizer, Hierarchy
    from cloister.anonymize.hierarchies.table import Written
    from cloister.anonymize.models.base import PrivacyModel
    from cloister.tables import PrivateTable


DIVERSITIES = ("distinct", "entropy", "recursive")
DISTANCES = ("", "equal", "ordered", "hierarchical", "kl")
LIKENESSES = ("basic", "enhanced")
_MOST_K, _MOST_L, _MOST = 100_000, 1_000, 1_000


def check_models(asked: Anonymizing, sensitive: Sequence[str], hierarchies: Mapping[str, str]) -> None:
    """Refuse what no model is, and models of a sensitive column where there is none."""
    if asked.diversity not in DIVERSITIES or asked.distance not in DISTANCES or asked.likeness not in LIKENESSES:
        raise InvalidParameter(
            "The models are invalid",
            why="unknown variant of l, t or β",
            instead=", ".join((*DIVERSITIES, *DISTANCES[1:], *LIKENESSES)),
        )
    whole = asked.l is None or asked.diversity == "entropy" or asked.l == int(asked.l)
    if isinstance(asked.k, bool) or not 1 <= asked.k <= _MOST_K or (asked.l is not None and not 1 <= asked.l <= _MOST_L):
        raise InvalidParameter("The models are invalid", why="k or l is out of range", instead="k = 5, l = 2")
    if not whole:
        raise InvalidParameter(
            "The value of l is invalid", why="it is not a whole number, and only entropy counts parts", instead="l = 2"
        )
    check_number("t", asked.t, _MOST if asked.distance == "kl" else 1)
    check_number("β", asked.beta, _MOST)
    for named, value, most in (("c", asked.c, _MOST), ("δ", asked.delta, _MOST), ("α", asked.alpha, 1)):
        check_number(named, value, most, above=True)
    if (asked.l or asked.t or asked.beta or asked.delta or asked.alpha) and not sensitive:
        raise InvalidParameter(
            "The models are invalid",
            why="all models but k speak of what others must not learn, and no column is that",
            instead="a sensitive column, or k alone",
        )
    if asked.l and asked.diversity == "recursive" and not asked.c:
        raise InvalidParameter("The models are invalid", why="recursive diversity has no c", instead="c = 3")
    bare = next((name for name in sensitive if not hierarchies.get(name, "").strip()), None) if asked.of_a_tree else None
    if bare is not None:
        raise InvalidParameter(
            "The models are invalid",
            why=f"t measures in hierarchies, and the sensitive column {bare!r} has none",
            instead="lines for its values, or another way to measure",
        )


def check_number(named: str, text: str, most: int, *, above: bool = False) -> None:
    """Refuse what is not a number from 0, or above it, to the most; an empty one is none."""
    if not text:
        return
    try:
        value = exact(text)  # which refuses exponents whose number would not fit in memory
    except InvalidParameter:
        value = Fraction(-1)
    if not 0 <= value <= most:
        raise InvalidParameter(
            f"The value of {named} is invalid", why=f"it is not a number from 0 to {most:,}", instead="a number such as 0.2"
        )
    if above and value == 0:
        raise InvalidParameter(f"The value of {named} is invalid", why="it is not above 0", instead="a number such as 0.2")


def models_of(asked: Anonymizing, k: int, written: Mapping[str, Hierarchy]) -> list[PrivacyModel]:
    """What every class has to meet; `written` are the hierarchies of sensitive columns, where t measures in them.

    >>> from cloister.hub.services.anonymizing.order import Anonymizing
    >>> asked = Anonymizing(table="people", parts={"age": "quasi", "ill": "sensitive"}, l=2, alpha="1/3")
    >>> [model.name for model in models_of(asked, 3, {})]
    ['3-anonymity', '2-diversity', '(1/3, 3)-anonymity']
    """
    from cloister.anonymize import AlphaKAnonymity, BetaLikeness, DeltaDisclosure, KAnonymity, LDiversity, TCloseness

    found: list[PrivacyModel] = [KAnonymity(k)]
    if asked.l is not None and asked.l > 1:
        l = int(asked.l) if asked.l == int(asked.l) else asked.l  # noqa: E741
        c = plain_number(asked.c) if asked.diversity == "recursive" else None
        found.append(LDiversity(l, kind=asked.diversity, c=c))
    if asked.of_a_tree:
        found += [TCloseness(plain_number(asked.t), hierarchy=each, column=name) for name, each in written.items()]
    elif asked.t:
        found.append(TCloseness(plain_number(asked.t), distance=asked.distance or None))
    if asked.beta:
        found.append(BetaLikeness(plain_number(asked.beta), enhanced=asked.likeness == "enhanced"))
    if asked.delta:
        found.append(DeltaDisclosure(plain_number(asked.delta)))
    if asked.alpha:
        found.append(AlphaKAnonymity(plain_number(asked.alpha), k))
    return found


PARTS = ("quasi", "sensitive", "identifying", "kept")
SEARCHES = ("optimal", "mondrian", "local", "topdown", "greedy")
METRICS = ("loss", "discernibility", "entropy")
MISSING = ("value", "suppress", "refuse")
MOST_LEVELS = 50
"""Of a hierarchy: beyond it a tree is no picture, and as nested data it breaks what writes it."""
_LONGEST = 200_000
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Short = Annotated[str, Field(max_length=40)]


@dataclass(frozen=True, kw_only=True)
class Anonymizing:
    """A table to try: of which data set, what each column is, which models, how it is searched for. A model whose number is empty
    is not asked for.

    >>> Anonymizing(table="people", parts={"age": "quasi", "ill": "sensitive"}, k=5, l=2).columns("quasi")
    ['age']
    """

    __pydantic_config__ = example(table="people", parts={"age": "quasi", "sex": "quasi", "pay": "sensitive"}, k=5) | {
        "extra": "forbid"
    }

    table: _Name
    parts: Annotated[Mapping[_Name, _Short], Field(min_length=1, max_length=500)]
    """Of each column: quasi, sensitive, identifying or kept; one that is not named is dropped."""
    k: Annotated[StrictInt, Field(ge=1, le=100_000)] = 5
    l: Annotated[StrictInt | StrictFloat | None, Field(ge=1, le=1_000)] = None  # noqa: E741 - the field's own name
    diversity: _Short = "distinct"
    """How l counts: distinct, entropy (l need not be whole), recursive (with a c)."""
    c: _Short = ""
    t: _Short = ""
    distance: _Short = ""
    """How t measures: equal, ordered, hierarchical (in the hierarchies of the sensitive columns), kl; else by kind."""
    beta: _Short = ""
    likeness: _Short = "basic"
    """How β is meant: basic, enhanced."""
    delta: _Short = ""
    """Of δ-disclosure privacy."""
    alpha: _Short = ""
    """Of (α, k)-anonymity, with the k above."""
    search: _Short = "optimal"
    metric: _Short = "loss"
    suppression: _Short = "0.02"
    missing: _Short = "value"
    """What a missing value is: a value of its own, a reason to leave the row out (suppress), or to refuse the table."""
    levels: Annotated[Mapping[_Name, Annotated[StrictInt, Field(ge=0, le=1000)]], Field(max_length=500)] = field(
        default_factory=dict
    )
    """Of each quasi-identifier, where they were chosen, such as from a trial: then nothing is searched for."""
    hierarchies: Annotated[Mapping[_Name, Annotated[str, Field(max_length=_LONGEST)]], Field(max_length=500)] = field(
        default_factory=dict
    )
    """Of a column: lines as ARX writes them, `value;level 1;level 2`."""
    purpose: Annotated[str, Field(max_length=1000)] = ""
    name: Annotated[str, Field(max_length=63)] = ""
    """Of the data set that its rows become, in questions; of a trial, empty."""
    title: Annotated[str, Field(max_length=200)] = ""

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
        check_title(self.title)
        check_purpose(self.purpose)
        if self.name and not plain_word(self.name):
            raise InvalidParameter(
                "The name is invalid",
                why="a name has lower-case letters, digits and underscores, and is not an SQL keyword",
                instead="patients_public",
            )

    project = algorithm = ""
    """It is made in no project, and under no algorithm."""

    @property
    def of_a_tree(self) -> bool:
        """Whether the hierarchies of sensitive columns say how far apart values are."""
        return bool(self.t) and self.distance == "hierarchical"

    def columns(self, part: str) -> list[str]:
        """The columns that have a part."""
        return [name for name, each in self.parts.items() if each == part]

    @property
    def left(self) -> list[str]:
        """The columns that are not dropped."""
        return [name for name, each in self.parts.items() if each != "identifying"]

    def settled(self, table: PrivateTable) -> Anonymizing:
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


@dataclass(frozen=True, kw_only=True)
class Releasing(Anonymizing):
    """A table to release: the name and the title of the data set that it becomes."""

    __pydantic_config__ = example(
        table="people",
        parts={"age": "quasi", "sex": "quasi", "pay": "sensitive"},
        k=5,
        name="people_k5",
        title="People, 5-anonymous",
        understood=True,
    ) | {"extra": "forbid"}

    name: Annotated[str, Field(min_length=1, max_length=63)]
    title: _Name
    understood: bool
    """That it is not differentially private, and that the population's spending reads unbounded from then on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.understood:
            raise InvalidParameter(
                "The release is invalid",
                why="it is not differentially private; from then on the population's spending reads “not covered by the budget”",
                instead="tick the confirmation box",
            )
        if not self.name or not self.title:
            raise InvalidParameter(
                "The release is invalid", why="the data set that it becomes has no name or no title", instead="patients_public"
            )


ORDER = Stored(
    Anonymizing,
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
