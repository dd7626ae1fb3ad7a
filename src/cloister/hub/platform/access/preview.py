"""What may this person do? The decisions of the policy for one person and one object, each with its rule.

It is the policy that answers, not a reading of it: the same function, the same facts, and a context that the owner imagines.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cloister.hub.decisions.callers import caller_for
from cloister.hub.decisions.checking import allowed, context_of
from cloister.hub.decisions.policy import Decision, Object, whom, words
from cloister.hub.platform.access.drafts import grantable
from cloister.hub.records.accounts import Person

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

    from cloister.hub.hub import Hub


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """One action: whether it is allowed, and why."""

    action: str
    title: str
    words: str
    ask: str
    decision: Decision


def preview(
    hub: Hub,
    db: Session,
    person: Person,
    which: Object,
    *,
    purpose: str = "",
    project: str = "",
    address: str = "",
    method: str = "",
    gettext: Callable[[str], str] = str,
) -> list[Foreseen]:
    """The decision on every action that can be granted on an object, were this person to do it now. Their second factor counts as
    given where they have one.
    """
    caller = caller_for(hub, db, person.id)
    if caller is None:
        return []
    caller = replace(caller, address=address, second_factor=person.totp is not None)
    algorithm = which.id if which.kind == "algorithm" else ""
    context = context_of(hub, caller, purpose=purpose, project=project, algorithm=algorithm, method=method)
    found = []
    for name, title in grantable(which.kind):
        decision = allowed(hub, db, caller, name, which, context)
        told, asked = words(decision, gettext), whom(decision.ask, gettext)
        found.append(Foreseen(action=name, title=gettext(title), words=told, ask=asked, decision=decision))
    return found
