"""A request's integers from sums of cells: one linear map, applied by the hub to sums of masked cells and by the key holder to
sums of pads.

Which cells are in which group, and which meet a condition, an engine says: it is asked the request's own question about a public
table with one row for each cell. So conditions, bins and missing values mean here what they mean in any table.

All maps are linear with whole coefficients, so they may be taken modulo 2⁶⁴ throughout: the map of a sum of masked cells, less
that of the pads, is the map of the sum of values. It is right where the result fits 63 bits, by declaration (`check_room`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.tables import Aggregate, Aggregation, Groups, Integer, Prepared, PrivateTable, Workspace, prepare
from cloister.tables.engines.noised import NoisedRequest, exact_integers
from cloister.together.plan import shapes_of, width_of
from cloister.together.sealed.format import Marginal, MaskedFormat, Statistic

Sums: TypeAlias = Callable[[int], npt.NDArray[np.int64]]
"""Of a marginal, by its place in the format: the sums of its cells, one after another, modulo 2⁶⁴."""
_CELL = "cell of the format"
_GRIDS = 16
"""Marginals whose cells are kept as a table."""


class SumReader:
    """Turns sums of a format's cells into a request's integers.

    >>> from cloister.noise import DiscreteLaplace
    >>> from cloister.tables import Category
    >>> from cloister.tables.engines.noised import Cells, Combination, Integers
    >>> format = MaskedFormat(columns={"sex": Category(["F", "M"])}, marginals=[Marginal(by=["sex"])], population="people")
    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> request = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(rows,), cells=Cells())
    >>> SumReader(format).integers(request, lambda _: np.array([5, 7, 1])).tolist()
    [13]
    """

    def __init__(self, declared: MaskedFormat) -> None:
        self.format = declared
        self._grids: dict[int, Prepared] = {}
        self._lock = threading.Lock()

    def needed(self, request: NoisedRequest) -> list[int]:
        """The marginals that it takes; refused by name where the format has none that do."""
        found = {place for asked in request.asked for place, _ in self._homes(asked)}
        return sorted(found)

    def integers(self, request: NoisedRequest, sums: Sums) -> npt.NDArray[np.uint64]:
        """All integers of a request, one after another, modulo 2⁶⁴."""
        once = cache(sums)  # many aggregates take the same cells
        with np.errstate(over="ignore"):
            found = exact_integers(request, [self._groups(asked, once) for asked in request.asked])
        return np.concatenate([_modulo(np.asarray(found[each.name]).reshape(-1)) for each in request.integers])

    def close(self) -> None:
        """Lets go of the tables of cells."""
        with self._lock:
            while self._grids:
                self._grids.popitem()[1].close()

    def _homes(self, asked: Aggregation) -> list[tuple[int, dict[Statistic, int]]]:
        """Of each aggregate, the smallest marginal that has it, and which of its numbers make it."""
        if asked.max_rows not in (None, self.format.max_rows):
            raise UnsupportedQuery(
                "Another number of rows a person is not supported",
                why="rows were counted when they were sealed",
                instead=f"at most {self.format.max_rows} rows a person, as the format says",
            )
        by = [key if isinstance(key, str) else key.name for key in asked.keys]
        by += sorted(asked.where.columns()) if asked.where is not None else []
        groups = list(dict.fromkeys(by))
        found = [self._home(groups, self._terms(each)) for each in asked.aggregates]
        lacking = [each for each, home in zip(asked.aggregates, found, strict=True) if home is None]
        if lacking:
            line = _line(groups, [self._terms(each) for each in lacking])
            raise UnsupportedQuery(
                "The query is not supported by the format of the rows",
                why="the rows were sealed without such cells",
                instead=f"another upload with {line}",
            )
        return [home for home in found if home is not None]

    def _terms(self, aggregate: Aggregate) -> dict[Statistic, int]:
        terms = self.format.expressed(aggregate)
        if terms is None:
            people = "A number of people is not supported"
            raise UnsupportedQuery(
                people if aggregate.kind == "units" else "A number of different values is not supported",
                why="sealed cells hold what rows add up to",
                instead="COUNT(*)",
            )
        return terms

    def _home(self, by: list[str], terms: dict[Statistic, int]) -> tuple[int, dict[Statistic, int]] | None:
        fitting = [
            (self.format.numbers(marginal), place)
            for place, marginal in enumerate(self.format.marginals)
            if set(by) <= set(marginal.by) and terms.keys() <= set(marginal.statistics)
        ]
        return (min(fitting)[1], terms) if fitting else None

    def _groups(self, asked: Aggregation, sums: Sums) -> Groups:
        homes = self._homes(asked)
        places = sorted({place for place, _ in homes})
        found = {place: self._grid(place).aggregate(_by_cell(asked)) for place in places}
        keys = [np.stack([*found[place].keys[:-1]], axis=1) if asked.keys else _none(found[place]) for place in places]
        codes, inverse = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
        if not asked.keys:  # one group, also of no cells
            codes, inverse = np.zeros((1, 0), dtype=np.int64), np.zeros(sum(map(len, keys)), dtype=np.int64)
        groups = dict(zip(places, np.split(inverse.reshape(-1), np.cumsum([len(each) for each in keys])[:-1]), strict=True))
        values: dict[str, Any] = {}
        for (place, terms), aggregate in zip(homes, asked.aggregates, strict=True):
            statistics = self.format.marginals[place].statistics
            cells = sums(place).reshape(-1, len(statistics))[found[place].keys[-1]]
            total = np.zeros(len(codes), dtype=np.int64)
            for statistic, coefficient in terms.items():
                factor = np.uint64(coefficient % 2**64).astype(np.int64)
                np.add.at(total, groups[place], cells[:, statistics.index(statistic)] * factor)
            values[aggregate.name] = total
        return Groups(tuple(codes[:, at] for at in range(codes.shape[1])), values)

    def _grid(self, place: int) -> Prepared:
        """A table of a row for each cell of a marginal."""
        with self._lock:
            if place not in self._grids:
                if len(self._grids) >= _GRIDS:
                    self._grids.pop(next(iter(self._grids))).close()
                self._grids[place] = self._made(self.format.marginals[place])
            return self._grids[place]

    def _made(self, marginal: Marginal) -> Prepared:
        cells, columns = self.format.cells(marginal), {name: self.format.columns[name] for name in marginal.by}
        places = np.unravel_index(np.arange(cells), self.format.sizes(marginal)) if marginal.by else ()
        rows: dict[str, Any] = {_CELL: np.arange(cells)}
        for (name, domain), at in zip(columns.items(), places, strict=True):
            labels = [domain.decode(code) for code in range(domain.low_code, domain.high_code + 1)]
            rows[name] = [*(labels[each] if each < len(labels) else None for each in at.tolist())]
        declared = {**columns, _CELL: Integer(0, max(1, cells - 1))}
        return prepare(PrivateTable(rows, declared, row_is_person=True), workspace=Workspace.of())


def check_room(request: NoisedRequest, rows: int) -> None:
    """Refuses numbers that so many rows, with the noise of two, might make wider than 63 bits."""
    for each in request.integers:
        law: Any = each.law
        if (width_of(each, request) * rows + (int(law.scale) + 1 << 11)).bit_length() > 62:
            raise UnsupportedQuery(
                "A sum of more than 63 bits is not supported",
                why=f"{rows:,} rows of these columns may add up to it, or its noise may",
                instead="a coarser step=, or a larger spend=",
            )


def sizes_of(request: NoisedRequest) -> list[int]:
    """How many numbers each of a request's integers has."""
    return [int(np.prod(shape)) for shape in shapes_of(request)]


def _by_cell(asked: Aggregation) -> Aggregation:
    return replace(asked, keys=(*asked.keys, _CELL), aggregates=(Aggregate("rows", "rows"),), max_rows=None)


def _none(found: Groups) -> npt.NDArray[np.int64]:
    return np.zeros((len(found), 1), dtype=np.int64)


def _modulo(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    if numbers.dtype == object:
        return np.array([int(each) % 2**64 for each in numbers], dtype=np.uint64)
    return numbers.astype(np.int64).view(np.uint64)


def _line(by: list[str], lacking: Iterable[Iterable[Statistic]]) -> str:
    """The line of a format that answers."""
    highest: dict[tuple[str, ...], int] = {}
    for columns, powers in (each for terms in lacking for each in terms):
        highest[columns] = max(highest.get(columns, 0), *powers, 0)
    singles = {columns[0]: power for columns, power in highest.items() if len(columns) == 1}
    more = {
        "sums": [name for name, power in singles.items() if power < 2],
        "squares": [name for name, power in singles.items() if power > 1],
        "products": [columns for columns in highest if len(columns) > 1],
    }
    return f"Marginal(by={by!r}{''.join(f', {part}={names!r}' for part, names in more.items() if names)})"
