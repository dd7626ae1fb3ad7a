"""Statements from their texts. The first words decide; a question's text is left as it was written."""

from collections.abc import Callable, Sequence

from cloister.pgwire.copying import copy
from cloister.pgwire.failures import Refused
from cloister.pgwire.statements import (
    ALL,
    Close,
    Deallocate,
    Declare,
    Discard,
    Execute,
    Explain,
    Fetch,
    Prepare,
    Reset,
    Select,
    Set,
    Show,
    Statement,
    Step,
    Transaction,
)
from cloister.pgwire.values import type_in, values_in
from cloister.pgwire.words import OPENERS, Rest, Word, statements, words

_STEPS = {"next": Step("forward", 1), "prior": Step("forward", -1), "first": Step("absolute", 1), "last": Step("absolute", -1)}


def question_in(text: str, rest: Rest) -> Select:
    """The question that is the rest of a text."""
    if not rest.says(*OPENERS):
        raise rest.refused()
    start = rest.own[rest.at].start
    return Select(text[start:], tuple(words(text[start:])))


def declare(text: str, rest: Rest) -> Declare:
    """DECLARE name [BINARY] [INSENSITIVE | ASENSITIVE] [[NO] SCROLL] CURSOR [WITH | WITHOUT HOLD] FOR question."""
    name = rest.plain_name()
    binary, scroll = False, None
    while not rest.had("cursor"):
        if rest.had("binary"):
            binary = True
        elif rest.had("no", "scroll"):
            scroll = False
        elif rest.had("scroll"):
            scroll = True
        elif not (rest.had("insensitive") or rest.had("asensitive")):
            raise rest.refused()
    hold = rest.had("with", "hold")
    if not hold:
        rest.had("without", "hold")
    rest.expect("for")
    return Declare(name, question_in(text, rest), text, scroll, hold, binary)


def fetch(_: str, rest: Rest) -> Fetch:
    """FETCH or MOVE, [direction] [FROM | IN] name.

    >>> fetch("", Rest(words("BACKWARD ALL IN c"), "move"))
    Fetch(name='c', step=Step(way='forward', count=-9223372036854775808), move=True)
    """
    step = Step("forward", 1) if _is_name(rest) else _step(rest)
    if not rest.had("from"):
        rest.had("in")
    name = rest.plain_name()
    rest.end()
    return Fetch(name, step, rest.first == "move")


def close(_: str, rest: Rest) -> Close:
    """CLOSE name, or ALL."""
    return Close(_name_or_all(rest))


def prepare(text: str, rest: Rest) -> Prepare:
    """PREPARE name [(types)] AS question."""
    if rest.had("transaction"):
        raise Refused("PREPARE TRANSACTION is not supported", why="a transaction here has nothing to prepare", instead="COMMIT")
    name = rest.plain_name()
    types: list[int] = []
    if rest.had("("):
        while not rest.had(")"):
            if types:
                rest.expect(",")
            kind = type_in(rest)
            types.append(0 if kind.name == "unknown" else kind.oid)
    rest.expect("as")
    return Prepare(name, tuple(types), question_in(text, rest))


def execute(_: str, rest: Rest) -> Execute:
    """EXECUTE name [(values)]."""
    name = rest.plain_name()
    values = values_in(rest) if rest.says("(") else ()
    rest.end()
    return Execute(name, values)


def deallocate(_: str, rest: Rest) -> Deallocate:
    """DEALLOCATE [PREPARE] name, or ALL."""
    if len(rest.own) > 1:
        rest.had("prepare")
    return Deallocate(_name_or_all(rest))


def _name_or_all(rest: Rest) -> str | None:
    name = None if rest.had("all") else rest.plain_name()
    rest.end()
    return name


def _is_name(rest: Rest) -> bool:
    """Whether no direction is written."""
    left = len(rest.own) - rest.at
    return left == 1 or (left == 2 and rest.says("from", "in"))


def _step(rest: Rest) -> Step:
    for name, step in _STEPS.items():
        if rest.had(name):
            return step
    if rest.had("absolute"):
        return Step("absolute", rest.number())
    if rest.had("relative"):
        return Step("relative", rest.number())
    sign = -1 if rest.had("backward") else 1
    if sign == 1:
        rest.had("forward")
    if rest.had("all"):
        return Step("forward", sign * ALL)
    counted = rest.says("-") or (rest.at < len(rest.own) and rest.own[rest.at].kind == "number")
    return Step("forward", sign * (rest.number() if counted else 1))


LONGEST = 100_000
_WRITING = """
insert update delete merge truncate create alter drop grant revoke comment vacuum analyze reindex cluster refresh lock import
load security do call checkpoint reassign
"""
_WRITES = frozenset(_WRITING.split())
_NEWS = ("listen", "notify")
_LEVELS = ("serializable", "repeatable read", "read committed", "read uncommitted")
_MODES = [each.split() for each in ("read only", "read write", "deferrable", "not deferrable")]
_MODES += [["isolation", "level", *each.split()] for each in _LEVELS]
_OPTIONS = ("analyze", "buffers", "costs", "format", "generic_plan", "memory", "settings", "summary", "timing", "verbose", "wal")


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


def read_one(text: str) -> Statement:
    """The one statement of a text.

    >>> read_one("SHOW cloister.spend")
    Show(name='cloister.spend')
    """
    [statement] = read_all(text)
    return statement


def read(text: str, own: Sequence[Word]) -> Statement:
    """One statement from its text and words.

    >>> from cloister.pgwire.words import words
    >>> read("SET cloister.spend TO 0.1", words("SET cloister.spend TO 0.1"))
    Set(name='cloister.spend', value='0.1', local=False)
    """
    first = own[0].lower if own[0].kind in ("word", "symbol") else ""
    if first in OPENERS:
        return Select(text, tuple(own))
    if first in _READERS:
        try:
            return _READERS[first](text, Rest(own[1:], first))
        except RecursionError:
            why = "what stands within one another is too deep"
            raise Refused(f"This {first.upper()} was refused", why=why, instead="fewer parentheses", code="54001") from None
    shown = own[0].text[:32].upper()
    if first in _WRITES:
        raise Refused(f"{shown} was refused", why="nothing can be written here", instead="SELECT …", code="25006")
    if first in _NEWS:
        raise Refused(f"{shown} is not supported", why="nothing is told here but answers", instead="SELECT …")
    raise Refused(f"{shown!r} is invalid", why="it begins no statement that is known here", instead="SELECT …", code="42601")


def _set(_: str, rest: Rest) -> Statement:
    local = rest.had("local")
    session = not local and rest.had("session")
    if rest.had("transaction") or (session and rest.had("characteristics", "as", "transaction")):
        return _with_modes(Transaction("nothing", tag="SET"), rest)
    if rest.had("role") or rest.had("authorization"):
        if not (rest.had("none") or rest.had("default")):
            raise Refused(
                "SET ROLE was refused", why="a connection is one person's", instead="a log-in as the other", code="42501"
            )
        rest.end()
        return Transaction("nothing", tag="SET")
    if rest.had("time", "zone"):
        found = Set("timezone", None if rest.had("default") or rest.had("local") else rest.value(), local)
    elif rest.had("names"):
        found = Set("client_encoding", None if rest.had("default") else rest.value(), local)
    else:
        name = rest.name()
        if not (rest.had("=") or rest.had("to")):
            raise rest.refused()
        found = Set(name, None if rest.had("default") else rest.value(), local)
    rest.end()
    return found


def _with_modes(step: Transaction, rest: Rest) -> Transaction:
    """The step, where what follows are modes of a transaction: they change nothing here."""
    while rest.at < len(rest.own):
        if not any(rest.had(*mode) for mode in _MODES):
            raise rest.refused()
        rest.had(",")
    return step


def _reset(_: str, rest: Rest) -> Statement:
    if rest.had("role") or rest.had("session", "authorization"):
        rest.end()
        return Transaction("nothing", tag="RESET")
    return Reset(_one_name(rest))


def _one_name(rest: Rest) -> str:
    if rest.had("transaction", "isolation", "level"):
        name = "transaction_isolation"
    else:
        name = "timezone" if rest.had("time", "zone") else rest.name()
    rest.end()
    return name


def _transaction(_: str, rest: Rest) -> Statement:
    first = rest.first
    if first in ("begin", "start"):
        if not rest.had("work"):
            rest.had("transaction")
        return _with_modes(Transaction("begin", tag="BEGIN" if first == "begin" else "START TRANSACTION"), rest)
    if first in ("savepoint", "release"):
        if first == "release":
            rest.had("savepoint")
        name = rest.name()
        rest.end()
        return Transaction("savepoint" if first == "savepoint" else "release", name, first.upper())
    if rest.had("prepared"):
        raise Refused("PREPARED is not supported", why="a transaction here has nothing to prepare", instead=first.upper())
    if not rest.had("work"):
        rest.had("transaction")
    if first in ("rollback", "abort") and rest.had("to"):
        rest.had("savepoint")
        return Transaction("rollback to", rest.name(), "ROLLBACK")
    chain = "chain" if not rest.had("and", "no", "chain") and rest.had("and", "chain") else ""
    rest.end()
    commit = first in ("commit", "end")
    return Transaction("commit" if commit else "rollback", chain, "COMMIT" if commit else "ROLLBACK")


def _unlisten(_: str, rest: Rest) -> Statement:
    if not rest.had("*"):
        rest.plain_name()
    rest.end()
    return Transaction("nothing", tag="UNLISTEN")  # nothing is listened to


def _discard(_: str, rest: Rest) -> Statement:
    what = rest.name()
    rest.end()
    if what not in ("all", "plans", "sequences", "temp", "temporary"):
        raise rest.refused()
    return Discard(what)


def _explain(text: str, rest: Rest) -> Statement:
    json = False
    if not (rest.says("(") and rest.own[rest.at + 1 :] and rest.own[rest.at + 1].says(*OPENERS)) and rest.had("("):
        while not rest.had(")"):
            option = rest.name()
            value = "on" if rest.says(",", ")") else rest.next().lower
            if option not in _OPTIONS:
                raise rest.refused()
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
    if rest.had("execute"):
        return Explain(execute(text, rest), json)
    if rest.had("declare"):
        return Explain(declare(text, rest).question, json)
    return Explain(question_in(text, rest), json)


def _analyze() -> Refused:
    return Refused("EXPLAIN ANALYZE is not supported", why="it would ask the question, which costs", instead="EXPLAIN SELECT …")


_READERS: dict[str, Callable[[str, Rest], Statement]] = {
    "set": _set,
    "reset": _reset,
    "show": lambda _, rest: Show(_one_name(rest)),
    **dict.fromkeys(("begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release"), _transaction),
    "discard": _discard,
    "explain": _explain,
    "unlisten": _unlisten,
    "declare": declare,
    "fetch": fetch,
    "move": fetch,
    "close": close,
    "copy": copy,
    "prepare": prepare,
    "execute": execute,
    "deallocate": deallocate,
}
