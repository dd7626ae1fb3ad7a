"""Statements by name, and portals: questions that were bound or declared, each with what it found and how far it was read.

A statement is named by the protocol's Parse or by PREPARE: both share their names, as in PostgreSQL.

A cursor of SQL is a portal with a name, as in PostgreSQL: FETCH, Execute and Describe take it by that name. A portal runs once.
What it found stays for as long as the portal, so reading it again, or to and fro, charges nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cloister.pgwire.failures import Refused
from cloister.pgwire.parameters import bound, count_of, example
from cloister.pgwire.reading import read_one
from cloister.pgwire.results import Column, Result, Source, weight
from cloister.pgwire.statements import ALL, CopyFormat, Execute, Select, Statement, Step
from cloister.pgwire.types import named
from cloister.pgwire.values import literal
from cloister.pgwire.words import Word

Columns = tuple[Column, ...] | None


@dataclass
class Portal:
    """A statement with its values."""

    statement: Statement | None
    formats: tuple[int, ...] = ()
    told: tuple[Columns, bool] | None = None
    """The columns that the client was promised, and whether margins were asked for then."""
    text: str = ""
    """What it was made from."""
    scroll: bool | None = None
    hold: bool = False
    binary: bool = False
    rows: list[tuple[Any, ...]] | None = None
    columns: Columns = None
    tag: str = ""
    copy: CopyFormat | None = None
    source: Source | None = None
    at: int = 0
    """The row that it stands on; 0 before the first."""
    size: int = 0
    """About how many bytes its rows take."""
    failed: bool = False
    depth: int = 0
    """How many savepoints there were before it."""
    held: bool = False
    """It outlived the transaction that made it."""
    made: datetime = field(default_factory=lambda: datetime.now(UTC))

    def keep(self, result: Result) -> None:
        """What it found."""
        self.rows, self.tag, self.source, self.failed = list(result.rows), result.tag, result.source, False
        self.size, self.copy = weight(self.rows), result.copy
        self.columns = self.told[0] if self.told is not None and self.told[0] is not None else result.columns

    def next(self, most: int) -> tuple[list[tuple[Any, ...]], bool]:
        """The next rows as Execute gives them, and whether they are the last."""
        assert self.rows is not None
        found = self._passed(Step("forward", most if most > 0 else ALL))
        return found, self.at >= len(self.rows)

    def fetch(self, name: str, step: Step) -> list[tuple[Any, ...]]:
        """The rows of a step, as FETCH gives them."""
        assert self.rows is not None
        if self.scroll is False and not step.ahead(len(self.rows), self.at):
            raise Refused(
                f"The step of the cursor {name[:63]!r} was refused",
                why="it goes forward only",
                instead=f"DECLARE {name[:63]} SCROLL CURSOR FOR SELECT …",
                code="55000",
            )
        return self._passed(step)

    def _passed(self, step: Step) -> list[tuple[Any, ...]]:
        assert self.rows is not None
        found = step.over(len(self.rows), self.at)
        self.at = found.at
        return [self.rows[number - 1] for number in found.rows]


@dataclass
class Portals:
    """The portals of one connection, within limits of their number and of what they hold."""

    most: int
    largest: int
    _named: dict[str, Portal] = field(default_factory=dict)

    def __iter__(self) -> Iterator[tuple[str, Portal]]:
        return iter(list(self._named.items()))

    def check_new(self, name: str) -> None:
        """A name is given once, and only so many are; the empty one again and again."""
        if not name:
            return
        if name in self._named:
            raise Refused(
                f"The cursor {name[:63]!r} exists", why="a name is given once", instead=f"CLOSE {name[:63]}", code="42P03"
            )
        if len(self._named) >= self.most:
            raise Refused(
                f"The cursor {name[:63]!r} was refused",
                why=f"{self.most} are open already",
                instead="CLOSE ALL, or COMMIT",
                code="53400",
            )

    def check_room(self) -> None:
        """Nothing more is run for anyone who holds too much: it is refused before anything is charged."""
        if sum(each.size for _, each in self) >= self.largest:
            raise Refused(
                "The statement was refused",
                why=f"the open cursors hold {self.largest:,} bytes or more",
                instead="CLOSE ALL, or COMMIT",
                code="53400",
            )

    def bind(self, name: str, portal: Portal) -> None:
        """Keeps a portal."""
        self.check_new(name)
        self._named[name] = portal

    def get(self, name: str) -> Portal:
        """A portal by name."""
        if name not in self._named:
            raise Refused(
                f"The cursor {name[:63]!r} was not found",
                why="none of that name is open",
                instead=f"DECLARE {name[:63] or 'c'} CURSOR FOR SELECT …",
                code="34000",
            )
        return self._named[name]

    def cursor(self, name: str) -> Portal:
        """A portal whose rows SQL may step through."""
        found = self.get(name)
        if not isinstance(found.statement, Select):
            raise Refused(f"The cursor {name[:63]!r} was refused", why="it is of no SELECT", instead="DECLARE", code="24000")
        return found

    def close(self, name: str | None) -> None:
        """One portal, or all. Closing what is not there is nothing to a protocol's Close."""
        if name is None:
            self._named.clear()
        else:
            self._named.pop(name, None)

    def end(self, *, commit: bool) -> None:
        """A transaction ended: what is held outlives it where it was committed, and nothing else does."""
        for name, portal in self:
            portal.held = portal.held or (portal.hold and commit)
            portal.depth = 0
            if not portal.held:
                self.close(name)

    def back_to(self, depth: int) -> None:
        """What was made behind a savepoint is gone with it."""
        for name, portal in self:
            if portal.depth > depth:
                self.close(name)

    def release(self, depth: int) -> None:
        """What was made behind a savepoint belongs to what is around it."""
        for _, portal in self:
            portal.depth = min(portal.depth, depth)


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
