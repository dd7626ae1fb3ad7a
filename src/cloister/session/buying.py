"""The way of a question from its plan to a stored answer: reserve, aggregate, noise, settle, in that order and nowhere else.

Exact values computed from private rows exist in calls made through `sealed`, between the reservation and the noise. What was
bought before is counted in, so that nothing is paid twice; what others paid for debits this person's allotment, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fractions import Fraction

from cloister.errors import EngineError, InvalidParameter, LedgerError
from cloister.noise import Random
from cloister.session.answer import aggregations_of, measured
from cloister.session.balance import Balance
from cloister.session.history import History, Purchase
from cloister.session.house import House
from cloister.session.limits import stopped_after
from cloister.session.plan import Plan, following, price
from cloister.session.question import Question
from cloister.session.registry import Registry
from cloister.session.sealed import sealed
from cloister.session.shape import Shape, check_numbers, digest_of
from cloister.session.spend import Spending, less, measure_of, spend_of
from cloister.session.store import Found, Stored, to_bytes
from cloister.session.view import View
from cloister.session.workload import Workload, workload_of
from cloister.tables import check_aggregation


class Buyer(Balance):
    """Somebody who asks: with a name, a view of the tables, and a purse in the ledger."""

    who: str
    house: House
    _view: View
    _random: Random
    _progress: Callable[[str], None]
    _time_limit: float | None

    @property
    def _registry(self) -> Registry:
        return self.seen.registry

    def _shapes(self, questions: Sequence[Question]) -> list[Shape]:
        return self._checked([self._shape(each) for each in questions])

    def _measured(self, workload: Workload) -> list[Shape]:
        """What is measured for several questions together: some of them, and shapes that were made of them."""
        return self._checked([each if isinstance(each, Shape) else self._shape(each) for each in workload.measured])

    def _checked(self, shapes: list[Shape]) -> list[Shape]:
        if not shapes:
            raise InvalidParameter(
                "An empty list of questions was refused",
                why="there is nothing to measure",
                instead="measure_all([question], …)",
            )
        check_numbers(shapes)
        return shapes

    def _shape(self, question: Question) -> Shape:
        """The shape of a question as this session sees its tables: every question comes through here, once."""
        return self._registry.shape(self.seen.applied(question))

    def _workload(self, questions: Sequence[Question], shapes: Sequence[Shape]) -> Workload:
        return workload_of(questions, shapes, measure_of(self.ledger.budget(shapes[0].population)))

    def _bought(
        self, shapes: Sequence[Shape], spend: Spending, purpose: str, weights: Sequence[Fraction] | None = None
    ) -> tuple[Plan, History]:
        """The plan and the history that its answer stands on, after what was missing has been bought."""
        plan, history = self._planned(shapes, spend, weights)
        self._debit(history, plan.digest, purpose)  # a refusal by the allotment must come before anything is bought
        if not plan.repeated:
            try:
                history = history.with_fresh(*self._answer(plan, purpose))
            except _Answered:
                plan, history = self._planned(shapes, spend, weights)
        return plan, history

    def _planned(
        self, shapes: Sequence[Shape], spend: Spending, weights: Sequence[Fraction] | None = None
    ) -> tuple[Plan, History]:
        """The plan of what is still to buy, and the history that its readings will join."""
        for shape in shapes:
            for aggregation in aggregations_of(shape, None):
                check_aggregation(aggregation, shape.declaration)
        spends = {shape.population: spend_of(spend, self.ledger.budget(shape.population)) for shape in shapes}
        history = self._history(shapes)
        missing = history.missing(spends)
        history = history.usable(fresh=missing is not None)
        return following(price(shapes, missing or spends, weights), history, missing=missing is not None), history

    def _stored(
        self, shapes: Sequence[Shape], spend: Spending | None, purpose: str, weights: Sequence[Fraction] | None = None
    ) -> tuple[Plan, History] | None:
        """The plan and the history of what was bought already, where there is any, and it is worth the spend if one is named."""
        history = self._history(shapes)
        if not history.stored:
            return None
        budgets = {shape.population: self.ledger.budget(shape.population) for shape in shapes}
        if spend is not None and history.missing({name: spend_of(spend, budget) for name, budget in budgets.items()}) is not None:
            return None
        paid = {name: spend_of(cost, budgets[name]) for name, cost in history.cost().items()}
        plan = following(price(shapes, paid, weights), history, missing=False)
        self._debit(history, plan.digest, purpose)
        return plan, history

    def _history(self, shapes: Sequence[Shape]) -> History:
        populations = list(dict.fromkeys(shape.population for shape in shapes))
        combinable = all(shape.grid.declared for shape in shapes)
        return History.of(self.ledger, digest_of(shapes), populations, combinable=combinable)

    def _answer(self, plan: Plan, purpose: str) -> tuple[Purchase, Stored]:
        """The way of a question. Preparing reads rows but tells nobody anything; the charge stands from the reservation on."""
        self._progress("preparing the tables")
        tables = {part.shape.question.table: self._registry.rows_of(part.shape.question.table) for part in plan.parts}
        for part in plan.parts:
            prepared = tables[part.shape.question.table]
            for aggregation in aggregations_of(part.shape, prepared):
                prepared.plan(aggregation)  # what cannot be compiled is refused before it is charged
        self._progress("reserving the cost")
        reservation = self.ledger.reserve(plan.costs, who=self.who, what=plan.digest, purpose=purpose)

        def noisy() -> list[Found]:
            return [measured(part, tables[part.shape.question.table], self._random) for part in plan.parts]

        self._progress("asking the engine")
        with stopped_after(self._time_limit or plan.time_limit, tables.values()) as clock:
            try:
                found = sealed(noisy)
            except KeyboardInterrupt:
                clock.stop()
                raise
            except EngineError:
                clock.check()
                raise
        self._progress("settling the charge")
        try:
            self.ledger.settle(reservation, to_bytes(found, marked=self._random.marked), marked=self._random.marked)
        except LedgerError:
            if any(each.id == reservation.id for each in self.ledger.find(plan.digest, plan.costs)):
                raise _Answered from None  # another attempt under the same charge was first; its answer is the one that leaves
            raise
        purchase = Purchase(id=reservation.id, who=self.who, when=time.time(), costs=reservation.costs)
        return purchase, Stored(tuple(found), self._random.marked)

    def _debit(self, history: History, digest: str, purpose: str) -> None:
        """The use of what others paid for debits this person's allotment, once."""
        owed = {}
        for population, cost in history.paid_by_others(self.who).items():
            rest = less(cost, self.ledger.drawn(population, self.who, digest))
            if rest is not None:
                owed[population] = rest
        if owed:
            self.ledger.charge_allotment(owed, who=self.who, what=digest, purpose=purpose)


class _Answered(Exception):
    """Another attempt under the same charge has settled it."""
