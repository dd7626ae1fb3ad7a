"""What routes share, in the API and on pages; and how a route of the API is written."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar

from fastapi import APIRouter, Depends, Header, Path, Query, Request

from cloister.hub.guard import needs
from cloister.hub.web.forms import form_of, written_here

Handler = TypeVar("Handler", bound=Callable[..., Any])

Number = Annotated[str, Path(max_length=32, pattern=r"^[A-Za-z0-9_-]+$")]
After = Annotated[str, Query(max_length=32, pattern=r"^[A-Za-z0-9_-]*$", description="The `next` of the page before.")]
Confidence = Annotated[float, Query(gt=0.5, lt=1)]
IdempotencyKey = Annotated[str, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


async def ticked(request: Request) -> None:
    """Let the answer, whatever it is, wait for the next tick of the clock (`middleware.py`)."""
    request.state.ticked = True


TICKED = Depends(ticked)
WRITTEN = Depends(written_here)


class Routes:
    """Routes of the API: a path, the action that it needs, what it does (its title) and what it gives.

    The action is checked before the handler runs. A route that writes is checked against forgery, too: that follows from its
    method, so no list can forget it. `ticked`: its answer leaves at a tick of the clock. What else is given is FastAPI's.
    """

    _unforged: ClassVar[Any] = WRITTEN

    def __init__(self, router: APIRouter | None = None) -> None:
        self.router = router or APIRouter()

    def get(self, path: str, action: str, title: str = "", gives: str = "", **more: Any) -> Callable[[Handler], Handler]:
        """What reads."""
        return self._route(["GET"], path, action, title, gives, **more)

    def post(self, path: str, action: str, title: str = "", gives: str = "", **more: Any) -> Callable[[Handler], Handler]:
        """What writes, or asks by a body."""
        return self._route(["POST"], path, action, title, gives, **more)

    def put(self, path: str, action: str, title: str = "", gives: str = "", **more: Any) -> Callable[[Handler], Handler]:
        """What puts something in the place of something."""
        return self._route(["PUT"], path, action, title, gives, **more)

    def patch(self, path: str, action: str, title: str = "", gives: str = "", **more: Any) -> Callable[[Handler], Handler]:
        """What changes a part of something."""
        return self._route(["PATCH"], path, action, title, gives, **more)

    def delete(self, path: str, action: str, title: str = "", gives: str = "", **more: Any) -> Callable[[Handler], Handler]:
        """What takes something away."""
        return self._route(["DELETE"], path, action, title, gives, **more)

    def _route(
        self,
        methods: list[str],
        path: str,
        action: str,
        title: str,
        gives: str,
        *,
        ticked: bool = False,
        own_check: bool = False,
        **more: Any,
    ) -> Callable[[Handler], Handler]:
        gates = [*([TICKED] if ticked else []), needs(action), *([] if own_check or methods == ["GET"] else [self._unforged])]
        more |= {name: text for name, text in (("summary", title), ("response_description", gives)) if text}
        return self.router.api_route(path, methods=methods, dependencies=gates, **more)


class Pages(Routes):
    """Routes of pages: what writes is a form of ours. `own_check`: a form that is read piece by piece, or has more fields than
    others, is checked where it is read (`tests/hub/test_routes.py` names each)."""

    _unforged = Depends(form_of)


def attachment(name: str) -> dict[str, str]:
    """The headers that make a browser keep an answer as a file."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
