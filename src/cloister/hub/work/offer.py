"""One table, as a page offers it to somebody: a data set on which they may do something, or a released table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cloister.hub.policy import Object
from cloister.tables import PrivateTable, PublicTable

if TYPE_CHECKING:
    from cloister.hub.records.access import Algorithm


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A data set on which somebody may do something, with its table as they may know it."""

    which: Object
    table: PrivateTable | PublicTable
    purpose: str = ""
    methods: frozenset[str] = frozenset()
    plain: bool = True
    """Whether they may without an algorithm."""
    purposes: tuple[str, ...] = ()
    """Those that may be named, where one must be; empty: none need be."""
    algorithms: tuple[Algorithm, ...] = ()
    """Those under which they may."""

    @property
    def columns(self) -> dict[str, str]:
        """Each column with its kind."""
        if isinstance(self.table, PublicTable):
            return dict.fromkeys(self.table.names, "public")
        return {name: domain.kind for name, domain in self.table.columns.items()}
