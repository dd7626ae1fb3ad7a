"""Guessing made slow: failed attempts are counted for each account and each network, in the database, so that all processes share
the count.

An attempt is counted before its password is looked at, so that many at once gain nothing; a right password takes the count away.
After some free failures each further one doubles a wait, up to a quarter of an hour. What is sent during a wait is not looked at
and does not lengthen it, and failures are forgotten with time: nobody is locked out for good. A browser that has signed in to
the account before is counted by itself, so that a stranger's guesses do not keep its owner out (OWASP's device cookies).
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from cloister.errors import TooMany
from cloister.hub.hub import Hub
from cloister.hub.ids import new_id
from cloister.hub.records.accounts import Attempts

KNOWN = "cloister_known"
"""The cookie of a browser that has signed in before: it identifies nobody, and is used here alone."""
_FREE_FAILURES = 5
_FREE_OF_NETWORK = 50
_LONGEST_WAIT = 900
_FORGOTTEN = timedelta(minutes=10)
"""One failure is forgotten each so often."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What attempts are counted for, and how many may fail before there is a wait."""

    key: str
    free: int


def account(hub: Hub, address: str, known: str = "") -> Subject:
    """The account of an e-mail address, whether or not there is one; or this browser's way to it, where the cookie is genuine."""
    nonce, _, signature = known.partition(".")
    if nonce and hub.keys.signed("known browser", f"{nonce} {address}", signature):
        return Subject(key=hub.keys.sign("attempts", f"browser {nonce} {address}"), free=_FREE_FAILURES)
    return Subject(key=hub.keys.sign("attempts", f"account {address}"), free=_FREE_FAILURES)


def code(hub: Hub, person: str) -> Subject:
    """The second factor of a person."""
    return Subject(key=hub.keys.sign("attempts", f"code {person}"), free=_FREE_FAILURES)


def network(hub: Hub, address: str) -> Subject:
    """The network that an address is in: the address itself, or its /64 where one customer has so many. ::ffff:192.0.2.7 is
    192.0.2.7: else all of IPv4 would be one network.
    """
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return Subject(key=hub.keys.sign("attempts", "network unknown"), free=_FREE_OF_NETWORK)
    known = (known.ipv4_mapped or known) if isinstance(known, ipaddress.IPv6Address) else known
    width = 32 if known.version == 4 else 64
    place = ipaddress.ip_network((known, width), strict=False)
    return Subject(key=hub.keys.sign("attempts", f"network {place}"), free=_FREE_OF_NETWORK)


def known_browser(hub: Hub, address: str) -> str:
    """What the cookie holds of a browser that has signed in to the account."""
    nonce = new_id()
    return f"{nonce}.{hub.keys.sign('known browser', f'{nonce} {address}')}"


def wait_after(failures: int, free: int) -> int:
    """The seconds to wait after so many failures.

    >>> [wait_after(failures, 5) for failures in (0, 5, 6, 7, 8, 20, 10**6)]
    [0, 0, 2, 4, 8, 900, 900]
    """
    over = failures - free
    return 0 if over <= 0 else min(_LONGEST_WAIT, 2 ** min(over, 20))


def take(hub: Hub, db: Session, *subjects: Subject) -> None:
    """Count an attempt for each subject before it is looked at; refused while one of them has to wait."""
    now = hub.now()
    rows = [_row(hub, db, each, now) for each in sorted(subjects, key=lambda each: each.key)]
    waits = [row.until - now for row, _ in rows if row.until is not None and row.until > now]
    if waits:
        seconds = max(1, int(max(waits).total_seconds()) + 1)
        raise TooMany(
            "Wait before you sign in again",
            why="too many attempts failed",
            instead=f"try again in {seconds} seconds",
            after=seconds,
        )
    for row, subject in rows:
        row.failures = max(0, row.failures - int((now - row.last) / _FORGOTTEN)) + 1
        row.last = now
        wait = wait_after(row.failures, subject.free)
        row.until = now + timedelta(seconds=wait) if wait else None


def forgive(hub: Hub, db: Session, mine: Subject, *shared: Subject) -> None:
    """The attempt was right: its own count begins again; a network, which others share, gets this one attempt back."""
    db.execute(delete(Attempts).where(Attempts.subject == mine.key))
    for subject in shared:
        row = db.get(Attempts, subject.key, with_for_update=True)
        if row is not None:
            row.failures = max(0, row.failures - 1)
            row.until = None if wait_after(row.failures, subject.free) == 0 else row.until


def _row(hub: Hub, db: Session, subject: Subject, now: datetime) -> tuple[Attempts, Subject]:
    insert: Any = postgresql.insert if hub.database.is_postgres else sqlite.insert
    db.execute(insert(Attempts).values(subject=subject.key, failures=0, last=now).on_conflict_do_nothing())
    found = db.scalars(select(Attempts).where(Attempts.subject == subject.key).with_for_update()).one()
    return found, subject
