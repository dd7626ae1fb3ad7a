"""What can be asked at the door: counts, sums, means, moments, quantiles and arithmetic on them, by keys, of the rows that pass
a condition.

A `Question` is pure data made from public names. The crafts write questions; only the session answers them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from cloister.errors import InvalidParameter, UnknownColumn, nearest
from cloister.privacy import Exact, exact, text_of
from cloister.session.questions.arithmetic import Arithmetic, Constant, Named, Operation
from cloister.tables import Binned, Expression, Key, Relation

RegressionPart: TypeAlias = Literal["slope", "intercept", "r2", "count", "avgx", "avgy", "sxx", "syy", "sxy"]


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
class _OfColumn:
    """What a statistic of one column has: the column, and a name that is made from it where none is given."""

    column: str
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"{self._prefix()}_{self.column}")

    def _prefix(self) -> str:
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Sum(_OfColumn):
    """The sum of a bounded column over the rows in which it is not NULL.

    >>> Sum(column="pay").name
    'sum_pay'
    """

    def _prefix(self) -> str:
        return "sum"


@dataclass(frozen=True, kw_only=True)
class Mean(_OfColumn):
    """The mean of a bounded column over the rows in which it is not NULL.

    >>> Mean(column="age").name
    'mean_age'
    """

    def _prefix(self) -> str:
        return "mean"


@dataclass(frozen=True, kw_only=True)
class Distinct(_OfColumn):
    """How many different values of a column there are among the rows, NULL not counted.

    >>> Distinct(column="ward").name
    'distinct_ward'
    """

    def _prefix(self) -> str:
        return "distinct"


@dataclass(frozen=True, kw_only=True)
class OverCap:
    """How many units have more rows than may count; it stands alone in its question, without keys or condition.

    >>> OverCap().name
    'over_cap'
    """

    name: str = "over_cap"


@dataclass(frozen=True, kw_only=True)
class Variance(_OfColumn):
    """The variance of a bounded column over the rows in which it is not NULL; with `root` the standard deviation.

    `sample` divides by n − 1, as VAR_SAMP does; otherwise by n, as VAR_POP does.

    >>> Variance(column="age").name, Variance(column="age", root=True).name
    ('variance_age', 'stddev_age')
    """

    sample: bool = True
    root: bool = False

    def _prefix(self) -> str:
        return "stddev" if self.root else "variance"


@dataclass(frozen=True, kw_only=True)
class Covariance:
    """The covariance of two bounded columns over the rows in which both are not NULL.

    >>> Covariance(x="age", y="pay").name
    'covariance_age_pay'
    """

    x: str
    y: str
    sample: bool = True
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"covariance_{self.x}_{self.y}")


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Pearson's correlation of two bounded columns over the rows in which both are not NULL.

    >>> Correlation(x="age", y="pay").name
    'correlation_age_pay'
    """

    x: str
    y: str
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or f"correlation_{self.x}_{self.y}")


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A part of the least-squares line y = slope · x + intercept over the rows in which both columns are not NULL.

    SQL's REGR_SLOPE(y, x) is `Regression(x="x", y="y", part="slope")`; sxx, syy and sxy are sums of centred products.

    >>> Regression(x="age", y="pay", part="slope").name
    'regr_slope_pay_age'
    """

    x: str
    y: str
    part: RegressionPart = "slope"
    name: str = ""

    def __post_init__(self) -> None:
        if self.part not in get_args(RegressionPart):
            raise InvalidParameter(
                f"part={self.part!r} is invalid", why=f"known are {', '.join(get_args(RegressionPart))}", instead='part="slope"'
            )
        object.__setattr__(self, "name", self.name or f"regr_{self.part}_{self.y}_{self.x}")


@dataclass(frozen=True, kw_only=True)
class Quantile:
    """The value below which a share `at` of the rows lies; at="0.5" is the median.

    >>> Quantile(column="age", at="0.5").name, Quantile(column="age", at="0.9").name
    ('median_age', 'quantile_0.9_age')
    """

    column: str
    at: Exact = Fraction(1, 2)
    name: str = ""

    def __post_init__(self) -> None:
        share = exact(self.at, "at")
        if not 0 <= share <= 1:
            raise InvalidParameter(f"at={text_of(share)} is invalid", why="a share lies between 0 and 1", instead='at="0.5"')
        object.__setattr__(self, "at", share)
        usual = f"median_{self.column}" if share == Fraction(1, 2) else f"quantile_{text_of(share)}_{self.column}"
        object.__setattr__(self, "name", self.name or usual)

    @property
    def share(self) -> Fraction:
        """`at`, as the exact number that it is."""
        return Fraction(self.at)


@dataclass(frozen=True, kw_only=True)
class Smallest(_OfColumn):
    """The smallest value of a column that so many rows reach that the noise could not hide them: a public number of rows.

    >>> Smallest(column="age").name
    'min_age'
    """

    def _prefix(self) -> str:
        return "min"


@dataclass(frozen=True, kw_only=True)
class Largest(_OfColumn):
    """The largest value of a column that so many rows reach that the noise could not hide them: a public number of rows.

    >>> Largest(column="age").name
    'max_age'
    """

    def _prefix(self) -> str:
        return "max"


@dataclass(frozen=True, kw_only=True)
class Mode(_OfColumn):
    """The most frequent value of a column with few declared values.

    >>> Mode(column="town").name
    'mode_town'
    """

    def _prefix(self) -> str:
        return "mode"


@dataclass(frozen=True, kw_only=True)
class Combined:
    """Arithmetic on other statistics of the same question, by their names: post-processing, so it costs nothing.

    >>> Combined(name="share", expression=Operation("divide", (Named("sum_pay"), Named("count")))).name
    'share'
    """

    name: str
    expression: Arithmetic

    def __post_init__(self) -> None:
        if not isinstance(self.expression, Named | Constant | Operation):
            raise InvalidParameter(
                f"The expression of {self.name!r} is invalid",
                why="it is neither a name, nor a constant, nor an operation",
                instead='Combined(name="share", expression=Operation("divide", (Named("a"), Named("b"))))',
            )


Statistic: TypeAlias = (
    Count
    | Persons
    | Sum
    | Mean
    | Distinct
    | OverCap
    | Variance
    | Covariance
    | Correlation
    | Regression
    | Quantile
    | Smallest
    | Largest
    | Mode
    | Combined
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One table of statistics: for each combination of the keys, over the rows that pass `where`.

    >>> Question(table="people", by=("sex",), statistics=(Count(), Mean(column="age")))  # doctest: +ELLIPSIS
    Question(table='people', statistics=(Count(column=None, name='count'), ...
    """

    table: str | Relation
    statistics: tuple[Statistic, ...]
    by: tuple[str | Key, ...] = ()
    where: Expression | None = None
    hidden: tuple[str, ...] = ()
    """Statistics that are measured, since a `Combined` stands on them, and not shown."""
    every_group: bool = False
    """Whether the groups are all that the keys' domains make, those included that the conditions leave empty: what a model is
    fitted to. Otherwise a condition on a key's own column narrows them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistics", tuple(self.statistics))
        object.__setattr__(self, "hidden", tuple(self.hidden))
        object.__setattr__(self, "by", (self.by,) if isinstance(self.by, str) else tuple(self.by))
        if not self.statistics:
            raise InvalidParameter(
                "A question without statistics is invalid",
                why="there is nothing to measure",
                instead=f'Question(table="{self.table}", statistics=[Count()])',
            )
        names = [key_name(key) for key in self.by] + [statistic.name for statistic in self.statistics]
        if len(set(names)) < len(names):
            twice = min(name for name in names if names.count(name) > 1)
            raise InvalidParameter(
                f"The name {twice!r} is invalid", why="two columns of the answer would bear it", instead='Count(name="another")'
            )
        known: list[str] = []
        for statistic in self.statistics:  # a `Combined` stands on statistics that come before it
            if isinstance(statistic, Combined):
                missing = [name for name in statistic.expression.names() if name not in known]
                if missing:
                    raise InvalidParameter(
                        f"The statistic {statistic.name!r} is invalid",
                        why=f"{missing[0]!r} is not a statistic before it in the question",
                        instead=f'Named("{known[0] if known else "count"}")',
                    )
            known.append(statistic.name)
        strange = [name for name in self.hidden if name not in known]
        if strange or set(known) <= set(self.hidden):  # at least one statistic is shown
            raise InvalidParameter(
                f"hidden={self.hidden!r} is invalid",
                why=f"{strange[0]!r} is not a statistic of the question" if strange else "nothing would be left to show",
                instead="hidden=()",
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
    The column 'agee' is unknown: the table 'people' declares age, sex.
      Instead: "age"
    """
    near = nearest(column, known, "column").replace('"', '""')
    return UnknownColumn(
        f"The column {column!r} is unknown", why=f"the table {table!r} declares {', '.join(known)}", instead=f'"{near}"'
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
