"""Filters in MongoDB's words: read, checked against what fields were declared for, and matched by the client.

How records are found is decided by the filter and the declarations alone: by `_id`, by the words of one condition, or by reading
everything. One condition goes to the index, and the client checks all of them on what it decrypts: to look up two would show the
server both sets of records. Equality goes before ranges, since it shows less.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloister.errors import InvalidParameter, UnknownColumn, UnsupportedQuery
from cloister.vault.fields import Field, equality_word, node_word
from cloister.vault.values import DEEPEST, comparable, is_number

ORDER = frozenset({"$gt", "$gte", "$lt", "$lte"})
_IDENTITY = Field(equal=True)


@dataclass(frozen=True)
class Condition:
    """One field compared with a value."""

    name: str
    operator: str
    value: Any

    def holds(self, document: Mapping[str, Any]) -> bool:
        """Whether a document meets it."""
        value = document.get(self.name)
        if self.operator == "$eq":
            return comparable(value) == comparable(self.value)
        if self.operator == "$in":
            return comparable(value) in {comparable(each) for each in self.value}
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


@dataclass(frozen=True)
class Access:
    """How the records of a filter are found."""

    everything: bool = False
    identities: tuple[Any, ...] = ()
    words: tuple[tuple[str, bytes], ...] = ()
    """Field and word."""
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
        elif isinstance(name, str) and name.startswith("$"):
            raise UnsupportedQuery(
                "The filter is not supported", why="only $and and $or stand outside a field", instead='{"$or": [{…}, {…}]}'
            )
        else:
            conditions += _conditions(name, value, declaration(name, fields))
    return Filter(tuple(conditions), tuple(either))


def declaration(name: Any, fields: Mapping[str, Field]) -> Field:
    """What is declared of a field. The error names the declared ones and not the one asked for, which may be a value."""
    if name == "_id":
        return _IDENTITY
    if name not in fields:
        known = ", ".join(map(repr, fields))
        raise UnknownColumn("The field is not known", why="the collection does not declare it", instead=f"one of {known}")
    return fields[name]


def access(given: Filter, fields: Mapping[str, Field]) -> Access:
    """How to find the records of a filter while showing the least."""
    for condition in given.conditions:
        if condition.name == "_id":
            values = condition.value if condition.operator == "$in" else [condition.value]
            return Access(identities=tuple(values), said=(f"{len(values)} handle{'s' * (len(values) != 1)} of `_id`",))
    for condition in given.conditions:
        if condition.operator in ("$eq", "$in") and declaration(condition.name, fields).equal:
            values = condition.value if condition.operator == "$in" else [condition.value]
            words = dict.fromkeys((condition.name, equality_word(value)) for value in values)
            return Access(words=tuple(words), said=(f"{len(words)} word{'s' * (len(words) != 1)} of {condition.name!r}",))
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
                said=tuple(each for way in ways for each in way.said),
            )
    return Access(everything=True, said=("every record",))


def _conditions(name: str, value: Any, field: Field) -> Iterable[Condition]:
    operators = value if isinstance(value, dict) and any(str(key).startswith("$") for key in value) else {"$eq": value}
    for operator, operand in operators.items():
        if operator in ("$eq", "$in"):
            if not (field.equal or field.domain):
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
        yield Condition(name, operator, operand)


def _range(conditions: list[Condition], fields: Mapping[str, Field]) -> Access | None:
    domain = declaration(conditions[0].name, fields).domain
    if domain is None:
        return None
    low, high = domain.low, domain.high
    for condition in conditions:
        values = condition.value if condition.operator == "$in" else [condition.value]
        if not values or not all(map(is_number, values)):
            return None  # None has no place in a tree: the client looks for it in all records
        if condition.operator in ("$gt", "$gte", "$eq", "$in"):
            low = max(low, min(values))
        if condition.operator in ("$lt", "$lte", "$eq", "$in"):
            high = min(high, max(values))
    name = conditions[0].name
    nodes = domain.cover(low, high)
    return Access(
        words=tuple((name, node_word(node)) for node in nodes), said=(f"{len(nodes)} node{'s' * (len(nodes) != 1)} of {name!r}",)
    )


def _refused(name: str, what: str, instead: str) -> UnsupportedQuery:
    return UnsupportedQuery(
        f"The filter on {name!r} is not supported",
        why=f"the field was not declared to {what}",
        instead=f"{instead} in its declaration",
    )
