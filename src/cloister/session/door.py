"""The one door: what can be asked of a session, and who asks.

A door holds an `Analyst`, which never changes, and what is remembered of questions: how the tables are seen now, the last shape,
what was bought. The way of a question is in `buying.py` and `running.py`, functions of the analyst. Exact values computed from
private rows exist there alone, in calls made through `scrubbed`, between the reservation and the noise. What leaves is a
`Release`, and it leaves after its charge and itself were committed in one transaction. Every way in goes through `Seen.applied`,
so that whoever asks on somebody's behalf sees what that person may see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from cloister.errors import AccessDenied, CloisterError, EngineError, InvalidParameter, LedgerError, UnsupportedQuery
from cloister.ledger import Ledger
from cloister.noise import Random, default_random
from cloister.privacy import Exact, Guarantee
from cloister.session.analyst import Analyst, Bounds
from cloister.session.execution.answer import assembled, refined
from cloister.session.execution.buying import bought, given, planned, repeated, stored
from cloister.session.execution.kinds import as_bought
from cloister.session.execution.refinement import Kept, Refinement, foreseen
from cloister.session.execution.run import Outcome, RowMethod, RunPlan
from cloister.session.execution.running import planned_run, run_once
from cloister.session.execution.stepping import Advance, step, stepping_part
from cloister.session.planning.afford import Affordable, affordable
from cloister.session.planning.plan import Part, Plan
from cloister.session.planning.shape import Shape, check_numbers
from cloister.session.questions.limits import checked_limit
from cloister.session.questions.question import Count, Question
from cloister.session.questions.spend import Spend, Spending, amount_of, measure_of
from cloister.session.questions.touched import Touched, touched_by
from cloister.session.releases.release import Release, widest_margin
from cloister.session.state.table_registry import RowAccess, TableRegistry, pinned
from cloister.session.state.table_snapshot import Table
from cloister.session.state.view import Seen, view_of
from cloister.tables import Base, Expression, Prepared, Workspace

if TYPE_CHECKING:
    from cloister.session.execution.history import History
    from cloister.session.planning.bias import Bias
    from cloister.session.share import WithinShare
    from cloister.session.workloads.workload import Workload


class Door:
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
        prepared_tables: int | None = None,
    ) -> None:
        """`budget` is each population's, or a mapping from population to budget; None takes what the ledger already holds.

        `progress` is told the name of each stage of a question, and nothing of what is found there. `time_limit` is how many
        seconds the engine may work on one question; None lets it follow from the plan. `memory_limit` ("2GiB") bounds the
        engine of each table and what is copied out of it; what does not fit is spilled into `temporary_directory`. Of more than
        `prepared_tables`, the table that was not asked for the longest gives back its prepared rows, and is prepared again when
        it is asked; None: all tables keep theirs.
        """
        if not isinstance(tables, Mapping) or (not tables and ledger is None):
            raise InvalidParameter(
                "A session without tables is invalid",
                why="there is nothing to ask about",
                instead='cl.Session({"people": people}, …)',
            )
        limit, workspace = checked_limit(time_limit), Workspace.of(memory_limit, temporary_directory, prepared_tables)
        random = random or default_random()
        owned = not isinstance(ledger, Ledger)
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        try:
            _check_kept(random, book)
            registry = TableRegistry(tables, book, random, workspace)
            registry.open(budget, who=who)
        except CloisterError:
            if owned:
                book.close()
            raise
        progress = progress or (lambda _: None)
        self._hold(Analyst(who=who, registry=registry, ledger=book, progress=progress, time_limit=limit), owned=owned)

    def _hold(self, analyst: Analyst, *, owned: bool | None) -> None:
        """`owned` says whether the ledger is closed with this session; None, that the registry is not this session's either."""
        self._analyst, self._owned = analyst, owned
        self.who, self.registry, self.ledger = analyst.who, analyst.registry, analyst.ledger
        """In whose name it asks, the tables that it shares with others, and where it charges."""
        self._kept = Kept()
        self._seen: Seen | None = None
        self._last_shape: tuple[Seen, Question, Shape] | None = None
        self._balance: tuple[dict[str, Guarantee], dict[str, Guarantee], tuple[str, ...]] | None = None
        """What was said at the end, for when the ledger is closed."""

    def _light(self, analyst: Analyst) -> Self:
        light = object.__new__(type(self))
        light._hold(analyst, owned=None)
        return light

    # ── tables and people ───────────────────────────────────────────────────────────────────────

    @property
    def seen(self) -> Seen:
        """The tables that this session sees: as they are now, or as they were when the question began that is being asked."""
        snapshot, seen = self._analyst.registry.snapshot, self._seen
        if seen is None or seen.snapshot is not snapshot:
            seen = self._seen = Seen(self._analyst.view, snapshot, self.registry)
        return seen

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, as they may be seen."""
        return self.seen.tables

    def declared(self, table: str) -> Table:
        """The declaration of a table; one that may not be seen is refused in the words for one that does not exist."""
        seen = self.seen
        seen.check(table)
        return seen.tables[table]

    def population_of(self, table: str) -> tuple[str, Guarantee]:
        """The population whose people a private table is about, with its budget."""
        question = self.seen.applied(Question(table=table, statistics=(Count(),)))
        population = self.seen.snapshot.shape(question).population
        return population, self.ledger.budget(population)

    @property
    def choices(self) -> Random:
        """Where methods take choices from that protect nothing: the same each time, so that what was interrupted goes on where it
        was, and the same call costs nothing again."""
        random = self.registry.random
        return random if random.marked else Random.derived(self.ledger.derive("choices"))

    @property
    def marked(self) -> bool:
        """Whether the noise is drawn from a fixed generator, so that nothing is protected."""
        return self.registry.random.marked

    # ── budgets ──────────────────────────────────────────────────────────────────────────────────

    @property
    def spent_by(self) -> dict[str, Guarantee]:
        """What has been spent of each population's budget."""
        return self._balance[0] if self._balance else {each: self.ledger.spent(each) for each in self.seen.populations}

    @property
    def spent(self) -> Guarantee:
        """What has been spent; with several populations, of the one that has spent most."""
        return max(_some(self.spent_by), key=amount_of)

    @property
    def remaining_by(self) -> dict[str, Guarantee]:
        """What is left of each population's budget."""
        return self._balance[1] if self._balance else {each: self.ledger.remaining(each) for each in self.seen.populations}

    @property
    def remaining(self) -> Guarantee:
        """What is left; with several populations, of the one that has least."""
        return min(_some(self.remaining_by), key=amount_of)

    @property
    def unbounded(self) -> tuple[str, ...]:
        """The populations of which something left without a guarantee: what is known of those, no number bounds."""
        return self._balance[2] if self._balance else tuple(filter(self.ledger.unbounded, self.seen.populations))

    # ── on behalf of others ──────────────────────────────────────────────────────────────────────

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
        """A light session over the same tables that asks as somebody else: with an account and a memory of its own.

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
        analyst = self._analyst
        view, limit = analyst.view, analyst.time_limit if time_limit is None else checked_limit(time_limit)
        if tables is not None or rows or columns:
            view = view_of(self.seen, tables, rows or {}, columns or {})
        told = progress or analyst.progress
        return self._light(replace(analyst, who=who, view=view, progress=told, time_limit=limit, about_to_charge=None))

    def through(self, other: Door) -> Self:
        """A light session over these tables that sees what another one sees in its own: for the same tables with other rows."""
        theirs, mine = other._analyst, self._analyst
        seen = replace(theirs, view=theirs.view.within(mine.view))
        return self._light(
            replace(seen, registry=mine.registry, ledger=mine.ledger, progress=mine.progress, time_limit=mine.time_limit)
        )

    def charging(self, ledger: Ledger) -> Self:
        """A light session over the same prepared rows that charges another ledger: an audit asks one question thousands of times,
        each time as the first. Only for who holds the tables, since that ledger knows nothing of what was spent in this one."""
        self._check_owner("Another ledger")
        _check_kept(self.registry.random, ledger)
        return self._light(replace(self._analyst, ledger=ledger))

    def keep_within(self, bounds: Bounds) -> None:
        """From here on, charge nothing that passes these bounds: each charge is held against them as it is made.

        >>> from cloister.ledger import Bound
        >>> from cloister.privacy import PureDP
        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> with small_door() as door:
        ...     door.keep_within(Bounds(ceilings={"people": [Bound(most=PureDP("0.4"), why="the ceiling is ε = 0.4")]}))
        ...     door.measure(Question(table="people", statistics=(Count(),)), spend="0.5")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        cloister.errors.BudgetExceeded: A charge of ε = 0.5 to population 'people' was refused: the ceiling is ε = 0.4...
        """
        self._analyst = replace(self._analyst, bounds=bounds)

    def tell_charges(self, told: Callable[[str, Mapping[str, Guarantee]], None]) -> None:
        """From here on, say what is charged (the plan's digest, and its costs by population) right before it is. Where `told`
        raises, nothing is charged. What is answered from the ledger at no cost is not told.

        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> with small_door() as door:
        ...     door.tell_charges(lambda what, costs: print(costs))
        ...     for _ in range(2):
        ...         _ = door.measure(Question(table="people", statistics=(Count(),)), spend="0.5")
        {'people': PureDP(epsilon='0.5')}
        """
        self._analyst = replace(self._analyst, about_to_charge=told)

    def within_share(self, spend: Spending, *, paid: Mapping[str, Guarantee] | None = None) -> WithinShare:
        """A measurer for a `with` block that spends at most so much of each population, in all that it measures (`share.py`).
        `paid`: what of it was charged before, by the attempts of a job that died."""
        from cloister.session.share import WithinShare

        return WithinShare(self._light(self._analyst), self._analyst.bounds, spend, paid or {})

    def add(self, name: str, table: Table, budget: Guarantee | None = None) -> None:
        """One table more; `budget` opens its population where the ledger does not know it yet."""
        self._check_owner(f"Adding {name!r}")
        self.registry.add(name, table, budget, who=self.who)

    def replace(self, name: str, table: Table) -> None:
        """New rows, or another declaration, under a name that is there: of the same population, which keeps what it has spent.

        Questions that have begun end on the rows that they began with; these are closed after the last of them.
        """
        self._check_owner(f"Replacing {name!r}")
        self.registry.replace(name, table, who=self.who)

    def remove(self, name: str) -> None:
        """One table fewer; what its population has spent stays in the ledger, and counts again when the table comes again."""
        self._check_owner(f"Removing {name!r}")
        self.registry.remove(name)

    def prepared(self, table: str) -> Prepared:
        """The prepared table: for its owner, whose report it holds."""
        self._check_owner(f"The prepared rows of {table!r}")
        return self.registry.snapshot.prepare(table)

    def row_access(self, table: str) -> RowAccess:
        """The rows of a table that can be asked alone, for what leaves without a guarantee: for its owner."""
        self._check_owner(f"The prepared rows of {table!r}")
        self.registry.snapshot.asked(table)
        return self.registry.row_access(table)

    def _check_owner(self, what: str) -> None:
        if self._owned is None:
            raise AccessDenied(
                f"{what} was refused",
                why="this session asks on somebody's behalf, and that is for who holds the tables",
                instead="the session that it was made of",
            )

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    @pinned
    def explain(
        self, question: Question | Sequence[Question], spend: Spending, *, shares: Sequence[Fraction] | None = None
    ) -> Plan:
        """What would be measured, with which error, at which cost: spends nothing and reads no row.

        What was bought before is counted in: the cost is what is still to pay, and the error that of all readings together.
        """
        shapes = self._shapes(question if isinstance(question, Sequence) else [question])
        spends = self._analyst.spends(shapes, spend)
        finer = self._finer(shapes[0], spends) if isinstance(question, Question) else None
        if finer is None:
            plan, history = planned(self._analyst, shapes, spends, _checked_shares(shares, shapes))
            plan.check_noise()
            plan = replace(plan, owed=self._analyst.still_owed(history, spends, plan.digest))
        else:
            plan = foreseen(finer[0], repeated(self._analyst, [finer[0].finer], finer[1]))
            plan = replace(plan, owed=self._analyst.still_owed(finer[1], spends, finer[0].finer.digest))
        slow = [
            f"table {name!r} could not be prepared, since its database is read-only: each question finds the cap again, slower"
            for name in dict.fromkeys(name for shape in shapes for name in self.registry.snapshot.slow(shape.question.table))
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
        spends = self._analyst.spends(shapes, spend)
        finer = None if fresh else self._finer(shape, spends)
        if finer is not None:
            how, history = finer
            release = refined(how, history, who=self.who)
            if within is None or widest_margin(release, confidence) <= within:
                self._analyst.charge_share(self._analyst.owed(history, spends), how.finer.digest, purpose)
                return self._tied(release, question)
        plan, history = bought(self._analyst, shapes, spends, purpose)
        self._kept.add(shape)
        return self._tied(assembled(plan, history, who=self.who)[0], question)

    @pinned
    def shape_of(self, question: Question) -> Shape:
        """What would be measured of a question, without its noise: spends nothing."""
        return self._shape(question)

    @pinned
    def stepping(self, question: Question, spend: Spending) -> Part:
        """The noise and the cost of a question that is released step by step under one charge (`stepping.py`): spends nothing."""
        return stepping_part(self._analyst, self._shape(question), spend)

    def open_steps(self, part: Part, what: str, words: str, state: bytes) -> int:
        """Charge for all steps of it, under a name that the population has once."""
        return self._analyst.open_steps(part.shape.population, part.cost, what, words, state)

    @pinned
    def step(self, question: Question, part: Part, opening: int, number: int, advance: Advance, rows: Any = None) -> None:
        """Release the next step: of the rows that pass the question's condition now, or of `rows`. Its exact integers are handed
        to `advance` and to nobody else, and what that makes of them is durable before this returns."""
        step(self._analyst, self.seen, part, self._shape(question), opening, number, advance, rows)

    @pinned
    def measure_all(
        self, questions: Sequence[Question], spend: Spending, *, purpose: str = "", shares: Sequence[Fraction] | None = None
    ) -> list[Release]:
        """The private answers to several questions that share one spend, under one charge: split so that the total error is
        least, or as `shares` says, a part of the spend for each question. The shares make 1 together; the same questions under
        other shares are the same release, which costs nothing again.
        """
        shapes = self._shapes(questions)
        parts = _checked_shares(shares, shapes)
        plan, history = bought(self._analyst, shapes, self._analyst.spends(shapes, spend), purpose, parts)
        if len(shapes) == 1:
            self._kept.add(shapes[0])
        return self._all_tied(assembled(plan, history, who=self.who), questions)

    @pinned
    def workload_all(self, questions: Sequence[Question], spend: Spending, *, purpose: str = "") -> list[Release]:
        """The private answers to several questions measured together: groupings of the same rows share measurements and agree
        (`workload.py`)."""
        from cloister.session.workloads.workload import assembled_workload

        shapes, workload, together = self._workload(questions)
        plan, history = bought(self._analyst, together, self._analyst.spends(together, spend), purpose, workload.weights)
        return self._all_tied(assembled_workload(workload, shapes, plan, history, who=self.who), questions)

    @pinned
    def stored(self, question: Question, spend: Spending | None = None, *, purpose: str = "") -> Release | None:
        """What was bought of a question already, whoever bought it; None where that is nothing, or less than `spend`.

        It never spends of a population. This person's share is charged for the use of what others paid for, as in `measure`;
        without a spend all that they paid, unless this person was given it before.

        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> question = Question(table="people", statistics=(Count(),))
        >>> with small_door() as door:
        ...     before, answer, after = door.stored(question), door.measure(question, spend="0.5"), door.stored(question)
        ...     before, after.to_pydict() == answer.to_pydict(), door.stored(question, spend="0.6"), str(door.spent)
        (None, True, None, 'ε = 0.5')
        """
        found = stored(self._analyst, self._shapes([question]), spend, purpose)
        return None if found is None else self._tied(assembled(*found, who=self.who)[0], question)

    @pinned
    def given(self, question: Question) -> Release | None:
        """The answer to a question that this person was given before, as it can be combined with others; None where that is none.
        It charges nothing.

        >>> from cloister.session import Count
        >>> from cloister.session.examples import small_door
        >>> question = Question(table="people", statistics=(Count(),))
        >>> with small_door() as door:
        ...     bob, answer = door.on_behalf("bob"), door.measure(question, spend="0.5")
        ...     bob.given(question), door.given(question).to_pydict() == answer.to_pydict(), str(door.spent)
        (None, True, 'ε = 0.5')
        """
        found = given(self._analyst, self._shape(question))
        return None if found is None else self._tied(assembled(*found, who=self.who)[0], question)

    @pinned
    def stored_workload(
        self, questions: Sequence[Question], spend: Spending | None = None, *, purpose: str = ""
    ) -> list[Release] | None:
        """The same for several questions that `workload_all` measured together."""
        from cloister.session.workloads.workload import assembled_workload

        shapes, workload, together = self._workload(questions)
        found = stored(self._analyst, together, spend, purpose, workload.weights)
        return None if found is None else self._all_tied(assembled_workload(workload, shapes, *found, who=self.who), questions)

    @pinned
    def explain_workload(self, questions: Sequence[Question], spend: Spending) -> Plan:
        """What `workload_all` would measure, with which error, at which cost: spends nothing and reads no row."""
        from cloister.session.workloads.workload import expected_workload

        shapes, workload, together = self._workload(questions)
        plan, _ = planned(self._analyst, together, self._analyst.spends(together, spend), workload.weights)
        plan.check_noise()
        wanted = expected_workload(workload, shapes, plan, shown=[self.seen.shown(shape) for shape in shapes])
        parts = tuple(map(self.seen.worded, plan.parts))
        return replace(plan, parts=parts, together=wanted, alone=len(workload.alone))

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
        return least_spend(shape, budget, within, confidence, self._analyst.history([shape]), who=self.who)

    @pinned
    def spend_after_pilot(
        self, question: Question, within: float, pilot: Spending, *, confidence: float = 0.95, purpose: str = ""
    ) -> Guarantee:
        """The least spend for which every cell's margin is about `within`, where that depends on private sizes: these are bought
        first, as an answer to the question itself for `pilot`, which counts towards the spend."""
        from cloister.session.planning.within import least_spend_after

        shapes = self._shapes([question])
        _, history = bought(self._analyst, shapes, self._analyst.spends(shapes, pilot), purpose, margins=True)
        self._kept.add(shapes[0])
        [shape] = as_bought(shapes, history, margins=True)
        if not history.combinable:
            raise UnsupportedQuery(
                "A pilot is not supported",
                why="two releases with undeclared keys show different groups and can't be combined",
                instead='spend="0.1", or declared keys',
            )
        if any(each.without for each in history.stored):
            raise EngineError(
                "The pilot is not of all rows",
                why="a site dropped out of it, and the sizes that it found are not those of the question; the charge stands",
                instead="ask again: it is charged again",
            )
        return least_spend_after(shape, self.ledger.budget(shape.population), within, confidence, history, who=self.who)

    @pinned
    def afford(
        self, question: Question | Sequence[Question], spends: Sequence[Exact] | None = None, *, confidence: float = 0.95
    ) -> Affordable:
        """The expected margins of a question over a range of spends, by default parts of what remains: spends nothing."""
        return affordable(lambda spend: Door.explain(self, question, spend), self.remaining, spends, confidence)

    # ── rows ─────────────────────────────────────────────────────────────────────────────────────

    @pinned
    def run(self, method: RowMethod, table: str, spend: Spending, *, purpose: str = "", once: str = "") -> Outcome:
        """Hands the rows of a table to a method that declares its guarantee, and lets out only what it releases.

        It is charged each time, but for an attempt that died before it had released anything: the next one is made under its
        charge. `once` names a piece of work that is to be released once however often it is begun (a job): what the same person
        has released under that name is given again at no cost, and nobody else takes its charge over.

        Guarantee: that of the method, once a charge. A second attempt draws its randomness again, and is no second release: of
        the first nothing left the door, and the ledger settles a charge once, whichever attempt comes first. What is seen is
        the output of one run, so composition counts one.
        """
        return run_once(self._analyst, self.seen, method, table, spend, purpose, once)

    @pinned
    def explain_run(self, method: RowMethod, table: str, spend: Spending) -> RunPlan:
        """What `run` would charge, and for which guarantee: spends nothing and reads no row."""
        return planned_run(self._analyst, self.seen, method, table, spend)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Drops the prepared tables and closes the ledger that this session opened; what was spent can still be read.

        A session on somebody's behalf leaves both to the one that it was made of.
        """
        if self._owned is None:
            return
        if self._balance is None:
            with suppress(CloisterError):  # a ledger that was closed elsewhere has nothing more to say
                self._balance = (self.spent_by, self.remaining_by, self.unbounded)
        self.registry.close()
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

    def _shapes(self, questions: Sequence[Question]) -> list[Shape]:
        shapes = list(map(self._shape, questions))
        if not shapes:
            raise InvalidParameter(
                "An empty list of questions is invalid", why="there is nothing to measure", instead="measure_all([question], …)"
            )
        check_numbers(shapes)
        return shapes

    def _shape(self, question: Question) -> Shape:
        """The shape of a question as this session sees its tables: every question comes through here. The last one is kept:
        whoever decides on a question has it read before it is asked."""
        seen, last = self.seen, self._last_shape
        if last is not None and last[0] is seen and last[1] is question:
            return last[2]
        shape = seen.snapshot.shape(seen.applied(question))
        self._last_shape = (seen, question, shape)
        return shape  # not what is kept, which another thread may have replaced by now

    def worded(self, refusal: CloisterError, *asked: object, **how: object) -> CloisterError:
        """A refusal in the words that it was asked in: here a question is of Python, and so is what refuses it."""
        return refusal

    def _workload(self, questions: Sequence[Question]) -> tuple[list[Shape], Workload, list[Shape]]:
        """The shapes of several questions, how they are measured together, and what is measured then: some of them, and shapes
        that were made of them."""
        from cloister.session.workloads.workload import workload_of

        shapes = self._shapes(questions)
        workload = workload_of(questions, shapes, measure_of(self.ledger.budget(shapes[0].population)))
        measured = [each if isinstance(each, Shape) else self._shape(each) for each in workload.measured]
        check_numbers(measured)
        return shapes, workload, measured

    def _finer(self, shape: Shape, spends: Mapping[str, Spend]) -> tuple[Refinement, History] | None:
        """How the answer follows from a finer release which this session bought for as much, where there is one."""
        for how in self._kept.refinements(shape):
            history = self._analyst.history([how.finer])
            if history.stored and history.had(shape.population) >= spends[shape.population].amount:
                return how, history
        return None

    def _all_tied(self, releases: Sequence[Release], questions: Sequence[Question]) -> list[Release]:
        return [self._tied(*each) for each in zip(releases, questions, strict=True)]

    def _tied(self, release: Release, question: Question) -> Release:
        version = release.provenance.version
        return replace(release, buy_bias=lambda spend: self._bias(question, version, spend))

    @pinned
    def _bias(self, question: Question, version: str, spend: Spending) -> Bias:
        from cloister.session.planning.bias import buy_bias

        asked = self.seen.applied(question).table
        about = self.registry.snapshot.subject(asked.name if isinstance(asked, Base) else asked)
        if about.version != version:
            raise InvalidParameter(
                "The bias is invalid", why="the rows that this release is about were replaced", instead="the query once more"
            )
        hidden = asked if isinstance(asked, str) and asked in self._analyst.view.rows else None
        return buy_bias(self, question, about.declaration, spend, "bias", whole=hidden is None)


def _checked_shares(shares: Sequence[Fraction] | None, shapes: Sequence[Shape]) -> Sequence[Fraction] | None:
    """Parts of one spend, so of one population: exact, none of them nil, and together all of it."""
    if shares is None:
        return None
    sound = len(shares) == len(shapes) and all(isinstance(each, Fraction) and each > 0 for each in shares)
    if not sound or sum(shares) != 1 or len({shape.population for shape in shapes}) > 1:
        raise InvalidParameter(
            "shares is invalid",
            why="it is a fraction above 0 for each question, all of one population, and they make 1 together",
            instead="shares=[Fraction(1, 3), Fraction(2, 3)]",
        )
    return list(shares)


def _check_kept(random: Random, ledger: Ledger) -> None:
    """What a generator made for tests has noised is kept in no file."""
    if random.marked and ledger.durable:
        raise LedgerError(
            "The session was refused",
            why="its noise would come from a generator made for tests, which can be foretold, and its ledger is durable",
            instead="a session without random=, or without ledger=",
        )


def _some(costs: Mapping[str, Guarantee]) -> list[Guarantee]:
    if not costs:
        raise InvalidParameter(
            "The session's spending was asked for", why="it has no private table, so there is no budget", instead="session.tables"
        )
    return list(costs.values())
