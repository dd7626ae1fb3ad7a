"""The pictures of surveys in docs/images/hub: one is composed on the pages, people answer it with the library, pages are taken.

`scripts/tour.py` calls it, with the pages of an analyst and of a visitor to a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
from playwright.sync_api import Page

from cloister.local.survey import Survey, respond
from scripts.tour_steps import fill, press

__all__ = ["SURVEYS", "survey_pictures"]

PEOPLE = 300
SURVEYS = ("surveys", "survey-draft", "survey-level", "survey-questions", "survey-leaving", "survey-results")
"""The pictures' names, in the order of the page that shows them."""


def survey_pictures(analyst: Page, visitor: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    analyst.on("dialog", lambda dialog: dialog.accept())
    visitor.set_extra_http_headers({"Accept-Language": "en"})
    analyst.goto(f"{address}/surveys")
    fill(analyst, Title="Sleep and screens", Purpose="a study of sleep at our school")
    press(analyst, "Begin")
    fill(analyst, **{"Question text": "Do you look at a screen in bed?", "Short name": "screen"})
    press(analyst, "Add")
    analyst.get_by_role("link", name="One of several").click()
    fill(
        analyst,
        **{"Question text": "At which one most?", "Short name": "which", "Options": "telephone\ntablet\ntelevision\nnone"},
    )
    press(analyst, "Add")
    draft = picture(analyst, "survey-draft", "", 1150)
    press(analyst, "Open the survey")
    number = analyst.url.rpartition("/")[2]
    answered = [_respondent(visitor, address, number, picture, step) for step in ("level", "questions", "leaving")]
    _answers(address, number)
    analyst.goto(f"{address}/surveys")
    listed = picture(analyst, "surveys", "", 330)
    analyst.goto(f"{address}/surveys/{number}")
    return [listed, draft, *answered, picture(analyst, "survey-results", "", 1022)]


def _respondent(page: Page, address: str, number: str, picture: Callable[[Page, str, str, int], Path], step: str) -> Path:
    if step == "level":
        page.goto(f"{address}/s/{number}")
        page.get_by_label("more private").check()
        page.get_by_text("Or choose for each question").click()
        page.get_by_label("Question 2 of 2").select_option("more useful")
        return picture(page, "survey-level", "", 1000)
    if step == "questions":
        page.get_by_role("button", name="To the questions").click()
        page.get_by_label("yes", exact=True).check()
        page.get_by_label("tablet").check()
        page.get_by_role("button", name="Preview of sent data for it").first.click()
        return picture(page, "survey-questions", "#step-questions", 900)
    page.get_by_role("button", name="Change them by chance").click()
    page.get_by_text("Exact bytes").click()
    return picture(page, "survey-leaving", "#step-send", 535)


def _answers(address: str, number: str) -> None:
    """What some hundred people sent, three of ten of whom said yes."""
    with httpx.Client(base_url=f"{address}/api/v1/surveys/{number}") as client:
        survey = Survey.from_dict(client.get("/form").json()["survey"])
        for person in range(PEOPLE):
            yes = person % 10 < 3
            said = {"screen": yes, "which": "telephone" if yes else "none"}
            names = [level.name for level in survey.levels]
            levels = {"screen": names[person % 3], "which": names[person % 3 if person % 4 else (person + 1) % 3]}
            report = respond(survey, said, levels)
            client.post("/reports", json=report.to_dict()).raise_for_status()
