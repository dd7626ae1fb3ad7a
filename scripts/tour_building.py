"""The pictures of a query without SQL in docs/images/hub: an analyst builds one, asks it, and puts the answer on a dashboard; and
of a model.

`scripts/tour.py` calls it, with the page of the analyst of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press

__all__ = ["BUILT", "built_pictures"]

BUILT = ("build", "dashboard", "model")
"""The pictures' names, in the order of the page that shows them."""


def built_pictures(analyst: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    analyst.goto(f"{address}/ask/build?about=visits")
    for name, value in (("what-0", "mean"), ("of-0", "stay"), ("by-0", "ward")):
        analyst.locator(f"[name={name}]").select_option(value)
    for name, text in (("spend", "0.25"), ("purpose", "care paths")):
        analyst.locator(f"input[name={name}]").fill(text)
    press(analyst, "Explain")
    taken = [picture(analyst, "build", "", 1500)]
    press(analyst, "Run")
    analyst.wait_for_url("**/releases/*")
    analyst.goto(f"{address}/dashboards")
    fill(analyst, **{"Name of a new dashboard": "Wards at a glance"})
    press(analyst, "Create")
    press(analyst, "Add")
    return [*taken, picture(analyst, "dashboard", "", 900), _model(analyst, address, picture)]


def _model(analyst: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> Path:
    """A model of the census, judged on rows that were held out."""
    analyst.goto(f"{address}/learn?about=census")
    analyst.locator("[name=method]").select_option("LogisticRegression")
    for name in ("age", "hours", "education"):
        analyst.locator(f"[name=features][value={name}]").check()
    analyst.locator("[name=target]").select_option("income")
    analyst.locator("[name=held_out]").check()
    for name, text in (("spend", "1"), ("purpose", "a course")):
        analyst.locator(f"main [name={name}]").fill(text)
    press(analyst, "Train")
    analyst.get_by_role("link", name="Open the result").click(timeout=180_000)
    analyst.wait_for_load_state("load")
    return picture(analyst, "model", "", 1500)
