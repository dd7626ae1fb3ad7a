"""What an owner declares of a table: its source, its columns, whose row a row is, and whose budget pays.

Everything wrong with a declaration is found here, from the names and kinds of the source's columns; no row is looked at.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cloister.errors import InvalidDeclaration, MissingBound, undeclared
from cloister.printable import LONGEST_NAME, LONGEST_VALUE, is_printable, is_text, shown
from cloister.tables.declaring.columns import Category, Domain, Identifier
from cloister.tables.declaring.during import DATED, During, kind_in
from cloister.tables.declaring.places import Place
from cloister.tables.engines.abilities import Abilities
from cloister.tables.sourcing.source_factory import recognise
from cloister.tables.sourcing.sources import Source

_TERMS = ("unit", "max_rows", "population", "size", "version", "through", "during")
"""What is declared of a table besides its columns."""
_NUMBERS = ("integer", "huge", "float", "decimal", "text", "null")
_FITS = {
    "integer": _NUMBERS,
    "real": _NUMBERS,
    "text": ("text", "null"),
    "date": DATED,
    "moment": DATED,
    "boolean": ("boolean", "integer", "float", "text", "null"),
}
_WORDS = {
    "integer": "whole numbers",
    "huge": "whole numbers",
    "float": "numbers",
    "decimal": "decimal numbers",
    "text": "text",
    "boolean": "truth values",
    "date": "dates",
    "days": "dates",
    "timestamp": "times",
    "timestamptz": "times",
    "other": "a type that no declaration fits",
}


class PrivateTable:
    """A table whose rows are protected. Declarations are public; rows are not.

    Parameters
    ----------
    source: a path (CSV, Parquet), a dictionary of lists, a pandas / polars / Arrow frame, an Ibis table, a Spark data frame,
        or "postgresql://user@host:port/database::schema.table". One line of a CSV file is one row, quotes or not: a field that
        holds a line end belongs in Parquet. In a file with semicolons between fields, numbers may have a decimal comma;
        in any, days may be written 31.12.2026.
    columns: what each column may hold; columns of the source that are not declared cannot be asked about.
    unit: None when one row is one person; else the column that says whose row it is (declared or not).
    max_rows: with a unit, how many rows of one person may count (promise 4). Which rows count is fixed by the version's secret.
    population: whose budget pays. Tables about the same people give the same name; None is a population of its own.
    size: a public hint of the number of rows, for margins said in advance.
    version: the owner's own name of this state of the rows; None draws a random one.
    through: "visits.visit" where `unit` does not name people but the values of another private table's column, declared there
        as `Identifier()`. Then `max_rows` counts the rows of one such value, and the table is asked about through a join with
        the other one. A row belongs to every person who has its value there: removing a person removes the rows that are
        nobody else's.
    during: `("visited", "2026-01-01", "2026-03-31")`: only the rows whose day in this column of the source (declared or not) lies
        within these days are rows of this table. A row without a day, or with another, is never read: it counts for nothing, and
        against no cap.
    row_is_person: says that each row is all of one person although a column is declared as `Identifier()`: without a unit, a
        table of events would protect one event each, and so it is warned of.

    >>> people = PrivateTable({"age": [39, 51], "sex": ["F", "M"]}, columns={"sex": Category(["F", "M"])})
    >>> people.columns["sex"].size
    2
    """

    __slots__ = ("__weakref__", "columns", "during", "max_rows", "population", "size", "source", "through", "unit", "version")

    source: Source
    columns: Mapping[str, Domain]
    during: During | None
    unit: str | None
    max_rows: int | None
    population: str | None
    size: int | None
    version: str | None
    through: str | None

    def __init__(
        self,
        source: Any,
        columns: Mapping[str, Domain],
        unit: str | None = None,
        max_rows: int | None = None,
        population: str | None = None,
        size: int | None = None,
        version: str | None = None,
        *,
        through: str | None = None,
        during: During | Sequence[Any] | None = None,
        row_is_person: bool = False,
    ) -> None:
        given = [source]
        del source  # whoever prints the names in the frames of a refusal must not find the rows
        check_printable(columns, unit=unit, population=population, version=version, through=through)
        self._declare(given.pop(), columns, unit, max_rows, population, size, version, through, during)
        if not row_is_person:
            try:
                check_events(columns, unit)
            except InvalidDeclaration as asked:
                text = f"A table is declared with a row for each person: {asked.why}. Instead: {asked.instead}"
                warnings.warn(text, UserWarning, stacklevel=2)

    def _declare(
        self,
        source: Any,
        columns: Mapping[str, Domain],
        unit: str | None,
        max_rows: int | None,
        population: str | None,
        size: int | None,
        version: str | None,
        through: str | None,
        during: During | Sequence[Any] | None,
    ) -> None:
        given = [source]
        del source
        held = recognise(given.pop()).read_under(kinds_under(columns, unit, during))
        _check_columns(columns, held)
        _check_unit(unit, max_rows, held)
        for name, text in (("population", population), ("version", version)):
            if text is not None and (not isinstance(text, str) or not text or "\0" in text):
                raise InvalidDeclaration(f"{name}={text!r} is invalid", why="it must be a name", instead=f'{name}="patients"')
        if size is not None:
            _positive("size", size)
        if through is not None:
            _check_through(through, unit)
        span = None if during is None else During.of(during, held)
        values = (MappingProxyType(dict(columns)), span, max_rows, population, size, held, through, unit, version)
        for slot, value in zip(PrivateTable.__slots__[1:], values, strict=True):
            object.__setattr__(self, slot, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"PrivateTable is frozen: {name} cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"PrivateTable is frozen: {name} cannot be removed")

    @classmethod
    def from_metadata(
        cls, source: Any, metadata: str | Path | Mapping[str, Any], table: str | None = None, **further: Any
    ) -> PrivateTable:
        """A table as SmartNoise's metadata declares it: a YAML file, its text, or the mapping that it holds.

        `further` are arguments of `PrivateTable` that add to it or take its place (`population=`, `max_rows=`; `columns=` adds
        columns, such as categories, which the metadata cannot list). What has no counterpart is said in a warning.

        >>> people = {"": {"s": {"people": {"row_privacy": True, "age": {"type": "int", "lower": 0, "upper": 120}}}}}
        >>> PrivateTable.from_metadata({"age": [39, 51]}, people).columns
        mappingproxy({'age': Integer(low=0, high=120, nullable=False)})
        """
        from cloister.tables.declaring.metadata import read_metadata

        given = [source]
        del source
        found = read_metadata(metadata, table)
        for note in found.notes:
            warnings.warn(note, UserWarning, stacklevel=2)
        arguments = found.arguments()
        arguments["columns"] |= dict(further.pop("columns", {}))
        return cls(given.pop(), **{**arguments, **further})

    @classmethod
    def declared(
        cls, source: Any, columns: Mapping[str, Domain], *, like: PrivateTable | None = None, **terms: Any
    ) -> PrivateTable:
        """A table whose names and rows were asked about when it was first declared: one that is kept, or that is made of another
        (`like`).

        An older version took names and categories that are not printable. What was declared then stays as it was declared.

        >>> people = PrivateTable({"age": [39]}, columns={"age": Category([39])}, population="staff")
        >>> PrivateTable.declared({"age": [51]}, people.columns, like=people, version="copy").population
        'staff'
        """
        given = [source]
        del source
        whole = dict.fromkeys(_TERMS) if like is None else {name: getattr(like, name) for name in _TERMS}
        table = cls.__new__(cls)
        table._declare(given.pop(), columns, **{**whole, **terms})
        return table

    def column(self, name: str) -> Domain:
        """The declaration of a column; an unknown name is refused with the names that exist.

        >>> PrivateTable({"age": [39]}, columns={"age": Category([39])}).column("age")
        Category([39])
        """
        if not isinstance(name, str) or name not in self.columns:
            raise undeclared(name, self.columns)
        return self.columns[name]

    @property
    def abilities(self) -> Abilities:
        """What the engine that holds the rows can be asked."""
        return self.source.abilities

    def describe(self) -> dict[str, Any]:
        """The declaration as plain data, in a form that a digest can be taken of. Holds nothing of the rows or of the source's
        place.

        >>> PrivateTable({"age": [39]}, columns={"age": Category([39])}, population="staff").describe()["population"]
        'staff'
        """
        described: dict[str, Any] = {
            "columns": {name: domain.describe() for name, domain in self.columns.items()},
            "unit": self.unit,
            "max_rows": self.max_rows,
            "population": self.population,
            "size": self.size,
            "version": self.version,
            "source": self.source.describe(),
        }
        if self.through is not None:
            described["through"] = self.through
        if self.during is not None:
            described["during"] = self.during.plain()
        return described

    def __repr__(self) -> str:
        columns = ", ".join(f"{name!r}: {domain!r}" for name, domain in self.columns.items())
        unit = f", unit={self.unit!r}, max_rows={self.max_rows}" if self.unit is not None else ""
        unit += f", through={self.through!r}" if self.through is not None else ""
        unit += f", during={tuple(self.during.plain())!r}" if self.during is not None else ""
        return f"PrivateTable(<{self.source.describe()}>, columns={{{columns}}}{unit})"


class PublicTable:
    """A table with no protection and no cost: reference data that anybody may see.

    >>> towns = PublicTable({"town": ["Delft", "Gouda"], "people": [106_000, 76_000]})
    >>> towns.names
    ('town', 'people')
    """

    __slots__ = ("__weakref__", "columns", "source")

    source: Source
    columns: Mapping[str, Domain] | None

    def __init__(self, source: Any, columns: Mapping[str, Domain] | None = None) -> None:
        given = [source]
        del source
        held = recognise(given.pop()).read_under(kinds_under(columns, None, None))
        if columns is not None:
            check_printable(columns)
            _check_columns(columns, held)
            for name, domain in columns.items():
                if isinstance(domain, Place):
                    raise InvalidDeclaration(
                        f"Column {name!r} is invalid", why="places of a public table are not read", instead="cl.Real(-180, 180)"
                    )
        object.__setattr__(self, "source", held)
        object.__setattr__(self, "columns", None if columns is None else MappingProxyType(dict(columns)))

    @property
    def abilities(self) -> Abilities:
        """What the engine that holds the rows can be asked."""
        return self.source.abilities

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"PublicTable is frozen: {name} cannot be changed")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.source.schema if self.columns is None else self.columns)

    def describe(self) -> dict[str, Any]:
        """Names and kinds, as plain data."""
        return {
            "columns": None if self.columns is None else {name: domain.describe() for name, domain in self.columns.items()},
            "schema": {name: self.source.schema[name] for name in self.names},
            "source": self.source.describe(),
        }

    def __repr__(self) -> str:
        return f"PublicTable(<{self.source.describe()}>, {', '.join(map(repr, self.names))})"


def check_printable(columns: object, **names: object) -> None:
    """Refuse a declaration whose names or categories can't be printed: an answer about them could not be shown. What is no
    declaration at all is refused elsewhere.

    >>> check_printable({"a\\u202eb": Category(["F", "M"])})
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: The column 'a\\u202eb' is invalid: a name has 1 to 200 characters, all of them printable.
      Instead: rename the column in the source: a⟨U+202E⟩b
    """
    for name, domain in columns.items() if isinstance(columns, Mapping) else ():
        if isinstance(name, str) and not is_text(name):
            raise InvalidDeclaration(
                f"The column {name[:LONGEST_NAME]!r} is invalid",
                why=f"a name has 1 to {LONGEST_NAME} characters, all of them printable",
                instead=f"rename the column in the source: {shown(name[:LONGEST_NAME])}" if name.strip() else '"age"',
            )
        options = domain.options if isinstance(domain, Category) else ()
        texts = [each for each in options if isinstance(each, str)]
        wrong = next((each for each in texts if len(each) > LONGEST_VALUE or not is_printable(each, lines=True)), None)
        if wrong is not None:
            raise InvalidDeclaration(
                f"The categories of {name!r} are invalid",
                why=f"{wrong[:LONGEST_NAME]!r} is longer than {LONGEST_VALUE} characters, or holds one that is not printable",
                instead=f"another spelling in the source, or the column as cl.Text(): {shown(wrong[:LONGEST_NAME])}",
            )
    for title, text in names.items():
        if isinstance(text, str) and text and not is_text(text):
            raise InvalidDeclaration(
                f"{title}={text[:LONGEST_NAME]!r} is invalid",
                why=f"a name has 1 to {LONGEST_NAME} characters, all of them printable",
                instead=f'{title}="patients"',
            )


def _check_columns(columns: Mapping[str, Domain], source: Source) -> None:
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidDeclaration(
            "The table is invalid", why="it declares no columns", instead='columns={"age": cl.Integer(0, 120)}'
        )
    for name, domain in columns.items():
        if isinstance(domain, type) or not isinstance(domain, Domain):
            why = f"{getattr(domain, '__name__', type(domain).__name__)} is not a declaration"  # not what may be rows
            raise InvalidDeclaration(f"Column {name!r} is invalid", why=why, instead=f'"{name}": cl.Integer(0, 120)')
        if isinstance(domain, Place):
            _check_place(name, domain, source)
            continue
        kind = kind_in(f"Column {name!r} is unknown", name, source, instead="the name as the source writes it")
        if kind not in _accepted(domain):
            raise _unfit(name, domain, kind, f'"{name}": {_suggestion(kind)}')


def _check_place(name: str, domain: Place, source: Source) -> None:
    for title, column in (("longitude", domain.longitude), ("latitude", domain.latitude)):
        instead = f'"{name}": cl.Place(…, {title}="…")'
        kind = kind_in(f"Column {column!r} is unknown", column, source, instead=instead)
        if kind not in _NUMBERS:
            raise _unfit(column, domain, kind, instead)


def _unfit(column: str, domain: Domain, kind: str, instead: str) -> InvalidDeclaration:
    why = f"it is declared {domain.kind} and the source holds {_WORDS.get(kind, kind)}"
    return InvalidDeclaration(f"Column {column!r} is invalid", why=why, instead=instead)


def _accepted(domain: Domain) -> tuple[str, ...]:
    if isinstance(domain, Identifier):
        return _NUMBERS
    if isinstance(domain, Category):
        first = domain.options[0]
        return _FITS["boolean"] if isinstance(first, bool) else _NUMBERS if isinstance(first, int) else _FITS["text"]
    return _FITS[domain.kind]


def kinds_under(columns: object, unit: object, during: object) -> dict[str, set[str]]:
    """Which kinds each column that is named may have; whatever is wrong with the names is refused elsewhere. What names
    people or events is neither a decimal number nor a day: its texts stay as they are."""
    asked: list[tuple[object, Iterable[str]]] = [(unit, {"null", *_WORDS} - {"other", "decimal", "date"})]
    if isinstance(columns, Mapping):
        for name, domain in columns.items():
            if isinstance(domain, Place):
                asked += [(domain.longitude, _NUMBERS), (domain.latitude, _NUMBERS)]
            elif isinstance(domain, Domain):
                named = {"decimal"} if isinstance(domain, Identifier) else set()
                asked.append((name, {*_accepted(domain), *(("whole",) if domain.kind == "integer" else ())} - named))
    if isinstance(during, During):
        asked.append((during.column, DATED))
    elif isinstance(during, Sequence) and len(during) == 3:
        asked.append((during[0], DATED))
    found: dict[str, set[str]] = {}
    for name, kinds in asked:
        if isinstance(name, str):
            found[name] = found.get(name, set(kinds)) & set(kinds)
    return found


def _suggestion(kind: str) -> str:
    return {
        "text": 'cl.Category(["…"])',
        "boolean": "cl.Boolean()",
        **dict.fromkeys(("date", "days", "timestamp", "timestamptz"), 'cl.Date("1900-01-01", "2026-12-31")'),
        "other": "leave this column out",
    }.get(kind, "cl.Real(0, 100)")


def events_of(columns: Mapping[str, Domain], unit: str | None) -> list[str]:
    """The identifiers of a table whose rows are each said to be one person: they may name events of which a person has several.

    >>> events_of({"visit": Identifier(), "sex": Category(["F", "M"])}, None), events_of({"visit": Identifier()}, "patient")
    (['visit'], [])
    """
    return [] if unit is not None else [name for name, domain in columns.items() if isinstance(domain, Identifier)]


def check_events(columns: Mapping[str, Domain], unit: str | None) -> None:
    """Refuse what has to be said by name before a table opens: that each row is all of one person.

    >>> check_events({"visit": Identifier()}, None)
    Traceback (most recent call last):
    cloister.errors.InvalidDeclaration: The unit is invalid: 'visit' may name events, and without a unit each row counts as one
    person: somebody with several rows is protected in one at a time.
      Instead: unit="person", max_rows=10; or row_is_person=True if each row is all of one person
    """
    names = ", ".join(map(repr, events_of(columns, unit)))
    if names:
        raise InvalidDeclaration(
            "The unit is invalid",
            why=f"{names} may name events, and without a unit each row counts as one person: somebody with several rows is "
            "protected in one at a time",
            instead='unit="person", max_rows=10; or row_is_person=True if each row is all of one person',
        )


def _check_unit(unit: str | None, max_rows: int | None, source: Source) -> None:
    if unit is None:
        if max_rows is not None:
            raise InvalidDeclaration(
                f"max_rows={max_rows!r} is invalid",
                why="without a unit one row is one person",
                instead='unit="person", max_rows=10',
            )
        return
    instead = "the name of the column that says whose row it is"
    if kind_in(f"unit={unit!r} is unknown", unit, source, instead=instead) == "other":
        raise InvalidDeclaration(
            f"unit={unit!r} is invalid", why="its type cannot name a person", instead="a column of text or numbers"
        )
    if max_rows is None:
        raise MissingBound(
            f"unit={unit!r} needs max_rows=",
            why="how many rows of one person may count is not declared",
            instead=f'unit="{unit}", max_rows=10',
        )
    _positive("max_rows", max_rows)


def _check_through(through: object, unit: str | None) -> None:
    if not isinstance(through, str) or not all(part and "\0" not in part for part in through.rpartition(".")):
        raise InvalidDeclaration(
            f"through={through!r} is invalid", why="it names no column of another table", instead='through="visits.visit"'
        )
    if unit is None:
        raise InvalidDeclaration(
            f"through={through!r} is invalid",
            why="no column of this table holds the values to be looked up",
            instead=f'through="{through}", unit="visit", max_rows=10',
        )


def _positive(name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or number <= 0 or number > 2**31 - 1:
        raise InvalidDeclaration(
            f"{name}={number!r} is invalid", why="it must be a whole number from 1 to 2^31-1", instead=f"{name}=10"
        )
