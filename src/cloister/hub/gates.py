"""What every request passes, as one ASGI layer: the size of its body, where it comes from, who asks; and the headers of every
answer.

*Origin.* A browser tells where a request comes from (Sec-Fetch-Site, Origin). One that writes and comes from another site is
refused before anything reads it; forms carry a token besides (`web/forms.py`).

*Host.* A request names the host that it is meant for. One that names none of the hub's is refused: it comes from a page of
another site whose name leads here. Nothing is ever decided by that name but this.

*Turns.* So many questions are inside at once as the hub works on (`asking`); the others wait here, first come first served, and
hold no thread while they do, so that pages are served meanwhile. A turn begins when the whole body is here: who sends slowly
takes nobody's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request

from cloister.errors import AccessDenied, CloisterError
from cloister.hub.problems import Problem, problem_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from cloister.hub.hub import Hub

__all__ = ["POLICY", "Gates"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_FORWARDING = ("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "via")
"""What a proxy adds."""
_IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_SAFE = ("GET", "HEAD", "OPTIONS")
_METHODS = (*_SAFE, "POST", "PUT", "PATCH", "DELETE")
_API = "/api/v1"
_BODY = 4 * 2**20
_UPLOADS = ("/api/v1/uploads", "/uploads")
_QUESTIONS = ("/api/v1/questions", "/ask")


class Gates:
    """The layer around the application."""

    def __init__(self, app: ASGIApp, hub: Hub) -> None:
        self.app = app
        self.hub = hub
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._proxies = [ipaddress.ip_network(part.strip()) for part in hub.settings.proxies.split(",") if part.strip()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        from cloister.hub.app import answer
        from cloister.hub.services.accounts import identify

        request = Request(scope, receive)
        state = scope.setdefault("state", {})
        state["address"] = self._address(request)
        state["forwarded"] = self._forwarded(request)
        path = scope["path"]
        begun = time.perf_counter()
        send_on = self._with_headers(send, path)
        limited = receive
        try:
            self._check_host(request)
            self._check_origin(request)
            limited = self._limited(request, receive)
            if not path.startswith("/static/"):
                request.state.caller = await run_in_threadpool(identify, self.hub, request)
        except _Misdirected:
            scope["headers"] = [each for each in scope["headers"] if each[0] != b"host"]  # nothing is made of that name
            why, line = "the hub is not known by that name", 'address = "https://…", or hosts = "…", in the hub\'s settings'
            problem = Problem(status=421, code="misdirected", title="The request was refused", why=why, instead=line)
            await answer(Request(scope), problem)(scope, receive, send_on)
            return
        except _TooLarge:
            problem = Problem(status=413, code="too-large", title="The request is too large", instead="an upload for files")
            await answer(request, problem)(scope, receive, send_on)
            return
        except CloisterError as error:
            await answer(request, problem_of(error))(scope, receive, send_on)
            return
        passed = self._counted(scope, send_on, begun)
        if scope["method"] != "POST" or not path.startswith(_QUESTIONS):
            await self._passed(scope, limited, passed)
            return
        whole = await _whole(limited)
        async with self._turn():
            await self._passed(scope, whole, passed)

    def _turn(self) -> asyncio.Semaphore:
        """The door of this loop's questions; a process that serves has one loop."""
        loop = asyncio.get_running_loop()
        return self._turns.setdefault(loop, asyncio.Semaphore(max(self.hub.settings.asking, 1)))

    async def _passed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What nobody foresaw ends here, inside the headers, and shows nothing of itself."""
        from cloister.hub.app import failed

        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except ClientDisconnect:  # whoever asked is gone: there is nobody to tell
            return
        except Exception as error:
            response = failed(Request(scope), error)
            if not begun:
                await response(scope, receive, send)

    def _check_host(self, request: Request) -> None:
        """Refuse a request that calls the hub by a name that it does not have."""
        named = request.headers.getlist("host")
        if len(named) > 1 or (named and not all(self.hub.settings.known_host(each) for each in named)):
            raise _Misdirected

    def _check_origin(self, request: Request) -> None:
        if request.method in _SAFE:
            return
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        here = {self.hub.settings.origin}
        if not self.hub.settings.address:  # nothing says how people reach it; the name was looked at in `_check_host`
            here.add(f"{request.scope['scheme']}://{request.headers.get('host', '')}")
        foreign = site not in (None, "same-origin", "none") or (origin is not None and origin not in here)
        if foreign:
            raise AccessDenied(
                "The request was denied", why="it comes from another site", instead="the hub's own pages, or an API token"
            )

    def _limited(self, request: Request, receive: Receive) -> Receive:
        """The body in pieces, up to the limit; uploads have a limit of their own (`services/catalogue`)."""
        if request.scope["path"].startswith(_UPLOADS):  # never `request.url`, which is made of what the client calls the host
            return receive
        told = request.headers.get("content-length")
        if told is not None and (not told.isdigit() or int(told) > _BODY):
            raise _TooLarge
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > _BODY:
                    from starlette.exceptions import HTTPException

                    raise HTTPException(413)
            return message

        return counted

    def _with_headers(self, send: Send, path: str) -> Send:
        secure = self.hub.settings.secure

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if secure:
                    headers.setdefault("Strict-Transport-Security", "max-age=31536000")
                if not path.startswith("/static/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        return sent

    def _counted(self, scope: Scope, send: Send, begun: float) -> Send:
        """Answers about rows leave at fixed ticks: how long the work took is seen to a tick and no closer."""
        tick = self.hub.settings.tick_ms / 1000

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                if scope["state"].get("ticked"):
                    passed = time.perf_counter() - begun
                    await asyncio.sleep(math.ceil(passed / tick) * tick - passed)
                method = scope["method"] if scope["method"] in _METHODS else "(other)"
                self.hub.meter.request(_template(scope), method, message["status"], time.perf_counter() - begun)
            await send(message)

        return counted

    def _address(self, request: Request) -> str:
        """The client's address; that of a proxy's client where the proxy is believed. Lines of the header are one list."""
        peer = request.client.host if request.client else ""
        known = _ip(peer)
        if known is None:
            return peer
        if not self._believed(known):
            return str(known)
        told = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        for each in reversed([part.strip() for part in told if part.strip()]):
            address = _ip(each)
            if address is None:
                return str(known)
            if not self._believed(address):
                return str(address)
        return str(known)

    def _believed(self, address: _IP) -> bool:
        return any(address in network for network in self._proxies)

    def _forwarded(self, request: Request) -> bool:
        """Whether somebody passed the request on who is none of the proxies that are believed: it may come from anywhere."""
        peer = _ip(request.client.host if request.client else "")
        return (peer is None or not self._believed(peer)) and any(name in request.headers for name in _FORWARDING)


async def _whole(receive: Receive) -> Receive:
    """The body, read to its end; what it was refused with is raised again to who reads it."""
    messages: list[Message] = []
    refused: Exception | None = None
    try:
        while not messages or messages[-1].get("more_body", False):
            messages.append(await receive())
    except Exception as error:
        refused = error
    ready = iter(messages)

    async def again() -> Message:
        for message in ready:
            return message
        if refused is not None:
            raise refused
        return await receive()

    return again


def _template(scope: Scope) -> str:
    """The route of a request, never its address: that may hold a name. (A router knows only what stands behind its prefix.)"""
    path: str = getattr(scope.get("route"), "path", "(none)")
    return _API + path if scope["path"].startswith(_API) and path.startswith("/") and not path.startswith(_API) else path


def _ip(text: str) -> _IP | None:
    """An address, None where it is none; one of IPv4 inside IPv6 is itself."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


class _Misdirected(Exception):
    """The request was meant for another host, or for several."""


class _TooLarge(Exception):
    """The announced body is over the limit."""
