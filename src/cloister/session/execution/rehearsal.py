"""A rehearsal: the whole way of a question on rows that follow the declarations and on nothing else.

Scripts are written first and pay later: the answer has the shape, the types and the margins of the real one, and its values mean
nothing. Made-up rows spread evenly over the declared values; people have the same names in every table of a population, so that
joins find partners.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.noise import Random
from cloister.session.state.table_snapshot import Table
from cloister.tables import Domain, Place, PrivateTable

NOTE = "REHEARSAL: made-up rows that follow the declarations; nothing private was read, nothing was spent"

_SEED = 20_260_101
ASSUMED_ROWS = 1000
"""Of a table that declares no `size=`."""
_MOST_ROWS = 20_000
_TEXTS = 12


def rehearsal_tables(tables: Mapping[str, Table], *, rows: int | None = None) -> dict[str, Table]:
    """The same declarations over made-up rows, so many or as many as `declared_rows` says; public tables as they are.

    >>> from cloister.tables import Category, Integer
    >>> people = PrivateTable({"age": [1], "sex": ["F"]}, columns={"age": Integer(17, 90), "sex": Category(["F", "M"])})
    >>> rehearsal_tables({"people": people})["people"].columns["age"]
    Integer(low=17, high=90, nullable=False)
    """
    random = Random.deterministic(_SEED)
    return {name: _made_up(table, random, rows) if isinstance(table, PrivateTable) else table for name, table in tables.items()}


def _made_up(table: PrivateTable, random: Random, wanted: int | None) -> PrivateTable:
    rows = wanted or declared_rows(table)
    columns: dict[str, list[Any]] = {}
    for name, domain in table.columns.items():
        if isinstance(domain, Place):  # it stands in two columns of its source
            columns[domain.longitude], columns[domain.latitude] = _places(domain, rows, random)
        else:
            columns[name] = _values(domain, rows, random)
    if table.unit is not None and table.unit not in columns:
        persons = max(1, rows // max(1, (table.max_rows or 1) // 2))
        columns[table.unit] = [f"p{number}" for number in _below(persons, rows, random)]
    made = PrivateTable.declared(columns, dict(table.columns), like=table, version="rehearsal", during=None)
    made.source.able_as = table.source.abilities  # so that the plan is that of the real rows
    return made


def declared_codes(domain: Domain, rows: int, random: Random) -> npt.NDArray[np.int64]:
    """The codes of values that spread evenly over what is declared, and of every twelfth a missing one where there are such: of
    rehearsals, and of synthetic tables that nothing was spent on.

    >>> from cloister.tables import Boolean
    >>> set(declared_codes(Boolean(), 50, Random.deterministic(1)).tolist())
    {0, 1}
    """
    codes = domain.low_code + random.below(domain.high_code - domain.low_code + 1, rows).astype(np.int64)
    if domain.nullable:
        codes[::_TEXTS] = domain.null_code
    return codes


def declared_rows(table: PrivateTable) -> int:
    """How many made-up rows stand for a table: by the public hint of its size."""
    return min(table.size or ASSUMED_ROWS, _MOST_ROWS)


def _values(domain: Domain, rows: int, random: Random) -> list[Any]:
    if domain.size is None:
        return [f"p{number}" for number in _below(_TEXTS, rows, random)]
    return [None if code == domain.null_code else domain.decode(int(code)) for code in declared_codes(domain, rows, random)]


def _places(domain: Place, rows: int, random: Random) -> tuple[list[Any], list[Any]]:
    pairs: list[Any] = [domain.decode(code) for code in _below(domain.outside, rows, random)]
    if domain.nullable:
        pairs[::_TEXTS] = [(None, None)] * len(pairs[::_TEXTS])
    return [longitude for longitude, _ in pairs], [latitude for _, latitude in pairs]


def _below(bound: int, count: int, random: Random) -> list[int]:
    return [int(number) for number in random.below(bound, count)]
