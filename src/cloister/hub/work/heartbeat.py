"""Signs of life of the keys that are being worked under here: a key that is silent for a few beats was left by a dead process.

Most questions are answered before the first beat, and cost nothing here. The thread that beats ends when nothing is being worked
on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import update
from sqlalchemy.exc import SQLAlchemyError

from cloister.errors import CloisterError
from cloister.hub.records.asking import Idempotency

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

BEAT = 0.5
_LOG = logging.getLogger("cloister.hub.asking")
_PART = "asking beats"


class _Beats:
    """The keys of this process that are being worked under."""

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
