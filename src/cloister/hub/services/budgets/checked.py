"""What is looked at before a budget is changed: that an amount is one that is meant, and a share one that somebody can draw.

Whether an address belongs to anybody is not told. A share is refused where nobody whom the owner let in has the address, and that
the owner knows: by their own grants, by who asked them, and by what was drawn.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.policy import GrantFacts, Object, actions, check_amount
from cloister.hub.records.access import AccessRequest, ProjectDataSet, ProjectMember
from cloister.hub.records.accounts import Person
from cloister.hub.records.budgets import BudgetRequest
from cloister.hub.services.access import check, facts_of
from cloister.hub.services.accounts import folded
from cloister.hub.services.budgets.reading import charges_of, seen_population, shares_of
from cloister.privacy import exact

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["check_share", "check_typed"]


def check_typed(amount: str, title: str = "The amount") -> None:
    """Refuse an amount beyond all sense; what is no number at all is refused where it is read.

    >>> check_typed("0.5"), check_typed("half")
    (None, None)
    """
    try:
        number: Fraction = exact(amount)
    except CloisterError:
        return
    check_amount(number, title)


def check_share(hub: Hub, caller: Caller, population: str, who: str, amount: str) -> None:
    """Refuse a share that nobody could draw, by the owner of a population; projects are looked up where the share is set."""
    check_typed(amount, "The share")
    if "@" not in who:
        return
    with hub.database.reading() as db:
        row, which = seen_population(hub, db, caller, population)
        check(hub, db, caller, "dataset.budget", which)
        tables = [each for each in facts_of(hub, db).data_sets.values() if each.population == row.name]
        address = folded(who)
        if address in _drawing(hub, row.name) or _let_in(db, caller, tables, row.name, address):
            return
    raise InvalidParameter(
        "The share was refused",
        why="no grant of yours on this population's data lets anybody of this address in, and nobody of it asked you",
        instead="a grant first, or the address as it stands in one",
    )


def _drawing(hub: Hub, population: str) -> set[str]:
    """Who has a share, or has drawn."""
    charges, _ = charges_of(hub, population, limit=len(hub.ledger.charges(population)) + 1)
    return {each.who for each in shares_of(hub, population)} | {each.who for each in charges}


def _let_in(db: Session, caller: Caller, tables: list[Object], population: str, address: str) -> bool:
    if address == folded(caller.email):
        return True
    named: set[str] = set()
    for grant in (grant for each in tables for grant in each.grants if not grant.revoked):
        if grant.members.people is None and _for_many(grant):
            return True
        named |= grant.members.people or set()
    if address in named:
        return True
    numbers = [each.id for each in tables]
    joined = select(ProjectMember.person).join(ProjectDataSet, ProjectDataSet.project == ProjectMember.project)
    for known in (
        select(AccessRequest.person).where(AccessRequest.data_set.in_(numbers)),
        select(BudgetRequest.person).where(BudgetRequest.population == population),
        joined.where(ProjectDataSet.data_set.in_(numbers)),
    ):
        named |= set(db.scalars(known))
    return db.scalar(select(Person.id).where(Person.id.in_(named), Person.email == address)) is not None


def _for_many(grant: GrantFacts) -> bool:
    """Whether a grant names nobody and lets people draw."""
    return any(each.data for name in grant.rules.actions if (each := actions().get(name)) is not None)
