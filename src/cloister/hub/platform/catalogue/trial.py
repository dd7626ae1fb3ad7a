"""A trial reading: what of an upload does not fit its declaration, for its owner alone, before the table opens.

It is an owner's view (`records/owner_views.py`): exact, encrypted, decided again at each look, and costs nothing. It is bound to
an upload, and is gone with it: when the table opens, when the upload is discarded, or after a day. The audit log says that it was
made, and nothing of what it found. It tells the owner how to mend the declaration from public knowledge; whoever copied a value
from it into the declaration would publish that value, so the page says so, and the form asks again.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select

from cloister.errors import Conflict
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue.arrivals import arrival_of, stored, table_in
from cloister.hub.platform.catalogue.cleaning import cells_asked, cells_said, readings_of, say_cells
from cloister.hub.platform.catalogue.live import scratch_of
from cloister.hub.platform.catalogue.metadata import provider_of
from cloister.hub.platform.catalogue.registering import Wanted, check_allowed, drafted
from cloister.hub.platform.catalogue.sources import reached, table_store_of
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import Arrival, DataSet
from cloister.hub.records.declarations import table_of
from cloister.hub.records.owner_views import VIEW_KEPT, OwnerView, forget_views, found_in, view_of
from cloister.hub.storage import KeptAddress
from cloister.printable import json_of, shown
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Offenders, PreparationReport, PrivateTable, Workspace, prepare
from cloister.tables.sourcing.preparation import LONGEST_OFFENDER
from cloister.tables.sourcing.sources import Source

_VIEW = "reading"
_NUMBERS = (
    "rows rows_malformed rows_before rows_after rows_undated rows_without_unit rows_over_cap units_over_cap".split()  # noqa: SIM905  (a list of words, to read)
)


def read_for_trial(hub: Hub, caller: Caller, number: str, wanted: Wanted, cells: Mapping[str, str] | None = None) -> None:
    """Read an upload once by the declaration that it would have, and keep what did not fit, in the place of what was kept.
    `cells` says from now on how its cells are written; None: what was said stays."""
    with hub.database.reading() as db:
        arrival = arrival_of(db, caller, number)
    row = _decided(hub, caller, arrival, wanted)
    if row.public:
        raise Conflict("There is nothing to tell", why="a public table is read as it is", instead=f"/register/{number}/review")
    if cells is not None:
        with hub.database.begin() as db:
            say_cells(hub, db, caller, arrival_of(db, caller, number), cells)
    with hub.database.reading() as db:
        which, said = cells_said(hub, db, number)
    table = table_of(row, _source(hub, stored(hub, arrival), row, said), number)
    assert isinstance(table, PrivateTable)
    found = scrubbed(lambda: _found(hub, table))
    view = view_of(hub, caller.id, number, _VIEW, {"declaration": _digest(row, which)}, found)
    with hub.database.begin() as db:
        arrival_of(db, caller, number)  # what was discarded meanwhile leaves nothing behind
        check_allowed(hub, db, caller, row, wanted)
        forget_views(db, hub.now())
        db.execute(delete(OwnerView).where(OwnerView.data_set == number, OwnerView.kind == _VIEW))
        db.add(view)
        db.flush()
        write(hub, db, caller, "dataset.trial", kind="upload", object_id=number)


def trial_reading(hub: Hub, caller: Caller, number: str, wanted: Wanted) -> dict[str, Any] | None:
    """What was found in an upload, where it was read; `stale` where the declaration, or what is said of the cells, has changed
    since; `cells` what a form asks of them."""
    with hub.database.reading() as db:
        arrival = arrival_of(db, caller, number)
        mine = (OwnerView.data_set == number) & (OwnerView.person == caller.id) & (OwnerView.kind == _VIEW)
        view = db.scalar(select(OwnerView).where(mine, OwnerView.created >= hub.now() - VIEW_KEPT))
        which, said = cells_said(hub, db, number)
    if view is None:
        return None
    row = _decided(hub, caller, arrival, wanted)
    found, stale = found_in(hub, view), view.order["declaration"] != _digest(row, which)
    asked = {} if arrival.kind == "connection" else cells_asked(found, row.declaration, arrival.columns, said, stale=stale)
    return found | {"stale": stale, "at": view.created, "cells": asked}


def _decided(hub: Hub, caller: Caller, arrival: Arrival, wanted: Wanted) -> DataSet:
    """The data set as it would be, where this person may register it at this moment."""
    schema = {name: kind for name, kind, _ in arrival.columns}
    row = drafted(hub, caller, schema, wanted, provider_of(wanted.provider))
    with hub.database.reading() as db:
        check_allowed(hub, db, caller, row, wanted)
    return row


def _source(hub: Hub, arrival: Arrival, row: DataSet, said: Mapping[str, str]) -> Source:
    table = table_in(arrival)
    if table is not None:
        return table_store_of(hub).open(table, name=row.name, how=readings_of(said, arrival.columns))
    part = " ".join(row.declaration.get("during") or ()) if row.window else ""
    return reached(hub, KeptAddress(id=arrival.id, shown="", wrapped=arrival.wrapped), part)


def _found(hub: Hub, table: PrivateTable) -> dict[str, Any]:
    workspace = Workspace.of(hub.settings.memory, scratch_of(hub))
    with prepare(table, workspace=workspace) as prepared:
        return _told(prepared.owner_report(), prepared.owner_offenders())


def _told(report: PreparationReport, offenders: dict[str, Offenders]) -> dict[str, Any]:
    """As it is kept: numbers, and values as texts that can be shown."""
    columns = {}
    for name, each in report.columns.items():
        found = offenders.get(name, Offenders())
        columns[name] = {
            "given": each.given,
            "nulled": each.nulled,
            "clamped": each.clamped,
            "doubtful": each.doubtful,
            "misfits": each.nulled + each.clamped,
            "nulled_values": [[_cut(value), count] for value, count in found.nulled],
            "clamped_values": [[_cut(value), count] for value, count in found.clamped],
        }
    return {
        **{name: getattr(report, name) for name in _NUMBERS},
        "units": {name: {"units": each.units, "fullest": each.fullest} for name, each in report.units.items()},
        "columns": columns,
        "lost": sum(report.left_out.values()),
        "misfits": sum(each["misfits"] for each in columns.values()),
    }


def _cut(value: str) -> str:
    """A value as it can be shown: without what turns a line round, and no longer than a line.

    >>> _cut("a\u202eb"), len(_cut("x" * 10_000_000))
    ('a⟨U+202E⟩b', 81)
    """
    whole = len(value) <= LONGEST_OFFENDER
    return shown(value[:LONGEST_OFFENDER]) + ("" if whole else "…")


def _digest(row: DataSet, cells: str) -> str:
    return hashlib.sha256(f"{json_of(row.declaration)} {cells}".rstrip().encode()).hexdigest()
