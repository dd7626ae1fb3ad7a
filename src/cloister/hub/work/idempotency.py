"""The same key gives the stored answer byte for byte: never a second draw, never a second charge.

A key is written down, with a digest of what was asked and by whom, before the work begins. Another body under it, or another
person, is a conflict; the same request waits while the first is being worked on, and then gives its answer. The answer is stored
under the key in the transaction that keeps the release, so that neither is without the other.

Where a process died before that, its key gives no sign of life any more (`beating`), and the same request takes it over after a
few seconds and runs once more. It may even do so while the first is still at work: the ledger lets both share one charge, and the
one that is second to store its answer gives the other's.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session as Db
from starlette.concurrency import run_in_threadpool

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Caller, Hub
from cloister.hub.problems import Conflict
from cloister.hub.records.asking import Idempotency
from cloister.hub.work.recheck import check_unchanged
from cloister.printable import is_text

BEAT = 0.5
_LOG = logging.getLogger("cloister.hub.asking")
_PART = "asking beats"


class _Beats:
    """The keys of this process that are being worked under.

    Most questions are answered before the first beat, and cost nothing here. The thread that beats ends when nothing is being
    worked on."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._turn = threading.Lock()
        self._keys: set[str] = set()
        self._runs = False

    def add(self, key: str) -> None:
        with self._turn:
            self._keys.add(key)
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="cloister-beats", daemon=True).start()

    def remove(self, key: str) -> None:
        with self._turn:
            self._keys.discard(key)

    def _run(self) -> None:
        pause = threading.Event()
        last: set[str] = set()
        while True:
            pause.wait(BEAT)
            with self._turn:
                if not self._keys:
                    self._runs = False
                    return
                last, old = set(self._keys), self._keys & last
            if old:
                self._beat(old)

    def _beat(self, keys: set[str]) -> None:
        mine = Idempotency.key.in_(keys) & Idempotency.status.is_(None)
        try:
            with self._hub.database.begin() as db:
                db.execute(update(Idempotency).where(mine).values(created=self._hub.now()))
        except (CloisterError, SQLAlchemyError) as error:  # another process may take the keys over: the charge is shared
            _LOG.warning("the keys that are worked under could not be renewed: %s", type(error).__name__)


@contextmanager
def beating(hub: Hub, key: str) -> Iterator[None]:
    """While this holds, the key is not taken for left."""
    beats: _Beats = hub.parts.setdefault(_PART, None) or _Beats(hub)
    hub.parts[_PART] = beats
    beats.add(key)
    try:
        yield
    finally:
        beats.remove(key)


OWN_KEYS = "hub: "
"""How keys begin that the hub itself makes, as for a job; no client may send one, so that nobody takes it in advance."""

_BUSY = timedelta(seconds=3 * BEAT)
_PATIENCE = 3 * BEAT + 3
"""Seconds for which a request waits for the first one under its key."""
_LOOK = 0.1
_KEPT = timedelta(hours=1)
"""For how long a form that is sent again is answered as before."""


class _AnsweredElsewhere(Exception):
    """Another attempt under the same key has stored its answer."""


@dataclass
class Claim:
    """A key that is being worked under; an empty one keeps nothing."""

    key: str
    stored: bool = False

    def store(self, db: Db, status: int, body: bytes) -> None:
        """Keep the answer, in the transaction of `db`. Where another attempt was first, that transaction is undone."""
        if not self.key:
            return
        mine = (Idempotency.key == self.key) & Idempotency.status.is_(None)
        changed = db.execute(update(Idempotency).where(mine).values(status=status, response=body).returning(Idempotency.key))
        if changed.one_or_none() is None:
            raise _AnsweredElsewhere
        self.stored = True


def once(
    hub: Hub,
    caller: Caller,
    key: str,
    request: bytes,
    work: Callable[[Claim], tuple[int, bytes]],
    *,
    again: Callable[[int, bytes], None] | None = None,
    alone: bool = False,
    own: bool = False,
) -> tuple[int, bytes]:
    """Status and bytes of the answer: those that are stored under the key, or those that `work` gives and that are stored now.

    `work` may store its answer itself, by `Claim.store`, in a transaction of its own. A refusal or a failure frees the key: what
    was charged answers the next attempt, and what was wrong may be mended. `again` is shown what is stored before it is given
    again, and refuses it where it may not leave any more. `alone`: whoever asks knows that nobody else is at work under this
    key, or need not be waited for. `own`: it is a key of the hub's own. Without a key nothing is kept; a route refuses one that
    was sent empty, since whoever sends it counts on being charged once.
    """
    claim = Claim(key)
    if not key:
        return work(claim)
    if not is_text(key) or key.startswith(OWN_KEYS) != own:
        raise InvalidParameter(
            "The idempotency key is invalid",
            why=f"it must be 1 to 200 printable characters, and not begin with {OWN_KEYS!r}",
            instead="a random one",
        )
    digest = hashlib.sha256(request).hexdigest()
    stored = _claimed(hub, caller, key, digest, timedelta(0)) if alone else _awaited(hub, caller, key, digest)
    if stored is not None:
        if again is not None:
            again(*stored)
        return stored
    try:
        with beating(hub, key):
            status, body = work(claim)
        if not claim.stored:
            with hub.database.begin() as db:
                claim.store(db, status, body)
    except _AnsweredElsewhere:
        return once(hub, caller, key, request, work, again=again, own=own)  # what the other attempt stored, unless it failed too
    except Exception:
        _free(hub, key)
        raise
    return status, body


async def once_sent(
    hub: Hub, caller: Caller, kind: str, digest: str, work: Callable[[], Awaitable[bytes | None]]
) -> bytes | None:
    """As `once`, for what holds no thread: what was stored for this digest, or None once `work` has run, whose bytes are stored
    for an hour. Where it gives none, the next runs it again."""
    key = kind + digest
    stored = await run_in_threadpool(_awaited, hub, caller, key, digest)
    if stored is not None:
        return stored[1]
    found: bytes | None = None
    try:
        with beating(hub, key):
            found = await work()
    finally:
        await run_in_threadpool(_ended, hub, kind, key, found)
    return None


def _ended(hub: Hub, kind: str, key: str, found: bytes | None) -> None:
    if found is None:
        _free(hub, key)
        return
    with suppress(_AnsweredElsewhere), hub.database.begin() as db:
        db.execute(delete(Idempotency).where(Idempotency.key.startswith(kind), Idempotency.created < hub.now() - _KEPT))
        Claim(key).store(db, 200, found)


def _awaited(hub: Hub, caller: Caller, key: str, digest: str) -> tuple[int, bytes] | None:
    """`_claimed`, once the first request under the key has ended: in its answer, or in silence."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return _claimed(hub, caller, key, digest, _BUSY)
        except _Busy:
            if time.monotonic() > end:
                raise
            time.sleep(_LOOK)
            check_unchanged(hub, caller)


def _claimed(hub: Hub, caller: Caller, key: str, digest: str, busy: timedelta) -> tuple[int, bytes] | None:
    """What is stored under the key; None where it was free and is now ours."""
    try:
        with hub.database.begin() as db:
            row = db.scalar(select(Idempotency).where(Idempotency.key == key).with_for_update())
            if row is None:
                db.add(Idempotency(key=key, person=caller.id, request=digest, created=hub.now()))
                db.flush()
                return None
            if row.request != digest or row.person != caller.id:
                raise Conflict(
                    "The idempotency key is already used",
                    why="it was used for another request",
                    instead="a new key for a new request",
                )
            if row.status is not None and row.response is not None:
                return row.status, row.response
            if abs(hub.now() - row.created) < busy:  # a clock that was put back makes nobody wait for long
                raise _busy()
            row.created = hub.now()
            return None
    except IntegrityError:
        raise _busy() from None


def _free(hub: Hub, key: str) -> None:
    with hub.database.begin() as db:
        db.execute(delete(Idempotency).where(Idempotency.key == key, Idempotency.status.is_(None)))


class _Busy(Conflict):
    """The first request is still at work."""

    stored = "_Busy"


def _busy() -> _Busy:
    return _Busy(
        "The request was refused",
        why="the first request with this idempotency key is still being answered",
        instead="try again in a moment",
    )
