"""PostgreSQL clients before a real hub: psycopg and psql, with an API token as the password."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import select, update

from cloister.hub.generation import bump
from cloister.hub.platform.access import grant as granted
from cloister.hub.records.access import Algorithm, Grant, Project, ProjectMember
from cloister.hub.records.accounts import ApiToken
from cloister.hub.records.releases import StoredRelease
from cloister.hub.records.trail import AuditLine
from cloister.hub.work.concurrency import ConcurrencyLimit
from tests.hub.asking.conftest import BY_SEX, COUNT, MAY, Stage
from tests.hub.house import Clock, House, Visitor


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
        line = db.scalars(select(AuditLine).where(AuditLine.action == "question.ask")).one()
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
    with pytest.raises(psycopg.OperationalError, match="You could not be signed in"):
        connect(stage, **how)


def test_a_token_that_is_revoked_answers_nothing_more(stage: Stage):
    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        with stage.hub.database.begin() as db:
            db.execute(update(ApiToken).where(ApiToken.person == stage.ana.id).values(revoked=stage.hub.now()))
        with pytest.raises(psycopg.Error, match="the name or the token is wrong"):
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


def held_project(stage: Stage) -> None:
    """A project of Ana's, to which the people are open too, with an allotment of its own."""
    with stage.hub.database.begin() as db:
        db.add(Project(id="p-1", name="flu-study", title="The study", lead=stage.ana.id, created=stage.hub.now()))
        db.flush()
        db.add(ProjectMember(project="p-1", person=stage.ana.id, joined=stage.hub.now()))
        db.add(
            Grant(
                id="to-study",
                kind="data-set",
                object=stage.people.id,
                role="member",
                attributes={"projects": ["p-1"]},
                rules={"actions": ["question.ask", "question.explain"]},
                granted_by=stage.owner.id,
                created=stage.hub.now(),
            )
        )
        bump(db)


def test_a_project_is_named_or_its_id_given(stage: Stage):
    held_project(stage)
    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        for named in ("flu-study", "p-1"):
            connection.execute("SELECT set_config('cloister.project', %s, false)", (named,))
            assert connection.execute("SHOW cloister.project").fetchone() == (named,)
            assert len(connection.execute(BY_SEX).fetchall()) == 2
        with stage.hub.database.reading() as db:
            assert set(db.scalars(select(StoredRelease.project))) == {"p-1"}
        [charge] = stage.charges
        assert charge.who == "project flu-study"
        connection.execute("SET cloister.project = 'of-others'")
        with pytest.raises(psycopg.Error, match=r"denied|project"):
            connection.execute(COUNT)
    assert len(stage.charges) == 1


@pytest.fixture
def u3(stage: Stage) -> Visitor:
    """Who may ask under the algorithms a1, which is a question, and a3, which leaves it open; and nothing else."""
    found, provider = stage.house.person("analyst", email="u3@example.org"), stage.house.person("algorithm-provider")
    stage.house.grant(stage.people, provider, by=stage.owner, actions=("dataset.see",))
    for name, settings in (("a1", {"sql": BY_SEX}), ("a3", {})):
        body = {"name": name, "title": name.upper(), "service": "asking", "settings": settings}
        assert stage.post("/algorithms", body, provider).status_code == 201
        for who, may in (
            (stage.owner, {"actions": ["algorithm.see"]}),
            (found, {"actions": ["algorithm.run"], "only_with": ["people"]}),
        ):
            grant = {"role": "runner", "members": {"people": [who.id]}, "rules": may}
            assert stage.post(f"/algorithms/{name}/grants", grant, provider).status_code == 201
    rules = {"actions": ["algorithm.run"], "algorithms": ["a1", "a3"]}
    granted(stage.hub, stage.owner.caller, data_set="people", role="runner", members={"people": [found.id]}, rules=rules)
    return found


def test_a_question_is_asked_under_an_algorithm(stage: Stage, u3: Visitor):
    with connect(stage, user="u3@example.org", password=u3.token) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        assert ("people",) in connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
        with pytest.raises(psycopg.Error, match="denied"):
            connection.execute(BY_SEX)
        connection.execute("SET cloister.algorithm = 'a1'")
        assert connection.execute("SHOW cloister.algorithm").fetchone() == ("a1",)
        assert connection.execute("EXPLAIN " + BY_SEX).fetchall()
        assert stage.charges == []
        with connection.transaction():
            connection.execute(f"DECLARE c CURSOR FOR {BY_SEX}")
            rows = connection.execute("FETCH ALL FROM c").fetchall()
        connection.execute("RESET cloister.spend")
        assert connection.execute(BY_SEX).fetchall() == rows
        with pytest.raises(psycopg.Error, match="says otherwise"):
            connection.execute(COUNT)
        connection.execute("SET cloister.algorithm = 'a3'")
        connection.execute("SET cloister.spend = '0.1'")
        assert len(connection.execute("SELECT COUNT(*) AS n FROM people WHERE age = ANY(%s)", ([30, 40],)).fetchall()) == 1
        connection.execute("SET cloister.algorithm = 'never-was'")
        with pytest.raises(psycopg.errors.UndefinedObject, match="There is no such algorithm"):
            connection.execute(BY_SEX)
    with stage.hub.database.reading() as db:
        ids = {row.name: row.id for row in db.scalars(select(Algorithm))}
        assert set(db.scalars(select(StoredRelease.algorithm))) == {ids["a1"], ids["a3"]}
    assert len(stage.charges) == 2


@pytest.mark.parametrize("record", [ApiToken, Grant])
def test_a_cursor_gives_no_more_rows_to_whoever_lost_the_right(stage: Stage, record: Any):
    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        connection.execute(f"DECLARE c SCROLL CURSOR WITH HOLD FOR {BY_SEX}")
        assert stage.charges == []
        assert len(connection.execute("FETCH 1 FROM c").fetchall()) == 1
        with stage.hub.database.begin() as db:
            db.execute(update(record).values(revoked=stage.hub.now()))
            bump(db)
        for step in ("FETCH NEXT FROM c", "FETCH FIRST FROM c", "MOVE LAST IN c"):
            with pytest.raises(psycopg.Error, match=r"refused|denied|not|unknown"):
                connection.execute(step)
    assert len(stage.charges) == 1


def test_a_repeat_is_for_the_purpose_that_is_set(stage: Stage):
    rea = stage.house.person("analyst", email="rea@example.org")
    stage.house.grant(stage.people, rea, by=stage.owner, actions=MAY, purposes=["care"])
    with connect(stage, user="rea@example.org", password=rea.token) as connection:
        connection.execute("SET cloister.purpose = 'care'")
        connection.execute("SET cloister.spend = '0.1'")
        first = connection.execute(COUNT).fetchall()
        connection.execute("RESET cloister.spend")
        assert connection.execute(COUNT).fetchall() == first
        connection.execute("RESET cloister.purpose")
        with pytest.raises(psycopg.Error, match="purpose"):
            connection.execute(COUNT)
    assert len(stage.charges) == 1


def test_a_question_that_was_canceled_while_it_waited_for_a_seat_is_not_charged(stage: Stage):
    seats = stage.hub.parts["asking seats"] = ConcurrencyLimit(1)
    told: list[BaseException] = []

    def ask(connection: psycopg.Connection[Any]) -> None:
        try:
            connection.execute(COUNT)
        except psycopg.Error as error:
            told.append(error)

    with connect(stage) as connection:
        connection.execute("SET cloister.spend = '0.1'")
        with seats.taken("another"):
            asking = threading.Thread(target=ask, args=(connection,))
            asking.start()
            while stage.ana.id not in seats._own and asking.is_alive():
                asking.join(0.01)
            connection.cancel_safe()
            asking.join()
        assert isinstance(told[0], psycopg.errors.QueryCanceled)
        assert connection.execute("SHOW cloister.spend").fetchone() == ("0.1",), "after what went on for it"
        assert stage.charges == []
        connection.execute(COUNT)
    assert len(stage.charges) == 1
