"""A model is learnt: allowed, charged, kept and written down; as a job, since it may take long.

The charge is the ledger's, as a question's is. A method of sums asks the door for them, and what was bought before is answered
again at no cost; any other reads rows through `Session.run`, and is charged each time it is ordered.

What a killed process had begun is begun once more, by itself, under what it had charged (`hub/work/attempts.py`). It is decided
again: whoever was blocked or lost a grant meanwhile gets no model, and the charge stands. The model is kept in the transaction
that ends the job, so an order has one model at most. What died twice has failed; its charge stands too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.errors import CloisterError, InvalidParameter, LedgerError
from cloister.hub.caller import Caller
from cloister.hub.ids import new_id
from cloister.hub.policy import write_policy
from cloister.hub.records.learning import LearntModel
from cloister.hub.service import JobType
from cloister.hub.services.access import under
from cloister.hub.services.jobs import Superseded, caller_of_job, came_of, submit
from cloister.hub.services.learning.authorised import ACTION, MODEL, AuthorisedFit, ready
from cloister.hub.services.learning.expected import lost
from cloister.hub.services.learning.made_up import made_up
from cloister.hub.services.learning.membership import attacked, lines_of
from cloister.hub.services.learning.order import ORDER, Order, model_of
from cloister.hub.services.trail import write
from cloister.hub.work.attempts import AttemptSession, Charges
from cloister.hub.work.held import steadily
from cloister.hub.work.recheck import check_standing, present
from cloister.hub.work.refusals import note_refusal
from cloister.hub.work.submitting import submit_once, telling

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.attacks import MembershipResult
    from cloister.hub.hub import Hub
    from cloister.hub.service import Progress
    from cloister.learn.frame.base import PrivateModel

__all__ = ["FIT", "submit_order"]

_STAGES = {"preparing the tables": 0.1, "reserving the cost": 0.2, "learning": 0.3, "keeping the model": 0.9}
_FEW = 60


def _looked(hub: Hub, caller: Caller, order: Order) -> AuthorisedFit:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    try:
        with hub.database.reading() as db:
            found = ready(hub, db, caller, order)
        _tried(found.order, found)
    except CloisterError as error:
        _refused(hub, caller, order, error)
        raise
    return found


def submit_order(hub: Hub, caller: Caller, key: str, request: bytes, order: Order) -> str:
    """Put an order into the queue; the id of its job. From where and how the person came is kept for the policy."""

    def submitted(db: Db, found: AuthorisedFit) -> str:
        payload = {"order": ORDER.told(found.order) | {"parameters": dict(found.order.parameters)}, "came": came_of(caller)}
        return submit(db, hub, caller, "learning.fit", payload, purpose=order.purpose)

    return submit_once(hub, caller, key, request, lambda: _looked(hub, caller, order), submitted)


def _fit(hub: Hub, caller: Caller, order: Order, progress: Progress, tell: Callable[[str], None]) -> dict[str, Any]:
    """Learn it, as long as the person and the token that it was ordered with may; the job's result."""
    charges = Charges(hub, progress)
    try:
        tell("preparing the tables")
        with charges.standing(MODEL.withheld), hub.database.reading() as db:
            caller = present(hub, db, caller)

        def decide() -> AuthorisedFit:
            with charges.standing(MODEL.withheld), hub.database.reading() as db:
                return ready(hub, db, caller, order, progress=tell, paid=charges.before)

        found, done = steadily(decide, lambda found: _fitted(hub, found, charges, tell))
        tell("keeping the model")
        return _keep(hub, caller, found, done, charges, progress)
    except Superseded:  # whoever has it now tells of it
        raise
    except CloisterError as error:
        _refused(hub, caller, order, error, charges)
        raise


@dataclass(frozen=True, kw_only=True)
class _Done:
    """A model, and what made-up rows say of such a one: what an attack found, and what privacy is expected to cost."""

    model: PrivateModel
    attack: MembershipResult | None
    loss: dict[str, str] | None


def _fitted(hub: Hub, found: AuthorisedFit, charges: Charges, tell: Callable[[str], None]) -> _Done:
    """The model, learnt from the rows that were decided on, however many questions it asks of them."""
    order = found.order
    _tried(order, found)
    attack = attacked(hub, order, found.table, found.cost)  # before the charge: after it, nothing more can fail
    loss = lost(hub, order, found.table, found.cost)
    model = model_of(order)
    tell("reserving the cost")
    model.fit_table(
        AttemptSession(found.session, charges, tell, "learning"),
        order.table,
        features=order.features,
        target=order.target or None,
        spend=order.spending,
        purpose=order.purpose,
    )
    return _Done(model=model, attack=attack, loss=loss)


def _tried(order: Order, found: AuthorisedFit) -> None:
    """Learn from a few made-up rows first: a wrong parameter is found before anything is charged."""
    model, target = model_of(order), order.target or None  # first: it refuses where learning is not installed
    from cloister.learn.frame.encoding import Encoder
    from cloister.learn.frame.from_tables import check_target, declare

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
    found: AuthorisedFit,
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
        check_standing(hub, db, caller, found)
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
            columns=found.columns,
            method=order.method,
            **charges.told,
            **under(db, order.algorithm),
        )
    return result


def _refused(hub: Hub, caller: Caller, order: Order, error: CloisterError, charges: Charges | None = None) -> None:
    how: dict[str, Any] = {"kind": "model", "purpose": order.purpose, "algorithm": order.algorithm, "cost": _paid(charges)}
    told = {} if charges is None else charges.told
    note_refusal(hub, caller, ACTION, error, **how, method=order.method, table=order.table[:200], **told)


def _paid(charges: Charges | None) -> dict[str, str]:
    """What was charged, as far as the ledger can be asked now."""
    try:
        return {} if charges is None else charges.paid
    except LedgerError:
        return {}


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Carry it out."""
    order = payload["order"]
    tell = telling(progress, _STAGES, free=("preparing the tables", "reserving the cost"))
    wanted = ORDER.made({**order, "features": tuple(order["features"])})
    return _fit(hub, caller_of_job(progress, payload), wanted, progress, tell)


FIT = JobType(kind="learning.fit", title="Model", run=_run)
