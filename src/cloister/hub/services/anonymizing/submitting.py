"""Into the queue: a trial, a release; and into the trail: what was refused before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.services.anonymizing.authorised import ACTION, check_free, ready
from cloister.hub.services.jobs import came_of, submit
from cloister.hub.work.refusals import note_refusal

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.services.anonymizing.order import Order


def look(hub: Hub, caller: Caller, order: Order) -> None:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    try:
        with hub.database.reading() as db:
            ready(hub, db, caller, order)
    except CloisterError as error:
        note_refusal(hub, caller, ACTION, error, kind="data-set", purpose=order.purpose, table=order.table[:200])
        raise


def try_later(db: Db, hub: Hub, caller: Caller, order: Order) -> str:
    """A trial; the id of its job."""
    payload = {"order": order.plain(), "came": came_of(caller)}
    return submit(db, hub, caller, "anonymizing.try", payload, secret=order.secret(), purpose=order.purpose)


def release_later(db: Db, hub: Hub, caller: Caller, order: Order, *, understood: bool) -> str:
    """A release; the id of its job. Who orders it has to say that they know what it means for the budget."""
    if not understood:
        raise InvalidParameter(
            "The release is invalid",
            why="it is not differentially private; from then on the population's spending reads “not covered by the budget”",
            instead="tick the confirmation box",
        )
    if not order.name or not order.title:
        raise InvalidParameter(
            "The release is invalid", why="the data set that it becomes has no name or no title", instead="patients_public"
        )
    check_free(db, order.name)
    payload = {"order": order.plain(), "came": came_of(caller)}
    return submit(db, hub, caller, "anonymizing.release", payload, secret=order.secret(), purpose=order.purpose)
