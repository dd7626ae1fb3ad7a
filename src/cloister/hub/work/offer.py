"""One table, as a page offers it to somebody: a data set on which they may do something, or a released table."""

from dataclasses import dataclass

from cloister.hub.decisions.policy import Object
from cloister.hub.records.access import Algorithm
from cloister.tables import PrivateTable, PublicTable


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A data set on which somebody may do something, with its table as they may know it."""

    which: Object
    table: PrivateTable | PublicTable
    methods: frozenset[str] = frozenset()
    plain: bool = True
    """Whether they may without an algorithm."""
    purposes: tuple[str, ...] = ()
    """Those for which they may, where they may not for any; also those for which a column is open that no other purpose opens."""
    names_purpose: bool = False
    """Whether they must name one of these, whatever they do."""
    algorithms: tuple[Algorithm, ...] = ()
    """Those under which they may."""

    @property
    def columns(self) -> dict[str, str]:
        """Each column with its kind."""
        if isinstance(self.table, PublicTable):
            return dict.fromkeys(self.table.names, "public")
        return {name: domain.kind for name, domain in self.table.columns.items()}
