"""Who lets which code near which rows, and who stops it: one review for each algorithm and data set.

- Pure Python by blocks or by "ask" needs no review: its guarantee does not depend on the code.
- Native code meets the kernel, and a declared mechanism is believed: two people approve it, one of them the owner of the data,
  none of them its provider. A declared mechanism is audited before, and the audit has to break nothing and to catch its twin.
- An approval is for the code, which never changes under its id, and for what the data set declares of the columns that it reads:
  where that changes, a proof may hold no longer, and everything is reviewed again.
- What was stopped, by a person or by the hub after an alert, runs nowhere near that data set until the owner lets it.

Everything here is decided from declarations, code and clocks; no row is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, Conflict, InvalidParameter
from cloister.guests import Guest
from cloister.guests.declared import declared_digest
from cloister.hub.hub import ITSELF, Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.access import named_algorithm
from cloister.hub.platform.catalogue import live_of, seen
from cloister.hub.platform.trail import raise_alert, write
from cloister.hub.records.access import Algorithm, GuestReview
from cloister.hub.records.accounts import names_of
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.guests.settings import guest_of
from cloister.hub.web.languages import N_
from cloister.tables import PrivateTable

NAME, ADMIT = "guests", "algorithm.admit"
APPROVALS = 2
_DENIED = N_("The run was denied")
_DECLARED, _ADMITTED = N_("declared by {author}"), N_("admitted by {one} and {other}")
_AUDITED = N_("audited to at least ε = {found} of {spend} in {runs} runs")
_LATE = N_("a run ended later than its blocks and seconds say")
_BEYOND = N_("it asked for tables or columns that it does not declare")
_BROKEN = N_("an audit broke its guarantee")
REASONS = {"late": _LATE, "beyond": _BEYOND, "broken": _BROKEN}
"""Why the hub stops one by itself; nobody is late any more, but earlier versions wrote it down. None says about a row: what was
asked follows from private answers, and audits use made-up rows."""


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """An algorithm at a data set, as its reviewers see it."""

    algorithm: Algorithm
    data_set: DataSet
    guest: Guest
    table: PrivateTable
    found: Mapping[str, Any]
    """What tests, runs on made-up rows and the audit gave, for this code and this declaration; empty before."""
    approvals: Sequence[Mapping[str, Any]]
    stopped: datetime | None
    stopped_by: str
    why: str

    @property
    def declared(self) -> str:
        """A digest of the code and of all that a proof may lean on."""
        return declared_digest(self.guest, self.table)

    @property
    def needed(self) -> int:
        """How many people have to approve it."""
        return needed_by(self.guest)

    @property
    def audited(self) -> bool:
        """Whether nothing more has to be found out: a declared mechanism passed its audit, no test failed."""
        return _passed(self.guest, self.found)

    @property
    def tried(self) -> bool:
        """Whether code that people approve returned what it declares on made-up rows; other code is tried by its author."""
        return _tried(self.guest, self.found)

    @property
    def admitted(self) -> bool:
        """Whether it may run."""
        return self.stopped is None and self.audited and self.tried and len(self.approvals) >= self.needed

    @property
    def state(self) -> str:
        """In one word."""
        return "stopped" if self.stopped is not None else "admitted" if self.admitted else "waiting"


def needed_by(guest: Guest) -> int:
    """How many people have to approve a guest."""
    return APPROVALS if guest.way == "declared" or guest.needs.native else 0


def _tried(guest: Guest, found: Mapping[str, Any]) -> bool:
    return not needed_by(guest) or bool(found.get("trial", {}).get("done"))


def _passed(guest: Guest, found: Mapping[str, Any]) -> bool:
    audit = found.get("audit", {})
    passed = guest.way != "declared" or bool(audit.get("kept") and audit.get("telling"))
    return passed and not found.get("trial", {}).get("failed")


def declared_table(hub: Hub, db: Db, caller: Caller, source: DataSet) -> PrivateTable:
    """What a data set declares; refused where nobody is to be hidden in it, or it cannot be read now."""
    table = live_of(hub).session(db, caller.email, tables=[source.name]).tables.get(source.name)
    if not isinstance(table, PrivateTable):
        raise InvalidParameter("The data set is invalid", why="it is public or cannot be read now", instead="a private data set")
    return table


def reviewed(hub: Hub, db: Db, caller: Caller, algorithm: str, data_set: str) -> Reviewed:
    """An algorithm at a data set, for somebody who may admit it there."""
    source = seen(hub, db, caller, data_set, ADMIT)
    row = named_algorithm(hub, db, caller, algorithm, NAME)
    guest, table, kept = guest_of(row.name, row.settings), declared_table(hub, db, caller, source), _row(db, row.id, source.id)
    approvals, found = _current(kept, guest, table)
    return Reviewed(
        algorithm=row,
        data_set=source,
        guest=guest,
        table=table,
        found=found,
        approvals=approvals,
        stopped=None if kept is None else kept.stopped,
        stopped_by="" if kept is None else kept.stopped_by,
        why="" if kept is None else kept.why,
    )


def check_admitted(db: Db, algorithm: str, data_set: str, guest: Guest, table: PrivateTable) -> str:
    """Refuses code that was stopped or that too few people approved; who admitted it, and what it was audited to."""
    row = _row(db, algorithm, data_set)
    if row is not None and row.stopped is not None:
        raise AccessDenied(_DENIED, why="the algorithm was stopped", instead="ask the owner of the data set")
    if not needed_by(guest):
        return ""
    approvals, found = _current(row, guest, table)
    audit = found.get("audit", {})
    if len(approvals) < APPROVALS or not _tried(guest, found) or not _passed(guest, found):
        raise AccessDenied(
            _DENIED, why="two people have to approve this code before it comes near rows", instead="ask the owner of the data set"
        )
    names = names_of(db, [each["person"] for each in approvals])
    one, other = (names.get(each["person"], each["person"]) for each in approvals[:APPROVALS])
    told = [_DECLARED.format(author=guest.author)] if guest.way == "declared" else []
    told.append(_ADMITTED.format(one=one, other=other))
    if audit:
        told.append(_AUDITED.format(found=f"{audit['found']:.3g}", spend=audit["spend"], runs=f"{audit['runs']:,}"))
    return "; ".join(told)


def approve(hub: Hub, caller: Caller, algorithm: str, data_set: str) -> None:
    """Write down that a person read it and lets it near the rows."""
    with hub.database.begin() as db:
        now = reviewed(hub, db, caller, algorithm, data_set)
        row = _kept(hub, db, now)
        if not now.needed:
            raise Conflict("Nothing was approved", why="the guarantee does not depend on this code", instead="a grant")
        if caller.id == now.algorithm.provider:
            raise AccessDenied(
                "Nothing was approved", why="an author does not approve their own code", instead="two other people"
            )
        if not now.audited:
            raise Conflict(
                "Nothing was approved", why="its audit or a test failed, or is still to come", instead="audit it first"
            )
        if any(each["person"] == caller.id for each in now.approvals):
            raise Conflict("Nothing was approved", why="you approved it already", instead="another person")
        people = {each["person"] for each in now.approvals} | {caller.id}
        if len(people) >= APPROVALS and now.data_set.owner not in people:
            raise Conflict(
                "Nothing was approved", why="the owner of the data set is one of the two", instead="wait for the owner"
            )
        if not now.tried and (now.approvals or not now.guest.needs.native):  # native code is read by one before it runs
            raise Conflict(
                "Nothing was approved",
                why="no run on made-up rows returned what the code declares",
                instead="a review first; a new version where it fails",
            )
        row.approvals = [*now.approvals, {"person": caller.id, "when": hub.now().isoformat()}]
        _written(hub, db, caller, ADMIT, now.algorithm, now.data_set, approvals=len(row.approvals))


def stop(hub: Hub, caller: Caller, algorithm: str, data_set: str, why: str) -> None:
    """Nobody runs it on that data set from now on, also while its rows can't be reached; what runs is not released."""
    with hub.database.begin() as db:
        source = seen(hub, db, caller, data_set, ADMIT)
        which = named_algorithm(hub, db, caller, algorithm, NAME)
        row = _row(db, which.id, source.id) or _begun(hub, db, which.id, source.id)
        row.stopped, row.stopped_by, row.why = row.stopped or hub.now(), caller.id, why.strip()[:200]
        _written(hub, db, caller, "algorithm.stop", which, source)


def lift(hub: Hub, caller: Caller, algorithm: str, data_set: str) -> None:
    """Let it run again; its approvals stand, and what failed an audit has to pass one first."""
    with hub.database.begin() as db:
        now = reviewed(hub, db, caller, algorithm, data_set)
        row = _kept(hub, db, now)
        if caller.id != now.data_set.owner:
            raise AccessDenied("Nothing was changed", why="the owner of the data lets an algorithm run again", instead="ask them")
        row.stopped, row.stopped_by, row.why = None, "", ""
        _written(hub, db, caller, "algorithm.lift", now.algorithm, now.data_set)


def keep_found(hub: Hub, db: Db, caller: Caller, now: Reviewed, found: Mapping[str, Any]) -> None:
    """Keep what a review found. A guarantee that was broken stops the algorithm near this data set."""
    row = _kept(hub, db, now)
    row.found = dict(found)
    _written(hub, db, caller, "algorithm.audit", now.algorithm, now.data_set)
    if found.get("audit") and not found["audit"]["kept"]:
        quarantine(hub, db, now.algorithm, now.data_set, "broken")


def quarantine(hub: Hub, db: Db, algorithm: Algorithm, data_set: DataSet, reason: str) -> None:
    """Stop an algorithm near a data set until its owner lets it run again, and raise an alert about it."""
    row = _row(db, algorithm.id, data_set.id) or _begun(hub, db, algorithm.id, data_set.id)
    if row.stopped is not None:
        return
    row.stopped, row.stopped_by, row.why = hub.now(), "", REASONS[reason]
    line = _written(hub, db, ITSELF, "algorithm.stop", algorithm, data_set, reason=REASONS[reason])
    about = {"algorithm": algorithm.name, "data set": data_set.name, "reason": REASONS[reason]}
    raise_alert(hub, db, algorithm.provider, "algorithm", line, about)


def _row(db: Db, algorithm: str, data_set: str) -> GuestReview | None:
    return db.scalar(select(GuestReview).where(GuestReview.algorithm == algorithm, GuestReview.data_set == data_set))


def _begun(hub: Hub, db: Db, algorithm: str, data_set: str) -> GuestReview:
    row = GuestReview(id=new_id(), algorithm=algorithm, data_set=data_set, created=hub.now())
    row.declared, row.approvals, row.found, row.stopped_by, row.why = "", [], {}, "", ""
    db.add(row)
    return row


def _current(row: GuestReview | None, guest: Guest, table: PrivateTable) -> tuple[list[Any], Mapping[str, Any]]:
    """Approvals and findings, where they are about what is declared now."""
    if row is None or row.declared != declared_digest(guest, table):
        return [], {}
    return row.approvals, row.found


def _kept(hub: Hub, db: Db, now: Reviewed) -> GuestReview:
    """The row of a review, made or brought to what is declared now."""
    row = _row(db, now.algorithm.id, now.data_set.id)
    declared = declared_digest(now.guest, now.table)
    if row is None:
        row = _begun(hub, db, now.algorithm.id, now.data_set.id)
    if row.declared != declared:
        row.declared, row.approvals, row.found = declared, [], {}
    return row


def _written(hub: Hub, db: Db, caller: Caller, action: str, algorithm: Algorithm, data_set: DataSet, **more: Any) -> int:
    told = {"algorithm": algorithm.id, "data_sets": [data_set.id], **more}
    return write(hub, db, caller, action, kind="data-set", object_id=data_set.id, **told)
