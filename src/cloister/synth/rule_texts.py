"""Rules as people write them: a condition in the house's SQL, with three forms besides.

    birth <= admission <= discharge          a chain of comparisons
    age < 15 => marital = 'never married'    an implication
    missing(date) == missing(value)          whether a value is missing, as a condition

The text is cut by tokens, and each piece has to be one expression by itself; then SQL's own reader makes a condition of it, which
knows columns, literals and functions alone. What reads rows of other tables, counts, or is not a condition is refused by it.

One order may be written in many ways: `a <= b`, `NOT (b < a)`, `b - a >= 0`, `a < b OR a = b`. They are one form from here on
(`_normal`), so that the map of rows, the fit and the drawing need to know this form alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType

from cloister.errors import CloisterError, UnknownColumn
from cloister.query.dialect import dialect_named, parser_of
from cloister.query.parse import parse
from cloister.query.words import check_words, unheard
from cloister.synth.cutting import leaves, literals
from cloister.synth.rules import Rule, refused
from cloister.tables import (
    And,
    Base,
    Between,
    Category,
    Column,
    Compare,
    Date,
    Domain,
    Expression,
    Extended,
    In,
    Integer,
    IsNull,
    Literal,
    Not,
    Or,
    PrivateTable,
)
from cloister.tables.expression.names import quotation
from cloister.tables.expression.scalars import Add, Case, Const, DateShift, Ref, Scalar, Truth

_LONGEST = 1_000
_MOST_LISTED = 1_000
_CHAINED = (TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE, TokenType.EQ)
_JOINS = (TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.BETWEEN)
_SIGNS = {op: frozenset("<>" if op == "!=" else op) for op in ("=", "!=", "<", "<=", ">", ">=")}
"""Which of less, equal and greater a comparison allows: NOT, AND and OR of comparisons are those of sets."""
_OPS = {signs: op for op, signs in _SIGNS.items()}
_TURNED = str.maketrans("<>", "><")
_CALENDAR = Date("0001-01-01", "9999-12-31")

_Order = tuple[tuple[str, str, Fraction], frozenset[str]]
"""Two columns, in the order of their names, the number that the first one has added, and how it may lie to the second one."""


def read(text: str, table: str, domains: Mapping[str, Domain]) -> list[Rule]:
    """The conditions that a text joins by AND, each with the computed columns that it stands on.

    >>> from cloister.tables import Integer
    >>> columns = {"a": Integer(0, 9), "b": Integer(0, 9, nullable=True)}
    >>> [rule] = read("a < 5 => missing(b)", "t", columns)
    >>> rule.condition == Or(IsNull("b"), Compare(">=", Column("a"), Literal(5)))
    True
    """
    names = list(domains)
    if not isinstance(text, str) or not text.strip():
        raise refused(text, "a rule is a text, and says something of columns", names)
    if len(text) > _LONGEST:
        raise refused(f"{text[:40]}…", f"it is longer than {_LONGEST:,} characters", names)
    try:
        written = _sql(text)
        asked = f"SELECT COUNT(*) AS n FROM {quotation(table)} WHERE {written}"  # noqa: S608 no engine reads it
        question = parse(asked, {table: PrivateTable({name: [] for name in names}, domains)}, cut=False).question
    except UnknownColumn:
        raise
    except CloisterError as error:
        raise refused(text, f"{error.what}: {error.why}", names) from None
    except (SqlglotError, RecursionError):
        raise refused(text, "it can't be read", names) from None
    computed: dict[str, Scalar] = {}
    relation, condition = question.table, question.where
    while isinstance(relation, Extended):
        computed, relation = dict(relation.scalars) | computed, relation.source
    if condition is None or not isinstance(relation, str | Base):
        raise refused(text, "it is no condition on columns", names)
    condition = _normal(_plain(condition, computed), computed, domains)
    for name, value in _undeclared(condition, domains):
        raise refused(text, f"{name!r} declares no value {value!r}", names)
    whole = Rule.of(text, condition, _listed(condition, computed, domains), domains)
    if not whole.domains:
        raise refused(text, "it reads no column", names)
    try:
        whole.broken({name: np.array([domain.low_code]) for name, domain in whole.domains.items()})
    except CloisterError as error:
        raise refused(text, f"{error.what}: {error.why}", names) from None
    parts = condition.parts if isinstance(condition, And) else (condition,)
    return [Rule.of(text, part, dict(whole.computed), whole.domains) for part in parts]


def _sql(text: str) -> str:
    """The text in SQL."""
    tokens = dialect_named(None).tokenize(text)
    if any(token.comments for token in tokens) or any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise SqlglotError("a comment or a second statement")
    arrows = [place for place, depth in enumerate(_depths(tokens)) if tokens[place].token_type is TokenType.FARROW and not depth]
    if len(arrows) > 1:
        raise SqlglotError("two arrows")
    if arrows:
        before, after = (_condition(text, part) for part in (tokens[: arrows[0]], tokens[arrows[0] + 1 :]))
        return f"({after}) OR NOT ({before})"
    return f"({_condition(text, tokens)})"


def _condition(text: str, tokens: Sequence[Token]) -> str:
    """One side of an arrow, or all of it: chains taken apart."""
    kinds = [token.token_type for token, depth in zip(tokens, _depths(tokens), strict=True) if not depth]
    places = [place for place, depth in enumerate(_depths(tokens)) if not depth and tokens[place].token_type in _CHAINED]
    if len(places) < 2 or any(kind in _JOINS for kind in kinds):
        return _one(text, tokens)
    ends = [-1, *places, len(tokens)]
    parts = [_one(text, tokens[start + 1 : end]) for start, end in pairwise(ends)]
    return " AND ".join(f"(({low}) {tokens[at].text} ({high}))" for low, at, high in zip(parts, places, parts[1:], strict=False))


def _one(text: str, tokens: Sequence[Token]) -> str:
    """Tokens that are one expression by themselves, with `missing(x)` in SQL's words."""
    if not tokens:
        raise SqlglotError("nothing on one side")
    found, place = "", 0
    while place < len(tokens):
        token = tokens[place]
        four = tokens[place : place + 4]
        marks = [each.token_type for each in four]
        if token.text.lower() == "missing" and marks[1:2] == [TokenType.L_PAREN] and marks[3:] == [TokenType.R_PAREN]:
            found += f" ({text[four[2].start : four[2].end + 1]} IS NULL)"
            place += 4
        else:
            found += f" {text[token.start : token.end + 1]}"
            place += 1
    reader = dialect_named(None)
    check_words(reader.tokenize(f"SELECT {found}"))
    with unheard():
        trees = parser_of(reader).parse(reader.tokenize(found), found)
    if len(trees) != 1 or not isinstance(trees[0], exp.Condition) or isinstance(trees[0], exp.Query):
        raise SqlglotError("no expression")
    return found.strip()


def _depths(tokens: Sequence[Token]) -> list[int]:
    """How many parentheses and CASEs stand around each token."""
    found, depth = [], 0
    for token in tokens:
        if token.token_type in (TokenType.R_PAREN, TokenType.END):
            depth -= 1
        found.append(depth)
        if token.token_type in (TokenType.L_PAREN, TokenType.CASE):
            depth += 1
    return found


def _plain(condition: Expression, computed: Mapping[str, Scalar]) -> Expression:
    """Comparisons of whether values are missing, as conditions on the columns themselves."""
    if isinstance(condition, And | Or):
        return type(condition)(*(_plain(part, computed) for part in condition.parts))
    if isinstance(condition, Not):
        return Not(_plain(condition.part, computed))
    if isinstance(condition, Compare) and condition.op in ("=", "!="):
        sides = [computed.get(side.name) if isinstance(side, Column) else None for side in (condition.left, condition.right)]
        first, second = (
            side.condition if isinstance(side, Truth) and isinstance(side.condition, IsNull) else None for side in sides
        )
        if first is not None and second is not None:
            same = Or(And(first, second), And(Not(first), Not(second)))
            return same if condition.op == "=" else Not(same)
    return condition


def _normal(condition: Expression, computed: dict[str, Scalar], domains: Mapping[str, Domain], no: bool = False) -> Expression:
    """A condition (or with `no` its NOT) that has NOT only before what is no comparison, orders of two columns in the form
    `a + 3 <= b`, and one comparison for all that AND or OR say of the same two. `computed` gets what it stands on.

    A missing value leaves open what it left open before: the laws of De Morgan hold for three truth values, and comparisons that
    become one read the same columns, so that they are open together.
    """
    match condition:
        case Not(part=part):
            return _normal(part, computed, domains, not no)
        case Between(column=column, low=low, high=high) if no or _order(Compare(">=", column, low), computed, domains):
            return _normal(And(Compare(">=", column, low), Compare("<=", column, high)), computed, domains, no)
        case And(parts=parts) | Or(parts=parts):
            every = isinstance(condition, And) != no
            return _joined([_normal(part, computed, domains, no) for part in parts], computed, domains, every=every)
        case Compare(op=op, left=left, right=right):
            leaf = Compare(_OPS[frozenset("<=>") - _SIGNS[op]] if no else op, left, right)
            sides = [side.name for side in (left, right) if isinstance(side, Column)]
            # an order of a declared column and another stays as it is: which of two is mended follows from the text
            stays = leaf.op in ("=", "!=") or (len(sides) == 2 and any(name in domains for name in sides))
            order = None if stays else _order(leaf, computed, domains)
            return (order and _written(*order, computed, domains)) or leaf
    return Not(condition) if no else condition


def _order(leaf: Expression, computed: Mapping[str, Scalar], domains: Mapping[str, Domain]) -> _Order | None:
    """What a comparison of two columns of numbers or days says of them; None for anything else."""
    if not isinstance(leaf, Compare):
        return None
    terms = Rule.of("", leaf, computed, domains).terms
    names = sorted(name for name in terms if name)
    if sorted(terms[name] for name in names) != [-1, 1]:
        return None
    sign, (first, second) = terms[names[0]], names
    signs = _SIGNS[leaf.op] if sign == 1 else _turned(_SIGNS[leaf.op])
    return (first, second, sign * terms.get("", Fraction(0))), signs


def _turned(signs: frozenset[str]) -> frozenset[str]:
    return frozenset(sign.translate(_TURNED) for sign in signs)


def _written(
    of: tuple[str, str, Fraction], signs: frozenset[str], computed: dict[str, Scalar], domains: Mapping[str, Domain]
) -> Expression | None:
    """The comparison, with the column that may be less on the left and what is added to it; None where there is none."""
    first, second, plus = of
    if ">" in signs and "<" not in signs:
        first, second, plus, signs = second, first, -plus, _turned(signs)
    if (op := _OPS.get(signs)) is None:
        return None
    domain = domains[first]
    if op in ("<", "<=") and all(isinstance(domains[name], Integer | Date) for name in (first, second)):
        least = ceil(plus) if op == "<=" else floor(plus) + 1  # how far apart they are: 1 is the same as more than 0
        op, plus = ("<", Fraction(0)) if least == 1 else ("<=", Fraction(least))
    if not plus:
        return Compare(op, Column(first), Column(second))
    scalar: Scalar = Add(Ref(first), Const(int(plus) if plus.denominator == 1 else plus))
    if isinstance(domain, Date):
        ends = (domain.low_code + plus, domain.high_code + plus)
        if plus.denominator > 1 or ends[0] < _CALENDAR.low_code or ends[1] > _CALENDAR.high_code:
            return None
        scalar = DateShift(Ref(first), int(plus), "day")
    name = f"{first} {'-' if plus < 0 else '+'} {abs(plus)}"
    while name in domains or computed.get(name, scalar) != scalar:
        name += "'"
    computed[name] = scalar
    return Compare(op, Column(name), Column(second))


def _joined(
    parts: Sequence[Expression], computed: dict[str, Scalar], domains: Mapping[str, Domain], *, every: bool
) -> Expression:
    """AND or OR of parts, with one comparison for those of the same two columns."""
    orders, kept = [_order(part, computed, domains) for part in parts], list[Expression]()
    together = dict[tuple[str, str, Fraction], list[frozenset[str]]]()
    for of, said in filter(None, orders):
        together.setdefault(of, []).append(said)
    one = {
        of: _written(of, frozenset.intersection(*signs) if every else frozenset.union(*signs), computed, domains)
        for of, signs in together.items()
        if len(signs) > 1
    }
    for part, order in zip(parts, orders, strict=True):
        folded = None if order is None else one.get(order[0])
        if folded is None or folded not in kept:
            kept.append(folded or part)
    return kept[0] if len(kept) == 1 else And(*kept) if every else Or(*kept)


def _listed(condition: Expression, computed: Mapping[str, Scalar], domains: Mapping[str, Domain]) -> dict[str, Scalar]:
    """Computed categories in the order of the column beside them: branches that are never taken list its values."""
    found = dict(computed)
    for leaf in leaves(condition):
        if isinstance(leaf, Compare) and isinstance(leaf.left, Column) and isinstance(leaf.right, Column):
            for one, other in ((leaf.left.name, leaf.right.name), (leaf.right.name, leaf.left.name)):
                declared = domains.get(one)
                if isinstance(declared, Category) and len(declared.options) <= _MOST_LISTED and other in found:
                    never = tuple((Literal(False), Const(value)) for value in declared.options)
                    found[other] = Case(never, found[other])
    return found


def _undeclared(condition: Expression, domains: Mapping[str, Domain]) -> Iterator[tuple[str, Any]]:
    """Categories that are not declared: most often a slip of the pen, which would forbid all others."""
    for leaf in leaves(condition):
        if isinstance(leaf, In) or (isinstance(leaf, Compare) and leaf.op in ("=", "!=")):
            for name in leaf.columns():
                domain = domains.get(name)
                if isinstance(domain, Category):
                    yield from ((name, value) for value in literals(leaf) if value is not None and domain.encode(value) is None)
