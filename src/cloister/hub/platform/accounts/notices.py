"""What others did to somebody's account, told to them: from the lines of the audit log, which nobody takes away.

Anyone who makes a link to a new password could use it themselves. They are not kept from that, since a forgotten password needs
somebody's help; but it is not done in silence: the person finds on the page of their account who made which link, when, and from
where it was used, and each sign-in says so for a month. That does not end with the first sign-in after it, since that may be the
stranger's; and nobody can have it unsaid.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from cloister.hub.hub import Hub
from cloister.hub.records.accounts import names_of
from cloister.hub.records.trail import AuditAbout, AuditLine

_MOST = 20
_READ = 200
_SAID = timedelta(days=30)
_OF_LINK = "password.change"
_SERIOUS = ("people.password-link", "second-factor.remove", _OF_LINK)


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One act: what, by whom (of a link that was used, who had made it; empty: on the hub's command line), when, from where."""

    action: str
    by: str
    when: datetime
    address: str

    @property
    def serious(self) -> bool:
        """Whether somebody else could come in by it."""
        return self.action in _SERIOUS

    @property
    def used(self) -> bool:
        """Whether it is the use of a link."""
        return self.action == _OF_LINK


def notices(db: Session, person: str, *, since: datetime | None = None) -> list[Notice]:
    """What others did to a person's account, and what was done with links that others made for it, the newest first: the last
    twenty acts, and as many of those by which somebody could come in, which no number of others hides."""
    found = _read(db, person, since, serious=True) + _read(db, person, since, serious=False)
    return [notice for _, notice in sorted(dict(found).items(), reverse=True)]


def _read(db: Session, person: str, since: datetime | None, *, serious: bool) -> list[tuple[int, Notice]]:
    from cloister.hub.platform.trail import key_of, sealed

    about = select(AuditAbout.number).where(AuditAbout.object == key_of("person", person))
    wanted = select(AuditLine).where(sealed(), AuditLine.number.in_(about), AuditLine.outcome == "done")
    wanted = wanted.where(or_(AuditLine.person != person, AuditLine.action == _OF_LINK))
    if since is not None:
        wanted = wanted.where(AuditLine.when >= since)
    if serious:
        wanted = wanted.where(AuditLine.action.in_(_SERIOUS))
    lines = db.scalars(wanted.order_by(AuditLine.number.desc()).execution_options(yield_per=_READ))
    theirs = list(islice((each for each in lines if each.action != _OF_LINK or each.details.get("by") == "link"), _MOST))
    lines.close()
    makers = [str(each.details.get("made_by", "")) if each.action == _OF_LINK else each.person for each in theirs]
    names = names_of(db, makers)
    return [
        (
            each.number,
            Notice(action=each.action, by=names.get(maker, maker), when=each.when, address=str(each.details.get("address", ""))),
        )
        for each, maker in zip(theirs, makers, strict=True)
    ]


def said_at_sign_in(hub: Hub, db: Session, person: str, _: Callable[..., str]) -> str:
    """What somebody is told when they sign in; empty for nothing."""
    found = [each for each in notices(db, person, since=hub.now() - _SAID) if each.serious]
    if not found:
        return ""
    last = found[0]
    name = last.by or _("an operator at the hub's command line")
    day, known = f"{last.when:%Y-%m-%d %H:%M} UTC", last.address or "–"
    if last.used:
        told = _(
            "Your password was reset on %(day)s from %(address)s, with a link created by %(name)s.",
            day=day,
            address=known,
            name=name,
        )
    elif last.action == "second-factor.remove":
        told = _("%(name)s turned off two-step verification for your account on %(day)s.", name=name, day=day)
    else:
        told = _("%(name)s created a password reset link for your account on %(day)s.", name=name, day=day)
    return told + " " + _("If you did not ask for it, tell your steward. The details are under Your account.")
