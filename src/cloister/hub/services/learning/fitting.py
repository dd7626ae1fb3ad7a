"""A model is learnt: allowed, charged, kept and written down; as a job, since it may take long.

The charge is the ledger's, as a question's is. A method of sums asks the door for them, and what was bought before is answered
again at no cost; any other reads rows through `Session.run`, and is charged each time it is ordered.

What a killed process had begun is begun once more, by itself, under what it had charged (`charges.py`). It is decided again:
whoever was blocked or lost a grant meanwhile gets no model, and the charge stands. The model is kept in the transaction that ends
the job, so an order has one model at most. What died twice has failed; its charge stands too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from cloister.errors import AccessDenied, BudgetExceeded, CloisterError, InvalidParameter, LedgerError
from cloister.hub.caller import Caller
from cloister.hub.generation import generation
from cloister.hub.ids import new_id
from cloister.hub.policy import write_policy
from cloister.hub.problems import Missing, problem_of
from cloister.hub.records.learning import LearntModel
from cloister.hub.service import JobType
from cloister.hub.services.access import check_together, context_of, facts_of
from cloister.hub.services.access.algorithms import under
from cloister.hub.services.asking.risks import check_limits
from cloister.hub.services.asking.standing import present, withheld
from cloister.hub.services.catalogue.live import Exchanged, steadily
from cloister.hub.services.jobs import Stopped, Superseded, caller_of_job, came_of, submit
from cloister.hub.services.learning.charges import Charges, Watched
from cloister.hub.services.learning.expected import lost
from cloister.hub.services.learning.made_up import made_up
from cloister.hub.services.learning.membership import attacked, lines_of
from cloister.hub.services.learning.order import Order, model_of
from cloister.hub.services.learning.ready import ACTION, Ready, purse_of, ready
from cloister.hub.services.trail import write, write_alone

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.attacks import MembershipResult
    from cloister.hub.hub import Hub
    from cloister.hub.service import Progress
    from cloister.learn.base import PrivateModel
    from cloister.session import Door

__all__ = ["FIT", "fit_later", "look"]

_STAGES = {"preparing the tables": 0.1, "reserving the cost": 0.2, "learning": 0.3, "keeping the model": 0.9}
_FEW = 60


def look(hub: Hub, caller: Caller, order: Order) -> Ready:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    try:
        with hub.database.reading() as db:
            found = ready(hub, db, caller, order)
        _tried(found.order, found)
    except CloisterError as error:
        _refused(hub, caller, order, error)
        raise
    return found


def fit_later(db: Db, hub: Hub, caller: Caller, order: Order) -> str:
    """Put an order into the queue; the id of its job. From where and how the person came is kept for the policy."""
    payload = {"order": asdict(replace(order, parameters=dict(order.parameters))), "came": came_of(caller)}
    return submit(db, hub, caller, "learning.fit", payload, purpose=order.purpose)


def _fit(hub: Hub, caller: Caller, order: Order, progress: Progress, tell: Callable[[str], None]) -> dict[str, Any]:
    """Learn it, as long as the person and the token that it was ordered with may; the job's result."""
    charges = Charges(hub, progress)
    try:
        tell("preparing the tables")
        with _after(charges), hub.database.reading() as db:
            caller = present(hub, db, caller)

        def decide() -> Ready:
            with _after(charges), hub.database.reading() as db:
                return ready(hub, db, caller, order, progress=tell, paid=charges.before)

        found, done = steadily(decide, lambda found: _fitted(hub, found, charges, tell))
        tell("keeping the model")
        return _keep(hub, caller, found, done, charges, progress)
    except Superseded:  # whoever has it now tells of it
        raise
    except CloisterError as error:
        _refused(hub, caller, order, error, charges)
        raise


@contextmanager
def _after(charges: Charges) -> Iterator[None]:
    """Where an attempt before this one was charged, a refusal says so."""
    try:
        yield
    except Exchanged:  # it is decided once more
        raise
    except CloisterError as error:
        if charges.before and problem_of(error).status < 500:
            raise _withheld(error) from None
        raise


@dataclass(frozen=True, kw_only=True)
class _Done:
    """A model, and what made-up rows say of such a one: what an attack found, and what privacy is expected to cost."""

    model: PrivateModel
    attack: MembershipResult | None
    loss: dict[str, str] | None


def _fitted(hub: Hub, found: Ready, charges: Charges, tell: Callable[[str], None]) -> _Done:
    """The model, learnt from the rows that were decided on, however many questions it asks of them."""
    order = found.order
    _tried(order, found)
    attack = attacked(hub, order, found.table, found.cost)  # before the charge: after it, nothing more can fail
    loss = lost(hub, order, found.table, found.cost)
    model = model_of(order)
    tell("reserving the cost")
    model.fit_table(
        cast("Door", Watched(found.session, charges, tell)),
        order.table,
        features=order.features,
        target=order.target or None,
        spend=order.spending,
        purpose=order.purpose,
    )
    return _Done(model=model, attack=attack, loss=loss)


def _tried(order: Order, found: Ready) -> None:
    """Learn from a few made-up rows first: a wrong parameter is found before anything is charged."""
    model, target = model_of(order), order.target or None  # first: it refuses where learning is not installed
    from cloister.learn.encoding import Encoder
    from cloister.learn.from_tables import check_target, declare

    check_target(model, list(order.features), target)
    encoder = Encoder.of(found.table.columns, list(order.features))
    declare(model, encoder, found.table, target)
    allowance = model._allowance(found.cost, rows=found.table.max_rows or 1)
    try:
        X, y = made_up(model, encoder, _FEW)
        model._fitted(model._checked(X, y), allowance)
    except CloisterError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError):
        raise InvalidParameter(
            "The model is invalid", why="the method can't work with these parameters", instead=f"{order.method}() as it is"
        ) from None


def _keep(
    hub: Hub,
    caller: Caller,
    found: Ready,
    done: _Done,
    charges: Charges,
    progress: Progress,
) -> dict[str, Any]:
    """Keep the model and end the job, in one transaction: so no order has two models, and no job ends without its own."""
    order, model = found.order, done.model
    population, version = found.which.population, str(getattr(found.table, "version", ""))
    now = hub.now()
    membership = None if model.guarantee_ is None else lines_of(model.guarantee_, done.attack)
    card = model.card(data=order.table, date=f"{now:%Y-%m-%d}", expected=done.loss, membership=membership)
    declared = {name: found.table.column(name).describe() for name in order.features}
    row = LearntModel(
        id=new_id(),
        person=caller.id,
        project=order.project,
        title=order.title,
        algorithm=order.algorithm,
        method=order.method,
        data_sets=[found.which.id],
        table=order.table,
        columns={"features": [[name, declared[name]] for name in order.features], "target": order.target, "version": version},
        purpose=order.purpose,
        cost={population: str(model.guarantee_)},
        card=card.to_json(),
        body=model.to_json(),
        policy=write_policy(found.policy),
        created=now,
    )
    result, paid = {"model": row.id, "href": f"/models/{row.id}"}, charges.paid
    with hub.database.begin() as db:
        progress.finish(db, result)
        _check_standing(hub, db, caller, found)
        db.add(row)
        db.flush()
        write(
            db,
            hub,
            caller,
            ACTION,
            kind="model",
            object_id=row.id,
            purpose=order.purpose,
            cost=paid,
            data_sets=list(row.data_sets),
            columns=[f"{order.table}.{name}" for name in sorted(order.columns)],
            method=order.method,
            **charges.told,
            **under(db, order.algorithm),
        )
    return result


def _check_standing(hub: Hub, db: Db, caller: Caller, found: Ready) -> None:
    """Refuse to keep a model that could not be ordered any more. Money is not asked about again: it is paid."""
    order = found.order
    try:
        now = present(hub, db, caller)
        if generation(db) == found.generation and (now.roles, now.projects) == (caller.roles, caller.projects):
            return
        facts = facts_of(hub, db)
        which = facts.data_sets.get(found.which.id)
        if which is None:
            raise AccessDenied("The model was denied", why="the data set was deleted", instead="another data set")
        columns = {which.id: frozenset(order.columns)}
        context = context_of(
            hub,
            now,
            purpose=order.purpose,
            columns=columns,
            behind=found.behind,
            project=order.project,
            method=order.method,
            algorithm=order.algorithm,
        )
        decisions = check_together(hub, db, now, ACTION, [which], context)
        who = purse_of(facts, now, order.project)
        decision = check_limits(hub, db, now, ACTION, [which], decisions, context, who)[which.id]
        if decision.narrowed.rows not in ("", found.decision.narrowed.rows):
            raise AccessDenied("The model was denied", why="fewer rows are open to you now", instead="train it again")
    except CloisterError as error:
        raise _withheld(error) from None


def _withheld(error: CloisterError) -> AccessDenied:
    return withheld(
        "The model was not released",
        f"{error.why}, after the request was submitted; it was charged, and the charge stands",
        error,
    )


def _refused(hub: Hub, caller: Caller, order: Order, error: CloisterError, charges: Charges | None = None) -> None:
    outcome = "denied" if isinstance(error, AccessDenied) else "failed"
    hub.meter.question("denied" if outcome == "denied" else "over-budget" if isinstance(error, BudgetExceeded) else "refused")
    with hub.database.reading() as db:
        algorithm = under(db, order.algorithm, known=not isinstance(error, Missing))
    write_alone(
        hub,
        caller,
        ACTION,
        kind="model",
        purpose=order.purpose,
        outcome=outcome,
        cost=_paid(charges),
        method=order.method,
        table=order.table[:200],
        error=type(error).__name__,
        rule=error.rule if isinstance(error, CloisterError) else "",
        **({} if charges is None else charges.told),
        **algorithm,
    )


def _paid(charges: Charges | None) -> dict[str, str]:
    """What was charged, as far as the ledger can be asked now."""
    try:
        return {} if charges is None else charges.paid
    except LedgerError:
        return {}


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Carry it out."""
    order = payload["order"]

    def tell(stage: str) -> None:
        if progress.stopped() and stage in ("preparing the tables", "reserving the cost"):  # what follows is not charged yet
            raise Stopped
        progress.tell(stage, _STAGES.get(stage))

    wanted = Order(**{**order, "features": tuple(order["features"])})
    return _fit(hub, caller_of_job(progress, payload), wanted, progress, tell)


FIT = JobType(kind="learning.fit", title="Model", run=_run)
