"""New rows of a data set: another version under the same population's budget, or another window under a budget of its own.

A data set whose windows are cut by a date column may be sent as one file each time, with all rows so far: each window reads the
rows of its own days, under its own budget, so rows in a window that is over get no fresh one.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, Conflict, InvalidDeclaration, InvalidParameter
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.joint import SITES
from cloister.hub.platform.catalogue.managing import destroy_all, now_version
from cloister.hub.platform.catalogue.masked import MASKED, Masked, MaskedRows, line_of, masked_in
from cloister.hub.platform.catalogue.origins import check_origin, noticed
from cloister.hub.platform.catalogue.registering import Wanted, made_of, open_table, registered
from cloister.hub.platform.catalogue.row_sources import RowSource, SharedRowsOf, UploadedRows
from cloister.hub.platform.catalogue.sources import check_own_rows, source_of
from cloister.hub.platform.catalogue.windows import base_of, column_of, in_window, next_window, windows_of
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
from cloister.hub.records.declarations import check_against, check_declaration, check_reasons, domains_of, table_of
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.policies import parts_of, policies_in_row, retention_of
from cloister.tables.declaring.table import PrivateTable, PublicTable, check_events
from cloister.tables.sourcing.sources import Source


def add_version(hub: Hub, caller: Caller, data_set: str, number: str, *, others: bool = False) -> int:
    """What arrived becomes the version that questions read; its number. The declaration stays, and is checked against it. With
    `others`, the other open windows of the data set are served from it too, each the rows of its own days."""
    given = UploadedRows.find(hub, caller, number)
    with hub.database.reading() as db:
        row = db.get_one(DataSet, data_set)
        rows = [row, *(_others(db, caller, row) if others else ())]
        for each in rows:
            _check_fits(each, given.schema)
            check_origin(db, each, given.origin)
    given.settle()
    trial = given.version(caller, row, 0)
    tables = {each.id: table_of(each, source_of(hub, each, trial), trial.id) for each in rows}
    try:
        with hub.database.begin() as db:
            wanted = select(DataSet).where(DataSet.id.in_([each.id for each in rows])).order_by(DataSet.id).with_for_update()
            locked = {each.id: each for each in db.scalars(wanted)}
            row = locked[data_set]
            first = given.version(caller, row, newest(db, row) + 1)
            put(hub, db, caller, row, first, tables[row.id])
            for other in [each for each in locked.values() if each.id != data_set and each.state == "open"]:
                version = SharedRowsOf(hub, row, first).version(caller, other, newest(db, other) + 1)
                put(hub, db, caller, other, version, tables[other.id])
            given.take(db)
            db.flush()
            bump(db)
    except IntegrityError:
        raise Conflict("The version was not added", why="another came at the same moment", instead="upload it again") from None
    return first.number


def add_rows(
    hub: Hub, caller: Caller, rows: Mapping[str, tuple[RowSource, Callable[[DataSetVersion | None], object]]]
) -> dict[str, int]:
    """Rows that are no upload become the version that questions read, in each of these data sets or in none; the numbers of the
    versions. The function beside a data set's rows refuses them after the version before."""
    try:
        with hub.database.begin() as db:
            made = {}
            wanted = select(DataSet).where(DataSet.id.in_(rows)).order_by(DataSet.id).with_for_update()
            for row in db.scalars(wanted).all():
                given, check = rows[row.id]
                check(now_version(db, row))
                _check_fits(row, given.schema)
                version = given.version(caller, row, newest(db, row) + 1)
                put(hub, db, caller, row, version, table_of(row, source_of(hub, row, version), version.id), given.told)
                made[row.id] = version.number
            for given, _ in rows.values():
                given.take(db)
            db.flush()
            bump(db)
    except IntegrityError:
        raise Conflict("The version was not added", why="another came at the same moment", instead="the same again") from None
    return made


def add_masked(hub: Hub, caller: Caller, data_set: str, masked: Masked, after: Masked, *, alone: bool = False) -> int:
    """A version of other batches, or of another key holder's pads: its number. Questions read it from now on. Refused where
    `after` is no longer what they read. `alone`: the versions before it are destroyed in the same moment."""
    with hub.database.reading() as db:
        row = db.get_one(DataSet, data_set)
    given = MaskedRows(hub, masked)
    given.origin = _origin_of(hub, data_set) or given.origin
    form, declared = masked.source(hub, line_of(hub, masked)).format, row.declaration
    if {name: each.describe() for name, each in form.columns.items()} != declared["columns"] or form.unit != declared["unit"]:
        raise InvalidDeclaration(
            "The batch is invalid", why="its format declares other columns than the data set", instead="a data set of its own"
        )
    try:
        with hub.database.begin() as db:
            row = db.scalars(select(DataSet).where(DataSet.id == data_set).with_for_update()).one()
            now = now_version(db, row)
            if now is None or now.kind != MASKED or masked_in(hub, now) != after:
                raise Conflict("The version was not added", why="another came at the same moment", instead="upload it again")
            version = given.version(caller, row, newest(db, row) + 1)
            if alone:
                destroy_all(hub, db, caller, row)
            put(hub, db, caller, row, version, table_of(row, given.masked.source(hub, line_of(hub, masked)), version.id))
            bump(db)
    except IntegrityError:
        raise Conflict("The version was not added", why="another came at the same moment", instead="upload it again") from None
    return version.number


def _origin_of(hub: Hub, data_set: str) -> str:
    with hub.database.reading() as db:
        wanted = select(DataSetVersion.origin).where(DataSetVersion.data_set == data_set).order_by(DataSetVersion.number)
        return db.scalar(wanted.limit(1)) or ""


def add_window(hub: Hub, caller: Caller, data_set: str, number: str = "", label: str = "") -> DataSet:
    """Another window, as a data set of its own: the same declaration, policy and budget, and a new population. Its rows are what
    arrived; or, where windows are cut by a date column and nothing arrived, those that this window is served from."""
    with hub.database.reading() as db:
        row = db.get_one(DataSet, data_set)
        base, column = base_of(row.window), column_of(row.window)
        if not base or row.population is None:
            raise InvalidParameter(
                f"The window of {row.name!r} is invalid", why="the data set has no windows", instead="a new version of it"
            )
        if policies_in_row(row)[1]:
            raise Conflict(
                f"The window of {row.name!r} was not opened",
                why="a policy that it would inherit can't be read",
                instead=f"write it again: /datasets/{row.name}/manage",
            )
        if not number and not column:
            raise InvalidParameter(
                f"The window of {row.name!r} is invalid",
                why="no date column says which rows are of it, so it has none before they are sent",
                instead="a file with the rows of that window alone",
            )
        population = db.get_one(Population, row.population)
        declared: dict[str, Any] = {
            "name": base,
            "title": row.window.get("title", row.title),
            "population": str(row.window["population"]),
        }
        declared["declaration"] = _unbound(row.declaration, column) if column else row.declaration
        declared = in_window(declared, str(row.window["every"]), label or next_window(db, row), column)
        wanted = Wanted(
            **declared,
            about=row.about,
            budget=None if db.get(Population, declared["population"]) else hub.ledger.budget(population.name),
            unit=population.unit,
            people=population.people,
            row_is_person=True,  # said of its first window
            metadata=row.metadata_,
            provider=row.provider,
        )
        version = None if number else now_version(db, row)
    if number:
        return registered(hub, caller, number, wanted)
    if version is None or version.destroyed is not None:
        raise Conflict("The window was not opened", why="the key of the rows of this one was destroyed", instead="a file")
    return made_of(hub, caller, SharedRowsOf(hub, row, version), wanted)


def _others(db: Db, caller: Caller, row: DataSet) -> list[DataSet]:
    """The other open windows, where their owner says that these rows are for them too."""
    if not column_of(row.window):
        raise InvalidParameter(
            f"The version of {row.name!r} is invalid for other windows",
            why="no date column says which rows are of which window",
            instead="a file for each window",
        )
    if row.owner != caller.id:
        raise AccessDenied(
            f"The version of {row.name!r} was not added to other windows",
            why="they are their owner's",
            instead="this window alone",
        )
    return [each for each in windows_of(db, row) if each.id != row.id and each.state == "open"]


def put(
    hub: Hub,
    db: Db,
    caller: Caller,
    row: DataSet,
    version: DataSetVersion,
    table: PrivateTable | PublicTable,
    told: Mapping[str, str] | None = None,
) -> None:
    """Make a version the one that questions read; `told` is what else the audit log says."""
    check_open(row)
    check_kept(hub, row)
    check_own_rows(db, row)
    check_origin(db, row, version.origin)
    db.add(version)
    row.version, row.changed = version.number, hub.now()
    db.flush()
    details: dict[str, Any] = {"version": version.number, "name": row.name, **(told or {})}
    line = write(hub, db, caller, "dataset.version", kind="data-set", object_id=row.id, data_sets=[row.id], **details)
    noticed(hub, db, caller, row, version.origin, line)
    if isinstance(table, PrivateTable):
        open_table(hub, db, caller, row, table)


def newest(db: Db, row: DataSet) -> int:
    """The greatest number of its versions."""
    wanted = select(DataSetVersion.number).where(DataSetVersion.data_set == row.id).order_by(DataSetVersion.number.desc())
    return db.scalar(wanted.limit(1)) or 0


def _check_fits(row: DataSet, schema: Mapping[str, str]) -> None:
    check_open(row)
    if row.public:
        _same_columns(row, schema)
    else:
        check_against(row.name, row.declaration, schema)


def _unbound(declaration: Mapping[str, Any], column: str) -> dict[str, Any]:
    """A window's declaration without what it says of its own days."""
    return {**declaration, "columns": {**declaration["columns"], column: {"kind": "date"}}}


def check_open(row: DataSet) -> None:
    """Refuse what takes no other rows."""
    if row.state == "deleted":
        raise AccessDenied("The version was not added", why="the data set was deleted", instead="register it as a new one")
    if row.released:
        raise Conflict(
            f"The version of {row.name!r} was not added",
            why="its rows left as an anonymised table: report and certificate are about these rows, and no others",
            instead="another release of the data set that it was made of, or a data set of its own",
        )


def check_kept(hub: Hub, row: DataSet) -> None:
    """Refuse rows of a data set whose last day is over: they would be destroyed within the hour."""
    end = retention_of(row)
    if end is not None and end <= hub.now():
        why = "the last day of its data is over, and other rows would be destroyed at once"
        raise Conflict(f"The version of {row.name!r} was not added", why=why, instead="a later last day first")


def _same_columns(row: DataSet, schema: Mapping[str, str]) -> None:
    declared = {name: each["kind"] for name, each in row.declaration["columns"].items()}
    if schema != declared:
        raise InvalidParameter(
            f"The version of {row.name!r} is invalid",
            why="its columns have other names or kinds than the public table has",
            instead="a file with the same columns, or another data set",
        )


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
    """Declare a data set again; the number of the version that queries read from now on.

    A declaration is opened again, too. As long as nothing was charged to its population, it changes in place. Afterwards it is
    a new version of the same rows, under the same population: what was spent stays spent, and answers keep the declaration that
    they were given under. Either is safe for the people in the rows, since each answer's noise and charge follow from the
    declaration as it was when it was asked; what a declaration may not do is say something about the rows, so each bound has
    its public reason again."""
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
