"""The API of models: which methods there are, what to expect, training, what was learnt, predictions."""

from dataclasses import asdict
from typing import Annotated, Literal

from fastapi import Body
from pydantic import BaseModel, Field
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.description import Taken, example
from cloister.hub.hub import CallerDep, HubDep
from cloister.hub.releases.api import kind_api
from cloister.hub.releases.reading import read_release
from cloister.hub.services.learning.algorithms import ACTION
from cloister.hub.services.learning.expected import expected
from cloister.hub.services.learning.fitting import FITTING
from cloister.hub.services.learning.models import MODEL, Learnt, LearntLine
from cloister.hub.services.learning.order import Training
from cloister.hub.services.learning.predicting import MOST_BYTES, predictions
from cloister.hub.services.learning.released import FreeTraining, submit_free
from cloister.hub.storage import Reading
from cloister.hub.web.routing import IdempotencyKey, Number, Routes
from cloister.hub.work.ordering import JobOfWork, order_api, price
from cloister.hub.work.submitting import accepted


class Predicting(Taken):
    """Rows of one's own, as CSV with a first line of names; how numbers and days are written, as of an upload."""

    model_config = example(csv="age,pay\\n40,20\\n")

    csv: Annotated[str, Field(min_length=1, max_length=MOST_BYTES)]
    numbers: Literal["", "comma", "point"] = ""
    dates: Literal["", "dmy", "mdy", "ymd"] = ""


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


def add(routes: Routes) -> None:
    routes.router.include_router(order_api(FITTING, Training, "/models", summaries=("Train a model",), mark="models"))

    @routes.post(
        "/models/released",
        ACTION,
        "Train a model on a released table",
        "The job that does it",
        ticked=True,
        status_code=202,
        response_model=JobOfWork,
    )
    def released(hub: HubDep, caller: CallerDep, wanted: Annotated[FreeTraining, Body()], key: IdempotencyKey = "") -> Response:
        """On rows of a synthetic table: nothing is spent, and the model has the guarantee of the table."""
        return accepted(submit_free(hub, caller, key, wanted))

    @routes.get("/models/methods", ACTION, "List methods of learning", "The methods and the guarantees that each works with")
    def methods() -> list[Method]:
        """The ways to learn; `pure`: without a δ, `approximate`: with one."""
        return [Method.model_validate(each, from_attributes=True) for each in offered().values()]

    @routes.post(
        "/models/expected", ACTION, "Estimate the quality of a model", "The quality to expect over a range of ε", ticked=True
    )
    def expect(hub: HubDep, caller: CallerDep, training: Annotated[Training, Body()]) -> Curve:
        """The method on made-up rows that follow the declarations, over a range of ε: spends nothing and reads no row. 404 for a
        method whose result nothing measures."""
        found = price(hub, caller, FITTING, training, expected).beside
        if found is None:
            raise Missing("There is no curve", why="nothing measures what this method finds", instead="GaussianNB")
        return Curve.model_validate(asdict(found))

    @routes.post("/models/{number}/predictions", "release.see", "Predict with a model", "The predictions, row by row")
    def predict(hub: HubDep, caller: CallerDep, number: Number, wanted: Predicting) -> Predicted:
        """What the model says of rows of one's own, which are kept nowhere. It spends nothing."""
        with hub.database.reading() as db:
            row = read_release(hub, db, caller, number, kind=MODEL.name)
        return Predicted(csv=predictions(row, wanted.csv, Reading(numbers=wanted.numbers, dates=wanted.dates)))

    names, nouns = ("models", "model", "file"), ("models", "a model")
    routes.router.include_router(kind_api(MODEL, LearntLine, Learnt, names=names, nouns=nouns, forms=("json",)))
