"""Whose rows arrived: the same file, or the same table of a database, must not be asked on two budgets.

Of what arrives a digest is kept, keyed by a secret of the hub, so that nobody who reads the database can try files against it. An
owner who registers the same content under another population is told which one it belongs to. Where the content is known from
another owner, nothing is refused and nothing said, since that would tell what others hold: a steward is told.

Windows of one data set that are cut by the dates of its rows share no row, so all of them may be served from the same content
(`windows.py`). Of a table of a database the ledger then knows each window by the table and its days; and the table as a whole it
knows as the first window's, so that nobody else registers it as theirs.
"""

import hmac

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, InvalidParameter
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.catalogue.windows import apart, populations_ever
from cloister.hub.platform.trail import raise_alert
from cloister.hub.records.catalogue import Arrival, DataSet, DataSetVersion, Population
from cloister.session.state.lineage import SharedRows, identity_digest, marks_of
from cloister.tables.engines.postgres import PostgresSource
from cloister.tables.engines.spark_connect import SparkConnectSource

_SECRET = "origin of rows"  # noqa: S105  (the name of a secret)


def origin_of(hub: Hub, arrival: Arrival) -> str:
    """The keyed digest of what arrived. Not to be called for the first time inside of a transaction: the secret is made then."""
    told = content_of(arrival.kind, arrival.digest, arrival.shown)
    return hmac.digest(hub.secret(_SECRET), told.encode(), "sha256").hex()


def content_of(kind: str, digest: str, shown: str) -> str:
    """What tells one content from another: the digest of a file; of a connection the table, however its schema is written.

    >>> content_of("csv", "2cf2", "people.csv")
    'file 2cf2'
    >>> content_of("connection", "", "postgresql://db:5432/hub::visits") == content_of("connection", "", "postgresql://db:5432/hub::public.visits")
    True
    """
    if kind != "connection":
        return f"file {digest}"
    if shown.startswith("sc://"):  # whose server told the whole name, in which capitals mean nothing
        return f"table {shown.casefold()}"
    server, _, table = shown.rpartition("::")
    return f"table {server}::{table if '.' in table else f'public.{table}'}"


def check_origin(db: Db, data_set: DataSet, origin: str) -> None:
    """Refuse rows that their owner has under another population already, in a version that is there or was."""
    for other in _elsewhere(db, data_set, origin):
        if other.owner == data_set.owner:
            raise InvalidParameter(
                f"The rows of {data_set.name!r} are invalid",
                why=f"the same content is the data set {other.name!r} of the population {other.population!r}, and has its budget",
                instead=f'population = "{other.population}"',
            )


def noticed(hub: Hub, db: Db, caller: Caller, data_set: DataSet, origin: str, line: int) -> None:
    """Tell a steward where the same content is another owner's too, under another population."""
    others = sorted(other.name for other in _elsewhere(db, data_set, origin) if other.owner != data_set.owner)
    if others:
        raise_alert(hub, db, caller.id, "origin", line, {"data sets": [data_set.name, *others]})


def _elsewhere(db: Db, data_set: DataSet, origin: str) -> list[DataSet]:
    """Data sets of other populations that the same content was ever a version of."""
    if data_set.public:
        return []
    same = select(DataSetVersion.data_set).where(DataSetVersion.origin == origin)
    other = select(DataSet).where(
        DataSet.id.in_(same), DataSet.population.is_not(None), DataSet.population != data_set.population
    )
    return [each for each in db.scalars(other.order_by(DataSet.created, DataSet.id)) if not apart(each, data_set)]


def whole_of(hub: Hub, db: Db, data_set: DataSet, source: object) -> dict[str, str]:
    """Of a table of a database of which this is a window: by what the ledger knows all of it, each with the population whose it
    is as a whole, the first window's. One that is no window's of this data set is refused."""
    if not isinstance(source, PostgresSource | SparkConnectSource) or not source.part:
        return {}
    marks = marks_of(source, hub.ledger).whole
    whole = marks | {identity_digest(source.whole)}
    bound = set(hub.ledger.bound_to(whole).values())
    if not bound <= populations_ever(db, data_set):
        raise SharedRows(
            f"The rows of {data_set.name!r} can't be registered",
            bound,
            marks,
            why="the same table of the database is another data set's, and has its budget",
            instead="that data set, or another table",
        )
    return dict.fromkeys(whole, min(bound) if bound else data_set.population or data_set.name)


def not_told(db: Db, caller: Caller, data_set: DataSet, error: SharedRows) -> CloisterError:
    """The refusal of rows that are another population's, without the name of one that is another owner's."""
    own = select(Population.name).where(Population.owner == caller.id)
    if error.populations <= set(db.scalars(own)):
        return error
    return InvalidParameter(
        f"The rows of {data_set.name!r} are invalid",
        why="the same table of the database is another data set's, and has its budget",
        instead="that data set, or another table",
    )
