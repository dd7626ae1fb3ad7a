"""The table: who × what × which × context × the institution's rules → allowed or not, by which rule, for which reason."""

from __future__ import annotations

import pytest

from cloister.hub.decisions.policy import decide
from cloister.hub.decisions.policy.actions import BUILT_IN
from cloister.hub.decisions.policy.decision import REASONS
from tests.hub.policy.world import CONTEXTS, OBJECTS, PEOPLE, RULES

# who | what | which | context | institution's rules | yes or no, the rule, the reason
ROLES = """
nobody    | public.read        | - | - | - | yes public public
csp       | public.read        | - | - | - | yes public public
nobody    | question.explain   | health | - | - | no login login
nobody    | dataset.see        | health | - | - | no login login
nobody    | profile.manage     | - | - | - | no login login
nobody    | metrics.see        | - | - | - | no login login
nobody    | people.invite      | - | - | - | no login login
plain     | profile.manage     | - | - | - | yes role role
csp       | profile.manage     | - | - | - | yes role role
bob:all   | profile.manage     | - | - | - | no token token
root      | people.invite      | - | - | - | yes role role
stew      | people.see         | - | - | - | yes role role
bob       | people.see         | - | - | - | no role no-role
stew      | people.invite      | - | - | - | yes role role
ada       | people.invite      | - | - | - | no role no-role
bob       | people.invite      | - | - | - | no role no-role
root      | people.block       | - | - | - | yes role role
stew      | people.block       | - | - | - | no role no-role
root      | roles.give         | - | - | - | yes role role
root:all  | roles.give         | - | - | - | no token token
stew      | roles.give         | - | - | - | no role no-role
ada       | roles.give         | - | - | - | no role no-role
stew      | policy.write       | - | - | - | yes role role
root      | policy.write       | - | - | - | yes role role
ada       | policy.write       | - | - | - | no role no-role
plain     | policy.see         | - | - | - | yes role role
stew      | trail.read         | - | - | - | yes role role
root      | trail.verify       | - | - | - | yes role role
ada       | trail.read         | - | - | - | no role no-role
bob       | trail.read         | - | - | - | no role no-role
root      | trail.acknowledge  | - | - | - | yes role role
bob       | trail.acknowledge  | - | - | - | no role no-role
bob       | trail.own          | - | - | - | yes role role
root      | settings.see       | - | - | - | yes role role
stew      | settings.see       | - | - | - | no role no-role
root      | metrics.see        | - | - | - | yes role role
bob       | metrics.see        | - | - | - | no role no-role
ada       | dataset.register   | - | - | - | yes role role
root      | dataset.register   | - | - | - | no role no-role
bob       | dataset.register   | - | - | - | no role no-role
prov      | dataset.register   | - | - | - | no role no-role
algo      | algorithm.register | - | - | - | yes role role
ada       | algorithm.register | - | - | - | no role no-role
plain     | access.ask         | - | - | - | yes role role
plain     | project.join       | - | - | - | yes role role
plain     | release.pool       | - | - | - | yes role role
bob       | project.create     | - | - | - | yes role role
csp       | project.create     | - | - | - | no role no-role
bob       | budget.ask         | - | - | - | yes role role
prov      | budget.ask         | - | - | - | no role no-role
ada       | data.steal         | - | - | - | no actions unknown-action
nobody    | data.steal         | - | - | - | no actions unknown-action
root      |                    | - | - | - | no actions unknown-action
"""

TOKENS = """
bob:token | question.ask     | health | research | - | yes grant:g-bob granted
bob:token | question.explain | health | research | - | no token scope
bob:area  | question.explain | health | research | - | yes grant:g-bob granted
bob:area  | dataset.see      | health | -        | - | no token scope
bob:all   | dataset.see      | health | -        | - | yes grant:g-all granted
bob:none  | dataset.see      | health | -        | - | no token scope
bob:none  | public.read      | -      | -        | - | yes public public
bob:all   | learn.run        | health | research | - | no grant:g-gcp training
bob:all   | token.manage     | token  | -        | - | no token token
ada:all   | dataset.grant    | health | -        | - | no token token
ada:all   | dataset.budget   | health | -        | - | no token token
ada:all   | budget.raise     | health | -        | - | no token token
ada:all   | access.decide    | health | -        | - | no token token
root:all  | people.invite    | -      | -        | - | no token token
bob       | token.manage     | token  | -        | - | yes owner owner
eve       | token.manage     | token  | -        | - | no owner not-owner
root      | token.manage     | token  | -        | - | yes overseer overseer
"""

OWNERS = """
ada       | dataset.manage   | health | - | - | yes owner owner
ada       | dataset.delete   | health | - | - | yes owner owner
ada       | dataset.grant    | health | - | - | yes owner owner
ada       | dataset.budget   | health | - | - | yes owner owner
ada       | budget.raise     | health | - | - | yes owner owner
ada       | access.decide    | health | - | - | yes owner owner
ada       | dataset.version  | health | - | - | yes owner owner
ada       | question.ask     | health | - | - | yes owner owner
ada       | synthesise.run   | health | - | - | yes owner owner
ada       | compress.run     | health | - | - | yes owner owner
eve       | compress.run     | health | research   | - | no grants no-grant
ada       | joint.run        | health | - | - | yes owner owner
eve       | joint.run        | health | research   | - | no grants no-grant
ada       | dataset.manage   | census | - | - | no owner not-owner
odo       | dataset.manage   | health | - | - | no owner not-owner
odo       | access.decide    | health | - | - | no owner not-owner
odo       | question.ask     | health | - | - | no grants no-grant
dora      | dataset.grant    | health | - | - | no owner not-owner
root      | dataset.manage   | health | - | - | no role no-role
root      | dataset.see      | health | - | - | yes overseer overseer
root      | question.ask     | health | - | - | no role no-role
stew      | question.ask     | health | - | - | no role no-role
stew      | dataset.see      | health | - | - | yes overseer overseer
stew      | dataset.uses     | health | - | - | yes overseer overseer
root      | dataset.uses     | health | - | - | no grants no-grant
ada       | dataset.uses     | health | - | - | yes owner owner
stew      | dataset.delete   | health | - | - | no role no-role
ada:fired | dataset.manage   | health | - | - | no role no-role
ada:fired | question.ask     | health | - | - | no role no-role
ada       | dataset.manage   | -      | - | - | no object no-object
bob       | question.ask     | -      | research | - | no object no-object
bob       | dataset.see      | -      | - | - | no object no-object
ada       | dataset.manage   | orphan | - | - | no owner not-owner
ada       | question.ask     | orphan | - | - | no grants no-grant
bob       | dataset.see      | orphan | - | - | no grants no-grant
root      | dataset.see      | orphan | - | - | yes overseer overseer
bob       | job.see          | job    | - | - | yes owner owner
eve       | job.see          | job    | - | - | no owner not-owner
stew      | job.see          | job    | - | - | yes overseer overseer
bob       | job.cancel       | job    | - | - | yes owner owner
root      | job.cancel       | job    | - | - | yes overseer overseer
stew      | job.cancel       | job    | - | - | no owner not-owner
bob       | question.manage  | question | - | - | yes owner owner
bob       | question.see     | question | - | - | yes owner owner
carl      | question.see     | question | - | - | yes grant:g-lent granted
carl      | question.manage  | question | - | - | yes grant:g-lent granted
eve       | question.see     | question | - | - | no grants no-grant
bob       | access.see       | request | - | - | yes owner owner
eve       | access.see       | request | - | - | no owner not-owner
prov      | contribution.see | gift   | - | - | yes owner owner
prov      | contribution.manage | gift | - | - | yes owner owner
ada       | contribution.manage | gift | - | - | no owner not-owner
bob       | contribution.see | gift   | - | - | no role no-role
dora      | project.manage   | project | - | - | yes owner owner
pia       | project.manage   | project | - | - | no owner not-owner
pia       | project.see      | project | - | - | yes grant:g-in granted
bob       | project.see      | project | - | - | no grants no-grant
root      | project.see      | project | - | - | yes overseer overseer
"""

GRANTS = """
plain     | dataset.see      | health | -          | - | yes grant:g-all granted
bob       | question.ask     | health | research   | - | yes grant:g-bob granted
bob       | question.ask     | health | marketing  | - | no grant:g-bob purpose
bob       | question.ask     | health | -          | - | no grant:g-bob purpose
bob       | question.explain | health | -          | - | yes grant:g-bob granted
bob       | question.explain | health | marketing  | - | no grant:g-bob purpose
bob       | question.rehearse | health | research  | - | yes grant:g-bob granted
bob       | budget.see       | health | -          | - | yes grant:g-bob granted
bob       | learn.run        | health | research   | - | no grant:g-gcp training
eve       | learn.run        | health | research   | - | no grants no-grant
bob       | anonymize.run    | health | research   | - | no grants no-grant
ada       | anonymize.run    | health | research   | - | yes owner owner
bob       | dataset.describe | health | -          | - | no grants no-grant
bob       | dataset.grant    | health | -          | - | no role no-role
carl      | question.ask     | health | age        | - | yes grant:g-narrow granted
carl      | question.ask     | health | diagnosis  | - | no grant:g-narrow columns
carl      | question.ask     | health | quality    | - | yes grant:g-wide granted
carl      | question.ask     | health | diagnosis, quality | - | yes grant:g-wide granted
carl      | question.ask     | health | marketing  | - | no grant:g-narrow purpose
carl      | question.explain | health | diagnosis  | - | no grant:g-narrow columns
eve       | question.ask     | health | research   | - | no grant:g-gone revoked
eve       | dataset.see      | health | -          | - | yes grant:g-all granted
gcp       | learn.run        | health | research   | - | yes grant:g-gcp granted
stale     | learn.run        | health | research   | - | no grant:g-gcp training
bob       | learn.run        | limited | research  | - | no grants no-grant
pia       | question.ask     | health | study      | - | yes grant:g-study granted
pia       | question.ask     | health | other      | - | no grant:g-study project
pia       | question.ask     | health | research   | - | no grant:g-study project
pia       | question.explain | health | research   | - | yes grant:g-study granted
bob       | question.ask     | health | study      | - | no project not-in-project
ada       | question.ask     | health | study      | - | no project not-in-project
prov      | dataset.version  | health | -          | - | yes grant:g-prov granted
prov      | dataset.describe | health | -          | - | yes grant:g-prov granted
prov      | dataset.manage   | health | -          | - | no role no-role
bob       | question.ask     | limited | too early | - | no grant:g-when too-early
bob       | question.ask     | limited | first moment | - | yes grant:g-when granted
bob       | question.ask     | limited | last moment | - | yes grant:g-when granted
bob       | question.ask     | limited | too late  | - | no grant:g-when expired
bob       | question.explain | limited | too late  | - | no grant:g-when expired
carl      | question.ask     | limited | inside    | - | yes grant:g-where granted
carl      | question.ask     | limited | inside, six | - | yes grant:g-where granted
carl      | question.ask     | limited | inside, mapped | - | yes grant:g-where granted
carl      | question.ask     | limited | research  | - | no grant:g-where network
carl      | question.ask     | limited | no address | - | no grant:g-where network
carl      | question.explain | limited | research  | - | no grant:g-where network
u3        | question.ask     | limited | research  | - | yes grant:g-hours granted
u3        | question.ask     | limited | morning   | - | yes grant:g-hours granted
u3        | question.ask     | limited | evening   | - | no grant:g-hours hours
u3        | question.ask     | limited | sunday    | - | no grant:g-hours hours
pia       | question.ask     | limited | low risk  | - | yes grant:g-risk granted
pia       | question.ask     | limited | high risk | - | no grant:g-risk risk
pia       | question.ask     | limited | research  | - | yes grant:g-risk granted
pia       | question.ask     | limited | risk left | - | yes grant:g-risk granted
pia       | question.ask     | limited | risk passed | - | no grant:g-risk risk
pia       | question.ask     | limited | risk of others | - | yes grant:g-risk granted
pia       | question.ask     | limited | share mixed | - | no grant:g-risk risk
pia       | anonymize.run    | limited | research  | - | no grant:g-risk risk-unknown
pia       | anonymize.run    | limited | high risk | - | no grant:g-risk risk
pia       | release.download | limited | research  | - | yes grant:g-risk granted
pia       | question.explain | limited | research  | - | yes grant:g-risk granted
gcp       | question.ask     | limited | research  | - | yes grant:g-share granted
gcp       | question.ask     | limited | share left | - | yes grant:g-share granted
gcp       | question.ask     | limited | share passed | - | no grant:g-share share-left
gcp       | question.ask     | limited | share used up | - | no grant:g-share share
gcp       | question.ask     | limited | share in rho | - | no grant:g-share share
gcp       | question.ask     | limited | share mixed | - | no grant:g-share share
eve       | question.ask     | limited | research  | - | yes grant:g-alone granted
eve       | question.ask     | limited | with health | - | yes grant:g-alone granted
eve       | question.ask     | limited | with census | - | no grant:g-alone only-with
mia       | learn.run        | limited | bayes     | - | yes grant:g-methods granted
mia       | learn.run        | limited | forest    | - | no grant:g-methods method
mia       | learn.run        | limited | research  | - | no grant:g-methods method
mia       | question.ask     | limited | research  | - | yes grant:g-methods granted
mia       | question.ask     | limited | forest    | - | yes grant:g-methods granted
mia       | dataset.see      | limited | -         | - | yes grant:g-methods granted
mia       | budget.see       | limited | -         | - | yes grant:g-methods granted
ada       | learn.run        | limited | forest    | - | yes owner owner
gcp       | learn.run        | health  | forest    | - | yes grant:g-gcp granted
plain     | question.ask     | limited | research  | - | no role no-role
prov      | dataset.grant    | limited | -         | - | no role no-role
dora      | dataset.grant    | limited | -         | - | no owner not-owner
"""

ALGORITHMS = """
u3        | algorithm.run    | health | a1        | - | yes grant:g-algo granted
u3        | algorithm.run    | health | a2        | - | no grant:g-algo algorithm
u3        | algorithm.run    | health | research  | - | no algorithm no-algorithm
u3        | question.ask     | health | research  | - | no grants no-grant
u3        | question.ask     | health | a1        | - | yes grant:g-algo granted
u3        | question.ask     | health | a2        | - | no grant:g-algo algorithm
u3        | learn.run        | health | a1        | - | yes grant:g-algo granted
u3        | learn.run        | health | research  | - | no grant:g-gcp training
u3        | anonymize.run    | health | a1        | - | no grants no-grant
u3        | release.download | health | a1        | - | no grants no-grant
u3        | algorithm.run    | limited | a1       | - | no grants no-grant
bob       | algorithm.run    | health | a1        | - | no grants no-grant
bob       | question.ask     | health | a1        | - | no grant:g-bob algorithm
ada       | algorithm.run    | health | a1        | - | yes owner owner
ada       | algorithm.run    | health | research  | - | no algorithm no-algorithm
u3        | algorithm.run    | algorithm | a1 on health | - | yes grant:g-run granted
u3        | algorithm.run    | algorithm | a1 on limited | - | no grant:g-run only-with
u3        | algorithm.run    | algorithm | a2     | - | no grant:g-run algorithm
bob       | algorithm.run    | algorithm | a1     | - | no grants no-grant
u3        | algorithm.see    | algorithm | -      | - | yes grant:g-run granted
bob       | algorithm.see    | algorithm | -      | - | no grants no-grant
stew      | algorithm.see    | algorithm | -      | - | yes overseer overseer
algo      | algorithm.manage | algorithm | -      | - | yes owner owner
algo      | algorithm.run    | algorithm | a1     | - | no role no-role
"""

ATTACHED = """
ada       | question.ask     | given  | research  | - | yes owner owner
ada       | question.ask     | given  | marketing | - | no policy:given purpose
ada       | question.ask     | given  | -         | - | no policy:given purpose
ada       | learn.run        | given  | research  | - | no policy:given prohibited
bob       | question.ask     | given  | research  | - | yes grant:g-bob granted
gcp       | learn.run        | given  | research  | - | no policy:given prohibited
ada       | question.ask     | given  | last moment | - | yes owner owner
ada       | question.ask     | given  | after retention | - | no policy:given retention
ada       | dataset.delete   | given  | after retention | - | yes owner owner
ada       | dataset.manage   | given  | -         | - | yes owner owner
ada       | question.ask     | genes  | gene      | - | no policy:genes.gene purpose
ada       | question.ask     | genes  | genetics  | - | yes owner owner
ada       | question.ask     | genes  | no gene   | - | yes owner owner
bob       | question.ask     | genes  | research  | - | yes grant:g-bob granted
ada       | question.ask     | alone  | with limited | - | yes owner owner
ada       | question.ask     | alone  | with census | - | no policy:alone not-combinable
bob       | release.see      | release | research | - | yes owner owner
bob       | release.download | release | research | - | no policy:r1 prohibited
bob       | release.share    | release | research | - | yes owner owner
carl      | release.see      | release | research | - | yes grant:g-link granted
carl      | release.see      | release | marketing | - | no policy:r1 purpose
eve       | release.see      | release | research | - | no grants no-grant
nobody    | release.see      | release | research | - | no login login
root      | release.see      | release | research | - | yes grant:g-link granted
carl      | release.share    | release | research | - | no grants no-grant
bob       | release.publish  | release | research | - | yes owner owner
bob:all   | release.publish  | release | research | - | no token token
carl      | release.publish  | release | research | - | no grants no-grant
bob       | release.see      | release | release with postcode | - | no policy:r1 combination
bob       | release.see      | release | release with age | - | yes owner owner
"""

MANDATORY = """
ada       | question.ask     | health | full       | ceiling | yes owner owner
ada       | question.ask     | health | over       | ceiling | no mandatory:m-ceiling ceiling-population
ada       | question.ask     | health | over allotment | ceiling | no mandatory:m-ceiling ceiling-allotment
ada       | question.ask     | health | delta      | ceiling | no mandatory:m-ceiling delta
ada       | question.ask     | health | rho        | ceiling | no mandatory:m-ceiling ceiling-population
ada       | question.ask     | health | little rho | ceiling | yes owner owner
ada       | question.ask     | health | unlike     | ceiling | no mandatory:m-ceiling no-ceiling
ada       | question.ask     | health | rho        | no delta | no mandatory:m-pure no-ceiling
ada       | question.ask     | health | full       | no delta | yes owner owner
bob       | question.ask     | health | full       | ceiling | yes grant:g-bob granted
bob       | question.ask     | health | over       | ceiling | no mandatory:m-ceiling ceiling-population
odo       | question.ask     | census | over       | ceiling | yes owner owner
ada       | dataset.budget   | health | budget     | ceiling | yes owner owner
ada       | dataset.budget   | health | big budget | ceiling | no mandatory:m-ceiling ceiling-population
ada       | budget.raise     | health | big budget | ceiling | no mandatory:m-ceiling ceiling-population
ada       | dataset.budget   | health | allotment  | ceiling | yes owner owner
ada       | dataset.budget   | health | big allotment | ceiling | no mandatory:m-ceiling ceiling-allotment
ada       | question.ask     | clinical | research | clinical | no mandatory:m-clinical second-factor
ada:both  | question.ask     | clinical | research | clinical | yes owner owner
ada:both  | question.ask     | clinical | quality  | clinical | no mandatory:m-clinical purpose
ada:both  | question.ask     | clinical | -        | clinical | no mandatory:m-clinical purpose
bob       | question.ask     | clinical | research | clinical | no mandatory:m-clinical second-factor
bob:both  | question.ask     | clinical | research | clinical | yes grant:g-bob granted
stale     | learn.run        | clinical | research | clinical | no mandatory:m-clinical training
gcp       | learn.run        | clinical | research | clinical | yes grant:g-gcp granted
bob       | question.explain | clinical | research | clinical | yes grant:g-bob granted
bob       | question.ask     | health | research   | clinical | yes grant:g-bob granted
ada       | question.ask     | genes  | genetics   | clinical | no mandatory:m-clinical second-factor
ada:both  | question.ask     | genes  | genetics   | clinical | yes owner owner
ada       | question.ask     | genes  | no gene    | clinical | yes owner owner
bob       | release.see      | release | research  | clinical | no mandatory:m-clinical second-factor
bob:both  | release.see      | release | research  | clinical | yes owner owner
eve       | question.ask     | clinical | research | deny | no mandatory:m-deny denied
odo       | learn.run        | clinical | research | deny | no mandatory:m-deny denied
bob       | question.ask     | clinical | research | deny | yes grant:g-bob granted
odo       | question.ask     | census | research   | deny | yes owner owner
ada       | question.ask     | health | research   | network | no mandatory:m-net network
ada       | question.ask     | health | inside     | network | yes owner owner
ada       | question.ask     | health | no address | network | no mandatory:m-net network
odo       | question.ask     | census | research   | network | yes owner owner
ada       | dataset.manage   | health | research   | network | yes owner owner
mia       | learn.run        | limited | bayes     | methods | yes grant:g-methods granted
mia       | learn.run        | limited | forest    | methods | no mandatory:m-methods method
ada       | learn.run        | limited | forest    | methods | no mandatory:m-methods method
ada       | learn.run        | limited | research  | methods | no mandatory:m-methods method
ada       | learn.run        | limited | bayes     | methods | yes owner owner
ada       | question.ask     | limited | research  | methods | yes owner owner
odo       | learn.run        | census | forest     | methods | yes owner owner
ada       | question.ask     | health | with postcode | linkage | no mandatory:m-link combination
ada       | question.ask     | health | postcode without diagnosis | linkage | yes owner owner
ada       | question.ask     | health | with census | linkage | no mandatory:m-link combination
ada       | question.explain | health | with census | linkage | yes owner owner
ada       | question.ask     | health | research   | linkage | yes owner owner
ada       | question.ask     | health | with release | labels | no mandatory:m-labels combination
ada       | question.ask     | health | with limited | labels | yes owner owner
root      | roles.give       | -      | -          | factor | no mandatory:m-factor second-factor
ada       | dataset.delete   | health | -          | factor | no mandatory:m-factor second-factor
ada:both  | dataset.delete   | health | -          | factor | yes owner owner
ada       | dataset.grant    | health | -          | factor | yes owner owner
ada       | question.ask     | health | research   | patients | no mandatory:m-patients denied
ada       | question.ask     | limited | research  | patients | yes owner owner
eve       | people.invite    | -      | -          | patients | no role no-role
root      | people.invite    | -      | -          | patients | yes role role
"""


def rows() -> list[tuple[str, ...]]:
    """Each line of the tables, cut at its bars."""
    tables = (ROLES, TOKENS, OWNERS, GRANTS, ALGORITHMS, ATTACHED, MANDATORY)
    return [tuple(cell.strip() for cell in line.split("|")) for table in tables for line in table.strip().splitlines()]


@pytest.mark.parametrize("row", rows(), ids=" ".join)
def test_the_table(row: tuple[str, ...]) -> None:
    who, what, which, context, rules, expected = row
    decision = decide(PEOPLE[who], what, OBJECTS[which], CONTEXTS[context], RULES[rules])
    assert f"{'yes' if decision.allowed else 'no'} {decision.rule} {decision.reason}" == expected
    assert decision.allowed == (decision.ask is None)
    if not decision.allowed:
        assert decision.narrowed.columns is None
        assert decision.grant == ""


OF_SHARES = {"closed", "share-asleep", "not-let-in"}
"""Reasons of `hub/decisions/policy/shares.py`, whose table is `test_shares.py`."""


def test_the_table_is_large_and_names_every_action_and_every_reason() -> None:
    """A new action, or a new way to say no, has a line here."""
    table = rows()
    assert len(table) >= 200
    assert len(set(table)) == len(table)
    assert {action.name for action in BUILT_IN} <= {row[1] for row in table}
    assert set(REASONS) - OF_SHARES == {row[5].split()[-1] for row in table}
