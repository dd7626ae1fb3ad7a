"""Policies travel: what is derived from data carries the strictest of their policies, and where it came from.

`inherit` is a meet: commutative, associative and idempotent, with the empty policy as its unit. So the order in which tables were
joined, and how often one was, make no difference to what holds for the result; and nothing derived is freer than what it was
derived from.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

from cloister.hub.decisions.policy.facts import SENSITIVITIES, Object, Policy, Source


def inherit(policies: Iterable[Policy]) -> Policy:
    """What holds for something that was derived from data under these policies: the strictest of each.

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

    >>> from cloister.hub.decisions.policy.facts import Object
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
