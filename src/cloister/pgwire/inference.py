"""What a question says of types that a client left open: of its parameters, as PostgreSQL infers them, and of texts with a cast.

A parameter is of the type that it is cast to, or of the column that it is compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloister.pgwire.failures import Refused
from cloister.pgwire.rest import Rest
from cloister.pgwire.types import TYPES
from cloister.pgwire.values import literal, type_in, value_in
from cloister.pgwire.words import Word, words

_COMPARISONS = ("=", "<>", "!=", "<", ">", "<=", ">=")
_FARTHEST = 1_000
"""Words of a list that are read over to find what it belongs to."""
_LONGEST = 24
"""Words that a constant and its casts take at most."""


def inferred(own: Sequence[Word], types: Sequence[int], kinds: Mapping[str, str]) -> tuple[int, ...]:
    """The types of all parameters, where the types of columns by name are `kinds`; 0 for what is still unknown.

    >>> inferred(words("SELECT COUNT(*) FROM people WHERE p.age > $1 AND sex = ANY($2)"), [0, 0], {"age": "int8", "sex": "text"})
    (20, 1009)
    """
    found, seen = list(types), set[str]()
    for place, word in enumerate(own):
        if word.kind == "parameter" and word.text not in seen and found[int(word.text[1:]) - 1] == 0:
            seen.add(word.text)  # its first place says what it is
            kind = _cast_to(own, place) or kinds.get(_compared(own, place), "")
            if kind and _in_any(own, place) and not kind.endswith("[]"):
                kind += "[]"
            found[int(word.text[1:]) - 1] = TYPES[kind].oid if kind in TYPES else 0
    return tuple(found)


def uncast(text: str) -> str:
    """A question whose constants are written as what they are cast to, as some drivers cast every value that they write.

    >>> uncast("SELECT COUNT(*) FROM people WHERE age > ('20'::int4) AND born < CAST('2020-01-01' AS date) AND sex = 'F'::text")
    "SELECT COUNT(*) FROM people WHERE age > (20) AND born < DATE '2020-01-01' AND sex = 'F'"
    """
    own = words(text)
    pieces, at = [], 0
    for place, word in enumerate(own):
        if word.start < at or not (word.says("cast") or _is_cast(own, place)):
            continue
        rest = Rest(own[place : place + _LONGEST], "cast")
        try:
            spelled = literal(value_in(rest), 0, 1)
        except Refused:
            continue  # whoever reads it says what is wrong with it
        pieces += [text[at : word.start], spelled]
        at = own[place + rest.at - 1].end
    return "".join([*pieces, text[at:]])


def _is_cast(own: Sequence[Word], place: int) -> bool:
    """Whether a constant begins here, and a cast follows it."""
    near = own[place : place + 3]
    if near[0].kind == "word" and near[0].lower in TYPES and len(near) == 3 and near[1].kind == "string":
        near = near[1:]
    constant = near[0].kind in ("string", "number") or near[0].says("null", "true", "false")
    return constant and len(near) > 1 and near[1].says("::")


def _cast_to(own: Sequence[Word], place: int) -> str:
    """The type of `$1::int` and of `CAST($1 AS int)`."""
    near = own[place + 1 : place + 2]
    if not near or not (near[0].says("::") or (near[0].says("as") and place > 1 and own[place - 2].says("cast"))):
        return ""
    try:
        return type_in(Rest(own[place + 2 : place + 2 + _LONGEST], "cast")).name
    except Refused:
        return ""


def _in_any(own: Sequence[Word], place: int) -> bool:
    return place > 1 and own[place - 1].says("(") and own[place - 2].says("any", "some", "all")


def _compared(own: Sequence[Word], place: int) -> str:
    """The column that a parameter is compared with; empty for none, or where it is part of more."""
    behind = own[place + 1 : place + 2]
    if behind and behind[0].says(*_COMPARISONS):
        return _column_at(own, place + 2)
    at = place - 2 if _in_any(own, place) else place
    if at > 0 and own[at - 1].says(*_COMPARISONS):
        return _column_before(own, at - 1)
    if at > 0 and own[at - 1].says("between"):
        return _column_before(own, at - 1)
    if at > 3 and own[at - 1].says("and") and own[at - 3].says("between"):
        return _column_before(own, at - 3)
    while at > max(place - _FARTHEST, 1) and own[at - 1].says(",") and own[at - 2].kind in ("parameter", "string", "number"):
        at -= 2
    if at > 1 and own[at - 1].says("(") and own[at - 2].says("in"):
        return _column_before(own, at - 2)
    return ""


def _column_before(own: Sequence[Word], end: int) -> str:
    if end > 1 and own[end - 1].says("not"):
        end -= 1
    return own[end - 1].lower.lower() if end > 0 and own[end - 1].kind in ("word", "quoted") else ""


def _column_at(own: Sequence[Word], start: int) -> str:
    while start + 2 < len(own) and own[start + 1].says("."):
        start += 2
    return own[start].lower.lower() if start < len(own) and own[start].kind in ("word", "quoted") else ""
