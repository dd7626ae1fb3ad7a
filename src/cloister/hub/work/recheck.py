"""Whether what was made may still leave: what was revoked while it was worked on keeps it back.

The decision was made before the charge. Between the two the owner may have revoked the grant, the token may have been revoked,
the person blocked. So before each charge of a job, and in the transaction that keeps a release, the person is looked up once
more, and where anything has changed that decides who may ask what, the policy is asked again. What was charged stands, since
rows were read; the release does not leave.

Every refusal of work has its audit entry and its counter: what, why, and what was charged all the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, BudgetExceeded, CloisterError, Conflict, Missing, stored_name
from cloister.hub.decisions.callers import caller_again, caller_for
from cloister.hub.decisions.checking import check_together
from cloister.hub.decisions.facts import facts_of
from cloister.hub.generation import generation
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.access import under
from cloister.hub.platform.trail import write_alone
from cloister.hub.work.authorise import Authorised
from cloister.hub.work.bounds import account_of, check_limits


def present(hub: Hub, db: Db, caller: Caller) -> Caller:
    """The same person as they stand now, come in the same way; refused where they are blocked, or their token is taken back."""
    return _come(_standing(hub, db, caller), caller)


def _standing(hub: Hub, db: Db, caller: Caller) -> Caller:
    person = caller_again(hub, db, caller) if caller.token else caller_for(hub, db, caller.id)
    if person is None and (not caller.token or caller_for(hub, db, caller.id) is None):
        raise AccessDenied("The query was denied", why="the account is blocked", instead="ask an administrator")
    if person is None:
        raise AccessDenied(
            "The query was denied",
            why="the API token that it was asked with is revoked or expired",
            instead="another token, made at /account/tokens",
        )
    return person


def _come(person: Caller, caller: Caller) -> Caller:
    """The person, come in the same way as a caller."""
    return replace(
        person,
        via=caller.via,
        scopes=caller.scopes,
        token=caller.token,
        session=caller.session,
        address=caller.address,
        second_factor=caller.second_factor,
    )


_STANDING = attrgetter("roles", "projects", "institution", "training", "attributes")
"""What policies ask of a person. It changes without a new number of facts; and time does, which ends grants and certificates."""


def check_unchanged(hub: Hub, caller: Caller) -> None:
    """Refuse a request that waited, where the person has become another to the policies meanwhile."""
    with hub.database.reading() as db:
        now = present(hub, db, caller)
    if _STANDING(now) != _STANDING(caller):
        why = "your roles, your projects or your certificates have changed while it waited"
        raise Conflict("The request was refused", why=why, instead="the same once more")


class Recheck:
    """What several releases that leave in one transaction need to know once: who asked for them, as they are now, and of which
    facts it is to be asked.

    The same person with the same token is looked up once; how each of them came (the address, the sign-in) stays each one's own.
    """

    def __init__(self) -> None:
        self._people: dict[tuple[str, str], Caller] = {}
        self.generation: int | None = None
        """The number now, once it was asked for."""

    def present(self, hub: Hub, db: Db, caller: Caller) -> Caller:
        """As `present` says it."""
        key = (caller.id, caller.token)
        if key not in self._people:
            self._people[key] = _standing(hub, db, caller)
        return _come(self._people[key], caller)


def check_standing(hub: Hub, db: Db, caller: Caller, found: Authorised, moment: Recheck | None = None) -> None:
    """Refuse to charge, or to let leave, what could not be asked for any more. Money is not asked about again: it is decided on.
    What the grants of now let be risked, and drawn, is: nothing has left yet."""
    terms, words, moment = found.terms, found.words, moment or Recheck()
    now = moment.present(hub, db, caller)
    ended = False
    for each in found.decisions.values():
        ended = ended or (each.narrowed.until is not None and each.narrowed.until <= hub.now())
    if not ended and moment.generation is None:
        moment.generation = generation(db)
    if not ended and moment.generation == found.generation and _STANDING(now) == _STANDING(caller):
        return
    facts = facts_of(hub, db)
    objects = [facts.data_sets[each.id] for each in found.objects if each.id in facts.data_sets]
    if len(objects) < len(found.objects):
        raise AccessDenied(words.denied, why="the data set was deleted", instead="another data set")
    if any(each.closed and not then.closed for each, then in zip(objects, found.objects, strict=True)):
        raise AccessDenied(words.denied, why="the data set was closed", instead="ask its owner to open it again")
    context = terms.context(hub, now, found.read, found.behind)
    decisions = check_together(hub, db, now, terms.action, objects, context, facts)
    who = account_of(facts, now, terms.project)
    decisions = check_limits(hub, db, now, terms.action, objects, decisions, context, who)
    if any(decisions[name].narrowed.rows not in ("", each.narrowed.rows) for name, each in found.decisions.items()):
        raise AccessDenied(words.denied, why="fewer rows are open to you now", instead="the same once more")


def withheld(what: str, why: str, error: CloisterError) -> AccessDenied:
    """The refusal of what was charged and may not leave any more, under the rule that says so now."""
    return AccessDenied(what, why=why, instead=error.instead, rule=error.rule)


def charged(what: str, error: CloisterError) -> AccessDenied:
    """The same where the charge stands."""
    return withheld(what, f"{error.why}, after the request was submitted; it was charged, and the charge stands", error)


def note_refusal(
    hub: Hub,
    caller: Caller,
    action: str,
    error: Exception,
    *,
    kind: str,
    purpose: str,
    algorithm: str = "",
    cost: Mapping[str, str] | None = None,
    **details: Any,
) -> None:
    """Write down that somebody was refused work, or that it failed. `kind`: of what it was about; `algorithm`: as it was named,
    or its id."""
    outcome = "denied" if isinstance(error, AccessDenied) else "failed"
    hub.meter.question("denied" if outcome == "denied" else "over-budget" if isinstance(error, BudgetExceeded) else "refused")
    if algorithm:
        with hub.database.reading() as db:
            details |= under(db, algorithm, known=not isinstance(error, Missing))
    rule = error.rule if isinstance(error, CloisterError) else ""
    said = {"error": stored_name(error), "rule": rule, **details}
    write_alone(hub, caller, action, kind=kind, purpose=purpose, outcome=outcome, cost=dict(cost or {}), **said)
