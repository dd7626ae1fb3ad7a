"""What a request must be, before a site works out what it costs: the forms that sessions ask, checked against the site's own
declaration.

The text comes from a hub that may lie. A bound on what a row moves holds only for requests that mean what they look like: a name
that is given twice would let one number be charged and another be answered; cells that are not those of the declared keys would
put two groups in one place, where one writes over the other, or fail where a row exists and pass where none does; a row that is
in one part of a combination and not in the other is not cancelled there; a weight that passes 64 bits would wrap around, or fail,
where there are enough rows. So each of these is refused, before anything is charged. So is what takes long to refuse otherwise:
products of many columns, and trees that are filled up with more blocks than a round has room for.
"""

from collections.abc import Iterable, Mapping
from math import prod

import numpy as np

from cloister.errors import CloisterError, UnsupportedQuery
from cloister.noise import DiscreteGaussian
from cloister.noise.trees import Tree, check_levels
from cloister.tables import Aggregate, Aggregation, Domain, Key, PrivateTable, Text
from cloister.tables.engines.compiler import Declared
from cloister.tables.engines.noised import Cells, Combination, Hierarchy, KeyCodes, LevelSums, NoisedRequest, RangeSums
from cloister.tables.engines.row_sums import RowSums

MOST_NUMBERS = 1 << 26
"""In one request: what a round has room for."""
MOST_WEIGHT = 1 << 22
"""Of a block: 2^40 rows times it fit 64 bits. Sessions ask weights up to 2^10."""
MOST_FACTORS = 8
"""In a product of columns: the work of bounding what a row moves grows with each."""
_MOST_ASKED = 1000
"""Aggregations of one request, each of which is a pass over the rows."""


def check_request(request: NoisedRequest, declared: Declared) -> None:
    """`UnsupportedQuery` for a request whose numbers are not the linear ones of a table, or relation, that is declared so.

    >>> from cloister.noise import DiscreteLaplace
    >>> from cloister.tables import Integer, PrivateTable
    >>> from cloister.tables.engines.noised import Integers
    >>> people = PrivateTable({"age": [39]}, columns={"age": Integer(17, 90)})
    >>> rows = Integers("rows", Combination((("rows", 1),)), DiscreteLaplace(scale=10))
    >>> check_request(NoisedRequest(table="people", aggregations=(Aggregation(people),), integers=(rows,), cells=Cells()), people)
    """
    if request.cells is None:
        raise _refused("its groups are looked up in the rows", "declared keys")
    if not request.integers or len({each.name for each in request.integers}) < len(request.integers):
        raise _refused("two of its numbers have one name, or it has none", "a name for each number")
    if request.cells.count * len(request.integers) > MOST_NUMBERS:
        raise _refused(f"it asks for more than {MOST_NUMBERS:,} numbers", "fewer groups")
    if request.fit is not None:
        _check_row_sums(request, declared)
        return
    if len(request.asked) > _MOST_ASKED:
        raise _refused(f"it counts {len(request.asked)} times over", f"at most {_MOST_ASKED} aggregations")
    several = declared.unit is None and (declared.max_rows or 1) > 1  # an engine counts rows there, where it is asked for people
    for aggregation in request.asked:
        if any(len(each.factors) > MOST_FACTORS for each in aggregation.aggregates):
            raise _refused(f"a product of more than {MOST_FACTORS} columns", "a sum of fewer columns")
        aggregation.check(declared.columns)
        if several and any(each.kind == "units" for each in aggregation.aggregates):
            raise _refused("a person may have several rows in it, and no column says whose a row is", "COUNT(*)")
        if aggregation.max_rows is not None and (type(aggregation.max_rows) is not int or aggregation.max_rows < 1):
            raise _refused(f"max_rows={aggregation.max_rows!r} is no number of rows", "max_rows=1")
    for aggregation in request.aggregations:
        _check_cells(request.cells, aggregation.keys, declared.columns)
    for hierarchy in request.hierarchies:
        _check_hierarchy(hierarchy, request.cells, declared.columns)
    homes = _homes(request.aggregations)
    for integers in request.integers:
        if isinstance(integers.map, Combination):
            _check_combination(integers.map, homes)
        elif isinstance(integers.map, RangeSums):
            _check_ranges(integers.map, homes, request.cells.count)
        elif isinstance(integers.map, LevelSums):
            _check_levels(integers.map, request.hierarchies)


def _check_row_sums(request: NoisedRequest, declared: Declared) -> None:
    """One sum over the rows of a table, and nothing beside it."""
    [integers] = request.integers if len(request.integers) == 1 else [None]
    if integers is None or not isinstance(integers.map, RowSums) or request.asked or request.cells != Cells():
        raise _refused("a sum over rows has other numbers beside it", "a request of its own for each step")
    if not isinstance(declared, PrivateTable):
        raise _refused("a sum over rows is about what is made of them", "the rows of a table")
    if not isinstance(integers.law, DiscreteGaussian):
        raise _refused("a sum over rows is bounded in L2, and its noise is not Gaussian", "Gaussian noise")
    why = integers.map.why_not(declared.columns)
    if why:
        raise _refused(why, "a step of a descent as sessions ask it")
    if int(np.prod(integers.map.shape)) > MOST_NUMBERS:
        raise _refused(f"it asks for more than {MOST_NUMBERS:,} numbers", "fewer features")


def _homes(aggregations: Iterable[Aggregation]) -> dict[str, tuple[int, Aggregate]]:
    """Each aggregate by name, with the place of its aggregation."""
    homes: dict[str, tuple[int, Aggregate]] = {}
    for place, aggregation in enumerate(aggregations):
        for each in aggregation.aggregates:
            if each.name in homes:
                raise _refused(f"two aggregates have the name {each.name!r}", "a name for each aggregate")
            if each.kind == "distinct":
                raise _refused("different values are no sum", "counts and sums")
            homes[each.name] = place, each
    return homes


def _check_cells(cells: Cells, keys: tuple[str | Key, ...], columns: Mapping[str, Domain]) -> None:
    """Whether the cells are all groups of these keys, or some of them."""
    if len(cells.keys) != len(keys):
        raise _refused(f"it has {len(keys)} keys and cells of {len(cells.keys)}", "cells of the keys")
    for key, codes in zip(keys, cells.keys, strict=True):
        first, size = _codes(key, columns)
        kept = codes.kept
        if (codes.first, codes.whole) != (first, size + 1):  # the last is that of rows without a value
            raise _refused("its cells are not the groups of its keys", f"{KeyCodes(first, size + 1)}")
        if kept is not None and (list(kept) != sorted(set(kept)) or not all(0 <= each <= size for each in kept)):
            raise _refused("its cells name a group twice, or one that there is not", "places of groups, in their order")


def _codes(key: str | Key, columns: Mapping[str, Domain]) -> tuple[int, int]:
    """The code of a key's first group, and how many there are."""
    name = key if isinstance(key, str) else key.name
    domain = columns.get(name)
    if domain is None:
        raise _refused("it is about a column that is not declared", "a declared column")
    size = domain.size if isinstance(key, str) else key.size(domain)
    if size is None or isinstance(domain, Text):
        raise _refused(f"the groups of {name!r} are not declared", "declared keys")
    return (domain.low_code if isinstance(key, str) else 0), size


def _check_combination(found: Combination, homes: Mapping[str, tuple[int, Aggregate]]) -> None:
    used = [_home(name, homes) for name, _ in found.parts]
    if len({place for place, _ in used}) != 1:
        raise _refused("a number is made of different rows", "numbers of one aggregation each")
    if len(used) > 1 and any(each.kind == "units" for _, each in used):
        raise _refused("a number is made of people and of something else", "a number of people by itself")


def _check_ranges(found: RangeSums, homes: Mapping[str, tuple[int, Aggregate]], cells: int) -> None:
    if _home(found.aggregate, homes)[1].kind not in ("rows", "values"):
        raise _refused("its ranges are not of counts", "counts of rows")
    if any(not 0 <= first <= after <= cells for first, after in found.ranges):
        raise _refused("its ranges are not of its cells", "ranges from one cell up to a later one")
    if prod(found.strategy.shape) != len(found.ranges):
        raise _refused("its strategy has another size than its ranges", "a range for each column of the strategy")
    padded = 1
    for factor in found.strategy.factors:
        if isinstance(factor, Tree):
            _check_weights(factor.weights)
            padded *= factor.padded
        else:
            padded *= factor.rows
    if padded > MOST_NUMBERS:
        raise _refused(f"its strategy asks for more than {MOST_NUMBERS:,} numbers", "a lower branching")


def _check_hierarchy(hierarchy: Hierarchy, cells: Cells, columns: Mapping[str, Domain]) -> None:
    asked = hierarchy.aggregation
    if not asked.keys or asked.aggregates != (Aggregate("rows", "rows"),):
        raise _refused("a hierarchy counts no rows of a key", "counts of rows by the leaves' key")
    _check_cells(cells, asked.keys[:-1], columns)
    if (hierarchy.first, hierarchy.values) != _codes(asked.keys[-1], columns) or hierarchy.leaves < hierarchy.values:
        raise _refused("the leaves of a hierarchy are not the groups of its key", "a leaf for each group")
    if cells.count * hierarchy.leaves > MOST_NUMBERS:
        raise _refused(f"it asks for more than {MOST_NUMBERS:,} numbers", "fewer groups")
    try:
        check_levels(hierarchy.leaves, hierarchy.branching, hierarchy.weights)
    except CloisterError as error:
        raise _refused("a hierarchy has levels that its leaves do not make", "a weight for each level") from error
    _check_weights(hierarchy.weights)
    if cells.count * hierarchy.branching ** (len(hierarchy.weights) - 1) > MOST_NUMBERS:  # filled up to a full tree
        raise _refused(f"it asks for more than {MOST_NUMBERS:,} numbers", "a lower branching")


def _check_weights(weights: tuple[int, ...]) -> None:
    """What is counted times a weight must fit, whatever is counted: else a sum wraps around, or a site fails, by its rows."""
    if max(map(abs, weights)) > MOST_WEIGHT:
        raise _refused(f"a block has a weight of more than {MOST_WEIGHT:,}", "lower weights")


def _check_levels(found: LevelSums, hierarchies: tuple[Hierarchy, ...]) -> None:
    if not 0 <= found.hierarchy < len(hierarchies):
        raise _refused("it names a hierarchy that it does not have", "the place of a hierarchy")
    if (found.total and not found.apart) or (found.apart and not hierarchies[found.hierarchy].weights[-1]):
        raise _refused("a hierarchy has no total by itself", "a total with a weight")


def _home(name: str, homes: Mapping[str, tuple[int, Aggregate]]) -> tuple[int, Aggregate]:
    if name not in homes:
        raise _refused(f"it has no aggregate {name!r}", "the name of an aggregate")
    return homes[name]


def _refused(why: str, instead: str) -> UnsupportedQuery:
    return UnsupportedQuery("A request is refused", why=why, instead=instead)
