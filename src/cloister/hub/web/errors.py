"""A refusal or a failure as what leaves: problem details under /api, a page elsewhere."""

import logging
from pathlib import Path

from fastapi import Request
from starlette.responses import Response

from cloister.errors import CloisterError
from cloister.hub.ids import new_id
from cloister.hub.problems import Problem, problem_of
from cloister.hub.web.render import ExactJSON, render

_LOG = logging.getLogger("cloister.hub")


def answer(request: Request, problem: Problem, headers: dict[str, str] | None = None) -> Response:
    """A problem in the form that the client reads: problem details under /api, a page elsewhere."""
    if request.scope["path"].startswith("/api/"):
        extra = dict(headers or {})
        if problem.status == 401:
            extra["WWW-Authenticate"] = "Bearer"
        return ExactJSON(problem.details(), problem.status, extra, media_type="application/problem+json")
    if problem.status == 401 and request.method in ("GET", "HEAD"):
        from urllib.parse import quote

        query = request.scope.get("query_string", b"").decode("latin-1")
        back = request.scope["path"] + (f"?{query}" if query else "")
        return Response(status_code=303, headers={"Location": f"/login?next={quote(back, safe='')}"})
    page = render(request, "error.html", status=problem.status, problem=problem)
    page.headers.update(headers or {})
    return page


def refusal(request: Request, error: CloisterError) -> Response:
    """A refusal of ours, in the form that the client reads."""
    after = getattr(error, "after", None)
    return answer(request, problem_of(error), {"Retry-After": str(after)} if after is not None else None)


def failed(request: Request, error: Exception) -> Response:
    """What nobody foresaw: its words may hold a row, so neither the answer nor the log has them."""
    reference = new_id()
    frame = _innermost(error)
    _LOG.error("unforeseen %s in %s, reference %s", type(error).__name__, frame, reference)
    problem = Problem(
        status=500,
        code="failed",
        title="The hub failed",
        why=f"the log knows it as {reference}",
        instead="tell the administrator",
    )
    return answer(request, problem)


def _innermost(error: BaseException) -> str:
    """The file and line of cloister's own where it happened: code, not data."""
    place = "?"
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "cloister" in name:
            place = f"{Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
