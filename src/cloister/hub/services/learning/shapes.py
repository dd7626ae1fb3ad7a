"""The bodies of the API of models: what is sent, what is answered. Unknown fields are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, Field

from cloister.hub.description import example
from cloister.hub.releases.shapes import Line, Sent
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


class LearntLine(Line):
    """One model, without what it learnt."""

    method: str
    table: str
    features: list[str]
    target: str
    project: str
    algorithm: str
    cost: dict[str, str]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """As it is kept."""
        columns = row.details["columns"]
        return super().of(row, features=[name for name, _ in columns["features"]], target=columns["target"], **more)


class Learnt(LearntLine):
    """One model: `model` is its portable text, which `cloister.learn.load` reads, and `card` its card."""

    model: str
    card: dict[str, Any]

    @classmethod
    def of(cls, row: StoredRelease, **more: Any) -> Self:
        """With what it learnt."""
        return super().of(row, model=row.body.decode(), card=json.loads(row.details["card"]), **more)
