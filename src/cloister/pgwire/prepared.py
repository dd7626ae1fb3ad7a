"""Statements by name, by the protocol's Parse or by PREPARE: both share their names, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cloister.pgwire.failures import Refused
from cloister.pgwire.parameters import bound, count_of, example
from cloister.pgwire.portals import Columns, Portals
from cloister.pgwire.reading import read_one
from cloister.pgwire.statements import Execute, Statement
from cloister.pgwire.types import named
from cloister.pgwire.values import literal
from cloister.pgwire.words import Word


@dataclass
class Prepared:
    """A statement, its parameters' types, and the columns that its client was promised."""

    text: str
    words: tuple[Word, ...]
    statement: Statement | None
    types: tuple[int, ...]
    told: tuple[Columns, bool] | None = None
    """The columns, and whether margins were asked for then."""
    by_sql: bool = False
    """By PREPARE."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def with_values(self, literals: list[str]) -> Statement | None:
        """The statement with literals for its parameters."""
        return read_one(bound(self.text, self.words, literals)) if literals else self.statement

    def exemplified(self) -> Statement | None:
        """The statement with examples for its parameters: a plan's columns do not depend on their values."""
        return self.with_values([example(oid) for oid in self.types])


def types_of(words: Sequence[Word], given: Sequence[int]) -> tuple[int, ...]:
    """The types of all parameters."""
    count = max(count_of(words), len(given))
    return (*given, *[0] * (count - len(given)))


@dataclass
class Store:
    """What one connection has prepared and bound, within limits."""

    most: int
    portals: Portals
    statements: dict[str, Prepared] = field(default_factory=dict)

    def prepare(self, name: str, prepared: Prepared) -> None:
        """Keeps a statement; a name is given once, the empty one again and again."""
        if name and name in self.statements:
            instead = f"DEALLOCATE {name[:63]}"
            raise Refused(f"The statement {name[:63]!r} exists", why="a name is given once", instead=instead, code="42P05")
        if name and len(self.statements) >= self.most:
            why = f"{self.most} are kept already"
            raise Refused(f"The statement {name[:63]!r} was refused", why=why, instead="DEALLOCATE ALL", code="53400")
        self.statements[name] = prepared

    def statement(self, name: str) -> Prepared:
        """A statement by name."""
        if name not in self.statements:
            instead = f"PREPARE {name[:63] or 'p'} AS SELECT …"
            raise Refused(f"The statement {name[:63]!r} was not found", why="it was not prepared", instead=instead, code="26000")
        return self.statements[name]

    def executed(self, execute: Execute) -> Statement:
        """The statement that EXECUTE stands for, with its values."""
        prepared = self.statement(execute.name)
        if prepared.statement is None or isinstance(prepared.statement, Execute):
            raise Refused("EXECUTE is not supported", why="it stands for no question", instead="SELECT …")
        wanted = len(prepared.types)
        if len(execute.values) != wanted:
            raise Refused(
                "The values are invalid",
                why=f"{execute.name[:63]!r} wants {wanted} and {len(execute.values)} came",
                instead=f"EXECUTE {execute.name[:63]}" + (f" ({', '.join('…' * wanted)})" if wanted else ""),
                code="42601",
            )
        given = zip(execute.values, prepared.types, strict=True)
        found = prepared.with_values([literal(value, oid, place) for place, (value, oid) in enumerate(given, start=1)])
        assert found is not None
        return found

    def forget(self, name: str | None) -> None:
        """DEALLOCATE: one statement, or all."""
        if name is None:
            self.statements.clear()
        else:
            self.statement(name)
            del self.statements[name]

    def cursors(self) -> tuple[tuple[object, ...], ...]:
        """The rows of pg_cursors: of all portals with a name."""
        return tuple(
            (name, each.text, each.hold, each.binary, each.scroll is not False, each.made.replace(tzinfo=None))
            for name, each in self.portals
            if name
        )

    def listed(self) -> tuple[tuple[object, ...], ...]:
        """The rows of pg_prepared_statements: of all statements with a name."""
        return tuple(
            (name, each.text, each.made.replace(tzinfo=None), list(map(_called, each.types)), each.by_sql, 0, 0)
            for name, each in list(self.statements.items())
            if name
        )


def _called(oid: int) -> str:
    kind = named(oid)
    return "unknown" if kind is None else kind.name
