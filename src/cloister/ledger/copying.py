"""A ledger copied whole into another database, line by line as it was sealed: from a file to PostgreSQL, or back.

The copy is verified, against the head file too, before its transaction ends. Key and head file go on for the copy; so once it is
charged, the database that it was copied from is behind its head, and frozen when somebody opens it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cloister.errors import LedgerError
from cloister.ledger.checkpoint import raw_lines
from cloister.ledger.head import HeadFile
from cloister.ledger.opening import SERVERS
from cloister.ledger.sqlite import SQLiteStore
from cloister.ledger.steps import STEPS
from cloister.ledger.store import DERIVED, Store, create
from cloister.ledger.verify import verify


@contextmanager
def ledger_copied(source: str | Path, target: str | Path, *, key: bytes, head: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """The number of lines that were copied and verified, and what makes it last; without that, nothing of it stays in a
    database that can undo it. Nobody may write to the source meanwhile."""
    taken, given = _store(source), _store(target)
    try:
        given.begin()
        taken.begin_reading()
        if not (given.has_tables() or given.has_tables("steps")):
            create(given)
        elif not (given.has_tables() and {*raw_lines(given)} <= {*raw_lines(taken)}):  # else a move to it was interrupted
            raise LedgerError("The ledger was not copied", why="there is a ledger in that database", instead="an empty database")
        given.execute(STEPS.format(**given.types))
        for table in ("meta", "lines", "releases", *DERIVED, *(["steps"] if taken.has_tables("steps") else [])):
            given.execute(f"DELETE FROM {table}")  # noqa: S608  (a name of ours)
            rows = [tuple(row) for row in taken.execute(f"SELECT * FROM {table}")]  # noqa: S608  (a name of ours)
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                given.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608  (as above)
        broken = verify(given, key, HeadFile(head, key).read(), watched=True)
        if broken is not True:
            raise LedgerError("The ledger was not copied", why=str(broken), instead="cloister ledger verify, and its last backup")
        yield given.execute("SELECT COUNT(*) FROM lines").fetchone()[0], given.commit
    except given.errors as error:
        raise given.unavailable(error) from None
    except taken.errors as error:
        raise taken.unavailable(error) from None
    finally:
        for store in (taken, given):
            store.rollback()
            store.close()


def _store(where: str | Path) -> Store:
    if isinstance(where, str) and where.startswith(SERVERS):
        from cloister.ledger.postgres import PostgresStore

        return PostgresStore(where)
    return SQLiteStore(Path(where))
