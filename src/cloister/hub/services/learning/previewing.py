"""What is known before anything is spent: whether the order may be carried out, what it costs, what is left, what to expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.hub.services.access import facts_of
from cloister.hub.services.learning.authorised import ready
from cloister.hub.services.learning.expected import Expected, expected
from cloister.hub.work.bounds import account_of
from cloister.hub.work.concurrency import looking
from cloister.hub.work.left import Left, left_of
from cloister.privacy import Guarantee
from cloister.session.questions.spend import amount_of

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.services.learning.order import Order

__all__ = ["Preview", "preview"]


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The cost, the money beside it, and the curve where there is one."""

    cost: Guarantee
    """What the order names."""
    charge: Guarantee
    """What of it is still to be charged, at most."""
    population: str
    left: tuple[Left, ...]
    curve: Expected | None

    @property
    def bought_before(self) -> bool:
        """Whether some of it was."""
        return amount_of(self.charge) < amount_of(self.cost)


def preview(hub: Hub, caller: Caller, order: Order) -> Preview:
    """What an order would cost and give: spends nothing and reads no row. Refused where it would be."""
    with looking(hub, caller):
        with hub.database.reading() as db:
            found = ready(hub, db, caller, order)
            who, costs = account_of(facts_of(hub, db), caller, order.project), {found.which.population: found.charge}
            left = left_of(hub, db, caller, who, found.objects, found.decisions, costs)
        curve = expected(hub, found.order, found.table, found.cost)
        return Preview(cost=found.cost, charge=found.charge, population=found.which.population, left=left, curve=curve)
