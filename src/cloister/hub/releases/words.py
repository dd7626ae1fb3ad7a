"""What holds for something that was derived from data, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cloister.hub.policy import Object, Policy, actions


def policy_words(policy: Policy, data_sets: Mapping[str, Object], _: Callable[[str], str] = str) -> list[tuple[str, str]]:
    """What holds for something that was derived from data, as names and sentences.

    >>> policy_words(Policy(purposes=frozenset({"research"}), labels=frozenset({"clinical"})), {})
    [('Purposes', 'research'), ('Labels', 'clinical')]
    """
    known = actions()

    def named(name: str) -> str:
        return data_sets[name].name if name in data_sets else name

    told: list[tuple[str, str]] = []
    if policy.purposes is not None:
        told.append((_("Purposes"), ", ".join(sorted(policy.purposes)) or _("none")))
    if policy.prohibitions:
        titles = [_(known[each].title) if each in known else each for each in sorted(policy.prohibitions)]
        told.append((_("Not allowed"), "; ".join(titles)))
    if policy.labels:
        told.append((_("Labels"), ", ".join(sorted(policy.labels))))
    if policy.consent:
        told.append((_("Consent"), ", ".join(sorted(policy.consent))))
    if policy.sensitivity:
        told.append((_("Sensitivity"), policy.sensitivity))
    if policy.retention is not None:
        told.append((_("May be used until"), f"{policy.retention:%Y-%m-%d %H:%M %Z}"))
    if policy.combinable_with is not None:
        told.append((_("May be combined with"), ", ".join(sorted(map(named, policy.combinable_with))) or _("nothing")))
    for source in sorted(policy.sources):
        columns = ", ".join(source.columns) or _("its rows alone")
        told.append((_("Derived from"), f"{named(source.object)}: {columns}"))
    return told
