"""The budgets that matter to somebody, on their first page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.platform.budgets.acts import open_requests
from cloister.hub.platform.budgets.reading import balances
from cloister.hub.service import Card
from cloister.hub.web.languages import N_

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_SHOWN = 4


def cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    """The card of budgets, for anyone who may see one; its template translates the titles."""
    found = balances(hub, db, caller, _SHOWN)
    if not found:
        return []
    values = {
        "title": N_("Budgets"),
        "budgets": found,
        "waiting": len(open_requests(db, caller)),
    }
    return [Card(template="budgets/card.html", values=values, order=25)]
