"""What somebody wants of a projection: the columns, the label that stays readable, the secret, the methods."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_purpose
from cloister.hub.web.languages import N_
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import agreed, as_listed, asked, listed, whole
from cloister.lazily import check_installed
from cloister.privacy import exact_positive
from cloister.stored import Stored

ACTION = "compress.run"
METHODS = ("PCA", "DCA", "RUCA", "DUCA", "random")
"""Linear ones, with as many directions as there are columns."""
_MOST_COLUMNS, _MOST_PIXELS, _MOST_POINTS = 50, 256, 20
_COLUMNS = asked(N_("Columns"), N_("names of columns of numbers, days or truth values, separated by commas"), several=True)
_UTILITY = asked(N_("Utility label"), N_("the column that stays readable"))


def made(method: str) -> Any:
    """The projection of that name."""
    from cloister import compress

    if method == "random":  # its matrix may be known to everybody, and protects nothing
        return compress.RandomProjection(random_state=0)
    return getattr(compress, method)()


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Projections of a data set of one's own, with what attackers make of them."""

    __pydantic_config__ = example(
        table="people",
        columns="age, pay",
        utility="ill",
        secret="sex",  # noqa: S106 the name of a column
        dimensions="1, 2",
        approval="yes",
        purpose="research",
    ) | {"extra": "forbid"}

    table: str
    columns: str = _COLUMNS
    utility: str = _UTILITY
    secret: str = asked(N_("Secret"), N_("the column that is not to be readable"))
    methods: str = asked(
        N_("Methods"), N_("PCA, DCA, RUCA, DUCA, random; separated by commas"), several=True, default="PCA, DCA, RUCA, random"
    )
    dimensions: str = asked(N_("Dimensions"), N_("how many numbers are kept of a row, such as 1, 2, 5"))
    approval: str = asked(
        N_("Approval"),
        N_("I approve that what leaves is not differentially private. Spending then reads “not covered by the budget”."),
    )
    purpose: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        _check(self.columns)
        methods, counts = listed(self.methods), self.counts
        if not methods or set(methods) - set(METHODS) or len(methods) * len(counts) > _MOST_POINTS:
            raise InvalidParameter(
                "The methods are invalid",
                why=f"they are known ones, and with all numbers of dimensions at most {_MOST_POINTS}",
                instead=", ".join(METHODS),
            )
        if not agreed(self.approval):
            raise InvalidParameter(
                "The approval is invalid",
                why="projected data is not differentially private, and the owner approves that in so many words",
                instead="yes",
            )
        check_purpose(self.purpose)

    project = algorithm = ""
    """It is made in no project, and under no algorithm."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are projected."""
        return listed(self.columns)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of dimensions."""
        found = listed(self.dimensions)
        most = len(listed(self.columns))
        if not found or not all(1 <= whole(each) <= most for each in found):
            raise InvalidParameter(
                "The dimensions are invalid", why=f"they are whole numbers from 1 to the {most} columns", instead="1, 2"
            )
        return tuple(int(each) for each in found)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Directions under a guarantee."""

    __pydantic_config__ = example(
        table="people", columns="age, pay", utility="ill", method="DCA", dimensions="1", spend="0.5", purpose="research"
    ) | {"extra": "forbid"}

    table: str
    columns: str = _COLUMNS
    method: str = asked(N_("Method"), N_("PCA, DCA, RUCA or DUCA"))
    utility: str = asked(N_("Utility label"), N_("the column that stays readable; PCA needs none"), default="")
    secret: str = asked(N_("Secret"), N_("the column that is not to be readable; for RUCA and DUCA"), default="")
    dimensions: str = asked(N_("Dimensions"), N_("how many numbers are kept of a row"))
    spend: str
    purpose: str = ""
    project: str = ""
    title: str = ""

    def __post_init__(self) -> None:
        _check(self.columns)
        wanted = {"PCA": (False, False), "DCA": (True, False), "RUCA": (True, True), "DUCA": (True, True)}.get(self.method)
        if wanted is None or wanted != (bool(self.utility), bool(self.secret)):
            raise InvalidParameter(
                "The method is invalid",
                why="PCA has no labels, DCA one of use, RUCA and DUCA a secret as well",
                instead="PCA, DCA, RUCA, DUCA",
            )
        most = len(self.names)
        if not 1 <= whole(self.dimensions) <= most:
            raise InvalidParameter(
                "The dimensions are invalid", why=f"it is a whole number from 1 to the {most} columns", instead="1"
            )
        check_purpose(self.purpose)
        _ = exact_positive(self.spend, "spend")

    algorithm = ""
    """No algorithm fits projections."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are projected."""
        return listed(self.columns)


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any], *, marked: bool = False) -> dict[str, Any]:
    """What the form offers: the data sets that somebody may project, the columns of the chosen one (of the first, where none is
    named), and the methods. `marked`: one's own alone."""
    from cloister.tables import Boolean, Category, Date, Integer, Real

    open_to = [
        each for each in offers(hub, db, caller, ACTION, under=(), anyhow=True) if not marked or each.which.owner == caller.id
    ]
    tables = [(each.which.name, each.which.name) for each in open_to]
    known: dict[str, Any] = {"table": tables, "method": [(each, each) for each in METHODS[:-1]]}
    known["methods"] = [(each, each) for each in METHODS]
    about = typed.get("table") or (tables[0][0] if tables else "")
    chosen = next((each.table for each in open_to if each.which.name == about), None)
    columns = {} if chosen is None else dict(chosen.columns or {})
    if 0 < len(columns) <= _MOST_COLUMNS:  # of a picture each pixel is a column: they are typed
        labels = [(name, name) for name, domain in columns.items() if isinstance(domain, Category | Boolean)]
        numbers = [(as_listed(name), name) for name, kind in columns.items() if isinstance(kind, Integer | Real | Date | Boolean)]
        known |= {"columns": numbers, "utility": labels, "secret": labels}
    return {"choices": known, "tables": tables, "chosen": about if columns and len(tables) > 1 else ""}


def _check(columns: str) -> None:
    check_installed("learn", N_("The projection was not released"))
    from cloister.compress.from_tables import Grid

    names = listed(columns)
    most = _MOST_COLUMNS if len(names) <= _MOST_COLUMNS or Grid.of(names) is None else _MOST_PIXELS
    if not 1 <= len(names) <= most or len(set(names)) != len(names):
        raise InvalidParameter("The columns are invalid", why=f"they are 1 to {most} different columns", instead="age, height")


ATTACK = Stored(
    Attack, "Attack", "table", "columns", "utility", "secret", "methods", "dimensions", "approval", "purpose", "title"
)
FIT = Stored(Fit, "Fit", "table", "columns", "method", "utility", "secret", "dimensions", "spend", "purpose", "project", "title")
"""As a job holds them."""
