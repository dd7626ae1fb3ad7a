"""What every request passes, as one ASGI layer: the size of its body, where it comes from, who asks; and the headers of every
answer.

*Origin.* A browser tells where a request comes from (Sec-Fetch-Site, Origin). One that writes and comes from another site is
refused before anything reads it; forms carry a token besides (`web/forms.py`).

*Host.* A request names the host that it is meant for. One that names none of the hub's is refused: it comes from a page of
another site whose name leads here. Nothing is ever decided by that name but this.

*Query.* One with a character of code 0 is refused, whatever is looked for with it: PostgreSQL takes none in a text.

*HEAD.* It is answered as GET is, and the body stays here.

*Directly.* A plain question with an API token, as programs ask by the thousand, is answered in one step: who asks, whether they
may, and the answer, all in one thread. What the framework does between (routes, dependencies, a thread for each of them) takes
longer than all of that. Any other request goes the long way, as does a question that is malformed, long, or asked by a browser.

*Turns.* So many questions are inside at once as the hub works on (`asking`); the others wait here, first come first served, and
hold no thread while they do, so that pages are served meanwhile. A turn begins when the whole body is here: who sends slowly
takes nobody's.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import math
import re
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cloister.errors import AccessDenied, CloisterError, InvalidParameter
from cloister.hub.database import LEFT_OUT
from cloister.hub.guard import check_action
from cloister.hub.hub import NOBODY, Caller, Hub, left_out_for, person_of
from cloister.hub.platform.accounts import identify
from cloister.hub.problems import Problem, problem_of
from cloister.hub.sent_once import sent_once
from cloister.hub.service import Direct
from cloister.hub.settings import listed
from cloister.hub.web.errors import answer, failed, refusal
from cloister.hub.work.recheck import check_unchanged

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
_FORWARDING = frozenset({b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"forwarded", b"via"})
"""What a proxy adds."""
_Key: TypeAlias = tuple[asyncio.AbstractEventLoop, str, str, int, bool]
_Place: TypeAlias = list[tuple[_Key, float]]
"""What one request holds of its person's share; empty once it was left."""
_IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
_SAFE = ("GET", "HEAD", "OPTIONS")
_METHODS = (*_SAFE, "POST", "PUT", "PATCH", "DELETE")
_API = "/api/v1"
_BODY = 4 * 2**20
_SHORT, _SHORT_NAME = 2**16, 300
_TOKENS = 10_000
_UNLIMITED = ("/api/v1/uploads", "/uploads", "/together/")
"""Where the body is read as it comes, within limits of its own: files, and the answers of sites."""
_QUESTIONS = ("/api/v1/questions", "/ask")
_SHARE, _SHARE_OF_ORDERS, _SHARE_OF_FILES, _SHARE_OF_SITES, _SHARE_OF_BODIES = 6, 2, 2, 100, 100
"""How many requests of one person are worked on at once, and how many of their files: the threads of a process are forty. Sites
wait for messages, many perhaps behind one address, and hold no thread; so do bodies that are still coming."""
_RESTS, _LONGEST_REST, _JUST_NOW = 2, 0.5, 1.0
"""For how many times the seconds that were worked in a place it rests, for how many seconds at most, and what counts as now."""
_REFRESH = re.compile(r"/dashboards/[^/]+/refresh")


class Middleware:
    """The layer around the application."""

    def __init__(self, app: ASGIApp, hub: Hub) -> None:
        self.app = app
        self.hub = hub
        self._direct = {_API + each.path: each for service in hub.services if service.direct for each in service.direct()}
        self._threads = ThreadPoolExecutor(max(hub.settings.asking, 1), thread_name_prefix="cloister-asking")
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
        self._shares = _Shares(hub.settings.tick_ms / 1000)
        self._most_questions = max(hub.settings.asking // 8, 1)  # so that one person's slow ones leave most turns to others
        self._whose: dict[int, str] = {}
        """Whose a token was when it last asked, by its hash: no token is kept."""
        told = {**_HEADERS, **({"Strict-Transport-Security": "max-age=31536000"} if hub.settings.secure else {})}
        self._headers = [(name.lower().encode(), value.encode()) for name, value in told.items()]
        self._private = [*self._headers, (b"cache-control", b"no-store")]
        self._known_host = functools.lru_cache(maxsize=256)(hub.settings.known_host)  # settings never change
        self._proxies = [ipaddress.ip_network(each) for each in listed(hub.settings.proxies)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope, send = {**scope, "method": "GET"}, _bodiless(send)
        request = Request(scope, receive)
        state = scope.setdefault("state", {})
        state["address"], state["forwarded"] = self._address(request)
        path = scope["path"]
        begun = time.perf_counter()
        send_on = self._with_headers(send, path)
        limited, caller, writes = receive, NOBODY, scope["method"] not in _SAFE
        problem: Problem | None = None
        try:
            self._check_host(request)
            self._check_origin(request)
            limited = self._limited(request, receive)
            direct = self._direct.get(path)
            if direct is not None and _is_plain(request):
                limited = await _Whole(limited).read()
                given = direct.read(request, limited.body())
                if given is not None:
                    scope["route"] = direct
                    await self._directly(request, direct, given, limited, self._counted(scope, send_on, begun))
                    return
            if not path.startswith("/static/"):
                request.state.caller = caller = await run_in_threadpool(identify, self.hub, request)
                if writes and path.startswith(_UNLIMITED):
                    limited = self._to_its_end(request, limited, caller)
                elif writes and not isinstance(limited, _Whole):
                    limited = await self._arrived(limited, caller.id or str(state["address"]))
                    request.state.caller = caller = await run_in_threadpool(identify, self.hub, request)  # it may come for days
        except _Misdirected:
            scope["headers"] = [each for each in scope["headers"] if each[0] != b"host"]  # nothing is made of that name
            why = "the Host header names no address of this hub"
            line = 'address = "https://…", or hosts = "…", in the hub\'s settings'
            problem = Problem(status=421, code="misdirected", title="The request was refused", why=why, instead=line)
        except _TooLarge:
            problem = Problem(status=413, code="too-large", title="The request is too large", instead="an upload for files")
        except CloisterError as error:
            problem = problem_of(error)
        if problem is not None:
            await answer(Request(scope), problem)(scope, receive, send_on)
            return
        passed = self._counted(scope, self._naming_left_out(send_on, caller) if path.startswith(_API) else send_on, begun)
        LEFT_OUT.set([])
        who, known = caller.id or str(state["address"]), caller.signed_in
        if scope["method"] != "POST" or not (path.startswith(_QUESTIONS) or _REFRESH.fullmatch(path)):
            place = await self._shares.enter(*_share_of(scope["method"], path), who=who, known=known)
            try:
                await self._passed(scope, limited, self._until_answered(place, passed))
            finally:
                self._shares.leave(place)
            return
        place = await self._shares.enter("questions", self._most_questions, who=who, known=known)
        try:
            async with self._turn():
                await self._passed(scope, limited, passed)
        finally:
            self._shares.leave(place)

    async def _arrived(self, receive: Receive, who: str) -> _Whole:
        """A body, before its request takes a place: one that never comes keeps nobody of its address from signing in."""
        place = await self._shares.enter("bodies", _SHARE_OF_BODIES, who=who, known=False)
        try:
            return await _Whole(receive).read()
        finally:
            self._shares.leave(place)

    def _to_its_end(self, request: Request, receive: Receive, began: Caller) -> Receive:
        """A body that is read as it comes is refused at its end, where its sender may do something else by then."""

        async def received() -> Message:
            message = await receive()
            if began.signed_in and message["type"] == "http.request" and not message.get("more_body", False):
                request.state.caller = await run_in_threadpool(identify, self.hub, request)
                person_of(request)
                await run_in_threadpool(check_unchanged, self.hub, began)
            return message

        return received

    async def _directly(self, request: Request, direct: Direct, given: tuple[Any, ...], receive: Receive, send: Send) -> None:
        """One step in one thread, and what it answers."""
        token = hash(request.headers["authorization"])
        place = await self._shares.enter(
            "questions", self._most_questions, who=self._whose.get(token, str(token)), known=token in self._whose
        )
        try:
            async with self._turn():
                response = await asyncio.wrap_future(self._threads.submit(self._answered, request, direct, given))
        finally:
            self._shares.leave(place)
        await response(request.scope, receive, send)

    def _answered(self, request: Request, direct: Direct, given: tuple[Any, ...]) -> Response:
        try:
            request.state.caller = caller = identify(self.hub, request)
            if len(self._whose) > _TOKENS:
                self._whose.clear()
            self._whose[hash(request.headers["authorization"])] = caller.id
            request.state.ticked = True
            check_action(caller, direct.action)
            return direct.answer(self.hub, caller, *given)
        except CloisterError as error:
            return refusal(request, error)
        except Exception as error:
            return failed(request, error)

    def _until_answered(self, place: _Place, send: Send) -> Send:
        """The place is another's as soon as the answer begins: a stream of events holds none."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._shares.leave(place)
            await send(message)

        return sent

    def _turn(self) -> asyncio.Semaphore:
        """The door of this loop's questions; a process that serves has one loop."""
        loop = asyncio.get_running_loop()
        return self._turns.setdefault(loop, asyncio.Semaphore(max(self.hub.settings.asking, 1)))

    async def _passed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What nobody foresaw ends here, inside the headers, and shows nothing of itself."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            body = receive.body() if isinstance(receive, _Whole) and scope["method"] == "POST" else b""
            await sent_once(self.app, self.hub, scope, receive, body, watched)
        except ClientDisconnect:  # whoever asked is gone: there is nobody to tell
            return
        except Exception as error:
            response = failed(Request(scope), error)
            if not begun:
                await response(scope, receive, send)

    def _check_host(self, request: Request) -> None:
        """Refuse a request that calls the hub by a name that it does not have."""
        named = request.headers.getlist("host")
        if len(named) > 1 or (named and not (len(named[0]) <= _SHORT_NAME and self._known_host(named[0]))):
            raise _Misdirected

    def _check_origin(self, request: Request) -> None:
        """Refuse what comes from another site; before it, an address that no route may read."""
        if b"%00" in request.scope["query_string"]:
            why = "its address holds a character of code 0"
            raise InvalidParameter("The request is invalid", why=why, instead="the address without %00")
        if request.method in _SAFE:
            return
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        foreign = site not in (None, "same-origin", "none")
        if origin is not None and origin != self.hub.settings.origin:
            # without an address, nothing says how people reach it; the name was looked at in `_check_host`
            here = f"{request.scope['scheme']}://{request.headers.get('host', '')}"
            foreign = foreign or bool(self.hub.settings.address) or origin != here
        if foreign:
            why, instead = "it comes from another site", "the hub's own pages, or an API token"
            raise AccessDenied("The request was denied", why=why, instead=instead)

    def _limited(self, request: Request, receive: Receive) -> Receive:
        """The body in pieces, up to the limit; what is read as it comes has a limit of its own."""
        if request.scope["path"].startswith(_UNLIMITED):  # never `request.url`, which is made of what the client calls the host
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
                    raise HTTPException(413)
            return message

        return counted

    def _with_headers(self, send: Send, path: str) -> Send:
        wanted = self._headers if path.startswith("/static/") else self._private

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = message.get("headers", [])
                named = {name.lower() for name, _ in given}
                message["headers"] = [*given, *[each for each in wanted if each[0] not in named]]
            await send(message)

        return sent

    def _naming_left_out(self, send: Send, caller: Caller) -> Send:
        """A program is told by a header which rows a list went on without; a page says it itself."""

        async def sent(message: Message) -> None:
            names = left_out_for(caller) if message["type"] == "http.response.start" else []
            if names:
                header = (b"cloister-left-out", "; ".join(names).encode("ascii", "replace"))
                message["headers"] = [*message.get("headers", []), header]
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
                # the route of a request, never its address: that may hold a name
                route: str = getattr(scope.get("route"), "path", "(none)")
                if scope["path"].startswith(_API) and route.startswith("/") and not route.startswith(_API):
                    route = _API + route  # a router knows only what stands behind its prefix
                method = scope["method"] if scope["method"] in _METHODS else "(other)"
                self.hub.meter.request(route, method, message["status"], time.perf_counter() - begun)
            await send(message)

        return counted

    def _address(self, request: Request) -> tuple[str, bool]:
        """The client's address; that of a proxy's client where the proxy is believed. Lines of the header are one list. And
        whether somebody passed the request on who is none of the proxies that are believed: it may come from anywhere."""
        peer = request.client.host if request.client else ""
        known = _ip(peer)
        if known is None or not self._believed(known):
            passed_on = not _FORWARDING.isdisjoint(dict(request.scope["headers"]))
            return (peer if known is None else str(known)), passed_on
        told = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        for each in reversed([part.strip() for part in told if part.strip()]):
            address = _ip(each)
            if address is None:
                break
            if not self._believed(address):
                return str(address), False
        return str(known), False

    def _believed(self, address: _IP) -> bool:
        return any(address in network for network in self._proxies)


class _Shares:
    """How many requests of each person are worked on: who has a share's fill waits here, and holds no thread and no turn.

    Beside others, a person has half a share, and where they wait for themselves a place rests twice as long as it was worked in:
    a flood of short requests would take the processor as one of long ones does. Alone, they wait for nothing but their share.
    Work is counted in whole ticks, so that a rest says no more of it than the moment of its answer does.
    """

    def __init__(self, tick: float) -> None:
        self._tick = tick
        self._held: dict[_Key, int] = {}
        self._waiting: dict[_Key, deque[asyncio.Future[None]]] = {}
        self._last: list[tuple[str, float]] = []
        """The last two people who came, and when."""

    async def enter(self, kind: str, most: int, *, who: str, known: bool) -> _Place:
        """A place, as soon as there is one. An address that is not `known` may be of somebody who is here already, so it makes
        no crowd; or of many people, so it has a whole share."""
        loop = asyncio.get_running_loop()
        key, now = (loop, kind, who, most, known), loop.time()
        if known:
            self._last = [(who, now), *[each for each in self._last if each[0] != who][:1]]
        held = self._held.get(key, 0)
        if held < self._most(key):
            self._held[key] = held + 1
            return [(key, now)]
        called = loop.create_future()
        self._waiting.setdefault(key, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if called.done() and not called.cancelled():  # it was given just now
                self._hand_on(key)
            raise
        return [(key, loop.time())]

    def leave(self, place: _Place) -> None:
        """The next who waits has it; nothing happens where it was left before."""
        if not place:
            return
        key, begun = place.pop()
        waiting = self._waiting.get(key)
        if waiting and self._crowded(key) and any(not each.done() for each in waiting):
            worked = math.ceil((key[0].time() - begun) / self._tick) * self._tick
            key[0].call_later(min(_RESTS * worked, _LONGEST_REST), self._hand_on, key)
        else:
            self._hand_on(key)

    def _crowded(self, key: _Key) -> bool:
        """Whether a person is not alone: somebody else was here just now."""
        if key[4]:
            for who, seen in self._last:
                if who != key[2] and key[0].time() - seen < _JUST_NOW:
                    return True
        return False

    def _most(self, key: _Key) -> int:
        return max(1, key[3] // 2) if self._crowded(key) else key[3]

    def _hand_on(self, key: _Key) -> None:
        """One place is free: those who wait have what is free now."""
        held, waiting = self._held.pop(key) - 1, self._waiting.pop(key, deque())
        while waiting and held < self._most(key):
            called = waiting.popleft()
            if not called.done():
                called.set_result(None)
                held += 1
        if held:
            self._held[key] = held
        if waiting:
            self._waiting[key] = waiting


def _share_of(method: str, path: str) -> tuple[str, int]:
    """Which share of a person a request takes a place of, and how many places that has."""
    if path.startswith("/together/"):
        return "sites", _SHARE_OF_SITES
    if path.startswith(_UNLIMITED[:2]):
        return "files", _SHARE_OF_FILES
    return ("reads", _SHARE) if method == "GET" else ("orders", _SHARE_OF_ORDERS)


class _Whole:
    """A body that was read to its end, to be received again; what it was refused with is raised again to who reads it."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._messages: list[Message] = []
        self._refused: Exception | None = None
        self._next = 0

    async def read(self) -> _Whole:
        """To its end."""
        try:
            while not self._messages or self._messages[-1].get("more_body", False):
                self._messages.append(await self._receive())
        except Exception as error:
            self._refused = error
        return self

    def body(self) -> bytes:
        """What has come."""
        return b"".join([message.get("body", b"") for message in self._messages])

    async def __call__(self) -> Message:
        """The next message, as it came."""
        if self._next < len(self._messages):
            self._next += 1
            return self._messages[self._next - 1]
        if self._refused is not None:
            raise self._refused
        return await self._receive()


def _bodiless(send: Send) -> Send:
    """What HEAD asks for: all that GET would answer, but its body."""

    async def sent(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return sent


def _is_plain(request: Request) -> bool:
    """Whether a program posts a short text of JSON with an API token: short, since nobody knows yet whose it is."""
    headers = request.headers
    length = headers.get("content-length", "")
    return (
        request.method == "POST"
        and length.isdigit()
        and int(length) <= _SHORT
        and headers.get("content-type", "") == "application/json"
        and headers.get("authorization", "")[:7].lower() == "bearer "
    )


def _ip(text: str) -> _IP | None:
    """An address, None where it is none; one of IPv4 inside IPv6 is itself."""
    return _read_ip(text) if len(text) <= _SHORT_NAME else None  # what is kept is short


@functools.lru_cache(maxsize=4096)
def _read_ip(text: str) -> _IP | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


class _Misdirected(Exception):
    """The request was meant for another host, or for several."""


class _TooLarge(Exception):
    """The announced body is over the limit."""
