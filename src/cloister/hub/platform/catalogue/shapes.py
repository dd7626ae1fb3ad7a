"""The bodies of the API of data sets: what is sent, what is answered. Unknown fields are refused."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from cloister.hub.description import Taken, Told, example, read_of
from cloister.hub.guidance import budget_of
from cloister.hub.platform.catalogue.reading import Entry, Money
from cloister.hub.records.catalogue import Arrival, DataSet, Population
from cloister.hub.records.policies import parts_of, told_parts
from cloister.privacy import Guarantee
from cloister.tables import PreparationReport

_Plain = r"^[^\x00]*$"
Exact = Annotated[str, Field(max_length=100, pattern=r"^[0-9eE.+/-]*$", description="An exact number as text: 0.1, 1/3, 1e-6.")]
Line = Annotated[str, Field(max_length=200, pattern=_Plain)]
Text = Annotated[str, Field(max_length=5000, pattern=_Plain)]
Id = Annotated[str, Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Number = Annotated[str, Field(max_length=400, pattern=_Plain)] | Annotated[int, Field(ge=-(2**62), le=2**62)]
Kind = Literal["integer", "real", "category", "date", "moment", "boolean", "text", "identifier", "place"]


class BudgetIn(Taken):
    """ε, or ε and δ, or ρ."""

    epsilon: Exact = ""
    delta: Exact = ""
    rho: Exact = ""

    def guarantee(self) -> Guarantee:
        """As the ledger counts it."""
        return budget_of(self.epsilon, self.delta, self.rho)


class ColumnIn(Taken):
    """What one column may hold, and where its bounds come from."""

    kind: Kind
    low: Number | None = None
    high: Number | None = None
    step: Number | None = None
    values: (
        Annotated[list[Annotated[str, Field(max_length=1000, pattern=_Plain)] | int | bool], Field(max_length=10_000)] | None
    ) = None
    box: Annotated[
        list[Number] | None, Field(max_length=4, description="Of a place: west, south, east and north, in degrees. Or `regions`.")
    ] = None
    regions: Annotated[
        dict[str, Any] | list[Any] | None,
        Field(description="Of a place: a GeoJSON FeatureCollection of polygons, or what a declaration says of them."),
    ] = None
    name: Annotated[Line | None, Field(description="The property that names each region; `name` where it is left out.")] = None
    longitude: Annotated[Line | None, Field(description="Of a place: the column of the file that holds it.")] = None
    latitude: Line | None = None
    nullable: bool = False
    reason: Text = ""

    def declared(self) -> dict[str, Any]:
        """As declarations are kept."""
        told = self.model_dump(exclude={"reason"})
        return {name: value for name, value in told.items() if value is not None}


class NewDataSet(Taken):
    """A data set to make of an upload or a connection."""

    model_config = example(
        upload="6jHh0Qf8T0y1m2n3o4p5qA",
        name="people",
        title="People",
        columns={
            "age": {"kind": "integer", "low": 17, "high": 90, "reason": "the register takes adults"},
            "sex": {"kind": "category", "values": ["F", "M"], "reason": "the form has two boxes"},
        },
        population="people",
        budget={"epsilon": "2"},
    )

    upload: Id
    name: Annotated[str, Field(max_length=63)]
    title: Line
    about: Text = ""
    public: bool = False
    columns: dict[Line, ColumnIn] = Field(default={}, max_length=1000)
    unit: Line | None = None
    max_rows: Count | None = None
    through: Line | None = None
    size: Count | None = None
    population: Annotated[str, Field(max_length=120, pattern=_Plain)] = ""
    budget: BudgetIn | None = None
    members: Annotated[
        Literal["person", "household", "group"] | None,
        Field(description="What one member of a new population is: a person, where it is left out. One that is known stays."),
    ] = None
    people: Count | None = None
    listed: bool = False
    row_is_person: Annotated[
        bool,
        Field(
            description="Needed where a column is an identifier and no unit is named: each row is all of one member, not one of "
            "several events of theirs."
        ),
    ] = False
    policy: dict[str, Any] = Field(default={})
    column_policies: dict[Line, dict[str, Any]] = Field(default={}, max_length=1000)
    every: Literal["", "year", "quarter", "month"] = ""
    window: Annotated[str, Field(max_length=10)] = ""
    date_column: Annotated[
        Line,
        Field(
            description="With `every`: the column by whose dates the windows are cut, declared of the kind date; its bounds and "
            "their reason may be left out. Without it the windows are files that you cut yourself."
        ),
    ] = ""
    provider: Annotated[str, Field(max_length=320, pattern=_Plain)] = ""

    def declaration(self) -> dict[str, Any]:
        """As declarations are kept."""
        return {
            "columns": {name: each.declared() for name, each in self.columns.items()},
            "unit": self.unit,
            "max_rows": self.max_rows,
            "size": self.size,
            "through": self.through,
            "reasons": {name: each.reason for name, each in self.columns.items() if each.reason},
        }


class Changes(Taken):
    """What to change; what is left out stays."""

    model_config = example(title="People of the town", policy={"purposes": ["research"], "retention": "2030-12-31"})

    title: Line | None = None
    about: Text | None = None
    listed: bool | None = None
    provider: Annotated[str, Field(max_length=320, pattern=_Plain)] | None = None
    policy: dict[str, Any] | None = None
    column_policies: Annotated[dict[Line, dict[str, Any]], Field(max_length=1000)] | None = None


class NewVersion(Taken):
    """An upload that becomes the next version; with `windows: all`, of every open window of a data set that is cut by a date
    column."""

    model_config = example(upload="6jHh0Qf8T0y1m2n3o4p5qA")

    upload: Id
    windows: Literal["this", "all"] = "this"


class NewWindow(Taken):
    """An upload that becomes the data set of another window; without a name, of the following one. Where windows are cut by a
    date column the upload may be left out: the window is served from the rows that this one is."""

    model_config = example(upload="6jHh0Qf8T0y1m2n3o4p5qA", window="2027")

    upload: Id | None = None
    window: Annotated[str, Field(max_length=10)] = ""


class Connection(Taken):
    """A table of a PostgreSQL database, or of a Spark that is reached over Spark Connect."""

    model_config = example(address="postgresql://reader:secret@db.example.org/town::people")

    address: Annotated[str, Field(max_length=2000, pattern=_Plain)]


class UploadOut(BaseModel):
    """An upload that waits to be registered. A suggestion never holds a bound."""

    id: str
    kind: str
    shown: str
    digest: str
    length: int
    columns: list[dict[str, str]]
    created: datetime

    @classmethod
    def of(cls, row: Arrival) -> UploadOut:
        """From the database's row."""
        columns = [{"name": name, "kind": kind, "suggested": suggested} for name, kind, suggested in row.columns]
        return read_of(cls, row, columns=columns)


class Uploads(BaseModel):
    """What waits, the newest first."""

    items: list[UploadOut]


class DataSetOut(BaseModel):
    """A data set as it is declared."""

    id: str
    name: str
    title: str
    about: str
    owner: str
    institution: str
    public: bool
    state: str
    version: int
    population: str | None
    members: str = Field(
        description="What one member of the population is, to whom its budget is promised: person, household, group."
    )
    budget: Told | None
    spent: Told | None = Field(description="Null where the caller may not see what is spent.")
    unbounded: bool
    frozen: bool = Field(description="Whether the ledger charges nothing until its owner has said what was spent.")
    declaration: dict[str, Any]
    policy: dict[str, Any]
    column_policies: dict[str, Any]
    window: dict[str, Any]
    mine: bool
    may_ask: bool
    created: datetime
    changed: datetime

    @classmethod
    def of(cls, entry: Entry, owner: str, money: Money | None, *, members: str, spending: bool) -> DataSetOut:
        """As the caller may see it."""
        row: DataSet = entry.row
        parts = told_parts(parts_of(row))
        return read_of(
            cls,
            row,
            owner=owner,
            members=members,
            budget=None if money is None else money.total,
            spent=money.spent if money is not None and spending else None,
            unbounded=money is not None and money.unbounded,
            frozen=money is not None and money.frozen,
            policy=parts["policy"],
            column_policies=parts["columns"],
            window={name: row.window[name] for name in ("every", "window", "of", "column") if name in row.window},
            mine=entry.mine,
            may_ask=entry.may_ask,
        )


class DataSets(BaseModel):
    """Some data sets, by name; `next` is the `after` of the page that follows."""

    items: list[DataSetOut]
    next: str | None


class VersionOut(BaseModel):
    """One version, for those who may add one."""

    number: int
    kind: str
    format: str
    digest: str
    length: int
    created: datetime
    created_by: str
    destroyed: datetime | None


class Versions(BaseModel):
    """All versions, the newest first."""

    items: list[VersionOut]


class ColumnAsRead(BaseModel):
    """What became of the values of a column."""

    given: int
    nulled: int
    """None of the declared values, not of the declared kind, or not a finite number: no value now."""
    clamped: int
    """Beyond a bound, and moved to it."""


class UnitsAsRead(BaseModel):
    """How many different values name rows, and how many rows the fullest has."""

    units: int
    fullest: int


class AsRead(BaseModel):
    """What became of the rows when they were read: exact numbers, for the owner alone."""

    version: int
    rows: int
    rows_malformed: int
    rows_before: int = Field(description="Of a window: rows of earlier days, which are no rows of it.")
    rows_after: int = Field(description="Of a window: rows of later days.")
    rows_undated: int = Field(description="Of a window: rows without a date, which are of none.")
    rows_without_unit: int
    units_over_cap: int
    rows_over_cap: int
    columns: dict[str, ColumnAsRead]
    units: dict[str, UnitsAsRead] = Field(description="By the column that says whose row it is, and by each identifier.")

    @classmethod
    def of(cls, version: int, report: PreparationReport) -> AsRead:
        """From what the engine counted."""
        return cls.model_validate({**asdict(report), "version": version})


class PopulationOut(BaseModel):
    """A population of one's own."""

    name: str
    unit: str
    about: str
    people: int | None
    data_sets: list[str]
    budget: Told | None
    spent: Told | None
    unbounded: bool

    @classmethod
    def of(cls, row: Population, tables: list[DataSet], money: Money | None) -> PopulationOut:
        """With its tables and its budget."""
        return read_of(
            cls,
            row,
            data_sets=[each.name for each in tables],
            budget=None if money is None else money.total,
            spent=None if money is None else money.spent,
            unbounded=money is not None and money.unbounded,
        )


class Populations(BaseModel):
    """One's own populations, by name."""

    items: list[PopulationOut]
