"""The API of grants and of the institution's policy."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body, Query

from cloister.hub.caller import PersonDep
from cloister.hub.hub import HubDep
from cloister.hub.platform.access.api_models import After, DecisionOut, GrantOut, Items, Limit, NewGrant, RuleOut, paged
from cloister.hub.platform.access.granting import grant, grants_on, own_data_set, revoke_in
from cloister.hub.platform.access.names import person_called
from cloister.hub.platform.access.parts import SEEN, Id
from cloister.hub.platform.access.preview import preview
from cloister.hub.platform.access.rules import end_rule, every_rule, make_rule
from cloister.hub.platform.access.views import grant_views, rule_views
from cloister.hub.records.access import Grant
from cloister.hub.web.routing import Routes

_Name = Annotated[str, Query(min_length=1, max_length=63, pattern=SEEN)]
_Text = Annotated[str, Query(max_length=320, pattern=SEEN)]
_RULES = [{"title": "Clinical data", "labels": ["clinical"], "second_factor": True, "epsilon_of_population": "2"}]
"""An example of what is sent."""


def add(routes: Routes) -> None:
    """Add them."""

    @routes.get("/grants", "dataset.grant", "List the grants on a data set of yours", "The grants, the newest first")
    def listed(hub: HubDep, caller: PersonDep, data_set: _Name, after: After = "", limit: Limit = 50) -> Items[GrantOut]:
        with hub.database.reading() as db:
            row, _which = own_data_set(hub, db, caller, data_set)
            found = [GrantOut.of(view) for view in grant_views(hub, db, grants_on(db, "data-set", row.id))]
        return paged(found, after, limit)

    @routes.post("/grants", "dataset.grant", "Create a grant on a data set of yours", "The grant", status_code=201)
    def make(hub: HubDep, caller: PersonDep, body: NewGrant) -> GrantOut:
        number = grant(hub, caller, data_set=body.data_set, role=body.role, members=body.members, rules=body.rules)
        with hub.database.reading() as db:
            return GrantOut.of(grant_views(hub, db, [db.get_one(Grant, number)])[0])

    @routes.delete("/grants/{number}", "dataset.revoke", "Revoke a grant", "The revoked grant")
    def revoke(hub: HubDep, caller: PersonDep, number: Id) -> GrantOut:
        with hub.database.begin() as db:
            return GrantOut.of(grant_views(hub, db, [revoke_in(hub, db, caller, number)])[0])

    @routes.get(
        "/grants/preview",
        "dataset.grant",
        "Preview what a person may do with a data set of yours",
        "Each action with the decision and its reason",
    )
    def foresee(
        hub: HubDep,
        caller: PersonDep,
        data_set: _Name,
        person: _Text,
        purpose: _Text = "",
        address: _Text = "",
        method: _Text = "",
    ) -> Items[DecisionOut]:
        with hub.database.reading() as db:
            _row, which = own_data_set(hub, db, caller, data_set)
            found = person_called(db, which, person)
            foreseen = preview(hub, db, found, which, purpose=purpose, address=address, method=method)
        return Items(items=[DecisionOut.of(each) for each in foreseen])

    @routes.get("/policy/rules", "policy.see", "List the institution's rules", "The rules, ended ones too")
    def rules(hub: HubDep, caller: PersonDep, after: After = "", limit: Limit = 50) -> Items[RuleOut]:
        with hub.database.reading() as db:
            found = [RuleOut.of(view) for view in rule_views(db, every_rule(db))]
        return paged(found, after, limit)

    @routes.post("/policy/rules", "policy.write", "Create a rule", "The rule", status_code=201)
    def write(hub: HubDep, caller: PersonDep, body: Annotated[dict[str, Any], Body(examples=_RULES)]) -> RuleOut:
        """The body is the rule in its JSON form; what is not known there is refused."""
        with hub.database.begin() as db:
            return RuleOut.of(rule_views(db, [make_rule(hub, db, caller, body)])[0])

    @routes.delete("/policy/rules/{number}", "policy.write", "End a rule", "The ended rule")
    def end(hub: HubDep, caller: PersonDep, number: Id) -> RuleOut:
        with hub.database.begin() as db:
            return RuleOut.of(rule_views(db, [end_rule(hub, db, caller, number)])[0])
