"""Decisions in words, and the table of every action and role as data, for pages, documentation and tests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cloister.errors import AccessDenied
from cloister.hub.decisions.policy.actions import ANYBODY, N_, NOBODY, OFFERED_ROLES, STANDINGS, Action, actions
from cloister.hub.decisions.policy.decision import REASONS, Ask, Decision

_ASKED = {
    "owner": N_("its owner"),
    "provider": N_("the data provider: it is their policy, and binds the owner too"),
    "steward": N_("the steward"),
    "administrator": N_("an administrator"),
    "project": N_("the project's lead"),
    "sharer": N_("the person who shared it"),
    "self": N_("no one: you can change this yourself"),
}


def words(decision: Decision, gettext: Callable[[str], str] = str) -> str:
    """A decision as one short sentence, in the reader's language.

    >>> words(Decision(allowed=False, action="learn.run", rule="role", reason="no-role", details={"roles": "analyst"}))
    'Train a model: denied, since it takes one of these roles: analyst'
    """
    action = actions().get(decision.action)
    title = gettext(action.title) if action else decision.action
    sentence = gettext("{action}: allowed, since {why}") if decision.allowed else gettext("{action}: denied, since {why}")
    return sentence.format(action=title, why=why(decision, gettext))


def why(decision: Decision, gettext: Callable[[str], str] = str) -> str:
    """The reason alone.

    >>> why(Decision(allowed=False, action="learn.run", rule="role", reason="no-role", details={"roles": "analyst"}))
    'it takes one of these roles: analyst'
    """
    return gettext(REASONS[decision.reason]).format(**decision.details)


def whom(ask: Ask | None, gettext: Callable[[str], str] = str, name: str = "") -> str:
    """Whom to ask, in words; `name` is what the hub calls that person, where the reader may know it.

    >>> whom(Ask(role="owner", person="p1"), name="Ada Lovelace"), whom(Ask(role="steward")), whom(None)
    ('its owner (Ada Lovelace)', 'the steward', '')
    """
    if ask is None:
        return ""
    role = gettext(_ASKED[ask.role])
    return gettext("{whom} ({name})").format(whom=role, name=name) if name else role


def denied(decision: Decision, gettext: Callable[[str], str] = str, name: str = "") -> AccessDenied:
    """The error of a refusal: what, why and by which rule, whom to ask.

    >>> no = Decision(allowed=False, action="learn.run", rule="grants", reason="no-grant", ask=Ask(role="owner", person="p1"))
    >>> print(denied(no))
    Train a model: denied: no one granted this to you (rule grants).
      Instead: ask its owner
    """
    action = actions().get(decision.action)
    title = gettext(action.title) if action else decision.action
    what = gettext("{action}: denied").format(action=title)
    told = gettext("{why} (rule {rule})").format(why=why(decision, gettext), rule=decision.rule)
    asked, instead = whom(decision.ask, gettext, name), _INSTEAD.get(decision.reason, "ask {whom}")
    if decision.ask is not None and decision.ask.role == "self" and "{whom}" in instead:
        return AccessDenied(what, why=told, instead=asked)  # a sentence of its own, and nobody to ask
    return AccessDenied(what, why=told, instead=gettext(instead).format(whom=asked))


_INSTEAD = {
    "login": N_("sign in"),
    "token": N_("do it in a browser"),
    "scope": N_("make a token with this scope"),
    "no-algorithm": N_("name the algorithm"),
    "second-factor": N_("sign in with two-step verification"),
    "no-object": N_("name the object"),
    "unknown-action": N_("ask {whom}"),
    "risk": N_("a smaller spend, or ask {whom}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One action against every role: "no", "yes" (the role is enough), "own" (one's own objects), "granted" (one's own, and what
    was granted), "all" (every such object, by office).

    >>> Row(action="people.invite", title="Invite people", cells={"analyst": "no"}).cells["analyst"]
    'no'
    """

    action: str
    title: str
    cells: dict[str, str]


def role_table() -> list[Row]:
    """Every action against every role that is given, `nobody` and `anybody`, in the order of registration.

    >>> row = next(row for row in role_table() if row.action == "job.cancel")
    >>> row.cells["administrator"], row.cells["analyst"], row.cells["nobody"]
    ('all', 'own', 'no')
    """
    return [Row(action=each.name, title=each.title, cells=dict(_cells(each))) for each in actions().values()]


def _cells(action: Action) -> Iterator[tuple[str, str]]:
    for role in (*STANDINGS, *OFFERED_ROLES):
        everyone = NOBODY in action.roles
        if not everyone and role not in action.roles and (role == NOBODY or ANYBODY not in action.roles):
            yield role, "no"
        elif role in action.overseers:
            yield role, "all"
        else:
            yield role, {"role": "yes", "owner": "own", "grant": "granted"}[action.by]
