"""Whether this process can answer: its database, its ledger and its policy, in words that are safe for anybody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text

from cloister.errors import CloisterError
from cloister.hub.services.access import facts_of

if TYPE_CHECKING:
    from cloister.hub.hub import Hub


@dataclass(frozen=True, kw_only=True)
class Health:
    """What works."""

    database: bool
    ledger: bool
    policy: bool = True
    """Every grant, rule and policy that is stored can be read. What can't be closes what it governs, and the rest answers."""

    @property
    def well(self) -> bool:
        """Whether the hub answers."""
        return self.database and self.ledger

    def told(self) -> dict[str, str]:
        """As it is told to machines.

        >>> Health(database=True, ledger=True, policy=False).told()["status"]
        'degraded'
        """
        found = {
            "status": "failing" if not self.well else "ok" if self.policy else "degraded",
            "database": "ok" if self.database else "failing",
            "ledger": "ok" if self.ledger else "failing",
        }
        return found if self.policy else {**found, "policy": "unreadable"}


def health(hub: Hub) -> Health:
    """Ask each part for a trifle."""
    return Health(database=_answers(hub), ledger=_charges(hub), policy=_reads(hub))


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


def _reads(hub: Hub) -> bool:
    try:
        with hub.database.reading() as db:
            return not facts_of(hub, db).unreadable
    except CloisterError:
        return True  # the database is away, which is told already
