"""Is this still the ledger that was written? Each line's hash, what each line says after the ones before it, the tables, and
the head.

Three questions, in this order: does the chain verify under the key (a changed, dropped, inserted or moved line); does it
contain the head that the second file remembers (lines cut from the end, an older copy); do the tables follow from it (a changed
sum, state or release)?
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cloister.crypto import canonical_json
from cloister.ledger.chain import BEGINNING, sealer
from cloister.ledger.checkpoint import Row, checkpoint_of, raw_lines, source_sum
from cloister.ledger.head import Head
from cloister.ledger.records import BrokenLine
from cloister.ledger.replay import Replay
from cloister.ledger.store import Store, blob

_COLUMNS = "population, who, cap, spent, slack, unbounded"


def verify(store: Store, key: bytes, known: Head | None, *, watched: bool) -> bool | BrokenLine:
    """True, or the first line that is not what was written. `watched`: a head file should exist; `known` is what it says."""
    replay, parent, number, seal = Replay(), BEGINNING, 0, sealer(key)
    for sequence, text, end in raw_lines(store):
        if sequence != number + 1:
            return BrokenLine(line=number + 1, reason="the line is missing")
        number = sequence
        if not isinstance(text, str) or not text.isascii() or seal(sequence, parent, text) != end:
            return BrokenLine(line=number, reason="the line, or the one before it, was changed, moved or inserted")
        payload = json.loads(text)
        if canonical_json(payload) != text:
            return BrokenLine(line=number, reason="the line was not written by a ledger")
        reason = replay.apply(sequence, payload)
        if reason is not None:
            return BrokenLine(line=number, reason=reason)
        if payload["kind"] == "checkpoint" and not _says(payload, replay, key):
            return BrokenLine(line=number, reason="the line is not what the lines before it add up to")
        if known is not None and known.count == number and known.hash != end.hex():
            return BrokenLine(line=number, reason="the line is not the one that the head file remembers")
        parent = end
    if store.execute("SELECT COUNT(*) FROM lines").fetchone()[0] != number:
        return BrokenLine(line=1, reason="a line has a number that no ledger gives")
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


def _says(payload: Mapping[str, Any], replay: Replay, key: bytes) -> bool:
    """Whether a checkpoint repeats what the lines before it add up to."""
    accounts: dict[tuple[str, str], Row] = {
        (name, who): (cap, (int(spent), int(slack)), bool(unbounded))
        for name, who, cap, spent, slack, unbounded in replay.accounts()
    }
    expected = checkpoint_of(accounts, source_sum(key, replay.sources.items()))
    return {name: payload[name] for name in expected} == expected


def _tables(store: Store, replay: Replay, number: int) -> BrokenLine | None:
    """The first difference between the tables and what the lines say. Cells are compared as they are, whatever they hold."""
    held = store.execute("SELECT value FROM meta WHERE name = 'format'").fetchall()
    if [tuple(row) for row in held] != [(str(replay.format),)]:
        return BrokenLine(line=number, reason="the format of the tables is not what the lines say")
    for table, columns, texts, reason in (
        ("accounts", _COLUMNS, replay.accounts(), "a budget, a share or a sum in the tables is not what the lines add up to"),
        ("draws", "population, who, what, spent, slack", replay.drawn_rows(), "the table of draws is not what the lines say"),
        ("sources", "source, population", set(replay.sources.items()), "the table of sources is not what the lines say"),
    ):
        rows = store.execute(f"SELECT {columns} FROM {table}").fetchall()  # noqa: S608
        if len(rows) != len(texts) or {tuple(row) for row in rows} != texts:
            return BrokenLine(line=number, reason=reason)
    for table, columns, expected in (
        ("charges", "population, what, id", replay.charges),
        ("outcomes", "id, state, attempt", set(replay.outcomes())),
    ):
        found = [tuple(row) for row in store.execute(f"SELECT {columns} FROM {table}").fetchall()]  # noqa: S608
        if len(found) != len(expected) or set(found) != expected:
            numbers = [value for row in set(found) ^ expected for value in row if isinstance(value, int) and 0 < value <= number]
            reason = f"what the lines say of this reservation is not what the table of {table} says"
            return BrokenLine(line=min(numbers, default=number), reason=reason)
    return _releases(store, replay)


def _releases(store: Store, replay: Replay) -> BrokenLine | None:
    settled = sorted(replay.releases.items())
    if store.execute("SELECT COUNT(*) FROM releases").fetchone()[0] != len(settled):
        return BrokenLine(line=settled[0][0] if settled else 1, reason="there is not one release for each settled reservation")
    for number, (line, digest) in settled:
        row = store.execute("SELECT settled, content FROM releases WHERE id = ?", (number,)).fetchone()
        content = None if row is None else row[1]
        is_bytes = isinstance(content, bytes | memoryview)
        if row is None or row[0] != line or not is_bytes or hashlib.sha256(blob(content)).hexdigest() != digest:
            return BrokenLine(line=line, reason="the release that was settled here was changed or dropped")
    return None
