"""The part of a plan that knows nothing of the spend: which blocks a question needs, and by which formulas its answer is read.

Several statistics of one question share measurements: a mean, a sum and the counts of one column come from one split block.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from cloister.errors import UnsupportedQuery
from cloister.session.blocks import Block, over_cap_block, rows_block, split_block, sum_block, units_block, values_block
from cloister.session.formulas import Formula, Linear, Ratio
from cloister.session.frames import Kind
from cloister.session.grid import Grid, grid_of
from cloister.session.question import Count, Mean, OverCap, Persons, Question, Sum, unknown_column
from cloister.tables import Domain, PrivateTable

_ROWS_AT_MOST = 2**40
_INTEGERS_AT_MOST = 2**62


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Blocks and formulas of one question about one version of one table."""

    question: Question
    declaration: PrivateTable
    population: str
    version: str
    fingerprint: str
    grid: Grid
    blocks: tuple[Block, ...]
    formulas: tuple[Formula, ...]
    digest: str = field(default="")

    @property
    def max_rows(self) -> int:
        """The most rows that one unit may have: 1 where a row is a unit."""
        return self.declaration.max_rows or 1


def shape_of(question: Question, declaration: PrivateTable, *, population: str, version: str, fingerprint: str) -> Shape:
    """The blocks and formulas for a question; refuses what cannot be measured, from declarations alone."""
    grid = grid_of(question, declaration)
    builder = _Builder(question, declaration, grid)
    formulas = tuple(builder.formula(statistic) for statistic in question.statistics)
    if not grid.declared:
        builder.units()
    shape = Shape(
        question=question,
        declaration=declaration,
        population=population,
        version=version,
        fingerprint=fingerprint,
        grid=grid,
        blocks=tuple(builder.blocks.values()),
        formulas=formulas,
    )
    object.__setattr__(shape, "digest", _digest(shape))
    return shape


class _Builder:
    def __init__(self, question: Question, declaration: PrivateTable, grid: Grid) -> None:
        self.question = question
        self.declaration = declaration
        self.grid = grid
        self.max_rows = declaration.max_rows or 1
        self.blocks: dict[str, Block] = {}
        self.splits = self._split_columns()
        counts_rows = any(self._counts_rows(statistic) for statistic in question.statistics)
        self.with_nulls = next(iter(self.splits), None) if counts_rows and not self._units_are_rows() else None
        for column in self.splits:
            low, high = self._bounds(column)
            self._add(split_block(column, low, high, self.max_rows, nulls=column == self.with_nulls))

    def formula(self, statistic: object) -> Formula:
        if isinstance(statistic, Mean):
            domain = self.domain(statistic.column, "mean")
            low, high = self._bounds(statistic.column)
            return Ratio(
                name=statistic.name,
                above=f"above:{statistic.column}",
                below=f"below:{statistic.column}",
                low=float(domain.origin + low * domain.step),
                width=float((max(high, low + 1) - low) * domain.step),
                codes=max(high, low + 1) - low,
                top=1.0 if high > low else 0.0,
            )
        if isinstance(statistic, Sum):
            return self._sum(statistic)
        if isinstance(statistic, OverCap):
            return self._over_cap(statistic)
        if isinstance(statistic, Persons) and self.declaration.unit is not None:
            return Linear(name=statistic.name, kind="integer", coefficients=((self.units(), 1.0),))
        if self._counts_rows(statistic):
            return Linear(name=statistic.name, kind="integer", coefficients=self._rows())  # type: ignore[attr-defined]
        assert isinstance(statistic, Count)
        assert statistic.column is not None
        self._declared(statistic.column)
        if statistic.column in self.splits:
            return Linear(name=statistic.name, kind="integer", coefficients=self._count_from_split(statistic.column))
        block = self._add(values_block(statistic.column, self.max_rows))
        return Linear(name=statistic.name, kind="integer", coefficients=((block.raws[0].name, 1.0),))

    def units(self) -> str:
        """One raw that counts units; it is the row count where a row is a unit."""
        groups = self.max_rows if not self.grid.declared else min(self.max_rows, self.grid.cells)
        return self._add(units_block(groups)).raws[0].name

    def domain(self, column: str, purpose: str) -> Domain:
        domain = self._declared(column)
        if domain.kind not in ("integer", "real", "boolean"):
            raise UnsupportedQuery(
                f"The {purpose} of {column!r} was refused",
                why=f"it is declared as {domain.kind}, which has no {purpose}",
                instead=f'Count(column="{column}")',
            )
        return domain

    def _sum(self, statistic: Sum) -> Linear:
        domain = self.domain(statistic.column, "sum")
        low, high = self._bounds(statistic.column)
        fits = max(abs(low), abs(high)) * _ROWS_AT_MOST < _INTEGERS_AT_MOST
        kind: Kind = "integer" if domain.kind != "real" and fits else "real"
        step = domain.step
        if statistic.column not in self.splits:
            block = self._add(sum_block(statistic.column, low, high, self.max_rows))
            return Linear(name=statistic.name, kind=kind, coefficients=((block.raws[0].name, float(step)),))
        lowest, width = domain.origin + low * step, max(high, low + 1) - low
        share = lowest / width
        above, below = f"above:{statistic.column}", f"below:{statistic.column}"
        return Linear(name=statistic.name, kind=kind, coefficients=((above, float(share + step)), (below, float(share))))

    def _over_cap(self, statistic: OverCap) -> Linear:
        alone = len(self.question.statistics) == 1 and not self.question.by and self.question.where is None
        if not alone or self.declaration.unit is None:
            raise UnsupportedQuery(
                "OverCap was refused",
                why="it stands alone in its question, about a table with a unit and a cap",
                instead=f'Question(table="{self.question.table}", statistics=[Count()])',
            )
        self._add(over_cap_block())
        return Linear(name=statistic.name, kind="integer", coefficients=(("over_cap", 1.0),))

    def _rows(self) -> tuple[tuple[str, float], ...]:
        if self._units_are_rows():
            return ((self.units(), 1.0),)
        if self.with_nulls is not None:
            return (*self._count_from_split(self.with_nulls), (f"nulls:{self.with_nulls}", 1.0))
        return ((self._add(rows_block(self.max_rows)).raws[0].name, 1.0),)

    def _count_from_split(self, column: str) -> tuple[tuple[str, float], ...]:
        low, high = self._bounds(column)
        part = float(Fraction(1, max(high, low + 1) - low))
        return ((f"above:{column}", part), (f"below:{column}", part))

    def _split_columns(self) -> dict[str, None]:
        statistics = self.question.statistics
        splits = dict.fromkeys(statistic.column for statistic in statistics if isinstance(statistic, Mean))
        for column in splits:
            self.domain(column, "mean")
        counted = {statistic.column for statistic in statistics if isinstance(statistic, Count)}
        for statistic in statistics:
            if not isinstance(statistic, Sum) or statistic.column in splits:
                continue
            domain = self.domain(statistic.column, "sum")
            rows_are_shared = None in counted and not splits and not self._units_are_rows()
            if domain.origin != 0 or statistic.column in counted or rows_are_shared:
                splits[statistic.column] = None
        return splits

    def _units_are_rows(self) -> bool:
        """With undeclared keys the units are counted in any case; where a row is a unit, that is the row count."""
        return not self.grid.declared and self.declaration.unit is None

    def _counts_rows(self, statistic: object) -> bool:
        if isinstance(statistic, Persons):
            return self.declaration.unit is None
        return isinstance(statistic, Count) and statistic.column is None

    def _bounds(self, column: str) -> tuple[int, int]:
        domain = self._declared(column)
        return domain.low_code, domain.high_code

    def _declared(self, column: str) -> Domain:
        if column not in self.declaration.columns:
            raise unknown_column(column, self.question.table, list(self.declaration.columns))
        return self.declaration.columns[column]

    def _add(self, block: Block) -> Block:
        return self.blocks.setdefault(block.name, block)


def digest_of(shapes: Sequence[Shape]) -> str:
    """One shape: its own digest; several: the digest of the list."""
    if len(shapes) == 1:
        return shapes[0].digest
    return hashlib.sha256("\n".join(shape.digest for shape in shapes).encode()).hexdigest()


def _digest(shape: Shape) -> str:
    """The canonical form of a question: equal for questions that have the same exact answer, whatever is spent on them."""
    question = shape.question
    canonical: dict[str, Any] = {
        "format": 1,
        "population": shape.population,
        "version": shape.version,
        "table": shape.fingerprint,
        "where": None if question.where is None else question.where.describe(),
        "keys": shape.grid.describe(),
        "blocks": sorted(block.name for block in shape.blocks),
        "sizes": [[block.name, block.l1, block.l2_squared, [raw.width for raw in block.raws]] for block in shape.blocks],
        "formulas": [repr(formula) for formula in shape.formulas],
    }
    return hashlib.sha256(json.dumps(canonical, sort_keys=True, default=str).encode()).hexdigest()
