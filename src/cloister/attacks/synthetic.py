"""Attacks on synthetic tables: who was among the people that a table was made of, and what do they have that others don't?

Rows are *coded*: a row a person, a column a column, the number of a state in each. What an attack finds of members is told beside
what the same attack finds of people of the same population who were not in: only the difference is a leak.

- `density_ratio`: a row is thought a member where the table's density there is large beside that of the population. With the
  density of a published model it is the likelihood ratio; with one estimated from synthetic rows it is DOMIAS (van Breugel, Sun,
  Qian & van der Schaar, AISTATS 2023). `kernel_density` estimates one from rows (Aitchison & Aitken 1976).
- `singling_out`: combinations of values that occur once in the synthetic table are guessed to occur once among the people
  (Giomi, Boenisch, Wehmeyer & Tasnádi, PETS 2023).
- `closest_records`: is each synthetic row nearer to a member than to another? Often shown, and weak: the median of many
  distances does not move when a few people are copied, near rows are right where many people are alike, and a distance that is
  shown is computed from the people, at no stated cost. Only a share of copies far above that of others says something.

What a guarantee says of each: `MembershipResult.most_under`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cloister.attacks.scores import MembershipResult, Rate, rate_of
from cloister.errors import InvalidParameter
from cloister.noise import Random

Coded: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Density: TypeAlias = Callable[[Coded], Floats]
"""The logarithm of the density of each row."""

_AT_ONCE = 2_000_000
_SPREAD = 0.2
_MOST_COLUMNS = 4


def density_ratio(density: Density, population: Density, *, members: Any, others: Any, attack: str) -> MembershipResult:
    """Membership by the ratio of two densities: that of the synthetic table to that of the population, both as logarithms.

    >>> people = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])
    >>> copied, everybody = kernel_density(people[:2], (4, 4)), kernel_density(people, (4, 4))
    >>> density_ratio(copied, everybody, members=people[:2], others=people[2:], attack="DOMIAS").auc
    1.0
    """
    scores = [density(_coded(each)) - population(_coded(each)) for each in (members, others)]
    return MembershipResult(attack=attack, members=scores[0], others=scores[1])


def kernel_density(rows: Any, sizes: Sequence[int], *, spread: float = _SPREAD) -> Density:
    """The logarithm of a density over rows of states: each given row spreads a share of itself over the other states.

    `sizes` says how many states each column has, `spread` the share of a column that goes to its other states.

    >>> density = kernel_density(np.array([[0], [0], [1]]), (3,), spread=0.3)
    >>> np.exp(density(np.array([[0], [1], [2]]))).round(3).tolist()
    [0.517, 0.333, 0.15]
    """
    held = _coded(rows)
    same = np.log(1 - spread)
    away = [np.log(spread / max(size - 1, 1)) for size in sizes]

    def density(asked: Coded) -> Floats:
        step, found = max(1, _AT_ONCE // len(held)), np.empty(len(asked))
        for start in range(0, len(asked), step):
            part = asked[start : start + step]
            logs = np.zeros((len(part), len(held)), dtype=np.float32)
            for column, other in enumerate(away):
                logs += np.where(part[:, column, None] == held[None, :, column], np.float32(same), np.float32(other))
            found[start : start + step] = np.logaddexp.reduce(logs.astype(np.float64), axis=1) - np.log(len(held))
        return found

    return density


@dataclass(frozen=True, kw_only=True)
class SinglingOut:
    """How often a guess described exactly one person: of the members, and of as many others.

    >>> found = SinglingOut(members=rate_of(60, 100), others=rate_of(50, 100), columns=4)
    >>> round(found.advantage, 3), round(found.risk, 3)
    (0.1, 0.2)
    """

    members: Rate
    others: Rate
    columns: int
    """The most columns that a guess combines."""

    @property
    def advantage(self) -> float:
        """What the table reveals about its own people, beyond what it reveals about everybody."""
        return self.members.rate - self.others.rate

    @property
    def risk(self) -> float:
        """The share of guesses that were right because somebody was in: of those that fail with others."""
        return max(self.advantage, 0.0) / max(1 - self.others.rate, 1e-9)


def singling_out(synthetic: Any, members: Any, others: Any, *, guesses: int = 1000, random: Random | None = None) -> SinglingOut:
    """Guess that what occurs once in the synthetic table occurs once among the people, and count.

    Each guess takes two to four random columns and a combination of their values that one synthetic row alone has. Members and
    others have to be equally many.

    >>> from cloister.noise import Random
    >>> people = np.indices((6, 6, 6)).reshape(3, -1).T
    >>> some, rest = people[::2], people[1::2]
    >>> found = singling_out(some, some, rest, guesses=200, random=Random.deterministic(1))
    >>> found.members.rate > 0.9 > 0.5 > found.others.rate
    True
    """
    from cloister.noise import default_random

    made, inside, outside = _coded(synthetic), _coded(members), _coded(others)
    if len(inside) != len(outside) or made.shape[1:] != inside.shape[1:] or inside.shape[1:] != outside.shape[1:]:
        raise InvalidParameter(
            "The rows are invalid", why="members and others are equally many, of the same columns", instead="members[:1000]"
        )
    source = default_random() if random is None else random
    width, hits = made.shape[1], np.zeros(2, dtype=np.int64)
    most, tried = min(_MOST_COLUMNS, width), 0
    for turn in range(guesses):
        number = min(2 + turn % 3, most)
        chosen = np.sort(source.permutation(width)[:number])
        codes = [_joined(each[:, chosen]) for each in (made, inside, outside)]
        values, counts = np.unique(codes[0], return_counts=True)
        alone = values[counts == 1]
        if not len(alone):
            continue
        guess = alone[int(source.below(len(alone), 1)[0])]
        tried += 1
        hits += [int((each == guess).sum() == 1) for each in codes[1:]]
    if not tried:
        raise InvalidParameter("The rows are invalid", why="no combination of values occurs once", instead="more columns")
    return SinglingOut(members=rate_of(int(hits[0]), tried), others=rate_of(int(hits[1]), tried), columns=most)


@dataclass(frozen=True, kw_only=True)
class ClosestRecords:
    """Synthetic rows beside the nearest member and the nearest other, by the number of columns that differ.

    >>> found = ClosestRecords(nearer=rate_of(6, 10), copies=0.2, copies_of_others=0.1)
    >>> found.nearer.rate
    0.6
    """

    nearer: Rate
    """How many synthetic rows are nearer to a member than to another, ties by half; ½ where nothing is seen."""
    copies: float
    """The share of synthetic rows that a member has, …"""
    copies_of_others: float
    """… and that somebody has who was not in."""


def closest_records(synthetic: Any, members: Any, others: Any) -> ClosestRecords:
    """The distance to the closest record, for equally many members and others.

    >>> rows = np.array([[0, 0], [1, 1]])
    >>> found = closest_records(rows, members=rows, others=rows + 2)
    >>> found.nearer.rate, found.copies, found.copies_of_others
    (1.0, 1.0, 0.0)
    """
    made = _coded(synthetic)
    nearest = [_nearest(made, _coded(each)) for each in (members, others)]
    ahead = int((nearest[0] < nearest[1]).sum()) + int((nearest[0] == nearest[1]).sum()) / 2
    return ClosestRecords(
        nearer=_halves(ahead, len(made)), copies=float((nearest[0] == 0).mean()), copies_of_others=float((nearest[1] == 0).mean())
    )


def _halves(ahead: float, rows: int) -> Rate:
    """The rate; its interval is that of the next whole numbers to either side."""
    low, high = (rate_of(math.floor(ahead + more), rows) for more in (0.0, 0.5))
    return replace(low, rate=ahead / rows, high=high.high)


def _nearest(rows: Coded, held: Coded) -> NDArray[np.int64]:
    """For each row in how many columns the nearest held row differs."""
    step, found = max(1, _AT_ONCE // len(held)), np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        away = np.zeros((len(part), len(held)), dtype=np.int16)
        for column in range(rows.shape[1]):
            away += part[:, column, None] != held[None, :, column]
        found[start : start + step] = away.min(axis=1)
    return found


def _joined(rows: Coded) -> Coded:
    """One number for each combination of states."""
    found = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        found = found * 65_536 + column
    return found


def _coded(rows: Any) -> Coded:
    found = np.asarray(rows)
    if found.ndim != 2 or not len(found) or found.dtype.kind not in "iu":
        raise InvalidParameter(
            "The rows are invalid",
            why="they are a matrix of the numbers of states, with one row or more",
            instead="np.array([[0, 2]])",
        )
    return found.astype(np.int64)
