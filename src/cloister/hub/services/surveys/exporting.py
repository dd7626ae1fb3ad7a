"""A survey's results as files: estimates, or the randomised reports themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import select
from starlette.responses import Response

from cloister.hub.platform.trail import write
from cloister.hub.problems import Missing
from cloister.hub.records.surveys import SurveyReport
from cloister.hub.services.surveys.drafts import seen_survey
from cloister.hub.services.surveys.results import as_csv, as_json, results_of, tallied
from cloister.hub.services.surveys.words import looked_for
from cloister.hub.web.routing import attachment

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json", "reports": "application/json"}


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
            body = json.dumps({"survey": json.loads(row.body), "reports": [json.loads(each) for each in db.scalars(wanted)]})
        else:
            tally = tallied(db, row)
            words = looked_for(hub, db, caller, row, tally)
            if not words.complete:
                return words.job or words.failed
        write(
            hub, db, caller, "survey.download", kind="survey", object_id=row.id, purpose=row.purpose, title=row.title, form=form
        )
    if form != "reports":
        results = results_of(hub, row.id, tally, words)
        body = as_csv(results) if form == "csv" else as_json(results)
    name = f"survey-{row.id}-{'reports.json' if form == 'reports' else f'results.{form}'}"
    return Response(body, headers=attachment(name), media_type=_TYPES[form])
