"""How many questions are being answered just now, and were begun a moment ago: these come to the disk together.

Whoever commits for several waits for those, two milliseconds at most (`ledger/commit.py`); so they share a push to the disk, and
the work of a transaction. A question that takes longer than a moment is nobody's to wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from cloister.ledger.commit import Rush

if TYPE_CHECKING:
    from cloister.hub.hub import Hub

_PART = "asking rush"


def arriving_commits(hub: Hub) -> Callable[[], int]:
    """How many there are of this process."""
    return _of(hub).coming


def group_commit(hub: Hub) -> AbstractContextManager[None]:
    """While a question is answered."""
    return _of(hub).one()


def _of(hub: Hub) -> Rush:
    rush: Rush | None = hub.parts.get(_PART)
    if rush is None:
        rush = hub.parts.setdefault(_PART, Rush())
        hub.ledger.expect(rush.coming)
    return rush
