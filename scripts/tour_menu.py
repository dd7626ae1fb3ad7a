"""The pictures of the menu and of a word that is explained, in docs/images/hub.

`scripts/tour.py` calls it, with the page of the owner of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

__all__ = ["MENU", "menu_pictures"]

MENU = ("menu", "glossary")
"""The pictures' names, in the order of the page that shows them."""
_WIDE = 1040
"""From where on the menu stands at the side of the page."""


def menu_pictures(owner: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    before = owner.viewport_size
    assert before is not None
    owner.set_viewport_size({"width": _WIDE, "height": before["height"]})
    owner.goto(f"{address}/releases")
    taken = [picture(owner, "menu", "", 600)]
    owner.goto(f"{address}/budgets")
    owner.locator("#says-epsilon").hover()
    taken.append(picture(owner, "glossary", "", 480))
    owner.set_viewport_size(before)
    return taken
