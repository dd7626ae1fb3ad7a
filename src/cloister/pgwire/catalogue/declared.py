"""What the catalogue knows about tables: numbers, types, and their declarations in words. All of it is public."""

from collections.abc import Iterator
from dataclasses import dataclass

from cloister.pgwire.backend import Tables
from cloister.pgwire.types import OF_KIND
from cloister.tables import Category, Domain, Place, PrivateTable, PublicTable

_FIRST_TABLE = 16_384
PROCEDURES = {
    "array_in": 750, "array_recv": 2400, "array_send": 2401, "boolrecv": 2436, "boolsend": 2437, "bpcharrecv": 2430,
    "bpcharsend": 2431, "bytearecv": 2412, "byteasend": 2413, "charrecv": 2434, "charsend": 2435, "date_recv": 2468,
    "date_send": 2469, "float4recv": 2424, "float4send": 2425, "float8recv": 2426, "float8send": 2427, "int2recv": 2404,
    "int2send": 2405, "int4recv": 2406, "int4send": 2407, "int8recv": 2408, "int8send": 2409, "json_recv": 324, "json_send": 325,
    "namerecv": 2422, "namesend": 2423, "numeric_recv": 2460, "numeric_send": 2461, "oidrecv": 2418, "oidsend": 2419,
    "textrecv": 2414, "textsend": 2415, "timestamp_recv": 2474, "timestamp_send": 2475, "timestamptz_recv": 2476,
    "timestamptz_send": 2477, "unknownrecv": 2416, "unknownsend": 2417, "varcharrecv": 2432, "varcharsend": 2433,
}  # fmt: skip
"""The functions that read and write values, with their numbers: by the names, drivers know the types on the wire."""
NAMESPACES = {"pg_catalog": 11, "public": 2200, "information_schema": 13_000}
CLASSES = {
    "pg_type": 1247,
    "pg_attribute": 1249,
    "pg_proc": 1255,
    "pg_class": 1259,
    "pg_authid": 1260,
    "pg_database": 1262,
    "pg_constraint": 2606,
    "pg_namespace": 2615,
    "pg_extension": 3079,
}
_SOURCE_KINDS = {"integer": "int8", "huge": "numeric", "float": "float8", "decimal": "numeric", "boolean": "bool"}
_SOURCE_DATES = {"date": "date", "days": "date", "timestamp": "timestamp", "timestamptz": "timestamptz"}


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the catalogue knows: declarations, and who is connected with which settings."""

    tables: Tables
    user: str
    database: str
    settings: tuple[tuple[str, str], ...] = ()
    cursors: tuple[tuple[object, ...], ...] = ()
    prepared: tuple[tuple[object, ...], ...] = ()

    def numbered(self) -> Iterator[tuple[int, str, PrivateTable | PublicTable]]:
        """The tables with their numbers."""
        for place, name in enumerate(sorted(self.tables)):
            yield _FIRST_TABLE + place, name, self.tables[name]

    def classes(self) -> Iterator[tuple[str, int]]:
        """Every name that `regclass` knows, with its number."""
        yield from CLASSES.items()
        yield from ((name, oid) for oid, name, _ in self.numbered())


def columns_of(table: PrivateTable | PublicTable) -> list[tuple[str, str, bool, str]]:
    """Of each column: its name, its type, whether it may be absent, and what is declared of it.

    >>> import cloister as cl
    >>> columns_of(cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)}))
    [('age', 'int8', False, '17 to 90')]
    """
    if table.columns is None:
        kinds = _SOURCE_KINDS | _SOURCE_DATES
        return [(name, kinds.get(table.source.schema[name], "text"), True, "public") for name in table.names]
    return [(name, type_of(domain), domain.nullable, in_words(domain)) for name, domain in table.columns.items()]


def type_of(domain: Domain) -> str:
    """The type on the wire of a declared column.

    >>> from cloister.tables import Real
    >>> type_of(Category([1, 2])), type_of(Real(0, 1))
    ('int8', 'float8')
    """
    if isinstance(domain, Category):
        first = domain.options[0]
        return "bool" if isinstance(first, bool) else "int8" if isinstance(first, int) else "text"
    return "timestamp" if domain.kind == "moment" else OF_KIND.get(domain.kind, "text")  # type: ignore[call-overload]


def in_words(domain: Domain) -> str:
    """What is declared of a column, in a line.

    >>> from cloister.tables import Date
    >>> in_words(Category(["F", "M"])), in_words(Date("1900-01-01", "2026-12-31"))
    ('one of F, M', '1900-01-01 to 2026-12-31')
    """
    told = domain.describe()
    if isinstance(domain, Category):
        shown = ", ".join(str(option) for option in domain.options[:12])
        return f"one of {shown}" + (f" and {len(domain.options) - 12} more" if len(domain.options) > 12 else "")
    if isinstance(domain, Place):
        within = f"in one of {len(domain.regions)} regions" if domain.regions else f"in the box {', '.join(told['box'])}"
        return f"a place {within}"
    if "low" in told:
        step = f" in steps of {told['step']}" if "step" in told else ""
        return f"{told['low']} to {told['high']}{step}"
    return {"boolean": "true or false", "identifier": "an identifier: its values are private"}.get(
        told["kind"], "text: its values are private"
    )


def about(table: PrivateTable | PublicTable) -> str:
    """What a table is, in a line.

    >>> import cloister as cl
    >>> about(cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)}, population="staff"))
    "private: each row is one person; population 'staff'"
    """
    if isinstance(table, PublicTable):
        return "public: no protection and no cost"
    whose = "each row is one person" if table.unit is None else f"rows of one {table.unit!r} that count: {table.max_rows} at most"
    return f"private: {whose}" + (f"; population {table.population!r}" if table.population else "")
