"""A run as a table: `SELECT * FROM cloister.run(…)` from psycopg, for the same charge and release as from the page."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from sqlalchemy import update

from cloister.hub.generation import bump
from cloister.hub.platform.access import grant
from cloister.hub.platform.jobs import Workers
from cloister.hub.records.access import Grant
from cloister.hub.services.guests.sql import RunFunction
from cloister.pgwire import FreeAnswer
from cloister.privacy import PureDP
from cloister.session import Frame
from cloister.session.releases.frames import Series
from tests.hub.asking.test_pg import free_port
from tests.hub.guests.test_running import Play, play_in
from tests.hub.house import Clock, House

RUN = "SELECT * FROM cloister.run('a1', 'people', '0.25')"
SHARP = RUN.replace("0.25", "20")


@pytest.fixture
def play(tmp_path: Path, clock: Clock) -> Iterator[Play]:
    house = House(tmp_path / "hub", clock, pg_port=free_port())
    yield play_in(house)
    house.close()


@contextmanager
def connected(play: Play) -> Iterator[psycopg.Connection[Any]]:
    port = play.house.hub.settings.pg_port
    how: dict[str, Any] = {"host": "127.0.0.1", "port": port, "dbname": "hub", "autocommit": True, "connect_timeout": 20}
    with psycopg.connect(user="u3@example.org", password=play.u3.token, **how) as connection:
        yield connection


@contextmanager
def worker(play: Play) -> Iterator[None]:
    """Does one job, as another process would."""
    done = threading.Event()

    def work() -> None:
        workers = Workers(play.house.hub, 0)
        while not done.is_set() and not workers.run_one():
            done.wait(0.02)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_run_is_a_table_with_margins_for_its_charge(play: Play) -> None:
    with connected(play) as connection:
        told = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {RUN}").fetchall())
        assert "cost: ε = 0.25" in told
        assert play.spent == "ε = 0"
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        with worker(play):
            cursor = connection.execute("SELECT * FROM cloister.run('a1', 'people', '0.25');")
            assert [each.name for each in cursor.description or ()] == ["name", "value", "margin"]
            [(name, value, margin)] = cursor.fetchall()
        assert name == "age"
        assert 0 <= value <= 120
        assert margin > 0
        assert play.spent == "ε = 0.25"
        assert "cost ε = 0.25 of 'people'" in notices[0]
        connection.execute("SET cloister.spend = '0.5'")
        with worker(play):
            assert len(connection.execute("SELECT * FROM cloister.run('a1', 'people')").fetchall()) == 1
    assert play.spent == "ε = 0.75"
    assert len(play.get("/releases?kind=guest").json()["releases"]) == 2


def test_margins_are_of_the_confidence_that_is_set(play: Play) -> None:
    play.house.hub.ledger.raise_budget("people", PureDP(100), who="olga@example.org", why="a sharp run")
    with connected(play) as connection:
        usual = explained(connection)
        connection.execute("SET cloister.confidence = '0.999'")
        wide = explained(connection)
        assert wide > 1.5 * usual
        with worker(play):
            assert connection.execute(SHARP.replace("*", "margin")).fetchone() == (wide,)


def explained(connection: psycopg.Connection[Any]) -> float:
    [[plans]] = connection.execute(f"EXPLAIN (FORMAT JSON) {SHARP}").fetchall()
    return float(plans[0]["Plan"]["Margins"]["age"])


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM cloister.run('a1', 'people')", "no spend"),
        ("SELECT * FROM cloister.run('a2', 'people', '0.1')", "denied|not cover"),
        ("SELECT * FROM cloister.run('a3', 'people', '0.1')", "no such algorithm"),
        ("SELECT * FROM cloister.run('a1', 'nowhere', '0.1')", "unknown"),
        ("SELECT * FROM cloister.run('a1', 'people', '-1')", "invalid"),
        ("SELECT * FROM cloister.run('a1')", "data set"),
        ("SELECT max(value) FROM cloister.run('a1', 'people', '0.1')", "stands alone"),
        ("SELECT value + 1 FROM cloister.run('a1', 'people', '0.1')", "stands alone"),
        ("SELECT other FROM cloister.run('a1', 'people', '0.1')", "no such column"),
        ("SELECT * FROM cloister.run('a1', 'people', '0.1') ORDER BY other", "no such column"),
        ("SELECT * FROM cloister.run('a1', 'people', '0.1') AS r WHERE value > 3", "stands alone"),
        ("SELECT * FROM cloister.run('a1', 'people', '0.1') AS r LIMIT -1", "stands alone"),
        ("SELECT x.value FROM cloister.run('a1', 'people', '0.1') AS r", "stands alone"),
        ("SELECT value, value FROM cloister.run('a1', 'people', '0.1')", "stands alone"),
        ("SELECT * FROM cloister.run('a1', 'people', '0.1') AS", "stands alone"),
        ("SELECT * FROM people, cloister.run('a1', 'people', '0.1')", "stands alone"),
        ("SELECT * FROM cloister.run('a1', 'people', (SELECT 1))", "stands alone"),
        ("SELECT * FROM cloister.run('a1', 'people', '0.1'), people", "stands alone"),
        ("SELECT * FROM cloister.run('a1', 'people', '99')", "people"),
    ],
)
def test_what_could_not_be_ordered_is_refused_and_costs_nothing(play: Play, sql: str, says: str) -> None:
    with connected(play) as connection, worker(play), pytest.raises(psycopg.Error, match=says):
        connection.execute(sql)
    assert play.spent == "ε = 0"


def test_of_a_run_columns_their_order_and_a_limit_may_be_asked_for(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows without noise, with a margin that is absent: the largest for PostgreSQL."""
    numbers = {"value": [3.0, 1.0, 2.0], "margin": [5.0, float("nan"), 4.0]}
    table = {name: Series("real", np.array(each)) for name, each in numbers.items()}
    table = {"name": Series("text", np.array(["a", "b", "c"], dtype=object)), **table}
    monkeypatch.setattr(RunFunction, "call", lambda *_: FreeAnswer(Frame(table)))
    asked = {
        f"{RUN} AS r LIMIT 2": ["a", "b"],
        RUN.replace("*", 'r.name, value AS "V"') + ' r ORDER BY "V" DESC, name LIMIT 2': ["a", "c"],
        RUN.replace("*", "name") + " ORDER BY run.value ASC;": ["b", "c", "a"],
        RUN.replace("*", "name") + " ORDER BY margin": ["c", "a", "b"],
        RUN.replace("*", "name") + " ORDER BY margin DESC LIMIT 1": ["b"],
        RUN.replace("*", "name") + " LIMIT 0": [],
    }
    with connected(play) as connection:
        for sql, names in asked.items():
            cursor = connection.execute(sql)
            assert [row[0] for row in cursor.fetchall()] == names, sql
            if "V" in sql:
                assert [each.name for each in cursor.description or ()] == ["name", "V"]
        told = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {RUN} AS r LIMIT 1").fetchall())
        assert "cost: ε = 0.25" in told


def test_rows_that_used_up_a_share_are_given_to_the_end(play: Play) -> None:
    """The step that looks whether the run may still be ordered asked for its price once more."""
    with play.house.hub.database.begin() as db:
        db.execute(update(Grant).where(Grant.role == "runner", Grant.kind == "data-set").values(revoked=play.house.hub.now()))
        bump(db)
    rules = {"actions": ["algorithm.run"], "algorithms": ["a1"], "share": {"epsilon": "0.25"}}
    grant(play.house.hub, play.owner.caller, data_set="people", role="shared", members={"people": [play.u3.id]}, rules=rules)
    with connected(play) as connection:
        connection.execute(f"DECLARE c SCROLL CURSOR WITH HOLD FOR {RUN}")
        with worker(play):
            first = connection.execute("FETCH 1 FROM c").fetchall()
        assert len(first) == 1
        assert connection.execute("FETCH FIRST FROM c").fetchall() == first
        with pytest.raises(psycopg.Error, match="share"), worker(play):
            connection.execute(RUN)
    assert play.spent == "ε = 0.25"
