"""Who may do what to which object: grants and requests, the institution's rules, projects, algorithms as objects with policies of
their own, and what data providers attach to what they gave.

- `drafts.py`, `names.py`, `granting.py`: a grant as it is written, checked and kept. `requests.py`: access is
  asked for. `rules.py`: the institution's policy. `algorithms.py`, `projects.py`,
  `pages_contributions.py`: the other objects.
- `sentences.py`, `views.py`: all of it in words. `pages_*.py`, `api*.py`: the web.

Other services use the names below. What may not live here: a decision of its own.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from cloister.hub.caller import Caller
from cloister.hub.decisions.policy import Action, register_actions
from cloister.hub.hub import Hub
from cloister.hub.platform.access.algorithms import (
    algorithms_of,
    contradicted,
    named_algorithm,
    next_version,
    register_algorithm,
    settings_of,
    under,
)
from cloister.hub.platform.access.days import days_in
from cloister.hub.platform.access.drafts import Typed
from cloister.hub.platform.access.granting import grant, revoke
from cloister.hub.platform.access.names import Names, names_in
from cloister.hub.platform.access.requests import say, spoken, thread
from cloister.hub.platform.access.sentences import members_text
from cloister.hub.platform.access.views import UnreadableView, damaged_views, unreadable_views
from cloister.hub.service import Card, Guide, Link, Service, routes_in

__all__ = [
    "SERVICE",
    "Names",
    "Typed",
    "UnreadableView",
    "algorithms_of",
    "contradicted",
    "damaged_views",
    "days_in",
    "grant",
    "members_text",
    "named_algorithm",
    "names_in",
    "next_version",
    "register_algorithm",
    "revoke",
    "say",
    "settings_of",
    "spoken",
    "thread",
    "under",
    "unreadable_views",
]

register_actions(
    [Action(name="dataset.revoke", title="Revoke access", roles=frozenset({"owner"}), by="owner")],
)


def _cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    from cloister.hub.platform.access.pages_requests import cards

    return cards(hub, db, caller)


SERVICE = Service(
    name="access",
    title="Access",
    pages=routes_in(
        __name__,
        "pages",
        *("pages_grants", "pages_requests", "pages_policy", "pages_projects", "pages_algorithms", "pages_contributions"),
    ),
    api=routes_in(__name__, "api", "api", "api_studies"),
    links=(
        Link(
            title="Requests",
            path="/access/requests",
            group="govern",
            help="how-to/share-a-data-set",
            action="access.ask",
            order=40,
            icon="request",
        ),
        Link(
            title="Projects",
            path="/projects",
            group="govern",
            help="how-to/share-a-data-set",
            action="project.see",
            order=45,
            icon="project",
        ),
        Link(
            title="Algorithms",
            path="/algorithms",
            group="learn",
            help="how-to/run-a-guest",
            action="algorithm.see",
            order=55,
            icon="run",
        ),
        Link(
            title="My contributions",
            path="/contributions",
            group="data",
            help="reference/permissions",
            action="contribution.see",
            order=57,
            icon="share",
        ),
        Link(
            title="Policy",
            path="/policy",
            group="govern",
            help="reference/permissions",
            action="policy.see",
            order=65,
            icon="policy",
        ),
    ),
    guides=(Guide(title="Permissions", path="/datasets/*/access", group="data", help="how-to/share-a-data-set"),),
    cards=_cards,
)
