"""Anatomy of a table: its quasi-identifiers and its sensitive column as two tables that only a group's number joins."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import one_writing
from cloister.anonymize.perturbing.columns import Columns, names_of
from cloister.errors import InvalidParameter, check_one_of
from cloister.noise import Random


def check_eligible(counts: npt.ArrayLike, ell: int, values: Sequence[Any]) -> None:
    """Refuse where one value has more than 1/l of the records: then no grouping hides it (Xiao & Tao 2006, "eligibility").

    >>> check_eligible([50, 30, 20], 2, ["flu", "cough", "cold"])
    >>> check_eligible([50, 30, 20], 3, ["flu", "cough", "cold"])
    Traceback (most recent call last):
        ...
    cloister.errors.InvalidParameter: l=3 is invalid: the value 'flu' has 50 of 100 records, and one value may have at most 33.
      Instead: l=2, or 'flu' told apart into finer values, or fewer records of it
    """
    if isinstance(ell, bool) or not isinstance(ell, int | np.integer) or ell < 2:
        raise InvalidParameter(f"l={ell!r} is invalid", why="groups hold a whole number of values, at least 2", instead="l=3")
    numbers = np.asarray(counts, dtype=np.int64)
    total = int(numbers.sum())
    if not total or numbers.max() * ell <= total:
        return
    worst, most = values[int(numbers.argmax())], int(numbers.max())
    largest = total // most
    smaller = f"l={largest}, or " if largest >= 2 else ""
    raise InvalidParameter(
        f"l={ell} is invalid",
        why=f"the value {worst!r} has {most} of {total} records, and one value may have at most {total // ell}",
        instead=f"{smaller}{worst!r} told apart into finer values, or fewer records of it",
    )


def diverse_groups(codes: npt.NDArray[np.integer], ell: int, random: Random) -> Integers:
    """The group of each record: groups of at least l, in none of which a code stands twice. Who shares a group with whom is
    chance, and so are the groups' numbers.

    Each group takes one record of each of the l codes that have the most records left. Where every code has at most n/l
    records, at most one record of a code is left in the end, and some group lacks its code (Xiao & Tao 2006, properties 1–2).

    >>> groups = diverse_groups(np.array([0, 0, 1, 1, 2]), 2, Random.deterministic(1))
    >>> np.bincount(groups).tolist() in ([2, 3], [3, 2])
    True
    """
    groups = np.full(len(codes), -1, dtype=np.int64)
    if not len(codes):
        return groups
    shuffled = random.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    ends = np.cumsum(counts)
    heap = [(-int(count), code) for code, count in enumerate(counts.tolist()) if count]
    heapq.heapify(heap)
    taken: list[int] = []
    number = 0
    while len(heap) >= ell:
        largest = [heapq.heappop(heap) for _ in range(ell)]
        for left, code in largest:
            taken.append(int(ends[code]) + left)
            if left < -1:
                heapq.heappush(heap, (left + 1, code))
        number += 1
    groups[order[taken]] = np.repeat(np.arange(number), ell)
    held = [codes[order[taken[first : first + ell]]].tolist() for first in range(0, len(taken), ell)] if heap else []
    for left, code in heap:
        if left != -1 or not number:
            raise InvalidParameter("l is invalid", why="one value has too many of the records", instead="a smaller l")
        lacking = np.array([group for group in range(number) if code not in held[group]], dtype=np.int64)
        chosen = int(lacking[random.below_one(len(lacking))])
        held[chosen].append(code)
        groups[order[int(ends[code]) - 1]] = chosen
    return np.asarray(random.permutation(number)[groups])


Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Anatomized:
    """The two tables, in the kind of frame that came in."""

    quasi: Any
    """The quasi-identifiers as they were, and the group of each record."""
    sensitive: Any
    """Group, value, and how many records of the group have it."""
    groups: int
    probability: Fraction
    """The largest share of a value in a group, counted again in the two tables: what somebody who knows a person's
    quasi-identifiers may conclude from that person's group. 0 for an empty table."""


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """Publish quasi-identifiers exactly, and the sensitive column by group: each group holds at least l values, each once.

    Protects: somebody who finds a person's record learns that the person has one of at least l values, each with
    probability at most 1/l if all assignments within a group are held equally likely (Xiao & Tao 2006). The result is
    counted again, and refused should it not hold. Does not protect: that a person is in the table (the quasi-identifiers are
    there as they were); and who learns from all groups together how quasi-identifiers go with values, and then reasons
    within a group, may do better than 1/l (Kifer 2009, the "deFinetti" attack). It is not differentially private.

    Columns that are named in neither role are left out. A missing sensitive value is a value of its own
    (`missing="value"`), or refused ("refuse"); missing quasi-identifiers stay empty. Groups are drawn at random and so are
    their numbers; rows leave in a secret order, unless `shuffle=False` asks for the old one.

    >>> table = {"age": [21, 35, 44, 52, 61, 70], "disease": ["flu", "flu", "gout", "cold", "gout", "cold"]}
    >>> pieces = Anatomy(quasi=["age"], sensitive="disease", l=3).apply(table)
    >>> list(pieces.quasi), pieces.groups, pieces.probability
    (['age', 'group'], 2, Fraction(1, 3))
    >>> pieces.sensitive["disease"], pieces.sensitive["count"]
    (['cold', 'flu', 'gout', 'cold', 'flu', 'gout'], [1, 1, 1, 1, 1, 1])
    """

    quasi: str | Sequence[str]
    sensitive: str
    l: int = 3  # noqa: E741  (the field's own name)
    missing: str = "value"

    def __post_init__(self) -> None:
        check_one_of(
            self.missing, "missing", ("value", "refuse"), why='it is neither "value" nor "refuse"', instead='missing="value"'
        )
        check_eligible([], self.l, [])
        clash = {"group", "count"} & {*names_of(self.quasi), self.sensitive}
        if clash or self.sensitive in names_of(self.quasi):
            raise InvalidParameter(
                "The columns are invalid",
                why=f"{clash.pop()!r} is the name of a column that is made"
                if clash
                else "the sensitive one is also a quasi-identifier",
                instead="another name for that column" if clash else "each column in one role",
            )

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True) -> Anatomized:
        """The two tables."""
        quasi = names_of(self.quasi)
        columns, _, source = Columns.leaving(frame, (*quasi, self.sensitive), random, shuffle=shuffle, keep_index=False)
        if self.missing == "refuse":
            columns.refuse_missing(self.sensitive, 'missing="value" (a value of its own)')
        coded = columns.coded(self.sensitive, told=True)
        check_eligible(coded.counts, self.l, coded.values)
        groups = diverse_groups(coded.codes, self.l, source)
        pairs, first, counts = np.unique(groups * len(coded) + coded.codes, return_index=True, return_counts=True)
        left = columns.made({**{name: columns.frame.data[name] for name in quasi}, "group": groups})
        right = columns.made(
            {
                "group": (pairs // max(len(coded), 1)).astype(np.int64),
                self.sensitive: one_writing(columns.taken(self.sensitive, first.astype(np.int64)), told=True),
                "count": counts.astype(np.int64),
            }
        )
        share = largest_share(left, right)
        if share > Fraction(1, self.l):
            raise InvalidParameter(
                "The result was withheld", why=f"a value has {share} of its group", instead="a report of this fault"
            )
        return Anatomized(quasi=left, sensitive=right, groups=int(groups.max()) + 1 if columns.rows else 0, probability=share)


def largest_share(quasi: Any, sensitive: Any, *, group: str = "group", count: str = "count") -> Fraction:
    """The largest share that one value has of a group, read of two published tables alone, by whatever program reads them.

    >>> largest_share({"group": [0, 0, 0]}, {"group": [0, 0], "x": ["a", "b"], "count": [2, 1]})
    Fraction(2, 3)
    """
    people, held = Columns.of(quasi), Columns.of(sensitive)
    if not held.rows:
        return Fraction(0)
    numbers = held.numbers(count)
    _, of_values, sizes = groups_of_both(people, held, group, numbers)
    value = np.zeros(held.rows, dtype=np.int64)
    for name in {*held.names} - {group, count}:
        coded = held.coded(name, told=True)
        value = np.unique(value * len(coded) + coded.codes, return_inverse=True)[1]
    pairs, pair = np.unique(of_values * (value.max() + 1) + value, return_inverse=True)
    totals, whole = np.bincount(pair, numbers), sizes[pairs // (value.max() + 1)]
    worst = int((totals / whole).argmax())
    return Fraction(int(totals[worst]), int(whole[worst]))


def groups_of_both(
    people: Columns, held: Columns, group: str, numbers: npt.NDArray[np.float64]
) -> tuple[Integers, Integers, Integers]:
    """The place of the group of each row of either table, and the size of each group, which both must say."""
    ids, places = np.unique(np.concatenate([people.numbers(group), held.numbers(group)]), return_inverse=True)
    of_people, of_values = places[: people.rows], places[people.rows :]
    sizes = np.bincount(of_people, minlength=len(ids))
    if not np.array_equal(sizes, np.bincount(of_values, numbers, minlength=len(ids))):
        raise InvalidParameter(
            "The two tables are invalid", why="their groups differ in size", instead="both tables of one apply()"
        )
    return of_people, of_values, sizes
