"""The pages of published views: the list, a new one, and what a page of another site shows in its frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.caller import CallerDep
from cloister.hub.decisions.callers import caller_for
from cloister.hub.hub import HubDep
from cloister.hub.problems import problem_of
from cloister.hub.records.people import names_of
from cloister.hub.services.asking.answers import places_of, title_of, unpacked
from cloister.hub.services.asking.boards import seen_board
from cloister.hub.services.asking.charts import alt_text, chart_svg, has_chart, has_hollow
from cloister.hub.services.asking.publishing import frame_policy, publish, revoke_view, seen_view, views_of
from cloister.hub.services.asking.showing import shown
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import FormDep
from cloister.hub.web.maps import map_of, said_beside
from cloister.hub.web.render import render, request_gettext, request_language
from cloister.hub.web.routing import Number, Pages

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.problems import Problem
    from cloister.hub.records.releases import PublishedView, StoredRelease
    from cloister.hub.web.maps import Map

_ROWS, _CONFIDENCE = 60, 0.95


def published_pages(routes: Pages) -> None:
    """The routes."""

    @routes.get("/published", "release.see")
    def views(request: Request, hub: HubDep, caller: CallerDep) -> Response:
        """The views that one made, and those of one's data."""
        return _list(request, hub, caller)

    @routes.post("/published", "release.publish", ticked=True)
    def create(request: Request, hub: HubDep, caller: CallerDep, form: FormDep) -> Response:
        """A new one, of an answer or of what stands on a dashboard now."""
        _ = request_gettext(request)
        typed = {name: form.text(name, most=2000) for name in ("title", "origins", "until")}
        try:
            with hub.database.begin() as db:
                if form.text("dashboard"):
                    parts = list(seen_board(hub, db, caller, form.text("dashboard", most=40), own=True).layout["parts"])
                else:
                    parts = [{"release": form.text("release", most=40), "shows": form.text("shows", most=10)}]
                publish(hub, db, caller, parts, **typed)
        except CloisterError as error:
            problem = problem_of(error)
            if problem.status == 404:
                raise
            return _list(request, hub, caller, problem)
        return go(request, "/published", _("The view is published. Put its address into a frame of your page."))

    @routes.post("/published/{number}/revoke", "release.see")
    def revoke(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Show it no longer."""
        _ = request_gettext(request)
        with hub.database.begin() as db:
            revoke_view(hub, db, caller, number)
        return go(request, "/published", _("The view is revoked: no one sees it any more."))

    @routes.get("/shown/{number}", "public.read", ticked=True)
    def view(request: Request, hub: HubDep, caller: CallerDep, number: Number) -> Response:
        """What a frame shows: the same to everybody, and nothing of whoever looks."""
        _ = request_gettext(request)
        with hub.database.reading() as db:
            row, found = seen_view(hub, db, caller, number)
            parts = [_part(request, hub, _map(hub, db, row, release), release, shows, _) for release, shows in found]
        response = render(request, "asking/framed.html", view=row, parts=parts)
        response.headers["Content-Security-Policy"] = frame_policy(row)
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return response


def _list(request: Request, hub: Hub, caller: Caller, problem: Problem | None = None) -> Response:
    now = hub.now()
    with hub.database.reading() as db:
        found = views_of(db, caller)
        people = names_of(db, [row.person for row, _ in found])
    views = [(row, mine, "revoked" if row.revoked else "active" if row.until > now else "expired") for row, mine in found]
    status = 200 if problem is None else problem.status
    how: dict[str, Any] = {"views": views, "people": people, "origin": hub.settings.origin, "problem": problem}
    return render(request, "asking/published.html", status=status, **how)


def _map(hub: Hub, db: Db, view: PublishedView, row: StoredRelease) -> Map | None:
    """The map of an answer, of outlines that whoever published it may see now."""
    maker, release = caller_for(hub, db, view.person), unpacked(row)
    return None if maker is None else map_of(release, _CONFIDENCE, places_of(hub, db, maker, release))


def _part(
    request: Request, hub: Hub, drawn: Map | None, row: StoredRelease, shows: str, _: Callable[[str], str]
) -> dict[str, Any]:
    """An answer with its chart inside the page: a frame asks for nothing more."""
    release = unpacked(row)
    chart = shows != "table" and has_chart(release)
    drawn = drawn if shows != "table" else None
    picture = chart_svg(hub, row, release, _CONFIDENCE, request_language(request)) if chart else ""
    return {
        "name": title_of(row, release, _),
        "row": row,
        "cost": release.cost,
        "rows": shown(release, _CONFIDENCE, rows=_ROWS) if shows != "chart" or not (chart or drawn) else None,
        "chart": f"data:image/svg+xml;charset=utf-8,{quote(picture)}" if chart else "",
        "map": drawn,
        "beside": [] if drawn is None else said_beside(drawn, request_language(request)),
        "alt": alt_text(release, _CONFIDENCE, _) if chart else "",
        "hollow": chart and has_hollow(release, _CONFIDENCE),
    }
