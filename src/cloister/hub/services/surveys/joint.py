"""Joint surveys: this hub leads, a helper of another institution calls it, and answers are added up as shares (Prio3).

From a draft to its sums: the questions are fixed when a helper is asked; the helper's operator agrees to them and sends a key;
the author compares its fingerprint and opens the survey; respondents' devices send reports; both servers check each, once; when
it is closed, each puts its noise into its share of the sums, and they are opened. What either promises alone is in
`cloister.together.prio3.helper`. No ledger is charged: a report is paid by its own respondent, whose page says how much.
A report's shares are deleted as soon as both servers have checked it; its nonce stays.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Db

from cloister.crypto import fingerprint
from cloister.errors import Conflict, InvalidParameter, Missing, MissingDependency
from cloister.hub.database import damaged
from cloister.hub.decisions.checking import check
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import digest, new_id, new_secret
from cloister.hub.keys import stored_secret
from cloister.hub.labels import check_purpose
from cloister.hub.records.surveys import HeldJointSurvey, JointReportRow, JointTicket
from cloister.hub.services.surveys.counting import asked, check_rate_limit, closed, is_open, not_invited, use_ticket
from cloister.hub.services.surveys.drafts import checked_title, largest_cap, seen, written
from cloister.hub.web.languages import N_
from cloister.installed import install, lacking
from cloister.local.survey import hash_of
from cloister.printable import is_text, kept
from cloister.privacy import text_of

if TYPE_CHECKING:
    from cloister.together.prio3.joint_survey import JointQuestion, JointReport, JointSurvey

PAGE = 100
"""Reports that a helper is given at a time."""
CONFIDENCE = 0.95
_HEX = re.compile(r"[0-9a-f]{32}")
KINDS = {"yes-no": N_("Yes or no"), "choice": N_("One of several"), "number": N_("A whole number")}

seen_joint = partial(seen, HeldJointSurvey)


def make_joint(hub: Hub, db: Db, caller: Caller, *, title: str, purpose: str = "", invited: bool = False) -> HeldJointSurvey:
    """Begin a draft."""
    check(hub, db, caller, "survey.compose")
    if missing := lacking("together"):
        raise MissingDependency(
            "The joint survey was not made", why=f"the package {missing[0]} is not installed", instead=install("together")
        )
    check_purpose(purpose)
    row = HeldJointSurvey(
        id=new_id(),
        person=caller.id,
        title=checked_title(title),
        purpose=purpose.strip(),
        questions=[],
        invited=invited,
        helper={},
        result={},
        created=hub.now(),
    )
    db.add(row)
    db.flush()
    written(hub, db, caller, "survey.compose", row)
    return row


def ask(hub: Hub, db: Db, caller: Caller, number: str, questions: Sequence[Mapping[str, Any]], *, more: bool = False) -> None:
    """Give a draft these questions in the place of those it has, or with `more` after them."""
    row = seen_joint(hub, db, caller, number, "survey.manage", state="draft")
    found = [*(row.questions if more else ()), *questions]
    made = _capped(hub, _survey(row, found)).questions if found else ()
    if len({each.text.strip().lower() for each in made}) != len(made):
        raise InvalidParameter(
            "The question is invalid",
            why="the same question is asked twice, and two reports of one answer tell more than one",
            instead="each question once",
        )
    row.questions = [each.to_dict() for each in made]


def remove_question(hub: Hub, db: Db, caller: Caller, number: str, text: str) -> None:
    """Take the question of this text out of a draft."""
    row = seen_joint(hub, db, caller, number, "survey.manage", state="draft")
    left = [each for each in row.questions if each["text"] != text]
    if len(left) == len(row.questions):
        raise Missing("There is no such question", why="the draft has none of that text", instead=f"/joint-surveys/{row.id}")
    row.questions = left


def _capped(hub: Hub, survey: JointSurvey) -> JointSurvey:
    most = largest_cap(hub)
    if survey.epsilon > most:
        raise InvalidParameter(
            "The survey is invalid",
            why=f"its sums tell ε = {text_of(survey.epsilon)} of one respondent, and {text_of(most)} are allowed here",
            instead="fewer questions, or a smaller ε for each",
        )
    return survey


def ask_helper(hub: Hub, db: Db, caller: Caller, number: str) -> str:
    """Fix the questions, and make the helper's link: its secret is shown once. Asked again before the survey is opened, the link
    before is void, and whoever joined by it helps no more: its key may not be the one that was read by phone."""
    row = seen_joint(hub, db, caller, number, "survey.manage", state="draft joining")
    if not row.questions:
        raise InvalidParameter("The helper was not asked", why="the survey asks nothing", instead="one question at least")
    _capped(hub, survey_of(row))  # the institution's may have become smaller
    secret = new_secret()
    row.link, row.state, row.helper = digest(secret), "joining", {}
    written(hub, db, caller, "survey.invite", row)
    return secret


def open_joint(hub: Hub, db: Db, caller: Caller, number: str, *, compared: str | None = None) -> HeldJointSurvey:
    """Let people answer: the helper has joined, and its fingerprint was compared (`compared`: which, where that is known)."""
    row = seen_joint(hub, db, caller, number, "survey.manage", state="joining")
    if not row.helper:
        raise Conflict("The survey was not opened", why="no helper has joined", instead="send the link to the other institution")
    if compared not in (None, helper_of(row)["fingerprint"]):
        raise Conflict("The survey was not opened", why="another helper has joined since", instead="compare its fingerprint")
    survey = _capped(hub, survey_of(row))
    row.state, row.opened = "open", hub.now()
    row.sums = [[0] * len(prio3.circuit.decode([0] * prio3.circuit.length)) for prio3 in survey.sums]
    written(hub, db, caller, "survey.open", row, questions=len(row.questions), helper=row.helper["name"])
    return row


def close_joint(hub: Hub, db: Db, caller: Caller, number: str) -> HeldJointSurvey:
    """Take no report any more; the sums are opened when the helper has checked all of them and given its share."""
    row = seen_joint(hub, db, caller, number, "survey.manage", state="open")
    row.state, row.closed = "closed", hub.now()
    written(hub, db, caller, "survey.close", row, reports=sum(reports_of(db, row).values()))
    return row


def reports_of(db: Db, row: HeldJointSurvey) -> dict[str, int]:
    """How many reports are new, counted and dropped."""
    wanted = select(JointReportRow.state, func.count()).where(JointReportRow.survey == row.id).group_by(JointReportRow.state)
    return {"new": 0, "counted": 0, "dropped": 0, **dict(db.execute(wanted).tuples().all())}


def survey_of(row: HeldJointSurvey) -> JointSurvey:
    """As both servers and respondents' devices know it."""
    with kept():
        return _survey(row, row.questions)


def forecast(row: HeldJointSurvey) -> list[dict[str, Any]]:
    """The questions, each with the margin that its sum will have."""
    from cloister.together.prio3.servers import margin_of

    if not row.questions:
        return []
    survey, found = survey_of(row), []
    for prio3, question in zip(survey.sums, survey.questions, strict=True):
        line = {"low": question.low, "high": question.high, "options": question.options}
        found.append({**line, **question.to_dict(), "margin": margin_of(prio3, question.epsilon, CONFIDENCE)})
    return found


def helper_of(row: HeldJointSurvey) -> dict[str, str]:
    """Its name, its key, and the key's fingerprint for the phone; nothing before it has joined."""
    if not row.helper and row.state in ("draft", "joining"):
        return {"name": "", "key": "", "fingerprint": ""}
    with _stored():
        return {**row.helper, "name": row.helper["name"], "fingerprint": fingerprint(bytes.fromhex(row.helper["key"]))}


def receive(hub: Hub, number: str, sent: Mapping[str, Any], *, address: str = "") -> bool:
    """Keep a report; False where it was kept before, also of a survey that has closed since. `address` is looked at by the brake
    alone, and kept nowhere."""
    from cloister.together.prio3.joint_survey import JointReport

    with hub.database.reading() as db:
        row = asked(db, number, HeldJointSurvey)
        survey, invited, state = survey_of(row), row.invited, row.state
        good = not invited or db.get(JointTicket, (number, _ticket(sent))) is not None  # before any proof is looked at
        nonce = str(sent.get("nonce"))
        here = _HEX.fullmatch(nonce) is not None and db.get(JointReportRow, (number, nonce)) is not None
    if state != "open" and here:
        return False
    if state != "open":
        raise closed()
    if not good:
        raise not_invited()
    if not invited:
        check_rate_limit(hub, number, address)
    report = JointReport.from_dict(sent, survey)
    _checked(survey, _key(hub, number), report)
    try:
        with hub.database.begin() as db:
            taken = is_open(db, HeldJointSurvey, number, lock=True)
            if db.get(JointReportRow, (number, report.nonce.hex())) is not None:
                return False
            if not taken:
                raise closed()
            if invited:
                use_ticket(db, JointTicket, number, _ticket(sent))
            db.add(JointReportRow(survey=number, nonce=report.nonce.hex(), body=json.dumps(report.to_dict())))
    except IntegrityError:
        return False
    return True


def helped(hub: Hub, number: str, secret: str, sent: Mapping[str, Any]) -> dict[str, Any]:
    """A helper's call: what it says to what it was given last, and what is to be done next. What takes long is worked out while
    others may write, and this hub's noise is on disk before a helper's shares are looked at."""
    with hub.database.reading() as db:
        decided = _decided(hub, db, _helps(db, number, secret), sent.get("said"))
    with hub.database.begin() as db:
        row = _helps(db, number, secret, lock=True)
        if "key" in sent:
            _join(hub, db, row, sent)
        if row.state in ("open", "closed"):
            _count(db, row, decided)
        if row.state == "closed" and row.sums is not None and not reports_of(db, row)["new"]:
            _put_noise_in(row)
    if isinstance(sent.get("shares"), list):
        with hub.database.begin() as db:
            row = _helps(db, number, secret, lock=True)
            if row.state == "closed" and row.sums is None and sent.get("list") == _list(db, row):
                _open_sums(hub, db, row, sent["shares"])
    with hub.database.reading() as db:
        return _next(hub, db, _helps(db, number, secret))


def _helps(db: Db, number: str, secret: str, *, lock: bool = False) -> HeldJointSurvey:
    row = db.get(HeldJointSurvey, number, with_for_update=lock)
    if row is None or not row.link or not hmac.compare_digest(row.link, digest(secret)):
        raise Missing(
            "There is no such survey", why="it does not exist, or the helper's link is not its newest", instead="the newest link"
        )
    return row


def _join(hub: Hub, db: Db, row: HeldJointSurvey, sent: Mapping[str, Any]) -> None:
    from cloister.together.prio3.joint_survey import public_key

    name, key = str(sent.get("name", "")).strip(), str(sent["key"])
    if row.helper:
        if row.helper == {"name": name, "key": key}:
            return
        raise Conflict("The helper was refused", why="another one has joined this survey", instead="a survey of its own")
    if not is_text(name, 200):
        raise InvalidParameter("The helper's name is invalid", why="it has 1 to 200 characters", instead="Cancer Registry")
    try:
        public_key(bytes.fromhex(key))
    except ValueError:
        raise InvalidParameter(
            "The helper's key is invalid", why="it is not hexadecimal", instead="cloister helper join"
        ) from None
    row.helper = {"name": name, "key": key}
    db.flush()


def _decided(hub: Hub, db: Db, row: HeldJointSurvey, said: object) -> dict[str, list[list[int]]]:
    """By nonce of a report that waits: what it adds to the sums where both servers find it valid, else nothing."""
    from cloister.together.messages import RoundRefused

    if row.state not in ("open", "closed") or not isinstance(said, Mapping):
        return {}
    names = [name for name in list(said)[:PAGE] if _HEX.fullmatch(name)]
    survey, found = survey_of(row), dict[str, list[list[int]]]()
    for each in db.scalars(_new(row).where(JointReportRow.nonce.in_(names))):
        try:
            theirs = [bytes.fromhex(one) for one in said[each.nonce]]
            checked = _checked(survey, _key(hub, row.id), _report(survey, each))
            found[each.nonce] = [
                prio3.counted(kept, prio3.decided([own, other]))
                for prio3, (kept, own), other in zip(survey.sums, checked, theirs, strict=True)
            ]
        except (RoundRefused, TypeError, ValueError):
            found[each.nonce] = []
    return found


def _count(db: Db, row: HeldJointSurvey, decided: Mapping[str, list[list[int]]]) -> None:
    """Add them, each once; the shares of what is counted or let go are deleted."""
    for each in db.scalars(_new(row).where(JointReportRow.nonce.in_(decided)).with_for_update()) if decided else ():
        added = decided[each.nonce]
        if added:
            with _stored():
                parts = zip(survey_of(row).sums, row.sums, added, strict=True)
                row.sums = [prio3.circuit.field.add(total, one) for prio3, total, one in parts]
        each.state, each.body = "counted" if added else "dropped", ""
    db.flush()


def _put_noise_in(row: HeldJointSurvey) -> None:
    """This hub's shares of the sums, with its noise, in the place of those without. Drawn once: were it drawn for each
    opening that is refused, a helper could send wrong shares until it knows the sums."""
    from cloister.together.prio3.servers import noisy_share

    survey = survey_of(row)
    with _stored():
        parts = zip(survey.sums, survey.questions, row.sums, strict=True)
        own = [noisy_share(prio3, asked.epsilon, total).hex() for prio3, asked, total in parts]
    row.result, row.sums = {"own": own}, None


def _open_sums(hub: Hub, db: Db, row: HeldJointSurvey, shares: Sequence[Any]) -> None:
    from cloister.hub.hub import Caller
    from cloister.together.prio3.servers import opened

    survey, n = survey_of(row), reports_of(db, row)["counted"]
    with _stored():
        own = [bytes.fromhex(each) for _, each in zip(survey.sums, row.result["own"], strict=True)]
    try:
        both = [[mine, bytes.fromhex(other)] for mine, other in zip(own, shares, strict=True)]
    except (TypeError, ValueError):
        raise InvalidParameter(
            "The helper's shares are invalid", why="their form is another", instead="cloister helper run"
        ) from None
    found = []
    for prio3, question, each in zip(survey.sums, survey.questions, both, strict=True):
        told = opened(prio3, each, reports=n, epsilon=question.epsilon)
        found.append({"sums": told.counts.tolist(), "margin": told.margin(CONFIDENCE)})
    row.result, row.state = {"reports": n, "questions": found}, "done"
    written(hub, db, Caller(id=row.person, via="system"), "survey.download", row, reports=n)


def _next(hub: Hub, db: Db, row: HeldJointSurvey) -> dict[str, Any]:
    survey = survey_of(row)
    told: dict[str, Any] = {"state": row.state, "survey": survey.to_dict()}
    if row.state not in ("open", "closed"):
        return told
    reports = [_told(hub, survey, each) for each in db.scalars(_new(row).limit(PAGE))]
    if reports:
        return told | {"check": base64.b64encode(_key(hub, row.id)).decode(), "reports": reports}
    return told | ({"list": _list(db, row)} if row.state == "closed" else {})


def _told(hub: Hub, survey: JointSurvey, each: JointReportRow) -> dict[str, Any]:
    """A report as the helper is given it; of one that is damaged the nonce: nothing is said about it, and it is let go."""
    from cloister.together.messages import RoundRefused

    try:
        report = _report(survey, each)
        said = [own.hex() for _, own in _checked(survey, _key(hub, survey.id), report)]
    except (RoundRefused, ValueError):
        return {"nonce": each.nonce}
    return {name: value for name, value in report.to_dict().items() if name != "shares"} | {"said": said}


def _new(row: HeldJointSurvey) -> Select[JointReportRow]:
    return select(JointReportRow).where(JointReportRow.survey == row.id, JointReportRow.state == "new")


def results_of(row: HeldJointSurvey) -> list[dict[str, Any]]:
    """What was opened, by question: counts or a mean, each with its margin."""
    with _stored():
        n, parts = row.result["reports"], zip(survey_of(row).questions, row.result["questions"], strict=True)
        return [_result(question, n, [int(each) for each in told["sums"]], float(told["margin"])) for question, told in parts]


def _result(question: JointQuestion, n: int, sums: Sequence[int], margin: float) -> dict[str, Any]:
    line = {"text": question.text, "kind": question.kind, "epsilon": question.epsilon, "margin": margin}
    if question.kind == "number":
        total = question.low * n + sums[0]
        return line | {"sum": total} | ({"mean": total / n, "mean_margin": margin / n} if n else {})
    counts = [n - sums[0], sums[0]] if question.kind == "yes-no" else sums
    return line | {"counts": dict(zip(question.labels, counts, strict=True))}


@contextmanager
def _stored() -> Iterator[None]:
    """Around what reads a row: where another form stands in it than was written, the row is refused, and not the hub at fault."""
    try:
        yield
    except (LookupError, TypeError, ValueError):
        raise damaged() from None


def _survey(row: HeldJointSurvey, questions: Sequence[Mapping[str, Any]]) -> JointSurvey:
    from cloister.together.prio3.joint_survey import JointSurvey

    return JointSurvey.from_dict({"id": row.id, "title": row.title, "questions": questions})


def _report(survey: JointSurvey, each: JointReportRow) -> JointReport:
    from cloister.together.prio3.joint_survey import JointReport

    return JointReport.from_dict(json.loads(each.body), survey)


def _checked(survey: JointSurvey, key: bytes, report: JointReport) -> list[tuple[Any, bytes]]:
    """What this hub keeps and says of each answer; a report whose shares are none is refused."""
    parts = zip(survey.sums, report.public, report.shares, strict=True)
    return [prio3.check(key, 0, report.nonce, public, share) for prio3, public, share in parts]


def _key(hub: Hub, number: str) -> bytes:
    """What both servers check with, and respondents don't know. Made with the first report."""
    return stored_secret(hub.database, hub.keys, f"joint {number}")


def _list(db: Db, row: HeldJointSurvey) -> str:
    from cloister.together.prio3.joint_survey import list_of

    counted = select(JointReportRow.nonce).where(JointReportRow.survey == row.id, JointReportRow.state == "counted")
    return list_of([bytes.fromhex(each) for each in db.scalars(counted)])


def _ticket(sent: Mapping[str, Any]) -> str:
    token = sent.get("ticket")
    return hash_of(token if isinstance(token, str) and _HEX.fullmatch(token) else "")
