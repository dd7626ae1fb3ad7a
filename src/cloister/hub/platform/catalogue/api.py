"""The API of the catalogue: find data sets, register one, describe it; populations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query

from cloister.hub.caller import PersonDep
from cloister.hub.hub import HubDep
from cloister.hub.platform.catalogue import managing, reading
from cloister.hub.platform.catalogue.metadata import from_outside
from cloister.hub.platform.catalogue.registering import Wanted, registered
from cloister.hub.platform.catalogue.shapes import Changes, DataSetOut, DataSets, NewDataSet, PopulationOut, Populations
from cloister.hub.platform.catalogue.windows import check_cut, in_window
from cloister.hub.problems import Missing
from cloister.hub.records.catalogue import DataSet
from cloister.hub.records.declarations import check_declaration, check_reasons
from cloister.hub.records.people import names_of
from cloister.hub.records.policies import parts_of, told_parts
from cloister.hub.web.routing import Routes

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

DataSetName = Annotated[str, Path(max_length=63, pattern=r"^[^\x00]*$")]
_Search = Annotated[str, Query(max_length=200)]
_Limit = Annotated[int, Query(ge=1, le=200)]


def add(routes: Routes) -> None:
    """Add them."""

    @routes.get("/datasets", "dataset.see", "List data sets", "The data sets")
    def catalogue(
        hub: HubDep, caller: PersonDep, search: _Search = "", mine: bool = False, after: _Search = "", limit: _Limit = 50
    ) -> DataSets:
        """Those that the caller may see, by name."""
        with hub.database.reading() as db:
            entries, more = reading.search(hub, db, caller, text=search, mine=mine, after=after, limit=limit)
            items = [shown(hub, db, caller, each.row) for each in entries]
        return DataSets(items=items, next=entries[-1].row.name if more else None)

    @routes.post("/datasets", "dataset.register", "Register a data set", "The data set", status_code=201)
    def make(hub: HubDep, caller: PersonDep, body: NewDataSet) -> DataSetOut:
        """What was uploaded or connected becomes a data set that is open; or nothing happens."""
        with hub.database.reading() as db:
            policy, by_column = _policies(hub, db, caller, body.policy, body.column_policies, {})
        row = registered(hub, caller, body.upload, _wanted(body, {"policy": policy, "columns": by_column}))
        with hub.database.reading() as db:
            return shown(hub, db, caller, db.get_one(DataSet, row.id))

    @routes.get("/datasets/{name}", "dataset.see", "Get a data set", "The data set with its declaration", ticked=True)
    def one(hub: HubDep, caller: PersonDep, name: DataSetName) -> DataSetOut:
        """As it is declared."""
        with hub.database.reading() as db:
            return shown(hub, db, caller, reading.seen(hub, db, caller, name))

    @routes.patch(
        "/datasets/{name}", "dataset.manage", "Update the description of a data set", "The data set with its new description"
    )
    def change(hub: HubDep, caller: PersonDep, name: DataSetName, body: Changes) -> DataSetOut:
        """Title, description, policies, and whether everybody finds it. What is declared of columns stays."""
        with hub.database.begin() as db:
            row = reading.owned(hub, db, caller, name)
            metadata = None
            if body.policy is not None or body.column_policies is not None:
                policy, by_column = _policies(hub, db, caller, body.policy, body.column_policies, parts_of(row))
                metadata = {"policy": policy, "columns": by_column}
            managing.describe(hub, db, caller, row, title=body.title, about=body.about, metadata=metadata, provider=body.provider)
            if body.listed is not None:
                managing.list_to_everybody(hub, db, caller, row, listed=body.listed)
            return shown(hub, db, caller, row)

    @routes.get(
        "/populations", "dataset.register", "List your populations", "Your populations, each with its data sets and its budget"
    )
    def populations(hub: HubDep, caller: PersonDep) -> Populations:
        """Each with the data sets that draw on it, and its budget."""
        with hub.database.reading() as db:
            rows = reading.populations_of(db, caller)
            items = [PopulationOut.of(row, reading.tables_on(db, row.name), reading.money_of(hub, row.name)) for row in rows]
        return Populations(items=items)

    @routes.get(
        "/populations/{name}",
        "dataset.register",
        "Get one of your populations",
        "The population with its data sets and its budget",
    )
    def population(hub: HubDep, caller: PersonDep, name: Annotated[str, Path(max_length=200)]) -> PopulationOut:
        """With the data sets that draw on it, and its budget."""
        with hub.database.reading() as db:
            row = reading.own_population(db, caller, name)
            return PopulationOut.of(row, reading.tables_on(db, row.name), reading.money_of(hub, row.name))


def shown(hub: Hub, db: Db, caller: Caller, row: DataSet) -> DataSetOut:
    """A data set as the caller may see it."""
    entry = reading.entry_of(hub, db, caller, row)
    owner = names_of(db, [row.owner]).get(row.owner, "")
    spending = reading.may_see_budget(hub, db, caller, row)
    members = reading.unit_of(db, row.population)
    return DataSetOut.of(entry, owner, reading.money_of(hub, row.population), members=members, spending=spending)


def _policies(
    hub: Hub,
    db: Db,
    caller: Caller,
    policy: Mapping[str, Any] | None,
    by_column: Mapping[str, Mapping[str, Any]] | None,
    before: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The policies of a data set and of its columns as the hub keeps them; None: those that stand there."""

    def id_of(name: str) -> str | None:
        try:
            return reading.names_to_ids(hub, db, caller, [name])[0]
        except Missing:
            return None

    stood = told_parts(before)
    whole, columns = stood["policy"], stood["columns"]
    told = before.get("policy", {}) if policy is None else from_outside(policy, whole, id_of)
    if by_column is None:
        return told, before.get("columns", {})
    kept: dict[str, Mapping[str, Any]] = {name: {} for name, each in columns.items() if "sources" in each} | dict(by_column)
    return told, {name: from_outside(each, columns.get(name, {}), id_of, name) for name, each in kept.items()}


def _wanted(body: NewDataSet, metadata: Mapping[str, Any]) -> Wanted:
    """What is asked for, in the words of `registering.py`."""
    declared: dict[str, Any] = {
        "name": body.name,
        "title": body.title,
        "population": body.population.strip(),
        "declaration": body.declaration(),
    }
    check_cut(body.every, body.date_column)
    if body.every:
        declared = in_window(declared, body.every, body.window, body.date_column)
    if not body.public:
        check_reasons(check_declaration(declared["name"], declared["declaration"]))
    return Wanted(
        **declared,
        about=body.about,
        public=body.public,
        budget=None if body.budget is None else body.budget.guarantee(),
        unit=body.members or "",
        people=body.people,
        listed=body.listed,
        row_is_person=body.row_is_person,
        metadata=metadata,
        provider=body.provider,
    )
