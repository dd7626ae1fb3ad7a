"""The hub's policy: decisions as pure functions of (who, what, which, context, the institution's rules).

`actions` lists what can be done, `methods` by what models are trained, `facts` what a decision is made from and how people write
it, `decide` makes it, `explain` says it in words, `bounds` says how large a number may be and hands the ceilings to the ledger,
`shares` says what holds for what is derived, and until when what is shown is shown. No database, no clock, no row.
"""

from cloister.hub.decisions.policy.actions import Action as Action
from cloister.hub.decisions.policy.actions import actions as actions
from cloister.hub.decisions.policy.actions import register_actions as register_actions
from cloister.hub.decisions.policy.bounds import ceilings as ceilings
from cloister.hub.decisions.policy.bounds import check_amount as check_amount
from cloister.hub.decisions.policy.decide import decide as decide
from cloister.hub.decisions.policy.decide import decide_together as decide_together
from cloister.hub.decisions.policy.decide import in_scope as in_scope
from cloister.hub.decisions.policy.decide import may as may
from cloister.hub.decisions.policy.decision import Ask as Ask
from cloister.hub.decisions.policy.decision import Decision as Decision
from cloister.hub.decisions.policy.decision import Narrowed as Narrowed
from cloister.hub.decisions.policy.explain import denied as denied
from cloister.hub.decisions.policy.explain import role_table as role_table
from cloister.hub.decisions.policy.explain import whom as whom
from cloister.hub.decisions.policy.explain import why as why
from cloister.hub.decisions.policy.explain import words as words
from cloister.hub.decisions.policy.facts import Context as Context
from cloister.hub.decisions.policy.facts import GrantFacts as GrantFacts
from cloister.hub.decisions.policy.facts import Hours as Hours
from cloister.hub.decisions.policy.facts import MandatoryRule as MandatoryRule
from cloister.hub.decisions.policy.facts import Members as Members
from cloister.hub.decisions.policy.facts import Object as Object
from cloister.hub.decisions.policy.facts import Part as Part
from cloister.hub.decisions.policy.facts import Policy as Policy
from cloister.hub.decisions.policy.facts import Rules as Rules
from cloister.hub.decisions.policy.facts import Source as Source
from cloister.hub.decisions.policy.facts import Spend as Spend
from cloister.hub.decisions.policy.facts import Who as Who
from cloister.hub.decisions.policy.mandatory import closing_policy as closing_policy
from cloister.hub.decisions.policy.mandatory import closing_rule as closing_rule
from cloister.hub.decisions.policy.shares import derived as derived
from cloister.hub.decisions.policy.shares import inherit as inherit
