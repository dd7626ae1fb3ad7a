"""The API of data sets of several owners."""

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict

from cloister.hub.description import example
from cloister.hub.guidance import budget_of
from cloister.hub.hub import CallerDep, HubDep, PersonDep
from cloister.hub.services.pooling.comparing import WayOut, compare
from cloister.hub.services.pooling.making import Line, NewPool, PoolOut, make, pool_named, pools
from cloister.hub.web.routing import Routes

_Name = Annotated[str, Path(max_length=63)]


class PoolList(BaseModel):
    """Those that you may see, or have a part in."""

    items: list[PoolOut]


class Comparing(BaseModel):
    """A question, and what it may cost."""

    model_config = ConfigDict(extra="forbid", strict=True) | example(
        sql="SELECT AVG(age) AS age FROM both_hospitals", spend="0.1"
    )

    sql: Line
    spend: Line
    purpose: Line = ""


def add(routes: Routes) -> None:
    @routes.get(
        "/pooled-datasets",
        "dataset.see",
        "List data sets of several owners",
        "The data sets with their parts, and what your own parts gave",
    )
    def listed(hub: HubDep, caller: PersonDep) -> PoolList:
        """Those that you may see, or have a part in. What a part was charged is shown to its owner alone."""
        with hub.database.reading() as db:
            return PoolList(items=pools(hub, db, caller))

    @routes.post(
        "/pooled-datasets",
        "dataset.register",
        "Register a data set of several owners",
        "The data set with its parts",
        status_code=201,
    )
    def made(hub: HubDep, caller: PersonDep, body: NewPool) -> PoolOut:
        """Made of data sets that you may see. A person who asks it needs a grant on it and on every part."""
        budget = budget_of(body.epsilon, body.delta, body.rho) if body.epsilon or body.rho else None
        row = make(hub, caller, body, budget)
        with hub.database.reading() as db:
            return pool_named(hub, db, caller, row.name)

    @routes.post(
        "/pooled-datasets/{name}/compare",
        "question.explain",
        "Compare one query together and apart",
        "The margins of error of each way",
        ticked=True,
    )
    def compared(hub: HubDep, caller: CallerDep, name: _Name, body: Comparing) -> list[WayOut]:
        """Of the whole, of each part that you may ask, and of all parts added up. Nothing is spent."""
        with hub.database.reading() as db:
            return compare(hub, db, caller, pool_named(hub, db, caller, name), body.sql, body.spend, body.purpose)
