"""Failures without their history: what an engine, a reader or a codec says may hold a row, and so may the frames it failed in.

`raise … from None` hides the first exception and keeps it, in `__context__`. So here a failure is looked at inside its `except`
block and its replacement raised after that block has ended: then `__cause__` and `__context__` are None, and the traceback
begins here. The words of the engine go nowhere but to `owner_debug`, a hook that the owner may set on purpose.
"""

from collections.abc import Callable
from typing import TypeVar

from cloister.errors import CloisterError, EngineError
from cloister.tables.engines.workspace import memory_exceeded

Result = TypeVar("Result")

owner_debug: Callable[[BaseException], None] | None = None
"""Set by an owner who debugs: called with the engine's own exception, which may hold rows. Never set on a hub."""


def guarded(
    what: str,
    work: Callable[[], Result],
    *,
    why: str = "the engine failed; what it said is kept from the answer, since it may hold a row",
    instead: str = "",
) -> Result:
    """What the work gives; a refusal of ours passes without its history, any other failure becomes an `EngineError` of fixed
    text, and the `RuntimeError` into which DuckDB turns a Ctrl-C is a `KeyboardInterrupt` again.

    >>> def work():
    ...     raise ValueError("row 44: Alice")
    >>> try:
    ...     guarded("The engine could not answer", work, why="it failed")
    ... except EngineError as error:
    ...     print(error, error.__cause__, error.__context__)
    The engine could not answer: it failed. None None
    """
    refusal: CloisterError | KeyboardInterrupt
    try:
        return work()
    except CloisterError as error:
        error.__cause__ = error.__context__ = None
        refusal = error.with_traceback(None)
    except Exception as error:
        if owner_debug is not None:
            owner_debug(error)
        if isinstance(error, RuntimeError) and str(error) == "Query interrupted":
            refusal = KeyboardInterrupt()
        else:
            refusal = memory_exceeded(what) if _for_want_of_memory(error) else EngineError(what, why=why, instead=instead)
    try:
        raise refusal
    finally:
        del refusal  # it refers to this frame


def _for_want_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryException"  # the latter is DuckDB's


def tried(work: Callable[[], Result], *kinds: type[Exception]) -> Result | None:
    """What the work gives, None where it fails in one of the given ways: for a refusal that is raised outside of `except`.

    >>> tried(lambda: int("x"), ValueError) is None
    True
    """
    try:
        return work()
    except kinds:
        return None
