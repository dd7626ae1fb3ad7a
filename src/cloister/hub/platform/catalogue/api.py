"""The API of the catalogue: find data sets, register one, describe it; populations; who looks after a data set; uploads.

A file is the body of its request, read as it comes; what arrived whole waits for a day to be registered.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Request
from sqlalchemy.orm import Session as Db
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from cloister.errors import Missing
from cloister.hub.description import Limit, read_of
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.catalogue import managing, reading
from cloister.hub.platform.catalogue.arrivals import arrivals_of, connected, discard, kept, kind_of, received
from cloister.hub.platform.catalogue.metadata import from_outside
from cloister.hub.platform.catalogue.registering import Wanted, registered
from cloister.hub.platform.catalogue.shapes import (
    AsRead,
    Changes,
    Connection,
    DataSetOut,
    DataSets,
    NewDataSet,
    NewVersion,
    NewWindow,
    PopulationOut,
    Populations,
    UploadOut,
    Uploads,
    VersionOut,
    Versions,
)
from cloister.hub.platform.catalogue.versions import add_version, add_window
from cloister.hub.platform.catalogue.windows import check_cut, in_window
from cloister.hub.records.accounts import names_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.declarations import check_declaration, check_reasons
from cloister.hub.records.policies import parts_of, told_parts
from cloister.hub.storage import Reading, missing_in
from cloister.hub.web.routing import Number, Routes

DataSetName = Annotated[str, Path(max_length=63, pattern=r"^[^\x00]*$")]
_Number = Annotated[int, Path(ge=1, le=2**31 - 1)]
_Search = Annotated[str, Query(max_length=200)]
_Sheet = Annotated[
    str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Of a workbook: the sheet that holds the table.")
]
_Lines = Annotated[int, Query(ge=1, le=2, description="How many lines name the columns.")]
_Numbers = Annotated[
    Literal["", "comma", "point"], Query(description="How numbers are written: comma, 1.234,5; point, 1,234.5; otherwise 1234.5.")
]
_Dates = Annotated[Literal["", "dmy", "mdy", "ymd"], Query(description="The order of day, month and year; otherwise 2026-03-31.")]
_Pivot = Annotated[
    int | None, Query(ge=0, le=99, description="The last year of two digits that is of the 2000s; without it, years have four.")
]
_Missing = Annotated[str, Query(max_length=2000, pattern=r"^[^\x00]*$", description="What stands for a missing value: NA, -99")]
_Short = Annotated[bool, Query(description="Whether lines may end early, or go on with empty fields.")]
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"text/csv": _BINARY, "application/vnd.apache.parquet": _BINARY}}
}


def add(routes: Routes) -> None:
    _uploads(routes)
    _catalogue(routes)
    _looked_after(routes)


def _catalogue(routes: Routes) -> None:
    @routes.get("/datasets", "dataset.see", "List data sets", "The data sets")
    def catalogue(
        hub: HubDep, caller: PersonDep, search: _Search = "", mine: bool = False, after: _Search = "", limit: Limit = 50
    ) -> DataSets:
        """Those that the caller may see, by name."""
        with hub.database.reading() as db:
            entries, more = reading.search(hub, db, caller, text=search, mine=mine, after=after, limit=limit)
            items = [shown(hub, db, caller, each.row) for each in entries]
        return DataSets(items=items, next=entries[-1].row.name if more else None)

    @routes.post("/datasets", "dataset.register", "Register a data set", "The data set", status_code=201)
    def make(hub: HubDep, caller: PersonDep, body: NewDataSet) -> DataSetOut:
        """What was uploaded or connected becomes a data set that is open; or nothing happens."""
        with hub.database.reading() as db:
            policy, by_column = _policies(hub, db, caller, body.policy, body.column_policies, {})
        row = registered(hub, caller, body.upload, _wanted(body, {"policy": policy, "columns": by_column}))
        with hub.database.reading() as db:
            return shown(hub, db, caller, db.get_one(DataSet, row.id))

    @routes.get("/datasets/{name}", "dataset.see", "Get a data set", "The data set with its declaration", ticked=True)
    def one(hub: HubDep, caller: PersonDep, name: DataSetName) -> DataSetOut:
        """As it is declared."""
        with hub.database.reading() as db:
            return shown(hub, db, caller, reading.seen(hub, db, caller, name))

    @routes.patch(
        "/datasets/{name}", "dataset.manage", "Update the description of a data set", "The data set with its new description"
    )
    def change(hub: HubDep, caller: PersonDep, name: DataSetName, body: Changes) -> DataSetOut:
        """Title, description, policies, and whether everybody finds it. What is declared of columns stays."""
        with hub.database.begin() as db:
            row = reading.owned(hub, db, caller, name)
            metadata = None
            if body.policy is not None or body.column_policies is not None:
                policy, by_column = _policies(hub, db, caller, body.policy, body.column_policies, parts_of(row))
                metadata = {"policy": policy, "columns": by_column}
            managing.describe(hub, db, caller, row, title=body.title, about=body.about, metadata=metadata, provider=body.provider)
            if body.listed is not None:
                managing.list_to_everybody(hub, db, caller, row, listed=body.listed)
            return shown(hub, db, caller, row)

    @routes.get(
        "/populations", "dataset.register", "List your populations", "Your populations, each with its data sets and its budget"
    )
    def populations(hub: HubDep, caller: PersonDep) -> Populations:
        """Each with the data sets that draw on it, and its budget."""
        with hub.database.reading() as db:
            rows = reading.populations_of(db, caller)
            items = [PopulationOut.of(row, reading.tables_on(db, row.name), reading.money_of(hub, row.name)) for row in rows]
        return Populations(items=items)

    @routes.get(
        "/populations/{name}",
        "dataset.register",
        "Get one of your populations",
        "The population with its data sets and its budget",
    )
    def population(hub: HubDep, caller: PersonDep, name: Annotated[str, Path(max_length=200)]) -> PopulationOut:
        """With the data sets that draw on it, and its budget."""
        with hub.database.reading() as db:
            row = reading.own_population(db, caller, name)
            return PopulationOut.of(row, reading.tables_on(db, row.name), reading.money_of(hub, row.name))


def shown(hub: Hub, db: Db, caller: Caller, row: DataSet) -> DataSetOut:
    """A data set as the caller may see it."""
    eyes = reading.Eyes(hub, db, caller)
    owner = names_of(db, [row.owner]).get(row.owner, "")
    members, spending = reading.unit_of(db, row.population), eyes.may("budget.see", row)
    return DataSetOut.of(eyes.entry(row), owner, reading.money_of(hub, row.population), members=members, spending=spending)


def _policies(
    hub: Hub,
    db: Db,
    caller: Caller,
    policy: Mapping[str, Any] | None,
    by_column: Mapping[str, Mapping[str, Any]] | None,
    before: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The policies of a data set and of its columns as the hub keeps them; None: those that stand there."""

    def id_of(name: str) -> str | None:
        try:
            return reading.names_to_ids(hub, db, caller, [name])[0]
        except Missing:
            return None

    stood = told_parts(before)
    whole, columns = stood["policy"], stood["columns"]
    told = before.get("policy", {}) if policy is None else from_outside(policy, whole, id_of)
    if by_column is None:
        return told, before.get("columns", {})
    kept: dict[str, Mapping[str, Any]] = {name: {} for name, each in columns.items() if "sources" in each} | dict(by_column)
    return told, {name: from_outside(each, columns.get(name, {}), id_of, name) for name, each in kept.items()}


def _wanted(body: NewDataSet, metadata: Mapping[str, Any]) -> Wanted:
    """What is asked for, in the words of `registering.py`."""
    declared: dict[str, Any] = {
        "name": body.name,
        "title": body.title,
        "population": body.population.strip(),
        "declaration": body.declaration(),
    }
    check_cut(body.every, body.date_column)
    if body.every:
        declared = in_window(declared, body.every, body.window, body.date_column)
    if not body.public:
        check_reasons(check_declaration(declared["name"], declared["declaration"]))
    return Wanted(
        **declared,
        about=body.about,
        public=body.public,
        budget=None if body.budget is None else body.budget.guarantee(),
        unit=body.members or "",
        people=body.people,
        listed=body.listed,
        row_is_person=body.row_is_person,
        metadata=metadata,
        provider=body.provider,
    )


def _looked_after(routes: Routes) -> None:
    @routes.get(
        "/datasets/{name}/versions", "dataset.version", "List the versions of a data set", "The versions, the newest first"
    )
    def versions(hub: HubDep, caller: PersonDep, name: DataSetName) -> Versions:
        """For those who may add one, the newest first."""
        with hub.database.reading() as db:
            row = reading.seen(hub, db, caller, name, "dataset.version")
            return Versions(items=[read_of(VersionOut, each) for each in managing.versions_of(db, row)])

    @routes.post("/datasets/{name}/versions", "dataset.version", "Add a version to a data set", "The version", status_code=201)
    def add(hub: HubDep, caller: PersonDep, name: DataSetName, body: NewVersion) -> VersionOut:
        """Other rows under the same declaration and the same budget; questions read them at once."""
        with hub.database.reading() as db:
            data_set = reading.seen(hub, db, caller, name, "dataset.version").id
        number = add_version(hub, caller, data_set, body.upload, others=body.windows == "all")
        with hub.database.reading() as db:
            row = db.get_one(DataSet, data_set)
            return read_of(VersionOut, next(each for each in managing.versions_of(db, row) if each.number == number))

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
        managing.delete(hub, caller, name, name)
        return Response(status_code=204)


def _uploads(routes: Routes) -> None:

    async def taken(
        request: Request,
        hub: HubDep,
        caller: PersonDep,
        sheet: _Sheet = "",
        lines: _Lines = 1,
        numbers: _Numbers = "",
        dates: _Dates = "",
        pivot: _Pivot = None,
        missing: _Missing = "",
        short: _Short = False,
    ) -> UploadOut:
        """The body is the file; Content-Type says what it is. The whole of it is kept, or nothing."""
        named = missing_in(missing)
        how = Reading(sheet=sheet, lines=lines, numbers=numbers, dates=dates, pivot=pivot, missing=named, short=short)
        upload = await received(hub, kind_of(request.headers.get("content-type", "")), request.stream(), how)
        return UploadOut.of(await run_in_threadpool(lambda: kept(hub, caller, upload, how=how)))

    for name, way in (("upload_post", routes.post), ("upload_put", routes.put)):
        given = "The upload, which waits to be registered"
        way("/uploads", "dataset.version", "Upload a file", given, status_code=201, openapi_extra=_BODY, operation_id=name)(taken)

    @routes.get("/uploads", "dataset.version", "List uploads", "The uploads that are not registered yet")
    def waiting(hub: HubDep, caller: PersonDep) -> Uploads:
        """One's own uploads and connections, the newest first."""
        with hub.database.reading() as db:
            return Uploads(items=[UploadOut.of(row) for row in arrivals_of(db, caller)])

    @routes.post(
        "/connections",
        "dataset.register",
        "Connect a table of a database",
        "The connection, which waits to be registered as an upload does",
        status_code=201,
    )
    def connect(hub: HubDep, caller: PersonDep, body: Connection) -> UploadOut:
        """A table of a PostgreSQL or Spark Connect server that the hub's settings allow; it waits like an upload."""
        return UploadOut.of(connected(hub, caller, body.address))

    @routes.delete("/uploads/{number}", "dataset.version", "Delete an upload", "The upload is deleted", status_code=204)
    def drop(hub: HubDep, caller: PersonDep, number: Number) -> Response:
        """Nothing of it stays."""
        discard(hub, caller, number)
        return Response(status_code=204)
