"""The API of requests for access."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Query

from cloister.hub.caller import PersonDep
from cloister.hub.hub import HubDep
from cloister.hub.platform.access import requests
from cloister.hub.platform.access.api_models import (
    AccessGiven,
    AccessWish,
    After,
    Items,
    Limit,
    MessageOut,
    Refusing,
    RequestOut,
    Saying,
    paged,
)
from cloister.hub.platform.access.messages import say, thread
from cloister.hub.platform.access.names import names_in
from cloister.hub.platform.access.parts import Id
from cloister.hub.platform.access.views import request_views
from cloister.hub.web.routing import Routes

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

_Whose = Annotated[bool, Query(description="Those that wait for your decision, instead of your own.")]


def add(routes: Routes) -> None:
    """Add them."""

    @routes.get("/access-requests", "access.ask", "List access requests", "Your requests, or those that wait for your decision")
    def listed(
        hub: HubDep, caller: PersonDep, to_decide: _Whose = False, after: After = "", limit: Limit = 50
    ) -> Items[RequestOut]:
        with hub.database.reading() as db:
            rows = requests.to_decide(db, caller) if to_decide else requests.mine(db, caller)
            found = [RequestOut.of(view) for view in request_views(hub, db, rows)]
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
    def one(hub: HubDep, caller: PersonDep, number: Id) -> RequestOut:
        with hub.database.reading() as db:
            return _shown(hub, db, caller, number)

    @routes.post(
        "/access-requests/{number}/messages",
        "access.see",
        "Send a message on an access request",
        "The request with its messages",
        status_code=201,
    )
    def speak(hub: HubDep, caller: PersonDep, number: Id, body: Saying) -> RequestOut:
        with hub.database.begin() as db:
            requests.request_for(hub, db, caller, number)
            say(hub, db, caller, number, body.text)
            return _shown(hub, db, caller, number)

    @routes.post("/access-requests/{number}/withdraw", "access.ask", "Withdraw your access request", "The withdrawn request")
    def withdraw(hub: HubDep, caller: PersonDep, number: Id) -> RequestOut:
        with hub.database.begin() as db:
            requests.withdraw(hub, db, caller, number)
            return _shown(hub, db, caller, number)

    @routes.post("/access-requests/{number}/grant", "access.decide", "Grant an access request", "The granted request")
    def grant(hub: HubDep, caller: PersonDep, number: Id, body: AccessGiven) -> RequestOut:
        with hub.database.begin() as db:
            draft = {"role": body.role, "rules": body.rules}
            requests.grant_request(hub, db, caller, number, draft, body.message)
            return _shown(hub, db, caller, number)

    @routes.post(
        "/access-requests/{number}/refuse", "access.decide", "Refuse an access request", "The refused request with the reason"
    )
    def refuse(hub: HubDep, caller: PersonDep, number: Id, body: Refusing) -> RequestOut:
        with hub.database.begin() as db:
            requests.refuse_request(hub, db, caller, number, body.reason)
            return _shown(hub, db, caller, number)


def _shown(hub: Hub, db: Session, caller: Caller, number: str) -> RequestOut:
    row, _data_set = requests.request_for(hub, db, caller, number)
    said = thread(db, row.id)
    names = names_in(db, people=[each.person for each in said])
    messages = [MessageOut(who=names.person(each.person), text=each.text, created=each.created) for each in said]
    return RequestOut.of(request_views(hub, db, [row])[0], messages)
