"""The same rows on two budgets, keys in another's place, and labels that rules go by."""

from __future__ import annotations

import hashlib

import pytest

from cloister.crypto import WrongKey
from cloister.errors import InvalidParameter
from cloister.hub.generation import bump
from cloister.hub.platform.catalogue.arrivals import kept, sent
from cloister.hub.platform.catalogue.sources import source_of
from cloister.hub.platform.catalogue.versions import add_version
from cloister.hub.platform.trail import verify
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.trail import Alert
from cloister.privacy import PureDP
from tests.hub.catalogue.world import COLUMNS, PEOPLE, Sender, World

OTHER = PEOPLE.replace(b"kestrel", b"falcon")


def test_the_same_file_under_another_population_is_refused_with_the_line_to_write(world: World, ada: Sender) -> None:
    first = world.register(name="people", population="town")
    with pytest.raises(InvalidParameter) as refused:
        world.register(name="again", population="elsewhere", source=[PEOPLE])
    assert refused.value.instead == 'population = "town"'
    assert "people" in refused.value.why
    assert [row.name for row in world.rows(DataSet)] == ["people"]
    upload = ada.client.post(
        "/api/v1/uploads",
        content=PEOPLE,
        headers={"Content-Type": "text/csv", "X-CSRF-Token": ada.api("GET", "/me").json()["csrf"]},
    ).json()["id"]
    columns = {name: {**declared, "reason": "published"} for name, declared in COLUMNS.items()}
    body = {"upload": upload, "name": "again", "title": "Again", "columns": columns, "size": 400, "population": "elsewhere"}
    answer = ada.api("POST", "/datasets", json=body | {"budget": {"epsilon": "9"}})
    assert (answer.status_code, answer.json()["instead"]) == (422, 'population = "town"')
    second = ada.api("POST", "/datasets", json=body | {"population": "town"})
    assert second.status_code == 201, second.text
    assert "elsewhere" not in world.hub.ledger.populations()
    assert world.rows(Alert) == []
    assert first.population == "town"


def test_a_version_of_another_population_is_the_same_file_too(world: World, ada: Sender) -> None:
    world.register(name="people")
    other = world.register(name="falcons", population="falcons", source=[OTHER])
    caller = world.caller("ada@example.org")
    arrival = kept(world.hub, caller, sent(world.hub, [PEOPLE], "csv"))
    with pytest.raises(InvalidParameter, match='population = "people"'):
        add_version(world.hub, caller, other.id, arrival.id)
    same = kept(world.hub, caller, sent(world.hub, [OTHER], "csv"))
    assert add_version(world.hub, caller, other.id, same.id) == 2  # its own rows again


def test_a_deleted_data_set_has_spent_its_budget_all_the_same(world: World, ada: Sender) -> None:
    world.register(name="people")
    assert ada.api("DELETE", "/datasets/people").status_code == 204
    with pytest.raises(InvalidParameter, match='population = "people"'):
        world.register(name="again", population="elsewhere", source=[PEOPLE])


def test_the_same_file_of_another_owner_is_taken_and_a_steward_is_told(world: World, ada: Sender) -> None:
    """To be refused would tell what somebody else holds."""
    world.register(name="people")
    world.owner("bob@example.org")
    mine = world.register("bob@example.org", name="mine", population="bobs", source=[PEOPLE])
    assert mine.state == "open"
    [alert] = world.rows(Alert)
    assert (alert.kind, alert.person, alert.about["data sets"]) == (
        "origin",
        world.find("bob@example.org").id,
        ["mine", "people"],
    )
    sue = world.somebody("sue@example.org", "steward")
    page = sue.get("/trail/alerts")
    assert (page.status_code, "mine" in page.text) == (200, True)
    assert "people" not in Sender(world).get("/trail/uses").text
    assert verify(world.hub) is True


def test_nobody_can_try_files_against_what_is_kept(world: World, ada: Sender) -> None:
    world.register(name="people")
    [version] = world.rows(DataSetVersion)
    plain = hashlib.sha256(PEOPLE).hexdigest()
    assert len(version.origin) == 64
    assert version.origin not in (plain, hashlib.sha256(f"file {plain}".encode()).hexdigest())


def test_a_key_in_anothers_place_opens_nothing(world: World, ada: Sender) -> None:
    """Whoever writes to the database gives a data set of theirs, with a budget of theirs, the rows of another."""
    world.register(name="people", budget=PureDP(1))
    world.owner("mallory@example.org")
    world.register("mallory@example.org", name="mine", population="mine", source=[OTHER], budget=PureDP(50))
    with world.hub.database.begin() as db:
        victim, mine = (
            db.query(DataSetVersion).join(DataSet, DataSet.id == DataSetVersion.data_set).filter(DataSet.name == name).one()
            for name in ("people", "mine")
        )
        mine.file, mine.key, mine.digest, mine.length = victim.file, victim.key, victim.digest, victim.length
        row = db.query(DataSet).filter(DataSet.name == "mine").one()
        bump(db)
        with pytest.raises(WrongKey):
            source_of(world.hub, row, mine)
        mine.number = 2
        with pytest.raises(WrongKey):
            source_of(world.hub, row, mine)
        own = db.query(DataSet).filter(DataSet.name == "people").one()
        assert source_of(world.hub, own, victim) is not None


def test_a_label_that_a_rule_goes_by_is_not_taken_off_by_the_owner(world: World, ada: Sender) -> None:
    world.register(metadata={"policy": {"labels": ["clinical", "mine"]}, "columns": {"pay": {"labels": ["wages", "odd"]}}})
    ada_id = world.find("ada@example.org").id
    with world.hub.database.begin() as db:
        for number, rule in (("r1", {"labels": ["clinical"], "second_factor": True}), ("r2", FORBIDDEN)):
            db.add(InstitutionRule(id=number, title=f"Rule {number}", rule=rule, made_by=ada_id, created=world.hub.now()))
        bump(db)

    def change(policy: object, columns: object) -> tuple[int, str]:
        answer = ada.api("PATCH", "/datasets/people", json={"policy": policy, "column_policies": columns})
        return answer.status_code, answer.json().get("rule", "")

    kept_labels = {"pay": {"labels": ["wages"]}}
    assert change({}, kept_labels) == (403, "mandatory:r1")
    assert change({"labels": ["clinical"]}, {}) == (403, "mandatory:r2")
    assert change({"labels": ["mine"]}, {"age": {"labels": ["clinical"]}, **kept_labels}) == (403, "mandatory:r1")
    form = {"title": "People", "labels": "mine"}
    assert "clinical" in ada.post("/datasets/people/describe", "/datasets/people/manage", **form).text
    assert world.rows(DataSet)[0].metadata_["policy"] == {"labels": ["clinical", "mine"]}
    assert change({"labels": ["clinical"]}, kept_labels)[0] == 200, "what no rule names is the owner's"
    assert change({"labels": ["clinical", "wages"]}, {})[0] == 200, "on the whole data set it holds for the column too"
    with world.hub.database.begin() as db:
        for number in ("r1", "r2"):
            db.get_one(InstitutionRule, number).ended = world.hub.now()
        bump(db)
    assert change({"labels": ["wages"]}, {})[0] == 200, "no rule goes by it any more"


FORBIDDEN = {"forbidden": [[{"label": "wages"}, {"label": "clinical"}]]}
