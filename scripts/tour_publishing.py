"""The picture of a published view in docs/images/hub: an analyst publishes an answer about the census for a page of another site.

`scripts/tour.py` calls it, with the page of the analyst of a demonstration.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press

__all__ = ["PUBLISHED", "published_pictures"]

PUBLISHED = ("published",)
"""The pictures' names, in the order of the page that shows them."""


def published_pictures(analyst: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    analyst.goto(f"{address}/ask")
    asked = {"sql": "SELECT sex, COUNT(*) AS people FROM census GROUP BY sex", "spend": "0.1", "purpose": "a public page"}
    for name, text in asked.items():
        analyst.locator(f"main [name={name}]").first.fill(text)
    press(analyst, "Run")
    analyst.wait_for_url("**/releases/*")
    fill(analyst, **{"Title of the view": "The census by sex", "Sites that may frame it": "https://www.example.org"})
    fill(analyst, **{"Last day": (datetime.now(UTC) + timedelta(days=60)).date().isoformat()})
    press(analyst, "Publish")
    return [picture(analyst, "published", "", 620)]
