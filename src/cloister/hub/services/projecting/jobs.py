"""Projections of one's own data set with what attackers make of them: work of the frame that leaves by the marked door.

The NotPrivate event is in the ledger before a row is read (`cloister.compress.from_tables`). A run that is stopped after that
counts as one that was refused: the event stays.

Directions under differential privacy: one charge for the scatters, and the rest is post-processing. Guarantee: that of the charge
(`cloister.compress.Scatter.measure`). Rows that are projected later are rows, and have none.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, CloisterError, EngineError, InvalidParameter, LedgerError
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs import Stopped
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.projecting.kinds import DIRECTIONS, PROJECTED
from cloister.hub.services.projecting.orders import ACTION, Attack, Fit, made
from cloister.hub.services.projecting.orders import ATTACK as ATTACK_STORED
from cloister.hub.services.projecting.orders import FIT as FIT_STORED
from cloister.hub.web.languages import N_
from cloister.hub.work.attempts import AttemptSession
from cloister.hub.work.authorise import AuthorisedOrder, Terms, Words
from cloister.hub.work.one_table import ReadyTable, own_rows, private_table, ready_table
from cloister.hub.work.ordering import listed
from cloister.hub.work.orders import FREE, OrderedWork, Product, Running, job_of
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.tables import PrivateTable

WORDS = Words(
    name="The projected data",
    invalid=N_("The projected data is invalid"),
    denied=N_("The projected data was denied"),
    withheld=N_("The projected data was not released"),
)


@dataclass(frozen=True, kw_only=True)
class AuthorisedAttack(AuthorisedOrder[Attack]):
    """An order that may be carried out."""

    row: DataSet


class _Attacking(OrderedWork[Attack, AuthorisedAttack]):
    """Orders of projected data: the owner's alone, whatever has been granted to others."""

    job, title, action, words, release = "projecting.attack", N_("Projected data"), ACTION, WORDS, PROJECTED
    extra = "learn"
    stored, marked = ATTACK_STORED, True
    stages = {"preparing the tables": 0.0, N_("projecting and attacking"): 0.1, N_("keeping the projections"): 0.9}  # noqa: RUF012

    def ready(
        self, hub: Hub, db: Db, caller: Caller, order: Attack, *, progress: Any = None, paid: Any = None
    ) -> AuthorisedAttack:
        from cloister.compress.from_tables import check_projected

        def columns(session: Session, name: str) -> tuple[str, ...]:
            read = (*order.names, order.utility, order.secret)
            check_projected(private_table(session, name, read, WORDS.invalid), order.names, order.utility, order.secret)
            return read

        terms = Terms(action=ACTION, purpose=order.purpose)
        row, found = own_rows(hub, db, caller, order.table, terms, WORDS, columns)
        return AuthorisedAttack(**vars(found), order=order, row=row)

    def run(self, hub: Hub, found: AuthorisedAttack, stage: Running) -> Product:
        from cloister.compress.from_tables import project_rows

        def going(_: str) -> None:
            if stage.stopped():
                raise Stopped

        order, row = found.order, found.row
        stage.tell("projecting and attacking")
        projected = project_rows(
            found.session.registry.row_access(row.name).prepare,
            row.population or row.name,
            hub.ledger,
            row.name,
            {name: made(name) for name in listed(order.methods)},
            columns=order.names,
            utility=order.utility,
            private=order.secret,
            dimensions=order.counts,
            who=found.session.who,
            progress=going,
        )
        details = {"table": row.name, "columns": list(order.names), "utility": order.utility, "secret": order.secret}
        return Product(body=projected.to_json().encode(), details=details)

    def unsaid(self, error: CloisterError) -> CloisterError:
        if isinstance(error, EngineError | LedgerError | AccessDenied):
            return error
        return InvalidParameter(
            "No projection was made",
            why="the rows have too few of each class to learn from some and judge on others, or are all alike",
            instead="other labels, or fewer columns",
        )


ATTACKING = _Attacking()
ATTACK = job_of(ATTACKING)


class _Fitting(OrderedWork[Fit, ReadyTable[Fit]]):
    """Orders of directions."""

    job, title, action, release, stored = "projecting.fit", N_("Projection"), ACTION, DIRECTIONS, FIT_STORED
    extra, audited = "learn", ("method",)
    stages = FREE | {N_("fitting the directions"): 0.3, N_("keeping the projection"): 0.9}
    words = Words(
        name="The projection",
        invalid=N_("The projection is invalid"),
        denied=N_("The projection was denied"),
        withheld=N_("The projection was not released"),
    )

    def ready(self, *given: Any, **how: Any) -> ReadyTable[Fit]:
        order: Fit = given[3]

        def charge(session: Session, table: PrivateTable, budget: Guarantee) -> Guarantee:
            from cloister.compress.from_tables import check_labels
            from cloister.compress.scatter import scatter_questions

            check_labels(table, order.names, [*filter(None, (order.utility, order.secret))])
            questions, shares = scatter_questions(table, order.table, order.names, order.utility or None, order.secret or None)
            return session.explain(questions, order.spend, shares=shares).cost

        names = (*order.names, *filter(None, (order.utility, order.secret)))
        return ready_table(self, *given, **how, columns=names, charge=charge, method=order.method)

    def run(self, hub: Hub, found: ReadyTable[Fit], session: Callable[[], AttemptSession]) -> Product:
        from cloister.compress import Scatter
        from cloister.compress.from_tables import columns_told, projection_told

        order = found.order
        labels = {"utility": order.utility or None, "private": order.secret or None}
        projection = made(order.method).set_params(n_components=int(order.dimensions))
        scatter = Scatter.measure(session(), order.table, spend=order.spend, columns=order.names, purpose=order.purpose, **labels)
        fitted = projection.fit_scatter(scatter)
        told = {"columns": columns_told(found.table, order.names), **projection_told(order.method, fitted)}
        details = {"table": order.table, "method": order.method, "columns": list(order.names)}
        assert scatter.cost is not None
        cost = dict.fromkeys(found.populations, scatter.cost)
        return Product(body=json.dumps(told, ensure_ascii=False).encode(), cost=cost, details=details)


FITTING = _Fitting()
FIT = job_of(FITTING)
