"""One family of exceptions; each message says what was refused, why, and the line to write instead.

The tree::

    CloisterError
    ├── InvalidParameter (also a ValueError)   a number, name or choice that no method can use
    ├── InvalidDeclaration (also a ValueError) what is declared of a table contradicts itself or the source
    ├── MissingBound                           a bound, category list, row cap or key list is needed and not declared
    ├── UnknownColumn (also a LookupError)     a column that the table does not declare
    ├── UnknownTable (also a LookupError)      a table that the session does not know
    ├── UnsupportedQuery                       a question outside what is proved safe
    ├── BudgetExceeded                         the population (or the share) has too little left
    ├── AccessDenied                           this person may not do this
    ├── NotConvertible                         a guarantee that does not imply the one asked for
    ├── MissingDependency (also an ImportError) an optional extra is not installed
    ├── EngineError                            the engine failed; fixed text, since its own words may hold a row
    ├── Missing, Conflict, TooMany             of a hub: nothing to be seen under that name; what contradicts; too much at once
    └── LedgerError                            the ledger cannot do this
        ├── LedgerUnavailable                  disk full, read-only, locked, or unreachable
        ├── LedgerTampered                     a line changed, dropped, truncated or rolled back
        └── LedgerFrozen                       restored from a backup; the owner must say what was lost

Messages are computed from public facts alone (promise 1): they may name columns, bounds and budgets, never rows or counts.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

__all__ = [
    "AccessDenied",
    "BudgetExceeded",
    "CloisterError",
    "EngineError",
    "InvalidDeclaration",
    "InvalidParameter",
    "LedgerError",
    "LedgerFrozen",
    "LedgerTampered",
    "LedgerUnavailable",
    "MissingBound",
    "MissingDependency",
    "NotConvertible",
    "UnknownColumn",
    "UnknownTable",
    "UnsupportedQuery",
]

_LONGEST_WORD, _LONGEST_PART = 200, 4_000
_LONG_WORD = re.compile(rf"[^\s\u3000-\u9fff\uff00-\uffef]{{{_LONGEST_WORD + 1},}}")
"""Chinese has no spaces between words."""


_HELD = re.compile(r"array\(.*[)…]|\[\{.*[\]…]|\{[^{}]*\[.*[}…]", re.DOTALL)
"""An array, a list of records, or columns of lists, as Python shows them."""
_FRAME = re.compile(r"(.*?)(?:(=)|  |\n).*?((?: is| are)(?: not)? \w+)?", re.DOTALL)


def rowless(what: str) -> str:
    """The text without what holds rows: somebody gave a frame, an array or columns where a number or a name belongs. A frame has
    several lines; a text or a name that is given has one, as `repr` writes it.

    >>> rowless("k=    age  pay\\n0    39   12\\n1    51   30 is invalid"), rowless("k=array([39, 51]) is invalid")
    ('k=… is invalid', 'k=… is invalid')
    """
    found = _HELD.sub("…", what)
    frame = _FRAME.fullmatch(found) if "\n" in found else None
    return f"{frame[1]}{frame[2] or ' '}…{frame[3] or ''}" if frame else found


def brief(text: str) -> str:
    """The text as a message may repeat it: of a word that is longer than a name may be its beginning, and of many words (the list
    of a thousand columns) the first and the last.

    >>> brief("The value " + "x" * 100_000 + " is invalid") == "The value " + "x" * 60 + "… is invalid"
    True
    >>> len(brief("column, " * 1_000))
    1203
    """
    if len(text) <= _LONGEST_WORD:
        return text
    found = _LONG_WORD.sub(lambda word: word[0][:60] + "…" + re.sub(r"[^'\")}\],.:;]", "", word[0][-3:]), text)
    return found if len(found) <= _LONGEST_PART else f"{found[:1000]} … {found[-200:]}"


class CloisterError(Exception):
    """The root of everything that cloister raises on purpose.

    `rule` names the rule that refused, where one did: a grant, a ceiling, a rule of the institution. What a message repeats of
    what somebody gave is shortened (`brief`).

    >>> error = CloisterError("This was refused", why="it could not be proved safe", instead="ask('something else')")
    >>> print(error)
    This was refused: it could not be proved safe.
      Instead: ask('something else')
    """

    stored = "CloisterError"
    """What the audit log calls it (`stored_name`): a literal of each class."""

    def __init__(self, what: str, *, why: str = "", instead: str = "", rule: str = "") -> None:
        what, why = brief(rowless(what)), brief(why)
        instead = instead if len(instead) <= _LONGEST_PART else brief(instead)  # a line to copy stays whole
        self.what, self.why, self.instead = what, why, instead
        self.rule = rule
        text = f"{what}: {why}." if why else f"{what}."
        super().__init__(f"{text}\n  Instead: {instead}" if instead else text)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.why, self.instead, self.rule))


def stored_name(error: Exception) -> str:
    """What the audit log calls an error: what its own class declares. One that declares nothing goes by what it is called.

    >>> stored_name(UnknownColumn("The column 'x' is not known"))
    'UnknownColumn'
    """
    kind = type(error)
    return str(vars(kind).get("stored", kind.__name__))


def _rebuild(kind: type[CloisterError], what: str, why: str, instead: str, rule: str) -> CloisterError:
    error = kind(what, why=why, instead=instead)
    error.rule = rule  # not every kind takes it
    return error


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """The known name that a wrong one was most likely meant to be: for the line to write instead.

    >>> nearest("peple", ["towns", "people"], "x"), nearest("x", ["towns", "people"], "x"), nearest("x", [], "people")
    ('people', 'towns', 'people')
    """
    import difflib

    given = list(known)
    found = difflib.get_close_matches(str(name).lower(), [each.lower() for each in given], n=1)
    return next((each for each in given if found and each.lower() == found[0]), next(iter(given), otherwise))


class InvalidParameter(CloisterError, ValueError):
    """A number, a name or a choice that no method can use."""

    stored = "InvalidParameter"


def check_whole(value: object, name: str, least: int, most: int | None = None, *, why: str, instead: str) -> None:
    """Refuse what is not a whole number from `least` (to `most`); for parameters that are public.

    >>> check_whole(3, "k", 2, why="a group has two rows at least", instead="k=5")
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        raise InvalidParameter(f"{name}={value!r} is invalid", why=why, instead=instead)


@contextmanager
def numbers_alone(name: str) -> Iterator[None]:
    """What NumPy says of a text among numbers shows it: in its place, a refusal by the name of the parameter.

    >>> with numbers_alone("X"):
    ...     float("a value of a row")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: X is invalid: something in it is not a number.
      Instead: columns of numbers
    """
    try:
        yield
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise InvalidParameter(
            f"{name} is invalid", why="something in it is not a number", instead="columns of numbers"
        ) from None


def check_one_of(value: object, name: str, known: Collection[str], *, why: str = "", instead: str) -> None:
    """Refuse what is not one of the names that a parameter may have.

    >>> check_one_of("drop", "suppressed", ("drop", "star"), instead='suppressed="drop"')
    """
    if value not in known:
        why = why or "it is not one of " + ", ".join(map(repr, known))
        raise InvalidParameter(f"{name}={value!r} is invalid", why=why, instead=instead)


class InvalidDeclaration(CloisterError, ValueError):
    """What is declared of a table contradicts itself, or does not fit the source."""

    stored = "InvalidDeclaration"


def undeclared(name: str, known: Iterable[str]) -> UnknownColumn:
    """The refusal of a column that is not declared, with the nearest one that is.

    >>> print(undeclared("agee", ["sex", "age"]))
    The column 'agee' is not known: declared are 'sex', 'age'.
      Instead: 'age'
    """
    names = list(known)
    return UnknownColumn(
        f"The column {name!r} is not known",
        why=f"declared are {', '.join(map(repr, names)) or 'no columns'}",
        instead=repr(nearest(str(name), names, "column")),
    )


class MissingBound(CloisterError):
    """A bound, a category list, a row cap or a key list is needed, and bounds are never looked up."""

    stored = "MissingBound"


class UnknownColumn(CloisterError, LookupError):
    """A column that the table does not declare."""

    stored = "UnknownColumn"


class UnknownTable(CloisterError, LookupError):
    """A table that the session does not know."""

    stored = "UnknownTable"


class UnsupportedQuery(CloisterError):
    """A question outside the list of what is proved safe."""

    stored = "UnsupportedQuery"


class BudgetExceeded(CloisterError):
    """The population's budget, or the analyst's share, has too little left."""

    stored = "BudgetExceeded"


class AccessDenied(CloisterError):
    """This person may not do this."""

    stored = "AccessDenied"


class NotConvertible(CloisterError):
    """A guarantee that does not imply the one asked for."""

    stored = "NotConvertible"


class MissingDependency(CloisterError, ImportError):
    """An optional extra is not installed."""

    stored = "MissingDependency"


class EngineError(CloisterError):
    """The engine failed. The text is fixed: the engine's own words may hold a row."""

    stored = "EngineError"


class LedgerError(CloisterError):
    """The ledger cannot do this."""

    stored = "LedgerError"


class LedgerUnavailable(LedgerError):
    """The ledger's storage is full, read-only, locked or unreachable: nothing is answered."""

    stored = "LedgerUnavailable"


class LedgerTampered(LedgerError):
    """A line of the ledger was changed, dropped or truncated, or an older copy was put in its place."""

    stored = "LedgerTampered"


class LedgerFrozen(LedgerError):
    """The ledger was restored from a backup: its owner must first say how much was spent since."""

    stored = "LedgerFrozen"


class Missing(CloisterError):
    """There is no such thing, or not for this person: the two are not told apart."""

    stored = "Missing"


class TooMany(CloisterError):
    """Too many attempts in too short a time."""

    stored = "TooMany"

    def __init__(self, what: str, *, why: str = "", instead: str = "", after: int = 60) -> None:
        super().__init__(what, why=why, instead=instead)
        self.after = after


class Conflict(CloisterError):
    """What was asked contradicts what was done before, such as an idempotency key with another body."""

    stored = "Conflict"
