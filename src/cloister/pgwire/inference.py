"""What a question says of types that a client left open: of its parameters, as PostgreSQL infers them, and of texts with a cast.

A parameter is of the type that it is cast to, or of the column, the call or the arithmetic that it is compared with.

`= ANY (array)` and its like, as drivers send lists, in the words that a question may have: IN, AND, OR, TRUE and FALSE.

    x = ANY (ARRAY[1, 2])    x IN (1, 2)              x = ANY ('{}')     FALSE
    x <> ALL (ARRAY[1, 2])   x NOT IN (1, 2)          x <> ALL ('{}')    TRUE
    x > ANY (ARRAY[1, 2])    (x > 1 OR x > 2)         x = ANY (NULL)     x IN (NULL)

These say what PostgreSQL says, also where an element or `x` is NULL. An array is written out (every bound value is, by then);
what is compared with anything else, a subquery or a column, is left as it stands.
"""

from collections.abc import Mapping, Sequence

from cloister.pgwire.failures import Refused
from cloister.pgwire.types import TYPES
from cloister.pgwire.values import array_in, elements, literal, type_in, value_in
from cloister.pgwire.words import Rest, Word, words

_COMPARISONS = ("=", "<>", "!=", "<", ">", "<=", ">=")
_FARTHEST = 1_000
"""Words of a list that are read over to find what it belongs to."""
_LONGEST = 24
"""Words that a constant and its casts take at most."""
_SIGNS = ("+", "-", "*", "/", "%")
_CALLS = {"count": "int8", "length": "int8", **dict.fromkeys(("sum", "avg", "extract", "abs", "round", "sqrt"), "float8")}
_OF_ARRAYS = (*_COMPARISONS, "like", "ilike")
_KEYWORDS = "all and between by case distinct else filter having limit not offset on or returning select then using when where"
_BEFORE = (*_KEYWORDS.split(), *_OF_ARRAYS, ",", ";")
_LONGEST_LIST, _MOST = 200_000, 50


def inferred(own: Sequence[Word], types: Sequence[int], kinds: Mapping[str, str]) -> tuple[int, ...]:
    """The types of all parameters, where the types of columns by name are `kinds`; 0 for what is still unknown.

    >>> inferred(words("SELECT COUNT(*) FROM people WHERE p.age > $1 AND sex = ANY($2)"), [0, 0], {"age": "int8", "sex": "text"})
    (20, 1009)
    """
    found, seen = list(types), set[str]()
    for place, word in enumerate(own):
        if word.kind == "parameter" and word.text not in seen and found[int(word.text[1:]) - 1] == 0:
            seen.add(word.text)  # its first place says what it is
            kind = _cast_to(own, place) or kinds.get(_compared(own, place)) or _beside(own, place, kinds)
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
    if at > 0 and own[at - 1].says(*_COMPARISONS, "between"):
        return _column_before(own, at - 1)
    if at > 3 and own[at - 1].says("and") and own[at - 3].says("between"):
        return _column_before(own, at - 3)
    while at > max(place - _FARTHEST, 1) and own[at - 1].says(",") and own[at - 2].kind in ("parameter", "string", "number"):
        at -= 2
    if at > 1 and own[at - 1].says("(") and own[at - 2].says("in"):
        return _column_before(own, at - 2)
    return ""


def _beside(own: Sequence[Word], place: int, kinds: Mapping[str, str]) -> str:
    """The type that LIMIT, a call or arithmetic gives to the parameter beside it; empty for none."""
    sign = own[place - 1]
    if sign.says("limit", "offset"):
        return "int8"
    first = _operand(own, place - 1) if sign.says(*_COMPARISONS) else place - 2 if sign.says(*_SIGNS) else place
    near = [word.lower.lower() for word in own[max(first, 0) : place]]
    if near and near[0] in _CALLS:
        return _CALLS[near[0]]
    return next((kinds[word] for word in near if word in kinds), "") if {*_SIGNS} & {*near} else ""


def _column_before(own: Sequence[Word], end: int) -> str:
    if end > 1 and own[end - 1].says("not"):
        end -= 1
    return own[end - 1].lower.lower() if end > 0 and own[end - 1].kind in ("word", "quoted") else ""


def _column_at(own: Sequence[Word], start: int) -> str:
    while start + 2 < len(own) and own[start + 1].says("."):
        start += 2
    return own[start].lower.lower() if start < len(own) and own[start].kind in ("word", "quoted") else ""


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
        if sum(map(len, pieces)) > _LONGEST_LIST:
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
    if place < 2 or not own[place - 1].says(*_OF_ARRAYS):
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
