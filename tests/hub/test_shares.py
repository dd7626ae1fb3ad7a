"""One person's requests leave room for everybody: a share is taken before a thread and before a turn, and jobs take turns."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from cloister.hub.middleware import _SHARE, _SHARE_OF_FILES, _SHARE_OF_ORDERS, Middleware
from cloister.hub.platform.jobs.queue import _MOST_WAITING, claim, finish, submit
from cloister.hub.problems import TooMany
from cloister.hub.records.jobs import Job
from cloister.hub.service import JobType
from tests.hub.house import House, Visitor


class Slow:
    """An application in which every request waits until it may end."""

    def __init__(self) -> None:
        self.inside: Counter[str] = Counter()
        self.may_end = asyncio.Event()
        self.streams = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        who = scope["state"]["caller"].email or "nobody"
        self.inside[who] += 1
        if self.streams:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await self.may_end.wait()
        if not self.streams:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def asked(
    app: Middleware, path: str, visitor: Visitor | None, method: str = "GET", body: Callable[[], Awaitable[Any]] | None = None
) -> asyncio.Task[None]:
    """A request on its way."""
    headers = [(b"host", app.hub.settings.origin.rpartition("/")[2].encode())]
    if visitor is not None:
        headers += [(name.lower().encode(), value.encode()) for name, value in visitor.bearer.items()]
    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}
    scope |= {"scheme": "http", "server": ("127.0.0.1", 80), "http_version": "1.1", "raw_path": path.encode()}

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        del message

    return asyncio.create_task(app(scope, body or receive, send))  # type: ignore[arg-type]


def test_a_body_that_never_comes_keeps_nobody_of_its_address_from_signing_in(house: House) -> None:
    """Its request takes a place only when the whole of it is there."""

    async def play() -> None:
        slow, ends = Slow(), asyncio.Event()
        app = Middleware(slow, house.hub)

        async def never() -> Any:
            await ends.wait()
            return {"type": "http.request", "body": b"", "more_body": False}

        stuck = [asked(app, "/login", None, "POST", never) for _ in range(4 * _SHARE_OF_ORDERS)]
        await asyncio.sleep(0.05)
        other = asked(app, "/login", None, "POST")
        await settled(slow, {"nobody": 1})
        slow.may_end.set()
        await other
        ends.set()
        await asyncio.gather(*stuck)

    asyncio.run(play())


async def settled(slow: Slow, wanted: dict[str, int]) -> None:
    """Until as many are inside, and no further one comes."""
    async with asyncio.timeout(60):
        while any(slow.inside[who] < number for who, number in wanted.items()):
            await asyncio.sleep(0.01)
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert dict(slow.inside) == wanted


@pytest.mark.parametrize(
    ("method", "path", "share"),
    [
        ("GET", "/datasets", _SHARE),
        ("POST", "/orders", _SHARE_OF_ORDERS),
        ("POST", "/uploads", _SHARE_OF_FILES),
        ("POST", "/ask", 2),
    ],
)
def test_one_persons_requests_wait_for_one_another_and_nobody_for_them(house: House, method: str, path: str, share: int) -> None:
    ada, bob = house.person("owner", email="ada@example.org"), house.person("analyst", email="bob@example.org")

    async def play() -> None:
        slow = Slow()
        app = Middleware(slow, house.hub)
        flood = [asked(app, path, ada, method) for _ in range(45)]
        await settled(slow, {"ada@example.org": share})
        others = [asked(app, path, bob, method), asked(app, "/healthz", None)]
        await settled(slow, {"ada@example.org": share, "bob@example.org": 1, "nobody": 1})
        gone = [each for each in flood if not each.done()][-3:]
        for each in gone:  # whoever goes away while they wait leaves no place taken
            each.cancel()
        slow.may_end.set()
        await asyncio.gather(*flood, *others, return_exceptions=True)
        assert slow.inside["ada@example.org"] == 42
        async with asyncio.timeout(60):
            while app._shares._held:  # a place may rest a moment longer than whoever had it stays
                await asyncio.sleep(0.01)
        assert not app._shares._waiting

    asyncio.run(play())


def test_many_sites_behind_one_address_wait_for_messages_at_once(house: House) -> None:
    ada = house.person("owner", email="ada@example.org")

    async def play() -> None:
        slow = Slow()
        app = Middleware(slow, house.hub)
        polls = [asked(app, "/together/call", None, "POST") for _ in range(40)]
        await settled(slow, {"nobody": 40})
        reads = [asked(app, "/login", None) for _ in range(_SHARE + 2)]
        beside = asked(app, "/datasets", ada)
        await settled(slow, {"nobody": 40 + _SHARE, "ada@example.org": 1})  # who is not known has the whole share beside others
        slow.may_end.set()
        await asyncio.gather(*polls, *reads, beside)

    asyncio.run(play())


def test_a_stream_of_events_holds_no_place(house: House) -> None:
    ada = house.person("owner", email="ada@example.org")

    async def play() -> None:
        slow = Slow()
        slow.streams = True
        app = Middleware(slow, house.hub)
        flood = [asked(app, "/streams/a/events", ada) for _ in range(3 * _SHARE)]
        await settled(slow, {"ada@example.org": 3 * _SHARE})
        slow.may_end.set()
        await asyncio.gather(*flood)

    asyncio.run(play())


@pytest.fixture
def queue(house: House) -> House:
    house.hub.jobs["nothing"] = JobType(kind="nothing", title="Nothing", run=lambda *_: {})
    return house


def put(house: House, who: Visitor) -> str:
    house.clock.move(seconds=1)
    with house.hub.database.begin() as db:
        return submit(house.hub, db, who.caller, "nothing", {})


def test_jobs_of_several_people_take_turns(queue: House) -> None:
    ada, bob, eve = (queue.person("analyst", email=f"{name}@example.org") for name in ("ada", "bob", "eve"))
    for _ in range(9):
        put(queue, ada)
    put(queue, bob)
    put(queue, bob)
    put(queue, eve)
    names = {each.caller.id: name for name, each in (("ada", ada), ("bob", bob), ("eve", eve))}
    began = []
    for _ in range(12):
        queue.clock.move(seconds=1)
        found = claim(queue.hub, "worker", timedelta(minutes=1))
        assert found is not None
        began.append(names[found.person])
        assert finish(queue.hub, found, "done", result={})
    assert began[:6] == ["ada", "bob", "eve", "ada", "bob", "ada"]
    assert began[6:] == ["ada"] * 6


def test_a_persons_jobs_that_wait_have_a_limit(queue: House) -> None:
    ada, bob = queue.person("analyst", email="ada@example.org"), queue.person("analyst", email="bob@example.org")
    for _ in range(_MOST_WAITING):
        put(queue, ada)
    with pytest.raises(TooMany, match=f"{_MOST_WAITING} of yours wait already"):
        put(queue, ada)
    assert put(queue, bob)
    with queue.hub.database.reading() as db:
        assert db.query(Job).count() == _MOST_WAITING + 1
