"""Statements that are made once and run by the database's driver itself, for what every question asks or writes.

SQLAlchemy takes several times as long to send such a statement as SQLite to answer it. Here it writes the SQL and says how values
go in and come out, once for each kind of database; what is left for each run is the driver's own call. There are no objects, no
defaults and no events here: who uses such a statement names every value.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Dialect, Insert, Select, Update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.sql import CompoundSelect
from sqlalchemy.sql.compiler import SQLCompiler

_Wanted: TypeAlias = "Select[Any] | CompoundSelect[*tuple[Any, ...]] | Insert | Update"


class _Written(NamedTuple):
    """A statement as one kind of database takes it."""

    sql: str
    place: tuple[str, ...] | None
    """The names of the values in their order, where the driver is told them by place."""
    given: Mapping[str, Any]
    """The values that are written in the statement itself."""
    into: tuple[tuple[str, Callable[[Any], Any]], ...]
    """What is done to a value on its way in, by name."""
    out_of: tuple[tuple[int, Callable[[Any], Any]], ...]
    """What is done to the columns of a row on their way out, by place."""
    row: Callable[[Any], Any]


class Statement:
    """One statement, whose values are given by name.

    >>> from sqlalchemy import bindparam, literal, select
    >>> from cloister.hub.database import Database
    >>> twice = Statement(select((bindparam("number", type_=literal(1).type) * 2).label("twice")))
    >>> with Database("sqlite://").looking() as db:
    ...     [row] = twice.rows(db, {"number": 21})
    >>> row.twice
    42
    """

    def __init__(self, wanted: _Wanted) -> None:
        self._wanted = wanted
        self._written: dict[str, _Written] = {}

    def rows(self, connection: Connection, values: Mapping[str, Any] | None = None) -> list[Any]:
        """The rows of a question, each with its columns by name."""
        written = self._written.get(connection.dialect.name) or self._write(connection.dialect)
        try:
            driver: Any = connection.connection.driver_connection
            found = driver.execute(written.sql, _values(written, values or {})).fetchall()
        except connection.dialect.loaded_dbapi.Error as error:
            raise _told(error, connection) from None
        if not written.out_of:
            return list(map(written.row, found))
        rows = []
        for row in found:
            told = list(row)
            for place, way in written.out_of:
                told[place] = way(told[place])
            rows.append(written.row(told))
        return rows

    def run(self, connection: Connection, *values: Mapping[str, Any]) -> None:
        """A change: once for each of these values."""
        written = self._written.get(connection.dialect.name) or self._write(connection.dialect)
        driver: Any = connection.connection.driver_connection
        try:
            if len(values) == 1:
                driver.execute(written.sql, _values(written, values[0]))
            elif values:
                driver.cursor().executemany(written.sql, [_values(written, each) for each in values])
        except connection.dialect.loaded_dbapi.Error as error:
            raise _told(error, connection) from None

    def _write(self, dialect: Dialect) -> _Written:
        written = self._written[dialect.name] = _write(self._wanted, dialect)
        return written


def _told(error: Exception, connection: Connection) -> Exception:
    """A failure of the driver in the class that SQLAlchemy gives it; its words stay in it, without the values."""
    dialect, driver = connection.dialect, connection.connection.driver_connection
    lost = dialect.is_disconnect(error, driver, None)  # type: ignore[arg-type]
    family = dialect.loaded_dbapi.Error
    found = DBAPIError.instance(None, None, error, family, connection_invalidated=lost, dialect=dialect)
    assert isinstance(found, Exception)
    return found


def _values(written: _Written, values: Mapping[str, Any]) -> Any:
    if written.into or written.given:
        values = {**written.given, **values}
        for name, way in written.into:
            values[name] = way(values[name])
    return values if written.place is None else list(map(values.__getitem__, written.place))


def _write(wanted: _Wanted, dialect: Dialect) -> _Written:
    compiled: SQLCompiler = wanted.compile(dialect=dialect)
    if compiled.post_compile_params or compiled.literal_execute_params:
        raise TypeError("a statement that is written anew for its values is not one to keep")
    into = []
    given = {name: value.effective_value for name, value in compiled.binds.items() if not value.required}
    if isinstance(wanted, Insert):
        given = {}  # the columns, which are all named
    for name, value in compiled.binds.items():
        way = value.type.dialect_impl(dialect).bind_processor(dialect)
        if way is not None:
            into.append((name, way))
    out_of: list[tuple[int, Callable[[Any], Any]]] = []
    row: Callable[[Any], Any] = tuple
    if not isinstance(wanted, Insert | Update):
        columns = wanted.selected_columns
        ways = [each.type.dialect_impl(dialect).result_processor(dialect, None) for each in columns]
        out_of = [(number, way) for number, way in enumerate(ways) if way is not None]
        kind: Any = collections.namedtuple("Row", [each.key for each in columns])  # type: ignore[misc]
        row = kind._make
    place = tuple(compiled.positiontup) if compiled.positiontup is not None else None
    return _Written(str(compiled), place, given, tuple(into), tuple(out_of), row)
