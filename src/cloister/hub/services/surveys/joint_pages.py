"""The pages of joint surveys: the list, one survey from its draft to its sums, and the respondent's page (`respond-joint.js`)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import Query, Request
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.database import of_each
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.problems import Problem, beside_form, problem_of
from cloister.hub.records.surveys import HeldJointSurvey, HeldSurvey
from cloister.hub.services.surveys import drafts, joint
from cloister.hub.services.surveys.composing import options_typed
from cloister.hub.services.surveys.counting import asked, is_open
from cloister.hub.web.forms import Form, FormDep, go, ungrouped
from cloister.hub.web.languages import N_
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import After, Number, Pages
from cloister.privacy import text_of

_PAGE = 30
_TYPED = {"text": "", "epsilon": "1", "options": "", "low": "0", "high": "10"}
_FIRST = {"title": "", "purpose": "", "invited": False}
_ENDS: dict[type, Callable[..., object]] = {HeldSurvey: drafts.close_survey, HeldJointSurvey: joint.close_joint}
_DISCARDED = {HeldSurvey: N_("The draft was discarded."), HeldJointSurvey: N_("The survey was discarded.")}


def add(routes: Pages) -> None:
    of_either(routes, HeldJointSurvey, _list, _one)
    _composing(routes)
    _running(routes)


def of_either(routes: Pages, of: type[drafts.Kind], listing: Callable[..., Response], page: Callable[..., Response]) -> None:
    """What surveys of either kind have: the list, the page of one, its end, and invitations to it."""
    home = drafts.HOMES[of]

    @routes.get(home, "survey.compose")
    def listed(request: Request, hub: HubDep, caller: PersonDep, after: After = "") -> Response:
        return listing(request, hub, caller, after)

    @routes.get(f"{home}/{{number}}", "survey.see")
    def one(
        request: Request, hub: HubDep, caller: PersonDep, number: Number, kind: str = Query("yes-no", max_length=20)
    ) -> Response:
        """A draft, what came in, or the sums."""
        return page(request, hub, caller, number, {"kind": kind})

    @routes.post(f"{home}/{{number}}/close", "survey.manage")
    def close(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said, end = request_gettext(request)("The survey is closed."), _ENDS[of]
        return acted(home, page, request, hub, caller, number, form, said, lambda db: end(hub, db, caller, number))

    @routes.post(f"{home}/{{number}}/drop", "survey.manage")
    def drop(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """Throw a draft away, or a closed joint survey without its helper."""
        with hub.database.begin() as db:
            drafts.drop_draft(of, hub, db, caller, number)
        return go(request, home, request_gettext(request)(_DISCARDED[of]))

    @routes.post(f"{home}/{{number}}/invitations", "survey.manage")
    def invite(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """Make invitations, and show them once."""
        try:
            with hub.database.begin() as db:
                count = whole_typed(form, "count", signed=issubclass(of, HeldJointSurvey))
                tokens = drafts.invite(of, hub, db, caller, number, count)
                row = drafts.seen(of, hub, db, caller, number)
        except CloisterError as error:
            return page(request, hub, caller, number, form, problem=beside_form(error))
        addresses = [f"{link_of(request, row)}#{token}" for token in tokens]
        return render(request, "surveys/invitations.html", status=201, row=row, addresses=addresses, home=home)


def acted(
    home: str,
    page: Callable[..., Response],
    request: Request,
    hub: Hub,
    caller: Caller,
    number: str,
    typed: Mapping[str, str],
    said: str,
    act: Callable[[Db], object],
    then: str = "",
) -> Response:
    """Do it and go back to the page of the survey, which says so; or show there what was wrong, and what was typed."""
    try:
        with hub.database.begin() as db:
            act(db)
    except CloisterError as error:
        return page(request, hub, caller, number, typed, problem=beside_form(error))
    return go(request, f"{home}/{number}{then}", said)


def _composing(routes: Pages) -> None:
    @routes.post("/joint-surveys", "survey.compose")
    def joint_make(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        typed: dict[str, Any] = {"title": form.text("title", most=1000), "purpose": form.text("purpose", most=2000)}
        typed["invited"] = form.flag("invited")
        try:
            with hub.database.begin() as db:
                number = joint.make_joint(hub, db, caller, **typed).id
        except InvalidParameter as error:
            return _list(request, hub, caller, "", typed=typed, problem=problem_of(error))
        return go(request, f"/joint-surveys/{number}", request_gettext(request)("Add the questions now. Nothing is open yet."))

    @routes.post("/joint-surveys/{number}/questions", "survey.manage")
    def joint_ask(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        def act(db: Db) -> None:
            joint.ask(hub, db, caller, number, [_question(form)], more=True)

        said, then = request_gettext(request)("The question was added."), f"?kind={quote(form.text('kind', most=20))}"
        return _act(request, hub, caller, number, form, said, act, then)

    @routes.post("/joint-surveys/{number}/questions/remove", "survey.manage")
    def joint_remove(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said, text = request_gettext(request)("The question was removed."), form.get("text", "")
        return _act(request, hub, caller, number, {}, said, lambda db: joint.remove_question(hub, db, caller, number, text))


def _running(routes: Pages) -> None:
    @routes.post("/joint-surveys/{number}/link", "survey.manage")
    def joint_link(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """Fix the questions, and show the helper's link once."""
        try:
            with hub.database.begin() as db:
                secret = joint.ask_helper(hub, db, caller, number)
        except CloisterError as error:
            return _one(request, hub, caller, number, {}, problem=beside_form(error))
        return _one(request, hub, caller, number, {}, secret=secret)

    @routes.post("/joint-surveys/{number}/open", "survey.manage")
    def joint_open(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said = request_gettext(request)("The survey is open.")
        shown = form.text("fingerprint", most=200)
        return _act(
            request, hub, caller, number, form, said, lambda db: joint.open_joint(hub, db, caller, number, compared=shown)
        )

    @routes.get("/joint-surveys/{number}/fresh", "survey.see")
    def joint_fresh(request: Request, hub: HubDep, caller: PersonDep, number: Number, state: str = "") -> Response:
        """How many answered by now; the page is loaded again where its state is another."""
        with hub.database.reading() as db:
            row = joint.seen_joint(hub, db, caller, number)
            answer = render(request, "surveys/joint_reports.html", reports=joint.reports_of(db, row))
        if state != ("helped" if row.helper and row.state == "joining" else row.state):
            answer.headers["X-Go"] = f"/joint-surveys/{row.id}"
        return answer

    @routes.get("/j/{number}", "survey.answer")
    def joint_respond(request: Request, hub: HubDep, number: Number) -> Response:
        """The survey, for whoever has its link."""
        with hub.database.reading() as db:
            row, taken = asked(db, number, HeldJointSurvey), is_open(db, HeldJointSurvey, number)
        return render(
            request,
            "surveys/respond_joint.html",
            row=row,
            open=taken,
            helper=joint.helper_of(row)["name"],
            total=text_of(joint.survey_of(row).epsilon),
        )


def _question(form: Form) -> dict[str, Any]:
    kind = form.text("kind", most=20)
    said: dict[str, Any] = {"text": form.text("text", most=1000), "kind": kind, "epsilon": form.text("epsilon", most=60)}
    if kind == "choice":
        said["options"] = options_typed(form.text("options", most=60_000))
    return said | ({name: whole_typed(form, name, signed=True) for name in ("low", "high")} if kind == "number" else {})


def whole_typed(form: Form, name: str, *, signed: bool = False) -> int:
    """A whole number as it was typed."""
    text = ungrouped(form.text(name, most=20))
    if not (text.removeprefix("-") if signed else text).isdecimal():
        raise InvalidParameter(f"{name} is invalid", why="it is not a whole number", instead="100")
    return int(text)


def _list(
    request: Request, hub: Hub, caller: Caller, after: str, *, typed: dict[str, Any] | None = None, problem: Problem | None = None
) -> Response:
    with hub.database.reading() as db:
        rows = drafts.own(HeldJointSurvey, db, caller, after=after, limit=_PAGE + 1)
    older = f"/joint-surveys?after={rows[_PAGE - 1].id}" if len(rows) > _PAGE else ""
    told: dict[str, Any] = {"surveys": of_each(rows[:_PAGE], _line), "older": older, "paged": bool(after), "problem": problem}
    return render(request, "surveys/joint_list.html", **told, typed=typed or _FIRST)


def _line(row: HeldJointSurvey) -> dict[str, Any]:
    said = {name: getattr(row, name) for name in ("id", "title", "state", "created")}
    return said | {"questions": len(row.questions), "helper": joint.helper_of(row)["name"]}


def _one(
    request: Request,
    hub: Hub,
    caller: Caller,
    number: str,
    typed: Mapping[str, str],
    *,
    secret: str = "",
    problem: Problem | None = None,
) -> Response:
    with hub.database.reading() as db:
        row = joint.seen_joint(hub, db, caller, number)
        reports = joint.reports_of(db, row)
    kind = typed.get("kind", "yes-no")
    told = {
        "row": row,
        "reports": reports,
        "questions": joint.forecast(row),
        "results": joint.results_of(row) if row.state == "done" else [],
        "total": text_of(joint.survey_of(row).epsilon) if row.questions else "0",
        "helper": joint.helper_of(row),
        "link": link_of(request, row),
        "helper_link": f"{_base(request)}/joint-surveys/{row.id}#{secret}" if secret else "",
        "kinds": joint.KINDS,
        "kind": kind if kind in joint.KINDS else "yes-no",
        "typed": {name: typed.get(name) or first for name, first in _TYPED.items()},
        "count": typed.get("count", "10"),
        "problem": problem,
    }
    return render(request, "surveys/joint.html", status=problem.status if problem else 201 if secret else 200, **told)


_act = partial(acted, "/joint-surveys", _one)


def link_of(request: Request, row: HeldSurvey | HeldJointSurvey) -> str:
    """The address at which people answer."""
    return f"{_base(request)}{drafts.LINKS[type(row)]}/{row.id}"


def _base(request: Request) -> str:
    return str(request.base_url).rstrip("/")
