"""From an order to the rows that it may read: one's own data set, one row a person, every column with a part."""

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import Conflict
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue import live_of, owned
from cloister.hub.records.catalogue import DataSet
from cloister.hub.services.anonymizing.order import Anonymizing
from cloister.hub.web.languages import N_
from cloister.hub.work.authorise import AuthorisedOrder, Terms, Words
from cloister.hub.work.one_table import own_rows, private_table
from cloister.lazily import check_installed
from cloister.query import Session
from cloister.tables import PrivateTable

ACTION = "anonymize.run"
WORDS = Words(
    name="The table",
    invalid=N_("The table is invalid"),
    denied=N_("The table was denied"),
    withheld=N_("The table was not released"),
)


@dataclass(frozen=True, kw_only=True)
class AuthorisedTable(AuthorisedOrder[Anonymizing]):
    """An order that may be carried out, with a part for every column of the data set: one that was not named is dropped."""

    sent: Anonymizing
    """As it was sent."""
    row: DataSet
    table: PrivateTable


def ready(hub: Hub, db: Db, caller: Caller, order: Anonymizing) -> AuthorisedTable:
    """The session with the rows, or the refusal. No row is read.

    What a trial shows is exact, and a released table is not differentially private: so both are the owner's alone, whatever has
    been granted to others.
    """
    check_installed("anonymize", WORDS.withheld)

    def columns(session: Session, name: str) -> list[str]:
        from cloister.anonymize.from_tables import check_one_row_each

        table = private_table(session, name, order.parts, WORDS.invalid)
        check_one_row_each(name, table)
        settled = order.settled(table)
        settled.anonymizer()  # refuses hierarchies that contradict themselves
        return settled.left

    terms = Terms(action=ACTION, purpose=order.purpose)
    row, found = own_rows(hub, db, caller, order.table, terms, WORDS, columns)
    table = found.held.tables[row.name]  # all of its columns: the session knows those alone that no policy closes
    assert isinstance(table, PrivateTable)
    return AuthorisedTable(**vars(found), order=order.settled(table), sent=order, row=row, table=table)


def check_free(db: Db, name: str) -> None:
    """Refuse a name that a data set has or had: none is given twice."""
    if name and db.scalar(select(DataSet.id).where(DataSet.name == name)) is not None:
        raise Conflict(
            f"The name {name!r} is taken", why="a data set has that name, or had it until it was deleted", instead=f"{name}_2"
        )


def open_for_anonymising(hub: Hub, db: Db, caller: Caller, name: str) -> PrivateTable:
    """The declared table of one's own data set."""
    check_installed("anonymize", WORDS.withheld)
    row = owned(hub, db, caller, name)
    return private_table(live_of(hub).session(db, caller.email, tables=[row.name]), row.name, (), WORDS.invalid)
