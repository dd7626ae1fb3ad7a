"""The hub's end of the wire: a mailbox for each site of a roster. Sites dial out and wait there; nobody dials in to a site.

    POST /together/NAME            Authorization: Cloister base64(a message `poll`, signed by the site's key of the roster)
        its body: the answer to the message that the poll names, if it names one
        200 the oldest message for this site that waits for an answer · 204 there was none for some seconds · 4xx why not

Who a site is follows from its signature under the roster, not from the connection: TLS protects nobody from the hub. A message
is in the mailbox until it is answered, so that a site that lost the connection, or was stopped, gets the same message again
and answers with the same bytes (`rounds.py`); a poll that comes twice changes nothing. What is not signed is refused before its
body is read, and a body is no longer than the answer that is awaited can be.

The coordinator believes no site either: what `ask` gives was signed by the site in this round. A site that is silent until the
deadline is named, with the last that was wrong when it called.

Several processes of one hub share a `Post`: a message that nobody has answered for a moment lies there too, a process that a site
calls looks there for it, and leaves its answer there for the process that asked, which checks the signature once more.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import queue
import re
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from cloister.crypto import SigningKey, canonical_json
from cloister.errors import (
    AccessDenied,
    BudgetExceeded,
    CloisterError,
    EngineError,
    InvalidDeclaration,
    InvalidParameter,
    MissingBound,
    MissingDependency,
    UnknownColumn,
    UnknownTable,
    UnsupportedQuery,
    stored_name,
)
from cloister.installed import install
from cloister.printable import shown
from cloister.privacy import Guarantee
from cloister.privacy.plain import guarantee_to_plain
from cloister.tables import PrivateTable, PublicTable, Relation
from cloister.tables.engines.engine import Compiled
from cloister.tables.engines.noised import NoisedRequest
from cloister.together.journal import Journal
from cloister.together.messages import Message, RoundRefused, opened, pack, unpack
from cloister.together.plan import Plan, declaration_of
from cloister.together.roster import PROTOCOL, SignedRoster
from cloister.together.rounds import HUB, Round
from cloister.together.shamir import SHARE_BYTES

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from cloister.together.sealed.wire import Pairing

CLOCK = 300
"""Seconds by which the clocks of a site and the hub may differ: an older poll may be one that somebody kept."""
WAIT = 25.0
"""Seconds after which a poll ends that nothing came for: most proxies let a connection be silent for half a minute."""
CALLS = 8
"""Calls of one site at a time: one, and those of connections that broke before their poll ended. More would leave no room for
the other sites."""
LOOK = 0.25
"""Seconds between two looks into the `Post`, and those for which a message waits for a call to this process alone."""
QUICK, LINGERS = 0.02, 2.0
"""Seconds between the first looks for an answer, which double until they are `LOOK`; and those for which a process that found a
new message left by others looks as often: a fit over sites asks them dozens of times, each as soon as the last is answered."""
_TELL = 15.0
"""Seconds after which other processes are told again when a party called."""
_SMALL = 1 << 16
"""Bytes of an answer that is no part of a round."""
_ERRORS = {
    stored_name(kind("")): kind
    for kind in (
        AccessDenied,
        BudgetExceeded,
        EngineError,
        InvalidDeclaration,
        InvalidParameter,
        MissingBound,
        UnknownColumn,
        UnknownTable,
        UnsupportedQuery,
    )
}
"""The refusals of a site that are shown as its own."""


@dataclass(kw_only=True)
class Presence:
    """What a hub knows of a site: when it last called, and what was wrong then."""

    seen: float = 0.0
    problem: str = ""

    def __str__(self) -> str:
        if not self.seen:
            return self.problem or "it never called"
        at = datetime.fromtimestamp(self.seen, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"it last called at {at}" + (f"; then {self.problem}" if self.problem else "")


@dataclass(eq=False, kw_only=True)
class Letter:
    """A message that waits for its answer until `ends`, by the clock. `most`: bytes of an answer."""

    name: str
    message: bytes
    round: str
    most: int
    ends: float
    since: float = field(default_factory=time.time)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        self.digest = hashlib.sha256(self.message).hexdigest()


@dataclass(eq=False, kw_only=True)
class _Waiting(Letter):
    answers: queue.SimpleQueue[tuple[Message, bytes]]


class Post(Protocol):
    """Where the processes of one hub leave messages to the same parties for one another, and the answers."""

    @property
    def patience(self) -> float:
        """Seconds for which a message waits for a call to this process, before it is left: none where nobody calls it."""

    def leave(self, letters: Iterable[Letter]) -> Mapping[str, str]:
        """Messages that parties may fetch elsewhere: by the party's name, what this letter is called from now on."""

    def remove(self, letters: Iterable[str]) -> None:
        """They wait for nothing any more."""

    def answers(self, letters: Iterable[str]) -> list[tuple[str, bytes]]:
        """Those of letters that are there, by the party's name."""

    def waiting(self) -> list[tuple[str, str, float]]:
        """Whose answer to what is awaited since when, the oldest first: name and digest."""

    def letter(self, name: str, digest: str) -> Letter | None:
        """A message that still waits for its answer."""

    def answer(self, name: str, digest: str, data: bytes) -> None:
        """For everybody who waits for the answer to this message. Where nobody does, nothing is kept."""

    def tell(self, name: str, presence: Presence) -> None:
        """When a party called this process."""

    def told(self) -> Mapping[str, Presence]:
        """When each party last called one of the processes, as far as they told."""


@dataclass
class _Box:
    key: bytes
    presence: Presence = field(default_factory=Presence)
    waiting: OrderedDict[str, list[_Waiting]] = field(default_factory=OrderedDict)
    """By the digest of the message: several may wait for the answer to one."""
    polls: set[Callable[[], object]] = field(default_factory=set)
    calls: int = 0
    left: dict[str, float] = field(default_factory=dict)
    """By their digests, since when messages wait that any process left, as the last look found them."""
    told: Presence = field(default_factory=Presence)
    """What other processes know of it from this one."""


class Mailboxes:
    """The hub's end, for any number of questions at once: a mailbox for each party.

    `signed`: who agreed to be served, by their keys: the sites of a roster, or a hub's key holder. `deadline` is how many seconds
    a party may take for one step, and `reading` for one that reads rows (None: as many). `app` is the web application, for a
    server that there is already; `serving` starts one. `post` makes the `Post` of the parties with this digest, where several
    processes serve them; `journal` what is kept of the round with this id, where one who was stopped is to go on with it.
    """

    party: ClassVar[str] = "site"
    """What those who call are named in messages."""
    command: ClassVar[str] = "site"
    """And what runs one."""

    def __init__(
        self,
        key: SigningKey,
        signed: SignedRoster | Pairing,
        *,
        deadline: float = 60.0,
        reading: float | None = None,
        wait: float = WAIT,
        post: Callable[[str], Post] | None = None,
        journal: Callable[[str], Journal] | None = None,
    ) -> None:
        signed.check()
        if signed.roster.hub != key.public:
            raise InvalidParameter("key= is invalid", why="it is not the hub's key of the roster", instead="the key of the hub")
        self.key, self.signed, self.deadline, self.reading, self.wait = key, signed, deadline, reading, wait
        self._boxes = {name: _Box(public) for name, public in signed.roster.sites.items()}
        self._lock = threading.Lock()
        self._ends = False
        self._post, self._looked, self._found = post and post(signed.roster.digest), -LOOK, -LINGERS
        self._left, self.journal = set[str](), journal
        self._roster = pack("roster", "", HUB, key, canonical_json(signed.plain()).encode())

    @property
    def presence(self) -> Mapping[str, Presence]:
        """When each site last called, and what was wrong."""
        told: Mapping[str, Presence] = {}
        if self._post is not None:
            with contextlib.suppress(CloisterError):
                told = self._post.told()
        known = {name: (box.presence, told.get(name, box.presence)) for name, box in self._boxes.items()}
        latest = time.time() + CLOCK  # what is later was told before the clock was set back
        return {
            name: max(both, key=lambda each: (each.seen <= latest, each.seen, bool(each.problem))) for name, both in known.items()
        }

    @property
    def awaited(self) -> Mapping[str, list[float]]:
        """Since when each party has a message that it has not answered, the oldest first."""
        found: dict[str, dict[str, float]] = {name: {} for name in self._boxes}
        with contextlib.suppress(CloisterError):  # what is asked here is known all the same
            for name, digest, since in [] if self._post is None else self._post.waiting():
                found[name].setdefault(digest, since)
        with self._lock:
            for name, box in self._boxes.items():
                found[name] |= {digest: each[0].since for digest, each in box.waiting.items()}
        return {name: sorted(each.values()) for name, each in found.items()}

    def ask(
        self, messages: Mapping[str, bytes], round_id: str, most: int = _SMALL, reads: bool = False
    ) -> Generator[tuple[str, Message, bytes]]:
        """Brings each site its message, and gives the answers as they come, until all are there or the deadline is over."""
        answers: queue.SimpleQueue[tuple[Message, bytes]] = queue.SimpleQueue()
        seconds = self._seconds(reads)
        told = {"round": round_id, "most": most, "ends": time.time() + seconds, "answers": answers}
        asked = [_Waiting(name=name, message=message, **told) for name, message in messages.items()]  # type: ignore[arg-type]
        ends, awaited, left = time.monotonic() + seconds, {each.name: each for each in asked}, dict[str, str]()
        look, pause = ends if self._post is None else time.monotonic() + self._post.patience, QUICK
        for each in asked:
            with self._lock:
                self._boxes[each.name].waiting.setdefault(each.digest, []).append(each)
        self._notify(self._boxes[each.name] for each in asked)
        try:
            while awaited:
                if self._post is not None and time.monotonic() >= look:
                    with contextlib.suppress(CloisterError):  # a database that is away: those who call here answer all the same
                        self._look_for_answers(self._post, awaited, left)
                    look, pause = time.monotonic() + pause, min(2 * pause, LOOK)
                try:
                    found, data = answers.get(timeout=max(0.0, min(ends, look) - time.monotonic()))
                except queue.Empty:
                    if time.monotonic() >= ends:
                        return
                    continue
                if awaited.pop(found.sender, None) is not None:
                    self._remove(left.pop(found.sender, ""))
                    yield found.sender, found, data
        finally:
            with self._lock:
                for each in asked:
                    waiting = self._boxes[each.name].waiting
                    others = [other for other in waiting.get(each.digest, ()) if other is not each]
                    if others:
                        waiting[each.digest] = others
                    else:
                        waiting.pop(each.digest, None)
            self._remove(*left.values())

    def _look_for_answers(self, post: Post, awaited: Mapping[str, _Waiting], left: dict[str, str]) -> None:
        """Leaves what nobody has answered, and takes what others were answered."""
        left.update(post.leave([each for name, each in awaited.items() if name not in left]))
        for name, data in post.answers(left.values()):
            each = awaited[name]
            with contextlib.suppress(RoundRefused):
                if len(data) <= each.most:
                    each.answers.put((unpack(data, None, each.round, {name: self._boxes[name].key}), data))

    def _remove(self, *letters: str) -> None:
        if self._post is not None and any(letters):
            with contextlib.suppress(CloisterError):  # the next one who leaves something sweeps
                self._post.remove(letters)

    def _notify(self, boxes: Iterable[_Box]) -> None:
        with self._lock:
            polls = [notify for box in boxes for notify in box.polls]
        for notify in polls:
            notify()

    def _seconds(self, reads: bool) -> float:
        return self.reading if reads and self.reading else self.deadline

    def silent(self, name: str, reads: bool = False) -> EngineError:
        """Why a site is missing that did not answer, in a step that reads rows or in another."""
        deadline = self._seconds(reads)
        return EngineError(
            f"The {self.party} {name!r} is silent",
            why=f"it did not answer for {deadline:g} seconds; {self.presence[name]}",
            instead=f"the same question when {name!r} is back; its owner sees with cloister {self.command} why it does not call",
        )

    def note_problem(self, name: str, error: CloisterError) -> None:
        """What was wrong with a site's answer, for those who look what is known of it, until it calls again."""
        self._boxes[name].presence.problem = f"it sent an answer that was refused: {error.why}"

    # ── the web application ────────────────────────────────────────────────────────────────────

    @property
    def app(self) -> Starlette:
        """The web application."""
        try:
            from starlette.applications import Starlette
            from starlette.routing import Route
        except ImportError:
            raise MissingDependency(
                "The coordinator was not started", why="its parts are not installed", instead=install("hub")
            ) from None
        return Starlette(routes=[Route("/together/{name:path}", self.polled, methods=["POST"])])

    @contextlib.contextmanager
    def serving(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        certificate: str | Path | None = None,
        certificate_key: str | Path = "",
        app: Any = None,
    ) -> Iterator[str]:
        """Serve in a thread of this process meanwhile; its address. Without a certificate (PEM), on this machine alone. `app`
        stands before the coordinator's own, if it is given."""
        if certificate is None and host not in ("127.0.0.1", "::1", "localhost"):
            raise InvalidParameter(
                f"host={host!r} is invalid",
                why="without TLS only this machine is served",
                instead="certificate=, certificate_key=",
            )
        app = app or self.app
        import uvicorn

        tls = {} if certificate is None else {"ssl_certfile": str(certificate), "ssl_keyfile": str(certificate_key)}
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            timeout_graceful_shutdown=1,
            limit_concurrency=CALLS // 2 * len(self._boxes) + 100,
            **tls,  # type: ignore[arg-type]
        )
        with socket.create_server((host, port), backlog=1024) as at:
            server = uvicorn.Server(config)
            self._ends = False
            thread = threading.Thread(target=server.run, kwargs={"sockets": [at]}, daemon=True)
            thread.start()
            try:
                yield f"{'http' if certificate is None else 'https'}://{host}:{at.getsockname()[1]}"
            finally:
                self._ends = True
                self._notify(self._boxes.values())
                server.should_exit = True
                thread.join()

    def knows(self, name: str, authorization: str) -> bool:
        """Whether a call is signed by the key of its site in this roster: of several rosters one has the caller's."""
        box = self._boxes.get(name)
        try:
            return box is not None and _signed(authorization, name, box.key) is not None
        except (RoundRefused, ValueError):
            return False

    async def polled(self, request: Request) -> Response:
        """A site's call, to be routed here with `name` in its path."""
        name = request.path_params["name"]
        box = self._boxes.get(name)
        if box is None:
            return _problem(404, f"The site {name!r} is not known", "the roster has no such site", "the name in the roster")
        spoken = request.headers.get("cloister-protocol", "")
        if spoken != str(PROTOCOL):
            said = f"a call in its name spoke version {shown(spoken[:20])} of the protocol, and this hub speaks {PROTOCOL}"
            box.presence.problem = box.presence.problem or said  # it is not signed: it takes the place of nothing that is
            return _version(spoken)
        try:
            poll = _signed(request.headers.get("authorization", ""), name, box.key)
            at, joined, answers = poll.fields["at"], str(poll.fields["roster"]), str(poll.fields["answers"])
            if type(at) is not int or abs(at) > 1 << 40:  # "NaN" is far from no time at all
                raise ValueError
        except (RoundRefused, ValueError, KeyError, TypeError):
            return _problem(
                401, "A call was refused", f"it is not signed by the key of {name!r} in the roster", "the site's own key"
            )
        now = time.time()
        if abs(now - at) > CLOCK:
            box.presence.problem = f"its clock was {_apart(at - now)} this one"
            if box.presence.problem != box.told.problem:
                await self._tell(name, box)
            why = f"the clock of {name!r} is {_apart(at - now)} that of the hub"  # the same each minute: it is told once
            return _problem(401, "A call was refused", why, "the right time on both machines")
        if box.calls >= CALLS:
            return _problem(429, "A call was refused", f"{CALLS} calls of {name!r} are here already", "one call at a time")
        box.presence, box.calls = Presence(seen=now), box.calls + 1
        try:
            if abs(now - box.told.seen) > _TELL:
                await self._tell(name, box)
            return await self._answered(request, box, name, joined, answers)
        finally:
            box.calls -= 1
            if box.presence.problem != box.told.problem:
                await self._tell(name, box)

    async def _tell(self, name: str, box: _Box) -> None:
        """What other processes know of a party from now on."""
        box.told = replace(box.presence)
        if self._post is not None:
            with contextlib.suppress(CloisterError):
                await asyncio.to_thread(self._post.tell, name, box.told)

    async def _answered(self, request: Request, box: _Box, name: str, joined: str, answers: str) -> Response:
        """What a site's call brings it, once its own answer is taken."""
        from starlette.responses import Response

        if answers and not await self._taken(request, box, name, answers):
            return _problem(400, "An answer was refused", box.presence.problem, "the answer as the protocol has it")
        if joined != self.signed.roster.digest:
            if not answers:
                return Response(self._roster, media_type="application/octet-stream")
            await asyncio.sleep(1)  # it refused the roster: not again at once
            return Response(status_code=204)
        message = await self._next(name, box)
        return Response(message, media_type="application/octet-stream") if message else Response(status_code=204)

    async def _taken(self, request: Request, box: _Box, name: str, answers: str) -> bool:
        """Whether an answer is one, as far as the site's key and the round say."""
        with self._lock:
            waiting: Letter | None = next(iter(box.waiting.get(answers, ())), None)
        if waiting is None and self._post is not None:
            waiting = await asyncio.to_thread(self._post.letter, name, answers)
        most, round_id = (_SMALL, "") if waiting is None else (waiting.most, waiting.round)
        if waiting is None and answers != hashlib.sha256(self._roster).hexdigest():
            return True  # too late, or for the second time: nobody waits for it
        from starlette.requests import ClientDisconnect

        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > most:
                    box.presence.problem = f"it sent more than {most:,} bytes"
                    return False
            found = unpack(bytes(body), None, round_id, {name: box.key})
        except (ClientDisconnect, RoundRefused) as error:
            why = getattr(error, "why", "its connection broke off before it was here")
            box.presence.problem = f"it sent an answer that was refused: {why}"
            return False
        if waiting is None:
            box.presence.problem = f"it refused the roster: {refusal(found).why}" if found.kind == "refused" else ""
            return True
        with self._lock:
            waiters = box.waiting.pop(answers, [])
        box.left.pop(answers, None)
        for each in waiters:
            each.answers.put((found, bytes(body)))
        if not waiters and self._post is not None:
            await asyncio.to_thread(self._post.answer, name, answers, bytes(body))
        return True

    async def _next(self, name: str, box: _Box) -> bytes | None:
        """The oldest message for a site, when there is one: of those asked here and those left elsewhere."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            with contextlib.suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(came.set)

        ends = loop.time() + self.wait
        try:
            while True:
                await self._look()
                with self._lock:
                    box.polls.add(notify)
                    own: Letter | None = next(iter(box.waiting.values()))[0] if box.waiting else None
                left = next((each for each in box.left if each not in box.waiting), None)
                if left is not None and self._post is not None and (own is None or box.left[left] < own.since):
                    del box.left[left]
                    own = None
                    with contextlib.suppress(CloisterError):  # away: what is asked here is brought all the same
                        own = await asyncio.to_thread(self._post.letter, name, left)
                    if own is None:  # or somebody answered it meanwhile
                        continue
                if own is not None:
                    return own.message
                if self._ends or loop.time() >= ends:
                    return None
                came.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(came.wait(), min(ends - loop.time(), self.wait if self._post is None else self._pause))
        finally:
            with self._lock:
                box.polls.discard(notify)

    @property
    def _pause(self) -> float:
        """Seconds between two looks for what other processes left."""
        return QUICK if time.monotonic() < self._found + LINGERS else LOOK

    async def _look(self) -> None:
        """Finds what other processes left, once in a while for all who call."""
        if self._post is None or time.monotonic() < self._looked + self._pause:
            return
        self._looked = time.monotonic()
        with contextlib.suppress(CloisterError):
            found = await asyncio.to_thread(self._post.waiting)
            before, self._left = self._left, {digest for _, digest, _ in found}
            self._found = time.monotonic() if self._left - before else self._found
            for name, box in self._boxes.items():
                box.left = {digest: since for whose, digest, since in found if whose == name}
            self._notify(box for box in self._boxes.values() if box.left)


class Coordinator(Mailboxes):
    """The mailboxes of the sites of one roster, for any number of questions at once.

    >>> from cloister.crypto import SigningKey
    >>> from cloister.together import Roster
    >>> keys, hub = {name: SigningKey(name.encode() * 32) for name in "abc"}, SigningKey(bytes(32))
    >>> roster = Roster(sites={name: key.public for name, key in keys.items()}, hub=hub.public, missing=0)
    >>> coordinator = Coordinator(hub, SignedRoster.by(keys, roster))
    >>> [site.name for site in coordinator.sites], str(coordinator.presence["a"])
    (['a', 'b', 'c'], 'it never called')
    """

    signed: SignedRoster

    @property
    def sites(self) -> list[RemoteSite]:
        """The sites of the roster, for `JointTable`."""
        return [RemoteSite(name, public, self) for name, public in self.signed.roster.sites.items()]


@dataclass(frozen=True)
class RemoteSite:
    """A site that is elsewhere, as its hub knows it."""

    name: str
    public: bytes
    coordinator: Coordinator


class RemoteParts:
    """The sites of a coordinator, for one joint table."""

    def __init__(self, coordinator: Coordinator, table: PrivateTable) -> None:
        self._coordinator, self._roster = coordinator, coordinator.signed.roster
        self._declared = declaration_of(table).encode()
        self._silent: dict[str, float] = {}
        """When a site that was waited for in vain had called last: until it calls again no other step waits for it, of which a
        fit has dozens. By that alone, since a clock may be set back."""
        self.declared = self._agreed("declaration", self._declared)
        """By site, the digest of its own declaration with which it agreed to the table's."""

    def compiled(self, request: NoisedRequest, plan: Plan, round_id: str, besides: Sequence[Guarantee]) -> Compiled:
        """Who takes part: every site is asked in advance, and what one owner refuses is refused. Who was away, changed its
        site.toml since, or has another table of this name agrees to the declaration first."""
        [name] = request.names
        found = self._agreed("request", plan.text, round=round_id, besides=[guarantee_to_plain(each) for each in besides])
        new = [site for site, digest in found.items() if not digest or self.declared.get(site) != digest]
        self.declared |= self._agreed("declaration", self._declared, new, table=name) if new else {}
        return tuple(found)

    def asked(
        self, round_: Round, request: NoisedRequest, present: Compiled, refusals: dict[str, CloisterError]
    ) -> Callable[[Mapping[str, bytes]], Iterable[bytes]]:
        """All sites of a step at once."""
        sites = len(self._roster.sites)
        most = 8 * round_.numbers * round_.words + sites * (3 * SHARE_BYTES + 200) + _SMALL

        def ask(messages: Mapping[str, bytes]) -> Iterator[bytes]:
            seen = self._coordinator.presence if self._silent else {}
            away = {name for name, since in self._silent.items() if seen[name].seen == since}
            refusals.update({name: self._coordinator.silent(name) for name in away & messages.keys() if name not in refusals})
            awaited = {name: message for name, message in messages.items() if name in present and name not in refusals}
            reads = any(opened(message).kind == "all shares" for message in awaited.values())
            with contextlib.closing(self._coordinator.ask(dict(awaited), round_.id, most, reads)) as answers:
                for name, found, data in answers:
                    del awaited[name]
                    if found.kind == "refused":
                        refusals[name] = refusal(found)
                    else:
                        yield data
                        if name in refusals:  # it was none: the signature is right, and the form is not
                            self._coordinator.note_problem(name, refusals[name])
            refusals.update({name: self._coordinator.silent(name, reads) for name in awaited})
            seen = self._coordinator.presence if awaited else {}
            self._silent.update({name: seen[name].seen for name in awaited})

        return ask

    def related(self, relation: Relation, name: str, public: Mapping[str, PublicTable]) -> RemoteParts:
        """The same sites: each reads the relation from the request's text, and makes it of its own rows."""
        return self

    def cancel(self, thread: int | None = None) -> None:
        """A site that has begun goes on: what it reads is charged."""

    def close(self) -> None:
        """Nothing is held."""

    def _agreed(self, kind: str, body: bytes, among: Collection[str] = (), **fields: Any) -> dict[str, str]:
        """The sites (a quorum, or all `among`) that agree in advance, each with its digest. A refusal or silence is raised."""
        about, agreed, asked = hashlib.sha256(body).hexdigest(), dict[str, str](), among or self._roster.sites
        message = pack(kind, about, HUB, self._coordinator.key, body, **fields)
        with contextlib.closing(self._coordinator.ask(dict.fromkeys(asked, message), about)) as answers:
            for name, found, _ in answers:
                if found.kind != "agreed":
                    raise refusal(found)
                agreed[name] = str(found.fields.get("declared", ""))
        if len(agreed) < (len(among) or self._roster.quorum):
            raise self._coordinator.silent(next(name for name in asked if name not in agreed))
        return {name: agreed[name] for name in asked if name in agreed}


def _signed(authorization: str, name: str, key: bytes) -> Message:
    """The poll that a call carries; ValueError or `RoundRefused` where it is none of this site's."""
    scheme, _, text = authorization.partition(" ")
    return unpack(base64.b64decode(text, validate=True) if scheme == "Cloister" else b"", "poll", "", {name: key})


def refused(error: CloisterError, round_id: str, name: str, key: SigningKey) -> bytes:
    """A site's refusal as a message."""
    what, why, instead = (str(getattr(error, part))[:2000] for part in ("what", "why", "instead"))
    return pack("refused", round_id, name, key, error=stored_name(error), what=what, why=why, instead=instead)


def refusal(found: Message, party: str = "site") -> CloisterError:
    """A party's refusal as an error here: its words are shown, whatever they are."""
    kind = _ERRORS.get(str(found.fields.get("error")), EngineError)
    what, why, instead = (shown(str(found.fields.get(part, ""))[:2000]) for part in ("what", "why", "instead"))
    if not what.startswith(f"The {party} {found.sender!r} "):  # whose words they are is not the party's to say
        what = f"The {party} {found.sender!r} says: {what}" if what else f"The {party} {found.sender!r} takes no part"
    return kind(what, why=why, instead=instead)


def _problem(status: int, what: str, why: str, instead: str) -> Response:
    from starlette.responses import Response

    text = json.dumps({"what": what, "why": why, "instead": instead})
    return Response(text, status, {"Cloister-Protocol": str(PROTOCOL)}, media_type="application/json")


def other_version(request: Request) -> Response | None:
    """The answer to a call that speaks another version of the protocol; None where it speaks this one. It tells nothing
    else, so a hub gives it before it looks who calls: of another version it could not read who does."""
    spoken = request.headers.get("cloister-protocol", "")
    return None if spoken in ("", str(PROTOCOL)) else _version(spoken)


def unknown_party(name: str, status: int) -> Response:
    """The answer to a call that is signed by nobody of this name whom a hub knows: a site, or a key holder."""
    why = f"it is not signed by the key of {name!r} in the roster of any open data set"
    instead = "the key that cloister site show (or of a key holder cloister csp show) prints, in a data set that is open"
    return _problem(status, "A call was refused", why, instead)


def _version(spoken: str) -> Response:
    older = bool(re.fullmatch("[0-9]{1,9}", spoken)) and int(spoken) > PROTOCOL
    why = f"the site speaks version {shown(spoken[:20]) or '?'} of the protocol, and the hub version {PROTOCOL}"
    return _problem(426, "A call was refused", why, f"a newer cloister at the {'hub' if older else 'site'}")


def _apart(seconds: float) -> str:
    size = f"{abs(seconds) / 3600:.1f} hours" if abs(seconds) >= 3600 else f"{abs(seconds) / 60:.0f} minutes"
    return f"{size} {'ahead of' if seconds > 0 else 'behind'}"
