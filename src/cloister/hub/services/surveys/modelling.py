"""Models of a survey: learnt from its randomised reports by a job, and kept as a release that is shared as any other.

Post-processing: each respondent's own machine has made the promise, and models are computed from reports alone, so no budget is
charged and no respondent's ε grows. Whoever may download the reports of a survey may train on them, as often as they like.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import Conflict, InvalidParameter
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.labels import check_title
from cloister.hub.platform.jobs import caller_of_job, came_of, submit
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.surveys import HeldSurvey, SurveyReport
from cloister.hub.releases.deriving import keep_derived
from cloister.hub.releases.kinds import ReleaseKind, View, json_file
from cloister.hub.releases.shapes import Line as ReleaseLine
from cloister.hub.service import JobType, Progress
from cloister.hub.services.surveys.composing import of_text
from cloister.hub.services.surveys.counting import answers_of
from cloister.hub.services.surveys.drafts import seen_survey
from cloister.hub.services.surveys.results import answer_text
from cloister.hub.web.formats import brief
from cloister.hub.web.languages import N_
from cloister.hub.work.recheck import present
from cloister.hub.work.submitting import submit_once
from cloister.local.survey.models import Answers, Chances, check_roles, model_from_json
from cloister.stored import Stored, canonical

_JOB = "survey.model"
_MOST_CELLS = 10_000_000
"""Reports times answers that the questions of one model have: some 80 MB, in a few copies."""
_WIDEST = 2_000
"""Answers that a regression is on: seconds, for what grows by their cube."""
METHODS = {"naive-bayes": N_("Naive Bayes: which answer somebody gives"), "regression": N_("Regression: a number")}
"""By the name in orders."""


@dataclass(frozen=True, kw_only=True)
class SurveyTraining:
    """A model of one's own survey: which answer, or which number, by the answers to other questions. Nothing is spent."""

    __pydantic_config__ = example(method="naive-bayes", target="copied", features=["year"], title="Who copies") | {
        "extra": "forbid"
    }

    method: Literal["naive-bayes", "regression"]
    target: Annotated[str, Field(max_length=200)]
    features: Annotated[tuple[str, ...], Field(min_length=1, max_length=50)]
    title: Annotated[str, Field(max_length=200)] = ""


_ORDER = Stored(SurveyTraining, "SurveyTraining", "method", "target", "features", "title")
"""As a job holds it."""


def submit_training(hub: Hub, caller: Caller, key: str, number: str, order: SurveyTraining) -> str:
    """The id of the job. What could not be learnt is refused here, by the questions alone and by how many reports there are."""
    check_title(order.title)

    def look() -> HeldSurvey:
        with hub.database.reading() as db:
            row = trainable(hub, db, caller, number)
            survey, n = of_text(row.body), answers_of(db, [row.id])[row.id]
        check_roles(survey, order.target, order.features, n=n, number=order.method == "regression")
        names = {order.target, *order.features}
        cells = n * sum(len(getattr(each, "labels", ())) for each in survey.questions if each.name in names)
        wide = sum(len(getattr(survey.question(name), "labels", ())) for name in order.features)
        if cells > _MOST_CELLS or (order.method == "regression" and wide > _WIDEST):
            raise InvalidParameter(
                "The model is too large",
                why=f"{n:,} reports and the answers to these questions make more than {_MOST_CELLS:,} cells, or a regression on "
                f"more than {_WIDEST:,} answers",
                instead="fewer features, or the reports as a file and the library",
            )
        return row

    told = {**_ORDER.told(order), "features": list(order.features)}
    payload = {"survey": number, "order": told, "came": came_of(caller)}
    request = canonical({"survey": number, **told}, {}).encode()
    return submit_once(
        hub, caller, key, request, look, lambda db, row: submit(hub, db, caller, _JOB, payload, purpose=row.purpose)
    )


def trainable(hub: Hub, db: Db, caller: Caller, number: str) -> HeldSurvey:
    """One's own survey whose reports one may download; a draft has none."""
    row = seen_survey(hub, db, caller, number, "survey.download")
    if row.state == "draft":
        raise Conflict("There are no reports", why="the survey is a draft", instead=f"/surveys/{number}")
    return row


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    told = payload["order"]
    order = _ORDER.made({**told, "features": tuple(told["features"])})
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))
        row = trainable(hub, db, caller, payload["survey"])
        survey = of_text(row.body)
        progress.tell("learning", 0.2)
        # by name, which is chance: of the same reports it is the same model, byte for byte
        wanted = select(SurveyReport.body).where(SurveyReport.survey == row.id).order_by(SurveyReport.id)
        answers = Answers(survey, db.scalars(wanted))
    learn = answers.naive_bayes if order.method == "naive-bayes" else answers.regression
    model = learn(order.target, order.features)
    progress.tell("keeping the model", 0.9)
    asked = {each.name: {"text": each.text, "kind": each.kind} for each in survey.questions}
    details = {
        "survey": row.id,
        "survey_title": row.title,
        "method": order.method,
        "target": order.target,
        "features": list(order.features),
        "n": model.n,
        "questions": {name: asked[name] for name in (order.target, *order.features)},
        "levels": [[level.name, str(level.epsilon)] for level in survey.levels],
        "cap": row.draft["cap"],
    }

    def result(kept: str) -> dict[str, Any]:
        return {"survey_model": kept, "href": f"{SURVEY_MODEL.path}/{kept}"}

    def finish(db: Db, kept: str) -> None:
        trainable(hub, db, caller, row.id)  # as they are now
        progress.finish(db, result(kept))

    how: dict[str, Any] = {"body": model.to_json().encode(), "details": details, "title": order.title, "purpose": row.purpose}
    return result(keep_derived(hub, caller, SURVEY_MODEL, (), **how, finish=finish))


TRAIN = JobType(kind=_JOB, title=N_("Model of a survey"), run=_run)


class SurveyModelLine(ReleaseLine):
    """One model of a survey, without what it learnt."""

    survey: str
    method: str
    target: str
    features: list[str]
    n: Annotated[int, Field(description="Reports that it was learnt from.")]


class SurveyModelWhole(SurveyModelLine):
    """One model: `model` is its portable text, which `cloister.local.survey.models.model_from_json` reads; `levels` and `cap` are
    what each respondent's own machine has promised."""

    model: str
    levels: list[list[str]]
    cap: str


def foretell(row: StoredRelease, answers: Sequence[Mapping[str, str]]) -> list[Any]:
    """The target of each of these answers. What the model knows no question for is refused."""
    for each in answers:
        unknown = [name for name in each if name not in row.details["features"]]
        if unknown:
            why = "the model learnt from no question of that name"
            raise InvalidParameter(
                f"The answer to {unknown[0][:60]!r} is invalid", why=why, instead=", ".join(row.details["features"])
            )
    return list(model_from_json(row.body.decode()).predict(answers))


def _shown(view: View) -> dict[str, Any]:
    details, _ = view.row.details, view.language.gettext
    model, asked = model_from_json(view.row.body.decode()), details["questions"]

    def said(name: str, answer: str) -> str:
        return answer_text(answer, asked[name]["kind"], _)

    heads, parts = list[str](), list[dict[str, Any]]()
    if isinstance(model, Chances):
        heads = [said(model.target, each) for each in model.classes]
        for name, (labels, table) in model.tables.items():
            lines = [
                (label, said(name, label), [f"{100 * each:.1f} %" for each in row])
                for label, row in zip(labels, table, strict=True)
            ]
            parts.append({"name": name, "text": asked[name]["text"], "lines": lines, "margin": 100 * model.margins[name]})
        guess = [(head, f"{100 * share:.1f} %") for head, share in zip(heads, model.shares, strict=True)]
    else:
        for name, added in model.added.items():
            lines = [
                (label, said(name, label), [f"{brief(each, sign='+')} ± {brief(model.margins[name][label], 2)}"])
                for label, each in added.items()
            ]
            parts.append({"name": name, "text": asked[name]["text"], "lines": lines, "margin": None})
        guess = [(_("Mean"), f"{brief(model.base)} ± {brief(model.margin, 2)}")]
    return {
        "details": details,
        "heads": heads,
        "parts": parts,
        "guess": guess,
        "target": asked[model.target]["text"],
        "method": METHODS[details["method"]],
    }


def foretold_text(row: StoredRelease, found: Any, _: Callable[[str], str]) -> str:
    """What is foretold, as the page says it."""
    kind = row.details["questions"][row.details["target"]]["kind"]
    return answer_text(found, kind, _) if isinstance(found, str) else brief(found)


SURVEY_MODEL = ReleaseKind(
    name="survey model",
    path="/survey-models",
    trail="survey-model",
    title=N_("Models of surveys"),
    made_at="/surveys",
    missing=N_("There is no such model"),
    template="surveys/model.html",
    shown=_shown,
    told=lambda view: SurveyModelWhole.of(view.row, model=view.row.body.decode()).model_dump_json().encode(),
    files={"json": json_file("survey-model")},
)
