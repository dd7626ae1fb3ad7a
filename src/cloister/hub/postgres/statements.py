"""What a statement is: a setting, a step of a transaction, a plan to see, a question, or something that is refused.

The first words decide. A question's text is left as it was written; who answers it is decided in `routing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from cloister.hub.postgres.failures import Refused
from cloister.hub.postgres.words import Word, statements, unquoted, words

__all__ = ["Deallocate", "Discard", "Explain", "Reset", "Select", "Set", "Show", "Statement", "Transaction", "read", "read_all"]

LONGEST = 100_000
_OPENERS = ("select", "with", "values", "table", "(")
_WRITING = """
insert update delete merge truncate create alter drop grant revoke comment copy vacuum analyze reindex cluster refresh lock import
load security do call checkpoint reassign
"""
_WRITES = frozenset(_WRITING.split())
_NO_CURSORS = "there are no cursors here: an answer is small, and is given whole"
_NO_NAMES = "statements have names in the protocol only, where drivers give them by themselves"
_NO_NEWS = "nothing is told here but answers"
_OTHERS = {
    **dict.fromkeys(("declare", "fetch", "move", "close"), _NO_CURSORS),
    **dict.fromkeys(("prepare", "execute"), _NO_NAMES),
    **dict.fromkeys(("listen", "notify", "unlisten"), _NO_NEWS),
}


@dataclass(frozen=True)
class Set:
    """SET name = value; None sets back to what it was first."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True)
class Reset:
    """RESET name, or ALL."""

    name: str


@dataclass(frozen=True)
class Show:
    """SHOW name, or ALL."""

    name: str


@dataclass(frozen=True)
class Transaction:
    """A step of a transaction, with the name of a savepoint where it has one."""

    step: Literal["begin", "commit", "rollback", "savepoint", "release", "rollback to", "nothing"]
    name: str = ""
    tag: str = ""


@dataclass(frozen=True)
class Discard:
    """DISCARD ALL, PLANS, SEQUENCES or TEMP."""

    what: str


@dataclass(frozen=True)
class Deallocate:
    """DEALLOCATE name, or ALL."""

    name: str


@dataclass(frozen=True)
class Select:
    """A question, with its words."""

    text: str
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Explain:
    """EXPLAIN of a question, as text or as JSON."""

    question: Select
    json: bool = False


Statement = Set | Reset | Show | Transaction | Discard | Deallocate | Select | Explain


def read_all(text: str) -> list[Statement]:
    """The statements of a text, in order.

    >>> [type(each).__name__ for each in read_all("SET cloister.spend = '0.1'; SELECT COUNT(*) FROM people;")]
    ['Set', 'Select']
    """
    if len(text) > LONGEST:
        raise Refused(
            "The text was refused", why=f"it is longer than {LONGEST:,} characters", instead="a shorter one", code="54000"
        )
    return [read(each, own) for each, own in statements(text)]


def read(text: str, own: Sequence[Word]) -> Statement:
    """One statement from its text and words.

    >>> read("SET cloister.spend TO 0.1", words("SET cloister.spend TO 0.1"))
    Set(name='cloister.spend', value='0.1', local=False)
    """
    first = own[0].lower if own[0].kind in ("word", "symbol") else ""
    if first in _OPENERS:
        return Select(text, tuple(own))
    if first in _READERS:
        return _READERS[first](text, _Rest(own[1:], first))
    shown = own[0].text[:32].upper()
    if first in _WRITES:
        raise Refused(f"{shown} was refused", why="nothing can be written here", instead="SELECT …", code="25006")
    if first in _OTHERS:
        raise Refused(f"{shown} was refused", why=_OTHERS[first], instead=_question_in(text, own) or "SELECT …")
    raise Refused(f"{shown!r} was refused", why="it begins no statement that is known here", instead="SELECT …", code="42601")


def _question_in(text: str, own: Sequence[Word]) -> str:
    """The question that a cursor or a name was to be given to: what begins at its SELECT.

    >>> text = "DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT COUNT(*) FROM people"
    >>> _question_in(text, words(text))
    'SELECT COUNT(*) FROM people'
    """
    for before, word in pairwise(own):
        if before.says("for", "as") and word.says(*_OPENERS):
            return text[word.start :]
    return ""


class _Rest:
    """The words that are still to be read."""

    def __init__(self, own: Sequence[Word], first: str) -> None:
        self.own, self.at, self.first = own, 0, first

    def had(self, *names: str) -> bool:
        """Reads these keywords, in order, where they come next."""
        found = self.own[self.at : self.at + len(names)]
        if len(found) == len(names) and all(word.says(name) for word, name in zip(found, names, strict=True)):
            self.at += len(names)
            return True
        return False

    def name(self) -> str:
        """A name, dots included."""
        word = self.next()
        if word.kind not in ("word", "quoted"):
            raise self.refused()
        return word.lower + ("." + self.name() if self.had(".") else "")

    def next(self) -> Word:
        """The next word."""
        if self.at >= len(self.own):
            raise self.refused()
        self.at += 1
        return self.own[self.at - 1]

    def value(self) -> str:
        """A value, or several with commas between them."""
        parts = []
        while True:
            sign = "-" if self.had("-") else ""
            word = self.next()
            if word.kind not in ("word", "quoted", "string", "number"):
                raise self.refused()
            parts.append(sign + (unquoted(word.text) if word.kind in ("string", "quoted") else word.text))
            if not self.had(","):
                return ", ".join(parts)

    def end(self) -> None:
        """Nothing may be left."""
        if self.at < len(self.own):
            raise self.refused()

    def refused(self) -> Refused:
        """It does not read as such a statement."""
        what = self.first.upper()
        return Refused(f"This {what} was refused", why="it cannot be read", instead=_EXAMPLES.get(self.first, what), code="42601")


_EXAMPLES = {
    "set": "SET cloister.spend = '0.1'",
    "reset": "RESET cloister.spend",
    "show": "SHOW cloister.spend",
    "explain": "EXPLAIN (FORMAT JSON) SELECT …",
}


def _set(_: str, rest: _Rest) -> Statement:
    local = rest.had("local")
    session = not local and rest.had("session")
    if rest.had("transaction") or (session and rest.had("characteristics")):
        return Transaction("nothing", tag="SET")
    if rest.own[rest.at : rest.at + 1] and rest.own[rest.at].says("role", "authorization"):
        raise Refused("SET ROLE was refused", why="a connection is one person's", instead="a log-in as the other", code="42501")
    if rest.had("time", "zone"):
        found = Set("timezone", rest.value(), local)
    elif rest.had("names"):
        found = Set("client_encoding", rest.value(), local)
    else:
        name = rest.name()
        if not (rest.had("=") or rest.had("to")):
            raise rest.refused()
        found = Set(name, None if rest.had("default") else rest.value(), local)
    rest.end()
    return found


def _one_name(rest: _Rest) -> str:
    if rest.had("transaction", "isolation", "level"):
        name = "transaction_isolation"
    else:
        name = "timezone" if rest.had("time", "zone") else rest.name()
    rest.end()
    return name


def _reset(_: str, rest: _Rest) -> Statement:
    return Reset(_one_name(rest))


def _show(_: str, rest: _Rest) -> Statement:
    return Show(_one_name(rest))


def _transaction(_: str, rest: _Rest) -> Statement:
    first = rest.first
    if first in ("begin", "start"):
        return Transaction("begin", tag="BEGIN" if first == "begin" else "START TRANSACTION")  # its modes change nothing here
    if first in ("savepoint", "release"):
        if first == "release":
            rest.had("savepoint")
        name = rest.name()
        rest.end()
        return Transaction("savepoint" if first == "savepoint" else "release", name, first.upper())
    if rest.had("prepared"):
        raise Refused("PREPARED was refused", why="a transaction here has nothing to prepare", instead=first.upper())
    if not rest.had("work"):
        rest.had("transaction")
    if first in ("rollback", "abort") and rest.had("to"):
        rest.had("savepoint")
        return Transaction("rollback to", rest.name(), "ROLLBACK")
    if rest.had("and", "no", "chain"):
        rest.end()
    rest.end()
    commit = first in ("commit", "end")
    return Transaction("commit" if commit else "rollback", tag="COMMIT" if commit else "ROLLBACK")


def _discard(_: str, rest: _Rest) -> Statement:
    what = rest.name()
    rest.end()
    if what not in ("all", "plans", "sequences", "temp", "temporary"):
        raise rest.refused()
    return Discard(what)


def _deallocate(_: str, rest: _Rest) -> Statement:
    rest.had("prepare")
    name = rest.name()
    rest.end()
    return Deallocate(name)


def _explain(text: str, rest: _Rest) -> Statement:
    json = False
    if rest.had("("):
        while not rest.had(")"):
            option = rest.name()
            value = rest.next().lower if not (rest.own[rest.at : rest.at + 1] and rest.own[rest.at].text in ",)") else "on"
            if option == "analyze" and value not in ("off", "false", "0"):
                raise _analyze()
            if option == "format":
                if value not in ("text", "json"):
                    raise rest.refused()
                json = value == "json"
            rest.had(",")
    elif rest.had("analyze"):
        raise _analyze()
    else:
        rest.had("verbose")
    if rest.at >= len(rest.own) or rest.own[rest.at].lower not in _OPENERS:
        raise rest.refused()
    start = rest.own[rest.at].start
    return Explain(Select(text[start:], tuple(words(text[start:]))), json)


def _analyze() -> Refused:
    return Refused("EXPLAIN ANALYZE was refused", why="it would ask the question, which costs", instead="EXPLAIN SELECT …")


_READERS = {
    "set": _set,
    "reset": _reset,
    "show": _show,
    "begin": _transaction,
    "start": _transaction,
    "commit": _transaction,
    "end": _transaction,
    "rollback": _transaction,
    "abort": _transaction,
    "savepoint": _transaction,
    "release": _transaction,
    "discard": _discard,
    "deallocate": _deallocate,
    "explain": _explain,
}
