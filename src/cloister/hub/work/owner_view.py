"""Exact findings for the owner of a data set alone: no release, and nothing of it leaves.

What is found is encrypted and bound to its data set, gone after seven days, and decided anew at each look: of a data set that is
another's by now, or for which a rule forbids it, nothing is shown. What fails behind the door says no value of a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import select

from cloister.errors import CloisterError
from cloister.hub.ids import new_id
from cloister.hub.problems import Missing
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.owner_views import VIEW_KEPT, OwnerView, forget_views
from cloister.hub.services.access import check, context_of, data_set_object
from cloister.hub.services.jobs import Stopped, caller_of_job
from cloister.hub.services.trail import write
from cloister.hub.work.held import Held, steadily
from cloister.hub.work.recheck import present
from cloister.session.state.scrubbed import scrubbed

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.service import Progress


class _Decided(Protocol):
    """What the owner may have found now."""

    @property
    def row(self) -> DataSet: ...
    @property
    def held(self) -> Held: ...


Found = TypeVar("Found", bound=_Decided)


def make_view(
    hub: Hub,
    payload: Mapping[str, Any],
    progress: Progress,
    *,
    kind: str,
    action: str,
    path: str,
    decide: Callable[[Db, Caller], Found],
    find: Callable[[Found], Callable[[], dict[str, Any] | None]],
    told: Callable[[Found], tuple[dict[str, Any], dict[str, Any]]],
    unsaid: Callable[[CloisterError], CloisterError],
) -> dict[str, Any]:
    """Find it as a job, and keep it in the transaction that ends the job: the job's result.

    `decide`: the owner's data set, or the refusal; asked before, and once more when it is kept. `find` prepares the rows, and
    gives what finds it in them: None where the job is to stop. `told`: what was asked for, in plain, and what of it holds values
    of rows. `unsaid`: a failure in words that a job may keep.
    """
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))

    def decided() -> Found:
        with hub.database.reading() as db:
            return decide(db, present(hub, db, caller))

    def found_in(found: Found) -> dict[str, Any] | None:
        work = find(found)
        try:
            return scrubbed(work)
        except CloisterError as error:
            raise unsaid(error) from None

    found, result = steadily(decided, found_in)
    if result is None:
        raise Stopped
    order, secret = told(found)
    row = OwnerView(id=new_id(), kind=kind, person=caller.id, data_set=found.row.id, order=order, wrapped=b"", created=hub.now())
    row.wrapped = hub.keys.wrap(json.dumps(result | secret | {"version": found.row.version}).encode(), row.about)
    ended = {"href": f"{path}/{row.id}"}
    with hub.database.begin() as db:
        progress.finish(db, ended)
        decide(db, present(hub, db, caller))  # what was deleted or taken away meanwhile leaves nothing behind
        forget_views(db, hub.now())
        db.add(row)
        db.flush()
        purpose = str(order["purpose"])
        write(db, hub, caller, action, kind=kind, object_id=row.id, purpose=purpose, data_sets=[found.row.id])
    return ended


def seen_view(
    hub: Hub,
    db: Db,
    caller: Caller,
    number: str,
    *,
    kind: str,
    action: str,
    columns: Callable[[Mapping[str, Any]], Iterable[str]],
    missing: Missing,
) -> tuple[OwnerView, dict[str, Any]]:
    """One of the caller's own on a data set that is still theirs, and what was found, of which version of the rows; any other is
    missing. `columns`: those that an order touches, so that what has been forbidden since is not shown, either."""
    kept = OwnerView.created >= hub.now() - VIEW_KEPT
    mine = (OwnerView.id == number) & (OwnerView.person == caller.id) & (OwnerView.kind == kind)
    row = db.scalar(select(OwnerView).where(mine, kept))
    data_set = None if row is None else db.get(DataSet, row.data_set)
    if row is None or data_set is None or data_set.state == "deleted" or data_set.owner != caller.id:
        raise missing
    touched = {data_set.id: frozenset(columns(row.order))}
    context = context_of(hub, caller, purpose=str(row.order["purpose"]), columns=touched)
    check(hub, db, caller, action, data_set_object(data_set), context)
    found: dict[str, Any] = json.loads(hub.keys.unwrap(row.wrapped, row.about))
    return row, found | {"newest": data_set.version, "version": found.get("version", data_set.version)}
