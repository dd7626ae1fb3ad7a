"""The pictures of sharing a table in docs/images/hub: whose rows they are, a grant by bundle, a codebook, a trial reading, and
how the values of an upload are written.

`scripts/tour.py` calls it, with the page of the owner of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press, review

__all__ = ["DECLARED", "declared_pictures"]

DECLARED = ("two-shapes", "bundles", "codebook", "trial-reading", "upload-options")
"""The pictures' names, in the order of the page that shows them."""
_WIDE = 985
_ROWS = b"age,sex\n" + b"34,F\n51,M\n29,f\n" * 80 + b"-99,M\n" * 12 + b"n/a,unknown\n" * 5 + b"130,F\n"
_STAYS = b"patient;ward;nights;mood\n" + b"p1;Cardiology;3;4\np1;Surgery;1;2\np2;Surgery;9;5\n" * 40
_BOOK = "name\tkind\tfrom\tto\tvalues\tmissing\tsource\n" + "".join(
    "\t".join(line) + "\n"
    for line in (
        ("ward", "code", "", "", "Cardiology|Surgery|Maternity", "", "list of wards 2026"),
        ("nights", "int", "0", "60", "", "-99", "stays of a year or less"),
        ("mood", "int", "1", "5", "", "", "questionnaire, page 2"),
    )
)


def declared_pictures(owner: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    owner.goto(f"{address}/register")
    owner.get_by_text("Sheets, lines of names, and how values are written").click()
    owner.locator("[name=numbers]").select_option("comma")
    owner.locator("[name=dates]").select_option("dmy")
    owner.locator("[name=missing]").fill("NA, -99")
    taken = [picture(owner, "upload-options", "h2:has-text('Upload a file')", 690)]
    _uploads(owner, "stays.csv", _STAYS)
    before = owner.viewport_size
    assert before is not None
    owner.set_viewport_size({"width": _WIDE, "height": before["height"]})  # the table of columns needs it
    owner.get_by_text("Fill in from a codebook, or from another data set").click()
    owner.locator("[name=codebook]").fill(_BOOK)
    press(owner, "Fill in from these lines")
    taken.append(picture(owner, "codebook", "table:has([name=c0_tick])", 380))
    owner.set_viewport_size(before)
    owner.locator("[name=rows_are][value=column]").check()
    owner.locator("[name=unit_column]").select_option("0")
    owner.locator("[name=max_rows]").fill("5")
    taken.append(picture(owner, "two-shapes", "#f-rows_are", 290))
    owner.goto(f"{address}/register")
    _uploads(owner, "study.csv", _ROWS)
    texts = {"c0_low": "17", "c0_high": "90", "c1_values": "F\nM", "c0_reason": "adults", "c1_reason": "two codes"}
    fill(owner, Title="A study", **{"Name of the new population": "volunteers"})
    for place, kind in enumerate(("integer", "category")):
        owner.locator(f"[name=c{place}_kind]").select_option(kind)
    review(owner, **texts)
    press(owner, "Make a trial reading")
    taken.append(picture(owner, "trial-reading", "", 1010))
    owner.goto(f"{address}/datasets/census/access")
    owner.locator("#p-people").fill("ana@example.org, emmy@example.org")
    owner.locator("[name=preset][value=ask-and-train]").check()
    owner.locator("[name=purposes][value=research]").check()
    owner.locator("#p-until").fill("2026-12-31")
    return [*taken, picture(owner, "bundles", "h3:has-text('Grant to people')", 965)]


def _uploads(owner: Page, name: str, content: bytes) -> None:
    owner.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})
    press(owner, "Upload")
