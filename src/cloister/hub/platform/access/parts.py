"""What the pages of this service share: a form shown again with what was wrong, and done things followed by their page."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Path, Request
from sqlalchemy.orm import Session
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.hub import Hub
from cloister.hub.problems import beside_form
from cloister.hub.web.forms import go
from cloister.hub.web.render import render

SEEN = r"^[^\x00-\x1f]*$"
"""No character that can't be seen, and that a database may refuse."""
Name = Annotated[str, Path(max_length=63, pattern=SEEN)]


def done(
    request: Request,
    hub: Hub,
    act: Callable[[Session], object],
    path: str,
    said: str,
    template: str,
    values: Callable[[], dict[str, Any]],
) -> Response:
    """Do it in a transaction and go to `path`, which says so; or show the page again, with what was wrong and what was typed."""
    try:
        with hub.database.begin() as db:
            act(db)
    except CloisterError as error:
        problem = beside_form(error)
        return render(request, template, **values() | {"problem": problem})
    return go(request, path, said)
