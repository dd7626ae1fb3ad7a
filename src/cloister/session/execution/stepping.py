"""Steps of a question: its exact integers of one step, handed to a mechanism that was charged for all steps when it was opened.

The order is that of every answer, with one charge for many: the ledger holds the charge (`open_steps`), then rows are read, noise
is drawn, and the line of the step, its release and the sealed state after it are committed in one transaction (`add_step`);
nothing leaves before. A process that is killed in between has released nothing of the step.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeAlias

from cloister.errors import LedgerError, UnsupportedQuery
from cloister.session.analyst import Analyst
from cloister.session.execution.answer import additive, cellwise, request_of
from cloister.session.planning.plan import Part, price
from cloister.session.planning.shape import Shape
from cloister.session.questions.declared import Declared
from cloister.session.questions.limits import in_turn, limit_of
from cloister.session.questions.spend import Spending
from cloister.session.state.scrubbed import scrubbed
from cloister.session.state.view import Seen, rebuilt
from cloister.tables import (
    Answering,
    Base,
    Extended,
    Filtered,
    Prepared,
    PrivateTable,
    Projected,
    PublicJoined,
    Relation,
    prepare,
    relate,
)
from cloister.tables.engines.noised import Whole, exact_integers

Advance: TypeAlias = Callable[[Mapping[str, Whole]], tuple[bytes, bytes]]
"""From the exact integers of a step, by raw and cell, to its release and the sealed state after it."""


_ROW_BY_ROW = (Base, Extended, Filtered, Projected, PublicJoined)
"""What is made of each row of one table by itself: each row of it becomes rows that follow from it and from public tables."""


def obstacle(shape: Shape) -> str | None:
    """Why the integers of a question are not sums over the rows of one table, in cells that are known in advance; None where they
    are. Then those of all steps are a linear map of the rows, and a person with m rows moves them by m times what one row does:
    computed columns, conditions and public tables act on each row by itself, whichever step it is in."""
    table = shape.question.table
    if not isinstance(table, str) and not all(isinstance(each, _ROW_BY_ROW) for each in table.walk()):
        return "it joins private tables, or first works out something of each person's rows"
    if shape.also:  # one population is charged for all steps
        return "its rows are of people of several populations"
    if not shape.grid.declared:
        return "the values of its keys are not declared"
    if not cellwise(shape):
        return "a quantile, a median or another order of values is no sum over rows"
    return None if additive(shape) else "a number of different persons or values is no sum over rows"


def name_of(table: str | Relation) -> str:
    """The one private table of a question that was not refused."""
    return table if isinstance(table, str) else table.bases()[0]


def meaning(seen: Seen, shape: Shape) -> str | list[object]:
    """What is declared of the rows, whichever version of them there is."""
    table = shape.question.table
    if isinstance(table, str):
        return shape.fingerprint
    return [table.describe(), *(seen.snapshot.entry(name).fingerprint for name in table.bases())]


def stepping_part(analyst: Analyst, shape: Shape, spend: Spending) -> Part:
    """The noise of each raw, as one answer for that spend would have it: spends nothing."""
    why = obstacle(shape)
    if why is not None:
        raise UnsupportedQuery(
            "Steps under one charge are not supported",
            why=why,
            instead="COUNT, SUM, AVG or VARIANCE by declared columns; or a charge for each step",
        )
    [part] = price([shape], analyst.spends([shape], spend)).parts
    return part


def step(
    analyst: Analyst, seen: Seen, part: Part, shape: Shape, opening: int, number: int, advance: Advance, rows: Any = None
) -> None:
    """Release a step of a series that is open: of the session's rows, or of `rows`, which hold what is declared of them.

    The table must be declared as at the opening, since the noise is for those bounds, and the session's rows must be those of the
    opening: a person whose rows changed in between could count in more of them. Cells are those of the opening too: where the
    step's condition is on a key, it has fewer of its own.
    """
    if shape.fingerprint != part.shape.fingerprint or (rows is None and shape.version != part.shape.version):
        raise LedgerError(
            "The step was not released",
            why="the table holds other rows than when the series was opened, or is declared otherwise",
            instead="session.watch(…, fed=True) for rows that grow",
        )
    part = replace(part, shape=replace(part.shape, question=shape.question))
    shape, table = part.shape, shape.question.table
    name = name_of(table)
    with ExitStack() as held:
        declaration: Declared
        prepared: Answering
        if rows is None:
            prepared = seen.snapshot.rows_of(table)
        else:
            fed = scrubbed(lambda: _fed(rows, seen.snapshot.entry(name).declaration, analyst))
            held.callback(fed.close)
            declaration, prepared = (fed.declaration, fed) if isinstance(table, str) else _over(table, fed)
            part = replace(part, shape=replace(shape, declaration=declaration))
        if type(prepared).noised is not Answering.noised:
            raise UnsupportedQuery(
                f"Steps of {name!r} are not supported", why="its exact sums exist nowhere", instead="session.sql(…) for each step"
            )
        request = request_of(part, number, prepared)
        plans = [prepared.plan(aggregation) for aggregation in request.asked]
        with in_turn([prepared.turn()], analyst.time_limit or limit_of(1, part.shape.declaration.size)):

            def work() -> tuple[bytes, bytes]:
                found = [prepared.aggregate(each, plan) for each, plan in zip(request.asked, plans, strict=True)]
                return advance(exact_integers(request, found))

            release, state = scrubbed(work)
    analyst.ledger.add_step(opening, number, release, state)


def _fed(rows: Any, declaration: PrivateTable, analyst: Analyst) -> Prepared:
    """Rows of one step, prepared as the table's own are; without a unit: whoever feeds them holds its cap over all steps."""
    table = PrivateTable.declared(rows, declaration.columns, version="fed", during=declaration.during)
    return prepare(table, workspace=analyst.registry.workspace)


def _over(relation: Relation, fed: Prepared) -> tuple[Relation, Answering]:
    """The same of each row that was fed."""
    over = rebuilt(relation, lambda base: Base(name=base.name, table=fed.declaration))
    return over, relate(over, dict.fromkeys(over.bases(), fed))
