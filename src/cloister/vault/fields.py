"""What is declared of a field: the operations that it is for. The layer that leaks least and can do them follows.

    Random()            is read back                     a value under AES-GCM-SIV, padded
    Equal()             … and found by equality          also a keyed index, one word a value
    Range(low, high)    … and found by ranges, sorted    also a keyed index, one word a node of a tree
    Sum()               … and added up by the client     nothing more than Random

Every value is stored once, in the same way; what a declaration adds is entries of the index. `|` joins declarations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.vault.ranges import Domain
from cloister.vault.values import comparable, is_number

__all__ = ["MISSING", "Equal", "Field", "Random", "Range", "Sum"]

MISSING = object()
"""What a document without a field has in its place: it is stored, too, so that the shape of a record says nothing."""


@dataclass(frozen=True)
class Field:
    """The operations of one field.

    >>> (Sum() | Range(0, 120)).layers()
    ['AES-GCM-SIV', 'range index of 8 levels']
    """

    equal: bool = False
    total: bool = False
    domain: Domain | None = None

    def __or__(self, other: Field) -> Field:
        if not isinstance(other, Field):
            return NotImplemented
        if self.domain and other.domain and self.domain != other.domain:
            raise InvalidDeclaration("The field is invalid", why="it has two different ranges", instead="Range(0, 120) once")
        return Field(self.equal or other.equal, self.total or other.total, self.domain or other.domain)

    def layers(self) -> list[str]:
        """How a value is stored, in words."""
        index = ["equality index"] if self.equal else []
        return ["AES-GCM-SIV", *index, *([f"range index of {self.domain.levels + 1} levels"] if self.domain else [])]

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that an operation of the field could not treat. The message does not say which value."""
        if value is MISSING or value is None:
            return
        if self.domain and not self.domain.holds(value):
            raise InvalidParameter(
                f"The value of {name!r} is invalid",
                why=f"it is not a number from {self.domain.low} to {self.domain.high}",
                instead="a value within the declared range, or None",
            )
        if self.total and not is_number(value):
            raise InvalidParameter(
                f"The value of {name!r} is invalid",
                why="Sum() adds finite numbers",
                instead="a number or None, or declare Random()",
            )
        if self.equal and isinstance(value, float) and value != value:
            raise InvalidParameter(
                f"The value of {name!r} is invalid", why="NaN equals nothing", instead="None, or declare Random()"
            )

    def words(self, value: Any) -> list[bytes]:
        """What a value is filed under. A missing one has as many words as any other."""
        value = None if value is MISSING else value
        words = [equality_word(value)] if self.equal else []
        if self.domain:
            levels = range(self.domain.levels + 1)
            words += (
                [node_word(node) for node in self.domain.path(value)] if value is not None else [absent_word(at) for at in levels]
            )
        return words

    def told(self) -> list[Any]:
        """The declaration as it is stored: literals, in this order."""
        return [self.equal, self.total, [self.domain.low, self.domain.high, self.domain.step] if self.domain else None]


def declared(told: list[Any]) -> Field:
    """The declaration that was stored."""
    equal, total, domain = told
    return Field(equal, total, Domain(*domain) if domain else None)


def equality_word(value: Any) -> bytes:
    """The word of a value in an equality index."""
    return b"=" + comparable(value)


def node_word(node: tuple[int, int]) -> bytes:
    """The word of a node in a range index."""
    return b"<%d:%d" % node


def absent_word(level: int) -> bytes:
    """The word under which a document without a value is filed, so that its number of entries is that of any other."""
    return b"<%d:absent" % level


class _Declared(Field):
    def __init__(self, **operations: Any) -> None:
        for name, value in vars(replace(Field(), **operations)).items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self.told() == other.told()

    __hash__ = Field.__hash__


class Random(_Declared):
    """A field that is read back and nothing else. The server sees its padded length.

    >>> Random().layers()
    ['AES-GCM-SIV']
    """

    def __init__(self) -> None:
        super().__init__()


class Equal(_Declared):
    """A field that is found by equality (`$eq`, `$in`) and grouped by. A query shows whether it was asked before, and which
    records it returns; nothing shows before a query.

    >>> Equal().layers()
    ['AES-GCM-SIV', 'equality index']
    """

    def __init__(self) -> None:
        super().__init__(equal=True)


class Sum(_Declared):
    """A field of numbers that are added up (`$sum`, `$avg`, `$min`, `$max`). The client decrypts and adds, so nothing shows but
    which records were read.

    >>> Sum().layers()
    ['AES-GCM-SIV']
    """

    def __init__(self) -> None:
        super().__init__(total=True)


class Range(_Declared):
    """A field of numbers from `low` to `high` that is found by ranges (`$gt`, `$gte`, `$lt`, `$lte`), sorted and grouped by. A
    query shows how its range overlaps with earlier ones, and which records it returns; nothing shows before a query. Many
    queries reveal the order, then nearly the values (Kellaris, Kollios, Nissim, O'Neill 2016).

    >>> Range(0, 120).layers()
    ['AES-GCM-SIV', 'range index of 8 levels']
    """

    def __init__(self, low: int | float, high: int | float, step: int | float = 1) -> None:
        super().__init__(domain=Domain(low, high, step))
