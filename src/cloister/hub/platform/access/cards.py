"""What of access waits for somebody on their first page: requests to decide, and what became of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.projects import waiting_for
from cloister.hub.platform.access.requests import mine, state_of, to_decide
from cloister.hub.service import Card
from cloister.hub.web.languages import N_

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_SHOWN = 5


def cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    """The cards; their template translates the titles and the states."""
    asked, own = to_decide(db, caller), mine(db, caller)
    names = names_in(db, people=[row.person for row in asked])
    items = [
        (f"{names.person(row.person)}: {names.object(row.data_set)}", f"/access/requests/{row.id}", row.purpose[:80])
        for row in asked
    ]
    items += [
        (f"{project.title}: {data_set.name}", f"/projects/{project.name}", project.purpose[:80])
        for project, data_set in waiting_for(db, caller)
    ]
    found = []
    if caller.has("owner"):
        values = {
            "title": N_("Requests to decide"),
            "href": "/access/requests",
            "items": items[:_SHOWN],
            "nothing": N_("No requests to decide."),
            "states": False,
        }
        found.append(Card(template="access/card.html", values=values, order=20))
    if own:
        shown = [(names.object(row.data_set), f"/access/requests/{row.id}", state_of(hub, row)) for row in own[:_SHOWN]]
        values = {
            "title": N_("My requests for access"),
            "href": "/access/requests",
            "items": shown,
            "nothing": "",
            "states": True,
        }
        found.append(Card(template="access/card.html", values=values, order=30))
    return found
