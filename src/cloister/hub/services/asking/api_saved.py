"""The API of saved questions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from cloister.hub.caller import CallerDep
from cloister.hub.guard import needs
from cloister.hub.hub import HubDep
from cloister.hub.services.asking.saved import remove, save, saved_of, seen_question
from cloister.hub.services.asking.shapes import Saved, SavedPage, Saving, saved_line
from cloister.hub.web.routing import WRITTEN, After, Number


def routes(router: APIRouter) -> None:
    """Add them."""

    @router.get(
        "/questions/saved",
        dependencies=[needs("question.see")],
        summary="List saved queries",
        response_description="The saved queries, the newest first",
    )
    def questions(
        hub: HubDep, caller: CallerDep, after: After = "", limit: Annotated[int, Query(ge=1, le=200)] = 50
    ) -> SavedPage:
        """One's own and those of one's projects; the newest first."""
        with hub.database.reading() as db:
            rows = saved_of(db, caller, after=after, limit=limit + 1)
        more = rows[limit - 1].id if len(rows) > limit else None
        return SavedPage(questions=[saved_line(row, caller.id) for row in rows[:limit]], next=more)

    @router.post(
        "/questions/saved",
        dependencies=[needs("question.manage"), WRITTEN],
        status_code=201,
        summary="Save a query",
        response_description="The saved query",
    )
    def keep(hub: HubDep, caller: CallerDep, wanted: Saving) -> Saved:
        """Keep a question under a name; in a project, for its members too."""
        with hub.database.begin() as db:
            row = save(db, hub, caller, wanted.wish(), wanted.title)
        return saved_line(row, caller.id)

    @router.get(
        "/questions/saved/{number}",
        dependencies=[needs("question.see")],
        summary="Get a saved query",
        response_description="The saved query",
    )
    def question(hub: HubDep, caller: CallerDep, number: Number) -> Saved:
        """One question."""
        with hub.database.reading() as db:
            return saved_line(seen_question(hub, db, caller, number), caller.id)

    @router.post(
        "/questions/saved/{number}/remove",
        dependencies=[needs("question.manage"), WRITTEN],
        summary="Delete a saved query",
        response_description="The saved query that was deleted",
    )
    def forget(hub: HubDep, caller: CallerDep, number: Number) -> Saved:
        """Remove one's own saved question; what it was answered stays."""
        with hub.database.begin() as db:
            told = saved_line(seen_question(hub, db, caller, number), caller.id)
            remove(hub, db, caller, number)
        return told
