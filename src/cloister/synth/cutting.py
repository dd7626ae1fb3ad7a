"""What a question reads of each column of a model: its values cut into pieces within which neither the condition, nor the group,
nor the state changes.

Everything here follows from declarations, bins and the text of the question: public, all of it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.errors import UnsupportedQuery
from cloister.session.planning.grid import Axis
from cloister.synth.measuring import Floats
from cloister.synth.pieces import Integers
from cloister.synth.states import States
from cloister.tables import And, Between, Compare, Domain, Expression, In, IsNull, Literal, Not, Or
from cloister.tables.expression.evaluate import LaneScope
from cloister.tables.expression.expressions import number_of, threshold
from cloister.tables.expression.lanes import Lane

_MOST_PIECES = 200_000


@dataclass(frozen=True, eq=False)
class Cut:
    """One column as a question reads it. A piece is a run of values; a class is a set of states, and each piece lies in one.

    A class that is one piece holds whole states; one of several pieces is a single state that the question cuts, and a piece of
    it has a share of the state's values.
    """

    code: Integers
    """Of each piece its first value, as a code."""
    last: Integers
    of: Integers
    """The class of each piece."""
    share: Floats
    """Its part of its class: 1, unless the question cuts the state."""
    middle: Floats
    """Its mean value, as a code."""
    classes: Integers
    """The class of each state."""
    group: Integers
    """The place of each piece among the groups of the key; 0 where the column is no key, -1 where it is in no group."""

    @property
    def number(self) -> int:
        """How many classes there are."""
        return int(self.classes.max()) + 1

    def sizes(self) -> Integers:
        """How many states each class has."""
        return np.bincount(self.classes, minlength=self.number).astype(np.int64)

    def merged(self, table: Floats, axis: int) -> Floats:
        """A table with the states of one axis added up by class."""
        moved = np.moveaxis(table, axis, 0)
        found = np.zeros((self.number, *moved.shape[1:]))
        np.add.at(found, self.classes, moved)
        return np.moveaxis(found, 0, axis)


def cut(states: States, axis: Axis | None, where: Expression | None, domains: Mapping[str, Domain], *, summed: bool) -> Cut:
    """The pieces of one column: the axis where it is a key; whole states are put together where nothing tells them apart.

    >>> from cloister.tables import Column, Integer, Strided
    >>> states = States("age", Integer(0, 99), Strided("age", 10))
    >>> old = cut(states, None, Compare(">=", Column("age"), Literal(65)), {"age": states.domain}, summed=False)
    >>> [(int(low), int(high)) for low, high in zip(old.code, old.last)], old.share.tolist(), old.classes.tolist()
    ([(0, 9), (60, 64), (65, 65), (66, 69), (70, 79)], [1.0, 0.5, 0.1, 0.4, 1.0], [0, 0, 0, 0, 0, 0, 1, 2, 2, 2])
    """
    first, last, state = _runs(states, axis, where)
    group = _groups(axis, first, states.domain)
    weight, together = states.weight(first, last), np.bincount(state)[state]
    share = np.where(together == 1, 1.0, weight / np.bincount(state, weight)[state])
    told = [group.tolist(), (first == states.domain.null_code).tolist()]
    for part in conditions_on(states.name, where):
        said = truth(part, scope_of(domains, {states.name: first}))
        told.append(np.broadcast_to(np.where(said.null, -1, said.values), first.shape).tolist())
    apart = summed or _compared(states.name, where)
    kinds: dict[object, int] = {}
    classes = np.empty(states.number, dtype=np.int64)
    kept, of = [], []
    for piece, place in enumerate(state):
        whole = together[piece] == 1
        kind: object = ("state", int(place)) if apart or not whole else tuple(column[piece] for column in told)
        fresh = kind not in kinds
        classes[place] = kinds.setdefault(kind, len(kinds))
        if fresh or not whole:
            kept.append(piece)
            of.append(classes[place])
    middle = states.middle(first[kept], last[kept])
    return Cut(first[kept], last[kept], np.array(of, dtype=np.int64), share[kept], middle, classes, group[kept])


def conditions_on(name: str, where: Expression | None) -> Iterator[Expression]:
    """The largest parts of a condition that read this column alone."""
    if where is None or name not in where.columns():
        return
    if where.columns() == {name}:
        yield where
    elif isinstance(where, And | Or):
        for part in where.parts:
            yield from conditions_on(name, part)
    elif isinstance(where, Not):
        yield from conditions_on(name, where.part)


def _runs(states: States, axis: Axis | None, where: Expression | None) -> tuple[Integers, Integers, Integers]:
    """First and last code of each run, and its state."""
    domain = states.domain
    low, high, starts = domain.low_code, domain.high_code, set(states.starts[:-1].tolist())
    key = None if axis is None else axis.key
    if isinstance(key, str):
        if high - low >= _MOST_PIECES:
            raise UnsupportedQuery(
                f"Grouping by {states.name!r} is not supported",
                why=f"it has {high - low + 1:,} values",
                instead=f"GROUP BY a column that the model has in fewer values than {_MOST_PIECES:,}",
            )
        starts.update(range(low, high + 1))
    elif key is not None:
        starts.update(key.starts(domain))
    if states.bins is not None:
        starts.update(changes(where, states))
        if _compared(states.name, where):
            raise UnsupportedQuery(
                f"A comparison of {states.name!r} with another column is not supported",
                why="the model has its values in bins",
                instead=f"{states.name} > a number",
            )
    first = np.array(sorted(start for start in starts if low <= start <= high), dtype=np.int64)
    last = np.append(first[1:] - 1, high)
    if domain.nullable:
        first, last = np.append(first, domain.null_code), np.append(last, domain.null_code)
    return first, last, np.searchsorted(states.starts, first, side="right") - 1


def changes(condition: Expression | None, states: States) -> Iterator[int]:
    """Codes at which a condition on a column in bins may change."""
    for leaf in leaves(condition):
        if states.name not in leaf.columns():
            continue
        if not isinstance(leaf, Compare | Between | In | IsNull):
            raise UnsupportedQuery(
                f"A condition on {states.name!r} is not supported",
                why="the model has its values in bins, and this condition is no comparison with numbers or days",
                instead=f"{states.name} >= …",
            )
        for value in literals(leaf):
            if value is not None:
                at = threshold(states.domain, number_of(states.name, states.domain, value))
                yield from (math.ceil(at), math.floor(at) + 1)


def leaves(condition: Expression | None) -> Iterator[Expression]:
    """The comparisons that a condition is made of."""
    if isinstance(condition, And | Or):
        for part in condition.parts:
            yield from leaves(part)
    elif isinstance(condition, Not):
        yield from leaves(condition.part)
    elif condition is not None:
        yield condition


def literals(leaf: Expression) -> Sequence[Any]:
    """What a comparison compares its columns with."""
    match leaf:
        case In(values=values):
            return values
        case Between(low=low, high=high):
            return low.value, high.value
        case Compare(left=left, right=right):
            return [side.value for side in (left, right) if isinstance(side, Literal)]
    return ()


def _compared(name: str, where: Expression | None) -> bool:
    """Whether a part of the condition reads the column beside another one."""
    return any(name in leaf.columns() and len(leaf.columns()) > 1 for leaf in leaves(where))


def _groups(axis: Axis | None, codes: Integers, domain: Domain) -> Integers:
    """The place of each code among the groups that are answered; -1 where it is in none."""
    if axis is None:
        return np.zeros(len(codes), dtype=np.int64)
    if isinstance(axis.key, str):
        return axis.place(codes)
    starts, missing = np.array(axis.key.starts(domain), dtype=np.int64), codes == domain.null_code
    places = np.where(missing, axis.key.size(domain), np.searchsorted(starts, codes, side="right") - 1)
    inside = missing | ((codes >= starts[0]) & (codes < starts[-1]))
    return np.where(inside, axis.place(axis.first + places), -1)


def scope_of(domains: Mapping[str, Domain], codes: Mapping[str, Integers]) -> LaneScope:
    """Columns of codes, as conditions read them."""
    return LaneScope(domains, {name: Lane(codes[name], codes[name] == domains[name].null_code) for name in codes})


def truth(condition: Expression, scope: LaneScope) -> Lane:
    """What a condition says of rows: true, false or open."""
    with np.errstate(all="ignore"):
        found: Lane = condition.condition(scope)
    return found
