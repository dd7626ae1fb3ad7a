"""What only PostgreSQL can show: tables that are gone at close, databases where nothing may be written, names in an address."""

from __future__ import annotations

from typing import Any

import pytest

import cloister as cl
from cloister.errors import EngineError, InvalidDeclaration, UnsupportedQuery
from cloister.tables import (
    Aggregate,
    Aggregation,
    Base,
    Column,
    Compare,
    Integer,
    Literal,
    PrivateTable,
    PublicJoined,
    PublicTable,
    Text,
    UnitJoined,
    prepare,
    relate,
)
from cloister.tables.sourcing.source_factory import recognise

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.postgres

COLUMNS = {"x": Integer(0, 99), "t": Text()}


@pytest.fixture
def database(postgres_server: str) -> Any:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute('DROP SCHEMA IF EXISTS "odd.schema" CASCADE')
        connection.execute('CREATE SCHEMA "odd.schema"')
        connection.execute('CREATE TABLE "odd.schema"."a ""b"" c" (x integer, t varchar(9), p uuid, kind text)')
        connection.execute(
            """INSERT INTO "odd.schema"."a ""b"" c"
            SELECT i, 'v' || i % 3, md5((i / 4)::text)::uuid, 'k' FROM generate_series(0, 99) AS i"""
        )
        yield connection


def table(url: str, **options: Any) -> PrivateTable:
    return PrivateTable(f'{url}::"odd.schema"."a ""b"" c"', columns=COLUMNS, unit="p", max_rows=3, **options)


def ours(connection: Any) -> list[Any]:
    return list(connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'cloister_prepared'").fetchall())


def test_the_prepared_table_is_dropped_at_close(postgres_server: str, database: Any) -> None:
    prepared = prepare(table(postgres_server))
    assert prepared.materialised
    assert len(ours(database)) == 1
    prepared.close()
    assert ours(database) == []
    assert database.execute("SELECT COUNT(*) FROM pg_namespace WHERE nspname = 'cloister_prepared'").fetchone() == (0,)


def test_what_a_dead_process_left_is_swept_and_the_living_are_not(postgres_server: str, database: Any) -> None:
    with prepare(table(postgres_server)) as living:
        database.execute(f"CREATE TABLE cloister_prepared.p{'0' * 24} (x integer)")
        database.execute("CREATE TABLE cloister_prepared.mine (x integer)")
        with prepare(table(postgres_server)):
            names = {name for (name,) in ours(database)}
        assert f"p{'0' * 24}" not in names
        assert "mine" in names
        assert int(living.aggregate(Aggregation(living)).values["rows"][0]) == 75
        database.execute("DROP TABLE cloister_prepared.mine")


def end_keeper(connection: Any) -> None:
    """What a crash of the server does: the connection that made the table ends, and the table, which is not logged, is empty."""
    [(name,)] = ours(connection)
    connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'")
    connection.execute(f"TRUNCATE cloister_prepared.{name}")


def test_rows_that_a_crash_emptied_are_no_answer(postgres_server: str, database: Any) -> None:
    with prepare(table(postgres_server)) as prepared:
        assert prepared.stands()
        end_keeper(database)
        assert not prepared.stands()
        with pytest.raises(EngineError):
            prepared.aggregate(Aggregation(prepared))
        with pytest.raises(EngineError):
            prepared.rows(["x"])
        prepared.materialised = False  # nothing to drop by a connection that has ended
    database.execute("DROP SCHEMA cloister_prepared CASCADE")


@pytest.mark.parametrize("swept", [False, True])
def test_a_session_prepares_again_what_the_server_lost(postgres_server: str, database: Any, swept: bool) -> None:
    tables = {"t": table(postgres_server)}
    with cl.Session(tables, budget=cl.PureDP(10**6)) as session:
        assert abs(session.sql("SELECT COUNT(*) AS n FROM t", spend=cl.PureDP(1000)).to_pydict()["n"][0] - 75) < 2
        end_keeper(database)
        if swept:
            prepare(table(postgres_server)).close()
            assert ours(database) == []
        where = "SELECT COUNT(*) AS n FROM t WHERE x >= 0"
        assert abs(session.sql(where, spend=cl.PureDP(1000)).to_pydict()["n"][0] - 75) < 2
        assert len(ours(database)) == 1
    assert ours(database) == []


def test_a_connection_that_was_stopped_serves_no_other_question(postgres_server: str, database: Any) -> None:
    """The server may hear of it only when the next question has begun on that connection."""
    with prepare(table(postgres_server)) as prepared:
        with prepared._connection() as connection:  # type: ignore[attr-defined]
            prepared.cancel()
        assert connection.closed
        with prepared._connection() as other:  # type: ignore[attr-defined]
            assert other is not connection
        assert not other.closed


def test_a_table_at_rest_holds_no_connection_but_the_one_that_keeps_it(postgres_server: str, database: Any) -> None:
    with prepare(table(postgres_server)) as prepared:
        before = prepared.aggregate(Aggregation(prepared))
        with prepared._connection() as connection:  # type: ignore[attr-defined]
            pass
        prepared.rest()
        assert connection.closed
        assert prepared.stands()
        assert prepared.aggregate(Aggregation(prepared)) == before


def test_a_database_that_we_may_only_read_gives_the_same_answers(postgres_server: str, database: Any) -> None:
    database.execute("DROP ROLE IF EXISTS reader")
    database.execute("CREATE ROLE reader LOGIN PASSWORD 'reader'")
    database.execute('GRANT USAGE ON SCHEMA "odd.schema" TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA "odd.schema" TO reader')
    reader = f"postgresql://reader:reader@{postgres_server.partition('@')[2]}"
    question = (Aggregate("n", "rows"), Aggregate("u", "units"), Aggregate("s", "sum", (("x", 0),)))
    try:
        with prepare(table(postgres_server), secret="aa") as stored, prepare(table(reader), secret="aa") as seen:
            assert stored.materialised
            assert not seen.materialised
            answers = []
            for prepared in (stored, seen):
                groups = prepared.aggregate(Aggregation(prepared, Compare("<", Column("x"), Literal(70)), ("t",), question))
                answers.append(sorted(zip(groups.keys[0], *(values.tolist() for values in groups.values.values()), strict=True)))
            assert answers[0] == answers[1]
            assert stored.owner_report() == seen.owner_report()
    finally:
        database.execute('REVOKE ALL ON ALL TABLES IN SCHEMA "odd.schema" FROM reader')
        database.execute('REVOKE ALL ON SCHEMA "odd.schema" FROM reader; DROP ROLE reader')


def test_addresses(postgres_server: str, database: Any) -> None:
    assert recognise(f'{postgres_server}::"odd.schema"."a ""b"" c"').schema == {
        "x": "integer",
        "t": "text",
        "p": "text",
        "kind": "text",
    }
    for wrong in ("postgresql://u@h/db::", "postgresql://u@h/db::a.b.c", "postgresql://u@h/db"):
        with pytest.raises(InvalidDeclaration, match="names no table"):
            recognise(wrong)
    for wrong in (f"{postgres_server}::nothing", f'{postgres_server}::"x; DROP TABLE y"'):
        with pytest.raises(EngineError) as caught:
            recognise(wrong)
        assert "password" not in str(caught.value)
    with pytest.raises(EngineError, match="could not be reached") as caught:
        recognise("postgresql://someone:hunter2@127.0.0.1:1/db::t")
    assert "hunter2" not in str(caught.value)


def test_enums_domains_and_types_that_fit_nothing(postgres_server: str, database: Any) -> None:
    database.execute(
        "DROP TABLE IF EXISTS kinds; DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('sad', 'glad'); "
        "CREATE TABLE kinds (m mood, c char(5), j jsonb, n numeric)"
    )
    database.execute(
        "INSERT INTO kinds VALUES ('sad', 'ab', '{}', 'NaN'), ('glad', NULL, NULL, 1e300), ('sad', 'x', NULL, 'Infinity')"
    )
    url = f"{postgres_server}::kinds"
    assert recognise(url).schema == {"m": "text", "c": "text", "j": "other", "n": "decimal"}
    with pytest.raises(InvalidDeclaration, match="no declaration fits"):
        PrivateTable(url, columns={"j": Text()})
    with prepare(PrivateTable(url, columns={"m": Text(), "c": Text(nullable=True), "n": Integer(0, 5)})) as prepared:
        rows = prepared.rows(["m", "c", "n"])
    assert sorted(map(repr, zip(*(rows[name].tolist() for name in "mcn"), strict=True))) == [
        "('glad', None, 5)", "('sad', 'ab', 6)", "('sad', 'x', 6)",
    ]  # fmt: skip


@pytest.mark.usefixtures("ibis_backends")
def test_an_ibis_table_of_postgres(postgres_server: str, database: Any) -> None:
    import ibis

    database.execute('DROP TABLE IF EXISTS plain; CREATE TABLE plain AS SELECT * FROM "odd.schema"."a ""b"" c"')
    source = ibis.connect(postgres_server).table("plain")
    with prepare(PrivateTable(source.filter(source.x < 50), columns=COLUMNS)) as prepared:
        assert int(prepared.aggregate(Aggregation(prepared)).values["rows"][0]) == 50


def test_relations_where_nothing_may_be_written(postgres_server: str, database: Any) -> None:
    database.execute("DROP TABLE IF EXISTS scores; CREATE TABLE scores (who uuid, score integer, town text)")
    database.execute("INSERT INTO scores SELECT md5((i % 30)::text)::uuid, i % 7, 't' || i % 4 FROM generate_series(0, 99) AS i")
    database.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN PASSWORD 'reader'")
    database.execute('GRANT USAGE ON SCHEMA "odd.schema" TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA "odd.schema" TO reader')
    database.execute("GRANT SELECT ON scores TO reader")
    reader = f"postgresql://reader:reader@{postgres_server.partition('@')[2]}"
    towns = PublicTable({"town": ["t0", "t1", "t1"], "size": [5, None, 7], "name": ["it's", "\\", None]})
    answers = []
    try:
        for url in (postgres_server, reader):
            columns = {"score": Integer(0, 9), "town": Text()}
            scores = PrivateTable(f"{url}::scores", columns=columns, unit="who", max_rows=3)
            left, right = Base(name="people", table=table(url)), Base(name="scores", table=scores)
            taken = (("size", "size"), ("name", "name"))
            looked = PublicJoined(source=right, name="towns", table=towns, on=(("town", "town"),), columns=taken, outer=True)
            relation = UnitJoined(left=left, right=looked)
            with prepare(left.table, secret="aa") as people, prepare(scores, secret="aa") as other:
                related = relate(relation, {"people": people, "scores": other})
                assert related.materialised == (url == postgres_server)
                sums = (
                    Aggregate("n", "rows"),
                    Aggregate("s", "sum", (("x", 0), ("score", 0))),
                    Aggregate("k", "values", ("name",)),
                )
                groups = related.aggregate(Aggregation(None, Compare("<", Column("x"), Literal(70)), ("size",), sums))
                answers.append(sorted(zip(groups.keys[0].tolist(), *(v.tolist() for v in groups.values.values()), strict=True)))
                with psycopg.connect(postgres_server, autocommit=True) as watching:
                    assert len(ours(watching)) == (3 if url == postgres_server else 0)
        assert ours(database) == []
        assert answers[0] == answers[1]
        assert len(answers[0]) == 3
    finally:
        database.execute('REVOKE ALL ON ALL TABLES IN SCHEMA "odd.schema" FROM reader; REVOKE ALL ON scores FROM reader')
        database.execute('REVOKE ALL ON SCHEMA "odd.schema" FROM reader; DROP ROLE reader')


def test_tables_of_two_databases_are_not_joined(postgres_server: str, database: Any) -> None:
    database.execute("DROP DATABASE IF EXISTS another")
    database.execute("CREATE DATABASE another")
    address = f"{postgres_server.rpartition('/')[0]}/another"
    try:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE scores (who text, score integer)")
        scores = PrivateTable(f"{address}::scores", columns={"score": Integer(0, 9)}, unit="who", max_rows=3)
        left = table(postgres_server)
        relation = UnitJoined(left=Base(name="people", table=left), right=Base(name="scores", table=scores))
        with prepare(left) as people, prepare(scores) as other, pytest.raises(UnsupportedQuery, match="different databases"):
            relate(relation, {"people": people, "scores": other})
    finally:
        database.execute("DROP DATABASE IF EXISTS another WITH (FORCE)")
