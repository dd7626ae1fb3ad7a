"""Exact findings for the owner of a data set alone: no release, and nothing of it leaves.

What is found is encrypted and bound to its data set, gone after seven days, and decided again at each look: of a data set that is
another's by now, or for which a rule forbids it, nothing is shown. What fails behind the door says no value of a row.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, Missing
from cloister.hub.decisions.checking import check, context_of
from cloister.hub.decisions.facts import data_set_object
from cloister.hub.decisions.held import steadily
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.jobs import Stopped, caller_of_job
from cloister.hub.platform.trail import write
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.owner_views import VIEW_KEPT, OwnerView, forget_views, found_in, view_of
from cloister.hub.service import Progress
from cloister.hub.work.orders import Found, OrderedWork, ordered
from cloister.hub.work.recheck import present
from cloister.session.state.scrubbed import scrubbed


def make_view(
    hub: Hub,
    payload: Mapping[str, Any],
    progress: Progress,
    work: OrderedWork[Any, Found],
    *,
    kind: str,
    path: str,
    find: Callable[[Found], Callable[[], dict[str, Any] | None]],
) -> dict[str, Any]:
    """Find it as a job, and keep it in the transaction that ends the job: the job's result. It is what an order of this `work`
    would meet, on one data set, decided as the order is: before, and once more when it is kept. `find` prepares the rows, and
    gives what finds it in them, and in which `version` of the data set: None where the job is to stop.
    """
    order = ordered(work, payload)
    with hub.database.reading() as db:
        caller = present(hub, db, caller_of_job(progress, payload))

    def decided() -> Found:
        with hub.database.reading() as db:
            return work.ready(hub, db, present(hub, db, caller), order)

    def searched(found: Found) -> dict[str, Any] | None:
        search = find(found)
        try:
            return scrubbed(search)
        except CloisterError as error:
            raise work.unsaid(error) from None

    found, result = steadily(decided, searched)
    if result is None:
        raise Stopped
    (plain, secret), [which] = work.told(found.order), found.objects
    row = view_of(hub, caller.id, which.id, kind, plain, result | secret)
    ended = {"href": f"{path}/{row.id}"}
    with hub.database.begin() as db:
        progress.finish(db, ended)
        work.ready(hub, db, present(hub, db, caller), order)  # what was deleted or taken away meanwhile leaves nothing behind
        forget_views(db, hub.now())
        db.add(row)
        db.flush()
        write(hub, db, caller, work.action, kind=kind, object_id=row.id, purpose=order.purpose, data_sets=[which.id])
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
    found = found_in(hub, row)
    return row, found | {"newest": data_set.version, "version": found.get("version", data_set.version)}
