"""The pages: what each column is, a trial for the owner's eyes, the release, what was released."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.ids import new_secret
from cloister.hub.policy import parse_policy
from cloister.hub.problems import Missing, Problem, problem_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.access import facts_of
from cloister.hub.services.anonymizing.order import METRICS, SEARCHES
from cloister.hub.services.anonymizing.picture import frontier_svg
from cloister.hub.services.anonymizing.reading import csv_of, seen_table, seen_trial, source_of_table, tables_of
from cloister.hub.services.anonymizing.ready import ACTION, open_for_anonymising
from cloister.hub.services.anonymizing.submitting import look, release_later, try_later
from cloister.hub.services.anonymizing.typed import SIMPLE, order_typed, values_typed
from cloister.hub.services.asking.idempotency import Claim, once
from cloister.hub.services.asking.routing import TICKED, After, Number
from cloister.hub.services.asking.showing import policy_words
from cloister.hub.services.catalogue.reading import search as data_sets_of
from cloister.hub.services.trail import write
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import Form, FormDep
from cloister.hub.web.languages import N_
from cloister.hub.web.render import render, request_gettext

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["pages"]

_PAGE = 30
_FIRST = {**dict.fromkeys(SIMPLE, ""), "k": "5", "suppression": "0.02", "search": "optimal", "metric": "loss"}
"""What an empty form says."""
_OWNER, _SEE, _DOWNLOAD = [needs(ACTION)], [needs("release.see")], [needs("release.download")]
_SEARCHED = {
    "optimal": N_("One level for each column, the best of all"),
    "mondrian": N_("Groups cut to fit (Mondrian)"),
    "local": N_("The best level, refined group by group"),
    "topdown": N_("From the top down"),
    "greedy": N_("Step by step, for many columns"),
}
_MEASURED = {
    "loss": N_("How much of each column is lost"),
    "discernibility": N_("How large the groups are"),
    "entropy": N_("How much information is lost"),
}
_ATTACKERS = {
    "linkage": N_("who is it? (linkage)"),
    "homogeneity": N_("all who look alike are alike (homogeneity)"),
    "background knowledge": N_("one possibility is known to be wrong (background knowledge)"),
    "skewness": N_("much likelier than for others (skewness)"),
    "similarity": N_("different words for much the same (similarity)"),
    "intersection of two releases": N_("two releases together (intersection)"),
    "learner": N_("a model that predicts (learner)"),
}
"""What each attacker asks."""


def pages() -> APIRouter:
    """The routes."""
    router = APIRouter()
    _ordering(router)
    _reading(router)
    return router


def _ordering(router: APIRouter) -> None:
    @router.get("/anonymise", dependencies=_OWNER)
    def start(request: Request, hub: HubDep, caller: CallerDep, about: Annotated[str, Query(max_length=63)] = "") -> Response:
        """What each column of a data set is."""
        return _page(request, hub, caller, {"table": about})

    @router.post("/anonymise/trials", dependencies=[TICKED, *_OWNER])
    def attempt(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """A trial: to the page of its job."""
        return _submitted(request, hub, caller, form, release=False)

    @router.get("/anonymise/trials/{number}", dependencies=_OWNER)
    def trial(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """What k would cost; the hierarchies; the release."""
        with hub.database.reading() as db:
            row, found = seen_trial(hub, db, caller, number)
        return _page(request, hub, caller, values_typed(row.order), order=row.order, found=found)

    @router.post("/anonymise", dependencies=[TICKED, *_OWNER])
    def release(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """The release: to the page of its job."""
        return _submitted(request, hub, caller, form, release=True)


def _reading(router: APIRouter) -> None:
    @router.get("/anonymised", dependencies=_SEE)
    def tables(request: Request, hub: HubDep, caller: CallerDep, after: After = "") -> Response:
        """What was released."""
        with hub.database.reading() as db:
            rows = tables_of(hub, db, caller, after=after, limit=_PAGE + 1)
        older = f"/anonymised?after={rows[_PAGE - 1].id}" if len(rows) > _PAGE else ""
        return render(request, "anonymizing/tables.html", tables=rows[:_PAGE], older=older, paged=bool(after))

    @router.get("/anonymised/{number}", dependencies=_SEE)
    def table(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Its report, its certificate, its rows."""
        with hub.database.reading() as db:
            row = seen_table(hub, db, caller, number)
            data_sets = facts_of(hub, db).data_sets
            made = db.get(DataSet, row.made)
        policy = policy_words(parse_policy(row.policy), data_sets, request_gettext(request))
        there = made is not None and made.state != "deleted"
        return render(
            request,
            "anonymizing/table.html",
            row=row,
            policy=policy,
            made=made if there else None,
            searches=_SEARCHED,
            attackers=_ATTACKERS,
        )

    @router.get("/anonymised/{number}/download", dependencies=_DOWNLOAD)
    def download(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """The rows as CSV."""
        with hub.database.reading() as db:
            row = seen_table(hub, db, caller, number, "release.download")
            name, source = source_of_table(hub, db, row)
        _left(hub, caller, row.id, row.data_sets, row.purpose, "csv")
        headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
        return StreamingResponse(csv_of(name, source), headers=headers, media_type="text/csv; charset=utf-8")

    @router.get("/anonymised/{number}/{paper}", dependencies=_DOWNLOAD)
    def paper(hub: HubDep, caller: CallerDep, number: Number, paper: str) -> Response:
        """The report or the certificate: a page that stands alone, to print and to sign."""
        with hub.database.reading() as db:
            row = seen_table(hub, db, caller, number, "release.download")
        papers = {"report": row.report_page, "certificate": row.certificate_page}
        if paper not in papers:
            raise Missing(
                "There is no such paper", why="it is neither a report nor a certificate", instead=f"/anonymised/{row.id}"
            )
        _left(hub, caller, row.id, row.data_sets, row.purpose, paper)
        headers = {"Content-Disposition": f'attachment; filename="{paper}-{row.id}.html"'}
        return Response(papers[paper].encode(), headers=headers, media_type="text/html; charset=utf-8")


def _left(hub: Hub, caller: Caller, number: str, data_sets: list[str], purpose: str, form: str) -> None:
    """Write down that something left, before it does."""
    with hub.database.begin() as db:
        write(
            db,
            hub,
            caller,
            "release.download",
            kind="anonymized-table",
            object_id=number,
            purpose=purpose,
            form=form,
            data_sets=list(data_sets),
        )


def _submitted(request: Request, hub: Hub, caller: Caller, form: Form, *, release: bool) -> Response:
    try:
        key = form.text("key", most=60)
        if not key:
            raise InvalidParameter("The table was refused", why="its form has no key", instead="load the page again: /anonymise")
        with hub.database.reading() as db:
            table = open_for_anonymising(hub, db, caller, form.text("table", most=63))
        order = order_typed(form, list(table.columns))

        def work(claim: Claim) -> tuple[int, bytes]:
            look(hub, caller, order)
            with hub.database.begin() as db:
                job = (
                    release_later(db, hub, caller, order, understood=form.flag("understood"))
                    if release
                    else try_later(db, hub, caller, order)
                )
                body = json.dumps({"job": job}).encode()
                claim.store(db, 202, body)
            return 202, body

        _, body = once(hub, caller, f"form {key}", repr((release, order)).encode(), work)
    except CloisterError as error:
        problem = problem_of(error)
        return _page(request, hub, caller, {name: form.get(name, "") for name in form}, form=form, problem=problem)
    return go(request, f"/jobs/{json.loads(body)['job']}")


def _page(
    request: Request,
    hub: Hub,
    caller: Caller,
    values: dict[str, str],
    *,
    order: dict[str, Any] | None = None,
    found: dict[str, Any] | None = None,
    form: Form | None = None,
    problem: Problem | None = None,
) -> Response:
    _ = request_gettext(request)
    with hub.database.reading() as db:
        own, _more = data_sets_of(hub, db, caller, mine=True, limit=200)
        names = [each.row.name for each in own if not each.row.public and each.row.state == "open"]
        name = values.get("table") or (names[0] if names else "")
        table = None
        if name in names:
            try:
                table = open_for_anonymising(hub, db, caller, name)
            except CloisterError as error:
                problem = problem or problem_of(error)
    parts, lines = (order or {}).get("parts", {}), (order or {}).get("hierarchies", {})
    columns = []
    for place, (column, domain) in enumerate(table.columns.items() if table is not None else ()):
        columns.append(
            {
                "name": column,
                "kind": domain.kind,
                "part": form.get(f"part_{place}", "") if form is not None else parts.get(column, "kept" if found else "quasi"),
                "lines": form.get(f"lines_{place}", "") if form is not None else lines.get(column, ""),
            }
        )
    picture = ""
    if found is not None:
        words = {"risk": _("chance that the most exposed person is found"), "loss": _("share of the columns that is lost")}
        picture = frontier_svg(found["points"], words)
    return render(
        request,
        "anonymizing/order.html",
        status=200 if problem is None else problem.status,
        values={**_FIRST, **values, "table": name},
        names=names,
        columns=columns,
        searches=[(each, _(_SEARCHED[each])) for each in SEARCHES],
        metrics=[(each, _(_MEASURED[each])) for each in METRICS],
        found=found,
        picture=picture,
        key=new_secret(),
        problem=problem,
    )
