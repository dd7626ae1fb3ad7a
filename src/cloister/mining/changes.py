"""What the exact method may do to a basket, and what that does to every count: all of it linear.

**The space.** A basket may *lose*, one at a time, an item of a sensitive rule of which it then still holds all items: whatever
the heuristics that take entries out do to a basket is made of such steps, so their answers are in the space. With `insertions` a
basket may instead *gain* what it lacks of the antecedent of one sensitive rule, where it lacks some of that and some of the
consequent: the step of algorithm 1.a, once for each basket.

**Why counts are linear.** Write a basket as (u, r): u its sensitive items, r its others. A change turns u into u′ and leaves r.
A set S with sensitive part A and other part B is held before where A ⊆ u and B ⊆ r, after where A ⊆ u′ and B ⊆ r. So with z
baskets of one kind (u, r) changed to u′, the count of S moves by z·[B ⊆ r]·([A ⊆ u′] − [A ⊆ u]). Baskets with equal u that hold
the same B's are of one kind: nothing that is counted tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.mining.baskets import Codes
from cloister.mining.sensitive import Problem, Sensitive

_MOST_CHANGES = 2_000
_MOST_COLUMNS = 200_000
Held = frozenset[int]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kinds:
    """Baskets with the same sensitive items u that may be changed to the same others, by kind."""

    before: Held
    after: tuple[Held, ...]
    members: tuple[Codes, ...]
    """The baskets of each kind, those first that hold the fewest sets of all."""
    rest: npt.NDArray[np.bool_]
    """A row for each kind, a column for each other part B: whether it is held."""

    @property
    def sizes(self) -> Codes:
        """How many baskets are of each kind."""
        return np.array([len(each) for each in self.members], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """All kinds; the columns of the program are (change, kind), for each u in turn, for each change all its kinds.

    Kinds are told apart by the sets that are counted, and by no others: the fewer are counted, the fewer kinds there are.
    """

    problem: Problem
    own: Mapping[int, Held]
    """Of each counted set its sensitive part A."""
    part: Mapping[int, int]
    """Of each counted set the number of its other part B."""
    groups: tuple[Kinds, ...]

    @staticmethod
    def of(problem: Problem, counted: Iterable[int], *, insertions: bool) -> Space:
        """Worked out from the baskets; refused where there is too much of it. `counted` are places of mined sets."""
        sensitive, sets = set(problem.items), problem.found.mined.sets
        own = {place: frozenset(sensitive.intersection(sets[place])) for place in counted}
        others: dict[tuple[int, ...], int] = {}
        part = {place: others.setdefault(tuple(i for i in sets[place] if i not in sensitive), len(others)) for place in own}
        groups, columns = [], 0
        for before, members in _by_sensitive_items(problem):
            after = reachable(before, problem.sensitive, insertions=insertions)
            if not after:
                continue
            members = members[np.argsort(problem.baskets.sizes[members], kind="stable")]
            rest = _parts_held(problem, list(others), members)
            kinds, inverse = np.unique(np.packbits(rest, axis=0).T, axis=0, return_inverse=True)
            columns += len(kinds) * len(after)
            if columns > _MOST_COLUMNS:
                raise _too_large(f"its program has more than {_MOST_COLUMNS:,} numbers")
            order = np.argsort(inverse.ravel(), kind="stable")
            found = np.split(order, np.cumsum(np.bincount(inverse.ravel(), minlength=len(kinds)))[:-1])
            rows = np.stack([rest[:, each[0]] for each in found])
            groups.append(Kinds(before=before, after=after, members=tuple(members[each] for each in found), rest=rows))
        return Space(problem=problem, own=own, part=part, groups=tuple(groups))

    @property
    def columns(self) -> int:
        """How many numbers the program chooses."""
        return sum(len(group.members) * len(group.after) for group in self.groups)

    def effect(self, place: int) -> npt.NDArray[np.float64]:
        """By how much the count of a set moves for one basket, in each column."""
        own, part = self.own[place], self.part[place]
        rows = [
            (int(own <= after) - int(own <= group.before)) * group.rest[:, part].astype(np.float64)
            for group in self.groups
            for after in group.after
        ]
        return np.concatenate(rows) if rows else np.zeros(0)

    def costs(self) -> Codes:
        """How many entries a basket in each column loses or gains."""
        found = [np.repeat([len(group.before ^ each) for each in group.after], len(group.members)) for group in self.groups]
        return np.concatenate(found).astype(np.int64) if found else np.zeros(0, np.int64)

    def kinds_of_columns(self) -> tuple[Codes, Codes]:
        """The number of each column's kind, and of each kind how many baskets it has."""
        numbers, sizes, start = [], [], 0
        for group in self.groups:
            numbers.append(np.tile(np.arange(start, start + len(group.members)), len(group.after)))
            sizes.append(group.sizes)
            start += len(group.members)
        if not sizes:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        return np.concatenate(numbers), np.concatenate(sizes)

    def carried_out(self, chosen: Codes) -> dict[int, npt.NDArray[np.bool_]]:
        """The sensitive items' columns after that many baskets of each kind were changed: the first of each kind."""
        columns = {place: self.problem.baskets.column(place) for place in self.problem.items}
        start = 0
        for group in self.groups:
            size = len(group.members) * len(group.after)
            numbers = chosen[start : start + size].reshape(len(group.after), len(group.members))
            start += size
            for kind in np.flatnonzero(numbers.any(axis=0)).tolist():
                used = 0
                for after, many in zip(group.after, numbers[:, kind].tolist(), strict=True):
                    for place in group.before ^ after:
                        columns[place][group.members[kind][used : used + many]] = place in after
                    used += many
        return columns


def reachable(before: Held, rules: tuple[Sensitive, ...], *, insertions: bool) -> tuple[Held, ...]:
    """What sensitive items a basket may hold afterwards, what it holds now left out.

    >>> rule = Sensitive(antecedent=(0,), consequent=(1,))
    >>> [sorted(each) for each in reachable(frozenset({0, 1}), (rule,), insertions=True)]
    [[0], [1]]
    >>> [sorted(each) for each in reachable(frozenset(), (rule,), insertions=True)]
    [[0]]
    """
    found: set[Held] = set()
    front = [before]
    while front:
        broken = [held - {item} for held in front for rule in rules if held.issuperset(rule.whole) for item in rule.whole]
        front = [held for held in dict.fromkeys(broken) if held not in found]
        found.update(front)
        if len(found) > _MOST_CHANGES:
            raise _too_large(f"one basket could be changed in more than {_MOST_CHANGES:,} ways")
    if insertions:
        lacking = [rule for rule in rules if not before.issuperset(rule.antecedent) and not before.issuperset(rule.consequent)]
        found |= {before.union(rule.antecedent) for rule in lacking}
    return tuple(sorted(found, key=lambda held: (len(held ^ before), sorted(held))))


def _by_sensitive_items(problem: Problem) -> Iterator[tuple[Held, Codes]]:
    matrix = problem.baskets.matrix(problem.items)
    kinds, inverse = np.unique(matrix.T, axis=0, return_inverse=True)
    for number, kind in enumerate(kinds):
        held = frozenset(place for place, holds in zip(problem.items, kind.tolist(), strict=True) if holds)
        yield held, np.flatnonzero(inverse.ravel() == number).astype(np.int64)


def _parts_held(problem: Problem, parts: list[tuple[int, ...]], members: Codes) -> npt.NDArray[np.bool_]:
    """A row for each part, a column for each of these baskets."""
    columns = {place: problem.baskets.column(place)[members] for place in {item for part in parts for item in part}}
    held = np.ones((len(parts), len(members)), dtype=np.bool_)
    for row, part in zip(held, parts, strict=True):
        for place in part:
            row &= columns[place]
    return held


def _too_large(why: str) -> InvalidParameter:
    return InvalidParameter('method="exact" is invalid', why=why, instead='method="2.a", or fewer rules at a time')
