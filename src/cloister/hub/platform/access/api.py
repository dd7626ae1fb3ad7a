"""The API of grants, of the institution's policy, and of requests for access."""

from typing import Annotated, Any

from fastapi import Body, Query
from sqlalchemy.orm import Session

from cloister.hub.description import Limit
from cloister.hub.hub import Caller, Hub, HubDep, PersonDep
from cloister.hub.platform.access import requests
from cloister.hub.platform.access.api_models import AccessGiven, AccessWish, Items, NewGrant, Refusing, Saying, paged
from cloister.hub.platform.access.granting import grant, grants_on, own_data_set, revoke_in
from cloister.hub.platform.access.names import names_in, person_called
from cloister.hub.platform.access.parts import SEEN
from cloister.hub.platform.access.requests import say, thread
from cloister.hub.platform.access.rules import end_rule, every_rule, make_rule
from cloister.hub.platform.access.views import (
    DecisionOut,
    GrantOut,
    MessageOut,
    RequestOut,
    RuleOut,
    grant_views,
    preview,
    request_views,
    rule_views,
)
from cloister.hub.records.access import Grant
from cloister.hub.web.routing import After, Number, Routes

_Name = Annotated[str, Query(min_length=1, max_length=63, pattern=SEEN)]
_Text = Annotated[str, Query(max_length=320, pattern=SEEN)]
_RULES = [{"title": "Clinical data", "labels": ["clinical"], "second_factor": True, "epsilon_of_population": "2"}]
"""An example of what is sent."""


def add(routes: Routes) -> None:
    @routes.get("/grants", "dataset.grant", "List the grants on a data set of yours", "The grants, the newest first")
    def listed(hub: HubDep, caller: PersonDep, data_set: _Name, after: After = "", limit: Limit = 50) -> Items[GrantOut]:
        with hub.database.reading() as db:
            row, _which = own_data_set(hub, db, caller, data_set)
            found = grant_views(hub, db, grants_on(db, "data-set", row.id))
        return paged(found, after, limit)

    @routes.post("/grants", "dataset.grant", "Create a grant on a data set of yours", "The grant", status_code=201)
    def make(hub: HubDep, caller: PersonDep, body: NewGrant) -> GrantOut:
        number = grant(hub, caller, data_set=body.data_set, role=body.role, members=body.members, rules=body.rules)
        with hub.database.reading() as db:
            return grant_views(hub, db, [db.get_one(Grant, number)])[0]

    @routes.delete("/grants/{number}", "dataset.revoke", "Revoke a grant", "The revoked grant")
    def revoke(hub: HubDep, caller: PersonDep, number: Number) -> GrantOut:
        with hub.database.begin() as db:
            return grant_views(hub, db, [revoke_in(hub, db, caller, number)])[0]

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
            return Items(items=preview(hub, db, found, which, purpose=purpose, address=address, method=method))

    @routes.get("/policy/rules", "policy.see", "List the institution's rules", "The rules, ended ones too")
    def rules(hub: HubDep, caller: PersonDep, after: After = "", limit: Limit = 50) -> Items[RuleOut]:
        with hub.database.reading() as db:
            found = rule_views(db, every_rule(db))
        return paged(found, after, limit)

    @routes.post("/policy/rules", "policy.write", "Create a rule", "The rule", status_code=201)
    def write(hub: HubDep, caller: PersonDep, body: Annotated[dict[str, Any], Body(examples=_RULES)]) -> RuleOut:
        """The body is the rule in its JSON form; what is not known there is refused."""
        with hub.database.begin() as db:
            return rule_views(db, [make_rule(hub, db, caller, body)])[0]

    @routes.delete("/policy/rules/{number}", "policy.write", "End a rule", "The ended rule")
    def end(hub: HubDep, caller: PersonDep, number: Number) -> RuleOut:
        with hub.database.begin() as db:
            return rule_views(db, [end_rule(hub, db, caller, number)])[0]

    _requests(routes)


_Whose = Annotated[bool, Query(description="Those that wait for your decision, instead of your own.")]


def _requests(routes: Routes) -> None:
    @routes.get("/access-requests", "access.ask", "List access requests", "Your requests, or those that wait for your decision")
    def listed(
        hub: HubDep, caller: PersonDep, to_decide: _Whose = False, after: After = "", limit: Limit = 50
    ) -> Items[RequestOut]:
        with hub.database.reading() as db:
            rows = requests.to_decide(hub, db, caller) if to_decide else requests.mine(db, caller)
            found = request_views(hub, db, rows)
        return paged(found, after, limit)

    @routes.post("/access-requests", "access.ask", "Request access to a data set", "The request", status_code=201)
    def ask(hub: HubDep, caller: PersonDep, body: AccessWish) -> RequestOut:
        with hub.database.begin() as db:
            row = requests.ask_access(
                hub,
                db,
                caller,
                data_set=body.data_set,
                purpose=body.purpose,
                wanted=body.wanted,
                project=body.project,
                message=body.message,
            )
            return _shown(hub, db, caller, row.id)

    @routes.get("/access-requests/{number}", "access.see", "Get an access request", "The request with its messages")
    def one(hub: HubDep, caller: PersonDep, number: Number) -> RequestOut:
        with hub.database.reading() as db:
            return _shown(hub, db, caller, number)

    @routes.post(
        "/access-requests/{number}/messages",
        "access.ask",
        "Send a message on an access request",
        "The request with its messages",
        status_code=201,
    )
    def speak(hub: HubDep, caller: PersonDep, number: Number, body: Saying) -> RequestOut:
        with hub.database.begin() as db:
            requests.request_for(hub, db, caller, number)
            say(hub, db, caller, number, body.text)
            return _shown(hub, db, caller, number)

    @routes.post("/access-requests/{number}/withdraw", "access.ask", "Withdraw your access request", "The withdrawn request")
    def withdraw(hub: HubDep, caller: PersonDep, number: Number) -> RequestOut:
        with hub.database.begin() as db:
            requests.withdraw(hub, db, caller, number)
            return _shown(hub, db, caller, number)

    @routes.post("/access-requests/{number}/grant", "access.decide", "Grant an access request", "The granted request")
    def grant(hub: HubDep, caller: PersonDep, number: Number, body: AccessGiven) -> RequestOut:
        with hub.database.begin() as db:
            draft = {"role": body.role, "rules": body.rules}
            requests.grant_request(hub, db, caller, number, draft, body.message, None)
            return _shown(hub, db, caller, number)

    @routes.post(
        "/access-requests/{number}/refuse", "access.decide", "Refuse an access request", "The refused request with the reason"
    )
    def refuse(hub: HubDep, caller: PersonDep, number: Number, body: Refusing) -> RequestOut:
        with hub.database.begin() as db:
            requests.refuse_request(hub, db, caller, number, body.reason)
            return _shown(hub, db, caller, number)


def _shown(hub: Hub, db: Session, caller: Caller, number: str) -> RequestOut:
    row, _data_set = requests.request_for(hub, db, caller, number)
    said = thread(db, row.id)
    names = names_in(db, people=[each.person for each in said])
    messages = [MessageOut(who=names.person(each.person), text=each.text, created=each.created) for each in said]
    return request_views(hub, db, [row])[0].model_copy(update={"messages": messages})
