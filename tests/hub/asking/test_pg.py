"""PostgreSQL clients before a real hub: psycopg and psql, with an API token as the password."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select, update

from cloister.hub.generation import bump
from cloister.hub.records.access import Grant
from cloister.hub.records.accounts import ApiToken
from cloister.hub.records.trail import TrailLine
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.house import Clock, House


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def stage(tmp_path: Path, empty_hub: Path, clock: Clock) -> Iterator[Stage]:
    shutil.copytree(empty_hub, tmp_path / "hub")
    house = House(tmp_path / "hub", clock, pg_port=free_port())
    owner = house.person("owner", email="olga@example.org")
    ana = house.person("analyst", email="ana@example.org")
    people = house.sample_data_set("people", owner=owner)
    house.grant(people, ana, by=owner, actions=MAY)
    yield Stage(house, owner, ana, people)
    house.close()


def connect(stage: Stage, **how: Any) -> psycopg.Connection[Any]:
    given = {"user": "ana@example.org", "password": stage.ana.token, **how}
    return psycopg.connect(
        host="127.0.0.1", port=stage.hub.settings.pg_port, dbname="hub", autocommit=True, connect_timeout=20, **given
    )


def test_a_question_is_answered_charged_kept_and_written_down(stage: Stage):
    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.5'")
        connection.execute("SET cloister.purpose = 'a look'")
        rows = connection.execute(BY_SEX).fetchall()
    assert [row[0] for row in rows] == ["F", "M"]
    assert stage.spent == "ε = 0.5"
    [kept] = stage.get("/releases").json()["releases"]
    assert (kept["sql"], kept["purpose"]) == (BY_SEX, "a look")
    assert [list(row) for row in zip(*stage.get(f"/releases/{kept['id']}").json()["columns"].values(), strict=True)] == [
        list(row) for row in rows
    ]
    with stage.hub.database.reading() as db:
        line = db.scalars(select(TrailLine).where(TrailLine.action == "question.ask")).one()
    assert (line.person, line.purpose, line.outcome, line.details["via"]) == (stage.ana.id, "a look", "done", "token")


def test_nothing_is_spent_without_a_spend_and_a_repeat_is_free(stage: Stage):
    with connect(stage) as connection:
        with pytest.raises(psycopg.Error, match="no spend is set"):
            connection.execute(COUNT)
        assert "nothing was spent" in str(connection.execute(f"EXPLAIN {COUNT}").fetchall())
        assert stage.charges == []
        connection.execute("SET cloister.spend = '0.25'")
        first = connection.execute(COUNT).fetchall()
        connection.execute("RESET cloister.spend")
        assert connection.execute(COUNT).fetchall() == first
    assert len(stage.charges) == 1


def test_an_answer_of_the_api_is_a_repeat_here(stage: Stage):
    told = stage.ask(COUNT, "0.25")
    with connect(stage) as connection:
        assert connection.execute(COUNT).fetchall() == [(told["columns"]["n"][0],)]
    assert len(stage.charges) == 1


@pytest.mark.parametrize("how", [{"password": "clo_wrong"}, {"user": "olga@example.org"}, {"user": "nobody@example.org"}])
def test_whatever_is_wrong_is_refused_in_the_same_words(stage: Stage, how: dict[str, str]):
    with pytest.raises(psycopg.OperationalError, match="The log-in was refused"):
        connect(stage, **how)


def test_a_token_that_is_revoked_answers_nothing_more(stage: Stage):
    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        with stage.hub.database.begin() as db:
            db.execute(update(ApiToken).where(ApiToken.person == stage.ana.id).values(revoked=stage.hub.now()))
        with pytest.raises(psycopg.Error, match="refused"):
            connection.execute(COUNT)
    assert stage.charges == []


def test_a_grant_that_is_revoked_is_gone_at_the_next_statement(stage: Stage):
    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        connection.execute(COUNT)
        with stage.hub.database.begin() as db:
            db.execute(update(Grant).values(revoked=stage.hub.now()))
            bump(db)
        with pytest.raises(psycopg.Error):
            connection.execute(BY_SEX)
    assert len(stage.charges) == 1


def test_the_policy_decides_here_too(stage: Stage):
    rea = stage.house.person("analyst", email="rea@example.org")
    stage.house.grant(stage.people, rea, by=stage.owner, columns=["age"], purposes=["care"])
    with connect(stage, user="rea@example.org", password=rea.token) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        with pytest.raises(psycopg.Error, match="denied"):
            connection.execute("SELECT AVG(pay) AS p FROM people")
        with pytest.raises(psycopg.Error, match="purpose"):
            connection.execute(COUNT)
        connection.execute("SET cloister.purpose = 'care'")
        assert len(connection.execute(COUNT).fetchall()) == 1
        columns = connection.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'people' ORDER BY 1"
        ).fetchall()
    assert columns == [("age",)]
    assert len(stage.charges) == 1


def test_the_front_ends_with_the_hub(stage: Stage):
    connection = connect(stage)
    port = stage.hub.settings.pg_port
    stage.house.close()
    with pytest.raises(psycopg.Error):
        connection.execute("SELECT 1")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_port_that_is_taken_does_not_keep_the_hub_from_opening(stage: Stage, tmp_path: Path, empty_hub: Path, clock: Clock):
    shutil.copytree(empty_hub, tmp_path / "second")
    House(tmp_path / "second", clock, pg_port=stage.hub.settings.pg_port).close()
    with connect(stage) as connection:
        assert connection.execute("SELECT 1").fetchall()


def test_psql(stage: Stage):
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not here")
    environment = {
        "PATH": os.environ["PATH"],
        "PGHOST": "127.0.0.1",
        "PGPORT": str(stage.hub.settings.pg_port),
        "PGUSER": "ana@example.org",
        "PGPASSWORD": stage.ana.token,
        "PGDATABASE": "hub",
        "LC_ALL": "C.UTF-8",
    }
    script = f"\\d people\nSET cloister.spend = '0.5';\nSET cloister.margins = on;\n{BY_SEX};\n"
    done = subprocess.run(
        [program, "-X", "-v", "ON_ERROR_STOP=1"], input=script, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for text in ("age", "sex", "n_margin", "(2 rows)"):
        assert text in done.stdout
    assert stage.spent == "ε = 0.5"
