"""Work that shares its thread with other work, and takes turns with it where it would wait for the disk.

Threads that come together share a commit (`commit.py`); but each of them has to be woken for it and after it, and while one runs
the others wait for the interpreter. A *carrier* runs several pieces of work in one thread instead. Where one of them commits, the
carrier goes on with the others, commits for all that wait by then, and comes back. For the work itself nothing changes: `submit`
returns when its own commit is durable.

Work in company may hold no lock while it commits, since the others run in its thread; `submit` is told by each caller for which
this is so (`held=False`). And it may wait for nobody, nor take long: where it would, it calls `own_thread` first, and is begun
again elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from cloister.ledger.commit import Entry, GroupCommit

__all__ = ["CARRIER", "Carrier", "OwnThread", "at_one_moment", "in_company", "own_thread"]

Read = TypeVar("Read")


class Carrier(Protocol):
    """Anyone who runs several pieces of work in one thread."""

    moment: dict[Hashable, Any] | None
    """What was read since all of them had come; None once this work has waited."""

    def until_done(self, group: GroupCommit[Any], entry: Entry[Any]) -> None:
        """Let the others run until the entry is done."""


CARRIER: ContextVar[Carrier | None] = ContextVar("cloister carrier", default=None)
"""Of the work that runs just now. Each piece of work has a context of its own."""


class OwnThread(BaseException):
    """This work may wait for others, and is to be begun again in a thread of its own. No `except Exception` stops it."""


def in_company() -> bool:
    """Whether this work shares its thread.

    >>> in_company()
    False
    """
    return CARRIER.get() is not None


def at_one_moment(what: Hashable, read: Callable[[], Read]) -> Read:
    """What is read now. Work that came together reads it once, after all of it has come and before any commit of it; later
    each reads by itself.

    >>> at_one_moment("answer", lambda: 42)
    42
    """
    carrier = CARRIER.get()
    if carrier is None or carrier.moment is None:
        return read()
    if what not in carrier.moment:
        carrier.moment[what] = read()
    found: Read = carrier.moment[what]
    return found


def own_thread() -> None:
    """Say that what follows may wait, or take long: work that shares its thread ends here, unless it has committed something,
    which it must bring to its end.

    >>> own_thread()
    """
    carrier = CARRIER.get()
    if carrier is not None and carrier.moment is not None:
        raise OwnThread
