"""psycopg by both protocols, and pandas through SQLAlchemy."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any, LiteralString

import pandas as pd
import psycopg
import pytest
import sqlalchemy

from tests.hub.postgres.conftest import Running

EVERYTHING = "SELECT smoker, COUNT(*) AS n, AVG(pay) AS pay, MEDIAN(born) AS born, MODE(sex) AS sex FROM people GROUP BY smoker"


@pytest.mark.parametrize("cursor", [psycopg.ClientCursor, psycopg.Cursor, psycopg.RawCursor])
def test_values_have_their_types_in_both_protocols(running: Running, cursor: type[psycopg.Cursor]) -> None:
    with running.connect(cursor_factory=cursor) as connection:
        connection.execute("SET cloister.spend = 9")
        found = connection.execute(EVERYTHING)
        assert [(column.name, column.type_code) for column in found.description or []] == [
            ("smoker", 16),
            ("n", 20),
            ("pay", 701),
            ("born", 1082),
            ("sex", 25),
        ]
        rows = found.fetchall()
        assert [tuple(map(type, row)) for row in rows] == [(bool, int, float, datetime.date, str)] * 2
        assert [row[0] for row in rows] == [False, True]


def test_binary_and_text_results_are_equal(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 9")
        connection.execute("SET cloister.margins = on")
        assert connection.execute(EVERYTHING, binary=True).fetchall() == connection.execute(EVERYTHING).fetchall()
        catalogue = "SELECT 12345.678::numeric(12, 3) AS d, ARRAY['a b', NULL] AS a, 7::oid AS o, -1::int2 AS i, NULL AS x"
        once = connection.execute(catalogue, binary=True).fetchone()
        assert once == connection.execute(catalogue).fetchone()
        assert once[:2] == (Decimal("12345.678"), ["a b", None])


def test_prepared_statements_with_parameters_of_every_type(running: Running) -> None:
    asked = "SELECT COUNT(*) AS n FROM people WHERE age > %s AND sex = %s AND born >= %s AND pay < %s AND smoker = %s"
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 9")
        values = (35, "F", datetime.date(1995, 1, 1), 2.5, True)
        for _ in range(3):
            found = connection.execute(asked, values, prepare=True).fetchone()
        assert running.charges == 1
        written = "SELECT COUNT(*) AS n FROM people WHERE age > 35 AND sex = 'F' AND born >= DATE '1995-01-01' AND pay < 2.5"
        assert connection.execute(written + " AND smoker = TRUE").fetchone() == found
        assert running.charges == 1
        binary = asked.replace("%s", "%b")
        assert connection.execute(binary, values).fetchone() == found
        assert running.charges == 1


def test_a_value_cannot_end_its_literal(running: Running) -> None:
    with running.connect() as connection:
        rude = "x' OR '1'='1"
        assert connection.execute("SELECT %s::text AS t, %s AS u", (rude, "\\'; DROP TABLE people --")).fetchone() == (
            rude,
            "\\'; DROP TABLE people --",
        )


def test_a_parameter_of_another_type_is_refused_by_its_place(running: Running) -> None:
    with running.connect() as connection, pytest.raises(psycopg.errors.InvalidTextRepresentation, match=r"\$2 was refused"):
        connection.execute("SELECT COUNT(*) FROM people WHERE age > %s AND sex = %s", (3, datetime.timedelta(days=1)))


def failing(connection: psycopg.Connection[Any], first: LiteralString) -> None:
    """A transaction, or one within another, that fails after its first statement."""
    with connection.transaction():
        connection.execute(first)
        connection.execute("SELECT nosuch FROM people")


def piped(connection: psycopg.Connection[Any]) -> None:
    """A pipeline whose first statement fails."""
    with connection.pipeline():
        connection.execute("SELECT nosuch FROM people")
        connection.execute("SET cloister.purpose = 'never'")


def test_transactions_and_savepoints_nest(running: Running) -> None:
    with running.connect() as connection:
        with connection.transaction():
            connection.execute("SET cloister.purpose = 'outer'")
            with pytest.raises(psycopg.errors.UndefinedColumn):
                failing(connection, "SET cloister.purpose = 'inner'")
            assert connection.execute("SHOW cloister.purpose").fetchone() == ("outer",)
        assert connection.execute("SHOW cloister.purpose").fetchone() == ("outer",)
        with pytest.raises(psycopg.errors.UndefinedColumn):
            failing(connection, "SET LOCAL cloister.purpose = 'local'")
        assert connection.execute("SHOW cloister.purpose").fetchone() == ("outer",)


def test_a_pipeline_skips_to_the_next_sync_after_an_error(running: Running) -> None:
    with running.connect() as connection:
        with pytest.raises(psycopg.errors.UndefinedColumn):
            piped(connection)
        assert connection.execute("SHOW cloister.purpose").fetchone() == ("",)


def test_pandas_reads_a_question_through_sqlalchemy(running: Running) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{running.url}")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SET cloister.spend = '9'"))
        asked = sqlalchemy.text("SELECT sex, COUNT(*) AS n, AVG(age) AS age FROM people WHERE age > :age GROUP BY sex")
        frame = pd.read_sql(asked, connection, params={"age": 20})
        again = pd.read_sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", connection)
    engine.dispose()
    assert list(frame.columns) == ["sex", "n", "age"]
    assert list(frame["sex"]) == ["F", "M"]
    assert frame["n"].dtype == "int64"
    assert frame["age"].dtype == "float64"
    assert len(again) == 2


def test_sqlalchemy_builds_questions_from_reflected_tables(running: Running) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{running.url}")
    inspector = sqlalchemy.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["people", "towns"]
    assert inspector.has_table("people")
    assert not inspector.has_table("nosuch")
    kinds = {column["name"]: str(column["type"]) for column in inspector.get_columns("people")}
    assert kinds["age"] == "BIGINT"
    assert kinds["born"] == "DATE"
    assert {column["name"]: column["comment"] for column in inspector.get_columns("people")}["age"] == "17 to 90"
    table = sqlalchemy.Table("people", sqlalchemy.MetaData(), autoload_with=engine)
    asked = sqlalchemy.select(table.c.sex, sqlalchemy.func.count().label("n")).where(table.c.age > 20).group_by(table.c.sex)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SET cloister.spend = '9'"))
        assert len(connection.execute(asked).all()) == 2
    engine.dispose()
    assert running.charges == 1


def test_a_cursor_on_the_server_is_refused_with_the_question_to_ask_instead(running: Running) -> None:
    count = "SELECT COUNT(*) AS n FROM people"
    with running.connect(autocommit=False) as connection:
        connection.execute("SET cloister.spend = 9")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="no cursors here") as refused:
            connection.cursor("named").execute(count)
        assert refused.value.diag.message_hint == count
        connection.rollback()
        connection.execute("SET cloister.spend = 9")
        assert len(connection.execute(refused.value.diag.message_hint).fetchall()) == 1
    assert running.charges == 1


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM towns", "EXPLAIN SELECT town FROM towns LIMIT 1", "SELECT COUNT(*) FROM public.Towns"]
)
def test_rows_of_a_public_table_are_refused_with_a_join_instead(running: Running, sql: LiteralString) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 9")
        for cursor in (psycopg.ClientCursor(connection), psycopg.Cursor(connection)):
            with pytest.raises(
                psycopg.errors.FeatureNotSupported, match="The rows of the public table 'towns' were not given"
            ) as refused:
                cursor.execute(sql)
            join = refused.value.diag.message_hint
            assert (
                join == "SELECT towns.size, COUNT(*) AS n FROM people JOIN towns ON people.town = towns.town GROUP BY towns.size"
            )
        assert connection.execute(join).fetchall(), "what is said instead is answered"
