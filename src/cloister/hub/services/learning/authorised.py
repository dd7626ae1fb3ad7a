"""An order as the frame authorises it (`hub/work/one_table.py`). What it costs is what is still to be charged (`charging.py`),
less what a killed attempt was charged already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from cloister.hub.services.learning.algorithms import settled
from cloister.hub.services.learning.charging import still_to_pay
from cloister.hub.services.learning.order import Order
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import Terms, Words
from cloister.hub.work.one_table import ReadyTable, ready_table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.privacy import Guarantee

__all__ = ["ACTION", "MODEL", "AuthorisedFit", "ready"]

ACTION = "learn.run"
MODEL = Words(
    name="The model",
    invalid=N_("The model is invalid"),
    denied=N_("The model was denied"),
    withheld=N_("The model was not released"),
)
AuthorisedFit: TypeAlias = ReadyTable[Order]


def ready(
    hub: Hub,
    db: Db,
    caller: Caller,
    order: Order,
    *,
    progress: Callable[[str], None] | None = None,
    paid: Mapping[str, Guarantee] | None = None,
) -> AuthorisedFit:
    """The session that may learn it, with the order as its algorithm leaves it; or the refusal."""
    order = settled(hub, db, caller, order)
    how = {"purpose": order.purpose, "project": order.project, "algorithm": order.algorithm, "method": order.method}
    return ready_table(
        hub,
        db,
        caller,
        order,
        table=order.table,
        columns=order.columns,
        terms=Terms(action=ACTION, **how),
        words=MODEL,
        spend=order.spending,
        charge=lambda session, table, budget: still_to_pay(session, order, table, budget),
        progress=progress,
        paid=paid,
    )
