"""Groups of categories that behave alike: what is joined first is what tells least of the other columns when joined.

Two categories are joined where that loses the least mutual information with the columns that the groups are learnt for
(agglomerative information bottleneck: Slonim and Tishby 1999). Joining a and b loses (p_a + p_b) times the Jensen–Shannon
divergence of what their rows have in those columns; rare categories are cheap to join, and so are twins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cloister.anonymize.encoded import Encoded, EncodedColumn
from cloister.anonymize.hierarchies.hierarchy import Hierarchy
from cloister.anonymize.hierarchies.ladder import Ladder
from cloister.anonymize.hierarchies.levels import finished, text_of
from cloister.errors import InvalidParameter, UnknownColumn

_MOST = 400
"""Categories that are compared in pairs; the rarest of more are joined to begin with."""
_WIDEST = 64
"""Values of another column that are told apart."""
_LONGEST_LABEL = 60

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Learnt(Hierarchy):
    """Groups learnt from the table itself: they tell what is alike in it, and nothing that the published table does not."""

    about: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if any(count < 2 for count in self.groups) or list(self.groups) != sorted(set(self.groups), reverse=True):
            raise InvalidParameter(
                f"groups={self.groups} is invalid",
                why="they do not fall, or one is under 2",
                instead="Hierarchy.learnt(groups=(8, 4, 2))",
            )

    def describe(self) -> str:
        """How many groups, and for what."""
        groups = f" {self.groups}" if self.groups else ""
        return f"learnt groups{groups} that keep what is known of {', '.join(self.about) or 'the other columns'}"

    def ladder(self, column: EncodedColumn, table: Encoded | None = None) -> Ladder:
        """Groups of a column's categories."""
        known = len(column) - (column.missing is not None)
        texts = [text_of(value) for value in column.values[:known]]
        if known < 3:
            return finished(column, [], sparse=True)
        group = np.arange(known)
        if known > _MOST:
            kept = np.argsort(-column.counts[:known], kind="stable")[: _MOST - 1]
            group = np.full(known, _MOST - 1)
            group[np.sort(kept)] = np.arange(_MOST - 1)
        wanted = self.groups or tuple(_halved(int(group.max()) + 1))
        levels = []
        for parts in _joined(group, self._tables(column, table), wanted):
            names = [
                group_label([texts[place] for place in np.flatnonzero(parts == each)], int(each))
                for each in range(int(parts.max()) + 1)
            ]
            levels.append([names[each] for each in parts.tolist()])
        return finished(column, levels, sparse=True)

    def _tables(self, column: EncodedColumn, table: Encoded | None) -> list[Floats]:
        """For each other column: rows by category and value, the rarest values joined."""
        if table is None:
            others: list[EncodedColumn] = []
        else:
            absent = next((name for name in self.about if name not in table.columns), None)
            if absent is not None:
                raise UnknownColumn(
                    f"The column {absent!r} is unknown",
                    why="the hierarchy would be learnt for it, and it was not named",
                    instead="a quasi-identifier",
                )
            others = [table.columns[name] for name in (self.about or table.columns) if name != column.name]
        found = []
        for other in others:
            codes = np.minimum(np.argsort(np.argsort(-other.counts, kind="stable"), kind="stable"), _WIDEST - 1)
            width = min(len(other), _WIDEST)
            key = column.codes.astype(np.int64) * width + codes[other.codes]
            weights = None if table is None else table.weights
            counted = np.bincount(key, weights=weights, minlength=len(column) * width)
            found.append(counted.reshape(len(column), width).astype(np.float64))
        return found or [column.counts[:, None].astype(np.float64)]


def _halved(count: int) -> list[int]:
    found = []
    while count > 3:
        count = (count + 1) // 2
        found.append(count)
    return [*found, 2] if not found or found[-1] > 2 else found


def _joined(group: npt.NDArray[np.intp], tables: Sequence[Floats], wanted: Sequence[int]) -> list[npt.NDArray[np.intp]]:
    """The groups of each category, for each number of groups wanted."""
    size = int(group.max()) + 1
    sums = []
    for table in tables:
        total = np.zeros((size, table.shape[1]))
        np.add.at(total, group, table[: len(group)])
        sums.append(total)
    rows = sums[0].sum(axis=1)
    alive = np.ones(size, dtype=bool)
    cost = np.full((size, size), np.inf)
    for place in range(size):
        cost[place, place + 1 :] = _losses(sums, rows, place, np.arange(place + 1, size))
    found = []
    parts = group.copy()
    count = size
    for target in wanted:
        while count > target:
            left, right = np.unravel_index(int(np.argmin(cost)), cost.shape)
            for total in sums:
                total[left] += total[right]
            rows[left] += rows[right]
            alive[right] = False
            parts[parts == right] = left
            cost[right, :] = cost[:, right] = np.inf
            others = np.flatnonzero(alive & (np.arange(size) != left))
            losses = _losses(sums, rows, int(left), others)
            after = others > left
            cost[left, others[after]] = losses[after]
            cost[others[~after], left] = losses[~after]
            count -= 1
        _, numbered = np.unique(parts, return_inverse=True)
        found.append(numbered.astype(np.intp))
    return found


def _losses(sums: Sequence[Floats], rows: Floats, place: int, others: npt.NDArray[np.intp]) -> Floats:
    """What joining one group with each of the others loses, summed over the columns; a little for size breaks ties."""
    loss = 1e-9 * (rows[place] + rows[others])
    for total in sums:
        apart = _information(total[place][None, :]) + _information(total[others])
        loss = loss + apart - _information(total[place][None, :] + total[others])
    return np.asarray(loss, dtype=np.float64)


def _information(counts: Floats) -> Floats:
    whole = counts.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / whole), 0.0)
    return np.asarray(terms.sum(axis=1), dtype=np.float64)


def group_label(names: Sequence[str], number: int) -> str:
    """What a group of categories is called: all of them where they are short, else two and how many."""
    text = " | ".join(names)
    if len(text) <= _LONGEST_LABEL:
        return text
    shown = " | ".join(names[:2])[: _LONGEST_LABEL - 20]
    return f"{shown} | … ({len(names)} values, group {number + 1})"
