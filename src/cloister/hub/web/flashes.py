"""One sentence for the page after a redirect ("Access was granted."), carried by a signed cookie that the next page removes."""

import base64
import binascii
import json
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cloister.hub.hub import hub_of
from cloister.hub.web.forms import keep_cookie

_COOKIE = "cloister-flash"
_SECONDS = 120
_LONGEST = 600


@dataclass(frozen=True, kw_only=True)
class Flash:
    """A sentence and its tone: good, info, warn or bad."""

    text: str
    tone: str = "good"


def go(request: Request, path: str, said: str = "", tone: str = "good") -> RedirectResponse:
    """The answer to a form: go to a page, which says the sentence."""
    response = RedirectResponse(path, status_code=303)
    if said:
        flash(request, response, said, tone)
    return response


def flash(request: Request, response: Response, text: str, tone: str = "good") -> None:
    """Have the next page of this browser say a sentence. No secret belongs in it."""
    hub = hub_of(request)
    content = base64.urlsafe_b64encode(json.dumps([text[:_LONGEST], tone]).encode()).decode()
    keep_cookie(hub, response, _COOKIE, f"{content}.{hub.keys.sign('flash', content)}", _SECONDS)


def read_flashes(request: Request) -> list[Flash]:
    """What this page should say; what was not signed here is not said."""
    content, _, signature = request.cookies.get(_COOKIE, "").rpartition(".")
    if not content or not hub_of(request).keys.signed("flash", content, signature):
        return []
    try:
        text, tone = json.loads(base64.urlsafe_b64decode(content))
    except (ValueError, binascii.Error):
        return []
    return [Flash(text=str(text), tone=tone if tone in ("good", "info", "warn", "bad") else "info")]


def forget_flashes(response: Response) -> None:
    """They were said."""
    response.delete_cookie(_COOKIE, path="/")
