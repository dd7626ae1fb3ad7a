"""Anonymised tables in the hub: a trial for the owner's eyes, a release by the marked door, a data set that inherits."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest
from sqlalchemy import select

from cloister.hub.records.anonymizing import Trial
from cloister.hub.services.catalogue.managing import delete
from cloister.hub.services.jobs import Workers
from tests.hub.house import House, Visitor

ORDER: dict[str, Any] = {
    "table": "people",
    "parts": {"age": "quasi", "sex": "quasi", "pay": "sensitive"},
    "k": 5,
    "search": "mondrian",
}
RELEASE = {**ORDER, "name": "people_public", "title": "People, safe to publish", "understood": True, "purpose": "teaching"}


@pytest.fixture
def owner(house: House) -> Visitor:
    found = house.person("owner", email="olga@example.org", name="Olga Owner")
    house.sample_data_set("people", owner=found)
    return found


def post(house: House, who: Visitor, path: str, body: Any) -> Any:
    return house.client().post(f"/api/v1{path}", json=body, headers=who.bearer)


def get(house: House, who: Visitor, path: str) -> Any:
    return house.client().get(f"/api/v1{path}", headers=who.bearer)


def run(house: House, who: Visitor, path: str, body: Any) -> dict[str, Any]:
    answer = post(house, who, path, body)
    assert answer.status_code == 202, answer.text
    assert Workers(house.hub, 0).run_one()
    told: dict[str, Any] = get(house, who, f"/jobs/{answer.json()['job']}").json()
    return told


def test_a_trial_shows_risk_against_loss_and_nothing_leaves(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised/trials", {**ORDER, "search": "optimal"})
    assert told["state"] == "done", told
    number = told["result"]["href"].rpartition("/")[2]
    found = get(house, owner, f"/anonymised/trials/{number}").json()
    points = [each for each in found["points"] if "loss" in each]
    assert len(points) >= 4
    assert all(each["prosecutor"] <= 1 / each["k"] for each in points)
    assert [each["loss"] for each in points] == sorted(each["loss"] for each in points)
    assert set(found["trees"]) == {"age", "sex"}
    assert found["trees"]["sex"]["tree"][0]["label"] == "*"
    assert not house.hub.ledger.unbounded("people")
    with house.hub.database.reading() as db:
        assert b"points" not in db.scalars(select(Trial.wrapped)).one()
    delete(house.hub, owner.caller, "people", "people")
    assert get(house, owner, f"/anonymised/trials/{number}").status_code == 404
    with house.hub.database.reading() as db:
        assert db.scalars(select(Trial.id)).all() == []


def test_a_release_is_marked_attacked_and_becomes_a_data_set(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told
    assert house.hub.ledger.unbounded("people")
    number = told["result"]["href"].rpartition("/")[2]
    table = get(house, owner, f"/anonymised/{number}").json()
    assert table["certificate"]["holds"]
    assert table["report"]["risk"]["k"] >= 5
    assert {each["name"] for each in table["certificate"]["attacks"]} >= {"linkage", "homogeneity"}
    assert "NOT differentially private" in table["report"]["not_private"]
    rows = list(csv.DictReader(io.StringIO(get(house, owner, f"/anonymised/{number}/download").text)))
    assert len(rows) == table["report"]["rows"] - table["report"]["suppressed"]
    sizes: dict[tuple[str, str], int] = {}
    for row in rows:
        sizes[row["age"], row["sex"]] = sizes.get((row["age"], row["sex"]), 0) + 1
    assert min(sizes.values()) >= 5
    assert get(house, owner, "/anonymised").json()["tables"][0]["title"] == "People, safe to publish"
    page = owner.client.get(f"/anonymised/{number}").text
    for word in ("People, safe to publish", "What attackers came to", "Not differentially private", "people_public"):
        assert word in page, word
    certificate = owner.client.get(f"/anonymised/{number}/certificate")
    assert "attachment" in certificate.headers["content-disposition"]
    assert "Signature" in certificate.text
    assert owner.client.get("/datasets/people_public").status_code == 200
    assert owner.client.get(f"/anonymised/{number}/anything").status_code == 404


def test_only_the_owner_may(house: House, owner: Visitor) -> None:
    other = house.person("owner", "analyst", email="bob@example.org")
    from cloister.hub.records.catalogue import DataSet

    with house.hub.database.reading() as db:
        people = db.query(DataSet).filter_by(name="people").one()
    house.grant(people, other, by=owner, actions=("dataset.see", "anonymize.run", "question.ask"))
    assert post(house, other, "/anonymised/trials", ORDER).status_code == 404
    told = run(house, owner, "/anonymised/trials", ORDER)
    number = told["result"]["href"].rpartition("/")[2]
    assert get(house, other, f"/anonymised/trials/{number}").status_code == 404
    assert other.client.get(f"/anonymise/trials/{number}").status_code == 404
    assert "people" not in re.sub(r"<nav.*?</nav>", "", other.client.get("/anonymise").text, flags=re.S)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"understood": False}, "spending reads unbounded"),
        ({"name": "SELECT"}, "no plain word"),
        ({"parts": {"pay": "sensitive"}}, "no column is one that others may know"),
        ({"parts": {"age": "quasi", "nose": "quasi"}}, "declares none of that name"),
        ({"parts": {"age": "secret"}}, "a part that there is not"),
        ({"parts": {"age": "quasi"}, "l": 2}, "no column is that"),
        ({"t": "often"}, "no number from 0 to 1"),
        ({"hierarchies": {"age": "1;a\n1;b"}}, "stands there twice"),
        ({"search": "magic"}, "the search or the metric"),
    ],
)
def test_what_is_refused(house: House, owner: Visitor, changed: dict[str, Any], words: str) -> None:
    answer = post(house, owner, "/anonymised", {**RELEASE, **changed})
    assert answer.status_code in (403, 422), answer.text
    assert words in answer.text
    assert not house.hub.ledger.unbounded("people")


def test_what_cannot_be_met_is_told_to_the_owner_and_marked(house: House, owner: Visitor) -> None:
    told = run(house, owner, "/anonymised", {**RELEASE, "k": 90_000})
    assert told["state"] == "failed"
    assert house.hub.ledger.unbounded("people")


def test_the_pages_from_the_first_to_the_release(house: House, owner: Visitor) -> None:
    client = owner.client
    page = client.get("/anonymise?about=people").text
    key = re.search(r'name="key" value="([^"]+)"', page)
    assert key is not None
    names = re.findall(r'<select name="(part_\d+)" aria-label="What (\w+) is"', page)
    parts = {field: ORDER["parts"].get(name, "identifying") for field, name in names}
    filled = {
        "form_token": owner.csrf()["X-CSRF-Token"],
        "key": key[1],
        "table": "people",
        "k": "5",
        "suppression": "0.05",
        **parts,
    }
    sent = client.post("/anonymise/trials", data=filled)
    assert sent.status_code == 303, sent.text
    assert Workers(house.hub, 0).run_one()
    [where] = set(re.findall(r'href="(/anonymise/trials/[^"]+)"', client.get(sent.headers["location"]).text))
    trial = client.get(where).text
    for word in ("For your eyes", "Most exposed person", "data:image/svg+xml", "This is not differential privacy", "As text"):
        assert word in trial, word
    key = re.search(r'name="key" value="([^"]+)"', trial)
    assert key is not None
    release = {**filled, "key": key[1], "title": "People", "name": "people_open"}
    refused = client.post("/anonymise", data=release)
    assert refused.status_code == 422
    assert "unbounded" in refused.text
    assert 'value="people_open"' in refused.text
    key = re.search(r'name="key" value="([^"]+)"', refused.text)
    assert key is not None
    done = client.post("/anonymise", data={**release, "key": key[1], "understood": "yes"})
    assert done.status_code == 303, done.text
    assert Workers(house.hub, 0).run_one()
    assert "People" in client.get("/anonymised").text
