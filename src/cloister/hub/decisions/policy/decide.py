"""The decision: (who, what, which, context, the institution's rules) → yes or no, with the rule, the reason and whom to ask.

The order is fixed, and the first refusal stands:

1. the action is known; who acts has signed in; their token's scopes and their roles let them do it at all;
2. the institution's rules (mandatory: no owner can loosen them);
3. the policies attached to the object and to the columns that are touched (they bind its owner too);
4. the owner: oneself, an overseer's office, or one whole grant all of whose conditions hold (discretionary).

What nothing allows is denied. Nothing here reads a clock, a database or a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from cloister.hub.decisions.policy.actions import ADMINISTRATOR, ANYBODY, NOBODY, Action, actions
from cloister.hub.decisions.policy.decision import Ask, Decision, No
from cloister.hub.decisions.policy.facts import Context, MandatoryRule, Object, Who
from cloister.hub.decisions.policy.grants import STAGES, details, reach, refusal, widest
from cloister.hub.decisions.policy.mandatory import by_institution, by_policy, labels_of


def decide(who: Who, what: str, which: Object | None, context: Context, mandatory: Sequence[MandatoryRule] = ()) -> Decision:
    """Whether somebody may do something to an object, in a context.

    >>> from datetime import UTC
    >>> from cloister.hub.decisions.policy.facts import GrantFacts, Members, Rules
    >>> rules = Rules(actions=frozenset({"question.ask"}), purposes=frozenset({"research"}))
    >>> grant = GrantFacts(id="g1", role="reader", members=Members(people=frozenset({"bob"})), rules=rules)
    >>> health = Object(kind="dataset", id="d1", name="health", owner="ada", grants=(grant,))
    >>> bob, now = Who(id="bob", roles=frozenset({"analyst"})), datetime.now(UTC)
    >>> decide(bob, "question.ask", health, Context(now=now, purpose="research")).rule
    'grant:g1'
    >>> no = decide(bob, "question.ask", health, Context(now=now, purpose="marketing"))
    >>> no.allowed, no.rule, no.reason, no.ask.person
    (False, 'grant:g1', 'purpose', 'ada')
    """
    action = actions().get(what)
    coarse = _may(who, what, action)
    if action is None or not coarse.allowed:
        return coarse
    no = _in_advance(who, action, which, context)
    if no is not None:
        return _no(what, no)
    closed, no = _above(who, action, which, context, mandatory)
    if no is None and action.as_algorithm and context.algorithm:
        more, no = _above(who, actions()["algorithm.run"], which, context, mandatory)
        closed |= more
    if no is not None:
        return _no(what, no)
    if which is None:
        return coarse
    decision = coarse if action.by == "role" else _by_owner(who, action, which, context)
    bound = decision.allowed and action.data and (closed or which.policies)
    return _within(decision, which, closed) if bound else decision


def may(who: Who, what: str) -> Decision:
    """Whether somebody may do something at all: their sign-in, their token and their roles, before any object is looked at.

    >>> may(Who(), "public.read").reason, may(Who(), "question.ask").reason, may(Who(id="p1"), "question.ask").reason
    ('public', 'login', 'no-role')
    """
    return _may(who, what, actions().get(what))


def _may(who: Who, what: str, action: Action | None) -> Decision:
    if action is None:
        return _no(what, No(rule="actions", reason="unknown-action", ask=Ask(role=ADMINISTRATOR)))
    if NOBODY in action.roles:
        return Decision(allowed=True, action=what, rule="public", reason="public")
    if not who.id:
        return _no(what, No(rule="login", reason="login", ask=Ask(role=ADMINISTRATOR)))
    if who.token_scopes is not None:
        if not action.by_token:
            return _no(what, No(rule="token", reason="token", ask=Ask(role="self", person=who.id)))
        if not in_scope(what, who.token_scopes):
            return _no(what, No(rule="token", reason="scope", ask=Ask(role="self", person=who.id)))
    if ANYBODY not in action.roles and action.roles.isdisjoint(who.roles):
        ask = Ask(role=ADMINISTRATOR, institution=who.institution)
        return _no(what, No(rule="role", reason="no-role", details={"roles": ", ".join(sorted(action.roles))}, ask=ask))
    return Decision(allowed=True, action=what, rule="role", reason="role")


def in_scope(action: str, scopes: frozenset[str]) -> bool:
    """Whether a token's scopes hold an action: by its name, its area, or everything.

    >>> in_scope("question.ask", frozenset({"question.*"})), in_scope("questions.ask", frozenset({"question.*"}))
    (True, False)
    """
    if action in scopes or "*" in scopes:
        return True
    return any(scope.endswith(".*") and action.startswith(scope[:-1]) for scope in scopes)


def decide_together(
    who: Who, what: str, objects: Sequence[Object], context: Context, mandatory: Sequence[MandatoryRule] = ()
) -> Mapping[str, Decision]:
    """One act on several objects at once, by object: each must allow it beside all the others. One refusal refuses all.

    >>> from datetime import UTC
    >>> own, other = Object(kind="dataset", id="d1", owner="p1"), Object(kind="dataset", id="d2", owner="p2")
    >>> p1 = Who(id="p1", roles=frozenset({"analyst"}))
    >>> found = decide_together(p1, "question.ask", [own, other], Context(now=datetime.now(UTC)))
    >>> found["d1"].reason, found["d2"].reason
    ('no-grant', 'no-grant')
    """
    found: dict[str, Decision] = {}
    refused: Decision | None = None
    for each in objects:
        beside = tuple(other for other in objects if other.id != each.id)
        given = context if beside == context.together else replace(context, together=beside)
        decision = found[each.id] = decide(who, what, each, given, mandatory)
        refused = decision if refused is None and not decision.allowed else refused
    return found if refused is None else {name: refused if each.allowed else each for name, each in found.items()}


def _in_advance(who: Who, action: Action, which: Object | None, context: Context) -> No | None:
    if action.by != "role" and which is None:
        return No(rule="object", reason="no-object", ask=Ask(role=ADMINISTRATOR))
    if context.project and context.project not in who.projects:
        shown = {"project": context.project}
        return No(rule="project", reason="not-in-project", details=shown, ask=Ask(role="project", person=context.project))
    if action.by_algorithm and which is not None and which.kind != "algorithm" and not context.algorithm:
        return No(rule="algorithm", reason="no-algorithm", ask=Ask(role="self", person=who.id))
    return None


def _above(
    who: Who, action: Action, which: Object | None, context: Context, mandatory: Sequence[MandatoryRule]
) -> tuple[frozenset[str], No | None]:
    """What stands above the owner: the refusal where there is one, and the columns that are closed."""
    labels = frozenset[str]() if which is None else labels_of(which, context.read(which.id))
    no = by_institution(who, action, which, context, mandatory, labels)
    if no is not None or which is None:
        return frozenset(), no
    for policy in which.policies:
        no = by_policy(action, which, context, policy, f"policy:{which.id}")
        if no is not None:
            return frozenset(), no
    return _columns(who, action, which, context, mandatory) if which.column_policies else (frozenset(), None)


def _columns(
    who: Who, action: Action, which: Object, context: Context, mandatory: Sequence[MandatoryRule]
) -> tuple[frozenset[str], No | None]:
    """The columns that are closed by policies of their own, and the refusal where one of them is touched."""
    closed: set[str] = set()
    read = context.read(which.id)
    for name, policy in which.column_policies.items():
        alone = replace(context, columns={**context.columns, which.id: frozenset({name})}, behind={})
        asked = context if name in read else alone  # a combination with other columns counts where both are read
        no = by_policy(action, which, asked, policy, f"policy:{which.id}.{name}")
        if no is None and policy.labels:
            no = by_institution(who, action, which, asked, mandatory, policy.labels)
        if no is not None:
            if name in read:
                return frozenset(closed), no
            closed.add(name)
    return frozenset(closed), None


def _by_owner(who: Who, action: Action, which: Object, context: Context) -> Decision:
    if which.owner and who.id == which.owner:
        return Decision(allowed=True, action=action.name, rule="owner", reason="owner")
    if not action.overseers.isdisjoint(who.roles):
        return Decision(allowed=True, action=action.name, rule="overseer", reason="overseer")
    ask = Ask(role="owner", person=which.owner, institution=which.institution)
    if not action.grantable:
        return _no(action.name, No(rule="owner", reason="not-owner", ask=ask))
    holding, nearest, stage = [], None, 0
    for grant in which.grants:
        reason = refusal(grant, who, action, which, context)
        if reason is None:
            holding.append(grant)
        elif STAGES[reason] > stage:
            stage, nearest = STAGES[reason], grant
    if not holding and nearest is None:
        return _no(action.name, No(rule="grants", reason="no-grant", ask=ask))
    if not holding and nearest is not None:
        reason = next(each for each, place in STAGES.items() if place == stage)
        shown = details(reason, nearest, who, which, context)
        return _no(action.name, No(rule=f"grant:{nearest.id}", reason=reason, details=shown, ask=ask))
    grant = widest(holding) if len(holding) > 1 else holding[0]
    return Decision(
        allowed=True,
        action=action.name,
        rule=f"grant:{grant.id}",
        reason="granted",
        details={"role": grant.role},
        narrowed=reach(grant, who),
        grant=grant.id,
    )


def _within(decision: Decision, which: Object, closed: frozenset[str]) -> Decision:
    """A yes that reaches no closed column and ends when the data must be gone."""
    narrowed = decision.narrowed
    columns = narrowed.columns
    if closed:
        columns = (which.columns | which.column_policies.keys() if columns is None else columns) - closed
    ends = [policy.retention for policy in which.policies if policy.retention is not None]
    until: datetime | None = min([*ends, *([narrowed.until] if narrowed.until else [])], default=None)
    if columns is narrowed.columns and until is narrowed.until:
        return decision
    return replace(decision, narrowed=replace(narrowed, columns=columns, until=until))


def _no(action: str, no: No) -> Decision:
    return Decision(allowed=False, action=action, rule=no.rule, reason=no.reason, details=no.details, ask=no.ask)
