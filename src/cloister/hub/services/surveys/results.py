"""What the page of a survey shows: estimates with margins, by level and together, pictures, and what to beware of."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cloister.hub.services.asking.charts import INK, MAIN, svg_of
from cloister.hub.services.surveys.counting import counted, refused_of
from cloister.hub.spreadsheets import safe
from cloister.local.survey import Results, Tally
from cloister.local.survey.question import NO_ANSWER

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.hub import Hub
    from cloister.hub.records.surveys import HeldSurvey

__all__ = ["Told", "as_csv", "as_json", "results_of", "shown", "tallied"]

Told = dict[str, Any]
"""Results as plain JSON."""
_PART, _LOCKS, _KEPT = "survey results", "survey locks", 50
_LOCK = threading.Lock()

_ROWS = 40
"""Longer lists show their commonest answers."""
_APART = 0.01


def tallied(db: Db, row: HeldSurvey) -> Tally:
    """What came in, counted in this transaction, with what was refused."""
    tally = counted(db, row)
    tally.refused = refused_of(db, row.id)
    return tally


def results_of(hub: Hub, number: str, tally: Tally) -> Told:
    """The results of a survey's tally, as the library writes them (`Results.to_dict`). Looking for words takes a while: so this
    is no part of a transaction (others would wait to write), one request works it out while others for the same survey wait, and
    it is kept until another report comes."""
    kept: OrderedDict[tuple[str, int], Told] = hub.parts.setdefault(_PART, OrderedDict())
    locks: defaultdict[str, threading.Lock] = hub.parts.setdefault(_LOCKS, defaultdict(threading.Lock))
    with _LOCK:
        working = locks[number]
    with working:
        with _LOCK:
            told = kept.get((number, tally.n))
        if told is None:
            told = Results(tally.survey, tally).to_dict()
        with _LOCK:
            kept[number, tally.n] = told
            kept.move_to_end((number, tally.n))
            while len(kept) > _KEPT:
                kept.popitem(last=False)
    return {**told, "refused": dict(tally.refused)}


def as_json(results: Told) -> str:
    """The results as a file."""
    return json.dumps(results, ensure_ascii=False, indent=1)


def as_csv(results: Told) -> str:
    """A line for each answer, of all and of each level; a text that a spreadsheet would compute gets an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        ["question", "level", "answer", "respondents", "count", "count_margin", "share", "share_margin", "consistent_share"]
    )
    for question in results["questions"]:
        for level, told in {"": question["combined"], **question["levels"]}.items():
            for each in told["answers"]:
                numbers = [each[name] for name in ("count", "margin", "share", "share_margin", "likely")]
                writer.writerow([safe(question["question"]), safe(level), safe(each["answer"]), told["n"], *numbers])
    return out.getvalue()


def shown(row: HeldSurvey, told: Told, _: Callable[[str], str]) -> dict[str, Any]:
    """What the template needs."""
    levels = [{**level, "n": told["people"][level["name"]]} for level in json.loads(row.body)["levels"]]
    return {
        "n": told["n"],
        "garbage": sum(told["refused"].values()),
        "levels": levels,
        "questions": [_question(question, [each["name"] for each in levels if each["n"]], _) for question in told["questions"]],
    }


def _question(told: dict[str, Any], levels: list[str], _: Callable[[str], str]) -> dict[str, Any]:
    answers = told["combined"]["answers"]
    listed = answers if len(answers) <= _ROWS else sorted(answers, key=lambda each: -each["share"])[:_ROWS]
    by_level = {name: {each["answer"]: each["share"] for each in found["answers"]} for name, found in told["levels"].items()}
    rows = [
        {
            "answer": _answer(each["answer"], told["kind"], _),
            "share": each["share"],
            "margin": each["share_margin"],
            "likely": each["likely"],
            "by_level": [by_level.get(name, {}).get(each["answer"]) for name in levels],
        }
        for each in listed
    ]
    return {
        "text": told["text"],
        "rows": rows,
        "mean": told["combined"].get("mean"),
        "picture": picture(rows, _("estimated share")) if told["n"] and len(rows) > 1 else "",
        "notes": _notes(told, _),
    }


def _answer(answer: str, kind: str, _: Callable[[str], str]) -> str:
    """As the page says it. What a researcher wrote stays as it was written, also where the hub has a word like it."""
    if kind == "place":
        return _cell(answer, _)
    return _(answer) if kind == "yes-no" or answer == NO_ANSWER else answer


def _cell(answer: str, _: Callable[[str], str]) -> str:
    row, comma, column = answer.partition(",")
    if not comma:
        return _(answer)
    return _("row {row}, column {column}").format(row=int(row) + 1, column=int(column) + 1)


def _notes(told: dict[str, Any], _: Callable[[str], str]) -> list[dict[str, str]]:
    notes = []
    if not told["combined"]["answers"]:
        notes.append({"tone": "info", "text": _("No word is common enough among the answers to be seen.")})
    if told["alike"] is not None and told["alike"]["p_value"] < _APART:
        text = _("Who chose one level seems to answer differently from who chose another. The sum of both is right all the same.")
        notes.append({"tone": "info", "text": text})
    if told["anomalies"]:
        text = _("Some reports are such as honest respondents would hardly send: somebody may be trying to move this result.")
        notes.append({"tone": "warn", "text": text})
    shift = told["one_percent_liars"]
    if shift is not None:
        text = _("If one respondent in a hundred sent a made-up report, this could move by {shift} at most.").format(
            shift=f"{shift:.3g}"
        )
        notes.append({"tone": "info", "text": text})
    return notes


def picture(rows: list[dict[str, Any]], title: str) -> str:
    """Bars of the shares, each with its interval, as SVG in the colours of the page."""
    import altair as alt

    values = [
        {
            "answer": each["answer"],
            "share": each["share"],
            "low": each["share"] - each["margin"],
            "high": each["share"] + each["margin"],
        }
        for each in rows
    ]
    y = alt.Y("answer:N", sort=[each["answer"] for each in rows], title=None, axis=alt.Axis(labelLimit=240))
    base = alt.Chart(alt.Data(values=values)).properties(width=420)
    bars = base.mark_bar(color=MAIN, opacity=0.75, height={"band": 0.6}).encode(
        y=y, x=alt.X("share:Q", title=title, axis=alt.Axis(format="%"))
    )
    errors = base.mark_rule(color=INK, strokeWidth=1.5).encode(y=y, x=alt.X("low:Q", title=title), x2="high:Q")
    return svg_of(alt.layer(bars, errors))
