"""What holds for what left: policies travel, so what is derived from data carries the strictest of their policies, and where it
came from.

What somebody shows to others: a share is a delegation, and nobody delegates more than they have.

So a share holds only while whoever gave it may still give it, looked at where its reader stands: at this moment, from the network
of the reader, with the reader's second factor; and the reader must be one who may see it, besides. Nothing is written when it
ceases to hold, and nothing when it holds again: it sleeps.

What was asked in a project is its members' own, and no share: but of a member whom the owner of the data never let in.
"""

import functools
from collections.abc import Iterable, Mapping

from cloister.hub.decisions.policy.decision import Ask, Decision
from cloister.hub.decisions.policy.facts import SENSITIVITIES, Object, Policy, Source, Who

SHARE, PUBLISH = "release.share", "release.publish"
_SEE = "release.see"


def by_closing(who: Who, what: str, sources: Iterable[Object]) -> Decision | None:
    """The refusal to show or publish what came from a data set that is closed: its owner alone still may.

    >>> closed = Object(kind="data-set", id="d1", owner="olga", closed=True)
    >>> by_closing(Who(id="ana"), "release.share", [closed]).reason, by_closing(Who(id="olga"), "release.share", [closed])
    ('closed', None)
    >>> by_closing(Who(id="ana"), "release.see", [closed])
    """
    shut = next((each for each in sources if each.closed and each.owner != who.id), None)
    if what not in (SHARE, PUBLISH) or shut is None:
        return None
    ask = Ask(role="owner", person=shut.owner, institution=shut.institution)
    return Decision(allowed=False, action=what, rule=f"data-set:{shut.id}", reason="closed", ask=ask)


def asleep(sharer: str, found: Decision | None) -> Decision:
    """What a reader is told where a share does not hold: by which rule, and whom to ask; not which condition of the sharer's own
    it was. `found`: the decision on the sharer; None where they have no account here any more, or left the project.

    >>> no = Decision(allowed=False, action="release.share", rule="grant:g1", reason="purpose", details={"purposes": "care"})
    >>> told = asleep("ana", no)
    >>> told.action, told.rule, told.reason, dict(told.details), told.ask.person
    ('release.see', 'grant:g1', 'share-asleep', {}, 'ana')
    """
    rule = "share" if found is None else found.rule
    return Decision(allowed=False, action=_SEE, rule=rule, reason="share-asleep", ask=Ask(role="sharer", person=sharer))


def let_in(who: Who, project: str, which: Object) -> bool:
    """Whether the owner of an object has ever let somebody into a project's work with it. What was released there is then theirs,
    as what one asked oneself is: the grant may be over.

    >>> from cloister.hub.decisions.policy.facts import GrantFacts, Members, Rules
    >>> members = Members(projects=frozenset({"study"}), people=frozenset({"ana"}))
    >>> given = GrantFacts(id="g1", role="member", members=members, rules=Rules(actions=frozenset()), revoked=True)
    >>> people = Object(kind="data-set", id="d1", owner="olga", grants=(given,))
    >>> [let_in(Who(id=each), "study", people) for each in ("ana", "olga", "bob")]
    [True, True, False]
    """
    if which.owner and which.owner == who.id:
        return True
    for grant in which.grants:
        people = grant.members.people
        if project in (grant.members.projects or ()) and (people is None or who.id in people or who.email in people):
            return True
    return False


def not_let_in(which: Object) -> Decision:
    """The refusal of what a project released before the owner of the data let somebody in.

    >>> not_let_in(Object(kind="data-set", id="d1", owner="olga")).rule
    'data-set:d1'
    """
    ask = Ask(role="owner", person=which.owner, institution=which.institution)
    return Decision(allowed=False, action=_SEE, rule=f"data-set:{which.id}", reason="not-let-in", ask=ask)


def inherit(policies: Iterable[Policy]) -> Policy:
    """What holds for something that was derived from data under these policies: the strictest of each.

    It is a meet: commutative, associative and idempotent, with the empty policy as its unit. So the order in which tables were
    joined, and how often one was, make no difference to what holds for the result; and nothing derived is freer than what it was
    derived from.

    Purposes and partners are those that all allow, retention ends with the earliest, prohibitions, labels, consent bases,
    forbidden combinations and sources add up, and sensitivity is the greatest.

    >>> both = inherit([Policy(purposes=frozenset({"research", "care"})), Policy(purposes=frozenset({"research"}))])
    >>> both.purposes
    frozenset({'research'})
    """
    return functools.reduce(_both, policies, Policy())


def derived(
    objects: Iterable[tuple[Object, Iterable[str]]],
    versions: Mapping[str, str] | None = None,
    behind: Mapping[str, Iterable[str]] | None = None,
) -> Policy:
    """The policy of what was derived from objects, of each of which these columns were read; `behind`: by a condition on rows.

    It holds the objects' own labels, the policies of the columns that were read, and as provenance the object, its version and
    its columns, besides all that those came from.

    >>> health = Object(kind="dataset", id="health", labels=frozenset({"clinical"}))
    >>> found = derived([(health, ["age"])], {"health": "3"})
    >>> found.labels, found.sources  # doctest: +ELLIPSIS
    (frozenset({'clinical'}), frozenset({Source(object='health', version='3', columns=('age',), ...)}))
    """
    found = []
    for each, columns in objects:
        asked = tuple(sorted(set(columns)))
        hidden = tuple(sorted(set((behind or {}).get(each.id, ())) - set(asked)))
        source = Source(
            object=each.id,
            version=(versions or {}).get(each.id, ""),
            columns=asked,
            behind=hidden,
            institution=each.institution,
            population=each.population,
        )
        found.append(Policy(labels=each.labels, sources=frozenset({source})))
        found.extend(each.policies)
        found.extend(each.column_policies[name] for name in asked + hidden if name in each.column_policies)
    return inherit(found)


def _both(left: Policy, right: Policy) -> Policy:
    ends = [each.retention for each in (left, right) if each.retention is not None]
    return Policy(
        purposes=_common(left.purposes, right.purposes),
        prohibitions=left.prohibitions | right.prohibitions,
        labels=left.labels | right.labels,
        consent=left.consent | right.consent,
        sensitivity=max(left.sensitivity, right.sensitivity, key=SENSITIVITIES.index),
        retention=min(ends, default=None),
        combinable_with=_common(left.combinable_with, right.combinable_with),
        forbidden=left.forbidden | right.forbidden,
        sources=left.sources | right.sources,
    )


def _common(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    if left is None or right is None:
        return left if right is None else right
    return left & right
