"""Rules, and methods that choose what they measure, as orders of the hub."""

from __future__ import annotations

import csv
import html
import io
import re
import threading
import time
from typing import Any

import pytest

import cloister as cl
from cloister.hub.services.jobs import Workers
from cloister.synth import SyntheticModel
from tests.hub.house import served
from tests.hub.synthesising.conftest import MAY, ORDER, Stage

BROKEN = [
    ("age <=", "The rule 'age <=' is invalid"),
    ("age < 17", "The rule 'age < 17' is invalid"),
    ("age < 30\nage > 40", "contradicts"),
    ("none = 1", "'none'"),
]


def rows_of(stage: Stage, number: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(stage.get(f"/releases/{number}/download/csv").text)))[1:]


@pytest.mark.parametrize("method", ["mst", "aim"])
def test_a_method_that_chooses_is_ordered_charged_once_and_told_beforehand(stage: Stage, method: str) -> None:
    order = {**ORDER, "columns": ["age", "sex", "pay"], "method": method, "spend": "1"}
    price = stage.post("/synthetic-tables/price", order).json()
    assert (price["cost"], price["charge"]) == ("ε = 1", "ε = 1")
    less, usual, *_ = price["errors"]
    assert less["one"] > usual["one"] > 0
    assert less["two"] > usual["two"] > 0
    assert stage.spent == "ε = 0"
    number = stage.made(**order)
    assert stage.spent == "ε = 1"
    model = SyntheticModel.from_json(stage.get(f"/releases/{number}").text)
    assert (model.method, str(model.cost)) == (method, "ε = 1")
    assert len(rows_of(stage, number)) > 100


def test_every_row_obeys_the_rules_of_its_order(stage: Stage) -> None:
    rules = "age < 45 => sex = 'F'\n\n  age >= 20 "
    number = stage.made(spend="1", rules=rules)
    lines = rows_of(stage, number)
    assert len(lines) > 100
    assert all(sex == "F" for age, sex in lines if int(age) < 45)
    assert all(int(age) >= 20 for age, _ in lines)
    page = html.unescape(stage.ana.client.get(f"/synthetic/{number}").text)
    assert "age < 45 => sex = 'F'; age >= 20" in page
    assert stage.spent == "ε = 1"


def test_rules_hold_where_a_grant_leaves_some_rows(stage: Stage) -> None:
    dan = stage.house.person("analyst", email="dan@example.org")
    stage.house.grant(stage.people, dan, by=stage.owner, actions=MAY, rows="sex = 'F'")
    number = stage.made(dan, spend="1", rules="age >= 35", method="pairs")
    lines = list(csv.reader(io.StringIO(stage.get(f"/releases/{number}/download/csv", dan).text)))[1:]
    assert all(int(age) >= 35 for age, _ in lines)
    assert sum(sex == "F" for _, sex in lines) > 0.9 * len(lines)


@pytest.mark.parametrize(("rules", "said"), BROKEN)
def test_a_rule_that_cannot_be_held_is_refused_at_its_field(stage: Stage, rules: str, said: str) -> None:
    for path in ("/synthetic-tables", "/synthetic-tables/price"):
        refused = stage.post(path, {**ORDER, "rules": rules})
        assert (refused.status_code, said in html.unescape(refused.json()["title"] + refused.json()["detail"])) == (422, True)
    client = stage.ana.client
    page = client.get("/synthesise?about=people").text
    token, key = (html.unescape(re.search(rf'name="{name}" value="([^"]+)"', page)[1]) for name in ("form_token", "key"))  # type: ignore[index]
    sent: dict[str, Any] = {
        "form_token": token,
        "key": key,
        **ORDER,
        "method": "auto",
        "title": "",
        "project": "",
        "rules": rules,
    }
    shown = client.post("/synthesise", data=sent)
    assert shown.status_code == 422
    field = html.unescape(shown.text).partition('id="f-rules-error"')[2].partition("</textarea>")[0]
    assert "none" in rules or said in field
    assert html.escape(rules, quote=False) in shown.text, "what was typed stands there still"
    assert not Workers(stage.hub, 0).run_one()
    assert stage.spent == "ε = 0"


def test_the_client_orders_both(stage: Stage) -> None:
    def work() -> None:
        ends = time.monotonic() + 60
        while not Workers(stage.hub, 0).run_one() and time.monotonic() < ends:
            time.sleep(0.05)

    with served(stage.hub) as address, cl.connect(address, token=stage.ana.token, purpose="teaching") as session:
        worker = threading.Thread(target=work)
        worker.start()
        model = session.synthesise("people", columns=["age", "sex"], spend="1", method="mst", rules=["age >= 30"])
        worker.join()
    assert (model.method, model.rules) == ("mst", ("age >= 30",))
    assert min(model.sample(500)["age"]) >= 30
