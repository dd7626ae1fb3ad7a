"""Two data sets over the same rows, each with the budget of a population of its own: both are closed, and their owners are told.

Such a pair can't be registered any more. It can stand in a hub from before, when an address told whose rows a table of a database
has; and it can come to be, when somebody makes a table of the database a part of another one. The live tables find it
when they open what there is, and let nobody ask either (`live.py`); here it is written down.

What both have spent, has been spent of the same people. So the choice is their owners': the one whose population has the rows
in the ledger may be opened again, once it is the only one; the other one cannot, since it would be found again.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.hub.generation import bump
from cloister.hub.hub import ITSELF, Hub
from cloister.hub.platform.trail import DATA_SET, key_of, raise_alert, sealed, write
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.trail import AuditAbout, AuditLine

_SHARED, _OPENED = "dataset.shared", "dataset.open"


def connects(db: Db) -> bool:
    """Whether an open data set reads a database, where what belongs together can change without the hub."""
    here = (DataSetVersion.data_set == DataSet.id) & (DataSetVersion.number == DataSet.version)
    wanted = select(DataSet.id).join(DataSetVersion, here).where(DataSet.state == "open", DataSetVersion.kind == "connection")
    return db.scalar(wanted.limit(1)) is not None


def close_shared(hub: Hub, shared: Mapping[str, frozenset[str]]) -> list[str]:
    """Close data sets that were found to have the rows of others, tell their owners and a steward; the names of those that were
    open."""
    closed = []
    with hub.database.begin() as db:
        rows = {row.name: row for row in db.scalars(select(DataSet).where(DataSet.name.in_(shared)).order_by(DataSet.name))}
        for name, row in rows.items():
            if row.state != "open":
                continue
            others = [rows[each] for each in sorted(shared[name]) if each in rows]
            row.state, row.changed = "closed", hub.now()
            told: dict[str, Any] = {"others": [each.id for each in others]}
            line = write(hub, db, ITSELF, _SHARED, kind="data-set", object_id=row.id, data_sets=[row.id], name=name, **told)
            raise_alert(hub, db, row.owner, "shared", line, {"data sets": [name, *(each.name for each in others)]})
            closed.append(name)
        if closed:
            bump(db)
    return closed


def others_of(db: Db, row: DataSet) -> list[DataSet] | None:
    """Of a data set that was closed because its rows are in others too, and was not opened since: these others that are not
    deleted. None of any other."""
    if row.state != "closed":
        return None
    about = select(AuditAbout.number).where(AuditAbout.object == key_of(DATA_SET, row.id))
    wanted = select(AuditLine).where(sealed(), AuditLine.number.in_(about), AuditLine.action.in_((_SHARED, _OPENED)))
    last = db.scalar(wanted.order_by(AuditLine.number.desc()).limit(1))
    if last is None or last.action != _SHARED:
        return None
    found = select(DataSet).where(DataSet.id.in_(last.details.get("others", [])), DataSet.state != "deleted")
    return list(db.scalars(found.order_by(DataSet.name)))
