"""The expected curve, and the expected loss on a card: public facts alone, nothing spent; each says what it is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cloister.hub.services.learning.expected import LOST
from cloister.learn.assessment import expected
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from tests.hub.house import PEOPLE, people_rows
from tests.hub.learning.conftest import MAY, ORDER, Stage
from tests.hub.learning.test_pages import form

WAYS: list[tuple[dict[str, Any], str]] = [
    ({}, "accuracy"),
    ({"method": "LogisticRegression"}, "accuracy"),
    ({"method": "CategoricalNB", "features": ["sex"], "target": "age"}, "accuracy"),
    ({"method": "CategoricalNB", "features": ["pay"], "target": "sex"}, "accuracy"),
    ({"method": "LinearRegression", "features": ["age", "sex"], "target": "pay"}, "r2"),
    ({"method": "PoissonRegressor", "features": ["pay", "sex"], "target": "age"}, "r2"),
    ({"method": "KMeans", "target": "", "parameters": {"n_clusters": 4}}, "captured"),
]


def opened(stage: Stage, name: str, *, budget: Guarantee | None = None, rows: Any = None, **declared: Any) -> str:
    """One data set more, open to Ana: its name."""
    how: dict[str, Any] = {"budget": budget, "rows": rows, "declaration": {**PEOPLE, **declared}}
    stage.house.grant(stage.house.sample_data_set(name, owner=stage.owner, **how), stage.ana, by=stage.owner, actions=MAY)
    return name


def loss(stage: Stage, number: str) -> tuple[str, str]:
    """The line of a card on what privacy costs."""
    found = stage.get(f"/models/{number}").json()["card"]["findings"]
    [line] = [(what, text) for what, text in found if what.startswith("expected loss")]
    return line


def mean(stage: Stage, **changed: Any) -> float:
    """What is lost in the mean."""
    return float(loss(stage, stage.learnt(**changed))[1].partition(" ")[0])


def test_a_curve_spends_nothing_and_knows_no_row(stage: Stage):
    first = stage.post("/models/expected", ORDER)
    assert first.status_code == 200, first.text
    told = first.json()
    assert stage.spent == "ε = 0"
    assert [each["epsilon"] for each in told["points"]] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert (told["measure"], told["rows"], told["declared"], told["guess"]) == ("accuracy", 300, True, 0.5)
    assert told["plain"] > 0.7
    opened(stage, "others", rows={name: [values[0]] * 300 for name, values in people_rows().items()})  # of the same declarations
    stage.hub.parts.pop("expected curves")
    assert stage.post("/models/expected", {**ORDER, "table": "others"}).json() == told


def test_more_is_better_for_numbers_too(stage: Stage):
    order = {**ORDER, "method": "LinearRegression", "features": ["age", "sex"], "target": "pay"}
    told = stage.post("/models/expected", order).json()
    means = [each["mean"] for each in told["points"]]
    assert told["measure"] == "r2"
    assert means[0] < means[-1] <= told["plain"] + 0.05


@pytest.mark.parametrize(("method", "parameters"), [("KMeans", {"n_clusters": 4}), ("PCA", {"n_components": 1}), ("PCA", {})])
def test_groups_and_directions_have_one_too(stage: Stage, method: str, parameters: dict[str, int]):
    """Made-up rows lie in groups, so that there is something to find: the more ε, the more of their spread is captured."""
    order = {**ORDER, "method": method, "features": ["age", "pay", "sex"], "target": "", "parameters": parameters}
    told = stage.post("/models/expected", order).json()
    means = [each["mean"] for each in told["points"]]
    assert (told["measure"], told["guess"]) == ("captured", 0.0)
    assert 0.6 < told["plain"] <= 1
    assert means[0] < means[-1] <= told["plain"] + 0.05
    assert stage.spent == "ε = 0"


def test_the_page_draws_what_is_captured(stage: Stage):
    page = stage.ana.client.get("/learn").text
    filled = form(stage, page, method="PCA", target="", features=["age", "pay", "sex"])
    looked = stage.ana.client.post("/learn/expected", data=filled)
    assert looked.status_code == 200
    assert '<th scope="col" class="n">explained variance</th>' in looked.text


@pytest.mark.parametrize(("changed", "status"), [({"method": "StandardScaler", "target": ""}, 404), ({"spend": "0"}, 422)])
def test_where_there_is_none(stage: Stage, changed: dict[str, str], status: int):
    assert stage.post("/models/expected", {**ORDER, **changed}).status_code == status


def test_without_a_grant_there_is_none(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    assert stage.post("/models/expected", ORDER, bob).status_code == 404


def test_a_curve_is_worse_where_a_person_may_have_many_rows(stage: Stage):
    opened(stage, "visits", unit="age", max_rows=30)
    order = {**ORDER, "features": ["pay"], "spend": "1"}
    one, many = (stage.post("/models/expected", {**order, "table": name}).json() for name in ("people", "visits"))
    assert many["points"][0]["mean"] < one["points"][2]["mean"] - 0.05
    assert many["points"][2]["mean"] < one["points"][2]["mean"]
    sentence = "One person may have 30 rows, and the noise hides all of them: ε was made smaller in proportion."
    for name, said in (("people", False), ("visits", True)):
        page = stage.ana.client.get(f"/learn?about={name}").text
        looked = stage.ana.client.post("/learn/expected", data=form(stage, page, table=name, features=["pay"]))
        assert looked.status_code == 200
        assert (sentence in looked.text) is said


def test_fewer_rows_than_are_made_up_are_expected_to_be_few(stage: Stage):
    opened(stage, "few", size=5)
    opened(stage, "fifty", size=50)
    few, fifty = (stage.post("/models/expected", {**ORDER, "table": name}).json() for name in ("few", "fifty"))
    assert [(each["rows"], each["trained"]) for each in (few, fifty)] == [(5, 50), (50, 50)]
    assert few["points"][2]["mean"] < fifty["points"][2]["mean"] - 0.2  # at a tenth of the ε
    page = stage.ana.client.get("/learn?about=few").text
    looked = stage.ana.client.post("/learn/expected", data=form(stage, page, table="few", features=["pay"]))
    assert "ε was made smaller in proportion, since the noise on a sum counts more among fewer rows" in looked.text


# ── the card ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("changed", "measure"), WAYS)
def test_a_card_says_what_is_lost_on_the_page_and_in_the_file(stage: Stage, changed: dict[str, Any], measure: str):
    number = stage.learnt(**changed)
    what, text = loss(stage, number)
    assert what == LOST[measure]
    told = re.fullmatch(r"(-?[\d.]+) \((-?[\d.]+) … (-?[\d.]+)\), ε = 0.25, n = 300", text)
    assert told is not None, text
    middle, low, high = map(float, told.groups())
    assert low <= middle <= high
    page, file = (stage.ana.client.get(f"/models/{number}{end}").text for end in ("", "/card"))
    assert what in page
    assert text in page
    assert what in file
    assert stage.spent == "ε = 0.25"


def test_what_is_lost_tells_nothing_beyond_the_declarations(stage: Stage):
    first = loss(stage, stage.learnt(method="DecisionTreeClassifier"))
    opened(stage, "others", rows={name: [values[0]] * 300 for name, values in people_rows().items()})
    stage.hub.parts.pop("expected losses")
    assert loss(stage, stage.learnt(method="DecisionTreeClassifier", table="others")) == first


def test_less_is_lost_with_more_spent_more_rows_and_fewer_of_one_person(stage: Stage):
    opened(stage, "crowd", size=100_000, budget=PureDP(9))
    opened(stage, "visits", unit="age", max_rows=30, budget=PureDP(9))
    order = {"method": "LogisticRegression", "features": ["pay"]}
    little, much = (mean(stage, table="crowd", spend=spend, **order) for spend in ("0.0001", "1"))
    assert much < 0.02 < little
    assert mean(stage, spend="0.5", **order) < mean(stage, table="visits", spend="0.5", **order)


@pytest.mark.parametrize(
    ("budget", "changed", "at"),
    [
        (ApproxDP(2, "1e-4"), {"spend": "1", "delta": "1e-6", "method": "NeuralClassifier"}, "ε = 1,"),
        (ZCDP("0.5"), {"spend": "0.01"}, "ε = 0.6"),
    ],
)
def test_what_is_lost_under_other_promises(stage: Stage, budget: Guarantee, changed: dict[str, Any], at: str):
    opened(stage, "wards", budget=budget)
    assert at in loss(stage, stage.learnt(table="wards", **changed))[1]


def test_a_loss_is_worked_out_before_the_charge_and_one_that_fails_costs_no_model(stage: Stage, monkeypatch: pytest.MonkeyPatch):
    spent: list[str] = []

    def fails(*how: Any) -> Any:
        spent.append(stage.spent)
        raise ValueError

    monkeypatch.setattr(expected, "made_up", fails)
    found = stage.get(f"/models/{stage.learnt()}").json()["card"]["findings"]
    assert not [what for what, _ in found if what.startswith("expected loss")]
    assert spent == ["ε = 0"]


def test_a_card_is_read_in_chinese(stage: Stage):
    number = stage.learnt()
    page = stage.ana.client.get(f"/models/{number}", headers={"Accept-Language": "zh-CN"}).text
    assert "相对于无隐私保护的预期损失：虚构数据行上的准确率" in page
