"""Statements by name and portals by name: what the extended protocol keeps between its messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cloister.hub.postgres.failures import Refused
from cloister.hub.postgres.results import Column
from cloister.hub.postgres.statements import Statement
from cloister.hub.postgres.words import Word

__all__ = ["Portal", "Prepared", "Store"]

Columns = tuple[Column, ...] | None


@dataclass
class Prepared:
    """A statement, its parameters' types, and the columns that its client was told of."""

    text: str
    words: tuple[Word, ...]
    statement: Statement | None
    types: tuple[int, ...]
    told: tuple[Columns, bool] | None = None
    """The columns, and whether margins were asked for then."""


@dataclass
class Portal:
    """A statement with its values. It runs once: what it found stays, however often it is asked for rows."""

    statement: Statement | None
    formats: tuple[int, ...]
    told: tuple[Columns, bool] | None = None
    rows: list[tuple[Any, ...]] | None = None
    columns: Columns = None
    tag: str = ""
    sent: int = 0
    failed: bool = False


@dataclass
class Store:
    """What one connection has prepared and bound, within a limit."""

    most: int
    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)

    def prepare(self, name: str, prepared: Prepared) -> None:
        """Keeps a statement; a name is given once, the empty one again and again."""
        if name and name in self.statements:
            raise Refused(f"The statement {name[:63]!r} exists", why="a name is given once", instead="Close first", code="42P05")
        self._check(self.statements, name)
        self.statements[name] = prepared

    def bind(self, name: str, portal: Portal) -> None:
        """Keeps a portal."""
        if name and name in self.portals:
            raise Refused(f"The portal {name[:63]!r} exists", why="a name is given once", instead="Close first", code="42P03")
        self._check(self.portals, name)
        self.portals[name] = portal

    def statement(self, name: str) -> Prepared:
        """A statement by name."""
        if name not in self.statements:
            raise Refused(f"The statement {name[:63]!r} was not found", why="it was not prepared", instead="Parse", code="26000")
        return self.statements[name]

    def portal(self, name: str) -> Portal:
        """A portal by name."""
        if name not in self.portals:
            raise Refused(f"The portal {name[:63]!r} was not found", why="it was not bound", instead="Bind", code="34000")
        return self.portals[name]

    def forget(self, name: str | None) -> None:
        """DEALLOCATE: one statement, or all."""
        if name is None:
            self.statements.clear()
        elif self.statements.pop(name, None) is None:
            raise Refused(f"The statement {name[:63]!r} was not found", why="it was not prepared", instead="ALL", code="26000")

    def _check(self, kept: dict[str, Any], name: str) -> None:
        if name not in kept and len(kept) >= self.most:
            raise Refused("The name was refused", why=f"{self.most} are kept already", instead="Close one first", code="53400")
