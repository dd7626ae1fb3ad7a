"""Budgets: what may be learned of a population in all, what was spent on what, who may draw how much, and requests for more.

The ledger keeps all of it; here it is shown, and changed by acts that are checked and written down.

- `guidance.py`: what the numbers mean. `reading.py`: who sees what. `granted.py`: the
  shares of grants. `acts.py`: raising, allotting, asking.
- `pages.py`, `api.py`: the web.

What may not live here: a sum of charges of its own (the ledger's counts), a decision (`access`).
"""

from sqlalchemy.orm import Session

from cloister.hub.decisions.policy import Action, register_actions
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.budgets.granted import shares_of_project
from cloister.hub.platform.budgets.guidance import USUAL, Advice, advice, odds
from cloister.hub.platform.budgets.reading import sees_budget
from cloister.hub.service import Card, Link, Service, routes_in

__all__ = ["SERVICE", "USUAL", "Advice", "advice", "odds", "sees_budget"]

_OFFICE = frozenset({"administrator", "steward"})
register_actions(
    [
        Action(
            name="budget.charges",
            title="See every share and charge of a budget",
            roles=_OFFICE | {"owner"},
            by="owner",
            overseers=_OFFICE,
        )
    ]
)


def _cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    from cloister.hub.platform.budgets.pages import cards

    return cards(hub, db, caller)


SERVICE = Service(
    name="budgets",
    title="Budgets",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(Link("Budgets", "/budgets", "budget.see", "govern", 35, "budget", help="how-to/choose-a-spend"),),
    cards=_cards,
    in_project=lambda hub, db, caller, row: {"shares": shares_of_project(hub, db, row)},
)
