"""The picture of a trial reading in docs/images/hub: an owner declares a file that does not fit, and reads it for a trial.

`scripts/tour.py` calls it, with the page of the owner of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press

__all__ = ["DECLARED", "declared_pictures"]

DECLARED = ("trial-reading",)
"""The pictures' names, in the order of the page that shows them."""
_ROWS = b"age,sex\n" + b"34,F\n51,M\n29,f\n" * 80 + b"-99,M\n" * 12 + b"n/a,unknown\n" * 5 + b"130,F\n"


def declared_pictures(owner: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take it. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    owner.goto(f"{address}/register")
    owner.locator("input[type=file]").set_input_files({"name": "study.csv", "mimeType": "text/csv", "buffer": _ROWS})
    press(owner, "Upload")
    texts = {"c0_low": "17", "c0_high": "90", "c1_values": "F\nM", "c0_reason": "adults", "c1_reason": "two codes"}
    fill(owner, Title="A study", **{"Name of the new population": "volunteers"})
    for place, kind in enumerate(("integer", "category")):
        owner.locator(f"[name=c{place}_kind]").select_option(kind)
    for name, text in texts.items():
        owner.locator(f"[name={name}]").fill(text)
    owner.locator("[name=rows_are]").first.check()
    owner.get_by_label("No bound, category or size above").check()
    press(owner, "Review")
    press(owner, "Make a trial reading")
    return [picture(owner, "trial-reading", "", 1010)]
