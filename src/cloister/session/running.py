"""Handing rows to a method that declares its guarantee: reserve, read, let it release, settle.

The rows are those that the session sees: through a view fewer of them, with fewer columns, and under a digest of their own.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace

from cloister.session.buying import Buyer
from cloister.session.house import steady
from cloister.session.registry import Entry
from cloister.session.run import Outcome, RowMethod, RunPlan, run_blob, run_plan
from cloister.session.sealed import sealed
from cloister.session.spend import Spending, spend_of
from cloister.tables import PrivateTable


class Runner(Buyer):
    """Somebody who asks, and may also hand rows to a method."""

    @steady
    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "") -> Outcome:
        """Hands the rows of a table to a method that declares its guarantee, and lets out only what it releases."""
        plan = self.explain_run(method, table, spend)
        prepared = self._registry.prepare(table)
        declaration, condition = self._row_entry(table).declaration, self._view.rows.get(table)
        ceilings, shares = self._bounds.ceilings, self._bounds.shares
        reservation = self.ledger.reserve(
            {plan.population: plan.cost},
            who=self.who,
            what=plan.digest,
            purpose=purpose,
            at_most=ceilings,
            share_at_most=shares,
        )

        def released() -> bytes:
            rows = prepared.rows(list(method.columns), where=condition)
            return run_blob(method.release(rows, declaration, plan.cost, self._random), marked=self._random.marked)

        try:
            blob = sealed(released, trusted=False)
        except KeyboardInterrupt:
            prepared.cancel()
            raise
        self.ledger.settle(reservation, blob, marked=self._random.marked)
        return Outcome(
            values=json.loads(blob)["values"],
            cost=plan.cost,
            digest=plan.digest,
            charge=reservation.id,
            when=time.time(),
            marked=self._random.marked,
        )

    @steady
    def explain_run(self, method: RowMethod, table: str, spend: Spending) -> RunPlan:
        """What `run` would charge, and for which guarantee: spends nothing and reads no row."""
        entry = self._row_entry(table)
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
