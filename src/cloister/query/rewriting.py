"""Other spellings of what is read already, brought to the one that is: before a tree is checked, and never with another meaning.

x ILIKE 'd%'                → LOWER(x) LIKE 'd%'; LIKE of sqlite, too
MAKE_DATE(2026, 1, 31)      → DATE '2026-01-31'
a SEMI JOIN b USING (k)     → a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k); ANTI: NOT EXISTS
STRFTIME(day, '%Y-%m'), FORMAT_DATE, TO_CHAR, MONTHNAME → one function, which `postprocessing/` works out over keys
(SELECT …) LIMIT 3          → SELECT * FROM (SELECT …) LIMIT 3
GROUP BY ALL, ORDER BY ALL  → the columns that it stands for
DISTINCT ON (a) … ORDER BY b → QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) = 1
(a, b) IN ((1, 2), (3, 4))  → a = 1 AND b = 2 OR a = 3 AND b = 4
DISTINCT a, SUM(x) OVER (PARTITION BY a) → a, SUM(x) … GROUP BY a
Functions by other names stand in spellings.py, times of day in times.py, joins in parentheses in parentheses.py, lists of
quantiles in quantiles.py.
"""

import datetime
import re
from collections.abc import Sequence

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from cloister.query.aggregates import holds_aggregate
from cloister.query.parentheses import flattened
from cloister.query.postprocessing.allowed import is_short
from cloister.query.postprocessing.periods import LOWER, PADDED, UPPER, single_part, written_out
from cloister.query.quantiles import lists
from cloister.query.refusals import clipped, refused
from cloister.query.spellings import spelled
from cloister.query.times import timed

_AGGREGATES = frozenset(
    {"COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VARIANCE", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP"}
)
_LETTERS = {"YYYY": "%Y", "MM": "%m", "DD": "%d", "IYYY": "%G", "IW": "%V", "DDD": "%j", "Q": "%Q"}
_WEEKDAYS = {"ID": "%u", "D": "%o"}
_NAMES = {"MONTH": "B", "MON": "b", "DAY": "A", "DY": "a"}
_LETTER = re.compile(r'FM|MONTH|MON|IYYY|YYYY|DDD|DAY|DY|DD|MM|IW|ID|Q|D|"[^"%]*"|[-/.,:;_() ]+', re.IGNORECASE)
_UNPADDED = ("YYYY", "IYYY", "Q", "ID", "D")
_ONE_ALONE = ("postgres", "redshift")
_JAVA, _JAVA_LETTERS = ("spark", "spark2", "databricks"), ("yyyy", "MM", "dd")
_NAMING = (None, "duckdb", "postgres", "redshift", "oracle")
"""Where TO_CHAR writes names, in the case of its letters and padded with blanks, and what stands in quotes."""
_AROUND = ("order", "limit", "offset")


def without_all(tokens: Sequence[Token]) -> list[Token]:
    """COUNT(ALL x) is COUNT(x).

    >>> import sqlglot
    >>> " ".join(token.text for token in without_all(sqlglot.tokenize("SELECT COUNT(ALL age) FROM people")))
    'SELECT COUNT ( age ) FROM people'
    """
    found: list[Token] = []
    for token in tokens:
        opened = len(found) > 1 and found[-1].token_type is TokenType.L_PAREN and found[-2].text.upper() in _AGGREGATES
        if not (token.token_type is TokenType.ALL and opened):
            found.append(token)
    return found


def outermost(tree: exp.Expression) -> exp.Expression:
    """A query in parentheses as the query that it is; with ORDER BY or LIMIT behind them, as one over it.

    >>> import sqlglot
    >>> outermost(sqlglot.parse_one("((SELECT 1))")).sql(), outermost(sqlglot.parse_one("(SELECT 1 AS a) LIMIT 3")).sql()
    ('SELECT 1', 'SELECT * FROM (SELECT 1 AS a) AS answers LIMIT 3')
    """
    while isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Query) and tree.args.get("alias") is None:
        around = {part: value for part, value in tree.args.items() if value and part != "this"}
        if not around:
            tree = tree.this
            continue
        if set(around) - set(_AROUND):
            break
        inner = exp.Subquery(this=tree.this, alias=exp.TableAlias(this=exp.to_identifier("answers")))
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner), **around)
    return tree


def rewritten(query: exp.Query, dialect: str | None = None) -> exp.Query:
    """The query in the spellings that are read, in a dialect by the name that it goes by here.

    >>> import sqlglot
    >>> rewritten(sqlglot.parse_one("SELECT COUNT(*) FROM a SEMI JOIN b USING (k) WHERE t ILIKE 'D%'")).sql()
    "SELECT COUNT(*) FROM a WHERE LOWER(t) LIKE 'd%' AND EXISTS(SELECT 1 FROM b WHERE b.k = a.k)"
    """
    for select in list(query.find_all(exp.Select)):
        flattened(select)
        _semijoins(select)
        _all(select)
        _first_of_each(select)
        _once_for_each(select)
        lists(select, dialect)
    for like in query.find_all(exp.Like) if dialect == "sqlite" else ():  # where LIKE knows no case
        like.set("this", exp.Lower(this=like.this))
        if like.expression.is_string:
            like.set("expression", exp.Literal.string(like.expression.this.lower()))
    found = query.transform(lambda node: timed(node) or spelled(_changed(node, dialect), dialect))
    found = found.transform(_compared)
    assert isinstance(found, exp.Query)
    return found


def _changed(node: exp.Expression, dialect: str | None) -> exp.Expression:
    if isinstance(node, exp.SafeFunc):  # no function fails here: each is NULL where it has no value
        return _changed(node.this, dialect)
    if isinstance(node, exp.ILike):
        pattern = node.expression
        if isinstance(pattern, exp.Literal) and pattern.is_string:
            return exp.Like(this=exp.Lower(this=node.this), expression=exp.Literal.string(pattern.this.lower()))
    elif isinstance(node, exp.Monthname):
        return _format(node.this, "%b" if node.args.get("abbreviated") else "%B")
    elif isinstance(node, exp.Dayname):
        return _format(node.this, "%a" if node.args.get("abbreviated") else "%A")
    elif isinstance(node, exp.ToChar):
        letters = node.args.get("format")
        if isinstance(letters, exp.Literal) and letters.is_string:
            written = _of_letters(letters.this, dialect)
            if written is None:
                raise refused(
                    f"TO_CHAR with {clipped(letters.this)} is not supported",
                    "its letters name nothing that a day has, or they mean different things in different dialects",
                    "TO_CHAR(day, 'YYYY-MM')",
                )
            return _format(node.this, written)
    elif isinstance(node, exp.In) and isinstance(node.this, exp.Tuple) and node.expressions:
        return _of_tuples(node)
    elif isinstance(node, exp.Window) and isinstance(node.this, exp.RowNumber) and isinstance(node.args.get("order"), exp.Order):
        if all(isinstance(each.this, exp.Rand) for each in node.args["order"].expressions):  # any order will do
            node.set("order", None)
    elif isinstance(node, exp.DateFromParts):
        return _date(node, [node.args.get(part) for part in ("year", "month", "day")])
    elif isinstance(node, exp.Anonymous) and isinstance(node.this, str):
        return _anonymous(node, node.this.upper(), node.expressions)
    return node


def _of_tuples(node: exp.In) -> exp.Expression:
    """(a, b) IN ((1, 2), (3, 4)): one of them, in each of its parts."""
    left = node.this.expressions
    if not all(isinstance(each, exp.Tuple) and len(each.expressions) == len(left) for each in node.expressions):
        return node
    alike = [
        exp.and_(
            *(exp.EQ(this=mine.copy(), expression=its) for mine, its in zip(left, each.expressions, strict=True)), copy=False
        )
        for each in node.expressions
    ]
    return exp.Paren(this=exp.or_(*alike, copy=False))


_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Like, exp.Case)


def _compared(node: exp.Expression) -> exp.Expression:
    """A text of a day that is compared, or that says about one part of it, made of parts of the day; as a key it is a period
    otherwise (`postprocessing/periods.py`)."""
    if not isinstance(node, exp.TimeToStr):
        return node
    around = node.parent
    while isinstance(around, exp.Paren | exp.Lower | exp.Upper):
        around = around.parent
    written = node.args.get("format")
    named = isinstance(written, exp.Literal) and is_short(written) and single_part(written.this) is not None
    return written_out(node) if named or isinstance(around, _COMPARISONS) else node


def _all(select: exp.Select) -> None:
    """GROUP BY ALL: by what aggregates nothing. ORDER BY ALL: by every column, in turn."""
    group, order = select.args.get("group"), select.args.get("order")
    written = [each.unalias() for each in select.expressions]
    if group is not None and group.args.get("all") and not any(each.is_star or each.find(exp.Window) for each in written):
        keys = [each.copy() for each in written if not holds_aggregate(each) and not isinstance(each, exp.Literal)]
        select.set("group", exp.Group(expressions=keys) if keys else None)
    if order is not None and len(order.expressions) == 1 and not any(each.is_star for each in written):
        first = order.expressions[0]
        if isinstance(first.this, exp.Column) and first.this.sql().upper() == "ALL":
            how = {part: value for part, value in first.args.items() if part != "this"}
            places = [exp.Ordered(this=exp.Literal.number(place), **how) for place in range(1, len(written) + 1)]
            select.set("order", exp.Order(expressions=places))


def _first_of_each(select: exp.Select) -> None:
    """DISTINCT ON (a): the first row of each a in the order of the query, which in a subquery orders nothing else."""
    distinct, order = select.args.get("distinct"), select.args.get("order")
    on = None if distinct is None else distinct.args.get("on")
    if not isinstance(on, exp.Expression) or any(select.args.get(part) for part in ("qualify", "windows")):
        return
    written = [each.unalias() for each in select.expressions]

    def resolved(tree: exp.Expression) -> exp.Expression:
        if isinstance(tree, exp.Column) and not tree.table:
            for each in select.expressions:
                if isinstance(each, exp.Alias) and each.alias.lower() == tree.name.lower():
                    return each.this.copy()
        place = int(tree.this) if isinstance(tree, exp.Literal) and not tree.is_string and tree.this.isdecimal() else 0
        return (written[place - 1] if 0 < place <= len(written) else tree).copy()

    keys = [resolved(each) for each in (on.expressions if isinstance(on, exp.Tuple) else [on.unnest()])]
    by = [each.copy() for each in order.expressions] if order is not None else []
    for each in by:
        each.set("this", resolved(each.this))
    by = [each for each in by if each.this not in keys]  # those agree
    window = exp.Window(this=exp.RowNumber(), partition_by=keys, order=exp.Order(expressions=by) if by else None, over="OVER")
    select.set("distinct", None)
    select.set("qualify", exp.Qualify(this=exp.EQ(this=window, expression=exp.Literal.number(1))))
    if select.parent is not None and not any(select.args.get(part) for part in ("limit", "offset")):
        select.set("order", None)


def _once_for_each(select: exp.Select) -> None:
    """DISTINCT a, SUM(x) OVER (PARTITION BY a): a row for each a, as GROUP BY a has it."""
    distinct = select.args.get("distinct")
    written = [each.unalias() for each in select.expressions]
    windows = [each for each in written if isinstance(each, exp.Window)]
    clauses = ("group", "having", "qualify", "windows")
    if distinct is None or distinct.args.get("on") or not windows or any(select.args.get(part) for part in clauses):
        return
    keys = [each for each in written if not isinstance(each, exp.Window)]
    if not keys or any(each.find(exp.Window) for each in keys):
        return
    for window in windows:
        given = window.args.get("partition_by") or []
        bare = not any(window.args.get(part) for part in ("order", "spec", "alias", "first"))
        if not bare or not holds_aggregate(window.this) or any(each not in keys for each in given):
            return
        if any(each not in given for each in keys):
            return
    for expression in select.expressions:
        inner = expression.unalias()
        if isinstance(inner, exp.Window):
            inner.replace(inner.this)
    select.set("distinct", None)
    select.set("group", exp.Group(expressions=[each.copy() for each in keys]))


def _anonymous(node: exp.Anonymous, name: str, given: Sequence[exp.Expression]) -> exp.Expression:
    if name in ("MAKE_DATE", "DATE_FROM_PARTS") and len(given) == 3:
        return _date(node, given)
    if name in ("STRFTIME", "DATE_FORMAT", "FORMAT_DATE") and len(given) == 2:
        day, written = given if name != "FORMAT_DATE" else (given[1], given[0])
        if isinstance(day, exp.Literal) and day.is_string and name == "STRFTIME":
            day, written = written, day  # as SQLite has it
        if isinstance(written, exp.Literal) and written.is_string:
            return _format(day, written.this)
    return node


def _format(day: exp.Expression, written: str) -> exp.Expression:
    return exp.TimeToStr(this=day, format=exp.Literal.string(written))


def _of_letters(text: str, dialect: str | None) -> str | None:
    """TO_CHAR's letters as those of strftime; None where they have no meaning there, or one that differs by dialect.

    >>> _of_letters("YYYY-MM", "snowflake"), _of_letters('IYYY"-W"IW', None), _of_letters("HH24", None)
    ('%Y-%m', '%G-W%V', None)
    """
    written, place, bare, further = "", 0, False, False
    while place < len(text):
        found = _LETTER.match(text, place)
        if found is None or "%" in found[0]:
            return None
        letters, place = found[0], found.end()
        word, naming = letters.upper(), dialect in _NAMING
        if dialect in _JAVA and letters not in _JAVA_LETTERS and letters[0].isalpha():
            return None  # there, the case tells months from minutes
        if further and dialect not in _ONE_ALONE and (word in _NAMES or word in _LETTERS) and word not in _UNPADDED:
            return None  # in one dialect FM is of what it stands before, in another of all that follows
        if word == "FM" and naming and not bare:
            bare = True
            continue
        if word in _NAMES and naming:
            case = UPPER if letters.isupper() else LOWER if letters.islower() else ""
            if not case and letters != letters.capitalize():
                return None
            written += f"%{case}{'' if bare or word in ('MON', 'DY') else PADDED}{_NAMES[word]}"
        elif word in _LETTERS or (word in _WEEKDAYS and dialect in (None, "postgres", "redshift")):
            if bare and word not in _UNPADDED:
                return None
            written += {**_LETTERS, **_WEEKDAYS}[word]
        elif letters[0] == '"' and naming:
            written += letters[1:-1]
        elif letters[0] in "-/.,:;_() " and not bare:
            written += letters
        else:
            return None
        bare, further = False, further or bare
    return None if bare or not written else written


def _date(node: exp.Expression, given: Sequence[exp.Expression | None]) -> exp.Expression:
    numbers = [each.this for each in given if isinstance(each, exp.Literal) and not each.is_string and each.this.isdecimal()]
    if len(numbers) != 3 or any(len(each) > 4 for each in numbers):
        return node
    try:
        day = datetime.date(*map(int, numbers))
    except ValueError:
        raise refused("A date is invalid", "it is not a day of the calendar", "DATE '2026-01-31'") from None
    return exp.Cast(this=exp.Literal.string(day.isoformat()), to=exp.DataType.build("DATE"))


def _semijoins(select: exp.Select) -> None:
    """SEMI and ANTI joins as conditions: rows of the left side for which the right one has a row, or none."""
    source, joins = select.args.get("from_"), select.args.get("joins") or []
    left = None if source is None else source.this.alias_or_name
    kept = []
    for join in joins:
        kind = str(join.args.get("kind") or "").upper()
        right = join.this.alias_or_name
        side = str(join.args.get("side") or "").upper()
        plain = kind in ("SEMI", "ANTI") and side in ("", "LEFT") and not join.args.get("method")
        wanted = _equal(join, left, right) if plain and left and right else []
        if not wanted:
            kept.append(join)
            continue
        inner = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=join.this.copy()))
        inner.set("where", exp.Where(this=exp.and_(*wanted, copy=False)))
        found: exp.Expression = exp.Exists(this=inner)
        if kind == "ANTI":
            found = exp.Not(this=found)
        where = select.args.get("where")
        select.set("where", exp.Where(this=found if where is None else exp.and_(where.this, found, copy=False)))
    select.set("joins", kept or None)


def _equal(join: exp.Join, left: str, right: str) -> list[exp.Expression]:
    on = join.args.get("on")
    if on is not None:
        return [on.copy()]
    sides = [exp.to_identifier(name) for name in (right, left)]
    return [
        exp.EQ(
            this=exp.Column(this=each.copy(), table=sides[0].copy()),
            expression=exp.Column(this=each.copy(), table=sides[1].copy()),
        )
        for each in join.args.get("using") or ()
    ]
