"""The one door: reserve, aggregate, noise, settle, release, in that order and nowhere else.

Exact values computed from private rows exist in calls made through `sealed`, between the reservation and the noise. What leaves
is a `Release`, and it leaves after its charge and itself were committed in one transaction.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Self

from cloister.errors import CloisterError, EngineError, InvalidParameter, LedgerError, UnsupportedQuery
from cloister.ledger import Ledger
from cloister.noise import Random, default_random
from cloister.privacy import Exact, Guarantee
from cloister.session.afford import Affordable, affordable
from cloister.session.answer import aggregations_of, assembled, measured, refined
from cloister.session.bias import buy_bias
from cloister.session.history import History, Purchase
from cloister.session.limits import checked_limit, stopped_after
from cloister.session.plan import Plan, following, price
from cloister.session.question import Question
from cloister.session.refinement import refinement, subject
from cloister.session.registry import Registry, Table
from cloister.session.release import Release
from cloister.session.run import Outcome, RowMethod, RunPlan, run_blob, run_plan
from cloister.session.sealed import sealed
from cloister.session.shape import Shape, check_numbers, digest_of
from cloister.session.spend import Spending, amount_of, less, spend_of
from cloister.session.store import Found, Stored, to_bytes
from cloister.session.within import least_spend, least_spend_after
from cloister.session.workload import Workload, assembled_workload, expected_workload, workload_of
from cloister.tables import Prepared, check_aggregation

_MOST_ASKED = 64


class Door:
    """Tables, their populations' budgets in a ledger, and the only way to an answer.

    >>> from cloister.session.examples import small_door
    >>> from cloister.session import Count
    >>> with small_door() as door:
    ...     answer = door.measure(Question(table="people", by=("sex",), statistics=(Count(),)), spend="0.5")
    ...     answer.num_rows, str(door.spent), str(door.remaining)
    (2, 'ε = 0.5', 'ε = 0.5')
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        budget: Guarantee | Mapping[str, Guarantee] | None = None,
        ledger: Ledger | str | Path | None = None,
        *,
        who: str = "owner",
        random: Random | None = None,
        progress: Callable[[str], None] | None = None,
        time_limit: float | None = None,
    ) -> None:
        """`budget` is each population's, or a mapping from population to budget; None takes what the ledger already holds.

        `progress` is told the name of each stage of a question, and nothing of what is found there. `time_limit` is how many
        seconds the engine may work on one question; None lets it follow from the plan.
        """
        if not isinstance(tables, Mapping) or not tables:
            raise InvalidParameter(
                "A session without tables was refused",
                why="there is nothing to ask about",
                instead='cl.Session({"people": people}, …)',
            )
        self.tables: dict[str, Table] = dict(tables)
        self.who = who
        self._progress = progress or _silent
        self._time_limit = checked_limit(time_limit)
        self._asked: dict[tuple[str, str, str], OrderedDict[str, Shape]] = {}
        self._random = random or default_random()
        self._owns_ledger = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self._last: tuple[dict[str, Guarantee], dict[str, Guarantee]] | None = None
        try:
            if self._random.marked and self.ledger.durable:
                raise LedgerError(
                    "The session was refused",
                    why="its noise would come from a generator made for tests, which can be foretold, and its ledger is durable",
                    instead="a session without random=, or without ledger=",
                )
            self._registry = Registry(self.tables, self.ledger, self._random)
            self._registry.open(budget, who=who)
        except CloisterError:
            if self._owns_ledger:
                self.ledger.close()
            raise

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def explain(self, question: Question | Sequence[Question], spend: Spending) -> Plan:
        """What would be measured, with which error, at which cost: spends nothing and reads no row.

        What was bought before is counted in: the cost is what is still to pay, and the error that of all readings together.
        """
        questions = [question] if isinstance(question, Question) else list(question)
        shapes = self._shapes(questions)
        plan, _ = self._planned(shapes, spend)
        slow = [
            f"table {name!r} could not be prepared, since its database is read-only: each question works out the cap anew, slower"
            for name in dict.fromkeys(name for each in questions for name in self._registry.slow(each.table))
        ]
        return replace(plan, notes=tuple(slow))

    def measure(self, question: Question, spend: Spending, *, purpose: str = "", fresh: bool = False) -> Release:
        """The private answer to one question.

        The same question again is answered from the ledger when its stored releases are worth the spend already; a larger spend
        buys the difference, and the readings are combined by inverse variance. A coarser question that follows from a release
        which cost as much, and which this session holds, is read off that release and costs nothing, with the margin that the
        sum of its groups has; with `fresh` it is bought anew.
        """
        shapes = self._shapes([question])
        if not fresh:
            follows = self._following(shapes[0], question, spend, purpose)
            if follows is not None:
                return follows
        return self._measured(shapes, [question], spend, purpose)[0]

    def measure_all(self, questions: Sequence[Question], spend: Spending, *, purpose: str = "") -> list[Release]:
        """The private answers to several questions that share one spend, split so that the total error is least, under one
        charge.
        """
        return self._measured(self._shapes(questions), questions, spend, purpose)

    def workload_all(self, questions: Sequence[Question], spend: Spending, *, purpose: str = "") -> list[Release]:
        """The private answers to several questions measured together: groupings of the same rows share measurements and agree
        (`workload.py`)."""
        shapes = self._shapes(questions)
        workload = self._workload(questions, shapes, spend)
        plan, history = self._bought(self._shapes(workload.measured), spend, purpose, workload.weights)
        return self._tied(assembled_workload(workload, shapes, plan, history, who=self.who), questions)

    def explain_workload(self, questions: Sequence[Question], spend: Spending) -> Plan:
        """What `workload_all` would measure, with which error, at which cost: spends nothing and reads no row."""
        shapes = self._shapes(questions)
        workload = self._workload(questions, shapes, spend)
        plan, _ = self._planned(self._shapes(workload.measured), spend, workload.weights)
        return replace(plan, wanted=expected_workload(workload, shapes, plan))

    def spend_within(self, question: Question, within: float, *, confidence: float = 0.95) -> Guarantee:
        """The least spend for which every count and sum of the question has a margin of at most `within`, counting in what was
        bought before.
        """
        shape = self._registry.shape(question)
        budget = self.ledger.budget(shape.population)
        return least_spend(shape, budget, within, confidence, self._history([shape]))

    def spend_after_pilot(
        self, question: Question, within: float, pilot: Spending, *, confidence: float = 0.95, purpose: str = ""
    ) -> Guarantee:
        """The least spend for which every cell's margin is about `within`, where that depends on private sizes: these are bought
        first, as an answer to the question itself for `pilot`, which counts towards the spend."""
        self.measure(question, spend=pilot, purpose=purpose, fresh=True)
        shape = self._registry.shape(question)
        history = self._history([shape])
        if not history.combinable:
            raise UnsupportedQuery(
                "A pilot was refused",
                why="two releases with undeclared keys show different groups and can't be combined",
                instead='spend="0.1", or declared keys',
            )
        return least_spend_after(shape, self.ledger.budget(shape.population), within, confidence, history)

    def afford(
        self, question: Question | Sequence[Question], spends: Sequence[Exact] | None = None, *, confidence: float = 0.95
    ) -> Affordable:
        """The expected margins of a question over a range of spends, by default parts of what remains: spends nothing."""
        return affordable(lambda spend: Door.explain(self, question, spend), self.remaining, spends, confidence)

    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "") -> Outcome:
        """Hands the rows of a table to a method that declares its guarantee, and lets out only what it releases."""
        plan = self.explain_run(method, table, spend)
        prepared = self._registry.prepare(table)
        reservation = self.ledger.reserve({plan.population: plan.cost}, who=self.who, what=plan.digest, purpose=purpose)

        def released() -> bytes:
            rows = prepared.rows(list(method.columns))
            return run_blob(method.release(rows, prepared.declaration, plan.cost, self._random), marked=self._random.marked)

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

    def explain_run(self, method: RowMethod, table: str, spend: Spending) -> RunPlan:
        """What `run` would charge, and for which guarantee: spends nothing and reads no row."""
        entry = self._registry.asked(table)
        return run_plan(method, entry, spend_of(spend, self.ledger.budget(entry.population)).whole())

    # ── budgets ──────────────────────────────────────────────────────────────────────────────────

    @property
    def spent_by(self) -> dict[str, Guarantee]:
        """What has been spent of each population's budget."""
        if self._last is not None:
            return self._last[0]
        return {population: self.ledger.spent(population) for population in self._registry.populations}

    @property
    def spent(self) -> Guarantee:
        """What has been spent; with several populations, of the one that has spent most."""
        return max(_some(self.spent_by), key=amount_of)

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of each population's budget."""
        if self._last is not None:
            return self._last[1]
        return {population: self.ledger.remaining(population) for population in self._registry.populations}

    @property
    def remaining(self) -> Guarantee:
        """What is left; with several populations, of the one that has least."""
        return min(_some(self.remaining_by), key=amount_of)

    def prepared(self, table: str) -> Prepared:
        """The prepared table: for its owner, whose report it holds."""
        return self._registry.prepare(table)

    def close(self) -> None:
        """Drops the prepared tables and closes the ledger that this session opened; what was spent can still be read."""
        if self._last is None:
            with suppress(CloisterError):  # a ledger that was closed elsewhere has nothing more to say
                self._last = (self.spent_by, self.remaining_by)
        self._registry.close()
        if self._owns_ledger:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        left = self.remaining_by
        spent = ", ".join(f"{population!r}: {cost}, {left[population]} left" for population, cost in self.spent_by.items())
        return f"<{type(self).__name__} {', '.join(self.tables)}; spent of {spent or 'nothing'}>"

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _shapes(self, questions: Sequence[Question | Shape]) -> list[Shape]:
        shapes = [each if isinstance(each, Shape) else self._registry.shape(each) for each in questions]
        if not shapes:
            raise InvalidParameter(
                "An empty list of questions was refused",
                why="there is nothing to measure",
                instead="measure_all([question], …)",
            )
        check_numbers(shapes)
        return shapes

    def _workload(self, questions: Sequence[Question], shapes: Sequence[Shape], spend: Spending) -> Workload:
        measure = spend_of(spend, self.ledger.budget(shapes[0].population)).measure
        return workload_of(questions, shapes, measure)

    def _measured(self, shapes: Sequence[Shape], questions: Sequence[Question], spend: Spending, purpose: str) -> list[Release]:
        plan, history = self._bought(shapes, spend, purpose)
        if len(shapes) == 1:
            self._remember(shapes[0])
        return self._tied(assembled(plan, history, who=self.who), questions)

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

    def _following(self, shape: Shape, question: Question, spend: Spending, purpose: str) -> Release | None:
        """The answer that follows from a finer release which this session bought for as much, where there is one."""
        wanted = spend_of(spend, self.ledger.budget(shape.population))
        asked = self._asked.get(subject(shape), OrderedDict())
        if shape.digest in asked:
            return None
        for finer in reversed(list(asked.values())):
            how = refinement(shape, finer)
            history = self._history([finer]) if how is not None else History()
            if how is not None and history.stored and history.had(finer.population) >= wanted.amount:
                self._debit(history, finer.digest, purpose)
                [release] = self._tied([refined(how, history, who=self.who)], [question])
                return release
        return None

    def _remember(self, shape: Shape) -> None:
        """What was bought in this session, of each table the latest."""
        asked = self._asked.setdefault(subject(shape), OrderedDict())
        asked[shape.digest] = shape
        asked.move_to_end(shape.digest)
        while len(asked) > _MOST_ASKED:
            asked.popitem(last=False)

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

    def _tied(self, releases: Sequence[Release], questions: Sequence[Question]) -> list[Release]:
        def tied(release: Release, question: Question) -> Release:
            declaration = self._registry.subject(question.table).declaration
            return replace(release, buy_bias=lambda spend: buy_bias(self, question, declaration, spend, "bias"))

        return [tied(release, question) for release, question in zip(releases, questions, strict=True)]


def _silent(_: str) -> None:
    """Nobody listens."""


class _Answered(Exception):
    """Another attempt under the same charge has settled it."""


def _some(costs: Mapping[str, Guarantee]) -> list[Guarantee]:
    if not costs:
        raise InvalidParameter(
            "The session's spending was asked for", why="it has no private table, so there is no budget", instead="session.tables"
        )
    return list(costs.values())
