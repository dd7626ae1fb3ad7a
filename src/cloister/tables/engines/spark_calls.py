"""The calls to a Spark Connect server: where they go, when they end, and what of the answers is taken.

gRPC's calls have no end of their own, and pyspark sets none. Here a short call ends after half a minute; a long one is tied to
the thread that asks, and `Asking.stop` ends it on this side, so that a limit of time holds whether the server answers or not.
Every five minutes a silent connection is looked at, which is as often as a server allows.

What pyspark would unpickle of an answer (accumulators of functions written in Python, of which we have none) is taken out before
it gets there: a server must not choose what this process loads.
"""

from __future__ import annotations

import atexit
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import grpc
import pyspark.sql.connect.proto as messages
from pyspark.sql.connect.client.core import ChannelBuilder
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
from pyspark.sql.connect.session import SparkSession

from cloister.errors import EngineError
from cloister.tables.engines.engine import fresh_token

if TYPE_CHECKING:
    from cloister.tables.engines.spark_connection import SparkPlace

_GREETING = 20.0
_SHORT = 30.0
_INTERRUPT = 5.0
_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel waits for what an old one failed at
    ("grpc.keepalive_time_ms", 301_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]
_NO_TOKEN = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)


_Every: Any = (grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor, grpc.StreamUnaryClientInterceptor)

_OPEN: set[Closing] = set()
"""Channels that are open: they are closed before the interpreter goes, which a living channel brings down."""
_GONE: SimpleQueue[Closing] = SimpleQueue()
"""Channels of sessions that nobody holds any more. The collector may come by while its thread is inside of gRPC, with locks that
closing needs: so it puts them here, which takes none, and a thread of its own closes them."""
_AT_EXIT = 5.0


class Closing(*_Every):  # type: ignore[misc]
    """A channel that is closed while no call of it begins: gRPC brings down the process when a call begins on a closed channel,
    and pyspark releases answers in threads of its own, for as long as it likes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._beginning, self._open = 0, True
        self.client: Any = None

    def _begun(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        with self._changed:
            if not self._open:
                raise EngineError("The engine could not answer", why="its connection is closed", instead="a new session")
            self._beginning += 1
        try:
            return continuation(details, request)
        finally:
            with self._changed:
                self._beginning -= 1
                self._changed.notify_all()

    intercept_unary_unary = intercept_unary_stream = intercept_stream_unary = _begun

    def close(self, within: float = 2 * _SHORT) -> None:
        """Once no call begins any more. A short call is over after half a minute; one that takes longer has begun long ago."""
        with self._changed:
            self._open = False
            self._changed.wait_for(lambda: not self._beginning, within)
        _OPEN.discard(self)
        with suppress(Exception):
            atexit.unregister(self.client._cleanup_ml)  # it would keep the client for the life of the process
            self.client._channel.close()  # the client's own close() would wait for calls that the server may never answer


class ConnectSession(SparkSession):  # type: ignore[misc]
    """A session that closes its own channel, and nothing else, when it is collected.

    pyspark's own ends the threads that release answers for every session of the process, in whatever thread the collector comes
    by, and waits there for calls that a server may never answer.
    """

    def __init__(self, connection: ChannelBuilder) -> None:
        _closer()
        self.closing = Closing()
        connection.add_interceptor(self.closing)
        super().__init__(connection)
        self.closing.client = self.client
        _OPEN.add(self.closing)

    def __del__(self) -> None:
        with suppress(Exception):
            _GONE.put(self.closing)


@cache
def _closer() -> threading.Thread:
    def run() -> None:
        while True:
            _GONE.get().close()

    def at_exit() -> None:
        end = time.monotonic() + _AT_EXIT
        for each in list(_OPEN):
            each.close(max(0.0, end - time.monotonic()))

    atexit.register(at_exit)
    thread = threading.Thread(target=run, name="cloister-spark", daemon=True)
    thread.start()
    return thread


class Asking:
    """What one thread asks at the moment. Once it is stopped, no further call of it begins."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: Any = None
        self.stopped = False

    def stop(self) -> None:
        """Ends the call on this side; anyone who waits for it gets a failure."""
        with self._lock:
            self.stopped = True
            call = self._call
        if call is not None:
            call.cancel()

    def begin(self, start: Callable[[], Any]) -> Any:
        """Starts a call, unless it was stopped."""
        with self._lock:
            if self.stopped:
                raise EngineError("The engine could not answer", why="it was stopped", instead="the same query once more")
            self._call = start()
            return self._call


class Calls(*_Every):  # type: ignore[misc]
    """Every call of a connection passes here."""

    def __init__(self) -> None:
        self._now = threading.local()

    @contextmanager
    def asking(self) -> Iterator[Asking]:
        """Within it, the long calls of this thread can be stopped by another."""
        before = getattr(self._now, "asking", None)
        self._now.asking = asking = Asking()
        try:
            yield asking
        finally:
            self._now.asking = before

    def intercept_unary_unary(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """A short call."""
        return continuation(_within(details, _INTERRUPT if details.method.endswith("/Interrupt") else _SHORT), request)

    def intercept_stream_unary(self, continuation: Callable[..., Any], details: Any, requests: Any) -> Any:
        """Rows of a public table on their way to the server."""
        return continuation(_within(details, 10 * _SHORT), requests)

    def intercept_unary_stream(self, continuation: Callable[..., Any], details: Any, request: Any) -> Any:
        """A long call."""
        asking = getattr(self._now, "asking", None)
        call = continuation(details, request) if asking is None else asking.begin(lambda: continuation(details, request))
        return _without_accumulators(call)


def _without_accumulators(call: Any) -> Iterator[Any]:
    for answer in call:
        answer.ClearField("observed_metrics")
        yield answer


def _within(details: Any, seconds: float) -> Any:
    """The same call with an end; one that has an end keeps it."""
    return details._replace(timeout=seconds if details.timeout is None else details.timeout)


class PlaceChannel(ChannelBuilder):  # type: ignore[misc]
    """The way to a place: by TLS with the host's own name, though the address is the one that was looked at."""

    def __init__(self, place: SparkPlace, calls: Calls, token: str | None = None) -> None:
        name = f"[{place.host}]" if ":" in place.host else place.host
        super().__init__(
            channelOptions=[
                *_OPTIONS,
                ("grpc.default_authority", f"{name}:{place.port}"),
                *([("grpc.ssl_target_name_override", place.host)] if place.tls and place.address else []),
            ],
            params={"user_id": place.user, "user_agent": "cloister"},
        )
        self._place = place
        self._token = place.token if token is None else token
        self.add_interceptor(calls)

    @property
    def host(self) -> str:
        """As it was written."""
        return str(self._place.host)

    @property
    def token(self) -> str | None:
        """Never one of the environment."""
        return self._token or None

    @property
    def target(self) -> str:
        """The address that was looked at, or the host."""
        place = self._place
        where = place.address or place.host
        if ":" in where:
            return f"ipv6:[{where}]:{place.port}"
        return f"ipv4:{where}:{place.port}" if where.replace(".", "").isdigit() else f"dns:///{where}:{place.port}"

    def toChannel(self) -> Any:  # noqa: N802 - pyspark's name
        """The channel, with the token in each call."""
        if not self._place.tls and not self._token:
            return self._insecure_channel(self.target)
        if self._place.tls:
            credentials = grpc.ssl_channel_credentials(root_certificates=self._place.authorities)
        else:
            credentials = grpc.local_channel_credentials()  # which refuses to leave this machine
        if self._token:
            credentials = grpc.composite_channel_credentials(credentials, grpc.access_token_call_credentials(self._token))
        return self._secure_channel(self.target, credentials)


def greeted(place: SparkPlace, calls: Calls, token: str) -> bool | None:
    """Whether the server takes a token; None where no Spark could be reached: nothing answers there, or another than the
    certificate's owner."""
    session, user = str(uuid.UUID(hex=fresh_token(16), version=4)), messages.UserContext(user_id=place.user)
    question = messages.AnalyzePlanRequest(session_id=session, user_context=user)
    question.spark_version.SetInParent()
    with PlaceChannel(place, calls, token).toChannel() as channel:
        stub = SparkConnectServiceStub(channel)
        try:
            stub.AnalyzePlan(question, timeout=_GREETING)
        except grpc.RpcError as error:
            return False if error.code() in _NO_TOKEN else None
        with suppress(grpc.RpcError):
            stub.ReleaseSession(messages.ReleaseSessionRequest(session_id=session, user_context=user))
        return True
