"""The part of a plan that knows nothing of the spend: which blocks a question needs, and by which formulas its answer is read.

Several statistics of one question share measurements: see `builder.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cloister.errors import UnsupportedQuery
from cloister.session.planning.abilities import check_abilities
from cloister.session.planning.blocks import Block
from cloister.session.planning.builder import Builder
from cloister.session.planning.grid import Grid, grid_of
from cloister.session.questions.declared import Declared, rows_of_person
from cloister.session.questions.narrowing import conjuncts
from cloister.session.questions.question import Question
from cloister.session.releases.formulas import Formula
from cloister.session.releases.stored_kinds import written
from cloister.tables import Expression

_MOST_NUMBERS = 8_000_000
_dumped = json.JSONEncoder(sort_keys=True, default=str).encode


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Blocks and formulas of one question about one version of one table."""

    question: Question
    declaration: Declared
    population: str
    also: tuple[str, ...] = ()
    """Further populations that are charged what this one is."""
    version: str
    fingerprint: str
    grid: Grid
    blocks: tuple[Block, ...]
    formulas: tuple[Formula, ...]
    digest: str = field(default="")
    for_margins: Shape | None = None
    """The same question measured for its margins, where that differs: it is one question, whose digest is this one's."""
    priced: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """Plans of it by spend (`plan.price`), shared with the shapes that differ from it in their conditions alone."""

    @property
    def max_rows(self) -> int:
        """The most rows that one unit may have: 1 where a row is a unit, and all rows are in one part."""
        return rows_of_person(self.declaration)

    @cached_property
    def canonical(self) -> str:
        """What the digest is of, the condition apart: open at its end."""
        if self.for_margins is not None:
            return self.for_margins.canonical
        canonical: dict[str, Any] = {
            "format": 1,
            "population": self.population,
            "version": self.version,
            "table": self.fingerprint,
            "keys": self.grid.describe(),
            "blocks": sorted(block.name for block in self.blocks),
            "sizes": [[block.name, block.l1, block.l2_squared, [raw.width for raw in block.raws]] for block in self.blocks],
            "leaves": [written(block.leaves) for block in self.blocks if block.leaves is not None],
            "formulas": [written(formula) for formula in self.formulas],
        }
        return _dumped(canonical).removesuffix("}")

    @cached_property
    def conditions(self) -> dict[str, Expression]:
        """What AND joins in the question's condition, by canonical form."""
        return {str(each.describe()): each for each in conjuncts(self.question.where)}


def shape_of(
    question: Question,
    declaration: Declared,
    *,
    population: str,
    version: str,
    fingerprint: str,
    gaussian: bool = False,
    also: tuple[str, ...] = (),
) -> Shape:
    """The blocks and formulas for a question; refuses what cannot be measured, from declarations alone.

    `gaussian` says that the budget counts in ρ, so that the noise will be Gaussian: the best hierarchy is then another one.
    """
    grid = grid_of(question, declaration)
    check_abilities(question, declaration, grid)

    def built(*, margins: bool) -> Shape:
        builder = Builder(question, declaration, grid, gaussian=gaussian, margins=margins)
        formulas = builder.formulas()
        return Shape(
            question=question,
            declaration=declaration,
            population=population,
            also=also,
            version=version,
            fingerprint=fingerprint,
            grid=grid,
            blocks=tuple(builder.blocks.values()),
            formulas=formulas,
        )

    shape = built(margins=False)
    if any(block.share is not None for block in shape.blocks):
        shape = replace(shape, for_margins=digested(built(margins=True)))
    return digested(shape)


def digested(shape: Shape) -> Shape:
    """The shape with its digest."""
    return replace(shape, digest=_digest(shape))


def numbers_of(shapes: Sequence[Shape]) -> int:
    """How many noisy numbers a plan makes; of undeclared keys, as of one group."""
    found = 0
    for shape in shapes:
        for each in shape.blocks:
            found += shape.grid.cells * (len(each.raws) if each.leaves is None else each.leaves.count)
    return found


def check_numbers(shapes: Sequence[Shape]) -> None:
    """Refuse, from public facts, a plan of so many noisy numbers that drawing and keeping them takes minutes and gigabytes."""
    numbers = numbers_of(shapes)
    if numbers > _MOST_NUMBERS:
        raise UnsupportedQuery(
            "The query is not supported",
            why=f"it makes {numbers:,} noisy numbers in all its groups, and at most {_MOST_NUMBERS:,} are drawn",
            instead="fewer or coarser keys, fewer statistics, or two queries",
        )


def populations_of(shapes: Sequence[Shape]) -> list[str]:
    """All that questions of these shapes are charged to, each once."""
    found: dict[str, None] = {}
    for shape in shapes:
        found |= dict.fromkeys((shape.population, *shape.also))
    return list(found)


def digest_of(shapes: Sequence[Shape]) -> str:
    """One shape: its own digest; several: the digest of the list."""
    if len(shapes) == 1:
        return shapes[0].digest
    return hashlib.sha256("\n".join(shape.digest for shape in shapes).encode()).hexdigest()


def redirected(shape: Shape, question: Question) -> Shape:
    """The shape of the same question with another condition: of one without keys, of which the condition decides no more than
    which rows are counted.

    >>> from cloister.session.examples import small_door
    >>> from cloister.session import Count
    >>> from cloister.tables import Column, Compare, Literal
    >>> old, young = (Compare(sign, Column("age"), Literal(40)) for sign in (">", "<"))
    >>> ask = lambda where: Question(table="people", statistics=(Count(),), where=where)
    >>> with small_door() as door:
    ...     redirected(door.seen.snapshot.shape(ask(old)), ask(young)) == door.seen.snapshot.shape(ask(young))
    True
    """
    assert not question.by
    assert not shape.question.by
    return Shape(  # `replace` takes several times as long
        question=question,
        declaration=shape.declaration,
        population=shape.population,
        also=shape.also,
        version=shape.version,
        fingerprint=shape.fingerprint,
        grid=shape.grid,
        blocks=shape.blocks,
        formulas=shape.formulas,
        digest=_digest(shape, question),
        for_margins=None if shape.for_margins is None else redirected(shape.for_margins, question),
        priced=shape.priced,
    )


def _digest(shape: Shape, question: Question | None = None) -> str:
    """The canonical form of a question: equal for questions that have the same exact answer, whatever is spent on them. Written
    with the condition last, which is where its name is in the alphabet."""
    asked = shape.question if question is None else question
    where = None if asked.where is None else asked.where.describe()
    written = f'{shape.canonical}, "where": {_dumped(where)}}}'
    return hashlib.sha256(written.encode()).hexdigest()
