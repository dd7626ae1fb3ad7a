"""The second door: exact answers under inference controls, marked as not private.

The way of a question: refusals that follow from the declarations; then, sealed as at the first door, the records, the checks
that depend on them, and the new lines of the history; then the NotPrivate event in the ledger; then the answer. A refusal that
depended on the records gets its event before it leaves, too.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from cloister.crypto import PseudoRandomFunction
from cloister.errors import AccessDenied, CloisterError, InvalidParameter, LedgerTampered, UnsupportedQuery
from cloister.ledger import Ledger
from cloister.privacy import Guarantee, PureDP
from cloister.query.controls.admission import Admission, Refusal
from cloister.query.controls.answer import TOTAL, ControlledAnswer, Reported
from cloister.query.controls.asked import Asked, asked_of, check_asked, check_table
from cloister.query.controls.cells import Place, axes_of
from cloister.query.controls.history import history_of
from cloister.query.controls.inside import Inside, Wanted
from cloister.query.controls.marking import in_words, lines_known, note_answer, note_refusal
from cloister.query.controls.perturbation import perturbed_copy
from cloister.query.controls.policy import Controls
from cloister.query.controls.records import Records
from cloister.query.parse import parse
from cloister.session import Door, Question
from cloister.session.state.scrubbed import scrubbed
from cloister.tables import Expression, Key
from cloister.tables.expression.names import quoted_path

Result = TypeVar("Result")
_NOT_SHOWN = "· is a cell that is not shown"


@dataclass(frozen=True, kw_only=True)
class OwnerReport:
    """For the owner only: what was refused and why, with witnesses; and for each table with suppressed cells, what these may be
    for who sees the rest (None: no upper bound)."""

    refusals: tuple[Refusal, ...]
    open_cells: dict[str, dict[Place, tuple[int, int | None]]]


class ControlledSession:
    """Exact answers about one table under a policy of controls, for trusted insiders. **Not differential privacy**: the first
    answer makes the population's spending unbounded, and every answer says so.

    `door` is a session of the owner's (`Session` or `Door`) that holds the table `name`; its ledger gets the events, and its
    differentially private answers go on as before. `history` is the file of the answered sets, `<ledger>.controls` when left
    out. Another version of a table of which something was answered is refused, since the two could be subtracted;
    `new_version=True` takes that upon the owner. `ControlledSession.of(table, controls)` makes the session itself.

    >>> import cloister as cl
    >>> from cloister.tables import Column, Compare, Literal
    >>> staff = cl.PrivateTable({"pay": list(range(20)), "sex": ["F", "M"] * 10},
    ...                         columns={"pay": cl.Integer(0, 99), "sex": cl.Category(["F", "M"])})
    >>> with ControlledSession.of(staff, Controls(set_size=5)) as session:
    ...     women = Compare("=", Column("sex"), Literal("F"))
    ...     session.count(women).value, session.sum("pay", women).value, session.unbounded
    (10, 90, True)
    """

    def __init__(
        self,
        door: Door,
        name: str,
        controls: Controls,
        *,
        who: str | None = None,
        history: str | Path | None = None,
        new_version: bool = False,
    ) -> None:
        if not isinstance(controls, Controls):
            raise InvalidParameter(
                "The controls are invalid", why=f"they are a {type(controls).__name__}", instead="Controls(set_size=5)"
            )
        entry = door.row_access(name)
        controls.check(entry.declaration)
        self.name, self.controls, self.who, self.population = name, controls, who or door.who, entry.population
        self._declaration, self._door, self._ledger, self._secret = entry.declaration, door, door.ledger, entry.secret
        identity = entry.declaration.source.identity() or name
        self._place = self._ledger.derive("controls", "place", entry.population, identity).hex()[:16]
        declared = entry.declaration.describe()
        state = [entry.version, declared["columns"], declared["unit"], declared["max_rows"], str(controls.input)]
        self._state = hashlib.sha256(json.dumps(state, sort_keys=True, default=str).encode()).hexdigest()
        self._keyed = PseudoRandomFunction(self._ledger.derive("controls", "key", entry.population, identity, entry.version))
        self._history = history_of(self._ledger, history)
        self._inside: Inside | None = None
        self._owned: tuple[Door | Ledger, ...] = ()
        try:
            self._check_history(new_version=new_version)
        except CloisterError:
            self._history.close()
            raise

    @classmethod
    def of(
        cls,
        table: object,
        controls: Controls,
        *,
        ledger: Ledger | str | Path | None = None,
        who: str = "owner",
        budget: Guarantee | None = None,
        name: str = "people",
        history: str | Path | None = None,
        new_version: bool = False,
    ) -> Self:
        """A session of one table and nothing else.

        A population that the ledger doesn't know is opened with `budget`; with ε = 0 when left out, so that nothing
        differentially private can be bought until its owner raises it.
        """
        book = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        mine: tuple[Door | Ledger, ...] = () if isinstance(ledger, Ledger) else (book,)
        try:
            population = getattr(table, "population", None) or name
            known = budget is not None or population in book.populations()
            door = Door({name: table}, budget=budget if known else PureDP(0), ledger=book, who=who)  # type: ignore[dict-item]
            mine = (door, *mine)
            this = cls(door, name, controls, history=history, new_version=new_version)
        except CloisterError:
            for each in mine:
                each.close()
            raise
        this._owned = mine
        return this

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def count(self, where: Expression | None = None) -> ControlledAnswer:
        """How many records pass."""
        return self._grouped([Asked(kind="count")], where, ())

    def sum(self, column: str, where: Expression | None = None) -> ControlledAnswer:
        """The sum of a column of numbers; a missing value counts as nothing."""
        return self._grouped([Asked(kind="sum", column=column)], where, ())

    def mean(self, column: str, where: Expression | None = None) -> ControlledAnswer:
        """The mean of a column of numbers over the records that have a value."""
        return self._grouped([Asked(kind="mean", column=column)], where, ())

    def maximum(self, column: str, where: Expression | None = None) -> ControlledAnswer:
        """The largest value, as a range (`recode`) or as a substitute that does not occur (`substitute`)."""
        return self._grouped([Asked(kind="maximum", column=column)], where, ())

    def minimum(self, column: str, where: Expression | None = None) -> ControlledAnswer:
        """The smallest value, as a range or as a substitute."""
        return self._grouped([Asked(kind="minimum", column=column)], where, ())

    def sql(self, sql: str, *, dialect: str | None = None) -> ControlledAnswer:
        """Counts, sums and means in SQL: `SELECT sex, COUNT(*) FROM people GROUP BY sex`, exactly, under the controls.

        The names, the order and the number of rows are those of the table; HAVING, ORDER BY and LIMIT are refused.

        >>> import cloister as cl
        >>> staff = cl.PrivateTable({"pay": list(range(20))}, columns={"pay": cl.Integer(0, 99)})
        >>> with ControlledSession.of(staff, Controls(set_size=5)) as session:
        ...     session.sql("SELECT COUNT(*) AS n FROM people WHERE pay < 8").value
        8
        """
        parsed = parse(sql, {self.name: self._declaration}, dialect, cut=False)
        layout = parsed.layout
        if len(parsed.questions) > 1 or layout.order or layout.chooses or any(each.source is None for each in layout.columns):
            raise UnsupportedQuery(
                "The query is not supported under controls",
                why="they answer one grouping, with every row of it",
                instead=f"SELECT COUNT(*) AS n FROM {quoted_path(self.name)}",  # noqa: S608
            )
        answer = self.ask(parsed.question)
        called = {source: name for name, source in reversed(layout.names.items())}
        keys = {called.get(name, name): cells for name, cells in answer.keys.items()}
        return replace(answer, keys=keys, values={called.get(name, name): cells for name, cells in answer.values.items()})

    def ask(self, question: Question) -> ControlledAnswer:
        """Counts, people, sums and means, by keys: the question of the first door, answered by the second.

        Groups that the controls forbid are left out where `suppress` is set; else the whole question is refused.
        """
        return self._grouped(asked_of(question, self.name), question.where, question.by)

    def table(
        self, by: str | Key | Sequence[str | Key], where: Expression | None = None, *, totals: bool | None = None
    ) -> ControlledAnswer:
        """A frequency table: a count for every combination of the keys' declared values, and totals.

        Totals are left out under `overlap` (they overlap with their cells), and for three and more keys.
        """
        keys = tuple(by) if isinstance(by, Sequence) and not isinstance(by, str) else (by,)
        axes = axes_of(keys, self.name, self._declaration)
        with_totals = (self.controls.overlap is None and len(axes) <= 2) if totals is None else totals
        check_table(axes, self.controls, totals=with_totals)
        check_asked([], where, self.name, self._declaration, self.controls)
        what = in_words("table", self.name, where, tuple(axis.column for axis in axes))
        wanted = Wanted(axes=axes, where=where, who=self.who, what=what)
        cells = self._answered(lambda inside: inside.tabulated(wanted, totals=with_totals), what)
        labels = [(*axis.labels, TOTAL) for axis in axes]
        names = {axis.column: tuple(labels[at][place[at]] for place, _ in cells) for at, axis in enumerate(axes)}
        return self._answer(names, {"count": tuple(number for _, number in cells)})

    # ── for the owner ────────────────────────────────────────────────────────────────────────────

    @property
    def unbounded(self) -> bool:
        """Whether anything has left by this door: then no budget bounds what is known of the population."""
        return self._ledger.unbounded(self.population)

    def owner_report(self) -> OwnerReport:
        """What this session refused, with witnesses, and how open its suppressed cells are. Exact: never for an analyst."""
        inside = self._inside
        if inside is None:
            return OwnerReport(refusals=(), open_cells={})
        return OwnerReport(refusals=tuple(inside.refusals), open_cells=dict(inside.open_cells))

    def close(self) -> None:
        """Drop the rows, and close what this session opened."""
        if self._inside is not None and self._inside.copy is not None:
            self._inside.copy.close()
        self._inside = None
        self._history.close()
        for each in self._owned:
            each.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ControlledSession {self.name}: not differential privacy>"

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _grouped(self, asked: list[Asked], where: Expression | None, by: tuple[str | Key, ...]) -> ControlledAnswer:
        axes = axes_of(by, self.name, self._declaration)
        check_asked(asked, where, self.name, self._declaration, self.controls)
        what = in_words(", ".join(map(str, asked)), self.name, where, tuple(axis.column for axis in axes))
        wanted = Wanted(axes=axes, where=where, who=self.who, what=what)
        rows = self._answered(lambda inside: inside.grouped(asked, wanted), what)
        keys = {axis.column: tuple(axis.labels[place[at]] for place, _ in rows) for at, axis in enumerate(axes)}
        return self._answer(keys, {each.name: tuple(cells[at] for _, cells in rows) for at, each in enumerate(asked)})

    def _answered(self, work: Callable[[Inside], tuple[Result, int]], what: str) -> Result:
        known = len(self._inside.refusals) if self._inside is not None else 0
        try:
            result, line = scrubbed(lambda: work(self._opened()))
        except KeyboardInterrupt:
            if self._inside is not None:
                self._inside.prepared.cancel()
            raise
        except (AccessDenied, UnsupportedQuery) as error:
            told = [] if self._inside is None else self._inside.refusals
            if self._inside is not None and not (told and told[-1].what == what):
                told.append(Refusal(who=self.who, what=what, why=error.why))
            if not any((each.what, each.kind) == (what, "columns") for each in told[known:]):  # that one no row decided
                note_refusal(self._ledger, self.population, who=self.who, what=what)
            raise
        note_answer(self._ledger, self.population, self._place, line, who=self.who, what=what)
        return result

    def _opened(self) -> Inside:
        if self._inside is None:
            prepared = self._door.prepared(self.name)
            noise = self.controls.input
            copy = None if noise is None else perturbed_copy(prepared, noise, self._keyed, self._secret)
            records = Records(prepared if copy is None else copy)
            shared: dict[str, Any] = {
                "controls": self.controls,
                "keyed": self._keyed,
                "history": self._history,
                "records": records,
            }
            admission = Admission(place=self._place, state=self._state, **shared)
            self._inside = Inside(prepared=prepared, copy=copy, admission=admission, **shared)
        return self._inside

    def _check_history(self, *, new_version: bool) -> None:
        """Refuses a history that is shorter than the ledger knows it to be, and another version of what was answered."""
        if lines_known(self._ledger, self.population, self._place) > self._history.count(self._place):
            raise LedgerTampered(
                "The controls were refused",
                why="the ledger knows of more answers than the history of answered sets holds: it was cut, or is an old copy",
                instead='the newest history, by history="…"',
            )
        if not new_version and set(self._history.states(self._place)) - {self._state}:
            raise AccessDenied(
                "The controls were refused",
                why="another version of this table was answered about, and what both have in common can be subtracted",
                instead='the same version= in cl.PrivateTable(…, version="2026-03"), or new_version=True',
            )

    def _answer(self, keys: dict[str, tuple[object, ...]], values: dict[str, tuple[Reported, ...]]) -> ControlledAnswer:
        hidden = keys and any(cell is None for cells in values.values() for cell in cells)
        return ControlledAnswer(
            keys=keys, values=values, controls=self.controls.in_words(), notes=(_NOT_SHOWN,) if hidden else ()
        )
