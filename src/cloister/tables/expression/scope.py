"""What a condition sees when it is turned into SQL, and how questions that differ only in numbers share one compilation.

Compiling takes milliseconds, more than asking a small table. So a condition is first walked with `Recorder`s in the place of
columns: that gives its shape (a text) and its numbers, in order, in microseconds. A shape that is new is compiled with a marker
for each number; after that the numbers are put in the markers' places. Only whole numbers that we computed are ever put in; text
literals are part of the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from cloister.errors import undeclared
from cloister.tables.declaring.columns import Domain
from cloister.tables.engines.ibis_compilers import ibis
from cloister.tables.expression.operations import Operations

_MARKER = 4_199_000_000_000_000_000
_MARKERS = re.compile(r"\b4199\d{15}\b")


class Scope:
    """What a condition sees: the declared columns and the Ibis columns of their codes."""

    def __init__(self, domains: Mapping[str, Domain], codes: Mapping[str, Any], dialect: str = "duckdb") -> None:
        self.domains = domains
        self.codes = codes
        self.dialect = dialect

    def domain(self, name: str) -> Domain:
        """The declaration of a column."""
        try:
            return self.domains[name]
        except KeyError:
            raise undeclared(name, self.domains) from None

    def code(self, name: str) -> Any:
        """The Ibis column that holds the codes."""
        self.domain(name)
        return self.codes[name]

    @property
    def operations(self) -> Operations:
        """What computed columns are made of, as this engine spells it."""
        return Operations(self.dialect)

    def plain(self) -> Scope:
        """The same columns with numbers as they are: what is computed is part of a relation, and compiled with it."""
        return self

    def constant(self, number: int) -> Any:
        """A whole number beside a code."""
        return number

    def truth(self, value: bool | None) -> Any:
        """TRUE, FALSE or NULL."""
        return ibis.literal(value, "boolean")


class TemplateScope(Scope):
    """Ibis columns, with a marker for each number."""

    def __init__(self, domains: Mapping[str, Domain], codes: Mapping[str, Any], dialect: str) -> None:
        super().__init__(domains, codes, dialect)
        self.count = 0

    def plain(self) -> Scope:
        """Without markers."""
        return Scope(self.domains, self.codes, self.dialect)

    def constant(self, number: int) -> Any:
        """The next marker."""
        self.count += 1
        return _MARKER + self.count - 1


def _recorded(done: str) -> Callable[..., Any]:
    """An operator or a method of Ibis, written down with what it is given."""

    def record(self: Recorder, *others: object) -> Recorder:
        return Recorder(f"({self.text} {done} {' '.join(map(repr, others))})")

    return record


class Recorder:
    """Stands for a column or a condition, and writes down what is done with it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    __eq__ = _recorded("=")
    __ne__ = _recorded("!=")
    __le__ = _recorded("<=")
    __ge__ = _recorded(">=")
    __lt__ = _recorded("<")
    __gt__ = _recorded(">")
    __and__ = _recorded("and")
    __or__ = _recorded("or")
    __add__ = _recorded("+")
    __mul__ = _recorded("*")
    __invert__ = _recorded("not")
    __hash__ = None  # type: ignore[assignment]

    isnull = _recorded("null")
    cast = _recorded("cast")
    like = _recorded("like")
    re_search = _recorded("search")

    def isin(self, values: list[Any]) -> Any:
        """As Ibis."""
        return _recorded("in")(self, *values)


class RecordingScope(Scope):
    """Recorders for columns; keeps the numbers."""

    def __init__(self, domains: Mapping[str, Domain], dialect: str) -> None:
        super().__init__(domains, {name: Recorder(repr(name)) for name in domains}, dialect)
        self.numbers: list[int] = []

    def constant(self, number: int) -> Any:
        """Kept, and a question mark in the shape."""
        self.numbers.append(number)
        return Recorder("?")

    def truth(self, value: bool | None) -> Any:
        """Part of the shape."""
        return Recorder(repr(value))


@lru_cache(maxsize=1024)
def holds_markers(sql: str, count: int) -> bool:
    """Whether each marker is in the SQL exactly once (a text literal may happen to hold the digits of one).

    >>> holds_markers("x >= 4199000000000000001 AND x <= 4199000000000000000", 2)
    True
    >>> holds_markers("x <= 4199000000000000000 AND t = '4199000000000000000'", 1)
    False
    """
    return sorted(_MARKERS.findall(sql)) == [str(_MARKER + i) for i in range(count)]


def filled(sql: str, numbers: Sequence[int]) -> str:
    """The numbers in the markers' places.

    >>> filled("x >= 4199000000000000001 AND x <= 4199000000000000000", [3, -1])
    'x >= (-1) AND x <= 3'
    """
    written = [str(number) if number >= 0 else f"({number})" for number in numbers]
    return _MARKERS.sub(lambda found: written[int(found.group()) - _MARKER], sql)
