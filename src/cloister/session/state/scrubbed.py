"""Where exact values are handled, nothing but results may come out: not a message, not a cause, not a frame of the stack.

`raise … from None` hides a cause from the printed trace and keeps it in `__context__`; a trace keeps the frames, and these keep
the rows. So the work runs in a call of its own, and what it raises is replaced, after that call has ended, by a new exception
with a text of ours.
"""

from collections.abc import Callable
from typing import TypeVar

from cloister.errors import CloisterError, EngineError
from cloister.tables.engines.workspace import MemoryExceeded, memory_exceeded

Result = TypeVar("Result")


def scrubbed(work: Callable[[], Result], *, trusted: bool = True, named: bool = False) -> Result:
    """What `work` returns; what it raises comes out as a new exception without a past.

    A refusal of our own keeps its text, which is made from public facts; with `trusted=False` (a method that we did not write)
    even that is replaced. Want of memory has a text of its own, always the same. An interruption stays an interruption.
    `named`: the work is charged under a name of its own, so a new order would be another charge.

    >>> scrubbed(lambda: 1 / 0)
    Traceback (most recent call last):
    cloister.errors.EngineError: The query was not answered: ...
    """
    failure: BaseException
    try:
        return work()
    except KeyboardInterrupt:
        failure = KeyboardInterrupt()
    except (MemoryExceeded, MemoryError):
        failure = memory_exceeded()
    except CloisterError as error:
        failure = type(error)(error.what, why=error.why, instead=error.instead) if trusted else engine_failed(named)
    except BaseException:  # SystemExit and the like hold words too
        failure = engine_failed(named)
    raise failure


def engine_failed(named: bool = False) -> EngineError:
    """The one text of every failure behind the door.

    >>> print(engine_failed().what)
    The query was not answered
    """
    return EngineError(
        "The query was not answered",
        why="the engine or the method failed; its message is withheld because it may contain private data; what was reserved "
        "for it, if anything, stays charged",
        instead="another method, or other parameters: a new order is charged again"
        if named
        else "ask again: the same query runs once more under the same charge",
    )
