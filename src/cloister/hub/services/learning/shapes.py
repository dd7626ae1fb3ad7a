"""The bodies of the API of models: what is sent, what is answered. Unknown fields are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from cloister.hub.description import example
from cloister.hub.releases.shapes import Sent
from cloister.hub.services.learning.order import Kind, Order
from cloister.hub.services.learning.predicting import MOST_BYTES

if TYPE_CHECKING:
    from cloister.hub.records.releases import StoredRelease

_Exact = Annotated[str, Field(max_length=100, pattern=r"^[0-9eE.+/-]*$", description="An exact number as text: 0.1, 1/3, 1e-6.")]
_Name = Annotated[str, Field(min_length=1, max_length=200)]


class Training(Sent):
    """A model to train: from which columns of which data set, by which method, what it may cost, what it is for."""

    model_config = example(
        table="people", method="GaussianNB", features=["age", "pay"], target="sex", spend="0.5", purpose="research"
    )

    table: _Name
    method: Annotated[str, Field(max_length=60, description="May be left out where an algorithm says it.")] = ""
    features: Annotated[list[_Name], Field(min_length=1, max_length=500)]
    target: Annotated[str, Field(max_length=200)] = ""
    spend: Annotated[_Exact, Field(min_length=1)]
    delta: _Exact = ""
    kind: Kind = ""
    parameters: Annotated[dict[str, Any], Field(max_length=30)] = {}  # noqa: RUF012 - pydantic copies it
    purpose: Annotated[str, Field(max_length=1000)] = ""
    project: Annotated[str, Field(max_length=32)] = ""
    title: Annotated[str, Field(max_length=200)] = ""
    algorithm: Annotated[str, Field(max_length=63, description="Under which it is trained: its name, or its id.")] = ""

    def order(self) -> Order:
        """As the hub works with it."""
        return Order(**{**self.model_dump(), "features": tuple(self.features)})


class Predicting(Sent):
    """Rows of one's own, as CSV with a first line of names."""

    model_config = example(csv="age,pay\\n40,20\\n")

    csv: Annotated[str, Field(min_length=1, max_length=MOST_BYTES)]


class Predicted(BaseModel):
    """The rows again, with what the model says of each."""

    csv: str


class JobOfModel(BaseModel):
    """A model is trained as a job: look at /jobs/{job}, whose result names the model."""

    job: str


class Method(BaseModel):
    """One way to learn."""

    name: str
    title: str
    task: str
    pure: bool
    approximate: bool


class Curve(BaseModel):
    """How good the method was at each ε on made-up rows; nothing of the data is in it. `plain` is without noise, `guess` without
    looking at any feature."""

    measure: str
    rows: int
    declared: bool
    trained: int
    runs: int
    delta: str
    plain: float
    guess: float
    points: list[dict[str, float]]


class LearntLine(BaseModel):
    """One model, without what it learnt."""

    id: str
    title: str
    method: str
    table: str
    features: list[str]
    target: str
    purpose: str
    project: str
    algorithm: str
    cost: dict[str, str]
    created: datetime


class Learnt(LearntLine):
    """One model: `model` is its portable text, which `cloister.learn.load` reads, and `card` its card."""

    model: str
    card: dict[str, Any]


class LearntPage(BaseModel):
    """Some models, the newest first. `next`: what to give as `after` for the following ones."""

    models: list[LearntLine]
    next: str | None


def line_of(row: StoredRelease) -> LearntLine:
    """One model in a list."""
    return LearntLine(**_line(row))


def learnt(row: StoredRelease) -> Learnt:
    """One model, as it is answered."""
    return Learnt(**_line(row), model=row.body.decode(), card=json.loads(row.details["card"]))


def _line(row: StoredRelease) -> dict[str, Any]:
    told, columns = row.details, row.details["columns"]
    features = [name for name, _ in columns["features"]]
    names = ("id", "title", "purpose", "algorithm", "created")
    of_model = {"method": told["method"], "table": told["table"], "features": features, "target": columns["target"]}
    return {name: getattr(row, name) for name in names} | of_model | {"project": row.asked_in, "cost": dict(row.cost)}
