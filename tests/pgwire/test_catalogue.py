"""The catalogue as tools ask it, and the sandbox as an enemy would."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cloister as cl
from cloister.pgwire.catalogue.declared import Facts
from cloister.pgwire.catalogue.sandbox import Catalogue
from cloister.pgwire.failures import Refused
from tests.pgwire.conftest import Running, people
from tests.tiers import some_by_day

LINES = (Path(__file__).parent / "tools.sql").read_text().split("\n", 1)[1]
TOOLS = [each.strip() for each in LINES.split(";\n") if each.strip()]


def catalogue(*names: str) -> Catalogue:
    """Of the people, and of nothing else."""
    tables = {"people": people(), **{name: people() for name in names}}
    facts = Facts(
        tables=tables, user="ada", database="hub", settings=(("search_path", "public"), ("server_version_num", "150000"))
    )
    return Catalogue(facts, version="PostgreSQL 15.0")


@pytest.mark.parametrize("place", range(len(TOOLS)))
def test_what_tools_ask_is_answered_in_both_protocols(running: Running, place: int) -> None:
    with running.connect() as connection:
        extended = connection.execute(TOOLS[place].replace("%", "%%"), ())  # type: ignore[arg-type]
        names, rows = [column.name for column in extended.description or []], extended.fetchall()
        simple = connection.execute(TOOLS[place])  # type: ignore[arg-type]
        assert [column.name for column in simple.description or []] == names
        assert len(simple.fetchall()) == len(rows)
    assert running.charges == 0


@some_by_day("loaded", ["", "import ibis.backends.sql.dialects"], bool)
def test_the_catalogue_does_not_ask_who_else_uses_the_parser(loaded: str) -> None:
    """Ibis changes what sqlglot writes for some functions of PostgreSQL, from the moment that it is loaded."""
    asked = "SELECT array_length(ARRAY[1, 2], 1), power(2, 3)"
    told = f"import sys; print('ibis' in sys.modules, rewritten({asked!r}, {{}}).sql)"
    script = f"{loaded}\nfrom cloister.pgwire.catalogue.rewriting import rewritten\n{told}"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{bool(loaded)} SELECT pg__array_length([1, 2], 1), POWER(2, 3)\n"


def test_what_is_declared_is_what_is_told() -> None:
    found = catalogue()
    asked = "SELECT column_name, data_type, is_nullable FROM information_schema.columns ORDER BY ordinal_position"
    columns = found.run(asked).rows
    assert columns[:3] == [("age", "bigint", "NO"), ("sex", "text", "NO"), ("pay", "double precision", "YES")]
    about = "SELECT col_description(c.oid, 1), obj_description(c.oid, 'pg_class') FROM pg_class c"
    assert found.run(about).rows == [("17 to 90", "private: each row is one person")]
    assert found.run("SELECT 'public.people'::regclass::oid, 16384::regclass").rows == [(16384, "people")]
    assert found.run("SELECT 'people'::regclass::text, 'people'::regclass").rows == [("people", "people")]


def test_names_of_columns_are_those_of_postgresql() -> None:
    asked = "SELECT relname, oid::regclass, current_user, 1 + 1, format_type(25, NULL), count(*) OVER (), 'x'::text FROM pg_class"
    names = [column.name for column in catalogue().columns(asked)]
    assert names == ["relname", "oid", "current_user", "?column?", "format_type", "count", "text"]


def test_what_drivers_ask_besides_is_answered_as_postgresql_does() -> None:
    found = catalogue()
    pairs = "SELECT (k).x, (k).n FROM (SELECT information_schema._pg_expandarray(ARRAY[7, 8]) AS k) AS of_keys"
    assert found.run(pairs).rows == [(7, 1), (8, 2)]
    own = "SELECT c.relname, c.tableoid FROM pg_class c JOIN pg_description d ON d.classoid = c.tableoid AND d.objoid = c.oid"
    assert found.run(own + " WHERE d.objsubid = 0").rows == [("people", 1259)]
    written = "SELECT format('%I.%s', 'a', 5), array_remove(ARRAY['a', 'b'], 'a')"
    assert found.run(written).rows == [("a.5", ["b"])]
    arrays = "SELECT typname FROM pg_type WHERE typinput = 'pg_catalog.array_in'::regproc AND typname = '_int4'"
    assert found.run(arrays).rows == [("_int4",)]
    words = found.run("SELECT string_agg(word, ',') FROM pg_get_keywords() WHERE word <> ALL ('{window}'::text[])").rows
    assert "returning" in words[0][0]
    assert "window" not in words[0][0]
    assert found.run("SELECT setting FROM pg_settings WHERE name = 'search_path'").rows == [("public",)]
    with pytest.raises(Refused, match="'now' is not supported"):
        found.run("SELECT 'now'::regproc")


def test_moments_and_empty_lists_of_columns_are_answered() -> None:
    """Tools ask `SELECT now()` to see whether a connection lives, and EXISTS (SELECT FROM …) whether a table is there."""
    found = Catalogue(Facts(tables={}, user="ada", database="hub"), version="")
    [[first, second]] = found.run("SELECT now(), CURRENT_TIMESTAMP AS at").rows
    assert first == second
    assert found.run("SELECT '2020-01-01 10:00+08'::timestamptz AS at").rows == [(datetime.datetime(2020, 1, 1, 2),)]
    assert found.run("SELECT EXISTS (SELECT FROM pg_tables WHERE tablename = 'people')").rows == [(False,)]


def test_a_table_that_comes_later_is_seen() -> None:
    found = catalogue()
    assert found.run("SELECT count(*) FROM pg_class").rows == [(1,)]
    later = Facts(tables={"people": people(), "more": people()}, user="ada", database="hub")
    assert found.run("SELECT count(*) FROM pg_class", later).rows == [(2,)]


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT getenv('HOME')",
        "SELECT current_setting('memory_limit') FROM duckdb_functions()",
        "SELECT * FROM secret",
        "SELECT * FROM pg.pg_class",
        "SELECT * FROM info.tables",
        "SELECT * FROM main.x",
        "SELECT * FROM system.information_schema.nosuch",
        "SELECT repeat('x', 1000000000)",
        "SELECT pg__to_regclass('people')",
        "SELECT query('SELECT 1')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT * INTO x FROM pg_class",
        "SELECT * FROM pg_class FOR UPDATE",
        "SELECT pg_sleep(100)",
        "WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 1 FROM r) SELECT * FROM r",
        "ATTACH '/tmp/x'",
        "COPY (SELECT 1) TO '/tmp/x'",
        "SELECT 1; SELECT 2",
        "SELECT",
        "SELECT (((((",
        "",
    ],
)
def test_what_reaches_beyond_the_catalogue_is_refused(asked: str) -> None:
    secret = people()
    assert secret.columns
    found = catalogue()
    with pytest.raises((Refused, cl.CloisterError)):
        found.run(asked)
    assert found.run("SELECT 1").rows == [(1,)]


def test_the_engine_itself_is_shut_off_and_locked() -> None:
    connection = catalogue()._connection
    for line in (
        "SELECT * FROM read_text('/etc/hostname')",
        "SET enable_external_access = true",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "COPY (SELECT 1) TO '/tmp/cloister-test-copy'",
    ):
        with pytest.raises(Exception, match=r"disabled|locked|Permission|Cannot|not"):
            connection.execute(line)
    assert not os.path.exists("/tmp/cloister-test-copy")


def test_many_rows_are_refused() -> None:
    with pytest.raises(Refused, match="more than 100,000 rows"):
        catalogue().run("SELECT * FROM generate_series(1, 200000) AS i")


def doubling(times: int, shown: str) -> str:
    first = "c0 AS (SELECT * FROM (SELECT 1 x) a, (SELECT 1 x) b)"
    rest = ", ".join(f"c{each} AS (SELECT {shown} FROM c{each - 1} a, c{each - 1} b)" for each in range(1, times))
    return f"WITH {first}, {rest} SELECT count(*) FROM c{times - 1}"


@pytest.mark.parametrize(
    "asked",
    [
        doubling(18, "*"),
        doubling(18, "a.*, b.*"),
        f"SELECT count(*) FROM ({doubling(18, '*')}) x",
        f"SELECT 1 WHERE EXISTS ({doubling(18, '*')})",
        f"SELECT 1 UNION ALL ({doubling(18, '*')})",
        "WITH c0 AS (" + doubling(11, "*").replace("count(*)", "*") + ") SELECT a.* FROM c0 a, c0 b",
        "SELECT * FROM " + ", ".join(f"pg_class c{each}" for each in range(50)),
    ],
)
def test_stars_over_stars_never_reach_the_engine(asked: str) -> None:
    """Its binder takes memory beyond its limit for them, and hears no interrupt."""
    catalogue = Catalogue(Facts(tables={}, user="ada", database="hub"), version="PostgreSQL 15.0")
    with pytest.raises(Refused, match="more than 2000 columns"):
        catalogue.columns(asked)


def test_what_is_narrow_may_be_read_twice_as_often_as_one_likes() -> None:
    catalogue = Catalogue(Facts(tables={}, user="ada", database="hub"), version="PostgreSQL 15.0")
    assert catalogue.run(doubling(9, "a.x").replace("SELECT * FROM (SELECT 1 x) a", "SELECT a.x FROM (SELECT 1 x) a")).rows == [
        (1,)
    ]
