"""What somebody finds in the catalogue: the data sets that they may see, and of each what is public.

A data set that somebody may not see is missing, in the same words as one that does not exist.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from cloister.errors import AccessDenied, CloisterError, Missing
from cloister.hub.database import damaged, readable
from cloister.hub.decisions.checking import check, context_of
from cloister.hub.decisions.facts import data_set_object, facts_of, who_of
from cloister.hub.decisions.policy import Object, Policy, decide
from cloister.hub.hub import Caller, Hub
from cloister.hub.platform.trail import of_data_set
from cloister.hub.records.catalogue import DataSet, Population
from cloister.hub.records.policies import policies_in_row
from cloister.hub.records.trail import AuditLine
from cloister.privacy import Guarantee
from cloister.tables.expression.names import alias, quoted


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One data set, as a caller sees it."""

    row: DataSet
    mine: bool
    may_ask: bool
    policy: Policy

    @property
    def labels(self) -> list[str]:
        """Its labels."""
        return sorted(self.policy.labels)


@dataclass(frozen=True, kw_only=True)
class Money:
    """A population's budget, as the ledger has it."""

    population: str
    total: Guarantee
    spent: Guarantee
    unbounded: bool
    frozen: bool


class Eyes:
    """What a caller may do with data sets at this moment: the facts are read once for many decisions."""

    def __init__(self, hub: Hub, db: Db, caller: Caller) -> None:
        self._facts = facts_of(hub, db)
        self._who = who_of(caller, self._facts)
        self._context = context_of(hub, caller)
        self._id = caller.id

    def may(self, action: str, row: DataSet) -> bool:
        """Whether the caller may do it."""
        which = self._facts.data_sets.get(row.id) or data_set_object(row)
        return decide(self._who, action, which, self._context, self._facts.mandatory).allowed

    def entry(self, row: DataSet) -> Entry:
        """The data set as the caller sees it."""
        asks = row.state == "open" and self.may("question.explain", row)
        return Entry(row=row, mine=row.owner == self._id, may_ask=asks, policy=policy_of(row))


def search(
    hub: Hub, db: Db, caller: Caller, *, text: str = "", mine: bool = False, after: str = "", limit: int = 50
) -> tuple[list[Entry], bool]:
    """The data sets that a caller may see, in the order of their names; whether there are more."""
    words, eyes = text.casefold().split(), Eyes(hub, db, caller)
    found: list[Entry] = []
    wanted = select(DataSet).where(DataSet.state != "deleted", DataSet.name > after).order_by(DataSet.name)
    for row in readable(db.scalars(wanted), but="metadata_"):
        if mine and row.owner != caller.id:
            continue
        if words and not _fits(row, words):
            continue
        if eyes.may("dataset.see", row):
            found.append(eyes.entry(row))
            if len(found) > limit:
                return found[:limit], True
    return found, False


def seen(hub: Hub, db: Db, caller: Caller, name: str, action: str = "dataset.see") -> DataSet:
    """A data set to which somebody may do something; for anybody else it is missing."""
    row = db.scalar(select(DataSet).where(DataSet.name == name, DataSet.state != "deleted"))
    try:
        if row is not None:
            check(hub, db, caller, action, _object(hub, db, row))
            if not row.declaration.get("columns"):
                raise damaged()
            return row
    except AccessDenied:
        pass
    raise Missing("There is no such data set", why="it does not exist, or is not open to you", instead="/datasets")


def owned(hub: Hub, db: Db, caller: Caller, name: str, action: str = "dataset.manage") -> DataSet:
    """A data set of one's own."""
    return seen(hub, db, caller, name, action)


def money_of(hub: Hub, population: str | None) -> Money | None:
    """What the ledger says of a population; None where there is none, or where the ledger is away."""
    if population is None:
        return None
    try:
        return Money(
            population=population,
            total=hub.ledger.budget(population),
            spent=hub.ledger.spent(population),
            unbounded=hub.ledger.unbounded(population),
            frozen=hub.ledger.frozen is not None,
        )
    except CloisterError:
        return None


def policy_of(row: DataSet) -> Policy:
    """The owner's policy; what stands in for it where it can't be read."""
    return policies_in_row(row)[0].whole


def last_day(policy: Policy) -> date | None:
    """The last day on which data under a policy may be kept.

    >>> last_day(Policy.read({"retention": "2030-12-31"}))
    datetime.date(2030, 12, 31)
    """
    if policy.retention is None:
        return None
    try:
        return (policy.retention - timedelta(microseconds=1)).date()
    except OverflowError:  # the first moment of the calendar
        return policy.retention.date()


def uses_of(db: Db, row: DataSet) -> list[AuditLine]:
    """What was done with a data set, the newest first."""
    return list(db.scalars(select(AuditLine).where(of_data_set(row.id)).order_by(AuditLine.number.desc()).limit(15)))


def populations_of(db: Db, caller: Caller) -> list[Population]:
    """One's own populations."""
    return list(db.scalars(select(Population).where(Population.owner == caller.id).order_by(Population.name)))


def own_population(db: Db, caller: Caller, name: str) -> Population:
    """One's own population; another person's is not told from none."""
    row = db.get(Population, name)
    if row is None or row.owner != caller.id:
        raise Missing("There is no such population", why="it does not exist, or is not yours", instead="/populations")
    return row


def unit_of(db: Db, population: str | None) -> str:
    """What one member of a population is: a person, a household or a group."""
    row = None if population is None else db.get(Population, population)
    return "person" if row is None else row.unit


def tables_on(db: Db, population: str) -> list[DataSet]:
    """The data sets that draw on a population."""
    wanted = select(DataSet).where(DataSet.population == population, DataSet.state != "deleted").order_by(DataSet.name)
    return readable(db.scalars(wanted), but="metadata_")


def names_to_ids(hub: Hub, db: Db, caller: Caller, names: Iterable[str]) -> list[str]:
    """The ids of data sets that are named; each must be one that the caller may see."""
    return [seen(hub, db, caller, name).id for name in names]


def examples(row: DataSet, origin: str, address: str, pg_port: int) -> dict[str, str]:
    """How to ask: lines of SQL, Python and psql, made of the public declaration.

    >>> row = DataSet(name="people", declaration={"columns": {"sex": {"kind": "category"}, "pay in €": {"kind": "real"}}})
    >>> examples(row, "https://hub", "ada@example.org", 0)["sql"]
    'SELECT sex, COUNT(*) AS n, AVG("pay in €") AS mean FROM people GROUP BY sex'
    """
    columns: dict[str, Any] = row.declaration["columns"]
    key = next((name for name, each in columns.items() if each["kind"] in ("category", "boolean")), None)
    number = next((name for name, each in columns.items() if each["kind"] in ("integer", "real")), None)
    parts = [*([quoted(key)] if key else []), f"COUNT(*) AS {alias('n', columns)}"]
    parts += [f"AVG({quoted(number)}) AS {alias('mean', columns)}"] if number else []
    sql = f"SELECT {', '.join(parts)} FROM {quoted(row.name)}" + (f" GROUP BY {quoted(key)}" if key else "")  # noqa: S608  (shown, not run)
    host = origin.split("://", 1)[-1].rpartition(":")[0] or origin.split("://", 1)[-1]
    found = {
        "sql": sql,
        "python": f'import cloister as cl\n\nsession = cl.connect("{origin}", token="…")\n'
        f"answer = session.sql('''{sql}''', spend=\"0.1\")\nanswer.to_pandas(), answer.margin()",
    }
    if pg_port:
        found["psql"] = f"psql \"host={host} port={pg_port} user={address} dbname=hub\"\nSET cloister.spend = '0.1';\n{sql};"
    return found


def _fits(row: DataSet, words: list[str]) -> bool:
    policy = policy_of(row)
    text = " ".join([row.name, row.title, row.about, *policy.labels, *row.declaration.get("columns", {})]).casefold()
    return all(word in text for word in words)


def _object(hub: Hub, db: Db, row: DataSet) -> Object:
    return facts_of(hub, db).data_sets.get(row.id) or data_set_object(row)
