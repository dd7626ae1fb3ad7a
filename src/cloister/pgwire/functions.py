"""Functions of the schema `cloister` that a SELECT calls as a table: `SELECT * FROM cloister.run('middle', 'people', '0.1')`.

What a function does is a service's (`hub/service.py`); here its call is read: a name, and arguments that are texts or numbers.
Of its rows a statement may name columns, their order and how many; whatever else is worked out of them is worked out by the
client. All of it is checked against the columns that the function declares before it is called, since a call may cost something.

>>> call = called("SELECT r.value AS v FROM cloister.run('middle', 'people', 0.1) AS r ORDER BY margin DESC LIMIT 3")
>>> call.arguments, call.columns, call.order, call.limit
(('middle', 'people', '0.1'), (('value', 'v'),), (('margin', True),), 3)
>>> called("SELECT * FROM people") is None
True
>>> called("SELECT max(value) FROM cloister.run('middle', 'people')")
Traceback (most recent call last):
cloister.errors.UnsupportedQuery: The call is not supported: ...
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cloister.errors import UnsupportedQuery
from cloister.pgwire.backend import AnswerColumn
from cloister.pgwire.words import Word, unquoted, words
from cloister.session import Frame
from cloister.session.releases.frames import Series

FUNCTIONS = ("run",)
_MOST = 4
_CLAUSES = ("order", "limit")


@dataclass(frozen=True)
class Called:
    """A function by its name, what it is given, and which of its rows are wanted."""

    name: str
    arguments: tuple[str, ...]
    columns: tuple[tuple[str, str], ...] = ()
    """Which, and how each is called in the answer; none: all."""
    order: tuple[tuple[str, bool], ...] = ()
    """By which columns, and whether from the largest on."""
    limit: int | None = None

    def shaped(self, declared: Iterable[AnswerColumn]) -> list[AnswerColumn]:
        """The columns of the answer, from those of the function; refused where it has no such column."""
        known = {each.name: each for each in declared}
        outputs = {output: column for column, output in self.columns}
        for name in (*(column for column, _ in self.columns), *(outputs.get(name, name) for name, _ in self.order)):
            if name not in known:
                raise UnsupportedQuery(
                    f"The column {name!r} is not supported", why="the function has no such column", instead=", ".join(known)
                )
        wanted = self.columns or tuple((name, name) for name in known)
        return [known[column]._replace(name=output) for column, output in wanted]

    def laid_out(self, table: Frame) -> Frame:
        """What is wanted of the function's rows, as PostgreSQL would order them: an absent value is the largest."""
        outputs = {output: column for column, output in self.columns}
        rows = list(range(len(table)))
        for name, descending in reversed(self.order):
            values = table.columns[outputs.get(name, name)].tolist()
            keys = [(value is None or value != value, 0 if value is None or value != value else value) for value in values]
            rows.sort(key=keys.__getitem__, reverse=descending)
        kept = np.array(rows[: self.limit], dtype=np.int64)
        wanted = self.columns or tuple((name, name) for name in table.column_names)
        return Frame({output: Series(table.columns[name].kind, table.columns[name].values[kept]) for name, output in wanted})


def called(text: str) -> Called | None:
    """The call that a text is; None where it names no function. Refused where it is more than a call."""
    own = [word for word in words(text) if word.text != ";"]
    starts = [place for place in range(len(own)) if _begins(own[place : place + 4])]
    if not starts:
        return None
    [first, *more] = starts
    close = next((place for place in range(first, len(own)) if own[place].text == ")"), len(own))
    given, rest = own[first + 4 : close], own[close + 1 :]
    if more or close == len(own) or not _listed(given):
        raise _refused()
    name, names = own[first + 2].lower, {own[first + 2].lower, "cloister"}
    if rest and not rest[0].says(*_CLAUSES, ","):
        place = 1 if rest[0].says("as") else 0
        if len(rest) <= place or rest[place].kind not in ("word", "quoted"):
            raise _refused()
        names, rest = {rest[place].lower}, rest[place + 1 :]
    if not own[0].says("select") or first < 3 or not own[first - 1].says("from"):
        raise _refused()
    columns = _columns(own[1 : first - 1], names)
    order, ended = _order(rest, names)
    values = tuple(unquoted(word.text) if word.kind == "string" else word.text for word in given[::2])
    return Called(name, values, columns, order, _limit(ended))


def _columns(listed: Sequence[Word], names: set[str]) -> tuple[tuple[str, str], ...]:
    if len(listed) == 1 and listed[0].text == "*":
        return ()
    found = []
    for part in _parts(listed):
        column, rest = _name(part, names)
        rest = rest[1:] if rest and rest[0].says("as") else rest
        if len(rest) > 1 or any(word.kind not in ("word", "quoted") for word in rest):
            raise _refused()
        found.append((column, rest[0].lower if rest else column))
    if len({output for _, output in found}) < len(found):
        raise _refused()
    return tuple(found)


def _order(rest: Sequence[Word], names: set[str]) -> tuple[tuple[tuple[str, bool], ...], Sequence[Word]]:
    """What stands after ORDER BY, and what comes after it."""
    if not rest or not rest[0].says("order"):
        return (), rest
    end = next((place for place, word in enumerate(rest) if word.says("limit")), len(rest))
    if len(rest) < 3 or not rest[1].says("by"):
        raise _refused()
    found = []
    for part in _parts(rest[2:end]):
        column, way = _name(part, names)
        if len(way) > 1 or (way and not way[0].says("asc", "desc")):
            raise _refused()
        found.append((column, bool(way) and way[0].says("desc")))
    return tuple(found), rest[end:]


def _limit(rest: Sequence[Word]) -> int | None:
    if not rest:
        return None
    if len(rest) != 2 or not rest[0].says("limit") or not rest[1].text.isdecimal():
        raise _refused()
    return int(rest[1].text[:12])


def _parts(listed: Sequence[Word]) -> list[list[Word]]:
    """What stands between commas."""
    parts: list[list[Word]] = [[]]
    for word in listed:
        if word.text == ",":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def _name(part: Sequence[Word], names: set[str]) -> tuple[str, Sequence[Word]]:
    """A column, with or without the name of the call before it; and the words after it."""
    if len(part) > 2 and part[1].text == "." and part[0].lower in names:
        part = part[2:]
    if not part or part[0].kind not in ("word", "quoted"):
        raise _refused()
    return part[0].lower, part[1:]


def _refused() -> UnsupportedQuery:
    return UnsupportedQuery(
        "The call is not supported",
        why="a function stands alone, is given texts and numbers, and names columns, ORDER BY and LIMIT at most",
        instead="SELECT * FROM cloister.run('name', 'data set', '0.1') AS r ORDER BY value LIMIT 10",
    )


def _begins(four: Sequence[Word]) -> bool:
    if len(four) < 4:
        return False
    schema, dot, name, bracket = four
    return schema.lower == "cloister" and dot.text == "." and name.lower in FUNCTIONS and bracket.text == "("


def _listed(given: Sequence[Word]) -> bool:
    return (
        len(given) % 2 == 1
        and len(given) < 2 * _MOST
        and all(word.text == "," for word in given[1::2])
        and all(word.kind in ("string", "number") for word in given[::2])
    )
