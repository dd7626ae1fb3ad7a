"""Three engines, one way to put rows into each."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import pytest

from cloister.tables.engines import guard

KINDS = {  # source kind -> (PostgreSQL, Spark)
    "text": ("text", "string"),
    "integer": ("bigint", "bigint"),
    "float": ("double precision", "double"),
    "boolean": ("boolean", "boolean"),
    "date": ("date", "date"),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "timestamptz": ("timestamptz", "timestamp"),
    "decimal": ("numeric(38, 10)", "decimal(38, 10)"),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A question takes Spark a second and the other engines a hundredth. Of what all three are asked, Spark gets by day a fixed
    third, chosen by the tests' names, and the rest at night.
    """
    for item in items:
        spoken = getattr(item, "callspec", None)
        if spoken is not None and spoken.params.get("loader") == "spark" and crc32(item.name.encode()) % 3:
            item.add_marker(pytest.mark.slow)


class Loader:
    """Puts columns of Python values, each of one source kind, where an engine can see them."""

    name: str
    holds_nul = True

    def load(self, data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> Any:
        """Something that PrivateTable takes."""
        raise NotImplementedError


def arrow(data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> Any:
    """The columns as a table of Arrow's."""
    import pyarrow

    types = {
        "text": pyarrow.string(),
        "integer": pyarrow.int64(),
        "float": pyarrow.float64(),
        "boolean": pyarrow.bool_(),
        "date": pyarrow.date32(),
        "timestamp": pyarrow.timestamp("us"),
        "timestamptz": pyarrow.timestamp("us", "UTC"),
        "decimal": pyarrow.decimal128(38, 10),
    }
    return pyarrow.table({name: pyarrow.array(list(values), types[kinds[name]]) for name, values in data.items()})


class DuckDBLoader(Loader):
    name = "duckdb"

    def load(self, data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> Any:
        return arrow(data, kinds)


class PostgresLoader(Loader):
    name = "postgres"
    holds_nul = False
    numbers = itertools.count()
    """Of the tables of every loader: none twice."""

    def __init__(self, url: str) -> None:
        self.url = url

    def load(self, data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> Any:
        import psycopg
        from psycopg import sql

        table = f"source_{next(self.numbers)}"
        columns = sql.SQL(", ").join(sql.Identifier(name) + sql.SQL(f" {KINDS[kinds[name]][0]}") for name in data)
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(table), columns))
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                for row in zip(*data.values(), strict=True):
                    copy.write_row(row)
        return f"{self.url}::public.{table}"


class SparkLoader(Loader):
    """By Arrow: Spark holds such rows itself, and would have tuples from processes of Python, anew for each question."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self.session = session

    def load(self, data: Mapping[str, Sequence[Any]], kinds: Mapping[str, str]) -> Any:
        fields = ", ".join(f"`{name.replace('`', '``')}` {KINDS[kinds[name]][1]}" for name in data)
        return self.session.createDataFrame(arrow(data, kinds), fields)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server of our own for the length of the tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from scripts import postgres

    try:
        server = postgres.start()
    except postgres.CannotStart as error:
        pytest.skip(f"!!! PostgreSQL could not be started: {error}")
    try:
        yield server.url
    finally:
        postgres.stop(server.folder, server.pid)


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """A local Spark of two cores."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from pyspark.sql import SparkSession

    from scripts.engines import java_home
    from scripts.spark import JAVA

    if java_home() is None:
        pytest.skip("!!! Spark could not be started: there is no Java 17 to 21")
    at_once = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"  # would answer while it plans, in a way of its own
    session = (
        SparkSession.builder.master("local[2]")
        .appName("cloister tests")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.sql.session.timeZone", "Europe/Amsterdam")
        .config("spark.sql.optimizer.excludedRules", at_once)
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(
    params=["duckdb", pytest.param("postgres", marks=pytest.mark.postgres), pytest.param("spark", marks=pytest.mark.spark)],
    scope="session",
)
def loader(request: pytest.FixtureRequest) -> Loader:
    """Each engine in turn."""
    if request.param == "postgres":
        return PostgresLoader(request.getfixturevalue("postgres_server"))
    if request.param == "spark":
        return SparkLoader(request.getfixturevalue("spark_session"))
    return DuckDBLoader()


@pytest.fixture
def ibis_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backends of Ibis 12 import a patch for old releases of pyarrow; whoever installs a backend has it, we need not."""
    monkeypatch.setitem(sys.modules, "pyarrow_hotfix", types.ModuleType("pyarrow_hotfix"))


@pytest.fixture(autouse=True)
def _show_engine_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the engine said, on the terminal of the developer: nowhere else."""
    monkeypatch.setattr(guard, "owner_debug", lambda error: print("the engine said:", repr(error)[:2000]))
