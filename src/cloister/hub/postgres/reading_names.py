"""Statements about names: cursors (DECLARE, FETCH, MOVE, CLOSE) and prepared questions (PREPARE, EXECUTE, DEALLOCATE)."""

from __future__ import annotations

from cloister.hub.postgres.failures import Refused
from cloister.hub.postgres.rest import OPENERS, Rest
from cloister.hub.postgres.statements import Close, Deallocate, Declare, Execute, Fetch, Prepare, Select
from cloister.hub.postgres.steps import ALL, Step
from cloister.hub.postgres.values import type_in, values_in
from cloister.hub.postgres.words import words

_ONE = {"next": 1, "prior": -1}
_ENDS = {"first": 1, "last": -1}


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
    if not rest.had("for"):
        raise rest.refused()
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
            if types and not rest.had(","):
                raise rest.refused()
            kind = type_in(rest)
            types.append(0 if kind.name == "unknown" else kind.oid)
    if not rest.had("as"):
        raise rest.refused()
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
    for name, count in _ONE.items():
        if rest.had(name):
            return Step("forward", count)
    for name, count in _ENDS.items():
        if rest.had(name):
            return Step("absolute", count)
    for way in ("absolute", "relative"):
        if rest.had(way):
            return Step("absolute" if way == "absolute" else "relative", rest.number())
    sign = 1
    if rest.had("backward"):
        sign = -1
    else:
        rest.had("forward")
    if rest.had("all"):
        return Step("forward", sign * ALL)
    counted = rest.says("-") or (rest.at < len(rest.own) and rest.own[rest.at].kind == "number")
    return Step("forward", sign * (rest.number() if counted else 1))
