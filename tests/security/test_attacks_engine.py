"""The engine's own doors: files, network, settings and catalogues. The parser refuses them; the connection cannot open them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import cloister as cl
from cloister.tables import Base, Related, relate
from cloister.tables.engines.duckdb import DuckDBPrepared
from tests.security.naive import Naive

PEOPLE: dict[str, list[Any]] = {"age": [30, 40, 50], "town": ["Delft", "Gouda", "Leiden"]}
COLUMNS = {"age": cl.Integer(17, 90), "town": cl.Text()}
SOURCES = [
    "read_csv('{file}')",
    "read_csv_auto('{file}')",
    "read_parquet('{file}')",
    "read_json('{file}')",
    "read_text('{file}')",
    "read_blob('{file}')",
    "'{file}'",
    '"{file}"',
    "glob('{folder}/*')",
    "parquet_metadata('{file}')",
    "sniff_csv('{file}')",
    "read_csv('https://127.0.0.1:9/x.csv')",
    "read_csv('s3://bucket/x.csv')",
    "postgres_scan('host=127.0.0.1', 'public', 't')",
    "sqlite_scan('{file}', 't')",
    "query('SELECT 1')",
    "query_table('people')",
    "dblink('host=127.0.0.1', 'SELECT 1')",
    "pg_ls_dir('/')",
    "pg_read_file('/etc/hostname')",
    "information_schema.tables",
    "information_schema.columns",
    "pg_catalog.pg_tables",
    "pg_class",
    "duckdb_tables()",
    "duckdb_settings()",
    "duckdb_secrets()",
    "duckdb_columns",
    "sqlite_master",
    "pragma_table_info('people')",
    "cloister_prepared_rows",
    "main.cloister_prepared_rows",
    "range(10)",
    "generate_series(1, 10)",
    "unnest([1, 2])",
    "people AS p, LATERAL (SELECT 1)",
    "(VALUES (1), (2)) AS v",
]
EXPRESSIONS = [
    "getenv('HOME')",
    "current_setting('temp_directory')",
    "pg_read_file('/etc/hostname')",
    "pg_sleep(10)",
    "lo_import('/etc/hostname')",
    "reflect('java.lang.System', 'exit', 1)",
    "java_method('java.lang.Runtime', 'getRuntime')",
    "input_file_name()",
    "hash(town)",
    "error(town)",
    "random()",
    "nextval('s')",
    "txid_current()",
    "version()",
    "current_user",
    "list_aggregate([1], 'sum')",
    "(SELECT age FROM people)",
    "(SELECT content FROM read_text('{file}'))",
    "COLUMNS('.*')",
    "age -> 'x'",
    "@@version",
    "$1",
    "?",
    ":name",
]
STATEMENTS = [
    "COPY people TO '{folder}/out.csv'",
    "COPY (SELECT * FROM people) TO '{folder}/out.csv'",
    "ATTACH '{folder}/x.db' AS x",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "PRAGMA database_list",
    "CREATE TABLE x AS SELECT * FROM people",
    "CREATE MACRO f(x) AS x",
    "EXPORT DATABASE '{folder}'",
    "DELETE FROM people",
    "UPDATE people SET age = 1",
    "INSERT INTO people VALUES (1)",
    "DROP TABLE people",
    "CALL pragma_version()",
    "EXECUTE x",
    "EXPLAIN ANALYZE SELECT COUNT(*) FROM people",
    "DESCRIBE people",
    "SHOW TABLES",
    "SUMMARIZE people",
    "FROM people",
    "TABLE people",
    "VALUES (1)",
    "DO $$ BEGIN PERFORM 1; END $$",
    "WITH x AS (DELETE FROM people RETURNING *) SELECT COUNT(*) FROM x",
    "SELECT COUNT(*) INTO OUTFILE '{folder}/out' FROM people",
    "SELECT COUNT(*) FROM people; COPY people TO '{folder}/out.csv'",
]


@pytest.fixture(scope="module")
def session() -> Iterator[cl.Session]:
    """A table with a budget that lets everything through that the parser lets through."""
    people = cl.PrivateTable(PEOPLE, columns=COLUMNS, version="1")
    with cl.Session({"people": people}, budget=cl.ApproxDP(10**6, "1e-3")) as opened:
        yield opened


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """A file that must not be read, and a folder that must stay as it is."""
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    return {"file": str(tmp_path / "secret.csv"), "folder": str(tmp_path)}


def refused(session: cl.Session, sql: str) -> str:
    """The refusal's text; nothing may be spent."""
    before = session.spent
    with pytest.raises(cl.CloisterError) as found:
        session.sql(sql, spend=1)
    assert session.spent == before
    assert found.value.__cause__ is None
    assert found.value.__context__ is None
    return str(found.value)


@pytest.mark.parametrize("source", SOURCES)
def test_no_source_but_the_sessions_tables(session: cl.Session, source: str, places: dict[str, str]) -> None:
    for text in ("SELECT COUNT(*) AS n FROM {0}", "SELECT COUNT(*) AS n FROM people WHERE age IN (SELECT 1 FROM {0})"):
        refused(session, text.format(source.format(**places)))
    refused(session, f"WITH x AS (SELECT * FROM {source.format(**places)}) SELECT COUNT(*) AS n FROM people JOIN x ON TRUE")
    assert sorted(each.name for each in Path(places["folder"]).iterdir()) == ["secret.csv"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_no_function_but_those_of_the_list(session: cl.Session, expression: str, places: dict[str, str]) -> None:
    written = expression.format(**places)
    for sql in (
        f"SELECT SUM({written}) AS a FROM people",
        f"SELECT COUNT(*) AS a FROM people WHERE {written} IS NOT NULL",
        f"SELECT {written} AS k, COUNT(*) AS a FROM people GROUP BY {written}",
        f"SELECT COUNT(*) AS a FROM people HAVING COUNT(*) > {written}",
        f"SELECT COUNT(*) AS a FROM people ORDER BY {written}",
        f"SELECT COUNT(*) AS a FROM people LIMIT {written}",
    ):
        refused(session, sql)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_statement_but_select(session: cl.Session, statement: str, places: dict[str, str]) -> None:
    refused(session, statement.format(**places))
    assert sorted(each.name for each in Path(places["folder"]).iterdir()) == ["secret.csv"]


def test_the_naive_twin_reads_the_file(places: dict[str, str]) -> None:
    """What the same questions do on a plain connection: the tests above are about something."""
    with Naive({"people": PEOPLE}, scale=None) as naive:
        assert naive.rows(f"SELECT COUNT(*) FROM read_text('{places['file']}')") == [(1,)]
        assert naive.rows("SELECT COUNT(*) FROM duckdb_tables()") == [(1,)]
        naive.rows(f"COPY people TO '{places['folder']}/out.csv'")
    assert (Path(places["folder"]) / "out.csv").exists()


LOCKED = [
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM '{file}'",
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_csv('https://127.0.0.1:9/x.csv')",
    "COPY cloister_prepared_rows TO '{folder}/out.csv'",
    "EXPORT DATABASE '{folder}/all'",
    "ATTACH '{folder}/x.db' AS x",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SET memory_limit = '100GB'",
    "SET temp_directory = '{folder}'",
    "SET allowed_directories = ['{folder}']",
    "SET autoinstall_known_extensions = true",
    "SET allow_community_extensions = true",
    "PRAGMA enable_profiling",
    "SET profiling_output = '{folder}/profile.json'",
    "SET log_query_path = '{folder}/log'",
    "CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET 'y')",
    "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'x', SECRET 'y')",
]


@pytest.fixture(scope="module")
def connections() -> Iterator[list[duckdb.DuckDBPyConnection]]:
    """The very connections that hold prepared rows: a table's, and that of a relation over two tables."""
    visits = cl.PrivateTable(
        {"who": ["a"], "cost": [1]}, columns={"cost": cl.Integer(0, 9)}, unit="who", max_rows=2, population="all"
    )
    people = cl.PrivateTable(
        {"who": ["a"], **{k: v[:1] for k, v in PEOPLE.items()}}, columns=COLUMNS, unit="who", max_rows=1, population="all"
    )
    from cloister.tables import UnitJoined, prepare

    prepared = {"visits": prepare(visits), "people": prepare(people)}
    joined = UnitJoined(left=Base(name="visits", table=visits), right=Base(name="people", table=people))
    related = relate(joined, prepared)
    assert isinstance(related, Related)
    held = [*prepared.values(), related.home]
    assert all(isinstance(each, DuckDBPrepared) for each in held)
    yield [each._connection for each in held if isinstance(each, DuckDBPrepared)]
    for each in prepared.values():
        each.close()


@pytest.mark.parametrize("statement", LOCKED)
def test_the_connection_itself_is_locked_down(
    connections: list[duckdb.DuckDBPyConnection], statement: str, places: dict[str, str]
) -> None:
    for connection in connections:
        for held in (connection, connection.cursor()):
            with pytest.raises(duckdb.Error):
                held.execute(statement.format(**places)).fetchall()
    assert sorted(each.name for each in Path(places["folder"]).iterdir()) == ["secret.csv"]


def test_the_settings_of_the_connection(connections: list[duckdb.DuckDBPyConnection]) -> None:
    for connection in connections:
        settings = dict(connection.execute("SELECT name, value FROM duckdb_settings()").fetchall())
        assert settings["enable_external_access"] == "false"
        assert settings["lock_configuration"] == "true"
        assert settings["autoinstall_known_extensions"] == settings["autoload_known_extensions"] == "false"
        assert settings["allow_community_extensions"] == "false"
