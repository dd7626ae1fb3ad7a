"""What a condition asks for that is not declared: `sex = 'female'` where Female and Male are, `age > 200` where ages end at 90.

The declaration is public, so this can be said before anything is charged. A comparison that holds for no declared value is noted
beside the plan and the answer. Where it stands by itself in WHERE, or joined to the rest by AND, no row can count: counts and
sums are 0 whatever the rows are, which is answered without a look at them and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from cloister.query.refusals import clipped
from cloister.session.questions.narrowing import conjuncts
from cloister.session.questions.question import Count, Distinct, Persons, Question, Sum
from cloister.tables import (
    And,
    Between,
    Column,
    Compare,
    Domain,
    Expression,
    In,
    Integer,
    Like,
    Literal,
    Not,
    Or,
    PrivateTable,
    Relation,
)
from cloister.tables.expression.evaluate import allowed_codes, holds

if TYPE_CHECKING:
    from cloister.query.parse import Parsed

_SHOWN = 6
_MOST_VALUES = 1_000
"""A domain that holds more is asked at its two ends: along numbers and days a comparison is true on one side."""
CERTAIN = "no declared value passes the condition: the answer is certain, no row was read and nothing was charged"

Domains = Callable[[str], Domain]


def reviewed(parsed: Parsed, tables: Mapping[str, Any]) -> Parsed:
    """A text that was read, with what the analyst should know of its conditions, and whether the declaration alone answers it."""
    plain = True
    for question in parsed.questions:
        where = question.where
        if where is None and isinstance(question.table, str):
            continue
        if isinstance(where, Compare) and isinstance(question.table, str) and isinstance(where.right, Literal):
            domain, value = tables[question.table].columns.get(getattr(where.left, "name", "")), where.right.value
            if type(domain) is Integer and type(value) is int and domain.low < value < domain.high:
                continue  # what most questions ask
        plain = False
    if plain:
        return parsed
    found: dict[str, None] = {}
    for question in parsed.questions:
        for condition, domain_of in _conditions(question, tables):
            found.update(dict.fromkeys(undeclared(condition, domain_of)))
    if not found:
        return parsed
    layout = parsed.layout
    row = (
        parsed.above is None and len(parsed.questions) == 1 and layout.having is None and not layout.offset and layout.limit != 0
    )
    return replace(parsed, notes=(*parsed.notes, *found), certain=row and _is_certain(parsed.question, tables))


def zero_of_nothing(question: Question) -> set[str]:
    """The statistics that are 0 where no row is; the others have no value there."""
    return {each.name for each in question.statistics if isinstance(each, Count | Sum | Persons | Distinct)}


def _is_certain(question: Question, tables: Mapping[str, Any]) -> bool:
    """Whether it is about no row, whatever the rows are."""
    if question.by:
        return False
    domain_of = _columns(question.table, tables).__getitem__
    return any(_impossible(part, domain_of) for part in conjuncts(question.where))


def _columns(table: Any, tables: Mapping[str, Any]) -> Mapping[str, Domain]:
    columns: Mapping[str, Domain] = (tables[table] if isinstance(table, str) else table).columns
    return columns


def _conditions(question: Question, tables: Mapping[str, Any]) -> Iterator[tuple[Expression, Domains]]:
    """Every condition in a question, with the columns that it names."""
    if question.where is not None:
        yield question.where, _columns(question.table, tables).__getitem__
    if not isinstance(question.table, str):
        yield from _within(question.table, {})


def _within(what: Any, known: Mapping[str, Domain]) -> Iterator[tuple[Expression, Domains]]:
    if isinstance(what, PrivateTable):
        return
    if isinstance(what, Relation):
        source = getattr(what, "source", None)
        known = {**(source.columns if isinstance(source, Relation) else {}), **what.columns}
    elif isinstance(what, Expression):
        if what.columns() <= known.keys():
            yield what, known.__getitem__
        return
    if is_dataclass(what):
        for each in fields(what):
            yield from _within(getattr(what, each.name), known)
    elif isinstance(what, Mapping):
        for each in what.values():
            yield from _within(each, known)
    elif isinstance(what, tuple | list):
        for each in what:
            yield from _within(each, known)


def undeclared(condition: Expression, domain_of: Domains) -> Iterator[str]:
    """A sentence for each comparison with a constant that no declared value passes.

    >>> from cloister.tables import Category
    >>> asked = Or(Compare("=", Column("sex"), Literal("female")), Compare("=", Column("sex"), Literal("Male")))
    >>> [*undeclared(asked, {"sex": Category(["Female", "Male"])}.__getitem__)]
    ["sex = 'female' holds for no row: declared for sex are 'Female', 'Male'"]
    """
    match condition:
        case And(parts=parts) | Or(parts=parts):
            for part in parts:
                yield from undeclared(part, domain_of)
        case Not(part=part):
            yield from undeclared(part, domain_of)
        case In(column=column, values=values):
            for value in values:
                yield from undeclared(Compare("=", column, Literal(value)), domain_of)
        case Compare(op="!=", left=left, right=right):
            if name := _impossible(Compare("=", left, right), domain_of):
                yield f"{_written(condition)} holds for every row with a value: {_declared(name, domain_of(name))}"
        case _:
            if name := _impossible(condition, domain_of):
                yield f"{_written(condition)} holds for no row: {_declared(name, domain_of(name))}"


def _impossible(condition: Expression, domain_of: Domains) -> str | None:
    """The column of a comparison with constants that no declared value passes; None where one may."""
    match condition:
        case In(column=Column(name=name)) | Like(column=Column(name=name)) | Between(column=Column(name=name)):
            pass
        case Compare(left=Column(name=name), right=Literal()) | Compare(left=Literal(), right=Column(name=name)):
            pass
        case _:
            return None
    if any(value is None for value in _constants(condition)):
        return None  # a comparison with NULL is written on purpose
    domain = domain_of(name)
    if domain.size is None or domain.kind == "place":
        return None
    if domain.size <= _MOST_VALUES:
        allowed = allowed_codes(name, domain, [condition])
        return None if allowed is None or allowed[:-1].any() else name
    return name if _beyond_ends(condition, name, domain) else None


def _beyond_ends(condition: Expression, name: str, domain: Domain) -> bool:
    match condition:
        case Between(low=low, high=high):
            return any(_beyond_ends(Compare(op, Column(name), end), name, domain) for op, end in ((">=", low), ("<=", high)))
        case Compare(op="=", left=left, right=right):
            return any(_beyond_ends(Compare(op, left, right), name, domain) for op in ("<=", ">="))
        case Compare(op="<" | "<=" | ">" | ">="):
            import numpy as np

            ends = {name: np.array([domain.low_code, domain.high_code], dtype=object)}
            return not holds(condition, {name: domain}, ends).any()
    return False


def _constants(condition: Expression) -> list[Any]:
    match condition:
        case In(values=values):
            return list(values)
        case Between(low=low, high=high):
            return [low.value, high.value]
        case Compare(left=left, right=right):
            return [side.value for side in (left, right) if isinstance(side, Literal)]
    return []


def _written(condition: Expression) -> str:
    match condition:
        case In(column=column, values=values):
            return f"{column.name} IN ({', '.join(map(_text, values[:_SHOWN]))}{', …' if len(values) > _SHOWN else ''})"
        case Between(column=column, low=low, high=high):
            return f"{column.name} BETWEEN {_text(low.value)} AND {_text(high.value)}"
        case Like(column=column, pattern=pattern):
            return f"{column.name} LIKE {_text(pattern)}"
        case Compare(op=op, left=left, right=right):
            return f" {op} ".join(
                _text(side.value) if isinstance(side, Literal) else min(side.columns()) for side in (left, right)
            )
    return ""


def _declared(name: str, domain: Domain) -> str:
    if domain.kind in ("category", "boolean"):
        values = domain.values()
        return f"declared for {name} are {', '.join(map(_text, values[:_SHOWN]))}{', …' if len(values) > _SHOWN else ''}"
    low, high = (_text(domain.decode(code)) for code in (domain.low_code, domain.high_code))
    return f"{name} is declared from {low} to {high}"


def _text(value: Any) -> str:
    return clipped(value) if isinstance(value, str) else str(value)
