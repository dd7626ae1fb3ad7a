"""Reconstruction from published tables: which rows explain all counts, means and medians that were printed of a block of people?

A census prints, of each small area, how many people there are and their mean and median age, by sex, race and marital status,
and suppresses what is about fewer than three. Each number is a constraint on the rows, and few sets of rows meet all of them. A
solver finds one, and then looks for another: where there is none, the tables were the rows (Garfinkel, Abowd & Martindale,
*Understanding database reconstruction attacks on public data*, Communications of the ACM 62(3), 2019; their block of seven people
is the example).

It is integer programming, exact, by HiGHS (`scipy.optimize.milp`): a variable for each cell of the number's values × categories
says how many people are there. A count is a sum; a mean, rounded as it was printed, two bounds on a weighted sum; an odd group's
median bounds how many are below and above it, and an even group's chooses the pair of middle values, a binary variable each.
Another solution than s has a cell of s with fewer people, since both hold equally many: one binary variable for each such cell.

Suppression is not a defence: what is missing follows from what is not. Noise is one: under ε-differential privacy printed
numbers contradict one another, and whatever explains them best was as likely, up to e^ε, without any one person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """What was printed of the people with these categories: how many, and mean and median of their number.

    `digits` is how the mean was rounded. Where no mean or median was printed, it is None.
    """

    count: int
    mean: float | None = None
    median: float | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    digits: int = 1


@dataclass(frozen=True, kw_only=True)
class Block:
    """The public frame of a table: the values that the number can have, and the categories.

    >>> block = Block(values=range(0, 100), categories={"sex": ("F", "M")})
    >>> printed = [Printed(count=3, mean=30, median=20), Printed(count=1, mean=10, where={"sex": "M"})]
    >>> block.rebuilt(printed, most=2)
    [[(10, 'M'), (20, 'F'), (60, 'F')]]
    """

    values: Sequence[int]
    categories: Mapping[str, Sequence[Any]]

    def rebuilt(self, printed: Sequence[Printed], *, most: int = 2) -> list[list[Row]]:
        """Up to `most` different sets of rows that explain everything printed; none where it contradicts itself.

        A row is the number, then the categories. The first group printed must be of everyone. One set found where two were
        looked for: the rows are known.
        """
        if not printed or printed[0].where:
            raise InvalidParameter(
                "printed= is invalid", why="the first group must be of everyone", instead="[Printed(count=7, mean=38), …]"
            )
        problem = _Problem(cells=[(value, *rest) for value in self.values for rest in product(*self.categories.values())])
        for each in printed:
            problem.explain(each, self._members(each.where), problem.numbers)
        found: list[list[Row]] = []
        while len(found) < most and (held := problem.solution()) is not None:
            found.append([cell for cell, times in zip(problem.cells, held.tolist(), strict=True) for _ in range(times)])
            problem.exclude(held)
        return found

    def _members(self, where: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
        """Which cells a group is made of."""
        for name, value in where.items():
            if value not in self.categories.get(name, ()):
                raise InvalidParameter(
                    f"where={dict(where)!r} is invalid", why=f"known are {dict(self.categories)!r}", instead="where={}"
                )
        wanted = [where.get(name) for name in self.categories]
        cells = product(self.values, *self.categories.values())
        return np.array([all(w is None or w == have for w, have in zip(wanted, cell[1:], strict=True)) for cell in cells])


class _Problem:
    """The constraints as they grow: cells first, then binary variables."""

    def __init__(self, *, cells: Sequence[Row]) -> None:
        self.cells = cells
        self.numbers = np.array([cell[0] for cell in cells], dtype=np.float64)
        self.people = 0
        self.choices = 0
        self.rows: list[tuple[dict[int, float], float, float]] = []

    def explain(self, printed: Printed, members: npt.NDArray[np.bool_], numbers: npt.NDArray[np.float64]) -> None:
        """One group: its count, its mean, its median."""
        count = printed.count
        self.people = self.people or count
        self._bound(members, count, count)
        if printed.mean is not None:
            half = 0.5 * 10.0**-printed.digits + 1e-9
            held = dict(zip(np.flatnonzero(members).tolist(), numbers[members].tolist(), strict=True))
            self.rows.append((held, (printed.mean - half) * count, (printed.mean + half) * count))
        if printed.median is None or not count:
            return
        if count % 2:
            self._bound(members & (numbers < printed.median), 0, count // 2)
            self._bound(members & (numbers > printed.median), 0, count // 2)
            return
        self._even(members, numbers, printed.median, count // 2)

    def _even(self, members: npt.NDArray[np.bool_], numbers: npt.NDArray[np.float64], median: float, half: int) -> None:
        """The median is the middle of two values, one of the pairs that are possible: below each value up to it are `half` people
        where the lower of the two is below that value, and fewer where it is not; above likewise. The median itself is asked
        both ways."""
        values = set(numbers[members].tolist())
        lower = [value for value in sorted(values) if value <= median and 2 * median - value in values]
        chosen = [self._choice() for _ in lower]
        self.rows.append((dict.fromkeys(chosen, 1.0), 1, 1))
        below = [(members & (numbers < value), value) for value in {*values, median} if value <= median]
        above = [(members & (numbers > value), 2 * median - value) for value in {*values, median} if value >= median]
        for beyond, edge in below + above:
            under = [choice for choice, low in zip(chosen, lower, strict=True) if low < edge]
            held = dict.fromkeys(np.flatnonzero(beyond).tolist(), 1.0)
            self.rows.append(({**held, **dict.fromkeys(under, -1.0)}, -np.inf, half - 1))
            self.rows.append(({**held, **dict.fromkeys(under, -float(half))}, 0, np.inf))

    def exclude(self, held: npt.NDArray[np.int64]) -> None:
        """No solution but this one any more: some cell of it has fewer people."""
        cells = np.flatnonzero(held).tolist()
        fewer = [self._choice() for _ in cells]
        self.rows.append((dict.fromkeys(fewer, 1.0), 1, np.inf))
        for cell, choice in zip(cells, fewer, strict=True):
            self.rows.append(({cell: 1.0, choice: float(self.people)}, -np.inf, int(held[cell]) - 1 + self.people))

    def solution(self) -> npt.NDArray[np.int64] | None:
        """How many people are in each cell, or None where nothing explains it."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        width = len(self.cells) + self.choices
        places = [(row, column) for row, (held, _, _) in enumerate(self.rows) for column in held]
        weights = [weight for held, _, _ in self.rows for weight in held.values()]
        at = ([row for row, _ in places], [column for _, column in places])
        matrix = csr_array((weights, at), shape=(len(self.rows), width))
        limits = LinearConstraint(matrix, [low for _, low, _ in self.rows], [high for _, _, high in self.rows])
        most = np.concatenate([np.full(len(self.cells), float(self.people)), np.ones(self.choices)])
        found = milp(np.zeros(width), constraints=limits, bounds=Bounds(0, most), integrality=np.ones(width))
        return None if found.x is None else np.rint(found.x[: len(self.cells)]).astype(np.int64)

    def _bound(self, members: npt.NDArray[np.bool_], low: float, high: float) -> None:
        self.rows.append((dict.fromkeys(np.flatnonzero(members).tolist(), 1.0), low, high))

    def _choice(self) -> int:
        self.choices += 1
        return len(self.cells) + self.choices - 1
