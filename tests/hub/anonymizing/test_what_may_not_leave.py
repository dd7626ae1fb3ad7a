"""What an order does not say leaves nothing; what ended while a job worked keeps nothing; no value of a row lies in plain."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from cloister.hub.decisions.facts import facts_of
from cloister.hub.generation import bump
from cloister.hub.platform.catalogue import retention
from cloister.hub.platform.catalogue.managing import delete, describe
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.access import InstitutionRule
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import Arrival, DataSet
from cloister.hub.records.jobs import Job
from cloister.hub.records.owner_views import VIEW_KEPT, OwnerView
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.anonymizing.order import MOST_LEVELS
from cloister.hub.services.anonymizing.releasing import ANONYMISING
from cloister.hub.work import orders
from tests.hub.anonymizing.ordering import ORDER, RELEASE, get, post, run
from tests.hub.house import House, Visitor

NAMED = {
    "columns": {
        "age": {"kind": "integer", "low": 17, "high": 90},
        "sex": {"kind": "category", "values": ["F", "M"]},
        "ssn": {"kind": "text"},
    },
    "size": 300,
}
ROWS: dict[str, list[Any]] = {
    "age": [30, 40, 50] * 100,
    "sex": ["F", "M", "F"] * 100,
    "ssn": [f"CANARY-{each % 7}" for each in range(300)],
}
PARTS = {"age": "quasi", "sex": "quasi"}


def test_a_column_that_is_not_named_is_dropped(house: House, owner: Visitor) -> None:
    house.sample_data_set("named", owner=owner, rows=ROWS, declaration=NAMED)
    told = run(house, owner, "/anonymised", {**RELEASE, "table": "named", "parts": PARTS, "name": "named_public"})
    assert told["state"] == "done", told
    text = get(house, owner, f"{told['result']['href']}/download").text
    assert text.splitlines()[0] == "age,sex"
    assert "CANARY" not in text


def test_a_column_that_a_policy_forbids_does_not_leave_unasked(house: House, owner: Visitor) -> None:
    house.sample_data_set("named", owner=owner, rows=ROWS, declaration=NAMED)
    with house.hub.database.begin() as db:
        row = db.query(DataSet).filter_by(name="named").one()
        row.metadata_ = {"columns": {"ssn": {"purposes": ["teaching"]}}}
        bump(db)
    order = {**RELEASE, "table": "named", "name": "named_public", "purpose": "sale"}
    refused = post(house, owner, "/anonymised", {**order, "parts": {**PARTS, "ssn": "kept"}})
    assert refused.status_code == 403, refused.text
    told = run(house, owner, "/anonymised", {**order, "parts": PARTS})
    assert told["state"] == "done", told
    assert "ssn" not in get(house, owner, f"{told['result']['href']}/download").text


@pytest.mark.parametrize("field", ["t", "beta", "suppression"])
@pytest.mark.parametrize("text", ["1e-99999999", "0e99999999", "1E-0000999999999"])
def test_an_exponent_is_refused_before_it_is_a_number(house: House, owner: Visitor, field: str, text: str) -> None:
    answer = post(house, owner, "/anonymised/trials", {**ORDER, field: text})
    assert answer.status_code == 422, answer.text  # made a number, of hundreds of millions of digits, it would be in range


def test_a_hierarchy_of_very_many_levels_is_refused(house: House, owner: Visitor) -> None:
    tall = "\n".join(f"{age}{';a' * 1000}" for age in (30, 40, 50))
    answer = post(house, owner, "/anonymised/trials", {**ORDER, "hierarchies": {"age": tall}})
    assert answer.status_code == 422
    assert f"more than {MOST_LEVELS} levels" in answer.text
    high = "\n".join(f"{age}{';a' * (MOST_LEVELS - 1)}" for age in (30, 40, 50))
    told = run(house, owner, "/anonymised/trials", {**ORDER, "hierarchies": {"age": high}})
    assert told["state"] == "done", told
    assert owner.client.get(told["result"]["href"]).status_code == 200
    long = post(house, owner, "/anonymised/trials", {**ORDER, "hierarchies": {"age": "a" * 150_000}})
    assert long.status_code == 422, long.text


def test_of_two_releases_of_one_name_the_second_marks_nothing(house: House, owner: Visitor) -> None:
    house.sample_data_set("others", owner=owner)
    first, second = (post(house, owner, "/anonymised", {**RELEASE, "table": table}) for table in ("people", "others"))
    assert (first.status_code, second.status_code) == (202, 202)
    for _ in range(2):
        assert Workers(house.hub, 0).run_one()
        house.clock.move(seconds=1)
    states = {get(house, owner, f"/jobs/{each.json()['job']}").json()["state"] for each in (first, second)}
    assert states == {"done", "failed"}
    assert house.hub.ledger.unbounded("people") != house.hub.ledger.unbounded("others")


def test_a_released_table_is_nobody_elses_at_any_moment(house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    other = house.person("analyst", email="bob@example.org")
    seen = []
    register = orders.register  # type: ignore[attr-defined]

    def looked_at(*given: Any, **more: Any) -> DataSet:
        made = register(*given, **more)
        seen.append(get(house, other, "/datasets/people_public").status_code)
        return made

    monkeypatch.setattr(orders, "register", looked_at)
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told
    seen.append(get(house, other, "/datasets/people_public").status_code)
    with house.hub.database.begin() as db:  # a new description leaves it as closed as it was
        row = db.query(DataSet).filter_by(name="people_public").one()
        describe(house.hub, db, owner.caller, row, title="Another", metadata={"policy": {}})
    seen.append(get(house, other, "/datasets/people_public").status_code)
    assert seen == [404, 404, 404]


def test_a_released_table_has_the_data_provider_whose_policy_binds_it(house: House, owner: Visitor) -> None:
    giver = house.person("provider")
    with house.hub.database.begin() as db:
        row = db.query(DataSet).filter_by(name="people").one()
        row.provider, row.metadata_ = giver.caller.email, {"contribution": {"purposes": ["teaching"]}}
        bump(db)
    told = run(house, owner, "/anonymised", RELEASE)
    assert told["state"] == "done", told
    assert "teaching" in giver.client.get("/contributions/people_public").text


def _deleted(house: House, owner: Visitor) -> None:
    delete(house.hub, owner.caller, "people", "people")


def _given_away(house: House, owner: Visitor) -> None:
    other = house.person("owner")
    with house.hub.database.begin() as db:
        db.execute(update(DataSet).where(DataSet.name == "people").values(owner=other.id))
        bump(db)


def _blocked(house: House, owner: Visitor) -> None:
    with house.hub.database.begin() as db:
        db.execute(update(Person).where(Person.id == owner.id).values(blocked=True))
        bump(db)


def _forbidden(house: House, owner: Visitor) -> None:
    with house.hub.database.begin() as db:
        db.query(DataSet).filter_by(name="people").one().metadata_ = {"policy": {"purposes": ["care"]}}
        bump(db)


ENDINGS = pytest.mark.parametrize("ending", [_deleted, _given_away, _blocked, _forbidden])


@ENDINGS
@pytest.mark.parametrize("late", [False, True])
def test_nothing_is_kept_of_a_release_whose_standing_ended(
    house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch, ending: Any, late: bool
) -> None:
    import cloister.anonymize.from_tables as doors

    where, name = (orders, "register") if late else (doors, "publish_rows")
    whole = getattr(where, name)

    def ended(*given: Any, **more: Any) -> Any:
        if late:
            ending(house, owner)
            return whole(*given, **more)
        found = whole(*given, **more)
        ending(house, owner)
        return found

    monkeypatch.setattr(where, name, ended)
    assert post(house, owner, "/anonymised", RELEASE).status_code == 202
    assert Workers(house.hub, 0).run_one()
    with house.hub.database.reading() as db:
        assert db.scalars(select(Job.state)).all() == ["failed"]
        assert db.scalars(select(DataSet.name).where(DataSet.name == "people_public")).all() == []
        assert db.scalars(select(StoredRelease.id)).all() == []
        assert db.scalars(select(Arrival.id)).all() == []
    assert house.hub.ledger.unbounded("people")


@ENDINGS
def test_a_standing_that_ended_before_the_rows_are_read_marks_nothing(
    house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch, ending: Any
) -> None:
    job = post(house, owner, "/anonymised", RELEASE).json()["job"]
    monkeypatch.setattr(type(ANONYMISING), "rehearse", lambda *_: ending(house, owner))  # after the decision
    assert Workers(house.hub, 0).run_one()
    assert house.hub.ledger.unbounded("people") is False
    with house.hub.database.reading() as db:
        assert db.get_one(Job, job).state == "failed"


@ENDINGS
def test_no_trial_is_kept_whose_standing_ended(
    house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch, ending: Any
) -> None:
    import cloister.anonymize.from_tables as doors

    frame = doors.frame_of

    def ended(*given: Any) -> Any:
        found = frame(*given)
        ending(house, owner)
        return found

    monkeypatch.setattr(doors, "frame_of", ended)
    assert post(house, owner, "/anonymised/trials", ORDER).status_code == 202
    assert Workers(house.hub, 0).run_one()
    with house.hub.database.reading() as db:
        assert db.scalars(select(Job.state)).all() == ["failed"]
        assert db.scalars(select(OwnerView.id)).all() == []


def test_no_trial_is_shown_for_a_purpose_that_was_forbidden_since(house: House, owner: Visitor) -> None:
    href = run(house, owner, "/anonymised/trials", {**ORDER, "purpose": "teaching"})["result"]["href"]
    number = href.rpartition("/")[2]
    pages = (href, f"{href}/risk", f"/anonymise?trial={number}")

    def looked() -> list[int]:
        return [
            get(house, owner, f"/anonymised/trials/{number}").status_code,
            *(owner.client.get(page).status_code for page in pages),
        ]

    assert looked() == [200] * 4
    for purposes, status in ((["care"], 403), (["care", "teaching"], 200)):
        with house.hub.database.begin() as db:
            db.query(DataSet).filter_by(name="people").one().metadata_ = {"policy": {"purposes": purposes}}
            bump(db)
        assert looked() == [status] * 4


def test_a_trial_is_gone_after_a_week_whoever_looks(house: House, owner: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run(house, owner, "/anonymised/trials", ORDER)
    monkeypatch.setattr(retention.Keeper, "_look", lambda self: None)
    keeper = retention.Keeper(house.hub)
    house.clock.move(days=VIEW_KEPT.days - 1)
    keeper.look()
    house.awake(owner)
    assert owner.client.get(told["result"]["href"]).status_code == 200
    house.clock.move(days=1, seconds=1)
    house.awake(owner)
    assert owner.client.get(told["result"]["href"]).status_code == 404
    keeper.look()
    with house.hub.database.reading() as db:
        assert db.scalars(select(OwnerView.id)).all() == []


def test_a_trial_goes_with_rows_whose_retention_is_over(house: House, owner: Visitor) -> None:
    run(house, owner, "/anonymised/trials", ORDER)
    with house.hub.database.begin() as db:
        row = db.query(DataSet).filter_by(name="people").one()
        row.metadata_ = {"policy": {"retention": house.hub.now().isoformat()}}
        bump(db)
    house.clock.move(seconds=1)
    assert retention.expire(house.hub) == ["people"]
    with house.hub.database.reading() as db:
        assert db.scalars(select(OwnerView.id)).all() == []


def test_no_value_of_a_row_lies_in_plain_in_the_hubs_database(house: House, owner: Visitor) -> None:
    house.sample_data_set("named", owner=owner, rows=ROWS, declaration=NAMED)
    lines = "\n".join(f"CANARY-{each};*" for each in range(7))
    parts = {**PARTS, "ssn": "quasi"}
    trial = {**ORDER, "table": "named", "parts": parts, "search": "optimal", "hierarchies": {"ssn": lines}}
    release = {**RELEASE, **trial, "name": "named_public"}
    done = [run(house, owner, "/anonymised/trials", trial), run(house, owner, "/anonymised", release)]
    assert [each["state"] for each in done] == ["done", "done"]
    short = {**release, "name": "other", "hierarchies": {"ssn": lines.partition("\n")[2]}}
    assert run(house, owner, "/anonymised", short)["state"] == "failed"
    assert "CANARY-0" in owner.client.get(f"/anonymise?trial={done[0]['result']['href'].rpartition('/')[2]}").text
    assert post(house, owner, "/anonymised/trials", trial).status_code == 202
    found = []
    with house.hub.database.reading() as db:
        assert [each is None for each in db.scalars(select(Job.secret).order_by(Job.state))].count(False) == 1
        for kind in (Job, OwnerView, StoredRelease):
            for row in db.scalars(select(kind)):
                names = kind.__table__.c.keys()
                found += [(kind.__tablename__, name) for name in names if "CANARY" in repr(getattr(row, name))]
    assert found == []
    file = house.settings.path("hub.db")
    assert not file.exists() or b"CANARY" not in file.read_bytes()


def test_rules_on_the_population_hold_for_what_was_made_of_it(house: House, owner: Visitor) -> None:
    with house.hub.database.begin() as db:
        db.query(DataSet).filter_by(name="people").one().institution = "Ward"
        bump(db)
    assert run(house, owner, "/anonymised", RELEASE)["state"] == "done"
    with house.hub.database.begin() as db:
        made = db.query(DataSet).filter_by(name="people_public").one()
        seen = facts_of(house.hub, db).data_sets[made.id]
        assert (seen.population, seen.institution, made.population) == ("people", "Ward", None)
        rule = {"populations": ["people"], "actions": ["release.download"], "deny": True}
        db.add(InstitutionRule(id="r1", title="No download", rule=rule, created=house.hub.now(), made_by=owner.id))
        bump(db)
    other = house.person("analyst", email="ana@example.org")
    house.grant(made, other, by=owner, actions=("dataset.see", "release.see", "release.download"))
    [table] = get(house, other, "/anonymised").json()["tables"]
    assert get(house, other, f"/anonymised/{table['id']}/download").status_code == 403
