"""A question that is answered at every step of the clock: continual release of one table, for one charge or for one a step.

*One charge* (`Watch`): where the answer is a sum over rows in declared groups (COUNT, SUM, AVG, VARIANCE and arithmetic on them),
the charge is made once for all steps, before the first row is read, and the steps add up to running sums (`running.py` has the
proof). The population's line is the person's: a person with `max_rows` rows is covered in all of them, in whichever steps.

*A charge a step* (`FreshWatch`): any other answer is bought again at each step, of the rows of that step, each for an equal part
of the spend; all steps together cost no more than the spend, and whoever stops earlier has spent less.

Rows come from the session's table, as it is (its cap holds over all steps, since its rows were prepared once), or are fed
(`feed.py`). A step is durable before it leaves: the exact sums, sealed, are committed with the line of the step in the ledger, so
a process that was killed goes on with the step after the last one; what was fed for a step that was not released is fed again.
Where a ledger was restored from a backup, a watch that was opened before goes no further.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

import numpy as np

from cloister.crypto import canonical_json
from cloister.errors import InvalidParameter, LedgerError, UnsupportedQuery
from cloister.privacy import Guarantee
from cloister.session import Door, Frame, History, Part, Purchase, Question, Release
from cloister.session.execution.answer import released_from
from cloister.session.execution.stepping import meaning, name_of, obstacle
from cloister.session.questions.spend import Spending, spend_of
from cloister.session.releases.formulas import Reading
from cloister.session.releases.store import Stored
from cloister.tables import And, Category, Column, Compare, Expression, Literal, PrivateTable, Relation
from cloister.tables.declaring.moments import DAY, moment_of
from cloister.tables.declaring.places import sources_of
from cloister.traces.feed import Feed, Late
from cloister.traces.moments import Moment, Steps, moments_of
from cloister.traces.running import RunningTable, memory_of
from cloister.traces.step_lock import StepLock
from cloister.traces.stored import SealedStates

_FORMAT = 1
_MOST_NUMBERS = 2**22
"""Some 40 MB, sealed and written at each step."""
_INSTEAD = 'session.watch("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", at="moment", every="1 hour", …)'

Lay = Callable[[Release], Release]


@dataclass(frozen=True, kw_only=True)
class WatchStep:
    """What is released of one step: a table of the step, and one of all steps so far (None where each step is bought alone)."""

    number: int
    begins: str
    ends: str
    table: Release
    so_far: Release | None

    def to_plain(self, confidence: float = 0.95) -> dict[str, Any]:
        """As plain data, as a line of JSON holds it: `groups` names the keys, dates are texts, an endless margin is None."""
        groups = [name for name, series in self.table.names.items() if series in self.table.groups] or list(self.table.groups)
        told: dict[str, Any] = {"step": self.number, "begins": self.begins, "ends": self.ends, "groups": groups}
        for name, release in (("table", self.table), ("so_far", self.so_far)):
            if release is not None:
                told[name] = _plain(release.to_pydict())
                told[f"{name}_margin" if name == "so_far" else "margin"] = _plain(release.margin(confidence).to_pydict())
        return told


@dataclass(frozen=True, kw_only=True)
class Watched:
    """What is declared of a watch: public, and the same in every process that goes on with it."""

    question: Question
    steps: Steps
    at: str
    fed: bool = False
    late: Late = "drop"
    key: str | None = None
    name: str = ""

    def of_step(self, number: int, rows: PrivateTable | Relation) -> Question:
        """The question about the rows of one step."""
        return self.question if self.fed else replace(self.question, where=_during(self.question.where, self, number, rows))


class _Clocked:
    """Both kinds: which step is next, and until when steps are over."""

    def __init__(self, door: Door, watched: Watched, lay: Lay) -> None:
        self._door, self.watched, self._lay = door, watched, lay
        self.steps = watched.steps

    @property
    def taken(self) -> int:
        """How many steps are released."""
        raise NotImplementedError

    def step(self) -> WatchStep:
        """Release the next step."""
        raise NotImplementedError

    def until(self, now: Moment) -> Iterator[WatchStep]:
        """The steps that are over by a moment and were not released, each computed when it is asked for."""
        while self.taken < self.steps.over(now):
            yield self.step()

    def __iter__(self) -> Iterator[WatchStep]:
        """Those that are over by now."""
        return self.until(time.time())

    def _made(self, number: int, table: Release, so_far: Release | None) -> WatchStep:
        begins, ends = self.steps.span(number)
        told = f"step {number} of {self.steps.count}: {begins} to {ends}"
        laid = [None if each is None else self._lay(replace(each, notes=(told, *each.notes))) for each in (table, so_far)]
        assert laid[0] is not None
        return WatchStep(number=number, begins=begins, ends=ends, table=laid[0], so_far=laid[1])

    def _refuse_beyond(self) -> None:
        if self.taken >= self.steps.count:
            raise InvalidParameter(
                "The step is invalid",
                why=f"the watch was declared for {self.steps.count} steps, and all of them are released",
                instead="a new watch under a charge of its own",
            )


class Watch(_Clocked):
    """A table at every step under one charge.

    Guarantee: that of the spend, for all rows of a person, over all steps (`running.py`). What is charged is known before
    (`cost`), and charged by `open`, which the first step calls.
    """

    def __init__(self, door: Door, watched: Watched, spend: Spending, lay: Lay) -> None:
        super().__init__(door, watched, lay)
        self._part: Part = door.stepping(watched.question, spend)
        self._rows = _private(door, watched.question)
        self._table = door.seen.snapshot.entry(name_of(watched.question.table)).declaration
        kept = self._part.shape.grid.cells * len(self._part.noises) * memory_of(self._part, self.steps.count)
        if kept > _MOST_NUMBERS:
            raise UnsupportedQuery(
                "The watch is not supported",
                why=f"its running sums are {kept:,} numbers, and at most {_MOST_NUMBERS:,} are kept",
                instead="fewer or coarser groups, or fewer steps",
            )
        self._running = RunningTable(self._part, self.steps.count)
        self.name = watched.name or "watch " + hashlib.sha256(self._declared().encode()).hexdigest()[:16]
        self._states = SealedStates(door.ledger, "watches", self.name)
        self._opening: int | None = None
        self._lock = StepLock(
            f"The watch {self.name!r} goes no further in this process",
            error=LedgerError,
            why="the ledger did not say whether it holds the last step",
            instead="the same watch in a new session, which goes on after the last step that it holds",
        )
        self._last: WatchStep | None = None
        self._feed: Feed | None = None
        if watched.fed:
            declared = self._table.columns.get(watched.at)
            if isinstance(declared, Category) and not self.steps.number(moments_of(list(declared.values()))).any():
                raise _no_moments(watched.at, "it is a category, and none of its values lies in a step")
            during = [] if self._table.during is None else [self._table.during.column]
            self._feed = Feed(
                self.steps,
                at=watched.at,
                columns=[*sources_of(self._table.columns), *during],
                late=watched.late,
                unit=self._table.unit,
                most=self._table.max_rows,
                key=watched.key,
                secret=door.ledger.derive("watch", self.name),
            )

    @property
    def cost(self) -> Guarantee:
        """What is charged for all steps, once."""
        return self._part.cost

    @property
    def taken(self) -> int:
        return self._running.taken

    @property
    def last(self) -> WatchStep | None:
        """The step that was released last, also where another process did: read from the ledger."""
        return self._last

    def margin(self, confidence: float = 0.95, *, step: int | None = None) -> Frame:
        """The half-widths to expect at a step (the last) of counts and sums: spends nothing."""
        found = self._release(self._running.foreseen(step or self.steps.count).step, self._history())
        return self._lay(found).margin(confidence)

    def foreseen(self) -> WatchStep:
        """A step as each will be laid out, with no row in it: spends nothing."""
        empty = self._release(self._running.foreseen(1).step, self._history())
        return self._made(1, empty, empty)

    def open(self) -> Watch:
        """Charge for all steps, or go on where the ledger holds this watch already, under the same declaration."""
        if self._opening is not None:
            return self
        ledger, population = self._door.ledger, self._part.shape.population
        opened = ledger.charges(population, what=self.name)
        if not opened:
            self._opening = self._door.open_steps(self._part, self.name, "a watch", self._sealed())
            return self
        opening, step, state = self._states.last(population)
        if state["declared"] != self._declared():
            raise LedgerError(
                f"The watch {self.name!r} was not resumed",
                why="it was opened with another question, spend, clock or version of the table",
                instead="another name, under a charge of its own",
            )
        self._running.restore(state)
        if self._feed is not None:
            self._feed.counted.update(state["counted"])
        self._opening = opening
        if step:
            [line] = [each for each in ledger.find(self.name, [population]) if each.id == opened[-1].id]
            self._last = self._told(step, json.loads(line.release))
        return self

    def feed(self, rows: Any) -> None:
        """Rows that came in, of whichever step; they wait for it (`feed.py` says what becomes of late and repeated ones)."""
        if self._feed is None:
            raise InvalidParameter(
                "Feeding the watch is invalid",
                why="this watch counts the rows of the session's table",
                instead="session.watch(…, fed=True)",
            )
        self.open()
        self._feed.add(rows, self.taken)

    def step(self) -> WatchStep:
        return self._lock.take(self._before, self._released)

    def _before(self) -> int:
        """The opening, where a step is left."""
        self.open()
        self._refuse_beyond()
        assert self._opening is not None
        return self._opening

    def _released(self, opening: int) -> WatchStep:
        number, told = self.taken + 1, dict[str, Any]()
        rows = None if self._feed is None else self._feed.take(number)

        def advance(exact: Mapping[str, Any]) -> tuple[bytes, bytes]:
            found = self._running.take(exact, self._door.registry.random)
            told.update(step=_values(found.step), so_far=_values(found.so_far))
            return canonical_json({"format": _FORMAT, "number": number, **told}).encode(), self._sealed()

        question = self.watched.of_step(number, self._rows)
        self._door.step(question, self._part, opening, number, advance, rows)
        self._last = self._told(number, told)
        return self._last

    def __str__(self) -> str:
        steps, person = self.steps, self._table.max_rows
        whose = "each row is a person" if person is None else f"a person with at most {person} rows is covered in all of them"
        return (
            f"{self.name}: {self.taken} of {steps.count} steps, from {steps.span(1)[0]} to {steps.span(steps.count)[1]}\n"
            f"cost: {self.cost} of population {self._part.shape.population!r}, once for all steps; {whose}\n"
            + "\n".join(
                f"{name}: {type(law).__name__} of scale {float(law.scale):,.6g}" for name, law in self._running.noises.items()
            )
        )

    def _told(self, number: int, told: Mapping[str, Any]) -> WatchStep:
        known = self._running.foreseen(number)
        both = [
            {name: replace(reading, values=_array(told[which][name])) for name, reading in readings.items()}
            for which, readings in (("step", known.step), ("so_far", known.so_far))
        ]
        history = self._history()
        return self._made(number, self._release(both[0], history), self._release(both[1], history))

    def _history(self) -> History:
        costs = {self._part.shape.population: self.cost}
        bought = Purchase(id=self._opening or 0, who=self._door.who, when=time.time(), costs=costs)
        return History((bought,), (Stored((), self._door.marked),))

    def _release(self, readings: Mapping[str, Reading], history: History) -> Release:
        shape = self._part.shape
        return released_from(shape, shape.formulas, readings, history, who=self._door.who, repeated=False)

    def _declared(self) -> str:
        """All that must be the same where a watch goes on: the table as it is declared, by which the kept sums were bounded; and
        the same rows, or people would count in others than before. Whoever has growing rows feeds them."""
        shape, steps, watched = self._part.shape, self.steps, self.watched
        return canonical_json(
            {
                "format": _FORMAT,
                "table": meaning(self._door.seen, shape),
                "blocks": [[block.name, block.l1, block.l2_squared, [raw.width for raw in block.raws]] for block in shape.blocks],
                "keys": str(shape.grid.describe()),
                "where": str(None if shape.question.where is None else shape.question.where.describe()),
                "version": "" if watched.fed else shape.version,
                "cost": str(self.cost),
                "steps": [steps.since, steps.every, steps.count],
                "rows": [watched.at, watched.fed, watched.late, watched.key],
            }
        )

    def _sealed(self) -> bytes:
        counted = {} if self._feed is None else self._feed.counted
        state = {"declared": self._declared(), **self._running.state(), "counted": counted}
        return self._states.seal(state, self.taken)


class FreshWatch(_Clocked):
    """A table at every step, each bought alone for an equal part of the spend."""

    def __init__(self, door: Door, watched: Watched, spend: Spending, lay: Lay) -> None:
        super().__init__(door, watched, lay)
        self._rows = _private(door, watched.question)
        shape = door.shape_of(watched.of_step(1, self._rows))
        if watched.fed:
            raise UnsupportedQuery(
                "Feeding this question is not supported",
                why=f"{obstacle(shape)}, and only sums in declared groups are released of rows that are fed",
                instead="COUNT, SUM, AVG or VARIANCE by declared columns",
            )
        population = shape.population
        whole = spend_of(spend, door.ledger.budget(population))
        self._each = replace(whole, amount=whole.amount / self.steps.count, delta=whole.delta / self.steps.count).whole()
        self.cost, self._population, self._taken = whole.whole(), population, 0
        self.each = self._each
        """What a step costs."""
        door.explain(watched.of_step(1, self._rows), self._each)  # what cannot be answered is refused now

    @property
    def taken(self) -> int:
        return self._taken

    def open(self) -> FreshWatch:
        """Nothing: each step is charged by itself."""
        return self

    def step(self) -> WatchStep:
        """Release the next step; one that was bought before, in whichever process, is answered from the ledger."""
        self._refuse_beyond()
        number = self._taken + 1
        release = self._door.measure(self.watched.of_step(number, self._rows), self._each)
        self._taken = number
        return self._made(number, release, None)

    def __str__(self) -> str:
        return (
            f"{self.taken} of {self.steps.count} steps\ncost: {self._each} of population {self._population!r} for each step, with"
            f" fresh noise; {self.cost} for all of them"
        )


def watch(door: Door, watched: Watched, spend: Spending, lay: Lay = lambda release: release) -> Watch | FreshWatch:
    """The watch of a question: under one charge where it is a sum over rows in declared groups.

    >>> import cloister as cl
    >>> from cloister.session import Count
    >>> visits = cl.PrivateTable({"at": [10, 70, 75], "region": ["N", "S", "S"]},
    ...                          columns={"at": cl.Integer(0, 2**40), "region": cl.Category(["N", "S"])})
    >>> with cl.Session({"visits": visits}, budget=cl.PureDP(1)) as session:
    ...     question = Question(table="visits", by=("region",), statistics=(Count(name="n"),))
    ...     steps = Steps.of(every="1 minute", since=0, until=180)
    ...     found = list(watch(session, Watched(question=question, steps=steps, at="at"), 1))
    ...     [step.table.num_rows for step in found], str(session.spent)
    ([2, 2, 2], 'ε = 1')
    """
    shape = door.shape_of(watched.of_step(1, _private(door, watched.question)))
    return (FreshWatch if obstacle(shape) else Watch)(door, watched, spend, lay)


def _private(door: Door, question: Question) -> PrivateTable | Relation:
    """The rows of which the question is asked, as they are declared."""
    if isinstance(question.table, Relation):
        return question.table
    found = door.declared(question.table)
    if not isinstance(found, PrivateTable):
        raise UnsupportedQuery("The watch is not supported", why="its rows are public: nothing needs hiding", instead=_INSTEAD)
    return found


def _during(where: Expression | None, watched: Watched, number: int, rows: PrivateTable | Relation) -> Expression:
    """The rows of a step: those whose declared moment lies in it."""
    domain, (begin, end) = rows.column(watched.at), watched.steps.edges(number)
    if domain.kind not in ("date", "moment", "integer", "real"):
        raise _no_moments(watched.at, f"the column is {domain.kind}, and says no moment")
    edges: list[Any] = [begin, end]
    if domain.kind == "date":
        if begin % DAY or end % DAY:
            raise InvalidParameter(
                f"at={watched.at!r} is invalid",
                why="it holds days, and a step begins or ends within one",
                instead='every="1 day", or a column of moments: cl.Moment("2026-01-01", "2026-12-31")',
            )
        edges = [date(1970, 1, 1) + timedelta(days=edge // DAY) for edge in edges]
    elif domain.kind == "moment":
        edges = [str(moment_of(edge)) for edge in edges]
    inside = [Compare(sign, Column(watched.at), Literal(edge)) for sign, edge in zip((">=", "<"), edges, strict=True)]
    return And(*inside) if where is None else And(where, *inside)


def _no_moments(at: str, why: str) -> InvalidParameter:
    instead = "a column of cl.Moment, cl.Date, or seconds: cl.Integer(0, 2**40)"
    return InvalidParameter(f"at={at!r} is invalid", why=why, instead=instead)


def _plain(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    def one(value: Any) -> Any:
        return str(value) if isinstance(value, date) else None if isinstance(value, float) and not math.isfinite(value) else value

    return {name: [one(value) for value in values] for name, values in columns.items()}


def _values(readings: Mapping[str, Reading]) -> dict[str, list[int]]:
    return {name: [int(value) for value in reading.values.tolist()] for name, reading in readings.items()}


def _array(values: list[int]) -> Any:
    narrow = all(abs(value) < 2**62 for value in values)
    return np.array(values, dtype=np.int64 if narrow else object)
