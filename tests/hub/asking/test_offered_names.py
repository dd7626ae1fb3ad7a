"""Whatever a column is called, each question that a page offers parses, and so does each name that a button puts into one."""

from __future__ import annotations

import html
import re

import cloister as cl
from cloister.hub.decisions.policy import Object
from cloister.hub.platform.catalogue import in_sql
from cloister.hub.platform.catalogue.reading import examples
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.asking.pages import Offer, example_of
from cloister.query.parse import parse
from tests.hub.house import House

NAMES = ("Birth year", "select", "Größe", "N", "count", "a-b", "x;y", "1st", "it's", "naïve café", "date", "from")
"""Names that files have, and that are no plain words of SQL."""


def table_of(number: str, key: str) -> cl.PrivateTable:
    return cl.PrivateTable({number: [1], key: ["a"]}, columns={number: cl.Integer(0, 9), key: cl.Category(["a", "b"])})


def test_each_offered_question_parses() -> None:
    for number, key in zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True):
        table = table_of(number, key)
        declaration = {"columns": {number: {"kind": "integer"}, key: {"kind": "category"}}}
        offered = [
            example_of(Offer(which=Object(kind="data-set", id="d", name="people"), table=table)),
            examples(DataSet(name="people", declaration=declaration), "https://hub", "ada@example.org", 0)["sql"],
            f"SELECT AVG({in_sql(number)}) AS mean FROM people WHERE {in_sql(key)} = 'a'",
        ]
        for sql in offered:
            assert parse(sql, {"people": table}).questions, sql


def test_each_name_that_a_button_inserts_stands_in_a_question(house: House) -> None:
    columns = {name: {"kind": "integer", "low": 0, "high": 9} for name in NAMES}
    owner = house.person("owner", "analyst")
    house.sample_data_set("people", owner=owner, rows={name: [1, 2] for name in NAMES}, declaration={"columns": columns})
    page = owner.client.get("/ask").text
    inserted = [html.unescape(each) for each in re.findall(r'data-insert="([^"]*)"', page)]
    table = cl.PrivateTable({name: [1] for name in NAMES}, columns={name: cl.Integer(0, 9) for name in NAMES})
    assert {in_sql(name) for name in NAMES} <= set(inserted)
    for name in NAMES:
        assert parse(f"SELECT COUNT(*) AS n FROM people WHERE {in_sql(name)} < 5", {"people": table}).questions
