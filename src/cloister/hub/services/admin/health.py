"""Whether this process can answer: its database, its ledger and its trail, in words that are safe for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from cloister.errors import CloisterError

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

__all__ = ["Health", "health"]


@dataclass(frozen=True, kw_only=True)
class Health:
    """What works."""

    database: bool
    ledger: bool

    @property
    def well(self) -> bool:
        """Whether everything does."""
        return self.database and self.ledger

    def told(self) -> dict[str, str]:
        """As it is told to machines."""
        return {
            "status": "ok" if self.well else "failing",
            "database": "ok" if self.database else "failing",
            "ledger": "ok" if self.ledger else "failing",
        }


def health(hub: Hub) -> Health:
    """Ask each part for a trifle."""
    return Health(database=_answers(hub), ledger=_charges(hub))


def _answers(hub: Hub) -> bool:
    try:
        with hub.database.reading() as db:
            return db.execute(text("SELECT 1")).scalar() == 1
    except CloisterError:
        return False


def _charges(hub: Hub) -> bool:
    try:
        return hub.ledger.frozen is None and hub.ledger.head[0] > 0
    except CloisterError:
        return False
