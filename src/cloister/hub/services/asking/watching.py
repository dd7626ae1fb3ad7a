"""Profiles of use are looked at beside the answers, by a thread of its own: nobody waits for it.

It begins a moment after a question, and looks at all that were asked meanwhile at once: one look reads all new lines of a person.
"""

import logging
import queue
import threading
import time
from typing import TypeAlias

from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import watch

_LOG = logging.getLogger("cloister.hub.asking")
_WATCH, _THREAD = "asking watch", "asking watch thread"
_GATHER = 1.0
"""Seconds for which questions are gathered."""

_Waiting: TypeAlias = "queue.Queue[tuple[Caller, int] | None]"


def look_later(hub: Hub, caller: Caller, line: int) -> None:
    """Have somebody's profile looked at, after the answer: a line that is missed now is looked at with their next one."""
    waiting: _Waiting | None = hub.parts.get(_WATCH)
    if waiting is None:
        watch(hub, caller, line)
    else:
        waiting.put((caller, line))


def watching(hub: Hub) -> None:
    """Begin to look."""
    waiting: _Waiting = queue.Queue()
    hub.parts[_WATCH] = waiting

    def look() -> None:
        ended = False
        while not ended and (found := waiting.get()) is not None:
            asked, ended = _gathered(waiting, found)
            for caller, line in asked:
                try:
                    watch(hub, caller, line)
                except Exception as error:  # a profile that can't be looked at must not end the looking
                    _LOG.warning("a profile was not looked at: %s", type(error).__name__)

    thread = threading.Thread(target=look, name="cloister-watch", daemon=True)
    thread.start()
    hub.parts[_THREAD] = thread


def _gathered(waiting: _Waiting, first: tuple[Caller, int]) -> tuple[list[tuple[Caller, int]], bool]:
    """Who asked within a moment, each with the earliest line, from which a look reads on; and whether it is the end."""
    asked, end = {first[0].id: first}, time.monotonic() + _GATHER
    while True:
        try:
            found = waiting.get(timeout=max(end - time.monotonic(), 0))
        except queue.Empty:
            return list(asked.values()), False
        if found is None:
            return list(asked.values()), True
        asked.setdefault(found[0].id, found)


def watched(hub: Hub) -> None:
    """End it, when everything that waits has been looked at."""
    waiting = hub.parts.pop(_WATCH, None)
    thread = hub.parts.pop(_THREAD, None)
    if waiting is not None and thread is not None:
        waiting.put(None)
        thread.join(hub.patience(10))
