"""Answers about a ledger, from one moment of its tables."""

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any, cast

from cloister.errors import LedgerTampered
from cloister.ledger.book import Book, budget_of
from cloister.ledger.chain import moment
from cloister.ledger.checkpoint import raw_lines, sealed
from cloister.ledger.measure import decode, guarantee_of, in_measure
from cloister.ledger.records import Charge, LedgerRecord, State, StoredRelease
from cloister.ledger.store import Store, blob
from cloister.privacy.guarantee import Guarantee

_CHARGES = """SELECT charges.id, lines.payload, outcomes.state, outcomes.attempt, releases.settled
    FROM charges JOIN lines ON lines.sequence = charges.id
    LEFT JOIN outcomes ON outcomes.id = charges.id LEFT JOIN releases ON releases.id = charges.id
    WHERE charges.population = ?{} ORDER BY charges.id"""
_OF_ALL, _OF_ONE = _CHARGES.format(""), _CHARGES.format(" AND charges.what = ?")
_FIND = """SELECT releases.id, releases.settled, releases.content, lines.payload
    FROM charges JOIN releases ON releases.id = charges.id JOIN lines ON lines.sequence = charges.id
    WHERE charges.population = ? AND charges.what = ? ORDER BY releases.settled"""


def book_of(store: Store) -> Book:
    """What the tables say, for reading alone."""
    return Book(store, b"", time.time)


def budget(store: Store, name: str) -> Guarantee:
    """What was written for the population of that name, or an error."""
    rows = store.execute("SELECT cap FROM accounts WHERE population = ? AND who = ''", (name,)).fetchall()
    return budget_of(rows[0][0]) if rows else book_of(store).population(name).budget


def populations(store: Store) -> list[str]:
    """All names, sorted."""
    return [row[0] for row in store.execute("SELECT population FROM accounts WHERE who = '' ORDER BY population").fetchall()]


def charges(store: Store, name: str, what: str | None = None) -> list[Charge]:
    """A population's account, or of it the charges for one plan."""
    kind = book_of(store).population(name).kind
    rows = store.execute(_OF_ALL, (name,)).fetchall() if what is None else store.execute(_OF_ONE, (name, what)).fetchall()
    return [
        _charge(name, kind, number, json.loads(payload), "settled" if settled is not None else outcome, attempt)
        for number, payload, outcome, attempt, settled in rows
    ]


def _charge(name: str, kind: str, number: int, payload: dict[str, Any], outcome: str | None, attempt: int | None) -> Charge:
    if payload["kind"] == "reserved":
        cost: Guarantee | None = in_measure(decode(payload.get("charged", {}).get(name, payload["costs"][name])), kind)
    else:
        cost = decode(payload["added"][name]) if payload["kind"] == "restored" else None
    return Charge(
        id=number,
        population=name,
        who=payload["who"],
        what=payload.get("what") or payload["why"],
        when=moment(payload["at"]),
        cost=cost,
        state=cast("State", outcome or {"restored": "lost"}.get(payload["kind"], payload["kind"])),
        purpose=payload.get("purpose", ""),
        attempt=attempt or 1,
    )


def find(store: Store, key: bytes, what: str, names: frozenset[str]) -> list[StoredRelease]:
    """The settled releases of a plan, each the one that its line speaks of."""
    found = []
    for number, settled, content, payload in store.execute(_FIND, (min(names), what)).fetchall() if names else ():
        reserved, release = json.loads(payload), blob(content)
        if reserved["what"] != what or reserved["costs"].keys() != names:
            continue
        line = sealed(store, key, settled)
        if line is None or line.get("id") != number or line.get("release") != hashlib.sha256(release).hexdigest():
            raise LedgerTampered(
                "A stored release was not returned",
                why="it is not the one that was settled",
                instead="ledger.verify(), and the last backup",
            )
        costs = {name: decode(cost) for name, cost in reserved["costs"].items()}
        found.append(
            StoredRelease(id=number, what=what, who=reserved["who"], when=moment(line["at"]), costs=costs, release=release)
        )
    return found


def lines(store: Store, after: int = 0) -> Iterator[LedgerRecord]:
    """Every line after a number, read."""
    for sequence, text, end in raw_lines(store, after):
        payload = json.loads(text)
        rest = {name: value for name, value in payload.items() if name not in ("kind", "at")}
        yield LedgerRecord(sequence=sequence, kind=payload["kind"], when=moment(payload["at"]), payload=rest, hash=end.hex())


def bound(store: Store, source: str) -> str | None:
    """The population of a source."""
    row = store.execute("SELECT population FROM sources WHERE source = ?", (source,)).fetchone()
    return None if row is None else str(row[0])


def drawn(store: Store, name: str, who: str, what: str) -> Guarantee:
    """What a person's share was charged for releases of a plan that others had bought."""
    found = book_of(store).population(name)
    row = store.execute(
        "SELECT spent, slack FROM draws WHERE population = ? AND who = ? AND what = ?", (name, who, what)
    ).fetchone()
    return guarantee_of(found.kind, (0, 0) if row is None else (int(row[0]), int(row[1])))
