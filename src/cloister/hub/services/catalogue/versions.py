"""New rows of a data set: another version under the same population's budget, or another window under a budget of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from cloister.errors import AccessDenied, InvalidParameter
from cloister.hub.generation import bump
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion, Population
from cloister.hub.services.catalogue.arrivals import arrival_of, discard, stored
from cloister.hub.services.catalogue.declarations import check_against, table_of
from cloister.hub.services.catalogue.live import source_of, vault_of
from cloister.hub.services.catalogue.origins import check_origin, noticed, origin_of
from cloister.hub.services.catalogue.registering import Wanted, registered, schema_of, version_of
from cloister.hub.services.catalogue.windows import base_of, check_window, following, window_name, window_population
from cloister.hub.services.trail import write
from cloister.query import Session
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["add_version", "add_window", "check_open", "dropped", "windows_of"]


def add_version(hub: Hub, caller: Caller, data_set: str, number: str) -> int:
    """What arrived becomes the version that questions read; its number. The declaration stays, and is checked against it."""
    with hub.database.reading() as db:
        arrival = arrival_of(db, caller, number)
        row = db.get_one(DataSet, data_set)
    check_open(row)
    if row.public:
        _same_columns(row, schema_of(arrival))
    else:
        check_against(row.name, row.declaration, schema_of(arrival))
    origin = origin_of(hub, arrival)
    with hub.database.reading() as db:
        check_origin(db, row, origin)
    arrival = stored(hub, arrival)
    trial = version_of(hub, caller, arrival, row, 0)
    table = table_of(row, source_of(hub, row, trial), trial.id)
    try:
        with hub.database.begin() as db:
            row = db.scalars(select(DataSet).where(DataSet.id == data_set).with_for_update()).one()
            check_open(row)
            newest = db.scalar(
                select(DataSetVersion.number).where(DataSetVersion.data_set == row.id).order_by(DataSetVersion.number.desc())
            )
            version = version_of(hub, caller, arrival, row, (newest or 0) + 1)
            check_origin(db, row, origin)
            found = db.get(Arrival, arrival.id)
            if found is None:
                raise Conflict("The upload was refused", why="it was used meanwhile", instead="upload the file again")
            db.delete(found)
            db.add(version)
            row.version, row.changed = version.number, hub.now()
            db.flush()
            bump(db)
            details: dict[str, Any] = {"version": version.number, "name": row.name}
            line = write(db, hub, caller, "dataset.version", kind="data-set", object_id=row.id, data_sets=[row.id], **details)
            noticed(db, hub, caller, row, origin, line)
            if isinstance(table, PrivateTable):
                with Session({}, ledger=hub.ledger, who=caller.email or "owner") as session:
                    session.add(row.name, table)
    except IntegrityError:
        raise Conflict("The version was refused", why="another came at the same moment", instead="upload it again") from None
    return version.number


def add_window(hub: Hub, caller: Caller, data_set: str, number: str, label: str = "") -> DataSet:
    """What arrived becomes the data set of another window: the same declaration, policy and budget, and a new population."""
    with hub.database.reading() as db:
        row = db.get_one(DataSet, data_set)
        base = base_of(row.window)
        if not base or row.population is None:
            raise InvalidParameter(
                f"The window of {row.name!r} was refused", why="the data set has no windows", instead="a new version of it"
            )
        siblings = windows_of(db, row)
        population = db.get_one(Population, row.population)
        every = str(row.window["every"])
        label = label or following(every, max(str(each.window["window"]) for each in siblings))
        shared = window_population(str(row.window["population"]), label)
        wanted = Wanted(
            name=window_name(base, label),
            title=f"{row.window.get('title', row.title)} {label}",
            about=row.about,
            declaration=row.declaration,
            population=shared,
            budget=None if db.get(Population, shared) else hub.ledger.budget(population.name),
            unit=population.unit,
            people=population.people,
            metadata=row.metadata_,
            window={**row.window, **check_window(every, label)},
        )
    return registered(hub, caller, number, wanted)


def windows_of(db: Db, row: DataSet) -> list[DataSet]:
    """All windows of a data set with windows, the oldest first."""
    base = base_of(row.window)
    if not base:
        return []
    rows = db.scalars(select(DataSet).where(DataSet.owner == row.owner, DataSet.state != "deleted"))
    return sorted((each for each in rows if base_of(each.window) == base), key=lambda each: str(each.window["window"]))


def dropped(hub: Hub, caller: Caller, number: str) -> None:
    """Forget what arrived for a version that was refused."""
    with hub.database.begin() as db:
        found = db.get(Arrival, number)
        table = None if found is None or found.person != caller.id else discard(db, hub, caller, found)
    if table is not None:
        vault_of(hub).destroy(table, lambda: None)


def check_open(row: DataSet) -> None:
    """Refuse what takes no other rows."""
    if row.state == "deleted":
        raise AccessDenied("The version was refused", why="the data set was deleted", instead="register it as a new one")
    if row.released:
        raise Conflict(
            f"The version of {row.name!r} was refused",
            why="its rows left as an anonymised table: report and certificate are about these rows, and no others",
            instead="another release of the data set that it was made of, or a data set of its own",
        )


def _same_columns(row: DataSet, schema: dict[str, str]) -> None:
    declared = {name: each["kind"] for name, each in row.declaration["columns"].items()}
    if schema != declared:
        raise InvalidParameter(
            f"The version of {row.name!r} was refused",
            why="its columns have other names or kinds than the public table has",
            instead="a file with the same columns, or another data set",
        )
