"""Questions that ask for a word: finding the frequent ones takes seconds for each level, so a job does it, and the survey keeps
what it found.

A job begins by itself when somebody looks at results that lack it: at once where nothing was found yet or the survey is closed,
else when a tenth more reports came in, or ten minutes passed. What is kept says of how many reports it is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import Missing
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs import Stopped, submit
from cloister.hub.records.jobs import Job
from cloister.hub.records.surveys import HeldSurvey
from cloister.hub.service import JobType, Progress
from cloister.hub.services.surveys.composing import of_text
from cloister.hub.services.surveys.counting import counted
from cloister.hub.web.languages import N_
from cloister.local.survey import Results, Survey, Tally, Word

_KIND = "survey.words"
_STAGE = N_("looking for words")
_PAUSE = timedelta(minutes=10)
_GROWTH = 1.1


@dataclass(frozen=True, kw_only=True)
class Words:
    """What is known of a survey's words."""

    told: Mapping[str, Any] | None
    """As the library writes results, of the questions that ask for words; None where nothing was found yet."""
    n: int
    """Of how many reports it is."""
    job: str = ""
    """What looks for them now."""
    share: float | None = None
    """How far that job is."""
    failed: str = ""
    """The job that failed, where the last one did."""
    complete: bool = True
    """Whether it is of all reports; of an open survey, of those that were there when it was last looked."""


def words_of(survey: Survey) -> list[str]:
    """The names of the questions that ask for words.

    >>> from cloister.local.survey import YesNo
    >>> words_of(Survey("s", "S", [YesNo("a", "A?"), Word("town", "Which town?")], levels={"one": 1}))
    ['town']
    """
    return [question.name for question in survey.questions if isinstance(question, Word)]


def looked_for(hub: Hub, db: Db, caller: Caller, row: HeldSurvey, tally: Tally) -> Words:
    """The words that were found; and a job that looks for them, put into the queue where one is due."""
    if not words_of(tally.survey):
        return Words(told={"questions": [], "alarms": []}, n=tally.n)
    if not tally.n:
        return Words(told=Results(tally.survey, tally).to_dict(questions=words_of(tally.survey)), n=0)
    db.refresh(row, ["words", "looking"])
    held = json.loads(row.words) if row.words else None
    n = held["n"] if held else 0
    job = db.get(Job, row.looking) if row.looking else None
    if n < tally.n and _due(hub, row, tally.n, job):
        row.looking = submit(hub, db, caller, _KIND, {"survey": row.id, "n": tally.n}, purpose=row.purpose)
        job = db.get(Job, row.looking)
    active = job is not None and job.state in ("waiting", "running")
    failed = job is not None and job.state in ("failed", "cancelled") and n < tally.n
    return Words(
        told=held["told"] if held else None,
        n=n,
        job=row.looking if active else "",
        share=job.share if active and job is not None else None,
        failed=row.looking if failed else "",
        complete=held is not None and (n == tally.n or row.state == "open"),
    )


def _due(hub: Hub, row: HeldSurvey, n: int, job: Job | None) -> bool:
    if job is None:
        return True
    if job.ended is None:
        return False
    tried = int(job.payload["n"])
    return n >= _GROWTH * tried or (row.state == "closed" and n > tried) or hub.now() - job.ended > _PAUSE


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Look for the words of one survey, level by level, among all reports that are there now."""
    with hub.database.begin() as db:
        row = db.get(HeldSurvey, payload["survey"])
        if row is None or not row.body:
            raise Missing("There is no such survey", why="it does not exist, or is not open yet", instead="/surveys")
        tally = counted(db, row)
        survey = of_text(row.body)
    results, names = Results(survey, tally), words_of(survey)
    parts = [(name, level.name) for name in names for level in survey.levels]
    for place, (name, level) in enumerate(parts):
        if progress.stopped():
            raise Stopped
        progress.tell(_STAGE, place / len(parts))
        results.at_level(name, level)
    told = results.to_dict(questions=names)
    with hub.database.begin() as db:
        row = db.get(HeldSurvey, payload["survey"], with_for_update=True)
        if row is not None and (not row.words or json.loads(row.words)["n"] <= tally.n):
            row.words = json.dumps({"n": tally.n, "told": {"questions": told["questions"], "alarms": told["alarms"]}})
    return {"survey": payload["survey"], "href": f"/surveys/{payload['survey']}"}


LOOK = JobType(kind=_KIND, title=N_("Look for words in a survey"), run=_run)
