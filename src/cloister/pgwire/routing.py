"""Who answers a SELECT: the door, where it names a declared table; the catalogue, where it names none.

A text that cannot be read goes to the door if any declared name stands in it, so that the refusal is that of a question. Wrong
roads lead nowhere: the catalogue holds nothing private, and the door charges only what was set to be spent.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from cloister.errors import CloisterError
from cloister.pgwire.backend import Tables
from cloister.pgwire.catalogue.declared import columns_of
from cloister.pgwire.catalogue.rewriting import plain, trees_of
from cloister.pgwire.functions import called
from cloister.pgwire.inference import inferred, spelled_out, uncast
from cloister.pgwire.parameters import bound
from cloister.pgwire.statements import Select, Set
from cloister.pgwire.words import unquoted, without, words
from cloister.query.remedies import with_plain_signs
from cloister.tables.expression.names import literal


@dataclass(frozen=True, kw_only=True)
class Route:
    """The text for anyone who answers, whether that is the door, and which declared tables it names, in small letters."""

    text: str
    private: bool
    named: frozenset[str] = frozenset()
    calls: bool = False
    """Whether it is the call of a function, which says itself what it may cost."""


def route(question: Select, declared: Tables) -> Route:
    """Where a question goes.

    >>> from cloister.pgwire.reading import read_all
    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)})
    >>> [ask, look] = read_all("SELECT COUNT(*) FROM public.people; SELECT relname FROM pg_class")
    >>> route(ask, {"people": people}), route(look, {"people": people}).private
    (Route(text='SELECT COUNT(*) FROM people', private=True, named=frozenset({'people'}), calls=False), False)
    """
    if called(question.text) is not None:
        return Route(text=question.text, private=True, calls=True)
    names = {name.lower() for name in declared}
    named = _named(question, names)
    signs = replace(question, text=with_plain_signs(question.text))  # a full-width one behind a name would hide it
    if named is not None and not named and (signs == question or not _named(signs, names)):
        return Route(text=question.text, private=False)
    text = spelled_out(uncast(_without_schema(question.text, names)), _kinds(declared, named or names))
    return Route(text=text, private=True, named=named or frozenset())


_NO_ROWS = re.compile(r"\b(?:limit 0|where \W*(?:0 = 1|1 = 0|1 <> 1|false))\b", re.IGNORECASE)  # of words, one blank between
_NEVER = ("0 = 1", "1 = 0", "1 <> 1", "FALSE")
_PLAIN = {"expressions", "from_", "where", "limit"}


def without_rows(question: Select, declared: Callable[[], Tables]) -> Select:
    """`SELECT * FROM people WHERE 0 = 1`, by which tools learn the columns of a table, as a question that names none: it has the
    declared columns, no row and no cost. `SELECT * FROM (SELECT age FROM people LIMIT 0) "T"` is one, too.

    >>> from cloister.pgwire.reading import read_one
    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [39]}, columns={"age": cl.Integer(17, 90)})
    >>> without_rows(read_one('SELECT * FROM "people" AS "q01" WHERE (0 = 1)'), lambda: {"people": people}).text
    'SELECT CAST(NULL AS BIGINT) AS "age" WHERE FALSE'
    """
    said = " ".join(word.text for word in question.words)
    trees = _trees(question) if _NO_ROWS.search(said) else None
    found = _shown(trees[0], {name.lower(): table for name, table in declared().items()}) if trees else None
    if found is None or not found[1]:
        return question
    columns = [exp.alias_(each, name, quoted=True).sql("postgres") for name, each in found[0]]
    text = f"SELECT {', '.join(columns)} WHERE FALSE"
    return Select(text, tuple(words(text)))


def _shown(query: exp.Expression | None, tables: Tables) -> tuple[list[tuple[str, exp.Expression]], bool] | None:
    """The columns of a plain SELECT of one table, each as what stands for it without rows, and whether it has none for sure."""
    if not isinstance(query, exp.Select) or {part for part, given in query.args.items() if given} - _PLAIN:
        return None
    clause, where, limit = (query.args.get(part) for part in ("from_", "where", "limit"))
    source = None if clause is None or clause.this.args.get("joins") else clause.this
    never = where is not None and where.this.unnest().sql() in _NEVER
    none = never or (limit is not None and limit.expression.sql() == "0")
    inner = _shown(source.this, tables) if isinstance(source, exp.Subquery) else None
    if isinstance(source, exp.Table) and source.name.lower() in tables and source.db.lower() in ("", "public"):
        declared = columns_of(tables[source.name.lower()])
        inner = [(name, exp.cast(exp.null(), kind, dialect="postgres")) for name, kind, _, _ in declared], False
    if inner is None or (where is not None and not never):
        return None
    shown: list[tuple[str, exp.Expression]] = []
    for each in query.expressions:
        inside = each.unalias()
        found = [(name, null) for name, null in inner[0] if name.lower() == inside.name.lower()]
        if each.is_star:
            shown += inner[0]
        elif isinstance(inside, exp.Literal | exp.Boolean) or (isinstance(inside, exp.Column) and len(found) == 1):
            shown.append((each.alias or found[0][0], found[0][1]) if isinstance(inside, exp.Column) else (each.alias, inside))
        else:
            return None
    return shown, none or inner[1]


def typed(question: Select, types: Sequence[int], declared: Tables) -> tuple[int, ...]:
    """The types of a question's parameters: those that it says itself, and those of the columns of what it names."""
    readable = replace(question, text=bound(question.text, question.words, ["NULL"] * len(types)))
    named = _named(readable, {name.lower() for name in declared})
    return inferred(question.words, types, _kinds(declared, named) if named else {})


def set_configs(question: Select) -> tuple[Select, tuple[Set, ...]]:
    """The settings that a SELECT makes by set_config('name', 'value', local), which is how clients set with parameters, and the
    SELECT with their values in the place of the calls.

    >>> from cloister.pgwire.reading import read_all
    >>> [found] = read_all("SELECT pg_catalog.set_config('cloister.margins', 'on', false), 1 AS one")
    >>> question, settings = set_configs(found)
    >>> question.text, settings
    ("SELECT 'on'::text AS set_config, 1 AS one", (Set(name='cloister.margins', value='on', local=False),))
    """
    own, text = question.words, question.text
    pieces, found, at = [], [], 0
    for place, word in enumerate(own):
        given = own[place + 1 : place + 8]
        if not word.says("set_config") or len(given) < 7 or [each.text for each in given[::2]] != ["(", ",", ",", ")"]:
            continue
        name, value, local = given[1], given[3], given[5]
        if name.kind != "string" or value.kind != "string" or not local.says("true", "false"):
            continue
        said = unquoted(value.text)
        found.append(Set(unquoted(name.text), said, local.says("true")))
        schema = place > 1 and own[place - 1].says(".") and own[place - 2].lower == "pg_catalog"
        named = own[place + 8 : place + 9] and own[place + 8].kind in ("word", "quoted") and not own[place + 8].says("from")
        pieces += [text[at : own[place - 2].start if schema else word.start], f"{literal(said)}::text"]
        pieces += [] if named else [" AS set_config"]
        at = given[6].end
    changed = "".join([*pieces, text[at:]])
    return (Select(changed, tuple(words(changed))) if found else question), tuple(found)


def _trees(question: Select) -> list[exp.Expression | None] | None:
    try:
        return trees_of(plain(question.text))
    except (sqlglot.errors.SqlglotError, CloisterError, RecursionError, ValueError):
        return None


def _named(question: Select, names: Collection[str]) -> frozenset[str] | None:
    """The declared tables that a question names; None where it cannot be read, and the name of one stands in it."""
    trees = _trees(question)
    if trees is None:
        there = any(word.lower.lower() in names for word in question.words if word.kind in ("word", "quoted"))
        return None if there else frozenset()
    return frozenset(
        table.name.lower()
        for tree in trees
        if tree is not None
        for table in tree.find_all(exp.Table)
        if table.name.lower() in names and table.db.lower() in ("", "public") and not table.name.lower().startswith("pg_")
    )


def _kinds(declared: Tables, named: Collection[str]) -> Mapping[str, str]:
    """The types of the columns of some tables by name, where all tables agree."""
    found: dict[str, str] = {}
    for name, table in declared.items():
        if name.lower() in named:
            for column, kind, _, _ in columns_of(table):
                found[column.lower()] = kind if found.get(column.lower(), kind) == kind else ""
    return found


def _without_schema(text: str, names: Collection[str]) -> str:
    """`public.people` is `people`, and so is `hub.public.people`, as Excel writes it."""
    own = words(text)
    gone = []
    for place, (first, dot, name) in enumerate(zip(own, own[1:], own[2:], strict=False)):
        database = own[place - 2 : place] if place > 1 and own[place - 1].text == "." else []
        if first.lower == "public" and dot.text == "." and name.lower.lower() in names:
            gone += [*database, first, dot]
    return without(text, gone)
