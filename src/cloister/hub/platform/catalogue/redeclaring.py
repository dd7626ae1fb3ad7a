"""A declaration is opened again: bounds, kinds and whose rows they are, of a data set that is there.

As long as nothing was charged to its population, the declaration changes in place. Afterwards it is a new version of the same
rows, under the same population: what was spent stays spent, and answers keep the declaration that they were given under. Either
is safe for the people in the rows, since each answer's noise and charge follow from the declaration as it was when it was asked;
what a declaration may not do is say something about the rows, so each bound has its public reason again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError

from cloister.hub.generation import bump
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.joint import SITES
from cloister.hub.platform.catalogue.managing import now_version
from cloister.hub.platform.catalogue.pooled import check_own_rows
from cloister.hub.platform.catalogue.row_sources import SharedRowsOf
from cloister.hub.platform.catalogue.sources import source_of
from cloister.hub.platform.catalogue.versions import check_open, newest, put
from cloister.hub.platform.trail import write
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.declarations import check_against, check_declaration, check_reasons, domains_of, table_of
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.policies import parts_of
from cloister.tables.declaring.table import check_events

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.records.catalogue import DataSetVersion
    from cloister.tables.sourcing.sources import Source


def was_charged(hub: Hub, population: str | None) -> bool:
    """Whether anything was charged to the population, or left it with no guarantee."""
    assert population is not None
    return bool(hub.ledger.charges(population)) or hub.ledger.unbounded(population)


def opened_again(hub: Hub, caller: Caller, name: str) -> tuple[DataSet, dict[str, str]]:
    """A data set whose declaration its owner may open again, with the names and kinds of what its rows have."""
    with hub.database.reading() as db:
        row, version = _mine(hub, db, caller, name)
    source: Source = source_of(hub, row, version)  # type: ignore[assignment]
    return row, dict(source.schema)


def redeclare(hub: Hub, caller: Caller, name: str, declaration: Mapping[str, Any], *, row_is_person: bool = False) -> int:
    """Declare a data set again; the number of the version that queries read from now on."""
    row, schema = opened_again(hub, caller, name)
    found = check_declaration(name, {"through": row.declaration.get("through"), **declaration})
    check_reasons(found)
    check_against(name, found, schema)
    if not row_is_person:
        check_events(domains_of(name, found), found["unit"])
    try:
        with hub.database.begin() as db:
            db.scalars(select(DataSet).where(DataSet.name == name).with_for_update()).one()
            row, version = _mine(hub, db, caller, name)
            check_own_rows(db, row)
            _check_policies(row, found)
            given = SharedRowsOf(hub, row, version)
            before, row.declaration, row.changed = row.declaration, found, hub.now()
            changed = sorted(
                each
                for each in {*before["columns"], *found["columns"]}
                if before["columns"].get(each) != found["columns"].get(each)
            )
            charged = was_charged(hub, row.population)
            details: dict[str, Any] = {"name": name, "columns": changed}
            if row_is_person:
                details["row_is_person"] = True
            write(hub, db, caller, "dataset.redeclare", kind="data-set", object_id=row.id, data_sets=[row.id], **details)
            db.execute(delete(OwnerView).where(OwnerView.data_set == row.id))  # they speak of columns as they were
            if charged:
                if version.kind == SITES:
                    why = "its rows are at sites, which declare it themselves, and its population was charged"
                    raise _unchanged(name, why, "a data set of its own, declared so by every site")
                version.declaration = dict(before)
                made = given.version(caller, row, newest(db, row) + 1)
                given.take(db)
                put(hub, db, caller, row, made, table_of(row, source_of(hub, row, made), made.id))
            db.flush()
            bump(db)
            return row.version
    except IntegrityError:
        raise Conflict(
            "The declaration was not changed", why="a version came at the same moment", instead="change the declaration once more"
        ) from None


def _mine(hub: Hub, db: Db, caller: Caller, name: str) -> tuple[DataSet, DataSetVersion]:
    row = reading.owned(hub, db, caller, name)
    check_open(row)
    if row.public or row.window:
        why = "a public table declares nothing" if row.public else "all windows of a data set have one declaration"
        raise _unchanged(name, why, "a data set of its own")
    version = now_version(db, row)
    if version is None or version.destroyed is not None:
        raise _unchanged(name, "the key of its rows was destroyed", "a new version")
    return row, version


def _check_policies(row: DataSet, declaration: Mapping[str, Any]) -> None:
    """A column keeps its policy: whoever dropped it and declared it again later would be rid of it."""
    columns = parts_of(row).get("columns", {})
    lost = [column for column in columns if column not in declaration["columns"]] if isinstance(columns, Mapping) else []
    if lost:
        why = f"the column {lost[0]!r} would be dropped, and has a policy of its own"
        raise _unchanged(row.name, why, "a declaration with that column, or take its policy away first")


def _unchanged(name: str, why: str, instead: str) -> Conflict:
    return Conflict(f"The declaration of {name!r} was not changed", why=why, instead=instead)
