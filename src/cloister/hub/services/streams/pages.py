"""The pages of streams: the list with the form of a new one, and the live page, which works by reloading where no script runs."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Request
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.ids import new_secret
from cloister.hub.problems import Problem, beside_form, problem_of
from cloister.hub.services.streams.opening import (
    Declared,
    add_device,
    close_stream,
    declared_of,
    devices_of,
    open_stream,
    revoke_device,
    seen_stream,
    streams_of,
)
from cloister.hub.services.streams.showing import shown
from cloister.hub.web.forms import Form, FormDep, go, listed
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import After, Number, Pages
from cloister.hub.work.ordering import whole
from cloister.parsers import json_from

_TEXTS = ("title", "sql", "every", "since", "until", "rho", "purpose")
_NUMBERS = ("most", "hourly")
_KINDS = ("category", "boolean", "integer", "real", "date", "moment")
_PAGE = 50
_ROWS = 3
"""Of columns that are left free."""
_LONGEST = 20_000
_FIRST: dict[str, Any] = {
    "sql": "SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
    "rows": [("room", "category", "hall, attic")],
    "every": "1 hour",
    "rho": "0.5",
    "most": "200",
    "hourly": "1000",
}


def add(routes: Pages) -> None:
    @routes.get("/streams", "stream.see")
    def listed(request: Request, hub: HubDep, caller: PersonDep, after: After = "") -> Response:
        """Those that one may see, and the form of a new one."""
        return _list(request, hub, caller, _FIRST, after=after)

    @routes.post("/streams", "stream.open")
    def open_(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        """Open one: all steps are charged."""
        typed: dict[str, Any] = {name: form.text(name, most=_LONGEST) for name in (*_TEXTS, *_NUMBERS, "columns")}
        rows = zip(*(form.all(f"column-{part}") for part in ("name", "kind", "values")), strict=False)
        typed |= {"shown": form.flag("shown"), "late": "next" if form.flag("next") else "drop"}
        typed["rows"] = [(name.strip(), kind, values) for name, kind, values in rows if name.strip() or values.strip()]
        try:
            key = form.text("key", most=60)
            number = open_stream(hub, caller, _declared(typed), key and f"form {key}")
        except CloisterError as error:
            return _list(request, hub, caller, typed, problem_of(error))
        return go(request, f"/streams/{number}", request_gettext(request)("The stream is open. Add its devices now."))

    @routes.get("/streams/{number}", "stream.see")
    def one(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return _stream(request, hub, caller, number)

    @routes.get("/streams/{number}/fresh", "stream.see")
    def fresh(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        with hub.database.reading() as db:
            told = shown(db, seen_stream(hub, db, caller, number), request_gettext(request))
        return render(request, "streams/live.html", **told)

    @routes.post("/streams/{number}/devices", "stream.manage")
    def add(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """Add a device, whose key is shown once."""
        made: list[str] = []

        def act(db: Db) -> None:
            made[:] = [add_device(hub, db, caller, number, form.text("name", most=200), form.text("person", most=200))[1]]

        return _act(request, hub, caller, number, act, form=form) or _stream(
            request, hub, caller, number, key=made[0], status=201
        )

    @routes.post("/streams/{number}/devices/{device}/revoke", "stream.manage")
    def revoke(request: Request, hub: HubDep, caller: PersonDep, number: Number, device: Number, form: FormDep) -> Response:
        return _act(request, hub, caller, number, lambda db: revoke_device(hub, db, caller, number, device)) or go(
            request, f"/streams/{number}", request_gettext(request)("The key is revoked.")
        )

    @routes.post("/streams/{number}/close", "stream.manage")
    def close(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        return _act(request, hub, caller, number, lambda db: close_stream(hub, db, caller, number)) or go(
            request, f"/streams/{number}", request_gettext(request)("The stream is closed.")
        )


def _declared(typed: dict[str, Any]) -> Declared:
    told: dict[str, Any] = {name: typed[name] for name in (*_TEXTS, "shown", "late")}
    for name in _NUMBERS:
        told[name] = whole(typed[name])
        if not told[name]:
            raise InvalidParameter(f"{name} is invalid", why="it is not a whole number", instead=_FIRST[name])
    try:
        columns = json_from(typed["columns"] or "{}", most=_LONGEST)
    except ValueError:
        columns = None
    if not isinstance(columns, dict):
        why = "the columns are not a JSON object"
        raise InvalidParameter("The stream is invalid", why=why, instead='{"spot": {"kind": "place", …}}')
    for name, kind, values in typed["rows"]:
        if name in columns:
            why = "another column has the same name"
            raise InvalidParameter(f"The column {name!r} is invalid", why=why, instead="another name")
        columns[name] = _column(name, kind, listed(values))
    return Declared(**told, columns=columns)


def _column(name: str, kind: str, values: list[str]) -> dict[str, Any]:
    """A column as its row in the form declares it.

    >>> _column("floor", "integer", ["0", "7"]), _column("room", "category", ["hall", "attic"])
    ({'kind': 'integer', 'low': 0, 'high': 7}, {'kind': 'category', 'values': ['hall', 'attic']})
    """
    wrong = f"The column {name!r} is invalid"
    if not name:
        raise InvalidParameter("A column is invalid", why="it has no name", instead='"room"')
    if kind not in _KINDS:
        raise InvalidParameter(wrong, why="its kind is not known", instead='"category"')
    if kind == "boolean":
        return {"kind": kind}
    if kind == "category":
        if not values:
            raise InvalidParameter(wrong, why="a category has values, separated by commas", instead="hall, attic")
        return {"kind": kind, "values": values}
    read = {"integer": int, "real": float}.get(kind, str)
    try:
        low, high = map(read, values)
    except ValueError:
        bounds = {"integer": "0, 7", "real": "0.5, 9.5", "date": "2026-01-01, 2026-12-31"}
        why = "its lowest and highest value are missing, or cannot be read"
        raise InvalidParameter(wrong, why=why, instead=bounds.get(kind, "2026-01-01T00:00, 2027-01-01T00:00")) from None
    return {"kind": kind, "low": low, "high": high}


def _act(request: Request, hub: Hub, caller: Caller, number: str, act: Callable[[Db], object], **told: Any) -> Response | None:
    try:
        with hub.database.begin() as db:
            act(db)
    except CloisterError as error:
        return _stream(request, hub, caller, number, problem=beside_form(error), **told)
    return None


def _list(
    request: Request, hub: Hub, caller: Caller, typed: Mapping[str, Any], problem: Problem | None = None, after: str = ""
) -> Response:
    with hub.database.reading() as db:
        found = streams_of(hub, db, caller, after=after, limit=_PAGE + 1)
    rows = [{"row": row, "steps": declared_of(row).steps.count} for row in found[:_PAGE]]
    older = f"/streams?after={found[_PAGE - 1].id}" if len(found) > _PAGE else ""
    now = hub.now().replace(minute=0, second=0, microsecond=0)
    empty = dict.fromkeys(("until", "title", "purpose", "columns", "shown", "late"), "")
    filled = {"since": now.isoformat(), **empty, **typed}
    filled["rows"] = [*filled["rows"], *[("", "category", "")] * _ROWS]
    told: dict[str, Any] = {"streams": rows, "typed": filled, "opens": caller.has("owner"), "problem": problem, "kinds": _KINDS}
    told |= {"older": older, "paged": bool(after), "key": new_secret()}
    return render(request, "streams/list.html", **told)


def _stream(request: Request, hub: Hub, caller: Caller, number: str, *, form: Form | None = None, **told: Any) -> Response:
    with hub.database.reading() as db:
        row = seen_stream(hub, db, caller, number)
        devices = devices_of(db, row.id) if row.owner == caller.id else None
        typed = {name: form.get(name, "") if form else "" for name in ("name", "person")}
        told = {"key": "", "problem": None, "devices": devices, "typed": typed, **told}
        return render(request, "streams/stream.html", **shown(db, row, request_gettext(request)), **told)
