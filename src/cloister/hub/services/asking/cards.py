"""What waits on the first page: the newest answers, for anyone who asks questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.releases.reading import releases_of
from cloister.hub.service import Card
from cloister.hub.services.asking.naming import asked

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_FEW = 5


def cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    """The newest answers that somebody may see."""
    rows = releases_of(hub, db, caller, limit=_FEW)
    if not rows and not caller.has("analyst"):
        return []
    return [Card(template="asking/card.html", values={"releases": rows, "asked": asked}, order=20)]
