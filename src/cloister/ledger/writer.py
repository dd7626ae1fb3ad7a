"""How steps become durable: a batch of them in one transaction, then the copy of the head, and only then an answer to the
callers."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from cloister.errors import CloisterError, LedgerError, LedgerFrozen, LedgerUnavailable
from cloister.ledger.book import Book
from cloister.ledger.checkpoint import sealed_sums
from cloister.ledger.commit import Entry, GroupCommit
from cloister.ledger.head import Head
from cloister.ledger.opening import Opened
from cloister.ledger.records import Freeze

Step: TypeAlias = Callable[[Book], Any]
"""One act inside a transaction: a function of `operations`, with its arguments."""


class Act(NamedTuple):
    """A step, and whether it is the one that a frozen ledger allows."""

    step: Step
    thaws: bool = False


class Writer:
    """The only way to write to an open ledger. Threads that come together share a commit."""

    def __init__(self, opened: Opened) -> None:
        self._book = opened.book
        self._store = opened.store
        self._head_file = opened.head_file
        self._group: GroupCommit[Act] = GroupCommit(self.run)
        self.freeze: Freeze | None = opened.freeze
        self.turn = threading.RLock()
        self.closed = False

    def expect(self, coming: Callable[[], int]) -> None:
        """Say how many are at work that will soon write."""
        self._group.coming = coming

    def do(self, step: Step) -> Any:
        """Do it durably, and give back its result or raise its refusal."""
        return self._group.submit(Act(step))

    def thaw(self, step: Step) -> Any:
        """Do what unfreezes the ledger, and unfreeze it."""
        return self._group.submit(Act(step, thaws=True))

    def run(self, batch: list[Entry[Act]]) -> None:
        """All in one transaction; a step that is refused wrote nothing, and any other failure undoes the batch."""
        failure: CloisterError | None = None
        try:
            with self.turn:
                head, whole = self._transaction(batch)
                self._copy(head, whole=whole)
        except self._store.errors as error:
            failure = self._store.unavailable(error)
        except OSError:
            failure = head_unavailable(self._store.name)
        except CloisterError as error:
            failure = error
        except BaseException:
            failure = LedgerUnavailable(
                "Nothing was answered, because the ledger was interrupted",
                why="another thread, which led this commit, was stopped",
                instead="ask again; what was charged stays charged",
            )
            raise
        finally:
            for entry in batch:
                entry.error = failure or entry.error
                entry.done = True

    def close(self) -> None:
        """Let go of the database and the head file."""
        self.closed = True
        self._store.close()
        if self._head_file is not None:
            with contextlib.suppress(OSError):
                self._head_file.close()

    def _transaction(self, batch: list[Entry[Act]]) -> tuple[Head | None, bool]:
        """The head that is now true, and whether it is of the whole state (after a restore) or of what was touched."""
        if self.closed:
            raise LedgerError("Nothing was charged", why="this ledger is closed", instead="a new Ledger(…)")
        book, store, head_file = self._book, self._store, self._head_file
        try:
            store.begin()
            others_wrote = book.begin()
            if head_file is not None and others_wrote:
                head_file.look_again()
            if head_file is not None and head_file.grown:
                head_file.replace(book.state())  # all of it is durable already, and nobody else can commit now
            thawed = False
            for entry in batch:
                self._act(entry)
                thawed = thawed or (entry.work.thaws and entry.error is None)
            if self.freeze is None or thawed:
                book.add_checkpoint()
            head = book.flush()
            if thawed:
                head = book.state()
            store.commit()
        except BaseException:
            store.rollback()
            book.reset()
            raise
        book.committed()
        if thawed and not store.memory:
            self._add_up_again()
        return head, thawed

    def _add_up_again(self) -> None:
        """The sums of a ledger that was frozen, from its lines, when what it knew before may not have been so."""
        self._store.begin()
        try:
            self._book.begin()
            self._book.sums, _ = sealed_sums(self._store, self._book.key, self._book.sequence)
        finally:
            self._store.rollback()

    def _act(self, entry: Entry[Act]) -> None:
        writes = self._book.writes
        try:
            if self.freeze is not None and not entry.work.thaws:
                raise frozen_error(self.freeze)
            entry.result = entry.work.step(self._book)
        except CloisterError as error:
            if self._book.writes != writes:
                raise
            entry.error = error

    def _copy(self, head: Head | None, *, whole: bool) -> None:
        """The end of the chain, to the second file: after the commit is durable, before any caller hears of it."""
        if head is not None and self._head_file is not None:
            if whole:
                self._head_file.replace(head)
            else:
                self._head_file.append(head)
        if whole:
            self.freeze = None


def frozen_error(freeze: Freeze) -> LedgerFrozen:
    """The refusal of everything that would spend."""
    return LedgerFrozen(
        "The ledger is frozen, and charges nothing",
        why=freeze.reason,
        instead="ledger.restore(ledger.frozen.losses, who='…', why='…'), or with larger losses",
    )


def head_unavailable(name: str) -> LedgerUnavailable:
    """The refusal when the second file can't be read or written; the charge stands, and the answer waits in the ledger."""
    return LedgerUnavailable(
        f"Nothing was answered, because the head of {name} could not be copied",
        why="its head file could not be read or written",
        instead="make the head file writable and its disk roomy, then ask again; what was charged stays charged",
    )
