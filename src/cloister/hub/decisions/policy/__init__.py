"""The hub's policy: decisions as pure functions of (who, what, which, context, the institution's rules).

`actions` lists what can be done, `methods` by what models are trained, `facts` what a decision is made from and how people write
it, `decide` makes it, `explain` says it in words, `bounds` says how large a number may be and hands the ceilings to the ledger,
`shares` says what holds for what is derived, and until when what is shown is shown. No database, no clock, no row.
"""

from cloister.hub.decisions.policy.actions import Action, actions, register_actions
from cloister.hub.decisions.policy.bounds import ceilings, check_amount
from cloister.hub.decisions.policy.decide import decide, decide_together, in_scope, may
from cloister.hub.decisions.policy.decision import Ask, Decision, Narrowed
from cloister.hub.decisions.policy.explain import denied, role_table, whom, why, words
from cloister.hub.decisions.policy.facts import (
    Context,
    GrantFacts,
    Hours,
    MandatoryRule,
    Members,
    Object,
    Part,
    Policy,
    Rules,
    Source,
    Spend,
    Who,
)
from cloister.hub.decisions.policy.mandatory import closing_policy, closing_rule
from cloister.hub.decisions.policy.shares import derived, inherit

__all__ = [
    "Action",
    "Ask",
    "Context",
    "Decision",
    "GrantFacts",
    "Hours",
    "MandatoryRule",
    "Members",
    "Narrowed",
    "Object",
    "Part",
    "Policy",
    "Rules",
    "Source",
    "Spend",
    "Who",
    "actions",
    "ceilings",
    "check_amount",
    "closing_policy",
    "closing_rule",
    "decide",
    "decide_together",
    "denied",
    "derived",
    "in_scope",
    "inherit",
    "may",
    "register_actions",
    "role_table",
    "whom",
    "why",
    "words",
]
