"""What is stored and can't be read, in a hub that need not run: for `cloister hub check`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.database import Database, sqlite_address
from cloister.hub.services.access.views import UnreadableView, unreadable_views
from cloister.hub.work.facts import read_facts

if TYPE_CHECKING:
    from cloister.hub.settings import Settings


def unreadable_views_of(settings: Settings) -> list[UnreadableView]:
    """The grants, rules and policies of a hub that can't be read; none of one that was never opened. Nothing is written, and its
    services are to be known already: what one of them lets people do is an action that grants name.
    """
    elsewhere = settings.database.startswith("postgresql://")
    if not elsewhere and (settings.database or not settings.path("hub.db").is_file()):
        return []
    database = Database(settings.database if elsewhere else sqlite_address(settings.path("hub.db")))
    try:
        with database.reading() as db:
            return unreadable_views(db, read_facts(db))
    finally:
        database.close()
