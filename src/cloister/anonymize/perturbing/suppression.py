"""Local suppression: the fewest cells emptied that make every record one of k alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import alike
from cloister.anonymize.perturbing.columns import Columns
from cloister.errors import InvalidParameter, check_whole
from cloister.noise import Random

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]

_MOST_COLUMNS = 14


@dataclass(frozen=True, eq=False, kw_only=True)
class Suppressed:
    """A table with emptied cells."""

    frame: Any
    cells: Mapping[str, int]
    """By column, how many cells were emptied."""
    k: int
    """The smallest number of records that look alike, counted in what came out; an empty cell is a value like others."""


@dataclass(frozen=True, kw_only=True)
class LocalSuppression:
    """Empty single cells of the quasi-identifiers until each record looks like at least k − 1 others.

    Protects: k-anonymity in the named columns, where an empty cell counts as a value of its own: it matches nothing but empty
    cells. (Where it is counted as matching everything, classes of fewer than k remain for an attacker who does not.) Does not
    protect: a sensitive value that a whole class shares. It is not differentially private.

    First records are sought that need one empty cell, then two, and so on; among equally many cells, columns that stand
    later in `quasi` are emptied first. It is a heuristic: the least number of cells is NP-hard to find (Meyerson & Williams
    2004). Cells that are missing already count as empty.

    >>> table = {"age": [30, 30, 30, 30, 40, 40], "town": ["a", "a", "b", "c", "b", "b"]}
    >>> done = LocalSuppression(quasi=["age", "town"], k=2).apply(table, random=Random.deterministic(1))
    >>> done.frame["town"], dict(done.cells), done.k
    (['a', None, 'b', None, 'a', 'b'], {'age': 0, 'town': 2}, 2)
    """

    quasi: str | Sequence[str]
    k: int = 3

    def __post_init__(self) -> None:
        check_whole(self.k, "k", 1, why="it is a whole number, at least 1", instead="k=3")

    def apply(self, frame: Any, *, random: Random | None = None, shuffle: bool = True, keep_index: bool = False) -> Suppressed:
        """The table with cells emptied."""
        columns, names, _ = Columns.leaving(frame, self.quasi, random, shuffle=shuffle, keep_index=keep_index)
        if len(names) > _MOST_COLUMNS:
            raise InvalidParameter(
                "quasi= is invalid",
                why=f"sets of {len(names)} columns are too many to go through",
                instead=f"at most {_MOST_COLUMNS} columns, or a search over hierarchies (Anonymizer)",
            )
        if 0 < columns.rows < self.k:
            raise InvalidParameter(
                f"k={self.k} is invalid", why=f"the table has {columns.rows} records", instead=f"k={columns.rows}"
            )
        codes = _codes(columns, names)
        gone = _emptied(codes, self.k) if columns.rows else np.zeros((0, len(names)), dtype=np.bool_)
        out = columns.replaced({name: columns.emptied(name, gone[:, place]) for place, name in enumerate(names)})
        groups = _groups(_codes(Columns.of(out), names)) if columns.rows else np.zeros(0, dtype=np.int64)
        before = np.column_stack([columns.absent(name) for name in names]) if columns.rows else gone
        cells = {name: int((gone & ~before)[:, place].sum()) for place, name in enumerate(names)}
        return Suppressed(frame=out, cells=cells, k=int(np.bincount(groups).min()) if len(groups) else 0)


def _codes(columns: Columns, names: Sequence[str]) -> Integers:
    """Codes from 1 on, 0 where missing."""
    found = []
    for name in names:
        coded = columns.coded(name)
        codes = coded.codes.astype(np.int64) + 1
        found.append(np.where(coded.codes == coded.missing, 0, codes) if coded.missing is not None else codes)
    return np.column_stack(found)


def _emptied(codes: Integers, k: int) -> Marks:
    """Which cells are empty in the end: those that were, and those that are emptied."""
    width = int(codes.shape[1])
    current = codes.copy()
    left = np.ones(len(codes), dtype=np.bool_)
    for size in range(width + 1):
        for chosen in combinations(reversed(range(width)), size):
            if not left.any():
                return np.asarray(current == 0)
            trial = current.copy()  # settled records as they are: those who look like them may join
            trial[np.ix_(left, np.array(chosen, dtype=np.int64))] = 0
            groups = _groups(trial)
            enough = (np.bincount(groups) >= k)[groups] & left
            current[enough] = trial[enough]
            left &= ~enough
    while left.any():
        left &= ~_joined(current, left, k)
    return np.asarray(current == 0)


def _joined(current: Integers, left: Marks, k: int) -> Marks:
    """Fewer than k records are like nobody: settled ones empty cells to join some of them, as few as possible. Who joined."""
    width = int(current.shape[1])
    classes = _groups(current)
    sizes = np.bincount(classes[~left], minlength=int(classes.max()) + 1)
    for size in range(1, width + 1):
        best: tuple[Marks, tuple[int, ...]] | None = None
        for chosen in combinations(reversed(range(width)), size):
            trial = current.copy()
            trial[:, list(chosen)] = 0
            groups = _groups(trial)
            for group in np.unique(groups[left]).tolist():
                members = groups == group
                if int(members.sum()) < k:
                    continue
                taken = _taken(members & ~left, k - int((members & left).sum()), classes, sizes, k)
                joined = taken | (members & left)
                if best is None or int(joined.sum()) < int(best[0].sum()):
                    best = joined, chosen
        if best is not None:
            current[np.ix_(best[0], np.array(best[1], dtype=np.int64))] = 0
            return best[0]
    raise AssertionError("all cells emptied, all records are alike")


def _taken(members: Marks, need: int, classes: Integers, sizes: Integers, k: int) -> Marks:
    """At least `need` of these settled records: some of a class that stays large enough, or whole classes, small ones first."""
    taken = np.zeros(len(members), dtype=np.bool_)
    owners = np.unique(classes[members])
    spare = owners[sizes[owners] - need >= k]
    if need > 0 and len(spare):
        taken[np.flatnonzero(members & (classes == spare[0]))[:need]] = True
        return taken
    for owner in owners[np.argsort(sizes[owners], kind="stable")].tolist():
        if int(taken.sum()) >= need:
            break
        taken |= classes == owner
    return taken


def _groups(codes: Integers) -> Integers:
    return alike(list(codes.T), [int(column.max()) + 1 for column in codes.T])[0]
