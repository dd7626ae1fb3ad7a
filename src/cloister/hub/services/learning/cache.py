"""What follows from public facts and takes a while is worked out once in a process: the newest hundred of each kind are kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from cloister.hub.services.learning.order import Order

if TYPE_CHECKING:
    from cloister.hub.hub import Hub
    from cloister.learn.frame.base import PrivateModel
    from cloister.learn.frame.encoding import Encoder
    from cloister.tables import PrivateTable

__all__ = ["cached", "shape_of"]

_KEPT = 100
_LOCK = threading.Lock()
T = TypeVar("T")


def cached(hub: Hub, part: str, key: str, work: Callable[[], T]) -> T:
    """What `work` gives, or gave before under the same key; two that come at once may both work."""
    kept: OrderedDict[str, T] = hub.parts.setdefault(part, OrderedDict())
    with _LOCK:
        if key in kept:
            return kept[key]
    found = work()
    with _LOCK:
        kept[key] = found
        while len(kept) > _KEPT:
            kept.popitem(last=False)
    return found


def shape_of(order: Order, model: PrivateModel, encoder: Encoder, table: PrivateTable) -> tuple[Any, ...]:
    """The public facts that made-up rows and a method's way over them follow from."""
    described = [(name, domain.describe()) for name, domain in encoder.columns]
    target = table.column(order.target).describe() if order.target else None
    return order.method, sorted(order.parameters.items()), described, target, table.size, table.max_rows, model.delta
