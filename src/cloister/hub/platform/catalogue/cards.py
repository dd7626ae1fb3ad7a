"""What the first page says of data: one's own data sets, and those that one may ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.platform.catalogue.reading import search
from cloister.hub.platform.catalogue.shared import others_of
from cloister.hub.service import Card

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_SHOWN = 6


def cards(hub: Hub, db: Db, caller: Caller) -> list[Card]:
    """For owners their own data sets; for anyone who asks, what they may ask."""
    found: list[Card] = []
    broken = live_of(hub).closed_for
    if caller.has("owner"):
        own, _ = search(hub, db, caller, mine=True, limit=_SHOWN)
        items = [
            (each.row, f"/datasets/{each.row.name}/manage", each.row.name in broken, others_of(db, each.row) is not None)
            for each in own
        ]
        found.append(Card(template="catalogue/card.html", values={"which": "own", "items": items}, order=10))
    if caller.has("analyst", "owner"):
        everything, _ = search(hub, db, caller, limit=200)
        open_to = [each for each in everything if each.may_ask and not each.mine][:_SHOWN]
        items = [(each.row, f"/datasets/{each.row.name}", False, False) for each in open_to]
        found.append(Card(template="catalogue/card.html", values={"which": "open", "items": items}, order=20))
    return found
