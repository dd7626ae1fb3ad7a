"""From SQL text to questions and the layout of their answer.

    words.py       text → one SELECT, in bounded time; dialect.py, options.py and rewriting.py: what people bring from elsewhere
    grammar.py     the allow-list: every kind of node, and every part of one, that is read below
    sources.py     FROM → rows and public tables; joins.py → one relation; semijoins.py: IN and EXISTS about the same person
    people.py      people of whom something holds, in WHERE or apart
    derived.py     questions within the question; within.py: their sums per person; publics.py, public_joins.py: of public tables
    rows.py        what names mean; scalars.py and functions.py: computed columns; conditions.py: WHERE; constants.py
    aggregates.py  statistics, and arithmetic on them; outputs.py: keys and grouping sets; bounded.py: what ZetaSQL bounds
    layout.py      names, HAVING, ORDER BY, LIMIT; evaluation.py: conditions on values that anybody may see
    postprocessing/  a query that aggregates and then goes on: where it is cut, and what is worked out over the answers

What is not on the list is refused by name, with the line to write instead. Nothing in a refusal comes from a private row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import ParseError

from cloister.errors import CloisterError
from cloister.privacy import Guarantee
from cloister.query.bounded import bounded
from cloister.query.conditions import anded
from cloister.query.derived import derive, rows_of
from cloister.query.dialect import canonical
from cloister.query.evaluation import MixedKinds
from cloister.query.grammar import check
from cloister.query.joins import joined
from cloister.query.layout import Layout
from cloister.query.options import Options
from cloister.query.outputs import Outputs, read_outputs
from cloister.query.precedence import check_names, check_precedence
from cloister.query.refusals import EXAMPLE, clipped, refused, unsupported
from cloister.query.rewriting import rewritten
from cloister.query.rows import Rows
from cloister.query.sources import Environment, Tables
from cloister.query.words import statement, unheard
from cloister.session import Combined, Question, Touched
from cloister.session.state.table_registry import with_columns
from cloister.tables import And, Base, Column, Expression, IsNull, Not, PrivateTable, Relation
from cloister.tables.expression.names import quoted

if TYPE_CHECKING:
    from cloister.query.postprocessing.program import Program


_MOST_PARTS, _MOST_PARTS_CUT = 15_000, 6_000


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """The questions that a text asks, one for each grouping set, and how their answer is laid out.

    `spend` is what the text says that it may cost, where it says so; `notes` are what else its analyst should know; `certain`
    says that the declaration alone gives the answer; `written` are the names of columns that are in the text, in small letters;
    `publics` the columns of public tables that were read to find constants; `tree` is the text as it was parsed.

    >>> from cloister.query.layout import Shown
    >>> from cloister.session import Count
    >>> question = Question(table="people", statistics=(Count(),))
    >>> Parsed(questions=(question,), layout=Layout(columns=(Shown(name="n", source="count"),))).names
    {'n': 'count'}
    """

    questions: tuple[Question, ...]
    layout: Layout
    spend: Guarantee | None = None
    notes: tuple[str, ...] = ()
    certain: bool = False
    written: frozenset[str] = frozenset()
    publics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    above: Program | None = field(default=None, compare=False)
    """What is worked out over the answers, where the text is no question as it stands (`postprocessing/`)."""
    tree: exp.Query | None = field(default=None, compare=False, repr=False)
    touched: list[Touched] = field(default_factory=list, compare=False, repr=False)
    """What it touches, once that is known: the same for all texts of a form (`forms.py`), which differ in no name."""

    @property
    def question(self) -> Question:
        """The first question: the only one without GROUPING SETS."""
        return self.questions[0]

    @property
    def names(self) -> Mapping[str, str]:
        """Output name → key or statistic, constants left out."""
        return self.layout.names


def parse(sql: str, tables: Tables, dialect: str | None = None, *, cut: bool = True) -> Parsed:
    """What one SELECT asks of private tables; with `cut` also one that works on with their answers.

    >>> import cloister as cl
    >>> people = cl.PrivateTable({"age": [30]}, columns={"age": cl.Integer(17, 90)})
    >>> parsed = parse("SELECT AVG(age) AS a FROM people WHERE age >= 18", {"people": people})
    >>> parsed.question.table, parsed.names
    ('people', {'a': 'avg(age)'})
    """
    refusal: CloisterError
    readable = False
    with unheard():
        try:
            return _parse(sql, tables, dialect, cut)
        except CloisterError as error:
            refusal, readable = error, True
        except RecursionError:
            readable = True
            refusal = refused("The query is not supported", "it is nested too deep to be read", EXAMPLE)
        except ParseError as error:
            at = next((each.get("highlight") for each in error.errors), None)
            refusal = refused(f"{clipped(at) if at else 'The query'} is invalid", "it is not SQL that can be read", EXAMPLE)
        except Exception:  # sqlglot fails in many ways on text that is no SQL, and so may a reader of its trees
            refusal = refused("The query is invalid", "it is not SQL that can be read", EXAMPLE)
    from cloister.query.remedies import in_words_of, with_plain_signs, without_quotes  # only what is refused needs remedies

    if names := without_quotes(sql, tables, dialect, _reads if readable else None):
        refusal = type(refusal)(
            refusal.what, why=f"it can be read only with the column {names[0]!r} in quotes", instead=", ".join(map(quoted, names))
        )
    if isinstance(sql, str) and (plain := with_plain_signs(sql)) != sql and _reads(plain, tables, dialect):
        refusal = refused("The query is invalid", "it has full-width signs, which SQL does not read", plain)
    else:
        refusal = in_words_of(refusal, sql, tables, dialect)
    refusal.__cause__ = refusal.__context__ = None
    raise refusal  # outside of the handler, so that nothing of what failed hangs on the refusal


def _reads(sql: str, tables: Tables, dialect: str | None) -> bool:
    with unheard():
        try:
            return bool(_parse(sql, tables, dialect, cut=True).questions)
        except Exception:  # as in `parse`
            return False


def _parse(sql: str, tables: Tables, dialect: str | None, cut: bool) -> Parsed:
    query, options = statement(sql, dialect)
    _sized(query)
    tree = query.copy()  # reading changes it
    written = frozenset(column.name.lower() for column in query.find_all(exp.Column))
    query = rewritten(query, canonical(dialect))
    size = _sized(query)
    try:
        parsed = question_of(query.copy(), tables, dialect, options)
    except CloisterError as refusal:
        if size > _MOST_PARTS_CUT or isinstance(refusal, MixedKinds):  # every trial reads all of it again
            raise
        parsed = _otherwise(query, tables, dialect, options, refusal, cut)
    return replace(parsed, written=written, tree=tree)


def _sized(query: exp.Query) -> int:
    """How many parts a query has, the values of lists not counted; refused where they are too many to be read in time."""
    parts = (node for node in query.walk() if not isinstance(node, exp.Literal))
    size = sum(1 for _ in islice(parts, _MOST_PARTS + 1))
    if size > _MOST_PARTS:
        raise refused(
            "The query is not supported", f"it has more than {_MOST_PARTS:,} parts", "several questions of fewer columns"
        )
    return size


def _otherwise(
    query: exp.Query, tables: Tables, dialect: str | None, options: Options, refusal: CloisterError, cut: bool
) -> Parsed:
    """What a query that is no question means: without references to the query around, or cut above its aggregates."""
    from cloister.query.correlated import uncorrelated
    from cloister.query.people import counted_apart

    others = [*uncorrelated(query, tables), *counted_apart(query)]
    for each in others:
        try:
            return question_of(each.copy(), tables, dialect, options)
        except CloisterError:
            continue
    if not cut:
        raise refusal
    why = refusal
    for place, each in enumerate([query, *others]):
        try:
            return _cut(each, tables, dialect, options, refusal)
        except CloisterError as error:
            why = error if place == 0 else why
    raise why


def _cut(query: exp.Query, tables: Tables, dialect: str | None, options: Options, refusal: CloisterError) -> Parsed:
    """The questions within a query that is none, and what stands above them; the first refusal where there are none."""
    from cloister.query.postprocessing.cut import Above, cut

    try:
        return cut(query, tables, dialect, options)
    except Above as above:
        why = above.why
    except CloisterError:
        why = refusal
    raise why


def question_of(query: exp.Query, tables: Tables, dialect: str | None, options: Options) -> Parsed:
    """A query that is a question as it stands; the tree is changed."""
    check(query)
    check_precedence(query)
    check_names(query, tables)
    if not isinstance(query, exp.Select):
        raise refused(f"{query.key.upper()} of answers is not supported", "each is an answer of its own", "two questions")
    environment = Environment(tables=tables, derive=derive, typed=canonical(dialect)).inside(query)
    rows, rest, public = joined(query, environment)
    if public is not None:
        raise unsupported(f"A query about the public table {public.label!r} alone", "read it directly: it is not protected")
    assert rows is not None
    _check_unit(options, rows)
    reader, rest = rows_of(rows, rest, environment)
    where = anded([reader.condition(part) for part in rest])
    if where is not None and rows.relation.numbered():  # it may bound how many rows of a person count
        rows.filter(where)
        where = None
    query, where, notes = bounded(query, where, reader, options)
    outputs = read_outputs(query, reader)
    return Parsed(
        questions=_questions(rows, where, outputs),
        layout=outputs.layout,
        spend=options.spend,
        notes=(*options.notes, *notes),
        publics={name: frozenset(columns) for name, columns in environment.read.items()},
    )


def _questions(rows: Rows, where: Expression | None, outputs: Outputs) -> tuple[Question, ...]:
    relation = rows.built()
    table = relation.name if isinstance(relation, Base) and relation.through is None else relation
    if len(outputs.sets) > 1:
        where = _with_values(where, relation, outputs)
    shown = set(outputs.layout.needed())
    inside = {name for each in outputs.statistics.values() if isinstance(each, Combined) for name in each.expression.names()}
    hidden = tuple(name for name in outputs.statistics if name in inside and name not in shown)
    return tuple(
        Question(table=table, by=keys, statistics=tuple(outputs.statistics.values()), where=where, hidden=hidden)
        for keys in outputs.sets
    )


def _with_values(where: Expression | None, relation: Relation, outputs: Outputs) -> Expression | None:
    """Grouping sets count the rows that have a value of every key that they name, so that the totals are those of the cells."""
    keys = dict.fromkeys(key for keys in outputs.sets for key in keys)
    present = [Not(IsNull(Column(key))) for key in keys if not relation.columns[key].nullable]
    parts = [*(() if where is None else where.parts if isinstance(where, And) else (where,)), *present]
    return anded(parts)


def _check_unit(options: Options, rows: Rows) -> None:
    """privacy_unit_column must be what the owner declared: nobody else says who is protected."""
    if options.unit is not None and not any(each.unit and each.name.lower() == options.unit.lower() for each in rows.fields):
        raise refused(
            "privacy_unit_column is not supported",
            "it is not the unit that the table's owner declared",
            "OPTIONS without privacy_unit_column",
        )


def touched_in(parsed: Parsed, sql: str, tables: Tables, dialect: str | None, touched: Callable[[Question], Touched]) -> Touched:
    """What a text touches: what its questions read, given what one does, and what the text names besides.

    A subquery about public tables was answered while the text was read; what it read was noted then. Another may select a column
    that nothing above it reads: it is not read, but the question stands only where the column may be named, so it counts.
    """
    found = Touched(parsed.publics)
    for question in parsed.questions:
        found |= touched(question)
    written = parsed.written
    for name in found:
        table = tables[name]
        if isinstance(table, PrivateTable):
            idle = [column for column in table.columns if column not in found[name] and column.lower() in written]
            found |= Touched({name: [column for column in idle if _named(sql, tables, dialect, name, table, column)]})
    return found


def _named(sql: str, tables: Tables, dialect: str | None, name: str, table: PrivateTable, column: str) -> bool:
    """Whether the text cannot be read when the table lacks the column."""
    rest = [each for each in table.columns if each != column]
    if not rest:
        return True
    try:
        parse(sql, {**tables, name: with_columns(table, rest)}, dialect)
    except CloisterError:
        return True
    return False
