"""The pages of models: what the form of an order shows, and predictions. Every button works without scripts."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Request
from sqlalchemy.orm import Session as Db
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.decisions.policy.methods import offered
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.problems import Problem, beside_form, problem_of
from cloister.hub.releases.pages import release_page
from cloister.hub.releases.reading import read_release
from cloister.hub.services.learning.algorithms import ACTION, NAME
from cloister.hub.services.learning.expected import expected, picture
from cloister.hub.services.learning.fitting import FITTING
from cloister.hub.services.learning.models import MODEL
from cloister.hub.services.learning.order import Training
from cloister.hub.services.learning.predicting import MOST_BYTES, predictions
from cloister.hub.services.learning.released import FreeTraining, offered_table, submit_free
from cloister.hub.storage import Reading
from cloister.hub.web.forms import FormDep, check_token, go
from cloister.hub.web.languages import N_
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import render
from cloister.hub.web.routing import Number, Pages, attachment
from cloister.hub.work.offer import Offer
from cloister.hub.work.offers import offers, runnable
from cloister.hub.work.ordering import order_pages
from cloister.session.questions.spend import measure_of
from cloister.tables import Boolean, Category, Date, Integer, PrivateTable, Real

_FIELDS = ("table", "method", "target", "spend", "delta", "purpose", "project", "title", "algorithm", "held_out")
TASKS = {
    "classes": N_("Which class a row is in"),
    "numbers": N_("A number"),
    "groups": N_("Groups of rows that are alike"),
    "directions": N_("Directions, and scales"),
}
"""What models say, in the order in which they are offered."""


def add(routes: Pages) -> None:
    how: dict[str, Any] = {"more": _choices, "errors": expected, "priced_at": "expected"}
    routes.router.include_router(order_pages(FITTING, Training, "/learn", "learning/learn.html", **how))

    @routes.get("/learn/released", ACTION)
    def start(request: Request, hub: HubDep, caller: CallerDep, about: Annotated[str, Query(max_length=200)] = "") -> Response:
        """An empty order of a model of a released table."""
        return _free(request, hub, caller, about, {})

    @routes.post("/learn/released", ACTION, ticked=True)
    def train(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """Order it; a form that is sent twice orders once."""
        typed: dict[str, Any] = {name: form.text(name, most=200) for name in ("table", "method", "target", "title")}
        typed["features"] = tuple(dict.fromkeys(form.all("features")))
        try:
            job = submit_free(hub, caller, f"form {form.text('key', most=60)}", FreeTraining(**typed))
        except CloisterError as error:
            return _free(request, hub, caller, typed["table"], typed, problem_of(error))
        return go(request, f"/jobs/{job}")

    @routes.post("/models/{number}/predictions", "release.see", own_check=True)
    async def predict(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Rows as CSV in, the same with predictions out. They are read as they come, and kept nowhere."""
        try:
            text, how = await _sent(request)
            body = await run_in_threadpool(lambda: _predicted(hub, caller, number, text, how))
        except CloisterError as error:
            problem = beside_form(error)
            return await run_in_threadpool(lambda: release_page(request, hub, caller, number, MODEL, problem=problem))
        return Response(body, headers=attachment(f"predictions-{number}.csv"), media_type="text/csv; charset=utf-8")


def _free(
    request: Request, hub: Hub, caller: Caller, name: str, typed: Mapping[str, Any], problem: Problem | None = None
) -> Response:
    """The form of a model of a released table."""
    offer = offered_table(hub, caller, name)
    columns = _columns(offer)
    first = {"method": "GaussianNB", "features": (), "target": "", "title": ""}
    methods = [
        (title, [(each.name, each.title) for each in offered().values() if each.task == task]) for task, title in TASKS.items()
    ]
    how: dict[str, Any] = {
        "table": name,
        "columns": columns,
        "methods": methods,
        "typed": {**first, **typed},
        "key": new_secret(),
    }
    return render(request, "learning/released.html", problem=problem, **how)


def _predicted(hub: Hub, caller: Caller, number: str, text: str, how: Reading) -> bytes:
    with hub.database.reading() as db:
        row = read_release(hub, db, caller, number, kind=MODEL.name)
    return predictions(row, text, how).encode()


async def _sent(request: Request) -> tuple[str, Reading]:
    """The text of the file, and how it is written, once the form is known to be ours."""
    form = FileForm(request.headers.get("content-type", ""), request.stream())
    fields = await form.head()
    check_token(request, fields)
    whole = bytearray()
    async for chunk in form.file():
        whole += chunk
        if len(whole) > MOST_BYTES:
            raise InvalidParameter(
                "The file is invalid", why=f"it is larger than {MOST_BYTES // 2**20} MiB", instead="fewer rows at a time"
            )
    try:
        return whole.decode("utf-8"), Reading(numbers=fields.get("numbers", ""), dates=fields.get("dates", ""))
    except UnicodeDecodeError:
        raise InvalidParameter("The file is invalid", why="it is not UTF-8 text", instead="CSV in UTF-8") from None


def _choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The data sets, the columns and the methods of the chosen one, and what was typed."""
    under = runnable(hub, db, caller, ACTION, NAME)
    opened = [each for each in offers(hub, db, caller, ACTION, under=under, anyhow=True) if each.which.population]
    opened = [each for each in opened if isinstance(each.table, PrivateTable)]
    chosen = next((each for each in opened if each.which.name == typed["table"]), opened[0] if opened else None)
    values = {**dict.fromkeys(_FIELDS, ""), "spend": "1", **typed}
    if chosen is not None and "method" not in typed:
        values |= {"method": "GaussianNB"} if chosen.plain else {"algorithm": chosen.algorithms[0].name}
    open_ = frozenset[str]() if chosen is None else chosen.methods
    methods = [
        (title, [(each.name, each.title) for each in offered().values() if each.task == task and each.name in open_])
        for task, title in TASKS.items()
    ]
    return {
        "values": values,
        "features": values.get("features", ()),
        "opened": [each.which.name for each in opened],
        "chosen": chosen,
        "columns": _columns(chosen),
        "measure": "" if chosen is None else measure_of(hub.ledger.budget(chosen.which.population)),
        "methods": [each for each in methods if each[1]],
        "narrowed": len(open_) < len(offered()),
        "algorithms": () if chosen is None else [(row.name, row.title) for row in chosen.algorithms],
        "picture": picture,
    }


def _columns(chosen: Offer | None) -> dict[str, str]:
    """Each column that a model can read, with its kind; texts without declared values, moments and places are none of them."""
    if chosen is None or not isinstance(chosen.table, PrivateTable):
        return {}
    read = Integer | Real | Category | Date | Boolean
    return {name: domain.kind for name, domain in chosen.table.columns.items() if isinstance(domain, read)}
