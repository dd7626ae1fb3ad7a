"""Which parts of a parsed question are understood. A tree that holds anything else is refused by name before it is read.

sqlglot reads far more SQL than is answered here, and what a reader passes over changes a question without a word: `COUNT(a, b)`,
`BETWEEN SYMMETRIC`, `LIMIT 10 PERCENT`. So each kind of node is listed with those of its parts that the readers use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from cloister.errors import UnsupportedQuery

EXAMPLE = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"

_UNARY, _BINARY = frozenset({"this"}), frozenset({"this", "expression"})
_UNDERSTOOD: dict[type[exp.Expression], frozenset[str]] = {
    exp.Select: frozenset({"expressions", "from_", "where", "group", "order", "limit"}),
    exp.From: _UNARY,
    exp.Table: frozenset({"this", "db", "catalog", "alias"}),
    exp.TableAlias: _UNARY,
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Star: frozenset(),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Sum: _UNARY,
    exp.Avg: _UNARY,
    exp.Where: _UNARY,
    exp.Group: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"expression"}),
    exp.Paren: _UNARY,
    exp.And: _BINARY,
    exp.Or: _BINARY,
    exp.Not: _UNARY,
    exp.EQ: _BINARY,
    exp.NEQ: _BINARY,
    exp.LT: _BINARY,
    exp.LTE: _BINARY,
    exp.GT: _BINARY,
    exp.GTE: _BINARY,
    exp.Is: _BINARY,
    exp.In: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: _BINARY,
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Neg: _UNARY,
    exp.Boolean: _UNARY,
    exp.Null: frozenset(),
    exp.Cast: frozenset({"this", "to"}),
    exp.DataType: frozenset({"this", "nested"}),
}
_CONDITION = "WHERE age >= 18 AND sex = 'F'"
_PARTS: dict[tuple[type[exp.Expression], str], tuple[str, str]] = {
    (exp.Between, "symmetric"): ("BETWEEN SYMMETRIC", "age BETWEEN 25 AND 45"),
    (exp.Count, "expressions"): ("COUNT of several columns", "COUNT(age)"),
    (exp.Distinct, "on"): ("DISTINCT ON", EXAMPLE),
    (exp.Group, "all"): ("GROUP BY ALL", "GROUP BY sex, educ"),
    (exp.Group, "cube"): ("CUBE", "GROUP BY sex, educ"),
    (exp.Group, "grouping_sets"): ("GROUPING SETS", "GROUP BY sex, educ"),
    (exp.Group, "rollup"): ("ROLLUP", "GROUP BY sex, educ"),
    (exp.In, "query"): ("A question within IN", "sex IN ('F', 'M')"),
    (exp.In, "unnest"): ("UNNEST within IN", "sex IN ('F', 'M')"),
    (exp.Limit, "expressions"): ("LIMIT … BY", "LIMIT 10"),
    (exp.Limit, "limit_options"): ("LIMIT with PERCENT, ROWS or TIES", "LIMIT 10"),
    (exp.Limit, "offset"): ("OFFSET", "LIMIT 10"),
    (exp.Select, "joins"): ("A second table in FROM", EXAMPLE),
    (exp.Star, "except_"): ("What stands beside *", "COUNT(*)"),
    (exp.TableAlias, "columns"): ("Renaming columns in FROM", "FROM people AS p"),
}
_NODES: dict[type[exp.Expression], tuple[str, str]] = {
    exp.Escape: ("LIKE … ESCAPE", "town LIKE 'D%'"),
    exp.Fetch: ("FETCH", "LIMIT 10"),
    exp.Filter: ("FILTER", "… WHERE condition"),
    exp.Order: ("ORDER BY within an aggregate", "SUM(age)"),
    exp.Select: ("A question within a question", EXAMPLE),
    exp.Subquery: ("A question within a question", EXAMPLE),
    exp.Window: ("OVER", "… WHERE condition"),
}
_LONGEST_SHOWN = 60
_DEEPEST_CALLS = 4
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE})
_BEFORE_PLAIN = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.COMMA,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.WHERE,
        TokenType.SELECT,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.DASH,
    }
)
"""After these, a parenthesis only groups."""


def unsupported(what: str, instead: str) -> UnsupportedQuery:
    """A refusal by name.

    >>> print(unsupported("HAVING", "… WHERE condition"))
    HAVING was refused: it is not among what is proved safe.
      Instead: … WHERE condition
    """
    return UnsupportedQuery(f"{what} was refused", why="it is not among what is proved safe", instead=instead)


def clipped(text: str) -> str:
    """The text, quoted, or its beginning where it is long: a refusal need not repeat a page.

    >>> clipped("x" * 10_000) == repr("x" * 60 + "…")
    True
    """
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")


def shown(tree: exp.Expression) -> str:
    """The SQL of a part of the question, for its refusal; its kind where sqlglot can't write it (deep nesting, its own gaps).

    >>> shown(exp.column("age") + 1)
    "'age + 1'"
    """
    try:
        return clipped(tree.sql())
    except Exception:  # whatever failed there, the refusal itself must not
        return str(tree.key).upper()


def whole(text: str) -> int | None:
    """The number that plain digits write; None for anything else, and for more digits than a place or a limit can have.

    >>> whole("12"), whole("1e3"), whole("²"), whole("9" * 5000)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def check(root: exp.Expression) -> None:
    """Refuse a tree that holds a node, or a part of a node, that no reader looks at. Iterative, since trees may be deep.

    >>> import sqlglot
    >>> check(sqlglot.parse_one("SELECT COUNT(*) FROM people"))
    >>> check(sqlglot.parse_one("SELECT COUNT(age, pay) FROM people"))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: COUNT of several columns was refused: it is not among what is proved safe.
      Instead: COUNT(age)
    """
    waiting: list[tuple[exp.Expression, bool]] = [(root, False)]
    for node, in_where in waiting:  # grows while it is walked: the outermost reason comes first
        kind = type(node)
        known = _UNDERSTOOD.get(kind)
        if known is None or (node is not root and kind is exp.Select) or (kind is exp.Order and node.this is not None):
            what, instead = _NODES.get(kind, (shown(node), _CONDITION if in_where else EXAMPLE))
            raise unsupported(what, instead)
        for part, value in node.args.items():
            if value is None or value is False or (isinstance(value, list) and not value):
                continue
            if part not in known:
                raise unsupported(*_PARTS.get((kind, part), (f"{part.strip('_').upper()} in {kind.key.upper()}", EXAMPLE)))
            waiting += [(child, in_where or kind is exp.Where) for child in _children(value)]


def check_words(tokens: Sequence[Token]) -> None:
    """Refuse, before they are parsed, texts on which sqlglot would not come to an end.

    Only a plain SELECT goes on: reading other statements (COPY is one; WITH is the way to them from within a SELECT) may loop for
    ever. And functions, types and brackets within one another take time exponential in their depth, while no question that is
    answered nests them at all; plain parentheses are read in linear time and are not counted.

    >>> import sqlglot
    >>> check_words(sqlglot.tokenize("SELECT SUM(age) FROM people WHERE (age IN (1, 2) OR (NOT (age > 40)))"))
    >>> check_words(sqlglot.tokenize("SELECT f(f(f(f(f(age)))))"))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: The question was refused: functions are nested deeper than 4.
      Instead: SELECT sex, COUNT(*) AS n FROM people GROUP BY sex
    """
    kinds = [token.token_type for token in tokens]
    while kinds and kinds[-1] is TokenType.SEMICOLON:
        kinds.pop()
    if not kinds or TokenType.SEMICOLON in kinds:
        raise UnsupportedQuery("The question was refused", why="it must be exactly one statement", instead=EXAMPLE)
    if kinds[0] is not TokenType.SELECT:
        raise unsupported(clipped(tokens[0].text), EXAMPLE)
    if TokenType.WITH in kinds:
        raise unsupported("WITH", EXAMPLE)
    _check_nesting(kinds)


def _check_nesting(kinds: Sequence[TokenType]) -> None:
    opened: list[bool] = []  # whether each open bracket counts
    depth, before = 0, TokenType.SELECT
    for kind in kinds:
        if kind in _OPENING:
            plain = kind is TokenType.L_PAREN and before in _BEFORE_PLAIN
            opened.append(not plain)
            depth += not plain
            if depth > _DEEPEST_CALLS:
                raise UnsupportedQuery(
                    "The question was refused", why=f"functions are nested deeper than {_DEEPEST_CALLS}", instead=EXAMPLE
                )
        elif kind in _CLOSING and opened:
            depth -= opened.pop()
        before = kind


def _children(value: Any) -> list[exp.Expression]:
    return [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, exp.Expression)]
