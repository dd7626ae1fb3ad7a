"""The question builder: a query is made in a form, explained as it is made, and asked like one in SQL.

Everything works without scripts: the form is posted, and comes back with what its query costs. Its SQL is shown, opened in the
editor, and read back from there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from cloister.errors import UnknownTable
from cloister.hub.caller import Caller, CallerDep
from cloister.hub.hub import Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.releases.tables import tables_of
from cloister.hub.services.asking.answers import confidences
from cloister.hub.services.asking.building import (
    HOUR,
    MEASURES,
    MOST_KEYS,
    MOST_MEASURES,
    UNITS,
    Draft,
    Only,
    draft_in,
    draft_of,
    question_of,
)
from cloister.hub.web.forms import Form
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages
from cloister.hub.work.offer import Offer
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import open_projects
from cloister.query import read_sql, write_sql
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

TERMS = ("by", "spend", "within", "pilot", "confidence", "purpose", "project", "title")
"""What a query may cost, and what it is for: fields that the editor and the builder share."""
START = {"spend": "0.1", "confidence": "0.95"}


def builder(routes: Pages) -> None:
    """The page on which a query begins in a form."""

    @routes.get("/ask/build", "question.explain")
    def build(request: Request, hub: HubDep, caller: CallerDep, about: Annotated[str, Query(max_length=63)] = "") -> Response:
        """A table is chosen, or its form begins with a count."""
        known = open_tables(hub, caller)
        chosen = [each for each in known if each.which.name == about] or (known if len(known) == 1 else [])
        return _page(request, hub, caller, known, Draft(table=chosen[0].which.name, count=True) if chosen else None, START)


def is_built(form: Form) -> bool:
    """Whether a form is that of the builder."""
    return "table" in form


def built_sql(hub: Hub, caller: Caller, form: Form) -> str:
    """The SQL of what a form says; refused where it says no query."""
    offer = _offered(open_tables(hub, caller), form.text("table", most=500))
    assert isinstance(offer.table, PrivateTable)
    draft = draft_in(form, offer.table)
    return write_sql(question_of(draft, offer.table), {draft.table: offer.table})


def build_page(request: Request, hub: Hub, caller: Caller, form: Form, *, status: int = 200, **more: Any) -> Response:
    """The form again, as it was sent, with what the query was told."""
    known = open_tables(hub, caller)
    offer = next((each for each in known if each.which.name == form.text("table", most=500)), None)
    draft = draft_in(form, offer.table) if offer is not None and isinstance(offer.table, PrivateTable) else None
    return _page(request, hub, caller, known, draft, {name: form.get(name, "") for name in TERMS}, status=status, **more)


def page_of_sql(request: Request, hub: Hub, caller: Caller, sql: str, form: Form) -> Response:
    """The form of a query in SQL; refused where the form does not show it."""
    known = open_tables(hub, caller)
    tables = {each.which.name: each.table for each in known}
    question = read_sql(sql, tables)
    name = question.table if isinstance(question.table, str) else question.table.bases()[0]
    table = tables[name]
    assert isinstance(table, PrivateTable)
    return _page(request, hub, caller, known, draft_of(question, table), {name: form.get(name, "") for name in TERMS})


def open_tables(hub: Hub, caller: Caller) -> list[Offer]:
    """The tables that have a form: those that somebody may ask without an algorithm."""
    with hub.database.reading() as db:
        return _of(hub, db, caller)


def _of(hub: Hub, db: Db, caller: Caller) -> list[Offer]:
    opened = offers(hub, db, caller, "question.explain", under=(), then="question.ask")
    return [each for each in (*opened, *tables_of(hub, db, caller)) if isinstance(each.table, PrivateTable) and each.plain]


def _offered(known: list[Offer], wanted: str) -> Offer:
    found = next((each for each in known if each.which.name == wanted), None)
    if found is None:
        raise UnknownTable(f"The table {wanted!r} is unknown", why="it is not open to you", instead="choose one of the list")
    return found


def _page(
    request: Request,
    hub: Hub,
    caller: Caller,
    known: list[Offer],
    draft: Draft | None,
    values: dict[str, str],
    *,
    status: int = 200,
    **more: Any,
) -> Response:
    offer = None if draft is None else next((each for each in known if each.which.name == draft.table), None)
    with hub.database.reading() as db:
        projects = open_projects(db, caller)
    measures = [*draft.measures, *[("", "")] * MOST_MEASURES][:MOST_MEASURES] if draft else []
    keys = [*draft.keys, *[("", "")] * MOST_KEYS][:MOST_KEYS] if draft else []
    columns = [] if offer is None or not isinstance(offer.table, PrivateTable) else list(offer.table.columns.items())
    _ = request_gettext(request)
    return render(
        request,
        "asking/build.html",
        status=status,
        data_sets=known,
        draft=draft if offer is not None else None,
        offer=offer,
        columns=[(place, name, domain) for place, (name, domain) in enumerate(columns)],
        only={name: draft.only.get(name, Only()) for name, _domain in columns} if draft else {},
        measures=measures,
        keys=keys,
        names=[(name, name) for name, _domain in columns],
        kinds=[(what, _(title)) for what, (title, _made) in MEASURES.items()],
        units=[*((unit, _(title)) for unit, title in UNITS.items()), (HOUR, _("Hour of the day"))],
        periods=(*UNITS, HOUR),
        values={name: values.get(name, "") for name in TERMS},
        projects=projects,
        purposes=sorted(offer.purposes) if offer else [],
        purpose_required=bool(offer and offer.names_purpose),
        confidences=confidences(_),
        key=new_secret(),
        **{"told": None, "problem": None, "place": None, "rehearsal": None, "notes": (), **more},
    )
