"""What an engine is: it prepares a table once and then answers aggregations over the prepared rows.

Exact values come out of here, so only a session may call it (promise 1). An engine's failure becomes an `EngineError` with a
fixed text; what the engine itself said may hold a row, and is not kept (`guard.py`).
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from cloister.errors import EngineError
from cloister.noise import Random
from cloister.tables.engines.abilities import Abilities
from cloister.tables.engines.compiler import RELATION, CompiledQuery, Declared, Layout, compile_aggregation, compile_rows
from cloister.tables.engines.guard import guarded
from cloister.tables.engines.ibis_compilers import load
from cloister.tables.engines.noised import Noised, NoisedRequest, exact_integers, noised_groups
from cloister.tables.engines.request import Aggregation, Groups, joined, size_of
from cloister.tables.engines.row_sums import FeatureRows, Fit
from cloister.tables.engines.workspace import Room, Workspace
from cloister.tables.expression.expressions import Expression
from cloister.tables.expression.scope import filled, holds_markers

if TYPE_CHECKING:
    from cloister.tables.declaring.table import PrivateTable, PublicTable
    from cloister.tables.relations.derived import Relation
    from cloister.tables.relations.public import PublicCodes

_MOST_PUBLIC = 512
"""Public tables, in as many forms as questions look up: of more the oldest goes, or who asks for ever more fills the memory."""
_MOST_PLANS = 512
PIECE = 16_384
"""Rows that are fetched at a time."""

Result = TypeVar("Result")
Turn: TypeAlias = threading.Semaphore
Compiled: TypeAlias = tuple[Any, ...]
"""What an engine has made of a request before its charge: here a plan for each aggregation."""


@dataclass(frozen=True, slots=True)
class ColumnReport:
    """For the owner only: how many values of a column were given, became NULL, were moved to a bound; and how many of a
    whole file look like 2.000, and are read as two, since semicolons stand between fields that may have decimals."""

    given: int
    nulled: int
    clamped: int
    doubtful: int = 0


@dataclass(frozen=True, slots=True)
class UnitsReport:
    """For the owner only: how many different values name the rows of a table, and how many rows the fullest of them has."""

    units: int
    fullest: int


@dataclass(frozen=True, slots=True)
class PreparationReport:
    """For the owner only: exact numbers about the rows. Not differentially private, never shown to an analyst.

    >>> PreparationReport(rows=3, rows_without_unit=0, units_over_cap=1, rows_over_cap=1, columns={}).units_over_cap
    1
    """

    rows: int
    rows_without_unit: int
    units_over_cap: int
    rows_over_cap: int
    columns: dict[str, ColumnReport]
    rows_malformed: int = 0
    """Lines of a CSV file that are no rows: unbalanced quotes, too few or too many fields, not UTF-8, too long."""
    rows_before: int = 0
    """Of a table of a span of days (`during=`), what the source holds of earlier days: no rows of this table."""
    rows_after: int = 0
    """And of later days."""
    rows_undated: int = 0
    """And on no day: the date is missing, or is none."""
    units: dict[str, UnitsReport] = field(default_factory=dict)
    """By the column that says whose row it is, and by each identifier: as the rows were given, before any cap."""

    @property
    def left_out(self) -> dict[str, int]:
        """How many rows of this table's days no answer speaks of, by why."""
        return {"malformed": self.rows_malformed, "without_person": self.rows_without_unit, "over_cap": self.rows_over_cap}


@dataclass(frozen=True, slots=True)
class Offenders:
    """For the owner only: values of a column that do not fit its declaration, cut short, each with how often it is there.

    >>> Offenders.of([(0, "n/a", 3), (1, "250", 1)]).clamped
    (('250', 1),)
    """

    nulled: tuple[tuple[str, int], ...] = ()
    clamped: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Any]) -> Offenders:
        """From the rows of `offenders_sql`."""
        told = [(int(what), str(value), int(count)) for what, value, count in rows]
        return cls(*(tuple((value, count) for what, value, count in told if what == kind) for kind in (0, 1)))


class Engine(Protocol):
    """Prepares tables whose source it holds. Its source makes it (`Source.make_engine`)."""

    name: str

    @property
    def abilities(self) -> Abilities:
        """What its tables can be asked."""

    def prepare(self, table: PrivateTable, *, workspace: Workspace, secret: str | None = None) -> Prepared:
        """The prepared rows of a table."""


class Answering(ABC):
    """Rows in codes that exact questions are put to: a prepared table, or a relation made of some."""

    elsewhere: ClassVar[bool] = False
    """Whether others hold the rows, and charge for them too."""
    layout: Layout
    declared: Declared
    """What is asked about."""
    workspace: Workspace
    """What may be taken of the machine."""

    @property
    @abstractmethod
    def dialect(self) -> str:
        """The engine's SQL, as Ibis calls it."""

    def aggregate(self, aggregation: Aggregation, plan: CompiledQuery | None = None) -> Groups:
        """Exact aggregates of the groups that are present. Refusals come before any row is read; failures have a fixed text.
        `plan` is what `plan` gave for the same aggregation before."""
        plan = self.plan(aggregation) if plan is None else plan
        return self._reading(lambda: _groups(aggregation, plan, self._fetch(plan)))

    def each(self, aggregation: Aggregation, plan: CompiledQuery | None, take: Callable[[Groups, Room], None]) -> None:
        """As `aggregate`, piece by piece: for groups of which nobody can say how many there are. Each is in one piece alone.

        `take` says to the room how much it keeps of a piece.
        """
        plan = self.plan(aggregation) if plan is None else plan
        room = self.workspace.room()

        def read() -> None:
            with closing(self._stream(plan)) as pieces:
                for columns in pieces:
                    take(_groups(aggregation, plan, columns), room)

        self._reading(read)

    def compiled(self, request: NoisedRequest) -> Compiled:
        """What `noised` runs, made before the charge: what can't be compiled is refused here."""
        return tuple([self.plan(aggregation) for aggregation in request.asked])

    def noised(self, request: NoisedRequest, compiled: Compiled, random: Random) -> Noised:
        """The integers of a request with noise, under its charge. `compiled` is what `compiled` gave for it.

        Here: exact aggregates of all rows, and then noise from `random`. An engine of several parts overrides it: no exact
        integer of all rows exists there.
        """
        if request.cells is None:
            aggregation, plan = request.aggregations[0], compiled[0]
            return noised_groups(request, lambda take: self.each(aggregation, plan, take), random)
        found = [self.aggregate(aggregation, plan) for aggregation, plan in zip(request.asked, compiled, strict=True)]
        exact = exact_integers(request, found, self.features)
        values, laws = {}, {}
        for integers in request.integers:
            law = laws[integers.name] = integers.law
            values[integers.name] = np.asarray(law.release(exact[integers.name], random=random))
        return Noised(values, laws)

    def features(self, fit: Fit) -> FeatureRows:
        """The rows, as a descent sees them."""
        wanted = [name for name, _ in fit.features]
        return FeatureRows.of(fit, self.declared.columns, self.rows([*wanted, fit.target]))

    def turn(self) -> Turn | None:
        """Where an engine can't work on any number of questions at once, whoever asks waits for this, before the charge."""
        return None

    def plan(self, aggregation: Aggregation) -> CompiledQuery:
        """The compiled SQL; kept, so that questions that differ only in the numbers of their conditions are checked and compiled
        once. What a condition may not say is refused each time.

        A request with no cap of its own gets the declared one: with a unit, no question reads more rows of a person than it says.
        """
        if aggregation.max_rows is None and self.declared.max_rows is not None:
            aggregation = replace(aggregation, max_rows=self.declared.max_rows)
        shape, numbers = self.layout.shape(aggregation.where, self.dialect)
        key = ("aggregate", shape, aggregation.keys, aggregation.aggregates, aggregation.max_rows, aggregation.missing)
        plan = self._planned(key, lambda: compile_aggregation(aggregation, self.layout, self.dialect, markers=True))
        if not holds_markers(plan.sql, len(numbers)):
            return compile_aggregation(aggregation, self.layout, self.dialect)
        return CompiledQuery(filled(plan.sql, numbers), plan.reads, plan.dense, plan.alone) if numbers else plan

    def rows(
        self, columns: Sequence[str], *, where: Expression | None = None, max_rows: int | None = None, unit: bool = False
    ) -> dict[str, np.ndarray[Any, Any]]:
        """The rows after the cap, in no promised order: codes with `null_code` for NULL, text as text with None.

        With `unit=True` also "unit": numbers 0, 1, … that say which rows are one unit's (each row its own where there is no
        unit).
        """
        cap = max_rows if max_rows is not None else self.declared.max_rows
        wanted = tuple(columns)
        by_unit = unit and self.layout.unit
        plan = self._planned(
            ("rows", wanted, where, cap, by_unit),
            lambda: compile_rows(wanted, self.layout, self.dialect, where=where, max_rows=cap, unit=by_unit),
        )
        return self._reading(lambda: self._read(plan, wanted, unit=unit, by_unit=by_unit))

    def _read(
        self, plan: CompiledQuery, wanted: tuple[str, ...], *, unit: bool, by_unit: bool
    ) -> dict[str, np.ndarray[Any, Any]]:
        room, pieces = self.workspace.room(), []
        with closing(self._stream(plan)) as stream:
            for columns in stream:
                pieces.append([_as_numpy(column, how) for column, how in zip(columns, plan.reads, strict=True)])
                room.take(sum(size_of(column) for column in pieces[-1]))
        found = [joined(parts) for parts in zip(*pieces, strict=True)]
        read = dict(zip(wanted, found, strict=False))
        if unit:
            length = len(found[0]) if found else 0
            read["unit"] = _numbered(found[-1]) if by_unit else np.arange(length, dtype=np.int64)
        return read

    def _stream(self, plan: CompiledQuery) -> Generator[list[Any]]:
        """Runs a plan; the result by columns, in pieces where memory is bounded. There is at least one."""
        yield self._fetch(plan)

    @abstractmethod
    def cancel(self, thread: int | None = None) -> None:
        """Stops what is running now, or only what that thread asked for; it ends in an `EngineError`."""

    @abstractmethod
    def _fetch(self, plan: CompiledQuery) -> list[Any]:
        """Runs a plan; the result by columns."""

    @abstractmethod
    def _planned(self, shape: Hashable, build: Callable[[], CompiledQuery]) -> CompiledQuery:
        """A plan that was kept, or a new one."""

    @abstractmethod
    def _reading(self, work: Callable[[], Result]) -> Result:
        """The result of work that reads rows, with every failure in a fixed text."""


class Site(NamedTuple):
    """Where rows stand for the SQL of an engine: a name, in a schema or not; or a query to put before under that name."""

    name: str
    schema: str | None = None
    query: str | None = None


class Prepared(Answering):
    """The prepared rows of one version of a table, as sensitive as the source. Close it to remove them."""

    dialect: ClassVar[str] = ""
    lasts: ClassVar[bool] = True
    """Whether the prepared rows stay while this process does; else `stands` is asked before each question."""

    def __init__(self, declaration: PrivateTable, *, materialised: bool, workspace: Workspace | None = None) -> None:
        self.declaration = self.declared = declaration
        self.workspace = workspace or Workspace.of()
        self.version = declaration.version if declaration.version is not None else fresh_token(16)
        self.materialised = materialised
        self.layout = Layout(declaration.columns, declaration.unit is not None)
        self._plans: OrderedDict[Hashable, CompiledQuery] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False
        self._report: PreparationReport | None = None
        self._sites: dict[Hashable, Site] = {}
        self._placing = threading.RLock()
        self._hosts: weakref.WeakSet[Prepared] = weakref.WeakSet()

    def beside(self, other: Prepared) -> Site | None:
        """Where the rows of another table stand for this one's engine, brought there if need be; None where it cannot reach them.

        Once for each table; removed when either is closed.
        """
        if other is self:
            return Site(RELATION)
        with self._placing:
            if other not in self._sites:
                site = self._reading(lambda: other._reading(lambda: self._bring(other)))
                if site is None:
                    return None
                self._sites[other] = site
                other._hosts.add(self)
            return self._sites[other]

    def beside_public(self, codes: PublicCodes) -> Site:
        """Where public rows stand for this table's engine; brought there once, removed at close, or after many others."""
        with self._placing:
            if codes.digest not in self._sites:
                public = [key for key in self._sites if isinstance(key, str)]
                if len(public) >= _MOST_PUBLIC:
                    oldest = self._sites.pop(public[0])
                    guarded("The table could not be closed", lambda: self._remove(oldest))
                self._sites[codes.digest] = self._reading(lambda: self._publish(codes))
            return self._sites[codes.digest]

    def _leave(self, other: Prepared) -> None:
        with self._placing:
            site = self._sites.pop(other, None)
            if site is not None and not self._closed:
                guarded("The table could not be closed", lambda: self._remove(site))

    def related(
        self, relation: Relation, prepared: Mapping[str, Prepared], public: Mapping[str, PublicTable] | None
    ) -> Answering | None:
        """A relation over tables of this engine, where it is not answered by one SQL over all rows: an engine of several parts
        answers it in each. None: by SQL (`related.py`)."""
        return None

    def owner_report(self) -> PreparationReport:
        """What preparation nulled, clamped and capped: for the owner only; reads the source once, the first time."""
        if self._report is None:
            self._report = self._reading(self._owner_report)
        return self._report

    def owner_offenders(self) -> dict[str, Offenders]:
        """By column, the commonest values that do not fit its declaration: for the owner only, as sensitive as the source. A
        column in which every value fits is not in it."""
        wanted = [name for name, each in self.owner_report().columns.items() if each.nulled or each.clamped]
        found = self._reading(lambda: self._owner_offenders(wanted)) if wanted else {}
        return {name: Offenders.of(rows) for name, rows in found.items()}

    def stands(self) -> bool:
        """Whether the prepared rows are still there."""
        return True

    def rest(self) -> None:
        """Lets go of what only makes the next question quicker: threads, copies. The rows stay."""

    def close(self) -> None:
        """Removes the prepared rows. Closing twice is harmless."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        for host in list(self._hosts):
            host._leave(self)
        guarded("The table could not be closed", self._close)

    @abstractmethod
    def _bring(self, other: Prepared) -> Site | None:
        """Makes another table's rows, up to their cap, visible to this one's SQL."""

    @abstractmethod
    def _publish(self, codes: PublicCodes) -> Site:
        """Makes public rows visible to this table's SQL."""

    @abstractmethod
    def _remove(self, site: Site) -> None:
        """Undoes `_bring`."""

    @abstractmethod
    def _owner_report(self) -> PreparationReport:
        """The numbers of the report."""

    @abstractmethod
    def _owner_offenders(self, names: list[str]) -> dict[str, list[Any]]:
        """What `offenders_sql` finds in each of these columns."""

    @abstractmethod
    def _close(self) -> None:
        """Lets go of everything."""

    def _planned(self, shape: Hashable, build: Callable[[], CompiledQuery]) -> CompiledQuery:
        # 1, 1.0 and True are equal and hash alike, and mean different things in a condition
        key = (shape, repr(shape))
        with self._lock:
            plan = self._plans.get(key)
            if plan is not None:
                self._plans.move_to_end(key)
                return plan
        load(self.dialect)
        plan = build()
        with self._lock:
            self._plans[key] = plan
            while len(self._plans) > _MOST_PLANS:
                self._plans.popitem(last=False)
        return plan

    def _reading(self, work: Callable[[], Result]) -> Result:
        if self._closed:
            raise EngineError("The table is closed", why="its prepared rows were removed", instead="a new session")
        return guarded("The engine could not answer", work)

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def engine_for(table: PrivateTable | PublicTable) -> Engine:
    """The engine that holds a table's source.

    >>> from cloister.tables import Integer
    >>> from cloister.tables import PrivateTable
    >>> engine_for(PrivateTable({"age": [39]}, columns={"age": Integer(0, 120)})).name
    'duckdb'
    """
    return table.source.make_engine()


def prepare(
    table: PrivateTable,
    *,
    temporary_directory: str | Path | None = None,
    secret: str | None = None,
    workspace: Workspace | None = None,
) -> Prepared:
    """Prepares a table on the engine that holds its source.

    `workspace` is what it may take of the machine; None is what the environment says, with a folder to spill into where one is
    named.

    `secret` is the secret of the version: it keys the order of the rows within a unit, so the same rows prepared twice with the
    same secret keep the same rows of each unit. Any letters and digits are taken; only 32 or more hexadecimal digits that nobody
    can guess keep it secret. None draws a fresh one. It must not be shown to anyone who may ask questions.

    >>> from cloister.tables import Integer
    >>> from cloister.tables import PrivateTable
    >>> with prepare(PrivateTable({"age": [39, 51, None, 400]}, columns={"age": Integer(0, 120)}), secret="0") as people:
    ...     people.aggregate(Aggregation(people)).values["rows"].tolist()
    [4]
    """
    return engine_for(table).prepare(table, workspace=workspace or Workspace.of(folder=temporary_directory), secret=secret)


def fresh_secret(secret: str | None) -> str:
    """The secret of the version, which keys the order within a unit: drawn from the secure source, or the caller's own."""
    if secret is None:
        return fresh_token(16)
    if not isinstance(secret, str) or not (secret.isascii() and secret.isalnum()):
        raise EngineError("The secret is not supported", why="it must be letters and digits", instead='secret="00ff"')
    return secret


def fresh_token(length: int) -> str:
    from cloister.noise.random import default_random

    return default_random().bytes(length).hex()


def _numbered(units: Any) -> np.ndarray[Any, Any]:
    """0, 1, … by unit. Each text ends in a mark of ours, since numpy cuts characters of code 0 off the end of a text."""
    marked = np.asarray([f"{unit}." for unit in np.asarray(units, dtype=object).tolist()], dtype=str)
    return np.unique(marked, return_inverse=True)[1].astype(np.int64)


def in_columns(rows: Sequence[Sequence[Any]], plan: CompiledQuery) -> list[Any]:
    """The rows of a plan's result, column by column."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in plan.reads]


def in_pieces(fetch: Callable[[int], Sequence[Sequence[Any]]], plan: CompiledQuery) -> Generator[list[Any]]:
    """The rows of a plan's result, column by column, some at a time and at least once; `fetch` hands out at most so many more."""
    rows = fetch(PIECE)
    while True:
        yield in_columns(rows, plan)
        rows = fetch(PIECE)
        if not rows:
            return


def _groups(aggregation: Aggregation, plan: CompiledQuery, columns: Sequence[Any]) -> Groups:
    read = [_as_numpy(column, how) for column, how in zip(columns, plan.reads, strict=True)]
    keys, values = tuple(read[: len(aggregation.keys)]), read[len(aggregation.keys) :]
    return Groups(keys, {each.name: value for each, value in zip(aggregation.aggregates, values, strict=True)})


def _as_numpy(column: Any, how: str) -> np.ndarray[Any, Any]:
    if how == "text":
        items = column.tolist() if isinstance(column, np.ndarray) else column  # a masked array gives None where it is masked
        texts = np.empty(len(items), dtype=object)
        texts[:] = [None if item is None else str(item) for item in items]
        return texts
    if how == "wide":
        numbers = [int(item) for item in column]
        if all(-(2**63) <= number < 2**63 for number in numbers):
            return np.asarray(numbers, dtype=np.int64)
        return np.asarray(numbers, dtype=object)
    return np.asarray(column).astype(np.int64, copy=False)
