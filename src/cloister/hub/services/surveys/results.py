"""What the page of a survey shows: estimates with margins, by level and together, pictures, and what to beware of; and the same
as files: estimates, or the randomised reports themselves."""

import csv
import io
import json
import math
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.hub import Caller, Hub
from cloister.hub.records.surveys import HeldSurvey, SurveyReport
from cloister.hub.services.surveys.counting import counted, refused_of
from cloister.hub.services.surveys.drafts import seen_survey, written
from cloister.hub.services.surveys.words import Words, looked_for, words_of
from cloister.hub.spreadsheets import safe
from cloister.hub.web.formats import brief
from cloister.hub.web.languages import N_
from cloister.hub.web.pictures import INK, MAIN, svg_of
from cloister.hub.web.routing import attachment
from cloister.local.survey import Results, Tally
from cloister.local.survey.alike import MEAN
from cloister.local.survey.question import NO_ANSWER
from cloister.printable import json_of

Told = dict[str, Any]
"""Results as plain JSON."""
_PART, _LOCKS, _KEPT = "survey results", "survey locks", 50
_LOCK = threading.Lock()

_ROWS = 40
"""Longer lists show their commonest answers."""
_APART = 0.01
_NOTHING, _TENTH = 0.5, 0.1
_SAID = (N_("a number"), N_("no answer"))
"""What the library calls answers that no researcher wrote."""


def tallied(db: Db, row: HeldSurvey) -> Tally:
    """What came in, counted in this transaction, with what was refused: at the door, or later for a report that was damaged."""
    tally = counted(db, row)
    tally.refused = tally.refused + refused_of(db, row.id)
    return tally


def results_of(hub: Hub, number: str, tally: Tally, words: Words) -> Told:
    """The results of a survey's tally, as the library writes them (`Results.to_dict`); those of questions that ask for words are
    what a job has found, and left out as long as it has not. This is no part of a transaction (others would wait to write), one
    request works it out while others for the same survey wait, and it is kept until another report comes."""
    kept: OrderedDict[tuple[str, int], Told] = hub.parts.setdefault(_PART, OrderedDict())
    locks: defaultdict[str, threading.Lock] = hub.parts.setdefault(_LOCKS, defaultdict(threading.Lock))
    asked = [question.name for question in tally.survey.questions]
    with _LOCK:
        working = locks[number]
    with working:
        with _LOCK:
            told = kept.get((number, tally.n))
        if told is None:
            others = set(asked) - set(words_of(tally.survey))
            told = Results(tally.survey, tally).to_dict(questions=others)
        with _LOCK:
            kept[number, tally.n] = told
            kept.move_to_end((number, tally.n))
            while len(kept) > _KEPT:
                kept.popitem(last=False)
    found: Mapping[str, Any] = words.told or {"questions": [], "alarms": []}
    questions = {each["question"]: each for each in (*told["questions"], *found["questions"])}
    return {
        **told,
        "refused": dict(tally.refused),
        "questions": [questions[name] for name in asked if name in questions],
        "alarms": sorted((*told["alarms"], *found["alarms"]), key=lambda each: asked.index(each["question"])),
    }


def as_csv(results: Told) -> str:
    """A line for each answer, and one for a mean, of all and of each level; a text that a spreadsheet would compute gets an
    apostrophe."""
    out = io.StringIO()
    shares, mean = ("count", "margin", "share", "share_margin", "likely"), ("value", "low", "high")
    names = ["count", "count_margin", "share", "share_margin", "consistent_share", "mean", "mean_low", "mean_high"]
    writer = csv.writer(out)
    writer.writerow(["question", "level", "answer", "respondents", *names])
    for question in results["questions"]:
        for level, told in {"": question["combined"], **question["levels"]}.items():
            for each in told["answers"] + ([{"answer": "mean", **told["mean"]}] if "mean" in told else []):
                of = mean if "value" in each else shares
                numbers = [each[name] if name in of else "" for name in (*shares, *mean)]
                writer.writerow([safe(question["question"]), safe(level), safe(each["answer"]), told["n"], *numbers])
    return out.getvalue()


def shown(row: HeldSurvey, told: Told, words: Words, _: Callable[[str], str]) -> dict[str, Any]:
    """What the template needs: a question for which words are still looked for has its text alone."""
    body = json.loads(row.body)
    epsilons = {level["name"]: level["epsilon"] for level in body["levels"]}
    found = {each["question"]: each for each in told["questions"]}
    return {
        "n": told["n"],
        "garbage": sum(told["refused"].values()),
        "words": words,
        "questions": [
            {**_question(found[each["name"]], epsilons, _), "asked": each, "word": each["kind"] == "word", "pending": False}
            if each["name"] in found
            else {"text": each["text"], "word": True, "pending": True}
            for each in body["questions"]
        ],
    }


def _question(told: dict[str, Any], epsilons: dict[str, str], _: Callable[[str], str]) -> dict[str, Any]:
    answers, by_level = told["combined"]["answers"], told["levels"]
    listed = answers if len(answers) <= _ROWS else sorted(answers, key=lambda each: -each["share"])[:_ROWS]
    parts = {name: {each["answer"]: each for each in found["answers"]} for name, found in by_level.items()}
    rows = [
        {
            "answer": answer_text(each["answer"], told["kind"], _),
            "share": each["share"],
            "margin": each["share_margin"],
            "likely": each["likely"],
            "by_level": [parts[name].get(each["answer"]) for name in by_level],
        }
        for each in listed
    ]
    few = [] if told["kind"] == "word" else _too_few(rows, told["n"], _)  # a word was found: that is a result by itself
    rows = [] if few else rows
    return {
        "text": told["text"],
        "rows": rows,
        "total": len(answers),
        "levels": [{"name": name, "epsilon": epsilons[name], **found, "mean": _mean(found)} for name, found in by_level.items()],
        "mean": _mean(told["combined"]),
        "alike": _alike(told, _),
        "picture": picture(rows, _("estimated share")) if told["n"] and len(rows) > 1 else "",
        "notes": [*few, *_notes(told, _)],
    }


def _too_few(rows: list[dict[str, Any]], n: int, _: Callable[[str], str]) -> list[dict[str, str]]:
    """The note in the place of shares of which none is known to a half either way: 252 % ± 609 % is no result. A margin is
    inverse to the root of the number of answers, which is public."""
    least = min((row["margin"] for row in rows), default=0.0)
    if not n or least < _NOTHING:
        return []
    enough = math.ceil(n * (least / _TENTH) ** 2)
    text = _("Too few answers yet: each share may still lie anywhere. About {enough} answers tell it to 10 % either way.")
    return [{"tone": "info", "text": text.format(enough=f"{round(enough, 1 - len(str(enough)) + 1):,}")}]


def _mean(found: dict[str, Any]) -> dict[str, Any] | None:
    """The mean with its interval, of which one end may be nearer; none where the answers have none, or there are no reports."""
    if (mean := found.get("mean")) is None:
        return None
    return {"told": True, "low": mean["value"] - mean["margin"], "high": mean["value"] + mean["margin"], **mean}


def _alike(told: dict[str, Any], _: Callable[[str], str]) -> str:
    """What the test of homogeneity says, where there was something to compare."""
    found = told["alike"]
    if found is None:
        return ""
    chance = "< 0.001" if found["p_value"] < 0.001 else f"= {found['p_value']:.2g}"
    if found["p_value"] >= _APART:
        return _("No difference between levels was detected (p {chance}).").format(chance=chance)
    what = _("the mean") if (told["kind"], found["answer"]) == ("number", MEAN) else answer_text(found["answer"], told["kind"], _)
    return _(
        "People at different levels seem to answer differently, most clearly here: {what} (p {chance}). The "
        "combined estimate is still right; a single level does not represent everyone."
    ).format(what=what, chance=chance)


def answer_text(answer: str, kind: str, _: Callable[[str], str]) -> str:
    """As the page says it. What a researcher wrote stays as it was written, also where the hub has a word like it."""
    if kind == "place":
        return _cell(answer, _)
    if kind == "number":
        return _amount(answer, _)
    return _(answer) if kind == "yes-no" or answer == NO_ANSWER else answer


def _amount(answer: str, _: Callable[[str], str]) -> str:
    """ "a number", "no answer", or a bin of a distribution."""
    low, to, high = answer.partition(" to ")
    return f"{low} – {high}" if to else _(answer)


def _cell(answer: str, _: Callable[[str], str]) -> str:
    row, comma, column = answer.partition(",")
    if not comma:
        return _(answer)
    return _("row {row}, column {column}").format(row=int(row) + 1, column=int(column) + 1)


def _notes(told: dict[str, Any], _: Callable[[str], str]) -> list[dict[str, str]]:
    notes = []
    if not told["combined"]["answers"]:
        notes.append({"tone": "info", "text": _("No word is common enough among the answers to be seen.")})
    mean = _mean(told["combined"])
    if mean is not None and not mean["told"]:
        notes.append({"tone": "info", "text": _("Too few reports yet to tell the mean: the noise hides how many gave a number.")})
    if told["anomalies"]:
        text = _("Some reports are unlikely to come from honest respondents: someone may be trying to move this result.")
        notes.append({"tone": "warn", "text": text})
    if told["n"]:
        notes += [{"tone": "info", "text": each} for each in _moved(told, mean is not None, _)]
    return notes


def _moved(told: dict[str, Any], mean: bool, _: Callable[[str], str]) -> list[str]:
    """How far lies could move what is shown: a share, and a mean by a figure of its own."""
    shift = told["one_percent_liars"]
    found = []
    if told["kind"] != "number":
        text = _("If one respondent in a hundred sent a made-up report, a share could move by {shift} at most.")
        found.append(text.format(shift=brief(shift)))
    if mean:
        shift = told.get("one_percent_liars_mean", shift)
        if shift is None:
            found.append(_("If one respondent in a hundred sent a made-up report, the mean could move to any value."))
        else:
            text = _("If one respondent in a hundred sent a made-up report, the mean could move by {shift} at most.")
            found.append(text.format(shift=brief(shift)))
    return found


def picture(rows: list[dict[str, Any]], title: str) -> str:
    """Bars of the shares, each with its interval, as SVG in the colours of the page."""
    bars = tuple((each["answer"], each["share"], each["margin"]) for each in rows)
    return _drawn(bars, title)


@lru_cache(maxsize=200)
def _drawn(rows: tuple[tuple[str, float, float], ...], title: str) -> str:
    """A page that waits for something asks for the same pictures again and again."""
    import altair as alt

    values = [{"answer": name, "share": share, "low": share - margin, "high": share + margin} for name, share, margin in rows]
    y = alt.Y("answer:N", sort=[name for name, _share, _margin in rows], title=None, axis=alt.Axis(labelLimit=240))
    base = alt.Chart(alt.Data(values=values)).properties(width=420)
    bars = base.mark_bar(color=MAIN, opacity=0.75, height={"band": 0.6}).encode(
        y=y, x=alt.X("share:Q", title=title, axis=alt.Axis(format="%"))
    )
    errors = base.mark_rule(color=INK, strokeWidth=1.5).encode(y=y, x=alt.X("low:Q", title=title), x2="high:Q")
    # Browsers' letters are wider than those that the labels were measured with.
    return svg_of(alt.layer(bars, errors).properties(padding={"left": 20, "right": 5, "top": 5, "bottom": 5}))


_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "reports": "application/json"}


def _read(report: str) -> Any:
    """A damaged report as the text that it is: `cloister survey collect` counts it as refused, as the hub does."""
    try:
        return json.loads(report)
    except ValueError:
        return report


def results_file(hub: Hub, caller: Caller, number: str, form: str) -> Response | str:
    """The file, and a line of the audit log; or, where words are to be looked for, the job that does. Reports come in the order
    of their names, which are chance, with the survey that they answer: `cloister survey collect` makes the same results of them.
    """
    if form not in _TYPES:
        raise Missing("There is no such file", why="results come as csv or json", instead=f"/surveys/{number}/results.csv")
    body = ""
    with hub.database.begin() as db:
        row = seen_survey(hub, db, caller, number, "survey.download")
        if row.state == "draft":
            raise Missing("There are no results", why="the survey is a draft", instead=f"/surveys/{number}")
        if form == "reports":
            wanted = select(SurveyReport.body).where(SurveyReport.survey == row.id).order_by(SurveyReport.id)
            reports = [_read(report) for report in db.scalars(wanted)]
            body = json.dumps({"survey": json.loads(row.body or "null"), "reports": reports})
        else:
            tally = tallied(db, row)
            words = looked_for(hub, db, caller, row, tally)
            if not words.complete:
                return words.job or words.failed
        written(hub, db, caller, "survey.download", row, form=form)
    if form != "reports":
        results = results_of(hub, row.id, tally, words)
        body = as_csv(results) if form == "csv" else json_of(results, indent=1)
    name = f"survey-{row.id}-{'reports.json' if form == 'reports' else f'results.{form}'}"
    return Response(body, headers=attachment(name), media_type=_TYPES[form])
