"""Statements that the driver runs: the same values in and out as by SQLAlchemy, on both databases, and its classes of errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError, ProgrammingError

from cloister.hub.database import Database, DatabaseUnavailable
from cloister.hub.generation import bump, claim_generation, generation, read_generation
from cloister.hub.records.accounts import Person
from cloister.hub.statements import Statement
from tests.hub.test_database import database, made, postgres_server

__all__ = ["database", "made", "postgres_server"]

PEOPLE = Person.__table__
ADD = Statement(insert(Person.metadata.tables["person"]))
ALL = Statement(select(*PEOPLE.c).order_by(PEOPLE.c.id))
COUNT = Statement(select(func.count().label("n")).select_from(PEOPLE))
MOVE = Statement(update(Person.metadata.tables["person"]).where(PEOPLE.c.id == bindparam("who")).values(name=bindparam("new")))
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def row(name: str) -> dict[str, object]:
    """A person with something in every kind of column."""
    given = {"id": name, "email": f"{name}@example.org", "name": f"Ána {name}", "institution": "Ward 7", "locale": "en"}
    kinds = {"training": {"ethics": "2027-01-31"}, "attributes": {"team": "é\"'%s ?"}, "blocked": False, "totp_step": 0}
    empty = dict.fromkeys(each.key for each in PEOPLE.c)
    return {**empty, **given, **kinds, "created": NOON.astimezone(timezone(timedelta(hours=5)))}


def test_what_goes_in_comes_out_as_by_sqlalchemy(made: Database) -> None:
    with made.begin() as db:
        ADD.run(db.connection(), row("b"))
        ADD.run(db.connection(), row("a"), row("c"))
        MOVE.run(db.connection(), {"who": "c", "new": "Carla"})
        ADD.run(db.connection())
    with made.looking() as connection:
        ours = ALL.rows(connection)
        theirs = connection.execute(select(*PEOPLE.c).order_by(PEOPLE.c.id)).all()
    assert [each._asdict() for each in ours] == [each._asdict() for each in theirs]
    assert [each.name for each in ours] == ["Ána a", "Ána b", "Carla"]
    assert {each.created for each in ours} == {NOON}
    assert ours[0].blocked is False


def test_a_failure_is_of_sqlalchemys_class_and_leaves_no_connection_behind(made: Database) -> None:
    with made.begin() as db:
        ADD.run(db.connection(), row("a"))
    with pytest.raises(IntegrityError) as caught, made.begin() as db:
        ADD.run(db.connection(), row("b"), row("a"))
    assert "Ward 7" not in str(caught.value)
    missing = Statement(select(func.count().label("n")).select_from(PEOPLE.alias("elsewhere")))
    missing._wanted = select(bindparam("x", 1).label("x")).select_from(func.nowhere())
    with pytest.raises((DatabaseUnavailable, ProgrammingError)), made.looking() as connection:
        missing.rows(connection)
    for _ in range(3):
        with made.looking() as connection:
            assert COUNT.rows(connection)[0].n == 1


def test_a_look_sees_what_was_committed_before_it(made: Database) -> None:
    for number, who in enumerate("abc"):
        with made.looking() as connection:
            assert COUNT.rows(connection)[0].n == number
        with made.begin() as db:
            ADD.run(db.connection(), row(who))


def test_a_late_session_takes_the_number_that_was_glanced_at_and_reads_one_moment_from_its_first_question(made: Database) -> None:
    with made.looking() as connection:
        before = read_generation(connection)
    with made.reading(late=True) as db:
        claim_generation(db, before)
        with made.begin() as other:
            bump(other)
        assert generation(db) == before
        assert db.scalar(select(func.count()).select_from(PEOPLE)) == 0
        if not made.is_postgres:
            with made.begin() as other:
                ADD.run(other.connection(), row("a"))
            assert db.scalar(select(func.count()).select_from(PEOPLE)) == 0
    with made.reading() as db:
        assert generation(db) == before + 1


def test_a_statement_that_is_written_anew_for_its_values_is_refused(made: Database) -> None:
    several = Statement(select(PEOPLE.c.id).where(PEOPLE.c.id.in_(bindparam("ids", expanding=True))))
    with pytest.raises(TypeError, match="written anew"), made.looking() as connection:
        several.rows(connection, {"ids": ["a"]})
