"""The pages: what each column is, a trial for the owner's eyes, the release."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.caller import CallerDep
from cloister.hub.hub import HubDep
from cloister.hub.platform.trail import left
from cloister.hub.problems import problem_of
from cloister.hub.services.anonymizing.authorised import ACTION, open_for_anonymising
from cloister.hub.services.anonymizing.papers import page_in
from cloister.hub.services.anonymizing.reading import order_of, seen_trial
from cloister.hub.services.anonymizing.releasing import ANONYMISING
from cloister.hub.services.anonymizing.showing import chosen, order_page, order_typed, trial_page
from cloister.hub.services.anonymizing.trying import TRY
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import FormDep
from cloister.hub.web.render import request_language
from cloister.hub.web.routing import Number, Pages, attachment
from cloister.hub.work.ordering import submit_form


def pages() -> APIRouter:
    """The routes."""
    routes = Pages()

    @routes.get("/anonymise", ACTION)
    def start(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        about: Annotated[str, Query(max_length=63)] = "",
        trial: Annotated[str, Query(max_length=32)] = "",
        edit: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """What each column of a data set is; as it was in a trial, where one is named."""
        if not trial:
            return order_page(request, hub, caller, about=about)
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, trial)
        return order_page(request, hub, caller, trial=row, found=found, edit=edit)

    @routes.post("/anonymise/hierarchies", ACTION)
    def drawn(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The form again, with its hierarchies as trees. No row is read."""
        number = form.text("trial", most=32)
        if not number:
            return order_page(request, hub, caller, form=form)
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return order_page(request, hub, caller, form=form, trial=row, found=found)

    @routes.post("/anonymise/trials", ACTION, ticked=True)
    def attempt(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """A trial: to the page of its job."""
        try:
            with hub.database.reading() as db:
                table = open_for_anonymising(hub, db, caller, form.text("table", most=63))
            order = order_typed(form, list(table.columns))
            job = submit_form(hub, caller, ANONYMISING, form, order, (False, order), "/anonymise", job=TRY.kind)
        except CloisterError as error:
            return order_page(request, hub, caller, form=form, problem=problem_of(error))
        return go(request, f"/jobs/{job}")

    @routes.get("/anonymise/trials/{number}", ACTION)
    def trial(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Risk against loss, to choose from; the hierarchies; the release."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return trial_page(request, hub, caller, row, found)

    @routes.get("/anonymise/trials/{number}/risk", ACTION)
    def risk(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """How easily people are found in the rows as they are: a page that stands alone. Exact, for the owner's eyes."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        left(hub, caller, "trial", row.id, [row.data_set], str(row.order["purpose"]), "risk")
        page = page_in(found["page"], request_language(request)).encode()
        return Response(page, headers=attachment(f"risk-{row.order['table']}.html"), media_type="text/html; charset=utf-8")

    @routes.post("/anonymise", ACTION, ticked=True)
    def release(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The release of what was chosen in a trial: to the page of its job."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, form.text("trial", most=32))
        try:
            order = chosen(form, order_of(row, found), found["points"])
            job = submit_form(hub, caller, ANONYMISING, form, order, (True, order), "/anonymise")
        except CloisterError as error:
            return trial_page(request, hub, caller, row, found, form=form, problem=problem_of(error))
        return go(request, f"/jobs/{job}")

    return routes.router
