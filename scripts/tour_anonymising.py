"""The pictures of an anonymised table in docs/images/hub: an owner looks, changes a hierarchy, releases; pages are taken.

`scripts/tour.py` calls it, with the page of the owner of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press

__all__ = ["ANONYMISED", "anonymised_pictures"]

ANONYMISED = ("anonymise-choose", "anonymise-rows", "anonymise-hierarchy", "anonymise-table")
"""The pictures' names, in the order of the page that shows them."""
_DROPPED = ("marital_status", "work_class", "hours", "pay")
_PATIENCE = 180


def anonymised_pictures(owner: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    owner.goto(f"{address}/anonymise?about=census")
    for column in _DROPPED:
        owner.get_by_label(f"Role of {column}").select_option("identifying")
    owner.get_by_label("Role of income").select_option("sensitive")
    owner.get_by_label("Purpose").fill("a course in statistics")
    press(owner, "Preview")
    trial = _result(owner)
    files = [picture(owner, "anonymise-choose", "form h2", 780)]
    files.append(picture(owner, "anonymise-rows", "details.fold[open] summary", 560))
    owner.get_by_text("race", exact=False).last.click()
    owner.get_by_role("link", name="Change this hierarchy").locator("visible=true").first.click()
    files.append(picture(owner, "anonymise-hierarchy", "form h2", 660))
    owner.goto(trial)
    fill(owner, Title="Census, for teaching", **{"Name in queries": "census_open"})
    owner.get_by_label("I understand this").check()
    press(owner, "Release")
    _result(owner)
    return [*files, picture(owner, "anonymise-table", "", 880)]


def _result(page: Page) -> str:
    """Wait for the job; the address of its result."""
    page.get_by_role("link", name="Open the result").click(timeout=_PATIENCE * 1000)
    page.wait_for_load_state("load")
    return page.url
