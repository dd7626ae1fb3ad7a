"""The tables of a session: whose budget each spends, which version of its rows it holds, and its prepared rows.

*Population.* A table that names none is its own, under its name in the session. The same object or the same file or database
table, under whatever name or address, is the same people: it spends the same budget, in this session and, through the ledger, in
every other (promise 6; `lineage.py` says what is the same). What a table is made of can change after it was opened: it is looked
up again when its rows have been prepared, and before every charge where the rows of each question are read again.

*Version.* What the owner says; else, for a file, a keyed digest of its place, size and time of writing, which changes when the
owner writes it again and tells nothing else; else a fresh one, so that nothing bought for other rows is ever taken for an answer
about these.

*Order.* Which rows count under a cap follows from a secret of the version, derived from the ledger's key: the same in every
session.

A snapshot never changes. `adding`, `replacing` and `removing` give another one, which shares its entries and prepared rows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from weakref import WeakSet, ref

from cloister.errors import InvalidParameter, UnknownTable, UnsupportedQuery, nearest
from cloister.ledger import Ledger
from cloister.noise import Random
from cloister.privacy import Guarantee
from cloister.session.planning.shape import Shape, redirected, shape_of
from cloister.session.questions.declared import Declared, table_name
from cloister.session.questions.question import Question
from cloister.session.questions.spend import measure_of
from cloister.session.state.lineage import Marks, SharedRows, marks_of, one_population
from cloister.session.state.prepared_cache import PreparedCache
from cloister.tables import Answering, Base, Prepared, PrivateTable, PublicTable, Relation

Table = PrivateTable | PublicTable
_MOST_SHAPES = 512


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What a question is about: a private table, or a relation over tables of one population."""

    declaration: Declared
    population: str
    version: str
    also: tuple[str, ...] = ()
    """Further populations whose people its rows are of (`Source.made_of`): each is charged what the population is."""
    fingerprint: str
    """A digest of the table's identity and its whole declaration: equal only where the same question means the same."""


@dataclass(frozen=True, kw_only=True)
class Entry(Subject):
    """One private table, as a session knows it."""

    name: str
    declaration: PrivateTable
    secret: str
    marks: Marks
    """By which the ledger knows its rows again (`lineage.py`)."""


class TableSnapshot:
    """The tables of one moment by name, and their prepared rows."""

    def __init__(
        self, tables: Mapping[str, Table], ledger: Ledger, random: Random, stock: PreparedCache, kin: SourceIdentities
    ) -> None:
        self._ledger = ledger
        self._random = random
        self._stock = stock
        self._kin = kin
        self._in_rho: dict[str, bool] = {}
        self._compared: WeakSet[Prepared] = WeakSet()
        """Prepared rows that are still what they were when their table was opened; those that are read again stay out."""
        self._shapes: dict[tuple[str, str, tuple[str, ...], bool], Shape] = {}
        """Of questions about a table without keys, one for each list of statistics: of these the condition decides nothing but
        the digest."""
        self.tables: Mapping[str, Table] = MappingProxyType(dict(tables))
        self._public = {name: table for name, table in tables.items() if isinstance(table, PublicTable)}
        self.entries: dict[str, Entry] = {}
        for name, table in tables.items():
            self._enter(name, table, self.entries.values())

    def adding(self, name: str, table: Table) -> TableSnapshot:
        """The snapshot with one table more."""
        if name in self.tables:
            raise InvalidParameter(
                f"The table {name!r} is invalid", why="there is one of that name", instead=f'session.replace("{name}", …)'
            )
        return self._changed({**self.tables, name: table}, name, self.entries.values())

    def replacing(self, name: str, table: Table) -> TableSnapshot:
        """The snapshot with another table under a name: of the same kind, and of the same population."""
        before = self.tables.get(name)
        if before is None:
            raise unknown_table(name, list(self.tables))
        if isinstance(before, PrivateTable) != isinstance(table, PrivateTable):
            raise InvalidParameter(
                f"The table {name!r} is invalid",
                why="a private table is replaced by a private one, and a public table by a public one",
                instead=f'session.remove("{name}") and session.add("{name}", …)',
            )
        others = [entry for entry in self.entries.values() if entry.name != name]
        return self._changed({**self.tables, name: table}, name, others, self.entries.get(name))

    def removing(self, name: str) -> TableSnapshot:
        """The snapshot with one table fewer."""
        if name not in self.tables:
            raise unknown_table(name, list(self.tables))
        return self._changed({each: table for each, table in self.tables.items() if each != name})

    def _changed(
        self, tables: Mapping[str, Table], name: str | None = None, others: Iterable[Entry] = (), before: Entry | None = None
    ) -> TableSnapshot:
        found = TableSnapshot({}, self._ledger, self._random, self._stock, self._kin)
        found.tables = MappingProxyType(dict(tables))
        found._public = {each: table for each, table in tables.items() if isinstance(table, PublicTable)}
        found.entries = {each: entry for each, entry in self.entries.items() if each in tables and each != name}
        if name is not None:
            found._enter(name, tables[name], others, before)
            found.entries = {each: found.entries[each] for each in tables if each in found.entries}  # in their order
        return found

    def _enter(self, name: str, table: Table, others: Iterable[Entry], before: Entry | None = None) -> None:
        if not isinstance(name, str) or not name or "\0" in name:
            raise InvalidParameter(f"The table name {name!r} is invalid", why="it is not a name", instead='"people"')
        if isinstance(table, PrivateTable):
            entry = self.entries[name] = self._entry(name, table, list(others), before)
            for each in (table, getattr(table.source, "origin", None)):
                self._kin.note(each, entry.population)
        elif not isinstance(table, PublicTable):
            raise InvalidParameter(
                f"The table {name!r} is invalid",
                why=f"it is a {type(table).__name__}",
                instead="cl.PrivateTable(source, columns={…})",
            )

    @property
    def _prepared(self) -> dict[str, Prepared]:
        return self._stock.prepared()

    @property
    def populations(self) -> list[str]:
        """Each population once, in the order of the tables."""
        return list(dict.fromkeys(entry.population for entry in self.entries.values()))

    def open(self, budget: Guarantee | Mapping[str, Guarantee] | None, *, who: str, names: Collection[str] | None = None) -> None:
        """Open the populations of all tables, or of the named ones, in the ledger, and write down which sources are their
        people's."""
        for entry in [each for each in self.entries.values() if names is None or each.name in names]:
            given = budget.get(entry.population) if isinstance(budget, Mapping) else budget
            if given is None and entry.population not in self._ledger.populations():
                raise InvalidParameter(
                    f"The population {entry.population!r} is invalid",
                    why="it has no budget yet, and a budget is declared, never assumed",
                    instead=f'cl.Session({{"{entry.name}": …}}, budget=cl.PureDP(1))',
                )
            self._ledger.open(entry.population, given, who=who)
            self._ledger.bind(entry.marks.own, entry.population, who=who)

    def entry(self, name: str) -> Entry:
        """The private table of that name."""
        if name in self.entries:
            return self.entries[name]
        raise unknown_table(name, list(self.entries))

    def asked(self, name: str) -> Entry:
        """The private table of that name, where it can be asked alone.

        One whose units are keys of another table protects these, and not yet the people behind them, until it is joined along
        them.
        """
        entry = self.entry(name)
        through = entry.declaration.through
        if through is not None:
            raise UnsupportedQuery(
                f"The table {name!r} alone is not supported",
                why=f"its rows belong to keys of {through!r}, and whose these are is said there",
                instead="session.sql(…), which joins it by itself, or KeyJoined(left=…, right=…, …)",
            )
        return entry

    def _counts_in_rho(self, population: str) -> bool:
        """Whether its budget does: that never changes, however far the budget is raised."""
        known = self._in_rho.get(population)
        if known is None:
            known = self._in_rho[population] = measure_of(self._ledger.budget(population)) == "zcdp"
        return known

    def shape(self, question: Question) -> Shape:
        """The shape of a question about one of the tables."""
        if not isinstance(question, Question):
            raise InvalidParameter(
                "The query is invalid",
                why=f"it is a {type(question).__name__}",
                instead=f'Question(table="{next(iter(self.tables), "…")}", statistics=(Count(),))',
            )
        if isinstance(question.table, Base):
            question = replace(question, table=question.table.name)
        subject = self.subject(question.table)
        gaussian = self._counts_in_rho(subject.population)
        for other in subject.also:
            if self._counts_in_rho(other) != gaussian:
                raise UnsupportedQuery(
                    f"A query about {table_name(question.table)!r} is not supported",
                    why=f"the budgets of {subject.population!r} and {other!r} count differently, in ε and in ρ",
                    instead="budgets of one kind",
                )
        key = None
        if isinstance(question.table, str) and not question.by and question.where is not None:
            key = (question.table, repr(question.statistics), question.hidden, gaussian)
            known = self._shapes.get(key)
            if known is not None:
                return redirected(known, question)
        shape = shape_of(
            question,
            subject.declaration,
            population=subject.population,
            also=subject.also,
            version=subject.version,
            fingerprint=subject.fingerprint,
            gaussian=gaussian,
        )
        if key is not None:
            if len(self._shapes) >= _MOST_SHAPES:
                self._shapes.clear()
            self._shapes[key] = shape
        return shape

    def subject(self, table: str | Relation) -> Subject:
        """What is known of a table or of a relation over several; these must be about the same people, since joins are legal
        only inside one population (promise 6)."""
        if isinstance(table, str):
            return self.asked(table)
        if table.through is not None:
            self.asked(table.bases()[0])
            raise UnsupportedQuery(
                "The relation is not supported",
                why=f"its rows belong to keys of {table.through!r}, and whose these are is said there",
                instead="KeyJoined(left=…, right=…, …)",
            )
        entries = [self.entry(name) for name in table.bases()]
        populations = list(dict.fromkeys(entry.population for entry in entries))
        if len(populations) > 1:
            raise UnsupportedQuery(
                f"A query about {' and '.join(table.bases())} together is not supported",
                why=f"their rows are of different populations ({', '.join(populations)}), whose budgets are apart",
                instead=f'population="{populations[0]}" in each cl.PrivateTable',
            )
        for entry, base in zip(entries, table.tables().values(), strict=True):
            if base is not entry.declaration:
                raise InvalidParameter(
                    f"A relation over {entry.name!r} is invalid",
                    why="it was made of another declaration than the session's",
                    instead="session.tables",
                )
        canonical = json.dumps(
            [[entry.fingerprint, entry.version] for entry in entries] + [table.describe()], sort_keys=True, default=str
        )
        return Subject(
            declaration=table,
            population=populations[0],
            also=tuple(dict.fromkeys(other for entry in entries for other in entry.also)),
            version=" ".join(dict.fromkeys(entry.version for entry in entries)),
            fingerprint=hashlib.sha256(canonical.encode()).hexdigest(),
        )

    def rows_of(self, table: str | Relation) -> Answering:
        """The prepared rows that a question reads; those of a relation are put together from the tables' when it is asked."""
        if isinstance(table, str):
            return self.prepare(table)
        for name in table.bases():
            self.prepare(name)
        return self._stock.related(table, {name: self.entry(name) for name in table.bases()}, self._public)

    def prepare(self, name: str) -> Prepared:
        """The prepared rows of a table, made when they are first needed; refused where they come from elsewhere by now."""
        entry = self.entry(name)
        rows = self._stock.rows(entry)
        if rows not in self._compared:
            self._compare(entry)
            if rows.materialised:
                self._compared.add(rows)
        return rows

    def _compare(self, entry: Entry) -> None:
        """See that the rows of a table are still its population's: what they come from by now and did not at first (a partition,
        another table under a view, a file that was written again) is bound to it too, and refused where it is another's."""
        for population, marks in self._check_made_of(entry.name, entry.declaration).items():
            self._ledger.bind(marks.own, population, who="session")
        new = marks_of(entry.declaration.source, self._ledger) - entry.marks
        others = set(self._ledger.bound_to(new.own).values()) - {entry.population}
        if entry.declaration.source.part:  # all parts of a table are cut from one: as a whole it is the first part's
            wholes = set(self._ledger.bound_to(entry.marks.whole | new.whole).values())
            others |= wholes if len(wholes) > 1 else set()
            for population in wholes if len(wholes) == 1 else ():
                self._ledger.bind(new.whole, population, who="session")
        if others:
            raise SharedRows(
                f"The table {entry.name!r} was refused",
                others,
                entry.marks.whole | new.whole,
                why="what it reads has changed since it was opened, and part of that belongs to another population's budget",
                instead="ask the table's owner, who finds out by opening it again",
            )
        self._ledger.bind(new.own, entry.population, who="session")

    def _check_made_of(self, name: str, table: PrivateTable) -> dict[str, Marks]:
        """The marks of the tables that a table is made of: whoever is charged for their rows is whose these rows are."""
        found = {}
        for population, part in table.source.made_of.items():
            found[population] = marks = marks_of(part.source, self._ledger)
            known = {
                *self._ledger.bound_to(marks.own).values(),
                self._kin.population(part),
                self._kin.population(part.source.origin),
            }
            if known - {None, population}:
                raise InvalidParameter(
                    f"The table {name!r} is invalid",
                    why="rows that it is made of belong to another population's budget than is charged for them",
                    instead="the same tables, each with the population whose its rows are",
                )
        return found

    def slow(self, table: str | Relation) -> list[str]:
        """Those of a question's tables whose rows are known to be held by views of a database that could not be written to."""
        names = [table] if isinstance(table, str) else list(table.bases())
        known = {name: self._stock.known(self.entries[name]) for name in names if name in self.entries}
        return [name for name, prepared in known.items() if prepared is not None and not prepared.materialised]

    def _entry(self, name: str, table: PrivateTable, others: Collection[Entry], before: Entry | None) -> Entry:
        self._check_made_of(name, table)
        identity, state, marks = table.source.identity(), table.source.state(), marks_of(table.source, self._ledger)
        twin = next((other for other in others if _same_object(other.declaration, table)), None)
        kin = [None if each is None else each.population for each in (before, twin)]
        kin += [self._kin.population(each) for each in (table, getattr(table.source, "origin", None))]
        kin += [other.population for other in others if other.marks.own & marks.own]
        known = [*sorted(set(self._ledger.bound_to(marks.own).values())), *kin]
        population = one_population(name, table, [each for each in known if each is not None], marks)
        place = identity if identity is not None else twin.name if twin is not None else name
        version = table.version
        if version is None and identity is not None and state is not None:
            version = self._ledger.derive("version", identity, state).hex()[:16]
        if version is None:
            version = twin.version if twin is not None else self._random.bytes(8).hex()
        declared = {part: value for part, value in table.describe().items() if part not in ("size", "version", "population")}
        canonical = json.dumps([place, declared], sort_keys=True, default=str)
        return Entry(
            name=name,
            declaration=table,
            population=population,
            also=tuple(each for each in table.source.made_of if each != population),
            version=version,
            fingerprint=hashlib.sha256(canonical.encode()).hexdigest(),
            secret=self._ledger.derive("order", population, place, version).hex(),
            marks=marks,
        )


def unknown_table(name: str, known: Sequence[str]) -> UnknownTable:
    """The refusal of a table that the session doesn't know: in the same words whether there is none, or none to be seen.

    >>> print(unknown_table("peple", ["people"]))
    The table 'peple' is unknown: the session's private tables are people.
      Instead: "people"
    """
    return UnknownTable(
        f"The table {name!r} is unknown",
        why=f"the session's private tables are {', '.join(known) or 'none'}",
        instead=f'"{nearest(name, known, "people")}"',
    )


def _same_object(one: PrivateTable, other: PrivateTable) -> bool:
    if one is other:
        return True
    mine, theirs = getattr(one.source, "origin", None), getattr(other.source, "origin", None)
    return mine is not None and mine is theirs


class SourceIdentities:
    """Whose people a table in memory holds, remembered for as long as the object lives.

    A table that was removed and comes again under another name is the same people still, and keeps what they have spent (promise
    6). Files and database tables are known again by the ledger; an object in memory by being the same object. It is held weakly,
    since nothing that remembers may keep rows; a plain dictionary cannot be held so, and is known by its `PrivateTable` alone.

    >>> class Frame:
    ...     pass
    >>> frame, kin = Frame(), SourceIdentities()
    >>> kin.note(frame, "patients")
    >>> kin.population(frame), kin.population(Frame())
    ('patients', None)
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[ref[Any], str]] = {}

    def note(self, given: Any, population: str) -> None:
        """Remember an object, if it can be held weakly."""
        key, known = id(given), self._known

        def forget(gone: ref[Any]) -> None:
            if known.get(key, (None, ""))[0] is gone:
                del known[key]

        try:
            known[key] = ref(given, forget), population
        except TypeError:  # a dictionary, a list
            return

    def population(self, given: Any) -> str | None:
        """What is remembered of an object."""
        held, population = self._known.get(id(given), (None, None))
        return population if held is not None and held() is given else None
