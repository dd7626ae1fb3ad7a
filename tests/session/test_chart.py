"""The picture of an answer: a panel for each statistic, labels that do not run into each other, bars that use the width."""

from __future__ import annotations

from typing import Any

import pytest

import cloister as cl
from cloister.session.releases.release import Release

WARDS = ["emergency medicine", "surgery", "paediatrics", "obstetrics", "internal medicine", "intensive care"]


def answer(measures: str, keys: list[str] = WARDS) -> Release:
    rows = {"ward": keys * 10, "age": [30, 40, 50] * (10 * len(keys) // 3)}
    people = cl.PrivateTable(rows, columns={"ward": cl.Category(keys), "age": cl.Integer(0, 100)})
    with cl.Session({"people": people}, budget=cl.PureDP(10)) as session:
        return session.sql(f"SELECT ward, {measures} FROM people GROUP BY ward", spend="1")


def panels(drawn: dict[str, Any]) -> list[dict[str, Any]]:
    return list(drawn.get("vconcat", [drawn]))


def measured(panel: dict[str, Any]) -> str:
    return str(panel["layer"][0]["encoding"]["y"]["title"])


@pytest.mark.parametrize(("keys", "turned"), [(WARDS, True), (["F", "M", "X"], False), (["内科" * 6, "外科", "儿科"], False)])
def test_labels_that_would_not_fit_are_turned(keys: list[str], turned: bool):
    drawn = answer("COUNT(*) AS n", keys).plot().to_dict()
    angle = drawn["layer"][0]["encoding"]["x"]["axis"]["labelAngle"]
    assert (angle != 0) is turned


def test_wide_signs_are_turned_where_letters_would_fit():
    def angle(key: str) -> int:
        drawn = answer("COUNT(*) AS n", [key, *"BCDEF"]).plot().to_dict()
        return int(drawn["layer"][0]["encoding"]["x"]["axis"]["labelAngle"])

    assert (angle("x" * 12), angle("科" * 12)) == (0, -40)


@pytest.mark.parametrize("keys", [["F", "M", "X"], WARDS])
def test_the_width_is_used(keys: list[str]):
    [panel] = panels(answer("COUNT(*) AS n", keys).plot().to_dict())
    assert (panel.get("width") or panel["layer"][0]["width"]) >= 600


def test_each_statistic_has_a_panel():
    drawn = answer("COUNT(*) AS n, AVG(age) AS age").plot().to_dict()
    assert [measured(each) for each in panels(drawn)] == ["n", "age"]
    assert drawn["vconcat"][0]["title"]["text"] == "n, age"


def test_more_than_four_statistics_are_said():
    names = ["COUNT(*) AS n", *(f"SUM(age) AS s{place}" for place in range(3)), "AVG(age) AS a"]
    drawn = answer(", ".join(names)).plot().to_dict()
    assert [measured(each) for each in panels(drawn)] == ["n", "s0", "s1", "s2"]
    assert "the first 4 of 5 statistics" in drawn["vconcat"][0]["title"]["subtitle"]
