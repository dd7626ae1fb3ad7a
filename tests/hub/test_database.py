"""The hub's database: transactions, what is read, the steps that make it, and the one number that changes with every decision."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, select, text

from cloister.errors import InvalidParameter
from cloister.hub.database import Base, Database, DatabaseUnavailable, sqlite_address
from cloister.hub.generation import bump, generation
from cloister.hub.kept import KeptSecret
from cloister.hub.migrations import bring_up_to_date
from cloister.hub.models import every_model
from cloister.hub.records.accounts import Person
from scripts import postgres
from tests.hub.trail.conftest import new_schema, postgres_server

__all__ = ["postgres_server"]

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    server: postgres.Server | None = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    opened = Database(sqlite_address(tmp_path / "hub.db") if server is None else new_schema(server))
    yield opened
    opened.close()


@pytest.fixture
def made(database: Database) -> Database:
    bring_up_to_date(database)
    return database


def person(name: str) -> Person:
    return Person(id=name, email=f"{name}@example.org", name=name, created=NOON)


def test_the_steps_make_what_the_models_declare(database: Database) -> None:
    every_model()
    bring_up_to_date(database)
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
        there = set(inspect(connection).get_table_names())
    assert there == {*Base.metadata.tables, "alembic_version"}


def test_doing_it_again_changes_nothing_and_several_at_once_do_it_once(database: Database) -> None:
    failed: list[BaseException] = []

    def bring() -> None:
        try:
            bring_up_to_date(database)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=bring) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with database.reading() as db:
        assert db.execute(text("SELECT COUNT(*) FROM alembic_version")).scalar() == 1


def test_a_transaction_is_all_or_nothing(made: Database) -> None:
    with contextlib.suppress(RuntimeError), made.begin() as db:
        db.add(person("ada"))
        db.flush()
        raise RuntimeError
    with made.reading() as db:
        assert db.scalars(select(Person)).all() == []
    with made.begin() as db:
        db.add(person("ada"))
    with made.reading() as db:
        assert [each.name for each in db.scalars(select(Person))] == ["ada"]


def test_reading_writes_nothing_and_what_was_read_may_be_looked_at_afterwards(made: Database) -> None:
    with made.begin() as db:
        db.add(person("ada"))
    with made.reading() as db:
        ada = db.get_one(Person, "ada")
        ada.name = "changed"
        db.add(person("bob"))
        db.flush()
    with made.reading() as db:
        assert [each.name for each in db.scalars(select(Person))] == ["ada"]
    with made.reading() as db:
        ada = db.get_one(Person, "ada")
    assert (ada.name, ada.email, ada.created) == ("ada", "ada@example.org", NOON)


def test_reading_sees_one_moment(made: Database) -> None:
    with made.reading() as db:
        before = len(db.scalars(select(Person)).all())
        with made.begin() as other:
            other.add(person("ada"))
        after = len(db.scalars(select(Person)).all())
    assert made.grown_up or (before, after) == (0, 0)
    with made.reading() as db:
        assert len(db.scalars(select(Person)).all()) == 1


def test_times_are_kept_in_utc_and_one_without_a_zone_is_refused(made: Database) -> None:
    with made.begin() as db:
        ada = person("ada")
        ada.created = NOON.astimezone(timezone(timedelta(hours=9)))
        db.add(ada)
    with made.reading() as db:
        kept = db.get_one(Person, "ada").created
    assert kept == NOON
    assert kept.utcoffset() == timedelta(0)
    bob = person("bob")
    bob.created = datetime(2026, 3, 2)
    with pytest.raises(Exception, match="no zone"), made.begin() as db:
        db.add(bob)


def test_every_change_makes_another_generation_and_an_undone_one_does_not(made: Database) -> None:
    def now() -> int:
        with made.reading() as db:
            return generation(db)

    assert now() == 0
    for expected in (1, 2, 3):
        with made.begin() as db:
            bump(db)
        assert now() == expected
    with contextlib.suppress(RuntimeError), made.begin() as db:
        bump(db)
        raise RuntimeError
    assert now() == 3


def test_many_bumps_at_once_are_all_counted(made: Database) -> None:
    with made.begin() as db:
        bump(db)

    def work() -> None:
        for _ in range(5):
            with made.begin() as db:
                bump(db)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with made.reading() as db:
        assert generation(db) == 21


def test_a_database_that_is_away_is_said_in_words_without_its_address(tmp_path: Path) -> None:
    away = Database("postgresql://hub:canary-password@127.0.0.1:1/hub")
    with pytest.raises(DatabaseUnavailable) as refused, away.reading() as db:
        db.execute(select(1))
    assert "canary" not in str(refused.value)
    assert "canary" not in repr(away)
    with pytest.raises(InvalidParameter) as unknown:
        Database("mysql://hub:canary-password@db/hub")
    assert "canary" not in str(unknown.value)
    broken = Database(sqlite_address(tmp_path / "no-such-folder" / "hub.db"))
    with pytest.raises(DatabaseUnavailable), broken.begin() as db:
        db.add(KeptSecret(name="x", wrapped=b"x"))
