"""A page's form that is sent twice does its work once: the second time is answered as the first was, by any process of the hub.

Every page gives its forms a random word. What a form made (an answer that leads on, or one of 201, whose page is shown once) is
kept for an hour under a digest of what was sent, and in which session, encrypted by that word, which the page knows and the hub
does not keep: so a secret that a browser missed is shown to it again, and lies readable nowhere. A refusal is not kept: what was
wrong may be mended.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloister.crypto import Keyring
from cloister.errors import CloisterError
from cloister.hub.hub import Hub, caller_of
from cloister.hub.problems import problem_of
from cloister.hub.web.errors import answer
from cloister.hub.web.forms import ONCE_FIELD
from cloister.hub.web.render import is_fragment
from cloister.hub.work.idempotency import OWN_KEYS, once_sent

_FORMS = OWN_KEYS + "form "
_MADE = (201, 303)
_WORD = re.compile(rf"(?:^|&){ONCE_FIELD}=([\w-]+)".encode())


async def sent_once(app: ASGIApp, hub: Hub, scope: Scope, receive: Receive, body: bytes, send: Send) -> None:
    """Pass a request with this body on; what was sent before is answered as it was then."""
    word, request = _WORD.search(body), Request(scope, receive)
    if word is None or not _from_page(request):
        await app(scope, receive, send)
        return
    caller = caller_of(request)
    digest = hashlib.sha256(f"{caller.session} {scope['path']}?".encode() + scope["query_string"] + b"\n" + body).hexdigest()
    sealed = Keyring(hashlib.sha256(word[1]).digest(), domain="cloister form")
    held: list[Message] = []

    async def work() -> bytes | None:
        async def watched(message: Message) -> None:
            if held or message.get("status") in _MADE:  # it is kept before a byte of it leaves
                held.append(message)
            else:
                await send(message)

        await app(scope, receive, watched)
        told = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in held[0]["headers"]] if held else []
        page = base64.b64encode(b"".join(each.get("body", b"") for each in held[1:])).decode()
        return sealed.wrap(json.dumps([held[0]["status"], told, page]).encode(), digest) if held else None

    try:
        kept = await once_sent(hub, caller, _FORMS, digest, work)
    except CloisterError as error:
        await answer(request, problem_of(error))(scope, receive, send)
        return
    if kept is not None:
        status, told, page = json.loads(sealed.unwrap(kept, digest))
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told]
        held = [{"type": "http.response.start", "status": status, "headers": headers}]
        held.append({"type": "http.response.body", "body": base64.b64decode(page)})
    for message in held:
        await send(message)


def _from_page(request: Request) -> bool:
    """Whether this is a whole form, and of somebody who is signed in."""
    form = request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    return form and not is_fragment(request) and caller_of(request).signed_in
