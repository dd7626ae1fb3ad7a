"""Handing rows to a method that declares its guarantee: reserve, read, let it release, settle.

Under the name of a piece of work it is released once, however often the work is begun.

The rows are those that the session sees: through a view fewer of them, with fewer columns, and under a digest of their own.
"""

import hashlib
import json
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

from cloister.errors import LedgerError, UnsupportedQuery
from cloister.session.analyst import Analyst
from cloister.session.execution.run import (
    Outcome,
    RowMethod,
    RunPlan,
    digest_once,
    outcome_of,
    reads_units,
    run_blob,
    run_plan,
    sums_of,
)
from cloister.session.execution.summing import RowSummer
from cloister.session.questions.limits import in_turn, limit_of
from cloister.session.questions.spend import Spending, spend_of
from cloister.session.state.scrubbed import scrubbed
from cloister.session.state.table_snapshot import Entry
from cloister.session.state.view import Seen
from cloister.tables import PrivateTable


def run_once(analyst: Analyst, seen: Seen, method: RowMethod, table: str, spend: Spending, purpose: str, once: str) -> Outcome:
    """Hands the rows of a table to a method, and lets out only what it releases (`Door.run`)."""
    plan = planned_run(analyst, seen, method, table, spend)
    if not once:
        return _run(analyst, seen, method, table, plan, purpose, plan.digest)
    what = digest_once(plan.digest, once)
    with analyst.registry.flights.one((analyst.who, what), limit=analyst.time_limit):
        before = _released(analyst, plan, what)
        if before is not None:
            return before
        try:
            return _run(analyst, seen, method, table, plan, purpose, what)
        except LedgerError:
            first = _released(analyst, plan, what)
            if first is None:
                raise
            return first  # another attempt under the same charge was first; its release is the one that leaves


def _run(analyst: Analyst, seen: Seen, method: RowMethod, table: str, plan: RunPlan, purpose: str, what: str) -> Outcome:
    if sums_of(method, _row_entry(seen, table).declaration):
        return _summed(analyst, seen, method, table, plan, purpose, what)
    random = analyst.registry.random
    prepared = seen.snapshot.prepare(table)
    declaration, condition = _row_entry(seen, table).declaration, seen.view.rows.get(table)
    with ExitStack() as reading:
        reading.enter_context(in_turn([prepared.turn()], analyst.time_limit or limit_of(1, declaration.size)))
        reservation = analyst.reserve({plan.population: plan.cost}, what, purpose)

        def released() -> bytes:
            rows = prepared.rows(list(method.columns), where=condition, unit=reads_units(method))
            reading.close()  # others may ask while the method works
            return run_blob(method.release(rows, declaration, plan.cost, random), marked=random.marked)

        try:
            blob = scrubbed(released, trusted=False, named=what != plan.digest)
        except KeyboardInterrupt:
            prepared.cancel()
            raise
    analyst.ledger.settle(reservation, blob, marked=random.marked)
    return outcome_of(blob, cost=plan.cost, digest=what, charge=reservation.id, when=time.time())


def _summed(analyst: Analyst, seen: Seen, method: Any, table: str, plan: RunPlan, purpose: str, what: str) -> Outcome:
    """The same where the engine gives sums over rows and no rows: the first is agreed to before anything is reserved."""
    random, declaration = analyst.registry.random, _row_entry(seen, table).declaration
    if seen.view.rows.get(table) is not None:
        raise UnsupportedQuery(
            f"Learning from a part of the rows of {table!r} is not supported",
            why="its engine adds up all of them",
            instead="a grant of all rows",
        )
    rows = (declaration.max_rows or 1) * declaration.abilities.parts_of_a_person
    how: dict[str, Any] = {"who": analyst.who, "purpose": purpose, "most": method.rho(plan.cost)}
    how["charge"] = analyst.earlier({plan.population: plan.cost}, what)
    summer = RowSummer(prepared=seen.snapshot.prepare(table), table=table, rows=rows, random=random, **how)
    with in_turn([summer.prepared.turn()], analyst.time_limit or limit_of(1, declaration.size)):
        summer.compiled = summer.prepared.compiled(summer.request(*method.first_sum(summer, declaration, plan.cost)))
    reservation = analyst.reserve({plan.population: plan.cost}, what, purpose)
    summer.charge = str(reservation.id)
    try:
        sums, named = partial(method.release_sums, summer, declaration, plan.cost), what != plan.digest
        blob = scrubbed(lambda: run_blob(sums(), marked=random.marked), named=named)
    except KeyboardInterrupt:
        summer.prepared.cancel()
        raise
    analyst.ledger.settle(reservation, blob, marked=random.marked)
    return outcome_of(blob, cost=plan.cost, digest=what, charge=reservation.id, when=time.time())


def planned_run(analyst: Analyst, seen: Seen, method: RowMethod, table: str, spend: Spending) -> RunPlan:
    """What it would charge, and for which guarantee: spends nothing and reads no row."""
    entry = _row_entry(seen, table)
    analyst.registry.workspace.check_rows(table, entry.declaration.size, len(method.columns))
    return run_plan(method, entry, spend_of(spend, analyst.ledger.budget(entry.population)).whole())


def _released(analyst: Analyst, plan: RunPlan, what: str) -> Outcome | None:
    """What this person has released under a name already."""
    for each in analyst.ledger.find(what, [plan.population]):
        if each.who == analyst.who:
            cost, when = each.costs[plan.population], each.when.timestamp()
            return outcome_of(each.release, cost=cost, digest=what, charge=each.id, when=when)
    return None


def _row_entry(seen: Seen, table: str) -> Entry:
    """A table as a method is handed it: through the view its columns and its rows are others, and so is its fingerprint."""
    seen.check(table)
    entry, declared, condition = seen.snapshot.asked(table), seen.tables[table], seen.view.rows.get(table)
    if isinstance(declared, PrivateTable) and declared is not entry.declaration:
        entry = replace(entry, declaration=declared)
    if condition is not None:
        text = json.dumps([entry.fingerprint, condition.describe()], sort_keys=True, default=str)
        entry = replace(entry, fingerprint=hashlib.sha256(text.encode()).hexdigest())
    return entry
