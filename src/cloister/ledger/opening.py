"""Opening a ledger: find its key, make or migrate its tables, and see whether its database is the one that was left.

The order matters. A new ledger's key and head file exist before its database, so that a database without them is never new; and
the head file is read before the database, so that a commit of another process in between is no alarm.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from cloister.errors import InvalidParameter, LedgerTampered, LedgerUnavailable
from cloister.ledger.book import Book
from cloister.ledger.chain import BEGINNING, chained, find_key
from cloister.ledger.checkpoint import sealed_sums
from cloister.ledger.head import Head, HeadFile
from cloister.ledger.measure import kind_of, units_up
from cloister.ledger.operations import least_losses, least_of
from cloister.ledger.records import Freeze
from cloister.ledger.sqlite import SQLiteStore
from cloister.ledger.store import FORMAT, Store, blob, create

SERVERS = ("postgresql://", "postgres://")
_MEMORY_KEY = bytes(32)  # nobody reaches a ledger in memory but the process that owns it


@dataclass(frozen=True, slots=True)
class Opened:
    """The parts of an open ledger."""

    store: Store
    book: Book
    key: bytes
    head_file: HeadFile | None
    freeze: Freeze | None


def open_ledger(
    where: str | os.PathLike[str] | None,
    *,
    key: bytes | str | os.PathLike[str] | None,
    head: str | os.PathLike[str] | None,
    clock: Callable[[], float],
) -> Opened:
    """The parts of the ledger that is kept there, made if there was none."""
    if where is None or where == ":memory:":
        return _prepared(SQLiteStore(None), _MEMORY_KEY, None, clock)
    if isinstance(where, str) and where.startswith(SERVERS):
        from cloister.ledger.postgres import PostgresStore

        server = PostgresStore(where)
        try:
            exists = server.has_tables()
            secret = find_key(key, lambda: _state_file(where, "key"), exists=exists)
            beside = Path(head) if head is not None else _state_file(where, "head")
            return _watched(lambda: server, secret, beside, clock, exists=exists)
        except server.errors as error:
            raise server.unavailable(error) from None
        except BaseException:
            server.close()
            raise
    if isinstance(where, str) and "://" in where:
        raise InvalidParameter(
            "This ledger was not opened", why="its address is of no kind that is known", instead="Ledger('postgresql://…')"
        )
    path = Path(where)
    exists = path.exists() and path.stat().st_size > 0
    secret = find_key(key, lambda: path.with_name(f"{path.name}.key"), exists=exists)
    return _watched(
        lambda: SQLiteStore(path),
        secret,
        Path(head) if head is not None else path.with_name(f"{path.name}.head"),
        clock,
        exists=exists,
    )


def _watched(connect: Callable[[], Store], key: bytes, path: Path, clock: Callable[[], float], *, exists: bool) -> Opened:
    head_file = HeadFile(path, key)
    try:
        if not exists:
            head_file.begin()
        known = head_file.read()
        opened = _prepared(connect(), key, head_file, clock)
        try:
            return replace(opened, freeze=_frozen(opened.book, known, opened.freeze))
        except opened.store.errors as error:
            raise opened.store.unavailable(error) from None
    except OSError:
        raise LedgerUnavailable(
            "This ledger was not opened",
            why=f"its head file {path.name} could not be read or made",
            instead="a folder that this process may write, or Ledger(…, head='another/place')",
        ) from None


def _frozen(book: Book, known: Head | None, tampered: Freeze | None) -> Freeze | None:
    """Why nothing may be charged, and the least that was spent: by the copy of the head, and by what the lines add up to."""
    reason = _suspicion(book, known)
    if reason is None and tampered is None:
        return None
    count, end = (0, "") if known is None else (known.count, known.hash)
    accounts = {} if known is None else known.accounts
    if tampered is None:
        assert reason is not None
        return Freeze(reason=reason, count=count, hash=end, losses=least_losses(book, accounts), accounts=accounts)
    spent = {name: (kind_of(loss), units_up(loss)) for name, loss in tampered.losses.items()}
    losses = least_of(spent, accounts)
    return replace(tampered, reason=reason or tampered.reason, count=count, hash=end, losses=losses, accounts=accounts)


def _changed(store: Store, book: Book) -> Freeze | None:
    """Whether an account, or whose a source is, is not what the sealed lines add up to."""
    store.begin()
    try:
        book.begin()
        sums, broken = sealed_sums(store, book.key, book.sequence)
        if broken is None and not sums.differs(store):
            book.sums = sums
            return None
    finally:
        store.rollback()
    if broken is None:
        reason = "a budget, a sum, a share or a source in its tables is not what its sealed lines say: somebody changed it"
    else:
        reason = f"line {broken} of its database is not the line that had been written"
    spent = {name: (str(row[0]).partition(" ")[0], row[1]) for (name, who), row in sums.accounts.items() if not who}
    return Freeze(reason=reason, count=book.sequence, hash=book.hash.hex(), losses=least_of(spent, {}), accounts={}, tables=True)


def _suspicion(book: Book, known: Head | None) -> str | None:
    """Why this database may not be the one that was left."""
    if known is None:
        return "the copy of its head is missing or does not verify, so that its database may be an old one"
    if known.count > book.sequence:
        ends = f"its database ends at line {book.sequence}, and line {known.count} had been written"
        return f"{ends}: it was put back from a backup, or cut"
    if not book.contains(known.count, bytes.fromhex(known.hash)):
        return f"line {known.count} of its database is not the line that had been written"
    return None


def _prepared(store: Store, key: bytes, head_file: HeadFile | None, clock: Callable[[], float]) -> Opened:
    """The tables, made or migrated under the write lock, and a book that stands at the end of the chain."""
    book = Book(store, key, clock)
    try:
        store.begin()
        if not store.has_tables():
            create(store)
            book.begin()
            book.line("created", format=FORMAT)
        else:
            from cloister.ledger.migrations import migrate

            _check_key(store, key)
            book.begin()
            migrate(book)
        head = book.flush()
        store.commit()
        book.committed()
        if head is not None and head_file is not None:
            head_file.append(head)
        return Opened(store, book, key, head_file, None if store.memory else _changed(store, book))
    except store.errors as error:
        store.rollback()
        store.close()
        raise store.unavailable(error) from None
    except BaseException:
        store.rollback()
        store.close()
        raise


def _check_key(store: Store, key: bytes) -> None:
    """The first line tells whether the key is this ledger's; the others are for `verify`."""
    row = store.execute("SELECT payload, hash FROM lines WHERE sequence = 1").fetchone()
    text = None if row is None else row[0]
    if not isinstance(text, str) or not text.isascii() or chained(key, 1, BEGINNING, text) != blob(row[1]):
        raise LedgerTampered(
            "This ledger was not opened",
            why="its first line does not verify: the line was changed, or the key is not this ledger's",
            instead="the key that the ledger was made with, or its last backup",
        )


def _state_file(url: str, ending: str) -> Path:
    """Where the key or the head of a ledger on a server is kept: named by its address, without user and password."""
    parts = urlsplit(url)
    place = f"{parts.hostname}:{parts.port or 5432}{parts.path}?{parts.query}"
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "cloister"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        raise LedgerUnavailable(
            "This ledger was not opened",
            why=f"the folder for its {ending} could not be made",
            instead="Ledger(url, key='ledger.key', head='ledger.head')",
        ) from None
    return folder / f"ledger-{hashlib.sha256(place.encode()).hexdigest()[:16]}.{ending}"
