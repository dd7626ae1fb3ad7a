"""What somebody wants of a synthetic table: the columns, the method, what it may cost, what it is for; and what the form of an
order offers: the data sets that are open, and their columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_purpose
from cloister.hub.web.forms import listed
from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import lines_of
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import about_offered, asked, whole
from cloister.privacy import exact_nonnegative
from cloister.stored import Stored
from cloister.tables import Binned, Boolean, Category, Date, Integer, PrivateTable, PublicTable, Real
from cloister.tables.expression.names import alias, quoted

if TYPE_CHECKING:
    from cloister.synth.states import Asked


ACTION = "synthesise.run"
_FITTED = (Integer, Real, Category, Date, Boolean)
METHODS = {
    "auto": N_("Chosen by the number of columns, the spend and the declared size"),
    "pairs": N_("One and two columns at a time"),
    "triples": N_("One, two and three columns at a time"),
    "independent": N_("Each column by itself"),
    "mst": N_("MST: a tree of pairs, chosen by looking at the rows, for a part of the spend"),
    "aim": N_("AIM: round by round what the model gets most wrong, chosen by looking at the rows, for a part of the spend"),
    "mwem": N_("MWEM: the same in fewer rounds, half of each for the choice"),
    "privbayes": N_("PrivBayes: a network, each column with one or two others, chosen by looking at the rows"),
    "histogram": N_("All columns together: few columns of few values each"),
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
_QUERY = re.compile(r"(select|with|from)\s", re.IGNORECASE)


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
    workload: str = asked(N_("Workload"), default="")
    """What is to be answered well: a line for each set of columns, or for a query in SQL."""
    earlier: str = asked(N_("Earlier answers"), default="")
    """Queries that this analyst had answered before, one a line: counts by up to three columns, which cost nothing again."""
    ranges: str = asked(N_("Ranges"), default="")
    """Edges between which the values of a number or a day count together, a column a line; any other column as it is declared."""

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
        if self.use == "model" and self.method in ("independent", "mst", "privbayes", "histogram"):
            raise InvalidParameter(
                "The method is invalid", why="it does not measure the column to predict with the others", instead="auto, or aim"
            )
        check_purpose(self.purpose)
        _ = self.binned
        if not self.spending and self.method != "auto":
            raise InvalidParameter(
                "The method is invalid", why="nothing is spent, and so nothing is measured", instead="auto, or a spend above 0"
            )

    @property
    def conditions(self) -> list[str]:
        """The rules."""
        return [line.strip() for line in self.rules.splitlines() if line.strip()]

    @property
    def binned(self) -> list[Asked]:
        """The columns, with their ranges; a line of these that is wrong is refused."""
        cuts: dict[str, str] = {}
        for line in filter(str.strip, self.ranges.splitlines()):
            name, _, said = map(str.strip, line.rpartition("="))
            if name not in self.columns or name in cuts:
                why = f"each line is one of the columns, once, with its edges, quantiles or calendar, and {line[:60]!r} is not"
                raise InvalidParameter("The ranges are invalid", why=why, instead="age = 0, 18, 65, 120")
            cuts[name] = said
        return [_cut(each, cuts[each]) if each in cuts else each for each in self.columns]

    @property
    def way(self) -> str:
        """The method, where it or the use says one."""
        return "independent" if self.use == "software" and self.method == "auto" and self.spending else self.method

    @property
    def about(self) -> list[str | list[str]] | None:
        """What is to be answered well: the column to predict, columns by commas, and queries."""
        written = [line.strip() for line in self.workload.splitlines() if line.strip()]
        sets = [line if _QUERY.match(line) and not {*listed(line)} <= {*self.columns} else listed(line) for line in written]
        return [*([self.target] if self.use == "model" else []), *sets] or None

    @property
    def answered(self) -> list[str]:
        """The queries whose answers are evidence."""
        return [line.strip() for line in self.earlier.splitlines() if line.strip()]

    algorithm = ""
    """No algorithm makes synthetic tables."""

    @property
    def spending(self) -> Fraction:
        """What may be spent: an amount in what the population's budget counts. With 0 rows follow the declarations alone."""
        return exact_nonnegative(self.spend, "spend")


def _cut(column: str, said: str) -> Asked:
    """Edges; or how many quantiles, or a calendar, whose cuts are bought for a part of the spend.

    >>> _cut("age", "0, 18, 120").edges, _cut("pay", "20 quantiles")
    (('0', '18', '120'), QuantileBins(name='pay', bins=20))
    """
    from cloister.synth import Calendar, QuantileBins  # where they are asked for

    match said.casefold().split():
        case ["quantiles"]:
            return QuantileBins(column)
        case [number, "quantiles"]:
            return QuantileBins(column, whole(number))
        case ["calendar"]:
            return Calendar(column)
        case _:
            return Binned(column, listed(said))


ORDER = Stored(
    Synthesis,
    "Synthesis",
    "table",
    "columns",
    "method",
    "spend",
    "purpose",
    "project",
    "title",
    "rules",
    "use",
    "target",
    "workload",
    "earlier",
    "ranges",
    later=("earlier", "ranges"),
)
"""As a job holds it."""


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, the columns of the chosen one, and what was typed; at first every column is ticked."""
    found = offers(hub, db, caller, ACTION, under=(), anyhow=True)
    offer, shown = about_offered(hub, [each for each in found if isinstance(each.table, PrivateTable)], typed)
    columns = {} if offer is None else {each: kind for each, kind in offer.columns.items() if _fits(offer.table, each)}
    first = {
        "columns": tuple(columns),
        "method": "auto",
        "spend": "1",
        **dict.fromkeys(("purpose", "project", "title", "rules", "use", "target", "workload", "earlier", "ranges"), ""),
    }
    return {
        **shown,
        "columns": columns,
        "methods": list(METHODS.items()),
        "uses_of": list(USES.items()),
        "curve": _curve,
        "typed": {**first, **typed},
        "examples": _examples(offer.table, offer.which.name, [*columns])
        if offer and isinstance(offer.table, PrivateTable)
        else {},
    }


def _examples(table: PrivateTable, name: str, columns: Sequence[str]) -> dict[str, str]:
    """What could be typed as a workload, an earlier answer and a rule, of this table's own columns.

    >>> from cloister.tables import Category, Integer
    >>> people = PrivateTable({"age": [30], "sex": ["F"]}, columns={"age": Integer(17, 90), "sex": Category(["F", "M"])})
    >>> _examples(people, "people", ["age", "sex"])
    {'query': 'SELECT age, COUNT(*) AS n FROM people GROUP BY age', 'columns': 'age, sex', 'rules': "age < 90 => sex = 'F'"}
    """
    numbers = {quoted(each): kind for each in columns if isinstance(kind := table.columns[each], Integer | Real)}
    texts = {quoted(each): kind.values()[0] for each in columns if isinstance(kind := table.columns[each], Category)}
    first = quoted(columns[0]) if columns else ""
    count = f"COUNT(*) AS {alias('n', columns)}"
    asked = f"SELECT {first}, {count} FROM {quoted(name)} GROUP BY {first}" if columns else ""  # noqa: S608 shown, not run
    rules = [" <= ".join([*numbers][:2])] if len(numbers) > 1 else []
    for (number, kind), (text, value) in [*zip(numbers.items(), texts.items(), strict=False)][:1]:
        shown = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else value
        high = kind.high if isinstance(kind, Integer) else f"{float(kind.high):.15g}"  # a rule reads no fraction
        rules.append(f"{number} < {high} => {text} = {shown}")
    return {
        "query": asked,
        "columns": ", ".join([each for each in columns if quoted(each) == each][:2]),
        "rules": "; ".join(rules),
    }


def _curve(errors: Sequence[Mapping[str, Any]], spend: str, _: Callable[[str], str]) -> str:
    """The margins of error by spend, as a picture."""
    lines = {
        name: [(float(Fraction(each["spend"])), each[key]) for each in errors if each[key]]
        for key, name in (("one", _("1 column")), ("two", _("2 columns")), ("three", _("3 columns")))
    }
    drawn = {name: points for name, points in lines.items() if points}
    return lines_of(drawn, x=_("Spend"), y=_("Margin of error, in rows"), chosen=float(Fraction(spend)))


def _fits(table: PrivateTable | PublicTable, name: str) -> bool:
    """Whether a column can be in a synthetic table: not the one that names people, and of a kind that models are fitted to."""
    return isinstance(table, PrivateTable) and name != table.unit and isinstance(table.columns[name], _FITTED)
