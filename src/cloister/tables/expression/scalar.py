"""What a computed column is: a frozen description, its domain from the domains of the columns, its codes from their codes.

Everything is decided from declarations: `domain` gives bounds that hold for every row, or refuses; `code` gives an expression
over prepared codes that cannot fail on any row and is NULL where the result is undefined. The two classes here are the leaves,
a column and a constant; `scalars.py` lists all others.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import InvalidParameter, UnsupportedQuery, undeclared
from cloister.privacy.rational import exact, text_of
from cloister.tables.declaring.columns import Domain
from cloister.tables.expression.expressions import Expression
from cloister.tables.expression.forms import Build, Form, Interval, Listed, Moments, Nothing, Number, either, form_of, shortest
from cloister.tables.expression.scope import Scope
from cloister.tables.sourcing.reading import EPOCH, representable

Domains = Mapping[str, Domain]
_DEEPEST = 60


@dataclass(frozen=True)
class Scalar(ABC):
    """One computed column. Frozen, hashable, made of other scalars."""

    stored: ClassVar[str]
    """What digests call it: each class has a name of its own, and keeps it whatever the class is called."""
    depth = 1
    """How many scalars stand inside one another; at most 60, so that no walk over them can exhaust the stack."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.type == "Scalar":  # an annotation is its text, by `from __future__ import annotations`
                need(getattr(self, each.name), type(self).__name__)
        depth = 1 + max((part.depth for part in self.inner()), default=0)
        if depth > _DEEPEST:
            raise UnsupportedQuery(
                "A computed column is not supported",
                why=f"more than {_DEEPEST} expressions stand inside one another",
                instead="two steps",
            )
        object.__setattr__(self, "depth", depth)

    def inner(self) -> Iterator[Scalar]:
        """The scalars that it is made of."""
        for each in _walk(self):
            if isinstance(each, Scalar):
                yield each

    def columns(self) -> frozenset[str]:
        """The names of the columns that it reads, those of conditions included."""
        found: frozenset[str] = frozenset()
        for each in _walk(self):
            found |= each.columns()
        return found

    def describe(self) -> Any:
        """A canonical form as plain data."""
        return [vars(type(self))["stored"], *(_plain(getattr(self, each.name)) for each in fields(self) if each.init)]

    def domain(self, domains: Domains) -> Domain:
        """What the column may hold, by interval arithmetic; refuses where no bound follows from the declarations."""
        return self.form(domains).domain()

    def code(self, scope: Scope) -> Any:
        """The codes, as an expression over the codes of the columns; NULL for every undefined result."""
        form = self.form(scope.domains)
        form.domain()
        return shortest(form, scope.plain())

    def is_exact(self, domains: Domains) -> bool:
        """Whether every engine gives the same: false where an engine's own logarithm, exponential or power goes in."""
        return self.form(domains).exact

    @abstractmethod
    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """Bounds and expression; `within` are bounds that what stands around it will clamp the result into."""


@dataclass(frozen=True)
class Ref(Scalar):
    """A column, declared or computed before.

    >>> from cloister.tables.declaring.columns import Integer
    >>> Ref("age").domain({"age": Integer(0, 120)})
    Integer(low=0, high=120, nullable=False)
    """

    stored: ClassVar[str] = "ref"

    name: str

    def columns(self) -> frozenset[str]:
        """The column itself."""
        return frozenset({self.name})

    def domain(self, domains: Domains) -> Domain:
        """That of the column, unchanged."""
        try:
            return domains[self.name]
        except KeyError:
            raise undeclared(self.name, domains) from None

    def code(self, scope: Scope) -> Any:
        """The codes of the column, unchanged."""
        return scope.code(self.name)

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The column as it enters a computation."""
        return form_of(self.name, self.domain(domains))


@dataclass(frozen=True)
class Const(Scalar):
    """A constant: a number (a float means its shortest decimal text), text, a day, a truth value, or None (NULL).

    >>> Const(0.1).describe(), Const("2026-01-31").describe(), Const(1) == Const(True)
    (['const', 'number', '0.1'], ['const', 'text', '2026-01-31'], False)
    """

    stored: ClassVar[str] = "const"

    value: Any
    kind: str = field(init=False)

    def __post_init__(self) -> None:
        value, kind = self.value, ""
        if value is None:
            kind = "null"
        elif isinstance(value, bool):
            kind = "truth"
        elif isinstance(value, str):
            kind = "text"
            if not representable(value):
                raise UnsupportedQuery(
                    "A text is not supported", why="it holds NUL or a lone surrogate", instead="text without NUL"
                )
        elif isinstance(value, datetime.datetime):
            raise UnsupportedQuery("A time is not supported", why="columns hold whole days", instead="DATE '2026-01-31'")
        elif isinstance(value, datetime.date):
            kind = "day"
        elif isinstance(value, int) and value.bit_length() <= 1000:
            kind = "integer"
        else:
            kind, value = "number", exact_constant(value)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "kind", kind)
        super().__post_init__()

    def describe(self) -> Any:
        """Kind and value."""
        value = self.value
        written = text_of(value) if isinstance(value, Fraction) else value.isoformat() if self.kind == "day" else value
        return [self.stored, self.kind, str(written) if self.kind == "integer" else written]

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """The one value; a number c is 1 * |c| or -1 * |c|."""
        if self.kind == "null":
            return Nothing(build=lambda scope: scope.operations.nothing())
        if self.kind in ("integer", "number"):
            number = Fraction(self.value)
            sign = (number > 0) - (number < 0)
            return Number(grid=abs(number), low=sign, high=sign, integer=self.kind == "integer", certain=True, build=_whole(sign))
        if self.kind == "day":
            days = (self.value - EPOCH).days
            return Moments(unit="day", low=days, high=days, certain=True, build=_whole(days))
        if self.kind == "truth":
            return Listed(options=(False, True), certain=True, build=_whole(int(self.value)))
        return Listed(options=(self.value,), certain=True, build=_whole(0))


def _whole(number: int) -> Build:
    return either(lambda scope: scope.operations.whole(number), (number, number), lambda scope: scope.operations.short(number))


def exact_constant(value: Any) -> Fraction:
    """The rational number that a constant stands for."""
    try:
        number = exact(value)
    except InvalidParameter as error:
        raise UnsupportedQuery("A constant is not supported", why=error.why, instead="0.5") from None
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > 1000:
        raise UnsupportedQuery("A constant is not supported", why="it has more than 300 digits", instead="0.5")
    return number


def _walk(scalar: Scalar) -> Iterator[Scalar | Expression]:
    waiting = [getattr(scalar, each.name) for each in fields(scalar) if each.init]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Scalar | Expression):
            yield each
        elif isinstance(each, tuple):
            waiting += each


def _plain(value: Any) -> Any:
    if isinstance(value, Scalar | Expression):
        return value.describe()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return text_of(value) if isinstance(value, Fraction) else value


def need(scalar: object, what: str) -> None:
    """Refuses what is not a scalar where one is needed."""
    if not isinstance(scalar, Scalar):
        raise InvalidParameter(
            f"{what} is invalid",
            why=f"a {type(scalar).__name__} is not a computed column",
            instead=f'{what}(Ref("age"), Const(1))',
        )
