"""An order as the frame authorises it (`hub/work/authorise.py`). What it costs is what is still to be charged (`charging.py`),
less what a killed attempt was charged already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.errors import InvalidParameter, UnknownColumn, UnknownTable
from cloister.hub.max_delta import check_max_delta
from cloister.hub.policy import Decision, Object
from cloister.hub.services.access import Facts, facts_of
from cloister.hub.services.learning.algorithms import settled
from cloister.hub.services.learning.charging import still_to_pay
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Authorised, Terms, Words, authorise, visible
from cloister.privacy import Guarantee, zero_of
from cloister.session.questions.spend import amount_of, least, less, spend_of
from cloister.session.questions.touched import Touched
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.services.learning.order import Order
    from cloister.query import Session

__all__ = ["ACTION", "MODEL", "AuthorisedFit", "ready"]

ACTION = "learn.run"
MODEL = Words(
    name="The model",
    invalid=N_("The model is invalid"),
    denied=N_("The model was denied"),
    withheld=N_("The model was not released"),
)


@dataclass(frozen=True, kw_only=True)
class AuthorisedFit(Authorised):
    """An order that may be carried out."""

    order: Order
    """With what its algorithm says."""
    table: PrivateTable
    cost: Guarantee
    """What the order names: the promise that its model is learnt under."""
    charge: Guarantee
    """What would be charged of it now, at most: less, where it was bought before."""

    @property
    def which(self) -> Object:
        """The data set."""
        return self.objects[0]

    @property
    def decision(self) -> Decision:
        """On it."""
        return self.decisions[self.which.id]


class _Model:
    """An order as the frame asks about it."""

    words = MODEL

    def __init__(self, hub: Hub, order: Order, which: Object, paid: Guarantee | None) -> None:
        self.terms = Terms(
            action=ACTION, purpose=order.purpose, project=order.project, algorithm=order.algorithm, method=order.method
        )
        self._hub, self._order, self._which, self._paid = hub, order, which, paid
        self._charge: tuple[Session, Guarantee] | None = None

    def touches(self, session: Session) -> Touched:
        table = session.tables.get(self._which.name)
        if not isinstance(table, PrivateTable):
            raise InvalidParameter(
                "The model is invalid", why="the data set is public: nothing needs hiding", instead="its rows, and fit(X, y)"
            )
        for column in self._order.columns:
            if column not in table.columns:
                raise UnknownColumn(
                    f"The column {column!r} is unknown",
                    why="the data set declares none of that name",
                    instead="one of its columns",
                )
        return Touched({self._which.name: self._order.columns})

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return {self._which.population: self.charge(session)}

    def cost(self) -> Guarantee:
        """What the order names."""
        return spend_of(self._order.spending, self._budget).whole()

    def charge(self, session: Session) -> Guarantee:
        """What would be charged in that session; worked out once."""
        if self._charge is None or self._charge[0] is not session:
            table = session.tables[self._which.name]
            assert isinstance(table, PrivateTable)
            charge = still_to_pay(session, self._order, table, self._budget)
            if self._paid is not None:
                charge = least(charge, less(self.cost(), self._paid) or zero_of(self.cost()))
            self._charge = session, charge
        return self._charge[1]

    @property
    def _budget(self) -> Guarantee:
        return self._hub.ledger.budget(self._which.population)


def ready(
    hub: Hub,
    db: Db,
    caller: Caller,
    order: Order,
    *,
    progress: Callable[[str], None] | None = None,
    paid: Mapping[str, Guarantee] | None = None,
) -> AuthorisedFit:
    """The session that may learn it, or the refusal. Nothing is spent and no row is read. `paid` is what was charged for it
    already, by population: of an attempt that was killed."""
    order = settled(hub, db, caller, order)
    facts = facts_of(hub, db)
    which = _meant(hub, caller, facts, order)
    model = _Model(hub, order, which, (paid or {}).get(which.population))
    found = authorise(hub, db, facts, caller, model, {which.name: which}, progress=progress)
    with found.held.steady():
        table, charge = found.session.tables[which.name], model.charge(found.session)
        asked = charge if amount_of(charge) > 0 else None
        check_max_delta(hub.settings.delta_floor, MODEL.name, asked, hub.ledger.spent(which.population))
        assert isinstance(table, PrivateTable)
        return AuthorisedFit(**vars(found), order=order, table=table, cost=model.cost(), charge=charge)


def _meant(hub: Hub, caller: Caller, facts: Facts, order: Order) -> Object:
    for each in facts.data_sets.values():
        if each.name == order.table and visible(hub, caller, facts, each):
            return each
    raise UnknownTable(
        "The model is unknown", why="no data set of that name is open to you", instead="one of those on the page Data"
    )
