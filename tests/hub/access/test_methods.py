"""Methods in grants: ticked by an owner, asked for by an analyst, shown in sentences, foreseen, and refused where misspelled."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.hub.access.forms import post
from tests.hub.house import House, Visitor

People = Callable[..., Visitor]
PAGE = "/datasets/people/access"


@pytest.fixture
def owner(person: People, house: House) -> Visitor:
    owner = person("owner", email="olga@north.example", name="Olga")
    house.sample_data_set(owner=owner)
    return owner


@pytest.fixture
def bob(person: People) -> Visitor:
    return person("analyst", email="bob@south.example", name="Bob")


def grants(owner: Visitor) -> list[dict[str, Any]]:
    """Every grant on the data set, the newest first."""
    found: list[dict[str, Any]] = owner.client.get("/api/v1/grants?data_set=people").json()["items"]
    return found


def decision(owner: Visitor, **asked: str) -> dict[str, Any]:
    """What the preview says of training a model."""
    given = {"data_set": "people", "person": "bob@south.example", **asked}
    items = owner.client.get("/api/v1/grants/preview", params=given).json()["items"]
    [found] = [each for each in items if each["action"] == "learn.run"]
    return dict(found)


def test_an_owner_ticks_methods_and_reads_them_back(owner: Visitor, bob: Visitor) -> None:
    form = {"role": "learner", "people": "bob@south.example", "actions": ["learn.run"]}
    assert "Allowed training methods" in owner.client.get(f"{PAGE}/new").text
    assert post(owner, PAGE, f"{PAGE}/new", **form, methods=["PCA", "GaussianNB"]).status_code == 303
    [made] = grants(owner)
    assert made["grant"]["rules"] == {"actions": ["learn.run"], "methods": ["GaussianNB", "PCA"]}
    assert "Methods: Gaussian naive Bayes, Principal components" in made["says"]
    assert "Gaussian naive Bayes, Principal components" in owner.client.get(PAGE).text
    assert post(owner, PAGE, f"{PAGE}/new", **{**form, "people": "eve@south.example"}).status_code == 303
    assert {"actions": ["learn.run"]} in [each["grant"]["rules"] for each in grants(owner)], "none ticked: all"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"methods": ["GausianNB"]}, "&#39;GausianNB&#39; is not a training method of this hub"),
        ({"methods": ["BoundedScaler"]}, "is not a training method of this hub"),
        ({"methods": ["PCA"], "actions": ["question.ask"]}, "it is about training models, which is not among the actions"),
    ],
)
def test_what_would_mislead_is_refused_and_what_was_ticked_stays(
    owner: Visitor, bob: Visitor, changed: dict[str, Any], told: str
) -> None:
    form = {"role": "learner", "people": "bob@south.example", "actions": ["learn.run"], **changed}
    answer = post(owner, PAGE, f"{PAGE}/new", **form)
    assert answer.status_code == 422
    assert told in answer.text
    assert grants(owner) == []
    if changed["methods"] == ["PCA"]:
        assert re.search(r'value="PCA" checked', answer.text)


def test_the_preview_decides_on_a_method(owner: Visitor, bob: Visitor) -> None:
    form = {"role": "learner", "people": "bob@south.example", "actions": ["learn.run"], "methods": ["PCA"]}
    post(owner, PAGE, f"{PAGE}/new", **form)
    assert decision(owner, method="PCA")["allowed"]
    for method in ("Ridge", ""):
        no = decision(owner, method=method)
        assert (no["allowed"], no["reason"]) == (False, "method")
        assert no["words"] == "Train a model: denied, since the method must be one of: PCA"
    page = owner.client.get(f"{PAGE}/preview", params={"person": "bob@south.example", "method": "PCA"}).text
    assert '<option value="PCA" selected>' in page
    assert "Train a model: denied" not in page


def test_methods_are_asked_for_and_granted(house: House, owner: Visitor, bob: Visitor) -> None:
    post(owner, PAGE, preset="listed")
    form = {"data_set": "people", "purpose": "a study", "actions": ["learn.run"], "methods": ["Ridge", "PCA"]}
    asked = post(bob, "/access/requests", "/access/requests/new?data_set=people", **form)
    assert asked.status_code == 303, asked.text
    path = asked.headers["location"]
    page = owner.client.get(path).text
    assert "Principal components, Ridge regression" in page
    assert re.findall(r'name="methods" value="(\w+)" checked', page) == ["Ridge", "PCA"]
    assert post(owner, f"{path}/grant", path, actions=["learn.run"], methods=["Ridge"]).status_code == 303
    assert {"actions": ["learn.run"], "methods": ["Ridge"]} in [each["grant"]["rules"] for each in grants(owner)]
    wrong = {"data_set": "people", "purpose": "a study", "wanted": {"actions": ["learn.run"], "methods": ["nothing"]}}
    assert bob.client.post("/api/v1/access-requests", json=wrong, headers=bob.csrf()).status_code == 422


def test_a_steward_ticks_the_methods_of_a_rule(owner: Visitor, person: People) -> None:
    steward = person("steward", email="stew@north.example")
    answer = post(steward, "/policy/rules", "/policy", title="Simple models", methods=["Ridge"])
    assert answer.status_code == 303, answer.text
    assert "a model is trained by one of these methods: Ridge regression" in owner.client.get("/policy").text
    assert post(steward, "/policy/rules", "/policy", title="Typo", methods=["Rigde"]).status_code == 422
    form = {"role": "learner", "people": "bob@south.example", "actions": ["learn.run"], "methods": ["PCA"]}
    post(owner, PAGE, f"{PAGE}/new", **form)
    assert "Train a model: denied, since the method must be one of: Ridge" in owner.client.get("/policy").text
