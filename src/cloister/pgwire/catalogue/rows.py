"""The rows of the catalogue: declarations in the shape of PostgreSQL's tables.

Sizes of private tables are not known here, so none is told.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cloister.pgwire.catalogue.declared import CLASSES, NAMESPACES, PROCEDURES, Facts, about, columns_of
from cloister.pgwire.catalogue.relations import PG
from cloister.pgwire.types import FORMATS, TYPES

Row = Mapping[str, Any]

_OWNER, _DATABASE = 10, 16_000
_CATEGORIES = {"bool": "B", "date": "D", "timestamp": "D", "timestamptz": "D", "json": "U", "bytea": "U", "char": "Z"}
_NUMBERS = ("int2", "int4", "int8", "float4", "float8", "numeric", "oid")


def _all(names: str, value: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


_CLASS = {
    **_all("reltype reloftype relfilenode reltablespace relpages relallvisible reltoastrelid relchecks relrewrite", 0),
    **_all("relhasindex relisshared relhasrules relhastriggers relhassubclass relrowsecurity relforcerowsecurity", False),
    **_all("relispartition", False),
    **_all("relispopulated", True),
    **_all("relowner", _OWNER),
    **_all("relam", 2),
    **_all("reltuples", -1),
    **_all("relpersistence", "p"),
    **_all("relkind", "r"),
    **_all("relreplident", "d"),
    **_all("relnamespace", NAMESPACES["public"]),
}
_ATTRIBUTE = {
    **_all("attndims attinhcount attcollation", 0),
    **_all("attstattarget attcacheoff atttypmod", -1),
    **_all("atthasdef atthasmissing attisdropped", False),
    **_all("attislocal", True),
    **_all("attidentity attgenerated attcompression", ""),
    **_all("attalign", "d"),
}
_TYPE = {
    **_all("typrelid typbasetype typndims typcollation typsubscript typinput typoutput", 0),
    **_all("typtypmod", -1),
    **_all("typisdefined", True),
    **_all("typnotnull", False),
    **_all("typtype", "b"),
    **_all("typdelim", ","),
    **_all("typalign", "d"),
    **_all("typowner", _OWNER),
    **_all("typnamespace", NAMESPACES["pg_catalog"]),
}
_COLUMN = {
    **_all("is_self_referencing is_identity is_updatable", "NO"),
    **_all("is_generated", "NEVER"),
    **_all("table_schema", "public"),
    **_all("udt_schema", "pg_catalog"),
}


def _namespaces(_: Facts) -> Iterator[Row]:
    for name, oid in NAMESPACES.items():
        yield {"oid": oid, "nspname": name, "nspowner": _OWNER}


def _classes(facts: Facts) -> Iterator[Row]:
    for oid, name, table in facts.numbered():
        yield {**_CLASS, "oid": oid, "relname": name, "relnatts": len(columns_of(table))}


def _attributes(facts: Facts) -> Iterator[Row]:
    for oid, _, table in facts.numbered():
        for place, (name, kind, nullable, _) in enumerate(columns_of(table), start=1):
            size = TYPES[kind].size
            own = {"attrelid": oid, "attnum": place, "attname": name, "atttypid": TYPES[kind].oid, "attlen": size}
            yield {**_ATTRIBUTE, **own, "attnotnull": not nullable, "attbyval": size > 0, "attstorage": "p" if size > 0 else "x"}


def _types(_: Facts) -> Iterator[Row]:
    arrays = {each.element: each.oid for each in TYPES.values() if each.element}
    for each in TYPES.values():
        name = f"_{each.element}" if each.element else each.name
        category = "A" if each.element else "N" if name in _NUMBERS else _CATEGORIES.get(name, "S")
        yield {
            **_TYPE,
            "oid": each.oid,
            "typname": name,
            "typlen": each.size,
            "typbyval": 0 < each.size <= 8,
            "typcategory": category,
            "typispreferred": name in ("text", "float8", "bool"),
            "typelem": TYPES[each.element].oid if each.element else 0,
            "typinput": PROCEDURES["array_in"] if each.element else 0,
            "typreceive": _procedure("array" if each.element else name, "recv"),
            "typsend": _procedure("array" if each.element else name, "send"),
            "typarray": arrays.get(each.name, 0),
            "typstorage": "x" if each.size < 0 else "p",
        }


def _procedure(name: str, does: str) -> int:
    return PROCEDURES.get(f"{name}{does}") or PROCEDURES[f"{name}_{does}"]


def _procedures(_: Facts) -> Iterator[Row]:
    fixed = {"pronamespace": NAMESPACES["pg_catalog"], "proowner": _OWNER, "prokind": "f", "pronargs": 1, "proretset": False}
    return ({**fixed, "oid": oid, "proname": name} for name, oid in PROCEDURES.items())


def _databases(facts: Facts) -> Iterator[Row]:
    fixed = {**_all("datcollate datctype", "C.UTF-8"), **_all("datallowconn", True), **_all("datistemplate", False)}
    own = {"oid": _DATABASE, "datname": facts.database, "datdba": _OWNER, "dattablespace": 1663}
    yield {**fixed, **own, "encoding": 6, "datlocprovider": "c", "datconnlimit": -1}


def _roles(facts: Facts) -> Iterator[Row]:
    fixed = {
        **_all("rolsuper rolcreaterole rolcreatedb rolreplication rolbypassrls", False),
        **_all("rolinherit rolcanlogin", True),
    }
    yield {**fixed, "oid": _OWNER, "rolname": facts.user, "rolconnlimit": -1}


def _users(facts: Facts) -> Iterator[Row]:
    yield {**_all("usecreatedb usesuper userepl usebypassrls", False), "usename": facts.user, "usesysid": _OWNER}


def _descriptions(facts: Facts) -> Iterator[Row]:
    for oid, _, table in facts.numbered():
        told = [about(table), *(words for _, _, _, words in columns_of(table))]
        for place, words in enumerate(told):
            yield {"objoid": oid, "classoid": CLASSES["pg_class"], "objsubid": place, "description": words}


def _pg_tables(facts: Facts) -> Iterator[Row]:
    for _, name, _ in facts.numbered():
        own = {"schemaname": "public", "tablename": name, "tableowner": facts.user}
        yield {**_all("hasindexes hasrules hastriggers rowsecurity", False), **own}


def _settings(facts: Facts) -> Iterator[Row]:
    told = {topic: what for topic, what, _ in _HELP}
    for name, value in facts.settings:
        yield {
            "short_desc": told.get(name),
            "name": name,
            "context": "user",
            "vartype": "string",
            **_all("setting boot_val reset_val", value),
        }


def _schemata(facts: Facts) -> Iterator[Row]:
    for name in NAMESPACES:
        yield {"catalog_name": facts.database, "schema_name": name, "schema_owner": facts.user}


def _tables(facts: Facts) -> Iterator[Row]:
    for _, name, _ in facts.numbered():
        own = {"table_catalog": facts.database, "table_schema": "public", "table_name": name, "table_type": "BASE TABLE"}
        yield {**own, **_all("is_insertable_into is_typed", "NO")}


def _columns(facts: Facts) -> Iterator[Row]:
    digits = {"int8": (64, 2, 0), "float8": (53, 2, None)}
    for _, table, declared in facts.numbered():
        for place, (name, kind, nullable, _) in enumerate(columns_of(declared), start=1):
            precision, radix, scale = digits.get(kind, (None, None, None))
            yield {
                **_COLUMN,
                **_all("table_catalog udt_catalog", facts.database),
                "table_name": table,
                "column_name": name,
                "ordinal_position": place,
                "is_nullable": "YES" if nullable else "NO",
                "data_type": FORMATS.get(kind, kind),
                "numeric_precision": precision,
                "numeric_precision_radix": radix,
                "numeric_scale": scale,
                "udt_name": kind,
                "dtd_identifier": str(place),
            }


def _one(**values: Any) -> Callable[[Facts], Iterator[Row]]:
    return lambda _: iter([values])


_ROWS: dict[str, Callable[[Facts], Iterator[Row]]] = {
    "pg_am": _one(oid=2, amname="heap", amhandler=3, amtype="t"),
    "pg_attribute": _attributes,
    "pg_class": _classes,
    "pg_cursors": lambda facts: (dict(zip(PG["pg_cursors"], row, strict=True)) for row in facts.cursors),
    "pg_database": _databases,
    "pg_description": _descriptions,
    "pg_namespace": _namespaces,
    "pg_prepared_statements": lambda facts: (dict(zip(PG["pg_prepared_statements"], row, strict=True)) for row in facts.prepared),
    "pg_proc": _procedures,
    "pg_roles": _roles,
    "pg_settings": _settings,
    "pg_tables": _pg_tables,
    "pg_tablespace": _one(oid=1663, spcname="pg_default", spcowner=_OWNER),
    "pg_type": _types,
    "pg_user": _users,
}
_INFORMATION_ROWS = {
    "character_sets": _one(character_set_name="UTF8"),
    "schemata": _schemata,
    "tables": _tables,
    "columns": _columns,
}
_HELP = (
    (
        "ask",
        "A SELECT of counts, sums, means and quantiles. It is answered once a spend is set.",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    ),
    ("explain", "The expected margins of error and the cost. Nothing is spent.", "EXPLAIN SELECT AVG(age) FROM people"),
    (
        "copy",
        "The rows of an answer as a stream: text, csv or binary.",
        "COPY (SELECT COUNT(*) FROM people) TO STDOUT (FORMAT csv, HEADER)",
    ),
    ("run", "An algorithm near a data set, at a spend.", "SELECT * FROM cloister.run('middle', 'people', '0.1')"),
    ("tables", "What you may ask about, as declared. Rows are never shown.", "SELECT table_name FROM information_schema.tables"),
    ("cloister.spend", "What each answer from here on may cost. Without it nothing new is asked.", "SET cloister.spend = '0.1'"),
    ("cloister.within", "Instead of a spend: the margin of error that you want.", "SET cloister.within = '50'"),
    ("cloister.confidence", "The confidence of margins.", "SET cloister.confidence = '0.99'"),
    ("cloister.margins", "A column with the margin of error after each measured one.", "SET cloister.margins = on"),
    ("cloister.purpose", "What the answers are for. It is recorded in the audit log.", "SET cloister.purpose = 'yearly report'"),
    ("cloister.project", "The project whose members see the answers.", "SET cloister.project = 'wards'"),
    ("cloister.algorithm", "The algorithm under which you ask.", "SET cloister.algorithm = 'by-sex'"),
    ("cloister.fresh", "Charge even what follows from a finer answer that this session holds.", "SET cloister.fresh = on"),
)
"""What to type, for whoever looks from a PostgreSQL client."""


def _help(_: Facts) -> Iterator[Row]:
    return (dict(zip(("topic", "what", "example"), row, strict=True)) for row in _HELP)


_HOMES: Mapping[str, Mapping[str, Callable[[Facts], Iterator[Row]]]] = {
    "pg": _ROWS,
    "info": _INFORMATION_ROWS,
    "own": {"help": _help},
}


def rows_of(home: str, name: str, facts: Facts) -> list[Row]:
    """The rows of a table of pg_catalog (`pg`), of information_schema (`info`), or of the schema `cloister` (`own`).

    >>> facts = Facts(tables={}, user="ada", database="hub")
    >>> [row["nspname"] for row in rows_of("pg", "pg_namespace", facts)], rows_of("info", "tables", facts)
    (['pg_catalog', 'public', 'information_schema'], [])
    >>> [row["example"] for row in rows_of("own", "help", facts) if row["topic"] == "cloister.margins"]
    ['SET cloister.margins = on']
    """
    made = _HOMES[home].get(name)
    return [] if made is None else list(made(facts))
