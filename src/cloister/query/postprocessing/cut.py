"""Where a query is cut: the lowest SELECTs that aggregate private tables are questions, and what stands above is a program over
their answers.

A query that is a question as it stands is no matter of this file. Of any other, each query within it is first tried as a
question, from the outside in: its HAVING, ORDER BY and LIMIT go with it. A SELECT over private rows that is none is parted in
two: its keys and aggregates are asked, and its expressions are worked out over the groups that are answered. What reads people's
rows and aggregates nothing stays part of the question around it. The questions share one charge; the same ones under another
program cost nothing again, since what is stored is theirs alone.

Guarantee: that of the questions, by their composition (Dwork & Roth 2014, Theorem 3.16; the ledger counts it), since everything
above is a function of released tables and public ones (post-processing, Proposition 2.1 there).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from cloister.errors import CloisterError
from cloister.query.aggregates import holds_aggregate
from cloister.query.dates import FROM_SUNDAY_1
from cloister.query.derived import group_targets
from cloister.query.layout import Layout
from cloister.query.options import Options
from cloister.query.parse import Parsed, question_of
from cloister.query.postprocessing.allowed import SELECT, parts_of
from cloister.query.postprocessing.expressions import Expressions, Rows
from cloister.query.postprocessing.parting import Known, Named, Parting, with_names
from cloister.query.postprocessing.program import Part, Program, PublicPart
from cloister.query.postprocessing.queries import Column, Scope, Select, Step, stacked
from cloister.query.precedence import check_names, check_precedence
from cloister.query.publics import PublicSource
from cloister.query.refusals import EXAMPLE, refused, shown, unsupported
from cloister.query.rows import Qualifier, same
from cloister.query.sources import Tables, table_named
from cloister.session.questions.question import Largest, Mode, Quantile, Question, Smallest
from cloister.tables import Domain, PrivateTable

GROUPS = "what is worked out over groups counts all that are declared, empty ones too"
SHOWN = "what is worked out over groups counts only those that are shown"
SEVERAL = "a query in the place of a value fails after the charge where released numbers leave it several rows: LIMIT 1"
_MOST_TRIED = 100
_MOST_STEPS = 64
_DEEPEST = 16

_OF_ONE: dict[str, type[exp.Expression]] = {
    "VAR": exp.Variance,
    "VARP": exp.VariancePop,
    "STDEV": exp.Stddev,
    "STDEVP": exp.StddevPop,
    "COUNTIF": exp.CountIf,
}
_OF_TWO: dict[str, tuple[type[exp.Expression], str]] = {
    "QUANTILE_CONT": (exp.Quantile, "quantile"),
    "QUANTILE_DISC": (exp.PercentileDisc, "expression"),
    "PERCENTILE": (exp.Quantile, "quantile"),
    "APPROX_PERCENTILE": (exp.Quantile, "quantile"),
    "TRUNC": (exp.Trunc, "decimals"),
}


class _PersonRows(Exception):
    """A source whose rows belong to people: it is read by a question, and never above one."""

    def __init__(self, why: CloisterError) -> None:
        super().__init__(str(why))
        self.why = why


@dataclass(kw_only=True)
class _Cut:
    tables: Tables
    options: Options
    dialect: str | None
    parts: list[Part] = field(default_factory=list)
    publics: dict[str, PublicPart] = field(default_factory=dict)
    steps: list[tuple[str, str]] = field(default_factory=list)
    single: list[Step] = field(default_factory=list)
    done: dict[int, tuple[exp.Expression, Step | CloisterError]] = field(default_factory=dict)
    """What each query was found to be, by its identity; with the query, so that no other comes to have that."""
    above: set[int] = field(default_factory=set)
    """The refusals that say more than the first one: of what stands above a question, and of what could be nothing else."""
    tried: int = 0
    named: int = 0
    groups: bool = False
    """Whether anything is worked out over several groups."""

    # queries

    def step(self, query: exp.Expression, known: Known, depth: int = 0) -> Step:
        """The table that a query makes of answers; refused where it reads people's rows and releases nothing of them."""
        while isinstance(query, exp.Subquery) and not any(query.args.get(part) for part in ("with_", "order", "limit", "offset")):
            query = query.this
        if id(query) not in self.done:
            before = len(self.parts), len(self.steps), len(self.single)
            found: Step | CloisterError
            try:
                found = self._made(query, known, depth)
            except CloisterError as error:
                if len(self.parts) > before[0]:
                    self.above.add(id(error))
                del self.parts[before[0] :], self.steps[before[1] :], self.single[before[2] :]
                found = error
            self.done[id(query)] = query, found
        found = self.done[id(query)][1]
        if isinstance(found, CloisterError):
            raise found
        return found

    def _made(self, query: exp.Expression, known: Known, depth: int) -> Step:
        if depth > _DEEPEST:
            raise refused("The query is not supported", f"questions are nested deeper than {_DEEPEST}", EXAMPLE)
        if isinstance(query, exp.Subquery):
            raise unsupported("WITH, ORDER BY or LIMIT behind a parenthesis", EXAMPLE)
        if not isinstance(query, exp.Select | exp.SetOperation):
            raise unsupported(shown(query), EXAMPLE)
        known = self._with(query, known)
        private = self.is_private(query, known)
        asked = self._asked(query, known) if private and isinstance(query, exp.Select) else None
        if isinstance(asked, Parsed):
            return self._part(asked, distinct=query.args.get("distinct") is not None)
        try:
            if isinstance(query, exp.SetOperation):
                sides = [self.step(each, known, depth + 1) for each in (query.this, query.expression)]
                return self._add(*stacked(query, sides[0], sides[1], self._next()))
            return self._selected(query, known, depth)
        except _PersonRows as rows:
            if not isinstance(query, exp.Select):
                raise rows.why from None
            parts, why = len(self.parts), asked or rows.why
            try:
                return self._parted(query, known, depth, why)
            except CloisterError as error:
                if len(self.parts) > parts or id(error) in self.above or not self._releases(query, known, why):
                    raise
                told = error if query.find(exp.Window) else why  # no question has a window over groups
                self.above.add(id(told))
                raise told from None

    def _with(self, query: exp.Expression, known: Known) -> Known:
        clause = query.args.get("with_")
        if clause is not None:
            parts_of(clause, frozenset({"expressions"}), "WITH")
        for cte in clause.expressions if clause is not None else ():
            parts_of(cte, frozenset({"this", "alias", "materialized"}), "WITH")
            name = cte.args["alias"].this.name.lower()
            if name in known:
                raise refused(f"The name {name!r} is not supported", "two queries bear it", "another name")
            known = {**known, name: Named(cte, known)}
        return known

    def _next(self) -> str:
        if len(self.steps) >= _MOST_STEPS:
            raise refused(
                "The query is not supported", f"it has more than {_MOST_STEPS} queries above its aggregates", "fewer parts"
            )
        self.named += 1  # a query within this one may take the next name before this one is a step
        return f"w{self.named - 1}"

    def _add(self, sql: str, step: Step) -> Step:
        self.steps.append((step.name, sql))
        return step

    def _over(self, select: Select) -> Step:
        step = self._add(*select.read(self._next()))
        self.groups = self.groups or select.over_rows
        return step

    # private questions

    def is_private(self, query: exp.Expression, known: Known) -> bool:
        """Whether any name in it may be that of a private table. A name too many costs no more than a trial."""
        private = {name.lower() for name, table in self.tables.items() if isinstance(table, PrivateTable)}
        private |= {name.rpartition(".")[2] for name in private}
        waiting = [(query, known)]
        seen: set[int] = set()
        while waiting:
            tree, names = waiting.pop()
            for table in tree.find_all(exp.Table):
                named = names.get(table.name.lower()) if not table.args.get("db") else None
                if named is None and table.name.lower() in private:
                    return True
                if named is not None and id(named) not in seen:
                    seen.add(id(named))
                    waiting.append((named.tree.this, named.known))
        return False

    def _releases(self, query: exp.Select, known: Known, why: CloisterError) -> bool:
        """Whether it aggregates people's rows otherwise than person by person, so that no question around it can read it."""
        parting = Parting(self.tables, self.dialect, query, known, why)
        shown = parting.of_answers(query)  # a window within may be over people's rows, where nothing is grouped
        if query.args.get("group") is None and (
            any(each.find(exp.Window) for each in shown) or not any(map(holds_aggregate, shown))
        ):
            return False
        try:
            rows = parting.reader_of_rows().rows
            return not any(map(rows.is_unit, group_targets(query, query.expressions)))
        except CloisterError:
            return True

    def _asked(self, query: exp.Select, known: Known) -> Parsed | CloisterError:
        """The query as a question of its own, or why it is none."""
        self.tried += 1
        if self.tried > _MOST_TRIED:
            raise refused("The query is not supported", f"it has more than {_MOST_TRIED} questions in it", "fewer parts")
        try:
            return question_of(with_names(query, known), self.tables, self.dialect, self.options)
        except CloisterError as error:
            return error

    def _part(self, parsed: Parsed, *, named: bool = True, distinct: bool = False) -> Step:
        place = len(self.parts)
        columns, loose = _columns_of(parsed, self.tables)
        if all(each.kind == "certain" for each in columns) and not loose:
            error = refused(
                "A part of keys alone is not supported",
                "its rows would be the declared keys, whether any row has them or not",
                "COUNT(*) beside them, or COUNT(DISTINCT ward)",
            )
            self.above |= set() if distinct else {id(error)}  # of DISTINCT the first refusal says more
            raise error
        self.parts.append(Part(parsed=parsed, columns=columns, named=named))
        return Step(name=f"r{place}", columns=columns, loose=loose)

    def _parted(self, query: exp.Select, known: Known, depth: int, why: CloisterError) -> Step:
        """A SELECT over people's rows: its keys and aggregates are asked, and the rest is a query over the groups."""
        parts_of(query, SELECT, "a query that goes on with its aggregates")
        below, above = Parting(self.tables, self.dialect, query, known, why).parts()
        asked = self._asked(below, known)
        if not isinstance(asked, Parsed):
            raise asked
        step = self._part(asked, named=False)
        scope = self._scope(known, depth, "the groups")
        scope.add(step, "s0", ())
        return self._over(Select(tree=above, scope=scope, source=f"{step.name} AS s0", places="s0.z", loose=step.loose))

    # queries over answers

    def _scope(self, known: Known, depth: int, label: str = "the query") -> Scope:
        sunday = int(self.dialect in FROM_SUNDAY_1)
        return Scope(steps=lambda inner: self.step(inner, known, depth + 1), sunday=sunday, label=label, single=self.single)

    def _selected(self, query: exp.Select, known: Known, depth: int) -> Step:
        scope = self._scope(known, depth)
        source = query.args.get("from_")
        if source is None:
            if query.args.get("joins"):
                raise refused("The query is not supported", "it names no table", EXAMPLE)
            return self._over(Select(tree=query, scope=scope, source="", places="[0]", loose=False))
        joins = [*(source.this.args.get("joins") or ()), *(query.args.get("joins") or ())]
        if any(join.this.args.get("joins") for join in joins):
            raise refused(
                "A join within a join is not supported",
                "its parts are read in the order in which they are written",
                "FROM a JOIN b USING (sex) JOIN c USING (sex)",
            )
        items = [self._item(each, known, depth) for each in (source.this, *(join.this for join in joins))]
        if len(items) > 9:
            raise refused("The joins are not supported", "there are more than 8", "fewer tables")
        scope.label = " and ".join(names[0][-1].name for _, names in items if names) or scope.label
        loose = any(step.loose for step, _ in items)
        text, certain = self._joined(scope, items, joins)
        places = [f"coalesce(s{number}.z, [])" for number in range(len(items))]
        together = places[0] if len(places) == 1 else f"list_concat({', '.join(places)})"
        return self._over(Select(tree=query, scope=scope, source=text, places=together, loose=loose or not certain))

    def _joined(self, scope: Scope, items: list[tuple[Step, tuple[Qualifier, ...]]], joins: list[exp.Join]) -> tuple[str, bool]:
        """FROM as SQL, and whether no released number decides which rows are joined."""
        (first, qualifiers), *rest = items
        scope.add(first, "s0", qualifiers)
        text, certain, loose = f"{first.name} AS s0", True, first.loose
        for number, ((step, names), join) in enumerate(zip(rest, joins, strict=True), 1):
            parts_of(join, frozenset({"this", "on", "using", "side", "kind", "method"}), "a join")
            alias = f"s{number}"
            word = _word_of(join)
            using = [part.name for part in join.args.get("using") or ()]
            if str(join.args.get("method") or "").upper() == "NATURAL":
                using = scope.in_common(step)
            equal = []
            for name in using:
                left = scope.column(exp.column(exp.to_identifier(name)))
                places = [place for place, column in enumerate(step.columns) if column.name.lower() == name.lower()]
                if len(places) != 1:
                    raise refused("USING is not supported", f"the column {name!r} is not in both tables", "JOIN … ON a.x = b.y")
                equal.append((left, step.value(places[0], alias)))
            if using and word == "CROSS JOIN":
                raise unsupported(f"USING with {word}", "ON a.sex = b.sex")
            called = frozenset(name.lower() for name in using)
            if word == "RIGHT JOIN":
                scope.hide(called)
            scope.add(step, alias, names, hidden=frozenset() if word == "RIGHT JOIN" else called)
            before, loose = loose, loose or step.loose
            on = join.args.get("on")
            if word == "CROSS JOIN":
                if on is not None or using:
                    raise unsupported("CROSS JOIN with a condition", "JOIN … ON a.sex = b.sex")
                text += f" CROSS JOIN {step.name} AS {alias}"
                continue
            reader = scope.reader = Expressions(names=scope, rows=Rows())
            conditions = [reader.read(on)] if on is not None else []
            wanted = [each.sql for each in conditions] + [f"{one.sql} = {other.sql}" for one, other in equal]
            if not wanted:
                raise refused("A join is not supported", "no column of both sides is compared", "JOIN … ON a.sex = b.sex")
            together = all(each.certain for each in (*conditions, *(part for pair in equal for part in pair)))
            if not together and word != "JOIN":  # it would show as missing what noise has not matched
                raise unsupported(f"{word} by released numbers", "JOIN … ON a.n > b.n")
            certain = certain and together
            loose = loose or not certain
            if word in ("LEFT JOIN", "FULL JOIN"):
                scope.may_be_missing(alias, chosen=step.loose)
            if word in ("RIGHT JOIN", "FULL JOIN"):
                for earlier in range(number):
                    scope.may_be_missing(f"s{earlier}", chosen=before)
            if using and word == "FULL JOIN":
                scope.either(called, number)
            text += f" {word} {step.name} AS {alias} ON {' AND '.join(wanted)}"
        return text, certain

    def _item(self, tree: exp.Expression, known: Known, depth: int) -> tuple[Step, tuple[Qualifier, ...]]:
        alias = tree.args.get("alias")
        name = None if alias is None else alias.this
        if isinstance(tree, exp.Subquery):
            parts_of(tree, frozenset({"this", "alias"}), "FROM")
            if not isinstance(tree.this, exp.Query) or isinstance(tree.this, exp.Table):
                raise unsupported("A join in parentheses", "FROM a JOIN b USING (sex)")
            try:
                found = self.step(tree.this, known, depth + 1)
            except CloisterError as error:
                raise self._of_people(error, tree.this, known) from None
            return _renamed(found, alias), () if name is None else ((name,),)
        if not isinstance(tree, exp.Table) or not isinstance(tree.this, exp.Identifier):
            raise unsupported("A function in FROM", EXAMPLE)
        parts_of(tree, frozenset({"this", "db", "catalog", "alias", "joins"}), "FROM")
        parts = tuple(tree.parts)
        qualifiers: tuple[Qualifier, ...] = (parts,) if name is None else ((name,),)  # an alias takes the name's place
        cte = known.get(parts[0].name.lower()) if len(parts) == 1 else None
        if cte is not None and same(parts[0], cte.tree.args["alias"].this.name):
            try:
                found = _renamed(self.step(cte.tree.this, cte.known, depth + 1), cte.tree.args["alias"])
                return _renamed(found, alias), qualifiers
            except CloisterError as error:
                raise self._of_people(error, cte.tree.this, cte.known) from None
        return _renamed(self._table(tree, qualifiers), alias), qualifiers

    def _of_people(self, error: CloisterError, query: exp.Expression, known: Known) -> Exception:
        """A query within that is none over answers: its rows belong to people, where it reads any and asks nothing of them."""
        return _PersonRows(error) if id(error) not in self.above and self.is_private(query, known) else error

    def _table(self, tree: exp.Table, qualifiers: tuple[Qualifier, ...]) -> Step:
        name = table_named(tuple(tree.parts), self.tables)
        table = self.tables[name]
        if isinstance(table, PrivateTable):
            raise _PersonRows(
                refused("A query without an aggregate is not supported", "rows never leave; counts, sums and means do", EXAMPLE)
            )
        known = self.publics.get(name)
        if known is None:
            source = PublicSource(name=name, table=table)
            known = self.publics[name] = PublicPart(step=f"p{len(self.publics)}", source=source, columns=[])
        columns = tuple(Column(each) for each in table.names)
        return Step(name=known.step, columns=columns, used=known.use)


def cut(query: exp.Query, tables: Tables, dialect: str | None, options: Options) -> Parsed:
    """The questions of a query that is none as it stands, and the program over their answers."""
    check_precedence(query)
    check_names(query, tables)
    query = query.transform(_spelled)
    state = _Cut(tables=tables, options=options, dialect=dialect)
    try:
        last = state.step(query, {})
    except CloisterError as error:
        raise (Above(error) if id(error) in state.above or not state.is_private(query, {}) else error) from None
    if not state.parts and not state.publics:
        raise refused("The query is not supported", "it names no table", EXAMPLE)
    questions: list[Question] = []
    for part in state.parts:
        part.places = tuple(_place(each, questions) for each in part.parsed.questions)
    program = Program(
        parts=tuple(state.parts),
        publics=tuple(state.publics.values()),
        steps=tuple(state.steps),
        last=last,
        single=tuple(dict.fromkeys(each.name for each in state.single if each.counted or not each.loose)),
    )
    publics: dict[str, frozenset[str]] = {}
    for part in state.parts:
        for name, columns in part.parsed.publics.items():
            publics[name] = publics.get(name, frozenset()) | columns
    for public in state.publics.values():
        used = frozenset(public.source.table.names[place] for place in public.columns)
        publics[public.source.name] = publics.get(public.source.name, frozenset()) | used
    notes = [note for part in state.parts for note in part.parsed.notes]
    if state.groups and any(question.by for question in questions):
        notes.append(SHOWN if any(_columns_of(part.parsed, tables)[1] for part in state.parts) else GROUPS)
    notes += [SEVERAL] if any(each.loose and not each.counted for each in state.single) else []
    return Parsed(
        questions=tuple(questions),
        layout=Layout(columns=()),
        spend=options.spend,
        notes=tuple(dict.fromkeys((*options.notes, *notes))),
        publics=publics,
        above=program,
    )


def _spelled(node: exp.Expression) -> exp.Expression:
    """A function that the parser does not know by name, as the one that it does."""
    if isinstance(node, exp.SafeDivide):
        return exp.Paren(this=exp.Div(this=exp.Paren(this=node.this), expression=exp.Paren(this=node.expression)))
    if not isinstance(node, exp.Anonymous) or not isinstance(node.this, str):
        return node
    name, given = node.this.upper(), node.expressions
    if name in _OF_TWO and len(given) == 2:
        kind, second = _OF_TWO[name]
        return kind(this=given[0], **{second: given[1]})
    return _OF_ONE[name](this=given[0]) if name in _OF_ONE and len(given) == 1 else node


class Above(Exception):
    """A refusal of what stands above the cut: the rest of the query was understood, so the analyst should read this."""

    def __init__(self, why: CloisterError) -> None:
        super().__init__(str(why))
        self.why = why


def _renamed(step: Step, alias: exp.TableAlias | None) -> Step:
    """A source whose columns have other names: `AS t (a, b)`."""
    names = [] if alias is None else [each.name for each in alias.columns]
    if not names:
        return step
    if len(names) > len(step.columns) or len(set(names)) < len(names):
        raise refused("Renaming columns is not supported", "there is not one column for each name", "AS t (a, b)")
    named = [Column(name, column.kind) for name, column in zip(names, step.columns, strict=False)]
    return replace(step, columns=(*named, *step.columns[len(names) :]))


def _place(question: Question, questions: list[Question]) -> int:
    """Its place among the questions; the same one twice is asked once."""
    if question not in questions:
        questions.append(question)
    return questions.index(question)


def _columns_of(parsed: Parsed, tables: Tables) -> tuple[tuple[Column, ...], bool]:
    """The columns of an answer, and whether noise decides which rows it has."""
    keys = {key for question in parsed.questions for key in question.by}
    first = parsed.questions[0]
    relation = tables[first.table] if isinstance(first.table, str) else first.table
    declared: Mapping[str, Domain] = relation.columns or {}
    statistics = {each.name: each for each in first.statistics}
    columns: list[Column] = []
    for each in parsed.layout.columns:
        if each.source is None or each.source in keys:
            columns.append(Column(each.name))
            continue
        statistic = statistics.get(each.source)
        numeric = not isinstance(statistic, Mode)
        if isinstance(statistic, Quantile | Smallest | Largest):
            numeric = declared[statistic.column].kind in ("integer", "real")
        columns.append(Column(each.name, "number" if numeric else "exact"))
    open_keys = any(not isinstance(key, str) or key not in declared or declared[key].size is None for key in keys)
    ordered = any(each.source not in keys for each in parsed.layout.order)  # which row comes first is noise's, then
    return tuple(columns), open_keys or ordered or parsed.layout.chooses


def _word_of(join: exp.Join) -> str:
    method, side, kind = (str(join.args.get(part) or "").upper() for part in ("method", "side", "kind"))
    natural = method == "NATURAL"
    if (method and not natural) or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise unsupported(f"{method or kind} JOIN", "JOIN … ON a.sex = b.sex")
    if natural:
        return f"{side} JOIN" if side else "JOIN"
    if kind == "CROSS" or (not side and not kind and join.args.get("on") is None and not join.args.get("using")):
        return "CROSS JOIN"
    return f"{side} JOIN" if side else "JOIN"
