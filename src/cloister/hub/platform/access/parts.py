"""What the pages of this service share: a form shown again with what was wrong, and done things followed by their page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path

from cloister.errors import CloisterError
from cloister.hub.problems import problem_of
from cloister.hub.web.flashes import go
from cloister.hub.web.render import render

if TYPE_CHECKING:
    from fastapi import Request
    from starlette.responses import Response

SEEN = r"^[^\x00-\x1f]*$"
"""No character that can't be seen, and that a database may refuse."""
Id = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
Name = Annotated[str, Path(max_length=63, pattern=SEEN)]


def done(
    request: Request, act: Callable[[], object], path: str, said: str, template: str, values: Callable[[], dict[str, Any]]
) -> Response:
    """Do it and go to `path`, which says so; or show the page once more, with what was wrong and what was typed."""
    try:
        act()
    except CloisterError as error:
        problem = problem_of(error)
        if problem.status in (403, 404):
            raise
        return render(request, template, status=problem.status, **values() | {"problem": problem})
    return go(request, path, said)
