"""Surveys: composed by a researcher, answered by anybody without an account, randomised in the respondent's own browser.

- `drafts.py`, `composing.py`: a survey from its first draft to its end.
- `counting.py`: what a respondent's machine sent, and what holds floods back.
- `results.py`, `words.py`: estimates with their margins, as pages and as files; words are looked for by a job.
- `joint.py`, `joint_api.py`, `joint_pages.py`: surveys whose answers this hub and a helper add up (`cloister.together.prio3`).
- `modelling.py`: models of the reports, as releases, at no cost.
- `pages.py`, `api.py`: the routes.

What may not live here: a protocol or an estimate (`cloister.local`). No ledger is charged: a report is paid by its own
respondent, whose page says how much, and nothing in the hub ever holds a true answer.
"""

from cloister.hub.decisions.policy import Action, register_actions
from cloister.hub.service import Guide, Link, Service, routes_in
from cloister.hub.services.surveys.modelling import SURVEY_MODEL, TRAIN
from cloister.hub.services.surveys.words import LOOK
from cloister.hub.web.languages import N_

_RESEARCHERS = frozenset({"analyst", "owner"})

register_actions(
    [
        Action(name="survey.compose", title=N_("Compose a survey"), roles=_RESEARCHERS),
        Action(name="survey.see", title=N_("See a survey"), roles=_RESEARCHERS, by="owner"),
        Action(name="survey.manage", title=N_("Manage a survey"), roles=_RESEARCHERS, by="owner"),
        Action(name="survey.download", title=N_("Download a survey's results"), roles=_RESEARCHERS, by="owner"),
        Action(name="survey.answer", title=N_("Answer a survey"), roles=frozenset({"nobody"})),
    ]
)


SERVICE = Service(
    name="surveys",
    title="Surveys",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    jobs=(LOOK, TRAIN),
    releases=(SURVEY_MODEL,),
    guides=(
        Guide(title="Models of surveys", path="/survey-models", group="collect", help="how-to/run-a-survey"),
        Guide(title="Answer a survey", path="/s", group="collect", help="tutorials/ask-a-sensitive-question"),
        Guide(title="Answer a joint survey", path="/j", group="collect", help="how-to/add-up-reports"),
    ),
    links=(
        Link("Surveys", "/surveys", "survey.compose", "collect", 29, "survey", help="how-to/run-a-survey"),
        Link(
            "Joint surveys",
            "/joint-surveys",
            "survey.compose",
            "collect",
            30,
            "survey",
            help="how-to/add-up-reports",
            extra="together",
        ),
    ),
)
