"""Filters in MongoDB's words: read, checked against what fields were declared for, and matched by the client.

How records are found is decided by the filter and the declarations alone: by `_id`, by the words of one condition, or by reading
everything. One condition goes to the index, and the client checks all of them on what it decrypts: to look up two would show the
server both sets of records. Equality goes before ranges, since it shows less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.vault.fields import Field, equality_word, node_word, text_word, words_of
from cloister.vault.ranges import Domain
from cloister.vault.values import DEEPEST, comparable, is_number

ORDER = frozenset({"$gt", "$gte", "$lt", "$lte"})
_IDENTITY = Field(equal=True)


@dataclass(frozen=True)
class Condition:
    """One field compared with a value."""

    name: str
    operator: str
    value: Any
    within: bool = False
    """Whether an element of a list is enough."""

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Whether a document meets it."""
        value = document.get(self.name)
        if self.operator == "$word":
            return isinstance(value, str) and self.value in words_of(value)
        if self.operator in ("$eq", "$in"):
            wanted = {comparable(each) for each in (self.value if self.operator == "$in" else [self.value])}
            elements = value if self.within and isinstance(value, list | tuple) else []
            return comparable(value) in wanted or any(comparable(each) in wanted for each in elements)
        if not is_number(value):
            return False
        if self.operator in ("$gt", "$gte"):
            return bool(value > self.value or (self.operator == "$gte" and value == self.value))
        return bool(value < self.value or (self.operator == "$lte" and value == self.value))


@dataclass(frozen=True)
class Filter:
    """All conditions hold, and one of each list of alternatives."""

    conditions: tuple[Condition, ...] = ()
    either: tuple[tuple[Filter, ...], ...] = ()

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Whether a document meets it."""
        return all(each.holds(document) for each in self.conditions) and all(
            any(one.holds(document) for one in each) for each in self.either
        )


class Order(NamedTuple):
    """By what records are sorted, and how many of the first are wanted."""

    keys: tuple[tuple[str, int], ...]
    most: int


class First(NamedTuple):
    """The first records in the order of one field."""

    name: str
    way: int
    """1: from the least; −1: from the largest."""
    most: int
    bounds: tuple[int | float, int | float] | None
    """The first and the last value; None: all records, those without a value included."""


@dataclass(frozen=True)
class Access:
    """How the records of a filter are found."""

    everything: bool = False
    identities: tuple[Any, ...] = ()
    words: tuple[tuple[str, bytes], ...] = ()
    """Field and word."""
    tokens: tuple[tuple[str, Any, Any], ...] = ()
    """Field, and the first and last value, where the store compares by itself."""
    added: tuple[str, ...] = ()
    """Fields whose Paillier cells the store multiplies, in place of reading records."""
    first: First | None = None
    """In place of words and tokens: no more than lead to these."""
    said: tuple[str, ...] = field(default=(), compare=False)


def read(given: Any, fields: Mapping[str, Field], depth: int = 0) -> Filter:
    """A filter from a dict."""
    if given is None:
        return Filter()
    if depth > DEEPEST:
        raise InvalidParameter("The filter is invalid", why=f"it has more than {DEEPEST} levels", instead="a flatter filter")
    if not isinstance(given, dict):
        raise InvalidParameter("The filter is invalid", why="it is not a dict", instead='{"age": {"$gte": 40}}')
    conditions: list[Condition] = []
    either: list[tuple[Filter, ...]] = []
    for name, value in given.items():
        if name in ("$and", "$or"):
            if not isinstance(value, list) or not value:
                raise InvalidParameter(
                    "The filter is invalid", why=f"{name} takes a list of filters", instead=f'{{"{name}": [{{…}}, {{…}}]}}'
                )
            parts = tuple(read(each, fields, depth + 1) for each in value)
            if name == "$or":
                either.append(parts)
            else:
                conditions += [condition for part in parts for condition in part.conditions]
                either += [each for part in parts for each in part.either]
        elif name == "$text":
            either.append(_texts(value, fields))
        elif isinstance(name, str) and name.startswith("$"):
            raise UnsupportedQuery(
                "The filter is not supported", why="only $and, $or and $text stand outside a field", instead='{"$or": [{…}, {…}]}'
            )
        else:
            conditions += _conditions(name, value, declaration(name, fields))
    return Filter(tuple(conditions), tuple(either))


def _texts(given: Any, fields: Mapping[str, Field]) -> tuple[Filter, ...]:
    """A search for any of some words in any of the fields that have them."""
    search = given.get("$search") if isinstance(given, dict) and len(given) == 1 else None
    if not isinstance(search, str):
        raise InvalidParameter("The filter is invalid", why="$text takes words", instead='{"$text": {"$search": "heart attack"}}')
    found = [name for name, each in fields.items() if each.parts]
    if not found:
        raise UnsupportedQuery(
            "The filter is not supported", why="no field was declared to be found by words", instead="Words(16) in a declaration"
        )
    return tuple(Filter((Condition(name, "$word", word),)) for name in found for word in words_of(search))


def declaration(name: Any, fields: Mapping[str, Field]) -> Field:
    """What is declared of a field. The error names the declared ones and not the one asked for, which may be a value."""
    if name == "_id":
        return fields.get(name, _IDENTITY)
    if isinstance(name, str) and "." in name and name.partition(".")[0] in fields:
        raise UnsupportedQuery(
            "A name with a dot is not supported",
            why="a document inside a document is one value, and no index leads to a part of it",
            instead="a field of its own for the part, declared with what it is for",
        )
    if name not in fields:
        known = ", ".join(map(repr, fields))
        raise UnknownColumn("The field is not known", why="the collection does not declare it", instead=f"one of {known}")
    return fields[name]


def access(given: Filter, fields: Mapping[str, Field], order: Order | None = None) -> Access:
    """How to find the records of a filter while showing the least; with an order, no more of them than that needs, if there is no
    filter, or one on the field of the order alone leads to the index."""
    way = _unordered(given, fields)
    if order is None or not order.most:
        return way
    name, direction = order.keys[0]
    domain = fields[name].domain
    mine = [condition for condition in given.conditions if condition.name == name]
    if domain is None or (given != Filter() and (not mine or way != _range(mine, fields))):
        return way
    bounds = _bounds(mine, domain) if mine else None
    if bounds is not None and bounds[0] > bounds[1]:
        return way
    first, many = First(name, direction, order.most, bounds), "is 1 record" if order.most == 1 else f"are {order.most:,} records"
    end = "least" if direction == 1 else "largest"
    what = f"{'tokens' if fields[name].exposed else 'nodes'} of {name!r}{' in a range' if mine else ''}"
    return Access(first=first, said=(f"{what} from the {end} on, until there {many}",))


def _unordered(given: Filter, fields: Mapping[str, Field]) -> Access:
    for condition in given.conditions:
        if condition.name == "_id":
            values = condition.value if condition.operator == "$in" else [condition.value]
            return Access(identities=tuple(values), said=(f"{len(values)} handle{'s' * (len(values) != 1)} of `_id`",))
    for condition in given.conditions:
        if condition.operator in ("$eq", "$in") and declaration(condition.name, fields).equal:
            values = condition.value if condition.operator == "$in" else [condition.value]
            words = dict.fromkeys((condition.name, equality_word(value)) for value in values)
            return Access(words=tuple(words), said=(f"{len(words)} word{'s' * (len(words) != 1)} of {condition.name!r}",))
    for condition in given.conditions:
        if condition.operator == "$word":
            return Access(words=((condition.name, text_word(condition.value)),), said=(f"1 word of {condition.name!r}",))
    for condition in given.conditions:
        if condition.operator in ("$eq", "$in") and declaration(condition.name, fields).exposed == "equal":
            values = condition.value if condition.operator == "$in" else [condition.value]
            tokens = tuple((condition.name, value, value) for value in values)
            return Access(tokens=tokens, said=(f"{len(tokens)} token{'s' * (len(tokens) != 1)} of {condition.name!r}",))
    for name in dict.fromkeys(condition.name for condition in given.conditions):
        found = _range([condition for condition in given.conditions if condition.name == name], fields)
        if found is not None:
            return found
    for parts in given.either:
        ways = [access(part, fields) for part in parts]
        if not any(way.everything for way in ways):
            return Access(
                identities=tuple(each for way in ways for each in way.identities),
                words=tuple(dict.fromkeys(each for way in ways for each in way.words)),
                tokens=tuple(each for way in ways for each in way.tokens),
                said=tuple(each for way in ways for each in way.said),
            )
    return Access(everything=True, said=("every record",))


def _conditions(name: str, value: Any, field: Field) -> Iterable[Condition]:
    operators = value if isinstance(value, dict) and any(str(key).startswith("$") for key in value) else {"$eq": value}
    for operator, operand in operators.items():
        if operator in ("$eq", "$in"):
            if not (field.equal or field.domain or field.exposed):
                raise _refused(name, "be found by equality", "Equal()")
            if operator == "$in" and not isinstance(operand, list):
                raise InvalidParameter(
                    "The filter is invalid", why="$in takes a list", instead='{"town": {"$in": ["Basel", "Bern"]}}'
                )
            comparable(operand)  # what no document may hold is refused here, an operator inside a value for one
        elif operator in ORDER:
            if field.domain is None:
                raise _refused(name, "be compared by order", "Range(low, high)")
            if not is_number(operand):
                raise InvalidParameter("The filter is invalid", why=f"{operator} takes a number", instead=f'{{"{operator}": 40}}')
        else:
            raise UnsupportedQuery(
                f"The filter on {name!r} is not supported",
                why="no index answers this operator without showing more",
                instead="$eq, $in, $gt, $gte, $lt or $lte, or find() and compare in Python",
            )
        yield Condition(name, operator, operand, bool(field.parts))


def _range(conditions: list[Condition], fields: Mapping[str, Field]) -> Access | None:
    domain = declaration(conditions[0].name, fields).domain
    if domain is None:
        return None
    bounds = _bounds(conditions, domain)
    if bounds is None:
        return None
    low, high = bounds
    name = conditions[0].name
    if declaration(name, fields).exposed:
        within = low <= high and domain.low <= high and low <= domain.high
        return Access(tokens=((name, low, high),) if within else (), said=(f"a range of tokens of {name!r}",))
    nodes = domain.cover(low, high)
    return Access(
        words=tuple((name, node_word(node)) for node in nodes), said=(f"{len(nodes)} node{'s' * (len(nodes) != 1)} of {name!r}",)
    )


def _bounds(conditions: list[Condition], domain: Domain) -> tuple[int | float, int | float] | None:
    low, high = domain.low, domain.high
    for condition in conditions:
        values = condition.value if condition.operator == "$in" else [condition.value]
        if not values or not all(map(is_number, values)):
            return None  # None has no place in a tree: the client looks for it in all records
        if condition.operator in ("$gt", "$gte", "$eq", "$in"):
            low = max(low, min(values))
        if condition.operator in ("$lt", "$lte", "$eq", "$in"):
            high = min(high, max(values))
    return low, high


def _refused(name: str, what: str, instead: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"The filter on {name!r} is not supported",
        why=f"the field was not declared to {what}",
        instead=f"{instead} in its declaration",
    )
