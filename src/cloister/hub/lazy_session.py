"""What stands for a session of the hub's database until somebody needs one: most of what every question asks and writes is run by
the driver (`statements.py`), and to open a session takes longer than most of that.

It has what such statements need: a connection, and `info`. Anything else that is asked of it opens the session, in the same
transaction, and from then on it is that session in all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.orm import Session


class LazySession:
    """A session to be.

    >>> from sqlalchemy import select
    >>> from cloister.hub.database import Database
    >>> with Database("sqlite://").reading(late=True) as db:
    ...     before, number, after = db.opened, db.scalar(select(7)), db.opened
    ...     before is None, number, after is None
    (True, 7, False)
    """

    def __init__(self, opening: Callable[[], Session], connection: Connection | None = None) -> None:
        self.info: dict[Any, Any] = {}
        self.opened: Session | None = None
        self._opening = opening
        self._connection = connection

    def connection(self) -> Connection:
        """That of the transaction."""
        return self._connection if self._connection is not None else self._session().connection()

    def flush(self) -> None:
        """Nothing waits to be written where there is no session."""
        if self.opened is not None:
            self.opened.flush()

    def get_nested_transaction(self) -> Any:
        """None where there is no session."""
        return None if self.opened is None else self.opened.get_nested_transaction()

    def _session(self) -> Session:
        if self.opened is None:
            self.opened = self._opening()
            self.opened.info.update(self.info)
            self.info = self.opened.info
        return self.opened

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session(), name)
