"""Reading the database of a hub, in one word."""

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
    """One moment of the database; what was read in it may be looked at afterwards."""
    with hub.database.reading() as db:
        yield db
