"""What an owner does with a data set that is there: describe it again, list it, close and open it, check its file, delete it.

Deleting destroys keys first. Once that is committed nobody can read the rows again; that the files go too is tidiness.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete as delete_rows
from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, CloisterError, Conflict, InvalidParameter, Missing
from cloister.hub.decisions.facts import facts_of
from cloister.hub.decisions.policy.actions import ADMINISTRATOR, STEWARD
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.joint import SITES, check_sites, joined_in
from cloister.hub.platform.catalogue.live import live_of
from cloister.hub.platform.catalogue.masked import sweep_masked
from cloister.hub.platform.catalogue.metadata import checked_text, metadata_of, provider_of
from cloister.hub.platform.catalogue.registering import LISTED, listing
from cloister.hub.platform.catalogue.sources import source_of, table_store_of
from cloister.hub.platform.trail import write
from cloister.hub.records.access import Grant
from cloister.hub.records.catalogue import DataSet, DataSetVersion
from cloister.hub.records.declarations import table_of
from cloister.hub.records.owner_views import OwnerView
from cloister.hub.records.policies import is_readable, labels_in, parts_of, policies_in_row, retention_of
from cloister.hub.storage import StoredTable
from cloister.tables import PreparationReport


def describe(
    hub: Hub,
    db: Db,
    caller: Caller,
    row: DataSet,
    *,
    title: str | None = None,
    about: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    provider: str | None = None,
) -> None:
    """Another title, description or policy; what is None stays. What a provider attached to what they gave stays always, and so
    does what can't be read of the columns where nothing else is put in its place."""
    changed = {}
    if title is not None and (found := checked_text("title", title, 200)) != row.title:
        row.title = changed["title"] = found
    if about is not None and (found := checked_text("description", about, 5000, empty=True, lines=True)) != row.about:
        row.about, changed["about"] = found, "(changed)"
    if metadata is not None:
        policy = _written_again(row, metadata)
        _check_labels(hub, db, caller, row, policy)
        if policy != row.metadata_:
            row.metadata_, changed["policy"] = policy, "(changed)"
    if provider is not None and (giver := provider_of(provider)) != row.provider:
        if parts_of(row).get("contribution"):
            raise Conflict(
                "The data provider was not changed", why="their policy binds the data", instead="ask them to revoke it first"
            )
        row.provider, changed["provider"] = giver, giver
    if changed:
        row.changed = hub.now()
        bump(db)
        _told(hub, db, caller, "dataset.describe", row, changed=changed)


def _written_again(row: DataSet, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The policies as they are kept from now on: checked, but for those that stand there, can't be read, and stay."""
    before = parts_of(row)
    whole, columns = metadata.get("policy", {}), metadata.get("columns", {})
    stays = whole == before.get("policy") and not is_readable(whole)
    kept = before.get("columns", {})
    as_kept = not isinstance(columns, Mapping) and columns == kept
    new: dict[str, Any] = {} if as_kept else dict(columns)
    stay = {name: new.pop(name) for name, each in list(new.items()) if _stands(kept, name, each) and not is_readable(each)}
    found = metadata_of({"policy": {} if stays else whole, "columns": new}, row.declaration["columns"])
    return {
        "policy": whole if stays else found["policy"],
        "columns": columns if as_kept else {**found["columns"], **stay},
        "contribution": before.get("contribution", {}),
    }


def _stands(kept: object, name: str, policy: object) -> bool:
    return isinstance(kept, Mapping) and name in kept and kept[name] == policy


def _check_labels(hub: Hub, db: Db, caller: Caller, row: DataSet, policy: Mapping[str, Any]) -> None:
    """A label that a rule of the institution goes by stays where it was put: who took it off would be rid of the rule."""
    if caller.has(STEWARD, ADMINISTRATOR):
        return
    before, after = labels_in(parts_of(row)), labels_in(policy)
    whole = after[""]
    lost = {label for place, labels in before.items() for label in labels - after.get(place, frozenset()) - whole}
    for rule in facts_of(hub, db).mandatory:
        named = rule.labels | {part.label for combination in rule.forbidden for part in combination if part.label}
        for label in sorted(lost & named):
            raise AccessDenied(
                f"The policy of {row.name!r} was not changed",
                why=f"the institution's rule {rule.title or rule.id!r} goes by the label {label!r}",
                instead="the label as it was; a steward may end the rule",
                rule=f"mandatory:{rule.id}",
            )


def list_to_everybody(hub: Hub, db: Db, caller: Caller, row: DataSet, *, listed: bool) -> None:
    """Put it into everybody's catalogue, or take it out."""
    found = listing_of(db, row)
    if listed == (found is not None):
        return
    if found is None:
        db.add(listing(hub, caller, row))
    else:
        found.revoked, found.revoked_by = hub.now(), caller.id
    bump(db)
    _told(hub, db, caller, "dataset.list", row, listed=listed)


def close(hub: Hub, db: Db, caller: Caller, row: DataSet) -> None:
    """Let nobody ask any more; everything stays as it is."""
    if row.state == "open":
        row.state, row.changed = "closed", hub.now()
        bump(db)
        _told(hub, db, caller, "dataset.close", row)


def reopen(hub: Hub, db: Db, caller: Caller, row: DataSet) -> None:
    """Let those ask again who may."""
    version = now_version(db, row)
    if version is None or version.destroyed is not None:
        instead = "another release, under another name" if row.released else "a new version: upload a file again"
        raise Conflict(f"{row.name!r} was not opened", why="the key of its rows was destroyed", instead=instead)
    if policies_in_row(row)[1]:
        raise Conflict(
            f"{row.name!r} was not opened",
            why="one of its policies can't be read, which closes the data set",
            instead=f"write it again: /datasets/{row.name}/manage",
        )
    retention = retention_of(row)
    if retention is not None and retention <= hub.now():
        raise Conflict(f"{row.name!r} was not opened", why="its retention is over", instead="nothing: the rows are to be deleted")
    if row.state == "closed":
        if version.kind == SITES:
            check_sites(hub, db, row, joined_in(hub, version))
        row.state, row.changed = "open", hub.now()
        bump(db)
        _told(hub, db, caller, "dataset.open", row)


def delete(hub: Hub, caller: Caller, name: str, confirmed: str) -> None:
    """Destroy all keys of a data set of one's own, then its files. What its population has spent stays in the ledger."""
    if confirmed != name:
        raise InvalidParameter(
            f"{name!r} was not deleted", why="its name was not typed as it is", instead=f"type {name} to delete it for good"
        )
    with hub.database.begin() as db:
        row = reading.owned(hub, db, caller, name, "dataset.delete")
        row.state, row.changed = "deleted", hub.now()
        tables = forget_keys(hub, db, versions_of(db, row))
        db.execute(delete_rows(OwnerView).where(OwnerView.data_set == row.id))
        bump(db)
        _told(hub, db, caller, "dataset.delete", row, versions=len(tables))
    remove(hub, tables)


def destroy_old(hub: Hub, caller: Caller, data_set: str, number: int) -> None:
    """Destroy the key of a version that questions read no more, then its file."""
    with hub.database.begin() as db:
        row = db.get_one(DataSet, data_set)
        version = next((each for each in versions_of(db, row) if each.number == number), None)
        if version is None or version.destroyed is not None:
            raise Missing(
                "There is no such version", why="it does not exist, or was destroyed", instead=f"/datasets/{row.name}/manage"
            )
        if number == row.version:
            raise Conflict(
                f"Version {number} of {row.name!r} was not destroyed",
                why="queries read it",
                instead="a new version first, or delete the data set",
            )
        tables = forget_keys(hub, db, [version])
        _told(hub, db, caller, "dataset.destroy", row, version=number)
    remove(hub, tables)


def destroy_all(hub: Hub, db: Db, caller: Caller, row: DataSet) -> None:
    """Destroy the keys of all versions in the transaction of `db`, in which another comes in their place; of rows in no file."""
    for version in versions_of(db, row):
        if version.destroyed is None:
            forget_keys(hub, db, [version])
            _told(hub, db, caller, "dataset.destroy", row, version=version.number)


def integrity(hub: Hub, caller: Caller, data_set: str) -> CloisterError | None:
    """Look now whether the rows are what was stored; None: they are."""
    with hub.database.reading() as db:
        row = db.get_one(DataSet, data_set)
        version = now_version(db, row)
    error: CloisterError | None = None
    try:
        if version is not None:
            table_of(row, source_of(hub, row, version), version.id)
    except CloisterError as found:
        error = found
    with hub.database.begin() as db:
        outcome = "done" if error is None else "failed"
        _told(hub, db, caller, "dataset.check", row, outcome=outcome, version=row.version)
    return error


def preparation_report(hub: Hub, caller: Caller, name: str) -> tuple[DataSet, PreparationReport]:
    """A data set of the caller's own, and what was read of it; the rows are read once for that. A line that is no row, or a value
    that does not fit, changes answers without a word, since an answer that told about it would say something about a person.
    Anyone who has the file may know, and learns it here."""
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


def now_version(db: Db, row: DataSet) -> DataSetVersion | None:
    """The version that questions read."""
    return db.scalar(select(DataSetVersion).where(DataSetVersion.data_set == row.id, DataSetVersion.number == row.version))


def versions_of(db: Db, row: DataSet) -> list[DataSetVersion]:
    """All versions, the newest first."""
    wanted = select(DataSetVersion).where(DataSetVersion.data_set == row.id).order_by(DataSetVersion.number.desc())
    return list(db.scalars(wanted))


def forget_keys(hub: Hub, db: Db, versions: list[DataSetVersion]) -> list[StoredTable]:
    """Destroy the keys (and addresses) in the transaction of `db`; the files that its caller removes once it is committed. A file
    that another window is served from too stays, under that one's key."""
    tables = []
    for version in versions:
        if version.destroyed is not None:
            continue
        if version.kind == "stored":
            file, digest, length = version.file, version.digest, version.length
            tables.append(StoredTable(file=file, digest=digest, length=length, wrapped_key=None, about=version.about))
        version.key, version.address, version.destroyed = None, None, hub.now()
    db.flush()
    readers = select(DataSetVersion.file).where(DataSetVersion.destroyed.is_(None))
    return [table for table in tables if not db.scalar(select(readers.where(DataSetVersion.file == table.file).exists()))]


def sharing(db: Db, row: DataSet) -> list[str]:
    """The names of other windows that have a key to a file of this one's, in which therefore its rows lie too."""
    mine = select(DataSetVersion.file).where(DataSetVersion.data_set == row.id, DataSetVersion.file != "")
    theirs = select(DataSetVersion.data_set).where(
        DataSetVersion.file.in_(mine), DataSetVersion.data_set != row.id, DataSetVersion.destroyed.is_(None)
    )
    return list(db.scalars(select(DataSet.name).where(DataSet.id.in_(theirs)).order_by(DataSet.name)))


def remove(hub: Hub, tables: list[StoredTable]) -> None:
    """Remove files whose keys are destroyed."""
    for table in tables:
        table_store_of(hub).destroy(table, lambda: None)
    sweep_masked(hub)


def listing_of(db: Db, row: DataSet) -> Grant | None:
    """The grant by which everybody finds it in the catalogue."""
    wanted = select(Grant).where(Grant.object == row.id, Grant.role == LISTED, Grant.revoked.is_(None))
    return next((each for each in db.scalars(wanted) if each.attributes == {"anybody": True}), None)


def _told(hub: Hub, db: Db, caller: Caller, action: str, row: DataSet, **details: Any) -> None:
    write(hub, db, caller, action, kind="data-set", object_id=row.id, data_sets=[row.id], name=row.name, **details)
