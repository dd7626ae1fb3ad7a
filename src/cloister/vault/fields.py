"""What is declared of a field: the operations that it is for. The layer that leaks least and can do them follows.

    Random()            is read back                     a value under AES-GCM-SIV, padded
    Equal()             … and found by equality          also a keyed index, one word a value
    Words(most)         … and by words or elements       also a keyed index, most + 1 words a value
    Range(low, high)    … and found by ranges, sorted    also a keyed index, one word a node of a tree
    Sum()               … and added up by the client     nothing more than Random

Every value is stored once, in the same way; what a declaration adds is entries of the index. `|` joins declarations. What shows
without a query, equality or order, has to be asked for by name: `weak.py`; so has a sum at the server: `paillier.py`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from cloister.errors import InvalidDeclaration, InvalidParameter
from cloister.vault.ranges import Domain
from cloister.vault.values import LARGEST, LEAST, comparable, is_number

__all__ = ["MISSING", "Equal", "Field", "Random", "Range", "Sum", "Words"]

_MOST_WORDS = 10_000
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
    exposed: str = ""
    """What the store sees at any time: "equal", "order", or nothing."""
    added: tuple[int, int] | None = None
    """The bounds of whole numbers that the store adds up without reading them (`paillier.py`)."""
    pad: int | None = None
    """The bytes that each value takes, whatever it is."""
    parts: int = 0
    """By how many words of a text, or elements of a list, it is found."""

    def __or__(self, other: Field) -> Field:
        if not isinstance(other, Field):
            return NotImplemented
        if self.domain and other.domain and self.domain != other.domain:
            raise InvalidDeclaration("The field is invalid", why="it has two different ranges", instead="Range(0, 120) once")
        if (self.exposed or other.exposed) and any(each.domain and not each.exposed for each in (self, other)):
            raise InvalidDeclaration(
                "The field is invalid", why="a range that shows nothing joins a layer that shows", instead="one of the two"
            )
        for name, each in (("bounds of PaillierSum", "added"), ("lengths", "pad")):
            mine, theirs = getattr(self, each), getattr(other, each)
            if mine is not None and theirs is not None and mine != theirs:
                raise InvalidDeclaration("The field is invalid", why=f"it has two different {name}", instead="one of the two")
        domain, exposed = self.domain or other.domain, max(self.exposed, other.exposed)  # order shows equality too
        return Field(
            self.equal or other.equal,
            self.total or other.total,
            domain,
            exposed,
            self.added or other.added,
            self.pad or other.pad,
            max(self.parts, other.parts),
        )

    def layers(self) -> list[str]:
        """How a value is stored, in words."""
        index = ["equality index"] if self.equal and not self.parts else []
        if self.parts:
            index.append(f"word index of {self.parts + 1} entries")
        if self.domain:
            order = "order-revealing tokens of {} bits" if self.exposed else "range index of {} levels"
            index.append(order.format(self.domain.levels + 1))
        elif self.exposed:
            index.append("deterministic tokens")
        if self.added:
            index.append("Paillier cells")
        return [f"AES-GCM-SIV, {self.pad:,} bytes" if self.pad else "AES-GCM-SIV", *index]

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
        if self.added and not (
            isinstance(value, int) and not isinstance(value, bool) and self.added[0] <= value <= self.added[1]
        ):
            raise InvalidParameter(
                f"The value of {name!r} is invalid",
                why=f"it is not a whole number from {self.added[0]} to {self.added[1]}",
                instead="a whole number within PaillierSum(low, high), or None",
            )
        if self.total and not is_number(value):
            raise InvalidParameter(
                f"The value of {name!r} is invalid",
                why="Sum() adds finite numbers",
                instead="a number or None, or declare Random()",
            )
        if (self.equal or self.exposed) and isinstance(value, float) and value != value:
            raise InvalidParameter(
                f"The value of {name!r} is invalid", why="NaN equals nothing", instead="None, or declare Random()"
            )
        if self.parts and len(parts_of(value)) > self.parts:
            raise InvalidParameter(
                f"The value of {name!r} is invalid",
                why=f"it has more than {self.parts} different words or elements",
                instead="Words(most) with a larger most",
            )

    def words(self, value: Any) -> list[bytes]:
        """What a value is filed under. A missing one has as many words as any other."""
        value = None if value is MISSING else value
        words = [equality_word(value)] if self.equal else []
        if self.parts:
            words += parts_of(value)
            words += [b"~%d" % at for at in range(len(words), self.parts + 1)]  # nobody asks for these
        if self.domain and not self.exposed:
            levels = range(self.domain.levels + 1)
            words += (
                [node_word(node) for node in self.domain.path(value)] if value is not None else [absent_word(at) for at in levels]
            )
        return words

    def told(self) -> list[Any]:
        """The declaration as it is stored: literals, in this order."""
        domain = [self.domain.low, self.domain.high, self.domain.step] if self.domain else None
        more = {"added": self.added and list(self.added), "pad": self.pad, "parts": self.parts}
        more = {name: each for name, each in more.items() if each}
        return [self.equal, self.total, domain, *([self.exposed] if self.exposed or more else []), *([more] if more else [])]


def declared(told: list[Any]) -> Field:
    """The declaration that was stored."""
    equal, total, domain, *rest = told
    exposed, more = rest[0] if rest else "", rest[1] if len(rest) > 1 else {}
    added = tuple(more["added"]) if "added" in more else None
    return Field(equal, total, Domain(*domain) if domain else None, exposed, added, more.get("pad"), more.get("parts", 0))


def equality_word(value: Any) -> bytes:
    """The word of a value in an equality index."""
    return b"=" + comparable(value)


def text_word(word: str) -> bytes:
    """The word of a text's word in an index."""
    return b"." + word.encode("utf-8", "surrogatepass")


def words_of(text: str) -> list[str]:
    """The words of a text, folded so that they are found however they are written, each once.

    >>> words_of("No pain, no GAIN")
    ['no', 'pain', 'gain']
    """
    return list(dict.fromkeys(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())))


def parts_of(value: Any) -> list[bytes]:
    """What a value is found by besides itself: the words of a text, the elements of a list."""
    if isinstance(value, str):
        return [text_word(word) for word in words_of(value)]
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(equality_word(each) for each in value))
    return []


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


def _length(pad: Any) -> int | None:
    if pad is not None and (isinstance(pad, bool) or not isinstance(pad, int) or not LEAST <= pad <= LARGEST):
        raise InvalidDeclaration(
            "pad= is invalid", why=f"it is a number of bytes from {LEAST} to {LARGEST:,}", instead="pad=256, or pad=None"
        )
    return pad


class Random(_Declared):
    """A field that is read back and nothing else. The server sees its padded length; with `pad=256`, each value takes 256 bytes
    and a longer one is refused, so it sees nothing.

    >>> Random().layers(), Random(pad=256).layers()
    (['AES-GCM-SIV'], ['AES-GCM-SIV, 256 bytes'])
    """

    def __init__(self, *, pad: int | None = None) -> None:
        super().__init__(pad=_length(pad))


class Equal(_Declared):
    """A field that is found by equality (`$eq`, `$in`) and grouped by. A query shows whether it was asked before, and which
    records it returns; nothing shows before a query.

    >>> Equal().layers()
    ['AES-GCM-SIV', 'equality index']
    """

    def __init__(self, *, pad: int | None = None) -> None:
        super().__init__(equal=True, pad=_length(pad))


class Words(_Declared):
    """A field of texts that are found by their words (`{"$text": {"$search": "heart"}}`), or of lists that are found by their
    elements (`{"tags": "a"}`), and by equality. Each value has `most` words or elements at most, and `most` + 1 entries of the
    index, however many it has. A query shows what `Equal` shows, for each word.

    >>> Words(8).layers()
    ['AES-GCM-SIV', 'word index of 9 entries']
    """

    def __init__(self, most: int, *, pad: int | None = None) -> None:
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST_WORDS:
            raise InvalidDeclaration("Words is invalid", why=f"most is from 1 to {_MOST_WORDS:,}", instead="Words(16)")
        super().__init__(equal=True, pad=_length(pad), parts=most)


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
