"""The owner's pages of a data set: versions, policy, uses, integrity; and what can be done with it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Path, Request
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, Conflict
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy.facts import SENSITIVITIES
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import UnreadableView, unreadable_views
from cloister.hub.platform.catalogue import managing, reading
from cloister.hub.platform.catalogue.filling import declared_by, filled
from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.platform.catalogue.pages import Name
from cloister.hub.platform.catalogue.shared import others_of
from cloister.hub.platform.catalogue.typed import KINDS, WideFormDep, declaration_typed, keep, policy_typed, typed_of
from cloister.hub.platform.catalogue.versions import opened_again, redeclare, was_charged
from cloister.hub.platform.catalogue.windows import column_of, next_window, windows_of
from cloister.hub.platform.trail import attempts, titles
from cloister.hub.problems import Problem, problem_of
from cloister.hub.records.accounts import names_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import is_readable, parts_of, policies_in_row, readable_parts
from cloister.hub.storage import HeaderColumn
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages

_NOT_TYPED = ("prohibitions", "forbidden", "sources")
"""Parts of a policy that the form does not show, and that it therefore leaves as they are."""
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


def add(routes: Pages) -> None:
    @routes.get("/datasets/{name}/manage", "dataset.manage")
    def manage(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        return manage_page(request, hub, caller, name)

    @routes.get("/datasets/{name}/reading", "dataset.manage")
    def read(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        try:
            row, report = managing.preparation_report(hub, caller, name)
        except Conflict as error:
            return manage_page(request, hub, caller, name, problem_of(error))
        with hub.database.reading() as db:
            unit = reading.unit_of(db, row.population)
        values: dict[str, Any] = {"max_rows": row.declaration.get("max_rows") or 1, "during": row.declaration.get("during")}
        return render(request, "catalogue/as_read.html", row=row, report=report, unit=unit, **values)

    @routes.get("/datasets/{name}/declaration", "dataset.manage")
    def declaration(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        return _declaration_page(request, hub, caller, name)

    @routes.post("/datasets/{name}/declaration", "dataset.manage", own_check=True)
    def redeclared(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: WideFormDep) -> Response:
        try:
            row, schema = opened_again(hub, caller, name)
        except CloisterError as error:
            return manage_page(request, hub, caller, name, problem_of(error))
        columns = _columns_of(schema)
        typed = keep(form, len(columns))
        try:
            if form.text("fill"):
                found = filled(hub, caller, typed, columns, form, request_gettext(request))
                return _declaration_page(request, hub, caller, name, found.typed, said=found.said)
            wanted, wrong = declaration_typed(typed, columns, row.declaration)
            if wanted is None:
                return _declaration_page(request, hub, caller, name, typed, wrong)
            number = redeclare(hub, caller, name, wanted, row_is_person=typed.get("row_is_person") == "yes")
        except CloisterError as error:  # what was typed stays
            return _declaration_page(request, hub, caller, name, typed, problem=problem_of(error))
        said = request_gettext(request)("Queries now read version %(number)s, as it is declared here.", number=number)
        return go(request, f"/datasets/{name}/manage", said)

    @routes.post("/datasets/{name}/describe", "dataset.manage")
    def describe(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        def act(hub: Hub, db: Db, caller: Caller, row: DataSet) -> None:
            if form.text("seen") not in ("", str(row.changed)):  # a policy that was written since would go
                raise Conflict("Nothing was changed", why="it was changed meanwhile", instead=f"/datasets/{name}/manage")
            parts = parts_of(row)
            kept = {part: value for part, value in _staying(parts.get("policy")).items() if part in _NOT_TYPED}
            columns = parts.get("columns", {})
            if form.flag("forget"):
                columns = {name: each for name, each in _columns(row).items() if is_readable(each)}
            policy = policy_typed(keep(form, 0), lambda names: reading.names_to_ids(hub, db, caller, names))
            texts = {each: form.text(each, most=most) for each, most in (("title", 10_000), ("about", 5000), ("provider", 320))}
            managing.describe(hub, db, caller, row, metadata={"policy": kept | policy, "columns": columns}, **texts)

        return _done(request, hub, caller, name, act, request_gettext(request)("The description was saved."), form)

    @routes.post("/datasets/{name}/list", "dataset.manage")
    def listed(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        _, listed = request_gettext(request), form.flag("listed")
        said = _("It is listed in the catalogue.") if listed else _("It is listed only for people with a grant.")
        return _done(request, hub, caller, name, partial(managing.list_to_everybody, listed=listed), said)

    @routes.post("/datasets/{name}/close", "dataset.manage")
    def close(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        said = request_gettext(request)("It is closed: no one can query it any more.")
        return _done(request, hub, caller, name, managing.close, said)

    @routes.post("/datasets/{name}/open", "dataset.manage")
    def open_again(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        return _done(request, hub, caller, name, managing.reopen, request_gettext(request)("It is open again."))

    @routes.post("/datasets/{name}/check", "dataset.manage")
    def check(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        with hub.database.reading() as db:
            number = reading.owned(hub, db, caller, name).id
        error = managing.integrity(hub, caller, number)
        if error is not None:
            return manage_page(request, hub, caller, name, problem_of(error))
        return go(request, f"/datasets/{name}/manage", request_gettext(request)("The rows are what was stored."))

    @routes.post("/datasets/{name}/versions/{number}/destroy", "dataset.manage")
    def destroy(request: Request, hub: HubDep, caller: PersonDep, name: Name, number: _Number, form: FormDep) -> Response:
        with hub.database.reading() as db:
            data_set = reading.owned(hub, db, caller, name).id
        try:
            managing.destroy_old(hub, caller, data_set, number)
        except CloisterError as error:
            return manage_page(request, hub, caller, name, problem_of(error))
        said = request_gettext(request)("The key is destroyed: no one can read that version again.")
        return go(request, f"/datasets/{name}/manage", said)

    @routes.post("/datasets/{name}/delete", "dataset.delete")
    def delete(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        try:
            managing.delete(hub, caller, name, form.text("confirmed"))
        except CloisterError as error:
            return manage_page(request, hub, caller, name, problem_of(error))
        return go(request, "/datasets", request_gettext(request)("It is deleted: its keys are destroyed, then its files."))


def manage_page(
    request: Request, hub: Hub, caller: Caller, name: str, problem: Problem | None = None, form: Any = ()
) -> Response:
    """The owner's page, with what was wrong above it, and what was typed into the form about the data set."""
    with hub.database.reading() as db:
        row = reading.owned(hub, db, caller, name)
        live = live_of(hub)
        live.renew(db)
        policy = reading.policy_of(row)
        uses = reading.uses_of(db, row)
        shared = others_of(db, row)
        values: dict[str, Any] = {
            "row": row,
            "versions": managing.versions_of(db, row),
            "listed": managing.listing_of(db, row) is not None,
            "uses": uses,
            "people": names_of(db, [each.person for each in uses]),
            "windows": windows_of(db, row),
            "next_window": next_window(db, row),
            "sharing": managing.sharing(db, row),
            "unreadable": _unreadable(hub, db, row, request_gettext(request)),
            "forgettable": _forgettable(row),
            "shared": shared,
            "shared_names": [each.name for each in shared or () if each.owner == caller.id],
        }
        told = {"retention": reading.last_day(policy) or "", "combinable_with": _names_of(db, policy.combinable_with)}
    told |= {each: getattr(row, each) for each in ("title", "about", "provider")} | {"sensitivity": policy.sensitivity or ""}
    told |= {each: ", ".join(sorted(getattr(policy, each) or ())) for each in ("purposes", "consent", "labels")}
    broken = live.closed_for.get(name) if row.state == "open" else None
    values |= {
        "problem": problem,
        "policy": policy,
        "typed": told | dict(form),
        "sensitivities": SENSITIVITIES[1:],
        "money": reading.money_of(hub, row.population),
        "broken": None if broken is None else problem_of(broken),
        "titles": titles(),
        "attempts": attempts(),
        "column": column_of(row.window),
    }
    return render(request, "catalogue/manage.html", **values)


def _declaration_page(
    request: Request,
    hub: Hub,
    caller: Caller,
    name: str,
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, CloisterError] | None = None,
    said: str = "",
    problem: Problem | None = None,
) -> Response:
    """The declaration, to be opened again."""
    try:
        row, schema = opened_again(hub, caller, name)
    except CloisterError as error:
        return manage_page(request, hub, caller, name, problem_of(error))
    columns = _columns_of(schema)
    with hub.database.reading() as db:
        others = [each for each in declared_by(db, caller) if each != name]
    refused = [(field, problem_of(error)) for field, error in (wrong or {}).items()]
    values: dict[str, Any] = {
        "row": row,
        "columns": columns,
        "typed": typed_of(row.declaration, columns) if typed is None else typed,
        "kinds": KINDS,
        "charged": was_charged(hub, row.population),
        "said": said,
        "others": others,
        "refused": refused,
        "errors": dict(refused),
        "problem": problem,
    }
    return render(request, "catalogue/redeclare.html", status=422 if refused else None, **values)


def _columns_of(schema: Mapping[str, str]) -> list[HeaderColumn]:
    return [HeaderColumn(name=name, kind=kind, suggested="") for name, kind in schema.items()]


def _done(
    request: Request,
    hub: Hub,
    caller: Caller,
    name: str,
    act: Callable[[Hub, Db, Caller, DataSet], None],
    said: str,
    form: Any = (),
) -> Response:
    """Do it and go back to the page, or show there what was wrong. Whose it is, is decided in the same transaction."""
    with hub.database.reading() as db:
        reading.owned(hub, db, caller, name)
    try:
        with hub.database.begin() as db:
            act(hub, db, caller, reading.owned(hub, db, caller, name))
    except CloisterError as error:
        return manage_page(request, hub, caller, name, problem_of(error), form)
    return go(request, f"/datasets/{name}/manage", said)


def _unreadable(hub: Hub, db: Db, row: DataSet, _: Callable[..., str]) -> list[UnreadableView]:
    return unreadable_views(db, replace(facts_of(hub, db), unreadable=tuple(policies_in_row(row)[1])), _)


def _forgettable(row: DataSet) -> bool:
    """Whether a policy of a column can't be read: the form shows none of them, but can take these away."""
    return not isinstance(parts_of(row).get("columns", {}), Mapping) or not all(map(is_readable, _columns(row).values()))


def _columns(row: DataSet) -> Mapping[str, object]:
    """Column → its policy as it is kept; none where they are kept as something else."""
    columns = parts_of(row).get("columns", {})
    return columns if isinstance(columns, Mapping) else {}


def _staying(policy: object) -> dict[str, Any]:
    """What of a kept policy can stay: what can be read, and where its data come from, which the hub alone writes."""
    sources = {"sources": policy["sources"]} if isinstance(policy, Mapping) and "sources" in policy else {}
    return readable_parts(policy) | sources


def _names_of(db: Db, ids: frozenset[str] | None) -> str:
    """The partners as the form shows them: names, or a dash for none at all."""
    if ids is None:
        return ""
    rows = [db.get(DataSet, each) for each in sorted(ids)]
    return ", ".join(sorted(row.name for row in rows if row is not None)) or "-"
