"""The second factor: set up in a sign-in, asked for at each further one, with codes to fall back on.

While it is being set up, the key lies wrapped in the row of the sign-in; it becomes the person's when a code proves that their
authenticator has it. Backup codes have 50 random bits and are kept keyed by the hub, so that a copy of the database alone
does not let them be guessed.
"""

import base64
import hmac
import re

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from cloister.errors import Conflict, InvalidParameter, Missing
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.accounts import totp
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.accounts import Person, RecoveryCode, WebSession
from cloister.noise import default_random

SECRET = "recovery codes"  # noqa: S105  (the name of a secret)
"""What backup codes are kept under: made once, so that another master key leaves them good."""
_CODES = 10
_CODE_BYTES = 7
_CODE_LETTERS = 10


def person_of_session(db: Session, caller: Caller) -> Person:
    """Who is signed in, also where the second factor is still missing."""
    row = db.get(WebSession, caller.session) if caller.session else None
    person = db.get(Person, row.person) if row is not None and not row.ended else None
    if person is None:
        raise Unauthenticated("You need to sign in", why="you are not signed in", instead="/login")
    return person


def begin_setup(hub: Hub, db: Session, caller: Caller) -> bytes:
    """The key that this session sets up; the same one until it is confirmed, so that the page may be loaded again."""
    person = person_of_session(db, caller)
    if person.totp is not None:
        raise Conflict(
            "Two-step verification is already on", why="one at a time", instead="remove it first: /account/second-factor"
        )
    row = db.get_one(WebSession, caller.session, with_for_update=True)
    if row.setup is None:
        row.setup = hub.keys.wrap(totp.new_key(), f"second factor setup {caller.session}")
    return hub.keys.unwrap(row.setup, f"second factor setup {caller.session}")


def key_in_setup(hub: Hub, db: Session, caller: Caller) -> bytes:
    """The key that this session is setting up."""
    row = db.get(WebSession, caller.session) if caller.session else None
    if row is None or row.setup is None:
        raise Missing(
            "Two-step verification is not being set up", why="the page was not opened", instead="/account/second-factor"
        )
    return hub.keys.unwrap(row.setup, f"second factor setup {caller.session}")


def finish_setup(hub: Hub, db: Session, caller: Caller, typed: str) -> list[str]:
    """Take the key where the code shows that the authenticator has it: the backup codes, to be shown once."""
    key = key_in_setup(hub, db, caller)
    person = locked(db, person_of_session(db, caller).id)
    if person.totp is not None:
        raise Conflict(
            "Two-step verification is already on", why="one at a time", instead="remove it first: /account/second-factor"
        )
    step = totp.matching_step(key, typed, hub.clock(), 0)
    if step is None:
        raise InvalidParameter("The code is invalid", why="it is not the one of this half minute", instead="the next code")
    person.totp = hub.keys.wrap(key, f"second factor {person.id}")
    person.totp_step = step
    return new_codes(hub, db, person)


def accept_code(hub: Hub, db: Session, person: str, typed: str) -> str:
    """How the code was good: "code" or "recovery"; empty: it was not. A code counts once."""
    row = locked(db, person)
    if row.totp is None:
        return ""
    key = hub.keys.unwrap(row.totp, f"second factor {row.id}")
    step = totp.matching_step(key, typed, hub.clock(), row.totp_step)
    if step is not None:
        row.totp_step = step
        return "code"
    found = db.get(RecoveryCode, _kept(hub, row.id, typed))
    if found is None or found.used is not None or found.person != row.id:
        return ""
    found.used = hub.now()
    return "recovery"


def new_codes(hub: Hub, db: Session, person: Person) -> list[str]:
    """Fresh backup codes instead of all earlier ones; they are kept as digests and can't be shown again."""
    db.execute(delete(RecoveryCode).where(RecoveryCode.person == person.id))
    codes = [base64.b32encode(default_random().bytes(_CODE_BYTES)).decode()[:_CODE_LETTERS].lower() for _ in range(_CODES)]
    db.add_all(RecoveryCode(digest=_kept(hub, person.id, each), person=person.id, created=hub.now()) for each in codes)
    return [f"{each[:5]}-{each[5:]}" for each in codes]


def codes_left(db: Session, person: str) -> int:
    """How many backup codes are still good."""
    unused = select(func.count()).select_from(RecoveryCode).where(RecoveryCode.person == person, RecoveryCode.used.is_(None))
    return db.scalar(unused) or 0


def remove(db: Session, person: Person) -> None:
    """Take the second factor away, and its backup codes."""
    person.totp = None
    person.totp_step = 0
    db.execute(delete(RecoveryCode).where(RecoveryCode.person == person.id))


def locked(db: Session, person: str) -> Person:
    """The person's row, nobody else's until the transaction ends: two requests cannot use one code."""
    return db.scalars(select(Person).where(Person.id == person).with_for_update().execution_options(populate_existing=True)).one()


def _kept(hub: Hub, person: str, code: str) -> str:
    plain = re.sub(r"[^a-z2-7]", "", code[:40].casefold())
    return hmac.digest(hub.secret(SECRET), f"{person} {plain}".encode(), "sha256").hex()
