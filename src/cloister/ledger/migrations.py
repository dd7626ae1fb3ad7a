"""From an older format of the database to the current one, in one transaction, on opening.

What is derived is dropped and built again from the lines, which no migration touches: a line's hash covers its text as it was
written, so a line of format 1 is a line of format 1 for ever, and `replay.py` reads both.

- Format 1 kept no purposes, and of spenders only the shares that caps were given to: what each person had spent was not counted.
  Its releases did not name the line that settled them.
- Format 2 is the current one.
"""

import json
from collections.abc import Callable

from cloister.errors import LedgerError, LedgerTampered
from cloister.ledger.book import Book
from cloister.ledger.chain import BEGINNING, sealer
from cloister.ledger.checkpoint import raw_lines
from cloister.ledger.replay import Replay
from cloister.ledger.store import DERIVED, FORMAT, RELEASES, create_derived


def migrate(book: Book) -> None:
    """Bring the store to the current format; a line says that it was done. Nothing happens where it is current."""
    row = book.store.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    text = row[0] if row is not None else "0"
    found = int(text) if isinstance(text, str) and text.isdecimal() and text.isascii() and len(text) < 9 else 0
    if found == FORMAT:
        return
    if found not in _STEPS:
        raise LedgerError(
            "This ledger was not opened",
            why=f"its format {found} is not known to this version",
            instead="the version of cloister that wrote it",
        )
    for step in range(found, FORMAT):
        _STEPS[step](book)
    book.line("migrated", **{"from": found, "to": FORMAT})
    book.store.execute("UPDATE meta SET value = ? WHERE name = 'format'", (str(FORMAT),))


def rebuild(book: Book) -> Replay:
    """Make the derived tables again from the lines, each of which must verify."""
    store = book.store
    for name in DERIVED:
        store.execute(f"DROP TABLE IF EXISTS {name}")
    create_derived(store)
    replay, parent, seal = Replay(), BEGINNING, sealer(book.key)
    for number, text, end in raw_lines(store):
        sealed = seal(number, parent, text) == end
        reason = replay.apply(number, json.loads(text)) if sealed else "it was changed, or the one before it"
        if reason is not None:
            raise LedgerTampered(f"Line {number} of the ledger was refused", why=reason, instead="its last backup")
        parent = end
    rows = sorted(replay.accounts(), key=lambda row: row[:2])
    store.executemany("INSERT INTO accounts (population, who, cap, spent, slack, unbounded) VALUES (?, ?, ?, ?, ?, ?)", rows)
    store.executemany("INSERT INTO charges (population, what, id) VALUES (?, ?, ?)", sorted(replay.charges))
    draws = sorted(replay.drawn_rows())
    store.executemany("INSERT INTO draws (population, who, what, spent, slack) VALUES (?, ?, ?, ?, ?)", draws)
    store.executemany("INSERT INTO sources (source, population) VALUES (?, ?)", sorted(replay.sources.items()))
    store.executemany("INSERT INTO outcomes (id, state, attempt) VALUES (?, ?, ?)", sorted(replay.outcomes()))
    return replay


def _from_1(book: Book) -> None:
    replay, store = rebuild(book), book.store
    store.execute("ALTER TABLE releases RENAME TO releases_1")
    store.execute(RELEASES.format(**store.types))
    for number, (settled, _) in replay.releases.items():
        content = store.execute("SELECT content FROM releases_1 WHERE id = ?", (number,)).fetchone()
        if content is not None:  # one that is missing is for `verify` to find
            store.execute("INSERT INTO releases (id, settled, content) VALUES (?, ?, ?)", (number, settled, content[0]))
    store.execute("DROP TABLE releases_1")


_STEPS: dict[int, Callable[[Book], None]] = {1: _from_1}
