"""The one door: what can be asked of a session, and who asks.

Exact values computed from private rows exist in calls made through `sealed`, between the reservation and the noise: in
`buying.py` and `running.py`. What leaves is a `Release`, and it leaves after its charge and itself were committed in one
transaction. Every way in goes through `Seen.applied`, so that whoever asks on somebody's behalf sees what that person may see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from cloister.errors import AccessDenied, CloisterError, InvalidParameter, LedgerError, UnsupportedQuery
from cloister.ledger import Ledger
from cloister.noise import Random, default_random
from cloister.privacy import Exact, Guarantee
from cloister.session.execution.answer import assembled, refined
from cloister.session.execution.refinement import foreseen
from cloister.session.execution.running import Runner
from cloister.session.planning.afford import Affordable, affordable
from cloister.session.planning.plan import Plan
from cloister.session.questions.limits import checked_limit
from cloister.session.questions.question import Count, Question
from cloister.session.questions.spend import Spending
from cloister.session.questions.touched import Touched, touched_by
from cloister.session.releases.release import Release, widest_margin
from cloister.session.state.row_access import RowAccess
from cloister.session.state.table_registry import TableRegistry, pinned
from cloister.session.state.table_snapshot import Table
from cloister.session.state.view import Seen, View, view_of
from cloister.tables import Base, Expression, Prepared, Workspace

if TYPE_CHECKING:
    from cloister.session.planning.bias import Bias
    from cloister.session.share import WithinShare


class Door(Runner):
    """Tables, their populations' budgets in a ledger, and the only way to an answer.

    >>> from cloister.session.examples import small_door
    >>> from cloister.session import Count
    >>> with small_door() as door:
    ...     answer = door.measure(Question(table="people", by=("sex",), statistics=(Count(),)), spend="0.5")
    ...     answer.num_rows, str(door.spent), str(door.remaining)
    (2, 'ε = 0.5', 'ε = 0.5')
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        budget: Guarantee | Mapping[str, Guarantee] | None = None,
        ledger: Ledger | str | Path | None = None,
        *,
        who: str = "owner",
        random: Random | None = None,
        progress: Callable[[str], None] | None = None,
        time_limit: float | None = None,
        memory_limit: str | None = None,
        temporary_directory: str | Path | None = None,
    ) -> None:
        """`budget` is each population's, or a mapping from population to budget; None takes what the ledger already holds.

        `progress` is told the name of each stage of a question, and nothing of what is found there. `time_limit` is how many
        seconds the engine may work on one question; None lets it follow from the plan. `memory_limit` ("2GiB") bounds the
        engine of each table and what is copied out of it; what does not fit is spilled into `temporary_directory`.
        """
        if not isinstance(tables, Mapping) or (not tables and ledger is None):
            raise InvalidParameter(
                "A session without tables is invalid",
                why="there is nothing to ask about",
                instead='cl.Session({"people": people}, …)',
            )
        limit, workspace = checked_limit(time_limit), Workspace.of(memory_limit, temporary_directory)
        random = random or default_random()
        owned = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        try:
            if random.marked and self.ledger.durable:
                raise LedgerError(
                    "The session was refused",
                    why="its noise would come from a generator made for tests, which can be foretold, and its ledger is durable",
                    instead="a session without random=, or without ledger=",
                )
            self.house = TableRegistry(tables, self.ledger, random, workspace)
            self.house.open(budget, who=who)
        except CloisterError:
            if owned:
                self.ledger.close()
            raise
        self._enter(who, View(), progress or _silent, limit, owned=owned)

    def _enter(
        self, who: str, view: View, progress: Callable[[str], None], time_limit: float | None, *, owned: bool | None
    ) -> None:
        """`owned` says whether the ledger is closed with this session; None, that the house is not this session's either."""
        self.who, self._view, self._progress, self._time_limit, self._owned = who, view, progress, time_limit, owned
        self._random = self.house.random
        self._asked = {}
        self._through: Seen | None = None

    # ── tables and persons ───────────────────────────────────────────────────────────────────────

    @property
    def seen(self) -> Seen:
        """The tables that this session sees: as they are now, or as they were when the question began that is being asked."""
        registry, seen = self.house.registry, self._through
        if seen is None or seen.registry is not registry:
            seen = self._through = Seen(self._view, registry, self.house)
        return seen

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, as they may be seen."""
        return self.seen.tables

    def declared(self, table: str) -> Table:
        """The declaration of a table; one that may not be seen is refused in the words for one that does not exist."""
        self.seen.check(table)
        return self.tables[table]

    def population_of(self, table: str) -> tuple[str, Guarantee]:
        """The population whose people a private table is about, with its budget."""
        question = self.seen.applied(Question(table=table, statistics=(Count(),)))
        population = self.seen.registry.shape(question).population
        return population, self.ledger.budget(population)

    @property
    def choices(self) -> Random:
        """Where methods take choices from that protect nothing."""
        return self._random

    @property
    def marked(self) -> bool:
        """Whether the noise is drawn from a fixed generator, so that nothing is protected."""
        return self._random.marked

    def on_behalf(
        self,
        who: str,
        *,
        tables: Iterable[str] | None = None,
        rows: Mapping[str, Expression] | None = None,
        columns: Mapping[str, Iterable[str]] | None = None,
        progress: Callable[[str], None] | None = None,
        time_limit: float | None = None,
    ) -> Self:
        """A light session in the same house that asks as somebody else: with a purse and a memory of its own.

        It shares the ledger, the prepared rows and the randomness, and closing it leaves them alone. `tables` are the names that
        the person may see, `rows` a condition on the rows of a table and `columns` those of its columns; what may not be seen is
        refused in the words for what does not exist (`view.py` says why that is as private as the whole). The column that says
        whose row a row is can be joined on and counted, seen or not.

        >>> from cloister.session.examples import small_door
        >>> with small_door() as door:
        ...     ana = door.on_behalf("ana", columns={"people": ["sex"]})
        ...     list(ana.tables["people"].columns), ana.who, ana.ledger is door.ledger
        (['sex'], 'ana', True)
        """
        if not isinstance(who, str) or not who:
            raise InvalidParameter(f"who={who!r} is invalid", why="it names nobody", instead='session.on_behalf("ana")')
        view = self._view
        if tables is not None or rows or columns:
            view = view_of(self.seen, tables, rows or {}, columns or {})
        light = object.__new__(type(self))
        light.house, light.ledger, light._bounds = self.house, self.ledger, self._bounds
        limit = self._time_limit if time_limit is None else checked_limit(time_limit)
        light._enter(who, view, progress or self._progress, limit, owned=None)
        return light

    def through(self, other: Door) -> Self:
        """A light session of this house that sees what another one sees in its own: for the same tables with other rows."""
        light = self.on_behalf(other.who)
        light._view, light._bounds = other._view.within(self._view), other._bounds
        light._about_to_charge = other._about_to_charge
        return light

    def within_share(self, spend: Spending) -> WithinShare:
        """A measurer for a `with` block that spends at most so much of each population, in all that it measures (`share.py`)."""
        from cloister.session.share import WithinShare

        light = self.on_behalf(self.who)
        light._about_to_charge = self._about_to_charge
        return WithinShare(light, self._bounds, spend)

    def add(self, name: str, table: Table, budget: Guarantee | None = None) -> None:
        """One table more; `budget` opens its population where the ledger does not know it yet."""
        self._check_owner(f"Adding {name!r}")
        self.house.add(name, table, budget, who=self.who)

    def replace(self, name: str, table: Table) -> None:
        """New rows, or another declaration, under a name that is there: of the same population, which keeps what it has spent.

        Questions that have begun end on the rows that they began with; these are closed after the last of them.
        """
        self._check_owner(f"Replacing {name!r}")
        self.house.replace(name, table, who=self.who)

    def remove(self, name: str) -> None:
        """One table fewer; what its population has spent stays in the ledger, and counts again when the table comes again."""
        self._check_owner(f"Removing {name!r}")
        self.house.remove(name)

    def prepared(self, table: str) -> Prepared:
        """The prepared table: for its owner, whose report it holds."""
        self._check_owner(f"The prepared rows of {table!r}")
        return self._registry.prepare(table)

    def row_access(self, table: str) -> RowAccess:
        """The rows of a table that can be asked alone, for what leaves without a guarantee: for its owner."""
        self._check_owner(f"The prepared rows of {table!r}")
        self._registry.asked(table)
        return self.house.row_access(table)

    def _check_owner(self, what: str) -> None:
        if self._owned is None:
            raise AccessDenied(
                f"{what} was refused",
                why="this session asks on somebody's behalf, and that is for who holds the tables",
                instead="the session that it was made of",
            )

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    @pinned
    def explain(self, question: Question | Sequence[Question], spend: Spending) -> Plan:
        """What would be measured, with which error, at which cost: spends nothing and reads no row.

        What was bought before is counted in: the cost is what is still to pay, and the error that of all readings together.
        """
        shapes = self._shapes([question] if isinstance(question, Question) else list(question))
        finer = self._finer(shapes[0], spend) if isinstance(question, Question) else None
        plan = (
            self._planned(shapes, spend)[0] if finer is None else foreseen(finer[0], self._repeated([finer[0].finer], finer[1]))
        )
        slow = [
            f"table {name!r} could not be prepared, since its database is read-only: each question works out the cap anew, slower"
            for name in dict.fromkeys(name for shape in shapes for name in self._registry.slow(shape.question.table))
        ]
        return replace(plan, parts=tuple(map(self.seen.worded, plan.parts)), notes=(*plan.notes, *slow))

    @pinned
    def measure(
        self,
        question: Question,
        spend: Spending,
        *,
        purpose: str = "",
        fresh: bool = False,
        within: float | None = None,
        confidence: float = 0.95,
    ) -> Release:
        """The private answer to one question.

        The same question again is answered from the ledger when its stored releases are worth the spend already; a larger spend
        buys the difference, and the readings are combined by inverse variance. A coarser question that follows from a release
        which cost as much, and which this session holds, is read off that release and costs nothing, with the margin that the
        sum of its groups has; with `fresh` it is bought again, and so it is where a margin `within` is wanted at `confidence` and
        that of the sum is wider.
        """
        [shape] = shapes = self._shapes([question])
        finer = None if fresh else self._finer(shape, spend)
        if finer is not None:
            how, history = finer
            release = refined(how, history, who=self.who)
            if within is None or widest_margin(release, confidence) <= within:
                self._debit(self._owed(history, self._spends([how.finer], spend)), how.finer.digest, purpose)
                return self._tied([release], [question])[0]
        plan, history = self._bought(shapes, spend, purpose)
        self._remember(shape)
        return self._tied(assembled(plan, history, who=self.who), [question])[0]

    @pinned
    def measure_all(self, questions: Sequence[Question], spend: Spending, *, purpose: str = "") -> list[Release]:
        """The private answers to several questions that share one spend, split so that the total error is least, under one
        charge.
        """
        shapes = self._shapes(questions)
        plan, history = self._bought(shapes, spend, purpose)
        if len(shapes) == 1:
            self._remember(shapes[0])
        return self._tied(assembled(plan, history, who=self.who), questions)

    @pinned
    def workload_all(self, questions: Sequence[Question], spend: Spending, *, purpose: str = "") -> list[Release]:
        """The private answers to several questions measured together: groupings of the same rows share measurements and agree
        (`workload.py`)."""
        shapes = self._shapes(questions)
        workload = self._workload(questions, shapes)
        plan, history = self._bought(self._measured(workload), spend, purpose, workload.weights)
        from cloister.session.workloads.workload import assembled_workload

        return self._tied(assembled_workload(workload, shapes, plan, history, who=self.who), questions)

    @pinned
    def stored(self, question: Question, spend: Spending | None = None, *, purpose: str = "") -> Release | None:
        """What was bought of a question already, whoever bought it; None where that is nothing, or less than `spend`.

        It never spends of a population. The use of what others paid for debits this person's allotment, as in `measure`; without
        a spend by all that they paid, unless this person was given it before.

        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> question = Question(table="people", statistics=(Count(),))
        >>> with small_door() as door:
        ...     before, answer, after = door.stored(question), door.measure(question, spend="0.5"), door.stored(question)
        ...     before, after.to_pydict() == answer.to_pydict(), door.stored(question, spend="0.6"), str(door.spent)
        (None, True, None, 'ε = 0.5')
        """
        found = self._stored(self._shapes([question]), spend, purpose)
        return None if found is None else self._tied(assembled(*found, who=self.who), [question])[0]

    @pinned
    def stored_workload(
        self, questions: Sequence[Question], spend: Spending | None = None, *, purpose: str = ""
    ) -> list[Release] | None:
        """The same for several questions that `workload_all` measured together."""
        shapes = self._shapes(questions)
        workload = self._workload(questions, shapes)
        found = self._stored(self._measured(workload), spend, purpose, workload.weights)
        from cloister.session.workloads.workload import assembled_workload

        return None if found is None else self._tied(assembled_workload(workload, shapes, *found, who=self.who), questions)

    @pinned
    def explain_workload(self, questions: Sequence[Question], spend: Spending) -> Plan:
        """What `workload_all` would measure, with which error, at which cost: spends nothing and reads no row."""
        shapes = self._shapes(questions)
        workload = self._workload(questions, shapes)
        plan, _ = self._planned(self._measured(workload), spend, workload.weights)
        from cloister.session.workloads.workload import expected_workload

        wanted = expected_workload(workload, shapes, plan, shown=[self.seen.shown(shape) for shape in shapes])
        return replace(plan, parts=tuple(map(self.seen.worded, plan.parts)), wanted=wanted)

    @pinned
    def touched(self, question: Question) -> Touched:
        """Which declared columns of which tables a question reads, and which tables it joins: spends nothing and reads no row.

        It is said of the question as it was asked: what the condition of a view stands on is the owner's, and not named.

        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> with small_door() as door:
        ...     door.touched(Question(table="people", by=("sex",), statistics=(Count(),)))
        <people: sex>
        """
        self._shapes([question])  # what could not be answered is refused
        return touched_by(question)

    @pinned
    def spend_within(self, question: Question, within: float, *, confidence: float = 0.95) -> Guarantee:
        """The least spend for which every count and sum of the question has a margin of at most `within`, counting in what was
        bought before.
        """
        from cloister.session.planning.within import least_spend

        shape = self._shape(question)
        budget = self.ledger.budget(shape.population)
        return least_spend(shape, budget, within, confidence, self._history([shape]))

    @pinned
    def spend_after_pilot(
        self, question: Question, within: float, pilot: Spending, *, confidence: float = 0.95, purpose: str = ""
    ) -> Guarantee:
        """The least spend for which every cell's margin is about `within`, where that depends on private sizes: these are bought
        first, as an answer to the question itself for `pilot`, which counts towards the spend."""
        from cloister.session.planning.within import least_spend_after

        self.measure(question, spend=pilot, purpose=purpose, fresh=True)
        shape = self._shape(question)
        history = self._history([shape])
        if not history.combinable:
            raise UnsupportedQuery(
                "A pilot is not supported",
                why="two releases with undeclared keys show different groups and can't be combined",
                instead='spend="0.1", or declared keys',
            )
        return least_spend_after(shape, self.ledger.budget(shape.population), within, confidence, history)

    @pinned
    def afford(
        self, question: Question | Sequence[Question], spends: Sequence[Exact] | None = None, *, confidence: float = 0.95
    ) -> Affordable:
        """The expected margins of a question over a range of spends, by default parts of what remains: spends nothing."""
        return affordable(lambda spend: Door.explain(self, question, spend), self.remaining, spends, confidence)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Drops the prepared tables and closes the ledger that this session opened; what was spent can still be read.

        A session on somebody's behalf leaves both to the one that it was made of.
        """
        if self._owned is None:
            return
        if self._last is None:
            with suppress(CloisterError):  # a ledger that was closed elsewhere has nothing more to say
                self._last = (self.spent_by, self.remaining_by, self.unbounded)
        self.house.close()
        if self._owned:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        left = self.remaining_by
        marked = dict.fromkeys(self.unbounded, "unbounded (NOT PRIVATE), beside that ")
        spent = ", ".join(
            f"{population!r}: {marked.get(population, '')}{cost}, {left[population]} left"
            for population, cost in self.spent_by.items()
        )
        return f"<{type(self).__name__} {', '.join(self.tables)}; spent of {spent or 'nothing'}>"

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _tied(self, releases: Sequence[Release], questions: Sequence[Question]) -> list[Release]:
        def tied(release: Release, question: Question) -> Release:
            version = release.provenance.version
            return replace(release, buy_bias=lambda spend: self._bias(question, version, spend))

        return [tied(release, question) for release, question in zip(releases, questions, strict=True)]

    @pinned
    def _bias(self, question: Question, version: str, spend: Spending) -> Bias:
        from cloister.session.planning.bias import buy_bias

        asked = self.seen.applied(question).table
        about = self._registry.subject(asked.name if isinstance(asked, Base) else asked)
        if about.version != version:
            raise InvalidParameter(
                "The bias is invalid", why="the rows that this release is about were replaced", instead="the query once more"
            )
        hidden = asked if isinstance(asked, str) and asked in self._view.rows else None
        return buy_bias(self, question, about.declaration, spend, "bias", whole=hidden is None)


def _silent(_: str) -> None:
    """Nobody listens."""
