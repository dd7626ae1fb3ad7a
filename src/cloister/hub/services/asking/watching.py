"""Profiles of use are looked at beside the answers, by a thread of its own: nobody waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING

from cloister.hub.services.trail import watch

if TYPE_CHECKING:
    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub

__all__ = ["look_later", "watched", "watching"]

_LOG = logging.getLogger("cloister.hub.asking")
_WATCH, _THREAD = "asking watch", "asking watch thread"


def look_later(hub: Hub, caller: Caller, line: int) -> None:
    """Have somebody's profile looked at, after the answer: a line that is missed now is looked at with their next one."""
    waiting: queue.Queue[tuple[Caller, int] | None] | None = hub.parts.get(_WATCH)
    if waiting is None:
        watch(hub, caller, line)
    else:
        waiting.put((caller, line))


def watching(hub: Hub) -> None:
    """Begin to look."""
    waiting: queue.Queue[tuple[Caller, int] | None] = queue.Queue()
    hub.parts[_WATCH] = waiting

    def look() -> None:
        while (found := waiting.get()) is not None:
            try:
                watch(hub, *found)
            except Exception as error:  # a profile that can't be looked at must not end the looking
                _LOG.warning("a profile was not looked at: %s", type(error).__name__)

    thread = threading.Thread(target=look, name="cloister-watch", daemon=True)
    thread.start()
    hub.parts[_THREAD] = thread


def watched(hub: Hub) -> None:
    """End it, when everything that waits has been looked at."""
    waiting = hub.parts.pop(_WATCH, None)
    thread = hub.parts.pop(_THREAD, None)
    if waiting is not None and thread is not None:
        waiting.put(None)
        thread.join(timeout=10)
