"""What a visitor does on a page of the tour: fill in, press."""

from __future__ import annotations

from playwright.sync_api import Page

__all__ = ["fill", "press"]


def fill(page: Page, **texts: str) -> None:
    """Write texts into the fields of these labels."""
    for label, text in texts.items():
        page.locator("main").get_by_label(label).last.fill(text)


def press(page: Page, name: str) -> None:
    """Press a button, and wait for what comes."""
    page.locator("main").get_by_role("button", name=name, exact=True).first.click()
    page.wait_for_load_state("load")
