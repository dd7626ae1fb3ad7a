"""What a plan needs to know of a table, be it declared by its owner or derived from others: four public facts."""

from __future__ import annotations

from typing import Protocol

from cloister.tables import Relation
from cloister.tables.engines import compiler


class Declared(compiler.Declared, Protocol):
    """A private table or a relation over private tables, as planning sees it."""

    @property
    def size(self) -> int | None:
        """The owner's public hint of the number of rows."""


def table_name(table: str | Relation) -> str:
    """What a table is called in words: its name, or the names of the private tables that it is made from.

    >>> table_name("people")
    'people'
    """
    return table if isinstance(table, str) else " and ".join(table.bases())
