"""What somebody wants of a synthetic table: the columns, the method, what it may cost, what it is for."""

from __future__ import annotations

from dataclasses import dataclass

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.labels import check_purpose
from cloister.hub.web.languages import N_
from cloister.hub.work.ordering import asked
from cloister.privacy import exact_positive
from cloister.session import Spending
from cloister.stored import Stored

METHODS = {
    "auto": N_("Chosen by the number of columns, the spend and the declared size"),
    "pairs": N_("One and two columns at a time"),
    "triples": N_("One, two and three columns at a time"),
    "independent": N_("Each column by itself"),
    "mst": N_("MST: a tree of pairs, chosen by looking at the rows, for a part of the spend"),
    "aim": N_("AIM: round by round what the model gets most wrong, chosen by looking at the rows, for a part of the spend"),
}
"""What an order may name: methods whose rows are differentially private. A method of the library that is not stays out."""
USES = {
    "": N_("Anything"),
    "questions": N_("Questions about counts and means, with margins"),
    "model": N_("A model that predicts one column"),
    "teaching": N_("Teaching and exploring: pictures, pairs of columns, exercises"),
    "software": N_("Testing software: types, values and rules, with columns that have nothing to do with each other"),
}
"""What a table may be for. It says what is measured, where the method is left open: of a model the target with each two other
columns; of software each column by itself, which takes the least spend."""
_MOST = 50


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """A synthetic table to make: of which columns of which data set, what it may cost, what it is for."""

    __pydantic_config__ = example(table="people", columns=["age", "sex"], spend="0.5", purpose="teaching") | {"extra": "forbid"}

    table: str
    columns: tuple[str, ...] = asked(N_("Columns"))
    method: str = asked(N_("Method"), default="auto")
    spend: str
    purpose: str = ""
    project: str = ""
    title: str = ""
    rules: str = asked(N_("Rules"), default="")
    """What every row obeys: one condition a line."""
    use: str = asked(N_("Use of the table"), default="")
    target: str = asked(N_("Column to predict"), default="")

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) <= _MOST or len(set(self.columns)) != len(self.columns):
            raise InvalidParameter(
                "The columns are invalid", why=f"they are 1 to {_MOST} different columns", instead="one column, or more"
            )
        if self.method not in METHODS:
            raise InvalidParameter(
                f"The method {self.method[:60]!r} is invalid", why="the hub knows none of that name", instead=", ".join(METHODS)
            )
        if self.use not in USES:
            raise InvalidParameter(
                f"The use {self.use[:60]!r} is invalid",
                why="the hub knows none of that name",
                instead=", ".join(filter(None, USES)),
            )
        if (self.use == "model") != (self.target in self.columns) or (self.target and self.use != "model"):
            raise InvalidParameter(
                "The column to predict is invalid",
                why="a table for a model names one of its columns, and any other table none",
                instead="one of the columns, or another use",
            )
        if self.use == "model" and self.method in ("independent", "mst"):
            raise InvalidParameter(
                "The method is invalid", why="it does not measure the column to predict with the others", instead="auto, or aim"
            )
        check_purpose(self.purpose)
        _ = self.spending

    @property
    def conditions(self) -> list[str]:
        """The rules."""
        return [line.strip() for line in self.rules.splitlines() if line.strip()]

    @property
    def way(self) -> str:
        """The method, where it or the use says one."""
        return "independent" if self.use == "software" and self.method == "auto" else self.method

    @property
    def about(self) -> list[str] | None:
        """What is to be answered well."""
        return [self.target] if self.use == "model" else None

    @property
    def algorithm(self) -> str:
        """No algorithm makes synthetic tables."""
        return ""

    @property
    def spending(self) -> Spending:
        """What may be spent: an amount in what the population's budget counts."""
        return exact_positive(self.spend, "spend")


ORDER = Stored(
    Synthesis, "Synthesis", "table", "columns", "method", "spend", "purpose", "project", "title", "rules", "use", "target"
)
"""As a job holds it."""
