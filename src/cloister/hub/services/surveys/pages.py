"""The pages of surveys for those who ask: the list, a draft, what came in, invitations, files."""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import Request
from sqlalchemy import func, select
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.database import of_each
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.ids import new_secret
from cloister.hub.problems import Problem, beside_form, problem_of
from cloister.hub.records.surveys import HeldSurvey, SurveyTicket
from cloister.hub.releases.pages import release_page
from cloister.hub.releases.reading import read_release
from cloister.hub.services.surveys import drafts, joint_pages
from cloister.hub.services.surveys.composing import FIELDS, KINDS, composed, levels_typed, of_text, question_typed
from cloister.hub.services.surveys.counting import answers_of, asked, is_open
from cloister.hub.services.surveys.joint_pages import acted, link_of, of_either, whole_typed
from cloister.hub.services.surveys.modelling import (
    METHODS,
    SURVEY_MODEL,
    SurveyTraining,
    foretell,
    foretold_text,
    submit_training,
    trainable,
)
from cloister.hub.services.surveys.results import results_file, results_of, shown, tallied
from cloister.hub.services.surveys.words import looked_for
from cloister.hub.web.formats import brief
from cloister.hub.web.forms import Form, FormDep, go
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Number, Pages
from cloister.local.survey import Number as NumberQuestion
from cloister.local.survey.question import OneOf
from cloister.printable import kept
from cloister.privacy import text_of

_PAGE = 30
_TYPED = ("name", "text", *dict.fromkeys(name for names in FIELDS.values() for name in names))


def add(routes: Pages) -> None:
    of_either(routes, HeldSurvey, _list, _survey)
    _composing(routes)
    _responding(routes)
    _running(routes)
    _learning(routes)
    joint_pages.add(routes)


def _composing(routes: Pages) -> None:
    @routes.post("/surveys", "survey.compose")
    def make(request: Request, hub: HubDep, caller: PersonDep, form: FormDep) -> Response:
        title, purpose = form.text("title", most=1000), form.text("purpose", most=2000)
        try:
            with hub.database.begin() as db:
                told = request_gettext(request)
                number = drafts.make_survey(hub, db, caller, title=title, purpose=purpose, told=told).id
        except InvalidParameter as error:
            return _list(request, hub, caller, "", typed={"title": title, "purpose": purpose}, problem=problem_of(error))
        return go(request, f"/surveys/{number}", request_gettext(request)("Add the questions now. Nothing is open yet."))

    @routes.post("/surveys/{number}", "survey.manage")
    def rewrite(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        def act(db: Db) -> None:
            drafts.rewrite(
                hub,
                db,
                caller,
                number,
                **{name: form.text(name, most=6000) for name in ("title", "purpose", "introduction", "cap")},
                levels=levels_typed(form.all("level")[:8], form.all("epsilon")[:8]),
                hoped=whole_typed(form, "hoped"),
                invited=form.flag("invited"),
            )

        return _act(request, hub, caller, number, form, request_gettext(request)("Saved."), act)

    @routes.post("/surveys/{number}/questions", "survey.manage")
    def add(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        kind = form.text("kind", most=20)

        def act(db: Db) -> None:
            typed = {name: form.text(name, most=60_000) for name in _TYPED}
            said = question_typed(kind, typed, no_answer=form.flag("no_answer"))
            drafts.add_question(hub, db, caller, number, said)

        said = request_gettext(request)("The question was added.")
        return _act(request, hub, caller, number, form, said, act, then=f"?kind={quote(kind)}")

    @routes.post("/surveys/{number}/questions/remove", "survey.manage")
    def remove(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said, name = request_gettext(request)("The question was removed."), form.text("name", most=100)
        return _act(request, hub, caller, number, form, said, lambda db: drafts.remove_question(hub, db, caller, number, name))


def _running(routes: Pages) -> None:
    @routes.post("/surveys/{number}/open", "survey.manage")
    def open_(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        said = request_gettext(request)("The survey is open.")
        return _act(request, hub, caller, number, form, said, lambda db: drafts.open_survey(hub, db, caller, number))

    @routes.get("/surveys/{number}/fresh", "survey.see")
    def fresh(request: Request, hub: HubDep, caller: PersonDep, number: Number, looking: bool = False) -> Response:
        """What came in by now, for the page that shows it; `looking`: which waits for words, and is loaded again with them."""
        with hub.database.begin() as db:
            row = drafts.seen_survey(hub, db, caller, number)
            if row.state == "draft":
                return go(request, f"/surveys/{number}")
            tally = tallied(db, row)
            words = looked_for(hub, db, caller, row, tally)
        results = shown(row, results_of(hub, row.id, tally, words), words, request_gettext(request))
        answer = render(request, "surveys/results.html", row=row, results=results)
        if looking and not words.job:
            answer.headers["X-Go"] = f"/surveys/{row.id}"
        elif row.state == "closed" and not words.job:
            answer.headers["X-Done"] = "1"
        return answer

    @routes.get("/surveys/{number}/results.{form}", "survey.download")
    def results(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: str) -> Response:
        return _file(request, hub, caller, number, form)

    @routes.get("/surveys/{number}/reports.json", "survey.download")
    def reports(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return _file(request, hub, caller, number, "reports")


def _learning(routes: Pages) -> None:
    @routes.get("/surveys/{number}/models", "survey.download")
    def start(request: Request, hub: HubDep, caller: PersonDep, number: Number) -> Response:
        return _order(request, hub, caller, number, {})

    @routes.post("/surveys/{number}/models", "survey.download", ticked=True)
    def train(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """Order it; a form that is sent twice orders once."""
        typed: dict[str, Any] = {name: form.text(name, most=1000) for name in ("method", "target", "title")}
        typed["features"] = tuple(dict.fromkeys(form.all("features")[:50]))
        try:
            if typed["method"] not in METHODS:
                raise InvalidParameter("The method is invalid", why="it is not one of the methods", instead=next(iter(METHODS)))
            job = submit_training(hub, caller, f"form {form.text('key', most=60)}", number, SurveyTraining(**typed))
        except CloisterError as error:
            return _order(request, hub, caller, number, typed, beside_form(error))
        return go(request, f"/jobs/{job}")

    @routes.post("/survey-models/{number}/predictions", "release.see")
    def predict(request: Request, hub: HubDep, caller: PersonDep, number: Number, form: FormDep) -> Response:
        """What the model says of the answers that were chosen, which are kept nowhere."""
        problem, told, chosen = None, dict[str, Any](), dict[str, str]()
        with hub.database.reading() as db:
            row = read_release(hub, db, caller, number, kind=SURVEY_MODEL.name)
        chosen = {name: said for name in row.details["features"] if (said := form.get(f"q {name}", ""))}
        try:
            told["foretold"] = foretold_text(row, foretell(row, [chosen])[0], request_gettext(request))
        except CloisterError as error:
            problem = problem_of(error)
        return release_page(request, hub, caller, number, SURVEY_MODEL, problem=problem, more={"chosen": chosen, **told})


def _order(
    request: Request, hub: Hub, caller: Caller, number: str, typed: Mapping[str, Any], problem: Problem | None = None
) -> Response:
    """The form of a model of a survey."""
    with hub.database.reading() as db:
        row = trainable(hub, db, caller, number)
        n = answers_of(db, [row.id])[row.id]
    survey = of_text(row.body)
    listed = [(each.name, each.text) for each in survey.questions if isinstance(each, OneOf)]
    numbers = [(each.name, each.text) for each in survey.questions if isinstance(each, NumberQuestion) and each.want == "mean"]
    first = {"method": "naive-bayes", "target": "", "features": (), "title": ""}
    how: dict[str, Any] = {"row": row, "n": n, "methods": METHODS, "key": new_secret(), "typed": {**first, **typed}}
    return render(request, "surveys/train.html", problem=problem, listed=listed, targets=[*listed, *numbers], **how)


def _file(request: Request, hub: Hub, caller: Caller, number: str, form: str) -> Response:
    found = results_file(hub, caller, number, form)
    if isinstance(found, Response):
        return found
    said = request_gettext(request)("Not all words are found yet. The file is ready once they stand on this page.")
    return go(request, f"/surveys/{number}", said)


def _list(
    request: Request, hub: Hub, caller: Caller, after: str, *, typed: dict[str, str] | None = None, problem: Problem | None = None
) -> Response:
    with hub.database.reading() as db:
        rows = drafts.surveys_of(db, caller, after=after, limit=_PAGE + 1)
        answers = answers_of(db, [row.id for row in rows])

    def line(row: HeldSurvey) -> dict[str, Any]:
        about = {"id": row.id, "title": row.title, "state": row.state, "created": row.created}
        return about | {"questions": len(row.draft["questions"]), "answers": answers[row.id]}

    surveys = of_each(rows[:_PAGE], line)
    older = f"/surveys?after={rows[_PAGE - 1].id}" if len(rows) > _PAGE else ""
    told: dict[str, Any] = {"surveys": surveys, "older": older, "paged": bool(after), "problem": problem}
    return render(request, "surveys/list.html", **told, typed=typed or {"title": "", "purpose": ""})


def _survey(
    request: Request, hub: Hub, caller: Caller, number: str, typed: Mapping[str, str], *, problem: Problem | None = None
) -> Response:
    with hub.database.begin() as db:  # counting what came in is written down
        row = drafts.seen_survey(hub, db, caller, number)
        if row.state == "draft":
            return render(request, "surveys/draft.html", **_draft(hub, row, typed), problem=problem)
        good = select(func.count()).select_from(SurveyTicket).where(SurveyTicket.survey == row.id, SurveyTicket.used.is_(False))
        unused, tally = db.scalar(good) or 0, tallied(db, row)
        words = looked_for(hub, db, caller, row, tally)
    results = shown(row, results_of(hub, row.id, tally, words), words, request_gettext(request))
    told: dict[str, Any] = {"row": row, "link": link_of(request, row), "unused": unused, "results": results, "problem": problem}
    return render(request, "surveys/survey.html", **told, count=typed.get("count", "10"))


_act = partial(acted, "/surveys", _survey)


def _draft(hub: Hub, row: HeldSurvey, typed: Mapping[str, str]) -> dict[str, Any]:
    kind = typed.get("kind", "")
    kind = kind if kind in KINDS else "yes-no"
    levels = row.draft["levels"]
    questions, too_much = [], []
    total = ""
    if row.draft["questions"]:
        with kept():
            survey = composed(row.title, row.draft)
        margins = {(each.question, each.level): each for each in survey.expected(row.hoped)}
        total = text_of(min(survey.cap, max(survey.spent(level.name) for level in survey.levels)))
        too_much = [level.name for level in survey.levels if level not in survey.for_all]
        questions = [
            {
                "name": question.name,
                "text": question.text,
                "kind": question.kind,
                "answers": list(getattr(question, "options", ()) or getattr(question, "steps", ())),
                "margins": [brief(margins[question.name, level.name].rare) for level in survey.levels],
            }
            for question in survey.questions
        ]
    values = {"most": "", "low": "0", "high": "10", "want": "mean", "rows": "8", "columns": "8", "length": "12"}
    return {
        "row": row,
        "about": _about(row, typed),
        "levels": levels,
        "questions": questions,
        "total": total,
        "too_much": too_much,
        "largest_cap": text_of(drafts.largest_cap(hub)),
        "kinds": KINDS,
        "kind": kind,
        "fields": FIELDS[kind],
        "typed": {name: typed.get(name) or values.get(name, "") for name in _TYPED},
        "no_answer": "text" not in typed or "no_answer" in typed,
    }


def _about(row: HeldSurvey, typed: Mapping[str, str]) -> dict[str, Any]:
    """What a draft says of itself: as it is kept, or as it was typed into a form that was refused."""
    kept = {name: getattr(row, name) for name in ("title", "purpose", "hoped", "invited")} | row.draft
    if not isinstance(typed, Form) or "title" not in typed:
        return kept
    levels = [{"name": name, "epsilon": each} for name, each in zip(typed.all("level"), typed.all("epsilon"), strict=False)]
    return {**kept, **typed, "invited": typed.flag("invited"), "levels": levels[:8]}


def _responding(routes: Pages) -> None:
    """The respondent's page: no account, no cookie that matters, and nothing but randomised values comes back.

    The page itself does the work (`static/respond.js`, the twin of `cloister.local`): it fetches the survey from the API, and
    sends its report there.
    """

    @routes.get("/s/{number}", "survey.answer")
    def page(request: Request, hub: HubDep, number: Number) -> Response:
        """The survey, for whoever has its link."""
        with hub.database.reading() as db:
            row = asked(db, number, HeldSurvey)
            told = {name: getattr(row, name) for name in ("title", "purpose", "invited")}
            told |= {"number": row.id, "open": is_open(db, HeldSurvey, number), "introduction": row.draft["introduction"]}
        return render(request, "surveys/respond.html", **told, kinds=KINDS)
