"""From an order to the rows that it may read: one's own data set, one row a person, every column with a part."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import select

from cloister.errors import (
    AccessDenied,
    CloisterError,
    EngineError,
    InvalidParameter,
    LedgerError,
    MissingDependency,
    UnknownColumn,
)
from cloister.hub.generation import generation
from cloister.hub.policy import Policy, derived
from cloister.hub.problems import Conflict
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.access import check, context_of, data_set_object
from cloister.hub.services.catalogue import live_of, owned
from cloister.hub.services.jobs import came_of, submit
from cloister.hub.work.held import Held
from cloister.hub.work.refusals import note_refusal
from cloister.tables import PrivateTable

if TYPE_CHECKING:
    from sqlalchemy.orm import Session as Db

    from cloister.hub.caller import Caller
    from cloister.hub.hub import Hub
    from cloister.hub.services.anonymizing.order import Order
    from cloister.query import Session


ACTION = "anonymize.run"


@dataclass(frozen=True, kw_only=True)
class AuthorisedTable:
    """An order that may be carried out."""

    order: Order
    """With a part for every column of the data set: one that was not named is dropped."""
    session: Session
    row: DataSet
    table: PrivateTable
    policy: Policy
    """What the released table will carry."""
    held: Held
    """The table that it was decided for: its rows are read, or none."""


def ready(hub: Hub, db: Db, caller: Caller, order: Order) -> AuthorisedTable:
    """The session with the rows, or the refusal. No row is read.

    What a trial shows is exact, and a released table is not differentially private: so both are the owner's alone, whatever has
    been granted to others.
    """
    row, session, table = _opened(hub, db, caller, order.table)
    held = live_of(hub).held(session, [row.name], generation(db))
    for name in order.parts:
        if name not in table.columns:
            raise UnknownColumn(
                f"The column {name[:200]!r} is unknown",
                why="the data set declares none of that name",
                instead="one of its columns",
            )
    from cloister.anonymize.from_tables import check_one_row_each

    check_one_row_each(row.name, table)
    order = replace(order, parts={name: order.parts.get(name, "identifying") for name in table.columns})
    order.anonymizer()  # refuses hierarchies that contradict themselves
    columns = [name for name, part in order.parts.items() if part != "identifying"]
    which = data_set_object(row)
    check(hub, db, caller, ACTION, which, context_of(hub, caller, purpose=order.purpose, columns={row.id: frozenset(columns)}))
    policy = derived([(which, columns)], {row.id: str(table.version)})
    return AuthorisedTable(order=order, session=session, row=row, table=table, policy=policy, held=held)


def check_free(db: Db, name: str) -> None:
    """Refuse a name that a data set has or had: none is given twice."""
    if db.scalar(select(DataSet.id).where(DataSet.name == name)) is not None:
        raise Conflict(f"The name {name!r} is taken", why="there is a data set of that name", instead=f"{name}_2")


def unsaid(error: CloisterError) -> CloisterError:
    """What stopped the work on rows, as a job may keep it: its own words may name a value of a row, and a job lies in plain."""
    if isinstance(error, EngineError | LedgerError | MissingDependency | AccessDenied):
        return error
    return InvalidParameter(
        "No table was made",
        why="the rows can't meet the requested models; a trial shows why",
        instead="run a trial with the same settings: it says why, and what would do",
    )


def open_for_anonymising(hub: Hub, db: Db, caller: Caller, name: str) -> PrivateTable:
    """The declared table of one's own data set."""
    return _opened(hub, db, caller, name)[2]


def _opened(hub: Hub, db: Db, caller: Caller, name: str) -> tuple[DataSet, Session, PrivateTable]:
    _installed()
    row = owned(hub, db, caller, name)
    session = live_of(hub).session(db, caller.email, tables=[row.name])
    table = session.tables.get(row.name)
    if not isinstance(table, PrivateTable):
        raise InvalidParameter(
            "The table is invalid", why="the data set is public or not open: nothing needs hiding", instead="a private data set"
        )
    return row, session, table


def _installed() -> None:
    try:
        import polars  # noqa: F401
    except ImportError:
        raise MissingDependency(
            "The table was not anonymised",
            why="this hub was installed without what anonymising needs",
            instead='the administrator\'s help: pip install "cloister[anonymize]"',
        ) from None


def look(hub: Hub, caller: Caller, order: Order) -> None:
    """Whether an order may be carried out now: refused where it may not, and written down then."""
    try:
        with hub.database.reading() as db:
            ready(hub, db, caller, order)
    except CloisterError as error:
        note_refusal(hub, caller, ACTION, error, kind="data-set", purpose=order.purpose, table=order.table[:200])
        raise


def try_later(db: Db, hub: Hub, caller: Caller, order: Order) -> str:
    """A trial; the id of its job."""
    payload = {"order": order.plain(), "came": came_of(caller)}
    return submit(db, hub, caller, "anonymizing.try", payload, secret=order.secret(), purpose=order.purpose)


def release_later(db: Db, hub: Hub, caller: Caller, order: Order, *, understood: bool) -> str:
    """A release; the id of its job. Who orders it has to say that they know what it means for the budget."""
    if not understood:
        raise InvalidParameter(
            "The release is invalid",
            why="it is not differentially private; from then on the population's spending reads “not covered by the budget”",
            instead="tick the confirmation box",
        )
    if not order.name or not order.title:
        raise InvalidParameter(
            "The release is invalid", why="the data set that it becomes has no name or no title", instead="patients_public"
        )
    check_free(db, order.name)
    payload = {"order": order.plain(), "came": came_of(caller)}
    return submit(db, hub, caller, "anonymizing.release", payload, secret=order.secret(), purpose=order.purpose)
