"""What a session asks of an engine: exact integer aggregates by keys. Plain data, hashable, the same for every engine.

A request names columns, conditions and kinds of aggregates; no SQL. Every aggregate is a whole number: counts, or sums of
products of codes. A sum is refused when it could pass 2¹²⁶ within the declared bounds on 2⁴⁰ rows, so that no engine can
overflow (promise 5).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from cloister.errors import InvalidParameter, UnsupportedQuery, undeclared
from cloister.privacy.rational import Exact, exact, text_of
from cloister.tables.declaring.columns import Boolean, Category, Domain, Text
from cloister.tables.expression.expressions import Expression, threshold

MOST_ROWS = 2**40
LARGEST_SUM = 2**126
_WIDEST_STRIDE = 2**62
_OBJECT = 64

AggregateKind: TypeAlias = Literal["rows", "values", "units", "distinct", "sum"]


@runtime_checkable
class Key(Protocol):
    """A key that is more than a column: public groups of the codes of one column. Frozen and hashable."""

    @property
    def name(self) -> str:
        """The column that is grouped."""

    def describe(self) -> Any:
        """A canonical form as plain data."""

    def size(self, domain: Domain) -> int:
        """How many groups there are; codes are 0 … size - 1, in this order; with a nullable column the NULL group is code
        `size`.
        """

    def labels(self, domain: Domain) -> tuple[str, ...]:
        """A name for each group."""

    def starts(self, domain: Domain) -> tuple[int, ...]:
        """size + 1 ascending column codes: group i holds the codes from starts[i] up to, not including, starts[i + 1]."""


@dataclass(frozen=True, slots=True, init=False)
class Binned:
    """A number or a date grouped into bins [edge, next edge); the last bin also holds its upper edge. Values outside fall in no
    group.

    >>> from cloister.tables.declaring.columns import Integer
    >>> bins = Binned("age", [0, 18, 65, 120])
    >>> bins.size(Integer(0, 120)), bins.labels(Integer(0, 120))
    (3, ('[0, 18)', '[18, 65)', '[65, 120]'))
    """

    name: str
    edges: tuple[Any, ...]

    def __init__(self, column: str, edges: Sequence[Exact] | Sequence[str]) -> None:
        object.__setattr__(self, "name", column)
        try:
            object.__setattr__(self, "edges", tuple(edge.item() if isinstance(edge, np.generic) else edge for edge in edges))
            hash(self.edges)
        except TypeError:
            raise InvalidParameter(
                "Binned(…) is invalid", why="its edges are not numbers or days", instead="[0, 18, 65]"
            ) from None
        if len(self.edges) < 2:
            raise InvalidParameter(
                "Binned(…) is invalid", why="a bin needs two edges", instead=f'Binned("{column}", [0, 18, 65, 120])'
            )

    def describe(self) -> Any:
        """The column and the exact edges."""
        return ["binned", self.name, [str(edge) for edge in self.edges]]

    def size(self, domain: Domain) -> int:
        """One less than there are edges."""
        self._positions(domain)
        return len(self.edges) - 1

    def labels(self, domain: Domain) -> tuple[str, ...]:
        """Each bin as an interval."""
        texts = [str(edge) if domain.kind == "date" else text_of(exact(edge)) for edge in self.edges]
        return _intervals(texts)

    def starts(self, domain: Domain) -> tuple[int, ...]:
        """The first code of each bin, and one past the last."""
        positions = self._positions(domain)
        ends = [math.ceil(position) for position in positions[:-1]] + [math.floor(positions[-1]) + 1]
        return tuple(min(max(end, domain.low_code), domain.high_code + 1) for end in ends)

    def _positions(self, domain: Domain) -> list[Any]:
        from cloister.tables.expression.expressions import number_of

        if isinstance(domain, Category | Text | Boolean):
            raise UnsupportedQuery(
                f"Bins of {self.name!r} are not supported",
                why=f"the column is {domain.kind}",
                instead="the column itself as a key",
            )
        numbers = [number_of(self.name, domain, edge if domain.kind == "date" else exact(edge)) for edge in self.edges]
        positions = [threshold(domain, number) for number in numbers]
        if any(low >= high for low, high in pairwise(positions)):
            raise InvalidParameter(
                f"Bins of {self.name!r} are invalid", why="the edges must increase", instead="[0, 18, 65, 120]"
            )
        return positions


@dataclass(frozen=True, slots=True)
class Strided:
    """A number or a date in bins of `stride` neighbouring values each, from the lower bound on; the last may be shorter.

    The same as `Binned` with these edges, but compiled as a division: thousands of bins cost no more than one.

    >>> from cloister.tables.declaring.columns import Integer
    >>> tens = Strided("age", 10)
    >>> tens.size(Integer(0, 24)), tens.labels(Integer(0, 24))
    (3, ('[0, 10)', '[10, 20)', '[20, 24]'))
    """

    name: str
    stride: int

    def __post_init__(self) -> None:
        if isinstance(self.stride, bool) or not isinstance(self.stride, int) or not 1 <= self.stride <= _WIDEST_STRIDE:
            raise InvalidParameter(
                f"stride={self.stride!r} is invalid",
                why="it must be a whole number from 1 to 2^62",
                instead=f'Strided("{self.name}", 10)',
            )

    def describe(self) -> Any:
        """The column and the stride."""
        return ["strided", self.name, self.stride]

    def size(self, domain: Domain) -> int:
        """As many as it takes to hold all values."""
        if isinstance(domain, Category | Text | Boolean) or domain.high_code - domain.low_code >= _WIDEST_STRIDE:
            raise UnsupportedQuery(
                f"Bins of {self.name!r} are not supported",
                why=f"the column is {domain.kind}, or too wide",
                instead=f'by="{self.name}"',
            )
        return -(-(domain.high_code - domain.low_code + 1) // self.stride)

    def labels(self, domain: Domain) -> tuple[str, ...]:
        """Each bin as an interval."""
        starts = self.starts(domain)
        texts = [_text_of_code(domain, code) for code in (*starts[:-1], domain.high_code)]
        return _intervals(texts)

    def starts(self, domain: Domain) -> tuple[int, ...]:
        """The first code of each bin, and one past the last."""
        size = self.size(domain)
        return (*(domain.low_code + i * self.stride for i in range(size)), domain.high_code + 1)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of neighbouring values, by the code at which each begins, and one past the last: numbers, days, and categories in
    their declared order. What `Binned` is to people who write edges, this is to methods that find them.

    >>> from cloister.tables.declaring.columns import Category
    >>> towns = Category(["Aachen", "Berlin", "Bonn", "Kiel"])
    >>> runs = Runs("town", (0, 1, 4))
    >>> runs.size(towns), runs.labels(towns)
    (2, ('[Aachen, Berlin)', '[Berlin, Kiel]'))
    """

    name: str
    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "codes", tuple(int(code) for code in self.codes))
        if len(self.codes) < 2 or any(low >= high for low, high in pairwise(self.codes)):
            raise InvalidParameter(
                f"Runs of {self.name!r} are invalid", why="their codes must increase", instead=f'Runs("{self.name}", (0, 18, 65))'
            )

    def describe(self) -> Any:
        """The column and the codes."""
        return ["runs", self.name, list(self.codes)]

    def size(self, domain: Domain) -> int:
        """One less than there are codes."""
        if isinstance(domain, Text | Boolean) or self.codes[0] < domain.low_code or self.codes[-1] > domain.high_code + 1:
            raise UnsupportedQuery(
                f"Runs of {self.name!r} are not supported",
                why=f"the column is {domain.kind}, or has no such values",
                instead=f'by="{self.name}"',
            )
        return len(self.codes) - 1

    def labels(self, domain: Domain) -> tuple[str, ...]:
        """Each run as an interval."""
        texts = [_text_of_code(domain, min(code, domain.high_code)) for code in self.codes]
        self.size(domain)
        return _intervals(texts)

    def starts(self, domain: Domain) -> tuple[int, ...]:
        """The codes."""
        self.size(domain)
        return self.codes


def _intervals(edges: Sequence[str]) -> tuple[str, ...]:
    """Each from an edge up to the next one; the last holds its upper edge, too."""
    *others, last = pairwise(edges)
    return (*(f"[{low}, {high})" for low, high in others), f"[{last[0]}, {last[1]}]")


def _text_of_code(domain: Domain, code: int) -> str:
    return text_of(domain.origin + code * domain.step) if domain.kind in ("integer", "real") else str(domain.decode(code))


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One exact whole number a group.

    - `rows`: how many rows.
    - `values`: how many rows in which no factor is NULL.
    - `units`: how many different units (rows, when one row is one person).
    - `distinct`: how many different values, NULL not counted, of its one factor.
    - `sum`: the sum over rows of the product of (code - offset) over the factors; a row with a NULL factor adds nothing. A column
      may stand several times: its square, its product with another.

    `present` restricts it to the rows in which these columns are not NULL.

    >>> Aggregate("n", "rows").kind, Aggregate("s", "sum", (("age", 17),), present=("pay",)).present
    ('rows', ('pay',))
    """

    name: str
    kind: AggregateKind
    factors: tuple[tuple[str, int], ...] = ()
    present: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ("rows", "values", "units", "distinct", "sum"):
            raise InvalidParameter(f"kind={self.kind!r} is invalid", why="it is not an aggregate", instead='kind="rows"')
        normal = tuple((factor, 0) if isinstance(factor, str) else (str(factor[0]), int(factor[1])) for factor in self.factors)
        object.__setattr__(self, "factors", normal)
        object.__setattr__(self, "present", tuple(sorted(set(self.present))))
        if bool(normal) != (self.kind in ("values", "distinct", "sum")):
            raise InvalidParameter(
                f"kind={self.kind!r} with {len(normal)} factors is invalid",
                why="values and sum need factors, rows and units take none",
                instead='Aggregate("total", "sum", (("age", 0),))',
            )

    def describe(self) -> Any:
        """Name, kind and factors, and where it is restricted, the columns that must be present."""
        form: list[Any] = [self.name, self.kind, [list(factor) for factor in self.factors]]
        return [*form, list(self.present)] if self.present else form

    def largest(self, domains: Mapping[str, Domain]) -> int:
        """The largest absolute value that one row can add: what decides the width of the engine's arithmetic."""
        if self.kind != "sum":
            return 1
        factors = ((domains[name], offset) for name, offset in self.factors)
        return math.prod(max(abs(each.low_code - offset), abs(each.high_code - offset), 1) for each, offset in factors)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A question to an engine: which rows, which groups, which aggregates, and how many rows of one unit may count.

    `max_rows=None` means the declared cap.
    """

    table: Any
    where: Expression | None = None
    keys: tuple[str | Key, ...] = ()
    aggregates: tuple[Aggregate, ...] = (Aggregate("rows", "rows"),)
    max_rows: int | None = None
    missing: bool = False
    """Whether the rows without a value of a declared key, or in none of its bins, form a group, as if it were nullable."""

    def check(self, domains: Mapping[str, Domain]) -> None:
        """Refuses what no engine should be asked: unknown columns, sums that could overflow, aggregates of one name."""
        check_condition(self.where)
        for key in self.keys:
            if not isinstance(key, str | Key):
                raise InvalidParameter(
                    f"A key of type {type(key).__name__} is invalid", why="it is neither a column nor bins", instead='"age"'
                )
        for aggregate in self.aggregates:
            if not isinstance(aggregate, Aggregate):
                raise InvalidParameter(
                    f"An aggregate of type {type(aggregate).__name__} is invalid",
                    why="it is not an Aggregate",
                    instead='Aggregate("n", "rows")',
                )
        named = [key if isinstance(key, str) else key.name for key in self.keys]
        named += [name for aggregate in self.aggregates for name, _ in aggregate.factors]
        named += [name for aggregate in self.aggregates for name in aggregate.present]
        named += sorted(self.where.columns()) if self.where is not None else []
        for name in named:
            if name not in domains:
                raise undeclared(name, domains)
        if len({aggregate.name for aggregate in self.aggregates}) < len(self.aggregates) or not self.aggregates:
            raise InvalidParameter(
                "The aggregates are invalid", why="each needs a name of its own", instead='Aggregate("n", "rows")'
            )
        for aggregate in self.aggregates:
            for name, _ in aggregate.factors:
                if isinstance(domains[name], Text) and aggregate.kind == "sum":
                    raise UnsupportedQuery(
                        f"A sum of {name!r} is not supported", why="the column is text", instead="a number column"
                    )
            if aggregate.kind == "sum" and aggregate.largest(domains) * MOST_ROWS > LARGEST_SUM:
                names = ", ".join(repr(name) for name, _ in aggregate.factors)
                raise UnsupportedQuery(
                    f"A sum over {names} is not supported",
                    why="it could overflow 126 bits within the declared bounds",
                    instead="narrower bounds, or a coarser step=",
                )

    def describe(self) -> Any:
        """A canonical form as plain data, for digests of plans."""
        return {
            "where": None if self.where is None else self.where.describe(),
            "keys": [["column", key] if isinstance(key, str) else key.describe() for key in self.keys],
            "aggregates": [each.describe() for each in self.aggregates],
            "max_rows": self.max_rows,
            "missing": self.missing,
        }


def check_condition(where: object) -> None:
    """Refuses what is no condition.

    >>> check_condition(None)
    """
    if where is not None and not isinstance(where, Expression):
        raise InvalidParameter(
            f"where= of type {type(where).__name__} is invalid",
            why="it is not a condition",
            instead='where=Compare(">", Column("age"), Literal(40))',
        )


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups that are present, in no promised order: a code a key (text for a Text column), a whole number an aggregate.

    A key code is the column's own code, with `null_code` for NULL where the column is nullable; of a `Binned` key it is the bin.
    Without keys there is exactly one row, of zeros where the table is empty.

    >>> len(Groups((np.array([0, 1]),), {"rows": np.array([3, 4])}))
    2
    """

    keys: tuple[np.ndarray[Any, Any], ...]
    values: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))


def size_of(column: np.ndarray[Any, Any]) -> int:
    """Bytes of a column: of texts, about those of the texts themselves."""
    if column.dtype != object:
        return int(column.nbytes)
    return sum(_OBJECT if not isinstance(item, str) else _OBJECT + len(item) for item in column.tolist())


def joined(parts: Sequence[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The pieces of a column, one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
