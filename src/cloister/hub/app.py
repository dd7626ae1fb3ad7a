"""The hub on the web: services become routes, errors become problems or pages, and every answer carries the same headers."""

from collections.abc import Callable
from functools import partial

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from cloister.errors import CloisterError
from cloister.hub.description import STATUSES, describe
from cloister.hub.edition import EDITION
from cloister.hub.hub import Hub
from cloister.hub.middleware import Middleware
from cloister.hub.problems import Problem
from cloister.hub.web.errors import answer, refusal
from cloister.hub.web.home import home_pages
from cloister.hub.web.languages import N_
from cloister.hub.web.render import Assets, ExactJSON


def make_app(hub: Hub) -> FastAPI:
    """The application of a hub. It does not own the hub: whoever opened it closes it."""
    app = FastAPI(
        title=f"{hub.settings.title} API",
        version=EDITION,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        default_response_class=ExactJSON,
        redirect_slashes=False,  # the redirection would be made of what the client calls the host
        responses={status: {"description": told, "content": {}} for status, told in STATUSES.items()},
    )
    app.state.hub = hub
    hub.serves = True
    for service in sorted(hub.services, key=lambda each: not each.busy):  # routes are tried one after the other
        if service.api is not None:
            app.include_router(service.api(), prefix="/api/v1", tags=[service.title])
    if hub.kinds:
        from cloister.hub.releases import api, pages

        app.include_router(api.api(hub.kinds.values()), prefix="/api/v1", tags=["Releases"])
    for service in hub.services:
        if service.pages is not None:
            app.include_router(service.pages(), include_in_schema=False)
    if hub.kinds:
        app.include_router(pages.pages(hub.kinds.values()), include_in_schema=False)
    app.include_router(home_pages(), include_in_schema=False)
    app.mount("/static", Assets(), name="static")
    _pass_by(app)
    app.add_middleware(Middleware, hub=hub)
    app.add_exception_handler(CloisterError, _refused)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _http)
    from cloister.hub.platform.accounts import cookie_name

    describe(app, cookie_name(hub.settings))
    return app


def _pass_by(app: FastAPI) -> None:
    """No route of a service is tried where none begins as the address does: to try them all takes longer than many an answer."""
    for each in app.router.routes:
        known = {(context.path or "/{").removeprefix("/api/v1").split("/")[1] for context in iter_route_contexts([each])}
        if not any("{" in begins for begins in known):
            each.matches = partial(_matched, each.matches, known)  # type: ignore[method-assign]


def _matched(tried: Callable[[Scope], tuple[Match, Scope]], known: set[str], scope: Scope) -> tuple[Match, Scope]:
    begins = f"{scope['path'].removeprefix('/api/v1')}/".split("/")[1]
    return tried(scope) if begins in known or scope.get("root_path") else (Match.NONE, {})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, CloisterError)
    return refusal(request, error)


_COSTS = frozenset({"spend", "epsilon", "rho", "delta"})
"""Written as texts, since many programs keep only some digits of a number in JSON."""
_LINES = {"string": '"…"', "bool": "false", "list": '["…"]', "tuple": '["…"]', "dict": "{…}", "int": "1"}
_LINES |= dict.fromkeys(("greater", "less", "literal"), "…")
"""What is written for a field that is refused for such a reason."""


async def _malformed(request: Request, error: Exception) -> Response:
    """A request that is not what its address takes; an error without fields: its body could not be read."""
    errors = error.errors()[:5] if isinstance(error, RequestValidationError) else []
    found = [(".".join(str(part) for part in each["loc"][1:]) or "body", each["msg"]) for each in errors]
    why, instead = "it could not be read", N_("a request body that matches /api/v1/openapi.json")
    if errors:
        first, why = errors[0], "; ".join(f"{place}: {reason}" for place, reason in found)
        if isinstance(ours := first.get("ctx", {}).get("error"), CloisterError):
            return refusal(request, ours)
        if (line := _LINES.get(first["type"].partition("_")[0])) is not None:
            instead = f'"{found[0][0]}": {line}'
        if first["type"] == "string_type" and first["loc"][-1] in _COSTS and isinstance(first["input"], int | float):
            instead = f'"{first["loc"][-1]}": "{first["input"]}"'
    if not request.scope["path"].startswith("/api/"):  # the reasons are for programs, and in English
        named, instead = ", ".join(place for place, _ in found), "/"
        why = N_("the address holds what this page does not take: {name}").format(name=named) if found else why
    return answer(request, Problem(status=422, code="invalid", title="The request is invalid", why=why, instead=instead))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # a body that could not be read: no JSON, no form, or nested too deep
        return await _malformed(request, error)
    kinds = {
        404: ("missing", N_("There is no such page")),
        405: ("method", N_("This address does not take that method")),
        413: ("too-large", N_("The request is too large")),
    }
    code, title = kinds.get(error.status_code, ("refused", "The request was refused"))
    problem = Problem(status=error.status_code, code=code, title=title, instead="the first page: /")
    return answer(request, problem, dict(error.headers or {}))
