"""What a page posts: parsed, limited in size, and refused where it does not come from a page of ours made for this browser.

The token of a form is a signature of the sign-in (or, before there is one, of a random cookie), so a page of another site, or of
another sign-in, has none that fits. Handlers take `form: FormDep` and answer with `go`: where to go, and a sentence for the page
there ("Access was granted."), carried by a signed cookie that this page removes.
"""

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from cloister.errors import AccessDenied, InvalidParameter
from cloister.hub.hub import Hub, caller_of, hub_of
from cloister.hub.ids import new_secret, same
from cloister.tables.sourcing.reading import representable

TOKEN_FIELD = "form_token"  # noqa: S105  (the name of a field)
ONCE_FIELD = "form_once"
"""A random word of the page: what it sends twice is done once (`sent_once.py`)."""
_VISIT = "cloister-visit"
_FIELDS = 1000
_FILES = 4
_PART = 2**21
_FLASH = "cloister-flash"
_SECONDS = 120
_LONGEST = 600


def listed(text: str) -> list[str]:
    """What stands one a line, or between commas, also the Chinese ones.

    >>> listed("research, teaching\\n care "), listed("大厅、阁楼，地下室")
    (['research', 'teaching', 'care'], ['大厅', '阁楼', '地下室'])
    """
    return [part.strip() for part in re.split("[\n,;，；、]", text) if part.strip()]


def ungrouped(text: str) -> str:
    """A number as it was typed, without the blanks or commas between its thousands.

    >>> ungrouped("1,250,000"), ungrouped("10 000"), ungrouped("1,5")
    ('1250000', '10000', '1,5')
    """
    return re.sub(r"(?<=\d)[\s,，](?=\d{3}(?!\d))", "", text)


def counted(text: str) -> int | None:
    """How many people or rows somebody typed, also with blanks or commas between the thousands; None where nothing is typed.

    >>> counted("40,000"), counted("")
    (40000, None)
    """
    digits = ungrouped(text.strip())
    if digits and not (digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits)):
        why = "it is not a whole number from 1 to 999,999,999"
        raise InvalidParameter("The number is invalid", why=why, instead="40000")
    return int(digits) if digits else None


class Form(Mapping[str, str]):
    """The fields of a form. A name that was sent several times shows its last text; `all` has them in order."""

    def __init__(self, data: FormData) -> None:
        self._data = data
        for _, value in data.multi_items():
            if isinstance(value, str) and not representable(value):
                raise InvalidParameter(
                    "The form is invalid", why="a text holds half of a character, or a NUL", instead="the text without it"
                )

    def __getitem__(self, name: str) -> str:
        values = self.all(name)
        if not values:
            raise KeyError(name)
        return values[-1]

    def __iter__(self) -> Iterator[str]:
        return (name for name in dict.fromkeys(self._data) if self.all(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def text(self, name: str, default: str = "", *, most: int = 10_000, several: bool = False) -> str:
        """The text of a field without the blanks around it (of `several`: all of them, after commas); one that is longer than
        `most` is refused.

        >>> Form(FormData([("name", " Ada ")])).text("name")
        'Ada'
        """
        value = (", ".join(self.all(name)) if several else self.get(name, default)).strip()
        if len(value) > most:
            raise InvalidParameter(
                f"The field {name!r} is invalid", why=f"it is longer than {most:,} characters", instead="a shorter text"
            )
        return value

    def all(self, name: str) -> list[str]:
        """Every text sent under a name.

        >>> Form(FormData([("role", "owner"), ("role", "analyst")])).all("role")
        ['owner', 'analyst']
        """
        return [value for value in self._data.getlist(name) if isinstance(value, str)]

    def flag(self, name: str) -> bool:
        """Whether a box was ticked."""
        return self.get(name, "") not in ("", "no")

    def file(self, name: str) -> UploadFile | None:
        """The file sent under a name, or None where none was chosen."""
        found = [value for value in self._data.getlist(name) if isinstance(value, UploadFile) and value.filename]
        return found[-1] if found else None


def token_of(request: Request) -> str:
    """The token of the forms of this page."""
    return hub_of(request).keys.sign("form", _bound_to(request))


def keep_visit(request: Request, response: Response) -> None:
    """Set the cookie that a visitor's forms are bound to, where a page with a form was made and there is none yet."""
    made = getattr(request.state, "visit", None)
    if made is not None:
        keep_cookie(hub_of(request), response, _VISIT, made)


def keep_cookie(hub: Hub, response: Response, name: str, value: str, seconds: int | None = None, path: str = "/") -> None:
    """Have the browser keep a value that no script reads and no other site's form sends: for so long, or until it closes."""
    secure = hub.settings.secure
    response.set_cookie(name, value, max_age=seconds, path=path, httponly=True, samesite="lax", secure=secure)


def _bound_to(request: Request) -> str:
    caller = caller_of(request)
    if caller.session:
        return f"session {caller.session}"
    visit = request.cookies.get(_VISIT) or getattr(request.state, "visit", None)
    if visit is None:
        visit = request.state.visit = new_secret()
    return f"visit {visit}"


async def written_here(request: Request) -> None:
    """Refuse what a browser's session writes through the API without the token against forgery. An API token needs none: no
    browser sends it by itself. Every route of the API that writes has this among its dependencies.
    """
    if caller_of(request).via != "session":
        return
    if not same(request.headers.get("x-csrf-token", ""), token_of(request)):
        raise AccessDenied(
            "The request was denied",
            why="the X-CSRF-Token header is missing or from another session",
            instead="the `csrf` of GET /api/v1/me",
        )


async def form_of(request: Request) -> Form:
    """The form that was posted, once it is known to be ours."""
    try:
        data = await request.form(max_files=_FILES, max_fields=_FIELDS, max_part_size=_PART)
    except (HTTPException, LookupError, UnicodeError) as error:  # the sender says the charset
        if isinstance(error, HTTPException) and error.status_code != 400:
            raise
        raise InvalidParameter("The form is invalid", why="it could not be read", instead="the form of the page") from None
    form = Form(data)
    if not hub_of(request).keys.signed("form", _bound_to(request), form.get(TOKEN_FIELD, "")):
        raise _not_ours()
    return form


def check_token(request: Request, fields: Mapping[str, str]) -> None:
    """Refuse a form with a file that no page of this session sent: its fields stand before the file."""
    if not same(fields.get(TOKEN_FIELD, ""), token_of(request)):
        raise _not_ours()


def _not_ours() -> AccessDenied:
    return AccessDenied(
        "The form was not accepted",
        why="the form comes from another session, or the page is old",
        instead="load the page again and send it once more",
    )


FormDep = Annotated[Form, Depends(form_of)]


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
    keep_cookie(hub, response, _FLASH, f"{content}.{hub.keys.sign('flash', content)}", _SECONDS)


def read_flashes(request: Request) -> list[Flash]:
    """What this page should say; what was not signed here is not said."""
    content, _, signature = request.cookies.get(_FLASH, "").rpartition(".")
    if not content or not hub_of(request).keys.signed("flash", content, signature):
        return []
    try:
        text, tone = json.loads(base64.urlsafe_b64decode(content))
    except (ValueError, binascii.Error):
        return []
    return [Flash(text=str(text), tone=tone if tone in ("good", "info", "warn", "bad") else "info")]


def forget_flashes(response: Response) -> None:
    """They were said."""
    response.delete_cookie(_FLASH, path="/")
