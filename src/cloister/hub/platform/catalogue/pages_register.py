"""The guided way from what arrived to a data set: declare it, look at it once more, open it. Works without scripts."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.decisions.policy.facts import SENSITIVITIES
from cloister.hub.guidance import guidance, usual
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.arrivals import arrival_of, columns_of, connected, discard, look
from cloister.hub.platform.catalogue.cleaning import cells_typed
from cloister.hub.platform.catalogue.filling import Filled, declared_by, filled, from_file, suggested, typed_so_far, written
from cloister.hub.platform.catalogue.pages import Name
from cloister.hub.platform.catalogue.pages_upload import new_page
from cloister.hub.platform.catalogue.registering import UNITS, Wanted, registered
from cloister.hub.platform.catalogue.trial import read_for_trial, trial_reading
from cloister.hub.platform.catalogue.typed import KINDS, WideFormDep, keep, wanted_of
from cloister.hub.platform.catalogue.windows import EVERY, current, in_all
from cloister.hub.problems import Problem, problem_of
from cloister.hub.records.catalogue import Arrival
from cloister.hub.storage import Header
from cloister.hub.web.forms import Form, FormDep, check_token, go
from cloister.hub.web.multipart import FileForm
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages, attachment
from cloister.tables.declaring.draft import declaration_text, of_declaration

_ROWS = 10
_LARGEST_CODEBOOK = 2**26
_HELD = {int: "integer", bool: "boolean"}
_TOML = "application/toml; charset=utf-8"


def add(routes: Pages) -> None:
    @routes.post("/register/connection", "dataset.register")
    def connection(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        address = form.text("address", most=2000)
        try:
            arrival = connected(hub, caller, address)
        except CloisterError as error:
            return new_page(request, hub, caller, problem_of(error))
        return go(request, f"/register/{arrival.id}")

    @routes.get("/register/{number}", "dataset.register")
    def declare(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return declare_page(request, hub, caller, _own(hub, caller, number))

    @routes.post("/register/{number}", "dataset.register", own_check=True)
    def declared(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: WideFormDep) -> Response:
        arrival = _saved(hub, caller, number, form)
        if form.text("fill"):
            columns, translate = columns_of(arrival), request_gettext(request)
            return _filled(request, hub, caller, arrival, lambda: filled(hub, caller, arrival.typed, columns, form, translate))
        _, wrong = _read(hub, caller, arrival)
        if wrong:
            return declare_page(request, hub, caller, arrival, wrong=wrong)
        return go(request, f"/register/{number}/review")

    @routes.post("/register/{number}/rows", "dataset.register", own_check=True)
    def rows(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: WideFormDep) -> Response:
        arrival = _saved(hub, caller, number, form)
        try:
            header = look(hub, caller, arrival, _ROWS)
        except CloisterError as error:
            return declare_page(request, hub, caller, arrival, problem=problem_of(error))
        return declare_page(request, hub, caller, arrival, header=header)

    @routes.get("/register/{number}/review", "dataset.register")
    def review(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return _with_declared(request, hub, caller, number, partial(_review_page, request, hub, caller))

    @routes.post("/register/{number}/trial", "dataset.register", own_check=True)
    def read_it(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: WideFormDep) -> Response:
        def read(arrival: Arrival, wanted: Wanted) -> Response:
            cells = cells_typed(form, len(arrival.columns)) if form.text("cells") else None
            try:
                read_for_trial(hub, caller, number, wanted, cells)
            except InvalidParameter as error:
                if cells is None:
                    raise
                return _trial_page(request, hub, caller, arrival, wanted, problem_of(error))
            return go(request, f"/register/{number}/trial")

        return _with_declared(request, hub, caller, number, read)

    @routes.get("/register/{number}/trial", "dataset.register")
    def trial(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return _with_declared(request, hub, caller, number, partial(_trial_page, request, hub, caller))

    @routes.post("/register/{number}/open", "dataset.register")
    def open_it(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        def opened(arrival: Arrival, wanted: Wanted) -> Response:
            name = registered(hub, caller, number, wanted).name
            return go(request, f"/datasets/{name}/manage", request_gettext(request)("%(name)s is open.", name=name))

        return _with_declared(request, hub, caller, number, opened)

    @routes.post("/register/{number}/discard", "dataset.register")
    def forget(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        discard(hub, caller, number)
        return go(request, "/register", request_gettext(request)("It is gone, and nothing of it was kept."))

    @routes.post("/uploads/codebooks/{number}", "dataset.register", own_check=True)
    async def codebook(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        try:
            form = FileForm(request.headers.get("content-type", ""), request.stream())
            fields = await form.head()
        except CloisterError:
            await run_in_threadpool(lambda: _own(hub, caller, number))  # somebody else's upload is not told about by this either
            raise
        check_token(request, fields)
        await run_in_threadpool(lambda: _own(hub, caller, number))  # before the first byte of the file
        content = bytearray()
        async for chunk in form.file():
            content += chunk
            if len(content) > _LARGEST_CODEBOOK:
                raise InvalidParameter("The codebook is invalid", why="it is larger than 64 MB", instead="the codebook as CSV")
        return await run_in_threadpool(lambda: _filled_from(request, hub, caller, number, form.file_name, bytes(content)))

    @routes.get("/register/{number}/declaration.toml", "dataset.register")
    def typed(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        arrival = _own(hub, caller, number)
        columns = columns_of(arrival)
        typed = typed_so_far(arrival, columns, request_gettext(request))
        name = typed.get("name") or "people"
        file = "" if arrival.kind == "connection" else arrival.shown.partition(" · ")[0]
        return Response(written(name, file, columns, typed), headers=attachment("declaration.toml"), media_type=_TOML)

    @routes.get("/datasets/{name}/declaration.toml", "dataset.manage")
    def saved(hub: HubDep, caller: PersonDep, name: Name) -> Response:
        with hub.database.reading() as db:
            row = reading.owned(hub, db, caller, name)
        book = of_declaration(row.declaration)
        firsts = {column: (each.get("values") or [""])[0] for column, each in row.declaration.get("columns", {}).items()}
        kinds = {column: _HELD.get(type(value), "text") for column, value in firsts.items()}  # of 1 and "1" each stays what it is
        text = declaration_text(name, f"{name}.csv", kinds, book)
        return Response(text, headers=attachment(f"{name}.toml"), media_type=_TOML)


def _own(hub: Hub, caller: Caller, number: str) -> Arrival:
    with hub.database.reading() as db:
        return arrival_of(db, caller, number)


def _saved(hub: Hub, caller: Caller, number: str, form: Form) -> Arrival:
    """What was typed so far is kept before anything is made of it."""
    with hub.database.begin() as db:
        arrival = arrival_of(db, caller, number)
        arrival.typed = keep(form, len(arrival.columns))
    return arrival


def _with_declared(
    request: Request, hub: Hub, caller: Caller, number: str, use: Callable[[Arrival, Wanted], Response]
) -> Response:
    """Use what is declared so far; where that is wrong, or the policy of this moment forbids it, the form says so."""
    arrival = _own(hub, caller, number)
    wanted, wrong = _read(hub, caller, arrival)
    if wanted is None:
        return declare_page(request, hub, caller, arrival, wrong=wrong)
    try:
        return use(arrival, wanted)
    except CloisterError as error:
        return declare_page(request, hub, caller, arrival, problem=problem_of(error))


def _read(hub: Hub, caller: Caller, arrival: Arrival) -> tuple[Wanted | None, dict[str, CloisterError]]:
    with hub.database.reading() as db:
        return wanted_of(arrival.typed, columns_of(arrival), lambda names: reading.names_to_ids(hub, db, caller, names))


def _filled(request: Request, hub: Hub, caller: Caller, arrival: Arrival, fill: Callable[[], Filled]) -> Response:
    try:
        found = fill()
    except CloisterError as error:
        return declare_page(request, hub, caller, arrival, problem=problem_of(error))
    with hub.database.begin() as db:
        arrival_of(db, caller, arrival.id).typed = found.typed
    return go(request, f"/register/{arrival.id}", found.said)


def declare_page(
    request: Request,
    hub: Hub,
    caller: Caller,
    arrival: Arrival,
    *,
    wrong: dict[str, CloisterError] | None = None,
    problem: Problem | None = None,
    header: Header | None = None,
) -> Response:
    """The form, with what was typed, what is wrong with it, and what the columns' names suggest."""
    columns = columns_of(arrival) if header is None else list(header.columns)
    with hub.database.reading() as db:
        populations = reading.populations_of(db, caller)
        others = declared_by(db, caller)
    found = suggested(columns, request_gettext(request))
    refused = [(field, problem_of(error)) for field, error in (wrong or {}).items()]
    every = arrival.typed.get("every", "")
    values: dict[str, Any] = {
        "arrival": arrival,
        "columns": columns,
        "typed": typed_so_far(arrival, columns, request_gettext(request)),
        "suggested": found,
        "others": others,
        "kinds": KINDS,
        "units": UNITS,
        "every": EVERY,
        "current_window": current(every if every in EVERY else "year", hub.now()),
        "populations": [(row.name, reading.money_of(hub, row.name)) for row in populations],
        "sensitivities": SENSITIVITIES[1:],
        "usual": usual(),
        "max_delta": hub.settings.max_delta,
        "refused": refused,
        "errors": dict(refused),
        "problem": problem,
        "rows": () if header is None else header.rows,
    }
    status = problem.status if problem is not None else 422 if refused else 200
    return render(request, "catalogue/declare.html", status=status, **values)


def _left_out(arrival: Arrival, declared: Mapping[str, Any]) -> list[str]:
    """The columns of the file that are neither declared nor part of a place."""
    used = {*declared, *(each.get(part) for each in declared.values() for part in ("longitude", "latitude"))}
    return [name for name, _, _ in arrival.columns if name not in used]


def _trial_page(
    request: Request, hub: Hub, caller: Caller, arrival: Arrival, wanted: Wanted, problem: Problem | None = None
) -> Response:
    found = trial_reading(hub, caller, arrival.id, wanted)
    if found is None:
        return go(request, f"/register/{arrival.id}/review")
    values: dict[str, Any] = {
        "arrival": arrival,
        "wanted": wanted,
        "found": found,
        "names": [name for name, *_ in arrival.columns],
        "unit": wanted.unit or UNITS[0],
        "problem": problem,
    }
    return render(request, "catalogue/trial.html", **values)


def _review_page(request: Request, hub: Hub, caller: Caller, arrival: Arrival, wanted: Wanted) -> Response:
    with hub.database.reading() as db:
        known = next((row for row in reading.populations_of(db, caller) if row.name == wanted.population), None)
    money = None if known is None else reading.money_of(hub, known.name)
    budget = wanted.budget if money is None else money.total
    people = wanted.people if known is None else known.people
    people = people or (wanted.declaration.get("size") if wanted.declaration.get("unit") is None else None)
    values: dict[str, Any] = {
        "arrival": arrival,
        "wanted": wanted,
        "trial": None if wanted.public else trial_reading(hub, caller, arrival.id, wanted),
        "known": known,
        "unit": (wanted.unit or UNITS[0]) if known is None else known.unit,
        "money": money,
        "budget": budget,
        "told": None if budget is None else guidance(budget, people, hub.settings.max_delta),
        "over": None if budget is None or not wanted.window else in_all([budget] * 4),
        "left_out": _left_out(arrival, wanted.declaration.get("columns", {})),
    }
    return render(request, "catalogue/review.html", **values)


def _filled_from(request: Request, hub: Hub, caller: Caller, number: str, name: str, content: bytes) -> Response:
    _, arrival = request_gettext(request), _own(hub, caller, number)
    columns = columns_of(arrival)

    def fill() -> Filled:
        return from_file(hub, typed_so_far(arrival, columns, _), columns, name, content, _)

    return _filled(request, hub, caller, arrival, fill)
