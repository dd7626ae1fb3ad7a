"""What the pages of accounts share: a form shown again with what was wrong, and where signing in leads."""

from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import RedirectResponse
from starlette.responses import Response

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Hub
from cloister.hub.platform.accounts import sessions, throttle
from cloister.hub.platform.accounts.log_in import Entered
from cloister.hub.problems import Unauthenticated, problem_of
from cloister.hub.web.formats import is_address
from cloister.hub.web.forms import Form, keep_cookie
from cloister.hub.web.render import render

_YEAR = 365 * 86400
_LONGEST = 500


def again(request: Request, template: str, error: CloisterError, **values: Any) -> Response:
    """The form once more, with what was wrong above it."""
    problem = problem_of(error)
    status = 403 if isinstance(error, Unauthenticated) else problem.status  # a 401 would ask for what no form gives
    page = render(request, template, status=status, **values | {"problem": problem})
    after = getattr(error, "after", None)
    if after is not None:
        page.headers["Retry-After"] = str(after)
    return page


def back_to(text: str) -> str:
    """Where to go on: a path of this hub, or the first page.

    >>> back_to("/people?after=x"), back_to("https://evil.example"), back_to("//evil.example"), back_to("/login")
    ('/people?after=x', '/', '/', '/')
    """
    fine = len(text) <= _LONGEST and is_address(text) and not text.startswith("/login")
    return text if fine else "/"


def onward(path: str, back: str) -> str:
    """A path that knows where to go on afterwards.

    >>> onward("/login/second", "/people?after=x")
    '/login/second?next=/people%3Fafter%3Dx'
    """
    return path if back == "/" else f"{path}?next={quote(back)}"


def entered_by(hub: Hub, entered: Entered, back: str) -> Response:
    """After signing in: the cookies, and on to the second step, which lets those through who need none."""
    response = RedirectResponse(onward("/login/second", back), 303)
    sessions.give_cookie(response, hub, entered.secret)
    keep_cookie(hub, response, throttle.KNOWN, throttle.known_browser(hub, entered.email), _YEAR)
    return response


def password_twice(form: Form) -> str:
    """A new password that was typed twice, as it was typed."""
    first = form.get("password", "")
    if first != form.get("again", ""):
        raise InvalidParameter("The password is invalid", why="the two are not the same", instead="type it twice")
    return first
