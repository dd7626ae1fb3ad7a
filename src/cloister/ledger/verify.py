"""Is this still the ledger that was written? Each line's hash, what each line says after the ones before it, the tables, and
the head.

Three questions, in this order: does the chain verify under the key (a changed, dropped, inserted or moved line); does it
contain the head that the second file remembers (lines cut from the end, an older copy); do the tables follow from it (a changed
sum, state or release)?
"""

from __future__ import annotations

import hashlib
import json
from fractions import Fraction

from cloister.ledger.book import budget_of
from cloister.ledger.chain import BEGINNING, canonical, sealer
from cloister.ledger.head import Head
from cloister.ledger.measure import GRID
from cloister.ledger.reading import raw_lines
from cloister.ledger.records import BrokenLine
from cloister.ledger.replay import Replay
from cloister.ledger.store import Store

_ACCOUNTS = "SELECT population, who, cap, spent, slack, unbounded FROM accounts"


def verify(store: Store, key: bytes, known: Head | None, *, watched: bool) -> bool | BrokenLine:
    """True, or the first line that is not what was written. `watched`: a head file should exist; `known` is what it says."""
    replay, parent, number, seal = Replay(), BEGINNING, 0, sealer(key)
    for sequence, text, end in raw_lines(store):
        if sequence != number + 1:
            return BrokenLine(line=number + 1, reason="the line is missing")
        number = sequence
        if seal(sequence, parent, text) != end:
            return BrokenLine(line=number, reason="the line, or the one before it, was changed, moved or inserted")
        payload = json.loads(text)
        if canonical(payload) != text:
            return BrokenLine(line=number, reason="the line was not written by a ledger")
        reason = replay.apply(sequence, payload)
        if reason is not None:
            return BrokenLine(line=number, reason=reason)
        if known is not None and known.count == number and known.hash != end.hex():
            return BrokenLine(line=number, reason="the line is not the one that the head file remembers")
        parent = end
    for wrong in (_head(known, number, watched=watched), _tables(store, replay, number)):
        if wrong is not None:  # a broken line is false, so `or` would lose it
            return wrong
    return True


def _head(known: Head | None, number: int, *, watched: bool) -> BrokenLine | None:
    if watched and known is None:
        return BrokenLine(line=number, reason="the copy of the head is missing or does not verify")
    if known is not None and known.count > number:
        return BrokenLine(line=number + 1, reason=f"the line is missing: {known.count} lines had been written")
    return None


def _tables(store: Store, replay: Replay, number: int) -> BrokenLine | None:
    """The first difference between the tables and what the lines say."""
    nothing = (Fraction(0), Fraction(0))
    found = {
        (population, who): (
            None if cap is None else budget_of(cap),
            (Fraction(int(spent), GRID), Fraction(int(slack), GRID)),
            unbounded,
        )
        for population, who, cap, spent, slack, unbounded in store.execute(_ACCOUNTS).fetchall()
    }
    places = replay.spent_by.keys() | replay.shares.keys()
    expected = {place: (replay.shares.get(place), replay.spent_by.get(place, nothing), 0) for place in places}
    expected |= {(name, ""): (held.budget, held.spent, int(held.unbounded)) for name, held in replay.populations.items()}
    if found != expected:
        return BrokenLine(line=number, reason="a budget, a share or a sum in the tables is not what the lines add up to")
    debits = {(*place, str(int(sums[0] * GRID)), str(int(sums[1] * GRID))) for place, sums in replay.draws.items()}
    for table, columns, texts in (
        ("draws", "population, who, what, spent, slack", debits),
        ("sources", "source, population", set(replay.sources.items())),
    ):
        if {tuple(row) for row in store.execute(f"SELECT {columns} FROM {table}").fetchall()} != texts:  # noqa: S608
            return BrokenLine(line=number, reason=f"the table of {table} is not what the lines say")
    for table, columns, rows in (
        ("charges", "population, what, id", replay.charges),
        ("outcomes", "id, state, attempt", set(replay.outcomes())),
    ):
        wrong = {tuple(row) for row in store.execute(f"SELECT {columns} FROM {table}").fetchall()} ^ rows  # noqa: S608
        if wrong:
            place = min(next(value for value in row if isinstance(value, int)) for row in wrong)
            return BrokenLine(line=place, reason=f"what the lines say of this reservation is not what the table of {table} says")
    return _releases(store, replay)


def _releases(store: Store, replay: Replay) -> BrokenLine | None:
    settled = sorted(replay.releases.items())
    if store.execute("SELECT COUNT(*) FROM releases").fetchone()[0] != len(settled):
        return BrokenLine(line=settled[0][0] if settled else 1, reason="there is not one release for each settled reservation")
    for number, (line, digest) in settled:
        row = store.execute("SELECT settled, content FROM releases WHERE id = ?", (number,)).fetchone()
        if row is None or row[0] != line or hashlib.sha256(bytes(row[1])).hexdigest() != digest:
            return BrokenLine(line=line, reason="the release that was settled here was changed or dropped")
    return None
