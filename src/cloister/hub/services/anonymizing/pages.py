"""The pages: what each column is, a trial for the owner's eyes, the release, what was released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.problems import Missing, problem_of
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import policy_in
from cloister.hub.releases.words import policy_words
from cloister.hub.services.access import facts_of
from cloister.hub.services.anonymizing.authorised import ACTION, open_for_anonymising
from cloister.hub.services.anonymizing.order import ORDER, Order
from cloister.hub.services.anonymizing.papers import page_in, words_in
from cloister.hub.services.anonymizing.reading import order_of, rows_sent, seen_table, seen_trial, source_of_table, tables_of
from cloister.hub.services.anonymizing.showing import order_page, trial_page
from cloister.hub.services.anonymizing.submitting import look, release_later, try_later
from cloister.hub.services.anonymizing.typed import chosen, order_typed
from cloister.hub.services.anonymizing.words import ATTACKERS, LOSSES, SEARCHED
from cloister.hub.services.trail import left
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import Form, FormDep
from cloister.hub.web.render import render, request_gettext, request_language
from cloister.hub.web.routing import TICKED, After, Number
from cloister.hub.work.submitting import submit_once
from cloister.stored import canonical

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["pages"]

_PAGE = 30
_OWNER, _SEE, _DOWNLOAD = [needs(ACTION)], [needs("release.see")], [needs("release.download")]


def pages() -> APIRouter:
    """The routes."""
    router = APIRouter()
    _ordering(router)
    _trying(router)
    _reading(router)
    return router


def _ordering(router: APIRouter) -> None:
    @router.get("/anonymise", dependencies=_OWNER)
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

    @router.post("/anonymise/hierarchies", dependencies=_OWNER)
    def drawn(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The form again, with its hierarchies as trees. No row is read."""
        number = form.text("trial", most=32)
        if not number:
            return order_page(request, hub, caller, form=form)
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return order_page(request, hub, caller, form=form, trial=row, found=found)


def _trying(router: APIRouter) -> None:
    @router.post("/anonymise/trials", dependencies=[TICKED, *_OWNER])
    def attempt(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """A trial: to the page of its job."""
        try:
            with hub.database.reading() as db:
                table = open_for_anonymising(hub, db, caller, form.text("table", most=63))
            order = order_typed(form, list(table.columns))
            job = _submitted(hub, caller, form, order, release=False)
        except CloisterError as error:
            return order_page(request, hub, caller, form=form, problem=problem_of(error))
        return go(request, f"/jobs/{job}")

    @router.get("/anonymise/trials/{number}", dependencies=_OWNER)
    def trial(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Risk against loss, to choose from; the hierarchies; the release."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return trial_page(request, hub, caller, row, found)

    @router.get("/anonymise/trials/{number}/risk", dependencies=_OWNER)
    def risk(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """How easily people are found in the rows as they are: a page that stands alone. Exact, for the owner's eyes."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        left(hub, caller, "trial", row.id, [row.data_set], str(row.order["purpose"]), "risk")
        return _paper(request, found["page"], f"risk-{row.order['table']}")

    @router.post("/anonymise", dependencies=[TICKED, *_OWNER])
    def release(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The release of what was chosen in a trial: to the page of its job."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, form.text("trial", most=32))
        try:
            job = _submitted(hub, caller, form, chosen(form, order_of(row, found), found["points"]), release=True)
        except CloisterError as error:
            return trial_page(request, hub, caller, row, found, form=form, problem=problem_of(error))
        return go(request, f"/jobs/{job}")


def _submitted(hub: Hub, caller: Caller, form: Form, order: Order, *, release: bool) -> str:
    """The id of the job; a form that is sent twice makes one."""
    key = form.text("key", most=60)
    if not key:
        raise InvalidParameter("The table is invalid", why="its form has no key", instead="load the page again: /anonymise")

    def later(db: Db, _: None) -> str:
        if not release:
            return try_later(db, hub, caller, order)
        return release_later(db, hub, caller, order, understood=form.flag("understood"))

    request = canonical((release, order), {Order: ORDER}).encode()
    return submit_once(hub, caller, f"form {key}", request, lambda: look(hub, caller, order), later)


def _reading(router: APIRouter) -> None:
    @router.get("/anonymised", dependencies=_SEE)
    def tables(request: Request, hub: HubDep, caller: CallerDep, after: After = "") -> Response:
        """What was released."""
        with hub.database.reading() as db:
            rows = tables_of(hub, db, caller, after=after, limit=_PAGE + 1)
        older = f"/anonymised?after={rows[_PAGE - 1].id}" if len(rows) > _PAGE else ""
        may_make = "owner" in caller.roles
        return render(request, "anonymizing/tables.html", tables=rows[:_PAGE], older=older, paged=bool(after), may_make=may_make)

    @router.get("/anonymised/{number}", dependencies=_SEE)
    def table(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Its report, its certificate, its rows."""
        with hub.database.reading() as db:
            row = seen_table(hub, db, caller, number)
            data_sets = facts_of(hub, db).data_sets
            made, by = db.get(DataSet, row.made), db.get(Person, row.person)
        policy = policy_words(policy_in(row.policy), data_sets, request_gettext(request))
        there = made is not None and made.state != "deleted"
        return render(
            request,
            "anonymizing/table.html",
            row=row,
            policy=policy,
            made=made if there else None,
            own=row.person == caller.id,
            by=by.name if by is not None else "",
            searches=SEARCHED,
            attackers=ATTACKERS,
            losses=LOSSES,
            told=words_in(request_language(request)),
        )

    @router.get("/anonymised/{number}/download", dependencies=_DOWNLOAD)
    def download(
        hub: HubDep, caller: CallerDep, number: Number, form: Annotated[Literal["csv", "parquet"], Query()] = "csv"
    ) -> Response:
        """The rows as CSV or as Parquet."""
        with hub.database.reading() as db:
            row = seen_table(hub, db, caller, number, "release.download")
            name, source = source_of_table(hub, db, row)
        left(hub, caller, "anonymized-table", row.id, row.data_sets, row.purpose, form)
        return rows_sent(name, source, form)

    @router.get("/anonymised/{number}/{paper}", dependencies=_DOWNLOAD)
    def paper(request: Request, hub: HubDep, caller: CallerDep, number: Number, paper: str) -> Response:
        """The report or the certificate: a page that stands alone, to print and to sign."""
        with hub.database.reading() as db:
            row = seen_table(hub, db, caller, number, "release.download")
        papers = {"report": row.report_page, "certificate": row.certificate_page}
        if paper not in papers:
            raise Missing(
                "There is no such document", why="it is neither a report nor a certificate", instead=f"/anonymised/{row.id}"
            )
        left(hub, caller, "anonymized-table", row.id, row.data_sets, row.purpose, paper)
        return _paper(request, papers[paper], f"{paper}-{row.id}")


def _paper(request: Request, page: str, name: str) -> Response:
    """A page that stands alone, in the reader's language."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.html"'}
    return Response(page_in(page, request_language(request)).encode(), headers=headers, media_type="text/html; charset=utf-8")
