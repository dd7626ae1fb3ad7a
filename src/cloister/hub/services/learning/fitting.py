"""A model is learnt: allowed, charged, kept and written down; as a job, since it may take long.

The charge is the ledger's, as a question's is. A method of sums asks the door for them, and what was bought before is answered
again at no cost; any other reads rows through `Session.run`, and is charged each time. What a killed process had begun is not
begun again by itself: what it had charged stands, and whoever wants to pay once more submits it once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from cloister.errors import AccessDenied, BudgetExceeded, CloisterError, InvalidParameter
from cloister.hub.caller import Caller
from cloister.hub.generation import generation
from cloister.hub.ids import new_id
from cloister.hub.policy import write_policy
from cloister.hub.problems import Missing
from cloister.hub.records.learning import LearntModel
from cloister.hub.service import JobType
from cloister.hub.services.access import check_together, context_of, facts_of
from cloister.hub.services.access.algorithms import under
from cloister.hub.services.asking.risks import check_risk
from cloister.hub.services.asking.standing import present, withheld
from cloister.hub.services.catalogue.live import steadily
from cloister.hub.services.jobs import Stopped, caller_of_job, came_of, submit
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
    from cloister.privacy import Guarantee
    from cloister.session import Door, Release

__all__ = ["FIT", "fit", "fit_later", "look"]

_STAGES = {"preparing the tables": 0.1, "reserving the cost": 0.2, "learning": 0.3, "keeping the model": 0.9}
_FEW = 60


def look(hub: Hub, caller: Caller, order: Order) -> Ready:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    try:
        with hub.database.reading() as db:
            found = ready(hub, db, caller, order)
        _tried(found.order, found)
    except CloisterError as error:
        _refused(hub, caller, order, error, {})
        raise
    return found


def fit_later(db: Db, hub: Hub, caller: Caller, order: Order) -> str:
    """Put an order into the queue; the id of its job. From where and how the person came is kept for the policy."""
    payload = {"order": asdict(replace(order, parameters=dict(order.parameters))), "came": came_of(caller)}
    return submit(db, hub, caller, "learning.fit", payload, purpose=order.purpose)


def fit(hub: Hub, caller: Caller, order: Order, *, tell: Callable[[str], None]) -> str:
    """Learn it; the id of the model."""
    paid: dict[str, str] = {}
    try:
        tell("preparing the tables")

        def decide() -> Ready:
            with hub.database.reading() as db:
                return ready(hub, db, caller, order, progress=tell)

        found, done = steadily(decide, lambda found: _fitted(hub, found, paid, tell))
        tell("keeping the model")
        return _keep(hub, caller, found, done, paid)
    except CloisterError as error:
        _refused(hub, caller, order, error, paid)
        raise


@dataclass(frozen=True, kw_only=True)
class _Done:
    """A model, and what made-up rows say of such a one: what an attack found, and what privacy is expected to cost."""

    model: PrivateModel
    attack: MembershipResult | None
    loss: dict[str, str] | None


def _fitted(hub: Hub, found: Ready, paid: dict[str, str], tell: Callable[[str], None]) -> _Done:
    """The model, learnt from the rows that were decided on, however many questions it asks of them."""
    order = found.order
    _tried(order, found)
    attack = attacked(hub, order, found.table, found.cost)  # before the charge: after it, nothing more can fail
    loss = lost(hub, order, found.table, found.cost)
    model = model_of(order)
    tell("reserving the cost")
    watched = _Watched(found.session, found.which.population, paid, tell)
    model.fit_table(
        cast("Door", watched),
        order.table,
        features=order.features,
        target=order.target or None,
        spend=order.spending,
        purpose=order.purpose,
    )
    return _Done(model=model, attack=attack, loss=loss)


class _Watched:
    """A session that remembers what was paid through it, and says when a method begins to learn."""

    def __init__(self, session: Door, population: str, paid: dict[str, str], tell: Callable[[str], None]) -> None:
        self._session, self._population, self._paid, self._tell = session, population, paid, tell
        self._sums: dict[str, Guarantee] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def measure(self, *how: Any, **more: Any) -> Any:
        """As the session does."""
        release = self._session.measure(*how, **more)
        self._add(release)
        return release

    def measure_all(self, *how: Any, **more: Any) -> Any:
        """As the session does; several share one charge."""
        releases = self._session.measure_all(*how, **more)
        if releases:
            self._add(releases[0])
        return releases

    def _add(self, release: Release) -> None:
        """A model may be made of several questions, each charged by itself: what it cost is their sum."""
        if not release.provenance.repeated:
            for population, each in release.spent_by.items():
                self._sums[population] = self._sums[population] + each if population in self._sums else each
            self._paid.update({population: str(each) for population, each in self._sums.items()})
        self._tell("learning")

    def run(self, method: Any, table: str, spend: Any, *, purpose: str = "") -> Any:
        """As the session does."""
        self._tell("learning")
        outcome = self._session.run(method, table, spend, purpose=purpose)
        self._paid[self._population] = str(outcome.cost)
        return outcome


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
            "The model was refused", why="the method can't work with these parameters", instead=f"{order.method}() as it is"
        ) from None


def _keep(
    hub: Hub,
    caller: Caller,
    found: Ready,
    done: _Done,
    paid: Mapping[str, str],
) -> str:
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
    with hub.database.begin() as db:
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
            cost=dict(paid),
            data_sets=list(row.data_sets),
            columns=[f"{order.table}.{name}" for name in sorted(order.columns)],
            method=order.method,
            **under(db, order.algorithm),
        )
        return row.id


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
        decision = check_risk(hub, db, now, ACTION, [which], decisions, context, who)[which.id]
        if decision.narrowed.rows not in ("", found.decision.narrowed.rows):
            raise AccessDenied("The model was denied", why="fewer rows are open to you now", instead="train it again")
    except CloisterError as error:
        raise withheld(
            "The model was withheld", f"{error.why}, since it was ordered; it was charged, and the charge stands", error
        ) from None


def _refused(hub: Hub, caller: Caller, order: Order, error: CloisterError, paid: Mapping[str, str]) -> None:
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
        cost=dict(paid),
        method=order.method,
        table=order.table[:200],
        error=type(error).__name__,
        rule=str(getattr(error, "rule", "")),
        **algorithm,
    )


def _run(hub: Hub, payload: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Carry it out, as long as the person and the token that it was ordered with may."""
    order = payload["order"]
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))

    def tell(stage: str) -> None:
        if progress.stopped() and stage in ("preparing the tables", "reserving the cost"):  # nothing is charged yet
            raise Stopped
        progress.tell(stage, _STAGES.get(stage))

    number = fit(hub, caller, Order(**{**order, "features": tuple(order["features"])}), tell=tell)
    return {"model": number, "href": f"/models/{number}"}


FIT = JobType(kind="learning.fit", title="Model", run=_run, again=False)
