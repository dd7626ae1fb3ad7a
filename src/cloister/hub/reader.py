"""A session of the hub's database that only reads: a write in it is an error, since it would be undone without a word.

What is written through the session is refused: objects that are added, changed or deleted, at the next query or at the end of the
block, and INSERT, UPDATE and DELETE at once. Statements that are plain text are not looked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import ORMExecuteState, Session


class WroteWhileReading(RuntimeError):
    """A mistake in the program: what writes belongs into `Database.begin`."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} was to be written in Database.reading(), which only reads. Write it in Database.begin()")


class Reader(Session):
    """What `Database.reading` gives.

    >>> from cloister.hub.database import Database
    >>> from cloister.hub.generation import Generation
    >>> with Database("sqlite://").reading() as db:
    ...     db.add(Generation(id=1))
    Traceback (most recent call last):
    cloister.hub.reader.WroteWhileReading: a Generation was to be written in Database.reading(), which only reads. Write it in ...
    """

    def flush(self, objects: Sequence[Any] | None = None) -> None:
        """Where a session that writes would write: before a query, and by `Database.reading` at the end."""
        changed = [*self.new, *self.deleted, *(each for each in self.dirty if self.is_modified(each))]
        if changed:
            raise WroteWhileReading(f"a {type(changed[0]).__name__}")


@event.listens_for(Reader, "do_orm_execute")
def _only_reading(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        raise WroteWhileReading("an INSERT, UPDATE or DELETE")
