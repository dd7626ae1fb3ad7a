"""Constants as SQL writes them: the values of EXECUTE, and the elements of an array.

Each is taken apart and spelled again (`parameters.py`), so nothing but a value comes out of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cloister.pgwire.failures import Refused
from cloister.pgwire.parameters import elements_of, spell
from cloister.pgwire.types import TYPES, WireType, encoded, named, type_called
from cloister.pgwire.words import Rest, Word, unquoted

_UNBOUND = "parameter"
_SHORTENED = ("varchar", "bpchar", "char")


@dataclass(frozen=True)
class Value:
    """A text that is read by a type; `kind` is the type that was written beside it, or follows from how it is written."""

    text: str | None
    kind: str = ""
    elements: tuple[Value, ...] | None = None
    """Of an array."""


def values_in(rest: Rest) -> tuple[Value, ...]:
    """Values in parentheses, with commas between them.

    >>> from cloister.pgwire.words import words
    >>> [value.text for value in values_in(Rest(words("(1, -2.5, 'it''s', NULL, DATE '2020-01-01')"), "execute"))]
    ['1', '-2.5', "it's", None, '2020-01-01']
    """
    return _listed(rest, "(", ")")


def value_in(rest: Rest) -> Value:
    """One value, with the type that it is cast to."""
    if rest.had("cast", "("):
        found = value_in(rest)
        rest.expect("as")
        found = _cast(found, rest)
        rest.expect(")")
    elif rest.had("("):
        found = value_in(rest)
        rest.expect(")")
    else:
        found = _bare(rest)
    while rest.had("::"):
        found = _cast(found, rest)
    return found


def array_in(own: Sequence[Word]) -> Value | None:
    """The array that some words write; None where they write something else.

    >>> from cloister.pgwire.words import words
    >>> array_in(words("ARRAY[1, 2]")).kind, array_in(words("'{a}'::text[]")).kind, array_in(words("SELECT 1"))
    ('', 'text[]', None)
    """
    rest = Rest(own, "array")
    try:
        found = value_in(rest)
        rest.end()
    except (Refused, RecursionError):
        return None
    plain = found.elements is None and found.text is not None
    return None if plain and found.kind not in ("", "text") and not found.kind.endswith("[]") else found


def type_in(rest: Rest) -> WireType:
    """A type by its name: `int`, `double precision`, `varchar(20)`, `text[]`."""
    if rest.had("pg_catalog", "."):
        return type_in(rest)
    words = [rest.plain_name()]
    while rest.says("precision", "varying", "with", "without", "time", "zone"):
        words.append(rest.plain_name())
    if rest.had("("):
        rest.number()
        if rest.had(","):
            rest.number()
        rest.expect(")")
    name = " ".join(words) + ("[]" if rest.had("[", "]") else "")
    found = type_called(name)
    if found is None:
        raise Refused(
            f"The type {name[:63]!r} was not found", why="it is none that is spoken here", instead="int, text, date", code="42704"
        )
    return found


def literal(value: Value, oid: int, place: int) -> str:
    """A value as a literal of a type; of its own where the number of the type is 0.

    >>> literal(Value("5", "numeric"), 25, 1), literal(Value("5", "numeric"), 0, 1), literal(Value(None), 23, 1)
    ("'5'", '5', 'NULL')
    """
    if value.kind == _UNBOUND:
        raise Refused(f"There is no parameter {value.text}", why="nothing was bound to it", instead="a constant", code="42P02")
    kind = named(oid) or TYPES.get(value.kind)
    if value.elements is not None:
        element = TYPES[kind.element].oid if kind is not None and kind.element else 0
        return f"ARRAY[{', '.join(literal(each, element, place) for each in value.elements)}]"
    return spell(None if value.text is None else encoded(value.text), 0 if kind is None else kind.oid, False, place)


def elements(value: Value, kind: str) -> tuple[Value, ...]:
    """The elements of an array; those that have no type of their own are of `kind`.

    >>> elements(Value("{a,NULL}"), "text")
    (Value(text='a', kind='text', elements=None), Value(text=None, kind='text', elements=None))
    """
    if value.elements is not None:
        given = value.kind.removesuffix("[]")
        return tuple(Value(each.text, given or each.kind, each.elements) for each in value.elements)
    own = value.kind.removesuffix("[]") if value.kind.endswith("[]") else kind
    texts = (None,) if value.text is None else elements_of(value.text)
    return tuple(Value(text, own) for text in texts)


def _listed(rest: Rest, opens: str, closes: str) -> tuple[Value, ...]:
    rest.expect(opens)
    found: list[Value] = []
    while not rest.had(closes):
        if found:
            rest.expect(",")
        found.append(value_in(rest))
    return tuple(found)


def _bare(rest: Rest) -> Value:
    if rest.had("array"):
        return Value(None, "", _listed(rest, "[", "]"))
    sign = "-" if rest.had("-") else ""
    word = rest.next()
    if word.kind == "number":
        return Value(sign + word.text, "numeric")
    if sign:
        raise rest.refused()
    if word.kind == "string":
        return Value(unquoted(word.text))
    if word.kind == "parameter":
        return Value(word.text, _UNBOUND)
    if word.says("null"):
        return Value(None)
    if word.says("true", "false"):
        return Value(word.lower, "bool")
    if word.kind == "word":  # a type before its text
        rest.at -= 1
        kind = type_in(rest)
        text = rest.next()
        if text.kind == "string":
            return Value(unquoted(text.text), kind.name)
    raise rest.refused()


def _cast(value: Value, rest: Rest) -> Value:
    """A value as another type; refused where the size of that would shorten or round it."""
    start, kind = rest.at, type_in(rest)
    size = [int(word.text) for word in rest.own[start : rest.at] if word.kind == "number"]
    if not size and rest.own[start].says("char", "character") and kind.name in ("char", "bpchar"):
        size = [1]  # as PostgreSQL has it
    texts = [each.text or "" for each in elements(value, "")] if size and kind.element else [value.text or ""]
    name = kind.element or kind.name
    long = max(map(len if name in _SHORTENED else _places, texts), default=0)
    most = size[1:] if name == "numeric" else size[:1]
    if size and long > sum(most):
        raise Refused("This cast is not supported", why="it shortens or rounds a constant", instead="the shorter constant")
    return Value(value.text, kind.name, value.elements)


def _places(text: str) -> int:
    try:
        return max(-int(Decimal(text).as_tuple().exponent), 0)  # as it is when written out
    except (ArithmeticError, ValueError):  # no number, or none that is finite; a moment has the digits of its seconds
        return len(text.partition(".")[2])
