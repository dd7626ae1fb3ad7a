"""What the rows of a PostgreSQL table are: asked of the server, since an address is only one of many ways to write it.

A relation is known by three things that the server tells: the identifier of its system (one for a server and all its replicas),
the database, and the relation, once by its oid (which stays when the table is renamed) and once by its whole name (which stays
when the table is dropped and made again). Below a view, materialised or not, are the tables that it reads; a table that is part
of an inheritance tree, as every partition is, belongs with the whole tree. What cannot be followed is refused: a foreign table,
whose rows are another server's; one of the server's own tables (its statistics hold values of every column, `pg_largeobject` is
everybody's); and a function that may read tables, since nobody can tell which.

The server says which relations a query names by the locks that it takes for it (a query over no row, in a transaction of its
own); from there the catalogues say what these are made of. A query is made a view for that long, so that the catalogues say what
it calls, too; where nothing may be written, its text says so, and no operator or cast of the database may read tables.
"""

import re
from typing import Any

from cloister.errors import InvalidDeclaration

_LOCKED = """SELECT DISTINCT relation::bigint FROM pg_catalog.pg_locks
    WHERE pid = pg_catalog.pg_backend_pid() AND locktype = 'relation' AND relation <> 'pg_catalog.pg_locks'::regclass"""
"""Asked of nothing else, since what is asked of is locked too."""
_KINDS_OF = """SELECT relation.oid::bigint, space.nspname, relation.relname FROM pg_catalog.pg_class AS relation
    JOIN pg_catalog.pg_namespace AS space ON space.oid = relation.relnamespace
    WHERE relation.oid = ANY (%(locked)s::oid[]) AND relation.relkind NOT IN ('i', 'I')"""
_OWN_SPACES = ("pg_catalog", "information_schema", "pg_toast")
"""Of the server's own tables."""

_BELOW = """WITH RECURSIVE below (class, id) AS (
    SELECT 'pg_class'::regclass::oid, named FROM unnest(%(named)s::oid[]) AS named
    UNION
    SELECT found.class, found.id FROM below CROSS JOIN LATERAL (
        SELECT 'pg_rewrite'::regclass::oid AS class, oid AS id FROM pg_catalog.pg_rewrite
            WHERE below.class = 'pg_class'::regclass AND ev_class = below.id AND ev_type = '1'
        UNION ALL SELECT refclassid, refobjid FROM pg_catalog.pg_depend
            WHERE below.class <> 'pg_class'::regclass AND classid = below.class AND objid = below.id AND deptype = 'n'
            AND refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_operator'::regclass)
        UNION ALL SELECT below.class, inhrelid FROM pg_catalog.pg_inherits
            WHERE below.class = 'pg_class'::regclass AND inhparent = below.id
        UNION ALL SELECT below.class, inhparent FROM pg_catalog.pg_inherits
            WHERE below.class = 'pg_class'::regclass AND inhrelid = below.id
    ) AS found)
SELECT below.class::regclass::text, below.id::bigint, relation.relkind::text, space.nspname, relation.relname
    FROM below LEFT JOIN pg_catalog.pg_class AS relation ON below.class = 'pg_class'::regclass AND relation.oid = below.id
    LEFT JOIN pg_catalog.pg_namespace AS space ON space.oid = relation.relnamespace"""
"""Rules of views, what these depend on (functions and operators too, and what those depend on), parents and children."""

_CALLED = """SELECT DISTINCT (regexp_matches(ev_action::text, ':funcid ([0-9]+)', 'g'))[1]::bigint
    FROM pg_catalog.pg_rewrite WHERE oid = ANY (%(rules)s::oid[])"""
"""Functions that views call: of the server's own the catalogue of dependencies says nothing."""

_READERS = (
    r"^((query|table|cursor|schema|database)_to_xml.*|ts_stat|ts_rewrite|lo_get|loread|pg_read_(binary_)?file|pg_ls_.*"
    r"|pg_stat_file|pg_logical_.*|pg_stat_get_.*|pg_mcv_.*|pg_(table|relation|total_relation|indexes|database)_size)$"
)
_OPAQUE = """SELECT called.proname FROM pg_catalog.pg_proc AS called
    JOIN pg_catalog.pg_language AS language ON language.oid = called.prolang
    WHERE (called.oid = ANY (%(called)s::oid[]) OR called.proname = ANY (%(names)s::text[])) AND (called.proname ~ %(readers)s
        OR (called.pronamespace <> 'pg_catalog'::regnamespace AND called.prokind <> 'a' AND (CASE language.lanname
            WHEN 'internal' THEN false
            WHEN 'c' THEN called.provolatile <> 'i' AND (called.proretset OR called.provolatile = 'v' AND called.pronargs > 0)
            ELSE called.proretset OR called.provolatile <> 'i' END)))
    ORDER BY called.proname LIMIT 1"""
"""A function that may read tables: one of the server's that does; one in a language of scripts that is not declared immutable, or
gives rows; and one of an extension that gives rows, or that is given something and is volatile, as `dblink` and `get_raw_page`
are. An aggregate is what its functions are."""

_UNNAMED = """SELECT oprcode::oid::bigint FROM pg_catalog.pg_operator WHERE oid >= 16384
    UNION SELECT castfunc::bigint FROM pg_catalog.pg_cast WHERE oid >= 16384
    UNION SELECT unnest(ARRAY[aggtransfn, aggfinalfn])::oid::bigint FROM pg_catalog.pg_aggregate WHERE aggfnoid >= 16384"""
"""Functions that a query calls without their names: of all operators, casts and aggregates that are not the server's own."""

_DATABASE = "SELECT oid::bigint, datname FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()"
_SYSTEM = "SELECT system_identifier FROM pg_catalog.pg_control_system()"
_OWN = "cloister_prepared"


def lineage_of(connection: Any, relation: str) -> frozenset[str]:
    """Names of all relations that the rows of `relation` (as it stands after FROM) come from, itself included."""
    from psycopg import errors

    asked: list[int] = []
    with connection.transaction(force_rollback=True):
        connection.execute(f"SELECT * FROM {relation} LIMIT 0")  # noqa: S608  (its names are quoted)
        locked = [oid for (oid,) in connection.execute(_LOCKED).fetchall()]
        kinds = connection.execute(_KINDS_OF, {"locked": locked}).fetchall()
        named = [oid for oid, space, _ in kinds if space not in _OWN_SPACES]
        own = [f"{space}.{name}" for _, space, name in kinds if space in _OWN_SPACES]
        if relation.startswith("("):
            asked = _viewed(connection, relation)
        found = connection.execute(_BELOW, {"named": named + asked}).fetchall()
        rules = [number for kind, number, *_ in found if kind == "pg_rewrite"]
        called = [number for kind, number, *_ in found if kind == "pg_proc"]
        called += [number for (number,) in connection.execute(_CALLED, {"rules": rules}).fetchall()]
        names: list[str] = []
        if relation.startswith("(") and not asked:
            names = _called_by(relation)
            called += [number for (number,) in connection.execute(_UNNAMED).fetchall()]
        wanted = {"called": called, "names": names, "readers": _READERS}
        opaque = connection.execute(_OPAQUE, wanted).fetchone()
        database = connection.execute(_DATABASE).fetchone()
    found = [row for row in found if row[1] not in asked]
    relations = [row[1:] for row in found if row[0] == "pg_class" and row[2] is not None]
    _check(relations, min(own, default=None), None if opaque is None else opaque[0])
    try:
        (system,) = connection.execute(_SYSTEM).fetchone()
    except errors.UndefinedFunction:  # a server that only speaks PostgreSQL: its databases are told apart by their names
        system = ""
    except errors.InsufficientPrivilege:
        raise InvalidDeclaration(
            "The PostgreSQL table is invalid",
            why="its role may not ask the server which server it is, and an address alone does not tell",
            instead="GRANT EXECUTE ON FUNCTION pg_control_system() TO the role",
        ) from None
    by_oid = {f"postgresql {system}/{database[0]}/{oid}" for oid, *_ in relations}
    return frozenset(by_oid | {f"postgresql {system}/{database[1]}::{space}.{name}" for _, _, space, name in relations})


def _viewed(connection: Any, query: str) -> list[int]:
    """A view of a query, for the length of the transaction; none where the role or the server makes none."""
    from psycopg import errors

    try:
        with connection.transaction():
            connection.execute(f"CREATE TEMPORARY VIEW cloister_asked AS SELECT * FROM {query}")  # noqa: S608  (it was asked already)
            [(number,)] = connection.execute("SELECT 'pg_temp.cloister_asked'::regclass::oid::bigint").fetchall()
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction, errors.FeatureNotSupported):
        return []
    return [number]


def _called_by(query: str) -> list[str]:
    """Whatever stands before a parenthesis in a text of SQL, as it may be written in the catalogue.

    >>> _called_by('(SELECT lower(a), "odd ""name" (1), x.F(2) FROM t) AS q')
    ['f', 'lower', 'odd "name']
    """
    quoted = [name.replace('""', '"') for name in re.findall(r'"((?:[^"]|"")+)"\s*\(', query)]
    plain = [name.lower() for name in re.findall(r"([^\W\d][\w$]*)\s*\(", query)]
    return sorted({*quoted, *plain} - {"select"})


def _check(relations: list[tuple[int, str, str, str]], own: str | None, opaque: str | None) -> None:
    """Refuse what nobody can tell the tables of."""
    if own is not None:
        raise InvalidDeclaration(
            "The PostgreSQL table is invalid",
            why=f"it reads {own}, one of the server's own tables, which tell of every other",
            instead="the table whose rows are meant",
        )
    for _, kind, space, name in relations:
        if kind == "f":
            raise InvalidDeclaration(
                "The PostgreSQL table is invalid",
                why=f"{space}.{name} is a foreign table, whose rows are another server's",
                instead="the table itself, at the server that holds it",
            )
        if space == _OWN:
            raise InvalidDeclaration(
                "The PostgreSQL table is invalid",
                why=f"{space}.{name} is a table that cloister made of another one",
                instead="the table that it was made of",
            )
    if opaque is not None:
        raise InvalidDeclaration(
            "The PostgreSQL table is invalid",
            why=f"what it reads depends on the function {opaque}(), which may read tables that the server does not tell",
            instead=f"a view without {opaque}(), or the function declared IMMUTABLE where it reads no table",
        )
