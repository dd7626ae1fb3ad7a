"""Which blocks the statistics of one question share: decided from all of them together, before any formula is written.

A column has at most one block for all its sums, means, counts and variances: the quadratic one if a variance is asked, the
split one for a mean, else what a sum or a count alone needs. A pair of columns has one block of the least degrees for all that
is asked of the pair. A column has one hierarchy for all its quantiles, extremes and, where a leaf is one value, its mode; a
single quantile is found by a choice and a ladder (`zoom.py`), and where margins are asked for only if that ladder is sharper
than a hierarchy. COUNT(*) is read from the blocks that count the values of a column, each with the rows without a value beside
them for nothing: from all of them, by inverse variance.
"""

from fractions import Fraction

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.session.planning.grid import Grid
from cloister.session.planning.leaves import Leaves, zoomed_of
from cloister.session.questions.declared import Declared, rows_of_person, table_name
from cloister.session.questions.question import (
    Correlation,
    Count,
    Covariance,
    Largest,
    Mean,
    Mode,
    Persons,
    Quantile,
    Question,
    Regression,
    Smallest,
    Statistic,
    Sum,
    Variance,
    unknown_column,
)
from cloister.tables import Domain
from cloister.tables.expression.names import quoted

_NUMBERS = ("integer", "real", "boolean")
_ORDERED = ("integer", "real", "date")
_DEGREES = {
    "slope": (2, 1),
    "intercept": (2, 1),
    "r2": (2, 2),
    "count": (1, 1),
    "avgx": (1, 1),
    "avgy": (1, 1),
    "sxx": (2, 1),
    "syy": (1, 2),
    "sxy": (1, 1),
}


class Sharing:
    """What the statistics of one question need of each column."""

    def __init__(self, question: Question, declaration: Declared, grid: Grid, *, gaussian: bool, margins: bool) -> None:
        self.gaussian = gaussian
        self.margins = margins
        self.question = question
        self.declaration = declaration
        self.grid = grid
        self.max_rows = rows_of_person(declaration)
        self.squares = self._square_columns()
        self.pairs = self._pair_degrees()
        self.ordered = self._ordered_columns()
        self.zoomed = self._zoomed_columns()
        self.splits = self._split_columns()
        counts_rows = any(self._counts_rows(statistic) for statistic in question.statistics)
        hosts = [*self.splits, *self.squares] or [*self.ordered][:1]
        self.with_nulls = dict.fromkeys(hosts if counts_rows and not self._units_are_rows() else ())

    def _square_columns(self) -> dict[str, None]:
        found: dict[str, None] = {}
        for statistic in self.question.statistics:
            if isinstance(statistic, Variance):
                found[statistic.column] = None
            elif isinstance(statistic, Covariance) and statistic.x == statistic.y:
                found[statistic.x] = None
        for column in found:
            self._number(column, "variance")
        return found

    def _pair_degrees(self) -> dict[tuple[str, str], tuple[int, int]]:
        """The least degrees, for each pair in the order of the names."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for statistic in self.question.statistics:
            if not isinstance(statistic, Covariance | Correlation | Regression):
                continue
            for column in (statistic.x, statistic.y):
                self._number(column, "covariance" if isinstance(statistic, Covariance) else "correlation")
            if statistic.x == statistic.y:
                if isinstance(statistic, Covariance):
                    continue
                raise InvalidParameter(
                    f"{statistic.name!r} is invalid",
                    why="a column depends on itself entirely: the answer is known",
                    instead=f'Variance(column="{statistic.x}")',
                )
            degrees = (1, 1) if isinstance(statistic, Covariance) else (2, 2)
            if isinstance(statistic, Regression):
                degrees = _DEGREES[statistic.part]
            pair = (statistic.x, statistic.y)
            if statistic.x > statistic.y:
                pair, degrees = (statistic.y, statistic.x), (degrees[1], degrees[0])
            before = found.get(pair, (0, 0))
            found[pair] = (max(before[0], degrees[0]), max(before[1], degrees[1]))
        return found

    def _ordered_columns(self) -> dict[str, None]:
        columns: dict[str, None] = {}
        for statistic in self.question.statistics:
            if isinstance(statistic, Quantile | Smallest | Largest):
                domain = self._declared(statistic.column)
                if domain.kind not in _ORDERED:
                    column = statistic.column
                    one = "Count" if domain.size is None else "Mode"  # which is found among declared values
                    why, instead = f"{column!r} is declared as {domain.kind}, which has no order", f'{one}(column="{column}")'
                    if domain.kind == "moment":
                        why = f"{column!r} is declared as moment, of which days and hours are found, not seconds"
                        instead = f"CAST({quoted(column)} AS DATE), or hour({quoted(column)})"
                    raise UnsupportedQuery(f"{statistic.name!r} is not supported", why=why, instead=instead)
                self._needs_declared_keys(statistic.name)
                columns[statistic.column] = None
        return columns

    def _zoomed_columns(self) -> dict[str, tuple[Leaves, Fraction]]:
        """Takes from the ordered columns those of one quantile that are better off without a hierarchy: with an engine that can
        choose by exact counts."""
        found: dict[str, tuple[Leaves, Fraction]] = {}
        if self.declaration.abilities.additive_noise_only:
            return found
        for column in list(self.ordered):
            mine = [each for each in self.question.statistics if getattr(each, "column", None) == column]
            shares = {each.share for each in mine if isinstance(each, Quantile)}
            if len(shares) > 1 or any(isinstance(each, Smallest | Largest | Mode) for each in mine):
                continue
            low, high = self._bounds(column)
            [share] = shares
            size = max(high - low + 1, 2)
            how = {"gaussian": self.gaussian, "margins": self.margins}
            leaves = zoomed_of(column, low, size, cells=self.grid.cells, share=share, **how)
            if leaves is not None:
                found[column] = (leaves, share)
                del self.ordered[column]
        return found

    def _split_columns(self) -> dict[str, None]:
        statistics = self.question.statistics
        splits = dict.fromkeys(statistic.column for statistic in statistics if isinstance(statistic, Mean))
        for column in splits:
            self._number(column, "mean")
        splits = {column: None for column in splits if column not in self.squares}
        counted = {statistic.column for statistic in statistics if isinstance(statistic, Count)}
        for statistic in statistics:
            if not isinstance(statistic, Sum) or statistic.column in splits or statistic.column in self.squares:
                continue
            domain = self._number(statistic.column, "sum")
            hosted = splits or self.squares or self.ordered
            rows_are_shared = None in counted and not hosted and not self._units_are_rows()
            if domain.origin != 0 or statistic.column in counted or rows_are_shared:
                splits[statistic.column] = None
        return splits

    def _needs_declared_keys(self, name: str) -> None:
        if not self.grid.declared:
            key = next((axis.key for axis in self.grid.axes if axis.size is None and isinstance(axis.key, str)), "key")
            raise UnsupportedQuery(
                f"{name!r} by undeclared keys is not supported",
                why="noisy counts of all values would be needed in groups that may not be known",
                instead=f'columns={{"{key}": cl.Category([…])}}',
            )

    def _number(self, column: str, purpose: str) -> Domain:
        domain = self._declared(column)
        if domain.kind not in _NUMBERS:
            raise UnsupportedQuery(
                f"The {purpose} of {column!r} is not supported",
                why=f"it is declared as {domain.kind}, which has no {purpose}",
                instead=f'Count(column="{column}")',
            )
        return domain

    def _units_are_rows(self) -> bool:
        """With undeclared keys the units are counted in any case; where a row is a unit, that is the row count."""
        return not self.grid.declared and self.declaration.unit is None

    def _counts_rows(self, statistic: Statistic) -> bool:
        if isinstance(statistic, Persons):
            return self.declaration.unit is None
        return isinstance(statistic, Count) and statistic.column is None

    def _bounds(self, column: str) -> tuple[int, int]:
        domain = self._declared(column)
        return domain.low_code, domain.high_code

    def _declared(self, column: str) -> Domain:
        if column not in self.declaration.columns:
            raise unknown_column(column, table_name(self.question.table), list(self.declaration.columns))
        return self.declaration.columns[column]
