"""Accounts: people, what proves who they are, and the ways in.

- `sessions.py`: who asks, and sign-ins. `tokens.py`, `links.py`: API tokens, one-time links. Each is a secret that is shown once
  and kept as a digest.
- `log_in.py` holds the rules of signing in; `hashing.py`, `throttle.py`: passwords and how guessing is made
  slow; `totp.py`, `second_factor.py`: codes; `oidc.py`, `sign_on.py`: single sign-on.
- `people.py`: who is here, with which roles. `notices.py`: what others did to one's account. `pages_*.py`, `api.py`: all of it in
  a browser and for programs.

Other services use the names below.
"""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.accounts.links import first_link as first_link
from cloister.hub.platform.accounts.links import invite as invite
from cloister.hub.platform.accounts.links import login_link as login_link
from cloister.hub.platform.accounts.parts import opened
from cloister.hub.platform.accounts.people import add_person as add_person
from cloister.hub.platform.accounts.people import roles_of as roles_of
from cloister.hub.platform.accounts.people import set_roles as set_roles
from cloister.hub.platform.accounts.sessions import cookie_name as cookie_name
from cloister.hub.platform.accounts.sessions import identify as identify
from cloister.hub.platform.accounts.sessions import sweep as sweep
from cloister.hub.platform.accounts.tokens import make_token as make_token
from cloister.hub.records.accounts import Person
from cloister.hub.service import Card, Guide, Link, Service, routes_in


def _cards(_: Hub, db: Session, caller: Caller) -> list[Card]:
    """What an administrator does first, while nobody else is here."""
    if not caller.has("administrator") or (db.scalar(select(func.count()).select_from(Person)) or 0) > 1:
        return []
    return [Card(template="accounts/first_steps.html", values={"protected": caller.second_factor}, order=1)]


SERVICE = Service(
    name="accounts",
    title="People",
    pages=routes_in(__name__, "pages", "pages_log_in", "pages_account", "pages_second_factor", "pages_people"),
    api=routes_in(__name__, "api"),
    cards=_cards,
    links=(Link("People", "/people", "people.see", "govern", 70, "people", help="how-to/run-a-hub-for-an-institution"),),
    guides=(
        Guide(title="Sign in", path="/login", group="account", help="tutorials/a-first-hub"),
        Guide(title="Sign in", path="/link", group="account", help="tutorials/a-first-hub"),
        Guide(title="Your account", path="/account", group="account", help="tutorials/a-first-hub"),
        Guide(title="API tokens", path="/account/tokens", group="account", help="how-to/ask-a-hub"),
        Guide(title="Two-step verification", path="/account/second-factor", group="account", help="how-to/set-up-a-hub"),
    ),
    opened=opened,
)
