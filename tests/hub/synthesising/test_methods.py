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
from cloister.hub.platform.jobs import Workers
from cloister.hub.services.synthesising.order import Synthesis
from cloister.synth import SyntheticModel
from cloister.synth.released import margin_of
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


@pytest.mark.parametrize("method", ["mst", "aim", "mwem", "privbayes"])
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


def test_what_the_form_offers_as_examples_can_be_typed(stage: Stage) -> None:
    """They are of the chosen table's own columns, whatever these are called."""
    columns = {
        "Birth year": {"kind": "integer", "low": 1900, "high": 2020},
        "select": {"kind": "real", "low": 0, "high": 3000, "step": 0.5},
        "it's": {"kind": "category", "values": ["o'clock", "no"]},
    }
    rows = {"Birth year": [1990] * 60, "select": [2500.5] * 60, "it's": ["no"] * 60}
    stage.house.sample_data_set("odd ones", owner=stage.owner, declaration={"columns": columns}, rows=rows)
    for who, about in ((stage.ana, "people"), (stage.owner, "odd ones")):
        page = html.unescape(who.client.get("/synthesise", params={"about": about}).text)
        said = [page.partition(f'id="f-{name}-help"')[2].partition("</span>")[0] for name in ("workload", "rules", "earlier")]
        workload, rules, earlier = (each.rpartition(": ")[2].split("; ") for each in said)
        assert earlier[0] in workload
        assert rules[0], "there is an example"
        order = {**ORDER, "table": about, "columns": [*columns] if who is stage.owner else ["age", "sex", "pay"]}
        priced = stage.post("/synthetic-tables/price", {**order, "workload": "\n".join(workload), "rules": "\n".join(rules)}, who)
        assert priced.status_code == 200, (workload, rules, priced.text)


WORKLOAD = "age, sex\nSELECT sex, AVG(pay) AS pay FROM people GROUP BY sex\n\n pay "


def test_a_workload_is_column_sets_and_queries(stage: Stage) -> None:
    """What it names takes more of the spend: all pairs, and the triple of a column with each two others."""
    order = {**ORDER, "columns": ["age", "sex", "pay"], "spend": "1", "method": "pairs", "workload": WORKLOAD}
    price = stage.post("/synthetic-tables/price", order).json()
    assert [line["three"] is not None for line in price["errors"]] == [True] * len(price["errors"])
    model = SyntheticModel.from_json(stage.get(f"/releases/{stage.made(**order)}").text)
    assert model.measured is not None
    assert [len(kept) for kept in model.measured.tables] == [1, 1, 1, 2, 2, 2, 3]
    noises = {kept: round(table.variance) for kept, table in model.measured.tables.items()}
    assert noises[0,] > noises[0, 1]
    assert stage.spent == "ε = 1"


def test_a_workload_names_columns_that_begin_as_queries_do() -> None:
    order = Synthesis(table="people", columns=("with child", "from day"), spend="1", workload="with child, from day")
    assert order.about == [["with child", "from day"]]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workload": "age, shoe"}, "'shoe'"),
        ({"workload": "SELECT shoe, COUNT(*) AS n FROM people GROUP BY shoe"}, "shoe"),
        ({"workload": "SELECT pay, COUNT(*) AS n FROM people GROUP BY pay"}, "'pay'"),
        ({"workload": "SELECT FROM WHERE"}, "SQL"),
        ({"workload": "age", "method": "mst"}, "about= is invalid with mst"),
    ],
)
def test_a_workload_that_cannot_be_kept_is_refused_before_anything_is_charged(stage: Stage, changed: Any, said: str) -> None:
    for path in ("/synthetic-tables", "/synthetic-tables/price"):
        refused = stage.post(path, {**ORDER, **changed})
        told = html.unescape(refused.json()["title"] + refused.json()["detail"])
        assert (refused.status_code, said in told) == (422, True), (refused.status_code, told)
    assert stage.spent == "ε = 0"


def test_a_histogram_is_ordered_too(stage: Stage) -> None:
    number = stage.made(columns=["sex"], spend="1", method="histogram")
    assert SyntheticModel.from_json(stage.get(f"/releases/{number}").text).method == "histogram"


def test_the_client_orders_both(stage: Stage) -> None:
    def work() -> None:
        ends = time.monotonic() + 60
        while not Workers(stage.hub, 0).run_one() and time.monotonic() < ends:
            time.sleep(0.05)

    with served(stage.hub) as address, cl.connect(address, token=stage.ana.token, purpose="teaching") as session:
        worker = threading.Thread(target=work)
        worker.start()
        model = session.synthesise(
            "people", columns=["age", "sex"], spend="1", method="aim", about=["sex", ["age", "sex"]], rules=["age >= 30"]
        )
        worker.join()
    assert (model.method, model.rules) == ("aim", ("age >= 30",))
    assert min(model.sample(500)["age"]) >= 30


def test_earlier_answers_are_evidence_for_nothing_more(stage: Stage) -> None:
    asked = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    stage.house.grant(stage.people, stage.ana, by=stage.owner, actions=("question.ask",))
    order = {**ORDER, "method": "pairs", "earlier": asked}
    for path in ("/synthetic-tables", "/synthetic-tables/price"):
        refused = stage.post(path, order)
        assert refused.status_code == 422, refused.text
        assert "you were given no answer" in refused.json()["detail"]
    assert stage.post("/questions", {"sql": asked, "spend": "0.5", "purpose": "teaching"}).status_code == 201
    assert stage.spent == "ε = 0.5"
    price = stage.post("/synthetic-tables/price", order).json()
    assert price["charge"] == "ε = 0.25"
    number = stage.made(**order)
    assert stage.spent == "ε = 0.75"
    model = SyntheticModel.from_json(stage.get(f"/releases/{number}").text)
    assert (str(model.cost), len(model.charges)) == ("ε = 0.75", 2)
    margin = model.answer(asked).margin()["n"][0]
    assert (
        margin
        < SyntheticModel.from_json(stage.get(f"/releases/{stage.made(method='pairs')}").text).answer(asked).margin()["n"][0]
    )


def test_nothing_spent_makes_rows_of_the_declarations(stage: Stage) -> None:
    free = {**ORDER, "spend": "0", "rules": "age < 30 => sex = 'F'"}
    price = stage.post("/synthetic-tables/price", free).json()
    assert (price["charge"], price["errors"]) == ("ε = 0", [])
    client = stage.ana.client
    page = client.get("/synthesise?about=people").text
    token, key = (html.unescape(re.search(rf'name="{name}" value="([^"]+)"', page)[1]) for name in ("form_token", "key"))  # type: ignore[index]
    sent = {**free, "form_token": token, "key": key, "method": "auto", "title": "", "project": "", "earlier": ""}
    assert "the rows tell nothing of the table" in client.post("/synthesise/price", data=sent).text
    number = stage.made(**free)
    assert stage.spent == "ε = 0"
    assert {sex for age, sex in rows_of(stage, number) if int(age) < 30} == {"F"}
    assert stage.ana.client.get(f"/synthetic/{number}").status_code == 200
    for changed in ({"method": "pairs"}, {"spend": "-1"}):
        refused = stage.post("/synthetic-tables", {**free, **changed})
        assert refused.status_code == 422, refused.text
    assert stage.made(**free, use="software")
    assert stage.spent == "ε = 0"


def test_ranges_of_ones_own_are_measured_in_place_of_values(stage: Stage) -> None:
    order = {
        **ORDER,
        "columns": ["age", "sex", "pay"],
        "spend": "1",
        "method": "pairs",
        "ranges": "age = 17, 35，90\n\npay = 0，15，100",
        "workload": "age，sex",
    }
    coarse, fine = (stage.post("/synthetic-tables/price", {**order, "ranges": each}).json() for each in (order["ranges"], ""))
    assert coarse["charge"] == fine["charge"] == "ε = 1"
    model = SyntheticModel.from_json(stage.get(f"/releases/{stage.made(**order)}").text)
    assert model.measured is not None
    assert model.measured.sizes == (2, 2, 2)
    assert set(model.sample(200)["sex"]) <= {"F", "M"}
    assert stage.spent == "ε = 1"


def test_quantiles_are_bought_for_a_part_of_what_the_price_says(stage: Stage) -> None:
    order = {**ORDER, "columns": ["sex", "pay"], "spend": "1", "method": "pairs", "ranges": "pay = 4 quantiles"}
    price, plain = (stage.post("/synthetic-tables/price", {**order, "ranges": each}).json() for each in (order["ranges"], ""))
    assert price["charge"] == plain["charge"] == "ε = 1"
    said, wide = (next(line["one"] for line in each["errors"] if line["spend"] == "1") for each in (price, plain))
    model = SyntheticModel.from_json(stage.get(f"/releases/{stage.made(**order)}").text)
    assert model.measured is not None
    assert model.measured.sizes[0] == 2
    assert 1 <= model.measured.sizes[1] <= 4, "and not each of two hundred values"
    assert max(margin_of(model.measured, (place,)) for place in (0, 1)) <= said < wide, "of bins, however few they come to be"
    assert (str(model.cost), stage.spent) == ("ε = 1", "ε = 1")


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        (
            "age = 17, 35, 90\n\nshoe = 1, 2",
            "one of the columns, once, with its edges, quantiles or calendar, and 'shoe = 1, 2' is not",
        ),
        ("age", "'age' is not"),
        ("age = 17, 35, 90\nage = 17, 90", "'age = 17, 90' is not"),
        ("age = 17", "two edges"),
        ("age = 90, 17", "age"),
        ("age = 30, 40", "all declared ones"),
        ("sex = 1, 2", "category"),
        ("age = x, y", "'x'"),
        ("age = 1 quantiles", "from 2 to"),
        ("age = calendar", "no days"),
        ("age = 1 Quantiles", "from 2 to"),  # as telephones begin a word
        ("age = Calendar", "no days"),
    ],
)
def test_ranges_that_cannot_be_measured_are_refused_before_anything_is_charged(stage: Stage, ranges: str, said: str) -> None:
    for path in ("/synthetic-tables", "/synthetic-tables/price"):
        refused = stage.post(path, {**ORDER, "method": "pairs", "ranges": ranges})
        told = html.unescape(refused.json()["title"] + refused.json()["detail"])
        assert (refused.status_code, said in told) == (422, True), told
    assert stage.spent == "ε = 0"
