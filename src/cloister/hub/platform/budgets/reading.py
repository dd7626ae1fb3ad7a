"""What somebody sees of budgets: the populations that are theirs, or whose data sets they may ask, and of each what is spent.

An owner and an office see every share and every charge; an analyst sees the totals, and of shares and charges their own and those
of their projects.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import Annotated

from pydantic import BaseModel, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from cloister.errors import Missing
from cloister.hub.decisions.checking import allowed
from cloister.hub.decisions.facts import facts_of, project_account
from cloister.hub.decisions.policy import Object, Policy, closing_policy
from cloister.hub.description import Told
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.budgets.granted import GrantedOut
from cloister.hub.records.access import Project
from cloister.hub.records.catalogue import Population
from cloister.ledger import Charge
from cloister.ledger.measure import decode
from cloister.privacy import Guarantee, zero_of
from cloister.session.questions.spend import Spend, amount_of, less, measure_of

_PART = "budget events"
_MAKING = threading.Lock()


class ShareOut(BaseModel):
    """A share, and what is left of it."""

    who: str
    share: Told
    left: Told

    @property
    def drawn(self) -> Guarantee:
        """What is gone of it."""
        return less(self.share, self.left) or zero_of(self.share)


class BalanceOut(BaseModel):
    """A population's budget."""

    population: str
    title: str
    total: Told
    spent: Told
    remaining: Told
    frozen: bool = Field(default=False, description="The ledger charges nothing until it is restored: nothing is left to spend.")
    unbounded: bool = Field(description="Something left without a guarantee: no number bounds what is known.")
    whole: Annotated[bool, Field(exclude=True)]
    """Whether the caller sees all shares and charges."""
    mine: ShareOut | None = Field(description="Your own share, as its owner set it; null: none was set.")
    shares: list[ShareOut] = Field(default_factory=list, description="Every share that you may see; only for one budget.")
    granted: list[GrantedOut] = Field(
        default_factory=list, description="Shares that come with grants, those that are over too; only for one budget."
    )


@dataclass(frozen=True, kw_only=True)
class Event:
    """A budget that was opened or raised."""

    when: datetime
    budget: Guarantee
    who: str
    why: str


def population_object(hub: Hub, db: Session, row: Population) -> Object:
    """A population as a decision sees it: under all labels of its data sets, and open to whoever may ask one of them. Where the
    policy of one can't be read, its labels are not known, and nothing is changed that they may govern.
    """
    tables = [each for each in facts_of(hub, db).data_sets.values() if each.population == row.name]
    closed = closing_policy()
    return Object(
        kind="population",
        id=row.name,
        name=row.title,
        owner=row.owner,
        institution=next((each.institution for each in tables if each.institution), ""),
        population=row.name,
        labels=frozenset[str]().union(*(_labels(each) for each in tables)),
        grants=tuple(grant for each in tables for grant in each.grants),
        policies=tuple(policy for each in tables for policy in _attached(each) if policy == closed),
    )


def seen_population(hub: Hub, db: Session, caller: Caller, name: str) -> tuple[Population, Object]:
    """A population whose budget this person may see; any other is missing, whether it exists or not."""
    row = db.get(Population, name)
    which = None if row is None else population_object(hub, db, row)
    if row is None or which is None or not allowed(hub, db, caller, "budget.see", which).allowed:
        raise Missing("There is no such budget", why="the population does not exist, or is not open to you", instead="/budgets")
    return row, which


def sees_budget(hub: Hub, db: Session, caller: Caller, name: str) -> bool:
    """Whether somebody may know what is left of a population's budget, whatever their token was made for."""
    row, person = db.get(Population, name), replace(caller, scopes=None)
    return row is not None and allowed(hub, db, person, "budget.see", population_object(hub, db, row)).allowed


def balances(hub: Hub, db: Session, caller: Caller, most: int | None = None) -> list[BalanceOut]:
    """Every population whose budget somebody may see (or the first so many), by name."""
    known, found = set(hub.ledger.populations()), list[BalanceOut]()
    for row in sorted(db.scalars(select(Population)), key=lambda row: row.name):  # in the order in which pages go on
        if row.name not in known or (most is not None and len(found) >= most):
            continue
        which = population_object(hub, db, row)
        if allowed(hub, db, caller, "budget.see", which).allowed:
            found.append(balance_of(hub, db, caller, row, which))
    return found


def balance_of(hub: Hub, db: Session, caller: Caller, row: Population, which: Object) -> BalanceOut:
    """One population's."""
    ledger = hub.ledger
    total, spent = ledger.budget(row.name), ledger.spent(row.name)
    mine, frozen = ledger.allotment(row.name, caller.email), ledger.frozen is not None
    return BalanceOut(
        population=row.name,
        title=row.title,
        total=total,
        spent=spent,
        remaining=zero_of(total) if frozen else less(total, spent) or zero_of(total),
        unbounded=ledger.unbounded(row.name),
        frozen=frozen,
        whole=allowed(hub, db, caller, "budget.charges", which).allowed,
        mine=None if mine is None else ShareOut(who=caller.email, share=mine[0], left=mine[1]),
    )


def purses_of(db: Session, caller: Caller) -> set[str]:
    """The names under which the ledger counts what somebody asks: their own, and their projects'."""
    names = db.scalars(select(Project.name).where(Project.id.in_(caller.projects)))
    return {caller.email, *(project_account(name) for name in names)}


def shares_of(hub: Hub, population: str, only: Iterable[str] | None = None) -> list[ShareOut]:
    """Every share of a population, by name; `only`: of these accounts."""
    _follow(hub)
    names = sorted(_book(hub).shares.get(population, ()))
    wanted = names if only is None else [each for each in names if each in set(only)]
    found = [(each, hub.ledger.allotment(population, each)) for each in wanted]
    return [ShareOut(who=who, share=share[0], left=share[1]) for who, share in found if share is not None]


def budget_events(hub: Hub, population: str) -> list[Event]:
    """How the budget of a population came to be what it is, the oldest first."""
    _follow(hub)
    return list(_book(hub).events.get(population, ()))


def charges_of(
    hub: Hub, population: str, *, only: Iterable[str] | None = None, after: int = 0, limit: int = 50
) -> tuple[list[Charge], int]:
    """Some charges, the newest first, and the number after which older ones come; 0: none. `only`: of these accounts."""
    wanted = None if only is None else set(only)
    found = [
        each
        for each in reversed(hub.ledger.charges(population))
        if (after == 0 or each.id < after) and (wanted is None or each.who in wanted)
    ]
    return found[:limit], found[limit - 1].id if len(found) > limit else 0


def reserved_in(charges: Iterable[Charge], total: Guarantee) -> Guarantee:
    """What is charged for work from which nothing has left yet."""
    amount = sum((amount_of(each.cost) for each in charges if each.state == "reserved" and each.cost is not None), Fraction(0))
    return Spend(measure_of(total), amount, Fraction(0)).whole()


class _Book:
    """What the lines of the ledger say of shares and budgets, as far as they were read: each line is read once a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.read = 0
        self.shares: dict[str, set[str]] = {}
        self.events: dict[str, list[Event]] = {}


def _book(hub: Hub) -> _Book:
    with _MAKING:
        found: _Book = hub.parts.setdefault(_PART, _Book())
        return found


def _follow(hub: Hub) -> None:
    """Read the lines that are new."""
    book = _book(hub)
    with book.lock:
        if hub.ledger.head[0] < book.read:  # a ledger that was put back from a backup
            book.read, book.shares, book.events = 0, {}, {}
        for line in hub.ledger.lines(book.read):
            book.read, said = line.sequence, line.payload
            if line.kind == "allotted":
                book.shares.setdefault(said["population"], set()).add(said["user"])
            elif line.kind in ("opened", "raised", "restored"):  # what a backup did not have is opened again as it is restored
                budgets = said["budgets"] if line.kind == "restored" else {said["population"]: said["budget"]}
                for name, budget in budgets.items():
                    event = Event(when=line.when, budget=decode(budget), who=said["who"], why=said.get("why", ""))
                    book.events.setdefault(name, []).append(event)


def _labels(which: Object) -> frozenset[str]:
    return which.labels.union(*(policy.labels for policy in _attached(which)))


def _attached(which: Object) -> list[Policy]:
    return [*which.policies, *which.column_policies.values()]
