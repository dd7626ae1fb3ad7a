"""What a public table holds: its rows as Python values, and the domains that follow from them.

A public table is no secret, so its values may be looked at: the categories, bounds and steps of its columns follow from
them where they are not declared.
"""

# ruff: noqa: S608 - this file writes SQL: names are quoted, everything else is public

import datetime
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cloister.errors import MissingBound, UnsupportedQuery
from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Integer, Real, Text
from cloister.tables.engines.guard import guarded
from cloister.tables.expression.names import quotation
from cloister.tables.sourcing.reading import EPOCH, read_days, read_number, read_plain, read_whole
from cloister.tables.sourcing.source_factory import recognise
from cloister.tables.sourcing.sources import Source, opened_for

_MOST_ROWS = 2_000_000
_MOST_CATEGORIES = 100_000
_MOST_PLACES = 6
_KINDS: dict[str, tuple[type, ...]] = {  # in this order: a truth value is an int in Python
    "boolean": (bool,),
    "integer": (int,),
    "decimal": (float, Decimal),
    "date": (datetime.date,),
    "text": (str,),
}


def read(name: str, source: Source, columns: Sequence[str]) -> list[list[Any]]:
    """The values of some columns, row by row in the order of the source."""
    for column in columns:
        if source.schema[column] == "other":
            raise UnsupportedQuery(
                f"The column {column!r} of the public table {name!r} is not supported",
                why="its type is neither number, text, date nor truth value",
                instead="a table without it",
            )
    readers: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
        "duckdb": lambda: _from_duckdb(source, columns),
        "postgres": lambda: _from_postgres(source, columns),
        "spark": lambda: _from_spark(source, columns),
    }
    rows = guarded(f"The public table {name!r} could not be read", readers[source.engine])
    if len(rows) > _MOST_ROWS:
        raise UnsupportedQuery(
            f"The public table {name!r} is not supported",
            why=f"it has more than {_MOST_ROWS:,} rows",
            instead="its rows for the keys that are asked about",
        )
    return _in_columns(rows, [source.schema[column] for column in columns])


def _in_columns(rows: list[tuple[Any, ...]], kinds: Sequence[str]) -> list[list[Any]]:
    """The rows column by column, numbers of days as days."""
    lists = [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in kinds]
    return [
        [None if value is None else EPOCH + datetime.timedelta(days=value) for value in column] if kind == "days" else column
        for column, kind in zip(lists, kinds, strict=True)
    ]


def _from_duckdb(source: Source, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    with opened_for(source) as connection:
        chosen = []
        for column in columns:
            quoted = quotation(column)
            kind = source.schema[column]
            if kind == "timestamptz":  # as UTC, and without the package that Python's time zones would need
                quoted = f"make_timestamp(epoch_us(CAST({quoted} AS TIMESTAMPTZ)))"
            chosen.append(f"CAST({quoted} AS VARCHAR)" if kind == "text" else quoted)
        relation = source.attach(connection)
        rows = connection.execute(f"SELECT {', '.join(chosen)} FROM {relation} LIMIT {_MOST_ROWS + 1}").fetchall()
        source.detach(connection)
    return list(rows)


def _from_postgres(source: Source, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    from cloister.tables.engines.postgres import PostgresSource, connect, identifier

    assert isinstance(source, PostgresSource)
    chosen = ", ".join(identifier(column) for column in columns)
    with connect(source.conninfo) as connection:
        rows = connection.execute(f"SELECT {chosen} FROM {source.relation} LIMIT {_MOST_ROWS + 1}").fetchall()
    return _through_lists(rows, columns)


def _from_spark(source: Source, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    from cloister.tables.engines.spark import SparkSource

    assert isinstance(source, SparkSource)
    names = {name: f"s{i}" for i, name in enumerate(source.schema)}

    def chosen() -> list[tuple[Any, ...]]:
        frame = source.frame.toDF(*names.values()).select(*(names[column] for column in columns))
        return [tuple(row) for row in frame.limit(_MOST_ROWS + 1).collect()]

    return _through_lists(source.again(chosen), columns)


def _through_lists(rows: list[tuple[Any, ...]], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """Times become days in UTC, and every other odd type what a dictionary of lists makes of it."""
    held = recognise({f"s{i}": column for i, column in enumerate(_in_columns(rows, [""] * len(columns)))})
    return list(zip(*_in_columns(_from_duckdb(held, list(held.schema)), list(held.schema.values())), strict=True))


def domain_of(name: str, column: str, values: Sequence[Any], *, texts: bool) -> Domain:
    """What the values are: whole numbers, decimals, days, truth values or texts. The texts of a CSV file may be any of these, and
    stay texts where their decimals are too fine, as those of places are."""
    present = list(dict.fromkeys(read_plain(value) for value in values if not _missing(value)))
    nullable = any(_missing(value) for value in values)
    written = [str(value) for value in present] if texts else []
    if texts:
        present = _parsed(written)
    kinds = {_kind(value) for value in present}
    if kinds == {"boolean"}:
        return Boolean(nullable=nullable)
    if kinds == {"date"}:
        days = [datetime.date(value.year, value.month, value.day) for value in present]
        return Date(min(days), max(days), nullable=nullable)
    if kinds == {"text"}:
        return _of_texts(present, nullable)
    numbers = [number_of(value) for value in present] if present and kinds <= {"integer", "decimal"} else []
    exact = [number for number in numbers if number is not None]
    digits = range(_MOST_PLACES + 1)
    places = next((each for each in digits if all((number * 10**each).denominator == 1 for number in exact)), None)
    if exact and places is not None and max(map(abs, exact)) * 10**places < 2**49:
        low, high, step = min(exact), max(exact), Fraction(1, 10**places)
        if places == 0:
            return Integer(int(low), int(high), nullable=nullable)
        return Real(low, high if high > low else low + step, step=step, nullable=nullable)
    if written:
        return _of_texts(written, nullable)
    raise MissingBound(
        f"The column {column!r} of the public table {name!r} needs bounds",
        why="its values are not whole numbers, decimals of up to 6 places, days, truth values or texts",
        instead=f'cl.PublicTable(source, columns={{"{column}": cl.Real(0, 100, step="0.01"), …}})',
    )


def _of_texts(texts: list[str], nullable: bool) -> Domain:
    return Text(nullable=nullable) if len(texts) > _MOST_CATEGORIES else Category(sorted(texts), nullable=nullable)


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value)) or (isinstance(value, str) and "\0" in value)


def _kind(value: Any) -> str:
    return next((kind for kind, types in _KINDS.items() if isinstance(value, types)), "other")


def _parsed(texts: list[str]) -> list[Any]:
    """The texts of a CSV column as whole numbers, decimals or days where all of them are; a leading zero is a text's."""
    readers: tuple[Callable[[str], Any], ...] = (_whole, _decimal, _day)
    for read in readers:
        found = [read(text) for text in texts]
        if texts and None not in found:
            return found
    return list(texts)


def _whole(text: str) -> int | None:
    digits = text[1:] if text.startswith("-") else text
    plain = digits.isascii() and digits.isdigit() and len(digits) < 19 and (digits == "0" or digits[0] != "0")
    return int(text) if plain else None


def _decimal(text: str) -> Decimal | None:
    whole, point, places = text.partition(".")
    if _whole(whole) is None and whole != "-0":
        return None
    return Decimal(text) if not point or (places.isascii() and places.isdigit()) else None


def _day(text: str) -> datetime.date | None:
    days = read_days(text) if len(text) == 10 else None
    return None if days is None else EPOCH + datetime.timedelta(days=days)


def number_of(value: Any) -> Fraction | None:
    """The number as it is written: 0.1 is a tenth."""
    whole = read_whole(value)
    if whole is not None:
        return Fraction(whole)
    if isinstance(value, Decimal):
        return Fraction(value) if value.is_finite() else None
    number = read_number(value)
    return None if number is None or not math.isfinite(number) else Fraction(repr(float(number)))
