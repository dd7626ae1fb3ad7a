"""The API of budgets: what is spent of those that one may see, charges, shares, and requests for more."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from cloister.hub.description import READABLE, Limit, Taken, Told, example, read_of
from cloister.hub.hub import HubDep, PersonDep
from cloister.hub.platform.budgets import acts
from cloister.hub.platform.budgets.granted import granted_shares
from cloister.hub.platform.budgets.pages import NAME
from cloister.hub.platform.budgets.reading import (
    BalanceOut,
    ShareOut,
    balance_of,
    balances,
    charges_of,
    purses_of,
    seen_population,
    shares_of,
)
from cloister.hub.records.access import BudgetRequest
from cloister.hub.records.accounts import names_of
from cloister.hub.web.routing import Number, Routes
from cloister.privacy import zero_of

_Name = Annotated[str, Path(max_length=200, pattern=NAME)]


def add(routes: Routes) -> None:
    @routes.get("/budgets", "budget.see", "List budgets", "The budgets that you may see, by name")
    def listed(hub: HubDep, caller: PersonDep, after: Annotated[str, Query(max_length=200)] = "", limit: Limit = 50) -> Balances:
        with hub.database.reading() as db:
            found = [each for each in balances(hub, db, caller) if each.population > after]
        more = found[limit - 1].population if len(found) > limit else None
        return Balances(items=[_frozen(each) for each in found[:limit]], next=more)

    @routes.get("/budgets/{population}", "budget.see", "Get a budget", "The budget with the shares that you may see")
    def one(hub: HubDep, caller: PersonDep, population: _Name) -> BalanceOut:
        return _balance(hub, caller, population)

    @routes.get("/budgets/{population}/charges", "budget.see", "List the charges of a budget", "The charges, the newest first")
    def charges(
        hub: HubDep, caller: PersonDep, population: _Name, after: Annotated[int, Query(ge=0, le=2**53)] = 0, limit: Limit = 50
    ) -> Charges:
        """All of them for an owner; for others their own, and those of their projects."""
        with hub.database.reading() as db:
            row, which = seen_population(hub, db, caller, population)
            only = None if balance_of(hub, db, caller, row, which).whole else purses_of(db, caller)
        found, more = charges_of(hub, row.name, only=only, after=after, limit=limit)
        return Charges(items=[read_of(ChargeOut, each) for each in found], next=more or None)

    @routes.post("/budgets/{population}/raise", "budget.raise", "Raise a budget", "The raised budget")
    def raise_(hub: HubDep, caller: PersonDep, population: _Name, body: Raising) -> BalanceOut:
        acts.raise_budget(hub, caller, population, amount=body.amount, why=body.why, delta=body.delta)
        return _balance(hub, caller, population)

    @routes.post(
        "/budgets/{population}/shares", "dataset.budget", "Set a person's share of a budget", "The budget with its shares"
    )
    def allot(hub: HubDep, caller: PersonDep, population: _Name, body: Allotting) -> BalanceOut:
        acts.allot(hub, caller, population, who=body.who, amount=body.amount)
        return _balance(hub, caller, population)

    @routes.post("/budgets/{population}/requests", "budget.ask", "Request more budget", "The request", status_code=201)
    def ask(hub: HubDep, caller: PersonDep, population: _Name, body: ShareWish) -> Asked:
        number = acts.ask_more(hub, caller, population, amount=body.amount, reason=body.reason, project=body.project)
        with hub.database.reading() as db:
            return _asked(db, db.get_one(BudgetRequest, number))

    @routes.get("/budget-requests", "budget.ask", "List budget requests", "Your requests, or those that wait for your decision")
    def requests(hub: HubDep, caller: PersonDep, to_decide: bool = False) -> Requests:
        with hub.database.reading() as db:
            rows = acts.open_requests(db, caller) if to_decide else acts.mine(db, caller)
            return Requests(items=[_asked(db, row) for row in rows], next=None)

    @routes.post("/budget-requests/{number}/decide", "dataset.budget", "Decide a budget request", "The decided request")
    def decide(hub: HubDep, caller: PersonDep, number: Number, body: ShareDecision) -> Asked:
        row = acts.decide_request(hub, caller, number, yes=body.grant, amount=body.amount, message=body.message)
        with hub.database.reading() as db:
            return _asked(db, row)

    @routes.post("/budget-requests/{number}/withdraw", "budget.ask", "Withdraw your budget request", "The withdrawn request")
    def withdraw(hub: HubDep, caller: PersonDep, number: Number) -> Asked:
        row = acts.withdraw_request(hub, caller, number)
        with hub.database.reading() as db:
            return _asked(db, row)


def _balance(hub: HubDep, caller: PersonDep, population: str) -> BalanceOut:
    with hub.database.reading() as db:
        row, which = seen_population(hub, db, caller, population)
        balance = balance_of(hub, db, caller, row, which)
        only = None if balance.whole else purses_of(db, caller)
        granted = granted_shares(hub, db, row.name, None if balance.whole else caller)
    return _frozen(balance.model_copy(update={"shares": shares_of(hub, row.name, only), "granted": granted}))


def _frozen(balance: BalanceOut) -> BalanceOut:
    """While the ledger charges nothing, nothing is left of any share."""
    if not balance.frozen:
        return balance

    def spent(share: ShareOut) -> ShareOut:
        return share.model_copy(update={"left": zero_of(share.share)})

    mine = None if balance.mine is None else spent(balance.mine)
    return balance.model_copy(update={"mine": mine, "shares": [spent(each) for each in balance.shares]})


def _asked(db: Session, row: BudgetRequest) -> Asked:
    told = {name: getattr(row, name) for name in Asked.model_fields if name != "who"}
    return Asked.model_validate({"who": names_of(db, [row.person]).get(row.person, ""), **told})


Exact = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[0-9eE.+/-]+$", description="An exact number: 0.1, 1/3.")]
Text = Annotated[str, Field(max_length=1000), READABLE]


class Raising(Taken):
    """A larger budget: ε (or ρ), perhaps a larger δ, and why."""

    model_config = example(amount="2", why="a second wave of the study")

    amount: Exact
    why: Annotated[Text, Field(min_length=1)]
    delta: Annotated[str, Field(max_length=60, pattern=r"^[0-9eE.+/-]*$")] = ""


class Allotting(Taken):
    """A share: whose (an e-mail address, or the name of a project), and how much in all."""

    model_config = example(who="ada@example.org", amount="0.5")

    who: Annotated[Text, Field(min_length=1, max_length=320)]
    amount: Exact


class ShareWish(Taken):
    """A request for a share of so much in all."""

    model_config = example(amount="0.5", reason="the second half of the study")

    amount: Exact
    reason: Annotated[Text, Field(min_length=1)]
    project: Annotated[str, Field(max_length=63, pattern=r"^[A-Za-z0-9_-]*$")] = ""


class ShareDecision(Taken):
    """The answer: yes (to so much, where it is another amount), or no with a reason."""

    model_config = example(grant=True, amount="0.25")

    grant: bool
    amount: Annotated[str, Field(max_length=60, pattern=r"^[0-9eE.+/-]*$")] = ""
    message: Text = ""


class Asked(BaseModel):
    """A request for a share."""

    id: str
    who: Annotated[str, Field(description="The name of the person who asks.")]
    population: str
    wanted: str
    reason: str
    state: str
    created: datetime
    decided: datetime | None


class Requests(BaseModel):
    """The newest requests; older ones are on the pages of their budgets."""

    items: list[Asked]
    next: str | None


class Balances(BaseModel):
    """Some budgets; `next` is the `after` of the page that follows."""

    items: list[BalanceOut]
    next: str | None


class ChargeOut(BaseModel):
    """One charge."""

    id: int
    who: str
    what: str
    when: datetime
    cost: Told | None
    state: str
    purpose: str


class Charges(BaseModel):
    """Some charges, the newest first; `next` is the `after` of the page that follows."""

    items: list[ChargeOut]
    next: int | None
