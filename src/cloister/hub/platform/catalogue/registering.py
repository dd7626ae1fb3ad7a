"""From what arrived to a data set that can be asked: all of it, or nothing.

Everything that can be said in advance is checked before a row is stored. Then the upload becomes a table under a key of its own,
which is written down at once; then population, data set, version and audit log are one transaction, at whose end the ledger opens
the budget and writes down whose rows they are. What fails leaves the arrival, so that it can be done again with other words.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session as Db

from cloister.errors import CloisterError, Conflict, InvalidParameter, MissingBound
from cloister.hub.decisions.checking import check, context_of
from cloister.hub.decisions.facts import data_set_object
from cloister.hub.decisions.policy import Spend
from cloister.hub.decisions.policy.mandatory import alike
from cloister.hub.generation import bump
from cloister.hub.hub import Caller, Hub
from cloister.hub.ids import new_id
from cloister.hub.max_delta import check_max_delta
from cloister.hub.platform.catalogue.arrivals import connected, discard, kept, sent
from cloister.hub.platform.catalogue.metadata import checked_text, metadata_of, plain_word, provider_of
from cloister.hub.platform.catalogue.origins import check_origin, not_told, noticed, whole_of
from cloister.hub.platform.catalogue.row_sources import RowSource, UploadedRows
from cloister.hub.platform.catalogue.sources import source_of
from cloister.hub.platform.catalogue.windows import check_series, lock_series
from cloister.hub.platform.trail import write
from cloister.hub.records.access import Grant
from cloister.hub.records.catalogue import DataSet, DataSetVersion, Population
from cloister.hub.records.declarations import check_against, check_declaration, domains_of, table_of
from cloister.printable import is_text
from cloister.privacy import Guarantee
from cloister.query import Session
from cloister.session.state.lineage import SharedRows
from cloister.tables.declaring.table import PrivateTable, check_events, check_printable
from cloister.tables.sourcing.sources import Source

POPULATION = r"[^\W_][\w .()-]{0,119}"
Along: TypeAlias = Callable[["Db", DataSet, DataSetVersion], None]
"""What is to be done in the transaction in which a data set and its first version are made."""
Looked: TypeAlias = Callable[["Source"], None]
"""What is to be done with the rows as they are stored, before that transaction."""
UNITS = ("person", "household", "group")
LISTED = "listed"
"""The role of everybody in the catalogue."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an owner wants a data set to be. `metadata` holds "policy" and "columns" as `policy/facts.py` reads them."""

    name: str
    title: str
    about: str = ""
    public: bool = False
    declaration: Mapping[str, Any] = field(default_factory=dict)
    population: str = ""
    budget: Guarantee | None = None
    """Of a population that is new; one that is known has its own."""
    unit: str = ""
    """What one member of the population is (`UNITS`); left out, what it is of one that is known, and a person in a new one."""
    people: int | None = None
    listed: bool = False
    row_is_person: bool = False
    """The owner says that each row is all of one member although a column is an identifier (`check_events`)."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    window: Mapping[str, Any] = field(default_factory=dict)
    provider: str = ""
    """The address of the person who gave the data, where that is another; they may attach a policy to what they gave."""
    released: Mapping[str, Any] = field(default_factory=dict)
    """Of what was released as a data set: the population and the institution behind it (`DataSet.released`)."""


def register(
    hub: Hub,
    caller: Caller,
    *,
    source: Path | str | Iterable[bytes],
    kind: str,
    along: Along | None = None,
    looked: Looked | None = None,
    **fields: Any,
) -> DataSet:
    """A data set from a file, from bytes as they come (`kind` csv or parquet), or from a database (`kind` connection, `source`
    its address); `fields` are those of `Wanted`. `along` is done in the transaction that makes it, `looked` with the
    rows before that; where one of them refuses, nothing is left of what arrived.
    """
    wanted = Wanted(**fields)
    row = connected(hub, caller, str(source)) if kind == "connection" else kept(hub, caller, sent(hub, source, kind))
    try:
        return registered(hub, caller, row.id, wanted, along, looked)
    except CloisterError:
        if along is not None or looked is not None:
            discard(hub, caller, row.id, maybe=True)
        raise


def registered(
    hub: Hub, caller: Caller, number: str, wanted: Wanted, along: Along | None = None, looked: Looked | None = None
) -> DataSet:
    """The data set that is made of an arrival; `along` is called in its transaction, before it is there, and `looked` before."""
    return made_of(hub, caller, UploadedRows.find(hub, caller, number), wanted, along, looked)


def made_of(
    hub: Hub, caller: Caller, given: RowSource, wanted: Wanted, along: Along | None = None, looked: Looked | None = None
) -> DataSet:
    """The data set that is made of rows, wherever they come from."""
    provider = provider_of(wanted.provider)
    data_set = drafted(hub, caller, given.schema, wanted, provider)

    def check_all(db: Db) -> None:
        _check_free(hub, db, caller, data_set, wanted)
        check_allowed(hub, db, caller, data_set, wanted)
        check_origin(db, data_set, given.origin)

    with hub.database.reading() as db:
        check_all(db)
    given.settle()
    version = given.version(caller, data_set, 1)
    table = table_of(data_set, source_of(hub, data_set, version), version.id)
    if looked is not None:
        looked(table.source)
    try:
        with hub.database.begin() as db:
            lock_series(db, data_set)
            check_all(db)
            if not data_set.public and db.get(Population, wanted.population) is None:
                db.add(_population(hub, caller, wanted))
            if along is not None:
                along(db, data_set, version)
            db.flush()
            db.add(data_set)
            db.flush()
            db.add(version)
            if wanted.listed:
                db.add(listing(hub, caller, data_set))
            given.take(db)
            db.flush()
            bump(db)
            opened = {} if wanted.budget is None else {wanted.population: str(wanted.budget)}
            details: dict[str, Any] = {"name": data_set.name, "population": data_set.population or "", "budget": opened}
            details |= given.told
            if wanted.row_is_person:
                details["row_is_person"] = True
            line = write(
                hub, db, caller, "dataset.register", kind="data-set", object_id=data_set.id, data_sets=[data_set.id], **details
            )
            noticed(hub, db, caller, data_set, given.origin, line)
            if isinstance(table, PrivateTable):
                open_table(hub, db, caller, data_set, table, wanted.budget)
    except IntegrityError:
        raise _taken("The data set", "its name or its population was taken a moment ago", "another name") from None
    return data_set


def open_table(hub: Hub, db: Db, caller: Caller, data_set: DataSet, table: PrivateTable, budget: Guarantee | None = None) -> None:
    """Let the ledger open the population and bind the source to it; rows that are another population's are refused there."""
    who = caller.email or "owner"
    try:
        whole = whole_of(hub, db, data_set, table.source)
        with Session({}, ledger=hub.ledger, who=who) as session:
            session.add(data_set.name, table, budget)
    except SharedRows as error:
        raise not_told(db, caller, data_set, error) from None
    for population in set(whole.values()):
        hub.ledger.bind(whole, population, who=who)


def listing(hub: Hub, caller: Caller, row: DataSet) -> Grant:
    """The grant by which everybody who has signed in finds a data set in the catalogue."""
    return Grant(
        id=new_id(),
        kind="data-set",
        object=row.id,
        role=LISTED,
        attributes={"anybody": True},
        rules={"actions": ["dataset.see"]},
        granted_by=caller.id,
        created=hub.now(),
    )


def drafted(hub: Hub, caller: Caller, schema: Mapping[str, str], wanted: Wanted, provider: str) -> DataSet:
    """The data set as it would be, from what is public alone."""
    if not plain_word(wanted.name):
        raise InvalidParameter(
            f"The name {wanted.name[:80]!r} is invalid",
            why="a name in queries has lower-case letters, digits and underscores, begins with a letter, and is not "
            "an SQL keyword",
            instead="visits_2026",
        )
    if wanted.public:
        check_printable(schema)
        declaration: dict[str, Any] = {"columns": {name: {"kind": kind} for name, kind in schema.items()}}
    else:
        declaration = check_declaration(wanted.name, wanted.declaration)
        check_against(wanted.name, declaration, schema)
        if not wanted.row_is_person:
            check_events(domains_of(wanted.name, declaration), declaration["unit"])
    now = hub.now()
    return DataSet(
        id=new_id(),
        name=wanted.name,
        title=checked_text("title", wanted.title, 200),
        about=checked_text("description", wanted.about, 5000, empty=True, lines=True),
        owner=caller.id,
        provider=provider,
        institution=caller.institution,
        public=wanted.public,
        population=None if wanted.public else wanted.population,
        declaration=declaration,
        metadata_=metadata_of(wanted.metadata, declaration["columns"]),
        released=dict(wanted.released),
        window=dict(wanted.window),
        version=1,
        state="open",
        created=now,
        changed=now,
    )


def _check_free(hub: Hub, db: Db, caller: Caller, data_set: DataSet, wanted: Wanted) -> None:
    """Whether name, population and budget can be had."""
    if db.scalar(select(DataSet.id).where(DataSet.name == data_set.name)) is not None:
        raise _taken(
            f"The name {data_set.name!r}", "a data set has that name, or had it until it was deleted", f"{data_set.name}_2"
        )
    if data_set.public:
        return
    check_series(db, data_set)
    if not re.fullmatch(POPULATION, wanted.population) or not is_text(wanted.population):
        raise InvalidParameter(
            "The population is invalid", why="its name must have 1 to 120 letters, digits and blanks", instead="patients"
        )
    if wanted.population != wanted.population.strip():
        raise _no_population(wanted, "its name ends in a blank", wanted.population.strip())
    if wanted.unit and wanted.unit not in UNITS:
        raise InvalidParameter("The unit is invalid", why="it is not one of the three", instead=", ".join(UNITS))
    known = db.get(Population, wanted.population)
    if known is not None and known.owner != caller.id:
        raise _no_population(wanted, "it is another owner's", "a name of your own")
    if known is not None:
        if wanted.unit and wanted.unit != known.unit:
            raise InvalidParameter(
                f"The unit of {known.name!r} is invalid",
                why=f"one member of that population is a {known.unit}, and its budget is a promise to each of these",
                instead=f"{known.unit}, or another population",
            )
        if wanted.budget is not None and wanted.budget != hub.ledger.budget(known.name):
            raise InvalidParameter(
                f"The budget of {known.name!r} is invalid",
                why="the population has one already, and all its tables share it",
                instead="no budget here; to raise it, the page of the population's budget",
            )
        return
    if wanted.budget is None:
        raise MissingBound(
            "The budget is incomplete", why=f"the population {wanted.population!r} is new and has none", instead="epsilon=1"
        )
    if any(alike(each) == alike(wanted.population) for each in db.scalars(select(Population.name))):
        why = "there is one of this name, but for capitals, blanks or the form of its letters"
        raise _no_population(wanted, why, "that population by its own name, or another name")
    orphan = wanted.population in hub.ledger.populations()
    if orphan and (hub.ledger.budget(wanted.population) != wanted.budget or hub.ledger.charges(wanted.population)):
        raise _no_population(wanted, "the ledger knows another of that name", "a new name")


def check_allowed(hub: Hub, db: Db, caller: Caller, data_set: DataSet, wanted: Wanted) -> None:
    """The hub's floor on δ and the institution's rules, such as a ceiling on budgets, stand above what the owner wants."""
    if not data_set.public and db.get(Population, wanted.population) is None:
        check_max_delta(hub.settings.max_delta, f"The budget of {wanted.population!r}", wanted.budget)
    spend = {wanted.population: Spend(budget=wanted.budget)} if wanted.budget is not None and not data_set.public else {}
    check(hub, db, caller, "dataset.register", data_set_object(data_set), context_of(hub, caller, spend=spend))


def _population(hub: Hub, caller: Caller, wanted: Wanted) -> Population:
    if wanted.people is not None and not 0 < wanted.people < 2**31:
        raise InvalidParameter("The size is invalid", why="it is not a number of people", instead="40000")
    return Population(
        name=wanted.population,
        title=wanted.population,
        unit=wanted.unit or UNITS[0],
        owner=caller.id,
        about="",
        people=wanted.people,
        created=hub.now(),
    )


def _no_population(wanted: Wanted, why: str, instead: str) -> InvalidParameter:
    return InvalidParameter(f"The population {wanted.population!r} is invalid", why=why, instead=instead)


def _taken(what: str, why: str, instead: str) -> Conflict:
    return Conflict(f"{what} was refused", why=why, instead=instead)
