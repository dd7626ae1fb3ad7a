"""What a condition asks for that is not declared: `sex = 'female'` where Female and Male are, `age > 200` where ages end at 90.

The declaration is public, so this can be said before anything is charged. A comparison that holds for no declared value is noted
beside the plan and the answer. Where it stands by itself in WHERE, or joined to the rest by AND, no row can count, whatever the
rows are: the question is refused with what is declared, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from cloister.query.refusals import clipped, refused
from cloister.session.questions.narrowing import conjuncts
from cloister.tables import And, Between, Column, Compare, Domain, Expression, In, Like, Literal, Not, Or
from cloister.tables.expression.evaluate import allowed_codes, holds

_SHOWN = 6
_MOST_VALUES = 100_000
"""A domain that holds more is asked at its two ends: along numbers and days a comparison is true on one side."""

Domains = Callable[[str], Domain]


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


def check_possible(condition: Expression | None, domain_of: Domains) -> None:
    """Refuse a condition that no declared value can pass: its answer is certain, and would be charged for nothing."""
    for part in conjuncts(condition):
        if name := _impossible(part, domain_of):
            domain = domain_of(name)
            why = f"{_declared(name, domain)}, so no row can count, whatever the rows are; nothing was charged"
            raise refused(f"The condition {_written(part)} is not supported", why, _instead(name, part, domain))


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


def _instead(name: str, condition: Expression, domain: Domain) -> str:
    """A condition that a declared value passes: the nearest one."""
    if domain.kind != "category":
        return f"{name} <= {_text(domain.decode(domain.high_code))}"
    values = {str(each).lower(): each for each in domain.values()}
    close = get_close_matches(str([*_constants(condition), ""][0]).lower(), [*values], 1, 0.6)
    return f"{name} = {_text(values[close[0]] if close else domain.values()[0])}"


def _declared(name: str, domain: Domain) -> str:
    if domain.kind in ("category", "boolean"):
        values = domain.values()
        return f"declared for {name} are {', '.join(map(_text, values[:_SHOWN]))}{', …' if len(values) > _SHOWN else ''}"
    low, high = (_text(domain.decode(code)) for code in (domain.low_code, domain.high_code))
    return f"{name} is declared from {low} to {high}"


def _text(value: Any) -> str:
    return clipped(value) if isinstance(value, str) else str(value)
