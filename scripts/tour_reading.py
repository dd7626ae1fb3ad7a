"""The pictures of what an answer looks like in docs/images/hub: a heat map, an answer for paper, a map; and of a pilot.

`scripts/tour.py` calls it, with the pages of the analyst and of the owner of a demonstration; the owner brings places, and asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import cos, sin
from pathlib import Path

from playwright.sync_api import Page

from scripts.tour_steps import fill, press, review

__all__ = ["READ", "read_pictures"]

READ = ("heat-map", "print-view", "map", "pilot")
"""The pictures' names."""
_SIDE = 4
_KINDS = ("flat", "house")
_NAMES = ("Harbour", "Old Town", "Mills", "North", "Castle", "Market", "Canal", "East", "Garden", "Station", "Park", "Hill")


def read_pictures(analyst: Page, owner: Page, address: str, picture: Callable[[Page, str, str, int], Path]) -> list[Path]:
    """Take them. `picture` takes the page, a name, what stands at the upper edge, and a height."""
    _asks(analyst, address, "SELECT education, marital_status, COUNT(*) AS people FROM census GROUP BY 1, 2", "0.2", "a course")
    taken = [picture(analyst, "heat-map", "figure:has(img.chart)", 640)]
    _asks(analyst, address, "SELECT COUNT(*) AS visits FROM visits", "0.2", "care paths")
    analyst.goto(analyst.url + "/print")
    taken.append(picture(analyst, "print-view", "", 1190))
    _places(owner, address)
    _asks(owner, address, "SELECT region(home) AS district, COUNT(*) AS people FROM homes GROUP BY district", "0.5", "planning")
    taken.append(picture(owner, "map", "", 1000))
    owner.goto(f"{address}/ask/build?about=homes")
    for name, value in (("what-0", "mean"), ("of-0", "rooms"), ("by-0", "kind")):
        owner.locator(f"[name={name}]").select_option(value)
    press(owner, "Explain")
    owner.locator("[formaction='/ask/pilot']").first.click()
    owner.get_by_text("See the pilot").wait_for()
    return [*taken, picture(owner, "pilot", "#explained section", 620)]


def _asks(page: Page, address: str, sql: str, spend: str, purpose: str) -> None:
    page.goto(f"{address}/ask")
    for name, text in {"sql": sql, "spend": spend, "purpose": purpose}.items():
        page.locator(f"main [name={name}]").first.fill(text)
    press(page, "Run")
    page.wait_for_url("**/releases/*")
    for image in page.locator("img.chart").all():
        image.evaluate("image => image.decode()")


def _places(owner: Page, address: str) -> None:
    """A made-up town of twelve districts, with more people in the middle."""
    corners = {
        (x, y): (round(4.4 + 0.02 * x + 0.004 * sin(3 * x + 5 * y), 4), round(52 + 0.013 * y + 0.003 * cos(7 * x + 2 * y), 4))
        for x in range(_SIDE + 1)
        for y in range(4)
    }
    rows, features = ["longitude,latitude,rooms,kind"], []
    for place, name in enumerate(_NAMES):
        x, y = place % _SIDE, place // _SIDE
        ring = [corners[each] for each in ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1), (x, y))]
        features.append(
            {
                "type": "Feature",
                "properties": {"district": name},
                "geometry": {"type": "Polygon", "coordinates": [[list(each) for each in ring]]},
            }
        )
        middle = [sum(each[axis] for each in ring[:4]) / 4 for axis in (0, 1)]
        homes = 40 + 60 * (4 - abs(2 * x - 3)) * (2 - abs(y - 1))
        rows += [f"{middle[0]:.4f},{middle[1]:.4f},{each % 6 + 1},{_KINDS[each % 7 > 2]}" for each in range(homes)]
    owner.goto(f"{address}/register")
    content = ("\n".join(rows) + "\n").encode()
    owner.locator("input[type=file]").set_input_files({"name": "homes.csv", "mimeType": "text/csv", "buffer": content})
    press(owner, "Upload")
    fill(owner, Title="Homes", **{"Name of the new population": "town"})
    owner.get_by_text("Places: longitude and latitude").click()
    for place, kind in enumerate(("", "", "integer", "category")):
        owner.locator(f"[name=c{place}_kind]").select_option(kind)
    owner.locator("[name=p0_longitude]").select_option("0")
    owner.locator("[name=p0_latitude]").select_option("1")
    regions = json.dumps({"type": "FeatureCollection", "features": features})
    texts = {"c2_low": "1", "c2_high": "9", "c2_reason": "the tax office's scale"}
    texts |= {"c3_values": "\n".join(_KINDS), "c3_reason": "the tax office's two kinds"}
    texts |= {"p0_name": "home", "p0_within": regions, "p0_property": "district", "p0_reason": "the town's districts"}
    review(owner, **texts)
    press(owner, "Open it")
