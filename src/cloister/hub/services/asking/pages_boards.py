"""The pages of dashboards: the list, one of them, and what its owner does with it. Every button is a form without scripts.

The pages of published views: the list, a new one, and what a page of another site shows in its frame.
"""

from typing import Any
from urllib.parse import quote

from fastapi import Request
from sqlalchemy.orm import Session as Db
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.decisions.callers import caller_for
from cloister.hub.hub import Caller, CallerDep, Hub, HubDep
from cloister.hub.ids import new_secret
from cloister.hub.problems import Problem, problem_of
from cloister.hub.records.accounts import names_of
from cloister.hub.records.releases import PublishedView, StoredRelease
from cloister.hub.releases.reading import releases_of
from cloister.hub.services.asking.answers import asked, places_of, title_of, unpacked
from cloister.hub.services.asking.boards import (
    SHOWS,
    Part,
    RefreshPrice,
    add_part,
    boards_of,
    change_part,
    create_board,
    parts_of,
    refresh,
    refresh_price,
    remove_board,
    seen_board,
)
from cloister.hub.services.asking.charts import alt_text, chart_pages, chart_svg, has_chart, has_hollow
from cloister.hub.services.asking.publishing import frame_policy, may_publish, publish, revoke_view, seen_view, views_of
from cloister.hub.services.asking.showing import shown
from cloister.hub.web.forms import FormDep, go
from cloister.hub.web.languages import Language
from cloister.hub.web.maps import Map, map_of, said_beside
from cloister.hub.web.render import render, request_gettext, request_language
from cloister.hub.web.routing import Number, Pages
from cloister.hub.work.ordering import open_projects
from cloister.session import Release

_EMPTY = dict.fromkeys(("title", "project", "origins", "until", "dashboard", "release", "shows"), "")
_ROWS, _FRAMED_ROWS, _LATELY, _CONFIDENCE = 12, 60, 50, 0.95


def board_pages(routes: Pages) -> None:
    @routes.get("/dashboards", "question.see")
    def boards(request: Request, hub: HubDep, caller: CallerDep) -> Response:
        """One's own, and those of one's projects."""
        return _list(request, hub, caller)

    @routes.post("/dashboards", "question.manage")
    def create(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        try:
            with hub.database.begin() as db:
                row = create_board(hub, db, caller, form.text("title", most=1000), form.text("project", most=40))
        except CloisterError as error:
            return _list(request, hub, caller, problem_of(error), form)
        return go(request, f"/dashboards/{row.id}")

    @routes.get("/dashboards/{number}", "question.see", ticked=True)
    def board(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """Its answers, as this reader may see them now."""
        return _board(request, hub, caller, number)

    @routes.post("/dashboards/{number}/parts", "question.manage", ticked=True)
    def change(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Add an answer, move one, take one away, say what is shown of it."""
        part = form.text("part", most=40)
        try:
            with hub.database.begin() as db:
                row = seen_board(hub, db, caller, number, own=True)
                if part:
                    change_part(hub, db, caller, row, part, form.text("what", most=10))
                else:
                    add_part(hub, db, caller, row, form.text("release", most=40), form.text("shows", most=10))
        except CloisterError as error:
            return _board(request, hub, caller, number, problem_of(error))
        return go(request, f"/dashboards/{number}")

    @routes.post("/dashboards/{number}/price", "question.manage", ticked=True)
    def price(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        try:
            return _board(request, hub, caller, number, price=refresh_price(hub, caller, number))
        except CloisterError as error:
            return _board(request, hub, caller, number, problem_of(error))

    @routes.post("/dashboards/{number}/refresh", "question.ask", ticked=True)
    def refreshed(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Ask every query again, at the cost that was shown."""
        _ = request_gettext(request)
        try:
            new, left = refresh(hub, caller, number, most=form.text("most", most=2000), key=form.text("key", most=60))
        except CloisterError as error:
            return _board(request, hub, caller, number, problem_of(error))
        if left:
            told = _(
                "New: %(new)s of %(all)s answers. A page waits no longer: refresh again for the others.", new=new, all=new + left
            )
            return go(request, f"/dashboards/{number}", told)
        said = _("The dashboard was refreshed.") if new else _("Nothing has changed: the answers are those that you had.")
        return go(request, f"/dashboards/{number}", said)

    @routes.post("/dashboards/{number}/remove", "question.manage")
    def remove(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            remove_board(hub, db, caller, number)
        return go(request, "/dashboards", _("The dashboard was removed. Its answers stay."))


def _list(request: Request, hub: Hub, caller: Caller, problem: Problem | None = None, form: Any = ()) -> Response:
    with hub.database.reading() as db:
        rows = boards_of(db, caller)
        people, projects = names_of(db, [row.person for row in rows]), open_projects(db, caller)
    how: dict[str, Any] = {"boards": rows, "people": people, "projects": projects, "problem": problem}
    return render(request, "asking/boards.html", **how, typed=_EMPTY | dict(form))


def _board(
    request: Request, hub: Hub, caller: Caller, number: str, problem: Problem | None = None, price: RefreshPrice | None = None
) -> Response:
    _ = request_gettext(request)
    with hub.database.reading() as db:
        row = seen_board(hub, db, caller, number)
        mine = row.person == caller.id
        parts = [_shown(hub, db, caller, part, request_language(request)) for part in parts_of(hub, db, caller, row)]
        own = releases_of(hub, db, caller, which="mine", limit=_LATELY) if mine else []
        there = {part["number"] for part in parts}
        publishable = mine and may_publish(hub, db, caller, sorted(there))
        choices = [(each.id, each.title or asked(each.sql, _) or each.sql[:80]) for each in own if each.id not in there]
    how: dict[str, Any] = {"board": row, "mine": mine, "parts": parts, "choices": choices, "publishable": publishable}
    how |= {"shows": SHOWS, "price": price, "problem": problem, "confidence": f"{_CONFIDENCE:g}", "key": new_secret()}
    return render(request, "asking/board.html", **how)


def _shown(hub: Hub, db: Db, caller: Caller, part: Part, language: Language) -> dict[str, Any]:
    """What the page shows of a part; nothing of one that is closed to its reader."""
    if part.row is None:
        return {"number": part.number, "row": None, "shows": part.shows}
    release = unpacked(part.row)
    drawn = map_of(release, _CONFIDENCE, places_of(hub, db, caller, release)) if part.shows != "table" else None
    told = _drawn(part.row, release, part.shows, drawn, language, _ROWS)
    return told | {"number": part.number, "shows": part.shows, "pages": chart_pages(release)}


def _drawn(row: StoredRelease, release: Release, shows: str, drawn: Map | None, language: Language, rows: int) -> dict[str, Any]:
    """An answer as far as a part shows it: its table, its chart, its map, and what is said of them."""
    chart = shows != "table" and has_chart(release)
    return {
        "row": row,
        "name": title_of(row, release, language.gettext),
        "rows": shown(release, _CONFIDENCE, rows=rows) if shows != "chart" or not (chart or drawn) else None,
        "chart": chart,
        "map": drawn,
        "beside": [] if drawn is None else said_beside(drawn, language),
        "alt": alt_text(release, _CONFIDENCE, language.gettext) if chart else "",
        "hollow": chart and has_hollow(release, _CONFIDENCE),
    }


def published_pages(routes: Pages) -> None:
    @routes.get("/published", "release.see")
    def views(request: Request, hub: HubDep, caller: CallerDep) -> Response:
        return _published(request, hub, caller)

    @routes.post("/published", "release.publish", ticked=True)
    def create(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """A new one, of an answer or of what stands on a dashboard now."""
        _ = request_gettext(request)
        typed = {name: form.text(name, most=2000) for name in ("title", "origins", "until")}
        part = {name: form.text(name, most=40) for name in ("dashboard", "release", "shows")}
        try:
            with hub.database.begin() as db:
                board = seen_board(hub, db, caller, part["dashboard"], own=True) if part["dashboard"] else None
                publish(hub, db, caller, list(board.layout["parts"]) if board else [part], **typed)
        except CloisterError as error:
            problem = problem_of(error)
            if problem.status == 404:
                raise
            return _published(request, hub, caller, problem, form)
        return go(request, "/published", _("The view is published. Put its address into a frame of your page."))

    @routes.post("/published/{number}/revoke", "release.see")
    def revoke(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        _ = request_gettext(request)
        with hub.database.begin() as db:
            revoke_view(hub, db, caller, number)
        return go(request, "/published", _("The view is revoked: no one sees it any more."))

    @routes.get("/shown/{number}", "public.read", ticked=True)
    def view(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """What a frame shows: the same to everybody, and nothing of whoever looks."""
        with hub.database.reading() as db:
            row, found = seen_view(hub, db, caller, number)
            parts = [_framed(hub, db, row, release, shows, request_language(request)) for release, shows in found]
        response = render(request, "asking/framed.html", view=row, parts=parts)
        response.headers["Content-Security-Policy"] = frame_policy(row)
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response


def _published(request: Request, hub: Hub, caller: Caller, problem: Problem | None = None, form: Any = ()) -> Response:
    now = hub.now()
    with hub.database.reading() as db:
        found = views_of(db, caller)
        people = names_of(db, [row.person for row, _ in found])
    views = [(row, mine, "revoked" if row.revoked else "active" if row.until > now else "expired") for row, mine in found]
    how: dict[str, Any] = {"views": views, "people": people, "origin": hub.settings.origin, "problem": problem}
    return render(request, "asking/published.html", **how, typed=_EMPTY | dict(form))


def _framed(hub: Hub, db: Db, view: PublishedView, row: StoredRelease, shows: str, language: Language) -> dict[str, Any]:
    """An answer with its chart inside the page: a frame asks for nothing more. Its map has the outlines that whoever published it
    may see now."""
    maker, release, drawn = caller_for(hub, db, view.person), unpacked(row), None
    if maker is not None and shows != "table":
        drawn = map_of(release, _CONFIDENCE, places_of(hub, db, maker, release))
    told = _drawn(row, release, shows, drawn, language, _FRAMED_ROWS)
    picture = chart_svg(hub, row, release, _CONFIDENCE, language) if told["chart"] else ""
    chart = f"data:image/svg+xml;charset=utf-8,{quote(picture)}" if picture else ""
    return told | {"cost": release.cost, "chart": chart}
