"""The pages: what to train, what to expect, the job, the card, the list; in the browser's own forms."""

from __future__ import annotations

import re
from typing import Any

from cloister.hub.platform.jobs import Workers
from cloister.privacy import ApproxDP, PureDP
from tests.hub.learning.conftest import MAY, Stage

FORM: dict[str, Any] = {
    "table": "people",
    "method": "GaussianNB",
    "features": ["age", "pay"],
    "target": "sex",
    "spend": "0.25",
    "purpose": "a study",
    "title": "Sex by age",
}


def form(stage: Stage, page: str, **changed: Any) -> dict[str, Any]:
    """The fields of the page's form, filled in."""
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key is not None
    return {**FORM, "form_token": stage.ana.csrf()["X-CSRF-Token"], "key": key[1], **changed}


def test_somebody_chooses_looks_trains_and_reads_the_card(stage: Stage):
    client = stage.ana.client
    page = client.get("/learn?about=people").text
    for word in ("age", "pay", "Gaussian naive Bayes", "Logistic regression", "Expected quality"):
        assert word in page
    looked = client.post("/learn/expected", data=form(stage, page))
    assert looked.status_code == 200
    assert "These rows are made up" in looked.text
    assert "data:image/svg+xml" in looked.text
    assert 'value="pay" checked' in looked.text
    assert stage.spent == "ε = 0"
    filled = form(stage, page)
    sent = client.post("/learn", data=filled)
    assert sent.status_code == 303, sent.text
    assert client.post("/learn", data=filled).headers["location"] == sent.headers["location"]
    job = sent.headers["location"]
    assert job.startswith("/jobs/")
    assert Workers(stage.hub, 0).run_one()
    done = client.get(job).text
    [where] = set(re.findall(r'href="(/models/[^"]+)"', done))
    card = client.get(where).text
    for word in ("Sex by age", "Charges by statistic", "Declared bounds", "17 – 90", "a study", "ε = 0.25"):
        assert word in card, word
    assert "Sex by age" in client.get("/models").text
    assert client.get(f"{where}/download").json()["model"] == "GaussianNB"


def test_the_form_offers_columns_that_models_read(stage: Stage):
    kinds = {"born": {"kind": "date", "low": "1990-01-01", "high": "2026-01-01"}, "note": {"kind": "text"}}
    kinds |= {"at": {"kind": "moment", "low": "2026-01-01", "high": "2026-03-31"}}
    rows = {"born": ["2000-01-01"], "note": ["x"], "at": ["2026-01-02T10:00"]}
    visits = stage.house.sample_data_set("visits", owner=stage.owner, declaration={"columns": kinds}, rows=rows)
    stage.house.grant(visits, stage.ana, by=stage.owner, actions=MAY)
    page = stage.ana.client.get("/learn?about=visits").text
    assert re.findall(r'name="features" value="(\w+)"', page) == ["born"]


def test_what_was_wrong_is_said_beside_what_was_filled_in(stage: Stage):
    page = stage.ana.client.get("/learn").text
    answer = stage.ana.client.post("/learn", data=form(stage, page, target="age"))
    assert answer.status_code == 422
    assert "it is one of the features" in answer.text
    assert 'value="a study"' in answer.text
    assert stage.ana.client.post("/learn", data=form(stage, page, spend="")).status_code == 422
    assert stage.ana.client.post("/learn", data=form(stage, page, key="")).status_code == 422


def test_a_delta_is_offered_where_the_budget_has_one(stage: Stage):
    assert 'name="delta"' not in stage.ana.client.get("/learn").text
    wards = stage.house.sample_data_set("wards", owner=stage.owner, budget=ApproxDP(2, "1e-4"))
    stage.house.grant(wards, stage.ana, by=stage.owner, actions=MAY)
    assert 'name="delta"' in stage.ana.client.get("/learn?about=wards").text


def test_whoever_may_not_learn_is_told_whom_to_ask(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    page = bob.client.get("/learn").text
    assert "No data set is open to you for learning" in page
    assert "people" not in re.sub(r"<nav.*?</nav>", "", page, flags=re.S)
    assert "No models yet" in bob.client.get("/models").text


def test_a_grant_for_a_purpose_shows_its_columns_and_fills_the_purpose_in(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner, actions=MAY, columns=["age", "sex"], purposes=["care"])
    page = bob.client.get("/learn").text
    assert 'value="care"' in page
    assert 'name="features" value="age"' in page
    assert 'name="features" value="pay"' not in page


def test_the_page_of_a_model_says_what_is_in_it(stage: Stage):
    """Coefficients, what each column does, and how often it is right where it is how sure; a category in one line; one charge."""
    rows = {"age": [20 + n % 60 for n in range(3000)], "ward": ["ABC"[n % 3] for n in range(3000)]}
    rows["ill"] = ["yes" if age > 50 else "no" for age in rows["age"]]
    columns = {
        "age": {"kind": "integer", "low": 18, "high": 90},
        "ward": {"kind": "category", "values": ["A", "B", "C"]},
        "ill": {"kind": "category", "values": ["no", "yes"]},
    }
    wards = stage.house.sample_data_set(
        "wards", owner=stage.owner, rows=rows, declaration={"columns": columns}, budget=PureDP(100)
    )
    stage.house.grant(wards, stage.ana, by=stage.owner, actions=MAY)
    page = stage.ana.client.get("/learn?about=wards").text
    assert 'name="held_out"' in page
    how = {"table": "wards", "features": ["age", "ward"], "target": "ill", "spend": "20", "method": "LogisticRegression"}
    sent = stage.ana.client.post("/learn", data=form(stage, page, **how, held_out="0.25"))
    assert sent.status_code == 303, sent.text
    assert Workers(stage.hub, 0).run_one()
    [where] = set(re.findall(r'href="(/models/[^"]+)"', stage.ana.client.get(sent.headers["location"]).text))
    told = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", stage.ana.client.get(where).text))
    assert "Measured on 25 % of the rows" in told
    assert "Right by the probability that the model states" in told
    assert "Coefficients" in told
    assert "ward: B" in told
    assert "ward A, B, C" in told, "one line for the bounds of a category"
    assert "ward=B" not in told
    changes = re.search(r"Predictions that change (?:Predictions that change )?age ([\d.]+) % ward ([\d.]+) %", told)
    assert changes is not None, told
    assert float(changes[1]) > float(changes[2])
    accuracy = re.search(r"Accuracy ([\d.]+) ±", told)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.8
    assert str(stage.hub.ledger.spent("wards")) == "ε = 20"
    wrong = stage.ana.client.post("/learn", data=form(stage, page, **how, held_out="2"))
    assert wrong.status_code == 422


def test_a_line_and_groups_have_their_numbers_on_the_page(stage: Stage):
    line = stage.learnt(method="Ridge", features=["age"], target="pay", spend="0.5", held_out="0.2")
    groups = stage.learnt(method="KMeans", features=["age", "pay"], target="", spend="0.2", parameters={"n_clusters": 2})
    told = stage.ana.client.get(f"/models/{line}").text
    assert "R²" in told
    assert "Coefficients" in told
    assert "Centre of each group" in stage.ana.client.get(f"/models/{groups}").text
