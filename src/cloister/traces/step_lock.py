"""How a stream takes a step: one at a time, and none twice.

What is kept of the data between steps is as secret as the data, and a reading that is added to it twice moves what is published
by twice what the noise was scaled to. So a step *draws* first, in variables of its own, and *keeps* once.
"""

import copy
import threading
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from cloister.errors import CloisterError

Drawn = TypeVar("Drawn")
Kept = TypeVar("Kept")


class StepLock:
    """Takes the steps of one stream.

    A step that is interrupted while it draws was not taken: nothing has changed and nothing has left, so it may be taken again,
    with fresh noise. One that is interrupted while it keeps may have been taken, and its stream goes no further. Of many threads
    one is here at a time.

    >>> seen, lock = [], StepLock(error=CloisterError, instead="a new stream")
    >>> lock.take(lambda: len(seen) + 1, lambda drawn: seen.append(drawn)), seen, lock.broken
    (None, [1], False)
    """

    __slots__ = ("_lock", "_refusal", "broken")

    def __init__(
        self,
        what: str = "The step was refused",
        *,
        error: type[CloisterError],
        why: str = "the step before it was broken off, and may have been taken",
        instead: str,
    ) -> None:
        """What is refused once a step was broken off while it kept, why, and what to do instead."""
        self._lock, self._refusal = threading.Lock(), (error, what, why, instead)
        self.broken = False
        """Whether a step may have been taken whose release nobody has."""

    def take(self, draw: Callable[[], Drawn], keep: Callable[[Drawn], Kept]) -> Kept:
        """`draw` changes nothing, and may refuse; `keep` makes what was drawn the state, and gives what is released."""
        with self._lock:
            if self.broken:
                error, what, why, instead = self._refusal
                raise error(what, why=why, instead=instead)
            drawn = draw()
            self.broken = True  # before anything changes: an interruption of what follows finds it so
            try:
                kept = keep(drawn)
                self.broken = False
                return kept
            except BaseException:  # at `return`, too
                self.broken = True
                raise


class Sums(Protocol):
    """What names the attributes that a step changes."""

    changes: ClassVar[tuple[str, ...]]


AnySums = TypeVar("AnySums", bound=Sums)


def draft(made: AnySums) -> AnySums:
    """A copy for a step to change: its arrays, lists and sums are its own, and what no step changes is shared.

    >>> from cloister.traces.tree import BinaryTree
    >>> tree = BinaryTree(8)
    >>> draft(tree).close(1, 5), tree.sums
    (5, [0, 0, 0, 0])
    """
    found = copy.copy(made)
    for name in made.changes:
        value: Any = getattr(made, name)
        setattr(found, name, value.copy() if isinstance(value, np.ndarray | list) else draft(value))
    return found
