"""The story of a demonstration: what each of its people does in five minutes, one after another, on their first page.

A demonstration says who plays which part (`hub.parts[STORY]`, by the id of a person); no other hub has a story.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cloister.hub.web.languages import N_

STORY = "story of a demonstration"


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """What one person does: steps, each a sentence and where it is; and who goes on."""

    title: str
    steps: tuple[tuple[str, str], ...]
    then: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """Somebody's part: which chapter, and the survey in it."""

    chapter: str
    survey: str


CHAPTERS: Mapping[str, Chapter] = {
    "analyst": Chapter(
        title=N_("Minute 1: Ana asks"),
        steps=(
            (N_("Read why the census is bounded as it is: each bound has a public reason."), "/datasets/census"),
            (N_("Build a query without SQL. See the margin and the cost before anything is spent."), "/ask/build"),
            (N_("Open an answer: a chart, margins, a citation."), "/releases"),
            (N_("Read what 4,000 people said to a survey that knows nobody's answer."), "/surveys"),
        ),
        then=N_("Then open the owner's link in another browser or a private window."),
    ),
    "owner": Chapter(
        title=N_("Minute 2: Otto sees what was asked"),
        steps=(
            (N_("See who asked the census, for what, and what it cost."), "/datasets/census/manage"),
            (N_("See what is left of the people's budget."), "/budgets/census"),
            (N_("Revoke Ana's grant. It ends with her next query."), "/datasets/census/access"),
        ),
        then=N_("Then open the steward's link."),
    ),
    "steward": Chapter(
        title=N_("Minute 3: Sam sets rules for everybody"),
        steps=(
            (N_("Read the institution's rules, and add one: it binds every owner and every query."), "/policy"),
            (N_("See the alerts: queries that are unusual together. An alert accuses nobody."), "/trail/alerts"),
            (N_("See which data sets there are: who asks, and for what, is their owners' to decide."), "/datasets"),
        ),
        then=N_("Then open the administrator's link."),
    ),
    "administrator": Chapter(
        title=N_("Minute 4: Alma verifies"),
        steps=(
            (N_("Find Ana's query and Otto's revocation in the audit log, and verify its chain."), "/trail"),
            (N_("Look for Otto's rows: no page has them for you."), "/datasets"),
        ),
        then=N_("Then open the respondent's link."),
    ),
    "respondent": Chapter(
        title=N_("Minute 5: Rosa answers"),
        steps=(
            (N_("Choose a level of protection and answer. Your browser randomises before it sends."), "/s/{survey}"),
            (N_("See which data sets there are, and that you may not query them."), "/datasets"),
        ),
        then=N_("Ana's survey has one answer more, and nobody can tell which one is yours."),
    ),
}


def chapter_of(part: Part | None) -> Chapter | None:
    """The chapter of a part, with the addresses of its steps.

    >>> chapter_of(Part(chapter="respondent", survey="abc")).steps[0][1], chapter_of(None)
    ('/s/abc', None)
    """
    if part is None:
        return None
    told = CHAPTERS[part.chapter]
    return Chapter(
        title=told.title, steps=tuple((text, at.format(survey=part.survey)) for text, at in told.steps), then=told.then
    )
