"""The page of a release, its chart and files, with whom it is shared; the list of releases; saved questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from sqlalchemy import select
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.caller import Caller, CallerDep
from cloister.hub.guard import check_action, needs
from cloister.hub.guidance import guidance_of
from cloister.hub.hub import Hub, HubDep
from cloister.hub.problems import problem_of
from cloister.hub.records.access import Project
from cloister.hub.records.people import names_of
from cloister.hub.records.policies import policy_in
from cloister.hub.releases.words import policy_words
from cloister.hub.services.access import facts_of
from cloister.hub.services.asking.api_releases import file_of
from cloister.hub.services.asking.charts import alt_text, chart_svg, has_chart
from cloister.hub.services.asking.downloads import Form
from cloister.hub.services.asking.naming import asked
from cloister.hub.services.asking.pages_ask import CONFIDENCES
from cloister.hub.services.asking.pictures import retold
from cloister.hub.services.asking.reading import Which, own_release, releases_of, seen_release, unpacked
from cloister.hub.services.asking.runnable import runnable, titles_of
from cloister.hub.services.asking.saved import remove, saved_of
from cloister.hub.services.asking.sharing import rename, share_with_person, share_with_project, shares_of, withdraw
from cloister.hub.services.asking.showing import mechanism_words, name_of, shown
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import FormDep
from cloister.hub.web.render import render, request_gettext, request_language
from cloister.hub.web.routing import TICKED, After, Confidence, Number
from cloister.hub.web.speaking import voiced

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

__all__ = ["routes"]

_PAGE = 30


def routes(router: APIRouter) -> None:
    """Add them."""
    _lists(router)
    _release(router)
    _acts(router)


def _lists(router: APIRouter) -> None:
    @router.get("/releases", dependencies=[needs("release.see")])
    def releases(
        request: Request,
        hub: HubDep,
        caller: CallerDep,
        which: Which = "mine",
        search: Annotated[str, Query(max_length=200)] = "",
        after: After = "",
    ) -> Response:
        """What was asked: by oneself, shown to one, in one's projects."""
        with hub.database.reading() as db:
            rows = releases_of(hub, db, caller, which=which, search=search, after=after, limit=_PAGE + 1)
            people = names_of(db, [row.person for row in rows])
            algorithms = titles_of(db, [row.algorithm for row in rows])
        more = urlencode({"which": which, "search": search, "after": rows[_PAGE - 1].id}) if len(rows) > _PAGE else ""
        older = f"/releases?{more}" if more else ""
        return render(
            request,
            "asking/releases.html",
            releases=rows[:_PAGE],
            people=people,
            algorithms=algorithms,
            which=which,
            search=search,
            asked=asked,
            older=older,
            paged=bool(after),
        )

    @router.get("/questions", dependencies=[needs("question.see")])
    def questions(request: Request, hub: HubDep, caller: CallerDep, after: After = "") -> Response:
        """Questions that are kept."""
        with hub.database.reading() as db:
            rows = saved_of(db, caller, after=after, limit=_PAGE + 1)
            people = names_of(db, [row.person for row in rows])
            own = {each.id: each.title for each in runnable(hub, db, caller)}
        older = f"/questions?{urlencode({'after': rows[_PAGE - 1].id})}" if len(rows) > _PAGE else ""
        return render(request, "asking/questions.html", questions=rows[:_PAGE], people=people, own=own, older=older)

    @router.post("/questions/{number}/remove", dependencies=[needs("question.manage")])
    def forget(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Keep it no longer."""
        _ = request_gettext(request)
        with hub.database.begin() as db:
            remove(hub, db, caller, number)
        return go(request, "/questions", _("The query was removed. Its answers stay."))


def _release(router: APIRouter) -> None:
    @router.get("/releases/{number}", dependencies=[TICKED, needs("release.see")])
    def release(
        request: Request, hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95, joint: bool = False
    ) -> Response:
        """One release: the table, the chart, the guarantee, where it came from, with whom it is shared."""
        _ = request_gettext(request)
        with hub.database.reading() as db:
            row = seen_release(hub, db, caller, number)
            mine = row.person == caller.id
            shares = shares_of(hub, db, caller, row, _) if mine else []
            people = names_of(db, [row.person])
            algorithm = titles_of(db, [row.algorithm]).get(row.algorithm, "")
            own = select(Project.id, Project.title).where(Project.id.in_(sorted(caller.projects)))
            projects = [(each.id, each.title) for each in db.execute(own.order_by(Project.title))]
            data_sets = facts_of(hub, db).data_sets
            may = {action: _may(hub, db, caller, number, action) for action in ("release.download", "release.share")}
        found = unpacked(row)
        rows = shown(found, confidence, joint=joint)
        return render(
            request,
            "asking/release.html",
            row=row,
            release=found,
            rows=rows,
            mechanism=mechanism_words(found.provenance.mechanism, _),
            name=row.title or asked(row.sql, _) or name_of(found.provenance.table, rows.columns, _),
            confidence=f"{confidence:g}",
            confidences=[(each, f"{100 * float(each):g} %") for each in CONFIDENCES],
            joint=joint,
            chart=has_chart(found),
            alt=alt_text(found, confidence, _) if has_chart(found) else "",
            guidance=guidance_of(found.cost),
            policy=policy_words(policy_in(row.policy), data_sets, _),
            mine=mine,
            may_download=may["release.download"],
            may_share=may["release.share"],
            may_name=_open(caller, "release.share"),
            may_ask=_open(caller, "question.explain"),
            asker=people.get(row.person, ""),
            algorithm=algorithm,
            shares=shares,
            projects=projects,
        )

    @router.get("/releases/{number}/chart.svg", dependencies=[TICKED, needs("release.see")])
    def chart(request: Request, hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95) -> Response:
        """The first statistic by the first key, with bars of error."""
        with hub.database.reading() as db:
            row = seen_release(hub, db, caller, number)
        picture = chart_svg(hub, row, unpacked(row), round(confidence, 4)).decode()
        drawn = retold(picture, request_language(request)).encode()
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
        headers["Vary"] = "Cookie, Accept-Language"
        return Response(drawn, headers=headers, media_type="image/svg+xml")

    @router.get("/releases/{number}/download/{form}", dependencies=[TICKED, needs("release.download")])
    def file(hub: HubDep, caller: CallerDep, number: Number, form: Form, confidence: Confidence = 0.95) -> Response:
        """The release as a file."""
        return file_of(hub, caller, number, form, confidence)


def _acts(router: APIRouter) -> None:
    @router.post("/releases/{number}/share", dependencies=[needs("release.share")])
    def share(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Show it to an address, or to a project; the page says the same whether or not anybody has that address."""
        _ = request_gettext(request)
        project, email = form.text("project", most=40), form.text("email", most=300)
        try:
            with hub.database.begin() as db:
                row = own_release(hub, db, caller, number, "release.share")
                if project:
                    share_with_project(db, hub, caller, row, project)
                else:
                    share_with_person(db, hub, caller, row, email)
        except CloisterError as error:
            return _back(request, number, error)
        if project:
            return go(request, f"/releases/{number}", _("The members of the project see it now."))
        return go(request, f"/releases/{number}", _("The person with this address here sees it now. Send them the link."))

    @router.post("/releases/{number}/withdraw", dependencies=[needs("release.share")])
    def unshare(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Show it no longer."""
        _ = request_gettext(request)
        with hub.database.begin() as db:
            row = own_release(hub, db, caller, number, "release.see")
            withdraw(db, hub, caller, row, email=form.text("email", most=300), project=form.text("project", most=40))
        return go(request, f"/releases/{number}", _("It is no longer shown there."))

    @router.post("/releases/{number}/title", dependencies=[needs("release.share")])
    def title(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Give it a name."""
        _ = request_gettext(request)
        try:
            with hub.database.begin() as db:
                rename(db, hub, caller, own_release(hub, db, caller, number, "release.see"), form.text("title", most=1000))
        except CloisterError as error:
            return _back(request, number, error)
        return go(request, f"/releases/{number}", _("The name was changed."))


def _may(hub: Hub, db: Db, caller: Caller, number: str, action: str) -> bool:
    """Whether the page offers it: the caller's roles have the action, and it is allowed on this release."""
    if not _open(caller, action):
        return False
    try:
        seen_release(hub, db, caller, number, action)
    except CloisterError:
        return False
    return True


def _open(caller: Caller, action: str) -> bool:
    """Whether the caller's roles have an action."""
    try:
        check_action(caller, action)
    except CloisterError:
        return False
    return True


def _back(request: Request, number: str, error: CloisterError) -> Response:
    """To the page of the release, which says what was wrong."""
    problem = problem_of(error)
    if problem.status in (403, 404):
        raise error
    title, why = (voiced(request_language(request), "asking/release.html", each) for each in (problem.title, problem.why))
    return go(request, f"/releases/{number}", f"{title}: {why}.", "bad")
