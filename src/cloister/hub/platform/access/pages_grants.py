"""The owner's pages of a data set's access: the grants as sentences, a form for a new one, and what one person may do."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import CloisterError, Conflict, Missing
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy.facts import DAYS
from cloister.hub.decisions.policy.methods import titled
from cloister.hub.guard import check_action
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access.drafts import PRESETS, Typed, bundles_for, draft_of, grantable, with_purposes
from cloister.hub.platform.access.granting import confirm_in, grant_in, grants_on, newcomers, own_data_set, revoke_in
from cloister.hub.platform.access.names import person_called
from cloister.hub.platform.access.parts import SEEN, Name, done
from cloister.hub.platform.access.requests import to_decide
from cloister.hub.platform.access.views import conflict_views, grant_views, preview, request_views, unreadable_views
from cloister.hub.records.accounts import names_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages
from cloister.privacy import Guarantee

_PRESENT = ("active", "waiting", "unreadable")
_Text = Annotated[str, Query(max_length=320, pattern=SEEN)]


def add(routes: Pages) -> None:
    @routes.get("/datasets/{name}/access", "dataset.grant")
    def access(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        return render(request, "access/grants.html", **_page(request, hub, caller, name))

    @routes.get("/datasets/{name}/access/new", "dataset.grant")
    def form_page(
        request: Request,
        hub: HubDep,
        caller: PersonDep,
        name: Name,
        preset: _Text = "",
        algorithm: _Text = "",
        columns: Annotated[list[str] | None, Query(max_length=500)] = None,
    ) -> Response:
        """The form of a new grant; with what an algorithm needs, where one is to be allowed."""
        typed = {"preset": preset, "algorithms": algorithm, "columns": columns or []}
        return render(request, "access/new.html", **_form_page(hub, caller, name, typed))

    @routes.post("/datasets/{name}/access", "dataset.grant")
    def make(request: Request, hub: HubDep, caller: PersonDep, name: Name, form: FormDep) -> Response:
        _ = request_gettext(request)
        by_address = "@" in form.text("people")

        def act(db: Session) -> None:
            row, which = own_data_set(hub, db, caller, name)
            grant_in(hub, db, caller, which, draft_of(form, budget_of(hub, row)), row=row)

        said, back = _("Access was granted. It applies from the next query on."), f"/datasets/{name}/access"
        if by_address:
            said += " " + _("A grant to an address without an account applies once someone has an account with that address.")
        return done(request, hub, act, back, said, "access/new.html", lambda: _form_page(hub, caller, name, Typed.of(form)))

    @routes.post("/datasets/{name}/access/{grant}/revoke", "dataset.revoke")
    def revoke(request: Request, hub: HubDep, caller: PersonDep, name: Name, grant: Number, form: FormDep) -> Response:
        with hub.database.begin() as db:
            row, _which = own_data_set(hub, db, caller, name, "dataset.revoke")
            if revoke_in(hub, db, caller, grant).object != row.id:
                raise Missing("There is no such grant", why="it is not on this data set", instead=f"/datasets/{name}/access")
        said = request_gettext(request)("The grant was revoked. The next query that needs it is denied.")
        return go(request, f"/datasets/{name}/access", said)

    @routes.post("/datasets/{name}/access/{grant}/confirm", "dataset.grant")
    def confirm(request: Request, hub: HubDep, caller: PersonDep, name: Name, grant: Number, form: FormDep) -> Response:
        """Let those into a grant who joined its project since, of those that the page showed."""
        with hub.database.begin() as db:
            row, which = own_data_set(hub, db, caller, name)
            found = [each for each in grants_on(db, "data-set", row.id) if each.id == grant and each.revoked is None]
            if not any(confirm_in(hub, db, caller, each, which, frozenset(form.all("person"))) for each in found):
                why = "no new member waits for it, or the grant has ended"
                raise Conflict("Nobody was confirmed", why=why, instead=f"/datasets/{name}/access")
        return go(request, f"/datasets/{name}/access", request_gettext(request)("The new members may use it now."))

    @routes.get("/datasets/{name}/access/preview", "dataset.grant")
    def foresee(
        request: Request,
        hub: HubDep,
        caller: PersonDep,
        name: Name,
        person: _Text = "",
        purpose: _Text = "",
        address: _Text = "",
        method: _Text = "",
    ) -> Response:
        """What may this person do?"""
        gettext = request_gettext(request)
        with hub.database.reading() as db:
            row, which = own_data_set(hub, db, caller, name)
            found = person_called(db, which, person.strip()) if person.strip() else None
            given = {"purpose": purpose.strip(), "address": address.strip(), "method": method, "gettext": gettext}
            foreseen = preview(hub, db, found, which, **given) if found is not None else []  # type: ignore[arg-type]
        values: dict[str, Any] = {
            "row": row,
            "found": found,
            "foreseen": foreseen,
            "person": person,
            "purpose": purpose,
            "address": address,
            "method": method,
            "methods": titled(),
        }
        return render(request, "access/preview.html", **values)


def budget_of(hub: Hub, row: DataSet) -> Guarantee | None:
    """The budget of a data set's population; None for a public table."""
    return None if row.population is None else hub.ledger.budget(row.population)


def _page(request: Request, hub: Hub, caller: Caller, name: str) -> dict[str, Any]:
    _ = request_gettext(request)
    with hub.database.reading() as db:
        row, which = own_data_set(hub, db, caller, name)
        given = grants_on(db, "data-set", row.id)
        grants = grant_views(hub, db, given, _, accounts=_sees_people(caller))
        waiting = {each.id: newcomers(db, each) for each in given}
        asked = [each for each in to_decide(hub, db, caller) if each.data_set == row.id]
        facts = facts_of(hub, db)
        unread = [each for each in facts.unreadable if each.kind != "rule" and each.about == row.id]
        return {
            "row": row,
            "waiting": waiting,
            "names": names_of(db, frozenset().union(*waiting.values())),
            "present": [each for each in grants if each.state in _PRESENT],
            "past": [each for each in grants if each.state not in _PRESENT],
            "unreadable": unreadable_views(db, replace(facts, unreadable=tuple(unread)), _),
            "requests": request_views(hub, db, asked, _),
            "conflicts": conflict_views(db, facts, [which], hub.now(), _),
            "bundles": [(key, _(title), _(gives)) for key, title, gives in bundles_for(row)],
            "typed": Typed(with_purposes({}, which)),
            "zone": hub.settings.zone,
        }


def _sees_people(caller: Caller) -> bool:
    """Whether somebody may know who has an account here."""
    try:
        check_action(caller, "people.see")
    except CloisterError:
        return False
    return True


def _form_page(hub: Hub, caller: Caller, name: str, typed: dict[str, Any]) -> dict[str, Any]:
    with hub.database.reading() as db:
        row, which = own_data_set(hub, db, caller, name)
        return {
            "row": row,
            "actions": grantable("data-set"),
            "methods": titled(),
            "days": DAYS,
            "budget": budget_of(hub, row),
            "zone": hub.settings.zone,
            "typed": Typed(with_purposes(_typed(typed), which)),
            "problem": None,
            "columns": sorted(which.columns),
        }


def _typed(given: dict[str, Any]) -> Typed:
    """The fields of the form: those of a preset, under what was typed."""
    preset = PRESETS.get(str(given.get("preset", "")), {})
    rules = preset.get("rules", {})
    first = {
        "role": preset.get("role", ""),
        "actions": list(rules.get("actions", [])),
        "purposes": list(rules.get("purposes", [])),
    }
    return Typed({**first, **given})
