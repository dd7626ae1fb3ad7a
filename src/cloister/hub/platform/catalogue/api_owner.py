"""The API for who looks after a data set: versions, windows, closing and opening, deletion."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from cloister.hub.caller import PersonDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.platform.catalogue import managing, reading
from cloister.hub.platform.catalogue.api import DataSetName, shown
from cloister.hub.platform.catalogue.shapes import AsRead, DataSetOut, NewVersion, NewWindow, VersionOut, Versions
from cloister.hub.platform.catalogue.versions import add_version, add_window
from cloister.hub.records.catalogue import DataSet
from cloister.hub.web.forms import written_here

_WRITTEN = Depends(written_here)
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]


def routes(router: APIRouter) -> None:
    """Add them."""
    version, manage, register, delete = (
        needs(each) for each in ("dataset.version", "dataset.manage", "dataset.register", "dataset.delete")
    )

    @router.get(
        "/datasets/{name}/versions",
        dependencies=[version],
        summary="List the versions of a data set",
        response_description="The versions, the newest first",
    )
    def versions(hub: HubDep, caller: PersonDep, name: DataSetName) -> Versions:
        """For those who may add one, the newest first."""
        with hub.database.reading() as db:
            row = reading.seen(hub, db, caller, name, "dataset.version")
            return Versions(items=[VersionOut.of(each) for each in managing.versions_of(db, row)])

    @router.post(
        "/datasets/{name}/versions",
        dependencies=[version, _WRITTEN],
        status_code=201,
        summary="Add a version to a data set",
        response_description="The version",
    )
    def add(hub: HubDep, caller: PersonDep, name: DataSetName, body: NewVersion) -> VersionOut:
        """Other rows under the same declaration and the same budget; questions read them at once."""
        with hub.database.reading() as db:
            data_set = reading.seen(hub, db, caller, name, "dataset.version").id
        number = add_version(hub, caller, data_set, body.upload, others=body.windows == "all")
        with hub.database.reading() as db:
            row = db.get_one(DataSet, data_set)
            return VersionOut.of(next(each for each in managing.versions_of(db, row) if each.number == number))

    @router.get(
        "/datasets/{name}/reading",
        dependencies=[manage],
        summary="Get the import report of a data set",
        response_description="Exact numbers of dropped lines, NULL values and clamped values",
    )
    def read(hub: HubDep, caller: PersonDep, name: DataSetName) -> AsRead:
        """How many lines were no rows, and how many values of each column became none or were moved to a bound: exact numbers,
        for the owner alone."""
        row, report = managing.preparation_report(hub, caller, name)
        return AsRead.of(row.version, report)

    @router.delete(
        "/datasets/{name}/versions/{number}",
        dependencies=[manage, _WRITTEN],
        status_code=204,
        summary="Delete a version of a data set",
        response_description="The version is deleted",
    )
    def destroy(hub: HubDep, caller: PersonDep, name: DataSetName, number: _Number) -> Response:
        """Its key first, then its file. Not the one that questions read."""
        with hub.database.reading() as db:
            data_set = reading.owned(hub, db, caller, name).id
        managing.destroy_old(hub, caller, data_set, number)
        return Response(status_code=204)

    @router.post(
        "/datasets/{name}/windows",
        dependencies=[register, _WRITTEN],
        status_code=201,
        summary="Add a window to a data set",
        response_description="The data set of the window",
    )
    def window(hub: HubDep, caller: PersonDep, name: DataSetName, body: NewWindow) -> DataSetOut:
        """A data set of its own, with a population and a budget of its own, declared as this one."""
        with hub.database.reading() as db:
            data_set = reading.owned(hub, db, caller, name).id
        made = add_window(hub, caller, data_set, body.upload or "", body.window)
        with hub.database.reading() as db:
            return shown(hub, db, caller, db.get_one(DataSet, made.id))

    @router.post(
        "/datasets/{name}/close",
        dependencies=[manage, _WRITTEN],
        summary="Close a data set",
        response_description="The closed data set",
    )
    def close(hub: HubDep, caller: PersonDep, name: DataSetName) -> DataSetOut:
        """Nobody can ask any more; everything stays."""
        with hub.database.begin() as db:
            row = reading.owned(hub, db, caller, name)
            managing.close(hub, db, caller, row)
            return shown(hub, db, caller, row)

    @router.post(
        "/datasets/{name}/open",
        dependencies=[manage, _WRITTEN],
        summary="Reopen a data set",
        response_description="The open data set",
    )
    def reopen(hub: HubDep, caller: PersonDep, name: DataSetName) -> DataSetOut:
        """Those can ask again who may."""
        with hub.database.begin() as db:
            row = reading.owned(hub, db, caller, name)
            managing.reopen(hub, db, caller, row)
            return shown(hub, db, caller, row)

    @router.delete(
        "/datasets/{name}",
        dependencies=[delete, _WRITTEN],
        status_code=204,
        summary="Delete a data set",
        response_description="The data set is deleted",
    )
    def remove(hub: HubDep, caller: PersonDep, name: DataSetName) -> Response:
        """Its keys first, then its files. What its population has spent stays."""
        with hub.database.reading() as db:
            reading.owned(hub, db, caller, name, "dataset.delete")
        managing.delete(hub, caller, name, name)
        return Response(status_code=204)
