"""A hub as a server: pages and API by uvicorn, the PostgreSQL front beside them, and an orderly end within ten seconds.

TLS is asked for by `certificate` and `certificate_key`; with `client_authority` a client without a certificate of that authority
is refused in the handshake. A hub that was set up with grave faults does not start.
"""

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cloister.errors import InvalidParameter
from cloister.hub.app import make_app
from cloister.hub.checking import weaknesses
from cloister.hub.hub import Hub
from cloister.hub.settings import Settings

_LOG = logging.getLogger("cloister.hub")
_BACKLOG = 2048
_SWITCH = 0.001
"""Seconds after which a thread lets another one compute: five times as often as Python does by itself, since a short answer waits
so long at each of its waits for a disk or an engine while somebody's long work computes."""
_ENDS = 9
_ANSWERS = 4
"""Seconds that a process has to end once it was told to, and those of them that open requests have."""
_COLLECT = (20_000, 20, 20)
"""After so many new objects the collector looks at the youngest, and so on: one question makes some thousands."""


def check(settings: Settings) -> None:
    """Refuse to start with a setting that is wrong."""
    grave = [weak for weak in weaknesses(settings) if weak.grave]
    if grave:
        first = grave[0]
        raise InvalidParameter(f"The hub was not started: {first.name}", why=first.why, instead=first.instead)


def bound(host: str, port: int, what: str, instead: str) -> list[socket.socket]:
    """Sockets at every address that the host has here, that nobody else can take any more; they don't listen yet. `what` was not
    started where there are none, and what to do `instead`.

    >>> [each] = bound("127.0.0.1", 0, "The example was not started", "port = 8766")
    >>> each.getsockname()[0], each.close()
    ('127.0.0.1', None)
    """
    with contextlib.ExitStack() as undone:
        found: list[socket.socket] = []
        try:
            told = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, address in dict.fromkeys((each[0], each[4]) for each in told):
                if (made := _bound(family, address)) is not None:
                    found.append(undone.enter_context(made))
        except (socket.gaierror, UnicodeError):
            found = []
        except (OSError, OverflowError):
            why = f"port {port} of {host} is taken, or may not be listened on"
            raise InvalidParameter(what, why=why, instead=instead) from None
        if not found:
            every = 'host = "127.0.0.1", or "0.0.0.0" for every address that it has'
            raise InvalidParameter(what, why=f"{host!r} is not an address of this machine", instead=every)
        undone.pop_all()
        return found


def server(hub: Hub) -> uvicorn.Server:
    """The web server of a hub, not yet running."""
    settings = hub.settings
    tls = {}
    if settings.certificate:
        tls = {
            "ssl_certfile": settings.certificate,
            "ssl_keyfile": settings.certificate_key,
            "ssl_ca_certs": settings.client_authority or None,
            "ssl_cert_reqs": ssl.CERT_REQUIRED if settings.client_authority else ssl.CERT_NONE,
        }
    config = uvicorn.Config(
        make_app(hub),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=_BACKLOG,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_ANSWERS,
        limit_concurrency=1000,
        http=Connection,
        **tls,  # type: ignore[arg-type]
    )
    return uvicorn.Server(config)


def serve(hub: Hub, *, ready: Callable[[], None] = lambda: None, at: Sequence[socket.socket] = (), ends: bool = False) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called when connections are taken. `at`: sockets that are bound already. `ends`:
    the process does nothing else, and has ended ten seconds after the signal, whatever still runs in it.
    """
    check(hub.settings)
    web = server(hub)
    started = web.startup

    async def startup(sockets: list[object] | None = None) -> None:
        await started(sockets)  # type: ignore[arg-type]
        if web.started:
            ready()

    web.startup = startup  # type: ignore[method-assign, assignment]
    handle_exit = web.handle_exit

    def told(sig: int, frame: FrameType | None) -> None:
        if ends and hub.ends is None:
            hub.ends = time.monotonic() + _ENDS
            end_by(_ENDS)
        handle_exit(sig, frame)

    web.handle_exit = told  # type: ignore[method-assign]
    settle()
    try:
        with _orderly():
            web.run(sockets=list(at) or None)
    finally:
        gc.unfreeze()  # at the end everything may be looked at again, and let go


def end_by(seconds: float) -> None:
    """End this process in so many seconds, unless it has ended by then.

    A thread can't be stopped from outside: one that is within an engine, or waits for another machine, would hold its process for
    as long as it likes. Ended here it is as if it were killed, which loses nothing: what it charged is written, and what it was
    asked can be asked again.
    """

    def end() -> None:
        running = sorted({each.name for each in threading.enumerate() if each is not threading.current_thread()})
        _LOG.warning("ended after %s seconds, while threads were running: %s", seconds, ", ".join(running))
        os._exit(0)

    last = threading.Timer(seconds, end)
    last.daemon = True
    last.name = "the end"
    last.start()


def settle() -> None:
    """What was loaded by now stays: the collector need not look at it again and again while questions are answered."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    sys.setswitchinterval(_SWITCH)


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Whatever this process writes meanwhile is for its own user. For a process that does nothing else: all its threads have one
    mask.

    >>> with private_files():
    ...     oct(os.umask(0o077))
    '0o77'
    """
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def _bound(family: int, address: tuple[Any, ...]) -> socket.socket | None:
    """None where this machine has no such address, whatever its table of names says."""
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except BaseException as error:
        made.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
            return None
        raise
    return made


@contextlib.contextmanager
def _orderly() -> Iterator[None]:
    """Once it has ended, the web server gives the signal that ended it to whoever handled it before: that must not end us before
    the hub is closed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, lambda *_: None) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with limits: on the time and the length of a request's head, and on silence within its body. By
    itself uvicorn waits for ever for the rest of a request, and holds whatever it is sent meanwhile."""

    head_seconds = 15.0
    silent_seconds = 30.0
    longest_head = 64 * 1024

    _timer: asyncio.TimerHandle | None = None
    _in_head = True
    _head = 0
    """How much has come of a head that has not ended."""

    def connection_made(self, transport: Any) -> None:
        """A head is awaited."""
        super().connection_made(transport)
        self._await(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        """What belongs to a head has a limit."""
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
            if self._head > self.longest_head and not self.transport.is_closing():
                self.transport.close()

    def on_message_begin(self) -> None:
        """The next head begins."""
        super().on_message_begin()
        self._head = 0
        self._in_head = True
        self._await(self.head_seconds)

    def on_headers_complete(self) -> None:
        """The head is here: now the body."""
        self._in_head = False
        self._head = 0
        self._await(self.silent_seconds)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of the body is a sign of life."""
        self._await(self.silent_seconds)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Everything is here."""
        self._rest()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._rest()
        super().connection_lost(exc)

    def _await(self, seconds: float) -> None:
        self._rest()
        self._timer = self.loop.call_later(seconds, self._tired, seconds)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tired(self, seconds: float) -> None:
        if self.flow.read_paused:  # it is us who read slowly
            self._await(seconds)
        elif not self.transport.is_closing():
            self.transport.close()
