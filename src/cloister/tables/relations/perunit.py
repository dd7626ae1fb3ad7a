"""One row for each unit (and key): what `SELECT person, SUM(cost) … GROUP BY person` gives, before people are aggregated.

This is not a release: its rows are as private as those it is made of, and as exact.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from cloister.errors import InvalidParameter, UnsupportedQuery, check_one_of
from cloister.tables.declaring.columns import Boolean, Category, Domain, Integer, Text
from cloister.tables.declaring.places import Place
from cloister.tables.engines.compiler import storage
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.unify import NUMERIC, common_step, numeric
from cloister.tables.relations.derived import OfOne, Relation, known, needs_unit, unique

UnitKind: TypeAlias = Literal["count", "values", "sum", "mean", "min", "max", "distinct"]

_EXACT_IN_DOUBLE = 2**52
_FINEST_MEAN = 1000
_LARGEST_WIDTH = 2**49


@dataclass(frozen=True, kw_only=True)
class UnitAggregate:
    """One number of a unit's rows (in one group of the keys).

    - `count`: how many rows. `values`: how many in which the column is not NULL. `distinct`: how many different values.
    - `sum`, `mean`, `min`, `max` of the rows in which the column is not NULL; NULL where there are none. A mean is rounded to a
      thousandth of the column's step (or less finely, where that would not fit), to the nearest, ties up.

    >>> UnitAggregate(name="total", kind="sum", column="cost").describe()
    ['total', 'sum', 'cost']
    """

    name: str
    kind: UnitKind
    column: str | None = None

    def __post_init__(self) -> None:
        check_one_of(self.kind, "kind", get_args(UnitKind), why="it is not an aggregate of a unit", instead='kind="sum"')
        if (self.column is None) != (self.kind == "count"):
            raise InvalidParameter(
                f"kind={self.kind!r} is invalid with column={self.column!r}",
                why="count takes no column, and every other kind takes one",
                instead='UnitAggregate(name="n", kind="count")',
            )

    def describe(self) -> Any:
        """Name, kind and column."""
        return [self.name, self.kind, self.column]

    def domain(self, source: Relation) -> Domain:
        """What the number may be, given how many rows a unit may have; refused where there is no such number."""
        most = source.max_rows or 1
        if self.column is None:
            return Integer(1, most)
        domain = source.column(self.column)
        if self.kind == "values":
            return Integer(0, most)
        if self.kind == "distinct":
            return Integer(0, most if domain.size is None else min(most, domain.size))
        if self.kind in ("min", "max"):
            if isinstance(domain, Text | Place) or (
                isinstance(domain, Category) and list(domain.options) != sorted(domain.options)
            ):
                self._refuse(f"it is {domain.kind} with no order of its own", "kind='distinct'")
            return domain
        if domain.kind not in NUMERIC and not isinstance(domain, Boolean):
            self._refuse(f"it is declared as {domain.kind}", "kind='min'")
        low, high = (domain.origin + code * domain.step for code in (domain.low_code, domain.high_code))
        what = f"the {self.kind} of {self.column!r}"
        if self.kind == "sum":
            step = common_step(domain.step, domain.origin)
            whole = domain.origin == 0 and step == 1 and domain.kind != "real"
            return numeric(what, min(low, low * most), max(high, high * most), step, whole=whole, nullable=domain.nullable)
        return numeric(what, low, high, domain.step / self._fineness(domain, most), whole=False, nullable=domain.nullable)

    def measure(self, rows: Any, code: Any, source: Relation) -> Any:
        """The Ibis aggregate of the codes, in the codes of `domain`."""
        result = self.domain(source)
        kind = storage(result)
        if self.column is None:
            return rows.count().cast(kind)
        domain = source.columns[self.column]
        if self.kind in ("min", "max"):
            return (code.min() if self.kind == "min" else code.max()).cast(kind)
        if self.kind in ("values", "distinct"):
            return (code.count() if self.kind == "values" else code.nunique()).cast(kind)
        if self.kind == "sum":
            total = code.cast("int64").sum() * int(domain.step / result.step)
            if domain.origin:  # every value adds it once; the sum's own origin is 0, since its step divides both bounds
                total = total + code.count() * int(domain.origin / result.step)
            return _whole(total, kind)
        times = self._fineness(domain, source.max_rows or 1)
        above = (code.cast("int64") - domain.low_code).sum() * (2 * times)
        number = code.count()
        quotient = (above + number).cast("float64") / (number.nullif(0) * 2).cast("float64")
        return (quotient.floor().cast("int64") + result.low_code).cast(kind)

    def _fineness(self, domain: Domain, most: int) -> int:
        """How many parts a step is divided into: as whole numbers below 2^52, whose quotient a double floors correctly."""
        width = domain.high_code - domain.low_code + 1
        reach = max(abs(domain.origin + code * domain.step) for code in (domain.low_code, domain.high_code)) / domain.step
        for times in (_FINEST_MEAN, 100, 10, 1):
            if (2 * times * width + 1) * most < _EXACT_IN_DOUBLE and times * max(width, math.ceil(reach)) < _LARGEST_WIDTH:
                return times
        raise UnsupportedQuery(
            f"The mean of {self.column!r} is not supported",
            why="the sum of one person's rows could pass what is divided exactly",
            instead="a coarser step=, or a smaller max_rows=",
        )

    def _refuse(self, why: str, instead: str) -> None:
        raise UnsupportedQuery(f"The {self.kind} of {self.column!r} within a person is not supported", why=why, instead=instead)


@dataclass(frozen=True, kw_only=True)
class PerUnit(OfOne):
    """One row for each unit and each combination of the keys that the unit has, with aggregates of the rows in it.

    Rows of a unit: they follow from its own rows, which are grouped and aggregated without any other's. There is one for each
    different tuple that the keys hold in them, and `Relation.variety` bounds these: at most as many as the unit has rows, as the
    keys have values, and, where the keys come from one side of a join, as that side has tuples. The place is the least of the
    places in the group: different for each group, since no row is in two. A row with NULL in a key is in no group, unless the
    column is declared nullable; as everywhere.

    >>> from cloister.tables import Base, Category, Integer, PrivateTable
    >>> columns = {"ward": Category(["A", "B"]), "cost": Integer(0, 100)}
    >>> visits = PrivateTable({"who": ["a"], "ward": ["A"], "cost": [3]}, columns, unit="who", max_rows=5)
    >>> total = UnitAggregate(name="total", kind="sum", column="cost")
    >>> per = PerUnit(source=Base(name="visits", table=visits), keys=("ward",), aggregates=(total,))
    >>> per.max_rows, per.column("total")
    (2, Integer(low=0, high=500, nullable=False))
    """

    source: Relation
    keys: tuple[str, ...] = ()
    aggregates: tuple[UnitAggregate, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.keys))
        object.__setattr__(self, "aggregates", tuple(self.aggregates))
        needs_unit(self.source, "GROUP BY the person")
        unique([*self.keys, *(aggregate.name for aggregate in self.aggregates)])
        for name in self.keys:
            known(self.source, name)
        self._check_extent()
        _ = self.columns

    @cached_property
    def columns(self) -> Mapping[str, Domain]:
        """The keys, then the aggregates."""
        keys = {name: self.source.columns[name] for name in self.keys}
        return MappingProxyType({**keys, **{each.name: each.domain(self.source) for each in self.aggregates}})

    @cached_property
    def max_rows(self) -> int:
        """The different keys that a unit may have; NULL is none, unless a column is declared nullable."""
        domains = [self.source.columns[name] for name in self.keys]
        combinations = math.prod(math.inf if each.size is None else each.size + each.nullable for each in domains)
        return int(min(combinations, self.source.variety(frozenset(self.keys))))

    @property
    def span(self) -> int:
        """That of the source; 1 where there is one row."""
        return 1 if self.max_rows == 1 else self.source.span

    def origins(self, name: str) -> frozenset[str]:
        """A key keeps its own; an aggregate has none."""
        return self.source.origins(name) if name in self.keys else frozenset({""})

    def tells_apart(self, names: frozenset[str]) -> bool:
        """All keys do: there is one row for each tuple of them."""
        return set(self.keys) <= names or self.max_rows == 1

    def _variety(self, names: frozenset[str]) -> int:
        """Of the keys alone: as in the source."""
        return self.source.variety(names) if names <= set(self.keys) else self.max_rows

    def describe(self) -> Any:
        """The source, the keys and the aggregates."""
        return ["per unit", self.source.describe(), list(self.keys), [each.describe() for each in self.aggregates]]

    def build(self, sources: Mapping[Hashable, Any], dialect: str) -> Any:
        """A GROUP BY of the unit and the keys."""
        rows = self.source.build(sources, dialect)
        places = {name: f"c{i}" for i, name in enumerate(self.source.columns)}
        present = [rows[places[name]].notnull() for name in self.keys if not self.source.columns[name].nullable]
        rows = rows.filter(*present) if present else rows
        groups = {f"c{i}": rows[places[name]] for i, name in enumerate(self.keys)}
        measures = {
            f"c{len(self.keys) + i}": each.measure(rows, None if each.column is None else rows[places[each.column]], self.source)
            for i, each in enumerate(self.aggregates)
        }
        if self.max_rows > 1:
            measures["place"] = rows.place.min()
        found = rows.group_by(unit=rows.unit, **groups).aggregate(**measures)
        return found if self.max_rows > 1 else found.mutate(place=ibis.literal(1, "int64"))


def _whole(total: Any, kind: str) -> Any:
    """A sum in its storage type. Engines give sums of 64 bits a wider type than Ibis knows, so that cast must be written out."""
    return total.cast("decimal(38, 0)").cast(kind) if kind == "int64" else total.cast(kind)
