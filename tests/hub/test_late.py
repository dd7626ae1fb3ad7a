"""Transactions for statements alone, which open a session where one is needed after all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, func, insert, select, update

from cloister.hub.database import Database, DatabaseUnavailable, LazySession, WroteWhileReading, sqlite_address
from cloister.hub.generation import Generation, bump, claim_generation, generation
from cloister.hub.migrations import bring_up_to_date
from cloister.hub.records.accounts import Person
from cloister.hub.statements import Statement

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
_MAKE = Statement(insert(Generation.metadata.tables[Generation.__tablename__]))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Database]:
    opened = Database(sqlite_address(tmp_path / "hub.db"))
    bring_up_to_date(opened)
    yield opened
    opened.close()


def numbers(database: Database) -> list[int]:
    with database.reading() as db:
        return list(db.scalars(select(Generation.number)))


def heard(database: Database) -> list[Any]:
    """Whom the ends of transactions were told of."""
    found: list[Any] = []
    event.listen(database.sessions, "after_commit", found.append)
    return found


def _fail(database: Database, session: bool) -> None:
    with database.writing() as db:
        _MAKE.run(db.connection(), {"id": 1, "number": 7})
        if session:
            bump(db)
        raise ValueError("no")


def test_statements_are_committed_without_a_session(made: Database) -> None:
    told = heard(made)
    with made.writing() as db:
        assert isinstance(db, LazySession)
        _MAKE.run(db.connection(), {"id": 1, "number": 7})
        db.flush()
        assert db.opened is None
    assert numbers(made) == [7]
    assert told == [db]


def test_a_session_that_is_needed_after_all_is_of_the_same_transaction(made: Database) -> None:
    told = heard(made)
    with made.writing() as db:
        _MAKE.run(db.connection(), {"id": 1, "number": 7})
        db.info["kept"] = 1
        assert generation(db) == 7
        bump(db)
        db.add(Person(id="ada", email="ada@example.org", name="Ada", created=NOON))
        assert isinstance(db, LazySession)
        assert db.info["kept"] == 1
        assert db.opened is not None
        assert db.info is db.opened.info
    assert numbers(made) == [8]
    with made.reading() as db:
        assert db.scalar(select(func.count()).select_from(Person)) == 1
    assert len(told) == 1


@pytest.mark.parametrize("session", [False, True])
def test_an_error_undoes_all_of_it_and_the_next_one_writes(made: Database, session: bool) -> None:
    told = heard(made)
    for _ in range(3):
        with pytest.raises(ValueError, match="no"):
            _fail(made, session)
    assert told == []
    assert numbers(made) == []
    with made.writing() as db:
        _MAKE.run(db.connection(), {"id": 1, "number": 9})
    assert numbers(made) == [9]


def test_what_was_not_committed_is_seen_by_nobody(made: Database) -> None:
    with made.writing() as db:
        _MAKE.run(db.connection(), {"id": 1, "number": 7})
        assert numbers(made) == []
    assert numbers(made) == [7]


def test_many_threads_write_one_after_the_other(made: Database) -> None:
    with made.begin() as db:
        db.add(Generation(id=1, number=0))

    def count(how: Any) -> None:
        for _ in range(10):
            with how() as db:
                db.execute(update(Generation).values(number=Generation.number + 1))

    threads = [threading.Thread(target=count, args=(how,)) for how in (made.writing, made.begin) * 3]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert numbers(made) == [60]


def test_a_full_disk_is_told_without_a_word_of_the_driver(made: Database) -> None:
    with made.writing() as db:
        _MAKE.run(db.connection(), {"id": 1, "number": 7})
        driver: Any = db.connection().connection.driver_connection
    driver.execute("PRAGMA query_only = ON")
    with pytest.raises(DatabaseUnavailable), made.writing() as db:
        _MAKE.run(db.connection(), {"id": 2, "number": 7})
    driver.execute("PRAGMA query_only = OFF")
    with made.writing() as db:
        _MAKE.run(db.connection(), {"id": 3, "number": 8})
    assert numbers(made) == [7, 8]


def test_a_reader_that_asks_nothing_opens_nothing(made: Database) -> None:
    with made.reading(late=True) as db:
        claim_generation(db, 5)
        assert generation(db) == 5
        assert isinstance(db, LazySession)
        assert db.opened is None


def test_a_reader_that_writes_is_refused_all_the_same(made: Database) -> None:
    with pytest.raises(WroteWhileReading), made.reading(late=True) as db:
        db.add(Generation(id=1, number=7))
    with pytest.raises(WroteWhileReading), made.reading(late=True) as db:
        db.execute(update(Generation).values(number=1))
    assert numbers(made) == []
