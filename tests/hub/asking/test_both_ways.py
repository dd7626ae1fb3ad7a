"""One query both ways: from a synthetic table for nothing, and of its data set; where the two cross."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from tests.hub.house import House
from tests.hub.synthesising.conftest import MAY, Stage

SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
ASKS = (*MAY, "question.explain", "question.ask")


@pytest.fixture
def stage(house: House) -> Stage:
    owner = house.person("owner", email="olga@example.org", name="Olga Owner")
    ana = house.person("analyst", email="ana@example.org", name="Ana Analyst")
    people = house.sample_data_set("people", owner=owner)
    return Stage(house, owner, ana, people, house.grant(people, ana, by=owner, actions=ASKS))


def sent(stage: Stage, number: str, path: str = "/ask/both", **more: Any) -> Any:
    page = stage.ana.client.get(f"/ask/both?about={number}").text
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    assert token is not None
    body = {"form_token": html.unescape(token[1]), "about": number, "sql": SQL, "purpose": "teaching", **more}
    return stage.ana.client.post(path, data=body)


def test_a_page_answers_both_ways_in_one_picture(stage: Stage) -> None:
    """At ε = 0.5 one count errs by 6 (95 %), ten that share it by 60: the table crosses where its interval is as wide."""
    number = stage.made(spend="0.5")
    assert f"/ask/both?about={number}" in stage.ana.client.get(f"/synthetic/{number}").text
    empty = stage.ana.client.get(f"/ask/both?about={number}")
    assert empty.status_code == 200
    assert "FROM people GROUP BY age" in html.unescape(empty.text)
    shown = sent(stage, number)
    assert shown.status_code == 200, shown.text
    text = html.unescape(shown.text)
    assert text.count("data:image/svg+xml") == 1
    said = re.search(r"With ([0-9,]+) queries or more", text)
    assert said is not None
    assert 1 <= int(said[1].replace(",", "")) <= 20
    lines = re.findall(
        r'<th scope="row" class="n">([0-9,]+)</th><td class="n">([0-9.]+)</td><td class="n">± ([0-9,.]+)</td>', text
    )
    assert [line[0] for line in lines][:4] == ["1", "2", "5", "10"]
    assert [line[1] for line in lines][:4] == ["0.5", "0.25", "0.1", "0.05"]
    widths = [float(line[2].replace(",", "")) for line in lines]
    assert widths[0] == 6
    assert widths == sorted(widths)
    assert "What is left of the budget is enough for" in text
    assert "From the data set" not in text
    assert stage.spent == "ε = 0.5", "comparing spends nothing"


def test_the_data_set_is_asked_on_the_same_page_until_its_budget_ends(stage: Stage) -> None:
    number = stage.made(spend="0.5")
    asked = sent(stage, number, "/ask/both/ask", spend="0.1")
    assert asked.status_code == 200, asked.text
    assert "From the data set" in asked.text
    assert stage.spent == "ε = 0.6"
    over = sent(stage, number, "/ask/both/ask", spend="1000")
    assert over.status_code >= 400
    assert "From the data set" not in over.text
    assert "Crossing point" in over.text, "the table answers still"
    assert stage.spent == "ε = 0.6"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT COUNT(*) AS n FROM nothing", "does not ask about"),
        ("SELECT shoe FROM people", "shoe"),
        ("((", "SQL"),
        ("SELECT sex FROM people GROUP BY sex", "measures nothing"),
    ],
)
def test_what_cannot_be_asked_is_refused_at_the_query(stage: Stage, sql: str, said: str) -> None:
    number = stage.made(columns=["sex"], spend="0.5")
    refused = sent(stage, number, sql=sql)
    assert refused.status_code >= 400
    assert said in html.unescape(refused.text)
    assert stage.spent == "ε = 0.5"


def test_a_table_that_one_does_not_see_is_missing(stage: Stage) -> None:
    number = stage.made(columns=["sex"], spend="0.5")
    bea = stage.house.person("analyst", email="bea@example.org")
    assert bea.client.get(f"/ask/both?about={number}").status_code == 404
