"""Work on columns of one private table: what most services ask for, authorised by the frame (`authorise.py`)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from sqlalchemy.orm import Session as Db

from cloister.errors import InvalidParameter, UnknownColumn, UnknownTable
from cloister.hub.decisions.facts import Facts, data_set_object, facts_of
from cloister.hub.decisions.policy import Decision, Object
from cloister.hub.hub import Caller, Hub
from cloister.hub.max_delta import check_max_delta
from cloister.hub.platform.catalogue import owned
from cloister.hub.records.catalogue import DataSet
from cloister.hub.work.authorise import Authorised, AuthorisedOrder, Terms, Wanted, Words, authorise, visible
from cloister.hub.work.orders import OrderedWork
from cloister.privacy import Guarantee, zero_of
from cloister.query import Session
from cloister.session import Spending, Touched
from cloister.session.questions.spend import amount_of, least, less, spend_of
from cloister.tables import PrivateTable, PublicTable

Charge = Callable[[Session, PrivateTable, Guarantee], Guarantee]
"""What would be charged now, at most, in a session, of a population of that budget: less, where it was bought before."""

_MARKED = "anonymize.run"
"""The action whose prohibitions say that no rows leave without differential privacy."""


@dataclass(frozen=True, kw_only=True)
class ReadyTable(AuthorisedOrder[Wanted]):
    """An order about one table that may be carried out."""

    table: PrivateTable
    cost: Guarantee
    """What the order names."""
    charge: Guarantee
    """What would be charged of it now, at most: less, where it was bought before."""

    @property
    def which(self) -> Object:
        """The data set: beside it, objects are public."""
        return next((each for each in self.objects if each.population), self.objects[0])

    @property
    def decision(self) -> Decision:
        """On it."""
        return self.decisions[self.which.id]


@dataclass
class _OneTable:
    """Such work as the frame asks about it."""

    hub: Hub
    which: Object
    columns: tuple[str, ...]
    terms: Terms
    words: Words
    spend: Spending
    charge_in: Charge
    paid: Guarantee | None
    beside: Mapping[str, Object]
    unit: bool
    _charge: tuple[Session, Guarantee] | None = None

    def touches(self, session: Session) -> Touched:
        table = private_table(session, self.which.name, self.columns, self.words.invalid)
        unit = table.unit if self.unit else None
        columns = {*self.columns, *([unit] if unit is not None and unit in table.columns else [])}
        beside = {name: _public_columns(session, name, self.words.invalid) for name in self.beside}
        return Touched({self.which.name: columns, **beside})

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return {self.which.population: self.charge(session)}

    def cost(self) -> Guarantee:
        """What the order names."""
        return spend_of(self.spend, self._budget).whole() if self.spend != 0 else zero_of(self._budget)

    def charge(self, session: Session) -> Guarantee:
        """What would be charged in that session; worked out once."""
        if self._charge is None or self._charge[0] is not session:
            table = session.tables[self.which.name]
            assert isinstance(table, PrivateTable)
            charge = self.charge_in(session, table, self._budget)
            if self.paid is not None:
                charge = least(charge, less(self.cost(), self.paid) or zero_of(self.cost()))
            self._charge = session, charge
        return self._charge[1]

    @property
    def _budget(self) -> Guarantee:
        return self.hub.ledger.budget(self.which.population)


def private_table(session: Session, name: str, columns: Iterable[str], invalid: str) -> PrivateTable:
    """A table in which somebody is to be hidden, and which declares these columns; refused where it is another."""
    table = session.tables.get(name)
    if not isinstance(table, PrivateTable):
        raise InvalidParameter(
            invalid, why="the data set is public or not open: nothing needs hiding", instead="a private data set"
        )
    for column in columns:
        if column not in table.columns:
            raise UnknownColumn(
                f"The column {column[:200]!r} is unknown",
                why="the data set declares none of that name",
                instead="one of its columns",
            )
    return table


def _public_columns(session: Session, name: str, invalid: str) -> tuple[str, ...]:
    table = session.tables.get(name)
    if not isinstance(table, PublicTable):
        raise InvalidParameter(invalid, why="one of the data sets beside the table is not public", instead="a public data set")
    return table.names


def ready_table(
    work: OrderedWork[Any, Any],
    hub: Hub,
    db: Db,
    caller: Caller,
    order: Wanted,
    *,
    columns: tuple[str, ...],
    charge: Charge,
    method: str = "",
    action: str = "",
    spend: Spending | None = None,
    progress: Callable[[str], None] | None = None,
    paid: Mapping[str, Guarantee] | None = None,
    beside: Iterable[str] = (),
    unit: bool = False,
    charges: bool = True,
) -> ReadyTable[Wanted]:
    """The session that may do an order's work on those columns of its table, or the refusal. Nothing is spent and no row is read.
    `method`: by which rules know it. `action`, `spend`: where the order names it otherwise. `paid`: what was charged for it
    already, by population, of attempts that were killed. `beside`: public data sets that it reads whole. `unit`: it reads the
    column that says whose a row is, too. `charges`: whether anything may be charged."""
    charge = charge if charges else lambda _session, _table, budget: zero_of(budget)
    facts, wanted = facts_of(hub, db), cast("Any", order)
    which, spend = _named(hub, caller, facts, wanted.table), wanted.spend if spend is None else spend
    named = {each: getattr(order, each) for each in ("purpose", "project", "algorithm")}
    terms = Terms(action=action or work.action, method=method, **named)
    public = {name: _named(hub, caller, facts, name) for name in beside}
    one = _OneTable(hub, which, columns, terms, work.words, spend, charge, (paid or {}).get(which.population), public, unit)
    found = authorise(hub, db, facts, caller, one, {which.name: which, **public}, progress=progress)
    with found.held.pinned():
        declared, cost = found.session.tables[which.name], one.charge(found.session)
        asked = cost if amount_of(cost) > 0 else None
        check_max_delta(hub.settings.max_delta, work.words.name, asked, hub.ledger.spent(which.population))
        assert isinstance(declared, PrivateTable)
        costs = {which.population: cost}
        return ReadyTable(**vars(found), order=order, table=declared, cost=one.cost(), charge=cost, charges=costs)


@dataclass(frozen=True, kw_only=True)
class _OwnColumns:
    """Columns of a data set of one's own, as the frame asks about them. They cost nothing that could be counted."""

    terms: Terms
    words: Words
    name: str
    columns: Callable[[Session, str], Iterable[str]]

    def touches(self, session: Session) -> Touched:
        return Touched({self.name: self.columns(session, self.name)})

    def costs(self, session: Session) -> Mapping[str, Guarantee]:
        return {}


def own_rows(
    hub: Hub, db: Db, caller: Caller, table: str, terms: Terms, words: Words, columns: Callable[[Session, str], Iterable[str]]
) -> tuple[DataSet, Authorised]:
    """A data set of one's own, and the session with its rows, or the refusal: for work by the marked door, which is the owner's
    alone, whatever has been granted to others. `columns`: those that it reads of the data set, by name. Who forbids one way of
    rows by the marked door, anonymised tables, forbids all of them."""
    row, facts = owned(hub, db, caller, table), facts_of(hub, db)
    which = facts.data_sets.get(row.id) or data_set_object(row)
    for action in dict.fromkeys((_MARKED, terms.action)):
        work = _OwnColumns(terms=replace(terms, action=action), words=words, name=row.name, columns=columns)
        found = authorise(hub, db, facts, caller, work, {row.name: which}, priced=False)
    return row, found


def _named(hub: Hub, caller: Caller, facts: Facts, table: str) -> Object:
    for each in facts.data_sets.values():
        if each.name == table and visible(hub, caller, facts, each):
            return each
    raise UnknownTable(
        "The table is unknown", why="no data set of that name is open to you", instead="one of those on the page Data"
    )
