"""Pipelines of aggregation: `$match`, then `$group`, `$match`, `$sort`, `$skip` and `$limit`, computed by the client.

The server adds nothing up: it returns the records of the match, and the client checks and decrypts each. So a sum leaks what a
`find` with the same filter leaks, and a server can't falsify it. Sums are exact: integers of any size as such, floats by exact
fractions that are rounded once, so no order of records changes a result.
"""

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from operator import itemgetter
from typing import Any

from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.vault.fields import Field
from cloister.vault.filters import Filter, Order, declaration, read
from cloister.vault.ranges import Domain
from cloister.vault.values import DEEPEST, comparable, is_number

Documents = list[dict[str, Any]]
Stage = Callable[[Documents], Documents]
ACCUMULATORS = ("$sum", "$avg", "$min", "$max", "$count")
_COLUMN = Field(equal=True, domain=Domain(0, 1, 1))
"""Of a column of groups: the client compares it in every way."""


def read_pipeline(pipeline: Any, fields: Mapping[str, Field]) -> tuple[Filter, list[Stage], Order | None]:
    """The filter that chooses records, what is computed from them, and how many of the first in an order are enough for it."""
    if not isinstance(pipeline, list) or not all(isinstance(stage, dict) and len(stage) == 1 for stage in pipeline):
        raise InvalidParameter(
            "The pipeline is invalid", why="it is not a list of stages", instead='[{"$group": {"_id": None, "n": {"$sum": 1}}}]'
        )
    given = Filter()
    stages: list[Stage] = []
    grouped: set[str] | None = None
    for number, stage in enumerate(pipeline):
        ((kind, argument),) = stage.items()
        if kind == "$match" and number == 0:
            given = read(argument, fields)
        elif kind == "$match" and grouped is not None:
            stages.append(_matching(argument, grouped))
        elif kind == "$group" and grouped is None:
            made, grouped = _group(argument, fields)
            stages.append(made)
        elif kind == "$sort" and isinstance(argument, dict):
            stages.append(sorting(argument, fields, grouped))
        elif kind in ("$limit", "$skip"):
            count = whole(kind, argument)
            stages.append(itemgetter(slice(count) if kind == "$limit" else slice(count, None)))
        else:
            raise UnsupportedQuery(
                "The pipeline is not supported",
                why="it has a stage that is not known here, or not at this place",
                instead="$match first, then $group once and $match of its columns, and $sort, $skip and $limit",
            )
    told = [next(iter(stage.items())) for stage in pipeline]
    return given, stages, _needed(told[1:] if told and told[0][0] == "$match" else told)


def _needed(stages: list[tuple[str, Any]]) -> Order | None:
    if not stages or stages[0][0] != "$sort":
        return None
    skipped = 0
    for kind, argument in stages[1:]:
        if kind == "$limit":
            return Order(sort_keys(stages[0][1]), skipped + argument)
        if kind != "$skip":
            break
        skipped += argument
    return None


def sums_of(pipeline: list[dict[str, Any]], fields: Mapping[str, Field]) -> dict[str, tuple[str, Any]]:
    """Of a pipeline that was read: the columns of its one group, where nothing but sums, means and counts of what the store adds
    up is asked of the records; otherwise nothing. A count has the number that each record counts."""
    stages = [next(iter(stage.items())) for stage in pipeline if "$match" not in stage or stage is not pipeline[0]]
    if not stages or stages[0][0] != "$group" or stages[0][1]["_id"] is not None:
        return {}
    found = {}
    for column, given in stages[0][1].items():
        if column == "_id":
            continue
        ((kind, argument),) = given.items()
        if kind == "$count" or (kind == "$sum" and is_number(argument)):
            found[column] = ("$count", argument if kind == "$sum" else 1)
        elif kind in ("$sum", "$avg") and fields[argument[1:]].added:
            found[column] = (kind, argument[1:])
        else:
            return {}
    return found


def sort_keys(given: Any) -> tuple[tuple[str, int], ...]:
    """The keys of an order: a name, a list of names with 1 or -1, or a dict of them."""
    listed = [(given, 1)] if isinstance(given, str) else list(given.items()) if isinstance(given, dict) else given
    if (
        not isinstance(listed, list)
        or not listed
        or not all(
            isinstance(each, tuple | list) and len(each) == 2 and isinstance(each[0], str) and each[1] in (1, -1)
            for each in listed
        )
    ):
        raise InvalidParameter("The order is invalid", why="it is not a list of names with 1 or -1", instead='[("age", 1)]')
    return tuple((name, way) for name, way in listed)


def sorting(given: Any, fields: Mapping[str, Field], grouped: Iterable[str] | None = None) -> Stage:
    """Sort by several keys, the first one first; missing values come first, as in MongoDB."""
    keys = sort_keys(given)
    for name, _ in keys:
        if grouped is not None and name not in grouped:
            raise UnsupportedQuery(
                "The order is not supported", why="the groups do not have this name", instead="a name of the $group stage"
            )
        if grouped is None and (name == "_id" or declaration(name, fields).domain is None):
            raise UnsupportedQuery(
                "The order is not supported",
                why="a key of it was not declared to be compared by order",
                instead="Range(low, high) in its declaration",
            )

    def made(rows: Documents) -> Documents:
        rows = list(rows)
        for name, direction in reversed(keys):
            rows.sort(key=lambda row, name=name: _rank(row.get(name)), reverse=direction == -1)  # type: ignore[misc]
        return rows

    return made


def whole(what: str, count: Any) -> int:
    """A number of documents."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise InvalidParameter(f"{what} is invalid", why="it is not a whole number from 0", instead=f"{what} with 10")
    return count


def _matching(argument: Any, grouped: Iterable[str]) -> Stage:
    """A filter on the columns of groups, which the client has before it."""
    given = read(argument, dict.fromkeys(grouped, _COLUMN) | {"_id": _COLUMN})
    return lambda rows: [row for row in rows if given.holds(row)]


def _group(argument: Any, fields: Mapping[str, Field]) -> tuple[Stage, set[str]]:
    if not isinstance(argument, dict) or "_id" not in argument:
        raise InvalidParameter("$group is invalid", why="it has no _id", instead='{"_id": "$town", "age": {"$avg": "$age"}}')
    key = _key(argument["_id"], fields)
    columns = {name: _accumulator(given, fields) for name, given in argument.items() if name != "_id"}

    def made(rows: Documents) -> Documents:
        groups: dict[bytes, tuple[Any, Documents]] = {}
        for row in rows:
            found = key(row)
            groups.setdefault(comparable(found), (found, []))[1].append(row)
        return [
            {"_id": found, **{name: compute(members) for name, compute in columns.items()}}
            for _, (found, members) in sorted(groups.items())
        ]

    return made, {"_id", *columns}


def _key(given: Any, fields: Mapping[str, Field], depth: int = 0) -> Callable[[dict[str, Any]], Any]:
    if depth > DEEPEST:
        raise InvalidParameter("$group is invalid", why=f"its _id has more than {DEEPEST} levels", instead="a flatter _id")
    if given is None:
        return lambda row: None
    if isinstance(given, dict):
        parts = {name: _key(part, fields, depth + 1) for name, part in given.items()}
        return lambda row: {name: part(row) for name, part in parts.items()}
    name = _name(given)
    field = declaration(name, fields)
    if not (field.equal or field.domain or field.exposed):
        raise UnsupportedQuery(
            f"Groups of {name!r} are not supported",
            why="the field was not declared to be compared",
            instead="Equal() in its declaration",
        )
    return lambda row: row.get(name)


def _accumulator(given: Any, fields: Mapping[str, Field]) -> Callable[[Documents], Any]:
    if not isinstance(given, dict) or len(given) != 1 or next(iter(given)) not in ACCUMULATORS:
        raise UnsupportedQuery(
            "$group is not supported",
            why=f"a column of it is not one of {', '.join(ACCUMULATORS)}",
            instead='{"total": {"$sum": "$pay"}}',
        )
    ((kind, argument),) = given.items()
    if kind == "$count":
        return len
    if kind == "$sum" and is_number(argument):
        return lambda rows: argument * len(rows)
    name = _name(argument)
    field = declaration(name, fields)
    wanted, instead = (
        (field.total, "Sum()") if kind in ("$sum", "$avg") else (field.total or field.domain is not None, "Range(low, high)")
    )
    if not wanted:
        raise UnsupportedQuery(
            f"{kind} of {name!r} is not supported",
            why="the field was not declared for it",
            instead=f"{instead} in its declaration",
        )
    compute = _COMPUTED[kind]
    return lambda rows: compute([row[name] for row in rows if is_number(row.get(name))])


def _name(given: Any) -> str:
    if not isinstance(given, str) or not given.startswith("$"):
        raise InvalidParameter("$group is invalid", why="a field is written with $ before its name", instead='"$age"')
    return given[1:]


def total(values: list[int | float]) -> int | float:
    """The sum, rounded once where a float is among the values.

    >>> total([2**80, 1]) - 2**80, total([0.1] * 10)
    (1, 1.0)
    """
    exact = _exact(values)
    return exact if isinstance(exact, int) else rounded(exact)


def mean(values: list[int | float]) -> float | None:
    """The mean, rounded once; None where there is no value."""
    return rounded(Fraction(_exact(values)) / len(values)) if values else None


_COMPUTED: dict[str, Callable[[list[int | float]], Any]] = {
    "$sum": total,
    "$avg": mean,
    "$min": partial(min, default=None),
    "$max": partial(max, default=None),
}


def _exact(values: list[int | float]) -> int | Fraction:
    floats = [value for value in values if isinstance(value, float)]
    integers = sum(value for value in values if isinstance(value, int))
    return integers + sum(map(Fraction, floats), Fraction()) if floats else integers


def rounded(value: Fraction) -> float:
    """As a double; infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _rank(value: Any) -> tuple[int, Any]:
    """Missing values, numbers, texts, the rest, as MongoDB has them."""
    if value is None or is_number(value):
        return int(value is not None), value or 0
    return (2, value) if isinstance(value, str) else (3, comparable(value).decode())
