"""A site as a process of its own: it dials out to its hub, waits there for messages, and answers each by one.

What is asked in advance (a declaration, a request) charges nothing and keeps nothing. A round's messages are those of
`rounds.py`: each answer is on disk before it leaves, so that after a stop, at whatever step, the same message gets the same
bytes. The plan of a round is kept with them; how many numbers it has, the site works out by itself. A refusal is a message too,
with the words that the site's owner sees: what an error says that is not one of ours stays here.
"""

import base64
import ctypes
import hashlib
import json
import logging
import resource
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from cloister.crypto import AgreementKey, SigningKey, client_context
from cloister.errors import (
    CloisterError,
    EngineError,
    InvalidDeclaration,
    InvalidParameter,
    LedgerError,
    MissingDependency,
    UnknownTable,
)
from cloister.installed import install
from cloister.printable import shown
from cloister.tables.declaring.plain import domain_of
from cloister.together.coordinator import WAIT, refused
from cloister.together.messages import Message, RoundRefused, is_whole, opened, pack, received, unpack
from cloister.together.plan import Plan
from cloister.together.reading import LONGEST, table_in
from cloister.together.roster import PROTOCOL, SignedRoster
from cloister.together.rounds import HUB, STEPS, Round, SiteRound
from cloister.together.site import OutOfTime, Site, SitePart

_OPEN_ROUNDS = 32
"""Rounds whose plans are kept ready; others are made ready again from the journal."""
_PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before the hub is called again, after one failure and after more."""
_MOST, _PATIENCE = 2 * LONGEST, 600.0
"""Bytes of what a hub sends, and seconds for them."""
_PLAN = "plan"
_LOG = logging.getLogger("cloister.together")
_WORDS = 2000
"""Characters of what a hub says, or may have put into a refusal, that an owner is shown."""
Note = Callable[[str, dict[str, str]], None]


class Caller:
    """A party that dials out to its hub, under a roster that both know, and answers what it finds there."""

    name: str
    key: SigningKey
    _note: Note
    called, whose = "", "owner"
    """What it is called where it failed, and whose it is."""
    look: Callable[[], object] = bool
    """Called before each message is answered: it may change a site's policy and time limit."""

    @property
    def joined(self) -> str:
        """The digest of what it joined, or nothing."""
        raise NotImplementedError

    def answer(self, data: bytes) -> bytes:
        """The answer to a message of the hub; a refusal is one."""
        about = ""
        try:
            self.look()
            about = opened(data).round
            return self._answered(data)
        except LedgerError as error:  # it says where its owner or operator keeps what
            self._noted("failed", about, error.what, error.why)
        except CloisterError as error:
            self._noted("stopped" if isinstance(error, OutOfTime) else "refused", about, error.what, error.why)
            return refused(error, about, self.name, self.key)
        except Exception as error:  # its words may hold a row, and are for nobody
            self._noted("failed", about, type(error).__name__)
        why = f"its own {self.whose} can see where"
        failed = EngineError(f"The {self.called or f'site {self.name!r}'} failed", why=why, instead="the same question later")
        return refused(failed, about, self.name, self.key)

    def _answered(self, data: bytes) -> bytes:
        raise NotImplementedError

    def _noted(self, event: str, about: str, what: str = "", why: str = "", instead: str = "") -> None:
        """Notes why nothing is answered. The sender of a message may call its round anything; and where the disk is full, a no is
        still a no, the party goes on, and its owner is told by its process."""
        words = {"about": about[:64], "what": what[:_WORDS], "why": why[:_WORDS], "instead": instead[:_WORDS]}
        try:
            self._note(event, {name: shown(text) for name, text in words.items() if text})
        except OSError as error:
            _LOG.warning("%s: %s; the log could not be written: %s", event, shown(what[:_WORDS]), error.strerror)

    def between(self) -> None:
        """What it does beside its answers, in a thread of its own."""

    def run(
        self,
        hub: str,
        *,
        authority: str | Path | None = None,
        proxy: str | None = None,
        stop: threading.Event | None = None,
        told: Callable[[str], None] = print,
        pauses: tuple[float, ...] = _PAUSES,
    ) -> None:
        """Calls the hub until `stop`, through an HTTP `proxy` where the network has no other way out. A connection that breaks is
        made again; what was answered is sent again as it was."""
        import httpx

        for option, given in (("--hub", hub), ("--proxy", proxy or hub)):
            try:
                _ = httpx.URL(given), urlsplit(given).port  # each refuses some that the other takes
            except (ValueError, httpx.InvalidURL):
                why, like = "it can't be read as an address", f"{option} http://name.example.org:3128"
                raise InvalidParameter(f"{option} is invalid", why=why, instead=like) from None  # a proxy's has a password
        address, way = urlsplit(hub), urlsplit(proxy or hub)
        here = address.scheme == "http" and address.hostname in ("127.0.0.1", "::1", "localhost")
        if not here and (address.scheme != "https" or not address.hostname):
            raise InvalidParameter(f"--hub {hub!r} is invalid", why="the hub is called over TLS", instead="https://…")
        if way.scheme not in ("http", "https") or not way.hostname:
            raise InvalidParameter(
                "--proxy is invalid", why="no address of an HTTP proxy", instead="http://proxy.example.org:3128"
            )
        stopped, answers, body, beside = stop or threading.Event(), "", b"", threading.Thread()
        failures, last, url = 0, "", f"{hub.rstrip('/')}/together/{quote(self.name, safe='')}"
        verify = client_context(authority) if address.scheme == "https" else False
        patience = httpx.Timeout(10.0, read=WAIT + 15)
        with httpx.Client(verify=verify, timeout=patience, proxy=proxy or None, trust_env=False) as client:
            while not stopped.is_set():
                if not beside.is_alive():
                    (beside := threading.Thread(target=self.between, daemon=True)).start()
                problem = ""
                try:
                    status, found = self._called(client, url, answers, body)
                except httpx.HTTPError as error:
                    problem = f"The hub was not reached{' through the proxy' if proxy else ''}: {_why(error)}"
                else:
                    if status == 200 and is_whole(found):  # not a page of something in between
                        answers, body = hashlib.sha256(found).hexdigest(), self.answer(found)
                    elif status == 204:
                        answers, body = "", b""
                    else:
                        problem = _said(status, found)
                        answers, body = ("", b"") if status == 400 else (answers, body)
                if problem:
                    if problem != last:
                        told(problem)
                    stopped.wait(pauses[min(failures, len(pauses) - 1)])
                elif failures:
                    told("The hub was reached again")
                failures, last = (failures + 1, problem) if problem else (0, "")

    def _called(self, client: object, url: str, answers: str, body: bytes) -> tuple[int, bytes]:
        poll = pack("poll", "", self.name, self.key, at=int(time.time()), roster=self.joined, answers=answers)
        headers = {
            "Authorization": "Cloister " + base64.b64encode(poll).decode(),
            "Cloister-Protocol": str(PROTOCOL),
            "Content-Type": "application/octet-stream",
            "Accept-Encoding": "identity",
        }
        return received(client, url, most=_MOST, seconds=_PATIENCE, content=body, headers=headers)


class SiteAgent(Caller):
    """Answers the messages of one hub, for a site whose rows are made ready when it starts, and again when `stale` says so.

    `note` is told what was agreed to, refused and charged. An owner of several tables gives a site for each, by the name that
    the hub has for its table; a site with one table answers by whatever name it is asked.

    >>> import cloister as cl
    >>> table = cl.PrivateTable({"age": [39, 51]}, columns={"age": cl.Integer(17, 90)})
    >>> agent = SiteAgent(Site("north", table, budget=cl.ZCDP(1)), note=lambda event, details: print(event, details["why"]))
    >>> opened(agent.answer(b"garbage")).kind
    refused it is not a whole message of this version of the protocol
    'refused'
    """

    def __init__(
        self, site: Site | Mapping[str, Site], *, note: Note | None = None, stale: Callable[[], bool] = lambda: False
    ) -> None:
        self.sites: Mapping[str, Site] = {"": site} if isinstance(site, Site) else site
        self._note, self._stale = note or (lambda *_: None), stale
        self.site, *others = self.sites.values()
        self.name, self.key = self.site.name, self.site._key
        self._parts = {name: each.part(each.table) for name, each in self.sites.items()}
        self.signed: SignedRoster | None = next(reversed([each.joined() for each in (*others, self.site)][-1]), None)
        self._rounds: OrderedDict[str, SiteRound] = OrderedDict()
        self._exact_keys: OrderedDict[str, AgreementKey] = OrderedDict()

    @property
    def joined(self) -> str:
        """The digest of the roster."""
        return "" if self.signed is None else self.signed.roster.digest

    @property
    def part(self) -> SitePart:
        """The rows of the first table."""
        return next(iter(self._parts.values()))

    def _about(self, table: str) -> SitePart:
        """The rows that the hub has this name for: those there are, or of several those that the owner calls so."""
        found = self.part if len(self._parts) == 1 else self._parts.get(table)
        if found is None:
            raise UnknownTable(
                f"The site {self.name!r} takes no part",
                why=f"its owner has several tables, and none called {shown(table[:100])!r}",
                instead="a table that the owner called so in site.toml",
            )
        return found

    def between(self) -> None:
        """Makes the rows ready again, as they are now: of each table by itself. Rounds that began go on about the rows that they
        began with; where new ones can't be read, the old ones stay, and the owner's log says why, and what to write instead."""
        for name, each in self.sites.items() if self._stale() else ():
            try:
                self._parts = {**self._parts, name: each.part(each.table)}
            except CloisterError as error:
                self._noted("not read", name, error.what, error.why, error.instead)
            except Exception as error:  # its words may hold a row
                self._noted("not read", name, type(error).__name__)
            else:
                self._noted("read", name)

    def _joined(self, data: bytes, head: Message) -> bytes:
        """A roster that all signed, this site's owner among them: the site takes part under it from now on."""
        try:
            signed = SignedRoster.from_plain(json.loads(head.body))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RoundRefused("A roster was refused", why="its form is wrong", instead="the roster as its hub has it") from None
        unpack(data, "roster", "", {HUB: signed.roster.hub})
        if signed.roster.sites.get(self.site.name) != self.site.public:
            raise InvalidDeclaration(
                "The roster is invalid", why=f"{self.site.name!r} is not in it under its own key", instead="cloister site sign"
            )
        for each in self.sites.values():
            each.join(signed)
        self.signed = signed
        self._note("joined", {"roster": signed.roster.digest, "number": str(signed.roster.epoch)})
        return pack("agreed", "", self.site.name, self.site._key)

    def _answered(self, data: bytes) -> bytes:
        if (head := opened(data)).kind == "roster":
            return self._joined(data, head)
        if self.signed is None:
            raise RoundRefused(
                "A message was refused", why="this site joined no roster of this hub", instead="cloister site sign"
            )
        found = unpack(data, None, None, {HUB: self.signed.roster.hub})
        if found.kind in STEPS:
            return self._step(found, data)
        if found.kind.startswith("exact") and found.round == hashlib.sha256(found.body).hexdigest():
            return self._exact(found)
        if found.kind not in ("declaration", "request") or found.round != hashlib.sha256(found.body).hexdigest():
            raise RoundRefused("A message was refused", why="no site answers such a one", instead="the messages of this version")
        if found.kind == "declaration":
            parts = [self._about(str(name))] if (name := found.fields.get("table")) else self._parts.values()
            part = self._declared(found.body, parts)
        else:
            plan = Plan.read(found.body)
            part = self._part(plan)
            request = part.read(plan)
            if found.fields.get("round"):  # a hub of an earlier version does not say it
                self._check_round(part.round(request, plan, self.signed), found.fields["round"])
            part.compiled(request, plan, found.besides, found.fields.get("round", ""))
        return pack("agreed", found.round, self.site.name, self.site._key, declared=part.site.declared)

    def _part(self, plan: Plan) -> SitePart:
        """The rows that a plan is about."""
        return self._about("" if len(self._parts) == 1 else table_in(plan.request))

    def _declared(self, text: bytes, parts: Iterable[SitePart]) -> SitePart:
        """The rows that are declared like a joint table; refused where none of these is."""
        told, refusals = json.loads(text), list[InvalidDeclaration]()
        columns = {name: domain_of(name, kind, table=self.name) for name, kind in told["columns"].items()}
        for each in parts:
            try:
                each.site.check_declared(columns, told["unit"], told["max_rows"])
                return each
            except InvalidDeclaration as error:
                refusals.append(error)
        raise refusals[0]

    def _exact(self, found: Message) -> bytes:
        """A step of exact components (`exact`)."""
        try:
            from cloister.together.exact.site import AT_SITES, ExactSite
        except ImportError:
            raise MissingDependency(
                f"The site {self.site.name!r} takes no part", why="its parts are not installed", instead=install("together")
            ) from None

        assert self.signed is not None
        if found.kind not in AT_SITES:
            raise RoundRefused("A message was refused", why="no site answers such a one", instead="the messages of this version")
        self.site.check(self.signed.roster)
        part = self._about(str(found.fields.get("table", "")))
        said = ExactSite(part, self.signed.roster, self._note, self._exact_keys).answer(found.kind, found.body)
        return pack("agreed", found.round, self.site.name, self.site._key, said)

    def _step(self, found: Message, data: bytes) -> bytes:
        if len(found.round) != 64 or not set(found.round) <= set("0123456789abcdef"):
            raise RoundRefused("A message was refused", why="its round has no such name", instead="the id of the round")
        known = self._rounds.get(found.round) or self._found(found)
        answer = known.answer(data)
        if found.kind == "begin":
            kept = self.site.journal.of(found.round)
            if kept.get(_PLAN) is None:  # a message that comes again charges nothing
                self._note("charged", {"about": found.round})
                kept.put(_PLAN, found.body)  # before the answer leaves: each later step needs it
        self._rounds[found.round] = known
        self._rounds.move_to_end(found.round)
        if len(self._rounds) > _OPEN_ROUNDS:
            self._rounds.popitem(last=False)
        return answer

    def _found(self, found: Message) -> SiteRound:
        """This site's part in a round: of its first message, or of what the journal keeps of it."""
        assert self.signed is not None
        text: bytes | None = found.body
        if found.kind != "begin":
            text = self.site.journal.of(found.round).get(_PLAN) if self.site.journal.has(found.round) else None
        if text is None:
            raise RoundRefused("A message was refused", why="this site did not begin that round", instead="a new round")
        plan = Plan.read(text)
        part = self._part(plan)
        if found.fields.get("declared", part.site.declared) != part.site.declared:
            why = "its owner declares the table otherwise than when the question was agreed to"
            raise RoundRefused("A message was refused", why=why, instead="a new question")
        request = part.read(plan, found.round)
        round_ = self._check_round(part.round(request, plan, self.signed), found.round)
        return part.take_part(round_, request)

    def _check_round(self, own: Round, asked: str) -> Round:
        """In advance as under the charge: a hub whose round is another hears of it before it charges."""
        if own.id != asked:
            raise RoundRefused("A message was refused", why="its round is not that of its plan", instead="the id of the plan")
        return own


def no_core_dumps() -> None:
    """Keeps this process's memory out of core files, and away from debuggers of the same user where the system can (Linux)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # a limit of 0 does not hold for a program that the kernel pipes core files to
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def _said(status: int, found: bytes) -> str:
    """What a hub says where it refuses a call."""
    try:
        said = json.loads(found)
        return shown(f"{said['what']}: {said['why']}. Instead: {said['instead']}"[:_WORDS])
    except (ValueError, KeyError, TypeError, RecursionError):
        if status == 503:
            return "The hub has no room for calls now (503); the site calls again"
        return f"What answered ({status}) is not a hub: is the address right, or does a proxy answer in its place?"


def _why(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate could not be verified; --certificate names the file of its authority"
    if str(error).startswith("407"):
        return "it wants a name and a password; write http://NAME:PASSWORD@proxy.example.org:3128"
    return str(error) or type(error).__name__
