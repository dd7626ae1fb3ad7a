"""A hierarchy resolved for the values of one column: what each value is called on each level, as codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

STAR = "*"
"""Everything: the label of a suppressed cell, and of the top of most hierarchies."""

MISSING = "(missing)"
"""What a missing value is called on every level under the top."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ladder:
    """Levels of one column. Level 0 is the values themselves.

    `codes[level][value]` is the label of a value on a level; `labels[level][code]` what it is called; `leaves[level][code]` how
    many leaves of the *hierarchy* stand under it (values that do not occur in the table count as well, as in ARX).

    >>> ladder = Ladder.of("pet", ["cat", "dog", "owl"], [["mammal", "mammal", "bird"], ["*", "*", "*"]])
    >>> ladder.height, ladder.labels[1], ladder.codes[1].tolist(), ladder.shares(1).tolist()
    (3, ['bird', 'mammal'], [1, 1, 0], [0.3333333333333333, 0.6666666666666666])
    """

    column: str
    codes: tuple[npt.NDArray[np.int32], ...]
    labels: tuple[list[Any], ...]
    leaves: tuple[npt.NDArray[np.float64], ...]
    total: float
    """How many leaves the hierarchy has."""

    @classmethod
    def of(
        cls,
        column: str,
        values: Sequence[Any],
        levels: Sequence[Sequence[Any]],
        *,
        leaf_levels: Sequence[Sequence[Any]] | None = None,
    ) -> Ladder:
        """From the label of each value on each level from 1 on.

        `leaf_levels` are the same for every leaf of the hierarchy, where it has leaves that the table lacks: level 0 first.
        Raises where a level is no coarsening of the one under it, and names the values.
        """
        all_codes: list[npt.NDArray[np.int32]] = [np.arange(len(values), dtype=np.int32)]
        all_labels: list[list[Any]] = [list(values)]
        for number, level in enumerate(levels, 1):
            names = sorted(dict.fromkeys(level), key=lambda label: (label is None, str(label)))
            place = {name: code for code, name in enumerate(names)}
            all_codes.append(np.array([place[name] for name in level], dtype=np.int32))
            all_labels.append(names)
            _check_coarser(column, values, all_codes[-2], all_codes[-1], all_labels, number)
        whole = leaf_levels if leaf_levels is not None else [list(values), *levels]
        total = float(max(len(whole[0]), 1))
        all_leaves = []
        for labels, level in zip(all_labels, whole, strict=True):
            tally: dict[Any, int] = {}
            for name in level:
                tally[name] = tally.get(name, 0) + 1
            all_leaves.append(np.array([tally.get(name, 1) for name in labels], dtype=np.float64))
        return cls(column=column, codes=tuple(all_codes), labels=tuple(all_labels), leaves=tuple(all_leaves), total=total)

    @property
    def height(self) -> int:
        """How many levels, level 0 included."""
        return len(self.codes)

    def shares(self, level: int) -> npt.NDArray[np.float64]:
        """The share of the hierarchy's leaves under each label of a level: 1 says nothing about the value."""
        return np.asarray(self.leaves[level] / self.total, dtype=np.float64)

    @cached_property
    def parents(self) -> tuple[npt.NDArray[np.int32], ...]:
        """For each level but the top: the label one level up of each label."""
        found = []
        for lower, upper, labels in zip(self.codes, self.codes[1:], self.labels, strict=False):
            parent = np.zeros(len(labels), dtype=np.int32)
            parent[lower] = upper
            found.append(parent)
        return tuple(found)


def _check_coarser(
    column: str,
    values: Sequence[Any],
    lower: npt.NDArray[np.int32],
    upper: npt.NDArray[np.int32],
    labels: list[list[Any]],
    number: int,
) -> None:
    first: dict[int, int] = {}
    for place, (below, above) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
        other = first.setdefault(below, place)
        if upper[other] != above:
            raise InvalidParameter(
                f"The hierarchy of {column!r} is invalid",
                why=f"{values[other]!r} and {values[place]!r} are both {labels[-2][below]!r} on level {number - 1}, "
                f"but {labels[-1][int(upper[other])]!r} and {labels[-1][above]!r} on level {number}",
                instead="levels that only join what the level below holds apart",
            )
