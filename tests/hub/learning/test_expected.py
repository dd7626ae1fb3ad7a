"""The expected curve: public facts alone, nothing spent; it rises with ε, and says what it is."""

from __future__ import annotations

import pytest

from tests.hub.house import people_rows
from tests.hub.learning.conftest import MAY, ORDER, Stage
from tests.hub.learning.test_pages import form


def test_a_curve_spends_nothing_and_knows_no_row(stage: Stage):
    first = stage.post("/models/expected", ORDER)
    assert first.status_code == 200, first.text
    told = first.json()
    assert stage.spent == "ε = 0"
    assert [each["epsilon"] for each in told["points"]] == [0.1, 0.3, 1.0, 3.0, 10.0]
    assert (told["measure"], told["rows"], told["declared"], told["guess"]) == ("accuracy", 300, True, 0.5)
    assert told["plain"] > 0.7
    rows = {name: [values[0]] * 300 for name, values in people_rows().items()}
    stage.house.sample_data_set("others", owner=stage.owner, rows=rows)  # the same declarations over other rows
    with stage.hub.database.reading() as db:
        from sqlalchemy import select

        from cloister.hub.records.catalogue import DataSet

        others = db.scalars(select(DataSet).where(DataSet.name == "others")).one()
    stage.house.grant(others, stage.ana, by=stage.owner, actions=MAY)
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
    assert '<th scope="col" class="n">captured variance</th>' in looked.text


@pytest.mark.parametrize(("changed", "status"), [({"method": "StandardScaler", "target": ""}, 404), ({"spend": "0"}, 422)])
def test_where_there_is_none(stage: Stage, changed: dict[str, str], status: int):
    assert stage.post("/models/expected", {**ORDER, **changed}).status_code == status


def test_without_a_grant_there_is_none(stage: Stage):
    bob = stage.house.person("analyst", email="bob@example.org")
    assert stage.post("/models/expected", ORDER, bob).status_code == 404
