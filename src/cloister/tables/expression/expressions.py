"""Conditions on the rows: a small typed language with one meaning on every engine.

A condition is evaluated on prepared codes, so nothing in it can overflow, be cast or fail on a row (a `WHERE` that fails is a
side channel). Logic is three-valued as in SQL: a comparison with NULL is NULL, and only rows for which the condition is true
count.

Comparisons act on what preparation stored: values clamped into their bounds and rounded to their step. With an age declared
`Integer(17, 90)`, `age = 90` also holds for a person of 95. Comparing with a literal is exact rational arithmetic, done here,
once. On a category a comparison, `LIKE` included, is evaluated over the public list of values and becomes a set of codes.
"""

from __future__ import annotations

import datetime
import json
import math
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.privacy.rational import exact
from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Integer, Text
from cloister.tables.declaring.moments import Moment
from cloister.tables.declaring.places import Place
from cloister.tables.expression.computed import Periods
from cloister.tables.expression.names import quoted
from cloister.tables.expression.scope import Scope
from cloister.tables.sourcing.reading import read_seconds, representable

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_DEEPEST = 100
_MOST_PARTS = 4000
_LONGEST_PATTERN = 1000

SWAPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Expression(ABC):
    """A condition, a column or a literal."""

    depth: int = 1
    """How many conditions stand inside one another; at most 100, so that no walk over them can exhaust the stack."""
    size: int = 1
    """How many conditions AND and OR join in all; at most 4000, some seconds to compile."""

    @abstractmethod
    def columns(self) -> frozenset[str]:
        """The names of the columns that the expression reads."""

    @abstractmethod
    def describe(self) -> Any:
        """A canonical form as plain data: equal for conditions that differ only in the order of AND and OR."""

    @abstractmethod
    def condition(self, scope: Scope) -> Any:
        """The Ibis condition over prepared codes; type errors are refused here, before any row is read."""


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A declared column. As a condition of its own it must be Boolean.

    >>> Compare(">", Column("age"), Literal(40)).columns()
    frozenset({'age'})
    """

    name: str

    def columns(self) -> frozenset[str]:
        """The column itself."""
        return frozenset({self.name})

    def describe(self) -> Any:
        """`["column", name]`."""
        return ["column", self.name]

    def condition(self, scope: Scope) -> Any:
        """True where the Boolean is true."""
        domain = scope.domain(self.name)
        if not isinstance(domain, Boolean):
            raise _refused(self.name, f"a {domain.kind} column is not a condition", f"{quoted(self.name)} = …")
        return scope.code(self.name) == 1


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant: a number, text, a date, True, False or None (NULL)."""

    value: Any

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, float) and not math.isfinite(value):
            raise UnsupportedQuery(f"The literal {value!r} is not supported", why="it is not a finite number", instead="0.5")

    def columns(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def describe(self) -> Any:
        """`["literal", kind, text]`."""
        value = self.value
        if value is None or isinstance(value, bool | str):
            return ["literal", type(value).__name__, value]
        if isinstance(value, datetime.datetime):
            raise UnsupportedQuery("A time is not supported", why="columns hold whole days", instead="'2026-01-31'")
        if isinstance(value, datetime.date):
            return ["literal", "date", value.isoformat()]
        return ["literal", "number", str(value if type(value) in (int, Fraction) else _rational(value))]

    def condition(self, scope: Scope) -> Any:
        """TRUE, FALSE or NULL."""
        if self.value is not None and not isinstance(self.value, bool):
            raise UnsupportedQuery("A literal is not supported as a condition", why="it is not a truth value", instead="TRUE")
        return scope.truth(self.value)


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """`left op right`, op among = != < <= > >=; a column with a literal, or two columns of like kind."""

    op: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise InvalidParameter(f"op={self.op!r} is invalid", why="it is not a comparison", instead='op="<="')
        for side in (self.left, self.right):
            if not isinstance(side, Column | Literal):
                raise UnsupportedQuery(
                    "A comparison is not supported", why="its sides must be columns or literals", instead="age > 40"
                )

    def columns(self) -> frozenset[str]:
        """Those of both sides."""
        return self.left.columns() | self.right.columns()

    def describe(self) -> Any:
        """The comparison with the column, or the lesser name, on the left."""
        op, left, right = self._ordered()
        return ["compare", op, left.describe(), right.describe()]

    def _ordered(self) -> tuple[str, Expression, Expression]:
        swap = isinstance(self.left, Literal) and isinstance(self.right, Column)
        if isinstance(self.left, Column) and isinstance(self.right, Column):
            swap = self.left.name > self.right.name
        return (SWAPPED[self.op], self.right, self.left) if swap else (self.op, self.left, self.right)

    def condition(self, scope: Scope) -> Any:
        """A comparison of codes."""
        op, left, right = self._ordered()
        if isinstance(left, Column) and isinstance(right, Literal):
            return _with_literal(scope, op, left.name, right.value)
        if isinstance(left, Column) and isinstance(right, Column):
            return _two_columns(scope, op, left.name, right.name)
        return _two_literals(scope, op, left, right)


class _OfColumn(Expression):
    """What is said of one column alone."""

    column: Column

    def columns(self) -> frozenset[str]:
        """The column."""
        return self.column.columns()


@dataclass(frozen=True, slots=True, init=False)
class In(_OfColumn):
    """`column IN (values)`. A NULL among the values makes every other row NULL, as in SQL."""

    column: Column
    values: tuple[Any, ...]

    def __init__(self, column: Column | str, values: Any) -> None:
        object.__setattr__(self, "column", column if isinstance(column, Column) else Column(column))
        object.__setattr__(self, "values", tuple(value.value if isinstance(value, Literal) else value for value in values))
        if not self.values:
            raise UnsupportedQuery("An IN is not supported", why="its list is empty", instead="age IN (40, 41)")

    def describe(self) -> Any:
        """The column and the sorted list without repetitions."""
        unique = {json.dumps(item): item for item in (Literal(value).describe() for value in self.values)}
        return ["in", self.column.name, [unique[key] for key in sorted(unique)]]

    def condition(self, scope: Scope) -> Any:
        """Membership of the code in a set of codes."""
        name, domain = self.column.name, scope.domain(self.column.name)
        present = [value for value in self.values if value is not None]
        if isinstance(domain, Text):
            texts = sorted({_text(name, value) for value in present if representable(_text(name, value))})
            inside = scope.code(name).isin(texts) if texts else _never(scope.code(name))
        else:
            codes = sorted({code for value in present for code in _codes_equal(name, domain, value)})
            inside = _member(scope, domain, scope.code(name), codes)
        if len(present) < len(self.values):
            return inside | scope.truth(None)
        return inside


@dataclass(frozen=True, slots=True, init=False)
class Between(_OfColumn):
    """`column BETWEEN low AND high`, both ends included."""

    column: Column
    low: Literal
    high: Literal

    def __init__(self, column: Column | str, low: Any, high: Any) -> None:
        object.__setattr__(self, "column", column if isinstance(column, Column) else Column(column))
        object.__setattr__(self, "low", low if isinstance(low, Literal) else Literal(low))
        object.__setattr__(self, "high", high if isinstance(high, Literal) else Literal(high))

    def _both(self) -> And:
        return And(Compare(">=", self.column, self.low), Compare("<=", self.column, self.high))

    def describe(self) -> Any:
        """The same as the two comparisons joined by AND."""
        return self._both().describe()

    def condition(self, scope: Scope) -> Any:
        """Two comparisons."""
        return self._both().condition(scope)


@dataclass(frozen=True, slots=True, init=False)
class IsNull(_OfColumn):
    """`column IS NULL`: also true where preparation found no value of the declared kind."""

    column: Column

    def __init__(self, column: Column | str) -> None:
        object.__setattr__(self, "column", column if isinstance(column, Column) else Column(column))

    def describe(self) -> Any:
        """`["null", name]`."""
        return ["null", self.column.name]

    def condition(self, scope: Scope) -> Any:
        """Whether the code is NULL."""
        return scope.code(self.column.name).isnull()


@dataclass(frozen=True, slots=True, init=False)
class Like(_OfColumn):
    """`column LIKE pattern` for text: % stands for any text, _ for one character; nothing else is special, case counts.

    Matching takes time in proportion to the product of the lengths of text and pattern at most: a pattern that sends an engine
    back and forth would be a way to stop it.

    >>> Like("name", "A%").describe()
    ['like', 'name', 'A%']
    """

    column: Column
    pattern: str

    def __init__(self, column: Column | str, pattern: str) -> None:
        object.__setattr__(self, "column", column if isinstance(column, Column) else Column(column))
        object.__setattr__(self, "pattern", pattern)
        if not isinstance(pattern, str):
            raise UnsupportedQuery(f"LIKE {pattern!r} is not supported", why="a pattern is text", instead="LIKE 'A%'")
        if len(pattern) > _LONGEST_PATTERN:
            raise UnsupportedQuery(
                "LIKE is not supported", why=f"its pattern is longer than {_LONGEST_PATTERN} characters", instead="LIKE 'A%'"
            )

    def describe(self) -> Any:
        """`["like", name, pattern]`."""
        return ["like", self.column.name, self.pattern]

    def condition(self, scope: Scope) -> Any:
        """A set of codes on a category; the engine's LIKE, with its escape taken out, on text."""
        name, domain = self.column.name, scope.domain(self.column.name)
        if isinstance(domain, Category) and isinstance(domain.options[0], str):
            codes = [code for code, text in enumerate(domain.options) if matches(str(text), self.pattern)]
            return _member(scope, domain, scope.code(name), codes)
        if not isinstance(domain, Text):
            raise _refused(name, f"LIKE needs text and the column is {domain.kind}", f"{quoted(name)} = …")
        if not representable(self.pattern):
            return _never(scope.code(name))
        if scope.dialect in ("duckdb", "pyspark") and _goes_back(self.pattern):
            return scope.code(name).re_search(_forward(self.pattern, atomic=scope.dialect == "pyspark"))
        escapes = scope.dialect != "duckdb"  # PostgreSQL and Spark take a backslash for an escape
        return scope.code(name).like(self.pattern.replace("\\", "\\\\") if escapes else self.pattern)


def matches(text: str, pattern: str) -> bool:
    """LIKE, going back only to the last %: what an earlier one took can stay as it is, being the shortest that fits.

    >>> matches("a" * 30, "%_" * 20 + "!"), matches("a_b", "a_b"), matches("axyb", "a%b"), matches("", "%")
    (False, True, True, True)
    """
    at, place, last, from_ = 0, 0, -1, 0
    while at < len(text):
        if place < len(pattern) and pattern[place] == "%":
            last, from_, place = place, at, place + 1
        elif place < len(pattern) and pattern[place] in ("_", text[at]):
            at, place = at + 1, place + 1
        elif last >= 0:
            from_ += 1
            at, place = from_, last + 1
        else:
            return False
    return not pattern[place:].strip("%")


def _goes_back(pattern: str) -> bool:
    """Whether more than one piece of text must be looked for; with one, every engine's LIKE goes through the text once."""
    return len([piece for piece in re.split("%+", pattern) if piece]) > 1 or ("%" in pattern and "_" in pattern)


def _forward(pattern: str, *, atomic: bool) -> str:
    r"""LIKE as a regular expression for an engine whose LIKE goes back to every %: DuckDB's (whose regular expressions are
    automata) and Spark's (where each piece between two % is taken where it first fits, for good).

    >>> print(_forward("a%b_%c", atomic=True))
    (?s)\A(?:a)(?>.*?(?:b.)).*(?:c)\z
    """
    first, *pieces, last = (
        "".join("." if character == "_" else re.escape(character) for character in piece) for piece in re.split("%+", pattern)
    )
    begin, end = ("(?>", ")") if atomic else ("(?:", ")")
    middle = "".join(f"{begin}.*?(?:{piece}){end}" for piece in pieces)
    return rf"(?s)\A(?:{first}){middle}.*(?:{last})\z"


@dataclass(frozen=True, slots=True, init=False)
class _Joined(Expression):
    stored: ClassVar[str]
    """What digests call it."""
    parts: tuple[Expression, ...]
    depth: int = field(compare=False, repr=False)
    size: int = field(compare=False, repr=False)

    def __init__(self, *parts: Expression) -> None:
        if not parts or not all(isinstance(part, Expression) for part in parts):
            raise UnsupportedQuery(
                f"{type(self).__name__} is not supported", why="its parts must be conditions", instead="And(first, second)"
            )
        flat = [each for part in parts for each in (part.parts if isinstance(part, type(self)) else (part,))]
        size = sum(part.size for part in flat)
        if size > _MOST_PARTS:
            raise UnsupportedQuery(
                f"{type(self).__name__} is not supported", why=f"it has more than {_MOST_PARTS} parts", instead="age IN (40, 41)"
            )
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "depth", _deeper(*flat))

    def _balanced(self, conditions: list[Any], join: Callable[[Any, Any], Any]) -> Any:
        """The conditions joined two by two: engines and compilers recurse, and go down the logarithm of their number."""
        while len(conditions) > 1:
            pairs = [join(*conditions[i : i + 2]) for i in range(0, len(conditions) - 1, 2)]
            conditions = pairs + conditions[2 * len(pairs) :]
        return conditions[0]

    def columns(self) -> frozenset[str]:
        """Those of all parts."""
        return frozenset().union(*(part.columns() for part in self.parts))

    def describe(self) -> Any:
        """The parts flattened, sorted and without repetitions."""
        word = vars(type(self))["stored"]
        unique: dict[str, Any] = {}
        for part in self.parts:
            form = part.describe()
            for item in form[1:] if form[0] == word else [form]:
                unique[json.dumps(item)] = item
        items = [unique[key] for key in sorted(unique)]
        return items[0] if len(items) == 1 else [word, *items]


@dataclass(frozen=True, slots=True, init=False)
class And(_Joined):
    """All parts hold.

    >>> old, rich = Compare(">", Column("age"), Literal(40)), Compare(">", Column("pay"), Literal(9))
    >>> And(old, rich).describe() == And(rich, And(old, old)).describe()
    True
    """

    stored: ClassVar[str] = "and"

    def condition(self, scope: Scope) -> Any:
        """AND of the parts."""
        return self._balanced([part.condition(scope) for part in self.parts], operator.and_)


@dataclass(frozen=True, slots=True, init=False)
class Or(_Joined):
    """At least one part holds."""

    stored: ClassVar[str] = "or"

    def condition(self, scope: Scope) -> Any:
        """OR of the parts."""
        return self._balanced([part.condition(scope) for part in self.parts], operator.or_)


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """The part does not hold; NULL stays NULL."""

    part: Expression
    depth: int = field(init=False, compare=False, repr=False)
    size: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.part, Expression):
            raise UnsupportedQuery("Not is not supported", why="its part must be a condition", instead="Not(first)")
        object.__setattr__(self, "depth", _deeper(self.part))
        object.__setattr__(self, "size", self.part.size)

    def columns(self) -> frozenset[str]:
        """Those of the part."""
        return self.part.columns()

    def describe(self) -> Any:
        """The part with NOT before it; two NOTs cancel."""
        form = self.part.describe()
        return form[1] if form[0] == "not" else ["not", form]

    def condition(self, scope: Scope) -> Any:
        """NOT of the part."""
        return ~self.part.condition(scope)


def none_missing(names: Iterable[str]) -> Expression:
    """That each of the columns has a value: one that is not declared nullable may lack it, too.

    >>> none_missing(["age"]).describe()
    ['not', ['null', 'age']]
    """
    present = [Not(IsNull(name)) for name in names]
    return present[0] if len(present) == 1 else And(*present)


def _deeper(*parts: Expression) -> int:
    depth = 1 + max(part.depth for part in parts)
    if depth > _DEEPEST:
        raise UnsupportedQuery(
            "A condition is not supported",
            why=f"more than {_DEEPEST} conditions stand inside one another",
            instead="And(first, second)",
        )
    return depth


def threshold(domain: Domain, value: Fraction) -> Fraction:
    """Where a value lies on the scale of codes.

    >>> from cloister.tables.declaring.columns import Real
    >>> threshold(Real(0, 10, step="0.5"), Fraction(3, 4))
    Fraction(3, 2)
    """
    return domain.position(value) if isinstance(domain, Periods) else (value - domain.origin) / domain.step


def number_of(name: str, domain: Domain, value: Any) -> Fraction:
    """The rational number that a literal stands for beside a number or a date column.

    >>> from cloister.tables.declaring.columns import Integer
    >>> number_of("age", Integer(0, 9), "4.5")
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: The column 'age' was compared wrongly: a text is not a number.
      Instead: age >= 40
    """
    if isinstance(domain, Date | Periods):
        days = None if isinstance(value, datetime.datetime) else Date("0001-01-01", "9999-12-31").encode(value)
        if days is None or (isinstance(value, str) and not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)):
            raise _refused(name, "a date is compared with a day, written YYYY-MM-DD", f"{quoted(name)} >= '2026-01-31'")
        return Fraction(days)
    if isinstance(domain, Moment):
        seconds = read_seconds(value)
        if seconds is None:
            raise _refused(
                name, "a moment is compared with one, written YYYY-MM-DD HH:MM:SS", f"{quoted(name)} >= '2026-01-31 12:00:00'"
            )
        return Fraction(seconds)
    if isinstance(domain, Place):
        raise _refused(name, "a place is not compared", f"grid({quoted(name)}, 500) = '…'")
    if isinstance(value, bool | str | datetime.date):
        wrong = "a text is not a number" if isinstance(value, str) else "a truth value is not a number"
        raise _refused(name, "a day is not a number" if isinstance(value, datetime.date) else wrong, f"{quoted(name)} >= 40")
    return _rational(value)


def _rational(value: Any) -> Fraction:
    try:
        return exact(value)
    except InvalidParameter as error:
        raise UnsupportedQuery("A literal is not supported", why=error.why, instead="age > 40") from None


def _with_literal(scope: Scope, op: str, name: str, value: Any) -> Any:
    domain, code = scope.domain(name), scope.code(name)
    if value is None:
        return scope.truth(None)
    if isinstance(domain, Text):
        text = _text(name, value)
        if op not in ("=", "!="):
            raise _refused(name, "engines order text differently", f"{quoted(name)} = '…'")
        if not representable(text):
            return _never(code) if op == "=" else ~_never(code)
        return code == text if op == "=" else code != text
    if isinstance(domain, Category | Boolean):
        _check_alike(name, domain, value)
        options, compare = [(domain.encode(option), option) for option in domain.values()], OPERATORS[op]
        return _member(scope, domain, code, [each for each, option in options if each is not None and compare(option, value)])
    plain = type(domain) is Integer and type(value) is int  # most are: their codes are the numbers themselves
    at = value if plain else threshold(domain, number_of(name, domain, value))
    below, above = math.ceil(at) - 1, math.floor(at) + 1  # the last code below the literal, the first code above it
    if op in ("=", "!="):
        equal = (
            code == scope.constant(int(at)) if at.denominator == 1 and domain.low_code <= at <= domain.high_code else _never(code)
        )
        return equal if op == "=" else ~equal
    if op in ("<", "<="):
        return _at_most(scope, domain, code, below if op == "<" else above - 1)
    return ~_at_most(scope, domain, code, above - 1 if op == ">" else below)


def _two_columns(scope: Scope, op: str, first: str, second: str) -> Any:
    left, right = scope.domain(first), scope.domain(second)
    if isinstance(left, Text) and isinstance(right, Text) and op in ("=", "!="):
        return OPERATORS[op](scope.code(first), scope.code(second))
    numeric = {"integer", "real"}
    like = (left.kind == right.kind and left.kind not in ("text", "category", "place")) or {left.kind, right.kind} <= numeric
    if isinstance(left, Category) and isinstance(right, Category) and left.options == right.options and op in ("=", "!="):
        like = True
    if isinstance(left, Periods) or isinstance(right, Periods):
        like = isinstance(left, Periods) and isinstance(right, Periods) and left.unit == right.unit
    if not like:
        raise _refused(
            first,
            f"it is {left.kind} and {second!r} is {right.kind}, or their categories differ, or their periods",
            f"{quoted(first)} = …",
        )
    # left.origin + a * left.step  op  right.origin + b * right.step, over a common denominator: whole numbers throughout
    scale = math.lcm(left.step.denominator, right.step.denominator, left.origin.denominator, right.origin.denominator)
    sides = []
    for domain, name in ((left, first), (right, second)):
        times, plus = int(domain.step * scale), int(domain.origin * scale)
        reach = max(abs(domain.low_code * times + plus), abs(domain.high_code * times + plus))
        if reach >= 2**62:
            raise _refused(name, "its values do not fit beside the other column's step", "steps that divide each other")
        whole = scope.code(name).cast("int64")
        whole = whole if times == 1 else whole * times
        sides.append(whole if plus == 0 else whole + plus)
    return OPERATORS[op](sides[0], sides[1])


def _two_literals(scope: Scope, op: str, left: Expression, right: Expression) -> Any:
    first, second = getattr(left, "value", None), getattr(right, "value", None)
    if first is None or second is None:
        return scope.truth(None)
    if not _alike(first, second):
        raise UnsupportedQuery("A comparison is not supported", why="its literals are of different types", instead="1 = 1")
    if not isinstance(first, str | bool | datetime.date):
        first, second = _rational(first), _rational(second)
    return scope.truth(OPERATORS[op](first, second))


def _codes_equal(name: str, domain: Domain, value: Any) -> list[int]:
    if isinstance(domain, Category | Boolean):
        _check_alike(name, domain, value)
        if not isinstance(value, str | bool):
            number = _rational(value)
            value = int(number) if number.denominator == 1 else None
        code = domain.encode(value)
        return [] if code is None else [code]
    at = threshold(domain, number_of(name, domain, value))
    return [int(at)] if at.denominator == 1 and domain.low_code <= at <= domain.high_code else []


def _member(scope: Scope, domain: Domain, code: Any, codes: list[int]) -> Any:
    if not codes:
        return _never(code)
    if len(codes) == 1:
        return code == scope.constant(codes[0])
    if codes[-1] - codes[0] + 1 == len(codes):
        at_most = _at_most(scope, domain, code, codes[-1])
        return at_most if codes[0] == domain.low_code else (code >= scope.constant(codes[0])) & at_most
    return code.isin([scope.constant(each) for each in codes])


def _at_most(scope: Scope, domain: Domain, code: Any, bound: int) -> Any:
    return code <= scope.constant(min(max(bound, domain.low_code - 1), domain.high_code))


def _never(code: Any) -> Any:
    """False where there is a value, NULL where there is none."""
    return code != code


def _check_alike(name: str, domain: Domain, value: Any) -> None:
    sample = domain.values()[0]
    if not _alike(sample, value):
        why = f"its values are {_name_of(sample)} and the literal is {_name_of(value)}"
        raise _refused(name, why, f"{quoted(name)} = {_written(sample)}")


def _alike(first: Any, second: Any) -> bool:
    return _name_of(first) == _name_of(second)


def _name_of(value: Any) -> str:
    if isinstance(value, bool):
        return "truth values"
    return "text" if isinstance(value, str) else "dates" if isinstance(value, datetime.date) else "numbers"


def _written(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _refused(name, f"it holds text and the literal is {_name_of(value)}", f"{quoted(name)} = '…'")
    return value


def _refused(name: str, why: str, instead: str) -> UnsupportedQuery:
    return UnsupportedQuery(f"The column {name!r} was compared wrongly", why=why, instead=instead)
