"""The blocks of one question, and the formulas by which its statistics are read from them; `sharing.py` says which share one."""

from fractions import Fraction

from cloister.errors import UnsupportedQuery
from cloister.session.planning.blocks import (
    Block,
    distinct_block,
    hierarchy_block,
    over_cap_block,
    rows_block,
    split_block,
    sum_block,
    units_block,
    values_block,
    zoom_block,
)
from cloister.session.planning.grid import Grid
from cloister.session.planning.leaves import MOST_CELLS, MOST_LEAVES, Leaves, histogram_of, leaves_of
from cloister.session.planning.moments import Moments, lowered
from cloister.session.planning.sharing import Sharing
from cloister.session.planning.zoom import ladder_part
from cloister.session.questions.declared import Declared, table_name
from cloister.session.questions.question import (
    Combined,
    Correlation,
    Count,
    Covariance,
    Distinct,
    Largest,
    Mean,
    Mode,
    OverCap,
    Persons,
    Quantile,
    Question,
    Regression,
    Smallest,
    Statistic,
    Sum,
    Variance,
)
from cloister.session.releases.combined import Calculated, kind_of_expression
from cloister.session.releases.formulas import Formula, Linear, Ratio
from cloister.session.releases.frames import Kind
from cloister.session.releases.moment_formulas import Moment, Part
from cloister.session.releases.quantiles import Frequent, OfLeaves, Ordered, kind_of

_ROWS_AT_MOST = 2**40
_INTEGERS_AT_MOST = 2**62
_LARGEST_SUM = 2**126


class Builder(Sharing):
    """Collects the blocks of one question while its formulas are written."""

    def __init__(self, question: Question, declaration: Declared, grid: Grid, *, gaussian: bool, margins: bool) -> None:
        super().__init__(question, declaration, grid, gaussian=gaussian, margins=margins)
        self.blocks: dict[str, Block] = {}
        self.found: dict[str, Formula] = {}
        sums = {**self.splits, **self.squares}
        for column in self.splits:
            low, high = self._bounds(column)
            self._add(split_block(column, low, high, self.max_rows, nulls=column in self.with_nulls))
        for column in self.squares:
            self._add(self._fits(self._square(column)).block(self.max_rows, nulls=column in self.with_nulls))
        self.trees: dict[str, Leaves] = {column: self._tree(column) for column in self.ordered}
        for column, leaves in self.trees.items():
            self._add(hierarchy_block(leaves, self.max_rows, nulls=column in self.with_nulls and column not in sums))
        for leaves, share in self.zoomed.values():
            self._add(zoom_block(leaves, share, self.max_rows, ladder_part(gaussian=gaussian, margins=margins)))
        for x, y in self.pairs:
            self._add(self._fits(self._pair(x, y)).block(self.max_rows, nulls=False))

    def formulas(self) -> tuple[Formula, ...]:
        """One formula a statistic, in their order."""
        for statistic in self.question.statistics:
            self.found[statistic.name] = self._formula(statistic)
        if not self.grid.declared:
            self._units()
        return tuple(self.found.values())

    def _formula(self, statistic: Statistic) -> Formula:
        match statistic:
            case Mean():
                return self._mean(statistic)
            case Sum():
                return self._sum(statistic)
            case Variance():
                part: Part = "deviation" if statistic.root else "variance"
                return self._moment(statistic.name, self._square(statistic.column), part, sample=statistic.sample)
            case Covariance() if statistic.x == statistic.y:
                return self._moment(statistic.name, self._square(statistic.x), "variance", sample=statistic.sample)
            case Covariance():
                return self._moment(statistic.name, self._pair(statistic.x, statistic.y), "covariance", sample=statistic.sample)
            case Correlation():
                return self._moment(statistic.name, self._pair(statistic.x, statistic.y), "correlation")
            case Regression():
                return self._regression(statistic)
            case Quantile() | Smallest() | Largest():
                return self._order(statistic)
            case Mode():
                return self._mode(statistic)
            case Combined():
                return self._combined(statistic)
            case OverCap():
                return self._over_cap(statistic)
            case Distinct():
                return self._distinct(statistic)
            case Persons() if self.declaration.unit is not None:
                return Linear(name=statistic.name, kind="integer", coefficients=((self._units(), 1.0),))
            case Count(column=str(column)):
                return Linear(name=statistic.name, kind="integer", coefficients=self._values(column))
            case _:
                return Linear(name=statistic.name, kind="integer", coefficients=self._rows())

    # ── sums, means and counts ───────────────────────────────────────────────────────────────────

    def _mean(self, statistic: Mean) -> Formula:
        domain = self._number(statistic.column, "mean")
        low, high = self._bounds(statistic.column)
        if statistic.column in self.squares:
            return self._moment(statistic.name, self._square(statistic.column), "mean")
        return Ratio(
            name=statistic.name,
            above=f"above:{statistic.column}",
            below=f"below:{statistic.column}",
            low=float(domain.origin + low * domain.step),
            width=float((max(high, low + 1) - low) * domain.step),
            codes=max(high, low + 1) - low,
            top=1.0 if high > low else 0.0,
        )

    def _sum(self, statistic: Sum) -> Linear:
        domain = self._number(statistic.column, "sum")
        low, high = self._bounds(statistic.column)
        fits = max(abs(low), abs(high)) * _ROWS_AT_MOST < _INTEGERS_AT_MOST
        kind: Kind = "integer" if domain.kind != "real" and fits else "real"
        step, width = domain.step, max(high, low + 1) - low
        lowest = domain.origin + low * step
        if statistic.column in self.squares:
            moments = self._square(statistic.column)
            count, total = moments.coefficients((0,)), moments.coefficients((1,))
            parts = tuple(
                (name, float(lowest) * weight + float(step * width) * total.get(name, 0.0)) for name, weight in count.items()
            )
            return Linear(name=statistic.name, kind=kind, coefficients=parts)
        if statistic.column not in self.splits:
            block = self._add(sum_block(statistic.column, low, high, self.max_rows))
            return Linear(name=statistic.name, kind=kind, coefficients=((block.raws[0].name, float(step)),))
        share = lowest / width
        above, below = f"above:{statistic.column}", f"below:{statistic.column}"
        return Linear(name=statistic.name, kind=kind, coefficients=((above, float(share + step)), (below, float(share))))

    def _distinct(self, statistic: Distinct) -> Linear:
        values, groups = self._declared(statistic.column).size, self.grid.cells if self.grid.declared else None
        block = self._add(distinct_block(statistic.column, self.max_rows, values, groups))
        return Linear(name=statistic.name, kind="integer", coefficients=((block.raws[0].name, 1.0),))

    def _over_cap(self, statistic: OverCap) -> Linear:
        alone = len(self.question.statistics) == 1 and not self.question.by and self.question.where is None
        table = self.question.table
        if not alone or self.declaration.unit is None or not isinstance(table, str):
            raise UnsupportedQuery(
                "OverCap is not supported",
                why="it stands alone in its question, about a table itself, with a unit and a cap",
                instead=f'Question(table="{table_name(self.question.table)}", statistics=[Count()])',
            )
        self._add(over_cap_block(self.declaration.abilities.parts_of_a_person))
        return Linear(name=statistic.name, kind="integer", coefficients=(("over_cap", 1.0),))

    def _units(self) -> str:
        """One raw that counts units; it is the row count where a row is a unit."""
        groups = self.max_rows if not self.grid.declared else min(self.max_rows, self.grid.cells)
        return self._add(units_block(groups)).raws[0].name

    def _rows(self) -> tuple[tuple[str, float], ...]:
        if self._units_are_rows():
            return ((self._units(), 1.0),)
        if self.with_nulls:
            return self._rows_of_all()
        return ((self._add(rows_block(self.max_rows)).raws[0].name, 1.0),)

    def _rows_of_all(self) -> tuple[tuple[str, float], ...]:
        """The rows as each block says about them, weighted by inverse variance: the noises of a block's raws have one scale, the
        same in each, so a reading that is the sum of j raws has j times the variance of one."""
        told = [(*self._values(column), (f"nulls:{column}", 1.0)) for column in self.with_nulls]
        whole = sum(1 / len(each) for each in told)
        return tuple((name, coefficient / len(each) / whole) for each in told for name, coefficient in each)

    def _values(self, column: str) -> tuple[tuple[str, float], ...]:
        """How many rows have a value in the column."""
        self._declared(column)
        if column in self.splits:
            low, high = self._bounds(column)
            part = float(Fraction(1, max(high, low + 1) - low))
            return ((f"above:{column}", part), (f"below:{column}", part))
        if column in self.squares:
            return tuple(self._square(column).coefficients((0,)).items())
        if column in self.trees:
            return ((self.trees[column].total_name, 1.0),)
        return ((self._add(values_block(column, self.max_rows)).raws[0].name, 1.0),)

    # ── moments ──────────────────────────────────────────────────────────────────────────────────

    def _square(self, column: str) -> Moments:
        low, high = self._bounds(column)
        return Moments(sides=(lowered(2, low, high, column),))

    def _pair(self, x: str, y: str) -> Moments:
        """The block of a pair, its sides in the order asked."""
        degrees = self.pairs[x, y] if (x, y) in self.pairs else self.pairs[y, x][::-1]
        sides = tuple(lowered(degree, *self._bounds(column), column) for column, degree in zip((x, y), degrees, strict=True))
        return Moments(sides=sides)

    def _fits(self, moments: Moments) -> Moments:
        if moments.width * _ROWS_AT_MOST > _LARGEST_SUM:
            names = " and ".join(repr(side.column) for side in moments.sides)
            raise UnsupportedQuery(
                f"Squares and products of {names} are not supported",
                why="their sums could overflow 126 bits within the declared bounds and steps",
                instead=f'narrower bounds or a coarser step= for "{moments.sides[0].column}"',
            )
        return moments

    def _moment(self, name: str, moments: Moments, part: Part, *, sample: bool = True) -> Moment:
        domains = [self._declared(side.column) for side in moments.sides]
        pairs = list(zip(domains, moments.sides, strict=True))
        return Moment(
            name=name,
            moments=moments,
            part=part,
            sample=sample,
            lows=tuple(float(domain.origin + side.low * domain.step) for domain, side in pairs),
            widths=tuple(float(side.width * domain.step) for domain, side in pairs),
            tops=tuple(1.0 if domain.high_code > domain.low_code else 0.0 for domain in domains),
        )

    def _regression(self, statistic: Regression) -> Formula:
        moments = self._pair(statistic.x, statistic.y)
        if statistic.part == "count":
            return Linear(name=statistic.name, kind="integer", coefficients=tuple(moments.coefficients((0, 0)).items()))
        return self._moment(statistic.name, moments, statistic.part)

    # ── the hierarchy ────────────────────────────────────────────────────────────────────────────

    def _tree(self, column: str) -> Leaves:
        low, high = self._bounds(column)
        counted = any(isinstance(each, Count) and each.column == column for each in self.question.statistics)
        total = (counted or column in self.with_nulls) and column not in self.splits and column not in self.squares
        return leaves_of(column, low, max(high - low + 1, 2), cells=self.grid.cells, total=total, gaussian=self.gaussian)

    def _order(self, statistic: Quantile | Smallest | Largest) -> OfLeaves:
        domain = self._declared(statistic.column)
        if statistic.column in self.zoomed:
            leaves, share = self.zoomed[statistic.column]
            from cloister.session.releases.zoomed import Zoomed

            return Zoomed(name=statistic.name, kind=kind_of(domain), leaves=leaves, domain=domain, share=share)
        return Ordered(
            name=statistic.name,
            kind=kind_of(domain),
            leaves=self.trees[statistic.column],
            domain=domain,
            share=statistic.share if isinstance(statistic, Quantile) else None,
            top=isinstance(statistic, Largest),
        )

    def _mode(self, statistic: Mode) -> Frequent:
        domain = self._declared(statistic.column)
        self._needs_declared_keys(statistic.name)
        if domain.size is None:
            why, instead = "its values are not declared", f'columns={{"{statistic.column}": cl.Category([…])}}'
            raise UnsupportedQuery(f"{statistic.name!r} is not supported", why=why, instead=instead)
        low, high = self._bounds(statistic.column)
        size = high - low + 1
        if domain.kind == "real" or size > MOST_LEAVES or size * self.grid.cells > MOST_CELLS:
            raise UnsupportedQuery(
                f"{statistic.name!r} is not supported",
                why=f"{statistic.column!r} has too many values for a noisy count of each",
                instead=f'a table of counts by Binned("{statistic.column}", edges)',
            )
        leaves = self.trees.get(statistic.column)
        if leaves is None or leaves.stride > 1:
            leaves = histogram_of(statistic.column, low, size)
            self._add(hierarchy_block(leaves, self.max_rows, nulls=False))
        return Frequent(name=statistic.name, kind=kind_of(domain), leaves=leaves, domain=domain)

    # ── arithmetic ───────────────────────────────────────────────────────────────────────────────

    def _combined(self, statistic: Combined) -> Calculated:
        parts = tuple(self.found[name] for name in statistic.expression.names())
        for part in parts:
            if part.kind not in ("integer", "real") or isinstance(part, Frequent):
                raise UnsupportedQuery(
                    f"{statistic.name!r} is not supported",
                    why=f"{part.name!r} is not a number that can be calculated with",
                    instead='Named("count")',
                )
        kind = kind_of_expression(statistic.expression, {part.name: part.kind for part in parts})
        return Calculated(name=statistic.name, kind=kind, expression=statistic.expression, parts=parts)

    def _add(self, block: Block) -> Block:
        return self.blocks.setdefault(block.name, block)
