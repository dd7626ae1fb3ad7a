"""Questions that are kept, to ask again: one's own, and those of one's projects."""

from sqlalchemy import or_, select
from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter, Missing
from cloister.hub.database import last_seen, older_than
from cloister.hub.decisions.checking import check, own_project
from cloister.hub.decisions.policy import Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.trail import write
from cloister.hub.records.asking import SavedQuestion
from cloister.hub.services.asking.question_request import QuestionRequest, settled
from cloister.printable import is_text

_MOST = 1000


def save(hub: Hub, db: Db, caller: Caller, wish: QuestionRequest, title: str) -> SavedQuestion:
    """Keep a question under a name; in a project, for its members too. An algorithm that it names is looked at as when it is
    asked: one that is missing, or asks something else, is refused."""
    name = " ".join(title.split())
    if not is_text(name):
        raise InvalidParameter("The name is invalid", why="it must be a line of 1 to 200 characters", instead="Age by sex")
    project = own_project(hub, db, caller, wish.project, closed=True)
    row = SavedQuestion(
        id=new_id(),
        person=caller.id,
        project=project,
        title=name,
        sql=wish.sql,
        spend=str(wish.spend),
        within=wish.within,
        purpose=wish.purpose,
        dialect=wish.dialect or "",
        algorithm=settled(hub, db, caller, wish),
        created=hub.now(),
    )
    check(hub, db, caller, "question.manage", _object(row, caller.id))
    db.add(row)
    write(hub, db, caller, "question.save", kind="question", object_id=row.id)
    return row


def saved_of(db: Db, caller: Caller, *, after: str = "", limit: int = 50) -> list[SavedQuestion]:
    """The newest that somebody may see; `after` is the id of the last one that was seen."""
    mine = or_(SavedQuestion.person == caller.id, SavedQuestion.project.in_(sorted(caller.projects)))
    wanted = select(SavedQuestion).where(mine).order_by(SavedQuestion.created.desc(), SavedQuestion.id.desc()).limit(limit)
    if (last := last_seen(db, SavedQuestion, after, mine)) is not None:
        wanted = wanted.where(older_than(last))
    return list(db.scalars(wanted))


def seen_question(hub: Hub, db: Db, caller: Caller, number: str) -> SavedQuestion:
    """A question that somebody may see; any other is missing, whether it exists or not."""
    row = db.get(SavedQuestion, number)
    if row is None or not (row.person == caller.id or (row.project and row.project in caller.projects)):
        raise _missing()
    check(hub, db, caller, "question.see", _object(row, caller.id))
    return row


def remove(hub: Hub, db: Db, caller: Caller, number: str) -> None:
    """Keep it no longer; what it was answered stays."""
    row = seen_question(hub, db, caller, number)
    if row.person != caller.id:
        raise _missing()
    check(hub, db, caller, "question.manage", _object(row, caller.id))
    db.delete(row)
    write(hub, db, caller, "question.remove", kind="question", object_id=number)


def _object(row: SavedQuestion, reader: str) -> Object:
    """As a decision sees it; anyone who may read it counts as its owner."""
    return Object(kind="question", id=row.id, name=row.title, owner=reader)


def _missing() -> Missing:
    return Missing("There is no such query", why="it does not exist, or is not yours", instead="/questions")
