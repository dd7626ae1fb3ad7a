"""psycopg by both protocols, and pandas through SQLAlchemy."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any, LiteralString

import pandas as pd
import psycopg
import pytest
import sqlalchemy

from tests.pgwire.conftest import Running

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
    with running.connect() as connection, pytest.raises(psycopg.errors.InvalidTextRepresentation, match=r"\$2 is invalid"):
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


def test_pandas_reads_in_chunks_and_sqlalchemy_streams(running: Running) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{running.url}")
    asked = "SELECT smoker, sex, COUNT(*) AS n FROM people GROUP BY smoker, sex"
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SET cloister.spend = '9'"))
        whole = pd.read_sql(asked, connection)
        streamed = connection.execution_options(stream_results=True, max_row_buffer=2)
        chunks = list(pd.read_sql(sqlalchemy.text(asked), streamed, chunksize=3))
        assert [len(each) for each in chunks] == [3, 1]
        assert pd.concat(chunks, ignore_index=True).equals(whole)
        assert [len(each) for each in streamed.execute(sqlalchemy.text(asked)).partitions(2)] == [2, 2]
    engine.dispose()
    assert running.charges == 1


def test_sqlalchemy_builds_lists_ranges_and_casts(running: Running) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{running.url}")
    table = sqlalchemy.Table("people", sqlalchemy.MetaData(), autoload_with=engine)
    count = sqlalchemy.select(sqlalchemy.func.count().label("n")).select_from(table)
    ages = sqlalchemy.literal([30, 40], sqlalchemy.ARRAY(sqlalchemy.BigInteger))
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SET cloister.spend = '9'"))
        listed = connection.execute(count.where(table.c.age.in_([30, 40]))).all()
        assert connection.execute(count.where(table.c.age == sqlalchemy.any_(ages))).all() == listed
        assert connection.execute(sqlalchemy.text("SELECT COUNT(*) AS n FROM people WHERE age IN (30, 40)")).all() == listed
        assert running.charges == 1
        days = (datetime.date(1970, 1, 1), datetime.date(1985, 1, 1))
        ranged = connection.execute(count.where(table.c.born.between(*days))).all()
        written = "SELECT COUNT(*) AS n FROM people WHERE born BETWEEN DATE '1970-01-01' AND DATE '1985-01-01'"
        assert connection.execute(sqlalchemy.text(written)).all() == ranged
        assert running.charges == 2
    engine.dispose()


def test_reflection_finds_tables_without_keys_and_indexes(running: Running) -> None:
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{running.url}")
    found = sqlalchemy.inspect(engine)
    assert found.get_pk_constraint("people")["constrained_columns"] == []
    for each in (found.get_indexes, found.get_foreign_keys, found.get_unique_constraints, found.get_check_constraints):
        assert each("people") == []
    assert found.get_table_comment("people") == {"text": "private: each row is one person"}
    assert found.get_view_names() == found.get_sequence_names() == []
    assert found.get_schema_names() == ["information_schema", "public"]
    assert len(found.get_multi_columns()) == len(found.get_multi_indexes()) == 2
    engine.dispose()
    assert running.charges == 0


def test_psycopg_executes_many_prepares_and_pipes(running: Running) -> None:
    asked: LiteralString = "SELECT COUNT(*) AS n FROM people WHERE age > %s"
    with running.connect(prepare_threshold=1) as connection, connection.cursor() as cursor:
        connection.execute("SET cloister.spend = 9")
        cursor.executemany(asked, [(20,), (35,), (20,)], returning=True)
        many = [cursor.fetchall()]
        while cursor.nextset():
            many.append(cursor.fetchall())
        assert many[0] == many[2]
        assert [connection.execute(asked, (20,)).fetchall() for _ in range(3)] == [many[0]] * 3
        with connection.pipeline():
            piped = [connection.execute(asked, (age,)) for age in (20, 35)]
        assert [each.fetchall() for each in piped] == many[:2]
        assert running.charges == 2
        for copy in ("COPY people TO STDOUT", "COPY people FROM STDIN"):
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), cursor.copy(copy):
                pass
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert running.charges == 2


def test_moments_are_days_where_they_are_midnight(running: Running) -> None:
    with running.connect() as connection:
        connection.execute("SET cloister.spend = 9")
        asked: LiteralString = "SELECT COUNT(*) AS n FROM people WHERE born > %s"
        day = connection.execute(asked, (datetime.date(1980, 1, 1),)).fetchone()
        for mark in ("%s", "%b"):
            found = connection.execute(asked.replace("%s", mark), (datetime.datetime(1980, 1, 1),)).fetchone()
            assert found == day
            found = connection.execute(
                asked.replace("%s", mark), (datetime.datetime(1980, 1, 1, tzinfo=datetime.UTC),)
            ).fetchone()
            assert found == day, "in UTC, as where it is written into the text"
        with pytest.raises(psycopg.Error):
            connection.execute(asked, (datetime.datetime(1980, 1, 1, 12),))
    assert running.charges == 1


@pytest.mark.parametrize(
    "sql",
    [
        'SELECT * FROM "people" AS "q01" WHERE (0 = 1)',  # dbplyr
        "SELECT * FROM people WHERE 1=0",  # Spark
        'SELECT "p".* FROM hub."public"."people" "p" LIMIT 0;',
        "select * from PEOPLE where false -- columns",
    ],
)
def test_who_asks_for_no_row_is_told_the_declared_columns_at_no_cost(running: Running, sql: LiteralString) -> None:
    with running.connect() as connection:
        for cursor in (psycopg.ClientCursor(connection), psycopg.Cursor(connection)):
            found = cursor.execute(sql)
            told = [(each.name, each.type_code) for each in found.description or ()]
            assert told == [("age", 20), ("sex", 25), ("pay", 701), ("born", 1082), ("town", 25), ("smoker", 16)]
            assert found.fetchall() == []
        for other in (
            "SELECT * FROM people LIMIT 1",
            "SELECT * FROM people WHERE 0 = 1 OR age > 3",
            "SELECT * FROM towns LIMIT 1",
        ):
            with pytest.raises(psycopg.errors.FeatureNotSupported):
                connection.execute(other)
    assert running.charges == 0


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ('SELECT * FROM (SELECT age, town AS "T" FROM people LIMIT 0) "T" LIMIT 1', [("age", 20), ("T", 25)]),  # Tableau
        ('SELECT TRUE AS "_" FROM "public"."people" WHERE 1 <> 1 LIMIT 0', [("_", 16)]),  # Metabase
        ("SELECT town FROM towns LIMIT 0", [("town", 25)]),
    ],
)
def test_some_columns_are_told_alone(running: Running, sql: LiteralString, told: list[tuple[str, int]]) -> None:
    with running.connect() as connection:
        found = connection.execute(sql)
        assert [(each.name, each.type_code) for each in found.description or ()] == told
        assert found.fetchall() == []
        for other in ("SELECT nobody FROM people LIMIT 0", "SELECT age FROM people WHERE age > 3 LIMIT 0"):
            with pytest.raises(psycopg.Error):
                connection.execute(other)
        assert connection.execute("SELECT relname FROM pg_class LIMIT 0").fetchall() == []
    assert running.charges == 0


def test_the_columns_of_a_public_table_are_told_too(running: Running) -> None:
    with running.connect() as connection:
        found = connection.execute("SELECT * FROM public.towns LIMIT 0")
        assert [(each.name, each.type_code) for each in found.description or ()] == [("town", 25), ("size", 20)]
        assert found.fetchall() == []


@pytest.mark.parametrize(
    "sql",
    [
        "select character_set_name from INFORMATION_SCHEMA.character_sets",  # Power BI
        "SELECT pg_is_in_recovery(), pg_export_snapshot(), (select count(*) from pg_stat_wal_receiver)",  # DuckDB
        "SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'",  # pgAdmin
        """with privileges as (select NULL as role, t.schemaname as schema, t.objectname as table,
            pg_catalog.has_any_column_privilege(current_user, t.objectname, 'update') as update, true as select
            from (select schemaname, tablename as objectname from pg_catalog.pg_tables) t)
            select t.* from privileges t where t.select or t.update""",  # Metabase
    ],
)
def test_what_tools_ask_first_is_answered(running: Running, sql: LiteralString) -> None:
    with running.connect() as connection:
        assert connection.execute(sql).fetchall()


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
