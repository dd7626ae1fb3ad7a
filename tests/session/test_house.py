"""Many people in one house: light sessions, tables that come and go, and what is stored already."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import cloister as cl
from cloister.noise import Random
from cloister.session import Count, Door, Question, Sum
from cloister.tables.engines.engine import Prepared

COUNT = Question(table="people", statistics=(Count(),))
SEXES = Question(table="people", by=("sex",), statistics=(Count(),))


def people(number: int, **further: Any) -> cl.PrivateTable:
    return cl.PrivateTable(
        {"age": [30] * number, "sex": ["F"] * number},
        columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])},
        **further,
    )


@pytest.fixture
def house() -> Iterator[Door]:
    with Door({"people": people(100)}, budget=cl.PureDP(10**12), random=Random.deterministic(3)) as opened:
        yield opened


def count(door: Door, spend: int = 10**6, table: str = "people") -> int:
    return int(door.measure(Question(table=table, statistics=(Count(),)), spend=spend)["count"][0])


# ── on behalf ────────────────────────────────────────────────────────────────────────────────────


def test_a_light_session_shares_ledger_rows_and_randomness_and_closes_none(house: Door) -> None:
    ana = house.on_behalf("ana")
    assert count(ana) == 100
    [charge] = house.ledger.charges("people")
    assert charge.who == "ana"
    prepared = house.prepared("people")
    with ana:
        pass
    assert house.prepared("people") is prepared
    assert count(house, 2 * 10**6) == 100
    assert ana.spent == house.spent
    assert str(ana.remaining) == str(house.remaining)


def test_each_session_remembers_its_own_questions(house: Door) -> None:
    """A coarser answer follows from a finer one only for who bought that."""
    ana, bob = house.on_behalf("ana"), house.on_behalf("bob")
    ana.measure(SEXES, spend=5)
    before = house.spent
    ana.measure(COUNT, spend=5)
    assert house.spent == before
    bob.measure(COUNT, spend=5)
    assert house.spent != before


def test_progress_and_time_limit_are_each_one_s_own(house: Door) -> None:
    stages: list[str] = []
    ana = house.on_behalf("ana", progress=stages.append, time_limit=7)
    count(ana)
    assert stages == ["preparing the tables", "reserving the cost", "asking the engine", "settling the charge"]
    assert [each._analyst.time_limit for each in (ana, ana.on_behalf("bob"), house)] == [7, 7, None]
    with pytest.raises(cl.InvalidParameter, match="time_limit"):
        house.on_behalf("ana", time_limit=0)


def test_the_purse_is_of_the_tables_that_are_seen() -> None:
    with Door({"people": people(3), "staff": people(4)}, budget=cl.PureDP(1)) as house:
        ana = house.on_behalf("ana", tables=["staff", "nobody"])
        assert list(ana.spent_by) == ["staff"]
        assert list(ana.tables) == ["staff"]
        assert "people" not in repr(ana)
        with pytest.raises(cl.InvalidParameter, match="no private table"):
            _ = house.on_behalf("bob", tables=[]).spent


@pytest.mark.parametrize(
    "act",
    [
        lambda ana: ana.add("more", people(3), cl.PureDP(1)),
        lambda ana: ana.replace("people", people(3)),
        lambda ana: ana.remove("people"),
        lambda ana: ana.prepared("people"),
    ],
)
def test_what_is_the_owner_s_is_refused_on_somebody_s_behalf(house: Door, act: Any) -> None:
    with pytest.raises(cl.AccessDenied, match="on somebody's behalf"):
        act(house.on_behalf("ana"))
    assert count(house) == 100


# ── tables come and go ───────────────────────────────────────────────────────────────────────────


def test_a_house_may_begin_empty_on_a_ledger(tmp_path: Path) -> None:
    with Door({}, ledger=tmp_path / "budget.db") as house:
        ana = house.on_behalf("ana", tables=["people"])
        with pytest.raises(cl.UnknownTable, match="private tables are none"):
            ana.explain(COUNT, spend=1)
        house.add("people", people(10), budget=cl.PureDP(1))
        assert str(ana.explain(COUNT, spend=1).cost) == "ε = 1"
        assert list(ana.tables) == ["people"]
    with pytest.raises(cl.InvalidParameter, match="without tables"):
        Door({})


def test_a_table_is_added_replaced_and_removed(house: Door) -> None:
    house.add("staff", people(7), budget=cl.PureDP(10**12))
    assert count(house, table="staff") == 7
    assert count(house) == 100
    spent = house.spent_by["people"]
    first = house.prepared("people")
    house.replace("people", people(50))
    assert count(house) == 50, "another version: nothing that was bought for the old rows answers for these"
    assert house.spent_by["people"] == spent + cl.PureDP(10**6)
    with pytest.raises(cl.EngineError, match="closed"):
        first.rows(["age"])
    house.remove("staff")
    assert list(house.tables) == ["people"]
    with pytest.raises(cl.UnknownTable, match="'staff'"):
        count(house, table="staff")
    house.remove("people")
    assert house.spent_by == {}
    house.add("people", people(20))
    assert count(house) == 20
    assert house.spent_by["people"] == spent + cl.PureDP(2 * 10**6), "what the population has spent stays spent"


def test_a_table_that_comes_again_under_another_name_is_the_same_persons() -> None:
    table = people(9)
    with Door({"people": table}, budget=cl.PureDP(1)) as house:
        house.measure(COUNT, spend=1)
        house.remove("people")
        house.add("others", table, budget=cl.PureDP(1))
        assert house.remaining_by == {"people": cl.PureDP(0)}
        with pytest.raises(cl.InvalidParameter, match="population"):
            house.add("more", cl.PrivateTable(table.source, columns=dict(table.columns), population="new"), budget=cl.PureDP(1))


@pytest.mark.parametrize(
    ("act", "match"),
    [
        (lambda house: house.add("people", people(3), cl.PureDP(1)), "there is one of that name"),
        (lambda house: house.add("new", people(3)), "no budget yet"),
        (lambda house: house.add("new", {"age": [1]}, cl.PureDP(1)), "it is a dict"),
        (lambda house: house.add("", people(3), cl.PureDP(1)), "not a name"),
        (lambda house: house.replace("new", people(3)), "private tables are people"),
        (lambda house: house.replace("people", people(3, population="others")), "of population 'people'"),
        (lambda house: house.replace("people", cl.PublicTable({"age": [1]})), "replaced by a private one"),
        (lambda house: house.remove("new"), "private tables are people"),
    ],
)
def test_a_change_that_is_refused_changes_nothing(house: Door, act: Any, match: str) -> None:
    with pytest.raises(cl.CloisterError, match=match):
        act(house)
    assert list(house.tables) == ["people"]
    assert count(house) == 100


def test_a_question_in_flight_ends_on_the_rows_that_it_began_with(house: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands before the engine while its table is replaced, and another removed; the old rows are closed after it."""
    begun, go_on = threading.Event(), threading.Event()
    closed: list[int] = []
    close = Prepared.close
    old = house.prepared("people")

    def closing(prepared: Prepared) -> None:
        closed.append(id(prepared))
        close(prepared)

    monkeypatch.setattr(type(old), "close", closing)

    def progress(stage: str) -> None:
        if stage == "asking the engine":
            begun.set()
            assert go_on.wait(60)

    slow = house.on_behalf("ana", progress=progress)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(count, slow)
        assert begun.wait(60)
        house.replace("people", people(5))
        assert count(house) == 5, "others see the new rows at once"
        house.remove("people")
        assert id(old) not in closed
        go_on.set()
        assert answer.result(60) == 100
    assert id(old) in closed
    with pytest.raises(cl.UnknownTable):
        count(slow)


def test_a_question_sees_one_moment_from_its_text_to_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its table is replaced by one with other bounds between parsing and planning."""
    from cloister.query import parse

    wide = cl.PrivateTable({"age": [900] * 10}, columns={"age": cl.Integer(0, 1000)})
    narrow = cl.PrivateTable({"years": [9] * 10}, columns={"years": cl.Integer(0, 10)})
    with cl.Session({"people": wide}, budget=cl.PureDP(10**12), random=Random.deterministic(1)) as house:

        def replacing(*args: Any, **kwargs: Any) -> Any:
            parsed = parse(*args, **kwargs)
            worker = threading.Thread(target=house.replace, args=("people", narrow))
            worker.start()
            worker.join()
            return parsed

        monkeypatch.setattr("cloister.query.forms.parse", replacing)
        assert int(house.sql("SELECT SUM(age) AS s FROM people", spend=10**6)["s"][0]) == 9000
        monkeypatch.undo()
        assert int(house.sql("SELECT SUM(years) AS s FROM people", spend=10**6)["s"][0]) == 90


def test_asking_and_changing_at_once_always_answers_for_one_of_the_versions(house: Door) -> None:
    sizes, wrong, stop = {100, 200, 300}, [], threading.Event()

    def ask(number: int) -> None:
        mine = house.on_behalf(f"p{number}")
        for turn in range(25):
            found = int(
                mine.measure(Question(table="people", statistics=(Count(), Sum(column="age"))), spend=10**5 + turn)["count"][0]
            )
            if found not in sizes:
                wrong.append(found)

    def change() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            house.replace("people", people(sorted(sizes)[turn % 3]))
            house.add(f"t{turn}", people(3, population="people"))
            house.remove(f"t{turn}")
            time.sleep(0.002)

    changer = threading.Thread(target=change)
    changer.start()
    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(ask, number) for number in range(4)]:
            each.result(120)
    stop.set()
    changer.join(60)
    assert not wrong
    assert set(house.registry.snapshot._prepared) <= {"people"}
    assert not house.registry._asking


def test_a_bias_of_rows_that_were_replaced_is_refused() -> None:
    with Door({"people": people(9)}, budget=cl.PureDP(10)) as house:
        answer = house.measure(Question(table="people", statistics=(Sum(column="age"),)), spend=1)
        house.replace("people", people(8))
        with pytest.raises(cl.InvalidParameter, match="were replaced"):
            answer.bias(spend=1)


# ── what is stored ───────────────────────────────────────────────────────────────────────────────


def test_what_is_stored_is_the_answer_that_was_bought(house: Door) -> None:
    assert house.stored(COUNT) is None
    first = house.measure(COUNT, spend=5)
    second = house.measure(COUNT, spend=12)
    spent = house.spent
    for spend in (None, 5, 12):
        found = house.stored(COUNT, spend=spend)
        assert found is not None
        assert found.to_pydict() == second.to_pydict()
        assert found.margin()["count"].tolist() == second.margin()["count"].tolist()
        assert found.provenance.repeated
        assert found.cost == second.cost
    assert house.stored(COUNT, spend=13) is None
    assert first.cost != second.cost
    assert house.spent == spent


def test_the_use_of_what_others_paid_for_debits_the_allotment_once(house: Door) -> None:
    house.ledger.allot("people", "bob", cl.PureDP(8), who="owner")
    house.ledger.allot("people", "eve", cl.PureDP(3), who="owner")
    house.measure(COUNT, spend=5)
    spent = house.spent
    bob = house.on_behalf("bob")
    for _ in range(3):
        assert bob.stored(COUNT) is not None
    assert house.ledger.drawn("people", "bob", bob.explain(COUNT, spend=5).digest) == cl.PureDP(5)
    with pytest.raises(cl.BudgetExceeded):
        house.on_behalf("eve").stored(COUNT)
    assert house.spent == spent


@pytest.mark.parametrize("budget", [cl.ApproxDP(100, "1e-5"), cl.ZCDP(100, "1e-5")])
def test_undeclared_keys_and_grouping_sets_are_found_again(budget: cl.ApproxDP | cl.ZCDP) -> None:
    table = cl.PrivateTable(
        {"town": ["Delft", "Gouda"] * 400, "sex": ["F", "M", "F"] * 266 + ["F", "M"]},
        columns={"town": cl.Text(), "sex": cl.Category(["F", "M"])},
    )
    questions = (
        "SELECT town, COUNT(*) AS n FROM people GROUP BY town ORDER BY n",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY ROLLUP (sex)",
        "SELECT COUNT(*) AS n FROM people",
    )
    with cl.Session({"people": table}, budget=budget) as session:
        for sql in questions:
            assert session.stored(sql) is None
            answer = session.sql(sql, spend=2, fresh=True)
            spent = session.spent
            again = session.on_behalf("bob").stored(sql)
            assert again is not None
            assert again.to_pydict() == answer.to_pydict()
            assert again.margin().to_pydict() == answer.margin().to_pydict()
            assert session.stored(sql, spend=3) is None
            assert session.spent == spent
