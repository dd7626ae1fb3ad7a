"""Whatever a column is called, each question that a page offers parses, and so does each name that a button puts into one."""

from __future__ import annotations

import html
import re

import cloister as cl
from cloister.hub.decisions.policy import Object
from cloister.hub.platform.catalogue.reading import examples
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.asking.pages import Offer, example_of
from cloister.hub.services.synthesising.order import _examples
from cloister.query.parse import parse
from cloister.tables.expression.names import quoted
from tests.hub.house import House

NAMES: tuple[str, ...] = (
    "Birth year",
    "select",
    "Größe",
    "N",
    "count",
    "a-b",
    "x;y",
    "1st",
    "it's",
    "naïve café",
    "date",
    "from",
)
NAMES += ("order", "alter", "cube", "if", "mean", "n_2", 'a"b', *(f"a{blank}b" for blank in "\u00a0\u2003\u3000"))
"""Names that files have, and that are no plain words of SQL."""


def table_of(number: str, key: str) -> cl.PrivateTable:
    return cl.PrivateTable({number: [1], key: ["a"]}, columns={number: cl.Integer(0, 9), key: cl.Category(["a", "b"])})


def test_each_offered_question_parses() -> None:
    for number, key in zip((*NAMES, "n"), (*NAMES[1:], "n", NAMES[0]), strict=True):
        table = table_of(number, key)
        declaration = {"columns": {number: {"kind": "integer"}, key: {"kind": "category"}}}
        offered = [
            example_of(Offer(which=Object(kind="data-set", id="d", name="people"), table=table)),
            examples(DataSet(name="people", declaration=declaration), "https://hub", "ada@example.org", 0)["sql"],
            f"SELECT AVG({quoted(number)}) AS mean FROM people WHERE {quoted(key)} = 'a'",
            _examples(table, "people", [number, key])["query"],
            _examples(table, "people", [key, number])["query"],
        ]
        for sql in offered:
            assert parse(sql, {"people": table}).questions, sql


def test_an_offered_rule_has_no_fraction() -> None:
    """A rule reads decimals: `dose < 38/5` was refused."""
    columns = {"dose": cl.Real(0, "7.6", step="0.4"), "sex": cl.Category(["F", "M"])}
    table = cl.PrivateTable({"dose": [1.2], "sex": ["F"]}, columns=columns)
    assert _examples(table, "people", [*columns])["rules"] == "dose < 7.6 => sex = 'F'"


def test_a_data_set_may_be_called_by_a_keyword() -> None:
    for name in ("alter", "revoke", "out"):  # as those of an older version are
        declaration = {"columns": {"a": {"kind": "integer"}}}
        table = cl.PrivateTable({"a": [1]}, columns={"a": cl.Integer(0, 9)})
        for sql in (
            example_of(Offer(which=Object(kind="data-set", id="d", name=name), table=table)),
            examples(DataSet(name=name, declaration=declaration), "https://hub", "ada@example.org", 0)["sql"],
        ):
            assert parse(sql, {name: table}).question.table == name


def test_each_name_that_a_button_inserts_stands_in_a_question(house: House) -> None:
    columns = {name: {"kind": "integer", "low": 0, "high": 9} for name in NAMES}
    owner = house.person("owner", "analyst")
    house.sample_data_set("people", owner=owner, rows={name: [1, 2] for name in NAMES}, declaration={"columns": columns})
    page = owner.client.get("/ask").text
    inserted = [html.unescape(each) for each in re.findall(r'data-insert="([^"]*)"', page)]
    table = cl.PrivateTable({name: [1] for name in NAMES}, columns={name: cl.Integer(0, 9) for name in NAMES})
    assert {quoted(name) for name in NAMES} <= set(inserted)
    for name in NAMES:
        assert parse(f"SELECT COUNT(*) AS n FROM people WHERE {quoted(name)} < 5", {"people": table}).questions
