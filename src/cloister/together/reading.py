"""A request read from its one text: what a site that is elsewhere gets of the hub.

What is read gives the same text again, or it is refused: so a site aggregates what the hub signed, and charges for it,
whatever the text looks like. How far a row moves a number is not in the text: it follows from the declared columns, or from those
of a relation that is made of them here (`reading_relations.py`).
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from cloister.errors import CloisterError
from cloister.noise import DiscreteGaussian, DiscreteLaplace, SummedNoise
from cloister.noise.laws import law_from, number_from
from cloister.noise.strategies import Product, Tree, Written
from cloister.tables import Aggregate, Aggregation, Binned, Domain, Runs, Strided
from cloister.tables.engines.noised import Cells, Combination, Hierarchy, Integers, KeyCodes, LevelSums, NoisedRequest, RangeSums
from cloister.tables.engines.row_sums import Fit, RowSums
from cloister.together.checking import MOST_FACTORS
from cloister.together.plan import width_between
from cloister.together.reading_relations import (
    MOST_PARTS,
    MOST_WORK,
    Over,
    condition,
    lists_in,
    refused,
    text_in,
    too_much,
    weight_of,
    whole_in,
)

LONGEST = 1 << 24
"""Characters of a request."""


def request_from(text: str, columns: Mapping[str, Domain], over: Over | None = None) -> NoisedRequest:
    """The request that has this text, about a table with these columns, or about a relation over what there is; without `over` a
    relation is refused. `UnsupportedQuery` for a text that no request has.

    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> request = NoisedRequest(table="people", aggregations=(Aggregation(None),), integers=(rows,), cells=Cells(), charge="7")
    >>> request_from(request.canonical(), {}) == request
    True
    """
    if len(text) > LONGEST:
        raise refused("it is too long")
    try:
        found = _request(json.loads(text), columns, over)
        same = found.canonical() == text
    except CloisterError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
        raise refused("it can't be read") from None
    if not same:
        raise refused("it is not the one text of what it says")
    return found


def table_in(text: str) -> str:
    """What the hub calls the private table that a request is about, found by its text alone; "" for a text that names none.

    >>> table_in('{"table":["filtered",["table","visits"],[]]}')
    'visits'
    """
    try:
        told = json.loads(text)["table"] if len(text) <= LONGEST else ""
        while not isinstance(told, str):
            told = told[1][0] if told[0] == "stacked" else told[1]
    except (LookupError, TypeError, ValueError, RecursionError):
        return ""
    return told


def _request(told: Mapping[str, Any], columns: Mapping[str, Domain], over: Over | None) -> NoisedRequest:
    if told["format"] != 1:
        raise refused("it is of another format")
    table = told["table"]
    if not isinstance(table, str):
        if over is None:
            raise refused("it is about a relation")
        table = over.relation(table)
        columns = table.columns
    _weigh([each["where"] for each in (*told["aggregations"], *(part["aggregation"] for part in told["hierarchies"]))], columns)
    aggregations = tuple(_aggregation(each) for each in told["aggregations"])
    largest = {each.name: _largest(each, columns) for aggregation in aggregations for each in aggregation.aggregates}
    return NoisedRequest(
        table=table,
        aggregations=aggregations,
        integers=tuple(Integers(text_in(each["name"]), _map(each, largest), _law(each["noise"])) for each in told["integers"]),
        cells=Cells(tuple(KeyCodes(whole_in(first), whole_in(size), _kept(kept)) for first, size, kept in told["cells"])),
        hierarchies=tuple(
            Hierarchy(
                aggregation=_aggregation(each["aggregation"]),
                first=whole_in(each["first"]),
                values=whole_in(each["values"]),
                leaves=whole_in(each["leaves"]),
                branching=whole_in(each["branching"]),
                weights=tuple(map(whole_in, each["weights"])),
            )
            for each in told["hierarchies"]
        ),
        charge=text_in(told["charge"]),
        number=whole_in(told["number"]),
    )


def _weigh(conditions: list[Any], columns: Mapping[str, Domain]) -> None:
    """Refuses conditions that take long to check or to compile, before they are: one of texts goes through all values of a
    category."""
    if lists_in(conditions, MOST_PARTS) > MOST_PARTS or sum(weight_of(each, columns) for each in conditions) > MOST_WORK:
        raise too_much("its conditions take too long to bound")


def _aggregation(told: Mapping[str, Any]) -> Aggregation:
    if any(
        len(factors) > MOST_FACTORS for _, _, factors, *_ in told["aggregates"]
    ):  # bounding one takes time in the square of it
        raise refused(f"a product of more than {MOST_FACTORS} columns")
    return Aggregation(
        None,
        where=None if told["where"] is None else condition(told["where"]),
        keys=tuple(_key(each) for each in told["keys"]),
        aggregates=tuple(
            Aggregate(
                text_in(name),
                kind,
                tuple((text_in(column), whole_in(offset)) for column, offset in factors),
                *map(tuple, present),
            )
            for name, kind, factors, *present in told["aggregates"]
        ),
        max_rows=None if told["max_rows"] is None else whole_in(told["max_rows"]),
        missing=bool(told["missing"]),
    )


def _key(told: Any) -> Any:
    kind, name, *rest = told
    if kind == "column":
        return text_in(name)
    if kind == "strided":
        return Strided(text_in(name), *rest)
    if kind == "binned":
        return Binned(text_in(name), rest[0])
    if kind == "runs":
        return Runs(text_in(name), tuple(map(whole_in, rest[0])))
    raise refused(f"it has a key of the kind {kind!r}")


def _largest(aggregate: Aggregate, columns: Mapping[str, Domain]) -> int:
    if any(name not in columns for name, _ in aggregate.factors):
        raise refused("it is about a column that is not declared")
    return aggregate.largest(columns)


def _map(told: Mapping[str, Any], largest: Mapping[str, int]) -> Combination | RangeSums | LevelSums | RowSums:
    if told["map"] == "combination":
        parts = tuple((text_in(name), whole_in(coefficient)) for name, coefficient in told["parts"])
        return Combination(parts, width=width_between(parts, largest))
    if told["map"] == "levels":
        return LevelSums(whole_in(told["hierarchy"]), bool(told["apart"]), bool(told["total"]))
    if told["map"] == "ranges":
        factors = tuple(
            Written(np.asarray(each["matrix"], dtype=np.int64))
            if "matrix" in each
            else Tree(whole_in(each["cells"]), whole_in(each["branching"]), tuple(map(whole_in, each["weights"])))
            for each in told["strategy"]
        )
        return RangeSums(
            told["aggregate"], tuple((whole_in(first), whole_in(after)) for first, after in told["ranges"]), Product(factors)
        )
    if told["map"] == "row sums":
        return _row_sums(told)
    raise refused(f"it has a map of the kind {told['map']!r}")


def _row_sums(told: Mapping[str, Any]) -> RowSums:
    about = told["fit"]
    fit = Fit(
        features=tuple((text_in(name), whole_in(size)) for name, size in about["features"]),
        target=text_in(about["target"]),
        classes=whole_in(about["classes"]),
        slope=_float_in(about["slope"]),
        most=number_from(text_in(about["most"])),
        highest=_float_in(about.get("highest", 0.0)),
    )
    return RowSums(
        fit=fit,
        stage=text_in(told["stage"]),
        centre=tuple(map(_float_in, told["centre"])),
        radius=_float_in(told["radius"]),
        weights=tuple(map(_float_in, told["weights"])),
        clip=_float_in(told["clip"]),
        step=whole_in(told["step"]),
        steps=whole_in(told["steps"]),
    )


def _float_in(told: Any) -> float:
    if type(told) is not float:
        raise ValueError
    return told


def _law(told: Mapping[str, Any]) -> DiscreteLaplace | DiscreteGaussian:
    found = law_from(told)
    if isinstance(found, SummedNoise):
        raise refused("it asks for noise that is a sum already")
    return found


def _kept(value: Any) -> tuple[int, ...] | None:
    return None if value is None else tuple(map(whole_in, value))
