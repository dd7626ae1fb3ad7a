"""What changes budgets: raising one, allotting a share, asking for more, and the answer. Each is checked against the ceilings of
the institution first, and written to the audit log as well as to the ledger."""

from dataclasses import replace
from fractions import Fraction

from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import CloisterError, Conflict, InvalidParameter, Missing
from cloister.hub.decisions.checking import check, context_of, own_project
from cloister.hub.decisions.facts import facts_of, project_account
from cloister.hub.decisions.policy import Object, Spend, check_amount
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.max_delta import check_max_delta
from cloister.hub.platform.access import say, spoken
from cloister.hub.platform.budgets.reading import population_object, seen_population
from cloister.hub.platform.trail import write
from cloister.hub.records.access import BudgetRequest, Project
from cloister.hub.records.accounts import Person, folded
from cloister.hub.records.catalogue import Population
from cloister.privacy import Guarantee, exact, exact_probability
from cloister.session.questions.spend import Spend as Amount
from cloister.session.questions.spend import measure_of, spend_of


def raise_budget(hub: Hub, caller: Caller, population: str, *, amount: str, why: str, delta: str = "") -> Guarantee:
    """A larger budget, by its owner, with a reason: ε (or ρ) as text, and δ where the budget has one and it is to grow."""
    _check_typed(amount, "The budget")
    with hub.database.begin() as db:
        row, which = seen_population(hub, db, caller, population)
        check(hub, db, caller, "budget.raise", which)
        before = hub.ledger.budget(row.name)
        told = " ".join(spoken(why, "the reason", 1000).split())
        slack = exact_probability(delta, "delta") if delta else before.delta
        wanted = Amount(measure_of(before), spend_of(amount, before).amount, slack).whole()
        if not before <= wanted or before == wanted:
            raise InvalidParameter(
                "The budget was left as it is", why=f"it is {before}, and is only ever raised", instead="a larger one"
            )
        _check_ceilings(hub, db, caller, "budget.raise", which, Spend(budget=wanted))
        _write(hub, db, caller, "budget.raise", row, why=told, before=str(before), after=str(wanted))
        db.flush()
        return hub.ledger.raise_budget(row.name, wanted, who=caller.email, why=told)


def allot(hub: Hub, caller: Caller, population: str, *, who: str, amount: str) -> Guarantee:
    """Say how much one person (by e-mail address) or one project (by name) may draw in all; what they drew already counts."""
    _check_typed(amount, "The share")
    with hub.database.begin() as db:
        row, which = seen_population(hub, db, caller, population)
        return _allot(hub, db, caller, row, which, _purse(db, who), amount)


def ask_more(hub: Hub, caller: Caller, population: str, *, amount: str, reason: str, project: str = "") -> str:
    """Ask for a share of so much in all, for oneself or for a project: the id of the request."""
    _check_typed(amount, "The share")
    with hub.database.begin() as db:
        check(hub, db, caller, "budget.ask")
        row, _which = seen_population(hub, db, caller, population)
        project = own_project(hub, db, caller, project)
        share = spend_of(amount, hub.ledger.budget(row.name)).whole()
        told = spoken(reason, "the reason")
        same = select(BudgetRequest.id).where(BudgetRequest.population == row.name, BudgetRequest.person == caller.id)
        if db.scalar(same.where(BudgetRequest.state == "open")) is not None:
            raise Conflict(
                "The request was refused", why="you have asked already, and it is open", instead="wait, or withdraw it"
            )
        found = BudgetRequest(
            id=new_id(),
            population=row.name,
            person=caller.id,
            project=project,
            wanted=amount.strip()[:60],
            reason=told,
            created=hub.now(),
        )
        db.add(found)
        db.flush()
        _write(hub, db, caller, "budget.ask", row, request=found.id, reason=told, wanted=str(share))
        return found.id


def decide_request(hub: Hub, caller: Caller, number: str, *, yes: bool, amount: str = "", message: str = "") -> BudgetRequest:
    """Answer a request: with a share (that which was asked for, or another), or with a reason."""
    _check_typed(amount, "The share")
    with hub.database.begin() as db:
        row, population, which = request_for(hub, db, caller, number)
        check(hub, db, caller, "dataset.budget", which)
        if row.state != "open":
            raise Conflict("The request was left as it is", why="it is open no longer", instead="a new request")
        if not yes:
            spoken(message, "the reason")
        if message.strip():
            say(hub, db, caller, row.id, message)
        row.state, row.decided_by, row.decided = ("granted" if yes else "denied"), caller.id, hub.now()
        if yes:
            _allot(hub, db, caller, population, which, _purse_of(db, row), amount or row.wanted, request=row.id)
        else:
            _write(hub, db, caller, "dataset.budget", population, request=row.id, decision="denied")
        return row


def withdraw_request(hub: Hub, caller: Caller, number: str) -> BudgetRequest:
    """Take one's own request back."""
    with hub.database.begin() as db:
        row, population, _which = request_for(hub, db, caller, number)
        if row.person != caller.id:
            raise Missing("There is no such request", why="only the person who sent it may withdraw it", instead="/budgets")
        if row.state != "open":
            raise Conflict("The request was left as it is", why="it is open no longer", instead="a new request")
        row.state = "withdrawn"
        _write(hub, db, caller, "budget.ask", population, request=row.id, decision="withdrawn")
        return row


def request_for(hub: Hub, db: Session, caller: Caller, number: str) -> tuple[BudgetRequest, Population, Object]:
    """A request that this person made, or may decide; any other is missing."""
    row = db.get(BudgetRequest, number[:32])
    population = None if row is None else db.get(Population, row.population)
    if row is None or population is None or caller.id not in (row.person, population.owner):
        raise Missing("There is no such request", why="it does not exist, or is not open to you", instead="/budgets")
    return row, population, population_object(hub, db, population)


def open_requests(db: Session, caller: Caller, population: str = "") -> list[BudgetRequest]:
    """What waits for an owner, the oldest first."""
    wanted = select(BudgetRequest).join(Population, Population.name == BudgetRequest.population)
    wanted = wanted.where(Population.owner == caller.id, BudgetRequest.state == "open")
    if population:
        wanted = wanted.where(BudgetRequest.population == population)
    return list(db.scalars(wanted.order_by(BudgetRequest.created).limit(200)))


def mine(db: Session, caller: Caller, population: str = "") -> list[BudgetRequest]:
    """What somebody asked for, the newest first."""
    wanted = select(BudgetRequest).where(BudgetRequest.person == caller.id)
    if population:
        wanted = wanted.where(BudgetRequest.population == population)
    return list(db.scalars(wanted.order_by(BudgetRequest.created.desc()).limit(50)))


def _check_typed(amount: str, title: str) -> None:
    """Refuse an amount beyond all sense; what is no number at all is refused where it is read."""
    try:
        number: Fraction = exact(amount)
    except CloisterError:
        return
    check_amount(number, title)


def _allot(
    hub: Hub, db: Session, caller: Caller, row: Population, which: Object, who: str, amount: str, *, request: str = ""
) -> Guarantee:
    check(hub, db, caller, "dataset.budget", which)
    share = spend_of(amount, hub.ledger.budget(row.name)).whole()
    _check_ceilings(hub, db, caller, "dataset.budget", which, Spend(allotment=share))
    _write(hub, db, caller, "dataset.budget", row, who=who, share=str(share), request=request)
    db.flush()
    hub.ledger.allot(row.name, who, share, who=caller.email)
    return share


def _check_ceilings(hub: Hub, db: Session, caller: Caller, action: str, which: Object, spend: Spend) -> None:
    """The hub's floor on δ, and the institution's ceilings, for every institution whose data the population holds."""
    check_max_delta(hub.settings.max_delta, "The budget", spend.budget)
    check_max_delta(hub.settings.max_delta, "The share", spend.allotment)
    tables = [each for each in facts_of(hub, db).data_sets.values() if each.population == which.population]
    for institution in sorted({each.institution for each in tables} | {which.institution}):
        context = context_of(hub, caller, spend={which.population: spend})
        check(hub, db, caller, action, replace(which, institution=institution), context)


def _purse(db: Session, who: str) -> str:
    """The ledger's name of a person or a project: an address, or the name of a project with or without the word before it."""
    if "@" in who:
        return folded(who)  # nobody is looked up: the owner is not told whether anybody has it
    name = who.strip().removeprefix("project ").strip()
    found = db.scalar(select(Project.name).where(Project.name == name, Project.closed.is_(None)))
    if found is not None:
        return project_account(found)
    raise InvalidParameter(
        "The share is invalid", why="it is not an e-mail address, and no open project has this name", instead="ada@example.org"
    )


def _purse_of(db: Session, row: BudgetRequest) -> str:
    if row.project:
        return project_account(db.get_one(Project, row.project).name)
    return db.get_one(Person, row.person).email


def _write(hub: Hub, db: Session, caller: Caller, action: str, row: Population, **details: str) -> None:
    """The line of the audit log, which the owners of the population's data sets find too."""
    tables = [each.id for each in facts_of(hub, db).data_sets.values() if each.population == row.name]
    write(hub, db, caller, action, kind="population", object_id=row.name, data_sets=tables, **details)
