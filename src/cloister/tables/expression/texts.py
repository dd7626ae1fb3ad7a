"""Text functions: of a category, worked out here over the public list; of private text, only where engines agree.

UPPER of a category maps its list, values that become the same are one value, and the list that results is public again: the rows
are never asked. Text counts in characters (Unicode code points), TRIM takes spaces away, UPPER and LOWER follow Unicode. CONCAT
is NULL where a part is. Of a Text column, LEFT, SUBSTRING and (within a CLAMP) LENGTH mean the same on every engine; the rest is
refused: engines differ in what an upper-case letter is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, ClassVar

from cloister.errors import MissingBound, UnsupportedQuery
from cloister.tables.expression.arithmetic import from_list
from cloister.tables.expression.casts import to_listed_text
from cloister.tables.expression.forms import Form, Interval, Listed, Nothing, Words, integers, joined, remapped
from cloister.tables.expression.rounding import clamped
from cloister.tables.expression.scalar import Const, Domains, Scalar, need
from cloister.tables.expression.scope import Scope

_MOST_PAIRS = 10_000
_LONGEST_VALUE = 10_000
_LONGEST_LIST = 10_000_000
_LONGEST = 10_000
_ARGUMENTS = {"lower": (0, 0), "upper": (0, 0), "trim": (0, 0), "substring": (1, 2), "length": (0, 0), "concat": (1, 20)}
_ARGUMENTS |= {"left": (1, 1), "right": (1, 1), "replace": (2, 2), "position": (1, 1), "lpad": (2, 2), "rpad": (2, 2)}
_ARGUMENTS |= {"split": (2, 2), "reverse": (0, 0), "translate": (2, 2), "initcap": (0, 1)}
TEXT_FUNCTIONS = tuple(_ARGUMENTS)


@dataclass(frozen=True)
class TextFunction(Scalar):
    """lower, upper, trim, substring(start, length), length, concat, left(n), right(n), replace(old, new), position(part),
    lpad(n, sign), rpad(n, sign), split(sign, place), reverse, translate(from, to) or initcap(signs between words) of a text;
    without these signs, words are what letters and digits make.

    >>> from cloister.tables.declaring.columns import Category
    >>> from cloister.tables.expression.scalars import Ref
    >>> TextFunction("left", Ref("icd"), (Const(1),)).domain({"icd": Category(["A01", "A02", "B20"])})
    Category(['A', 'B'])
    """

    stored: ClassVar[str] = "textfunction"

    name: str
    x: Scalar
    arguments: tuple[Scalar, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in TEXT_FUNCTIONS:
            raise UnsupportedQuery(
                f"The text function {self.name!r} is not supported",
                why=f"known are {', '.join(TEXT_FUNCTIONS)}",
                instead="UPPER(town)",
            )
        plain = tuple(Const(each) if isinstance(each, str | int) else each for each in self.arguments)
        object.__setattr__(self, "arguments", plain)
        for each in (self.x, *plain):
            need(each, "TextFunction")
        least, most = _ARGUMENTS[self.name]
        if not least <= len(plain) <= most:
            raise _refused(self.name, f"it takes {least} to {most} arguments beside the text")
        super().__post_init__()

    def form(self, domains: Domains, within: Interval | None = None) -> Form:
        """A list, a number of characters, or text."""
        x = self.x.form(domains)
        if isinstance(x, Nothing):
            return x
        if self.name == "concat":
            return _joined([x, *(each.form(domains) for each in self.arguments)])
        if isinstance(x, Words):
            return self._of_words(x, within)
        listed = to_listed_text(x, self.name.upper())
        if self.name == "length":
            return from_list(listed, [Fraction(len(str(option))) for option in listed.options], integer=True)
        if self.name == "position":
            part = self._text(0)
            return from_list(listed, [Fraction(str(option).find(part) + 1) for option in listed.options], integer=True)
        return mapped(listed, self._work())

    def _work(self) -> Callable[[str], str]:
        if self.name in ("lower", "upper"):
            return str.lower if self.name == "lower" else str.upper
        if self.name == "trim":
            return lambda text: text.strip(" ")
        if self.name == "reverse":
            return _reversed
        if self.name == "translate":
            before, after = self._text(0), self._text(1)
            table = {ord(sign): after[place : place + 1] for place, sign in reversed(list(enumerate(before)))}
            return lambda text: text.translate(table)
        if self.name == "initcap":
            between = set(self._text(0)) if self.arguments else None
            return lambda text: _capitals(text, between)
        if self.name == "replace":
            old, new = self._text(0), self._text(1)
            return lambda text: _replaced(text, old, new)
        if self.name == "substring":
            begin, end = self._window()
            return lambda text: text[begin:end]
        if self.name == "split":
            sign, place = self._text(0), self._whole(1)
            if not sign or place < 1:
                raise _refused(self.name, "it takes a text to split at and a place from 1 on")
            return lambda text: [*text.split(sign), *[""] * place][place - 1]
        count = self._count(0)
        if self.name in ("lpad", "rpad"):
            fill = self._text(1)
            if len(fill) != 1:
                raise _refused(self.name, "what it fills up with is not one sign")
            return lambda text: (text.rjust(count, fill) if self.name == "lpad" else text.ljust(count, fill))[:count]
        if self.name == "left":
            return lambda text: text[:count]
        return lambda text: text[max(len(text) - count, 0) :]

    def _of_words(self, x: Words, within: Interval | None) -> Form:
        if self.name == "length":
            if within is None:
                raise MissingBound(
                    "LENGTH of text needs bounds", why="the text has no declared length", instead="CLAMP(LENGTH(x), 0, 100)"
                )
            length = integers(0, 2**40, lambda scope: scope.operations.length(x.build(scope)), x)
            return clamped(length, *within)
        if self.name not in ("left", "substring"):
            raise UnsupportedQuery(
                f"{self.name.upper()} of text is not supported",
                why="engines differ in it",
                instead="the column as cl.Category([…])",
            )
        begin, end = (0, self._count(0)) if self.name == "left" else self._window()
        length_ = (_LONGEST if end is None else end) - begin

        def build(scope: Scope) -> Any:
            return scope.operations.part(x.build(scope), begin, length_)

        return replace(x, build=build, weight=3 * x.weight + 4)

    def _window(self) -> tuple[int, int | None]:
        """SUBSTRING's places as SQL counts them: from 1, and a start before the text takes from the length."""
        start = self._whole(0)
        begin = max(start - 1, 0)
        if len(self.arguments) == 1:
            return begin, None
        return begin, max(start - 1 + self._count(1), begin)

    def _count(self, position: int) -> int:
        count = self._whole(position)
        if count < 0:
            raise _refused(self.name, "a number of characters is negative")
        return count

    def _whole(self, position: int) -> int:
        argument = self.arguments[position]
        if not isinstance(argument, Const) or argument.kind != "integer" or abs(int(argument.value)) > _LONGEST:
            raise _refused(self.name, f"a place or length must be a whole number up to {_LONGEST}")
        return int(argument.value)

    def _text(self, position: int) -> str:
        argument = self.arguments[position]
        if not isinstance(argument, Const) or argument.kind != "text":
            raise _refused(self.name, "its arguments must be text constants")
        return str(argument.value)


def _reversed(text: str) -> str:
    if any(unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Sk") for sign in text):
        raise _refused("reverse", "engines differ in where a sign of several characters ends")
    return text[::-1]


def _capitals(text: str, between: set[str] | None) -> str:
    """The first sign of each word as a capital, the rest in lower case."""
    found, inside = [], False
    for sign in text:
        found.append(sign.lower() if inside else sign.upper())
        inside = sign.isalnum() if between is None else sign not in between
    return "".join(found)


def _replaced(text: str, old: str, new: str) -> str:
    """The text with `new` for `old`; refused before it is made where it would be long: each step may multiply its length."""
    if not old:
        return text
    if len(text) + text.count(old) * (len(new) - len(old)) > _LONGEST_VALUE:
        raise _refused("replace", f"it makes a value longer than {_LONGEST_VALUE:,} characters")
    return text.replace(old, new)


def mapped(listed: Listed, work: Callable[[str], str]) -> Listed:
    """The list after a function of its values; values that become the same are one."""
    values = [work(str(option)) for option in listed.options]
    if sum(map(len, values)) > _LONGEST_LIST:
        raise _refused("the list of values", f"together they are longer than {_LONGEST_LIST:,} characters")
    options = tuple(dict.fromkeys(values))
    place = {option: position for position, option in enumerate(options)}
    return remapped(listed, [place[value] for value in values], options)


def _joined(forms: list[Form]) -> Form:
    """CONCAT: the product of the lists, from left to right."""
    for form in forms:
        if isinstance(form, Nothing):
            return form
    return reduce(_pair, [to_listed_text(form, "CONCAT") for form in forms])


def _pair(left: Listed, right: Listed) -> Listed:
    count = len(right.options)
    if len(left.options) * count > _MOST_PAIRS:
        raise _refused("concat", f"it makes more than {_MOST_PAIRS} values")
    longest = max(len(str(each)) for each in left.options) + max(len(str(each)) for each in right.options)
    if longest > _LONGEST_VALUE or longest * len(left.options) * count > _LONGEST_LIST:
        raise _refused("concat", f"it makes a value longer than {_LONGEST_VALUE:,} characters, or too many long ones")
    values = [f"{first}{second}" for first in left.options for second in right.options]
    inherited = joined((left, right))
    inherited["weight"] += 2

    def build(scope: Scope) -> Any:
        ops = scope.operations
        return left.build(scope) * ops.whole(count) + right.build(scope)

    # positions before equal values are merged: the values as they stand need not differ
    pairs = Listed(options=tuple(values), build=build, **inherited)
    return mapped(pairs, str)


def _refused(name: str, why: str) -> UnsupportedQuery:
    return UnsupportedQuery(f"{name.upper()} is not supported", why=why, instead="SUBSTRING(town, 1, 3)")
