"""Access is asked for: a person wants something for a purpose, its owner answers with a grant (perhaps narrower) or a reason.

Only what one may see can be asked for. A request is seen by whoever asked, by the owner, and by the steward.
What is said about one, of access or of budget, is a thread of messages, the oldest first.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import Conflict, InvalidParameter, Missing
from cloister.hub.decisions.checking import allowed, check, own_project
from cloister.hub.decisions.policy import GrantFacts, Object
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.access.days import days_in
from cloister.hub.platform.access.drafts import check_grant
from cloister.hub.platform.access.granting import grant_in, own_data_set, seen_data_set, state_of_grant
from cloister.hub.platform.trail import write
from cloister.hub.records.access import AccessRequest, Grant, Message, Project, ProjectDataSet, ProjectMember
from cloister.hub.records.accounts import Person
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.policies import grant_in_row, wanted_in_row
from cloister.printable import is_text

_LONGEST = 4000
_MOST, _MOST_OPEN = 200, 20


def spoken(text: str, title: str = "the message", most: int = _LONGEST) -> str:
    """A text that people wrote to each other, of a size to read.

    >>> spoken("  Which study is it?\\r\\nAda ")
    'Which study is it?\\nAda'
    """
    told = text.replace("\r\n", "\n").strip()
    if not is_text(told, most, lines=True):
        raise InvalidParameter(
            f"{title.capitalize()} is invalid", why=f"it must be a text of 1 to {most:,} characters", instead="a few sentences"
        )
    return told


def say(hub: Hub, db: Session, caller: Caller, about: str, text: str) -> Message:
    """Add a message. Whether somebody may speak here was decided before."""
    if len(thread(db, about)) >= _MOST:
        raise InvalidParameter("The message is invalid", why=f"there are {_MOST} already", instead="a decision, or a new request")
    row = Message(about=about, person=caller.id, text=spoken(text), created=hub.now())
    db.add(row)
    db.flush()
    return row


def thread(db: Session, about: str) -> list[Message]:
    """Everything that was said."""
    return list(db.scalars(select(Message).where(Message.about == about).order_by(Message.id).limit(_MOST)))


def ask_access(
    hub: Hub,
    db: Session,
    caller: Caller,
    *,
    data_set: str,
    purpose: str,
    wanted: Mapping[str, Any],
    project: str = "",
    message: str = "",
) -> AccessRequest:
    """Ask for access to a data set. `wanted` are rules in their JSON form: actions, and perhaps columns, share, until."""
    check(hub, db, caller, "access.ask")
    row, which = seen_data_set(hub, db, caller, data_set)
    project = own_project(hub, db, caller, project)
    told = spoken(purpose, "the purpose", 1000)
    found = _wanted(caller.id, project, days_in(wanted, hub.settings.zone))
    check_grant(hub, found, which, row)
    if db.get_one(Person, row.owner).blocked:
        why = "the owner of the data set has no account any more, so it would not be answered"
        raise Conflict("The request was refused", why=why, instead="ask an administrator")
    mine_open = select(AccessRequest).where(AccessRequest.person == caller.id, AccessRequest.state == "open")
    unanswered = list(db.scalars(mine_open))
    states = states_of(hub, db, unanswered)
    waiting = [each.data_set for each in unanswered if states[each.id] == "open"]
    if row.id in waiting:
        raise Conflict("The request was refused", why="you have asked already, and it is open", instead="a message there")
    if len(waiting) >= _MOST_OPEN:
        raise Conflict("The request was refused", why=f"{_MOST_OPEN} of yours are open", instead="wait, or withdraw one")
    request = AccessRequest(
        id=new_id(),
        data_set=row.id,
        person=caller.id,
        project=project,
        purpose=told,
        wanted=found.to_keep()["rules"],
        created=hub.now(),
    )
    db.add(request)
    db.flush()
    if message.strip():
        say(hub, db, caller, request.id, message)
    _told(hub, db, caller, "access.ask", request, request.wanted)
    return request


def request_for(hub: Hub, db: Session, caller: Caller, number: str) -> tuple[AccessRequest, DataSet]:
    """A request that this person may see; any other is missing, whether it exists or not."""
    row = db.get(AccessRequest, number[:32])
    data_set = None if row is None else db.get(DataSet, row.data_set)
    if row is None or data_set is None or not allowed(hub, db, caller, "access.see", _object(row, data_set, caller)).allowed:
        raise Missing("There is no such request", why="it does not exist, or is not open to you", instead="/access/requests")
    return row, data_set


def grant_request(
    hub: Hub, db: Session, caller: Caller, number: str, draft: Mapping[str, Any], message: str, shown: frozenset[str] | None
) -> GrantFacts:
    """Answer with a grant: to the person who asked, or to members of their project that were `shown`, by the owner's rules."""
    row, data_set, which = _to_be_decided(hub, db, caller, number)
    members = {"projects": [row.project]} if row.project else {"people": [row.person]}
    if row.project:  # it works with the data set from now on, so its page shows that, and the owner sees the project
        inside = db.get(ProjectMember, (row.project, row.person)) is not None
        if not inside or db.get_one(Project, row.project).closed is not None:
            why = "its project is closed" if inside else "the person who sent it has left its project"
            raise Conflict("The request was left as it is", why=why, instead="refuse it")
        kept = ProjectDataSet(project=row.project, data_set=data_set.id, asked=row.created)
        kept.approved, kept.approved_by = hub.now(), caller.id
        db.merge(kept)
        db.flush()
        bump(db)
    given = {"role": draft.get("role") or "granted on request", "members": members, "rules": draft.get("rules", {})}
    found = grant_in(hub, db, caller, which, given, row=data_set, request=row.id, shown=shown)
    _decided(hub, db, caller, row, "granted", message)
    return found


def refuse_request(hub: Hub, db: Session, caller: Caller, number: str, reason: str) -> AccessRequest:
    """Answer with a reason."""
    row, _, _ = _to_be_decided(hub, db, caller, number)
    _decided(hub, db, caller, row, "denied", spoken(reason, "the reason"))
    return row


def withdraw(hub: Hub, db: Session, caller: Caller, number: str) -> AccessRequest:
    """Take one's own request back."""
    row, _ = request_for(hub, db, caller, number)
    if row.person != caller.id:
        raise Missing("There is no such request", why="only the person who sent it may withdraw it", instead="/access/requests")
    if row.state != "open":
        raise _closed()
    row.state = "withdrawn"
    _told(hub, db, caller, "access.ask", row, {"withdrawn": True})
    return row


def mine(db: Session, caller: Caller) -> list[AccessRequest]:
    """What somebody asked for, the newest first."""
    wanted = select(AccessRequest).where(AccessRequest.person == caller.id)
    return list(db.scalars(wanted.order_by(AccessRequest.created.desc()).limit(200)))


def to_decide(hub: Hub, db: Session, caller: Caller, *, decided: bool = False) -> list[AccessRequest]:
    """What waits for an owner's decision, the oldest first; or what is decided or has expired, the newest first."""
    wanted = select(AccessRequest).join(DataSet, DataSet.id == AccessRequest.data_set).where(DataSet.owner == caller.id)
    newest, waiting = AccessRequest.created.desc(), AccessRequest.state == "open"
    wanted = wanted.order_by(newest).limit(400) if decided else wanted.where(waiting).order_by(AccessRequest.created)
    rows = list(db.scalars(wanted))
    states = states_of(hub, db, rows)
    return [row for row in rows if (states[row.id] == "open") is not decided][:200]


def states_of(hub: Hub, db: Session, rows: Sequence[AccessRequest]) -> dict[str, str]:
    """The states of requests as people see them, by id: one that is open after the time that it asks for, or the data set, is
    gone has expired, and one that was granted is as its grant is now, whatever it asked for."""
    found = {row.id: row.state for row in rows}
    given = select(Grant).where(Grant.request.in_([each for each, state in found.items() if state == "granted"]))
    for grant in db.scalars(given):
        state = state_of_grant(hub, grant_in_row(grant)[0])
        found[grant.request] = state if state in ("expired", "revoked") else "granted"
    waiting = [row for row in rows if row.state == "open"]
    named = select(DataSet.id).where(DataSet.id.in_([row.data_set for row in waiting]), DataSet.state == "deleted")
    gone = set(db.scalars(named))
    for row in waiting:
        until = wanted_in_row(row)[0].rules.until
        if row.data_set in gone or (until is not None and until <= hub.now()):
            found[row.id] = "expired"
    return found


def _to_be_decided(hub: Hub, db: Session, caller: Caller, number: str) -> tuple[AccessRequest, DataSet, Object]:
    row, data_set = request_for(hub, db, caller, number)
    found, which = own_data_set(hub, db, caller, data_set.name, "access.decide")
    if states_of(hub, db, [row])[row.id] != "open":
        raise _closed()
    return row, found, which


def _decided(hub: Hub, db: Session, caller: Caller, row: AccessRequest, state: str, message: str) -> None:
    row.state, row.decided_by, row.decided = state, caller.id, hub.now()
    if message.strip():
        say(hub, db, caller, row.id, message)
    _told(hub, db, caller, "access.decide", row, {"decision": state})


def _wanted(person: str, project: str, wanted: Mapping[str, Any]) -> GrantFacts:
    members: Mapping[str, Iterable[str]] = {"projects": [project]} if project else {"people": [person]}
    found = GrantFacts.read({"role": "asked for", "members": members, "rules": dict(wanted)}, id="asked")
    if found.rules.rows:
        raise InvalidParameter("rows is invalid", why="only the owner decides which rows are visible", instead="leave it empty")
    return found


def _object(row: AccessRequest, data_set: DataSet, caller: Caller) -> Object:
    """The request as a decision sees it: it belongs to whoever asked, and to the owner of the data set."""
    owner = row.person if caller.id == row.person else data_set.owner
    return Object(kind="request", id=row.id, owner=owner, institution=data_set.institution)


def _told(hub: Hub, db: Session, caller: Caller, action: str, row: AccessRequest, about: Mapping[str, Any]) -> None:
    write(hub, db, caller, action, kind="request", object_id=row.id, purpose=row.purpose, data_sets=[row.data_set], about=about)


def _closed() -> Conflict:
    return Conflict("The request was left as it is", why="it is open no longer", instead="a new request")
