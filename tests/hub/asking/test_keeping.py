"""Answers that come together are kept in one transaction: each by itself refused, and none failing for another's sake."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import event, select, update

from cloister.hub.platform.trail import verify
from cloister.hub.platform.trail.writing import keeper_of
from cloister.hub.records.accounts import ApiToken
from cloister.hub.records.releases import StoredRelease
from cloister.hub.services.asking import keeping
from cloister.ledger.commit import Entry
from cloister.session.execution.answer import measured
from tests.hub.asking.conftest import COUNT, Stage
from tests.hub.house import Visitor

Kept = list[keeping.Keeping]


@pytest.fixture
def waiting(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Kept:
    """What would be kept, taken out of the way of questions that are asked meanwhile."""
    taken: Kept = []
    real = keeping.keep

    def hold(hub: Any, each: keeping.Keeping) -> list[int]:
        taken.append(each)
        return real(hub, each)

    monkeypatch.setattr("cloister.hub.services.asking.answering.keep", hold)
    return taken


def several(stage: Stage, waiting: Kept, number: int, who: Visitor | None = None) -> Kept:
    """So many answers that have left the door and are not kept: those of questions just asked, under new addresses."""
    for place in range(number):
        stage.ask(f"{COUNT} WHERE age > {20 + place}", "0.01", who)
    found = [waiting.pop() for _ in range(number)]
    return [replace(each, rows=[replace(row, id=f"again{row.id}"[:32]) for row in each.rows]) for each in found]


def run(stage: Stage, works: Kept) -> list[Entry[keeping.Keeping]]:
    """Keep them as one batch."""
    batch = [Entry(each) for each in works]
    keeping._Keeper(stage.hub)._run(batch)
    assert all(entry.done for entry in batch)
    return batch


def kept(stage: Stage) -> set[str]:
    with stage.hub.database.reading() as db:
        return set(db.scalars(select(StoredRelease.id).where(StoredRelease.id.startswith("again"))))


def commits(stage: Stage, work: Callable[[], Any]) -> int:
    """How many transactions of the hub's database were committed."""
    found: list[int] = []

    def count(_: Any) -> None:
        found.append(1)

    event.listen(stage.hub.database.sessions, "after_commit", count)
    try:
        work()
    finally:
        event.remove(stage.hub.database.sessions, "after_commit", count)
    return len(found)


def test_a_batch_is_one_transaction_and_a_chain_without_a_gap(stage: Stage, waiting: Kept) -> None:
    works = several(stage, waiting, 5)
    found: list[Entry[keeping.Keeping]] = []
    assert commits(stage, lambda: found.extend(run(stage, works))) == 1
    assert [entry.error for entry in found] == [None] * 5
    lines = [entry.result[0] for entry in found]
    assert lines == list(range(lines[0], lines[0] + 5))
    assert kept(stage) == {each.rows[0].id for each in works}
    assert verify(stage.hub)
    assert keeper_of(stage.hub).known == lines[-1]


def test_of_a_batch_only_the_answer_is_withheld_whose_asker_may_not_have_it_any_more(stage: Stage, waiting: Kept) -> None:
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner)
    works = several(stage, waiting, 2) + several(stage, waiting, 1, bob)
    with stage.hub.database.begin() as db:
        db.execute(update(ApiToken).where(ApiToken.person == bob.id).values(revoked=stage.hub.now()))
    ana_1, ana_2, bobs = run(stage, works)
    assert (ana_1.error, ana_2.error) == (None, None)
    assert str(bobs.error).startswith("The answer was not released: ")
    assert kept(stage) == {each.rows[0].id for each in works[:2]}
    assert verify(stage.hub)


def test_where_one_fails_the_others_are_kept_all_the_same(stage: Stage, waiting: Kept) -> None:
    works = several(stage, waiting, 4)
    asked: list[int] = []

    def broken(_: Any) -> None:
        asked.append(1)
        raise RuntimeError("no")

    works[2] = replace(works[2], beside=broken)
    works[3] = replace(works[3], rows=[replace(works[3].rows[0], id=works[0].rows[0].id)])  # an address that is taken
    found = run(stage, works)
    assert [entry.error is None for entry in found] == [True, True, False, False]
    assert isinstance(found[2].error, RuntimeError)
    assert asked
    assert kept(stage) == {each.rows[0].id for each in works[:2]}
    assert verify(stage.hub)


def test_who_is_looked_up_once_stays_who_they_are(stage: Stage, waiting: Kept) -> None:
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner)
    works = several(stage, waiting, 2) + several(stage, waiting, 2, bob)
    run(stage, works)
    with stage.hub.database.reading() as db:
        rows = {row.id: row.person for row in db.scalars(select(StoredRelease))}
    assert [rows[each.rows[0].id] for each in works] == [stage.ana.id, stage.ana.id, bob.id, bob.id]


def test_an_interrupted_leader_leaves_nobody_waiting(stage: Stage, waiting: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    works = several(stage, waiting, 2)
    monkeypatch.setattr(keeping, "check_standing", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    batch = [Entry(each) for each in works]
    with pytest.raises(KeyboardInterrupt):
        keeping._Keeper(stage.hub)._run(batch)
    assert all(entry.done and entry.error is not None for entry in batch)
    assert kept(stage) == set()


def test_many_at_once_are_all_answered_and_an_overdraft_refuses_only_itself(stage: Stage) -> None:
    stage.post("/questions", {"sql": COUNT, "spend": "0.001"})
    left = float(stage.hub.ledger.remaining("people").epsilon)  # type: ignore[union-attr]
    each, many = left / 10.5, 16
    gate = threading.Barrier(many)

    def ask(place: int) -> int:
        gate.wait()
        body = {"sql": f"{COUNT} WHERE age > {place}", "spend": f"{each:.6f}"}
        return int(stage.post("/questions", body).status_code)

    with ThreadPoolExecutor(many) as pool:
        statuses = sorted(pool.map(ask, range(many)))
    assert statuses == [201] * 10 + [409] * 6
    assert verify(stage.hub)
    assert stage.hub.ledger.verify() is True


def test_a_slow_or_a_bad_question_holds_up_and_fails_nobody_else(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bob's question is at work for as long as all of Ana's take; some of hers are refused; the others are answered and kept."""
    stage.ask(COUNT, "0.001")
    bob = stage.house.person("analyst", email="bob@example.org")
    stage.house.grant(stage.people, bob, by=stage.owner)
    begun, go = threading.Event(), threading.Event()

    def slowly(part: Any, *others: Any) -> Any:
        if "77" in repr(part.shape.question.where):
            begun.set()
            assert go.wait(60)
        return measured(part, *others)

    monkeypatch.setattr("cloister.session.execution.buying.measured", slowly)
    found: dict[str, int] = {}

    def ask(sql: str, spend: str = "0.01", who: Visitor | None = None) -> None:
        found[sql] = stage.post("/questions", {"sql": sql, "spend": spend}, who).status_code

    slow = threading.Thread(target=ask, args=(f"{COUNT} WHERE age > 77", "0.01", bob))
    slow.start()
    assert begun.wait(60)
    good = [f"{COUNT} WHERE age > {place}" for place in range(20, 26)]
    bad = [f"{COUNT} WHERE nothing > 3", f"{COUNT} WHERE", "SELECT COUNT(*) AS n FROM nobody"]
    try:
        with ThreadPoolExecutor(10) as pool:
            list(pool.map(ask, [*good, *bad]))
            pool.submit(ask, f"{COUNT} WHERE age > 30", "1000000").result()
        assert {found[sql] for sql in good} == {201}
        assert all(400 <= found[sql] < 500 for sql in [*bad, f"{COUNT} WHERE age > 30"])
        assert slow.is_alive()
    finally:
        go.set()
        slow.join(60)
    assert found[f"{COUNT} WHERE age > 77"] == 201
    assert len(stage.charges) == 1 + len(good) + 1
    assert verify(stage.hub)
    assert stage.hub.ledger.verify() is True
