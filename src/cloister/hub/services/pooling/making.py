"""A data set that is made of others, and what each owner gave to it.

Who makes one has to see its parts, and gets nothing by it: each question is decided by the policy of every part, and charged to
every part's population. The budget of its own is what the whole may spend, before any of its owners says no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer
from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.hub.decisions.facts import parts_by_data_set
from cloister.hub.description import example
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import PooledRows, Wanted, made_of, seen
from cloister.hub.records.catalogue import DataSet
from cloister.privacy import Guarantee
from cloister.session.questions.spend import measure_of

HIDDEN = "…"
"""In the place of a part that somebody may not know of."""
MOST = 50
"""Parts of one data set."""
Line = Annotated[str, Field(max_length=5000, pattern=r"^[^\x00]*$")]


class NewPool(BaseModel):
    """A data set that is made of others, declared alike, each of a population of its own."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        parts=["north", "south"], name="both_hospitals", title="Both hospitals", population="both hospitals", epsilon="2"
    )

    parts: Annotated[list[Line], Field(min_length=2, max_length=MOST)]
    name: Line
    title: Line
    about: Line = ""
    population: Annotated[Line, Field(description="The budget of the whole; the populations of the parts are charged beside it.")]
    epsilon: Line = ""
    delta: Line = ""
    rho: Line = ""
    listed: bool = False


class GivenOut(BaseModel):
    """What a data set of yours gave to the whole."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str
    times: int
    cost: Annotated[Guarantee | None, PlainSerializer(lambda cost: str(cost or ""), return_type=str)]
    """What that was charged to its own population: its owner's alone to see."""
    share: float | None = Field(description="Of the declared sizes of all parts.")
    """By so much the error of a mean is smaller than without it, squared."""


class PoolOut(BaseModel):
    """A data set of several owners."""

    name: str
    title: Annotated[str, Field(exclude=True)]
    parts: list[str]
    """By name, as far as the caller may see them; "…" in the place of any other."""
    given: list[GivenOut]


def make(hub: Hub, caller: Caller, asked: NewPool, budget: Guarantee | None) -> DataSet:
    """The data set. Its declaration is that of its parts."""
    if not 2 <= len(set(asked.parts)) == len(asked.parts) <= MOST:
        raise InvalidDeclaration(
            "The parts are invalid", why=f"they are 2 to {MOST} different data sets", instead="two data sets of different owners"
        )
    with hub.database.reading() as db:
        parts = [seen(hub, db, caller, name) for name in asked.parts]
    rows = PooledRows(hub, parts, asked.name)
    known = hub.ledger.populations()
    names = (*(each.population for each in parts), asked.population)
    budgets = [hub.ledger.budget(name) for name in names if name is not None and name in known]
    if len({measure_of(each) == "zcdp" for each in (*budgets, budget) if each is not None}) > 1:
        why = "a query of it would be charged in ε to one population and in ρ to another, and none is"
        raise InvalidDeclaration("The budget is invalid", why=why, instead="parts and a whole that all count in ε, or all in ρ")
    sizes = [each.declaration.get("size") for each in parts]
    wanted = Wanted(
        name=asked.name,
        title=asked.title,
        about=asked.about,
        declaration={**parts[0].declaration, "size": None if None in sizes else sum(sizes)},
        population=asked.population,
        budget=budget,
        listed=asked.listed,
        row_is_person=True,  # the owners of the parts said whose a row is
    )
    return made_of(hub, caller, rows, wanted)


def pools(hub: Hub, db: Db, caller: Caller) -> list[PoolOut]:
    """Those that the caller may see, and those that a data set of theirs is a part of."""
    of, found = parts_by_data_set(db), list[PoolOut]()
    rows = {
        row.id: row
        for row in db.scalars(select(DataSet).where(DataSet.id.in_({*of, *(each for ids in of.values() for each in ids)})))
    }
    for number, ids in of.items():
        row, parts = rows[number], [rows[each] for each in ids]
        mine = [each for each in parts if each.owner == caller.id]
        if row.state == "deleted" or not (mine or _sees(hub, db, caller, row.name)):
            continue
        given = [_given(hub, row, each, parts) for each in mine]
        names = [each.name if _sees(hub, db, caller, each.name) else HIDDEN for each in parts]
        found.append(PoolOut(name=row.name, title=row.title, parts=names, given=given))
    return sorted(found, key=lambda each: each.name)


def pool_named(hub: Hub, db: Db, caller: Caller, name: str) -> PoolOut:
    """One of them; missing for anybody else, in the words for what does not exist."""
    found = next((each for each in pools(hub, db, caller) if each.name == name), None)
    if found is None:
        row = seen(hub, db, caller, name)
        raise InvalidDeclaration(f"The data set {row.name!r} has one owner", why="it is not made of others", instead="/pools")
    return found


def _sees(hub: Hub, db: Db, caller: Caller, name: str) -> bool:
    try:
        seen(hub, db, caller, name)
    except CloisterError:
        return False
    return True


def _given(hub: Hub, row: DataSet, part: DataSet, parts: Sequence[DataSet]) -> GivenOut:
    """A charge of the whole and of all parts has one number in the ledger; others of its population are not of the whole."""
    assert part.population is not None
    populations = {each.population for each in (row, *parts) if each.population is not None}
    whole = frozenset.intersection(*(frozenset(each.id for each in hub.ledger.charges(name)) for name in populations))
    costs = [each.cost for each in hub.ledger.charges(part.population) if each.id in whole and each.cost is not None]
    sizes: Mapping[str, int | None] = {each.id: each.declaration.get("size") for each in parts}
    own, known = sizes[part.id], [each for each in sizes.values() if each]
    share = own / sum(known) if own and len(known) == len(sizes) else None
    cost = reduce(add, costs) if costs else None
    return GivenOut(name=part.name, times=len(costs), cost=cost, share=share)
