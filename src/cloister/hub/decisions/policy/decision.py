"""What a decision says: yes or no, by which rule, why, whom to ask, and how far a yes reaches.

A reason is a key of `REASONS`, with the values that its sentence shows. Those are the analyst's own words or public declarations;
no reason is computed from rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from types import MappingProxyType

from cloister.hub.decisions.policy.actions import N_
from cloister.privacy.guarantee import Guarantee

LEFT = N_("{rest} of your share of the budget under this grant, {share}, is left, and this costs {cost}")
REASONS: Mapping[str, str] = MappingProxyType(
    {
        # a yes
        "public": N_("everyone may"),
        "role": N_("your role may"),
        "owner": N_("it is yours"),
        "overseer": N_("your role oversees it"),
        "granted": N_("it was granted to you as {role}"),
        # a no, before any object is looked at
        "unknown-action": N_("the hub knows no such action"),
        "login": N_("you have not signed in"),
        "token": N_("this may only be done in a browser, not with a token"),
        "scope": N_("the token was not made for this"),
        "no-role": N_("it takes one of these roles: {roles}"),
        "no-object": N_("no object was named"),
        "not-in-project": N_("you are not a member of the project {project}"),
        "no-algorithm": N_("no algorithm was named"),
        # a no of the institution, or of what is attached to the data
        "denied": N_("the institution does not allow this"),
        "training": N_("it takes a valid certificate: {training}"),
        "second-factor": N_("it requires two-step verification"),
        "purpose": N_("the purpose must be one of: {purposes}"),
        "method": N_("the method must be one of: {methods}"),
        "network": N_("it is not allowed from your network"),
        "ceiling-population": N_("the population would exceed the institution's ceiling of ε = {ceiling}"),
        "ceiling-allotment": N_("the share would exceed the institution's ceiling of ε = {ceiling}"),
        "delta": N_("δ may be at most {delta}"),
        "no-ceiling": N_("the institution's ceiling can't be compared with this guarantee"),
        "combination": N_("these may not be combined: {parts}"),
        "prohibited": N_("the policy of the data prohibits it"),
        "retention": N_("the data's retention period is over"),
        "not-combinable": N_("the data may not be combined with {object}"),
        # a no of the owner
        "not-owner": N_("only its owner may"),
        "no-grant": N_("no one granted this to you"),
        "revoked": N_("the grant was revoked"),
        "too-early": N_("the grant begins at {moment}"),
        "expired": N_("the grant ended at {moment}"),
        "project": N_("the grant is for work inside its project"),
        "hours": N_("the grant does not hold at this hour"),
        "columns": N_("the grant does not cover these columns: {columns}"),
        "algorithm": N_("the grant does not cover this algorithm"),
        "only-with": N_("the grant does not cover it together with {object}"),
        "risk": N_(
            "the risk would reach {risk} (an attacker's best guess whether one person is in the data could be right in {odds} % "
            "of cases, where a coin is in 50 %; between two values of theirs, in {value} %), and the grant allows at most {limit}"
        ),
        "risk-unknown": N_("the grant limits the risk to {limit}, and the risk of this is not known"),
        "closed": N_("its source is closed, so it can't be shared further"),
        "share-asleep": N_("the person who shared it may not share it any more, and the share ends with that"),
        "not-let-in": N_("the owner of the data has not let you into the project's work with them"),
        "share": N_("your share of the budget under this grant is used up: {share}"),
        "share-left": LEFT,
    }
)
"""Why: a short English sentence for each reason, with the values that it shows in braces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Whom to ask: one person, or whoever has a role (in an institution).

    >>> Ask(role="owner", person="p1").institution
    ''
    """

    role: str
    person: str = ""
    institution: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrowed:
    """How far a yes reaches; whoever acts on the decision must keep to all of it.

    >>> Narrowed(rows="age >= 18").columns is None
    True
    """

    columns: frozenset[str] | None = None
    rows: str = ""
    share: Guarantee | None = None
    risk: Fraction | None = None
    """The risk that whoever charges keeps to (`hub/decisions/policy/risk.py`)."""
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer to (who, what, which, context). `rule` names the one rule that decided; `ask` is None where the answer is yes.

    >>> Decision(allowed=False, action="people.invite", rule="role", reason="no-role").narrowed
    Narrowed(columns=None, rows='', share=None, risk=None, until=None)
    """

    allowed: bool
    action: str
    rule: str
    reason: str
    details: Mapping[str, str] = field(default_factory=dict)
    ask: Ask | None = None
    narrowed: Narrowed = Narrowed()
    grant: str = ""
    """The id of the grant that allowed it, where one did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class No:
    """Why one check refuses; the decision that it becomes knows the action besides.

    >>> No(rule="grants", reason="no-grant").details
    {}
    """

    rule: str
    reason: str
    details: Mapping[str, str] = field(default_factory=dict)
    ask: Ask | None = None
