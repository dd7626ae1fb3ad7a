"""A request's integers from sums of cells: one linear map, applied by the hub to sums of masked cells and by the key holder to
sums of pads.

Which cells are in which group, and which meet a condition, an engine says: it is asked the request's own question about a public
table with one row for each cell. So conditions, bins and missing values mean here what they mean in any table.

All maps are linear with whole coefficients, so they may be taken modulo 2⁶⁴ throughout: the map of a sum of masked cells, less
that of the pads, is the map of the sum of values. It is right where the result fits 63 bits, by declaration (`check_room`).
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import product
from math import inf, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cloister.errors import UnsupportedQuery
from cloister.tables import (
    Aggregate,
    Aggregation,
    Answering,
    Base,
    Extended,
    Filtered,
    Groups,
    Integer,
    Prepared,
    PrivateTable,
    Projected,
    Relation,
    Workspace,
    prepare,
    relate,
)
from cloister.tables.engines.noised import NoisedRequest, exact_integers
from cloister.tables.expression.scalars import Add, Case, Coalesce, Const, Multiply, Negate, Ref, Scalar, Subtract
from cloister.together.plan import shapes_of, width_of
from cloister.together.sealed.format import CELL, MOST_COLUMNS, Marginal, MaskedFormat, Statistic

Sums: TypeAlias = Callable[[int], npt.NDArray[np.int64]]
"""Of a marginal, by its place in the format: the sums of its cells, one after another, modulo 2⁶⁴."""
Powers: TypeAlias = dict[str, float]
"""Of each declared column the degree in which it is read; infinite where only a cell of its own says what is made of it."""
Home: TypeAlias = tuple[int, dict[Statistic, Any]]
"""A marginal by its place, and how often each of its numbers counts: the same in all cells, or for each cell."""
_POLYNOMIALS = (Const, Add, Subtract, Negate, Multiply, Case, Coalesce)
_GRIDS = 32
"""Tables of cells that are kept."""


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
        self._grids: dict[tuple[int, tuple[tuple[str, int], ...]], Prepared] = {}
        self._lock = threading.Lock()
        self._asked, self._passed = 0, list[Prepared]()  # requests that are being read, and tables to close after them

    def needed(self, request: NoisedRequest) -> list[int]:
        """The marginals that it takes; refused by name where the format has none that do."""
        if request.fit is not None:
            why = "masked cells are added up"
            raise UnsupportedQuery("A request that is not linear is not supported", why=why, instead="COUNT(*)")
        with self._reading():
            found = {place for asked in request.asked for place, _ in self._homes(asked, request.table)}
        return sorted(found)

    def integers(self, request: NoisedRequest, sums: Sums) -> npt.NDArray[np.uint64]:
        """All integers of a request, one after another, modulo 2⁶⁴."""
        once = cache(sums)  # many aggregates take the same cells
        with self._reading(), np.errstate(over="ignore"):
            found = exact_integers(request, [self._groups(asked, request.table, once) for asked in request.asked])
        return np.concatenate([_modulo(np.asarray(found[each.name]).reshape(-1)) for each in request.integers])

    def close(self) -> None:
        """Lets go of the tables of cells, once nobody reads them."""
        with self._reading(), self._lock:
            self._passed += self._grids.values()
            self._grids.clear()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """While it lasts, no table is closed: another thread may just have taken it."""
        with self._lock:
            self._asked += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked -= 1
                while self._passed and not self._asked:
                    self._passed.pop().close()

    def _homes(self, asked: Aggregation, table: str | Relation) -> list[Home]:
        """Of each aggregate, the smallest marginal that has it, and which of its numbers make it."""
        if asked.max_rows not in (None, self.format.max_rows):
            raise UnsupportedQuery(
                "Another number of rows a person is not supported",
                why="rows were counted when they were sealed",
                instead=f"at most {self.format.max_rows} rows a person, as the format says",
            )
        columns: dict[str, Powers] = {name: {name: 1.0} for name in self.format.columns}
        by: Powers = {}
        if isinstance(table, Relation):
            columns, by = _powers(table)
        keys = [key if isinstance(key, str) else key.name for key in asked.keys]
        by |= _apart([*keys, *(sorted(asked.where.columns()) if asked.where is not None else [])], columns)
        powers = [_powers_of(each, columns, by) for each in asked.aggregates]
        found = [next(self._fitting(asked, *each, table), None) for each in zip(asked.aggregates, powers, strict=True)]
        lacking = [each for each, home in zip(powers, found, strict=True) if home is None]
        if lacking:
            line = _line(lacking)
            raise UnsupportedQuery(
                "The query is not supported by the format of the rows",
                why="the rows were sealed without such cells",
                instead=f"another upload with {line}",
            )
        return [home for home in found if home is not None]

    def _fitting(self, asked: Aggregation, aggregate: Aggregate, powers: Powers, table: str | Relation) -> Iterator[Home]:
        if not self.format.adds(aggregate):
            people = "A number of people is not supported"
            raise UnsupportedQuery(
                people if aggregate.kind == "units" else "A number of different values is not supported",
                why="sealed cells hold what rows add up to",
                instead="COUNT(*)",
            )
        for place, marginal in sorted(enumerate(self.format.marginals), key=lambda each: self.format.numbers(each[1])):
            held = {name for columns, _ in marginal.statistics for name in columns}
            rest = {name: int(powers[name]) for name in sorted(powers.keys() - set(marginal.by)) if powers[name] < inf}
            if rest.keys() <= held and powers.keys() - rest.keys() <= set(marginal.by):
                known = set(marginal.statistics)
                terms: dict[Statistic, Any] = {} if isinstance(table, Relation) else self.format.expressed(aggregate)
                if isinstance(table, Relation) or not terms.keys() <= known:
                    terms = self._weights(asked, aggregate, rest, place, table)
                if terms.keys() <= known:
                    yield place, terms

    def _weights(
        self, asked: Aggregation, aggregate: Aggregate, powers: dict[str, int], place: int, table: str | Relation
    ) -> dict[Statistic, Any]:
        """An aggregate of columns of the cells, or computed of them, as numbers of the cells, and for each cell how often it
        counts: by the differences of what the engine finds without a value, and at the lowest codes."""
        probes = tuple((name, min(power, self.format.width(name)) + 1) for name, power in powers.items())
        one = replace(aggregate, kind="rows" if aggregate.kind == "units" else aggregate.kind)
        found = self._over(place, table, probes).aggregate(replace(asked, keys=(CELL,), aggregates=(one,), max_rows=None))
        sizes = [size + 1 for _, size in probes]
        values: Any = np.zeros(self.format.cells(self.format.marginals[place]) * prod(sizes), dtype=object)
        values[found.keys[0]] = found.values[one.name]
        values = values.reshape(-1, *sizes)
        for axis in range(1, len(sizes) + 1):
            values = np.stack(_coefficients([*np.moveaxis(values, axis, 0)]), axis=axis)
        terms: dict[Statistic, Any] = {}
        for at in product(*map(range, sizes)):
            names, raised = [name for name, each in zip(powers, at, strict=True) if each], [each - 1 for each in at if each]
            if (weights := values[(slice(None), *at)]).any():
                terms[tuple(names), tuple(raised)] = weights
        return terms

    def _groups(self, asked: Aggregation, table: str | Relation, sums: Sums) -> Groups:
        homes = self._homes(asked, table)
        places = sorted({place for place, _ in homes})
        by_cell = replace(asked, keys=(*asked.keys, CELL), aggregates=(Aggregate("rows", "rows"),), max_rows=None)
        found = {place: self._over(place, table).aggregate(by_cell) for place in places}
        keys = [np.stack([*found[place].keys[:-1]], axis=1) if asked.keys else _none(found[place]) for place in places]
        codes, inverse = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
        if not asked.keys:  # one group, also of no cells
            codes, inverse = np.zeros((1, 0), dtype=np.int64), np.zeros(sum(map(len, keys)), dtype=np.int64)
        groups = dict(zip(places, np.split(inverse.reshape(-1), np.cumsum([len(each) for each in keys])[:-1]), strict=True))
        values: dict[str, Any] = {}
        for (place, terms), aggregate in zip(homes, asked.aggregates, strict=True):
            marginal, at = self.format.marginals[place], found[place].keys[-1]
            cells = sums(place).reshape(-1, len(marginal.statistics))[at]
            total = np.zeros(len(codes), dtype=np.int64)
            for statistic, weights in terms.items():
                factors = _modulo(np.atleast_1d(np.asarray(weights, dtype=object))).view(np.int64)
                each = cells[:, marginal.statistics.index(statistic)] * np.broadcast_to(factors, self.format.cells(marginal))[at]
                np.add.at(total, groups[place], each)
            values[aggregate.name] = total
        return Groups(tuple(codes[:, at] for at in range(codes.shape[1])), values)

    def _over(self, place: int, table: str | Relation, probes: tuple[tuple[str, int], ...] = ()) -> Answering:
        """A marginal's cells as what is asked about: a table, or the relation over it."""
        with self._lock:
            if (place, probes) not in self._grids:
                if len(self._grids) >= _GRIDS:
                    self._passed.append(self._grids.pop(next(iter(self._grids))))
                self._grids[place, probes] = self._made(self.format.marginals[place], probes)
            grid = self._grids[place, probes]
        return grid if isinstance(table, str) else relate(_rebuilt(table, grid), dict.fromkeys(table.bases(), grid))

    def _made(self, marginal: Marginal, probes: tuple[tuple[str, int], ...]) -> Prepared:
        """A row for each cell and, in each, for no value and each of the lowest codes of each probed column."""
        columns = {name: self.format.columns[name] for name in (*marginal.by, *(name for name, _ in probes))}
        sizes = (*self.format.sizes(marginal), *(size + 1 for _, size in probes))
        count = prod(sizes)
        places = np.unravel_index(np.arange(count), sizes) if sizes else ()
        rows: dict[str, Any] = {CELL: np.arange(count)}
        for (name, domain), at, size in zip(columns.items(), places, sizes, strict=True):
            labels = [domain.decode(domain.low_code + code) for code in range(size - 1)]
            order = [*labels, None] if name in marginal.by else [None, *labels]
            rows[name] = [order[each] for each in at.tolist()]
        declared = {**columns, CELL: Integer(0, max(1, count - 1))}
        return prepare(PrivateTable(rows, declared, row_is_person=True), workspace=Workspace.of())


def _powers(relation: Relation) -> tuple[dict[str, Powers], Powers]:
    """In which degree each column of a relation reads each declared one, and what decides which rows it has."""
    if isinstance(relation, Base):
        numbers = {name: domain.kind in ("integer", "real") for name, domain in relation.columns.items()}
        return {name: {name: 1.0 if number else inf} for name, number in numbers.items()}, {}
    if not isinstance(relation, Extended | Filtered | Projected):
        raise UnsupportedQuery(
            "A join, a union, or a query about several rows of a person together, is not supported",
            why="the rows are masked, and each was added up by itself",
            instead="conditions, CASE, FILTER and computed columns of the table's own columns",
        )
    columns, by = _powers(relation.source)
    if isinstance(relation, Filtered):
        return columns, by | _apart(sorted(relation.where.columns()), columns)
    if isinstance(relation, Projected):
        return {new: columns[old] for new, old in relation.names}, by
    for name, scalar in relation.scalars:
        if not scalar.is_exact(relation.source.columns):
            raise UnsupportedQuery(
                f"The computed column {name!r} is not supported",
                why="hub and key holder compute it by themselves, and the last digit of LN, EXP or POWER may differ",
                instead="+, -, *, CASE, FLOOR and SQRT of the table's own columns",
            )
    return columns | {name: _powers_in(scalar, columns) for name, scalar in relation.scalars}, by


def _powers_in(scalar: Scalar, columns: dict[str, Powers]) -> Powers:
    if isinstance(scalar, Ref):
        return columns[scalar.name]
    if not isinstance(scalar, _POLYNOMIALS):
        return _apart(sorted(scalar.columns()), columns)
    parts = [_powers_in(each, columns) for each in scalar.inner()]
    if isinstance(scalar, Multiply):
        return _multiplied(parts)
    if isinstance(scalar, Case):
        parts += [_apart(sorted(condition.columns()), columns) for condition, _ in scalar.branches]
    return {name: max(each.get(name, 0) for each in parts) for name in dict.fromkeys(name for each in parts for name in each)}


def _powers_of(aggregate: Aggregate, columns: dict[str, Powers], by: Powers) -> Powers:
    """In which degree an aggregate reads each declared column, beside those that it needs cells by. A number of more columns than
    a product has, or of a higher degree than a square, is in no cell: it needs cells by all of them."""
    factors = [columns[name] for name, _ in aggregate.factors]
    present = [*factors, *(columns[name] for name in aggregate.present)]
    counted = [{name: power if power == inf else 0 for name, power in each.items()} for each in present]
    found = _multiplied([*counted, *(factors if aggregate.kind == "sum" else [])])
    found = {name: power for name, power in found.items() if name not in by}
    summed = [power for power in found.values() if power < inf]
    return by | (found if len(summed) <= MOST_COLUMNS and max(summed, default=0) <= 2 else dict.fromkeys(found, inf))


def _multiplied(parts: list[Powers]) -> Powers:
    return {name: sum(each.get(name, 0) for each in parts) for name in dict.fromkeys(name for each in parts for name in each)}


def _apart(names: Iterable[str], columns: dict[str, Powers]) -> Powers:
    """What cells of their own are needed for."""
    return dict.fromkeys((read for name in names for read in columns[name]), inf)


def _coefficients(values: list[Any]) -> list[Any]:
    """Of what there is without a value, and of a polynomial at 0, 1, …: the first, what 1 adds to it, and each power."""
    none, at_0, *others = values
    if len(others) < 2:
        return [none, at_0 - none, *(each - at_0 for each in others)]
    square = (others[1] - 2 * others[0] + at_0) // 2
    return [none, at_0 - none, others[0] - at_0 - square, square]


def _rebuilt(relation: Relation, grid: Prepared) -> Relation:
    """The relation over the cells, each row with its cell, without what is made of columns that the grid lacks."""
    if isinstance(relation, Base):
        return replace(relation, table=grid.declaration)
    assert isinstance(relation, Extended | Filtered | Projected)
    source = _rebuilt(relation.source, grid)
    if isinstance(relation, Filtered):
        return replace(relation, source=source)
    if isinstance(relation, Extended):
        kept = tuple((name, scalar) for name, scalar in relation.scalars if scalar.columns() <= source.columns.keys())
        return replace(relation, source=source, scalars=kept)
    names = ((new, old) for new, old in relation.names if old in source.columns)
    return replace(relation, source=source, names=(*names, (CELL, CELL)))


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


def _none(found: Groups) -> npt.NDArray[np.int64]:
    return np.zeros((len(found), 1), dtype=np.int64)


def _modulo(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    if numbers.dtype == object:
        return np.array([int(each) % 2**64 for each in numbers], dtype=np.uint64)
    return numbers.astype(np.int64).view(np.uint64)


def _line(lacking: list[Powers]) -> str:
    """The line of a format that answers."""
    by = [*dict.fromkeys(name for powers in lacking for name, power in powers.items() if power == inf)]
    numbers = [{name: power for name, power in sorted(powers.items()) if name not in by} for powers in lacking]
    singles: Powers = {}
    for (name, power), *others in (each.items() for each in numbers if each):
        if not others:
            singles[name] = max(power, singles.get(name, 0))
    more = {
        "sums": [name for name, power in singles.items() if power < 2],
        "squares": [name for name, power in singles.items() if power > 1],
        "products": [*dict.fromkeys(tuple(each) for each in numbers if len(each) > 1)],
    }
    return f"Marginal(by={by!r}{''.join(f', {part}={names!r}' for part, names in more.items() if names)})"
