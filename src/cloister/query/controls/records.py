"""The rows of one version of a table in an order that follows from them alone, and the sets that conditions choose.

Controls compare the sets of different questions, so a record needs a number that is the same in every question and in every
session. Rows are sorted by their unit and their codes; rows that are alike in all of these are in the same sets whatever is
asked, so it does not matter which of them is which.

A condition is evaluated by the engine, as for every other question, on the columns that it reads: which contents pass is all
that is taken from it.
"""

import numpy as np
import numpy.typing as npt

from cloister.query.controls.masks import Mask
from cloister.tables import Domain, Expression, Prepared

Codes = npt.NDArray[np.int64]


class Records:
    """The numbered records of a prepared table; private, for the inside of the door only.

    >>> from cloister.tables import Column, Compare, Integer, Literal, PrivateTable, prepare
    >>> with prepare(PrivateTable({"age": [51, 39, 60]}, columns={"age": Integer(0, 120)}), secret="0") as prepared:
    ...     records = Records(prepared)
    ...     records.codes["age"].tolist(), records.chosen(Compare(">", Column("age"), Literal(50))).tolist()
    ([39, 51, 60], [False, True, True])
    """

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self.domains = prepared.declaration.columns
        found = prepared.rows(list(self.domains), unit=True)
        sortable = {name: _sortable(domain, found[name]) for name, domain in self.domains.items()}
        with_unit = prepared.declaration.unit is not None
        keys = [*reversed(sortable.values()), *([found["unit"]] if with_unit else [])]
        order = np.lexsort(keys)
        self.size = len(order)
        self.codes: dict[str, npt.NDArray[np.generic]] = {name: found[name][order] for name in self.domains}
        self._sortable = {name: values[order] for name, values in sortable.items()}
        self.units: Codes = found["unit"][order] if with_unit else np.arange(self.size, dtype=np.int64)
        self.people = int(self.units.max()) + 1 if self.size else 0
        self.one_row_each = not with_unit

    def chosen(self, where: Expression | None) -> Mask:
        """The records for which a condition is true."""
        if where is None:
            return np.ones(self.size, dtype=bool)
        columns = sorted(where.columns()) or [next(iter(self.domains))]
        passing = self._prepared.rows(columns, where=where)
        mine, theirs = np.zeros(self.size, dtype=np.int64), np.zeros(len(passing[columns[0]]), dtype=np.int64)
        for name in columns:
            known, places = np.unique(self._sortable[name], return_inverse=True)
            found = np.searchsorted(known, _sortable(self.domains[name], passing[name]))
            contents, mine = np.unique(mine * len(known) + places, return_inverse=True)
            theirs = np.searchsorted(contents, theirs * len(known) + found)
        passes = np.zeros(int(mine.max()) + 1 if self.size else 0, dtype=bool)
        passes[theirs] = True
        return passes[mine]

    def people_in(self, mask: Mask) -> Mask:
        """The people who have a record in the set."""
        if self.one_row_each:
            return mask
        people = np.zeros(self.people, dtype=bool)
        people[self.units[mask]] = True
        return people

    def present(self, column: str) -> Mask:
        """The records that have a value in a column of codes."""
        return np.asarray(self.codes[column] != self.domains[column].null_code)


def _sortable(domain: Domain, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Codes as they are; text with NULL before all of it."""
    if domain.kind != "text":
        return values
    return np.array(["" if value is None else f"={value}" for value in values.tolist()], dtype=str)
