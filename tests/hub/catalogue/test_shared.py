"""One table of a database under two addresses: not registered twice, and closed where it stands twice."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.platform.catalogue.retention import KEEPER
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.trail import Alert
from cloister.privacy import PureDP
from cloister.session.state import table_snapshot
from cloister.session.state.lineage import Marks, identity_digest
from scripts import postgres
from tests.hub.catalogue.world import Sender

pytestmark = pytest.mark.postgres
MADE = """
CREATE TABLE people_t AS SELECT n % 90 AS age FROM generate_series(1, 300) AS n;
CREATE VIEW seen AS SELECT age FROM people_t WHERE age > 1;
CREATE TABLE others (age int);
GRANT SELECT ON people_t, seen, others TO reader;
"""
AGE = {"age": {"kind": "integer", "low": 0, "high": 90, "reason": "the study takes adults"}}


@pytest.fixture
def ada(owner_beside: Sender) -> Sender:
    return owner_beside


def registered(sender: Sender, place: str, name: str, table: str, host: str = "127.0.0.1", **more: Any) -> Any:
    sender.world.clock.move(seconds=1)
    address = f"postgresql://reader:reader@{host}:{place.partition(':')[2]}::{table}"
    arrived = sender.api("POST", "/connections", json={"address": address})
    assert arrived.status_code == 201, arrived.text
    body = {"upload": arrived.json()["id"], "name": name, "title": name.title(), "columns": AGE, "size": 300}
    body |= {"population": name, "budget": {"epsilon": "10"}}
    return sender.api("POST", "/datasets", json=body | more)


OTHERS = [("public.people_t", "127.0.0.1"), ('public."people_t"', "127.0.0.1"), ("people_t", "localhost"), ("seen", "localhost")]


@pytest.mark.parametrize(("table", "host"), OTHERS)
def test_one_table_is_registered_once_whatever_its_address(ada: Sender, place: str, table: str, host: str) -> None:
    assert registered(ada, place, "people", "people_t").status_code == 201
    again = registered(ada, place, "again", table, host)
    assert (again.status_code, "people" in again.json()["instead"]) == (422, True), again.text
    ledger = ada.world.hub.ledger
    assert ledger.populations() == ["people"]
    shared = registered(ada, place, "again", table, host, population="people", budget=None)
    assert shared.status_code == 201, shared.text
    for name in ("people", "again"):
        assert ada.api("POST", "/questions", json={"sql": f"SELECT COUNT(*) AS n FROM {name}", "spend": "1"}).status_code == 201
    assert ledger.spent("people") == PureDP(2)


def test_another_owner_is_not_told_whose_the_rows_are(ada: Sender, place: str) -> None:
    assert registered(ada, place, "people", "people_t").status_code == 201
    bob = ada.world.somebody("bob@example.org", "owner")
    answer = registered(bob, place, "mine", "people_t", "localhost")
    assert answer.status_code == 422
    told = answer.json()
    assert told["instead"] == "that data set, or another table"
    assert "'people'" not in answer.text
    assert registered(bob, place, "mine", "others", "localhost").status_code == 201


def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As an older hub did it: a source is what its address says."""

    def by_address(source: Any, ledger: Any) -> Marks:
        identity = source.identity()
        return Marks(own=frozenset() if identity is None else frozenset({identity_digest(identity)}))

    monkeypatch.setattr(table_snapshot, "marks_of", by_address)


@pytest.mark.parametrize("asked_first", [True, False])
def test_two_that_stand_over_one_table_are_closed_and_their_owners_told(
    ada: Sender, place: str, monkeypatch: pytest.MonkeyPatch, asked_first: bool
) -> None:
    bob = ada.world.somebody("bob@example.org", "owner")
    with monkeypatch.context() as before:
        apart(before)
        assert registered(ada, place, "people", "people_t").status_code == 201
        assert registered(ada, place, "viewed", "seen", "localhost").status_code == 201
        assert registered(bob, place, "bobs", 'public."people_t"').status_code == 201
        assert registered(ada, place, "apart", "others").status_code == 201
        assert ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "1"}).status_code == 201
    opened = ada.world.again(sources=ada.world.settings.sources)
    try:
        ada, bob, sue = Sender(opened), Sender(opened), opened.somebody("sue@example.org", "steward")
        ada.log_in("ada@example.org")
        bob.log_in("bob@example.org")
        if asked_first:
            for sender, name in ((ada, "people"), (ada, "viewed"), (bob, "bobs")):
                answer = sender.api("POST", "/questions", json={"sql": f"SELECT COUNT(*) AS n FROM {name}", "spend": "1"})
                assert answer.status_code in (404, 409), answer.text
        opened.hub.parts[KEEPER].look()
        assert {row.name: row.state for row in opened.rows(DataSet)} == {
            "apart": "open",
            "bobs": "closed",
            "people": "closed",
            "viewed": "closed",
        }
        spent = {name: opened.hub.ledger.spent(name) for name in opened.hub.ledger.populations()}
        assert spent == {"apart": PureDP(0), "bobs": PureDP(0), "people": PureDP(1), "viewed": PureDP(0)}
        assert ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM apart", "spend": "1"}).status_code == 201
        assert {each.kind for each in opened.rows(Alert)} == {"shared"}
        assert "bobs" in sue.get("/trail/alerts").text
        page = ada.get("/datasets/people/manage").text
        assert "its rows are in another data set too" in page
        assert "viewed" in page
        assert "bobs" not in page
        assert "another data set too" in ada.get("/").text
        theirs = bob.get("/datasets/bobs/manage").text
        assert ("viewed" in theirs, "a steward was told which one it is" in theirs) == (False, True)
        for sender, name in ((bob, "bobs"), (ada, "viewed")):
            assert sender.api("DELETE", f"/datasets/{name}").status_code == 204
        assert ada.post("/datasets/people/open", page="/datasets/people/manage").status_code == 303
        assert ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM people", "spend": "2"}).status_code == 201
        assert "another data set too" not in ada.get("/datasets/people/manage").text
        assert live_of(opened.hub).shared == {}
    finally:
        opened.close()


def test_what_turns_out_to_be_shared_before_a_charge_is_closed_at_once(ada: Sender, place: str, server: postgres.Server) -> None:
    """A table of one data set becomes a part of another one's, after both were opened."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS later; DROP TABLE IF EXISTS tree")
        connection.execute("CREATE TABLE tree (age int); CREATE TABLE later (age int); GRANT SELECT ON tree, later TO reader")
        assert registered(ada, place, "tree", "tree").status_code == 201
        assert registered(ada, place, "later", "later", "localhost").status_code == 201
        opened = live_of(ada.world.hub)
        with ada.world.hub.database.reading() as db:
            opened.renew(db)
        connection.execute("ALTER TABLE later INHERIT tree")
        answer = ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM later", "spend": "1"})
        assert answer.status_code == 422, answer.text
        assert opened.shared == {"later": frozenset({"tree"}), "tree": frozenset({"later"})}
        assert ada.api("POST", "/questions", json={"sql": "SELECT COUNT(*) AS n FROM tree", "spend": "1"}).status_code in (
            404,
            409,
        )
        ada.world.hub.parts[KEEPER].look()
        states = {row.name: row.state for row in ada.world.rows(DataSet)}
        assert states == {"later": "closed", "tree": "closed"}
        assert {each: ada.world.hub.ledger.spent(each) for each in states} == {"later": PureDP(0), "tree": PureDP(0)}
