"""The pages of models: what to train and what to expect of it, the file, the card, predictions.

Every button works without scripts. The form that trains carries a key that is used once, so that one sent twice is one job.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.errors import AccessDenied, CloisterError, InvalidParameter
from cloister.hub.caller import Caller, CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import Hub, HubDep
from cloister.hub.ids import new_secret, same
from cloister.hub.policy.methods import offered
from cloister.hub.problems import Problem, problem_of
from cloister.hub.releases.pages import release_page
from cloister.hub.releases.reading import attachment, file_of, read_release
from cloister.hub.services.learning.algorithms import ACTION, NAME
from cloister.hub.services.learning.expected import expected_of, picture
from cloister.hub.services.learning.fitting import FITTING
from cloister.hub.services.learning.models import MODEL
from cloister.hub.services.learning.order import ORDER, Order
from cloister.hub.services.learning.predicting import MOST_BYTES, predictions
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import TOKEN_FIELD, Form, FormDep, token_of
from cloister.hub.web.languages import N_
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import TICKED, Number
from cloister.hub.work.offers import Offer, offers, runnable
from cloister.hub.work.ordering import open_projects, price
from cloister.hub.work.orders import submit_order
from cloister.session.questions.spend import measure_of
from cloister.stored import canonical
from cloister.tables import PrivateTable, Text

_FIELDS = ("table", "method", "target", "spend", "delta", "purpose", "project", "title", "algorithm")
TASKS = {
    "classes": N_("Which class a row is in"),
    "numbers": N_("A number"),
    "groups": N_("Groups of rows that are alike"),
    "directions": N_("Directions, and scales"),
}
"""What models say, in the order in which they are offered."""


def pages() -> APIRouter:
    """The routes."""
    router = APIRouter()
    _training(router)
    _reading(router)
    return router


def _training(router: APIRouter) -> None:
    @router.get("/learn", dependencies=[needs(ACTION)])
    def start(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        about: Annotated[str, Query(max_length=63)] = "",
    ) -> Response:
        """An empty order, for one data set."""
        return _page(request, hub, caller, {"table": about, "spend": "1"}, ())

    @router.post("/learn", dependencies=[TICKED, needs(ACTION)])
    def train(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """Train it: to the page of its job."""
        try:
            order, key = _order(form), form.text("key", most=60)
            if not key:
                raise InvalidParameter("The model is invalid", why="its form has no key", instead="load the page again: /learn")
            job = submit_order(hub, caller, FITTING, f"form {key}", canonical(order, {Order: ORDER}).encode(), order)
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)
        return go(request, f"/jobs/{job}")

    @router.post("/learn/expected", dependencies=[TICKED, needs(ACTION)])
    def expect(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """What it would cost and what would be left, and the curve from made-up rows."""
        try:
            found = price(hub, caller, FITTING, _order(form), expected_of(hub))
        except CloisterError as error:
            return _refused(request, hub, caller, form, error)
        told = {
            "price": found,
            "picture": "" if found.beside is None else picture(found.beside, _words(request, found.beside.measure)),
        }
        return _page(request, hub, caller, _values(form), form.all("features"), told=told)


def _reading(router: APIRouter) -> None:
    @router.get("/models/{number}/download", dependencies=[needs("release.download")])
    def file(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """The portable JSON."""
        return file_of(hub, caller, number, "json", kind=MODEL.name)

    @router.get("/models/{number}/card", dependencies=[needs("release.download")])
    def card(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """The card in Markdown."""
        return file_of(hub, caller, number, "card", kind=MODEL.name)

    @router.post("/models/{number}/predictions", dependencies=[needs("release.see")])
    async def predict(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Rows as CSV in, the same with predictions out. They are read as they come, and kept nowhere."""
        try:
            text = await _sent(request)
            body = await run_in_threadpool(lambda: _predicted(hub, caller, number, text))
        except CloisterError as error:
            problem = problem_of(error)
            if problem.status in (403, 404):
                raise
            return await run_in_threadpool(lambda: release_page(request, hub, caller, number, MODEL, problem=problem))
        return Response(body, headers=attachment(f"predictions-{number}.csv"), media_type="text/csv; charset=utf-8")


def _predicted(hub: Hub, caller: Caller, number: str, text: str) -> bytes:
    with hub.database.reading() as db:
        row = read_release(hub, db, caller, number, kind=MODEL.name)
    return predictions(row, text).encode()


async def _sent(request: Request) -> str:
    """The text of the file, once the form is known to be ours."""
    form = FileForm(request.headers.get("content-type", ""), request.stream())
    fields = await form.head()
    if not same(fields.get(TOKEN_FIELD, ""), token_of(request)):
        raise AccessDenied(
            "The form was not accepted",
            why="the form comes from another session, or the page is old",
            instead="load the page again and send it once more",
        )
    whole = bytearray()
    async for chunk in form.file():
        whole += chunk
        if len(whole) > MOST_BYTES:
            raise InvalidParameter(
                "The file is invalid", why=f"it is larger than {MOST_BYTES // 2**20} MiB", instead="fewer rows at a time"
            )
    try:
        return whole.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidParameter("The file is invalid", why="it is not UTF-8 text", instead="CSV in UTF-8") from None


def _order(form: Form) -> Order:
    """What the form asks for."""
    texts: dict[str, Any] = {name: form.text(name, most=2000) for name in _FIELDS}
    return Order(**{**texts, "spend": texts["spend"] or "0"}, features=tuple(dict.fromkeys(form.all("features"))))


def _values(form: Form) -> dict[str, str]:
    return {name: form.get(name, "") for name in _FIELDS}


def _refused(request: Request, hub: Hub, caller: Caller, form: Form, error: CloisterError) -> Response:
    problem = problem_of(error)
    return _page(request, hub, caller, _values(form), form.all("features"), problem=problem)


def _page(
    request: Request,
    hub: Hub,
    caller: Caller,
    values: dict[str, str],
    features: Any,
    *,
    problem: Problem | None = None,
    told: Any = None,
) -> Response:
    _ = request_gettext(request)
    with hub.database.reading() as db:
        under = runnable(hub, db, caller, ACTION, NAME)
        opened = [each for each in offers(hub, db, caller, ACTION, under=under, anyhow=True) if each.which.population]
        projects = open_projects(db, caller)
    opened = [each for each in opened if isinstance(each.table, PrivateTable)]
    chosen = next((each for each in opened if each.which.name == values.get("table")), opened[0] if opened else None)
    if chosen is not None and not values.get("purpose"):
        values = {**values, "purpose": chosen.purpose}
    open_ = frozenset[str]() if chosen is None else chosen.methods
    if chosen is not None and "method" not in values:
        first = {"method": "GaussianNB"} if chosen.plain else {"algorithm": chosen.algorithms[0].name}
        values = {**values, **first}
    methods = [
        (_(title), [(each.name, _(each.title)) for each in offered().values() if each.task == task and each.name in open_])
        for task, title in TASKS.items()
    ]
    return render(
        request,
        "learning/learn.html",
        status=200 if problem is None else problem.status,
        values={name: values.get(name, "") for name in _FIELDS},
        features=list(features),
        opened=[each.which.name for each in opened],
        chosen=chosen,
        columns=_columns(chosen),
        measure="" if chosen is None else measure_of(hub.ledger.budget(chosen.which.population)),
        methods=[each for each in methods if each[1]],
        narrowed=len(open_) < len(offered()),
        algorithms=() if chosen is None else [(row.name, row.title) for row in chosen.algorithms],
        projects=projects,
        key=new_secret(),
        problem=problem,
        told=told,
    )


def _columns(chosen: Offer | None) -> dict[str, str]:
    """Each column that a model can read, with its kind; a text without declared values is none of them."""
    if chosen is None or not isinstance(chosen.table, PrivateTable):
        return {}
    return {name: domain.kind for name, domain in chosen.table.columns.items() if not isinstance(domain, Text)}


def _words(request: Request, measure: str) -> dict[str, str]:
    _ = request_gettext(request)
    measures = {"accuracy": _("accuracy"), "r2": _("R²"), "captured": _("explained variance")}
    return {
        "epsilon": _("ε (less is more private)"),
        "measure": measures.get(measure, measure),
        "plain": _("without noise"),
        "guess": _("blind guess"),
    }
