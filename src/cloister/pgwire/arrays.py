"""`= ANY (array)` and its like, as drivers send lists, in the words that a question may have: IN, AND, OR, TRUE and FALSE.

    x = ANY (ARRAY[1, 2])    x IN (1, 2)              x = ANY ('{}')     FALSE
    x <> ALL (ARRAY[1, 2])   x NOT IN (1, 2)          x <> ALL ('{}')    TRUE
    x > ANY (ARRAY[1, 2])    (x > 1 OR x > 2)         x = ANY (NULL)     x IN (NULL)

These say what PostgreSQL says, also where an element or `x` is NULL. An array is written out (every bound value is, by then);
what is compared with anything else, a subquery or a column, is left as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloister.pgwire.failures import Refused
from cloister.pgwire.types import TYPES
from cloister.pgwire.values import array_in, elements, literal
from cloister.pgwire.words import Word, words

_COMPARISONS = ("=", "<>", "!=", "<", ">", "<=", ">=", "like", "ilike")
_KEYWORDS = "all and between by case distinct else filter having limit not offset on or returning select then using when where"
_BEFORE = (*_KEYWORDS.split(), *_COMPARISONS, ",", ";")
_LONGEST, _MOST = 200_000, 50


def spelled_out(text: str, kinds: Mapping[str, str]) -> str:
    """A question without ANY, SOME and ALL of arrays. `kinds` are the types of columns by name, for elements that have none.

    >>> spelled_out("SELECT COUNT(*) FROM people WHERE age = ANY('{30,40}') AND NOT sex <> ALL(ARRAY['F'])", {"age": "int8"})
    "SELECT COUNT(*) FROM people WHERE age IN (30, 40) AND NOT sex NOT IN ('F')"
    >>> spelled_out("SELECT COUNT(*) FROM people WHERE NOT age + 1 = ANY(ARRAY[]::int[])", {})
    'SELECT COUNT(*) FROM people WHERE NOT FALSE'
    """
    own = words(text)
    pieces, at, seen = [], 0, 0
    for place, word in enumerate(own):
        if not word.says("any", "some", "all") or not own[place + 1 : place + 2] or not own[place + 1].says("("):
            continue
        first = _comparison(own, place)
        if first is None:
            continue
        seen += 1
        if seen > _MOST:
            raise Refused(
                "The query was refused", why=f"it compares with more than {_MOST} arrays", instead="fewer", code="54001"
            )
        last = _closing(own, place + 1)
        array = None if last is None else array_in(own[place + 2 : last])
        if array is None or last is None:
            continue
        left = _operand(own, first)
        single = first - left == 1 or (first - left == 3 and own[left + 1].text == ".")
        kind = kinds.get(own[first - 1].lower.lower(), "") if single else ""
        listed = [literal(each, TYPES[each.kind].oid if each.kind in TYPES else 0, 1) for each in elements(array, kind)]
        start, instead = _instead(text, own, (left, first, place), listed)
        if start < at:
            continue  # within what was changed already: a comparison of comparisons
        pieces += [text[at:start], instead]
        at = own[last].end
        if sum(map(len, pieces)) > _LONGEST:
            raise Refused("The array was refused", why="spelled out it is too long", instead="a shorter one", code="54000")
    return "".join([*pieces, text[at:]])


def _instead(text: str, own: Sequence[Word], places: tuple[int, int, int], listed: Sequence[str]) -> tuple[int, str]:
    """From which letter on, and what stands there instead."""
    left, first, quantifier = places
    operator = text[own[first].start : own[quantifier - 1].end]
    every = own[quantifier].says("all")
    if not listed:
        return own[left].start, "TRUE" if every else "FALSE"
    if operator == "=" and not every:
        return own[first].start, f"IN ({', '.join(listed)})"
    if operator in ("<>", "!=") and every:
        return own[first].start, f"NOT IN ({', '.join(listed)})"
    compared = text[own[left].start : own[first].start].strip()
    parts = (f"{compared} {operator} {each}" for each in listed)
    return own[left].start, f"({(' AND ' if every else ' OR ').join(parts)})"


def _comparison(own: Sequence[Word], place: int) -> int | None:
    """Where the comparison before ANY begins: `=`, LIKE, NOT LIKE."""
    if place < 2 or not own[place - 1].says(*_COMPARISONS):
        return None
    return place - 2 if own[place - 1].says("like", "ilike") and own[place - 2].says("not") else place - 1


def _closing(own: Sequence[Word], place: int) -> int | None:
    """Where a parenthesis closes."""
    depth = 0
    for at in range(place, len(own)):
        depth += own[at].says("(") - own[at].says(")")
        if depth == 0:
            return at
    return None


def _operand(own: Sequence[Word], end: int) -> int:
    """Where what is compared begins: behind whatever binds less than a comparison does."""
    at, depth, cases = end, 0, 0
    while at > 0:
        word = own[at - 1]
        if word.says(")", "]"):
            depth += 1
        elif word.says("(", "["):
            if depth == 0:
                break
            depth -= 1
        elif depth == 0 and word.says("end"):
            cases += 1
        elif depth == 0 and cases and word.says("case"):
            cases -= 1
        elif depth == 0 and not cases and word.says(*_BEFORE):
            break
        at -= 1
    return at
