"""Where the lines are kept: what the ledger asks of a database, and the tables that it keeps there.

`lines` is the truth, append-only and chained. The other tables follow from it (`replay.py` says how, in another way than the
one that wrote them), and are there so that a charge costs the same after a million charges as after none. The only bytes that
do not follow from the lines are the releases; their hashes do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from cloister.errors import LedgerUnavailable

FORMAT = 2
"""The format that this code writes. `migrations.py` brings older ones to it."""

DERIVED = {
    "accounts": """CREATE TABLE accounts (
        population TEXT NOT NULL, who TEXT NOT NULL, cap TEXT, spent TEXT NOT NULL, slack TEXT NOT NULL,
        unbounded INTEGER NOT NULL, PRIMARY KEY (population, who)) {compact}""",
    "charges": """CREATE TABLE charges (
        population TEXT NOT NULL, what TEXT NOT NULL, id {long} NOT NULL, PRIMARY KEY (population, what, id)) {compact}""",
    "draws": """CREATE TABLE draws (
        population TEXT NOT NULL, who TEXT NOT NULL, what TEXT NOT NULL, spent TEXT NOT NULL, slack TEXT NOT NULL,
        PRIMARY KEY (population, who, what)) {compact}""",
    "sources": "CREATE TABLE sources (source TEXT PRIMARY KEY, population TEXT NOT NULL) {compact}",
    "outcomes": "CREATE TABLE outcomes (id {long} PRIMARY KEY, state TEXT NOT NULL, attempt INTEGER NOT NULL)",
}
"""The tables that follow from the lines.

accounts: what was spent of each population (`who` empty, `cap` its budget) and by each person (`cap` the share, if there is
one); `spent` and `slack` count units of 1/GRID: ε or ρ, and δ. charges: which lines touch a population's account, and what for.
outcomes: reservations that were taken over or voided; settled are those with a release, and all others are reserved, at their
first attempt. draws: what a person's shares were charged for releases that others had bought. sources: whose rows a source
holds.
"""

RELEASES = "CREATE TABLE releases (id {long} PRIMARY KEY, settled {long} NOT NULL, content {bytes} NOT NULL)"
"""The releases, each named by its reservation and by the line that settled it."""

KEPT = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE lines (sequence {long} PRIMARY KEY, payload TEXT NOT NULL, hash {bytes} NOT NULL)",
    RELEASES,
)
"""The tables that hold what nothing else says."""


def blob(value: object) -> bytes:
    """The bytes of a cell, and none of one that holds something else: whoever changes a cell may write anything into it.

    >>> blob(memoryview(b"ab")), blob("ab"), blob(10**9), blob(None)
    (b'ab', b'', b'', b'')
    """
    return bytes(value) if isinstance(value, bytes | bytearray | memoryview) else b""


class Cursor(Protocol):
    """The part of a database cursor that is used."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Any: ...


class Store(Protocol):
    """A database that holds one ledger. SQL is the common part of SQLite's and PostgreSQL's; parameters are question marks."""

    name: str
    memory: bool
    types: dict[str, str]
    errors: tuple[type[Exception], ...]
    single: bool
    """Whether a statement outside of a transaction sees one moment, and needs no more than itself."""

    def begin(self) -> None:
        """Begin a transaction that sees every earlier commit, and that no other writer can interleave with."""

    def commit(self) -> None:
        """Make it durable: when this returns, the lines survive a power cut."""

    def rollback(self) -> None:
        """Forget it; never raises."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Cursor:
        """One statement."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> Any:
        """One statement for each row."""

    def another(self) -> Store:
        """A second connection to the same database, for reads beside the writers; in memory there is only the one."""

    def begin_reading(self) -> None:
        """Begin a transaction that sees one moment of the database, whatever is committed meanwhile."""

    def has_tables(self, *names: str) -> bool:
        """Whether a ledger was made here, or these tables of one."""

    def unavailable(self, error: Exception) -> LedgerUnavailable:
        """What to tell the caller of a database error: fixed words, since the database's own may hold values."""

    def close(self) -> None:
        """Let go of it."""


def create_derived(store: Store) -> None:
    """Make the tables that follow from the lines."""
    for statement in DERIVED.values():
        store.execute(statement.format(**store.types))


def create(store: Store) -> None:
    """Make all tables of a new ledger, in the current format."""
    for statement in KEPT:
        store.execute(statement.format(**store.types))
    create_derived(store)
    store.execute("INSERT INTO meta (name, value) VALUES ('format', ?)", (str(FORMAT),))
