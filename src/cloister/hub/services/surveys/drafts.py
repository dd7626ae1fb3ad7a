"""Composing a survey: its draft, question by question; opening it, after which nothing of it changes; inviting; closing."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import delete, select
from sqlalchemy.orm import Session as Db

from cloister.errors import Conflict, InvalidParameter, Missing
from cloister.hub.database import older_than
from cloister.hub.decisions.checking import check
from cloister.hub.decisions.policy import Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.platform.trail import write
from cloister.hub.records.surveys import HeldJointSurvey, HeldSurvey, JointReportRow, JointTicket, SurveyTicket
from cloister.hub.services.surveys.composing import composed, levels_of
from cloister.hub.services.surveys.counting import counted
from cloister.hub.web.languages import N_
from cloister.local.survey import issue_tokens
from cloister.local.survey.questions import question_of
from cloister.printable import is_text
from cloister.privacy.rational import exact_positive, text_of

MOST_QUESTIONS = 50
MOST_WORDS = 3
"""Looking for words takes seconds for each of them, at each level."""
MOST_INVITATIONS = 5_000
_CAP = Fraction(8)
"""Of a new survey, where the institution allows it."""
LEVELS = ((N_("more private"), "0.5"), (N_("middle"), "1"), (N_("more useful"), "2"))
"""What a new survey offers for each question: a name for respondents, and ε."""
HOMES = {HeldSurvey: "/surveys", HeldJointSurvey: "/joint-surveys"}
LINKS = {HeldSurvey: "/s", HeldJointSurvey: "/j"}
_TICKETS = {HeldSurvey: SurveyTicket, HeldJointSurvey: JointTicket}
_DROPPED = {HeldSurvey: "draft", HeldJointSurvey: "draft joining closed"}
_OPEN = N_("it is open, and nothing of it changes any more")
STATES = {
    HeldSurvey: {
        "draft": N_("it is a draft, and not open yet"),
        "open": _OPEN,
        "closed": N_("it is closed, and nothing of it changes any more"),
    },
    HeldJointSurvey: {
        "draft": N_("it is a draft, and no helper was asked yet"),
        "joining": N_("its helper was asked, and its questions are fixed"),
        "open": _OPEN,
        "closed": N_("it is closed, and the helper's share of the sums is awaited"),
        "done": N_("its sums are opened"),
    },
}
"""Why something can't be done to a survey in a state."""

Kind = TypeVar("Kind", HeldSurvey, HeldJointSurvey)
"""A survey of this hub's, or one that a helper counts too: how each is owned, listed, invited to and thrown away is one."""


def largest_cap(hub: Hub) -> Fraction:
    """What the institution lets all answers of one respondent add up to (`survey_cap`)."""
    return exact_positive(hub.settings.survey_cap, "survey_cap")


def make_survey(
    hub: Hub, db: Db, caller: Caller, *, title: str, purpose: str = "", told: Callable[[str], str] = str
) -> HeldSurvey:
    """Begin a draft. `told` says the names of its first levels in the language of whoever begins it."""
    check(hub, db, caller, "survey.compose")
    levels = [{"name": told(name), "epsilon": epsilon} for name, epsilon in LEVELS]
    row = HeldSurvey(
        id=new_id(),
        person=caller.id,
        title=checked_title(title),
        purpose=_text(purpose, "purpose", 1000),
        draft={"introduction": "", "levels": levels, "cap": text_of(min(_CAP, largest_cap(hub))), "questions": []},
        created=hub.now(),
    )
    db.add(row)
    db.flush()
    written(hub, db, caller, "survey.compose", row)
    return row


def seen(kind: type[Kind], hub: Hub, db: Db, caller: Caller, number: str, action: str = "survey.see", *, state: str = "") -> Kind:
    """One's own survey, in one of these states (with spaces between); any other is missing, whether it exists or not."""
    row = db.get(kind, number, with_for_update=bool(state) and kind is HeldJointSurvey)
    if row is None or row.person != caller.id:
        raise Missing("There is no such survey", why="it does not exist, or is not yours", instead=HOMES[kind])
    check(hub, db, caller, action, Object(kind="survey", id=row.id, name=row.title, owner=row.person))
    if state and row.state not in state.split():
        raise Conflict("The survey was left as it is", why=STATES[kind][row.state], instead=f"{HOMES[kind]}/{row.id}")
    return row


def own(kind: type[Kind], db: Db, caller: Caller, *, after: str = "", limit: int = 50) -> list[Kind]:
    """One's own, the newest first; `after` is the id of the last one that was seen."""
    wanted = select(kind).where(kind.person == caller.id)
    last = db.get(kind, after) if after else None
    if last is not None:
        wanted = wanted.where(older_than(last))
    return list(db.scalars(wanted.order_by(kind.created.desc(), kind.id.desc()).limit(limit)))


seen_survey, surveys_of = partial(seen, HeldSurvey), partial(own, HeldSurvey)


def rewrite(hub: Hub, db: Db, caller: Caller, number: str, **said: Any) -> HeldSurvey:
    """Change what a draft says of itself: title, purpose, introduction, levels, cap, how many are hoped for, invitations, and its
    questions, as a whole. All of it is looked at together: what could not be opened is refused."""
    row = seen_survey(hub, db, caller, number, "survey.manage", state="draft")
    draft = dict(row.draft)
    if "title" in said:
        row.title = checked_title(said["title"])
    if "purpose" in said:
        row.purpose = _text(said["purpose"], "purpose", 1000)
    if "introduction" in said:
        draft["introduction"] = _text(said["introduction"], "introduction", 5000)
    if "levels" in said:
        draft["levels"] = [{"name": str(each["name"]), "epsilon": str(each["epsilon"])} for each in said["levels"]]
    if "cap" in said:
        draft["cap"] = _cap(hub, str(said["cap"]))
    if "hoped" in said:
        row.hoped = _hoped(said["hoped"])
    if "invited" in said:
        row.invited = bool(said["invited"])
    if "questions" in said:
        draft["questions"] = _questions(said["questions"])
    if draft["questions"]:
        composed(row.title, draft)  # refused here, with the field at hand, and not when it is opened
    elif "levels" in said:
        levels_of(draft)
    row.draft = draft
    return row


def add_question(hub: Hub, db: Db, caller: Caller, number: str, said: Mapping[str, Any]) -> HeldSurvey:
    """Put a question at the end of a draft. A survey that could not be made with it is refused."""
    row = seen_survey(hub, db, caller, number, "survey.manage", state="draft")
    return rewrite(hub, db, caller, number, questions=[*row.draft["questions"], said])


def _questions(said: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if len(said) > MOST_QUESTIONS:
        raise InvalidParameter(
            "The question is invalid", why=f"a survey has at most {MOST_QUESTIONS} questions", instead="a second survey"
        )
    found = [question_of(each).to_dict() for each in said]
    if sum(each["kind"] == "word" for each in found) > MOST_WORDS:
        raise InvalidParameter(
            "The question is invalid", why=f"a survey asks for at most {MOST_WORDS} words", instead="a choice among known words"
        )
    return found


def remove_question(hub: Hub, db: Db, caller: Caller, number: str, name: str) -> HeldSurvey:
    """Take a question out of a draft."""
    row = seen_survey(hub, db, caller, number, "survey.manage", state="draft")
    left = [each for each in row.draft["questions"] if each["name"] != name]
    if len(left) == len(row.draft["questions"]):
        raise Missing("There is no such question", why="the draft has none of that name", instead=f"/surveys/{row.id}")
    row.draft = {**row.draft, "questions": left}
    return row


def open_survey(hub: Hub, db: Db, caller: Caller, number: str) -> HeldSurvey:
    """Let people answer. From now on nothing of it changes: whoever answers relies on its integers."""
    row = seen_survey(hub, db, caller, number, "survey.manage", state="draft")
    if not row.draft["questions"]:
        raise InvalidParameter("The survey was not opened", why="it asks nothing", instead="one question at least")
    _cap(hub, row.draft["cap"])  # the institution's may have become smaller
    row.body = composed(row.title, row.draft, identity=row.id).to_json()
    row.state, row.opened = "open", hub.now()
    written(hub, db, caller, "survey.open", row, questions=len(row.draft["questions"]))
    return row


def invite(kind: type[Kind], hub: Hub, db: Db, caller: Caller, number: str, count: int) -> list[str]:
    """So many invitations, each good for one report. They are shown once; what is kept is a digest that names nobody."""
    row, link = seen(kind, hub, db, caller, number, "survey.manage", state="open"), f"{LINKS[kind]}/{number}"
    if not row.invited:
        raise Conflict("No invitations were made", why="anyone with the link may answer this survey", instead=link)
    if not 1 <= count <= MOST_INVITATIONS:
        raise InvalidParameter(
            "No invitations were made", why=f"from 1 to {MOST_INVITATIONS:,} can be made at a time", instead="100"
        )
    tokens, hashes = issue_tokens(count)
    db.add_all([_TICKETS[kind](digest=each, survey=row.id) for each in hashes])
    written(hub, db, caller, "survey.invite", row, count=count)
    return tokens


def close_survey(hub: Hub, db: Db, caller: Caller, number: str) -> HeldSurvey:
    """End it: no report is taken any more."""
    row = seen_survey(hub, db, caller, number, "survey.manage", state="open")
    row.state, row.closed = "closed", hub.now()
    written(hub, db, caller, "survey.close", row, reports=counted(db, row).n)
    return row


def drop_draft(kind: type[Kind], hub: Hub, db: Db, caller: Caller, number: str) -> None:
    """Throw a draft away: what nobody could answer yet. Also a joint survey that is closed, whose helper may never come again:
    what lies here of an answer can't be read without it, and goes."""
    row = seen(kind, hub, db, caller, number, "survey.manage", state=_DROPPED[kind])
    written(hub, db, caller, "survey.drop", row)
    for each in (JointReportRow, JointTicket):
        db.execute(delete(each).where(each.survey == number))
    db.delete(row)


def written(hub: Hub, db: Db, caller: Caller, action: str, row: HeldSurvey | HeldJointSurvey, **details: Any) -> None:
    """Write it down in the audit log."""
    write(hub, db, caller, action, kind="survey", object_id=row.id, purpose=row.purpose, title=row.title, **details)


def _cap(hub: Hub, text: str) -> str:
    most = largest_cap(hub)
    if exact_positive(text, "cap") > most:
        raise InvalidParameter(
            "The cap is invalid",
            why=f"this institution lets no survey take more than an ε of {text_of(most)} from one respondent",
            instead=f"{text_of(most)} or less",
        )
    return text


def checked_title(text: str) -> str:
    """A survey's title; refused where it can't be one."""
    if not is_text(text, 200):
        raise InvalidParameter("The title is invalid", why="it has 1 to 200 characters", instead='"Sleep and screens"')
    return text.strip()


def _text(text: str, name: str, most: int) -> str:
    if text.strip() and not is_text(text, most, lines=True):
        raise InvalidParameter(
            f"{name} is invalid", why=f"it is not a text of at most {most:,} characters", instead="a shorter text"
        )
    return text.strip()


def _hoped(number: Any) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 10**8:
        raise InvalidParameter("hoped is invalid", why="it is how many people may answer, from 1", instead="1000")
    return number
