"""Many ranges of one ordered axis, asked together: counts of BETWEEN, cumulative counts, groups of any cut.

Asked one by one, q ranges share the spend, and each has q² times the variance of one asked alone (q times under ρ). Asked
together, the axis is cut at the ends of the ranges, what lies between two cuts is one *atom*, and the matrix mechanism finds
what sums of atoms to measure with noise so that the ranges are put together with the least variance.

Guarantee: that of `noise.MatrixMechanism` on the counts of the atoms. A row is in one atom or in none, so one row moves their
vector by at most 1 in L1, and m rows of one unit by at most m: `sensitivity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise import MatrixMechanism
from cloister.noise.strategies import Product
from cloister.noise.workloads import Questions, Workload
from cloister.privacy import ZCDP, Exact, PureDP

_MOST_ENTRIES = 1 << 24


@dataclass(frozen=True, kw_only=True)
class RangePlan:
    """What to measure for some ranges of an axis, and how well they come out.

    >>> plan = range_plan(100, [(0, stop) for stop in range(1, 101)], pure=True)
    >>> len(plan.atoms), plan.gain > 100
    (100, True)
    """

    atoms: tuple[tuple[int, int], ...]
    """The cells (from, up to and not including) that are counted together; cells that no range asks for are in none."""
    workload: Workload = field(repr=False)
    """Which atoms each range sums."""
    strategy: Product = field(repr=False)
    pure: bool
    variances: tuple[float, ...] = field(repr=False)
    """Of each range, for a spend of 1 (ε, or ρ) and a sensitivity of 1."""
    alone: float
    """Of each range, if every one were asked by itself with an equal part of that spend."""

    @cached_property
    def coefficients(self) -> npt.NDArray[np.float64]:
        """W A⁺, a row a range: with what weights the strategy's answers, and the noises in them, make up the range.

        >>> plan = range_plan(10, [(0, 5), (2, 10)], pure=True)
        >>> answers = plan.strategy.apply(np.array([20, 30, 50]))
        >>> (plan.coefficients @ answers).round(6).tolist()
        [50.0, 80.0]
        """
        [[questions]], [strategy] = self.workload.products, self.strategy.factors
        return np.asarray(strategy.coefficients(questions.dense().astype(np.float64)), dtype=np.float64)

    @property
    def gain(self) -> float:
        """How many times smaller the mean variance is than one by one."""
        return self.alone * len(self.variances) / sum(self.variances)

    def mechanism(self, guarantee: PureDP | ZCDP, *, sensitivity: Exact = 1) -> MatrixMechanism:
        """The mechanism that measures the atoms' counts and answers the ranges, in their order.

        >>> from cloister.noise import Random
        >>> asked = range_plan(10, [(0, 5), (2, 10)], pure=True).mechanism(PureDP(50))
        >>> asked.release([20, 30, 50], random=Random.deterministic(1)).round().tolist()
        [50.0, 80.0]
        """
        if isinstance(guarantee, PureDP) != self.pure:
            raise InvalidParameter(
                "guarantee is invalid",
                why="the plan was made for the other kind of noise",
                instead=f"range_plan(…, pure={isinstance(guarantee, PureDP)})",
            )
        return MatrixMechanism(workload=self.workload, strategy=self.strategy, guarantee=guarantee, sensitivity=sensitivity)

    def place(self, cells: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The atom of each cell of the axis; −1 for those in none.

        >>> range_plan(10, [(2, 5), (4, 8)], pure=True).place(np.arange(10)).tolist()
        [-1, -1, 0, 0, 1, 2, 2, 2, -1, -1]
        """
        starts, stops = (np.array(ends) for ends in zip(*self.atoms, strict=True))
        found = np.searchsorted(starts, cells, side="right") - 1
        return np.asarray(np.where((found >= 0) & (cells < stops[found]), found, -1), dtype=np.int64)


def range_plan(size: int, ranges: Sequence[tuple[int, int]], *, pure: bool) -> RangePlan:
    """The best way that the search finds to ask all these ranges (from, up to and not including) of an axis of `size` cells
    together, for Laplace noise under ε (`pure`) or Gaussian noise under ρ.

    >>> plan = range_plan(74, [(0, 10), (5, 20), (10, 74)], pure=False)
    >>> plan.atoms
    ((0, 5), (5, 10), (10, 20), (20, 74))
    >>> plan.gain > 1
    True
    """
    _check(size, ranges)
    cuts = sorted({end for pair in ranges for end in pair})
    starts, stops = (np.array(ends)[:, None] for ends in zip(*ranges, strict=True))
    asked = (starts <= np.array(cuts[:-1])) & (np.array(cuts[:-1]) < stops)
    used = np.flatnonzero(asked.any(axis=0))
    atoms = tuple((cuts[place], cuts[place + 1]) for place in used)
    workload = Workload.of(Questions(asked[:, used].astype(np.int64)))
    part = Fraction(1, len(ranges))
    guarantee, each = (PureDP(1), PureDP(part)) if pure else (ZCDP(1), ZCDP(part))
    best = MatrixMechanism.best(workload, guarantee)
    one = MatrixMechanism.best(Workload.of(Questions([[1]])), each)
    return RangePlan(
        atoms=atoms,
        workload=workload,
        strategy=best.strategy,
        pure=pure,
        variances=tuple(float(value) for value in best.variances()),
        alone=float(one.noise.variance),
    )


def fits(ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether so many ranges of so many ends fit in memory.

    >>> fits([(0, 5), (2, 10)]), fits([(0, stop) for stop in range(1, 5001)])
    (True, False)
    """
    return len(ranges) * (len({end for pair in ranges for end in pair}) - 1) <= _MOST_ENTRIES


def _check(size: int, ranges: Sequence[tuple[int, int]]) -> None:
    if not ranges or not all(
        isinstance(pair, tuple) and len(pair) == 2 and all(type(end) is int for end in pair) and 0 <= pair[0] < pair[1] <= size
        for pair in ranges
    ):
        raise InvalidParameter(
            "ranges is invalid",
            why=f"each is a first cell and the one after the last, of {size}",
            instead=f"ranges=[(0, {size})]",
        )
    if not fits(ranges):
        raise InvalidParameter(
            "ranges is invalid", why="so many ranges of so many ends would not fit in memory", instead="fewer ranges at a time"
        )
