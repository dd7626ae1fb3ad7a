"""A release and a plan as text: exact, the same bytes each time, and nothing but what was written is read."""

from __future__ import annotations

import base64
import copy
import dataclasses
import itertools
import json
import math
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Release
from cloister.session.examples import small_release
from cloister.session.releases import wire
from cloister.session.releases.frames import Frame, Series
from cloister.session.releases.wire import _told, from_json, to_json
from tests.query.hospital import rows, tables
from tests.tiers import by_day_and_night

QUESTIONS = [
    "SELECT sex, COUNT(*) AS n, COUNT(smoker) AS c, AVG(age) AS a, SUM(pay) AS s FROM people GROUP BY sex",
    "SELECT VARIANCE(age), STDDEV(pay), COVAR_POP(age, pay), CORR(age, pay), REGR_SLOPE(pay, age), REGR_R2(pay, age) FROM people",
    "SELECT MEDIAN(age) AS m, MIN(pay) AS lowest, MAX(born) AS latest, MODE(town) AS most FROM people",
    "SELECT QUANTILE_CONT(born, 0.25) AS q FROM people",
    "SELECT sex, MEDIAN(pay) AS m FROM people GROUP BY sex",
    "SELECT MODE(smoker) AS s, MODE(age) AS a FROM people",
    "SELECT ROUND(SUM(pay) / COUNT(*), 2) AS x, COALESCE(SUM(age) / NULLIF(COUNT(*), 0), -1) AS y, COUNT(*) * 2 AS z FROM people",
    "SELECT ward, COUNT(DISTINCT patient) AS p, COUNT(DISTINCT cost) AS d, 'c' AS k, NULL AS nothing FROM visits GROUP BY ward",
    "SELECT DATE_TRUNC('month', born) AS m, COUNT(*) AS n FROM people GROUP BY m ORDER BY n DESC LIMIT 3",
    "SELECT smoker, age > 40 AS old, COUNT(*) FROM people GROUP BY 1, 2",
    "SELECT sex, town, COUNT(*) AS n FROM people GROUP BY CUBE (sex, town)",
    "SELECT AVG(total) AS t, MEDIAN(total) AS m FROM (SELECT patient, SUM(cost) / 3 AS total FROM visits GROUP BY patient) x",
    "SELECT MEDIAN(DATE_TRUNC('month', born)) AS m, MAX(age // 2) AS h FROM people",
    "SELECT visit, COUNT(*) AS n FROM visits GROUP BY visit",
]
BUDGETS: dict[str, cl.ApproxDP | cl.ZCDP] = {"approx": cl.ApproxDP(10**4, "1e-3"), "zcdp": cl.ZCDP(10**4, "1e-3")}


@pytest.fixture(scope="module", params=list(BUDGETS))
def session(request: pytest.FixtureRequest) -> Iterator[cl.Session]:
    with cl.Session(tables(rows()), budget=BUDGETS[request.param], random=Random.deterministic(4)) as opened:
        yield opened


def same(left: Any, right: Any) -> bool:
    """Frames with equal names, kinds, types and values, NaN equal to NaN."""
    for (one, mine), (other, theirs) in itertools.zip_longest(left.columns.items(), right.columns.items()):
        if one != other or mine.kind != theirs.kind or mine.values.dtype.kind != theirs.values.dtype.kind:
            return False
        if repr(mine.tolist()) != repr(theirs.tolist()):
            return False
    return True


def agree(answer: Release) -> None:
    text = answer.to_json()
    whole = json.loads(text)
    assert text == json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    assert whole["release"] == json.loads(json.dumps(_told(answer)))  # part by part, or as a whole
    again = Release.from_json(text)
    assert again.to_json() == pickle.loads(pickle.dumps(answer)).to_json() == copy.deepcopy(answer).to_json() == text
    assert type(again) is type(answer)
    assert again == answer
    assert hash(again) == hash(answer)
    assert answer != dataclasses.replace(answer, cells=answer.cells + 1)
    assert again.buy_bias is None
    assert same(again.table, answer.table)
    for confidence, joint in itertools.product((0.5, 0.95, 0.999), (False, True)):
        assert same(again.margin(confidence, joint=joint), answer.margin(confidence, joint=joint))
    assert same(again.drowned(), answer.drowned())
    assert repr(again) == repr(answer)
    assert again._repr_html_() == answer._repr_html_()
    assert again.provenance == answer.provenance
    assert (again.cost, again.spent_by, again.cells, again.threshold) == (
        answer.cost,
        answer.spent_by,
        answer.cells,
        answer.threshold,
    )
    assert [again.bounds(name) for name in again.column_names] == [answer.bounds(name) for name in answer.column_names]
    if len(answer) and answer.groups:
        assert again.plot().to_dict() == answer.plot().to_dict()


@pytest.mark.parametrize(
    ("session", "sql"),
    [
        pytest.param(budget, sql, marks=[] if (place + number) % 2 == 0 else [pytest.mark.slow])
        for number, budget in enumerate(BUDGETS)
        for place, sql in enumerate(QUESTIONS)
    ],
    indirect=["session"],
)
def test_every_kind_of_answer_comes_back_as_it_was(session: cl.Session, sql: str) -> None:
    """By day under one budget or the other in turn, at night under both."""
    agree(session.sql(sql, spend=10, fresh=True))
    agree(session.sql(sql, spend=25))


def test_a_workload_comes_back_as_it_was(session: cl.Session) -> None:
    asked = [
        "SELECT sex, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY sex",
        "SELECT town, COUNT(*) AS n, AVG(age) AS a FROM people GROUP BY town",
        "SELECT COUNT(*) AS n FROM people WHERE age < 30",
        "SELECT COUNT(*) AS n FROM people WHERE age < 60",
    ]
    for answer in session.workload(asked, spend=7):
        agree(answer)


def test_a_text_that_names_every_category_is_not_kept() -> None:
    """Each question has a formula of its own: kept by the hundred, they would fill the memory."""
    options = [f"category {number}" for number in range(2000)]
    table = cl.PrivateTable({"kind": options}, columns={"kind": cl.Category(options)})
    with cl.Session({"things": table}, budget=cl.PureDP(100), random=Random.deterministic(4)) as opened:
        for number in range(3):
            agree(opened.sql(f"SELECT MODE(kind) AS m, COUNT(*) + {number} AS n FROM things", spend=1))
    kept = [text for _, text in wire._TEXTS.values()]
    assert kept
    assert max(map(len, kept)) <= wire._LONGEST_KEPT < len(json.dumps(options))


def test_what_is_read_can_be_asked_for_its_bias_no_more(session: cl.Session) -> None:
    again = from_json(session.sql(QUESTIONS[0], spend=1).to_json())
    with pytest.raises(cl.InvalidParameter, match="no longer tied to a session"):
        again.bias(spend=1)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    with cl.Session(tables(rows()), budget=cl.PureDP(10**4), random=Random.deterministic(4)) as opened:
        return [to_json(opened.sql(sql, spend=10)) for sql in QUESTIONS[:-1]]


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "null",
        "[]",
        "3",
        "{",
        '"text"',
        "{}",
        '{"format":2,"release":{}}',
        '{"format":1,"release":{}}',
        "[" * 100_000,
        7,
        None,
    ],
)
def test_what_is_no_release_is_refused(wrong: Any) -> None:
    with pytest.raises(cl.InvalidParameter, match="The text is invalid"):
        from_json(wrong)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(inner, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> str:
    """The text with one thing in another's place; the document itself stays what it was."""
    inner, key = at(document, path[:-1]), path[-1]
    before, inner[key] = inner[key], value
    try:
        return json.dumps(document)
    finally:
        inner[key] = before


@by_day_and_night("each", 30, 60)
def test_a_spoilt_text_is_refused_or_can_be_worked_with(texts: list[str], each: int) -> None:
    """Whatever stands in the place of whatever: an `InvalidParameter`, or a release that answers without an error of Python's.
    So many places `each` of the thirteen texts has."""
    draw = random.Random(7)
    values: list[Any] = [
        None,
        -1,
        0,
        2**80,
        1.5,
        "",
        "x",
        [],
        {},
        True,
        {"$": "Fraction", "v": "1e9"},
        {"$": "os"},
        {"$": "map", "v": []},
    ]
    refused = 0
    for text in texts:
        document = json.loads(text)
        everywhere = [path for path in places(document) if path]
        for path in draw.sample(everywhere, min(each, len(everywhere))):
            spoilt = changed(document, path, draw.choice(values))
            try:
                release = from_json(spoilt)
            except cl.InvalidParameter:
                refused += 1
                continue
            try:
                assert len(release.table) == release.num_rows
                release.margin()
                assert repr(release)
            except cl.CloisterError:
                pass
    assert refused > 5 * each


EXTREMES: list[Any] = [
    *(1e308, -1e308, 1e-320, 1e200, 10**4000, -(10**400), 0, -1, 2**62),
    *({"$": "float", "v": "nan"}, {"$": "float", "v": "inf"}, {"$": "float", "v": "-inf"}),
    *({"$": "Fraction", "v": "1" + "0" * 3999}, {"$": "Fraction", "v": "1/1" + "0" * 3999}, {"$": "Fraction", "v": "-1/3"}),
]


@by_day_and_night("each", 30, 60)
def test_extreme_numbers_are_refused_or_can_be_worked_with(texts: list[str], each: int) -> None:
    """In the place of every number that a formula, a noise or the release itself holds."""
    draw, refused = random.Random(11), 0
    for text in texts:
        document = json.loads(text)
        numbers = [path for path in places(document) if path and type(at(document, path)) in (int, float)]
        numbers += [
            path
            for path in places(document)
            if isinstance(at(document, path), dict) and at(document, path).get("$") == "Fraction"
        ]
        for path in draw.sample(numbers, min(each, len(numbers))):
            spoilt = changed(document, path, draw.choice(EXTREMES))
            try:
                release = from_json(spoilt)
            except cl.InvalidParameter:
                refused += 1
                continue
            with np.errstate(all="ignore"):
                for confidence in (0.5, 0.95, 1 - 1e-9):
                    release.margin(confidence, joint=True)
                assert len(release.table) == release.num_rows
                assert repr(release)
                assert release.drowned().num_rows == release.num_rows
    assert refused > 10 * each // 3


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@pytest.mark.parametrize("weight", [0, 0.0, 1e308, 1e-320, {"$": "float", "v": "nan"}, {"$": "float", "v": "inf"}])
def test_a_noise_that_is_none_or_without_end_is_refused(texts: list[str], weight: Any) -> None:
    document = json.loads(texts[0])
    for path in [path for path in places(document) if path and path[-1] == "weight"][:3]:
        with pytest.raises(cl.InvalidParameter):
            from_json(changed(document, path, weight))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("integer", ["x", None]),
        ("integer", [True, 1]),
        ("date", ["2020-01-02", "x"]),
        ("boolean", [1, None]),
        ("text", [1, {"$": "date", "v": "2020-01-02"}]),
        ("real", ["x", 1.5]),
    ],
)
def test_a_key_that_is_not_of_its_kind_is_refused(kind: str, values: list[Any]) -> None:
    """Or pandas would show it, and polars and Arrow would fail in their own words."""
    document = json.loads(small_release().to_json())
    key = document["release"]["groups"]["v"][0][1]
    key |= {"kind": kind, "values": {"$": "array", "shape": [2], "v": values}}
    with pytest.raises(cl.InvalidParameter):
        from_json(json.dumps(document))


def test_whole_numbers_beside_a_missing_one_come_exact_into_pandas() -> None:
    frame = Frame({"k": Series("integer", np.array([2**53 + 1, None], dtype=object))})
    column = frame.to_pandas()["k"]
    assert int(column[0]) == 2**53 + 1
    assert column.isna().tolist() == [False, True]


@pytest.mark.parametrize("width", [0, 0.0, -1.0, 1e308, {"$": "float", "v": "nan"}])
def test_a_range_of_no_width_is_refused(texts: list[str], width: Any) -> None:
    for text in texts[:2]:
        document = json.loads(text)
        widths = [path for path in places(document) if path and (path[-1] == "width" or path[-2:-1] == ("widths",))]
        assert widths
        for path in widths[:4]:
            if type(at(document, path)) is float:
                with pytest.raises(cl.InvalidParameter):
                    from_json(changed(document, path, width))


def test_more_rows_than_there_were_groups_are_refused(texts: list[str]) -> None:
    document = json.loads(texts[0])
    for cells in (0, 1):
        with pytest.raises(cl.InvalidParameter):
            from_json(changed(document, ("release", "cells"), cells))


def test_more_noises_than_any_question_buys_are_refused() -> None:
    with cl.Session(tables(rows()), budget=cl.PureDP(10**4), random=Random.deterministic(4)) as opened:
        document = json.loads(to_json(opened.sql("SELECT AVG(age) AS a FROM people", spend=10)))
    [first, *_] = [path for path in places(document) if path and path[-1] == "terms"]
    [term] = at(document, first)

    def of(number: int) -> str:
        found = copy.deepcopy(document)
        for path in [path for path in places(document) if path and path[-1] == "terms"]:
            at(found, path[:-1])["terms"] = [{**term, "weight": 1 + place * 1e-6} for place in range(number)]
        return json.dumps(found)

    with pytest.raises(cl.InvalidParameter):
        from_json(of(10_001))
    assert float(from_json(of(400)).margin()["a"][0]) > float(from_json(of(100)).margin()["a"][0])


def test_numbers_that_would_fill_the_memory_are_refused(texts: list[str]) -> None:
    document = json.loads(texts[2])
    leaves = [path for path in places(document) if path and path[-1] == "leaves"]
    assert leaves
    for name in ("size", "low"):
        with pytest.raises(cl.InvalidParameter):
            from_json(changed(document, (*leaves[0], name), 10**15))
    scales = [path for path in places(document) if path and path[-1] == "scale"]
    for number in ("1e999999999", "9" * 5000, "1/0", "0x10", " 1", "١"):
        with pytest.raises(cl.InvalidParameter):
            from_json(changed(document, scales[0], {"$": "Fraction", "v": number}))


def test_an_array_is_as_long_as_it_says(texts: list[str]) -> None:
    document = json.loads(texts[0])
    packed = next(path for path in places(document) if path and path[-1] == "dtype")[:-1]
    for spoilt in (
        ["shape", [10**12]],
        ["shape", [-1]],
        ["v", "%%%"],
        ["v", base64.b64encode(b"123").decode()],
        ["dtype", "object"],
    ):
        with pytest.raises(cl.InvalidParameter):
            from_json(changed(document, (*packed, spoilt[0]), spoilt[1]))


def test_values_that_are_no_numbers_of_json_come_back() -> None:
    from cloister.session.releases.wire import _read, _written

    for value in (math.inf, -math.inf, -0.0, 5e-324, 0.1):
        again = _read(json.loads(json.dumps(_written(value), allow_nan=False)))
        assert math.copysign(1, again) == math.copysign(1, value)
        assert again == value
    assert math.isnan(_read(_written(math.nan)))
    array = np.array([[1.5, np.nan], [-0.0, np.inf]])
    assert _read(_written(array)).tobytes() == array.tobytes()


def test_a_plan_is_told_as_plain_data() -> None:
    with cl.Session(tables(rows()), budget=cl.PureDP(10)) as session:
        plan = session.explain(QUESTIONS[0], spend="0.1")
        told = json.loads(json.dumps(plan.summary(0.9), allow_nan=False))
        assert told["cost"] == {"kind": "PureDP", "text": "ε = 0.1", "epsilon": "0.1"}
        assert told["costs"] == {"people": told["cost"]}
        assert told["digest"] == plan.digest
        assert told["text"] == str(plan)
        assert told["picture"] == plan.picture()
        assert told["margins"] == {name: float(series.values[0]) for name, series in plan.margin(0.9).columns.items()}
        assert list(told["names"]) == ["sex", "n", "c", "a", "s"]
        cube = session.explain(QUESTIONS[10], spend="0.1").summary()
        assert len(json.loads(json.dumps(cube, allow_nan=False))["together"]) == 4
        modes = session.explain(QUESTIONS[5], spend="0.1").summary()
        assert modes["margins"] == {"s": None, "a": None}, "of which nothing is known"
