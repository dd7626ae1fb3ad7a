"""The respondent's page: no account, no cookie that matters, and nothing but randomised values comes back.

The page itself does the work (`static/respond.js`, with the twin of `cloister.local`): it fetches the survey from the API, and
sends its report there.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.services.surveys.counting import asked
from cloister.hub.services.surveys.typed import KINDS
from cloister.hub.web.render import render
from cloister.hub.web.routing import Number


def routes(router: APIRouter) -> None:
    """Add it."""

    @router.get("/s/{number}", dependencies=[needs("survey.answer")])
    def page(request: Request, hub: HubDep, number: Number) -> Response:
        """The survey, for whoever has its link."""
        with hub.database.reading() as db:
            row = asked(db, number)
            told = {
                "number": row.id,
                "title": row.title,
                "purpose": row.purpose,
                "introduction": row.draft["introduction"],
                "state": row.state,
                "invited": row.invited,
                "kinds": KINDS,
            }
        return render(request, "surveys/respond.html", **told)
