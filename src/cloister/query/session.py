"""The session that people use: the one door, with SQL in front of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakKeyDictionary

import numpy as np
from sqlglot import exp

from cloister.errors import CloisterError, InvalidParameter, UnsupportedQuery
from cloister.noise import Random
from cloister.privacy import Exact, Guarantee, PureDP, exact_positive, text_of
from cloister.query.forms import Forms
from cloister.query.layout import AnswerColumns, Layout, columns_of, constant, rows_of
from cloister.query.parse import Parsed, parse, touched_in
from cloister.query.undeclared import CERTAIN, reviewed, zero_of_nothing
from cloister.query.views import row_conditions
from cloister.session import Affordable, Door, Frame, Plan, Question, Release, Series, Touched
from cloister.session.planning.afford import affordable
from cloister.session.questions.arithmetic import Named
from cloister.session.questions.declared import table_name
from cloister.session.questions.question import Combined
from cloister.session.questions.spend import Spending, amount_of
from cloister.session.releases.combined import of_nothing
from cloister.session.releases.postprocessed import Postprocessed, public_release
from cloister.session.state.table_registry import pinned
from cloister.session.state.table_snapshot import TableSnapshot
from cloister.session.state.view import Seen
from cloister.tables import Expression

if TYPE_CHECKING:
    from cloister.traces.feed import Late
    from cloister.traces.moments import Moment
    from cloister.traces.watch import FreshWatch, Watch

_REHEARSED = 1
_FORMS: WeakKeyDictionary[TableSnapshot, Forms] = WeakKeyDictionary()
"""What texts mean, as long as the tables are as they are: a snapshot never changes."""


class Session(Door):
    """Private and public tables, a budget, a ledger, and questions in SQL.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100, "sex": ["F", "M", "F"] * 100},
    ...                          columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
    >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
    ...     answer = session.sql("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", spend="0.5")
    ...     answer.column_names, answer.num_rows, str(session.remaining)
    (['sex', 'n'], 2, 'ε = 0.5')
    """

    _last_read: tuple[Seen, tuple[str, str | None], Parsed] | None = None

    @pinned
    def sql(
        self,
        sql: str,
        spend: Spending | None = None,
        *,
        within: float | None = None,
        pilot: Spending | None = None,
        confidence: float = 0.95,
        purpose: str = "",
        dialect: str | None = None,
        rehearse: bool = False,
        fresh: bool = False,
    ) -> Release:
        """The private answer to a question in SQL.

        Parameters
        ----------
        spend
            What it may cost: ε, or ρ under a zCDP budget; or a guarantee. A question that names its cost itself, as ZetaSQL's
            `OPTIONS (epsilon = …)` does, needs none.
        within
            Instead of a spend, the margin wanted, at `confidence`: the least spend that reaches it is taken.
        pilot
            With `within`, where the margin depends on private sizes: a first noisy answer is bought for so much, and the rest
            of the spend follows from it.
        dialect
            The SQL that the question is written in, as sqlglot names it ("postgres", "bigquery", "tsql", …).
        rehearse
            Answer from made-up rows that follow the declarations; nothing private is touched and nothing is spent.
        fresh
            Buy again what would follow from a finer answer that was paid for.
        """
        if pilot is not None or confidence != 0.95 or {type(rehearse), type(fresh)} != {bool}:  # most say nothing
            from cloister.session.planning.within import check_asked

            check_asked(within, pilot, confidence, rehearse=rehearse, fresh=fresh)
        parsed = self._parsed(sql, dialect)
        if parsed.spend is not None:
            spend = _named(parsed, spend, within)
        if parsed.above is not None:
            self._check_above(parsed, within if parsed.questions else None)
            if not parsed.questions:
                return laid_out([], parsed, self._of_public(parsed))
        if (spend is None) == (within is None):
            raise InvalidParameter(
                "The query is invalid",
                why="it needs either a spend or a wanted margin",
                instead='session.sql("SELECT …", spend="0.1")',
            )
        if rehearse:
            return self._rehearsed(sql, spend, within, pilot, confidence, dialect)
        if parsed.certain:
            return self._certain(parsed)
        if within is not None:
            spend = self._spend_within(parsed, within, pilot, confidence, purpose)
        assert spend is not None
        if len(parsed.questions) > 1:
            answers = self.workload_all(parsed.questions, spend, purpose=purpose)
        else:
            how: dict[str, Any] = {"purpose": purpose, "fresh": fresh, "within": within, "confidence": confidence}
            answers = [self.measure(parsed.questions[0], spend=spend, **how)]
        return laid_out(answers, parsed)

    @pinned
    def explain(
        self,
        question: str | Question | Sequence[Question],
        spend: Spending | None = None,
        *,
        shares: Sequence[Fraction] | None = None,
        dialect: str | None = None,
    ) -> Plan:
        """What would be measured, with which error, at which cost: spends nothing and reads no row."""
        if not isinstance(question, str):
            return super().explain(question, _given(spend), shares=shares)
        parsed = self._parsed(question, dialect)
        if parsed.above is not None:
            self._check_above(parsed, None)
            parsed = replace(parsed, notes=(*parsed.notes, ABOVE))
            if not parsed.questions:
                return Plan(parts=(), costs={}, notes=parsed.notes)
        cost = _given(parsed.spend if spend is None else spend)
        if parsed.spend is not None and not _same(parsed.spend, cost):
            note = f"the query is answered at no other spend than {parsed.spend}, which its OPTIONS name"
            parsed = replace(parsed, notes=(*parsed.notes, note))
        if parsed.certain:
            return Plan(parts=(), costs={}, notes=(*parsed.notes, CERTAIN))
        plan = (
            self.explain_workload(parsed.questions, cost) if len(parsed.questions) > 1 else super().explain(parsed.question, cost)
        )
        names = parsed.names if parsed.above is None else parsed.above.names
        return replace(plan, names=names, notes=(*plan.notes, *parsed.notes))

    @pinned
    def afford(
        self,
        question: str | Question | Sequence[Question],
        spends: Sequence[Exact] | None = None,
        *,
        confidence: float = 0.95,
        dialect: str | None = None,
    ) -> Affordable:
        """The expected margins of a question over a range of spends, by default up to what remains: spends nothing."""
        if not isinstance(question, str):
            return super().afford(question, spends, confidence=confidence)
        parsed = self._parsed(question, dialect)
        if parsed.above is not None and not parsed.questions:
            raise _costs_nothing("A table of spends")
        return affordable(partial(self.explain, question, dialect=dialect), self.remaining, spends, confidence)

    @pinned
    def workload(
        self, questions: Sequence[str | Question], spend: Spending, *, purpose: str = "", dialect: str | None = None
    ) -> list[Release]:
        """The private answers to several questions under one charge, measured together.

        Groupings of the same rows by different keys are not asked one by one: the tables from which all of them follow with the
        least error are measured, and least squares makes the answers agree with one another.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100, "sex": ["F", "M", "F"] * 100},
        ...                          columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
        >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ...     by_sex, total = session.workload(
        ...         ["SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", "SELECT COUNT(*) AS n FROM people"], spend="0.5")
        ...     str(session.spent)
        'ε = 0.5'
        """
        parsed, asked, spend = self._several(questions, spend, dialect)
        answers = iter(self.workload_all(asked, spend, purpose=purpose) if asked or not parsed else [])

        def laid(each: Parsed | Question) -> Release:
            if isinstance(each, Question):
                return next(answers)
            free = self._free(each)
            return laid_out([next(answers) for _ in each.questions], each) if free is None else free

        return list(map(laid, parsed))

    @pinned
    def explain_workload(self, questions: Sequence[str | Question], spend: Spending, *, dialect: str | None = None) -> Plan:
        """What `workload` would measure, with which error, at which cost: spends nothing and reads no row."""
        parsed, asked, spend = self._several(questions, spend, dialect)
        plan = super().explain_workload(asked, spend) if asked or not parsed else Plan(parts=(), costs={})
        told = [note for each in parsed if isinstance(each, Parsed) for note in each.notes]
        return replace(plan, notes=tuple(dict.fromkeys((*plan.notes, *told))))

    def _several(
        self, questions: Sequence[str | Question], spend: Spending, dialect: str | None
    ) -> tuple[list[Parsed | Question], list[Question], Spending]:
        """Several questions as they were read, what is to be measured for them, and at which spend."""
        listed = list(questions) if isinstance(questions, Iterable) and not isinstance(questions, str) else []
        if not listed or not all(isinstance(each, str | Question) for each in listed):
            instead = 'session.workload(["SELECT …"], spend=1)'
            raise InvalidParameter("The workload is invalid", why="it is a list of questions, at least one", instead=instead)
        parsed = [self._parsed(each, dialect) if isinstance(each, str) else each for each in listed]
        asked: list[Question] = []
        for each in parsed:
            if isinstance(each, Question):
                asked.append(each)
                continue
            spend = _named(each, spend) or spend
            if each.above is not None:
                self._check_above(each, None)
            asked += () if each.certain else each.questions
        return parsed, asked, spend

    @pinned
    def stored(
        self, question: str | Question, spend: Spending | None = None, *, purpose: str = "", dialect: str | None = None
    ) -> Release | None:
        """The answer that was bought of a question already, whoever bought it; None where that is nothing, or less than `spend`.

        It never spends of a population. This person's share is charged for what others paid for, as it is in `sql`.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})
        >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ...     bob, text = session.on_behalf("bob"), "SELECT COUNT(*) AS n FROM people"
        ...     before, answer = bob.stored(text), session.sql(text, spend="0.5")
        ...     before, bob.stored(text).to_pydict() == answer.to_pydict(), str(session.spent)
        (None, True, 'ε = 0.5')
        """
        if not isinstance(question, str):
            return super().stored(question, spend, purpose=purpose)
        parsed = self._parsed(question, dialect)
        spend = _named(parsed, spend)
        if (free := self._free(parsed)) is not None:
            return free
        if len(parsed.questions) > 1:
            answers = self.stored_workload(parsed.questions, spend, purpose=purpose)
        else:
            one = super().stored(parsed.question, spend, purpose=purpose)
            answers = None if one is None else [one]
        return None if answers is None else laid_out(answers, parsed)

    @pinned
    def touched(self, question: str | Question, *, dialect: str | None = None) -> Touched:
        """Which declared columns of which tables a question reads, and which tables it joins: spends nothing and reads no row.

        Read are keys, aggregates, conditions, columns of joins and of what is computed, in subqueries too; not what the condition
        of a view stands on, which is the owner's. The columns of public tables are named as well, also where a subquery reads
        them whose answer is a constant of the question. `touched.joined` are the tables whose rows stand beside another table's.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"age": [30], "pay": [1]}, columns={"age": cl.Integer(17, 90), "pay": cl.Integer(0, 9)})
        >>> towns = cl.PublicTable({"least": [30], "town": ["Delft"]})
        >>> with cl.Session({"people": people, "towns": towns}, budget=cl.PureDP(1)) as session:
        ...     session.touched("SELECT SUM(pay) AS s FROM people WHERE age > 30")
        ...     session.touched("SELECT town, COUNT(*) AS n FROM people JOIN towns ON age = least GROUP BY town")
        <people: age, pay>
        <people: age; towns: least, town; joined: people, towns>
        """
        if not isinstance(question, str):
            return super().touched(question)
        parsed = self._parsed(question, dialect)
        if parsed.touched:
            for each in parsed.questions:
                self._shapes([each])  # what could not be answered is refused
        else:
            parsed.touched.append(touched_in(parsed, question, self.tables, dialect, super().touched))
        return parsed.touched[0]

    def tree_of(self, sql: str, *, dialect: str | None = None) -> exp.Query:
        """A text as sqlglot parses it, for anyone who looks at its form; what could not be answered is refused.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
        >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ...     session.tree_of("select count(*) from people").sql()
        'SELECT COUNT(*) FROM people'
        """
        tree = self._parsed(sql, dialect).tree
        if tree is None:  # the text was read by its form
            tree = parse(sql, self.tables, dialect).tree
        assert tree is not None
        return tree.copy()

    def on_behalf(
        self,
        who: str,
        *,
        tables: Iterable[str] | None = None,
        rows: Mapping[str, str | Expression] | None = None,
        columns: Mapping[str, Iterable[str]] | None = None,
        progress: Callable[[str], None] | None = None,
        time_limit: float | None = None,
    ) -> Self:
        """A light session over the same tables that asks as somebody else: with an account and a memory of its own.

        Parameters
        ----------
        who
            The person whose share is charged, and whose name is in the ledger.
        tables
            The names that the person may see; None: all. What may not be seen is refused in the words for what does not exist.
        rows
            For a table the condition, in SQL on its own columns, that a row must fulfil to be seen: in every question, whichever
            way it reads the table (`session/state/view.py`).
        columns
            For a table the columns that the person knows. The column that says whose row a row is can be joined on and counted,
            named here or not; a key that another table's rows belong to must be named for that table to be asked about.
        progress, time_limit
            As in `Session`; None: as here.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100, "sex": ["F", "M", "F"] * 100},
        ...                          columns={"age": cl.Integer(17, 90), "sex": cl.Category(["F", "M"])})
        >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ...     ana = session.on_behalf("ana", rows={"people": "sex = 'F'"}, columns={"people": ["age"]})
        ...     ana.touched("SELECT AVG(age) AS a FROM people")
        <people: age>
        """
        return super().on_behalf(
            who,
            tables=tables,
            rows=row_conditions(rows, self.tables) if rows else None,
            columns=columns,
            progress=progress,
            time_limit=time_limit,
        )

    @pinned
    def spend_for(
        self,
        sql: str,
        *,
        within: float,
        pilot: Spending | None = None,
        confidence: float = 0.95,
        purpose: str = "",
        dialect: str | None = None,
    ) -> Guarantee:
        """The least spend that reaches a wanted margin, as `sql(…, within=…)` would take it. With `pilot` that first answer is
        bought; without, nothing is spent.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"age": [30, 40, 50] * 100}, columns={"age": cl.Integer(17, 90)})
        >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ...     str(session.spend_for("SELECT COUNT(*) AS n FROM people", within=50)), str(session.spent)
        ('ε = 0.0593128', 'ε = 0')
        """
        return self._spend_within(self._parsed(sql, dialect), within, pilot, confidence, purpose)

    def watch(
        self,
        sql: str,
        *,
        at: str,
        every: str,
        since: Moment,
        until: Moment,
        spend: Spending,
        fed: bool = False,
        late: Late = "drop",
        key: str | None = None,
        name: str = "",
        dialect: str | None = None,
    ) -> Watch | FreshWatch:
        """A question in SQL that is answered at every step of the clock. Nothing is charged yet: `cost`, `margin()` and `str` of
        what is returned say what will be.

        - `at`: the column that says when: of moments, of days, or of seconds since 1970-01-01 UTC. Of rows that are fed any
          column, which may hold ISO texts.
        - `every`, `since`, `until`: the clock: steps of "1 hour" from one moment to another, each with the rows whose time
          lies in it.
        - `spend`: what all steps cost together: in one charge before the first where the answer is a sum over rows in
          declared groups (COUNT, SUM, AVG, VARIANCE), and otherwise an equal part of it at each step.
        - `fed`: rows are handed in as they come (`watch.feed(rows)`) instead of read from the session's table, which then
          only says what is declared. Its `max_rows` are a person's rows in all steps.
        - `late`: what becomes of a row that is fed after its step was released: "drop", or "next", which counts it in the
          next step.
        - `key`: the column by which a row that is fed twice is known.
        - `name`: in the ledger, where a population has it once; without one it follows from all that is declared, so that
          the same watch goes on.

        >>> import cloister as cl
        >>> visits = cl.PrivateTable({"at": [10, 70, 75], "region": ["N", "S", "S"]},
        ...                          columns={"at": cl.Integer(0, 2**40), "region": cl.Category(["N", "S"])})
        >>> with cl.Session({"visits": visits}, budget=cl.ZCDP(1)) as session:
        ...     watch = session.watch("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", at="at",
        ...                           every="1 minute", since=0, until=180, spend="0.5")
        ...     [(step.ends, step.table["region"].tolist()) for step in watch][0], str(session.spent)
        (('1970-01-01T00:01:00+00:00', ['N', 'S']), 'ρ = 0.5')
        """
        from cloister.traces.moments import Steps
        from cloister.traces.watch import Watched, watch

        parsed = self._parsed(sql, dialect)
        if parsed.above is not None or len(parsed.questions) != 1:
            raise UnsupportedQuery(
                "The watch is not supported",
                why="it has more than one grouping, or works on with its answer",
                instead='session.watch("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", …)',
            )
        spend = _named(parsed, spend) or spend
        steps = Steps.of(every=every, since=since, until=until)
        watched = Watched(question=parsed.question, steps=steps, at=at, fed=fed, late=late, key=key, name=name)
        return watch(self, watched, spend, lambda release: laid_out([release], parsed))

    def _parsed(self, sql: str, dialect: str | None) -> Parsed:
        """The text, read against the tables that are seen now. The last one is kept: whoever decides on a question reads it
        before it is asked."""
        if not isinstance(sql, str) or not isinstance(dialect, str | None):
            why, instead = "it is not a text, or its dialect is not", 'session.sql("SELECT …", dialect="postgres")'
            raise InvalidParameter("The query is invalid", why=why, instead=instead)
        seen, key, last = self.seen, (sql, dialect), self._last_read
        if last is not None and last[0] is seen and last[1] == key:
            return last[2]
        forms = _FORMS.get(seen.snapshot) or _FORMS.setdefault(seen.snapshot, Forms())
        parsed = reviewed(self._in_order(forms.parsed(sql, seen.tables, dialect)), seen.tables)
        self._last_read = (seen, key, parsed)
        return parsed  # not what is kept, which another thread may have replaced by now

    def worded(self, refusal: CloisterError, *asked: object, **how: object) -> CloisterError:
        """A refusal with its line in SQL, where the question is a text."""
        named = (how[each] for each in ("sql", "question", "questions") if each in how)
        first, dialect = next(iter([*asked, *named]), None), how.get("dialect")
        texts = [first] if isinstance(first, str) else first
        if not (isinstance(texts, list | tuple) and texts and all(isinstance(each, str) for each in texts)):
            return refusal
        from cloister.query.remedies import in_sql  # only what is refused needs remedies

        return in_sql(refusal, texts, self.tables, dialect if isinstance(dialect, str) else None)

    def _in_order(self, parsed: Parsed) -> Parsed:
        """With its questions in the order of their digests: the digest of several is that of the list, and in which order a text
        names its parts is a matter of presentation."""
        if parsed.above is None or len(parsed.questions) < 2:
            return parsed
        shapes = self._shapes(parsed.questions)
        order = sorted(range(len(shapes)), key=lambda place: shapes[place].digest)
        return replace(parsed, questions=tuple(parsed.questions[place] for place in order), above=parsed.above.in_order(order))

    @pinned
    def columns(self, sql: str, *, dialect: str | None = None) -> AnswerColumns:
        """The columns that the answer to a question will have: for each its name, its kind, and whether it is measured. It spends
        nothing and reads no row.

        >>> import cloister as cl
        >>> people = cl.PrivateTable({"sex": ["F", "M"]}, columns={"sex": cl.Category(["F", "M"])})
        >>> with cl.Session({"people": people}, budget=cl.PureDP(1)) as session:
        ...     session.columns("SELECT sex, COUNT(*) AS n, SQRT(COUNT(*)) AS r FROM people GROUP BY sex")
        [('sex', 'text', False), ('n', 'integer', True), ('r', 'real', True)]
        """
        parsed = self._parsed(sql, dialect)
        if parsed.above is not None:
            return self._check_above(parsed, None)
        return columns_of(parsed.layout, [self._shape(each) for each in parsed.questions])

    def _check_above(self, parsed: Parsed, within: float | None) -> AnswerColumns:
        """The columns of what is worked out over answers; what the engine cannot work out is refused, before any charge."""
        assert parsed.above is not None
        if within is not None:
            raise InvalidParameter(
                f"within={within} is invalid",
                why="the margin of what is worked out over answers is not known before them",
                instead='spend="0.1"',
            )
        shapes = self._shapes(parsed.questions) if parsed.questions else []
        asked = [(part.parsed.layout, [shapes[place] for place in part.places]) for part in parsed.above.parts]
        return parsed.above.described(
            [{name: kind for name, kind, _ in columns_of(layout, own)} for layout, own in asked],
            [rows_of(layout, own) for layout, own in asked] if parsed.above.single else (),
        )

    def _free(self, parsed: Parsed) -> Release | None:
        """The answer that public tables or the declaration alone give; None where that is none."""
        if parsed.above is not None and not parsed.questions:
            return laid_out([], parsed, self._of_public(parsed))
        return self._certain(parsed) if parsed.certain else None

    def _certain(self, parsed: Parsed) -> Release:
        """The answer that the declaration alone gives, at no cost: one row of counts and sums of nothing, which are 0, and of
        means and the like, which have no value."""
        shape = self._shape(parsed.question)
        columns = columns_of(parsed.layout, [shape])
        values = {column.name: column.fixed[0] for column in parsed.layout.columns if column.source is None}
        zero, names, margins = zero_of_nothing(parsed.question), parsed.layout.names, dict[str, tuple[Any, Any]]()
        worked_out = {each.name: each.expression for each in parsed.question.statistics if isinstance(each, Combined)}
        for name, kind, measured in columns:
            if measured:
                value = of_nothing(worked_out.get(names[name], Named(names[name])), zero)
                known, real = not math.isnan(value), kind == "real"
                values[name] = value if real else int(value) if known else None
                margins[name] = (np.full(1, value),) * 2
        frame = Frame({name: Series(kind, constant(values[name], 1).values) for name, kind, _ in columns})
        first = public_release([table_name(parsed.question.table)], shape.digest, self.who, PureDP(0))
        made = Postprocessed.of(frame, margins, lambda _: margins, [], first)
        return replace(made, notes=(*parsed.notes, CERTAIN))

    def _of_public(self, parsed: Parsed) -> Release:
        """What is said of an answer that reads public tables alone: it cost nothing."""
        assert parsed.above is not None
        publics = parsed.above.publics
        # in the SQL they are p0, and their columns c0
        read = "".join(f"{each.step}: {each.source.name!r} {each.columns!r}\n" for each in publics)
        return public_release([each.source.name for each in publics], read + parsed.above.sql, self.who, PureDP(0))

    def _spend_within(self, parsed: Parsed, within: float, pilot: Spending | None, confidence: float, purpose: str) -> Guarantee:
        _named(parsed, None, within)
        if parsed.above is not None and not parsed.questions:
            raise _costs_nothing(f"within={within}")
        if parsed.above is not None:
            self._check_above(parsed, within)
        if len(parsed.questions) > 1:
            raise InvalidParameter(
                f"within={within} is invalid",
                why="several groupings are answered at once, each with its own margin",
                instead='spend="0.1"',
            )
        if pilot is not None:
            return self.spend_after_pilot(parsed.question, within, pilot, confidence=confidence, purpose=purpose)
        return self.spend_within(parsed.question, within, confidence=confidence)

    def _rehearsed(self, sql: str, *how: Any) -> Release:
        from cloister.session.execution.rehearsal import NOTE, rehearsal_tables

        spend, within, pilot, confidence, dialect = how
        budgets = {population: self.ledger.budget(population) for population in self.remaining_by}
        tables = {name: table for name, table in self.registry.snapshot.tables.items() if name in self.tables}
        with Session(rehearsal_tables(tables), budget=budgets, random=Random.deterministic(_REHEARSED)) as stage:
            seen = stage.through(self)
            answer = seen.sql(sql, spend, within=within, pilot=pilot, confidence=confidence, dialect=dialect)
        return replace(answer, notes=(*answer.notes, NOTE), buy_bias=None)


def _costs_nothing(what: str) -> InvalidParameter:
    return InvalidParameter(
        f"{what} is invalid",
        why="the query reads public tables alone: it costs nothing, and no noise is added",
        instead='session.sql("SELECT …")',
    )


def _named(parsed: Parsed, spend: Spending | None, within: float | None = None) -> Spending | None:
    """The spend that a text names, or that is given beside it: where they differ either may be meant, and both are refused."""
    own = parsed.spend
    if own is None or (within is None and _same(own, spend)):
        return spend if own is None else own
    raise InvalidParameter(
        f"spend={spend} is invalid" if within is None else f"within={within} is invalid",
        why=f"the query names {own} in its OPTIONS",
        instead=f'spend="{text_of(amount_of(own))}", or the query without epsilon',
    )


def _same(own: Guarantee, spend: Spending | None) -> bool:
    return spend in (None, own) if isinstance(spend, Guarantee | None) else exact_positive(spend, "spend") == amount_of(own)


def _given(spend: Spending | None) -> Spending:
    if spend is None:
        raise InvalidParameter(
            "The plan is invalid",
            why="it shows the margin that a spend gives, and no spend was named",
            instead='session.explain("SELECT …", spend="0.1")',
        )
    return spend


CHOSEN = "the rows were chosen by their noisy values: margin(joint=True) holds for them; a single margin held before the choice"


ABOVE = "what stands above the aggregates is worked out over their answers, at no cost"


def laid_out(answers: Sequence[Release], parsed: Parsed, free: Release | None = None) -> Release:
    """The answer in the columns and the order that the question asks for."""
    if parsed.above is not None:
        parts = [laid_out([answers[place] for place in part.places], part.parsed) for part in parsed.above.parts]
        kinds = parsed.above.described([{name: each.kind for name, each in part.table.columns.items()} for part in parts])
        made = parsed.above.result(parts, kinds, free)
        return replace(made, notes=tuple(dict.fromkeys((*made.notes, *parsed.notes))))
    layout = parsed.layout
    asked = [_with_columns(answer, layout, number) for number, answer in enumerate(answers)]
    if len(asked) == 1 and not (layout.chooses or layout.order):  # every row, where it stands
        return replace(asked[0], notes=(*asked[0].notes, *parsed.notes)) if parsed.notes else asked[0]
    needed = layout.needed()
    known = [_values(answer, needed) for answer in answers]
    places = layout.rows(known)
    if len(asked) == 1:
        answer, rows = asked[0], [row for _, row in places]
        answer = answer if rows == list(range(answer.num_rows)) else answer.take(rows)
    else:
        from cloister.session.workloads.sheets import sheets

        answer = sheets(asked, places)
    chosen = layout.chooses and _reads_noise(layout, answers[0])
    return replace(answer, notes=(*answer.notes, *([CHOSEN] if chosen else []), *parsed.notes))


def _values(answer: Release, needed: Sequence[str]) -> dict[str, list[Any]]:
    """The needed columns of one answer; without any, one that says how many rows there are."""
    everything = replace(answer, names={})
    table = everything.select({name: name for name in needed if name in everything.column_names}).table
    return {name: series.tolist() for name, series in table.columns.items()} or {"": [None] * answer.num_rows}


def _with_columns(answer: Release, layout: Layout, number: int) -> Release:
    """The columns that are shown, constants and rolled-up keys included, in order."""
    groups = dict(answer.groups)
    known = {*groups, *[formula.name for formula in answer.formulas]}
    names: dict[str, str] = {}
    for column in layout.columns:
        source = column.source
        if source is None:
            source = f"constant {column.name}"
            groups[source] = constant(column.fixed[number], answer.num_rows)
        elif source not in known:
            groups[source] = Series("text", np.full(answer.num_rows, None, dtype=object))
        names[column.name] = source
    return replace(answer, groups=groups, names=names)


def _reads_noise(layout: Layout, answer: Release) -> bool:
    """Whether a condition or an order, under a limit, looks at released numbers."""
    measured = set(replace(answer, names={}).statistics())
    read = [part.source for part in layout.order] + ([] if layout.having is None else sorted(layout.having.columns()))
    return any(name in measured for name in read)
