"""The hub's policy: decisions as pure functions of (who, what, which, context, the institution's rules).

`actions` lists what can be done, `methods` by what models are trained, `facts` what a decision is made from, `decide` makes it,
`explain` says it in words, `texts` reads and writes the rules as people write them, `amounts` says how large a number may be,
`bounds` hands the ceilings to the ledger, `release` says what holds for what is derived, and `shares` until when what is shown is
shown. No database, no clock, no row.
"""

from __future__ import annotations

from cloister.hub.policy.actions import Action, actions, known, register_actions
from cloister.hub.policy.amounts import LARGEST, check_amount
from cloister.hub.policy.bounds import Ceiling, ceilings
from cloister.hub.policy.decide import decide, decide_together, in_scope, may
from cloister.hub.policy.decision import Ask, Decision, Narrowed
from cloister.hub.policy.explain import denied, role_table, whom, why, words
from cloister.hub.policy.facts import (
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
from cloister.hub.policy.release import canonical, derived, inherit
from cloister.hub.policy.texts import (
    closing_policy,
    closing_rule,
    kept_grant,
    kept_policy,
    kept_rule,
    parse_grant,
    parse_policy,
    parse_rule,
    write_grant,
    write_policy,
    write_rule,
)

__all__ = [
    "LARGEST",
    "Action",
    "Ask",
    "Ceiling",
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
    "canonical",
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
    "kept_grant",
    "kept_policy",
    "kept_rule",
    "known",
    "may",
    "parse_grant",
    "parse_policy",
    "parse_rule",
    "register_actions",
    "role_table",
    "whom",
    "why",
    "words",
    "write_grant",
    "write_policy",
    "write_rule",
]
