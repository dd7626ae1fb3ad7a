"""What a plan needs to know of a table, be it declared by its owner or derived from others: five public facts."""

from typing import Protocol

from cloister.tables import Abilities, Relation
from cloister.tables.engines import compiler


class Declared(compiler.Declared, Protocol):
    """A private table or a relation over private tables, as planning sees it."""

    @property
    def size(self) -> int | None:
        """The owner's public hint of the number of rows."""

    @property
    def abilities(self) -> Abilities:
        """What the engine that holds the rows can be asked."""


def rows_of_person(declaration: Declared) -> int:
    """The most rows that one unit may have, in all parts together: 1 where a row is a unit and there is one part."""
    return (declaration.max_rows or 1) * declaration.abilities.parts_of_a_person


def table_name(table: str | Relation) -> str:
    """What a table is called in words: its name, or the names of the private tables that it is made from.

    >>> table_name("people")
    'people'
    """
    return table if isinstance(table, str) else " and ".join(table.bases())
