"""The same conditions and computed columns without an engine, over the codes of public values.

What a declared column may hold is public, so what a condition says of each of its values, and what is computed from it, is public
too: `WHERE age < 30` leaves the groups 17 to 29 of a key `age`, and none of them appears because of a row. No row comes here.

A scope whose columns are arrays is in the place of the engine's; the expressions are the same. Only logarithms,
exponentials and fractional powers may differ from an engine's, by one step (`quotients.py`): what depends on them is not
narrowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cloister.tables.declaring.columns import Domain, Text
from cloister.tables.expression.expressions import Expression
from cloister.tables.expression.lanes import Lane, LaneOperations, lane
from cloister.tables.expression.scope import Scope

if TYPE_CHECKING:
    from cloister.tables.expression.scalar import Scalar

MOST_VALUES = 1_000_000
_MOST_TOGETHER = 100_000


class LaneScope(Scope):
    """Columns that are arrays."""

    def __init__(self, domains: Mapping[str, Domain], codes: Mapping[str, Lane]) -> None:
        super().__init__(domains, codes, "numpy")

    @property
    def operations(self) -> Any:
        """Those on arrays."""
        return LaneOperations()

    def truth(self, value: bool | None) -> Any:
        """One value for all rows."""
        return lane(np.array(bool(value)), np.array(value is None))


def evaluate(
    what: Scalar | Expression, domains: Mapping[str, Domain], codes: Mapping[str, npt.NDArray[Any]]
) -> npt.NDArray[np.object_]:
    """The codes of a computed column, or the truth of a condition, for each row of codes; None for NULL, before and after.

    >>> from cloister.tables import Column, Compare, Integer, Literal
    >>> from cloister.tables.expression.scalars import Add, Const, Ref
    >>> ages = {"age": np.array([17, 40, None], dtype=object)}
    >>> evaluate(Compare(">", Column("age"), Literal(30)), {"age": Integer(0, 120)}, ages).tolist()
    [False, True, None]
    >>> evaluate(Add(Ref("age"), Const(1)), {"age": Integer(0, 120)}, ages).tolist()
    [18, 41, None]
    """
    length = len(next(iter(codes.values()))) if codes else 1
    found = _found(what, domains, codes)
    values = np.broadcast_to(found.values, (length,)).astype(object)
    values[np.broadcast_to(found.null, (length,))] = None
    return values


def holds(condition: Expression, domains: Mapping[str, Domain], codes: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    """For each row of codes whether the condition is true: neither false nor NULL.

    >>> from cloister.tables import Column, Compare, Integer, Literal
    >>> ages = {"age": np.array([17, 40, None], dtype=object)}
    >>> holds(Compare(">", Column("age"), Literal(30)), {"age": Integer(0, 120)}, ages).tolist()
    [False, True, False]
    """
    return _true(_found(condition, domains, codes), len(next(iter(codes.values()))) if codes else 1)


def allowed_codes(name: str, domain: Domain, conditions: Sequence[Expression]) -> npt.NDArray[np.bool_] | None:
    """Which values of a column all the conditions let through, each of which reads that column alone: by position, NULL last.

    None where the domain is not declared or holds more than 1,000,000 values.

    >>> from cloister.tables import Column, Compare, Integer, Literal
    >>> allowed_codes("age", Integer(17, 20), [Compare(">", Column("age"), Literal(18))]).tolist()
    [False, False, True, True, False]
    """
    every = _every(domain)
    if every is None:
        return None
    through = np.ones(len(every.null), dtype=bool)
    for condition in conditions:
        through &= _true(_acted(condition, LaneScope({name: domain}, {name: every})), len(through))
    return through


def image(
    scalar: Scalar, domains: Mapping[str, Domain], name: str, mask: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.int64] | None:
    """The codes that a column computed from `name` alone takes over its values (those of the mask, NULL last), ascending.

    NULL has `null_code`. None where that is not known: an undeclared domain, a column beside `name`, an engine's logarithm.

    >>> from cloister.tables import Integer
    >>> from cloister.tables.expression.scalars import Multiply, Ref
    >>> image(Multiply(Ref("x"), Ref("x")), {"x": Integer(-2, 2)}, "x").tolist()
    [0, 1, 4, 5]
    """
    codes = _all_codes(domains[name]) if name in domains else None
    if codes is None or scalar.columns() != {name} or not scalar.is_exact(domains):
        return None
    result = scalar.domain(domains)
    if isinstance(result, Text):
        return None
    found = _found(scalar, domains, {name: codes})
    values, null = (np.broadcast_to(each, codes.shape) for each in (found.values, found.null))
    if mask is not None:
        values, null = values[mask], null[mask]
    return np.unique(np.where(null, result.null_code, values).astype(np.int64))


def may_reach(conditions: Sequence[Expression], wanted: Sequence[bool], domains: Mapping[str, Domain]) -> bool:
    """Whether the first condition that is true can be one of those that are wanted; the last of `wanted` is for none being true.

    Where the columns that they read take more than 100,000 values together, or undeclared ones: yes.

    >>> from cloister.tables import Column, Compare, Integer, Literal
    >>> small, large = (Compare(op, Column("x"), Literal(3)) for op in ("<", ">="))
    >>> [may_reach(each, [False] * len(each) + [True], {"x": Integer(0, 9)}) for each in ([small], [small, large])]
    [True, False]
    """
    if not any(wanted):
        return False
    read = sorted({name for condition in conditions for name in condition.columns()})
    sizes = [domains[name].size for name in read]
    known = [size + domains[name].nullable for name, size in zip(read, sizes, strict=True) if size is not None]
    if len(known) < len(read) or math.prod(known) > _MOST_TOGETHER:
        return True
    return _may_reach(tuple(conditions), repr(conditions), tuple(wanted), tuple((name, domains[name]) for name in read))


@lru_cache(maxsize=128)
def _may_reach(
    conditions: tuple[Expression, ...], _told: str, wanted: tuple[bool, ...], columns: tuple[tuple[str, Domain], ...]
) -> bool:
    """`_told` tells apart what is equal and means different things: 1 and True."""
    codes = []
    for _, domain in columns:
        every = _all_codes(domain)
        assert every is not None
        codes.append(every if domain.nullable else every[:-1])
    rows = dict(zip((name for name, _ in columns), (each.ravel() for each in np.meshgrid(*codes)), strict=True))
    left = np.ones(len(next(iter(rows.values()))) if rows else 1, dtype=bool)
    for condition, here in zip(conditions, wanted[:-1], strict=True):
        true = holds(condition, dict(columns), rows)
        if here and bool(np.any(true & left)):
            return True
        left &= ~true
    return wanted[-1] and bool(left.any())


def _true(found: Lane, length: int) -> npt.NDArray[np.bool_]:
    return np.broadcast_to(found.values.astype(bool) & ~found.null, (length,))


def _all_codes(domain: Domain) -> npt.NDArray[np.object_] | None:
    if domain.size is None or domain.size > MOST_VALUES:
        return None
    codes = np.empty(domain.size + 1, dtype=object)
    codes[:-1] = range(domain.low_code, domain.high_code + 1)
    return codes


@lru_cache(maxsize=4)
def _every(domain: Domain) -> Lane | None:
    """All codes of a domain, NULL last: a workload asks for the same many times."""
    codes = _all_codes(domain)
    return None if codes is None else _lane_of(domain, codes)


def _found(what: Scalar | Expression, domains: Mapping[str, Domain], codes: Mapping[str, npt.NDArray[Any]]) -> Lane:
    lanes = {name: _lane_of(domains[name], column) for name, column in codes.items() if name in domains}
    return _acted(what, LaneScope(domains, lanes))


def _acted(what: Scalar | Expression, scope: LaneScope) -> Lane:
    act: Callable[[Scope], Any] = what.condition if isinstance(what, Expression) else what.code
    with np.errstate(all="ignore"):  # what is in the place of NULL is computed too, and thrown away
        found: Lane = act(scope)
    return found


def _lane_of(domain: Domain, column: npt.NDArray[Any]) -> Lane:
    given = np.asarray(column)
    null = np.array([value is None for value in given], dtype=bool) if given.dtype == object else np.zeros(len(given), dtype=bool)
    empty: Any = "" if isinstance(domain, Text) else 0
    filled = np.where(null, empty, given)
    return lane(filled.astype(object if isinstance(domain, Text) else np.int64), null)
