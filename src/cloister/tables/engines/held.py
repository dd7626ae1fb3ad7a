"""Rows of a short table in arrays: to count them there takes a thirtieth of the time in which an engine plans a statement.

The conditions are those that every engine is asked (`expressions.py`): they are walked once more, with arrays in the place of
Ibis columns (`lanes.py`). A condition is true, false or, where a value is missing, neither, and only rows for which it is true
are counted, as in SQL. What is not for arrays (text, computed columns, a condition of very many parts, any other aggregate) is
left to the engine.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.tables.engines.compiler import Layout
from cloister.tables.engines.request import Aggregation
from cloister.tables.expression.evaluate import LaneScope
from cloister.tables.expression.expressions import Expression
from cloister.tables.expression.lanes import Lane

MOST_BYTES = 64 * 2**20
"""A table of which more is declared is left to the engine."""
_MOST_COMPARISONS = 32
"""Beyond, an engine that skips rows, and that can be stopped, is the better choice."""

_NONE_MISSING = np.array(False)  # stands for an array of all rows
_Numbers = npt.NDArray[Any]


class _Otherwise(Exception):
    """Something that only an engine can say."""


class _HeldScope(LaneScope):
    """The arrays for columns."""

    def __init__(self, layout: Layout, codes: Mapping[str, Lane]) -> None:
        super().__init__(layout.domains, codes)
        self._asked = 0

    def code(self, name: str) -> Any:
        """The array of the codes."""
        self._asked += 1
        found = self.codes.get(name)
        if found is None or self._asked > _MOST_COMPARISONS:
            raise _Otherwise
        return found

    @property
    def operations(self) -> Any:
        """None: what is computed may differ from an engine's."""
        raise _Otherwise


class Held:
    """The whole numbers of a table's rows, and their places within their units where they have any."""

    def __init__(self, layout: Layout, columns: Mapping[str, _Numbers], rows: int) -> None:
        """`columns` are those of `wanted_columns`; masked where a value is missing."""
        self._layout = layout
        self._rows = rows
        names = [f"c{place}" for place in range(len(layout.domains))]
        self._codes = {
            column: _codes(columns[name]) for column, name in zip(layout.domains, names, strict=True) if name in columns
        }
        self._place = _codes(columns["place"]).values if layout.unit else None

    def count(self, where: Expression | None, max_rows: int | None) -> int | None:
        """How many rows of those within the cap a condition is true for; None where only an engine can say."""
        capped = None if max_rows is None or self._place is None else self._place <= max_rows
        if where is None:
            return self._rows if capped is None else int(np.count_nonzero(capped))
        try:
            found: Lane = where.condition(_HeldScope(self._layout, self._codes))
        except _Otherwise:
            return None
        true = found.values if found.null is _NONE_MISSING else found.values & ~found.null
        counted = true if capped is None else true & capped
        return int(np.count_nonzero(np.broadcast_to(counted, (self._rows,))))


def countable(aggregation: Aggregation) -> bool:
    """Whether an aggregation asks for nothing but a number of rows."""
    if aggregation.keys or len(aggregation.aggregates) != 1:
        return False
    [only] = aggregation.aggregates
    return only.kind == "rows" and not only.present


def wanted_columns(layout: Layout) -> list[str]:
    """The prepared columns that are held: all whole numbers."""
    return [name for name, kind in layout.schema().items() if kind != "string"]


def _codes(column: _Numbers) -> Lane:
    if isinstance(column, np.ma.MaskedArray):
        missing = np.ma.getmaskarray(column)
        return Lane(np.ascontiguousarray(column.data), missing if missing.any() else _NONE_MISSING)
    return Lane(np.ascontiguousarray(column), _NONE_MISSING)
