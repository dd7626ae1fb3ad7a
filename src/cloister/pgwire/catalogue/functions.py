"""PostgreSQL's functions that catalogue queries use, as macros; and the plain ones that may be called as they are.

What is on neither list is refused: the sandbox could do no harm with it, but a list that is known is easier to trust. Functions
that say about what does not exist here (indexes, rules, sizes) give NULL or nothing.
"""

import re
from datetime import datetime, timedelta

from cloister.pgwire.variables import zone_of
from cloister.tables.expression.names import literal

PREFIX = "pg__"

_NULLS = """pg_get_expr/2 pg_get_expr/3 pg_get_indexdef/1 pg_get_indexdef/3 pg_get_constraintdef/1 pg_get_constraintdef/2
    pg_get_partkeydef/1 pg_get_viewdef/1 pg_get_viewdef/2 pg_get_ruledef/1 pg_get_ruledef/2 pg_get_triggerdef/1
    pg_get_triggerdef/2 pg_get_serial_sequence/2 pg_get_function_result/1 pg_get_function_arguments/1
    pg_get_function_identity_arguments/1 pg_get_functiondef/1 pg_get_statisticsobjdef_columns/1 pg_tablespace_location/1
    shobj_description/2 pg_relation_size/1 pg_total_relation_size/1 pg_table_size/1 pg_database_size/1 pg_indexes_size/1
    pg_stat_get_numscans/1 inet_server_addr/0 inet_server_port/0 inet_client_addr/0 inet_client_port/0 txid_current/0
    pg_last_xlog_replay_location/0 pg_last_wal_replay_lsn/0 pg_get_function_sqlbody/1 pg_tablespace_size/1
    pg_get_function_arg_default/2 pg_conf_load_time/0 pg_export_snapshot/0 pg_advisory_unlock_all/0"""
_TRUES = """pg_table_is_visible/1 pg_type_is_visible/1 pg_function_is_visible/1 pg_opclass_is_visible/1 pg_collation_is_visible/1
    has_schema_privilege/2 has_schema_privilege/3 has_table_privilege/2 has_table_privilege/3 has_database_privilege/2
    has_database_privilege/3 has_any_column_privilege/2 has_any_column_privilege/3 has_column_privilege/3 pg_has_role/2
    pg_has_role/3 pg_operator_is_visible/1 pg_opfamily_is_visible/1 pg_conversion_is_visible/1 pg_statistics_obj_is_visible/1
    pg_ts_config_is_visible/1 pg_ts_dict_is_visible/1 pg_ts_parser_is_visible/1 pg_ts_template_is_visible/1"""
_FALSES = "pg_is_in_recovery/0 pg_relation_is_publishable/1 pg_is_other_temp_schema/1 row_security_active/1"


def _put(text: str, value: str) -> str:
    """What takes the place of the next `%s` or `%I` of a format."""
    return f"regexp_replace({text}, '%[sIL]', coalesce(CAST({value} AS VARCHAR), ''))"


_KEYWORDS = """
analyse analyze array asymmetric both cast collate concurrently current_catalog current_role current_schema do freeze ilike
initially isnull lateral limit notnull offset only placing returning similar symmetric tablesample variadic verbose window
"""
"""PostgreSQL's reserved words that SQL does not reserve, for drivers that ask which names want quotes."""

_WRITTEN: dict[str, tuple[str, ...]] = {
    "array_to_string": (
        "(a, b) AS array_to_string(a, b)",
        "(a, b, c) AS array_to_string(list_transform(a, lambda x: coalesce(x, c)), b)",
    ),
    "_pg_expandarray": ("(a) AS unnest(list_transform(generate_series(1, len(a)), lambda i: {'x': a[i], 'n': i}))",),
    "array_remove": ("(a, b) AS list_filter(a, lambda x: x IS DISTINCT FROM b)",),
    "array_upper": ("(a, d) AS CASE WHEN len(a) > 0 THEN len(a) END",),
    "array_lower": ("(a, d) AS CASE WHEN len(a) > 0 THEN 1 END",),
    "array_length": ("(a, d) AS CASE WHEN len(a) > 0 THEN len(a) END",),
    "cardinality": ("(a) AS len(a)",),
    "col_description": ("(o, n) AS (SELECT description FROM pg.pg_description WHERE objoid = o AND objsubid = n)",),
    "obj_description": (
        "(o) AS (SELECT description FROM pg.pg_description WHERE objoid = o AND objsubid = 0)",
        "(o, c) AS (SELECT description FROM pg.pg_description WHERE objoid = o AND objsubid = 0 AND c = 'pg_class')",
    ),
    "current_setting": (
        "(n) AS (SELECT setting FROM pg.pg_settings WHERE lower(name) = lower(n))",
        "(n, m) AS (SELECT setting FROM pg.pg_settings WHERE lower(name) = lower(n))",
    ),
    "format": ("(f) AS f", "(f, a) AS " + _put("f", "a"), "(f, a, b) AS " + _put(_put("f", "a"), "b")),
    "format_type": ("(t, m) AS (SELECT format FROM pg.formats WHERE oid = t)",),
    "getdatabaseencoding": ("() AS 'UTF8'",),
    "parse_ident": ("(n) AS string_split(replace(n, '\"', ''), '.')",),
    "pg_backend_pid": ("() AS 0",),
    "pg_encoding_to_char": ("(n) AS CASE n WHEN 6 THEN 'UTF8' ELSE '' END",),
    "pg_char_to_encoding": ("(n) AS CASE upper(n) WHEN 'UTF8' THEN 6 ELSE -1 END",),
    "pg_get_keywords": (
        f"() AS TABLE SELECT unnest({_KEYWORDS.split()}) AS word, 'R' AS catcode, FALSE AS barelabel, 'reserved' AS catdesc",
    ),
    "pg_options_to_table": ("(o) AS TABLE SELECT NULL AS option_name, NULL AS option_value WHERE FALSE",),
    "pg_get_userbyid": ("(o) AS (SELECT rolname FROM pg.pg_roles WHERE oid = o)",),
    "pg_show_all_settings": ("() AS TABLE SELECT * FROM pg.pg_settings",),
    "pg_timezone_names": ("() AS TABLE SELECT 'UTC' AS name, 'UTC' AS abbrev, INTERVAL 0 SECOND AS utc_offset, FALSE AS is_dst",),
    "pg_size_pretty": ("(n) AS NULL",),
    "pg_my_temp_schema": ("() AS 0",),
    "quote_ident": (
        "(n) AS CASE WHEN regexp_full_match(n, '[a-z_][a-z0-9_]*') THEN n ELSE '\"' || replace(n, '\"', '\"\"') || '\"' END",
    ),
    "quote_literal": ("(n) AS '''' || replace(n, '''', '''''') || ''''",),
    "regclass_name": ("(o) AS coalesce((SELECT name FROM pg.names WHERE oid = o), CAST(o AS VARCHAR))",),
    "regproc_name": (
        "(o) AS CASE o WHEN 0 THEN '-' ELSE coalesce((SELECT proname FROM pg.pg_proc WHERE oid = o), CAST(o AS VARCHAR)) END",
    ),
    "regtype_name": ("(o) AS coalesce((SELECT format FROM pg.formats WHERE oid = o), CAST(o AS VARCHAR))",),
    "regnamespace_name": ("(o) AS coalesce((SELECT nspname FROM pg.pg_namespace WHERE oid = o), CAST(o AS VARCHAR))",),
    "regrole_name": ("(o) AS coalesce((SELECT rolname FROM pg.pg_roles WHERE oid = o), CAST(o AS VARCHAR))",),
    "to_regclass": ("(n) AS (SELECT oid FROM pg.names WHERE name = regexp_replace(replace(n, '\"', ''), '^.*[.]', ''))",),
    "to_regtype": ("(n) AS (SELECT oid FROM pg.formats WHERE format = n OR name = n)",),
    "to_regnamespace": ("(n) AS (SELECT oid FROM pg.pg_namespace WHERE nspname = n)",),
    "to_regrole": ("(n) AS (SELECT oid FROM pg.pg_roles WHERE rolname = n)",),
}

_READ = re.compile(r"FROM pg\.(\w+)")
TABLES = frozenset(["unnest", "generate_series", "generate_subscripts"])
_NAMES = """
current_date current_timestamp json_object localtimestamp
abs all any array array_agg array_append array_cat array_position bool_and bool_or btrim cardinality ceil ceiling char_length
character_length coalesce concat concat_ws count date_part date_trunc dense_rank exists extract first_value floor
generate_series generate_subscripts greatest initcap lag last_value lead least left length lower ltrim max min mod now nullif
position power rank regexp_replace replace reverse right round row_number rtrim sign split_part starts_with string_agg
string_to_array strpos substr substring sum to_char translate trim unnest upper
"""
PLAIN = frozenset(_NAMES.split())


def _macros() -> dict[str, tuple[str, ...]]:
    found = dict(_WRITTEN)
    for names, value in ((_NULLS, "NULL"), (_TRUES, "TRUE"), (_FALSES, "FALSE")):
        for each in names.split():
            name, _, count = each.partition("/")
            given = ", ".join(f"a{place}" for place in range(int(count)))
            found[name] = (*found.get(name, ()), f"({given}) AS {value}")
    return found


MACROS = _macros()


def made(name: str) -> str:
    """The line that makes a macro.

    >>> made("pg_my_temp_schema")
    'CREATE MACRO pg__pg_my_temp_schema() AS 0'
    """
    return f"CREATE MACRO {PREFIX}{name}" + ", ".join(MACROS[name])


def reads(name: str) -> tuple[str, ...]:
    """The tables that a macro reads.

    >>> reads("pg_get_userbyid"), reads("pg_get_expr")
    (('pg_roles',), ())
    """
    return tuple(dict.fromkeys(_READ.findall(" ".join(MACROS[name]))))


def present(zone: str) -> dict[str, str]:
    """What stands for functions that say what time it is, in a time zone.

    >>> present("8")["current_date"]
    'CAST(CAST(now() AS TIMESTAMP) + INTERVAL 28800 SECOND AS DATE)'
    """
    ahead = datetime.now(zone_of(zone)).utcoffset() or timedelta()
    now = f"CAST(now() AS TIMESTAMP) + INTERVAL {int(ahead.total_seconds())} SECOND"
    moments = dict.fromkeys(("now", "current_timestamp", "localtimestamp", "transaction_timestamp"), f"({now})")
    return {**moments, "current_date": f"CAST({now} AS DATE)"}


def constants(*, user: str, database: str, version: str) -> dict[str, str]:
    """What stands for functions without arguments that say about the connection.

    >>> constants(user="ada", database="hub", version="PostgreSQL 15.0")["current_user"]
    "'ada'"
    """
    names = {"current_user": user, "session_user": user, "user": user, "current_role": user, "version": version}
    names |= {"current_database": database, "current_catalog": database, "current_schema": "public"}
    return {name: literal(value) for name, value in names.items()}
