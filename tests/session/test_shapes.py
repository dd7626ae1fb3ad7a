"""Shapes that are taken over for another condition: the same as those that are made anew, and never another table's."""

from __future__ import annotations

import hashlib
import json

import pytest

import cloister as cl
from cloister.session import Count, Question, Sum
from cloister.session.planning.shape import Shape, shape_of
from cloister.session.state import table_snapshot
from cloister.session.state.table_snapshot import TableSnapshot
from cloister.tables import And, Column, Compare, Expression, Literal

COLUMNS = {"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])}
ROWS = {"age": [30, 40] * 50, "sex": ["F", "M"] * 50}
CONDITIONS: list[Expression] = [
    Compare(">", Column("age"), Literal(20)),
    Compare("=", Column("sex"), Literal("F")),
    And(Compare("<", Column("age"), Literal(60)), Compare("=", Column("sex"), Literal("é"))),
]


def asked(where: Expression | None, *statistics: Count | Sum, table: str = "people") -> Question:
    return Question(table=table, statistics=statistics or (Count(),), where=where)


def anew(found: TableSnapshot, question: Question) -> Shape:
    """The shape, made from nothing that is kept."""
    subject = found.subject(question.table)
    named = {"population": subject.population, "version": subject.version, "fingerprint": subject.fingerprint}
    return shape_of(question, subject.declaration, **named)


def test_a_shape_that_is_taken_over_is_the_one_that_would_be_made() -> None:
    with cl.Session({"people": cl.PrivateTable(ROWS, columns=COLUMNS)}, budget=cl.PureDP(1)) as session:
        found = session.seen.snapshot
        for statistics in [(Count(),), (Sum(column="age"),), (Count(), Sum(column="age"))]:
            for where in [*CONDITIONS, None, *CONDITIONS]:
                question = asked(where, *statistics)
                assert found.shape(question) == anew(found, question)


def test_the_digest_is_that_of_the_canonical_form_with_the_condition_in_it() -> None:
    """Stored releases are found by it: it must not change."""
    with cl.Session({"people": cl.PrivateTable(ROWS, columns=COLUMNS)}, budget=cl.PureDP(1)) as session:
        for where in [None, *CONDITIONS]:
            shape = session.seen.snapshot.shape(asked(where, Count(), Sum(column="age")))
            canonical = {
                "format": 1,
                "population": shape.population,
                "version": shape.version,
                "table": shape.fingerprint,
                "where": None if where is None else where.describe(),
                "keys": shape.grid.describe(),
                "blocks": sorted(block.name for block in shape.blocks),
                "sizes": [[each.name, each.l1, each.l2_squared, [raw.width for raw in each.raws]] for each in shape.blocks],
                "leaves": [repr(block.leaves) for block in shape.blocks if block.leaves is not None],
                "formulas": [repr(formula) for formula in shape.formulas],
            }
            written = json.dumps(canonical, sort_keys=True, default=str)
            assert shape.digest == hashlib.sha256(written.encode()).hexdigest()


def test_no_shape_is_taken_over_from_another_table_version_or_measure() -> None:
    tables = {name: cl.PrivateTable(dict(ROWS), columns=COLUMNS, population=name) for name in ("people", "others")}
    with cl.Session(tables, budget={"people": cl.PureDP(1), "others": cl.ZCDP(1)}) as session:
        digests = {session.seen.snapshot.shape(asked(CONDITIONS[0], table=name)).digest for name in tables}
        session.replace("people", cl.PrivateTable(dict(ROWS), columns=COLUMNS, population="people"))
        digests.add(session.seen.snapshot.shape(asked(CONDITIONS[0])).digest)
        assert len(digests) == 3


def test_shapes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_snapshot, "_MOST_SHAPES", 5)
    with cl.Session({"people": cl.PrivateTable(ROWS, columns=COLUMNS)}, budget=cl.PureDP(1)) as session:
        for place in range(20):
            session.seen.snapshot.shape(asked(CONDITIONS[0], Count(name=f"n{place}")))
            assert len(session.seen.snapshot._shapes) <= 5
