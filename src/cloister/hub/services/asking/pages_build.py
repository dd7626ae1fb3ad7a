"""The question builder: a query is made in a form, explained as it is made, and asked like one in SQL.

Everything works without scripts: the form is posted, and comes back with what its query costs. Its SQL is shown, opened in the
editor, and read back from there.

What to expect of a mean or a quantile depends on how many rows its group has, which is private. Where the owner declared no size,
the forecast is a small table: the margins in groups of 100, 1,000 and 10,000 rows. A pilot is a count of the same groups for a
small spend. It is a query like any other, an answer in the list of its analyst; what follows from its noisy counts is
post-processing, and costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Query, Request
from starlette.responses import Response

from cloister.errors import CloisterError, UnknownTable
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.releases.reading import releases_of
from cloister.hub.releases.tables import tables_of
from cloister.hub.services.asking.answers import confidences, unpacked
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
from cloister.hub.services.asking.question_request import QuestionRequest
from cloister.hub.web.forms import Form
from cloister.hub.web.render import render, request_gettext
from cloister.hub.web.routing import Pages
from cloister.hub.work.offer import Offer
from cloister.hub.work.offers import offers
from cloister.hub.work.ordering import open_projects
from cloister.query import read_sql, write_sql
from cloister.session import Count, Plan
from cloister.tables import PrivateTable

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
    wanted = form.text("table", most=500)
    offer = next((each for each in open_tables(hub, caller) if each.which.name == wanted), None)
    if offer is None:
        raise UnknownTable(f"The table {wanted!r} is unknown", why="it is not open to you", instead="choose one of the list")
    assert isinstance(offer.table, PrivateTable)
    draft = draft_in(form, offer.table)
    return write_sql(question_of(draft, offer.table), {draft.table: offer.table})


def build_page(request: Request, hub: Hub, caller: Caller, form: Form, **more: Any) -> Response:
    """The form again, as it was sent, with what the query was told."""
    known = open_tables(hub, caller)
    offer = next((each for each in known if each.which.name == form.text("table", most=500)), None)
    draft = draft_in(form, offer.table) if offer is not None and isinstance(offer.table, PrivateTable) else None
    return _page(request, hub, caller, known, draft, {name: form.get(name, "") for name in TERMS}, **more)


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
        known = (*offers(hub, db, caller, "question.explain", under=(), then="question.ask"), *tables_of(hub, db, caller))
    return [each for each in known if isinstance(each.table, PrivateTable) and each.plain]


def _page(
    request: Request, hub: Hub, caller: Caller, known: list[Offer], draft: Draft | None, values: dict[str, str], **more: Any
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


PILOT = "0.01"
"""What a pilot spends."""
_SIZES = (100, 1_000, 10_000)
_COUNTED = "n"


@dataclass(frozen=True, kw_only=True)
class MarginsBySize:
    """The margin of each statistic in groups of some sizes; `offered`: whether a pilot can be asked for, `pilot` its answer."""

    sizes: tuple[int, ...]
    margins: dict[str, tuple[float, ...]]
    pilot: str = ""
    offered: bool = False
    spend: str = PILOT


def margins_by_size(hub: Hub, caller: Caller, wish: QuestionRequest, plan: Plan) -> MarginsBySize | None:
    """The margins that depend on the size of a group; None where none does, or where the owner declared the size."""
    if not plan.parts or all(part.shape.declaration.size is not None for part in plan.parts):
        return None
    if not (found := _margins(plan, wish.confidence, _SIZES)):
        return None
    try:
        sql = "" if wish.algorithm else pilot_sql(hub, caller, wish.sql)
    except CloisterError:
        sql = ""
    pilot, sizes = _piloted(hub, caller, sql) if sql else ("", ())
    if sizes:
        return MarginsBySize(sizes=sizes, margins=_margins(plan, wish.confidence, sizes, tuple(found)), pilot=pilot)
    return MarginsBySize(sizes=_SIZES, margins=found, offered=bool(sql))


def pilot_sql(hub: Hub, caller: Caller, sql: str) -> str:
    """The count of the groups of a query; refused where the query is more than one question about one table."""
    tables = {each.which.name: each.table for each in open_tables(hub, caller)}
    question = read_sql(sql, tables)
    return write_sql(replace(question, statistics=(Count(name=_COUNTED),), hidden=()), tables)


def _margins(plan: Plan, confidence: float, sizes: Sequence[int], names: tuple[str, ...] = ()) -> dict[str, tuple[float, ...]]:
    """By statistic, of those that are named or whose margins differ."""
    frames = [plan.margin(confidence, group_size=size).columns for size in sizes]
    found = {name: tuple(float(frame[name].values[0]) for frame in frames) for name in frames[0]}
    return {name: widths for name, widths in found.items() if name in names or len(set(widths)) > 1}


def _piloted(hub: Hub, caller: Caller, sql: str) -> tuple[str, tuple[int, ...]]:
    """The newest answer to a pilot, and the least, the middle and the largest of its counts."""
    with hub.database.reading() as db:
        row = next(iter(releases_of(hub, db, caller, which="mine", sql=sql, limit=1)), None)
        number, told = ("", []) if row is None else (row.id, unpacked(row).to_pydict()[_COUNTED])
    counts = sorted(max(1, round(count)) for count in told if count is not None)
    return number, tuple(dict.fromkeys(counts[place] for place in (0, len(counts) // 2, -1))) if counts else ()
