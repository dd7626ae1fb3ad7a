"""Projections of one's own data set with what attackers make of them: work of the frame that leaves by the marked door.

The NotPrivate event is in the ledger before a row is read (`cloister.compress.from_tables`). A run that is stopped after that
counts as one that was refused: the event stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cloister.errors import AccessDenied, CloisterError, EngineError, InvalidParameter, LedgerError
from cloister.hub.decisions.facts import data_set_object, facts_of
from cloister.hub.platform.catalogue import owned
from cloister.hub.platform.jobs import Stopped
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.projecting.kinds import PROJECTED
from cloister.hub.services.projecting.orders import ACTION, Attack, listed, made
from cloister.hub.services.projecting.orders import ATTACK as STORED
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import AuthorisedOrder, Terms, Words, authorise
from cloister.hub.work.one_table import private_table
from cloister.hub.work.orders import OrderedWork, Product, job_of
from cloister.session.questions.touched import Touched

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.work.orders import Running
    from cloister.privacy import Guarantee
    from cloister.query import Session

_MARKED = "anonymize.run"
"""The action whose prohibitions say that no rows leave without differential privacy."""
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


class _Columns:
    """What is read, as the frame asks about it. It costs nothing that could be counted."""

    words = WORDS

    def __init__(self, order: Attack, name: str, action: str) -> None:
        self.terms, self._order, self._name = Terms(action=action, purpose=order.purpose), order, name

    def touches(self, session: Session) -> Touched:
        from cloister.compress.from_tables import check_projected

        order = self._order
        names = (*order.names, order.utility, order.secret)
        check_projected(private_table(session, self._name, names, WORDS.invalid), order.names, order.utility, order.secret)
        return Touched({self._name: names})

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return {}


class _Attacking(OrderedWork[Attack, AuthorisedAttack]):
    """Orders of projected data: the owner's alone, whatever has been granted to others."""

    job, title, action, words, release = "projecting.attack", N_("Projected data"), ACTION, WORDS, PROJECTED
    extra = "learn"
    stored, marked = STORED, True
    stages = {"preparing the tables": 0.0, N_("projecting and attacking"): 0.1, N_("keeping the projections"): 0.9}  # noqa: RUF012

    def about(self, order: Attack) -> dict[str, Any]:
        return {"table": order.table[:200]}

    def ready(
        self, hub: Hub, db: Db, caller: Caller, order: Attack, *, progress: Any = None, paid: Any = None
    ) -> AuthorisedAttack:
        row, facts = owned(hub, db, caller, order.table), facts_of(hub, db)
        which = facts.data_sets.get(row.id) or data_set_object(row)
        for action in (_MARKED, ACTION):  # who forbids one way of rows by the marked door forbids this one
            found = authorise(hub, db, facts, caller, _Columns(order, row.name, action), {row.name: which}, priced=False)
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
