"""The listener: who may connect, how many, and how each connection begins and ends.

Everything that waits for a client waits in one event loop with a limit of time; everything that computes runs in threads. So a
slow or hostile client holds up nobody else. Logs name the kind of an event, never what anybody asked or was told.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import ssl
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from cloister.noise import default_random
from cloister.pgwire import protocol
from cloister.pgwire.backend import Backend
from cloister.pgwire.connection import Connection, Limits
from cloister.pgwire.execution import Executor
from cloister.pgwire.failures import Failure, Refused, failure_of
from cloister.pgwire.portals import Portals, Store
from cloister.pgwire.startup import Cancel, Wishes, greet, password
from cloister.pgwire.variables import Variables

_LOG = logging.getLogger(__name__)
_BUFFER = 1 << 18


class _GivenUp(Exception):
    """Somebody who had not signed in yet goes, for somebody who came later."""


def _too_many() -> Refused:
    return Refused("The connection is not allowed", why="there are too many", instead="a later try", code="53300", fatal=True)


@dataclass
class _Person:
    """What all connections of one person share."""

    turns: asyncio.Semaphore
    connections: int = 0


class PostgresFront:
    """The read-only wire of PostgreSQL before a backend.

    `async with PostgresFront(backend, port=5433) as front:` listens until the block ends, on `front.port`.

    >>> import cloister as cl
    >>> from cloister.pgwire import LocalBackend
    >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})
    >>> async def listen(session):
    ...     async with PostgresFront(LocalBackend(session, {"ada": "a-long-token"})) as front:
    ...         return front.port > 0
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     asyncio.run(listen(session))
    True
    """

    def __init__(
        self,
        backend: Backend,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        context: ssl.SSLContext | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._backend, self._host, self._wanted, self._context = backend, host, port, context
        self._limits = limits or Limits()
        self._quick = ThreadPoolExecutor(self._limits.lookers, "pg-look")
        self._logins = ThreadPoolExecutor(self._limits.lookers, "pg-login")
        """Of their own: no query of those who are in keeps others out."""
        self._slow = ThreadPoolExecutor(self._limits.askers, "pg-ask")
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Future[None]] = set()
        self._strangers = Strangers(self._limits.strangers)
        self._open: dict[int, tuple[int, Connection]] = {}
        self._people: dict[str, _Person] = {}
        self._next = 0

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return self._wanted if self._server is None else int(self._server.sockets[0].getsockname()[1])

    @property
    def connections(self) -> int:
        """How many there are, strangers included, and those that have gone while a question of theirs runs."""
        return len(self._tasks) + len(self._closing)

    async def start(self) -> None:
        """Begins to listen."""
        self._server = await asyncio.start_server(self._accept, self._host, self._wanted, limit=_BUFFER)

    async def close(self) -> None:
        """Ends all connections; what runs in threads runs to its end."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._closing:
            await asyncio.wait(self._closing, timeout=self._limits.looking)
        for pool in (self._quick, self._logins, self._slow):
            pool.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._welcome(reader, writer)
        except _GivenUp:
            self._goodbye(writer, _too_many())
        except asyncio.CancelledError:
            self._goodbye(writer, Refused("The connection ends", why="the hub stops", code="57P01", fatal=True))
        except TimeoutError:
            self._goodbye(writer, Refused("The connection ends", why="nothing came for too long", code="57P05", fatal=True))
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            _LOG.debug("a client went without a word")
        except Exception as error:
            if failure_of(error).code == "XX000":
                _LOG.error("a connection failed with %s", type(error).__name__)
            self._goodbye(writer, error)
        finally:
            self._tasks.discard(task)
            writer.close()  # what was written is still sent, but only for so long
            asyncio.get_running_loop().call_later(self._limits.writing, writer.transport.abort)

    def _goodbye(self, writer: asyncio.StreamWriter, error: BaseException) -> None:
        found = failure_of(error)
        fatal = Failure(code=found.code, message=found.message, hint=found.hint, severity="FATAL")
        with suppress(Exception):  # it may be gone
            writer.write(protocol.failed(fatal))

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = str((writer.get_extra_info("peername") or ("",))[0])
        task = asyncio.current_task()
        assert task is not None
        stranger = self._strangers.arrive(address, task)
        if stranger is None:
            raise _too_many()
        executor: Executor | None = None
        try:
            here = self.connections - len(self._strangers.going)
            if here > self._limits.connections and not self._strangers.make_room(stranger):
                raise _too_many()
            async with asyncio.timeout(self._limits.startup):
                found = await greet(reader, writer, self._context, address)
                if isinstance(found, Cancel):
                    self._cancel(found)
                    return
                executor = await self._login(reader, writer, found, address, stranger)
        except asyncio.CancelledError:
            if stranger.given_up:
                raise _GivenUp from None
            raise
        finally:
            self._strangers.leave(stranger, signed_in=executor is not None)
        person = self._people.setdefault(executor.user, _Person(turns=asyncio.Semaphore(self._limits.turns)))
        person.connections += 1
        pools = (self._quick, self._slow)
        connection = Connection(reader, writer, executor, limits=self._limits, pools=pools, turns=person.turns)
        process, secret = self._key()
        self._open[process] = (secret, connection)
        try:
            if person.connections > self._limits.each:
                raise Refused(
                    "The connection is not allowed", why="you have too many", instead="Close one", code="53300", fatal=True
                )
            writer.write(protocol.AUTHENTICATED + protocol.backend_key(process, secret))
            await connection.serve()
        finally:
            del self._open[process]
            closing = asyncio.ensure_future(self._closed(connection, executor, person))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def _closed(self, connection: Connection, executor: Executor, person: _Person) -> None:
        """After what still runs for this connection, its session is closed."""
        connection.work.cancel()
        await connection.work.finished()
        person.connections -= 1
        if not person.connections:
            self._people.pop(executor.user, None)
        await asyncio.get_running_loop().run_in_executor(self._quick, executor.close)

    async def _login(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wishes: Wishes, address: str, stranger: Stranger
    ) -> Executor:
        token = await password(reader, writer)
        stranger.waits = False  # for the client; from here on it is our turn
        loop = asyncio.get_running_loop()
        try:
            session = await loop.run_in_executor(self._logins, self._backend.login, wishes.user, token, address)
        except Exception as error:
            _LOG.info("a log-in was refused with %s", type(error).__name__)
            found = failure_of(error)
            code = "28P01" if found.code == "42501" else found.code
            raise Refused(found.message, instead=found.hint, code=code, fatal=True) from None
        encrypted = "off" if writer.get_extra_info("ssl_object") is None else "on"
        variables = Variables({"session_authorization": wishes.user, "ssl": encrypted})
        store = Store(self._limits.prepared, Portals(self._limits.prepared, self._limits.held))
        executor = Executor(session, variables, store, user=wishes.user, database=wishes.database)
        try:
            variables.start(wishes.settings)
        except Exception:
            await loop.run_in_executor(self._quick, executor.close)
            raise
        return executor

    def _key(self) -> tuple[int, int]:
        self._next = self._next % (2**31 - 2) + 1
        while self._next in self._open:
            self._next += 1
        return self._next, int.from_bytes(default_random().bytes(4), "big")

    def _cancel(self, request: Cancel) -> None:
        """Gives up on what another connection does, for whoever knows its secret."""
        secret, connection = self._open.get(request.process, (0, None))
        same = hmac.compare_digest(secret.to_bytes(4, "big"), request.secret.to_bytes(4, "big"))
        if same and connection is not None:
            connection.work.cancel()


_MOST_KNOWN = 10_000


@dataclass(eq=False)
class Stranger:
    """One of them, and the task that waits for what it says."""

    network: str
    task: asyncio.Task[None]
    known: bool
    waits: bool = True
    """Whether it is the client's turn."""
    given_up: bool = False


class Strangers:
    """So many of them, in the order in which they came. Used in the event loop alone.

    Where there is no more room, the network that has the most strangers gives up its oldest. So one address that opens sockets
    and says nothing takes room from itself, and however many addresses do so, whoever signs in at once gets through: to be the
    oldest, a client must be slower than all that came after it. Networks from which somebody has signed in lately have room of
    their own. Whose token is being looked at is given up for nobody."""

    def __init__(self, most: int) -> None:
        self._most = {False: most, True: max(1, most // 2)}
        self._here: dict[Stranger, None] = {}
        self._known: OrderedDict[str, None] = OrderedDict()
        self.going: set[Stranger] = set()
        """Those who were given up and whose connection is not yet at its end."""

    def __len__(self) -> int:
        return len(self._here)

    def arrive(self, address: str, task: asyncio.Task[None]) -> Stranger | None:
        """One more, for whom another may have to go; None where there is no room, since all are just being looked at."""
        network = network_of(address)
        new = Stranger(network=network, task=task, known=network in self._known)
        alike = [each for each in self._here if each.known == new.known]
        if len(alike) >= self._most[new.known] and not self._give_up(alike):
            return None
        self._here[new] = None
        return new

    def make_room(self, but: Stranger) -> bool:
        """One of them goes for somebody else, whoever it is; False where all are just being looked at."""
        return self._give_up([each for each in self._here if each is not but])

    def leave(self, who: Stranger, *, signed_in: bool) -> None:
        """Somebody is no stranger any more, or gone."""
        self._here.pop(who, None)
        self.going.discard(who)
        if signed_in:
            self._known[who.network] = None
            self._known.move_to_end(who.network)
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)

    def _give_up(self, among: list[Stranger]) -> bool:
        waiting = [each for each in among if each.waits]
        if not waiting:
            return False
        crowds = Counter(each.network for each in waiting)
        most = max(crowds.values())
        oldest = next(each for each in waiting if crowds[each.network] == most)
        oldest.given_up = True
        del self._here[oldest]
        self.going.add(oldest)
        oldest.task.cancel()
        return True


def network_of(address: str) -> str:
    """What one customer has: an address of IPv4, or the /64 that one of IPv6 is in.

    >>> network_of("192.0.2.7"), network_of("::ffff:192.0.2.7"), network_of("2001:db8::1:2:3:4"), network_of("?")
    ('192.0.2.7', '192.0.2.7', '2001:db8::/64', '')
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.IPv6Network((int(found), 64), strict=False))
