"""A private quadtree of where people stay: counts at every scale, bought once, made consistent, and read as ranges and clusters.

A square grid of 2^h cells along a side is the lowest level of a complete quadtree over the declared bounds; every level above has
cells of twice the width. *Measured*: how many stays lie in each cell, at every level from 1 to h, with a share of the spend that
grows as 2^(l/3) with the level l (Cormode, Procopiuc, Srivastava, Shen & Yu 2012, "Differentially private spatial
decompositions"). A large range is then a sum of few cells, a small one of few fine ones. Where the tree is fine follows from what
was released, not from the data: a cell is split as long as its count is more than noise.

*Consistent*: the counts of the finest cells that are nearest to all levels' noisy ones, in least squares weighed by their noise;
every other number is a sum of these. Let P_l average over the cells of level l, and 1/σ²_l be 0 where a level was not measured.
The normal equations have the matrix Σ_l 4^(h−l)·P_l/σ²_l. The spaces between P_(l−1) and P_l are its eigenspaces, with μ_l =
Σ_(k≥l) 4^(h−k)/σ²_k. So what is solved is Σ_l (P_l − P_(l−1))/μ_l, a few averages; the variance of a range q is q·Σ_l (P_l −
P_(l−1))q/μ_l, exactly, and `margin` is of that.

Guarantee: the spend, for one group of people who move together, as in `groups.py`, of which this is the same counting at several
scales. Proof: the tree's cells are declared. At each level a group adds g·m = `reach` at most in L1, and in L2 no more; each
level has its share of ε (or ρ) for that, and they add up to the spend. The rest is post-processing. ∎
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace
from cloister.noise._checks import level as confidence_level
from cloister.noise._checks import whole
from cloister.noise.matrix import sum_of_laplace
from cloister.printable import margin_text
from cloister.privacy import Exact, Guarantee
from cloister.session import Measurer, Spending
from cloister.tables import PrivateTable
from cloister.traces.groups import Groups, Integers, StayCounts, declared_stays

Floats = npt.NDArray[np.float64]
Box = tuple[float, float, float, float]
_DEEPEST = 8


@dataclass(frozen=True)
class Region:
    """A part of the plane, and how many stays are in it."""

    box: Box
    """The least x and y, and the greatest."""
    count: float
    margin: float
    """Half the width of the interval that holds the number with a confidence of 0.95; the noise alone."""


@dataclass(frozen=True, kw_only=True)
class QuadtreeCounts(StayCounts):
    """Counts of stays at every level of a quadtree, as a method that needs rows. See above for its proof."""

    stored: ClassVar[tuple[str, str]] = ("cloister.traces.quadtree", "QuadtreeCounts")

    @property
    def depth(self) -> int:
        """h: the finest level."""
        return self.cells.bit_length() - 1

    @property
    def shares(self) -> Mapping[str, Fraction]:  # type: ignore[override]
        """Of the levels, as 2^(l/3), in thousandths."""
        weights = {f"level {level}": round(1000 * 2 ** (level / 3)) for level in range(1, self.depth + 1)}
        return {name: Fraction(weight, sum(weights.values())) for name, weight in weights.items()}

    @property
    def reach(self) -> Mapping[str, int]:
        """The joint contribution of a group, at each level."""
        return dict.fromkeys(self.shares, self.together * self.stays)

    def counted(self, rows: Mapping[str, Any], declaration: PrivateTable) -> dict[str, Integers]:
        """The exact numbers, before noise: private."""
        finest = super().counted(rows, declaration)["stays"].reshape(self.cells, self.cells)
        return {f"level {level}": _summed(finest, 1 << level).ravel() for level in range(1, self.depth + 1)}


def _summed(values: npt.NDArray[Any], side: int) -> npt.NDArray[Any]:
    """The sums over so many cells along a side."""
    width = len(values) // side
    return np.asarray(values.reshape(side, width, side, width).sum(axis=(1, 3)))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Quadtree:
    """What `fit_quadtree` gives. Rows of cells count from the lower edge on."""

    method: QuadtreeCounts
    released: Mapping[str, Integers]
    """The noisy numbers of each level as they left."""
    box: Box
    cost: Guarantee
    marked: bool = False

    @cached_property
    def counts(self) -> Floats:
        """The consistent counts of the finest cells; some below 0."""
        right = np.zeros((self.method.cells, self.method.cells))
        for level in range(1, self.method.depth + 1):
            side, width = 1 << level, self.method.cells >> level
            noisy = self.released[f"level {level}"].reshape(side, side)
            right += np.kron(noisy, np.ones((width, width))) / self._variances[level]
        return self._solved(right)

    def count(self, box: Box, confidence: Exact = "0.95") -> Region:
        """How many stays are in a box of least x, least y, greatest x and greatest y; a cell counts as far as it is covered. The
        counts of boxes that make up another add up to its own.
        """
        try:
            left, low, right, high = (float(end) for end in box)
        except (TypeError, ValueError):
            left = low = right = high = math.nan
        if not (left < right and low < high):
            raise InvalidParameter(
                "box is invalid", why="it is the least x and y, and the greatest", instead="tree.count((0, 0, 500, 500))"
            )
        return self._region(
            (left, low, right, high), np.outer(self._covered(low, high, 1), self._covered(left, right, 0)), confidence
        )

    def margin(self, confidence: Exact = "0.95") -> float:
        """The half-width of the interval of one of the finest cells."""
        one = np.zeros_like(self.counts)
        one[0, 0] = 1.0
        return self._half_width(one, confidence)

    def regions(self, *, times: float = 2.0) -> list[Region]:
        """The leaves of the tree: a cell is split while it holds more than `times` the margin of its parts, by what was released.
        Together they are the whole, and their counts add up."""
        found: list[Region] = []
        todo = [(0, 0, 0)]
        while todo:
            level, row, column = todo.pop()
            width = self.method.cells >> level
            cells = np.zeros_like(self.counts)
            cells[row * width : (row + 1) * width, column * width : (column + 1) * width] = 1.0
            region = self._region(self._box(row * width, column * width, width, width), cells)
            if level < self.method.depth and region.count > times * self._margins[level + 1]:
                todo += [(level + 1, 2 * row + up, 2 * column + along) for up in (1, 0) for along in (1, 0)]
            else:
                found.append(region)
        return found

    def clusters(self, *, times: float = 2.0) -> list[Region]:
        """Where people stay: neighbouring cells, each with more than `times` its margin, as one; the largest first. The box is
        the least that holds them; count and margin are those of the cells alone. That they were chosen for their counts makes
        these a little too high."""
        from scipy.ndimage import find_objects, label

        groups, _ = label(self.counts > times * self.margin())
        found = []
        for number, (rows, columns) in enumerate(find_objects(groups), 1):
            box = self._box(rows.start, columns.start, rows.stop - rows.start, columns.stop - columns.start)
            found.append(self._region(box, (groups == number).astype(np.float64)))
        return sorted(found, key=lambda region: -region.count)

    @cached_property
    def _margins(self) -> list[float]:
        """Of one cell of each level."""
        found = []
        for level in range(self.method.depth + 1):
            cells, width = np.zeros_like(self.counts), self.method.cells >> level
            cells[:width, :width] = 1.0
            found.append(self._half_width(cells, "0.95"))
        return found

    def _region(self, box: Box, cells: Floats, confidence: Exact = "0.95") -> Region:
        return Region(box, float((cells * self.counts).sum()), self._half_width(cells, confidence))

    def _half_width(self, cells: Floats, confidence: Exact) -> float:
        """By the normal law or, under ε, that of one Laplace number where it is wider; and half a unit, since noise is whole."""
        wanted, terms = confidence_level(confidence), [math.inf]
        if any(isinstance(law, DiscreteLaplace) for law in self.method.laws(self.cost).values()):
            terms.append(1)
        variance = float((cells * self._solved(cells)).sum())
        return math.sqrt(variance) * max(sum_of_laplace(each, wanted) for each in terms) + 0.5

    def _solved(self, values: Floats) -> Floats:
        """The inverse of the normal equations' matrix, times a table."""
        depth, cells = self.method.depth, self.method.cells
        found, before = np.zeros_like(values), np.zeros_like(values)
        for level in range(depth + 1):
            width = cells >> level
            averaged = np.kron(_summed(values, 1 << level), np.ones((width, width))) / width**2
            weight = sum(4.0 ** (depth - finer) / self._variances[finer] for finer in range(max(level, 1), depth + 1))
            found += (averaged - before) / weight
            before = averaged
        return found

    @cached_property
    def _variances(self) -> list[float]:
        """By level, of which the first is none that is measured."""
        laws = self.method.laws(self.cost)
        return [0.0, *(max(laws[f"level {level}"].variance, 1e-200) for level in range(1, self.method.depth + 1))]

    def _covered(self, low: float, high: float, axis: int) -> Floats:
        """How much of each row (or column) of cells lies between two coordinates."""
        start, end = self.box[axis], self.box[axis + 2]
        edges = np.linspace(0, 1, self.method.cells + 1)
        ends = np.clip(np.array([low, high]), start, end)
        first, last = (ends - start) / (end - start)
        return np.asarray(np.clip(np.minimum(edges[1:], last) - np.maximum(edges[:-1], first), 0, None) * self.method.cells)

    def _box(self, row: int, column: int, rows: int, columns: int) -> Box:
        left, low, right, high = self.box
        wide, tall = (right - left) / self.method.cells, (high - low) / self.method.cells
        return (left + column * wide, low + row * tall, left + (column + columns) * wide, low + (row + rows) * tall)

    def __repr__(self) -> str:
        return (
            f"a quadtree of {self.method.depth} levels, its finest cells ± {margin_text(self.margin())}, "
            f"the whole ± {margin_text(self._margins[0])}\n"
            f"  cost: {self.cost}, for a group of up to {self.method.together} people who move together"
            + ("\n  MARKED: the noise came from a test's generator and protects nobody" if self.marked else "")
        )


def fit_quadtree(
    session: Measurer,
    table: str,
    groups: Groups,
    *,
    spend: Spending,
    moment: str = "moment",
    x: str = "x",
    y: str = "y",
    depth: int = 5,
    distance: float = 200.0,
    duration: float = 1200.0,
    stays: int = 10,
    purpose: str = "a quadtree of stays",
) -> Quadtree:
    """A quadtree of where people stay, for one charge. Parameters as those of `fit_stays`; `depth` levels, the finest of which
    has 2^depth cells along a side of the declared bounds.

    >>> import cloister as cl
    >>> from cloister.noise import Random
    >>> rows = {"who": [str(n // 3) for n in range(900)], "moment": [0, 700, 1400] * 300, "x": [10] * 900, "y": [90] * 900}
    >>> columns = {"who": cl.Text(), "moment": cl.Integer(0, 9999), "x": cl.Integer(0, 99), "y": cl.Integer(0, 99)}
    >>> people = cl.PrivateTable(rows, columns, unit="who", max_rows=3)
    >>> with cl.Session({"people": people}, budget=cl.PureDP(2), random=Random.deterministic(1)) as session:
    ...     tree = fit_quadtree(session, "people", Groups(), spend=2, depth=4, stays=1)
    >>> [cluster] = tree.clusters()
    >>> abs(cluster.count - 300) < 30, [round(end) for end in cluster.box]
    (True, [6, 87, 12, 93])
    >>> whole, left, right = (tree.count(box) for box in ((0, 0, 99, 99), (0, 0, 30, 99), (30, 0, 99, 99)))
    >>> isinstance(tree, Quadtree), tree.counts.shape, abs(whole.count - left.count - right.count) < 1e-6
    (True, (16, 16), True)
    """
    deep = whole(depth, "depth", least=1)
    if deep > _DEEPEST:
        raise InvalidParameter(f"depth={depth} is invalid", why=f"there are up to {_DEEPEST} levels", instead=f"depth={_DEEPEST}")
    method = QuadtreeCounts(
        **declared_stays(
            session, table, groups, moment=moment, x=x, y=y, cells=1 << deep, distance=distance, duration=duration, stays=stays
        )
    )
    declared: Any = session.declared(table)
    axes = [declared.column(name) for name in (x, y)]
    ends = [[float(axis.decode(code)) for code in (axis.low_code, axis.high_code)] for axis in axes]
    outcome = session.run(method, table, spend, purpose=f"{purpose}, {groups!r}")
    released = {name: np.array(outcome.values[name], dtype=np.int64) for name in method.shares}
    box = (ends[0][0], ends[1][0], ends[0][1], ends[1][1])
    return Quadtree(method=method, released=released, box=box, cost=outcome.cost, marked=outcome.marked)
