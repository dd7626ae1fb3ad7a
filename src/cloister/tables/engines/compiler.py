"""From a request to SQL, once for every engine: Ibis is the language and the compiler, never the driver.

A prepared table has columns c0, c1, … of integer codes (text for Text), and with a unit `unit` and `place`. Arithmetic is
widened to 64 bits before it is done, and to 38 decimal digits where the declared bounds could pass 64 bits, so that no row can
make it fail.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.tables.declaring.columns import Domain, Text
from cloister.tables.engines.ibis_compilers import ibis, sql_of
from cloister.tables.engines.request import MOST_ROWS, Aggregate, Aggregation, Key, Strided, check_condition
from cloister.tables.expression.expressions import Expression
from cloister.tables.expression.operations import engine_function
from cloister.tables.expression.scope import RecordingScope, Scope, TemplateScope

RELATION = "cloister_prepared_rows"
DENSE_BITS = 22
_HERE = threading.local()


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """SQL, and how its result columns are to be read: 'code', 'text', 'whole' (fits 64 bits) or 'wide' (decimal text)."""

    sql: str
    reads: tuple[str, ...]
    dense: bool = False
    """Whether it counts rows by a few million keys at most, so that an engine may keep the counts in an array."""
    alone: bool = False
    """Whether the result is one row of whole numbers, since there is no key to group by."""


class Declared(Protocol):
    """What is asked about: a private table, or a relation made of some."""

    @property
    def columns(self) -> Mapping[str, Domain]:
        """What each column may hold."""

    @property
    def unit(self) -> str | None:
        """What a unit is called; None where a row is one."""

    @property
    def max_rows(self) -> int | None:
        """The most rows of one unit."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The prepared form of a table: which of c0, c1, … holds which column."""

    domains: Mapping[str, Domain]
    unit: bool

    def rows(self, dialect: str) -> Any:
        """The Ibis table of the prepared rows; its name stands for wherever an engine keeps them."""
        return ibis.table(self.schema(), name=RELATION)

    def written(self, expression: Any, dialect: str) -> str:
        """The SQL of what was made of `rows`."""
        return sql_of(expression, dialect)

    def schema(self) -> dict[str, str]:
        """Ibis types by prepared name."""
        types = {f"c{i}": storage(domain) for i, domain in enumerate(self.domains.values())}
        return {**types, "unit": "string", "place": "int64"} if self.unit else types

    def scope(self, table: Any, dialect: str, kind: type[Scope] = Scope) -> Scope:
        """What a condition sees."""
        return kind(self.domains, {name: table[f"c{i}"] for i, name in enumerate(self.domains)}, dialect)

    def shape(self, where: Expression | None, dialect: str) -> tuple[str, tuple[int, ...]]:
        """A condition without its numbers, and the numbers; type errors are refused here. The last one of a thread is kept: a
        question has its condition looked at before it is charged, and once more when it is compiled."""
        if where is None:
            return "", ()
        last: tuple[Expression, Mapping[str, Domain], str, tuple[str, tuple[int, ...]]] | None = getattr(_HERE, "shape", None)
        if last is not None and last[0] is where and last[1] is self.domains and last[2] == dialect:
            return last[3]
        check_condition(where)
        scope = RecordingScope(self.domains, dialect)
        found = repr(where.condition(scope)), tuple(scope.numbers)
        _HERE.shape = (where, self.domains, dialect, found)
        return found


def storage(domain: Domain) -> str:
    """The smallest integer type that holds the codes and the code of NULL; string for text.

    >>> from cloister.tables.declaring.columns import Boolean, Integer
    >>> storage(Boolean()), storage(Integer(0, 100_000))
    ('int16', 'int32')
    """
    if isinstance(domain, Text):
        return "string"
    for bits in (16, 32):
        if domain.low_code > -(2 ** (bits - 1)) and domain.null_code < 2 ** (bits - 1):
            return f"int{bits}"
    return "int64"


def check_aggregation(request: Aggregation, declaration: Declared) -> None:
    """Refuses, from declarations alone, whatever no engine would take: unknown columns, wrong types, sums that could overflow.

    People are not counted where a row of the base is a person and a join has made several rows of it: nothing says whose they
    are.

    >>> from cloister.tables import Aggregation, Column, Compare, Integer, Literal, PrivateTable
    >>> people = PrivateTable({"age": [39]}, columns={"age": Integer(0, 120)})
    >>> check_aggregation(Aggregation(None, where=Compare("=", Column("age"), Literal("thirty"))), people)
    Traceback (most recent call last):
    cloister.errors.UnsupportedQuery: ...
    """
    request.check(declaration.columns)
    Layout(declaration.columns, declaration.unit is not None).shape(request.where, "duckdb")
    spread = declaration.unit is None and declaration.max_rows is not None
    if spread and any(aggregate.kind == "units" for aggregate in request.aggregates):
        raise UnsupportedQuery(
            "Counting people is not supported",
            why="a person may have several rows after the join, and no column says whose a row is",
            instead='cl.PrivateTable(…, unit="person", max_rows=1)',
        )


def compile_aggregation(request: Aggregation, layout: Layout, dialect: str, *, markers: bool = False) -> CompiledQuery:
    """The SQL of an aggregation, with markers for the numbers of its condition if asked. First acts the cap, then the
    condition.
    """
    request.check(layout.domains)
    rows, scope = _rows(layout, dialect, request.where, request.max_rows, TemplateScope if markers else Scope)
    keys: dict[str, Any] = {}
    reads: list[str] = []
    for position, key in enumerate(request.keys):
        code, needed = _key(scope, key, missing=request.missing)
        rows = rows if needed is None else rows.filter(needed)
        keys[f"k{position}"] = code
        reads.append("text" if isinstance(key, str) and isinstance(layout.domains[key], Text) else "code")
    measures: dict[str, Any] = {}
    scope = layout.scope(rows, dialect)
    for position, aggregate in enumerate(request.aggregates):
        measure, read = _measure(scope, rows, aggregate, layout, dialect)
        measures[f"a{position}"] = measure
        reads.append(read)
    expression = rows.group_by(**keys).aggregate(**measures) if keys else rows.aggregate(**measures)
    return CompiledQuery(layout.written(expression, dialect), tuple(reads), _dense(request, layout), not keys)


def _dense(request: Aggregation, layout: Layout) -> bool:
    """Decided by declarations alone: one count of rows, and keys whose codes have a few bits together."""
    if [aggregate.kind for aggregate in request.aggregates] != ["rows"]:
        return False
    domains = [(key, layout.domains[key if isinstance(key, str) else key.name]) for key in request.keys]
    sizes = [domain.size if isinstance(key, str) else key.size(domain) for key, domain in domains]
    return all(size is not None for size in sizes) and sum((size or 0).bit_length() for size in sizes) <= DENSE_BITS


def compile_rows(
    columns: tuple[str, ...],
    layout: Layout,
    dialect: str,
    *,
    where: Expression | None = None,
    max_rows: int | None = None,
    unit: bool = False,
) -> CompiledQuery:
    """The SQL of the rows themselves, after the cap: codes with NULL as `null_code`, text as text."""
    rows, scope = _rows(layout, dialect, where, max_rows)
    chosen: dict[str, Any] = {}
    for position, name in enumerate(columns):
        domain = scope.domain(name)
        code = scope.code(name)
        chosen[f"k{position}"] = code if isinstance(domain, Text) else code.cast("int64").fill_null(domain.null_code)
    reads = ["text" if isinstance(layout.domains[name], Text) else "code" for name in columns]
    if unit:
        chosen["unit"] = rows.unit
        reads.append("text")
    return CompiledQuery(layout.written(rows.select(**chosen), dialect), tuple(reads))


def _rows(
    layout: Layout, dialect: str, where: Expression | None, max_rows: int | None, kind: type[Scope] = Scope
) -> tuple[Any, Scope]:
    rows = layout.rows(dialect)
    if max_rows is not None:
        if not layout.unit:
            raise InvalidParameter(
                f"max_rows={max_rows} is invalid", why="one row is one person in this table", instead="max_rows=None"
            )
        rows = rows.filter(rows.place <= max_rows)
    scope = layout.scope(rows, dialect, kind)
    if where is not None:
        rows = rows.filter(where.condition(scope))
        scope = layout.scope(rows, dialect)
    return rows, scope


def _key(scope: Scope, key: str | Key, *, missing: bool) -> tuple[Any, Any]:
    """The Ibis expression of a key, and the condition under which a row is in any group; with `missing` every row is in one."""
    name = key if isinstance(key, str) else key.name
    domain, code = scope.domain(name), scope.code(name)
    grouped = domain.nullable or (missing and not isinstance(domain, Text))
    if isinstance(key, str):
        if grouped:
            return (code if isinstance(domain, Text) else code.fill_null(domain.null_code)), None
        return code, code.notnull()
    if isinstance(key, Strided):
        size = key.size(domain)
        number = _strided(code, domain, key.stride, scope.dialect).cast("int64" if size >= 2**31 else "int32")
        return (number.fill_null(size), None) if grouped else (number, code.notnull())
    starts = key.starts(domain)
    inside = (code >= starts[0]) & (code < starts[-1])
    number = _bin(code, starts, 0, len(starts) - 1)
    if domain.nullable:
        return code.isnull().ifelse(key.size(domain), number), inside | code.isnull()
    return (inside.fill_null(False).ifelse(number, key.size(domain)), None) if missing else (number, inside)


def _strided(code: Any, domain: Domain, stride: int, dialect: str) -> Any:
    """(code - low) // stride, in whole numbers: DuckDB divides those of 32 bits twice as fast as those of 64.

    Elsewhere the remainder is taken off first, so the quotient of doubles is within half of the whole number it stands for,
    however large the codes are.
    """
    low, narrow = domain.low_code, storage(domain) != "int64" and domain.high_code - domain.low_code < 2**31
    kind = "int32" if dialect == "duckdb" and narrow else "int64"
    offset = (code.cast(kind) - ibis.literal(low, kind)).cast(kind) if low else code.cast(kind)
    if stride == 1:
        return offset
    if dialect == "duckdb":
        return engine_function("divide", (kind, kind), kind)(offset, ibis.literal(stride, kind))  # Ibis divides as doubles do
    exact = (offset - offset % stride).cast("float64") / ibis.literal(stride, "int64").cast("float64")
    return exact.round().cast("int64")


def _bin(code: Any, starts: tuple[int, ...], first: int, last: int) -> Any:
    if last - first == 1:
        return ibis.literal(first, "int32")
    middle = (first + last) // 2
    return (code < starts[middle]).ifelse(_bin(code, starts, first, middle), _bin(code, starts, middle, last))


def _measure(scope: Scope, rows: Any, aggregate: Aggregate, layout: Layout, dialect: str) -> tuple[Any, str]:
    codes = [scope.code(name) for name, _ in aggregate.factors]
    if aggregate.kind != "sum":
        counted = [*(codes if aggregate.kind == "values" else ()), *(scope.code(name) for name in aggregate.present)]
        if aggregate.kind == "distinct":
            return (_all_present(counted).ifelse(codes[0], None) if counted else codes[0]).nunique(), "whole"
        if aggregate.kind == "units" and layout.unit:
            return (_all_present(counted).ifelse(rows.unit, None) if counted else rows.unit).nunique(), "whole"
        if len(counted) == 1:
            return counted[0].count(), "whole"
        present = _all_present(counted).ifelse(1, ibis.literal(None, "int32")) if counted else rows
        return present.count(), "whole"
    largest = aggregate.largest(layout.domains)
    wide = largest >= 2**62 or (dialect == "pyspark" and largest * MOST_ROWS >= 2**63)
    product: Any = 1
    for position, (code, (_, offset)) in enumerate(zip(codes, aggregate.factors, strict=True)):
        factor = _shifted(code, offset, wide=wide, alone=len(codes) == 1 and dialect == "duckdb")
        product = product * factor if position else factor
    if aggregate.present:
        product = _all_present([scope.code(name) for name in aggregate.present]).ifelse(product, None)
    total = product.sum() if not wide else product.cast("decimal(38, 0)").sum()
    if largest * MOST_ROWS < 2**63:
        return _fill(total, "int64"), "whole"
    return _fill(total, "string"), "wide"


def _all_present(codes: Sequence[Any]) -> Any:
    present = codes[0].notnull()
    for code in codes[1:]:
        present = present & code.notnull()
    return present


def _shifted(code: Any, offset: int, *, wide: bool, alone: bool) -> Any:
    """code - offset, in 64 bits, or in decimals where the product passes them. DuckDB sums any integer in 128 bits by itself."""
    if offset == 0 and alone and not wide:
        return code
    reaches = abs(offset) >= 2**62  # code and offset of opposite signs could pass 64 bits
    factor = code.cast("decimal(38, 0)" if wide or reaches else "int64")
    if offset == 0:
        return factor
    return factor - ibis.literal(offset).cast(factor.type()) if wide or reaches else factor - offset


def _fill(total: Any, dtype: str) -> Any:
    # the sum's own type is wider than Ibis thinks, so the cast is always written out
    return total.cast("decimal(38, 0)").fill_null(ibis.literal(0).cast("decimal(38, 0)")).cast(dtype)


def preceded(sql: str, named: Sequence[tuple[str, str]]) -> str:
    """The SQL with named queries before it; the names need no quotes, which are others in Spark.

    >>> preceded("SELECT a FROM t", [("t", "SELECT 1 AS a")])
    'WITH t AS (SELECT 1 AS a) SELECT a FROM t'
    """
    if not named:
        return sql
    written = ", ".join(f"{name} AS ({select})" for name, select in named)
    return f"WITH {written}, {sql[5:]}" if sql.startswith("WITH ") else f"WITH {written} {sql}"
