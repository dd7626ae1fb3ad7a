"""Running sums of the integers of a table, for one charge: `Counter`'s two mechanisms over whole vectors.

Guarantee. Neighbours: the rows of one person added or removed, at most m, in whichever steps and cells. A plan says how far
they move the integers of one table, l1 or l2 in widths (`session/planning/blocks.py`); these are sums over rows in cells, so
one row moves them by at most l1/m or l2/m, since the plan covers m equal rows. Where the question computes columns, has
conditions or looks up public rows, its rows are those that follow from each row of the table by itself (`stepping.py`), and m is
the most of these that a person has; they may lie in different steps. Claim: the published vectors of all steps
move by at most l2·‖C̃‖ in L2, where ‖C̃‖ is the longest column of the square-root matrix, or l1·L in L1, where L is the number
of levels of the tree. Proof: a row of step t moves them by the outer product of its own move and column t, whose norm is the
product of both norms; m rows, by the triangle inequality, by at most m times that. The noise of each integer is that of the
plan with its sensitivity scaled so: discrete Gaussian (Canonne, Kamath & Steinke 2020, Theorem 14) on the square root, discrete
Laplace on the tree; each keeps what the plan promises for one table. Streams that follow from what was published are covered
as in `Counter`. ∎

Error: unbiased. A step's own number is the difference of two running sums, so steps add up to them exactly; running sums are
rounded to whole numbers, and the margins include it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.errors import LedgerError
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.session.planning.plan import Part
from cloister.session.releases.formulas import Reading
from cloister.session.releases.uncertainty import Term
from cloister.traces.square_root import RootSums, square_root_matrix
from cloister.traces.step_lock import StepLock, draft
from cloister.traces.tree import BinaryTree, lowest

_STEP_ENERGY = 1.2733
"""At least the squared norm of a row of C̃⁻¹ in units of its first entry: 4/π for the square root itself, and what bins add."""

Whole = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Readings:
    """What a step adds, and what there is so far: for each raw its values by cell and the noise in them."""

    step: Mapping[str, Reading]
    so_far: Mapping[str, Reading]


class RunningTable:
    """The running sums of all raws of a plan, over so many steps at most.

    >>> from cloister.session import Count, Question
    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     part = door.stepping(Question(table="people", by=("sex",), statistics=(Count(),)), 1)
    >>> table = RunningTable(part, 8)
    >>> found = [table.take({"rows": np.array([30, 2, 0])}, Random.deterministic(1)) for _ in range(3)]
    >>> [len(each.step["rows"].terms) for each in found], len(found[2].so_far["rows"].values)
    ([1, 2, 1], 3)
    """

    def __init__(self, part: Part, steps: int, *, cells: int | None = None) -> None:
        """`cells` are those of the plan, unless somebody wants the same mechanism for more or fewer."""
        self.steps, self._cells = steps, cells or part.shape.grid.cells
        self.noises = {name: _widened(noise, steps) for name, noise in part.noises.items()}
        made = {name: _Running(noise, steps, self._cells) for name, noise in self.noises.items()}
        self._lock = StepLock(error=LedgerError, instead="the same watch in a new session")
        self._now: tuple[int, dict[str, _Running]] = 0, made
        """How many steps were taken, and the running sums after them."""

    @property
    def taken(self) -> int:
        """How many steps are released."""
        return self._now[0]

    def take(self, exact: Mapping[str, Whole], random: Random) -> Readings:
        """The next step, from its exact integers."""
        return self._lock.take(lambda: self._drawn(exact, random), self._keep)

    def _drawn(self, exact: Mapping[str, Whole], random: Random) -> tuple[Readings, tuple[int, dict[str, _Running]]]:
        taken, before = self._now
        number, after, step, so_far = taken + 1, dict[str, _Running](), {}, {}
        for name, running in before.items():
            after[name] = draft(running)
            after[name].publish(number, np.asarray(exact[name]).astype(object), random)
            total, terms = after[name].total, running.terms(number)
            step[name] = Reading(total - running.total, terms[0])
            so_far[name] = Reading(total, terms[1])
        return Readings(step=step, so_far=so_far), (number, after)

    def _keep(self, drawn: tuple[Readings, tuple[int, dict[str, _Running]]]) -> Readings:
        self._now = drawn[1]
        return drawn[0]

    def foreseen(self, number: int) -> Readings:
        """What is known in advance of step `number`: the noise without the values."""
        nothing = np.zeros(self._cells, dtype=np.int64)
        terms = {name: running.terms(number) for name, running in self._now[1].items()}
        return Readings(
            step={name: Reading(nothing, each[0]) for name, each in terms.items()},
            so_far={name: Reading(nothing, each[1]) for name, each in terms.items()},
        )

    def state(self) -> dict[str, Any]:
        """All that the next step needs, as plain JSON. It holds exact sums: it is sealed wherever it is kept."""
        taken, sums = self._now
        return {"taken": taken, "sums": {name: running.sums.state() for name, running in sums.items()}}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        for name, running in self._now[1].items():
            running.sums.restore(state["sums"][name])
        self._now = state["taken"], self._now[1]


def memory_of(part: Part, steps: int) -> int:
    """How many numbers are kept for each integer of a step."""
    roots = any(isinstance(noise, DiscreteGaussian) for noise in part.noises.values())
    return 2 * (square_root_matrix(steps).slots if roots else steps.bit_length())


def _widened(noise: Any, steps: int) -> DiscreteGaussian | DiscreteLaplace:
    """The noise of one table, for all that a row moves over the steps."""
    if isinstance(noise, DiscreteGaussian):
        most = square_root_matrix(steps).l2_squared
        return DiscreteGaussian(scale_squared=noise.scale_squared * most, sensitivity_squared=noise.sensitivity_squared * most)
    levels = steps.bit_length()
    return DiscreteLaplace(scale=noise.scale * levels, sensitivity=noise.sensitivity * levels)


class _Running:
    """The running sums of one kind of integer in each cell: by the square root under ρ, by the tree under ε."""

    changes: ClassVar[tuple[str, ...]] = ("sums",)

    def __init__(self, noise: DiscreteGaussian | DiscreteLaplace, steps: int, cells: int) -> None:
        self._noise, self._cells = noise, cells
        self.sums: RootSums | BinaryTree = (
            RootSums(square_root_matrix(steps), cells) if isinstance(noise, DiscreteGaussian) else BinaryTree(steps)
        )

    @property
    def total(self) -> Whole:
        """What was released so far: nodes of a tree are Python's integers, and what is read of the square root is rounded."""
        if isinstance(self.sums, RootSums):
            return np.array([round(each) for each in self.sums.sum.tolist()], dtype=object)
        return np.asarray(np.zeros(self._cells, dtype=object) + self.sums.sum)

    def publish(self, number: int, exact: Whole, random: Random) -> None:
        noisy = self._noise.release(np.array(self.sums.close(number, exact), dtype=object), random=random)
        self.sums.read(number, np.asarray(noisy).astype(object))

    def terms(self, number: int) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
        if isinstance(self.sums, BinaryTree):
            one = Term(1.0, self._noise)
            return (one,) * (1 + lowest(number)), (one,) * number.bit_count()
        spread, matrix = math.sqrt(float(self._noise.variance)) or 1.0, self.sums.matrix
        root = float(matrix.weights[0])
        step, so_far = (math.sqrt(energy) / root for energy in (_STEP_ENERGY, matrix.energy_bound(number)))
        # half a unit of rounding: two running sums are rounded, each by a number whose deviation is some 0.29
        return (Term(step + 0.5 / spread, self._noise),), (Term(so_far + 0.3 / spread, self._noise),)
