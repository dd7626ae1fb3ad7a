"""The picture of an answer: a panel for each statistic, labels that do not run into each other, bars that use the width."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.session.examples import small_release
from cloister.session.releases.chart import chart_of, shape_of
from cloister.session.releases.frames import Series
from cloister.session.releases.release import Release

WARDS = ["emergency medicine", "surgery", "paediatrics", "obstetrics", "internal medicine", "intensive care"]


def layers(panel: dict[str, Any]) -> list[str]:
    marks = [each["mark"] for each in panel["layer"]]
    return [each if isinstance(each, str) else each["type"] for each in marks]


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


def grouped(keys: str, columns: dict[str, Any], rows: dict[str, list[Any]], spend: str = "5") -> Release:
    people = cl.PrivateTable(rows, columns=columns)
    with cl.Session({"people": people}, budget=cl.PureDP(100)) as session:
        return session.sql(f"SELECT {keys}, COUNT(*) AS n FROM people GROUP BY {keys}", spend=spend)


YEARS = {"year": [2000 + place % 9 for place in range(900)], "sex": ["F", "M", "M"] * 300}
BY_YEAR = {"year": cl.Integer(2000, 2008), "sex": cl.Category(["F", "M"])}
CODES = [f"I{number}" for number in range(20)]
BY_CODE = {"ward": cl.Category(WARDS), "code": cl.Category(CODES)}
CODED = {"ward": (WARDS * 200)[:1000], "code": (CODES * 50)[:1000]}


def test_dots_with_intervals_are_usual():
    found = answer("COUNT(*) AS n")
    assert shape_of(found) == "dots"
    [panel] = panels(found.plot().to_dict())
    assert layers(panel) == ["rule", "point", "point"]
    assert panel["layer"][0]["encoding"]["y2"]["field"] == "high"


@pytest.mark.parametrize("keys", ["year", "year, sex"])
def test_an_ordered_key_is_a_line_in_its_order(keys: str):
    found = grouped(keys, BY_YEAR, YEARS)
    backwards = found.take(range(found.num_rows)[::-1])
    assert shape_of(backwards) == "lines"
    [panel] = panels(backwards.plot().to_dict())
    assert layers(panel) == ["rule", "line", "point", "point"]
    assert panel["layer"][0]["encoding"]["x"]["sort"] == [str(year) for year in range(2000, 2009)]


def test_many_values_of_two_keys_are_a_heat_map():
    found = grouped("ward, code", BY_CODE, CODED)
    assert (shape_of(found), found.num_rows) == ("heat", 120)
    [panel] = panels(found.plot().to_dict())
    assert layers(panel) == ["rect", "point"]
    assert len(panel["data"]["values"]) == 120
    assert "crosses mark what is mostly noise" in panel["title"]["subtitle"]


def test_a_missing_key_reads_null():
    release = small_release()
    [name] = release.groups
    missing = replace(release, groups={name: Series("text", np.array([None, "M"], dtype=object))})
    [panel] = panels(missing.plot().to_dict())
    assert [each["key"] for each in panel["data"]["values"]] == ["NULL", "M"]


def test_a_count_below_zero_and_a_mean_of_nobody_are_marked():
    empty = [*WARDS, "none at all"]
    people = cl.PrivateTable(
        {"ward": WARDS * 50, "age": [30, 40, 50] * 100}, columns={"ward": cl.Category(empty), "age": cl.Integer(0, 100)}
    )
    with cl.Session({"people": people}, budget=cl.PureDP(10)) as session:
        found = session.sql(
            "SELECT ward, COUNT(*) AS n, COUNT(age) AS known, AVG(age) AS age FROM people GROUP BY ward", spend="5"
        )
    nobody = {name: replace(each, values=np.append(each.values[:6], 0)) for name, each in found.readings.items()}
    found = replace(found, readings=nobody)  # whatever the noise of the empty group was
    assert [found.bounds(name) for name in ("n", "known", "age")] == [(0, math.inf), (0, math.inf), (0, 100)]
    flags = found.drowned()
    assert flags["age"].tolist() == [False] * 6 + [True], "of nobody any mean is possible"
    last = found.take([6])
    assert "~" in last.text().splitlines()[-1]
    [_, *rows] = [
        each["weak"] for each in panels(found.select({"ward": "ward", "age": "age"}).plot().to_dict())[0]["data"]["values"]
    ]
    assert rows == [False] * 5 + [True]
    release = small_release()
    [name] = release.readings
    below = replace(release, readings={name: replace(release.readings[name], values=np.array([-50, 100]))})
    assert below.margin()["count"].tolist() == [6.0, 6.0]
    assert below.drowned()["count"].tolist() == [True, False], "a count is not -50, however sure the noise is"
    [first, _] = panels(below.plot().to_dict())[0]["data"]["values"]
    assert (first["value"], first["low"], first["high"]) == (-50, -50, -44)


def spans(chart: Any) -> list[Any]:
    """Between which numbers the axes of values run."""
    layers = chart.to_dict()["layer"]
    return [each["encoding"]["y"].get("scale", {}).get("domain") for each in layers]


@pytest.mark.parametrize(("counts", "low", "high"), [([1000, 1004], 994, 1010), ([1000, 3], 0, 1006), ([-50, 100], -50, 106)])
def test_intervals_far_from_zero_are_seen_and_pages_share_their_axis(counts: list[int], low: int, high: int):
    release = small_release()
    [name] = release.readings
    found = replace(release, readings={name: replace(release.readings[name], values=np.array(counts))})
    assert spans(found.plot()) == [[low, high]] * 3
    for page in (0, 1):
        assert spans(chart_of(found.take([page]), whole=found)) == [[low, high]] * 3


def test_a_category_that_is_called_null_is_not_what_is_missing():
    rows = {"ward": ["NULL"] * 40 + [None] * 90 + ["a"] * 10, "age": [40] * 140}
    people = cl.PrivateTable(rows, columns={"ward": cl.Category(["NULL", "a"], nullable=True), "age": cl.Integer(0, 100)})
    with cl.Session({"people": people}, budget=cl.PureDP(100)) as session:
        found = session.sql("SELECT ward, COUNT(*) AS n FROM people GROUP BY ward", spend="50")
    drawn = found.plot().to_dict()
    [data] = drawn["datasets"].values() if "datasets" in drawn else [drawn["data"]["values"]]
    assert sorted((row["key"], round(row["value"], -1)) for row in data) == [("NULL", 40), ("NULL (missing)", 90), ("a", 10)]
    assert "NULL (missing)" in repr(found)
