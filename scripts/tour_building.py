"""The pictures of a query without SQL in docs/images/hub: an analyst builds one, asks it, and puts the answer on a dashboard.

`scripts/tour.py` calls it, with the page of the analyst of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press

__all__ = ["BUILT", "built_pictures"]

BUILT = ("build", "dashboard")
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
    return [*taken, picture(analyst, "dashboard", "", 900)]
