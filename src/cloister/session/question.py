"""What can be asked at the door: counts, sums and means, by keys, of the rows that pass a condition.

A `Question` is pure data made from public names. The crafts write questions; only the session answers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from cloister.errors import InvalidParameter, UnknownColumn
from cloister.privacy import Exact
from cloister.tables import Binned, Expression, Key


@dataclass(frozen=True, kw_only=True)
class Count:
    """How many rows; with `column`, how many rows in which it is not NULL.

    >>> Count().name, Count(column="age").name
    ('count', 'count_age')
    """

    column: str | None = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or ("count" if self.column is None else f"count_{self.column}"))


@dataclass(frozen=True, kw_only=True)
class Persons:
    """How many different units have a row; with one row a person, the number of rows.

    >>> Persons().name
    'persons'
    """

    name: str = "persons"


@dataclass(frozen=True, kw_only=True)
class Sum:
    """The sum of a bounded column over the rows in which it is not NULL.

    >>> Sum(column="pay").name
    'sum_pay'
    """

    column: str
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"sum_{self.column}")


@dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of a bounded column over the rows in which it is not NULL.

    >>> Mean(column="age").name
    'mean_age'
    """

    column: str
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"mean_{self.column}")


@dataclass(frozen=True, kw_only=True)
class OverCap:
    """How many units have more rows than may count; it stands alone in its question, without keys or condition.

    >>> OverCap().name
    'over_cap'
    """

    name: str = "over_cap"


Statistic: TypeAlias = Count | Persons | Sum | Mean | OverCap


@dataclass(frozen=True, kw_only=True)
class Question:
    """One table of statistics: for each combination of the keys, over the rows that pass `where`.

    >>> Question(table="people", by=("sex",), statistics=(Count(), Mean(column="age")))  # doctest: +ELLIPSIS
    Question(table='people', statistics=(Count(column=None, name='count'), ...
    """

    table: str
    statistics: tuple[Statistic, ...]
    by: tuple[str | Key, ...] = ()
    where: Expression | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistics", tuple(self.statistics))
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        if not self.statistics:
            raise InvalidParameter(
                "A question without statistics was refused",
                why="there is nothing to measure",
                instead=f'Question(table="{self.table}", statistics=[Count()])',
            )
        names = [key_name(key) for key in self.by] + [statistic.name for statistic in self.statistics]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InvalidParameter(
                f"The name {twice[0]!r} was refused",
                why="two columns of the answer would bear it",
                instead='Count(name="another")',
            )


def key_name(key: str | Key) -> str:
    """What the key's column is called in the answer.

    >>> key_name("sex")
    'sex'
    """
    return key if isinstance(key, str) else key.name


def unknown_column(column: str, table: str, known: Sequence[str]) -> UnknownColumn:
    """The refusal of a column that is not declared, with the nearest one that is.

    >>> print(unknown_column("agee", "people", ["age", "sex"]))
    The column 'agee' was refused: the table 'people' declares age, sex.
      Instead: "age"
    """
    import difflib

    near = difflib.get_close_matches(column, known, n=1)
    return UnknownColumn(
        f"The column {column!r} was refused",
        why=f"the table {table!r} declares {', '.join(known)}",
        instead=f'"{near[0] if near else known[0]}"',
    )


def histogram(table: str, column: str, edges: Sequence[Exact] | Sequence[str], *, where: Expression | None = None) -> Question:
    """How many rows fall between each two edges of a number.

    >>> histogram("people", "age", [20, 30, 40]).statistics
    (Count(column=None, name='count'),)
    """
    return Question(table=table, by=(Binned(column, edges),), statistics=(Count(),), where=where)


def marginal(table: str, columns: Sequence[str], *, where: Expression | None = None) -> Question:
    """How many rows have each combination of values of the columns.

    >>> marginal("people", ["sex", "town"]).by
    ('sex', 'town')
    """
    return Question(table=table, by=tuple(columns), statistics=(Count(),), where=where)
