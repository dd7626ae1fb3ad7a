"""Which of several parties has done its part, for whoever follows the work of this thread: who answers is public."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FOLLOWER: ContextVar[Callable[[str], object] | None] = ContextVar("follower", default=None)


@contextmanager
def followed(told: Callable[[str], object]) -> Iterator[None]:
    """Tell the name of each party that answers meanwhile, each time.

    >>> from cloister.together import secure_sum
    >>> names: list[str] = []
    >>> with followed(names.append):
    ...     secure_sum({"north": [1], "south": [2], "west": [3]}).tolist()
    [6]
    >>> sorted(set(names)), len(names)  # five messages of each
    (['north', 'south', 'west'], 15)
    """
    before = _FOLLOWER.set(told)
    try:
        yield
    finally:
        _FOLLOWER.reset(before)


def heard(party: str) -> None:
    """A party has answered."""
    told = _FOLLOWER.get()
    if told is not None:
        told(party)
