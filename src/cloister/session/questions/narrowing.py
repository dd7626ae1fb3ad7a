"""Which groups of a declared key a condition can let through: public arithmetic over the declared domain.

A condition that reads one column, joined to the rest by AND, holds for some values of that column and not for others, whatever
the rows are. So the groups of a key that is that column, or is computed from it, are narrowed to the values for which it holds;
all of those appear in the answer, empty ones too, and no group appears that must be empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.session.questions.declared import Declared
from cloister.tables import And, Domain, Expression, Extended, Filtered, Key, Or
from cloister.tables.expression.evaluate import evaluate, holds

if TYPE_CHECKING:
    from cloister.tables.expression.scalar import Scalar

_MOST_VALUES = 1_000_000
_MOST_IMAGED = 200_000
_MOST_WORK = 20_000_000

Mask = npt.NDArray[np.bool_]

_MOST_KNOWN = 256
_KNOWN: WeakKeyDictionary[Any, dict[Any, tuple[int, ...] | None]] = WeakKeyDictionary()
"""What was worked out, as long as the table lives: a memory of its own must not keep a table's rows."""


def narrowed(key: str | Key, size: int, where: Expression | None, declaration: Declared) -> tuple[int, ...] | None:
    """The places of the groups that can hold rows, the last one being that of rows without a value; None where that is all of
    them. A computed key takes only those values that it has for some value of its column, under a condition or not."""
    known = _KNOWN.setdefault(declaration, {})
    asked = (key, size, where, repr(where))  # 1 and True are equal and hash alike, and mean different things in a condition
    if asked not in known:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[asked] = _narrowed(key, size, where, declaration)
    return known[asked]


def _narrowed(key: str | Key, size: int, where: Expression | None, declaration: Declared) -> tuple[int, ...] | None:
    name = key if isinstance(key, str) else key.name
    scalars, conditions = _definitions(declaration), list(_conditions(where, declaration))
    source = _source(name, scalars)
    domain = None if source is None else declaration.columns.get(source)
    if source is None or domain is None or domain.size is None or domain.size > _MOST_VALUES:
        source, domain = name, declaration.columns[name]
        if domain.size is None or domain.size > _MOST_VALUES:
            return None
    telling = [told for each in conditions for told in [_about(source, each, scalars)] if told is not None]
    if not telling and (source == name or (domain.size or 0) > _MOST_IMAGED):
        return None
    if any(not scalars[column].is_exact(declaration.columns) for column in _computed({name, *_read(telling)}, scalars)):
        return None  # an engine's logarithm may differ from ours by one step
    if len(telling) * (domain.size or 0) > _MOST_WORK:
        return None  # so many conditions on so many values take longer than they are worth
    codes = _codes(source, domain, scalars, declaration, {name, *_read(telling)})
    through = np.ones((domain.size or 0) + 1, dtype=bool)
    for condition in telling:
        through &= holds(condition, declaration.columns, codes)
    kept = tuple(
        int(place) for place in np.unique(_places(key, codes[name], declaration.columns[name], size)[through]) if place >= 0
    )
    if not any(place < size - 1 or declaration.columns[name].nullable for place in kept):
        raise UnsupportedQuery(
            f"Grouping by {name!r} is not supported",
            why="the condition leaves none of its declared values",
            instead=f"a condition that holds for some {name}",
        )
    return None if len(kept) == size else kept


def conjuncts(condition: Expression | None) -> Iterator[Expression]:
    """The parts that AND joins.

    >>> from cloister.tables import Column, Compare, Literal
    >>> adult = Compare(">=", Column("age"), Literal(18))
    >>> list(conjuncts(And(adult, adult))) == [adult, adult], list(conjuncts(None))
    (True, [])
    """
    if isinstance(condition, And):
        for part in condition.parts:
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def without(condition: Expression | None, hidden: Expression | None) -> Expression | None:
    """The condition without the parts of another that AND joins to it; None where nothing is left.

    >>> from cloister.tables import Column, Compare, Literal
    >>> adult, woman = Compare(">=", Column("age"), Literal(18)), Compare("=", Column("sex"), Literal("F"))
    >>> without(And(adult, woman), adult) == woman, without(adult, adult)
    (True, None)
    """
    told = [str(part.describe()) for part in conjuncts(hidden)]
    left = [part for part in conjuncts(condition) if str(part.describe()) not in told]
    return condition if not told else None if not left else left[0] if len(left) == 1 else And(*left)


def _conditions(where: Expression | None, declaration: Declared) -> Iterator[Expression]:
    yield from conjuncts(where)
    while isinstance(declaration, Extended | Filtered):
        if isinstance(declaration, Filtered):
            yield from conjuncts(declaration.where)
        declaration = declaration.source


def _definitions(declaration: Declared) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    while isinstance(declaration, Extended | Filtered):
        if isinstance(declaration, Extended):
            found.update(declaration.scalars)
        declaration = declaration.source
    return found


def _about(source: str, condition: Expression, scalars: Mapping[str, Scalar]) -> Expression | None:
    """What a condition says of one column: itself where it reads no other; of alternatives what all of them say together."""
    if {_source(column, scalars) for column in condition.columns()} == {source}:
        return condition
    if not isinstance(condition, Or):
        return None
    branches = []
    for branch in condition.parts:
        told = [part for part in conjuncts(branch) if {_source(column, scalars) for column in part.columns()} == {source}]
        if not told:
            return None
        branches.append(told[0] if len(told) == 1 else And(*told))
    return Or(*branches)


def _read(conditions: Sequence[Expression]) -> set[str]:
    return {column for each in conditions for column in each.columns()}


def _computed(names: set[str], scalars: Mapping[str, Scalar]) -> set[str]:
    """Those of the names that are computed, and what they are computed from, as far as that is computed too."""
    mine = {name for name in names if name in scalars}
    return mine | {inner for name in mine for inner in _computed(set(scalars[name].columns()), scalars)}


def _source(name: str, scalars: Mapping[str, Scalar]) -> str | None:
    """The one column that a column is, or is computed from; None where there are several or none."""
    if name not in scalars:
        return name
    sources = {_source(column, scalars) for column in scalars[name].columns()}
    return sources.pop() if len(sources) == 1 else None


def _codes(
    source: str, domain: Domain, scalars: Mapping[str, Scalar], declaration: Declared, wanted: set[str]
) -> dict[str, npt.NDArray[np.object_]]:
    """For each value of the source column, NULL last, the code of each wanted column."""
    codes = np.empty((domain.size or 0) + 1, dtype=object)
    codes[:-1] = range(domain.low_code, domain.low_code + (domain.size or 0))
    found = {source: codes}

    def add(name: str) -> None:
        if name not in found:
            for column in scalars[name].columns():
                add(column)
            found[name] = evaluate(scalars[name], declaration.columns, found)

    for name in sorted(wanted):
        add(name)
    return found


def _places(key: str | Key, codes: npt.NDArray[np.object_], domain: Domain, size: int) -> npt.NDArray[np.int64]:
    """The group of each code; -1 for a code outside of all bins."""
    missing = np.array([code is None for code in codes], dtype=bool)
    numbers = np.array([0 if code is None else int(code) for code in codes], dtype=object)
    if isinstance(key, str):
        places = np.array(numbers - domain.low_code, dtype=np.int64)
        return np.where(missing, size - 1, places)
    starts = np.array(key.starts(domain), dtype=object)
    places = np.searchsorted(starts, numbers, side="right").astype(np.int64) - 1
    outside = (places < 0) | (places >= len(starts) - 1)
    return np.where(missing, size - 1, np.where(outside, -1 if domain.nullable else size - 1, places))
