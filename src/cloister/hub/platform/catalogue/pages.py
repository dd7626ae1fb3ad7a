"""The catalogue's pages for everybody: the list, one data set as it is declared, and an owner's populations."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path, Query, Request
from starlette.responses import Response

from cloister.hub.guidance import guidance
from cloister.hub.hub import HubDep, PersonDep
from cloister.hub.platform.catalogue import reading
from cloister.hub.platform.catalogue.managing import now_version
from cloister.hub.platform.catalogue.windows import in_all, populations_ever, window_with, windows_of
from cloister.hub.records.accounts import names_of
from cloister.hub.records.policies import labels_in, parts_of
from cloister.hub.web.render import render
from cloister.hub.web.routing import Pages

Name = Annotated[str, Path(max_length=63, pattern=r"^[^\x00]*$")]
PopulationName = Annotated[str, Path(max_length=200, pattern=r"^[^\x00]*$")]
_Search = Annotated[str, Query(max_length=200)]
_PAGE = 30


def add(routes: Pages) -> None:
    @routes.get("/datasets", "dataset.see")
    def catalogue(
        request: Request, hub: HubDep, caller: PersonDep, search: _Search = "", after: _Search = "", mine: bool = False
    ) -> Response:
        from cloister.hub.releases.tables import tables_of

        with hub.database.reading() as db:
            entries, more = reading.search(hub, db, caller, text=search, mine=mine, after=after, limit=_PAGE)
            tables = tables_of(hub, db, caller, search=search)
            names = names_of(db, [each.row.owner for each in entries] + [each.row.person for each in tables])
        query = {"search": search, **({"mine": "true"} if mine else {})}
        older = "/datasets?" + urlencode(query | {"after": entries[-1].row.name}) if more else ""
        values: dict[str, Any] = {"entries": entries, "names": names, "search": search, "mine": mine, "tables": tables}
        return render(request, "catalogue/list.html", older=older, first=not after, **values)

    @routes.get("/datasets/{name}", "dataset.see", ticked=True)
    def one(request: Request, hub: HubDep, caller: PersonDep, name: Name) -> Response:
        with hub.database.reading() as db:
            row = reading.seen(hub, db, caller, name)
            eyes = reading.Eyes(hub, db, caller)
            entry = eyes.entry(row)
            owner = names_of(db, [row.owner]).get(row.owner, "")
            shows = eyes.may("budget.see", row)
            windows = [each for each in windows_of(db, row) if eyes.may("dataset.see", each)]
            unit = reading.unit_of(db, row.population)
            version = now_version(db, row)
        settings = hub.settings
        money, all_money = reading.money_of(hub, row.population), [reading.money_of(hub, each.population) for each in windows]
        values: dict[str, Any] = {
            "row": row,
            "entry": entry,
            "labels": labels_in(parts_of(row)),
            "owner": owner,
            "money": money,
            "shows_spending": shows,
            "windows": windows,
            "unit": unit,
            "kept": "" if row.public or version is None else version.kind,
            "last_day": reading.last_day(entry.policy),
            "examples": reading.examples(row, settings.origin, caller.email, settings.pg_port),
            "over": in_all(None if each is None else each.total for each in all_money),
        }
        return render(request, "catalogue/dataset.html", **values)

    @routes.get("/populations", "dataset.register")
    def populations(request: Request, hub: HubDep, caller: PersonDep) -> Response:
        with hub.database.reading() as db:
            rows = reading.populations_of(db, caller)
            tables = {row.name: reading.tables_on(db, row.name) for row in rows}
        money = {row.name: reading.money_of(hub, row.name) for row in rows}
        return render(request, "catalogue/populations.html", rows=rows, tables=tables, money=money)

    @routes.get("/populations/{name}", "dataset.register")
    def population(request: Request, hub: HubDep, caller: PersonDep, name: PopulationName) -> Response:
        with hub.database.reading() as db:
            row = reading.own_population(db, caller, name)
            tables = reading.tables_on(db, row.name)
            window = window_with(db, row.name)
            windows = [] if window is None else windows_of(db, window)
            ever = set() if window is None else populations_ever(db, window)  # what deleted ones have spent stays spent
        money = reading.money_of(hub, row.name)
        shared = [reading.money_of(hub, each) for each in ever]
        told = None if money is None else guidance(money.total, row.people, hub.settings.max_delta)
        values: dict[str, Any] = {
            "window": {} if window is None else window.window,
            "windows": windows,
            "number": len(ever),
            "over": in_all(None if each is None else each.total for each in shared),
        }
        return render(request, "catalogue/population.html", row=row, tables=tables, money=money, told=told, **values)
