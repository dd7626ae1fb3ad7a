"""The rows of one table for the marked door: what is made of them and leaves has no guarantee.

Whoever opens it answers for it: that the owner asks, that what is worked out on the rows is `sealed`, and that the ledger is told
(`note_not_private`) before anything leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cloister.tables import Prepared, PrivateTable


@dataclass(frozen=True, eq=False, kw_only=True)
class RowAccess:
    """What is declared of a table, whose budget it is, and its rows.

    >>> from cloister.session.examples import small_door
    >>> with small_door() as door:
    ...     access = door.row_access("people")
    ...     access.population, access.prepare().declaration is access.declaration
    ('people', True)
    """

    declaration: PrivateTable
    population: str
    version: str
    secret: str = field(repr=False)
    """Of this table in this ledger; it leaves for nobody."""
    prepare: Callable[[], Prepared] = field(repr=False)
    """The prepared rows, made when they are first needed; refused where they come from elsewhere by now."""
