"""The bodies of the API of releases, of every kind. Unknown fields are refused."""

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from cloister.hub.description import Taken, example
from cloister.hub.records.releases import StoredRelease

Title = Annotated[str, Field(max_length=200)]


class Sharing(Taken):
    """With whom: the e-mail address of a person, or the name or the id of a project."""

    model_config = example(email="ada@example.org")

    email: Annotated[str, Field(max_length=254)] = ""
    project: Annotated[str, Field(max_length=63)] = ""


class Renamed(Taken):
    """Another name; empty: none."""

    model_config = example(title="By sex")

    title: Title


class TableQuestion(Taken):
    """SQL on a released table, by its name in queries."""

    model_config = example(sql="SELECT sex, COUNT(*) AS n FROM people_synthetic_1f3a9c2b GROUP BY sex")

    sql: Annotated[str, Field(max_length=50_000)]
    confidence: Annotated[float, Field(gt=0, lt=1)] = 0.95


class TableAnswered(BaseModel):
    """What a released table answers, at no cost. Each statistic is followed by the ends of its interval and by how sure that is;
    null where it is not known."""

    release: str
    table: str
    columns: dict[str, list[Any]]
    confidence: float
    cost: Annotated[dict[str, str], Field(description="What the table cost: the query costs nothing.")]
    notes: list[str]


class ShareLine(BaseModel):
    """One share: an e-mail address, or a project."""

    email: str
    project: str
    title: str
    shared: datetime
    asleep: Annotated[str, Field(description="Why nobody sees it by this share now; empty: they do.")]
    rule: Annotated[str, Field(description="Which rule says so; empty where they do.")]


class Shares(BaseModel):
    """With whom a release is shared."""

    shares: list[ShareLine]


class Line(BaseModel):
    """One release of a kind in a list: its fields are those of its row, or of its details."""

    id: str
    title: str
    purpose: str
    created: datetime

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """With what neither says in `more`."""
        given: dict[str, Any] = {"project": row.asked_in, "cost": dict(row.cost), **more}
        told = {name: given.get(name, getattr(row, name, row.details.get(name))) for name in cls.model_fields}
        return cls.model_validate(told)


class ReleaseLine(Line):
    """One release, without its values."""

    kind: str
    sql: str
    project: str
    algorithm: Annotated[str, Field(description="The id of the one under which it was asked; empty: none.")]
    cost: dict[str, str]
    mine: bool


class Releases(BaseModel):
    """Some releases, the newest first. `next`: what to give as `after` for the following ones."""

    releases: list[ReleaseLine]
    next: str | None
