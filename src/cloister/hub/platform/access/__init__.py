"""Who may do what to which object: grants and requests, the institution's rules, projects, algorithms as objects with policies of
their own, and what data providers attach to what they gave.

- `drafts.py`, `names.py`, `granting.py`: a grant as it is written, checked and kept. `requests.py`: access is
  asked for. `rules.py`: the institution's policy. `algorithms.py`, `projects.py`,
  `pages_contributions.py`: the other objects.
- `sentences.py`, `views.py`: all of it in words. `pages_*.py`, `api*.py`: the web.

Other services use the names below. What may not live here: a decision of its own.
"""

from sqlalchemy.orm import Session

from cloister.hub.decisions.policy import Action, register_actions
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access.algorithms import algorithms_of as algorithms_of
from cloister.hub.platform.access.algorithms import contradicted as contradicted
from cloister.hub.platform.access.algorithms import named_algorithm as named_algorithm
from cloister.hub.platform.access.algorithms import next_version as next_version
from cloister.hub.platform.access.algorithms import register_algorithm as register_algorithm
from cloister.hub.platform.access.algorithms import settings_of as settings_of
from cloister.hub.platform.access.algorithms import under as under
from cloister.hub.platform.access.days import days_in as days_in
from cloister.hub.platform.access.drafts import Typed as Typed
from cloister.hub.platform.access.granting import grant as grant
from cloister.hub.platform.access.granting import revoke as revoke
from cloister.hub.platform.access.names import Names as Names
from cloister.hub.platform.access.names import names_in as names_in
from cloister.hub.platform.access.requests import say as say
from cloister.hub.platform.access.requests import spoken as spoken
from cloister.hub.platform.access.requests import thread as thread
from cloister.hub.platform.access.sentences import members_text as members_text
from cloister.hub.platform.access.views import UnreadableView as UnreadableView
from cloister.hub.platform.access.views import damaged_views as damaged_views
from cloister.hub.platform.access.views import unreadable_views as unreadable_views
from cloister.hub.service import Card, Guide, Link, Service, routes_in

register_actions([Action(name="dataset.revoke", title="Revoke access", roles=frozenset({"owner"}), by="owner")])


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
        Link("Requests", "/access/requests", "access.ask", "govern", 40, "request", help="how-to/share-a-data-set"),
        Link("Projects", "/projects", "project.see", "govern", 45, "project", help="how-to/share-a-data-set"),
        Link("Algorithms", "/algorithms", "algorithm.see", "learn", 55, "run", help="how-to/run-a-guest"),
        Link("My contributions", "/contributions", "contribution.see", "data", 57, "share", help="reference/permissions"),
        Link("Policy", "/policy", "policy.see", "govern", 65, "policy", help="reference/permissions"),
    ),
    guides=(Guide(title="Permissions", path="/datasets/*/access", group="data", help="how-to/share-a-data-set"),),
    cards=_cards,
)
