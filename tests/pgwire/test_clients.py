"""The clients that people really use, each by its own protocol habits: questions, parameters, catalogue calls, refusals.

psql, psycopg 3, SQLAlchemy and pandas have files of their own. A client that is not installed is skipped on a person's
machine and missed in CI (`CLOISTER_REQUIRE_ENGINES`).
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from cloister.pgwire.types import TYPES
from scripts import engines
from tests.pgwire.conftest import TOKEN, Running

CLIENTS = Path(__file__).parent / "clients"
EVERY_TYPE = "SELECT smoker, COUNT(*) AS n, AVG(pay) AS pay, MEDIAN(born) AS born, MODE(sex) AS sex FROM people GROUP BY smoker"
BY_SEX = "SELECT sex, COUNT(*) AS n FROM people WHERE age > {} GROUP BY sex"


def needs(found: object, what: str) -> None:
    """Skip without a client; in CI its absence is a failure."""
    if not found:
        if os.environ.get("CLOISTER_REQUIRE_ENGINES"):
            pytest.fail(f"{what} is missing")
        pytest.skip(f"{what} is not installed")


def module(name: str) -> Any:
    """A driver's module."""
    needs(util.find_spec(name), name)
    return __import__(name)


def test_psycopg2(running: Running) -> None:
    psycopg2 = module("psycopg2")
    connection = psycopg2.connect(f"postgresql://{running.url}")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SET cloister.spend = 9")
        cursor.execute(BY_SEX.format("%s"), (20,))
        assert [column.type_code for column in cursor.description] == [25, 20]
        assert [row[0] for row in cursor.fetchall()] == ["F", "M"]
        with pytest.raises(psycopg2.errors.UndefinedColumn):
            cursor.execute("SELECT nosuch FROM people")
    connection.autocommit = False
    with connection.cursor("named") as cursor:  # a cursor on the server
        cursor.execute(BY_SEX.format(20))
        assert [cursor.fetchone()[0], cursor.fetchone()[0], cursor.fetchone()] == ["F", "M", None]
    connection.close()
    assert running.charges == 1


def test_asyncpg(running: Running) -> None:
    asyncpg = module("asyncpg")

    async def asked() -> None:
        connection = await asyncpg.connect(f"postgresql://{running.url}")
        try:
            await connection.execute("SET cloister.spend = 9")
            rows = await connection.fetch(BY_SEX.format("$1"), 20)
            assert [tuple(map(type, row)) for row in rows] == [(str, int)] * 2
            statement = await connection.prepare(BY_SEX.format("$1"))
            assert [dict(row) for row in await statement.fetch(20)] == [dict(row) for row in rows]
            assert [each.name for each in statement.get_attributes()] == ["sex", "n"]
            async with connection.transaction():
                assert [row["sex"] async for row in connection.cursor(BY_SEX.format("$1"), 20)] == ["F", "M"]
            with pytest.raises(asyncpg.UndefinedColumnError):
                await connection.fetch("SELECT nosuch FROM people")
        finally:
            await connection.close()

    asyncio.run(asyncio.wait_for(asked(), 60))
    assert running.charges == 1


def test_pg8000(running: Running) -> None:
    module("pg8000")
    import pg8000.exceptions
    import pg8000.native

    connection = pg8000.native.Connection("ada", host="127.0.0.1", port=running.port, database="hub", password=TOKEN)
    connection.run("SET cloister.spend = 9")
    rows = connection.run(BY_SEX.format("CAST(:least AS int)"), least=20)
    assert [row[0] for row in rows] == ["F", "M"]
    assert [column["name"] for column in connection.columns or []] == ["sex", "n"]
    with pytest.raises(pg8000.exceptions.DatabaseError, match="42703"):
        connection.run("SELECT nosuch FROM people")
    connection.close()
    assert running.charges == 1


def test_adbc(running: Running) -> None:
    """It learns the types from pg_type's `typreceive`, and copies in binary: what it does not know, it gives as bytes."""
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(f"postgresql://{running.url}", autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET cloister.spend = '9'")
        cursor.execute("SET cloister.margins = on")
        cursor.execute(EVERY_TYPE)
        told = cursor.fetch_arrow_table()
        numbers = ["int64", "double", "double", "double", "date32[day]", "double", "string", "double"]
        assert [str(field.type) for field in told.schema] == ["bool", *numbers]
        assert told["smoker"].to_pylist() == [False, True]
        cursor.execute(BY_SEX.format("$1"), (20,))
        assert [row[0] for row in cursor.fetchall()] == ["F", "M"]
        objects = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        tables = [table["table_name"] for each in objects[0]["catalog_db_schemas"] for table in each["db_schema_tables"]]
        assert sorted(tables) == ["people", "towns"]
        assert str(connection.adbc_get_table_schema("people").field("born").type) == "date32[day]"
    assert running.charges == 2


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor", "simple"])
def test_connectorx(running: Running, protocol: str) -> None:
    connectorx = pytest.importorskip("connectorx")
    address = f"postgresql://{running.url}?options=-c%20cloister.spend%3D9"
    told = connectorx.read_sql(address, EVERY_TYPE, return_type="arrow", protocol=protocol)
    assert [str(field.type) for field in told.schema] == ["bool", "int64", "double", "date32[day]", "string"]
    assert told["sex"].to_pylist() == ["M", "F"]
    assert running.charges == 1


def test_types_go_by_the_functions_that_read_them(running: Running) -> None:
    """What ADBC asks before anything else, and what it needs to hear."""
    with running.connect() as connection:
        asked = (
            "SELECT typname, typreceive, typsend::text FROM pg_type WHERE typreceive <> 0 AND typreceive::TEXT <> 'array_recv'"
        )
        told = {name: (receives, sends) for name, receives, sends in connection.execute(asked)}
        assert told["int8"] == ("int8recv", "int8send")
        assert told["date"] == ("date_recv", "date_send")
        assert len(told) == len([each for each in TYPES.values() if not each.element])
        arrays = "SELECT count(*) FROM pg_type t JOIN pg_proc p ON p.oid = t.typreceive WHERE p.proname = 'array_recv'"
        assert connection.execute(arrays).fetchone() == (len(TYPES) - len(told),)


def test_odbc(running: Running) -> None:
    driver = engines.odbc_driver()
    needs(driver, "psqlODBC")
    pyodbc = module("pyodbc")
    words = {"Driver": driver, "Server": "127.0.0.1", "Port": running.port, "Database": "hub", "Uid": "ada", "Pwd": TOKEN}
    connection = pyodbc.connect(";".join(f"{name}={value}" for name, value in words.items()), autocommit=True)
    cursor = connection.cursor()
    assert sorted(row.table_name for row in cursor.tables(tableType="TABLE")) == ["people", "towns"]
    kinds = {row.column_name: row.type_name for row in cursor.columns(table="people")}
    assert kinds["age"] == "int8"
    assert kinds["born"] == "date"
    assert list(cursor.primaryKeys(table="people")) == []
    cursor.execute("SET cloister.spend = 9")
    cursor.execute(BY_SEX.format("?"), 20)
    assert [column[0] for column in cursor.description] == ["sex", "n"]
    assert [row.sex for row in cursor.fetchall()] == ["F", "M"]
    with pytest.raises(pyodbc.Error, match="42703"):
        cursor.execute("SELECT nosuch FROM people")
    connection.close()
    assert running.charges == 1


def test_pgjdbc(running: Running) -> None:
    driver, java = engines.jdbc_driver(), engines.java_compiler()
    needs(driver and java, "pgjdbc with a Java that compiles")
    address = f"jdbc:postgresql://127.0.0.1:{running.port}/hub?preferQueryMode="
    said = subprocess.run(
        [str(java), "-cp", str(driver), str(CLIENTS / "Ask.java"), TOKEN, f"{address}extended", f"{address}simple"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    for mode in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
        assert mode.count("answer sex:text n:int8 pay:float8 2") == 7
        assert [line for line in mode if line.startswith("table ")] == ["table people", "table towns"]
        assert "column born date" in mode
        assert mode[-1] == "refused 42703"
    assert running.charges == 1


def test_node_pg(running: Running) -> None:
    node, modules = shutil.which("node"), engines.node_modules()
    needs(node and modules, "node-pg")
    said = subprocess.run(
        [str(node), str(CLIENTS / "ask.mjs"), str(modules), f"postgresql://{running.url}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert found["fields"] == [["sex", 25], ["n", 20]]
    assert [row["sex"] for row in found["rows"]] == ["F", "M"]
    assert found["same"]
    assert found["refused"] == "42703"
    assert running.charges == 1


def test_r_as_the_page_writes_it(running: Running) -> None:
    program = engines.r_program()
    needs(program, "R with RPostgreSQL")
    page = (CLIENTS.parents[2] / "docs" / "how-to" / "ask-a-hub.md").read_text(encoding="utf-8")
    blocks = [each.split("```")[0] for each in page.split("```r\n")[1:]]
    script = "pdf(NULL)\n" + "\n".join(blocks) + "\ncat(names(by_sex), class(by_sex$n), by_sex$sex)"
    said = subprocess.run(
        [str(program), "-e", script],
        env={**os.environ, **running.environment()},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines()[-1] == "sex n n_margin numeric F M"
    assert running.charges == 1
