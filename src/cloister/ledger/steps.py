"""Releases that follow one another under one charge: a stream is charged when it opens, and each step is a release.

What a step needs of the steps before it, its state, is kept in the ledger's database, sealed by its owner. The line of the
step, its release and the new state are committed in one transaction, and nothing leaves before: so a process that is killed
has either released a step for good or not begun it, and no step is computed twice. The line holds the state's digest.

A step costs nothing, since the opening was charged for all of them; its line is that of a charge of zero. A ledger that was
restored from a backup may have released steps that it no longer knows of: what was opened before goes no further.
"""

import hashlib
from typing import NamedTuple

from cloister.errors import LedgerError, LedgerTampered
from cloister.ledger import operations
from cloister.ledger.book import Book
from cloister.ledger.checkpoint import sealed
from cloister.ledger.request import Request
from cloister.ledger.store import Store, blob
from cloister.privacy.guarantee import zero_of

STEPS = """CREATE TABLE IF NOT EXISTS steps (
    id {long} PRIMARY KEY, last {long} NOT NULL, step {long} NOT NULL, content {bytes} NOT NULL)"""
_OPENING = "steps of "
_LAST = "SELECT last, step, content FROM steps WHERE id = ?"
_NAMED = "SELECT MIN(id), MAX(id) FROM charges WHERE population = ? AND what = ?"


class LastStep(NamedTuple):
    """Where a series of steps stands: its opening, how many steps it has, and its sealed state."""

    opening: int
    step: int
    state: bytes


def open_steps(book: Book, request: Request, state: bytes) -> int:
    """Charge for all steps and keep the first state; a name is used once, whatever became of the series."""
    (population,) = request.costs
    if book.store.execute(_NAMED, (population, request.what)).fetchone()[0] is not None:
        raise LedgerError(
            f"{request.what!r} was not opened",
            why=f"the ledger has one of this name for population {population!r}, with a charge of its own",
            instead="another name, or resume the one that is open",
        )
    reservation = operations.reserve(book, request)
    release = request.what.encode()
    operations.settle(book, reservation, release, hashlib.sha256(release).hexdigest())
    book.store.execute(STEPS.format(**book.store.types))
    values = (reservation.id, reservation.id, 0, state)
    book.write("INSERT INTO steps (id, last, step, content) VALUES (?, ?, ?, ?)", values)
    return reservation.id


def add_step(book: Book, opening: int, step: int, release: bytes, state: bytes) -> None:
    """The next step: its line, its release and the state after it, or none of them."""
    row = book.store.execute(_LAST, (opening,)).fetchone()
    if row is None or row[1] != step - 1:
        raise LedgerError(
            f"Step {step} was not released",
            why="another process released it, or the ledger is not the one that was opened",
            instead="resume from the ledger, in one process at a time",
        )
    _refuse_restored(book.store, row[0], f"Step {step}")  # earlier steps looked at the lines before
    opened = book.payload(opening)
    (population,) = opened["costs"]
    cost = {population: zero_of(book.population(population).budget)}
    purpose = f"step {step}, state {hashlib.sha256(state).hexdigest()}"
    reservation = operations.reserve(book, Request.of(cost, opened["who"], opened["what"], purpose, rerun=False))
    operations.settle(book, reservation, release, hashlib.sha256(release).hexdigest())
    book.write("UPDATE steps SET last = ?, step = ?, content = ? WHERE id = ?", (reservation.id, step, state, opening))


def last_step(store: Store, key: bytes, population: str, what: str) -> LastStep:
    """Where a series stands, for one that goes on: refused where the ledger was restored since, or its state changed."""
    opening, newest = store.execute(_NAMED, (population, what)).fetchone()
    opened = None if opening is None else sealed(store, key, opening)
    known = opened is not None and str(opened.get("purpose", "")).startswith(_OPENING)
    row = store.execute(_LAST, (opening,)).fetchone() if known else None
    if row is None:
        raise LedgerError(
            f"{what!r} was not found", why=f"this ledger has none of that name for {population!r}", instead="open it first"
        )
    _refuse_restored(store, opening, repr(what))
    last, step, state = row[0], row[1], blob(row[2])
    line = sealed(store, key, last)
    told = f"step {step}, state {hashlib.sha256(state).hexdigest()}"
    if last != newest or line is None or (step and line.get("purpose") != told):
        raise LedgerTampered(
            f"{what!r} goes no further",
            why="its state is not the one that its last line speaks of",
            instead="ledger.verify(), and the last backup",
        )
    return LastStep(opening, step, state)


class SeriesEnded(LedgerError):
    """The ledger was restored from a backup since a series was opened, which so goes no further."""

    stored = "LedgerError"


def _refuse_restored(store: Store, after: int, what: str) -> None:
    if operations.restored_since(store, after):
        raise SeriesEnded(
            f"{what} goes no further",
            why="the ledger was restored from a backup since, and steps that it does not know of may have left",
            instead="open a new one under another name; it is charged again",
        )


def opening_purpose(words: str) -> str:
    """The purpose in the line of an opening, by which it is known.

    >>> opening_purpose("a counter")
    'steps of a counter'
    """
    return f"{_OPENING}{words}"
