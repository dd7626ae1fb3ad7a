"""What is declared of one column: its kind, its bounds or categories, its step; and the integer code of each value.

A declaration is public; it says which values a column may hold *before* anybody looks at the rows. Preparation turns each value
of a row into the integer `code` of a value of the domain, by the rules below, which are the same on every engine:

- NULL, NaN, ±infinity and values of the wrong type have no code: they become NULL.
- Numbers are then clamped into the declared bounds. An integer (or the text of one) is exact; every other number passes through
  an IEEE double. Rounding to the step is to the nearest, ties up: code = floor((x - origin) / step + 1/2), computed in doubles
  as `(x - origin) * q / p` for step = p/q.
- Text is read as a number, a date or a truth value where one is declared: `reading.py` says which texts
  count.

NULL as a key: with `nullable=True` the rows without a value form one more group, the last, with code `null_code` (= `high_code`
+ 1; its position among the groups is `size`). Otherwise they fall in no group.
"""

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.privacy.rational import Exact, exact, text_of
from cloister.tables.sourcing.reading import (
    EPOCH,
    read_days,
    read_number,
    read_plain,
    read_truth,
    read_whole,
    representable,
    spelled,
)

_LARGEST_INTEGER = 2**62 - 2
_LARGEST_REAL_CODE = 2**49
_LARGEST_CATEGORY_INTEGER = 2**52
_MOST_CATEGORIES = 1_000_000


class Domain(ABC):
    """What a column may hold. Frozen; every wrong declaration is refused when it is written."""

    kind: ClassVar[str]
    nullable: bool

    @property
    @abstractmethod
    def low_code(self) -> int:
        """The code of the first value."""

    @property
    @abstractmethod
    def high_code(self) -> int:
        """The code of the last value."""

    @property
    def null_code(self) -> int:
        """The code of the group without a value, where there is one."""
        return self.high_code + 1

    @property
    def step(self) -> Fraction:
        """How far apart two neighbouring values are."""
        return Fraction(1)

    @property
    def origin(self) -> Fraction:
        """The value whose code is 0: value = origin + code * step."""
        return Fraction(0)

    @property
    def size(self) -> int | None:
        """How many values the domain holds, NULL not counted; None when that is not declared."""
        return self.high_code - self.low_code + 1

    @abstractmethod
    def encode(self, value: object) -> int | None:
        """The code of a value as preparation gives it; None where the value has none."""

    @abstractmethod
    def decode(self, code: int) -> Any:
        """The value that a code stands for."""

    def values(self) -> tuple[Any, ...]:
        """All values in declared order, NULL not included. For a wide range this is long."""
        return tuple(self.decode(code) for code in range(self.low_code, self.high_code + 1))

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The declaration as plain data (for digests and pages)."""


@dataclass(frozen=True, slots=True)
class Integer(Domain):
    """A whole number within [low, high].

    >>> age = Integer(17, 90)
    >>> age.encode(39), age.encode(1000), age.encode("41"), age.encode(float("nan")), age.size
    (39, 90, 41, None, 74)
    """

    low: int
    high: int
    nullable: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "integer"

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = _bound(getattr(self, name), name, f"Integer({self.low!r}, {self.high!r})")
            if number.denominator != 1:
                raise InvalidDeclaration(
                    f"Integer({self.low!r}, {self.high!r}) is invalid",
                    why=f"{name} is not a whole number",
                    instead=f"cl.Real({self.low!r}, {self.high!r}, step=…)",
                )
            if abs(number) > _LARGEST_INTEGER:
                raise InvalidDeclaration(
                    f"Integer({self.low!r}, {self.high!r}) is invalid",
                    why=f"{name} is beyond ±(2^62 − 2)",
                    instead="cl.Integer(0, 2**60)",
                )
            object.__setattr__(self, name, int(number))
        _ordered(self.low, self.high, "Integer")
        check_nullable(self.nullable)

    @property
    def low_code(self) -> int:
        """The lower bound itself."""
        return self.low

    @property
    def high_code(self) -> int:
        """The upper bound itself."""
        return self.high

    def encode(self, value: object) -> int | None:
        """The number clamped into the bounds; None for what is not a number."""
        whole = read_whole(value)
        if whole is not None:
            return min(max(whole, self.low), self.high)
        number = read_number(value)
        if number is None:
            return None
        clamped = min(max(number, float(self.low)), float(self.high))
        return min(max(math.floor(clamped + 0.5), self.low), self.high)

    def decode(self, code: int) -> int:
        """The code itself."""
        return int(code)

    def describe(self) -> dict[str, Any]:
        """Kind, bounds and NULL handling."""
        return {"kind": "integer", "low": self.low, "high": self.high, "nullable": self.nullable}


@dataclass(frozen=True, slots=True, init=False)
class Real(Domain):
    """A number within [low, high], held as a whole number of steps (promise 5).

    Without a step: a power of ten that divides both bounds with 10⁶ to 10¹⁰ steps in the range (the coarsest of these), else the
    range divided by 2²⁰. The step follows from the declared bounds alone, so it is public.

    >>> pay = Real(0, 500_000, step="0.01")
    >>> pay.encode(12.345), pay.decode(1235), pay.encode(1e308), pay.encode("n/a")
    (1235, 12.35, 50000000, None)
    >>> Real(0, 1).step
    Fraction(1, 1000000)
    """

    low: Fraction
    high: Fraction
    step_size: Fraction
    nullable: bool

    kind: ClassVar[str] = "real"

    def __init__(self, low: Exact, high: Exact, *, step: Exact | None = None, nullable: bool = False) -> None:
        written = f"Real({low!r}, {high!r})" if step is None else f"Real({low!r}, {high!r}, step={step!r})"
        lowest, highest = _bound(low, "low", written), _bound(high, "high", written)
        _ordered(lowest, highest, "Real")
        if max(abs(lowest), abs(highest)) > 10**150:
            raise InvalidDeclaration(f"{written} is invalid", why="a bound is beyond ±1e150", instead="cl.Real(0, 1e12)")
        size = _default_step(lowest, highest) if step is None else _bound(step, "step", written)
        if size <= 0:
            raise InvalidDeclaration(f"{written} is invalid", why="a step must be greater than 0", instead="step=1")
        if ((highest - lowest) / size).denominator != 1:
            raise InvalidDeclaration(
                f"{written} is invalid",
                why="the step does not divide the range",
                instead="a step of which high - low is a multiple",
            )
        object.__setattr__(self, "low", lowest)
        object.__setattr__(self, "high", highest)
        object.__setattr__(self, "step_size", size)
        object.__setattr__(self, "nullable", nullable)
        check_nullable(nullable)
        if max(size.numerator, size.denominator) > 10**100:
            raise InvalidDeclaration(f"{written} is invalid", why="the step is beyond 1e±100", instead='step="0.01"')
        if max(abs(self.low_code), abs(self.high_code)) > _LARGEST_REAL_CODE:
            raise InvalidDeclaration(
                f"{written} is invalid", why="more than 2^49 steps lie between 0 and a bound", instead="a coarser step"
            )

    @property
    def step(self) -> Fraction:
        """How far apart two neighbouring values are."""
        return self.step_size

    @property
    def origin(self) -> Fraction:
        """0 when the step divides low, else low."""
        return Fraction(0) if (self.low / self.step_size).denominator == 1 else self.low

    @property
    def low_code(self) -> int:
        """The code of low."""
        return int((self.low - self.origin) / self.step_size)

    @property
    def high_code(self) -> int:
        """The code of high."""
        return int((self.high - self.origin) / self.step_size)

    def encode(self, value: object) -> int | None:
        """The nearest step within the bounds (ties up); None for what is not a number."""
        number = read_number(value)
        if number is None:
            return None
        number = min(max(number, float(self.low)), float(self.high))
        shift, times, over = float(self.origin), float(self.step_size.denominator), float(self.step_size.numerator)
        scaled = math.floor((number - shift) * times / over + 0.5)
        return min(max(scaled, self.low_code), self.high_code)

    def decode(self, code: int) -> float:
        """origin + code * step, as the nearest float."""
        return float(self.origin + int(code) * self.step_size)

    def describe(self) -> dict[str, Any]:
        """Kind, exact bounds and step, and NULL handling."""
        return {
            "kind": "real",
            "low": text_of(self.low),
            "high": text_of(self.high),
            "step": text_of(self.step_size),
            "nullable": self.nullable,
        }

    def __repr__(self) -> str:
        nullable = ", nullable=True" if self.nullable else ""
        return f"Real({text_of(self.low)!r}, {text_of(self.high)!r}, step={text_of(self.step_size)!r}{nullable})"


@dataclass(frozen=True, slots=True, init=False)
class Category(Domain):
    """One of the listed values: all text, all whole numbers, or all truth values.

    >>> sex = Category(["Female", "Male"])
    >>> sex.encode("Male"), sex.encode("other"), sex.decode(0), sex.size
    (1, None, 'Female', 2)
    """

    options: tuple[str | int | bool, ...]
    nullable: bool
    _codes: dict[Any, int] = field(repr=False, compare=False, hash=False)

    kind: ClassVar[str] = "category"

    def __init__(self, values: Iterable[str | int | bool], *, nullable: bool = False) -> None:
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise InvalidDeclaration(
                f"Category({values!r}) is invalid", why="the categories must be a list", instead='cl.Category(["Female", "Male"])'
            )
        options = tuple(read_plain(value) for value in values)
        if not options:
            raise InvalidDeclaration(
                "Category([]) is invalid", why="it lists no category", instead='cl.Category(["Female", "Male"])'
            )
        if len(options) > _MOST_CATEGORIES:
            raise InvalidDeclaration(
                "Category([…]) is invalid", why=f"it lists more than {_MOST_CATEGORIES} categories", instead="cl.Text()"
            )
        for option in options:
            _check_option(option)
        if len({type(option) for option in options}) > 1:
            raise InvalidDeclaration(
                "Category([…]) is invalid", why="its categories are of different types", instead='cl.Category(["1", "two"])'
            )
        codes: dict[Any, int] = {}
        for code, option in enumerate(options):
            if option in codes:
                raise InvalidDeclaration(
                    "Category([…]) is invalid", why=f"{option!r} is listed twice", instead="each category once"
                )
            codes[option] = code
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "nullable", nullable)
        object.__setattr__(self, "_codes", codes)
        check_nullable(nullable)

    @property
    def low_code(self) -> int:
        """0."""
        return 0

    @property
    def high_code(self) -> int:
        """The number of categories less one."""
        return len(self.options) - 1

    def encode(self, value: object) -> int | None:
        """The position of the value in the list; None when it is not listed."""
        value = read_plain(value)
        if isinstance(self.options[0], bool):
            value = read_truth(value)
        elif isinstance(self.options[0], int):
            whole = read_whole(value)
            number = float(whole) if whole is not None and abs(whole) <= _LARGEST_CATEGORY_INTEGER else read_number(value)
            value = int(number) if number is not None and math.isfinite(number) and number == math.floor(number) else None
        elif isinstance(value, int | float):
            value = spelled(value) if abs(value) < 10**300 else None  # as a table reads it
        return self._codes.get(value) if isinstance(value, str | int) else None

    def decode(self, code: int) -> str | int | bool:
        """The category at a position."""
        return self.options[int(code)]

    def values(self) -> tuple[str | int | bool, ...]:
        """The categories as declared."""
        return self.options

    def describe(self) -> dict[str, Any]:
        """Kind, categories and NULL handling."""
        return {"kind": "category", "values": list(self.options), "nullable": self.nullable}

    def __repr__(self) -> str:
        nullable = ", nullable=True" if self.nullable else ""
        return f"Category({list(self.options)!r}{nullable})"


@dataclass(frozen=True, slots=True)
class Text(Domain):
    """Free text with no declared list: its values are private; as a key it needs a noisy threshold (δ).

    >>> Text().encode("Delft"), Text().encode(7), Text().size
    (None, None, None)
    """

    nullable: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        check_nullable(self.nullable)

    @property
    def low_code(self) -> int:
        """Text has no codes: this is refused."""
        raise _no_codes()

    @property
    def high_code(self) -> int:
        """Text has no codes: this is refused."""
        raise _no_codes()

    @property
    def size(self) -> int | None:
        """None: the values are not declared."""
        return None

    def encode(self, value: object) -> int | None:
        """None: text is kept as text."""
        return None

    def decode(self, code: int) -> Any:
        """Text has no codes: this is refused."""
        raise _no_codes()

    def values(self) -> tuple[Any, ...]:
        """Text has no declared values: this is refused."""
        raise _no_codes()

    def describe(self) -> dict[str, Any]:
        """Kind and NULL handling."""
        return {"kind": "text", "nullable": self.nullable}


@dataclass(frozen=True, slots=True)
class Identifier(Text):
    """The name of a row, a visit or a device: whole numbers or text. Another table's `through=` may refer to it.

    It can be joined on and counted, and its values are private. Its codes are texts, written as the names of units are
    (`preparation.py`): 4, 4.0 and "4" are one name, whatever the type of the column that holds it. So it is a text in every other
    respect: as a released key it needs a noisy threshold.

    >>> Identifier().describe()
    {'kind': 'identifier', 'nullable': False}
    """

    def describe(self) -> dict[str, Any]:
        """Kind and NULL handling."""
        return {"kind": "identifier", "nullable": self.nullable}


@dataclass(frozen=True, slots=True, init=False)
class Date(Domain):
    """A day within [low, high], given as ISO text or `datetime.date`. A time of day is cut off; a time zone is first turned to
    UTC.

    >>> born = Date("1900-01-01", "2026-12-31")
    >>> born.decode(born.encode("1984-05-06T12:00:00")), born.encode("1970-01-02"), born.encode("1984-02-30")
    (datetime.date(1984, 5, 6), 1, None)
    """

    low: datetime.date
    high: datetime.date
    nullable: bool

    kind: ClassVar[str] = "date"

    def __init__(self, low: str | datetime.date, high: str | datetime.date, *, nullable: bool = False) -> None:
        bounds = []
        for name, bound in (("low", low), ("high", high)):
            days = read_days(bound)
            if days is None:
                raise InvalidDeclaration(
                    f"Date({low!r}, {high!r}) is invalid",
                    why=f"{name} is not a day",
                    instead='cl.Date("1900-01-01", "2026-12-31")',
                )
            bounds.append(EPOCH + datetime.timedelta(days=days))
        _ordered(bounds[0], bounds[1], "Date")
        object.__setattr__(self, "low", bounds[0])
        object.__setattr__(self, "high", bounds[1])
        object.__setattr__(self, "nullable", nullable)
        check_nullable(nullable)

    @property
    def low_code(self) -> int:
        """Days from 1970-01-01 to low."""
        return (self.low - EPOCH).days

    @property
    def high_code(self) -> int:
        """Days from 1970-01-01 to high."""
        return (self.high - EPOCH).days

    def encode(self, value: object) -> int | None:
        """Days since 1970-01-01, clamped into the bounds; None for what is not a day."""
        days = read_days(value)
        return None if days is None else min(max(days, self.low_code), self.high_code)

    def decode(self, code: int) -> datetime.date:
        """The day."""
        return EPOCH + datetime.timedelta(days=int(code))

    def describe(self) -> dict[str, Any]:
        """Kind, bounds and NULL handling."""
        return {"kind": "date", "low": self.low.isoformat(), "high": self.high.isoformat(), "nullable": self.nullable}

    def __repr__(self) -> str:
        nullable = ", nullable=True" if self.nullable else ""
        return f"Date({self.low.isoformat()!r}, {self.high.isoformat()!r}{nullable})"


@dataclass(frozen=True, slots=True)
class Boolean(Domain):
    """True or false: a truth value, 1 or 0, or a text among true/false, t/f, yes/no, y/n, 1/0 in any case.

    >>> Boolean().encode(True), Boolean().encode("No"), Boolean().encode("perhaps"), Boolean().values()
    (1, 0, None, (False, True))
    """

    nullable: bool = field(default=False, kw_only=True)

    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        check_nullable(self.nullable)

    @property
    def low_code(self) -> int:
        """0: false."""
        return 0

    @property
    def high_code(self) -> int:
        """1: true."""
        return 1

    def encode(self, value: object) -> int | None:
        """1 for true, 0 for false, None for anything else."""
        truth = read_truth(read_plain(value))
        return None if truth is None else int(truth)

    def decode(self, code: int) -> bool:
        """True or False."""
        return bool(code)

    def describe(self) -> dict[str, Any]:
        """Kind and NULL handling."""
        return {"kind": "boolean", "nullable": self.nullable}


def _bound(value: Any, name: str, written: str) -> Fraction:
    instead = "cl.Real(0, 100)" if written.startswith("Real") else "cl.Integer(0, 120)"
    if value is None:
        raise InvalidDeclaration(f"{written} is invalid", why=f"{name} is missing", instead=instead)
    try:
        return exact(value, name)
    except InvalidParameter as error:
        raise InvalidDeclaration(f"{written} is invalid", why=f"{name}: {error.why}", instead=instead) from None


def _ordered(low: Any, high: Any, kind: str) -> None:
    if low > high:
        ends = f'"{high}", "{low}"' if kind == "Date" else f"{high}, {low}"
        why, instead = "the lower bound is above the upper", f"cl.{kind}({ends})"
        raise InvalidDeclaration(f"{kind}({low}, {high}) is invalid", why=why, instead=instead)
    if low == high and kind == "Real":
        raise InvalidDeclaration(f"Real({low}, {high}) is invalid", why="the range is empty", instead="cl.Real(0, 1)")


def check_nullable(nullable: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(nullable, bool):
        raise InvalidDeclaration(f"nullable={nullable!r} is invalid", why="it must be True or False", instead="nullable=True")


def _default_step(low: Fraction, high: Fraction) -> Fraction:
    width = high - low
    exponent = len(str(int(width))) - 1 if width >= 1 else -len(str(int(1 / width)))
    for finer in range(4):
        step = Fraction(10) ** (exponent - 6 - finer)
        if (low / step).denominator == 1 and (high / step).denominator == 1:
            return step
    return width / 2**20


def _check_option(option: object) -> None:
    written = "Category([…]) is invalid"
    if option is None or (isinstance(option, float) and math.isnan(option)):
        raise InvalidDeclaration(written, why="NULL is not a category", instead="cl.Category([…], nullable=True)")
    if not isinstance(option, str | int):
        raise InvalidDeclaration(written, why=f"a {type(option).__name__} cannot be a category", instead="text, int or bool")
    if isinstance(option, str):
        if not representable(option):
            raise InvalidDeclaration(written, why="a category holds NUL or a lone surrogate", instead="text without NUL")
    elif abs(option) > _LARGEST_CATEGORY_INTEGER:
        raise InvalidDeclaration(written, why="a category is beyond ±2^52", instead="the same categories as text")


def _no_codes() -> InvalidParameter:
    return InvalidParameter(
        "The codes of a text column were asked for", why="its values are not declared", instead="cl.Category([…])"
    )
