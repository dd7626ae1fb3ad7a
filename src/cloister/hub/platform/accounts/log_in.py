"""Signing in with a password and a code, and what changes with them: the rules, without the pages.

Whoever tries learns one thing only, that it was wrong: an unknown address, a wrong password, a blocked person and one without a
password are told in the same words, after the same one hash. Every attempt is counted before it is looked at (`throttle.py`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import Request

from cloister.errors import Conflict, InvalidParameter
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.accounts import links, second_factor, sessions, throttle
from cloister.hub.platform.accounts.hashing import LONGEST, plain
from cloister.hub.platform.accounts.parts import parts_of
from cloister.hub.platform.accounts.people import add_person, as_person, log_event, revoke_tokens
from cloister.hub.problems import Unauthenticated
from cloister.hub.records.accounts import Person, folded, person_of_address


@dataclass(frozen=True, kw_only=True)
class Entered:
    """A session that has begun: the secret for its cookie, and whose it is."""

    secret: str
    email: str


def enter_by_password(hub: Hub, request: Request, typed: str, password: str) -> Entered:
    """Begin a session with an address and a password."""
    address = str(request.state.address)
    try:
        known = folded(typed)
    except InvalidParameter:  # somebody whom nobody knows
        known = "?"
    mine = throttle.account(hub, known, request.cookies.get(throttle.KNOWN, ""))
    shared = throttle.network(hub, address)
    with hub.database.begin() as db:
        throttle.take(hub, db, mine, shared)
        person = person_of_address(db, known)
        kept = person.password if person is not None else None
    hasher = parts_of(hub).hasher
    right = hasher.verify(kept, password)
    anew = hasher.hash(password) if right and kept is not None and hasher.weaker(kept) else None
    secret = ""
    with hub.database.begin() as db:
        person = person_of_address(db, known)
        if right and person is not None and not person.blocked and person.password == kept:
            person.password = anew or kept
            throttle.forgive(hub, db, mine, shared)
            secret = sessions.begin(hub, db, person.id, request)
            log_event(hub, db, as_person(person, address), "session.begin", person.id, by="password")
        else:
            log_event(
                hub, db, Caller(address=address), "session.fail", person.id if person else "", outcome="failed", by="password"
            )
    if not secret:
        raise Unauthenticated(
            "You could not be signed in",
            why="address and password do not belong together, or the account is closed",
            instead="try again, or ask an administrator for a link to a new password",
        )
    return Entered(secret=secret, email=known)


def pass_second_factor(hub: Hub, request: Request, caller: Caller, typed: str) -> Entered:
    """Complete a session that lacks the second factor with a code: the secret for the cookie changes."""
    with hub.database.reading() as db:
        person = second_factor.person_of_session(db, caller)
    how = prove_code(hub, caller, person, typed)
    with hub.database.begin() as db:
        secret = sessions.renew(hub, db, caller.session, second_factor=True)
        log_event(hub, db, as_person(person, caller.address), "session.second-factor", person.id, by=how)
    return Entered(secret=secret, email=person.email)


def prove_code(hub: Hub, caller: Caller, person: Person, typed: str) -> str:
    """How the code was good ("code" or "recovery"); a wrong one is refused, counted, and written down."""
    mine, shared = throttle.code(hub, person.id), throttle.network(hub, caller.address)
    with hub.database.begin() as db:
        throttle.take(hub, db, mine, shared)
        how = second_factor.accept_code(hub, db, person.id, typed)
        if how:
            throttle.forgive(hub, db, mine, shared)
        else:
            log_event(hub, db, as_person(person, caller.address), "session.fail", person.id, outcome="failed", by="code")
    if not how:
        raise InvalidParameter("The code is invalid", why="it is wrong, or was used before", instead="the next code")
    return how


def enter_by_link(hub: Hub, request: Request, secret: str, *, email: str = "", name: str = "", password: str = "") -> Entered:
    """Use a one-time link: become the first administrator, take up an invitation, set a new password, or see a demonstration."""
    address = str(request.state.address)
    with hub.database.reading() as db:
        link = links.look(hub, db, secret)
    kind, names = link.kind, [name, link.email or email]
    if kind == "first":
        folded(email)  # what they typed is checked before anything is hashed
    kept = None
    if kind != "login":
        check_password(password, least=hub.settings.password_length, about=[*names, hub.settings.institution, hub.settings.title])
        kept = parts_of(hub).hasher.hash(password)
    with hub.database.begin() as db:
        row = links.use(hub, db, secret)
        if row.kind in ("first", "invitation"):
            person = add_person(
                hub, db, email=row.email or email, name=name, roles=row.roles, password=kept, given_by=row.made_by
            )
            log_event(hub, db, as_person(person, address), "people.join", person.id, by=row.kind, roles=list(row.roles))
        else:
            found = person_of_address(db, row.email)
            if found is None or found.blocked:
                raise Conflict("The link does not work", why="the account is closed", instead="ask an administrator")
            person = found
        if row.kind == "password":
            person.password = kept
            sessions.end_all(db, person.id)
            ended = revoke_tokens(hub, db, person)
            mine, maker = as_person(person, address), row.made_by
            log_event(hub, db, mine, "password.change", person.id, by="link", made_by=maker, tokens_revoked=ended)
        begun = sessions.begin(hub, db, person.id, request)
        log_event(hub, db, as_person(person, address), "session.begin", person.id, by="link")
        return Entered(secret=begun, email=person.email)


def change_password(hub: Hub, caller: Caller, old: str, new: str, *, keep_tokens: bool = False) -> str:
    """Set another password in a sign-in: all other sign-ins end, and this one gets another secret for its cookie. API tokens are
    revoked, unless they are wanted still: whoever knew the password may have made one.
    """
    mine, shared = throttle.account(hub, caller.email), throttle.network(hub, caller.address)
    with hub.database.begin() as db:
        throttle.take(hub, db, mine, shared)
        person = db.get_one(Person, caller.id)
        kept = person.password
    hasher = parts_of(hub).hasher
    if not hasher.verify(kept, old):
        raise InvalidParameter(
            "The password was not changed",
            why="the current one is wrong",
            instead="the current password, or a password reset link",
        )
    names = [caller.name, caller.email, caller.institution, hub.settings.institution, hub.settings.title]
    check_password(new, least=hub.settings.password_length, about=names)
    anew = hasher.hash(new)
    with hub.database.begin() as db:
        throttle.forgive(hub, db, mine, shared)
        person = db.get_one(Person, caller.id)
        if person.password != kept:
            raise Conflict("The password was not changed", why="it was changed meanwhile", instead="sign in again")
        person.password = anew
        sessions.end_all(db, person.id, but=caller.session)
        ended = 0 if keep_tokens else revoke_tokens(hub, db, person)
        log_event(hub, db, caller, "password.change", person.id, by="person", tokens_revoked=ended)
        return sessions.renew(hub, db, caller.session)


_ENOUGH = 6
_DISTINCT = 5
_SHORTEST_WORD = 3
_SWAPS = str.maketrans("0134578@$!|", "oieastbasii")
_WORDS = """
password passwort passwd kennwort mima parola contrasena motdepasse wachtwoord letmein welcome willkommen bienvenue login
logon admin administrator root user guest test tester testing demo default changeme change secret geheim master access private
secure security sicher trustno iloveyou loveyou love baby sunshine princess monkey dragon football baseball basketball soccer
hockey superman batman spiderman starwars pokemon michael jordan jennifer jessica ashley charlie thomas daniel andrew joshua
matthew shadow flower butterfly cheese chocolate cookie coffee summer winter spring autumn monday friday january december
computer internet windows google facebook linkedin apple samsung android hello freedom whatever nothing qazwsx qweasd zaq xsw
asdf qwer hospital clinic medicine doctor nurse patient health research science data analyst owner steward cloister correct
horse battery staple woaini aini the and for you with my new
"""
_COMMON = tuple(_WORDS.split())
_ROWS = (
    "abcdefghijklmnopqrstuvwxyz",
    "qwertyuiop",
    "qwertzuiop",
    "azertyuiop",
    "asdfghjkl",
    "qsdfghjklm",
    "zxcvbnm",
    "yxcvbnm",
    "wxcvbn",
    "01234567890",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
    "!@#$%^&*()",
)
_RUNS = tuple(sorted({row[at : at + 3] for each in _ROWS for row in (each, each[::-1]) for at in range(len(row) - 2)}))
_YEAR = re.compile(r"(19|20)\d\d")
_ENDS = re.compile(r"^[\W\d_]+|[\W\d_]+$")
"""Digits and signs before and after: what people add to a word."""
_REPEAT = re.compile(r"(.{1,6}?)\1{2,}")


def rest_of(password: str, about: Iterable[str] = ()) -> str:
    """What is left of a password when everything that can be guessed is taken away.

    Instead of a list of a million words there is a rule: take away everything that can be guessed (the person's name, address
    and institution, well-known words, keyboard rows, runs, repeats, years), undoing the usual swaps of letters for signs, and
    see whether enough is left.

    >>> rest_of("P4ssw0rd2024!!!"), rest_of("AdaLovelace-1815", ["Ada Lovelace"]), rest_of("qwertyuiop12345")
    ('', '', '')
    >>> rest_of("tepid otter juggles maps")
    'tepidotterjugglesmaps'
    """
    text = plain(password).casefold()
    words = {word for name in about for word in re.split(r"[\W_]+", plain(name).casefold()) if len(word) >= _SHORTEST_WORD}
    words |= {plain(name).casefold().replace(" ", "") for name in about if len(name) >= _SHORTEST_WORD}
    text = _REPEAT.sub(" ", _YEAR.sub(" ", _ENDS.sub("", text)))
    text = _without_runs(text).translate(_SWAPS)
    for word in sorted({each.translate(_SWAPS) for each in words} | set(_COMMON), key=len, reverse=True):
        text = text.replace(word, " ")
    text = _REPEAT.sub(" ", _without_runs(text))
    return re.sub(r"[\W_]+", "", re.sub(r"\b\w{1,2}\b", " ", text))


def check_password(password: str, *, least: int, about: Iterable[str] = ()) -> None:
    """Refuse a password that is too short, too long or easily guessed; `about` is what is known of the person.

    >>> check_password("tepid otter juggles maps", least=12)
    >>> check_password("Passw0rd12345", least=12)
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: The password is invalid: it is made of words, names or runs that are guessed first.
      Instead: four or five words that do not belong together
    """
    text = plain(password)
    if len(password) > LONGEST:
        raise _refused(f"it has more than {LONGEST} characters", "a shorter one")
    if len(text) < least:
        raise _refused(f"it has fewer than {least} characters", "four or five words that do not belong together")
    if len(set(text)) < _DISTINCT or len(rest_of(password, about)) < _ENOUGH:
        raise _refused(
            "it is made of words, names or runs that are guessed first", "four or five words that do not belong together"
        )


def _without_runs(text: str) -> str:
    """Each piece of three or more characters that stand beside one another on a keyboard or in the alphabet becomes a blank."""
    gone = [False] * len(text)
    for at in range(len(text) - 2):
        if text[at : at + 3] in _RUNS:
            gone[at : at + 3] = [True, True, True]
    return "".join(" " if away else letter for letter, away in zip(text, gone, strict=True))


def _refused(why: str, instead: str) -> InvalidParameter:
    return InvalidParameter("The password is invalid", why=why, instead=instead)
