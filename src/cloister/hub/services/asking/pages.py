"""The pages of questions and releases."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import Response

from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.records.people import names_of
from cloister.hub.releases.kinds import ANSWERS
from cloister.hub.releases.reading import seen_release
from cloister.hub.services.asking import pages_ask
from cloister.hub.services.asking.answers import unpacked
from cloister.hub.services.asking.authorised import algorithms_to_ask_under
from cloister.hub.services.asking.charts import chart_svg, retold
from cloister.hub.services.asking.saved import remove, saved_of
from cloister.hub.web.flashes import go
from cloister.hub.web.forms import FormDep
from cloister.hub.web.render import render, request_gettext, request_language
from cloister.hub.web.routing import TICKED, After, Confidence, Number

_PAGE = 30


def pages() -> APIRouter:
    """The routes."""
    router = APIRouter()
    pages_ask.routes(router)
    _saved(router)
    return router


def _saved(router: APIRouter) -> None:

    @router.get("/questions", dependencies=[needs("question.see")])
    def questions(request: Request, hub: HubDep, caller: CallerDep, after: After = "") -> Response:
        """Questions that are kept."""
        with hub.database.reading() as db:
            rows = saved_of(db, caller, after=after, limit=_PAGE + 1)
            people = names_of(db, [row.person for row in rows])
            own = {each.row.id: each.row.title for each in algorithms_to_ask_under(hub, db, caller)}
        older = f"/questions?{urlencode({'after': rows[_PAGE - 1].id})}" if len(rows) > _PAGE else ""
        return render(request, "asking/questions.html", questions=rows[:_PAGE], people=people, own=own, older=older)

    @router.post("/questions/{number}/remove", dependencies=[needs("question.manage")])
    def forget(request: Request, hub: HubDep, caller: CallerDep, number: Number, form: FormDep) -> Response:
        """Keep it no longer."""
        _ = request_gettext(request)
        with hub.database.begin() as db:
            remove(hub, db, caller, number)
        return go(request, "/questions", _("The query was removed. Its answers stay."))

    @router.get("/releases/{number}/chart.svg", dependencies=[TICKED, needs("release.see")])
    def chart(request: Request, hub: HubDep, caller: CallerDep, number: Number, confidence: Confidence = 0.95) -> Response:
        """The first statistic by the first key, with bars of error."""
        with hub.database.reading() as db:
            row = seen_release(hub, db, caller, number, kind=ANSWERS)
        picture = chart_svg(hub, row, unpacked(row), round(confidence, 4)).decode()
        drawn = retold(picture, request_language(request)).encode()
        headers = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
        headers["Vary"] = "Cookie, Accept-Language"
        return Response(drawn, headers=headers, media_type="image/svg+xml")
