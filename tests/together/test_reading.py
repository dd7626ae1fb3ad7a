"""A request that is read is the request that was written; anything else is refused."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import cloister as cl
from cloister.noise import DiscreteLaplace, SummedNoise
from cloister.noise.laws import law_plain
from cloister.tables import Aggregate, Aggregation, And, Between, Column, Compare, In, IsNull, Like, Literal, Not, Or
from cloister.tables.engines.noised import Cells, Combination, Integers, NoisedRequest
from cloister.together.reading import request_from
from tests.session.test_parts import COLUMNS

SUMMED = SummedNoise(parts=[(DiscreteLaplace(scale=10), "4/3")])
ROWS = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))


ANY: dict[str, Any] = {}


def request_where(where: Any) -> NoisedRequest:
    return NoisedRequest(table="people", aggregations=(Aggregation(None, where=where),), integers=(ROWS,), cells=Cells())


AGE = Column("age")
CONDITIONS = [
    Compare("<", AGE, Literal(40)),
    Compare("=", Column("pay"), AGE),
    Compare(">=", AGE, Literal("40.5")),
    Compare("!=", Column("born"), Literal(datetime.date(2000, 2, 29))),
    Column("smoker"),
    Literal(True),
    Literal(None),
    In("sex", ["F", "M", None]),
    In("age", [40, 41]),
    Between("age", 17, 40),
    IsNull("pay"),
    Like("town", "D%"),
    Not(Or(IsNull("pay"), Compare(">", AGE, Literal(3)))),
    And(Compare("<", AGE, Literal(40)), Or(IsNull("pay"), Like("town", "%'\"\\_"))),
]


@pytest.mark.parametrize("where", CONDITIONS, ids=lambda each: type(each).__name__)
def test_conditions_are_read(where: Any) -> None:
    text = request_where(where).canonical()
    assert request_from(text, ANY).canonical() == text


def test_what_is_not_the_one_text_is_refused() -> None:
    text = request_where(CONDITIONS[0]).canonical()
    told = json.loads(text)
    for changed in (
        text + " ",
        json.dumps(told),
        json.dumps({**told, "more": 1}, sort_keys=True, separators=(",", ":")),
        json.dumps({**told, "number": 0.0}, sort_keys=True, separators=(",", ":")),
        text.replace('"scale":"10"', '"scale":"10/1"'),
        text.replace('"scale":"10"', '"scale":"20/2"'),
    ):
        assert changed != text
        with pytest.raises(cl.UnsupportedQuery, match="was not read"):
            request_from(changed, ANY)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "another format"),
        ({"table": {"kind": "extended"}}, "about a relation"),
        ({"aggregations": 5}, "can't be read"),
        (
            {"integers": [{"name": "x", "map": "else", "noise": {"law": "DiscreteLaplace", "scale": "1", "sensitivity": "1"}}]},
            "map",
        ),
        ({"integers": [{"name": "x", "map": "combination", "parts": [], "noise": {"law": "Else"}}]}, "can't be read"),
        ({"integers": [{"name": "x", "map": "combination", "parts": [], "noise": law_plain(SUMMED)}]}, "a sum already"),
        ({"number": "0"}, "can't be read"),
        ({"cells": [["0", 3, None]]}, "can't be read"),
    ],
)
def test_other_texts_are_refused(change: dict[str, Any], words: str) -> None:
    told = {**json.loads(request_where(None).canonical()), **change}
    with pytest.raises(cl.UnsupportedQuery, match=words):
        request_from(json.dumps(told, sort_keys=True, separators=(",", ":")), ANY)


def test_conditions_that_go_too_deep_are_refused() -> None:
    told = json.loads(request_where(CONDITIONS[0]).canonical())
    for _ in range(300):
        told["aggregations"][0]["where"] = ["not", told["aggregations"][0]["where"]]
    with pytest.raises(cl.UnsupportedQuery):
        request_from(json.dumps(told, sort_keys=True, separators=(",", ":")), ANY)


@settings(max_examples=100, deadline=None)
@given(some.text(max_size=200))
def test_garbage_is_refused(text: str) -> None:
    with pytest.raises(cl.UnsupportedQuery, match="was not read"):
        request_from(text, ANY)


def test_a_column_that_the_site_does_not_declare_is_refused() -> None:
    total = NoisedRequest(
        table="people",
        aggregations=(Aggregation(None, aggregates=(Aggregate("sum", "sum", (("age", 17),)),)),),
        integers=(Integers("sum", Combination((("sum", 3),), width=219), DiscreteLaplace(scale=10)),),
        cells=Cells(),
    )
    assert request_from(total.canonical(), COLUMNS) == total
    with pytest.raises(cl.UnsupportedQuery, match="not declared"):
        request_from(total.canonical(), ANY)


@pytest.mark.parametrize("number", ["1e10000000", "1E9", "1" * 9000, "1_000", " 10", "0x10", "nan", "1/2/3", ""])
def test_a_number_is_digits_and_not_an_exponent(number: str) -> None:
    """Twelve characters with an exponent would take all the memory that a site has, before anything is charged."""
    rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    text = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(rows,), cells=Cells()).canonical()
    with pytest.raises(cl.UnsupportedQuery, match="was not read"):
        request_from(text.replace('"scale":"10"', f'"scale":"{number}"'), {})
    where = Aggregation(None, where=Compare("=", Column("age"), Literal(7)))
    text = NoisedRequest(table="people", aggregations=(where,), integers=(rows,), cells=Cells()).canonical()
    assert '"number","7"' in text
    with pytest.raises(cl.UnsupportedQuery, match="was not read"):
        request_from(text.replace('"number","7"', f'"number","{number}"'), {})
