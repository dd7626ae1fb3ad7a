"""What is worked out over answers: run in a locked engine that holds these answers and the public tables which are named, and
nothing else.

Each run has an engine for itself (`tables/engines/connection.py`); its memory, its time, and the rows and bytes of a result
are limited. The program is a list of steps, in each of which the names of tables and columns are ours. It is tried before
anything is charged, over tables of two rows of ours: what the engine cannot read or work out is refused then. Values that are
not finite become NULL.

Margins. The released cells that the program reads hold in their intervals at once with the asked confidence (Boole: each answer
has its share of what may be missed, by its cells). The same program carries the intervals along. So all intervals of the result
hold at once, too; NULL is "not known".
"""

# ruff: noqa: S608 - this file writes SQL: names are ours, values were read against a list

from __future__ import annotations

import datetime
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from cloister.errors import EngineError
from cloister.query.dialect import dialect_named
from cloister.query.parse import Parsed
from cloister.query.postprocessing.expressions import LONGEST_LIST, LONGEST_TEXT, TOO_LONG
from cloister.query.postprocessing.queries import Column, Step
from cloister.query.postprocessing.values import macros
from cloister.query.publics import PublicSource
from cloister.query.refusals import refused
from cloister.session import Release
from cloister.session.releases.frames import Frame, Kind, Series
from cloister.session.releases.postprocessed import Bounds, Postprocessed
from cloister.tables.engines.connection import Locked

_MEMORY, _MOST_TEXT = "256MB", 20_000
_MOST_TEXTS = 64
"""What is made in one step of the engine is bounded: 2,048 rows, so many texts each, of `LONGEST_TEXT` bytes."""
_SECONDS = 10.0
_ENGINES = {
    tried: Locked(
        memory=_MEMORY,
        first=[
            "SET GLOBAL order_by_non_integer_literal = true",
            f"SET GLOBAL scalar_subquery_error_on_multiple_rows = {not tried}",
        ],
    )
    for tried in (True, False)
}
"""By whether a program is tried over rows of ours, where a query in the place of a value may have both."""
_MOST_ROWS, _LARGEST, _PIECE = 100_000, 64_000_000, 20_000
_TYPES: dict[Kind, str] = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "date": "DATE", "boolean": "BOOLEAN"}
_WHOLE = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BIGNUM"}
)
_ONE: dict[Kind, Any] = {"integer": 0, "real": 0.0, "text": "few", "date": datetime.date(2000, 1, 1), "boolean": True}
_TRIED = {kind: Series(kind, np.array([value, None], dtype=object)) for kind, value in _ONE.items()}
_MOST_TRIED = 3
_MOST = 2**63 - 1
_INTERVAL = "STRUCT(l DOUBLE, h DOUBLE)"
_PLACE = "[CAST(row_number() OVER () AS INTEGER)] AS z"
SHOWN = 0.95
"""The confidence at which margins are worked out together with the values."""


@dataclass(kw_only=True)
class Part:
    """A question below the cut: how its answer is laid out, its columns, and which of the questions that are asked it is."""

    parsed: Parsed
    columns: tuple[Column, ...]
    named: bool = True
    """Whether the names of its columns are the analyst's."""
    places: tuple[int, ...] = ()


@dataclass(kw_only=True)
class PublicPart:
    """A public table that the program reads, and those of its columns that it needs."""

    step: str
    source: PublicSource
    columns: list[int]

    def use(self, place: int) -> None:
        """A column is read."""
        if place not in self.columns:
            self.columns.append(place)


@dataclass(frozen=True, kw_only=True)
class Program:
    """Questions, public tables, and the steps over them; the last step is the answer."""

    parts: tuple[Part, ...]
    publics: tuple[PublicPart, ...]
    steps: tuple[tuple[str, str], ...]
    last: Step
    single: tuple[str, ...] = ()
    """The steps that must have one row at most, and whose rows no released number decides."""
    known: dict[str, list[tuple[str, Kind, bool]]] = field(default_factory=dict, compare=False, repr=False)
    """What was described before."""

    def in_order(self, order: Sequence[int]) -> Program:
        """The same over questions in another order: `order` are their places in this one."""
        place = {before: after for after, before in enumerate(order)}
        return replace(self, parts=tuple(replace(part, places=tuple(map(place.__getitem__, part.places))) for part in self.parts))

    @property
    def names(self) -> Mapping[str, str]:
        """What the analyst calls the numbers of its question, if it stands on one alone."""
        return self.parts[0].parsed.names if len(self.parts) == 1 and self.parts[0].named else {}

    @property
    def sql(self) -> str:
        """What the engine runs."""
        *before, (_, final) = self.steps or [("", f"SELECT * FROM {self.last.name}")]
        return _with(before, final)

    def described(
        self, kinds: Sequence[Mapping[str, Kind]], known: Sequence[Mapping[str, Series]] = ()
    ) -> list[tuple[str, Kind, bool]]:
        """The columns of the result: name, kind, and whether released numbers are in it. `kinds` are those of the columns of each
        part, `known` their rows where these are known in advance. What the engine cannot work out is refused."""
        if len(self.sql) > _MOST_TEXT:
            raise refused("The query is not supported", "what stands above the aggregates is too long", "fewer columns")
        if self.sql.count(TOO_LONG) > _MOST_TEXTS:
            raise refused(
                "The query is not supported", f"it puts texts together in more than {_MOST_TEXTS} places", "fewer columns"
            )
        key = repr(kinds)
        if key in self.known:
            return self.known[key]
        if self.single:
            nothing = np.empty(0, dtype=object)
            blank = [
                Frame(rows or {name: Series(kind, nothing) for name, kind in columns.items()})
                for columns, rows in zip(kinds, known or [{}] * len(kinds), strict=True)
            ]
            with self._engine([(frame, {}) for frame in blank]) as connection:
                self._check_single(connection)
        tried = [{name: _TRIED[kind] for name, kind in columns.items()} for columns in kinds]
        with self._engine([(Frame(columns), {}) for columns in tried], tried=True) as connection:
            sql = _strict(self.sql)
            told = self._ran(lambda: connection.execute(f"DESCRIBE {sql}").fetchall(), before=True)
            self._ran(lambda: connection.execute(sql).fetchall(), before=True)
        types = {str(row[0]): str(row[1]) for row in told}
        found: list[tuple[str, Kind, bool]] = []
        for place, column in enumerate(self.last.columns):
            kind = _kind_of(types[f"c{place}"])
            if kind is None:
                raise refused(
                    f"The column {column.name!r} is not supported",
                    "its type is neither number, text, date nor truth value",
                    "CAST(n AS TEXT)",
                )
            found.append((column.name, kind, column.kind != "certain"))
        self.known[key] = found
        return found

    def _check_single(self, connection: Any) -> None:
        """Refuse a query in the place of a value that has several rows, whatever the noise."""
        counts = _with(self.steps, "SELECT " + ", ".join(f"(SELECT count(*) FROM {name})" for name in self.single))
        if max(self._ran(lambda: connection.execute(counts).fetchone(), before=True)) > 1:
            raise refused("A nested query is not supported", "it has more than one value", "(SELECT MAX(n) FROM t)")

    def result(self, answers: Sequence[Release], kinds: Sequence[tuple[str, Kind, bool]], release: Release | None) -> Release:
        """The result over the answers of the parts."""
        values, at_first, places = self._table(_all_at_once(answers, SHOWN), kinds)

        @lru_cache(maxsize=16)
        def bounds(confidence: float) -> Bounds:
            if confidence == SHOWN:
                return at_first
            _, found, again = self._table(_all_at_once(answers, confidence), kinds)
            return (
                found if again == places else {name: (ends * math.nan, ends * math.nan) for name, (ends, _) in at_first.items()}
            )

        return Postprocessed.of(values, {name for name, _, noisy in kinds if noisy}, bounds, answers, release)

    def _table(
        self, inputs: Sequence[tuple[Frame, Mapping[str, tuple[Any, Any]]]], kinds: Sequence[tuple[str, Kind, bool]]
    ) -> tuple[Frame, Bounds, list[Any]]:
        with self._engine(inputs) as connection:
            names, rows = self._ran(lambda: _fetched(connection, self.sql), before=False)
        place = {name: number for number, name in enumerate(names)}
        columns, bounds = {}, {}
        for number, (name, kind, noisy) in enumerate(kinds):
            columns[name] = _series([row[place[f"c{number}"]] for row in rows], kind)
            if noisy:
                known = [row[place[f"i{number}"]] for row in rows]
                bounds[name] = _ends(columns[name], known, self.last.columns[number].kind)
        return Frame(columns), bounds, [row[place["z"]] for row in rows]

    @contextmanager
    def _engine(self, inputs: Sequence[tuple[Frame, Mapping[str, tuple[Any, Any]]]], *, tried: bool = False) -> Iterator[Any]:
        """A locked engine that holds the parts and the public tables; what runs too long in it is ended."""
        with _ENGINES[tried].connection() as connection:
            for line in macros(f"i_of() {self.sql}"):
                connection.execute(line)
            for number, (part, (frame, margins)) in enumerate(zip(self.parts, inputs, strict=True)):
                _load(connection, f"r{number}", frame, [each.kind for each in part.columns], margins)
            for public in self.publics:
                _load_public(connection, public, tried=tried)
            clock = threading.Timer(_SECONDS, connection.interrupt)
            clock.daemon = True
            clock.start()
            try:
                yield connection
            finally:
                clock.cancel()

    @staticmethod
    def _ran(work: Any, *, before: bool) -> Any:
        """The engine's own words are left out: they speak of the rewritten query."""
        import duckdb

        try:
            return work()
        except duckdb.InterruptException:
            why = f"it took longer than {_SECONDS:g} s"
        except duckdb.OutOfMemoryException:
            why = f"it needs more than {_MEMORY} of memory"
        except duckdb.InvalidInputException:
            why = (
                f"a text is longer than {LONGEST_TEXT:,} bytes (a list of them {LONGEST_LIST:,}), "
                "a value is out of range, or a nested query has several rows"
            )
        except duckdb.Error:
            why = "the engine cannot work it out: two kinds of values are put together, or a number is too large"
        except _TooLarge:
            why = f"it has more than {_MOST_ROWS:,} rows, or {_LARGEST:,} bytes"
        if before:
            raise refused("What stands above the aggregates is not supported", why, "the aggregates alone")
        raise EngineError(
            "The answer could not be worked out",
            why=why,
            instead="the aggregates alone, which are charged already: they cost nothing again",
        )


def _with(steps: Sequence[tuple[str, str]], final: str) -> str:
    named = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in steps)
    return f"WITH {named} {final}" if named else final


def _strict(sql: str) -> str:
    """As it is tried: no condition leaves a row out, a step hands on three, and each part of a choice is worked out, whichever
    noise chooses. Of text and number the engine refuses an order when it reads it, and an equality only at a value that is none.

    >>> _strict("SELECT a FROM t WHERE a = 2 LIMIT 0")
    'SELECT a FROM t WHERE LIST_EXTRACT(LIST_VALUE(a < 2 AND TRUE, TRUE), 2)'
    >>> _strict("SELECT CASE WHEN a THEN 1 ELSE 'few' END")
    "SELECT LIST_EXTRACT(LIST_VALUE(1, 'few'), LENGTH(LIST_VALUE(a AND TRUE)))"
    """
    try:
        tree = sqlglot.parse_one(sql, dialect=dialect_named("duckdb"))
        for node in reversed(list(tree.walk())):
            part = "on" if isinstance(node, exp.Join) else "this"
            if isinstance(node, exp.Where | exp.Having | exp.Qualify | exp.Join) and (held := node.args.get(part)):
                node.set(part, _picked([exp.and_(held, exp.true()), exp.true()], exp.Literal.number(2)))
            if isinstance(node, exp.Lag | exp.Lead) and (other := node.args.get("default")):
                node.set("default", exp.case().when(exp.LT(this=exp.paren(node.this), expression=other.copy()), other))
            if isinstance(node, exp.CTE):  # where no row is left out, each join would multiply them
                node.set("this", node.this.limit(_MOST_TRIED))
            if (tried := _tried(node)) is not node:
                node.replace(tried)
        return str(tree.sql(dialect="duckdb"))
    except RecursionError:  # the engine reads deeper than this parser; its own description says less, and refuses nothing wrongly
        return sql


def _picked(parts: Sequence[exp.Expression], place: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this="list_extract", expressions=[exp.Anonymous(this="list_value", expressions=list(parts)), place])


def _tried(node: exp.Expression) -> exp.Expression | None:
    if isinstance(node, exp.Limit | exp.Offset):
        return None
    if isinstance(node, exp.Try):  # what it would hide is refused
        return exp.paren(node.this)
    if isinstance(node, exp.Anonymous) and node.name == "error":
        return exp.null()
    if isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ):
        return exp.LT(this=node.this, expression=node.expression)
    if isinstance(node, exp.Case):
        conditions = exp.Anonymous(this="list_value", expressions=[exp.and_(each.this, exp.true()) for each in node.args["ifs"]])
        branches = [*(each.args["true"] for each in node.args["ifs"]), node.args.get("default") or exp.null()]
        return _picked(branches, exp.Length(this=conditions))
    return node


class _TooLarge(Exception):
    """A result that is too large to be handed out."""


def _all_at_once(answers: Sequence[Release], confidence: float) -> list[tuple[Frame, Mapping[str, tuple[Any, Any]]]]:
    """The answers with intervals that hold at once."""
    sizes = [max(answer.cells, 1) * max(len(answer.statistics()), 1) for answer in answers]
    missed = [(1 - confidence) * size / sum(sizes) for size in sizes]
    return [_released(answer, 1 - share) for answer, share in zip(answers, missed, strict=True)]


def _released(answer: Release, confidence: float) -> tuple[Frame, Mapping[str, tuple[Any, Any]]]:
    """The values of an answer, and the ends of the intervals of its numbers."""
    table, margins = answer.table, answer.margin(confidence, joint=True)
    found = {}
    for name in answer.statistics():
        series = table.columns[name]
        if series.kind in ("integer", "real"):
            values = np.array([math.nan if value is None else float(value) for value in series.tolist()], dtype=np.float64)
            told = np.asarray(margins[name], dtype=np.float64)
            found[name] = (values - told, values + told)
    return table, found


def _load(connection: Any, name: str, frame: Frame, kinds: Sequence[str], ends: Mapping[str, tuple[Any, Any]]) -> None:
    """A table of the engine: its columns by number, and the intervals of those that have one."""
    given, made = {}, []
    for place, ((column, series), kind) in enumerate(zip(frame.columns.items(), kinds, strict=True)):
        given[f"v{place}"] = Series(series.kind, _plain(series))
        made.append(f"CAST(v{place} AS {_TYPES[series.kind]}) AS c{place}")
        if kind == "number":
            if column in ends:
                low, high = ends[column]
                given[f"l{place}"], given[f"h{place}"] = (Series("real", _present(each)) for each in (low, high))
                made.append(f"i_of(l{place}, h{place}) AS i{place}")
            else:
                made.append(f"NULL::{_INTERVAL} AS i{place}")
        elif kind != "certain":
            made.append(f"FALSE AS i{place}")
    connection.register("given", Frame(given).to_arrow())
    connection.execute(f"CREATE TEMP TABLE {name} AS SELECT {', '.join(made)}, {_PLACE} FROM given")
    connection.unregister("given")


def _load_public(connection: Any, public: PublicPart, *, tried: bool) -> None:
    names = public.source.table.names
    places = sorted(public.columns) or [0]
    lists = public.source.lists([names[place] for place in places])
    given = {f"c{place}": _of_values(values) for place, values in zip(places, lists, strict=True)}
    given = {name: _TRIED[series.kind] for name, series in given.items()} if tried else given
    connection.register("given", Frame(given).to_arrow())
    made = ", ".join(f"CAST({name} AS {_TYPES[series.kind]}) AS {name}" for name, series in given.items())
    connection.execute(f"CREATE TEMP TABLE {public.step} AS SELECT {made}, {_PLACE} FROM given")
    connection.unregister("given")


def _of_values(values: Sequence[Any]) -> Series:
    """Values of a public table, of the kind that all of them have."""
    present = [value for value in values if value is not None]
    kind: Kind = "text"
    if present and all(isinstance(value, bool) for value in present):
        kind = "boolean"
    elif present and all(isinstance(value, int) and not isinstance(value, bool) for value in present):
        kind = "integer" if all(abs(value) < 2**63 for value in present) else "real"
    elif present and all(
        isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool) for value in present
    ):
        kind = "real"
    elif present and all(isinstance(value, datetime.date) for value in present):
        kind = "date"
    column = np.empty(len(values), dtype=object)
    if kind == "real":
        column[:] = [None if value is None or not math.isfinite(value) else float(value) for value in values]
    elif kind == "text":
        column[:] = [None if value is None else str(value) for value in values]
    else:
        column[:] = list(values)
    return Series(kind, column)


def _plain(series: Series) -> Any:
    """Its values, with None for what is no number."""
    found = np.empty(len(series.values), dtype=object)
    found[:] = [None if isinstance(value, float) and not math.isfinite(value) else value for value in series.tolist()]
    if series.kind == "text":  # a key that the first of several grouping sets rolls up may be of another kind
        found[:] = [value if value is None or isinstance(value, str) else str(value) for value in found]
    return found


def _present(ends: Any) -> Any:
    found = np.empty(len(ends), dtype=object)
    found[:] = [float(each) if math.isfinite(each) else None for each in ends]
    return found


def _fetched(connection: Any, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The rows, a few at a time: a short query may make long ones."""
    ran = connection.execute(sql)
    names, size = [each[0] for each in ran.description], 0
    rows: list[tuple[Any, ...]] = []
    while piece := ran.fetchmany(max(1, _PIECE // len(names))):
        rows += piece
        size += sum(len(value) if isinstance(value, str) else 16 for row in piece for value in row)
        if len(rows) > _MOST_ROWS or size > _LARGEST:
            raise _TooLarge
    return names, rows


def _kind_of(duck: str) -> Kind | None:
    if duck in _WHOLE:
        return "integer"
    if duck in ("DOUBLE", "FLOAT") or duck.startswith("DECIMAL"):
        return "real"
    kinds: dict[str, Kind] = {"VARCHAR": "text", "DATE": "date", "TIMESTAMP": "date", "BOOLEAN": "boolean", '"NULL"': "text"}
    return kinds.get(duck)


def _series(values: Sequence[Any], kind: Kind) -> Series:
    """A column of the result; what is no finite number is missing."""
    if kind == "real":
        numbers = [math.nan if value is None else float(value) for value in values]
        return Series("real", np.array([each if math.isfinite(each) else math.nan for each in numbers], dtype=np.float64))
    if kind == "integer":  # what no column of whole numbers holds is not known: another number would be a false one
        values = [value if value is not None and abs(value) <= _MOST else None for value in values]
        if None not in values:
            return Series("integer", np.array(values, dtype=np.int64))
    if kind == "boolean" and all(value is not None for value in values):
        return Series("boolean", np.array(values, dtype=bool))
    if kind == "date":  # a day outside the years 1 to 9999 comes as a text: no column of days holds it
        values = [None if isinstance(value, str) else value for value in values]
    found = np.empty(len(values), dtype=object)
    found[:] = [value.date() if isinstance(value, datetime.datetime) else value for value in values]
    return Series(kind, found)


def _ends(series: Series, known: Sequence[Any], kind: str) -> tuple[Any, Any]:
    """The ends of the interval of each cell. What is there and exactly what it would be without noise has both at its value, and
    0 where it is of another kind; NaN is "not known"."""
    low, high = (np.full(len(known), math.nan) for _ in range(2))
    for row, (value, told) in enumerate(zip(series.tolist(), known, strict=True)):
        if kind == "number":
            if told is not None and value is not None:
                low[row], high[row] = told["l"], told["h"]
        elif told is True or (kind == "truth" and told is not None and told["f"] + told["n"] + told["t"] == 1):
            low[row] = high[row] = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    return low, high
