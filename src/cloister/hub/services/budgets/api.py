"""The API of budgets: what is spent of those that one may see, charges, shares, and requests for more."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from cloister.hub.caller import PersonDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.records.budgets import BudgetRequest
from cloister.hub.services.budgets import acts
from cloister.hub.services.budgets.api_models import (
    Allotting,
    Asked,
    BalanceOut,
    Balances,
    ChargeOut,
    Charges,
    Raising,
    Requests,
    ShareDecision,
    ShareWish,
)
from cloister.hub.services.budgets.granted import granted_shares
from cloister.hub.services.budgets.pages import NAME
from cloister.hub.services.budgets.reading import balance_of, balances, charges_of, purses_of, seen_population, shares_of
from cloister.hub.web.forms import written_here

_Name = Annotated[str, Path(max_length=200, pattern=NAME)]
_Id = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
_Limit = Annotated[int, Query(ge=1, le=200)]
_WRITTEN = Depends(written_here)


def api() -> APIRouter:
    """The routes."""
    router = APIRouter()
    sees, asks, allots = needs("budget.see"), needs("budget.ask"), needs("dataset.budget")

    @router.get(
        "/budgets", dependencies=[sees], summary="List budgets", response_description="The budgets that you may see, by name"
    )
    def listed(hub: HubDep, caller: PersonDep, after: Annotated[str, Query(max_length=200)] = "", limit: _Limit = 50) -> Balances:
        with hub.database.reading() as db:
            found = [each for each in balances(hub, db, caller) if each.population > after]
        more = found[limit - 1].population if len(found) > limit else None
        return Balances(items=[BalanceOut.of(each) for each in found[:limit]], next=more)

    @router.get(
        "/budgets/{population}",
        dependencies=[sees],
        summary="Get a budget",
        response_description="The budget with the shares that you may see",
    )
    def one(hub: HubDep, caller: PersonDep, population: _Name) -> BalanceOut:
        return _balance(hub, caller, population)

    @router.get(
        "/budgets/{population}/charges",
        dependencies=[sees],
        summary="List the charges of a budget",
        response_description="The charges, the newest first",
    )
    def charges(
        hub: HubDep, caller: PersonDep, population: _Name, after: Annotated[int, Query(ge=0, le=2**53)] = 0, limit: _Limit = 50
    ) -> Charges:
        """All of them for an owner; for others their own, and those of their projects."""
        with hub.database.reading() as db:
            row, which = seen_population(hub, db, caller, population)
            only = None if balance_of(hub, db, caller, row, which).whole else purses_of(db, caller)
        found, more = charges_of(hub, row.name, only=only, after=after, limit=limit)
        return Charges(items=[ChargeOut.of(each) for each in found], next=more or None)

    @router.post(
        "/budgets/{population}/raise",
        dependencies=[needs("budget.raise"), _WRITTEN],
        summary="Raise a budget",
        response_description="The raised budget",
    )
    def raise_(hub: HubDep, caller: PersonDep, population: _Name, body: Raising) -> BalanceOut:
        acts.raise_budget(hub, caller, population, amount=body.amount, why=body.why, delta=body.delta)
        return _balance(hub, caller, population)

    @router.post(
        "/budgets/{population}/shares",
        dependencies=[allots, _WRITTEN],
        summary="Set a person's share of a budget",
        response_description="The budget with its shares",
    )
    def allot(hub: HubDep, caller: PersonDep, population: _Name, body: Allotting) -> BalanceOut:
        acts.allot(hub, caller, population, who=body.who, amount=body.amount)
        return _balance(hub, caller, population)

    @router.post(
        "/budgets/{population}/requests",
        dependencies=[asks, _WRITTEN],
        status_code=201,
        summary="Request more budget",
        response_description="The request",
    )
    def ask(hub: HubDep, caller: PersonDep, population: _Name, body: ShareWish) -> Asked:
        number = acts.ask_more(hub, caller, population, amount=body.amount, reason=body.reason, project=body.project)
        with hub.database.reading() as db:
            return _asked(db.get_one(BudgetRequest, number))

    @router.get(
        "/budget-requests",
        dependencies=[asks],
        summary="List budget requests",
        response_description="Your requests, or those that wait for your decision",
    )
    def requests(hub: HubDep, caller: PersonDep, to_decide: bool = False) -> Requests:
        with hub.database.reading() as db:
            rows = acts.open_requests(db, caller) if to_decide else acts.mine(db, caller)
            return Requests(items=[_asked(row) for row in rows], next=None)

    @router.post(
        "/budget-requests/{number}/decide",
        dependencies=[allots, _WRITTEN],
        summary="Decide a budget request",
        response_description="The decided request",
    )
    def decide(hub: HubDep, caller: PersonDep, number: _Id, body: ShareDecision) -> Asked:
        return _asked(acts.decide_request(hub, caller, number, yes=body.grant, amount=body.amount, message=body.message))

    @router.post(
        "/budget-requests/{number}/withdraw",
        dependencies=[asks, _WRITTEN],
        summary="Withdraw your budget request",
        response_description="The withdrawn request",
    )
    def withdraw(hub: HubDep, caller: PersonDep, number: _Id) -> Asked:
        return _asked(acts.withdraw_request(hub, caller, number))

    return router


def _balance(hub: HubDep, caller: PersonDep, population: str) -> BalanceOut:
    with hub.database.reading() as db:
        row, which = seen_population(hub, db, caller, population)
        balance = balance_of(hub, db, caller, row, which)
        only = None if balance.whole else purses_of(db, caller)
        granted = granted_shares(hub, db, row.name, None if balance.whole else caller)
    return BalanceOut.of(balance, shares_of(hub, row.name, only), granted)


def _asked(row: BudgetRequest) -> Asked:
    return Asked.model_validate(row, from_attributes=True)
