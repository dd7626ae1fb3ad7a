"""The audit log: an append-only, hash-chained record of who did what to which, when, for what purpose, at what cost.

- `chain.py`, `writing.py`, `verifying.py`: the chain, how lines are added to it, how it is checked.
- `reading.py`: filters, pages and files of lines, for stewards, for owners, for oneself.
- `fingerprints.py`, `profiles.py`, `alerts.py`: what is usual for a person, and what a steward should look at.
- `pages.py`, `api.py`: the routes; `words.py`: what lines say, for people.

Other services call `write` in the transaction of what they do (`write_all` for several lines, made by `act_of`), `write_alone`
for denials and failures, `left` before a file goes out, and, after each question, `watch` with the number of its line.
"""

from sqlalchemy.orm import Session

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail.alerts import raise_alert as raise_alert
from cloister.hub.platform.trail.alerts import unseen as unseen
from cloister.hub.platform.trail.alerts import watch as watch
from cloister.hub.platform.trail.chain import DATA_SET as DATA_SET
from cloister.hub.platform.trail.chain import Act as Act
from cloister.hub.platform.trail.chain import BrokenLine as BrokenLine
from cloister.hub.platform.trail.chain import key_of as key_of
from cloister.hub.platform.trail.profiles import question_details as question_details
from cloister.hub.platform.trail.reading import gave as gave
from cloister.hub.platform.trail.reading import of_algorithm as of_algorithm
from cloister.hub.platform.trail.reading import of_data_set as of_data_set
from cloister.hub.platform.trail.reading import sealed as sealed
from cloister.hub.platform.trail.verifying import verify as verify
from cloister.hub.platform.trail.words import attempts as attempts
from cloister.hub.platform.trail.words import titles as titles
from cloister.hub.platform.trail.writing import accept as accept
from cloister.hub.platform.trail.writing import act_of as act_of
from cloister.hub.platform.trail.writing import closed, opened
from cloister.hub.platform.trail.writing import left as left
from cloister.hub.platform.trail.writing import write as write
from cloister.hub.platform.trail.writing import write_all as write_all
from cloister.hub.platform.trail.writing import write_alone as write_alone
from cloister.hub.service import Card, Link, Service, routes_in


def _cards(hub: Hub, db: Session, caller: Caller) -> list[Card]:
    waiting = unseen(db) if caller.has("steward", "administrator") else 0
    return [Card(template="trail/card.html", values={"waiting": waiting}, order=10)] if waiting else []


SERVICE = Service(
    name="trail",
    title="Audit log",
    pages=routes_in(__name__, "pages"),
    api=routes_in(__name__, "api"),
    links=(
        Link("Audit log", "/trail", "trail.read", "govern", 80, "trail", help="how-to/run-a-hub-for-an-institution"),
        Link("My activity", "/trail/mine", "trail.own", "account", 81, "history", help="explanation/hub"),
    ),
    cards=_cards,
    opened=opened,
    closed=closed,
)
