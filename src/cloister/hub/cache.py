"""What follows from public facts, or from what left already, and takes a while is worked out once in a process."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

from cloister.hub.hub import Hub

_LOCK = threading.Lock()
T = TypeVar("T")


def cached(hub: Hub, part: str, key: Hashable, work: Callable[[], T], *, most: int = 100) -> T:
    """What `work` gives, or gave before under the same key: those of a part that were used last are kept. Two that come at once
    may both work."""
    kept: OrderedDict[Hashable, T] = hub.parts.setdefault(part, OrderedDict())
    with _LOCK:
        if key in kept:
            kept.move_to_end(key)
            return kept[key]
    found = work()
    with _LOCK:
        kept[key] = found
        while len(kept) > most:
            kept.popitem(last=False)
    return found
