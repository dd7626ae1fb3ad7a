"""A question is answered from the rows that it was decided for, whatever becomes of the tables in between."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.errors import CloisterError, LedgerUnavailable
from cloister.hub.database import Database, every_model
from cloister.hub.decisions.held import Exchanged
from cloister.hub.generation import bump, claim_generation, generation, read_generation
from cloister.hub.migrations import bring_up_to_date
from cloister.hub.platform.catalogue.live import Live, live_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.asking import answering
from cloister.hub.work import authorise
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from scripts.postgres import Server
from tests.hub.asking.conftest import COUNT, Stage
from tests.hub.asking.test_policy import reader, rule
from tests.hub.house import House
from tests.hub.trail.conftest import new_schema, postgres_server

__all__ = ["postgres_server"]

SUM = "SELECT SUM(v) AS s FROM bits"
BITS = {"columns": {"v": {"kind": "integer", "low": 0, "high": 1}}, "size": 40}


@pytest.fixture
def bits(stage: Stage) -> Stage:
    """Forty zeros beside the people."""
    stage.house.sample_data_set("bits", owner=stage.owner, rows={"v": [0] * 40}, declaration=BITS, budget=PureDP(200))
    return stage


def _ones(stage: Stage, value: int = 1) -> str:
    """A version of ones; its id."""
    headers = {**stage.owner.bearer, "Content-Type": "text/csv"}
    sent = stage.house.client().post("/api/v1/uploads", content=("v\n" + f"{value}\n" * 40).encode(), headers=headers)
    assert sent.status_code == 201, sent.text
    number: str = sent.json()["id"]
    added = stage.post("/datasets/bits/versions", {"upload": number}, stage.owner)
    assert added.status_code == 201, added.text
    return number


def _asked(stage: Stage, spend: str) -> tuple[int, str]:
    """The sum, and the version that its policy names."""
    told = stage.ask(SUM, spend=spend, who=stage.owner)
    [source] = told["policy"]["sources"]
    return told["columns"]["s"][0], source["version"]


def test_a_slow_reader_takes_nobody_back(bits: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(bits, "20")[0] == pytest.approx(0, abs=3)
    ready = answering.ready
    with bits.hub.database.reading() as slow:
        before = generation(slow)  # the moment of the slow one begins
        number = _ones(bits)

        def between(*given: Any, **more: Any) -> Any:
            found = ready(*given, **more)
            live_of(bits.hub).renew(slow)
            return found

        monkeypatch.setattr(answering, "ready", between)
        value, version = _asked(bits, "30")
        assert live_of(bits.hub)._generation > before
    assert value == pytest.approx(40, abs=3)
    assert version == number


def test_rows_that_are_exchanged_after_the_decision_are_decided_anew(bits: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(bits, "20")[0] == pytest.approx(0, abs=3)
    ready, added = answering.ready, []

    def between(*given: Any, **more: Any) -> Any:
        found = ready(*given, **more)
        if not added:
            added.append(_ones(bits))
            with bits.hub.database.reading() as db:  # somebody else's question
                live_of(bits.hub).renew(db)
        return found

    monkeypatch.setattr(answering, "ready", between)
    value, version = _asked(bits, "30")
    assert value == pytest.approx(40, abs=3)
    assert [version] == added
    assert len(bits.hub.ledger.charges("bits")) == 2  # what was decided and not carried out cost nothing


def test_who_is_overtaken_each_time_is_told_so_and_pays_nothing(bits: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, turn = answering.ready, []

    def between(*given: Any, **more: Any) -> Any:
        found = ready(*given, **more)
        turn.append(1)
        _ones(bits, len(turn) % 2)
        with bits.hub.database.reading() as db:
            live_of(bits.hub).renew(db)
        return found

    monkeypatch.setattr(answering, "ready", between)
    answer = bits.post("/questions", {"sql": SUM, "spend": "1"}, bits.owner)
    assert answer.status_code == 409, answer.text
    assert "being exchanged just now" in answer.json()["detail"]
    assert bits.hub.ledger.charges("bits") == []


def test_another_change_of_the_catalogue_takes_nobodys_decision_away(bits: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ready, decided = answering.ready, []

    def between(*given: Any, **more: Any) -> Any:
        found = ready(*given, **more)
        decided.append(found)
        with bits.hub.database.begin() as db:
            bump(db)
        with bits.hub.database.reading() as db:
            live_of(bits.hub).renew(db)
        return found

    monkeypatch.setattr(answering, "ready", between)
    assert _asked(bits, "20")[0] == pytest.approx(0, abs=3)
    assert len(decided) == 1


def test_what_is_decided_on_older_facts_than_the_tables_is_not_read(bits: Stage) -> None:
    """Another process of the hub has its own tables, and goes forward by itself."""
    here, there = live_of(bits.hub), Live(bits.hub)
    try:
        with bits.hub.database.reading() as slow:
            old = generation(slow)
            for live in (here, there):
                live.renew(slow)
            _ones(bits)
            with bits.hub.database.reading() as db:
                for live in (here, there):
                    live.renew(db)
                    session = live.session(slow, "ana", tables=["bits"])
                    with pytest.raises(Exchanged), live.held(session, ["bits"], old).pinned():
                        pass
                    with live.held(session, ["bits", "people"], generation(db)).pinned():
                        pass
                    with pytest.raises(CloisterError), live.held(session, ["bits", "none"], generation(db)).pinned():
                        pass
    finally:
        there.close()


def test_a_model_learns_from_the_rows_that_it_names(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.hub.platform.jobs import Workers
    from cloister.hub.records.releases import StoredRelease
    from cloister.hub.services.learning import fitting

    owner = house.person("owner", email="olga@example.org")
    house.sample_data_set("people", owner=owner)
    sent = house.client().post(
        "/api/v1/uploads",
        content=("age,sex,pay\n" + "40,F,7\n41,M,7\n" * 50).encode(),
        headers={**owner.bearer, "Content-Type": "text/csv"},
    )
    order = {"table": "people", "method": "GaussianNB", "features": ["age"], "target": "sex", "spend": "0.25"}
    answer = house.client().post("/api/v1/models", json=order, headers=owner.bearer)
    assert answer.status_code == 202, answer.text
    ready, decided = fitting.ready_table, []

    def between(*given: Any, **more: Any) -> Any:
        found = ready(*given, **more)
        decided.append(found)
        if len(decided) == 1:
            path = "/api/v1/datasets/people/versions"
            added = house.client().post(path, json={"upload": sent.json()["id"]}, headers=owner.bearer)
            assert added.status_code == 201, added.text
            with house.hub.database.reading() as db:
                live_of(house.hub).renew(db)
        return found

    monkeypatch.setattr(fitting, "ready_table", between)
    assert Workers(house.hub, 0).run_one()
    assert len(decided) == 2
    with house.hub.database.reading() as db:
        row = db.query(StoredRelease).one()
    assert row.details["columns"]["version"] == sent.json()["id"] == row.policy["sources"][0]["version"]
    assert len(house.hub.ledger.charges("people")) == 1


def test_an_answer_leaves_though_its_table_is_declared_anew_before_it_is_kept(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text cannot be read against the new declaration; it was charged, and is about the rows that it was asked about."""
    keep = answering._keep

    def between(*given: Any, **more: Any) -> Any:
        with stage.hub.database.begin() as db:
            row = db.get_one(DataSet, stage.people.id)
            columns = {name: each for name, each in row.declaration["columns"].items() if name != "age"}
            row.declaration = {**row.declaration, "columns": columns}
            bump(db)
        with stage.hub.database.reading() as db:
            live_of(stage.hub).renew(db)
        return keep(*given, **more)

    asked = {"sql": "SELECT COUNT(*) AS n FROM people WHERE age > 33", "spend": "0.1"}
    with monkeypatch.context() as here:
        here.setattr(answering, "_keep", between)
        answer = stage.post("/questions", asked)
    assert answer.status_code == 201, answer.text
    assert len(stage.charges) == 1
    assert stage.post("/questions", asked).status_code == 422


def test_a_version_that_cannot_be_taken_over_closes_its_table_and_no_other(bits: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the ledger is away. Who asks about something else hears nothing of it, nor of what else there is."""
    bits.house.sample_data_set("hidden", owner=bits.house.person("owner"))
    assert _asked(bits, "20")[0] == pytest.approx(0, abs=3)
    number = _ones(bits)

    def away(*_: Any, **__: Any) -> None:
        raise LedgerUnavailable("Nothing was written", why="the ledger is away", instead="ask again")

    with monkeypatch.context() as here:
        here.setattr(Ledger, "open", away)
        answer = bits.post("/questions/explain", {"sql": COUNT, "spend": "0.1"})
        assert answer.status_code == 200, answer.text
        closed = bits.post("/questions", {"sql": SUM, "spend": "20"}, bits.owner)
        assert (closed.status_code, "the ledger is away" in closed.text) == (503, True)
    bits.house.clock.move(seconds=11)
    value, version = _asked(bits, "30")
    assert (round(value / 40), version) == (1, number)


@pytest.mark.parametrize("narrow", [{}, {"columns": ["age", "sex"], "rows": "pay >= 25"}], ids=["whole", "view"])
@pytest.mark.parametrize("path", ["", "/explain", "/rehearse", "/afford"])
@pytest.mark.parametrize("other", [None, {"columns": {"salary": {"kind": "integer", "low": 0, "high": 9}}, "size": 40}])
def test_a_table_that_is_gone_after_the_decision_tells_of_no_other(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, narrow: dict[str, Any], path: str, other: dict[str, Any] | None
) -> None:
    """Closed, or the name another's by now: neither the names of other tables nor another's columns are told."""
    rea, house = reader(stage, **narrow), stage.house
    rule(stage, epsilon_of_population="0.5")
    stage.ask(COUNT, who=rea)
    decided, checked = [], authorise.check_together

    def between(*given: Any, **more: Any) -> Any:
        found = checked(*given, **more)
        if not decided:
            decided.append(1)
            with stage.hub.database.begin() as db:
                row = db.get_one(DataSet, stage.people.id)
                row.state, row.name = "deleted", "gone"
                bump(db)
            for name in ["hidden"] if other is None else ["hidden", "people"]:
                rows = {"salary": [3] * 40} if name == "people" else None
                told = other if name == "people" else None
                house.sample_data_set(name, owner=house.person("owner"), rows=rows, declaration=told, population=f"of {name}")
            with stage.hub.database.reading() as db:
                live_of(stage.hub).renew(db)
        return found

    monkeypatch.setattr(authorise, "check_together", between)
    answer = stage.post(f"/questions{path}", {"sql": f"{COUNT} WHERE age > 33", "spend": "0.1"}, rea)
    assert answer.status_code in (404, 409), answer.text
    assert not any(each in answer.text for each in ("hidden", "salary", "pay"))
    assert len(stage.charges) == 1
    assert decided


@pytest.mark.postgres
def test_facts_and_their_number_are_of_one_moment_on_postgresql_too(postgres_server: Server) -> None:
    every_model()
    made = Database(new_schema(postgres_server))
    try:
        bring_up_to_date(made)
        with made.reading() as slow:
            before = generation(slow)
            with made.begin() as db:
                bump(db)
            assert read_generation(slow.connection()) == before
        with made.reading() as db, made.begin() as other:
            assert generation(db) == generation(other) == before + 1
    finally:
        made.close()


def test_tables_are_never_newer_than_the_number_that_is_written_beside_them(bits: Stage) -> None:
    """A moment that begins after its number was glanced at has later rows, and so has one of PostgreSQL."""
    live = Live(bits.hub)
    try:
        with bits.hub.database.reading() as db:
            old = generation(db)
        _ones(bits)
        with bits.hub.database.reading(late=True) as late:
            claim_generation(late, old)
            live.renew(late)
        with bits.hub.database.reading() as db:
            new = generation(db)
            session = live.session(db, "ana", tables=["bits"])
        assert new > old
        with pytest.raises(Exchanged), live.held(session, ["bits"], old).pinned():
            pass
        with live.held(session, ["bits"], new).pinned():
            pass
    finally:
        live.close()
