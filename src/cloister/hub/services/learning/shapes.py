"""The bodies of the API of models: what is sent, what is answered. Unknown fields are refused."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field

from cloister.hub.description import example
from cloister.hub.releases.shapes import Sent
from cloister.hub.services.learning.predicting import MOST_BYTES

if TYPE_CHECKING:
    from cloister.hub.records.releases import StoredRelease


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
