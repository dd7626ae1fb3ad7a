"""Columns as places in declared bins: which bin of each column a row is in, and which bins are too thin to stand alone.

A column is one feature, cut into bins of equal width between its declared bounds, or a group of 0-or-1 features that one category
was written as, a bin for each of them and one for none. Bins are public; the place of a row follows from that row alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.learn.frame.bounds import Box

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
_FIRM = 4.0
"""How many deviations of its noise a bin's count has, if it stands alone; and, without noise, how many persons:"""
_FEW = 10.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Columns of the features of a box, each cut into at most `bins` bins.

    >>> box = Box(low=np.array([0.0, 0, 0]), high=np.array([10.0, 1, 1]))
    >>> columns = Columns(box=box, members=((0,), (1, 2)), bins=5)
    >>> columns.width, columns.places(np.array([[3.0, 0.0, 1.0], [10.0, 0.0, 0.0]])).tolist()
    (5, [[1, 4], [1, 2]])
    """

    box: Box
    members: tuple[tuple[int, ...], ...]
    """The features of each column."""
    bins: int

    @property
    def width(self) -> int:
        """How many bins the widest column has."""
        return max((self.bins_of(column) for column in range(len(self.members))), default=1)

    def bins_of(self, column: int) -> int:
        """How many bins a column has."""
        return self.bins if self.ordered(column) else len(self.members[column]) + 1

    def ordered(self, column: int) -> bool:
        """Whether its bins have an order: it is one feature."""
        return len(self.members[column]) == 1

    def places(self, X: Floats) -> Integers:
        """The bin of each row, a column after the other."""
        found = np.empty((len(self.members), len(X)), dtype=np.int64)
        for column, features in enumerate(self.members):
            if self.ordered(column):
                at = features[0]
                low, high, width = self.box.low[at], self.box.high[at], self.box.width[at]
                share = (np.clip(X[:, at], low, high) - low) / width
                found[column] = np.minimum(np.maximum(share * self.bins, 0), self.bins - 1)
            else:
                chosen = np.stack([X[:, at] >= self.box.middle[at] for at in features])
                found[column] = np.where(chosen.any(axis=0), chosen.argmax(axis=0), len(features))
        return found


def grouped(features: int, groups: Any, names: Sequence[str] = (), box: Box | None = None) -> tuple[tuple[int, ...], ...]:
    """The features of each column: groups as they were declared, all others each by itself.

    Declared are lists of places, or the names of categories, whose features are called `name=value` or `name_value`. Where
    nothing is declared, features between 0 and 1 that are called `name=value`, as a table's are, tell their groups by name.

    >>> grouped(5, [[1, 2], [4, 3]])
    ((0,), (1, 2), (4, 3))
    >>> grouped(3, ["sex"], ["age", "sex_F", "sex_M"])
    ((0,), (1, 2))
    >>> grouped(3, None, ["age", "sex=F", "sex=M"], Box(low=np.zeros(3), high=np.array([90.0, 1.0, 1.0])))
    ((0,), (1, 2))
    """
    if groups is None and box is not None:
        groups = told_by_names(names, box)
    elif _are_names(groups):
        groups = [_category(name, names) for name in groups]
    declared = _declared(groups)
    taken = [at for group in declared for at in group]
    if len(set(taken)) != len(taken) or any(not 0 <= at < features for at in taken):
        raise InvalidParameter(
            "groups is invalid",
            why=f"each group is the places of one category's features, 0 to {features - 1}, and no place is named twice",
            instead="groups=[[1, 2, 3]]",
        )
    first = {group[0]: group for group in declared if group}
    return tuple(first.get(at, (at,)) for at in range(features) if at in first or at not in taken)


def merged(counts: Floats, deviation: float, *, ordered: bool) -> Integers:
    """For each bin the number of the leaf that it is part of: thin bins go with their neighbours, or, without an order, together.

    From noisy counts alone: post-processing. A leaf holds four deviations of its own noise, and ten people.

    >>> merged(np.array([90.0, 1.0, 0.0, 80.0, 20.0]), 10.0, ordered=True).tolist()
    [0, 1, 1, 1, 1]
    >>> merged(np.array([90.0, 1.0, 0.0, 80.0, 20.0]), 10.0, ordered=False).tolist()
    [0, 2, 2, 1, 2]
    """
    if not ordered:
        firm = counts >= max(_FIRM * deviation, _FEW)
        return np.where(firm, np.cumsum(firm) - 1, int(firm.sum())).astype(np.int64)
    leaf, held, bins, found = 0, 0.0, 0, np.zeros(len(counts), dtype=np.int64)
    for place, count in enumerate(counts.tolist()):
        found[place], held, bins = leaf, held + count, bins + 1
        if held >= max(_FIRM * deviation * math.sqrt(bins), _FEW):
            leaf, held, bins = leaf + 1, 0.0, 0
    if bins and leaf:
        found[found == leaf] = leaf - 1
    return found


def sums(places: Integers, values: Integers, bins: int) -> Integers:
    """The sum of each column of whole numbers over the rows in each bin: exact below 2⁵³.

    >>> sums(np.array([0, 1, 1]), np.array([[1], [2], [3]]), 2).tolist()
    [[1], [5]]
    """
    found = [np.bincount(places, weights=column, minlength=bins) for column in values.T]
    return np.stack(found, axis=1).astype(np.int64)


def _are_names(groups: Any) -> bool:
    return isinstance(groups, list | tuple) and bool(groups) and all(isinstance(each, str) for each in groups)


def _category(name: str, names: Sequence[str]) -> list[int]:
    found = [at for at, each in enumerate(names) if each.startswith((f"{name}=", f"{name}_"))]
    if not found:
        raise InvalidParameter(
            f"groups={[name]!r} is invalid",
            why=f"no feature is called {name}=… or {name}_…: names are those of a frame's columns",
            instead="groups=[[1, 2, 3]]",
        )
    return found


def told_by_names(names: Sequence[str], box: Box) -> list[list[int]]:
    """The features between 0 and 1 that are called `name=value`, by name."""
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        if "=" in name and box.low[at] == 0 and box.high[at] == 1:
            found.setdefault(name.partition("=")[0], []).append(at)
    return list(found.values())


_PREFIXES = 8
"""Of a name, how many beginnings are looked at."""


def alike_in_name(names: Sequence[str], box: Box) -> list[tuple[int, ...]]:
    """Features between 0 and 1 that may be one category by their names, alike up to an underscore: `sex_F` and `sex_M` of one
    that was written out, `ill_heart` and `ill_lung` of two things that somebody may both have. By each beginning of a name,
    so one feature may be in several of them.

    >>> alike_in_name(["age", "sex_F", "sex_M", "sex"], Box(low=np.zeros(4), high=np.array([90.0, 1.0, 1.0, 1.0])))
    [(1, 2)]
    """
    found: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        parts = name.split("_")
        if "=" not in name and box.low[at] == 0 and box.high[at] == 1:
            for stop in range(1, min(len(parts), _PREFIXES + 1)):
                found.setdefault("_".join(parts[:stop]), []).append(at)
    return list(dict.fromkeys(tuple(each) for each in found.values() if len(each) > 1))


def apart(groups: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Of groups that overlap the first.

    >>> apart([(0, 1, 2), (1, 2), (3, 4)])
    [[0, 1, 2], [3, 4]]
    """
    found, taken = list[list[int]](), set[int]()
    for each in groups:
        if not taken & set(each):
            found.append(list(each))
            taken |= set(each)
    return found


def _declared(groups: Any) -> Sequence[tuple[int, ...]]:
    if groups is None:
        return []
    try:
        return [tuple(int(at) for at in group) for group in groups]
    except (TypeError, ValueError):
        raise InvalidParameter(
            "groups is invalid", why="it is a list of lists of places", instead="groups=[[1, 2, 3], [4, 5]]"
        ) from None
