"""The audit log: an append-only, hash-chained record of who did what to which, when, for what purpose, at what cost.

- `chain.py`, `writing.py`, `verifying.py`: the chain, how lines are added to it, how it is checked.
- `reading.py`: filters, pages and files of lines, for stewards, for owners, for oneself.
- `fingerprints.py`, `profiles.py`, `alerts.py`: what is usual for a person, and what a steward should look at.
- `pages.py`, `api.py`: the routes; `words.py`: what lines say, for people.

Other services call `write` in the transaction of what they do (`write_all` for several lines, made by `act_of`), `write_alone`
for denials and failures, `left` before a file goes out, and, after each question, `watch` with the number of its line.
"""

from sqlalchemy.orm import Session

from cloister.hub.caller import Caller
from cloister.hub.hub import Hub
from cloister.hub.platform.trail.alerts import raise_alert, unseen, watch
from cloister.hub.platform.trail.chain import DATA_SET, Act, BrokenLine, key_of
from cloister.hub.platform.trail.profiles import question_details
from cloister.hub.platform.trail.reading import gave, of_algorithm, of_data_set, sealed
from cloister.hub.platform.trail.verifying import verify
from cloister.hub.platform.trail.words import attempts, titles
from cloister.hub.platform.trail.writing import accept, act_of, closed, left, opened, write, write_all, write_alone
from cloister.hub.service import Card, Link, Service, routes_in

__all__ = [
    "DATA_SET",
    "SERVICE",
    "Act",
    "BrokenLine",
    "accept",
    "act_of",
    "attempts",
    "gave",
    "key_of",
    "left",
    "of_algorithm",
    "of_data_set",
    "question_details",
    "raise_alert",
    "sealed",
    "titles",
    "unseen",
    "verify",
    "watch",
    "write",
    "write_all",
    "write_alone",
]


def _cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    waiting = unseen(db) if caller.has("steward", "administrator") else 0
    return [Card(template="trail/card.html", values={"waiting": waiting}, order=10)] if waiting else []


SERVICE = Service(
    name="trail",
    title="Audit log",
    pages=routes_in(__name__, "pages", "pages"),
    api=routes_in(__name__, "api", "api"),
    links=(
        Link("Audit log", "/trail", "trail.read", "govern", 80, "trail", help="how-to/run-a-hub-for-an-institution"),
        Link("My activity", "/trail/mine", "trail.own", "account", 81, "history", help="explanation/hub"),
    ),
    cards=_cards,
    opened=opened,
    closed=closed,
)
