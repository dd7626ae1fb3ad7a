"""How near released journeys are to the real ones: nine measures in one call, for the owner alone.

Both are laid on one grid of square cells and walk from cell to cell along straight lines, a king's move at a time, so that
traces with a point a second and journeys with a point a cell are compared in the same way. Shares are compared, not numbers, so
that there may be more of one than of the other.

- *density*, *trips*, *diameter*, *length*: the Jensen–Shannon divergence, in bits, of visits to cells (once for each journey), of
  pairs of first and last cell, of the greatest distance within a journey, and of the distance travelled, in 20 bins up to the
  real greatest and one beyond;
- *query*: the mean relative error of the share of journeys that pass a square of a ninth of the region, over all squares of
  cells (a share below 0.01 counts as 0.01);
- *hotspots*: the normalised discounted cumulative gain (NDCG) of the ten most visited cells; *coverage*: Kendall's τ of how many
  journeys pass each cell;
- *patterns*: the F1 score of the hundred most frequent sequences of two to five cells; *support*: the mean relative error of how
  often these occur in a journey.

They are those of LDPTrace (Du, Hu, Zhang, Fang, Chen, Zheng & Gao 2023) with these definitions; AdaTrace has most of them.
Where they are exact numbers of real journeys, no guarantee covers them: they stay with the owner, as `unique_in_the_crowd`
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import whole
from cloister.traces.journeys import moves_between
from cloister.traces.planar import checked_box

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
_BINS, _HOT, _FREQUENT, _LONGEST, _LEAST = 20, 10, 100, 5, 0.01
_MOST_CELLS, _BATCH = 32, 4096
_ERRORS = ("density", "query", "trips", "diameter", "length", "support")
_SCORES = ("hotspots", "coverage", "patterns")


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyMeasures:
    """Nine numbers: errors from 0 on, but for `hotspots`, `coverage` and `patterns`, of which 1 is the best.

    >>> real = (["a", "a", "b"], [0, 1, 0], [5.0, 95.0, 5.0], [5.0, 5.0, 5.0])
    >>> print(journey_measures(real, real, box=((0, 0), (100, 100)), cells=4))
    exact, for the owner alone
    density 0.000, query 0.000, trips 0.000, diameter 0.000, length 0.000, support 0.000
    hotspots 1.000, coverage 1.000, patterns 1.000 (1 is the best)
    """

    density: float
    query: float
    trips: float
    diameter: float
    length: float
    support: float
    hotspots: float
    coverage: float
    patterns: float

    def to_dict(self) -> dict[str, float]:
        """By name."""
        return {name: getattr(self, name) for name in (*_ERRORS, *_SCORES)}

    def better_than(self, other: JourneyMeasures) -> list[str]:
        """In which measures it is better.

        >>> near, far = (JourneyMeasures(**dict.fromkeys(JourneyMeasures.__slots__, value)) for value in (0.1, 0.2))
        >>> far.better_than(near)
        ['hotspots', 'coverage', 'patterns']
        """
        theirs = other.to_dict()
        return [name for name, mine in self.to_dict().items() if (mine - theirs[name]) * _sign(name) < 0]

    def __str__(self) -> str:
        errors, scores = (
            ", ".join(f"{name} {value:.3f}" for name, value in self.to_dict().items() if _sign(name) == sign) for sign in (1, -1)
        )
        return f"exact, for the owner alone\n{errors}\n{scores} (1 is the best)"


def journey_measures(real: Any, released: Any, *, box: Any, cells: int = 6) -> JourneyMeasures:
    """The nine measures of released journeys against the real ones. Exact: for the owner alone.

    Both are four columns of equal length: whose each row is, its moment or step, and its place. `box` is ((least x, least y),
    (greatest x, greatest y)), `cells` how many lie along a side of it; a place outside counts as the nearest in it.

    >>> real = (["a", "a", "b", "b"], [0, 1, 0, 1], [5, 95, 5, 95], [5, 5, 95, 95])
    >>> other = (["x", "x"], [0, 1], [5, 95], [5, 5])
    >>> found = journey_measures(real, other, box=((0, 0), (100, 100)), cells=4)
    >>> round(found.trips, 2), found.length, round(found.hotspots, 2)
    (0.31, 0.0, 0.65)
    """
    (left, bottom), (right, top) = checked_box(box)
    side = whole(cells, "cells", least=1)
    if side > _MOST_CELLS:
        raise InvalidParameter(
            f"cells={cells} is invalid", why=f"there are at most {_MOST_CELLS} along a side", instead="cells=6"
        )
    low, high = (np.array([float(x), float(y)]) for x, y in ((left, bottom), (right, top)))
    one, two = (_Walks(journeys, name, low, high, side) for name, journeys in (("real", real), ("released", released)))
    reach = [max(float(found.max()), 1e-9) for found in (one.diameters, one.lengths)]
    wide, long = (
        [_binned(getattr(walks, name), most) for walks in (one, two)]
        for name, most in zip(("diameters", "lengths"), reach, strict=True)
    )
    frequent, theirs = one.frequent(), two.frequent()
    top_real, top_released = (list(found)[:_FREQUENT] for found in (frequent, theirs))
    common = len(set(top_real) & set(top_released))
    return JourneyMeasures(
        density=divergence(one.visits, two.visits),
        query=_relative(one.squares(), two.squares()),
        trips=divergence(one.trips, two.trips),
        diameter=divergence(*wide),
        length=divergence(*long),
        support=_relative(*(np.array([found.get(each, 0.0) for each in top_real]) for found in (frequent, theirs)), least=0.0),
        hotspots=_gain(one.visits, two.visits),
        coverage=_concordance(one.visits, two.visits),
        patterns=2 * common / max(len(top_real) + len(top_released), 1) if top_real or top_released else 1.0,
    )


def divergence(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
    """Jensen and Shannon's, in bits: 0 for equal shares, 1 where nothing is shared.

    >>> divergence(np.array([1, 0]), np.array([0, 3])), divergence(np.array([1, 1]), np.array([2, 2]))
    (1.0, 0.0)
    """
    one, other = one / one.sum(), other / other.sum()
    middle = (one + other) / 2
    return sum(float((part[part > 0] * np.log2(part[part > 0] / middle[part > 0])).sum()) for part in (one, other)) / 2


def _binned(found: Floats, most: float) -> Integers:
    """How many lie in each bin up to `most`, and beyond it."""
    bins = np.minimum(found / most * _BINS, _BINS - 1).astype(np.int64)
    return np.bincount(np.where(found > most * (1 + 1e-9), _BINS, bins), minlength=_BINS + 1)


class _Walks:
    """Journeys as walks from cell to cell, and what is counted of them."""

    def __init__(self, journeys: Any, name: str, low: Floats, high: Floats, side: int) -> None:
        who, moment, places = _checked(journeys, name)
        order = np.lexsort((places[:, 1], places[:, 0], moment, who))
        owner = who[order]
        across, up = np.clip((places[order] - low) / (high - low) * side, 0, side - 1).astype(np.int64).T
        self.side, self.count = side, int(owner[-1]) + 1
        walker, start, move = moves_between(owner, across, up)
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        cells = np.concatenate([across[first] + side * up[first], np.array([1, side]) @ (start + move)])
        whose = np.concatenate([owner[first], walker])
        order = np.argsort(whose, kind="stable")
        self.cells, self.owner = cells[order], whose[order]
        begin = np.flatnonzero(np.diff(self.owner, prepend=-1))
        last = np.append(begin[1:], len(self.owner)) - 1
        self.trips = np.bincount(self.cells[begin] * side**2 + self.cells[last], minlength=side**4)
        size = (high - low) / side
        self.lengths = np.bincount(walker, np.hypot(*(move.T * size).T), minlength=self.count)
        self.passed = np.unique(np.stack([self.owner, self.cells]), axis=1)
        self.visits = np.bincount(self.passed[1], minlength=side**2)
        place = np.arange(side**2)
        apart = np.stack([place % side, place // side], axis=1) * size
        distance = np.hypot(*(apart[:, None] - apart).transpose(2, 0, 1))
        parts = np.split(self.passed[1], np.flatnonzero(np.diff(self.passed[0])) + 1)
        self.diameters = np.array([distance[np.ix_(part, part)].max() for part in parts])

    def squares(self) -> Floats:
        """The share of journeys that pass each square of cells of a third of a side."""
        edge, side = -(-self.side // 3), self.side
        total = np.zeros((side - edge + 1, side - edge + 1))
        for first in range(0, self.count, _BATCH):
            lot = (self.passed[0] >= first) & (self.passed[0] < first + _BATCH)
            sums = np.zeros((min(_BATCH, self.count - first), side + 1, side + 1), dtype=np.int64)
            sums[self.passed[0][lot] - first, self.passed[1][lot] // side + 1, self.passed[1][lot] % side + 1] = 1
            sums = sums.cumsum(axis=1).cumsum(axis=2)
            inside = sums[:, edge:, edge:] - sums[:, :-edge, edge:] - sums[:, edge:, :-edge] + sums[:, :-edge, :-edge]
            total += (inside > 0).sum(axis=0)
        return np.asarray(total.ravel() / self.count)

    def frequent(self) -> dict[int, float]:
        """How often each sequence of cells occurs in a journey, on average: the most frequent first."""
        found: dict[int, float] = {}
        base = self.side**2 + 1
        code, owner = self.cells + 1, self.owner
        for longer in range(1, _LONGEST):
            same = owner[longer:] == owner[:-longer]
            code = code[:-1] * base + self.cells[longer:] + 1
            values, counts = np.unique(code[same], return_counts=True)
            found |= dict(zip(values.tolist(), (counts / self.count).tolist(), strict=True))
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))


def _relative(real: Floats, released: Floats, *, least: float = _LEAST) -> float:
    """The mean error over the real number, or over `least`; 0 where there is nothing to be wrong in."""
    return float((np.abs(real - released) / np.maximum(real, least)).mean()) if len(real) else 0.0


def _gain(real: Integers, released: Integers) -> float:
    """NDCG of the most visited cells, whose worth is how often they are really visited; a cell that nobody visits is none of
    them.
    """
    weights = 1 / np.log2(np.arange(2, 2 + _HOT))
    ideal, chosen = (
        float(real[order] @ weights[: len(order)])
        for each in (real, released)
        for order in (np.argsort(-each, kind="stable")[: min(_HOT, np.count_nonzero(each))],)
    )
    return chosen / ideal


def _concordance(real: Integers, released: Integers) -> float:
    """Kendall's τ-b, which leaves ties out; 1 where all are tied in both."""
    signs = [np.sign(each[:, None] - each) for each in (real, released)]
    ways = [float(np.abs(sign).sum()) for sign in signs]
    if not ways[0] * ways[1]:
        return 1.0 if ways[0] == ways[1] else 0.0
    return float((signs[0] * signs[1]).sum() / np.sqrt(ways[0] * ways[1]))


def _sign(name: str) -> int:
    return -1 if name in _SCORES else 1


def _checked(journeys: Any, name: str) -> tuple[Integers, Floats, Floats]:
    """Numbers for journeys, moments, and places."""
    try:
        who, moment, x, y = (np.asarray(column) for column in journeys)
        who = who.astype(str) if who.dtype.kind == "O" else who
        owner = np.unique(who, return_inverse=True)[1].astype(np.int64).reshape(-1)
        when, places = moment.astype(np.float64), np.stack([x, y], axis=1).astype(np.float64)
    except (TypeError, ValueError):
        owner, when, places = np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 2))
    if not len(owner) or owner.shape != when.shape or len(places) != len(owner) or not np.isfinite(when).all():
        raise InvalidParameter(
            f"{name} is invalid",
            why="it must be four columns of equal length: who, moment, x and y, with one row at least",
            instead=f'{name}=(["a", "a"], [0, 1], [5, 95], [5, 5])',
        )
    if not np.isfinite(places).all():
        raise InvalidParameter(
            f"{name} is invalid", why="all places must be finite numbers", instead="the rows that have a place"
        )
    return owner, when, places
