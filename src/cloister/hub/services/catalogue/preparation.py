"""What became of the owner's rows when they were read: for the owner alone, in exact numbers, which are not private.

A line that is not a row, a value that is none of the declared ones, a value beyond a bound: each changes answers without a word,
since an answer that told of it would tell of a person. Anyone who has the file may know, and learns it here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.hub.problems import Conflict
from cloister.hub.services.catalogue import reading
from cloister.hub.services.catalogue.live import live_of
from cloister.tables import PreparationReport

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.catalogue import DataSet


def preparation_report(hub: Hub, caller: Caller, name: str) -> tuple[DataSet, PreparationReport]:
    """A data set of the caller's own, and what was read of it; the rows are read once for that."""
    with hub.database.reading() as db:
        row = reading.owned(hub, db, caller, name)
        if row.public:
            raise Conflict("There is nothing to tell", why="a public table is read as it is", instead=f"/datasets/{name}")
        if row.state != "open":
            raise Conflict("Nothing was read", why="the data set is closed", instead="open it again, and look then")
        session = live_of(hub).session(db, caller.id, tables=[name])
    with session.registry.pinned():
        snapshot = session.registry.snapshot
        if not snapshot.entry(name).declaration.abilities.rows:
            raise Conflict(
                "There is no import report",
                why="its rows are read elsewhere, and only sums with noise come here",
                instead=f"/datasets/{name}",
            )
        return row, snapshot.prepare(name).owner_report()
