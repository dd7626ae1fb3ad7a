"""A request read from its one text: what a site that is elsewhere gets of the hub.

What is read gives the same text again, or it is refused: so a site aggregates what the hub signed, and charges for it,
whatever the text looks like. Relations and computed columns are not read yet; a request about them is refused by name.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cloister.errors import CloisterError, UnsupportedQuery
from cloister.noise import DiscreteGaussian, DiscreteLaplace, SummedNoise
from cloister.noise.laws import law_from, number_from
from cloister.noise.strategies import Product, Written
from cloister.noise.trees import Tree
from cloister.tables import (
    Aggregate,
    Aggregation,
    And,
    Binned,
    Column,
    Compare,
    Domain,
    Expression,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Runs,
    Strided,
)
from cloister.tables.engines.noised import Cells, Combination, Hierarchy, Integers, KeyCodes, LevelSums, NoisedRequest, RangeSums
from cloister.together.checking import MOST_FACTORS

LONGEST = 1 << 24
"""Characters of a request."""
_DEEPEST = 200
_LARGEST = 1 << 512
"""Of whole numbers: what the widest sums have room for."""


def request_from(text: str, columns: Mapping[str, Domain]) -> NoisedRequest:
    """The request that has this text, about a table with these columns; `UnsupportedQuery` for a text that no request has, or of
    a kind that is not read. How far one row moves a number is not in the text: it follows from the declared columns.

    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> request = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(rows,), cells=Cells(), charge="7")
    >>> request_from(request.canonical(), {}) == request
    True
    """
    if len(text) > LONGEST:
        raise _refused("it is too long")
    try:
        found = _request(json.loads(text), columns)
        same = found.canonical() == text
    except CloisterError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError):
        raise _refused("it can't be read") from None
    if not same:
        raise _refused("it is not the one text of what it says")
    return found


def with_own_widths(request: NoisedRequest, columns: Mapping[str, Domain]) -> NoisedRequest:
    """The same request, with widths from these columns: what a request that is not read from its text says of them may be wrong.

    >>> from cloister.tables import Integer
    >>> total = Integers("s", Combination((("s", 3),), width=1), DiscreteLaplace(scale=10))
    >>> asked = Aggregation(None, aggregates=(Aggregate("s", "sum", (("age", 0),)),))
    >>> request = NoisedRequest(table="people", aggregations=(asked,), integers=(total,), cells=Cells())
    >>> with_own_widths(request, {"age": Integer(17, 90)}).integers[0].map.width
    270
    """
    largest = {each.name: _largest(each, columns) for aggregation in request.aggregations for each in aggregation.aggregates}
    if any(name not in largest for each in request.integers if isinstance(each.map, Combination) for name, _ in each.map.parts):
        raise _refused("a number is of an aggregate that it does not have")
    return replace(request, integers=tuple(_widened(each, largest) for each in request.integers))


def _widened(integers: Integers, largest: Mapping[str, int]) -> Integers:
    if not isinstance(integers.map, Combination):
        return integers
    return replace(integers, map=replace(integers.map, width=_width(integers.map.parts, largest)))


def _width(parts: tuple[tuple[str, int], ...], largest: Mapping[str, int]) -> int:
    return sum(abs(coefficient) * largest[name] for name, coefficient in parts)


def _request(told: Mapping[str, Any], columns: Mapping[str, Domain]) -> NoisedRequest:
    if told["format"] != 1:
        raise _refused("it is of another format")
    if not isinstance(told["table"], str):
        raise _refused("it is about a relation")
    aggregations = tuple(_aggregation(each) for each in told["aggregations"])
    largest = {each.name: _largest(each, columns) for aggregation in aggregations for each in aggregation.aggregates}
    return NoisedRequest(
        table=told["table"],
        aggregations=aggregations,
        integers=tuple(Integers(_text(each["name"]), _map(each, largest), _law(each["noise"])) for each in told["integers"]),
        cells=Cells(tuple(KeyCodes(_whole(first), _whole(size), _kept(kept)) for first, size, kept in told["cells"])),
        hierarchies=tuple(
            Hierarchy(
                aggregation=_aggregation(each["aggregation"]),
                first=_whole(each["first"]),
                values=_whole(each["values"]),
                leaves=_whole(each["leaves"]),
                branching=_whole(each["branching"]),
                weights=tuple(map(_whole, each["weights"])),
            )
            for each in told["hierarchies"]
        ),
        charge=_text(told["charge"]),
        number=_whole(told["number"]),
    )


def _aggregation(told: Mapping[str, Any]) -> Aggregation:
    if any(
        len(factors) > MOST_FACTORS for _, _, factors, *_ in told["aggregates"]
    ):  # bounding one takes time in the square of it
        raise _refused(f"a product of more than {MOST_FACTORS} columns")
    return Aggregation(
        None,
        where=None if told["where"] is None else _condition(told["where"], 0),
        keys=tuple(_key(each) for each in told["keys"]),
        aggregates=tuple(
            Aggregate(
                _text(name), kind, tuple((_text(column), _whole(offset)) for column, offset in factors), *map(tuple, present)
            )
            for name, kind, factors, *present in told["aggregates"]
        ),
        max_rows=None if told["max_rows"] is None else _whole(told["max_rows"]),
        missing=bool(told["missing"]),
    )


def _key(told: Any) -> Any:
    kind, name, *rest = told
    if kind == "column":
        return _text(name)
    if kind == "strided":
        return Strided(_text(name), *rest)
    if kind == "binned":
        return Binned(_text(name), rest[0])
    if kind == "runs":
        return Runs(_text(name), tuple(map(_whole, rest[0])))
    raise _refused(f"it has a key of the kind {kind!r}")


def _largest(aggregate: Aggregate, columns: Mapping[str, Domain]) -> int:
    if any(name not in columns for name, _ in aggregate.factors):
        raise _refused("it is about a column that is not declared")
    return aggregate.largest(columns)


def _map(told: Mapping[str, Any], largest: Mapping[str, int]) -> Combination | RangeSums | LevelSums:
    if told["map"] == "combination":
        parts = tuple((_text(name), _whole(coefficient)) for name, coefficient in told["parts"])
        return Combination(parts, width=_width(parts, largest))
    if told["map"] == "levels":
        return LevelSums(_whole(told["hierarchy"]), bool(told["apart"]), bool(told["total"]))
    if told["map"] == "ranges":
        factors = tuple(
            Written(np.asarray(each["matrix"], dtype=np.int64))
            if "matrix" in each
            else Tree(_whole(each["cells"]), _whole(each["branching"]), tuple(map(_whole, each["weights"])))
            for each in told["strategy"]
        )
        return RangeSums(
            told["aggregate"], tuple((_whole(first), _whole(after)) for first, after in told["ranges"]), Product(factors)
        )
    raise _refused(f"it has a map of the kind {told['map']!r}")


def _condition(told: Any, depth: int) -> Expression:
    kind, *parts = told
    if depth > _DEEPEST:
        raise _refused("a condition is nested too deeply")
    reader = _CONDITIONS.get(kind)
    if reader is None:
        raise _refused(f"it has a condition of the kind {kind!r}")
    return reader(parts, depth + 1)


def _literal(parts: Any, depth: int) -> Literal:
    kind, value = parts
    if kind == "number":
        number = number_from(value)
        return Literal(number.numerator if number.denominator == 1 else number)
    return Literal(datetime.date.fromisoformat(value) if kind == "date" else value)


def _side(told: Any, depth: int) -> Column | Literal:
    found = _condition(told, depth)
    if not isinstance(found, Column | Literal):
        raise _refused("a comparison has another condition as a side")
    return found


def _value(told: Any, depth: int) -> Any:
    kind, *parts = told
    if kind != "literal":
        raise _refused("a list of values holds something else")
    return _literal(parts, depth).value


_CONDITIONS: dict[str, Callable[[Any, int], Expression]] = {
    "column": lambda parts, depth: Column(*parts),
    "literal": _literal,
    "compare": lambda parts, depth: Compare(parts[0], _side(parts[1], depth), _side(parts[2], depth)),
    "in": lambda parts, depth: In(parts[0], [_value(each, depth) for each in parts[1]]),
    "null": lambda parts, depth: IsNull(*parts),
    "like": lambda parts, depth: Like(*parts),
    "and": lambda parts, depth: And(*(_condition(each, depth) for each in parts)),
    "or": lambda parts, depth: Or(*(_condition(each, depth) for each in parts)),
    "not": lambda parts, depth: Not(_condition(parts[0], depth)),
}


def _law(told: Mapping[str, Any]) -> DiscreteLaplace | DiscreteGaussian:
    found = law_from(told)
    if isinstance(found, SummedNoise):
        raise _refused("it asks for noise that is a sum already")
    return found


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) > _LARGEST:
        raise TypeError
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _kept(value: Any) -> tuple[int, ...] | None:
    return None if value is None else tuple(map(_whole, value))


def _refused(why: str) -> UnsupportedQuery:
    return UnsupportedQuery("A request was not read", why=why, instead="a request about one table, as its hub wrote it")
