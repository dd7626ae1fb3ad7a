"""Which models somebody may see: their own. What holds for the data holds for what was learnt from them.

Looking at one's own model stays one's own; downloading lets it go further, so its source is asked as it is now, as for a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.hub.problems import Missing
from cloister.hub.records.learning import LearntModel
from cloister.hub.releases.derived import check_derived, newest_open

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["models_of", "seen_model"]


def seen_model(hub: Hub, db: Db, caller: Caller, number: str, action: str = "release.see") -> LearntModel:
    """A model of the caller's own; any other is missing, whether it exists or not. Its policy is asked at each use."""
    mine = (LearntModel.id == number) & (LearntModel.person == caller.id)
    row = db.scalar(select(LearntModel).where(mine))
    if row is None:
        raise Missing("There is no such model", why="it does not exist, or is not yours", instead="/models")
    check_derived(hub, db, caller, row, action)
    return row


def models_of(hub: Hub, db: Db, caller: Caller, *, after: str = "", limit: int = 50) -> list[LearntModel]:
    """The newest models that somebody may see now; `after` is the id of the last one that was seen."""
    mine = LearntModel.person == caller.id
    return newest_open(hub, db, caller, LearntModel, mine, after=after, limit=limit)
