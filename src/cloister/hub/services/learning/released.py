"""Models of released tables, such as synthetic ones: post-processing of what left, so nothing is charged.

A model learns without noise from rows that are drawn from the release, and has the release's guarantee. Whoever may take the
table as a program does may train on it, as often as they like; a job does it, since a method may take its time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from cloister.errors import CloisterError, InvalidParameter, Missing
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs import caller_of_job, came_of, submit
from cloister.hub.releases.derived import check_derived
from cloister.hub.releases.deriving import keep_derived, read_sources
from cloister.hub.releases.kinds import View, kind_of
from cloister.hub.releases.tables import TableOffer, table_in
from cloister.hub.service import JobType, Progress
from cloister.hub.services.learning.algorithms import ACTION
from cloister.hub.services.learning.models import MODEL
from cloister.hub.services.learning.order import Training, model_of
from cloister.hub.web.languages import N_, language_of
from cloister.hub.work.recheck import present
from cloister.hub.work.submitting import submit_once
from cloister.stored import Stored, canonical

_KIND = "learn.released"
_MOST_ROWS = 20_000
"""That a model learns from: more rows than the release has people say nothing more of them."""


@dataclass(frozen=True, kw_only=True)
class FreeTraining:
    """A model to train on a released table, by its name in queries: nothing is spent."""

    __pydantic_config__ = example(
        table="people_synthetic_1f3a9c2b", method="GaussianNB", features=["age"], target="sex", title="Teaching model"
    ) | {"extra": "forbid"}

    table: Annotated[str, Field(min_length=1, max_length=200)]
    method: Annotated[str, Field(max_length=60)]
    features: Annotated[tuple[str, ...], Field(min_length=1, max_length=500)]
    target: Annotated[str, Field(max_length=200)] = ""
    parameters: Annotated[Mapping[str, Any], Field(max_length=30)] = field(default_factory=dict)
    title: Annotated[str, Field(max_length=200)] = ""

    def __post_init__(self) -> None:
        _ = self.training

    @property
    def training(self) -> Training:
        """What it has in common with one that is charged; the spend of that is not used."""
        how: dict[str, Any] = {"method": self.method, "features": self.features, "target": self.target}
        return Training(table=self.table, spend="1", parameters=self.parameters, title=self.title, **how)


ORDER = Stored(FreeTraining, "FreeTraining", "table", "method", "features", "target", "parameters", "title")
"""As a job holds it."""


def submit_free(hub: Hub, caller: Caller, key: str, order: FreeTraining) -> str:
    """The id of the job."""

    def look() -> TableOffer:
        offer = offered_table(hub, caller, order.table)
        columns = list(offer.columns)
        unknown = [name for name in order.training.columns if name not in columns]
        if unknown:
            raise InvalidParameter(
                "The columns are invalid", why=f"the table has no column {unknown[0][:60]!r}", instead=", ".join(columns)
            )
        model_of(order.training)
        return offer

    told = {**ORDER.told(order), "features": list(order.features), "parameters": dict(order.parameters)}
    payload, request = {"order": told, "came": came_of(caller)}, canonical(told, {}).encode()
    return submit_once(hub, caller, key, request, look, lambda db, _: submit(hub, db, caller, _KIND, payload))


def offered_table(hub: Hub, caller: Caller, name: str) -> TableOffer:
    """A released table by its name in queries, as this person may take it; any other is missing."""
    with hub.database.reading() as db:
        found = table_in(hub, db, caller, name)
        if found is not None:
            check_derived(hub, db, caller, found.row, ACTION)  # what its data may not be used for, it may not either
    if found is None or found.which.name != name:
        raise Missing("There is no such table", why="it does not exist, or was not shown to you", instead="/synthetic")
    read_sources(hub, caller, [found.row.id], found.row.kind)
    return found


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    told = payload["order"]
    order = ORDER.made({**told, "features": tuple(told["features"])})
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))
    offer = offered_table(hub, caller, order.table)
    progress.tell("learning", 0.3)
    body, details = _learnt(View(hub=hub, caller=caller, row=offer.row, language=language_of("en")), order, offer)
    progress.tell("keeping the model", 0.9)

    def result(number: str) -> dict[str, Any]:
        return {MODEL.name: number, "href": f"{MODEL.path}/{number}"}

    how: dict[str, Any] = {"body": body, "details": details, "title": order.title}
    number = keep_derived(hub, caller, MODEL, [offer.row], **how, finish=lambda db, kept: progress.finish(db, result(kept)))
    return result(number)


def _learnt(view: View, order: FreeTraining, offer: TableOffer) -> tuple[bytes, dict[str, Any]]:
    """The body and the details of a model."""
    model, as_table, table = model_of(order.training), kind_of(view.hub, view.row).as_table, offer.table
    assert as_table is not None
    from cloister.learn.frame.from_tables import fit_released
    from cloister.tables import PrivateTable

    assert isinstance(table, PrivateTable)
    codes, promise = as_table.codes(view, _MOST_ROWS), as_table.guarantee(view.row)
    try:
        fit_released(model, codes, table, features=order.features, target=order.target or None, guarantee=promise)
    except CloisterError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError):
        raise InvalidParameter(
            "The model is invalid",
            why="the method can't learn from this table with these parameters",
            instead=f"{order.method}() as it is, or other columns",
        ) from None
    card = model.card(data=offer.which.name, date=f"{view.hub.now():%Y-%m-%d}")
    described = [[name, table.column(name).describe()] for name in order.features]
    return model.to_json().encode(), {
        "method": order.method,
        "table": offer.which.name,
        "columns": {"features": described, "target": order.target, "version": ""},
        "card": card.to_json(),
    }


FREE = JobType(kind=_KIND, title=N_("Model of a released table"), run=_run)
