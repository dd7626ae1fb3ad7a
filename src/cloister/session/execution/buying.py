"""The way of a question from its plan to a stored answer: reserve, aggregate, noise, settle, in that order and nowhere else.

Exact values computed from private rows exist in calls made through `scrubbed`, between the reservation and the noise. What was
bought before is counted in, so that nothing is paid twice; what others paid for debits this person's allotment, once.

The rule. Whoever asks for a spend of s gets what is stored where that cost s or more, as sharp as it is, and pays for s: of what
others paid, so much is debited that it makes s together with what this person paid and was debited for the same question; never
more than others paid. Where less than s was spent, the rest is bought in the same step, and stands or is refused together with
the debit. So nobody's allotment loses more than what that person named, however much others paid.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from cloister.errors import BudgetExceeded, EngineError, InvalidParameter, LedgerError
from cloister.ledger import Bound
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.execution.answer import Asked, aggregations_of, measured, request_of
from cloister.session.execution.history import History, Purchase
from cloister.session.execution.refinement import Refinement, refinement, subject
from cloister.session.planning.plan import Plan, following, price
from cloister.session.planning.shape import Shape, check_numbers, digest_of, numbers_of
from cloister.session.questions.limits import in_turn, stopped_after
from cloister.session.questions.question import Question
from cloister.session.questions.spend import Spend, Spending, amount_of, least, less, measure_of, spend_of
from cloister.session.releases.store import Found, Stored, to_bytes
from cloister.session.state.balance import Balance
from cloister.session.state.scrubbed import scrubbed
from cloister.session.state.table_registry import TableRegistry
from cloister.session.state.table_snapshot import TableSnapshot
from cloister.session.state.view import Seen, View
from cloister.tables import Answering, Relation, check_aggregation

if TYPE_CHECKING:
    from cloister.session.workloads.workload import Workload

_MOST_ASKED = 64


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """By population, the most that may be charged of it in all (`ceilings`), and to this person (`shares`), by rules that are
    kept outside of the ledger.
    """

    ceilings: Mapping[str, Sequence[Bound]] = field(default_factory=dict)
    shares: Mapping[str, Sequence[Bound]] = field(default_factory=dict)


class Buyer(Balance):
    """Somebody who asks: with a name, a view of the tables, and a purse in the ledger."""

    who: str
    house: TableRegistry
    _view: View
    _random: Random
    _progress: Callable[[str], None]
    _time_limit: float | None
    _asked: dict[tuple[str, str, str], OrderedDict[str, Shape]]
    _bounds: Bounds = Bounds()
    _about_to_charge: Callable[[str, Mapping[str, Guarantee]], None] | None = None
    _last_shape: tuple[Seen, Question, Shape] | None = None

    def keep_within(self, bounds: Bounds) -> None:
        """From here on, charge nothing that passes these bounds: each charge is held against them as it is made.

        >>> from cloister.ledger import Bound
        >>> from cloister.privacy import PureDP
        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> with small_door() as door:
        ...     door.keep_within(Bounds(ceilings={"people": [Bound(most=PureDP("0.4"), why="the ceiling is ε = 0.4")]}))
        ...     door.measure(Question(table="people", statistics=(Count(),)), spend="0.5")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        cloister.errors.BudgetExceeded: A charge of ε = 0.5 to population 'people' was refused: the ceiling is ε = 0.4...
        """
        self._bounds = bounds

    def tell_charges(self, told: Callable[[str, Mapping[str, Guarantee]], None]) -> None:
        """From here on, say what is charged (the plan's digest, and its costs by population) right before it is. Where `told`
        raises, nothing is charged. What is answered from the ledger at no cost is not told.

        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> with small_door() as door:
        ...     door.tell_charges(lambda what, costs: print(costs))
        ...     for _ in range(2):
        ...         _ = door.measure(Question(table="people", statistics=(Count(),)), spend="0.5")
        {'people': PureDP(epsilon='0.5')}
        """
        self._about_to_charge = told

    @property
    def _registry(self) -> TableSnapshot:
        return self.house.registry

    def _shapes(self, questions: Sequence[Question]) -> list[Shape]:
        return self._checked([self._shape(each) for each in questions])

    def _measured(self, workload: Workload) -> list[Shape]:
        """What is measured for several questions together: some of them, and shapes that were made of them."""
        return self._checked([each if isinstance(each, Shape) else self._shape(each) for each in workload.measured])

    def _checked(self, shapes: list[Shape]) -> list[Shape]:
        if not shapes:
            raise InvalidParameter(
                "An empty list of questions is invalid",
                why="there is nothing to measure",
                instead="measure_all([question], …)",
            )
        check_numbers(shapes)
        return shapes

    def _shape(self, question: Question) -> Shape:
        """The shape of a question as this session sees its tables: every question comes through here. The last one is kept:
        whoever decides on a question has it read before it is asked."""
        seen, last = self.seen, self._last_shape
        if last is not None and last[0] is seen and last[1] is question:
            return last[2]
        shape = seen.registry.shape(seen.applied(question))
        self._last_shape = (seen, question, shape)
        return shape  # not what is kept, which another thread may have replaced by now

    def _workload(self, questions: Sequence[Question], shapes: Sequence[Shape]) -> Workload:
        from cloister.session.workloads.workload import workload_of

        return workload_of(questions, shapes, measure_of(self.ledger.budget(shapes[0].population)))

    def _bought(
        self, shapes: Sequence[Shape], spend: Spending, purpose: str, weights: Sequence[Fraction] | None = None
    ) -> tuple[Plan, History]:
        """The plan and the history that its answer stands on, after what was missing has been bought."""
        spends = self._spends(shapes, spend)
        with self.house.flights.one((self.who, digest_of(shapes)), limit=self._time_limit):
            plan, history = self._plan_of(shapes, spends, weights)
            owed = self._owed(history, spends)
            if not plan.repeated:
                try:
                    return plan, history.with_fresh(*self._answer(plan, purpose, owed))
                except _Answered:
                    return self._plan_of(shapes, spends, weights)
        self._debit(owed, plan.digest, purpose)
        return plan, history

    def _planned(
        self, shapes: Sequence[Shape], spend: Spending, weights: Sequence[Fraction] | None = None
    ) -> tuple[Plan, History]:
        """The plan of what is still to buy, and the history that its readings will join."""
        return self._plan_of(shapes, self._spends(shapes, spend), weights)

    def _plan_of(
        self, shapes: Sequence[Shape], spends: Mapping[str, Spend], weights: Sequence[Fraction] | None
    ) -> tuple[Plan, History]:
        for shape in shapes:
            for aggregation in aggregations_of(shape, None):
                check_aggregation(aggregation, shape.declaration)
        self.house.workspace.check_numbers(numbers_of(shapes))
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
        spends = None if spend is None else self._spends(shapes, spend)
        if spends is not None and history.missing(spends) is not None:
            return None
        plan = self._repeated(shapes, history, weights)
        owed = self._owed(history, spends)
        if spends is None:
            owed = {name: cost for name, cost in owed.items() if not self._had(history, name, plan.digest)}
        try:
            self._debit(owed, plan.digest, purpose)
        except BudgetExceeded as error:
            raise _no_share(error) from None
        return plan, history

    def _had(self, history: History, population: str, digest: str) -> bool:
        """Whether this person paid, or was debited, for what is stored: they were given it, and get it again for nothing."""
        return population in history.paid_by(self.who) or amount_of(self.ledger.drawn(population, self.who, digest)) > 0

    def _repeated(self, shapes: Sequence[Shape], history: History, weights: Sequence[Fraction] | None = None) -> Plan:
        """The plan of what was bought already."""
        paid = {name: spend_of(cost, self.ledger.budget(name)) for name, cost in history.cost().items()}
        return following(price(shapes, paid, weights), history, missing=False)

    def _spends(self, shapes: Sequence[Shape], spend: Spending) -> dict[str, Spend]:
        return {shape.population: spend_of(spend, self.ledger.budget(shape.population)) for shape in shapes}

    def _history(self, shapes: Sequence[Shape]) -> History:
        populations = list(dict.fromkeys(shape.population for shape in shapes))
        combinable = all(shape.grid.declared for shape in shapes)
        return History.of(self.ledger, digest_of(shapes), populations, combinable=combinable)

    def _answer(self, plan: Plan, purpose: str, owed: Mapping[str, Guarantee]) -> tuple[Purchase, Stored]:
        """The way of a question. Preparing reads rows but tells nobody anything; the charge stands from the reservation on."""
        self._progress("preparing the tables")
        tables = {part.shape.question.table: self._registry.rows_of(part.shape.question.table) for part in plan.parts}
        compiled = []  # what cannot be compiled is refused before it is charged
        for number, part in enumerate(plan.parts):
            prepared = tables[part.shape.question.table]
            request = request_of(part, number, prepared)
            compiled.append((request, prepared.compiled(request)))
        with in_turn([table.turn() for table in tables.values()], self._time_limit or plan.time_limit):
            return self._charged(plan, purpose, owed, tables, compiled)

    def _charged(
        self,
        plan: Plan,
        purpose: str,
        owed: Mapping[str, Guarantee],
        tables: Mapping[str | Relation, Answering],
        compiled: Sequence[Asked],
    ) -> tuple[Purchase, Stored]:
        self._progress("reserving the cost")
        if self._about_to_charge is not None:
            self._about_to_charge(plan.digest, plan.costs)
        ceilings, shares = self._bounds.ceilings, self._bounds.shares
        reservation = self.ledger.reserve(
            plan.costs,
            who=self.who,
            what=plan.digest,
            purpose=purpose,
            at_most=ceilings,
            share_at_most=shares,
            drawn=owed,
        )

        def noisy() -> list[Found]:
            return [
                measured(part, tables[part.shape.question.table], self._random, asked, reservation.id)
                for part, asked in zip(plan.parts, compiled, strict=True)
            ]

        self._progress("asking the engine")
        with stopped_after(self._time_limit or plan.time_limit, tables.values()) as clock:
            try:
                found = scrubbed(noisy)
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

    def _owed(self, history: History, spends: Mapping[str, Spend] | None) -> dict[str, Guarantee]:
        """What this person's allotment is debited in all for the use of what others paid: by the rule above; all of it where no
        spend was named."""
        owed = history.paid_by_others(self.who)
        if spends is None:
            return owed
        own, found = history.paid_by(self.who), {}
        for population, cost in owed.items():
            named = spends[population].whole()
            rest = less(named, own[population]) if population in own else named
            if rest is not None:
                found[population] = least(cost, rest)
        return found

    def _finer(self, shape: Shape, spend: Spending) -> tuple[Refinement, History] | None:
        """How the answer follows from a finer release which this session bought for as much, where there is one."""
        asked = self._asked.get(subject(shape), OrderedDict())
        if not asked or shape.digest in asked:
            return None
        wanted = spend_of(spend, self.ledger.budget(shape.population))
        for finer in reversed(list(asked.values())):
            how = refinement(shape, finer)
            history = self._history([finer]) if how is not None else History()
            if how is not None and history.stored and history.had(finer.population) >= wanted.amount:
                return how, history
        return None

    def _remember(self, shape: Shape) -> None:
        """What was bought in this session, of each table the latest."""
        asked = self._asked.setdefault(subject(shape), OrderedDict())
        asked[shape.digest] = shape
        asked.move_to_end(shape.digest)
        while len(asked) > _MOST_ASKED:
            asked.popitem(last=False)

    def _debit(self, owed: Mapping[str, Guarantee], digest: str, purpose: str) -> None:
        """Debits so much in all: what was debited for this question before is taken off in the ledger's own step."""
        if owed:
            shares = self._bounds.shares
            self.ledger.charge_allotment(owed, who=self.who, what=digest, purpose=purpose, share_at_most=shares, in_all=True)


def _no_share(error: BudgetExceeded) -> BudgetExceeded:
    """Why somebody is not given what others paid for, although no population is charged for it."""
    return BudgetExceeded(
        "A stored answer was refused",
        why=f"it was charged to others, its use counts against your own share, and {error.why}",
        instead="a spend= of what is left of the share, which debits no more; or a larger share from the population's owner",
        rule=error.rule,
    )


class _Answered(Exception):
    """Another attempt under the same charge has settled it."""
