"""How many questions are being answered just now, and were begun a moment ago: these come to the disk together.

Whoever commits for several waits for those, two milliseconds at most (`ledger/commit.py`); so they share a push to the disk, and
the work of a transaction. A question that takes longer than a moment is nobody's to wait for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

__all__ = ["Rush", "coming", "rushing"]

_PART = "asking rush"
_MOMENT = 0.1
"""Seconds."""


class Rush:
    """The questions that are being answered, each with when it was begun.

    >>> now = [0.0]
    >>> rush = Rush(lambda: now[0])
    >>> with rush.one():
    ...     with rush.one():
    ...         both = rush.coming()
    ...     now[0] = 60.0
    ...     late = rush.coming()
    >>> both, late, rush.coming()
    (2, 0, 0)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: dict[object, float] = {}

    @contextmanager
    def one(self) -> Iterator[None]:
        """One of them."""
        mine = object()
        self._begun[mine] = self._clock()
        try:
            yield
        finally:
            del self._begun[mine]

    def coming(self) -> int:
        """How many were begun a moment ago."""
        lately = self._clock() - _MOMENT
        return sum([begun > lately for begun in list(self._begun.values())])


def coming(hub: Hub) -> Callable[[], int]:
    """How many there are of this process."""
    return _of(hub).coming


def rushing(hub: Hub) -> AbstractContextManager[None]:
    """While a question is answered."""
    return _of(hub).one()


def _of(hub: Hub) -> Rush:
    rush: Rush | None = hub.parts.get(_PART)
    if rush is None:
        rush = hub.parts.setdefault(_PART, Rush())
        hub.ledger.expect(rush.coming)
    return rush
