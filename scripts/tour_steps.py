"""What a visitor does on a page of the tour: fill in, press."""

from __future__ import annotations

from playwright.sync_api import Page

__all__ = ["fill", "press", "review"]


def fill(page: Page, **texts: str) -> None:
    """Write texts into the fields of these labels."""
    for label, text in texts.items():
        page.locator("main").get_by_label(label).last.fill(text)


def press(page: Page, name: str) -> None:
    """Press a button, and wait for what comes."""
    page.locator("main").get_by_role("button", name=name, exact=True).first.click()
    page.wait_for_load_state("load")


def review(page: Page, **named: str) -> None:
    """Write texts into the fields of these names, of a declaration whose rows are persons, and go on to its review."""
    for name, text in named.items():
        page.locator(f"[name={name}]").fill(text)
    page.locator("[name=rows_are]").first.check()
    page.get_by_label("No bound, category or size above").check()
    press(page, "Review")
