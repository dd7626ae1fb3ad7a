"""What one grant allows: who is in it, and whether all of its conditions hold at once.

A grant is looked at as a whole. Its columns never mix with the purposes of another, since that would allow what no owner wrote.
"""

from collections.abc import Iterable
from fractions import Fraction

from cloister.errors import CloisterError
from cloister.hub.decisions.policy.actions import Action
from cloister.hub.decisions.policy.decision import Narrowed
from cloister.hub.decisions.policy.facts import Context, GrantFacts, Members, Object, Rules, Who
from cloister.hub.decisions.policy.mandatory import in_networks, listed, missing_training
from cloister.hub.decisions.policy.risk import beyond_risk, reached, told_risk
from cloister.privacy.guarantee import ZCDP, Guarantee
from cloister.session.questions.spend import amount_of, less

STAGES = {
    reason: place
    for place, reason in enumerate(
        (
            "no-grant",
            "revoked",
            "expired",
            "too-early",
            "training",
            "project",
            "purpose",
            "network",
            "hours",
            "columns",
            "algorithm",
            "method",
            "only-with",
            "risk-unknown",
            "risk",
            "share",
            "share-left",
        )
    )
}
"""Why a grant does not allow something, in the order in which it is looked at: the later, the nearer it was. What is over comes
first, since nothing that somebody does brings it back: it hides no reason of a grant that stands."""

_FOR_NOW = frozenset({"too-early", "training", "network", "hours"})
"""What keeps somebody from a grant that is theirs, and may be otherwise tomorrow, elsewhere or once they have learnt."""


def refusal(grant: GrantFacts, who: Who, action: Action, which: Object, context: Context) -> str | None:
    """The first condition of a grant that does not hold; None where all hold.

    Terms that do not concern somebody are not told to them: anyone who is not in the grant finds that there is none.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.actions import actions
    >>> rules = Rules(actions=frozenset({"question.ask"}))
    >>> grant = GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=rules)
    >>> facts = Object(kind="dataset", id="d1"), Context(now=datetime.now(UTC))
    >>> refusal(grant, Who(id="p1"), actions()["question.ask"], *facts), refusal(grant, Who(), actions()["question.ask"], *facts)
    (None, 'no-grant')
    """
    members, rules, now = grant.members, grant.rules, context.now
    # whoever may run an algorithm may do by it what it does: that it is one of those in the grant is a condition on its own
    by_algorithm = action.as_algorithm and context.algorithm and "algorithm.run" in rules.actions
    given = by_algorithm or allows(rules, action)
    if not (action.grantable and given and _named(members, who)):
        return "no-grant"
    if grant.revoked:
        return "revoked"
    if rules.until is not None and now >= rules.until:
        return "expired"
    if rules.not_before is not None and now < rules.not_before:
        return "too-early"
    if members.training and missing_training(members.training, who, now):
        return "training"
    if members.projects is not None and not _at_work(members.projects & who.projects, action, context):
        return "project"
    return _unmet(rules, action, which, context)


def details(reason: str, grant: GrantFacts, who: Who, which: Object, context: Context) -> dict[str, str]:
    """The values that the sentence of a refusal shows.

    >>> from datetime import UTC, datetime
    >>> rules = Rules(actions=frozenset({"question.ask"}), columns=frozenset({"age"}))
    >>> grant = GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=rules)
    >>> touching = Context(now=datetime.now(UTC), columns={"d1": frozenset({"age", "sex"})})
    >>> details("columns", grant, Who(id="p1"), Object(kind="dataset", id="d1"), touching)
    {'columns': 'sex'}
    """
    rules = grant.rules
    if reason == "training":
        return {"training": listed(missing_training(grant.members.training, who, context.now))}
    if reason == "purpose":
        return {"purposes": listed(rules.purposes or ())}
    if reason == "method":
        return {"methods": listed(rules.methods or ())}
    if reason == "columns":
        return {"columns": listed(context.columns[which.id] - (rules.columns or frozenset()))}
    if reason == "only-with":
        return {"object": next(each.name or each.id for each in context.together if each.id not in (rules.only_with or ()))}
    if reason in ("risk", "risk-unknown") and rules.risk is not None:
        return told_risk(reached(which, context), rules.risk, reached(which, context, about="value"))
    moment = {"too-early": rules.not_before, "expired": rules.until}.get(reason)
    if moment is not None:
        return {"moment": f"{moment:%Y-%m-%d %H:%M %Z}".strip()}
    if not reason.startswith("share") or rules.share is None:
        return {}
    left, cost = _left(rules.share, which, context), context.spend[which.population].asked
    return {"share": str(rules.share), "rest": str(left), "cost": str(cost)}


def allows(rules: Rules, action: Action) -> bool:
    """Whether a grant names an action, or one that implies it.

    >>> from cloister.hub.decisions.policy.actions import actions
    >>> asking = Rules(actions=frozenset({"question.ask"}))
    >>> [allows(asking, actions()[name]) for name in ("question.ask", "question.explain", "learn.run")]
    [True, True, False]
    """
    return action.name in rules.actions or not action.implied_by.isdisjoint(rules.actions)


def kept_for_now(grant: GrantFacts, who: Who, action: Action, which: Object, context: Context) -> bool:
    """Whether a grant is somebody's own, stands, and does not hold at the moment or from where they are: they know of the object.

    It is their own where it names them, their institution or a project of theirs; for a certificate that they lack, where it
    names them: whoever has none of what a grant for all asks for knows nothing of it.

    >>> from datetime import UTC, datetime
    >>> from cloister.hub.decisions.policy.actions import actions
    >>> rules, people = Rules(actions=frozenset({"question.ask"}), networks=()), Object(kind="data-set", id="d1")
    >>> named, all_of_us = Members(people=frozenset({"p1"})), Members(anybody=True)
    >>> given = [GrantFacts(id="g1", role="reader", members=each, rules=rules) for each in (named, all_of_us)]
    >>> asking, now = actions()["question.ask"], Context(now=datetime.now(UTC))
    >>> [kept_for_now(each, Who(id="p1"), asking, people, now) for each in given]
    [True, False]
    """
    members, reason = grant.members, refusal(grant, who, action, which, context)
    return reason in _FOR_NOW and (members.people is not None if reason == "training" else members.narrowed)


def reach(grant: GrantFacts, who: Who) -> Narrowed:
    """How far a grant lets somebody go: its columns, rows and share, until it or a certificate that it needs ends.

    >>> rules = Rules(actions=frozenset({"question.ask"}), rows="age >= 18")
    >>> reach(GrantFacts(id="g1", role="reader", members=Members(anybody=True), rules=rules), Who(id="p1")).rows
    'age >= 18'
    """
    ends = list(map(who.training.__getitem__, grant.members.training))
    if grant.rules.until is not None:
        ends.append(grant.rules.until)
    rules = grant.rules
    return Narrowed(columns=rules.columns, rows=rules.rows, share=rules.share, risk=rules.risk, until=min(ends, default=None))


def widest(grants: Iterable[GrantFacts]) -> GrantFacts:
    """Of several grants that allow the same act, the one with the fewest limits, and then with the largest share: shares of two
    grants do not add up. Equal ones by their id.

    >>> free, tight = (
    ...     GrantFacts(id=name, role="", members=Members(), rules=Rules(actions=frozenset(), rows=rows))
    ...     for name, rows in (("g2", ""), ("g1", "age >= 18"))
    ... )
    >>> widest([tight, free]).id
    'g2'
    """

    def limits(grant: GrantFacts) -> tuple[bool, bool, int, bool, Fraction, bool, bool, str]:
        rules, columns = grant.rules, grant.rules.columns
        return (
            bool(rules.rows),
            columns is not None,
            -len(columns or ()),
            rules.share is not None,
            Fraction(0) if rules.share is None else -amount_of(rules.share),
            rules.risk is not None,
            rules.until is not None,
            grant.id,
        )

    return min(grants, key=limits)


def _named(members: Members, who: Who) -> bool:
    people, institutions, projects = members.people, members.institutions, members.projects
    if not who.id or not (members.anybody or members.training or members.attributes or members.narrowed):
        return False
    if people is not None and who.id not in people and (not who.email or who.email not in people):
        return False
    if institutions is not None and who.institution not in institutions:
        return False
    if projects is not None and projects.isdisjoint(who.projects):
        return False
    return not members.attributes or all(who.attributes.get(name) == value for name, value in members.attributes.items())


def _at_work(projects: frozenset[str], action: Action, context: Context) -> bool:
    """What reads data under a project's grant is done inside the project; the rest may be done from outside."""
    return context.project in projects if context.project or action.data else bool(projects)


def _unmet(rules: Rules, action: Action, which: Object, context: Context) -> str | None:
    if rules.purposes is not None and (action.data or context.purpose) and context.purpose not in rules.purposes:
        return "purpose"
    if rules.networks is not None and not in_networks(context.address, rules.networks):
        return "network"
    if rules.hours is not None and not any(each.hold(context.now) for each in rules.hours):
        return "hours"
    if rules.columns is not None and not context.columns.get(which.id, frozenset()) <= rules.columns:
        return "columns"
    if not _covers_algorithm(rules, action, which, context):
        return "algorithm"
    if rules.methods is not None and action.by_method and context.method not in rules.methods:
        return "method"
    if rules.only_with is not None and any(other.id not in rules.only_with for other in context.together):
        return "only-with"
    risky = None if rules.risk is None else beyond_risk(rules, action, which, context)
    if risky is not None:
        return risky
    if rules.share is not None and _beyond_share(rules.share, which, context):
        return "share" if _left(rules.share, which, context) is None else "share-left"
    return None


def _covers_algorithm(rules: Rules, action: Action, which: Object, context: Context) -> bool:
    if which.kind == "algorithm":
        return context.algorithm in ("", which.id)
    if context.algorithm and rules.algorithms is not None:
        return context.algorithm in rules.algorithms
    if context.algorithm:  # what an algorithm made may be taken further like anything else; to run it takes its name
        return not (action.as_algorithm or action.by_algorithm)
    return rules.algorithms is None or not action.data


def _left(share: Guarantee, which: Object, context: Context) -> Guarantee | None:
    """What is left of a share; None for nothing."""
    drawn = context.spend[which.population].drawn
    if drawn is None:
        return share
    left = less(share, drawn) if isinstance(share, ZCDP) == isinstance(drawn, ZCDP) else None
    return None if left is None or not amount_of(left) else left


def _beyond_share(share: Guarantee, which: Object, context: Context) -> bool:
    spend = context.spend.get(which.population)
    if spend is None or spend.asked is None:
        return False  # the ledger's share keeps to `Narrowed.share`
    try:
        return not (spend.asked if spend.drawn is None else spend.drawn + spend.asked) <= share
    except CloisterError:  # guarantees that do not add up: what can't be checked is refused
        return True
