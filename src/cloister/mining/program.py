"""The integer program of exact hiding, for a chosen part of the rules: built from the space of changes, solved by HiGHS.

Numbers: z, how many baskets of each kind are changed in which way; for each sensitive rule a switch, by support or by confidence;
for each modelled set whether it falls below the least, which loses all its rules; for each modelled rule whether it is lost by
its confidence alone. With s the count before and e the effects of the columns, c the confidence threshold p/q:

    Σ z over the changes of a kind  ≤  baskets of that kind
    sensitive:   s_S + e_S·z ≤ least − 1              or    (s_S + e_S·z) − c(s_X + e_X·z) ≤ −1/q
    modelled:    s_S + e_S·z ≥ least                  or    the set falls
                 (s_S + e_S·z) − c(s_A + e_A·z) ≥ 0   or    the rule is lost, or its set falls

Sets and rules that are not modelled may be lost for nothing, so the optimum of a part is a lower bound for the whole.

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

import math
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.lazily import needing
from cloister.mining.baskets import Codes
from cloister.mining.sensitive import Problem, Sensitive

Floats = npt.NDArray[np.float64]
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


@dataclass(frozen=True, kw_only=True)
class Solved:
    """What the solver came to."""

    columns: dict[int, npt.NDArray[np.bool_]] | None
    """The sensitive items' columns afterwards; None where no answer was found in time."""
    bound: float
    """No answer is below this."""
    proved: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """The problem, and the rules that are not sensitive and could be lost."""

    problem: Problem
    rules: tuple[tuple[int, int], ...]
    """Of each its whole set and its antecedent, as places of mined sets."""
    insertions: bool

    def solve(self, modelled: Modelled, seconds: float, *, at_most: int | None = None) -> Solved:
        """The fewest losses among what is modelled; with `at_most` losses allowed, the fewest entries changed."""
        index = self.problem.found.mined.index
        counted = set(modelled.sets) | {place for each in modelled.rules for place in self.rules[each]}
        counted |= {index[side] for rule in self.problem.sensitive for side in (rule.whole, rule.antecedent)}
        space = Space.of(self.problem, sorted(counted), insertions=self.insertions)
        rows = _Rows(self, space, modelled)
        objective = rows.losses
        if at_most is not None:
            objective = np.zeros(rows.width)
            objective[: space.columns] = space.costs()
            rows.add(rows.losses, -np.inf, at_most)
        return rows.solved(objective, seconds)

    @cached_property
    def weights(self) -> Mapping[int, int]:
        """Of each set that could fall, how many rules fall with it."""
        return Counter(whole for whole, _ in self.rules)


@dataclass(kw_only=True)
class Modelled:
    """What the program knows of: sets that may fall, and rules (by number) that may lose their confidence."""

    sets: dict[int, None] = field(default_factory=dict)
    rules: dict[int, None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How much there is of both."""
        return len(self.sets) + len(self.rules)


class _Rows:
    """The constraints, a sparse row at a time."""

    def __init__(self, program: Program, space: Space, modelled: Modelled) -> None:
        problem = program.problem
        self.columns = space.columns
        self._space, self._counts, self._c = space, problem.found.mined.counts, float(problem.thresholds.confidence)
        self._kinds, self._sizes = space.kinds_of_columns()
        sets = sorted(set(modelled.sets) | {program.rules[each][0] for each in modelled.rules})
        falls = {place: self.columns + len(problem.sensitive) + number for number, place in enumerate(sets)}
        self.width = self.columns + len(problem.sensitive) + len(sets) + len(modelled.rules)
        self.losses = np.zeros(self.width)
        self._high = np.ones(self.width)
        self._high[: self.columns] = self._sizes[self._kinds]
        self._data: list[Floats] = []
        self._where: list[Codes] = []
        self._low: list[float] = []
        self._most: list[float] = []
        least, mined, index = problem.thresholds.least, problem.found.mined.sets, problem.found.mined.index
        step = 1 / problem.thresholds.confidence.denominator
        for number, rule in enumerate(problem.sensitive):
            self._sensitive(self.columns + number, index[rule.whole], index[rule.antecedent], least, step)
        for place, fallen in falls.items():
            self.losses[fallen] = program.weights[place]
            self._unless([fallen], self._space.effect(place), least - float(self._counts[place]))
            whole = mined[place]
            parts = [whole[:each] + whole[each + 1 :] for each in range(len(whole)) if len(whole) > 1]
            for part in [falls[index[part]] for part in parts if index[part] in falls]:
                # where a part of a set falls, so does the set: true of any answer, and it speeds up the proof
                self._put([fallen, part], np.array([1.0, -1.0]), 0.0, np.inf)
        for number, each in enumerate(modelled.rules):
            place, left = program.rules[each]
            lost = self.columns + len(problem.sensitive) + len(sets) + number
            moved = self._space.effect(place) - self._c * self._space.effect(left)
            self.losses[lost] = 1
            self._unless([lost, falls[place]], moved, self._c * float(self._counts[left]) - float(self._counts[place]))
        order = np.argsort(self._kinds, kind="stable")
        for where, size in zip(np.split(order, np.cumsum(np.bincount(self._kinds))[:-1]), self._sizes.tolist(), strict=True):
            self._put(where, np.ones(len(where)), -np.inf, size)

    def add(self, row: Floats, low: float, high: float) -> None:
        """One more row."""
        where = np.flatnonzero(row)
        self._put(where, row[where], low, high)

    def _put(self, where: Any, values: Floats, low: float, high: float) -> None:
        self._where.append(np.asarray(where, dtype=np.int64))
        self._data.append(np.asarray(values, dtype=np.float64))
        self._low.append(low)
        self._most.append(high)

    def _lowest(self, moved: Floats) -> float:
        """The least that a row can come to: every kind's worst change, for all its baskets."""
        worst = np.zeros(len(self._sizes))
        np.minimum.at(worst, self._kinds, moved)
        return float(worst @ self._sizes)

    def _sensitive(self, switch: int, whole: int, left: int, least: int, step: float) -> None:
        effect = self._space.effect(whole)
        highest = -self._lowest(-effect)
        excess = float(self._counts[whole]) - (least - 1)
        self._switched(switch, effect, -excess, highest + excess, on=True)
        moved = effect - self._c * self._space.effect(left)
        excess = float(self._counts[whole]) - self._c * float(self._counts[left]) + step
        self._switched(switch, moved, -excess, -self._lowest(-moved) + excess, on=False)

    def _switched(self, switch: int, moved: Floats, most: float, slack: float, *, on: bool) -> None:
        """moved·z ≤ most where the switch is on (or off); else anything."""
        where = np.flatnonzero(moved)
        slack = max(slack, 0.0)
        values = np.append(moved[where], slack if on else -slack)
        self._put(np.append(where, switch), values, -np.inf, most + (slack if on else 0.0))

    def _unless(self, given_up: list[int], moved: Floats, needed: float) -> None:
        """moved·z ≥ needed, unless something is given up."""
        where = np.flatnonzero(moved)
        slack = max(needed - self._lowest(moved), 0.0)
        self._put(np.append(where, given_up), np.append(moved[where], [slack] * len(given_up)), needed, np.inf)

    def solved(self, objective: Floats, seconds: float) -> Solved:
        """Ask HiGHS, in a thread of its own: it lets go of the interpreter's lock, so that Ctrl-C is heard while it works."""
        with needing('method="exact" is not available', "scipy is not installed", "mining"):
            from scipy.optimize import Bounds, LinearConstraint, milp
            from scipy.sparse import csr_array
        ends = np.cumsum([0, *(len(each) for each in self._where)])
        matrix = csr_array((np.concatenate(self._data), np.concatenate(self._where), ends), shape=(len(self._low), self.width))
        box: list[Any] = []

        def work() -> None:
            box.append(
                milp(
                    objective,
                    integrality=np.ones(self.width),
                    bounds=Bounds(0, self._high),
                    constraints=LinearConstraint(matrix, self._low, self._most),
                    options={"time_limit": max(seconds, 0.01), "mip_rel_gap": 0.0},
                )
            )

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(0.2)
        if not box:
            return Solved(columns=None, bound=0.0, proved=False)
        result = box[0]
        bound = getattr(result, "mip_dual_bound", None)
        chosen = None if result.x is None else np.rint(result.x[: self.columns]).astype(np.int64)
        columns = None if chosen is None else self._space.carried_out(chosen)
        low = float(bound) if bound is not None and math.isfinite(bound) else 0.0
        return Solved(columns=columns, bound=max(0.0, low), proved=result.status == 0)
