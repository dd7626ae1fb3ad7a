"""Reading the hub's database so that what was read may be looked at afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.hub import Hub

__all__ = ["reading"]


@contextlib.contextmanager
def reading(hub: Hub) -> Iterator[Session]:
    """One moment of the database. Rows are let go of with their values, before the end of the transaction would expire them."""
    with hub.database.reading() as db:
        yield db
        db.expunge_all()
