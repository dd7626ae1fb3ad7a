"""Microaggregation as a search: rows that lie near one another make a class, and one value stands for all of them.

Groups are MDAV's. What else the models ask is met afterwards: a class that does not joins its nearest neighbour, until all do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cloister.anonymize.classes import Classes
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.perturbing.microaggregation.mdav import blocked_mdav
from cloister.anonymize.problem import Problem, Search
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches.axes import Axis, axes_of
from cloister.anonymize.searches.mondrian import refuse_the_unsatisfiable
from cloister.anonymize.searches.regions import check_aggregates, regions
from cloister.errors import InvalidParameter

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NAMES = 64
"""Categories of more values count by their place in the order, not as equal or not."""
_NEIGHBOURS = 50_000_000
"""Distances that are worked out at most in one round of joining."""


@dataclass(frozen=True, kw_only=True)
class Clusters(Search):
    """Groups of rows that lie near one another, each published as one value.

    Numbers are standardised, and two categories are equal or not; each column has the same say, times its weight. A class is
    published by the mean of a number and the most frequent of its categories; `aggregates` says otherwise, by column: "mean",
    "median", "mode", "set" or "range". With the mean, a column keeps its sum (up to six digits), and the published value
    need not be that of anybody.

    Parameters
    ----------
    k
        Rows of a group; when left out, what the k-anonymity among the models asks, else 3.
    block
        Groups are looked for within blocks of about so many rows: more takes longer, and loses a little less.

    References
    ----------
    J. Domingo-Ferrer, V. Torra (2005). Ordinal, continuous and heterogeneous k-anonymity through microaggregation. DMKD.

    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> table = {"age": [20, 50, 22, 58], "sex": ["F", "M", "F", "M"]}
    >>> asked = Anonymizer(quasi=["age", "sex"], models=[KAnonymity(2)], search="microaggregation")
    >>> sorted(zip(*asked.fit_transform(table).values()))
    [('21', 'F'), ('21', 'F'), ('54', 'M'), ('54', 'M')]
    """

    k: int | None = None
    block: int = 2000
    aggregates: Mapping[str, str] = field(default_factory=dict)
    name: ClassVar[str] = "microaggregation"
    uses_hierarchies: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_aggregates(self.aggregates)
        for what, value in (("k", self.k), ("block", self.block)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise InvalidParameter(
                    f"{what}={value!r} is invalid", why="it is not a whole number from 1 on", instead="Clusters(k=5, block=2000)"
                )

    def find(self, problem: Problem) -> Recoded:
        """The groups; where the problem says stop before they are found, the whole table is one."""
        if problem.table.weights is not None:
            raise InvalidParameter(
                'search="microaggregation" is invalid',
                why="it groups rows, and this table was counted: rows that are equal would have to be parted",
                instead='search="mondrian", with aggregates= for values that stand for a class',
            )
        refuse_the_unsatisfiable(problem)
        axes = axes_of(problem.table, problem.quasi, {})
        of_row, count = self._groups(problem, axes)
        default = {axis.column.name: "mean" if axis.is_number else "mode" for axis in axes}
        return Recoded(
            columns=regions(axes, of_row, count, aggregates=default | dict(self.aggregates)),
            suppressed=np.zeros(problem.table.rows, dtype=bool),
            sensitive=problem.sensitive_columns,
            research=problem.research,
        )

    def _groups(self, problem: Problem, axes: list[Axis]) -> tuple[Ints, int]:
        rows = problem.table.rows
        asked = max((model.k for model in problem.models if isinstance(model, KAnonymity)), default=3)
        k = min(max(asked, self.k or 1), rows)
        if rows == 0:
            return np.zeros(0, dtype=np.int64), 0
        if problem.stop():
            return np.zeros(rows, dtype=np.int64), 1
        problem.progress("looking for groups", 0.0)
        points = np.hstack([np.sqrt(problem.weight(axis.column.name)) * _points(axis) for axis in axes])
        of_row = blocked_mdav(points, k, size=max(self.block, 3 * k))
        problem.progress("looking for groups", 1.0)
        return _joined(problem, points, of_row)


def _points(axis: Axis) -> Floats:
    """Where the rows are along one quasi-identifier, so that two rows drawn at random are as far apart as in any other.

    A missing number is as far from every number as it would be from itself in another category: a category of its own.
    """
    column = axis.column
    if not axis.is_number and len(column) <= _NAMES:
        shares = column.counts / max(1, column.counts.sum())
        unlike = max(1.0 - float((shares**2).sum()), 1e-9)
        matrix = np.zeros((len(column.codes), max(len(column), 1)))
        matrix[np.arange(len(column.codes)), column.codes] = 1 / np.sqrt(unlike)
        return matrix
    at = axis.at[axis.place[column.codes]]
    absent = np.zeros(len(at), dtype=bool) if column.missing is None else column.codes == column.missing
    known = at[~absent]
    spread = float(known.std()) if len(known) else 0.0
    scaled = np.where(absent, 0.0, (at - (known.mean() if len(known) else 0.0)) / (spread if spread > 0 else 1.0))
    return np.stack([scaled, absent * np.sqrt(2.0)], axis=1) if absent.any() else scaled[:, None]


def _joined(problem: Problem, points: Floats, of_row: Ints) -> tuple[Ints, int]:
    """Groups that do not meet the models join their nearest; each round leaves at most half of them as they are."""
    while True:
        count = int(of_row.max()) + 1
        classes = Classes.of(of_row, count, sensitive=problem.sensitive_columns, research=problem.research)
        failing = np.flatnonzero(~problem.satisfied(classes))
        if not len(failing):
            return of_row, count
        if problem.stop():  # what has been reached would not be valid
            return np.zeros_like(of_row), 1
        centres = np.stack([np.bincount(of_row, column, count) for column in points.T], axis=1) / classes.sizes[:, None]
        label = np.arange(count)
        for one, other in zip(failing.tolist(), _nearest(centres, failing).tolist(), strict=True):
            first, second = _root(label, one), _root(label, other)
            label[max(first, second)] = min(first, second)
        roots = np.array([_root(label, each) for each in range(count)])
        of_row = np.unique(roots, return_inverse=True)[1][of_row]


def _nearest(centres: Floats, failing: Ints) -> Ints:
    """The nearest other centre of some of them; among very many, only those near along the line of largest spread are asked."""
    found = np.empty(len(failing), dtype=np.int64)
    if len(failing) * len(centres) > _NEIGHBOURS:
        order = np.argsort(centres[:, int(centres.var(axis=0).argmax())], kind="stable")
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        around = np.concatenate([np.arange(-16, 0), np.arange(1, 17)])
        near = order[np.clip(rank[failing][:, None] + around, 0, len(order) - 1)]
        away = ((centres[near] - centres[failing][:, None, :]) ** 2).sum(axis=2)
        away[near == failing[:, None]] = np.inf
        return np.asarray(near[np.arange(len(failing)), away.argmin(axis=1)])
    for place, group in enumerate(failing.tolist()):
        away = ((centres - centres[group]) ** 2).sum(axis=1)
        away[group] = np.inf
        found[place] = int(away.argmin())
    return found


def _root(label: Ints, group: int) -> int:
    while label[group] != group:
        label[group] = label[label[group]]
        group = int(label[group])
    return group
