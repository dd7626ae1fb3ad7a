"""The way of a question from its plan to a stored answer: reserve, aggregate, noise, settle, in that order and nowhere else.

Exact values computed from private rows exist in calls made through `scrubbed`, between the reservation and the noise. What was
bought before is counted in, so that nothing is paid twice; what others paid for is charged to this person's share, once, by
the rule that `analyst.py` states.
"""

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from cloister.errors import BudgetExceeded, EngineError, LedgerError
from cloister.ledger.operations import SettledMeanwhile
from cloister.privacy import Guarantee
from cloister.session.analyst import Analyst
from cloister.session.execution.answer import Asked, aggregations_of, measured, request_of
from cloister.session.execution.history import History, Purchase
from cloister.session.execution.kinds import as_bought
from cloister.session.planning.plan import Plan, following, price
from cloister.session.planning.shape import Shape, digest_of, numbers_of
from cloister.session.questions.limits import in_turn, stopped_after
from cloister.session.questions.spend import Spend, Spending, amount_of, spend_of
from cloister.session.releases.store import Found, Stored, to_bytes
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Answering, Relation, check_aggregation
from cloister.tables.engines.noised import NoisedRequest

Weights = Sequence[Fraction] | None
"""The part of the spend that each shape of a workload takes."""


def bought(
    analyst: Analyst,
    shapes: Sequence[Shape],
    spends: Mapping[str, Spend],
    purpose: str,
    weights: Weights = None,
    *,
    margins: bool = False,
) -> tuple[Plan, History]:
    """The plan and the history that its answer stands on, after what was missing has been bought."""
    with analyst.registry.flights.one((analyst.who, digest_of(shapes)), limit=analyst.time_limit):
        plan, history = planned(analyst, shapes, spends, weights, margins=margins)
        owed = analyst.owed(history, spends)
        if not plan.repeated:
            try:
                purchase, fresh = _answer(analyst, plan, purpose, owed, history.seen)
            except (_Answered, SettledMeanwhile):
                plan, history = planned(analyst, shapes, spends, weights, margins=margins)
                if not plan.repeated:  # what was first is not of all rows
                    raise EngineError(
                        "The query was not answered",
                        why="another attempt under the same charge was first, and a site dropped out of it",
                        instead="ask again",
                    ) from None
                analyst.charge_share(analyst.owed(history, spends), plan.digest, purpose)
                return plan, history
            if len({part.without for part in fresh.parts}) > 1:  # put together they would be true of nobody
                raise EngineError(
                    "The query was not answered",
                    why="a site dropped out between its parts, so that they are about different rows; the charge stands",
                    instead="ask again: it is charged again",
                )
            return plan, history.with_fresh(purchase, fresh)
    analyst.charge_share(owed, plan.digest, purpose)
    return plan, history


def planned(
    analyst: Analyst, shapes: Sequence[Shape], spends: Mapping[str, Spend], weights: Weights = None, *, margins: bool = False
) -> tuple[Plan, History]:
    """The plan of what is still to buy, and the history that its readings will join; `margins`: bought for the sake of these."""
    history = analyst.history(shapes)
    if margins or history.stored:
        shapes = as_bought(shapes, history, margins=margins)
    workspace, numbers = analyst.registry.workspace, numbers_of(shapes)
    for shape in shapes:
        for aggregation in aggregations_of(shape, None):
            check_aggregation(aggregation, shape.declaration)
    workspace.check_numbers(numbers)
    missing = history.missing(spends)
    history = history.usable(fresh=missing is not None)
    return following(price(shapes, missing or spends, weights), history, missing=missing is not None), history


def stored(
    analyst: Analyst, shapes: Sequence[Shape], spend: Spending | None, purpose: str, weights: Weights = None
) -> tuple[Plan, History] | None:
    """The plan and the history of what was bought already, where there is any, and it is worth the spend if one is named."""
    history = analyst.history(shapes)
    spends = None if spend is None else analyst.spends(shapes, spend)
    if not history.stored or (spends is not None and history.missing(spends) is not None):
        return None
    plan = repeated(analyst, shapes, history, weights)
    owed = analyst.owed_for_all(history, plan.digest) if spends is None else analyst.owed(history, spends)
    try:
        analyst.charge_share(owed, plan.digest, purpose)
    except BudgetExceeded as error:
        raise _no_share(error) from None
    return plan, history


def given(analyst: Analyst, shape: Shape) -> tuple[Plan, History] | None:
    """The plan and the history of one question's answer that this person paid for before, or whose share was charged for all of
    it: nothing is charged now. None where that is none."""
    history, digest, drawn = analyst.history([shape]), digest_of([shape]), analyst.ledger.drawn
    if analyst.who in {each.who for each in history.purchases}:  # not what others have added to it
        history = history.only([each.who == analyst.who for each in history.purchases])
    others = history.paid_by_others(analyst.who).items()
    if not history.stored or any(amount_of(drawn(each, analyst.who, digest)) < amount_of(cost) for each, cost in others):
        return None
    return repeated(analyst, [shape], history), history


def repeated(analyst: Analyst, shapes: Sequence[Shape], history: History, weights: Weights = None) -> Plan:
    """The plan of what was bought already."""
    shapes = as_bought(shapes, history)
    paid = {name: spend_of(cost, analyst.ledger.budget(name)) for name, cost in history.cost().items()}
    return following(price(shapes, paid, weights), history, missing=False)


def _answer(
    analyst: Analyst, plan: Plan, purpose: str, owed: Mapping[str, Guarantee], seen: Container[int] | None
) -> tuple[Purchase, Stored]:
    """The way of a question. Preparing reads rows but tells nobody anything; the charge stands from the reservation on."""
    analyst.progress("preparing the tables")
    snapshot, limit = analyst.registry.snapshot, analyst.time_limit or plan.time_limit
    tables = {part.shape.question.table: snapshot.rows_of(part.shape.question.table) for part in plan.parts}
    charge, compiled, turns, requests = "", [], [], list[NoisedRequest]()  # what cannot be compiled is refused, not charged
    for number, part in enumerate(plan.parts):
        prepared = tables[part.shape.question.table]
        if prepared.elsewhere and not charge:
            charge = analyst.earlier(plan.costs, plan.digest)
        requests.append(replace(request_of(part, number, prepared), who=analyst.who, purpose=purpose, charge=charge))
        turns.append(prepared.turn())
    for request in _with_besides(requests) if len(requests) > 1 else requests:
        prepared = tables[request.table]
        compiled.append((request, prepared.compiled(request)))
    with in_turn(turns, limit):
        return _charged(analyst, plan, purpose, owed, seen, tables, compiled, limit)


def _with_besides(requests: Sequence[NoisedRequest]) -> list[NoisedRequest]:
    """The last about each table, with the others beside it."""
    last = {each.names: each for each in requests}
    return [
        replace(each, besides=tuple(other for other in requests if other.names == each.names and other is not each))
        if each is last[each.names]
        else each
        for each in requests
    ]


def _charged(
    analyst: Analyst,
    plan: Plan,
    purpose: str,
    owed: Mapping[str, Guarantee],
    seen: Container[int] | None,
    tables: Mapping[str | Relation, Answering],
    compiled: Sequence[Asked],
    limit: float,
) -> tuple[Purchase, Stored]:
    ledger, random = analyst.ledger, analyst.registry.random
    analyst.progress("reserving the cost")
    reservation = analyst.reserve(plan.costs, plan.digest, purpose, drawn=owed, seen=seen)

    def noisy() -> list[Found]:
        return [
            measured(part, tables[part.shape.question.table], random, asked, reservation.id)
            for part, asked in zip(plan.parts, compiled, strict=True)
        ]

    analyst.progress("asking the engine")
    firm, needs = analyst.time_limit is not None, plan.time_limit
    with stopped_after(limit, tables.values(), firm=firm, needs=needs, attempt=reservation.attempt) as clock:
        try:
            found = scrubbed(noisy)
        except KeyboardInterrupt:
            clock.stop()
            raise
        except EngineError:
            clock.check()
            raise
    analyst.progress("settling the charge")
    try:
        ledger.settle(reservation, to_bytes(found, marked=random.marked), marked=random.marked)
    except LedgerError:
        if any(each.id == reservation.id for each in ledger.find(plan.digest, plan.costs)):
            raise _Answered from None  # another attempt under the same charge was first; its answer is the one that leaves
        raise
    purchase = Purchase(id=reservation.id, who=analyst.who, when=time.time(), costs=reservation.costs)
    return purchase, Stored(tuple(found), random.marked)


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
