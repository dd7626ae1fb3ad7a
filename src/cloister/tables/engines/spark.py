"""Spark: the prepared rows are a persisted data frame of the session that the source belongs to.

The source is a Spark data frame, an Ibis table of a pyspark backend, or a table over Spark Connect (`spark_connect.py`). Spark 4
raises on a cast that fails; every cast of a text is therefore `try_cast` behind a pattern. At close the frame is unpersisted and
its view dropped.
"""

from __future__ import annotations

import platform
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import unquote

from cloister.errors import EngineError
from cloister.tables.declaring.columns import Domain
from cloister.tables.declaring.during import During
from cloister.tables.declaring.places import Place
from cloister.tables.engines.abilities import Abilities
from cloister.tables.engines.compiler import RELATION, CompiledQuery
from cloister.tables.engines.duckdb import named_by, report_of
from cloister.tables.engines.engine import (
    PIECE,
    PreparationReport,
    Prepared,
    Site,
    fresh_secret,
    fresh_token,
    in_columns,
    in_pieces,
)
from cloister.tables.engines.guard import guarded, tried
from cloister.tables.engines.ibis_compilers import sql_of
from cloister.tables.engines.workspace import Workspace
from cloister.tables.sourcing.preparation import (
    Spelling,
    offenders_sql,
    outside_sql,
    over_cap_sql,
    prepared_sql,
    report_sql,
    units_sql,
)
from cloister.tables.sourcing.reading import ISO_DATE, LONGEST_NUMBER, NUMBER, PLAIN_INTEGER, WHOLE
from cloister.tables.sourcing.sources import Kind, Source, check_names

if TYPE_CHECKING:
    from cloister.tables.declaring.table import PrivateTable
    from cloister.tables.engines.spark_connection import Kept
    from cloister.tables.relations.public import PublicCodes

Result = TypeVar("Result")

_MOST_FILES = 64

_TYPES = {"int16": "SMALLINT", "int32": "INT", "int64": "BIGINT"}
_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double"), "float"),
    "string": "text",
    "boolean": "boolean",
    "date": "date",
    "timestamp_ntz": "timestamp",
    "timestamp": "timestamptz",
    "void": "null",
}


class SparkSource(Source):
    """A Spark data frame."""

    engine: ClassVar[str] = "spark"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.schema = guarded("The Spark data frame could not be opened", lambda: schema_of(frame))

    @property
    def frame(self) -> Any:
        """The rows."""
        return self._frame

    @property
    def session(self) -> Any:
        """The session that they belong to."""
        return self.frame.sparkSession

    def asking(self) -> AbstractContextManager[Any]:
        """Within it, another thread can end what this one asks; here nothing but Spark's own interrupts does."""
        return nullcontext()

    def again(self, work: Callable[[], Result]) -> Result:
        """What the work gives. A session that is not ours is not opened again."""
        return work()

    def watch(self, kept: Kept) -> None:
        """What is to stand in each new session: here there is none."""

    @classmethod
    def from_ibis(cls, table: Any, backend: Any) -> SparkSource:
        """From an Ibis table of a pyspark backend."""
        return guarded("The Ibis table could not be opened", lambda: cls(backend._session.sql(sql_of(table, "pyspark"))))

    def describe(self) -> str:
        """`spark`."""
        return "spark"

    def make_engine(self) -> SparkEngine:
        """The one that is in the session."""
        return SparkEngine()

    def lineage(self) -> frozenset[str]:
        """The files that it reads; of one without any, nothing."""
        return files_below(tried(self.frame.inputFiles, Exception) or (), [platform.node()])


def files_below(files: Iterable[str], servers: Iterable[str]) -> frozenset[str]:
    """Names of the files that a frame reads (`inputFiles`), as Spark tells without running anything: of a table, of a view,
    however deep, and of a frame over them they are the same. What Spark wrote (`part-…`) goes by its folder, which stays when it
    is written again.

    >>> files_below(["s3a://clinic/visits/month=1/part-0-5f.parquet", "s3a://clinic/visits/month=2/part-0-77.parquet"], ["node"])
    frozenset({'spark files s3a://clinic/visits'})
    >>> files_below(["file:///data/people.csv"], ["node"])
    frozenset({'spark files node/data/people.csv'})
    """
    found: set[str] = set()
    apart: set[str] = set()
    for each in files:
        folder, _, name = unquote(str(each)).rpartition("/")
        while re.fullmatch(r"[^/=]+=[^/]*", folder.rpartition("/")[2]):  # of a partition
            folder = folder.rpartition("/")[0]
        (found if name.startswith("part-") else apart).add(folder if name.startswith("part-") else f"{folder}/{name}")
    found |= apart if len(apart) <= _MOST_FILES else {each.rpartition("/")[0] for each in apart}
    places = {re.sub(r"^file:/+", "/", each) for each in found}
    return frozenset(
        f"spark files {server}{place}" for place in places for server in (servers if place.startswith("/") else [""])
    )


def schema_of(frame: Any) -> dict[str, Kind]:
    """Names and kinds of the columns."""
    fields = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    check_names([name for name, _ in fields])
    return {name: _kind_of_spark(kind) for name, kind in fields}


class SparkSpelling(Spelling):
    """Spark's way of writing: backslashes doubled in every text."""

    def name(self, identifier: str) -> str:
        """Backticks."""
        return "`" + identifier.replace("`", "``") + "`"

    def literal(self, text: str) -> str:
        """Quotes and backslashes escaped."""
        return _no_variables("'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'")

    def integer(self, x: str, dtype: str) -> str:
        """A cast."""
        return f"CAST({x} AS {_TYPES[dtype]})"

    def text(self, x: str, kind: str) -> str:
        """A cast."""
        return f"CAST({x} AS STRING)"

    def finite(self, x: str) -> str:
        """NaN sorts above infinity here."""
        return f"CASE WHEN NOT isnan({x}) AND abs({x}) < CAST('Infinity' AS DOUBLE) THEN CAST({x} AS DOUBLE) END"

    def number(self, t: str) -> str:
        """Behind the pattern, `try_cast`; Java reads too large a number as infinite."""
        return f"CASE WHEN length({t}) <= {LONGEST_NUMBER} AND {self.matches(t, NUMBER)} THEN try_cast({t} AS DOUBLE) END"

    def whole(self, t: str) -> str:
        """Through a decimal of 38 digits."""
        h = f"try_cast({t} AS DECIMAL(38, 0))"
        limit = 2**62
        return (
            f"CASE WHEN length({t}) <= {LONGEST_NUMBER} AND {self.matches(t, WHOLE)} THEN "
            f"CASE WHEN {h} IS NULL THEN CASE WHEN contains({t}, '-') THEN -{limit} ELSE {limit} END "
            f"WHEN {h} > {limit} THEN {limit} WHEN {h} < -{limit} THEN -{limit} ELSE CAST({h} AS BIGINT) END END"
        )

    def named_integer(self, t: str) -> str:
        """`try_cast` behind the pattern."""
        return f"CASE WHEN {self.matches(t, PLAIN_INTEGER)} THEN try_cast({t} AS BIGINT) END"

    def days(self, x: str, kind: str) -> str:
        """Whole days; an instant is turned to UTC by arithmetic, so the session's time zone does not matter."""
        if kind == "text":
            t = f"ltrim(CAST({x} AS STRING))"
            first = f"substr({t}, 1, 10)"
            return (
                f"CASE WHEN {self.matches(f'CAST({x} AS STRING)', ISO_DATE)} AND {first} >= '0001' "
                f"THEN CAST(datediff(try_cast({first} AS DATE), DATE '1970-01-01') AS BIGINT) END"
            )
        if kind == "timestamptz":
            return f"(unix_micros({x}) - pmod(unix_micros({x}), 86400000000)) DIV 86400000000"
        return f"CAST(datediff(CAST({x} AS DATE), DATE '1970-01-01') AS BIGINT)"

    def seconds(self, x: str, kind: str) -> str:
        """Of an instant from its microseconds; of a clock from its day and time, so the session's time zone does not matter."""
        if kind == "timestamptz":
            return f"(unix_micros({x}) - pmod(unix_micros({x}), 1000000)) DIV 1000000"
        return f"{self.days(x, kind)} * 86400 + hour({x}) * 3600 + minute({x}) * 60 + second({x})"

    def matches(self, t: str, pattern: str) -> str:
        """Between the ends of the text; $ would let a line end behind it pass."""
        whole = self.literal(f"^({pattern})\\z")
        return f"({t} RLIKE {whole})"

    def spelled(self, t: str) -> str:
        """Lower case, trimmed."""
        return f"lower(trim(BOTH ' \\t\\n\\u000b\\u000c\\r' FROM {t}))"

    def shortened(self, t: str) -> str:
        """`rtrim` takes its arguments the other way round here."""
        return f"trim(TRAILING '.' FROM trim(TRAILING '0' FROM {t}))"

    def plain(self, t: str) -> str:
        """No NUL."""
        return f"CASE WHEN NOT contains({t}, char(0)) THEN {t} END"

    def position(self, t: str, options: tuple[str, ...]) -> str:
        """A CASE for a few, a search in an array for many."""
        if len(options) <= 64:
            branches = " ".join(f"WHEN {self.literal(option)} THEN {position}" for position, option in enumerate(options))
            return f"CASE {t} {branches} END"
        listed = ", ".join(self.literal(option) for option in options)
        return f"(nullif(array_position(array({listed}), {t}), 0) - 1)"

    def digest(self, t: str) -> str:
        """`conv` from base 16."""
        return f"CAST(conv(substr(md5({t}), 1, 15), 16, 10) AS BIGINT)"


class SparkEngine:
    """Spark data frames."""

    name = "spark"
    abilities = Abilities()

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The prepared rows of a table; Spark spills where its own settings say."""
        assert isinstance(table.source, SparkSource)
        return SparkPrepared(table, table.source, fresh_secret(secret), workspace)


class SparkPrepared(Prepared):
    """Prepared rows in a persisted data frame."""

    dialect: ClassVar[str] = "pyspark"

    def __init__(self, table: PrivateTable, source: SparkSource, secret: str, workspace: Workspace | None = None) -> None:
        super().__init__(table, materialised=True, workspace=workspace)
        self._source = source
        self._secret = secret
        self._view = f"cloister_{fresh_token(12)}"
        self._running: dict[str, tuple[int, Any]] = {}
        self._codes: dict[str, PublicCodes] = {}
        self._names = {name: f"s{i}" for i, name in enumerate(source.schema)}  # a name may hold ${…}, which Spark would replace
        guarded("The table could not be prepared", lambda: source.again(self._prepare))
        source.watch(self)

    def _prepare(self) -> None:
        from pyspark.logger import PySparkLogger

        # it writes the words of a failure, value and all, to the standard error of whoever asked
        PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True

        self._stand()
        self._frame.count()

    def _stand(self) -> None:
        from pyspark import StorageLevel

        self._source.frame.toDF(*self._names.values()).createOrReplaceTempView(f"{self._view}_source")
        select = prepared_sql(*self._renamed(), self._secret, SparkSpelling(), self._during())
        self._frame = self._sql(select).persist(StorageLevel.MEMORY_AND_DISK)
        self._frame.createOrReplaceTempView(self._view)

    def stand_again(self) -> None:
        """In a new session, under the same names, so that the SQL that was written for the old one holds."""
        if not self._closed:
            self._stand()
            for name, codes in self._codes.items():
                self._show(name, codes)

    @property
    def _session(self) -> Any:
        return self._source.session

    def _renamed(self) -> tuple[dict[str, Domain], dict[str, str], str, str | None]:
        table, names = self.declaration, self._names
        columns = {
            self._label(name): domain.over(names[domain.longitude], names[domain.latitude])
            if isinstance(domain, Place)
            else domain
            for name, domain in table.columns.items()
        }
        schema = {names[name]: kind for name, kind in self._source.schema.items()}
        return columns, schema, f"{self._view}_source", None if table.unit is None else names[table.unit]

    def _label(self, name: str) -> str:
        """A declared column by a name of ours; a place need not be a column of the source."""
        return self._names.get(name) or f"p{list(self.declaration.columns).index(name)}"

    def _during(self) -> During | None:
        during = self.declaration.during
        return None if during is None else During(self._names[during.column], during.first, during.last)

    def _sql(self, sql: str) -> Any:
        if self._session.conf.get("spark.sql.parser.escapedStringLiterals", "false") != "false":
            raise EngineError(
                "Spark is not supported",
                why="with spark.sql.parser.escapedStringLiterals a text cannot be quoted safely",
                instead='spark.conf.set("spark.sql.parser.escapedStringLiterals", "false")',
            )
        return self._session.sql(sql)

    def _collect(self, sql: str) -> list[Any]:
        return self._source.again(lambda: self._collected(sql.replace(RELATION, self._view)))

    def _collected(self, sql: str) -> list[Any]:
        with self._asked(f"{self._view}-{fresh_token(8)}"):
            return list(self._sql(sql).collect())

    @contextmanager
    def _asked(self, tag: str) -> Iterator[None]:
        """What runs within it can be cancelled by the tag."""
        session = self._session
        with self._source.asking() as asking:
            session.addTag(tag)
            with self._lock:
                self._running[tag] = threading.get_ident(), asking
            try:
                yield
            finally:
                with self._lock:
                    self._running.pop(tag, None)
                session.removeTag(tag)

    def _fetch(self, plan: CompiledQuery) -> list[Any]:
        return in_columns(self._collect(_no_variables(plan.sql)), plan)

    def _stream(self, plan: CompiledQuery) -> Generator[list[Any]]:
        """A partition after the other, so that the client never holds all of it."""
        if self.workspace.memory is None:
            yield self._fetch(plan)
            return
        sql, tag = _no_variables(plan.sql).replace(RELATION, self._view), f"{self._view}-{fresh_token(8)}"
        with self._asked(tag):
            yield from in_pieces(self._source.again(lambda: _begun(self._sql(sql).toLocalIterator())), plan)

    def _bring(self, other: Prepared) -> Site | None:
        """The other table's own view, where both are of one session."""
        if not isinstance(other, SparkPrepared) or other._session is not self._session:
            return None
        return Site(other._view)

    def _publish(self, codes: PublicCodes) -> Site:
        """A temporary view of the codes."""
        name = f"cloister_{fresh_token(12)}"
        self._source.again(lambda: self._show(name, codes))
        self._codes[name] = codes
        return Site(name)

    def _show(self, name: str, codes: PublicCodes) -> None:
        types = {**_TYPES, "string": "STRING"}
        schema = ", ".join(f"{column} {types[dtype]}" for column, dtype in codes.schema().items())
        self._session.createDataFrame(codes.rows(), schema).createOrReplaceTempView(name)

    def _remove(self, site: Site) -> None:
        """The view goes with the other table."""

    def cancel(self, thread: int | None = None) -> None:
        """Interrupts every job that runs now, or those of one thread."""
        with self._lock:
            running = [(tag, asking) for tag, (asker, asking) in self._running.items() if thread in (None, asker)]
        for tag, asking in running:
            if asking is not None:
                asking.stop()
            self._session.interruptTag(tag)

    def _owner_offenders(self, names: list[str]) -> dict[str, list[Any]]:
        columns, schema, relation, _ = self._renamed()
        spelling, during = SparkSpelling(), self._during()

        def found(here: str) -> list[Any]:
            return self._collect(offenders_sql(here, columns[here], schema, relation, spelling, during))

        return {name: found(self._label(name)) for name in names}

    def _owner_report(self) -> PreparationReport:
        table = self.declaration
        columns, schema, relation, unit = self._renamed()
        spelling, during = SparkSpelling(), self._during()
        row = self._collect(report_sql(columns, schema, relation, unit, spelling, during))[0]
        outside = None if during is None else self._collect(outside_sql(schema, relation, spelling, during))[0]
        over = (0, 0)
        if table.max_rows is not None:
            over = self._collect(over_cap_sql(table.max_rows, RELATION))[0]
        units = {
            name: self._collect(units_sql(domain, self._names[name], schema, relation, spelling, during))[0]
            for name, domain in named_by(table).items()
        }
        return report_of(row, over, table, outside=outside, units=units)

    def _close(self) -> None:
        self.cancel()
        with suppress(Exception):  # the session may have been stopped already, and the rows with it
            self._frame.unpersist()
            self._session.catalog.dropTempView(self._view)
            self._session.catalog.dropTempView(f"{self._view}_source")
            for name in self._codes:
                self._session.catalog.dropTempView(name)


def _begun(rows: Iterator[Any]) -> Callable[[int], list[Any]]:
    """As many of the rows as are asked for, again and again; the first are read here."""
    left = chain(list(islice(rows, PIECE)), rows)
    return lambda most: list(islice(left, most))


def _no_variables(sql: str) -> str:
    """Spark replaces ${x} anywhere in a text of SQL; ours holds a dollar inside quoted texts only, where \\u0024 means the
    same.
    """
    return sql.replace("$", "\\u0024")


def _kind_of_spark(name: str) -> str:
    if name.startswith("decimal"):
        return "decimal"
    return "text" if name.startswith(("varchar", "char")) else _KINDS.get(name, "other")
