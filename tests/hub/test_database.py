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
from sqlalchemy import delete, insert, inspect, select, text, update

from cloister.errors import InvalidParameter
from cloister.hub.database import Base, Database, DatabaseUnavailable, WroteWhileReading, every_model, sqlite_address
from cloister.hub.generation import bump, generation
from cloister.hub.hub import Hub
from cloister.hub.keys import StoredSecret
from cloister.hub.migrations import OtherVersion, bring_up_to_date
from cloister.hub.records.accounts import Person
from cloister.hub.settings import Settings
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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE alembic_version SET version_num = '9999'", "a newer version of cloister brought its database to step 9999"),
        ("ALTER TABLE release_share DROP COLUMN shared", "made by an early version .* release_share.shared is not there"),
        ("DELETE FROM alembic_version", "by another program: it has a table .*, and has seen no step"),
    ],
    ids=["newer", "early", "not ours"],
)
def test_a_database_of_another_version_is_refused_and_stays_as_it_is(made: Database, change: str, told: str) -> None:
    def state() -> list[object]:
        with made.engine.connect() as connection:
            seen = connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
            return [seen, {name: len(columns) for (_, name), columns in inspect(connection).get_multi_columns().items()}]

    with made.begin() as db:
        db.execute(text(change))
    before = state()
    with pytest.raises(OtherVersion, match=told) as refused:
        bring_up_to_date(made)
    assert refused.value.what == "The hub was not opened"
    assert state() == before


def test_a_folder_with_another_file_in_the_place_of_the_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hub.db").write_bytes(b"not a database " * 400)
    with pytest.raises(OtherVersion, match="damaged, or no database of SQLite"):
        Hub(Settings(data=tmp_path), [])


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
    with pytest.raises(WroteWhileReading, match="a Person was to be written"), made.reading() as db:
        db.get_one(Person, "ada").name = "changed"

    def add_and_look() -> None:
        with made.reading() as db:
            db.add(person("bob"))
            db.scalars(select(Person)).all()

    with pytest.raises(WroteWhileReading, match="a Person was to be written"):
        add_and_look()
    with pytest.raises(WroteWhileReading), made.reading() as db:
        db.delete(db.get_one(Person, "ada"))
    for statement in (insert(Person).values(id="bob"), update(Person).values(name="changed"), delete(Person)):
        with pytest.raises(WroteWhileReading, match="INSERT"), made.reading() as db:
            db.execute(statement)
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
    assert made.is_postgres or (before, after) == (0, 0)
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
        db.add(StoredSecret(name="x", wrapped=b"x"))
