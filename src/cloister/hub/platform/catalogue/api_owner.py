"""The API for who looks after a data set: versions, windows, closing and opening, deletion."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from cloister.hub.caller import PersonDep
from cloister.hub.hub import HubDep
from cloister.hub.platform.catalogue import managing, reading
from cloister.hub.platform.catalogue.api import DataSetName, shown
from cloister.hub.platform.catalogue.shapes import AsRead, DataSetOut, NewVersion, NewWindow, VersionOut, Versions
from cloister.hub.platform.catalogue.versions import add_version, add_window
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.routing import Routes

_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


def add(routes: Routes) -> None:
    """Add them."""

    @routes.get(
        "/datasets/{name}/versions", "dataset.version", "List the versions of a data set", "The versions, the newest first"
    )
    def versions(hub: HubDep, caller: PersonDep, name: DataSetName) -> Versions:
        """For those who may add one, the newest first."""
        with hub.database.reading() as db:
            row = reading.seen(hub, db, caller, name, "dataset.version")
            return Versions(items=[VersionOut.of(each) for each in managing.versions_of(db, row)])

    @routes.post("/datasets/{name}/versions", "dataset.version", "Add a version to a data set", "The version", status_code=201)
    def add(hub: HubDep, caller: PersonDep, name: DataSetName, body: NewVersion) -> VersionOut:
        """Other rows under the same declaration and the same budget; questions read them at once."""
        with hub.database.reading() as db:
            data_set = reading.seen(hub, db, caller, name, "dataset.version").id
        number = add_version(hub, caller, data_set, body.upload, others=body.windows == "all")
        with hub.database.reading() as db:
            row = db.get_one(DataSet, data_set)
            return VersionOut.of(next(each for each in managing.versions_of(db, row) if each.number == number))

    @routes.get(
        "/datasets/{name}/reading",
        "dataset.manage",
        "Get the import report of a data set",
        "Exact numbers of dropped lines, NULL values and clamped values",
    )
    def read(hub: HubDep, caller: PersonDep, name: DataSetName) -> AsRead:
        """How many lines were no rows, and how many values of each column became none or were moved to a bound: exact numbers,
        for the owner alone."""
        row, report = managing.preparation_report(hub, caller, name)
        return AsRead.of(row.version, report)

    @routes.delete(
        "/datasets/{name}/versions/{number}",
        "dataset.manage",
        "Delete a version of a data set",
        "The version is deleted",
        status_code=204,
    )
    def destroy(hub: HubDep, caller: PersonDep, name: DataSetName, number: _Number) -> Response:
        """Its key first, then its file. Not the one that questions read."""
        with hub.database.reading() as db:
            data_set = reading.owned(hub, db, caller, name).id
        managing.destroy_old(hub, caller, data_set, number)
        return Response(status_code=204)

    @routes.post(
        "/datasets/{name}/windows",
        "dataset.register",
        "Add a window to a data set",
        "The data set of the window",
        status_code=201,
    )
    def window(hub: HubDep, caller: PersonDep, name: DataSetName, body: NewWindow) -> DataSetOut:
        """A data set of its own, with a population and a budget of its own, declared as this one."""
        with hub.database.reading() as db:
            data_set = reading.owned(hub, db, caller, name).id
        made = add_window(hub, caller, data_set, body.upload or "", body.window)
        with hub.database.reading() as db:
            return shown(hub, db, caller, db.get_one(DataSet, made.id))

    @routes.post("/datasets/{name}/close", "dataset.manage", "Close a data set", "The closed data set")
    def close(hub: HubDep, caller: PersonDep, name: DataSetName) -> DataSetOut:
        """Nobody can ask any more; everything stays."""
        with hub.database.begin() as db:
            row = reading.owned(hub, db, caller, name)
            managing.close(hub, db, caller, row)
            return shown(hub, db, caller, row)

    @routes.post("/datasets/{name}/open", "dataset.manage", "Reopen a data set", "The open data set")
    def reopen(hub: HubDep, caller: PersonDep, name: DataSetName) -> DataSetOut:
        """Those can ask again who may."""
        with hub.database.begin() as db:
            row = reading.owned(hub, db, caller, name)
            managing.reopen(hub, db, caller, row)
            return shown(hub, db, caller, row)

    @routes.delete("/datasets/{name}", "dataset.delete", "Delete a data set", "The data set is deleted", status_code=204)
    def remove(hub: HubDep, caller: PersonDep, name: DataSetName) -> Response:
        """Its keys first, then its files. What its population has spent stays."""
        with hub.database.reading() as db:
            reading.owned(hub, db, caller, name, "dataset.delete")
        managing.delete(hub, caller, name, name)
        return Response(status_code=204)
