"""From a catalogue query in PostgreSQL's words to one that the sandbox runs.

First by words: `pg_catalog.` is dropped wherever it stands, with COLLATE and OPERATOR (…). Then by the tree: tables must be the
catalogue's own, functions on a list, and casts to `regclass` and its like become look-ups.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import sqlglot
from sqlglot import exp

from cloister.errors import nearest
from cloister.pgwire.catalogue.declared import CLASSES, PROCEDURES
from cloister.pgwire.catalogue.functions import MACROS, PLAIN, PREFIX, TABLES, reads
from cloister.pgwire.catalogue.relations import INFORMATION, OWN, PG
from cloister.pgwire.failures import Refused
from cloister.pgwire.words import Word, words
from cloister.query.words import check_words, unheard

_REGS = {"REGCLASS": "regclass", "REGTYPE": "regtype", "REGNAMESPACE": "regnamespace", "REGROLE": "regrole"}
_REG_FUNCTIONS = ("REGPROC", "REGPROCEDURE", "REGOPER", "REGOPERATOR")
_OF_FUNCTIONS = ("typinput", "typoutput", "typreceive", "typsend")
"""Columns of numbers of functions, which are shown by name."""
_CASTS = {"NAME": "VARCHAR", "OID": "UINTEGER", "XID": "UINTEGER", "INT2VECTOR": "SMALLINT[]", "CHAR": "VARCHAR"}
_NATIVE = {"array_to_string", "array_length", "array_upper", "array_lower"}
_NO_CALLS = (exp.And, exp.Or, exp.Not, exp.Case, exp.If, exp.Cast, exp.Subquery, exp.RegexpLike, exp.RegexpILike, exp.Xor)


_WIDEST, _MOST_COLUMNS = 50, 2000
"""Columns of the widest table of the catalogue, and those that any part of a query may have: stars over stars double them, and
the engine's binder keeps to no limit of memory and hears no interrupt."""


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """What the sandbox runs, and what must be made there first: tables by schema and name, macros by name."""

    sql: str
    names: tuple[str, ...] | None
    """What PostgreSQL would call the columns; None where a star stands among them."""
    tables: frozenset[tuple[str, str]]
    macros: frozenset[str]


def plain(text: str) -> str:
    """The text without what only names where a thing lives, or how texts are compared.

    >>> plain("SELECT 1 WHERE c.a OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default AND pg_catalog.f(c.b)")
    "SELECT 1 WHERE c.a  ~  '^(x)$'  AND f(c.b)"
    """
    own = words(text)
    pieces, at, place = [], 0, 0
    while place < len(own):
        length, instead = _dropped(own, place)
        if length:
            pieces += [text[at : own[place].start], instead]
            at = own[place + length - 1].end
        place += length or 1
    return "".join([*pieces, text[at:]])


def _dropped(own: Sequence[Word], place: int) -> tuple[int, str]:
    """How many words are dropped here, and what stands for them."""

    def says(ahead: int, *names: str) -> bool:
        return place + ahead < len(own) and own[place + ahead].says(*names)

    schema = place + 1 < len(own) and own[place].lower == "pg_catalog" and says(1, ".")
    if schema or (says(0, "information_schema") and says(1, ".") and says(2, "_pg_expandarray")):
        return 2, ""
    if says(0, "operator") and says(1, "("):
        end = next((ahead for ahead in range(2, 6) if says(ahead, ")")), 0)
        return (end + 1, f" {own[place + end - 1].text} ") if end > 2 else (0, "")
    if says(0, "regtype") and says(1, "[") and says(2, "]"):
        return 3, "text[]"
    if place and says(0, *_RESERVED) and says(-1, "as", "."):
        return 1, f'"{own[place].lower}"'
    if says(0, "collate"):
        return (4, "") if says(2, ".") else (2, "")
    return 0, ""


def rewritten(
    text: str, constants: Mapping[str, str], settings: Mapping[str, str] | None = None, known: Collection[str] = ()
) -> Rewritten:
    """A query of the catalogue as the sandbox runs it; of the tables that are `known` a refusal names the nearest.

    >>> rewritten("SELECT pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c", {}).sql
    'SELECT pg__pg_get_userbyid(c.relowner) FROM pg.pg_class AS c'
    """
    change = _Change(constants, settings or {}, known)
    try:
        return _rewritten(_parsed(plain(text)), change)
    except Refused:
        raise
    except Exception:  # a tree that nobody foresaw; its own words say nothing to a client
        raise _unreadable() from None


def _rewritten(tree: exp.Expression, change: _Change) -> Rewritten:
    names = _names(tree)
    _columns(tree, {})
    named = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    for table in list(tree.find_all(exp.Table)):
        change.table(table, named)
    for node in reversed(list(tree.walk())):  # what stands within first
        changed = change.node(node)
        if node is tree:
            tree = changed
        elif changed is not node:
            node.replace(changed)
    with unheard():
        sql = tree.sql(dialect="duckdb", normalize_functions=False)
    return Rewritten(sql=sql, names=names, tables=frozenset(change.tables), macros=frozenset(change.macros))


def _columns(query: exp.Query, known: Mapping[str, int]) -> int:
    """At most how many columns it has, of common tables that are `known`; refused where a part of it may have too many."""
    widths, total = dict(known), 0
    for common in (each for given in query.args.values() if isinstance(given, exp.With) for each in given.expressions):
        widths[common.alias_or_name.lower()] = _columns(common.this, widths)
    for node in query.walk(prune=lambda node: node is not query and isinstance(node, exp.Query | exp.With)):
        if isinstance(node, exp.Table):
            total += _WIDEST if node.db else widths.get(node.name.lower(), _WIDEST)
        elif node is not query and isinstance(node, exp.Query):
            found = _columns(node, widths)
            total = max(total, found) if isinstance(query, exp.SetOperation) else total + found
    own = [bool(each.is_star) for each in query.expressions] if isinstance(query, exp.Select) else [True]
    if max(total, wide := sum(own) * total + len(own)) > _MOST_COLUMNS:
        why = f"a part of it may have more than {_MOST_COLUMNS} columns"
        raise Refused("The catalogue query is not supported", why=why, instead="the columns by name", code="54011")
    return wide


def trees_of(text: str) -> list[exp.Expression | None]:
    """The statements of a text as trees. WITH ORDINALITY is no WITH."""
    with unheard():
        tokens = sqlglot.tokenize(text, read="postgres")
        said = [*(token.text.upper() for token in tokens), ""]
        pairs = zip(tokens, pairwise(said), strict=True)
        check_words([token for token, pair in pairs if pair != ("WITH", "ORDINALITY")])
        return list(sqlglot.parse(text, read="postgres"))


def _parsed(text: str) -> exp.Expression:
    found = trees_of(text)
    if len(found) != 1 or not isinstance(found[0], exp.Query):
        raise _unreadable()
    return found[0]


def _unreadable() -> Refused:
    instead = "SELECT relname FROM pg_catalog.pg_class"
    return Refused("The catalogue query is invalid", why="it cannot be read", instead=instead, code="42601")


class _Change:
    """Walks over a tree and remembers what it needs."""

    def __init__(self, constants: Mapping[str, str], settings: Mapping[str, str], known: Collection[str]) -> None:
        self.constants, self.settings, self.known = constants, settings, known
        self.tables, self.macros = set[tuple[str, str]](), set[str]()

    def table(self, table: exp.Table, named: set[str]) -> None:
        """A table must be one of the catalogue's, or a function that makes rows."""
        if not isinstance(table.this, exp.Identifier):
            _name_column(table)  # a function: it is seen as a node
            return
        schema, name = table.db.lower(), table.name.lower()
        if not schema and name in named:
            return
        if schema == "information_schema" and name in INFORMATION:
            home = "info"
        elif schema == "cloister" and name in OWN:
            home = "own"
        elif schema in ("", "pg_catalog") and name in PG:
            home = "pg"
        else:
            raise Refused(
                f"The relation {f'{schema}.{name}'.strip('.')[:80]!r} was not found",
                why="it is no table that you may see, nor one of the catalogue",
                instead=f"… FROM {nearest(name, self.known, name)}"
                if self.known and schema in ("", "public") and not name.startswith("pg_")
                else "SELECT relname FROM pg_catalog.pg_class",
                code="42P01",
            )
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        self.tables.add((home, name))
        table.set("this", exp.to_identifier(name))
        table.set("db", exp.to_identifier(home))
        table.set("catalog", None)

    def node(self, node: exp.Expression) -> exp.Expression:
        """What stands for one node."""
        if isinstance(node, exp.Cast):
            return self._cast(node)
        if isinstance(node, exp.Select) and not node.expressions and node.args.get("from_"):  # EXISTS (SELECT FROM …)
            return node.select("1", copy=False)
        if isinstance(node, exp.Any | exp.All):
            return _over_list(node)
        if isinstance(node, exp.Div) and _whole(node.this) and _whole(node.expression):
            return exp.IntDiv(this=node.this, expression=node.expression)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Func):
            return _rows(node)
        if isinstance(node, exp.Func) and not isinstance(node, _NO_CALLS):
            return self._call(node)
        if isinstance(node, exp.Column) and node.name.lower() == "tableoid":
            return _own_number(node)
        if isinstance(node, exp.Column) and node.name.lower() in _OF_FUNCTIONS and _shown(node):
            self._use("regproc_name")
            named = exp.Anonymous(this=f"{PREFIX}regproc_name", expressions=[node.copy()])
            return exp.alias_(named, node.name) if isinstance(node.parent, exp.Select) else named
        if isinstance(node, exp.Column) and not node.table and not node.this.quoted and node.name.lower() in _BARE:
            return self._constant(node.name.lower(), node)
        if isinstance(node, exp.Lambda | exp.Placeholder | exp.Parameter | exp.Command | exp.Into | exp.Lock):
            raise _refused(f"{node.key.upper()} in a catalogue query")
        return node

    def _call(self, node: exp.Func) -> exp.Expression:
        name = _called(node)
        if name in self.constants:
            return self._constant(name, node)
        if name == "json_build_object":
            return exp.Anonymous(this="json_object", expressions=_arguments(node))
        if name == "current_schemas":
            return sqlglot.parse_one("ARRAY['pg_catalog', 'public']", read="duckdb")
        if name == "current_setting" and _arguments(node) and isinstance(_arguments(node)[0], exp.Literal):
            value = self.settings.get(_arguments(node)[0].name.lower())
            return exp.null() if value is None else exp.Literal.string(value)
        if name in MACROS:
            self._use(name)
            return exp.Anonymous(this=PREFIX + name, expressions=_arguments(node))
        if name not in PLAIN and name not in TABLES:
            raise _refused(f"The function {name[:63]}")
        return node

    def _constant(self, name: str, node: exp.Expression) -> exp.Expression:
        if name not in self.constants:
            return node
        return sqlglot.parse_one(self.constants[name], read="duckdb")

    def _use(self, name: str) -> None:
        self.macros.add(name)
        self.tables |= {("pg", table) for table in reads(name)}

    def _cast(self, node: exp.Cast) -> exp.Expression:
        kind = node.to.sql(dialect="postgres").upper()
        if kind in _REG_FUNCTIONS:
            return _function(node)
        if kind in _REGS:
            return self._registered(node, _REGS[kind])
        if kind.endswith("[]") and isinstance(node.this, exp.Literal) and node.this.is_string:
            return exp.Cast(this=_list(node.this), to=node.to)
        if kind in _CASTS:
            return _cast(node.this, _CASTS[kind])
        if kind == "TIMESTAMPTZ":  # in UTC: the engine's own needs another package to be read
            return _cast(node.copy(), "TIMESTAMP")
        return node

    def _registered(self, node: exp.Cast, kind: str) -> exp.Expression:
        """A name becomes its number; a number that is shown, or cast to text, becomes its name."""
        this, parent = node.this, node.parent
        if _is_name(this) and f"to_{kind}" in MACROS:
            self._use(f"to_{kind}")
            this = exp.Anonymous(this=f"{PREFIX}to_{kind}", expressions=[this])
        shown = _to_text(parent) or isinstance(parent, exp.Select | exp.Alias)
        if not shown:
            return _cast(this, "UINTEGER")
        self._use(f"{kind}_name")
        return exp.Anonymous(this=f"{PREFIX}{kind}_name", expressions=[_cast(this, "UINTEGER")])


_RESERVED = ("select", "update", "insert", "delete", "from", "where", "table", "order", "group")
"""Words that PostgreSQL takes for names behind AS and behind a dot, and the parser does not."""
_BARE = ("current_user", "session_user", "user", "current_role", "current_catalog", "current_schema")


# Ibis, once it is loaded, makes sqlglot write these otherwise.
_OWN_NAMES = {exp.ArraySize: "array_length", exp.Pow: "power", exp.DateFromParts: "make_date"}


def _called(node: exp.Func) -> str:
    """The function's name as PostgreSQL writes it."""
    if isinstance(node, exp.Anonymous):
        return str(node.name.lower())
    if type(node) in _OWN_NAMES:
        return _OWN_NAMES[type(node)]
    return re.split(r"[(\[]", node.sql(dialect="postgres"), maxsplit=1)[0].strip().lower()


def _names(tree: exp.Expression) -> tuple[str, ...] | None:
    """Of the first SELECT of a union: an alias, a column, a function or a type by its name, and else `?column?`."""
    while isinstance(tree, exp.SetOperation | exp.Subquery):
        tree = tree.this
    shown = tree.expressions
    if any(each.is_star for each in shown):
        return None
    return tuple(_name(each) for each in shown)


def _name(shown: exp.Expression) -> str:
    if isinstance(shown, exp.Alias | exp.Column):
        return str(shown.alias_or_name)
    if isinstance(shown, exp.Paren | exp.Window | exp.Filter):
        return _name(shown.this)
    if isinstance(shown, exp.Cast):
        inner = _name(shown.this)
        return str(shown.to.sql(dialect="postgres").lower()) if inner == "?column?" else inner
    if isinstance(shown, exp.Subquery) and shown.this.expressions:
        return _name(shown.this.expressions[0])
    if isinstance(shown, exp.Case | exp.Exists):
        return str(shown.key)
    if isinstance(shown, exp.Func) and not isinstance(shown, _NO_CALLS):
        return _called(shown)
    return "?column?"


def _function(node: exp.Cast) -> exp.Expression:
    """The functions that read and write values have numbers, by which drivers know types; any other name is not found."""
    if isinstance(node.this, exp.Literal) and node.this.is_string and not node.this.name.isdigit():
        number = PROCEDURES.get(node.this.name.removeprefix("pg_catalog."))
        if number is not None:
            return exp.Literal.number(number)
        raise _refused(f"The function {node.this.name[:63]!r}")
    return _cast(node.this, "UINTEGER")


def _own_number(column: exp.Column) -> exp.Expression:
    """The number of the table that a row stands in, where it stands in one of the catalogue's own."""
    select = column.find_ancestor(exp.Select)
    tables = [] if select is None else list(select.find_all(exp.Table))
    found = [table.name for table in tables if column.table in ("", table.alias_or_name)]
    return exp.Literal.number(CLASSES.get(found[0], 0)) if found else column


def _name_column(table: exp.Table) -> None:
    """The alias of a function that makes rows of one column names the column, too."""
    alias = table.args.get("alias")
    if alias is not None and not alias.columns and not isinstance(table.this, exp.Anonymous):
        alias.set("columns", [alias.this.copy()])


def _rows(table: exp.Table) -> exp.Expression:
    """A function that gives one value makes one row of it."""
    name = _called(table.this)
    if name in TABLES or name.startswith(PREFIX):
        return table
    query = exp.Select(expressions=[table.this])
    return exp.Subquery(this=query, alias=table.args.get("alias"))


def _over_list(node: exp.Any | exp.All) -> exp.Expression:
    """ANY and ALL of a list that is written as a text."""
    this = node.this.unnest()
    return type(node)(this=exp.Paren(this=_list(this))) if isinstance(this, exp.Literal) and this.is_string else node


def _list(text: exp.Literal) -> exp.Expression:
    """`'{a,b}'` as a list."""
    parts = [part.strip().strip('"') for part in text.name.strip().strip("{}").split(",")]
    return exp.Array(expressions=[exp.Literal.string(part) for part in parts if part])


def _is_name(this: exp.Expression) -> bool:
    """Whether it is written as a text, or makes one."""
    if isinstance(this, exp.Literal):
        return bool(this.is_string) and not this.name.isdigit()
    return _to_text(this) or isinstance(this, exp.DPipe) or (isinstance(this, exp.Anonymous) and this.name == f"{PREFIX}format")


def _to_text(this: exp.Expression | None) -> bool:
    return isinstance(this, exp.Cast) and str(this.to.sql(dialect="postgres")).upper() in ("TEXT", "VARCHAR")


def _shown(column: exp.Column) -> bool:
    """Whether a column is cast to a text, or is one of the answer's own."""
    parent = column.parent
    select = parent.parent if isinstance(parent, exp.Alias) else parent
    return _to_text(parent) or (isinstance(select, exp.Select) and select.parent is None)


def _whole(this: exp.Expression) -> bool:
    """Whether it is written as a whole number."""
    if isinstance(this, exp.Cast):
        return str(this.to.sql(dialect="postgres")).upper() in ("INT", "INTEGER", "BIGINT", "SMALLINT")
    return isinstance(this, exp.Literal) and not this.is_string and this.name.isdigit()


def _cast(this: exp.Expression, kind: str) -> exp.Expression:
    return exp.Cast(this=this, to=exp.DataType.build(kind, dialect="duckdb"))


def _arguments(node: exp.Func) -> list[exp.Expression]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    found: list[exp.Expression] = []
    for value in node.args.values():
        found += value if isinstance(value, list) else [value] if isinstance(value, exp.Expression) else []
    return found


def _refused(what: str) -> Refused:
    return Refused(f"{what} is not supported", why="catalogue queries use a short list of functions", instead=r"\d", code="42883")
