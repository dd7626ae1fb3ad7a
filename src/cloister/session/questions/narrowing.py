"""Which groups of a declared key a condition can let through: public arithmetic over the declared domain.

A condition that reads one column, joined to the rest by AND, holds for some values of that column and not for others, whatever
the rows are. So the groups of a key that is that column, or is computed from it, are narrowed to the values for which it holds;
all of those appear in the answer, empty ones too, and no group appears that must be empty. Conditions in subqueries and on both
sides of joins are read under the names that their columns have there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.session.questions.declared import Declared
from cloister.tables import (
    And,
    Capped,
    Domain,
    Expression,
    Extended,
    Filtered,
    Followed,
    Key,
    KeyJoined,
    Numbered,
    Or,
    PerUnit,
    Projected,
    PublicJoined,
    Relation,
    UnitJoined,
)
from cloister.tables.expression.evaluate import evaluate, holds

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
    rows = _Rows(declaration, where)
    target = rows.origin(name)
    source = target[0].source(target[1])
    size_of_source = None if source is None else source[0].columns[source[1]].size
    if source is None or size_of_source is None or size_of_source > _MOST_VALUES:
        source, size_of_source = target, declaration.columns[name].size
        if size_of_source is None or size_of_source > _MOST_VALUES:
            return None
    telling = [(at, told) for at, each in rows.conditions() for told in [_about(source, each, at)] if told is not None]
    if not telling and (source == target or size_of_source > _MOST_IMAGED):
        return None
    values = _Values(source)
    read = [target, *((at, column) for at, each in telling for column in sorted(each.columns()))]
    if not all(values.known(at, column) for at, column in read):
        return None  # an engine's logarithm may differ from ours by one step
    if len(telling) * size_of_source > _MOST_WORK:
        return None  # so many conditions on so many values take longer than they are worth
    through = np.ones(size_of_source + 1, dtype=bool)
    for at, condition in telling:
        through &= holds(condition, at.columns, {column: values.of(at, column) for column in condition.columns()})
    codes = values.of(*target)
    kept = tuple(int(place) for place in np.unique(_places(key, codes, declaration.columns[name], size)[through]) if place >= 0)
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


class _Rows:
    """A relation in the tree of a question, and where its columns come from.

    Each of its rows holds in the columns that it carries what one row of a relation below holds in them, which has passed that
    relation's conditions. So these hold for the row, too, whatever the names have become. What an outer join leaves without a
    partner passed nothing: that side is not looked into.
    """

    def __init__(self, declaration: Declared, where: Expression | None = None) -> None:
        self.columns = declaration.columns
        self.scalars = dict(declaration.scalars) if isinstance(declaration, Extended) else {}
        self.own = [*conjuncts(declaration.where if isinstance(declaration, Filtered) else None), *conjuncts(where)]
        self.sources: dict[tuple[str, _Place | None], _Place | None] = {}
        self.below = [_Rows(source) for source, _ in _carried(declaration)]
        self.carried = {
            new: (rows, old)
            for rows, (_, names) in zip(self.below, _carried(declaration), strict=True)
            for new, old in names.items()
        }

    def conditions(self) -> Iterator[tuple[_Rows, Expression]]:
        """Every condition that a row has passed, with the relation whose columns it names."""
        for each in self.own:
            yield self, each
        for rows in self.below:
            yield from rows.conditions()

    def origin(self, name: str) -> _Place:
        """The relation in which a column is computed or declared, and its name there."""
        if name in self.carried:
            rows, old = self.carried[name]
            return rows.origin(old)
        return self, name

    def source(self, name: str, stop: _Place | None = None) -> _Place | None:
        """The one column that a column is, or is computed from, as far down as `stop`; None where there are several or none."""
        rows, name = self.origin(name)
        if (rows, name) == stop or name not in rows.scalars:
            return rows, name
        if (name, stop) not in rows.sources:
            sources = {rows.source(column, stop) for column in rows.scalars[name].columns()}
            rows.sources[name, stop] = sources.pop() if len(sources) == 1 else None
        return rows.sources[name, stop]


_Place: TypeAlias = tuple[_Rows, str]


def _carried(declaration: Declared) -> list[tuple[Relation, dict[str, str]]]:
    """The relations that a row's columns are carried from, each with pairs of the new and the old name."""

    def whole(source: Relation) -> tuple[Relation, dict[str, str]]:
        return source, {name: name for name in source.columns}

    match declaration:
        case Extended() | Filtered() | Capped() | Numbered() | Followed() | PublicJoined():
            return [whole(declaration.source)]
        case Projected(source=source, names=names):
            return [(source, dict(names))]
        case PerUnit(source=source, keys=keys):
            return [(source, {name: name for name in keys})]
        case UnitJoined(left=left, right=right, outer=outer, full=full):
            return [*([] if full else [whole(left)]), *([] if outer else [whole(right)])]
        case KeyJoined(left=left, right=right, outer=outer):
            return [whole(right), *([] if outer else [whole(left)])]
    return []


def _about(source: _Place, condition: Expression, at: _Rows) -> Expression | None:
    """What a condition says of one column: itself where it reads no other; of alternatives what all of them say together."""

    def alone(part: Expression) -> bool:
        return {at.source(column, source) for column in part.columns()} == {source}

    if alone(condition):
        return condition
    if not isinstance(condition, Or):
        return None
    branches = []
    for branch in condition.parts:
        told = [part for part in conjuncts(branch) if alone(part)]
        if not told:
            return None
        branches.append(told[0] if len(told) == 1 else And(*told))
    return Or(*branches)


class _Values:
    """For each value of the source column, NULL last, the codes of what is computed from it."""

    def __init__(self, source: _Place) -> None:
        rows, name = source
        domain = rows.columns[name]
        codes = np.empty((domain.size or 0) + 1, dtype=object)
        codes[:-1] = range(domain.low_code, domain.low_code + (domain.size or 0))
        self._found: dict[_Place, npt.NDArray[np.object_]] = {source: codes}

    def known(self, rows: _Rows, name: str) -> bool:
        """Whether the codes are those that every engine computes."""
        rows, name = rows.origin(name)
        if (rows, name) in self._found or name not in rows.scalars:
            return True
        scalar = rows.scalars[name]
        return scalar.is_exact(rows.columns) and all(self.known(rows, column) for column in scalar.columns())

    def of(self, rows: _Rows, name: str) -> npt.NDArray[np.object_]:
        """The codes of a column."""
        place = rows, name = rows.origin(name)
        if place not in self._found:
            scalar = rows.scalars[name]
            below = {column: self.of(rows, column) for column in scalar.columns()}
            self._found[place] = evaluate(scalar, rows.columns, below)
        return self._found[place]


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
