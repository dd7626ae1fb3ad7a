"""What the form shows besides what every order has, and the file for each owner."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.platform.catalogue import lines_of
from cloister.hub.services.joint_learning.learning import parties
from cloister.hub.services.joint_learning.order import ACTION, METHODS
from cloister.hub.services.joint_learning.results import owned_results, take_away
from cloister.hub.web.routing import Number, Pages, attachment
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import about_offered
from cloister.tables import Boolean, Category, Date, Integer, PrivateTable, Real

PATH = "/joint-learning"
EXACT_PATH = f"{PATH}/exact"


def add(routes: Pages) -> None:
    """The file of a result."""

    @routes.get(f"{PATH}/results/{{number}}", "release.download", ticked=True)
    def taken(hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """For the owner of a part."""
        found = take_away(hub, caller, number)
        return Response(found.body, headers=attachment(found.name), media_type="application/json")


def exact_choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any]) -> dict[str, Any]:
    """The same of one's own data sets at sites, and whether this hub knows a key holder."""
    first = {"rows": "10000", "approval": ""}
    found = choices(hub, db, caller, {**first, **typed}, exact=True)
    line = lines_of(hub).of_settings()
    return {**found, "holder": "" if line is None else line.name, "given": ()}


def choices(hub: Hub, db: Db, caller: Caller, typed: Mapping[str, Any], *, exact: bool = False) -> dict[str, Any]:
    """The data sets of several owners, the columns of the chosen one, what was typed, and what is handed to the caller. `exact`:
    of one's own at sites alone."""
    taken = Integer | Real if exact else Integer | Real | Date | Boolean
    opened = [
        each
        for each in offers(hub, db, caller, ACTION, under=(), anyhow=True)
        if isinstance(each.table, PrivateTable)
        and parties(each.table)
        and sum(isinstance(each.table.columns.get(name), taken) for name in each.columns) > 1
        and (not exact or (each.table.source.engine == "joint" and each.which.owner == caller.id))
    ]
    offer, shown = about_offered(hub, opened, typed)
    table = None if offer is None else offer.table
    kinds = table.columns if isinstance(table, PrivateTable) else {}
    if isinstance(table, PrivateTable) and table.abilities.parts_of_a_person > 1:  # days are made numbers row by row
        kinds = {name: kind for name, kind in kinds.items() if not isinstance(kind, Date)}
    columns = {} if offer is None else {each: kind for each, kind in offer.columns.items() if each in kinds}
    numbers = {each: kind for each, kind in columns.items() if isinstance(kinds[each], taken)}
    first = {
        "columns": tuple(each for each in numbers if not isinstance(kinds[each], Boolean)),
        "method": "PCA",
        "components": "1",
        "spend": "1",
        **dict.fromkeys(("label", "purpose", "project", "title"), ""),
    }
    return {
        **shown,
        "owners": len(parties(table)) if isinstance(table, PrivateTable) else 0,
        "columns": numbers,
        "labels": [each for each in columns if isinstance(kinds[each], Category | Boolean)],
        "methods": list(METHODS.items()),
        "given": owned_results(hub, db, caller),
        "typed": {**first, **typed},
    }
