"""Handing rows to a method that declares its guarantee: reserve, read, let it release, settle.

Under the name of a piece of work it is released once, however often the work is begun.

The rows are those that the session sees: through a view fewer of them, with fewer columns, and under a digest of their own.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import ExitStack
from dataclasses import replace

from cloister.errors import LedgerError
from cloister.session.execution.buying import Buyer
from cloister.session.execution.run import Outcome, RowMethod, RunPlan, digest_once, outcome_of, run_blob, run_plan
from cloister.session.questions.limits import in_turn, limit_of
from cloister.session.questions.spend import Spending, spend_of
from cloister.session.state.scrubbed import scrubbed
from cloister.session.state.table_registry import pinned
from cloister.session.state.table_snapshot import Entry
from cloister.tables import PrivateTable


class Runner(Buyer):
    """Somebody who asks, and may also hand rows to a method."""

    @pinned
    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "", once: str = "") -> Outcome:
        """Hands the rows of a table to a method that declares its guarantee, and lets out only what it releases.

        It is charged each time, but for an attempt that died before it had released anything: the next one is made under its
        charge. `once` names a piece of work that is to be released once however often it is begun (a job): what the same person
        has released under that name is given again at no cost, and nobody else takes its charge over.

        Guarantee: that of the method, once a charge. A second attempt draws its randomness again, and is no second release: of
        the first nothing left the door, and the ledger settles a charge once, whichever attempt comes first. What is seen is
        the output of one run, so composition counts one.
        """
        plan = self.explain_run(method, table, spend)
        what = plan.digest if not once else digest_once(plan.digest, once)
        before = self._released(plan, what) if once else None
        if before is not None:
            return before
        prepared = self._registry.prepare(table)
        declaration, condition = self._row_entry(table).declaration, self._view.rows.get(table)
        ceilings, shares = self._bounds.ceilings, self._bounds.shares
        with ExitStack() as reading:
            limit = self._time_limit or limit_of(1, declaration.size)
            reading.enter_context(in_turn([prepared.turn()], limit))
            if self._about_to_charge is not None:
                self._about_to_charge(what, {plan.population: plan.cost})
            reservation = self.ledger.reserve(
                {plan.population: plan.cost},
                who=self.who,
                what=what,
                purpose=purpose,
                at_most=ceilings,
                share_at_most=shares,
            )

            def released() -> bytes:
                rows = prepared.rows(list(method.columns), where=condition)
                reading.close()  # others may ask while the method works
                return run_blob(method.release(rows, declaration, plan.cost, self._random), marked=self._random.marked)

            try:
                blob = scrubbed(released, trusted=False)
            except KeyboardInterrupt:
                prepared.cancel()
                raise
        try:
            self.ledger.settle(reservation, blob, marked=self._random.marked)
        except LedgerError:
            first = self._released(plan, what) if once else None
            if first is None:
                raise
            return first  # another attempt under the same charge was first; its release is the one that leaves
        return outcome_of(blob, cost=plan.cost, digest=what, charge=reservation.id, when=time.time())

    def _released(self, plan: RunPlan, what: str) -> Outcome | None:
        """What this person has released under a name already."""
        for each in self.ledger.find(what, [plan.population]):
            if each.who == self.who:
                cost, when = each.costs[plan.population], each.when.timestamp()
                return outcome_of(each.release, cost=cost, digest=what, charge=each.id, when=when)
        return None

    @pinned
    def explain_run(self, method: RowMethod, table: str, spend: Spending) -> RunPlan:
        """What `run` would charge, and for which guarantee: spends nothing and reads no row."""
        entry = self._row_entry(table)
        self.house.workspace.check_rows(table, entry.declaration.size, len(method.columns))
        return run_plan(method, entry, spend_of(spend, self.ledger.budget(entry.population)).whole())

    def _row_entry(self, table: str) -> Entry:
        """A table as a method is handed it: through the view its columns and its rows are others, and so is its fingerprint."""
        self.seen.check(table)
        entry, seen, condition = self._registry.asked(table), self.seen.tables[table], self._view.rows.get(table)
        if isinstance(seen, PrivateTable) and seen is not entry.declaration:
            entry = replace(entry, declaration=seen)
        if condition is not None:
            text = json.dumps([entry.fingerprint, condition.describe()], sort_keys=True, default=str)
            entry = replace(entry, fingerprint=hashlib.sha256(text.encode()).hexdigest())
        return entry
