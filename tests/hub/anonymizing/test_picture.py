"""The picture of risk against loss: every name can be read, whatever the points are."""

from __future__ import annotations

import re
from functools import cache
from itertools import combinations
from math import exp, sin
from typing import Any

import pytest

from cloister.hub.services.anonymizing.picture import Box, frontier_svg

WORDS = {"risk": "people who are found", "loss": "share that is lost", "raw": "as it is"}
BEFORE = {"marketer": 0.9}
KS = (2, 3, 5, 10, 20, 50)


def points(k: list[tuple[float, float]], levels: list[tuple[float, float]]) -> list[dict[str, Any]]:
    """Of pairs of risk and loss."""
    of_k = [{"of": "k", "k": KS[place], "marketer": risk, "loss": loss} for place, (risk, loss) in enumerate(k)]
    return of_k + [{"of": "levels", "k": 5, "marketer": risk, "loss": loss} for risk, loss in levels]


SETTINGS = {
    "nearly as it is": points(
        [(0.127, 0.0), (0.127, 0.0), (0.125, 0.01), (0.015, 0.118), (0.01, 0.174), (0.00333, 0.414)],
        [(0.053, 0.024), (0.03, 0.057)],
    ),
    "a letter beside a k": points(
        [(0.12, 0.05), (0.08, 0.08), (0.04, 0.15), (0.03, 0.18), (0.012, 0.3), (0.005, 0.42)],
        [(0.05, 0.16), (0.03, 0.2), (0.02, 0.28), (0.012, 0.33), (0.0052, 0.415), (0.004, 0.45)],
    ),
    "both on one line": points(
        [(exp(-each), 0.08 * each) for each in range(1, 7)], [(exp(-each / 2), 0.04 * each) for each in range(2, 11)]
    ),
    "steps": points([(0.3, 0.1)] * 3 + [(0.02, 0.4)] * 3, [(0.3 / (1 + each), 0.1 + 0.03 * each) for each in range(9)]),
    "close together": points(
        [(0.1 + 0.012 * sin(each), 0.2 + 0.03 * sin(2 * each)) for each in range(6)],
        [(0.1 + 0.015 * sin(3 * each), 0.2 + 0.025 * sin(each)) for each in range(9)],
    ),
    "nothing is lost": points([(0.5, 0.0), (0.4, 0.0), (0.3, 0.0)], []),
    "all is lost": points([(1e-6, 1.0)] * 6, [(1e-5, 0.9), (2e-6, 0.99)]),
    **{
        f"irregular {seed}": points(
            sorted(((0.9 * abs(sin(seed + 7 * each)) + 1e-4, abs(sin(3 * seed * each))) for each in range(6)), reverse=True),
            sorted(((0.9 * abs(sin(seed + 5 * each)) + 1e-4, abs(sin(2 * seed + each)) / 2) for each in range(9)), reverse=True),
        )
        for seed in range(1, 25)
    },
}


def boxes(svg: str) -> dict[str, Box]:
    """Of each name, by its anchor, with room for a wide typeface."""
    found = {}
    for mark in re.findall(r'<text aria-label="[^>]*text mark[^>]*>[^<]*</text>', svg):
        name = re.sub(r"<[^>]*>", "", mark)
        if not name:
            continue
        x, y = map(float, re.search(r"translate\(([-\d.e]+),([-\d.e]+)\)", mark).groups())  # type: ignore[union-attr]
        wide = 12 * sum(0.4 if each in " ," else 0.62 for each in name)
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[re.search(r'text-anchor="(\w+)"', mark)[1]]  # type: ignore[index]
        found[name] = Box(left, y - 10, left + wide, y + 2)
    return found


@cache
def drawn(setting: str) -> str:
    """Its picture, once for the tests that look at it."""
    return frontier_svg(SETTINGS[setting], {"marketer": 0.127} if setting == "nearly as it is" else BEFORE, WORDS)


@pytest.mark.parametrize("setting", SETTINGS)
def test_each_choice_has_its_name_on_no_other_and_none_is_outside(setting: str) -> None:
    found = boxes(drawn(setting))
    shown = ", ".join(found)
    levels = [each for each in SETTINGS[setting] if each["of"] == "levels"]
    for point in SETTINGS[setting]:
        assert point["of"] == "levels" or re.search(rf"\b{point['k']}\b", shown), point["k"]
    assert shown.count("as it is") == 1
    assert len(re.findall(r"\b[A-I]\b", shown)) == len(levels)
    assert len(found) >= 2
    for (one, here), (other, there) in combinations(found.items(), 2):
        assert not here.meets(there), (one, other)
    for name, box in found.items():
        assert -2 <= box.left < box.right <= 530, (name, box)
        assert -3 <= box.top < box.bottom <= 283, (name, box)


def test_a_line_through_a_box_is_seen_and_one_beside_it_is_not() -> None:
    box = Box(0, 0, 10, 4)
    through = [((-5, 1), (15, 3)), ((5, -9), (5, 9)), ((3, 2), (3, 2)), ((4, 3), (40, 30)), ((-1, 3.5), (0.9, 4.4))]
    beside = [((-5, 4), (15, 4)), ((0, -9), (0, 9)), ((-3, 2), (-1, 2)), ((11, 2), (11, 2)), ((-1, 3.5), (0.5, 4.4))]
    assert [box.crossed(each) for each in (*through, *beside)] == [True] * 5 + [False] * 5
    assert [box.crossed((to, at)) for at, to in (*through, *beside)] == [True] * 5 + [False] * 5


def test_a_name_far_from_its_point_is_led_to_it() -> None:
    assert 'aria-roledescription="rule mark"' in drawn("close together")
    assert 'aria-roledescription="rule mark"' not in drawn("nothing is lost")
