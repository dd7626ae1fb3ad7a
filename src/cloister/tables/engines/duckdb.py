"""The default engine: DuckDB, embedded, in memory or in a private file when the source is large.

The connection that holds prepared rows can reach nothing else: extensions are neither loaded nor installed by themselves, and
once the rows are in, files and network are shut off and the settings locked. What does not fit in memory spills into a folder
that only the owner of the process can read, and that is removed at close. Of a source that is encrypted at rest, all of this is
encrypted as well (`encrypted.py`).
"""

# ruff: noqa: S608 - this file writes SQL: every name in it is our own

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from cloister.tables.declaring.columns import Domain, Identifier, Real, Text
from cloister.tables.declaring.table import PrivateTable
from cloister.tables.engines.abilities import Abilities
from cloister.tables.engines.compiler import DENSE_BITS, RELATION, CompiledQuery, Layout
from cloister.tables.engines.connection import connected
from cloister.tables.engines.engine import (
    ColumnReport,
    PreparationReport,
    Prepared,
    Site,
    Turn,
    UnitsReport,
    fresh_secret,
    fresh_token,
    in_pieces,
)
from cloister.tables.engines.folder import PrivateFolder
from cloister.tables.engines.guard import guarded
from cloister.tables.engines.held import MOST_BYTES, Held, countable, wanted_columns
from cloister.tables.engines.request import Aggregation, Groups
from cloister.tables.engines.workspace import ENCRYPTED_SCRATCH, Workspace, attach_scratch
from cloister.tables.expression.names import quotation
from cloister.tables.relations.public import PublicCodes
from cloister.tables.sourcing.preparation import (
    Spelling,
    offenders_sql,
    outside_sql,
    over_cap_sql,
    prepared_sql,
    report_sql,
    units_sql,
)
from cloister.tables.sourcing.reading import DOUBTFUL, ISO_DATE, LONGEST_NUMBER, NUMBER, PLAIN_INTEGER, SPACE, WHOLE
from cloister.tables.sourcing.sources import Source

_TYPES = {"int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT"}
_USUAL_BITS = 12  # DuckDB's own perfect_ht_threshold
_MANY_ROWS = 10**6
_ONE_GROUP = 122_880
"""Rows that DuckDB reads in one piece: it has nothing to share among threads, and to start them takes longer than to read."""
_HELD_BEYOND = 4
"""A table of more rows than was declared of it is still held up to so many times the most: what decides is what was declared, and
the true number only where that is far from it."""
_SCRATCH = "cloister_scratch"


class DuckDBSpelling(Spelling):
    """DuckDB's way of writing. TRY_CAST never fails; texts that it reads and the rules do not (1_000) are kept out."""

    def name(self, identifier: str) -> str:
        """Double quotes."""
        return quotation(identifier)

    def integer(self, x: str, dtype: str) -> str:
        """A cast."""
        return f"CAST({x} AS {_TYPES[dtype]})"

    def text(self, x: str, kind: str) -> str:
        """A cast; a day of the calendar as a date."""
        if kind == "days":
            day = f"DATE '1970-01-01' + CAST(CASE WHEN {x} BETWEEN {_FIRST_DAY} AND {_LAST_DAY} THEN {x} END AS INTEGER)"
            return f"COALESCE(CAST(CAST({day} AS DATE) AS VARCHAR), CAST({x} AS VARCHAR))"
        if kind == "timestamp":  # of seconds or milliseconds, which a text is not made of where microseconds do not reach
            return f"CASE WHEN {self._micros(x, kind)} IS NOT NULL THEN CAST({x} AS VARCHAR) END"
        return f"CAST({x} AS VARCHAR)"

    def finite(self, x: str) -> str:
        """`isfinite`."""
        return f"CASE WHEN isfinite({x}) THEN CAST({x} AS DOUBLE) END"

    def number(self, t: str) -> str:
        """TRY_CAST where the result is finite; the slow check by the pattern only for what looks odd."""
        d = f"TRY_CAST({t} AS DOUBLE)"
        return (
            f"CASE WHEN length({t}) > {LONGEST_NUMBER} THEN NULL WHEN isfinite({d}) AND NOT contains({t}, '_') THEN {d} "
            f"WHEN regexp_full_match({t}, '{NUMBER}') THEN {d} END"
        )

    def whole(self, t: str) -> str:
        """Through a 128-bit integer."""
        trimmed = f"ltrim(trim({t}, {_CHARACTERS}), '+')"
        h = f"TRY_CAST({trimmed} AS HUGEINT)"
        limit = 2**62
        return (
            f"CASE WHEN {t} IS NULL OR length({t}) > {LONGEST_NUMBER} OR NOT regexp_full_match({t}, '{WHOLE}') THEN NULL "
            f"WHEN {h} IS NULL THEN CASE WHEN contains({t}, '-') THEN -{limit} ELSE {limit} END "
            f"WHEN {h} > {limit} THEN {limit} WHEN {h} < -{limit} THEN -{limit} ELSE CAST({h} AS BIGINT) END"
        )

    def named_integer(self, t: str) -> str:
        """TRY_CAST behind the pattern."""
        return f"CASE WHEN regexp_full_match({t}, '{PLAIN_INTEGER}') THEN TRY_CAST({t} AS BIGINT) END"

    def days(self, x: str, kind: str) -> str:
        """Whole days; times are floored, infinite ones are NULL."""
        if kind == "days":
            return x
        if kind == "text":
            t = f"CAST({x} AS VARCHAR)"
            day = f"TRY_CAST(substr(ltrim({t}, ' '), 1, 10) AS DATE)"
            given = f"regexp_full_match({t}, '{ISO_DATE}') AND {day} >= DATE '0001-01-01'"
            return f"CASE WHEN {given} THEN {day} - DATE '1970-01-01' END"
        if kind == "date":
            return f"CASE WHEN isfinite({x}) THEN {x} - DATE '1970-01-01' END"
        return self._floored(x, kind, 86_400_000_000)

    def seconds(self, x: str, kind: str) -> str:
        """From microseconds, infinite ones are NULL."""
        return self._floored(x, kind, 1_000_000)

    def _micros(self, x: str, kind: str) -> str:
        """A time in microseconds; one of seconds or milliseconds that is too far away for them would fail, and is NULL."""
        return f"TRY_CAST({x} AS {kind.upper()})"

    def _floored(self, x: str, kind: str, unit: int) -> str:
        time = self._micros(x, kind)
        micros = f"epoch_us({time})"
        return f"CASE WHEN isfinite({time}) THEN ({micros} - (({micros} % {unit}) + {unit}) % {unit}) // {unit} END"

    def matches(self, t: str, pattern: str) -> str:
        """RE2, of the whole text."""
        return f"regexp_full_match({t}, '{pattern}')"

    def spelled(self, t: str) -> str:
        """Lower case, trimmed."""
        return f"lower(trim({t}, {_CHARACTERS}))"

    def plain(self, t: str) -> str:
        """No NUL."""
        return f"CASE WHEN NOT contains({t}, chr(0)) THEN {t} END"

    def position(self, t: str, options: tuple[str, ...]) -> str:
        """The position in an ENUM, which DuckDB looks up by hash."""
        listed = ", ".join(self.literal(option) for option in options)
        return f"enum_code(TRY_CAST({t} AS ENUM({listed})))"

    def digest(self, t: str) -> str:
        """Read back as a hexadecimal number."""
        return f"CAST('0x' || substr(md5({t}), 1, 15) AS BIGINT)"


_MOST_IDLE = 16
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_CHARACTERS = " || ".join(f"chr({ord(character)})" for character in SPACE)


class DuckDBEngine:
    """Tables in files, frames and dictionaries."""

    name = "duckdb"
    abilities = Abilities()

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The prepared rows of a table."""
        return DuckDBPrepared(table, fresh_secret(secret), workspace)


class DuckDBPrepared(Prepared):
    """Prepared rows in a DuckDB database of their own."""

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, table: PrivateTable, secret: str, workspace: Workspace) -> None:
        super().__init__(table, materialised=True, workspace=workspace)
        self._folder = PrivateFolder(workspace.folder)
        self._common = workspace.settings()
        if table.source.is_encrypted:
            self._common |= ENCRYPTED_SCRATCH
        settings = {
            **self._common,
            "temp_directory": str(self._folder.path / "spill"),
            "preserve_insertion_order": False,
            "allowed_configs": ["perfect_ht_threshold", "threads"],
        }
        self._running: dict[Any, int] = {}
        self._stopped: set[Any] = set()
        self._idle: list[Any] = []
        self._dense, self._dense_bits = 0, workspace.places(DENSE_BITS, _USUAL_BITS)
        self._long = table.source.is_long or (table.size or 0) > _MANY_ROWS
        # as declared: the clock may say nothing of the true number
        self._short = table.size is not None and table.size <= _ONE_GROUP
        self._most_held = MOST_BYTES if workspace.memory is None else min(MOST_BYTES, workspace.memory // (4 * _HELD_BEYOND))
        self._holds = self._short and _bytes(table.size or 0, self.layout) <= self._most_held
        most = None if self._short else workspace.questions(workspace.threads(os.cpu_count() or 1))
        given = workspace.settings().get("threads")
        self._all_threads = "RESET threads" if given is None else f"SET threads = {given}"
        self._resting = False
        self._turns = None if most is None else threading.Semaphore(most)
        self._holding = threading.Lock()
        self._held: Held | None = None
        try:
            guarded("The table could not be prepared", lambda: self._prepare(table, secret, settings))
        except BaseException:
            self._folder.remove()
            raise

    def _prepare(self, table: PrivateTable, secret: str, settings: dict[str, Any]) -> None:
        source, file, place = table.source, self._folder.path / "prepared.duckdb", RELATION
        in_plain = source.is_large and not source.is_encrypted
        self._connection = connected(str(file) if in_plain else ":memory:", settings)
        if source.is_large and source.is_encrypted:
            attach_scratch(self._connection, file, _SCRATCH)
            place = f"{_SCRATCH}.{RELATION}"
        try:
            relation = source.attach(self._connection)
            select = prepared_sql(table.columns, source.schema, relation, table.unit, secret, DuckDBSpelling(), table.during)
            self._connection.execute(f"CREATE TABLE {place} AS {select}")
        finally:
            source.detach(self._connection)
        if place != RELATION:
            self._connection.execute(f"CREATE VIEW {RELATION} AS SELECT * FROM {place}")
        if self._short:
            self._connection.execute("SET threads = 1")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def aggregate(self, aggregation: Aggregation, plan: CompiledQuery | None = None) -> Groups:
        """As every engine; of a short table rows are counted without a statement (`held.py`)."""
        if not self._holds or not countable(aggregation):
            return super().aggregate(aggregation, plan)
        if plan is None:
            plan = self.plan(aggregation)  # the refusals
        cap = self.declared.max_rows if aggregation.max_rows is None else aggregation.max_rows
        number = self._reading(lambda: None if (held := self._hold()) is None else held.count(aggregation.where, cap))
        if number is None:
            return super().aggregate(aggregation, plan)
        return Groups((), {aggregation.aggregates[0].name: np.array([number], dtype=np.int64)})

    def _hold(self) -> Held | None:
        """The rows in arrays, read once; None where they would take too much memory."""
        if self._held is not None or not self._holds:
            return self._held
        with self._holding:
            if self._held is None and self._holds:
                self._held = self._read_held()
                self._holds = self._held is not None
            return self._held

    def _read_held(self) -> Held | None:
        names = wanted_columns(self.layout)
        with self._cursor() as cursor:
            [rows] = cursor.execute(f"SELECT COUNT(*) FROM {RELATION}").fetchone()
            if rows > _HELD_BEYOND * _ONE_GROUP or _bytes(rows, self.layout) > _HELD_BEYOND * self._most_held:
                return None
            columns = cursor.execute(f"SELECT {', '.join(names)} FROM {RELATION}").fetchnumpy() if names else {}
        return Held(self.layout, columns, rows)

    def _fetch(self, plan: CompiledQuery) -> list[Any]:
        with self._cursor(kept=True) as cursor:
            if plan.alone:  # to make arrays of a single row takes a fifth of a short question's time
                [row] = cursor.execute(plan.sql).fetchall()  # one that was only begun would refuse the next question
                return [[value] for value in row]
            if not plan.dense or not self._long:
                return list(cursor.execute(plan.sql).fetchnumpy().values())
            self._arrays(cursor, 1)
            try:
                return list(cursor.execute(plan.sql).fetchnumpy().values())
            finally:
                self._arrays(cursor, -1)

    def _stream(self, plan: CompiledQuery) -> Generator[list[Any]]:
        """Texts in few rows at a time, since nobody says how long they are; whole numbers in arrays."""
        if self.workspace.memory is None:
            yield self._fetch(plan)
            return
        with self._cursor(kept=True) as cursor:
            if "text" in plan.reads or "wide" in plan.reads:
                cursor.execute(plan.sql)
                yield from in_pieces(cursor.fetchmany, plan)
                return
            import arro3.core

            empty = True
            for batch in arro3.core.RecordBatchReader.from_stream(cursor.sql(plan.sql)):
                yield [batch.column(place).to_numpy() for place in range(batch.num_columns)]
                empty = False
            if empty:
                yield [np.zeros(0, dtype=np.int64) for _ in plan.reads]

    def turn(self) -> Turn | None:
        """As many at once as there is memory for; a table of which few rows are declared needs little."""
        return self._turns

    def rest(self) -> None:
        """Without threads, idle cursors and arrays, until the next question."""
        with self._lock:
            if self._closed or self._running or (self._resting and self._held is None):
                return
            idle, self._idle = self._idle, []
            self._resting, self._held = True, None
            for cursor in idle:
                cursor.close()
            self._connection.execute("SET threads = 1")

    def _arrays(self, cursor: Any, change: int) -> None:
        """While a dense count runs, groups may be kept in an array of so many places, three times as fast as a hash table. The
        setting holds for the whole database: a query beside it, with other aggregates, may then take more memory."""
        with self._lock:
            self._dense += change
            cursor.execute(f"SET perfect_ht_threshold = {self._dense_bits if self._dense else _USUAL_BITS}")

    @contextmanager
    def _cursor(self, *, kept: bool = False) -> Iterator[Any]:
        """A connection to the same database, which `cancel` interrupts. One that is `kept` may serve the next question, which
        saves a third of a short one's time: unless it failed or was to be interrupted, which could reach that question."""
        with self._lock:
            if self._resting:
                self._resting = False
                if not self._short:
                    self._connection.execute(self._all_threads)
            cursor = self._idle.pop() if kept and self._idle else self._connection.cursor()
            self._running[cursor] = threading.get_ident()
        whole = False
        try:
            yield cursor
            whole = kept
        finally:
            with self._lock:
                self._running.pop(cursor, None)
                whole = whole and cursor not in self._stopped and len(self._idle) < _MOST_IDLE and not self._closed
                self._stopped.discard(cursor)
                if whole:
                    self._idle.append(cursor)
            if not whole:
                cursor.close()

    def _bring(self, other: Prepared) -> Site | None:
        """A copy of the other table's rows up to its cap: its database is its own, and neither may open the other's."""
        if not isinstance(other, DuckDBPrepared):
            return None
        if other.declaration.source.is_encrypted and not self.declaration.source.is_encrypted:
            return None  # our files are plain
        import arro3.core

        name = f"cloister_beside_{fresh_token(8)}"
        cap = other.declaration.max_rows
        kept = f"SELECT * FROM {RELATION}" + (f" WHERE place <= {cap}" if cap is not None else "")
        with self._cursor() as mine, other._cursor() as theirs:
            mine.execute(self._all_threads)  # the other table may be long
            mine.register(f"{name}_read", arro3.core.RecordBatchReader.from_stream(theirs.sql(kept)))
            mine.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_read")
            mine.unregister(f"{name}_read")
        return Site(name)

    def _publish(self, codes: PublicCodes) -> Site:
        """A table of the codes."""
        from arro3.core import Array, DataType, Table

        name = f"cloister_public_{fresh_token(8)}"
        types = {**_TYPES, "string": "VARCHAR"}
        arrays, chosen = {}, []
        for (column, (values, domain)), dtype in zip(codes.columns().items(), codes.schema().values(), strict=True):
            is_text = domain is None or isinstance(domain, Text)
            arrays[column] = Array.from_numpy(values) if isinstance(values, np.ndarray) else Array(values, DataType.utf8())
            given = column if is_text else f"NULLIF({column}, {domain.null_code})"  # type: ignore[union-attr]
            chosen.append(f"CAST({given} AS {types[dtype]}) AS {column}")
        with self._cursor() as mine:
            mine.execute(self._all_threads)
            mine.register(f"{name}_read", Table.from_pydict(arrays))
            mine.execute(f"CREATE TABLE {name} AS SELECT {', '.join(chosen)} FROM {name}_read")
            mine.unregister(f"{name}_read")
        return Site(name)

    def _remove(self, site: Site) -> None:
        with self._cursor() as mine:
            mine.execute(f"DROP TABLE IF EXISTS {site.name}")

    def cancel(self, thread: int | None = None) -> None:
        """Interrupts every query that runs now, or those of one thread."""
        import duckdb

        with self._lock:
            running = [cursor for cursor, asker in self._running.items() if thread in (None, asker)]
            self._stopped.update(running)
        for cursor in running:
            with suppress(duckdb.Error):  # one that ended meanwhile is closed
                cursor.interrupt()

    @contextmanager
    def _of_source(self) -> Iterator[tuple[Any, Callable[..., list[Any]]]]:
        """A connection, and what asks the source on it; it is attached for each question: lines of a file pass by once."""
        settings = {**self._common, "temp_directory": str(self._folder.path / "report")}
        with connected(settings=settings) as connection:

            def asked(sql: Callable[[str], str], source: Source = self.declaration.source) -> list[Any]:
                relation = source.attach(connection)
                try:
                    return connection.execute(sql(relation)).fetchall()  # type: ignore[no-any-return]
                finally:
                    source.detach(connection)

            yield connection, asked

    def _owner_offenders(self, names: list[str]) -> dict[str, list[Any]]:
        table, spelling = self.declaration, DuckDBSpelling()
        schema, during = table.source.schema, table.during
        with self._of_source() as (_, asked):

            def found(name: str) -> list[Any]:
                return asked(lambda relation: offenders_sql(name, table.columns[name], schema, relation, spelling, during))

            return {name: found(name) for name in names}

    def _owner_report(self) -> PreparationReport:
        table = self.declaration
        with self._of_source() as (connection, asked):
            spelling, schema, during = DuckDBSpelling(), table.source.schema, table.during
            [row] = asked(lambda relation: report_sql(table.columns, schema, relation, table.unit, spelling, during))
            outside = None if during is None else asked(lambda relation: outside_sql(schema, relation, spelling, during))[0]

            def named(name: str, domain: Domain) -> Any:
                return asked(lambda relation: units_sql(domain, name, schema, relation, spelling, during))[0]

            units = {name: named(name, domain) for name, domain in named_by(table).items()}
            malformed = table.source.malformed(connection)
            between = [each for each in table.columns if table.source.delimiters.get(each) == ";"]
            doubtful = {each: 0 for each in between if isinstance(table.columns[each], Real)}
            if doubtful:
                counts = ", ".join(f"count_if({spelling.matches(quotation(each), DOUBTFUL)})" for each in doubtful)
                [found] = asked(lambda relation: f"SELECT {counts} FROM {relation}", table.source.read_under({}))
                doubtful = dict(zip(doubtful, found, strict=True))
        over = (0, 0)
        if table.max_rows is not None:
            over = self._connection.cursor().execute(over_cap_sql(table.max_rows, RELATION)).fetchone()
        return report_of(row, over, table, malformed, outside, units, doubtful)

    def _close(self) -> None:
        self.cancel()
        with self._lock:
            idle, self._idle = self._idle, []
        self._held = None
        for cursor in idle:
            cursor.close()
        self._connection.close()
        self._folder.remove()


def _bytes(rows: int, layout: Layout) -> int:
    """What so many rows may take as arrays."""
    return 8 * rows * len(wanted_columns(layout))


def named_by(table: PrivateTable) -> dict[str, Domain]:
    """The columns that name whose row a row is, or may: the unit's, and each identifier."""
    unit: dict[str, Domain] = {} if table.unit is None else {table.unit: Identifier()}
    return unit | {name: domain for name, domain in table.columns.items() if isinstance(domain, Identifier)}


def report_of(
    row: Any,
    over: Any,
    table: PrivateTable,
    malformed: int = 0,
    outside: Any = None,
    units: Mapping[str, Any] = MappingProxyType({}),
    doubtful: Mapping[str, int] = MappingProxyType({}),
) -> PreparationReport:
    """The report from the numbers of `report_sql`, `over_cap_sql`, `outside_sql` and `units_sql`."""
    numbers = [int(number) for number in row]
    by_column = zip(table.columns, numbers[2::3], numbers[3::3], numbers[4::3], strict=True)
    columns = {name: ColumnReport(n, n - kept, clamped, doubtful.get(name, 0)) for name, n, kept, clamped in by_column}
    by = {name: UnitsReport(units=int(many), fullest=int(most)) for name, (many, most) in units.items()}
    before, after, undated = (int(number) for number in outside or (0, 0, 0))
    return PreparationReport(numbers[0], numbers[1], int(over[0]), int(over[1]), columns, malformed, before, after, undated, by)
