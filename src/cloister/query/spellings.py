"""Functions and conditions that mean what others say that are read: each becomes those, whatever stands around it.

STARTS_WITH(x, 'd')                → LEFT(x, 1) = 'd'; ENDS_WITH, CONTAINS, LIKE … ESCAPE, plain regular expressions likewise
x SIMILAR TO '(n|s).*'             → x LIKE 'n%' OR x LIKE 's%', and other regular expressions (`patterns.py`)
LAST_DAY(day)                      → DATE_TRUNC('month', day) + INTERVAL '1' MONTH - INTERVAL '1' DAY
EXTRACT(WEEK FROM day)             → (the day of the year of that week's Thursday - 1) // 7 + 1, where it is the week of ISO 8601
EXTRACT(EPOCH FROM day)            → DATE_DIFF('day', DATE '1970-01-01', day) * 86400
DATE_TRUNC(day, WEEK) of BigQuery  → DATE_TRUNC('week', day + INTERVAL '1' DAY) - INTERVAL '1' DAY
MAKE_DATE(YEAR(d), MONTH(d), 1)    → DATE_TRUNC('month', d)
DECODE, NVL2, RANGE_BUCKET         → CASE
x = ANY (ARRAY[1, 2])              → x IN (1, 2)
STD, FAVG, GEOMEAN, TOTAL          → STDDEV, AVG, EXP(AVG(LN(x))), COALESCE(SUM(x), 0); SAFE_ADD → +

What a dialect means otherwise, or what no other form says, stays as it is, and is refused by its name.
"""

import datetime
import re
from collections.abc import Callable

from sqlglot import exp

from cloister.query.options import BY_ROW
from cloister.query.patterns import likes

_ROWS = {written: name for name, written in BY_ROW.items()}
_ISO_WEEKS = (None, "duckdb", "postgres", "redshift", "spark", "databricks", "trino", "snowflake")
"""Where WEEK is that of ISO 8601."""
_ISO_YEARS = ("ISOYEAR", "YEAROFWEEKISO", "ISO_YEAR")
_PARTIAL = (None, "duckdb", "postgres", "redshift", "spark", "databricks", "trino", "bigquery", "oracle")
"""Where a regular expression is looked for anywhere in a text, and its letters are told apart by their case."""
_STANDARD = ("postgres", "redshift")
"""Where SIMILAR TO is that of the SQL standard."""
_UNITS = {
    "MM": "MONTH",
    "MON": "MONTH",
    "YYYY": "YEAR",
    "YY": "YEAR",
    "Q": "QUARTER",
    "DD": "DAY",
    "ISOWEEK": "WEEK",
    "IW": "WEEK",
}
_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_TIMES = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.DATETIME, exp.DataType.Type.DATETIME2)
_PLAIN = re.compile(r"(\^?)([A-Za-z0-9 _-]+)(\$?)")
_MEANS = ("MEAN", "FAVG")
_SUMS = ("FSUM", "SUMKAHAN", "KAHAN_SUM")

Dialect = str | None
_BACKSLASH = ("postgres", "redshift", "mysql", "snowflake", "bigquery", "spark", "databricks")


def spelled(node: exp.Expression, dialect: Dialect) -> exp.Expression:
    """The node as those that are read; itself where it is none of these.

    >>> import sqlglot
    >>> spelled(sqlglot.parse_one("STARTS_WITH(town, 'De')"), None).sql()
    "(LEFT(town, 2) = 'De')"
    >>> spelled(sqlglot.parse_one("WEEK(day)"), "bigquery").sql()
    'WEEK(day)'
    """
    change = _CHANGES.get(type(node))
    found = None if change is None else change(node, dialect)
    return node if found is None else found


def _text(tree: object) -> str | None:
    return tree.this if isinstance(tree, exp.Literal) and tree.is_string else None


def _number(tree: object) -> int | None:
    return int(tree.this) if isinstance(tree, exp.Literal) and not tree.is_string and tree.this.isdecimal() else None


def _begins(x: exp.Expression, text: str | None) -> exp.Expression | None:
    if not text:
        return None
    return exp.Paren(
        this=exp.EQ(this=exp.Left(this=x, expression=exp.Literal.number(len(text))), expression=exp.Literal.string(text))
    )


def _ends(x: exp.Expression, text: str | None) -> exp.Expression | None:
    if not text:
        return None
    return exp.Paren(
        this=exp.EQ(this=exp.Right(this=x, expression=exp.Literal.number(len(text))), expression=exp.Literal.string(text))
    )


def _contains(x: exp.Expression, text: str | None) -> exp.Expression | None:
    if not text:
        return None
    return exp.Paren(this=exp.GT(this=exp.StrPosition(this=x, substr=exp.Literal.string(text)), expression=exp.Literal.number(0)))


def _is(x: exp.Expression, text: str) -> exp.Expression:
    return exp.Paren(this=exp.EQ(this=x, expression=exp.Literal.string(text)))


def _escaped(node: exp.Escape, dialect: Dialect) -> exp.Expression | None:
    """LIKE … ESCAPE, where at most the first and the last sign stand for others."""
    mark, like = _text(node.expression), node.this
    pattern = _text(like.expression) if isinstance(like, exp.Like) else None
    if mark is None or len(mark) != 1 or pattern is None:
        return None
    signs: list[str | None] = []  # None is any text
    place = 0
    while place < len(pattern):
        if pattern[place] == mark:
            place += 1
            if place == len(pattern):
                return None
        elif pattern[place] == "_" or (pattern[place] == "[" and dialect == "tsql"):
            return None
        elif pattern[place] == "%":
            signs.append(None)
            place += 1
            continue
        signs.append(pattern[place])
        place += 1
    before, after = signs[:1] == [None], signs[-1:] == [None]
    inner = signs[before : len(signs) - after] if len(signs) > 1 else [] if before else signs
    if None in inner:
        return None
    text = "".join(map(str, inner))
    x = like.this
    if before and after:
        return _contains(x, text)
    return _ends(x, text) if before else _begins(x, text) if after else _is(x, text)


def _backslash(node: exp.Like, dialect: Dialect) -> exp.Expression | None:
    """LIKE, where a backslash takes the meaning from the sign after it without any word of ESCAPE. In T-SQL one of the signs in
    brackets stands there, as in SIMILAR TO, which has more signs of its own."""
    pattern = _text(node.expression) or ""
    if dialect == "tsql" and "[" in pattern and not isinstance(node.parent, exp.Escape):
        plain = re.search(r"[*+?{}()|^$.\\]", pattern.replace("[^", "[")) is None
        found = _like(node.this, likes(pattern, standard=True)) if plain else None
        return found or exp.SimilarTo(this=node.this, expression=node.expression)
    if dialect not in _BACKSLASH or "\\" not in pattern or isinstance(node.parent, exp.Escape):
        return None
    whole = exp.Escape(this=node.copy(), expression=exp.Literal.string("\\"))
    return _escaped(whole, dialect) or whole


def _matches(x: exp.Expression, pattern: str | None, dialect: Dialect) -> exp.Expression | None:
    """A regular expression: plain text at the beginning (^), at the end ($) or anywhere; others as patterns of LIKE."""
    found = _PLAIN.fullmatch(pattern or "")
    if dialect not in _PARTIAL:
        return None
    if found is None:
        return _like(x, likes(pattern or "", whole=False))
    first, text, last = found.groups()
    if first and last:
        return _is(x, text)
    return _begins(x, text) if first else _ends(x, text) if last else _contains(x, text)


def _similar(node: exp.SimilarTo | exp.RegexpFullMatch, dialect: Dialect) -> exp.Expression | None:
    """Of the whole text; SIMILAR TO with its own signs where the dialect has those of the standard."""
    pattern = _text(node.expression)
    standard = isinstance(node, exp.SimilarTo) and dialect in _STANDARD
    if pattern is None or node.args.get("options") or not (standard or dialect in (None, "duckdb")):
        return None
    return _like(node.this, likes(pattern, standard=standard))


def _like(x: exp.Expression, patterns: list[str] | None) -> exp.Expression | None:
    """One of some patterns."""
    if not patterns:
        return None
    found = [exp.Like(this=x.copy(), expression=exp.Literal.string(each)) for each in patterns]
    return exp.Paren(this=exp.or_(*found, copy=False))


def _days(day: exp.Expression, count: int, unit: str = "DAY") -> exp.Expression:
    """A shift by so many units, in parentheses."""
    shift = exp.Interval(this=exp.Literal.string(str(abs(count))), unit=exp.var(unit))
    return exp.Paren(this=(exp.Add if count > 0 else exp.Sub)(this=day, expression=shift)) if count else day


def _period(day: exp.Expression, unit: str) -> exp.Expression:
    return exp.DateTrunc(this=day, unit=exp.Literal.string(unit))


def _truncation(node: exp.DateTrunc, dialect: Dialect) -> exp.Expression | None:
    unit = node.args.get("unit")
    if isinstance(unit, exp.WeekStart):
        first = unit.this.name.upper()
    else:
        word = "" if unit is None else unit.name.upper()
        if word in _UNITS:
            return _period(node.this, _UNITS[word])
        first = "SUNDAY" if word == "WEEK" and dialect == "bigquery" and not node.meta.get("iso") else ""
    if first not in _DAYS:
        return None
    late = _DAYS.index(first)
    week = _period(_days(node.this, 1 if late == 6 else -late), "WEEK")
    week.meta["iso"] = True
    return _days(week, -1 if late == 6 else late)


def _last_day(node: exp.LastDay, dialect: Dialect) -> exp.Expression | None:
    if node.args.get("unit") is not None:
        return None
    return _days(_days(_period(node.this, "MONTH"), 1, "MONTH"), -1)


def thursday_of(day: exp.Expression) -> exp.Expression:
    """The Thursday of a day's week, which begins on a Monday: the week of ISO 8601 is one of the year in which that is."""
    thursday = _days(_period(day, "WEEK"), 3)
    thursday.this.this.meta["iso"] = True
    return thursday


def iso_week(day: exp.Expression) -> exp.Expression:
    """The number of the week of ISO 8601."""
    before = exp.Paren(this=exp.Sub(this=exp.DayOfYear(this=thursday_of(day)), expression=exp.Literal.number(1)))
    weeks = exp.Paren(this=exp.IntDiv(this=before, expression=exp.Literal.number(7)))
    return exp.Paren(this=exp.Add(this=weeks, expression=exp.Literal.number(1)))


def _week(node: exp.Expression, dialect: Dialect) -> exp.Expression | None:
    everywhere = isinstance(node, exp.WeekOfYear)
    return iso_week(_day(node.this)) if everywhere or dialect in _ISO_WEEKS else None


def _day(tree: exp.Expression) -> exp.Expression:
    """A day without what only says that it is one, or that it is a time."""
    while isinstance(tree, exp.TsOrDsToDate | exp.TsOrDsToTimestamp) or (isinstance(tree, exp.Cast) and tree.to.this in _TIMES):
        tree = tree.this
    return tree


def _extract(node: exp.Extract, dialect: Dialect) -> exp.Expression | None:
    part, day = node.this.name.upper(), node.expression
    if part == "EPOCH":
        first = exp.Cast(this=exp.Literal.string("1970-01-01"), to=exp.DataType.build("DATE"))
        days = exp.DateDiff(this=day, expression=first, unit=exp.var("DAY"))
        return _part(exp.Paren(this=exp.Mul(this=days, expression=exp.Literal.number(86_400))), dialect)
    if part in _ISO_YEARS:
        return exp.Extract(this=exp.var("YEAR"), expression=thursday_of(day))
    iso = part in ("ISOWEEK", "WEEKISO", "WEEK_ISO", "ISO_WEEK") or (part in ("WEEK", "W") and dialect in _ISO_WEEKS)
    return _part(iso_week(day), dialect) if iso else None


def _part(number: exp.Expression, dialect: Dialect) -> exp.Expression:
    """A part of a day as EXTRACT gives it: a decimal in PostgreSQL, whose quotients keep the fraction."""
    return exp.Cast(this=number, to=exp.DataType.build("DECIMAL(38, 0)")) if dialect == "postgres" else number


def date_of(year: object, month: object, day: object) -> exp.Expression | None:
    """A date of its parts: parts of one day, or numbers 1, which make the beginning of a period."""
    of = _part_of(year, exp.Year, "YEAR")
    if of is None:
        return None
    if _number(month) == 1 and _number(day) == 1:
        return _period(of, "YEAR")
    if _part_of(month, exp.Month, "MONTH") != of:
        return None
    if _number(day) == 1:
        return _period(of, "MONTH")
    return of if _part_of(day, exp.Day, "DAY") == of else None


def _part_of(tree: object, kind: type[exp.Expression], part: str) -> exp.Expression | None:
    while isinstance(tree, exp.Paren | exp.Cast):
        tree = tree.this
    if isinstance(tree, exp.Extract) and tree.this.name.upper() == part:
        return _day(tree.expression)
    return _day(tree.this) if isinstance(tree, kind) else None


def _read_day(node: exp.StrToDate, dialect: Dialect) -> exp.Expression | None:
    text, written = _text(node.this), _text(node.args.get("format"))
    if text is None or written is None or not set(re.findall("%(.)", written)) <= set("Ymd"):
        return None
    try:
        day = datetime.datetime.strptime(text, written).date()
    except ValueError:
        return None
    return exp.Cast(this=exp.Literal.string(day.isoformat()), to=exp.DataType.build("DATE"))


def _constant_day(node: exp.TsOrDsToDate, dialect: Dialect) -> exp.Expression | None:
    if _text(node.this) is None or node.args.get("format"):
        return None
    return exp.Cast(this=node.this, to=exp.DataType.build("DATE"))


def _of_day(node: exp.TimeToStr, dialect: Dialect) -> exp.Expression | None:
    inner = _day(node.this)
    return None if inner is node.this else exp.TimeToStr(this=inner, format=node.args["format"])


def _case(
    branches: list[tuple[exp.Expression, exp.Expression]], default: exp.Expression | None, x: exp.Expression | None = None
) -> exp.Case:
    return exp.Case(this=x, ifs=[exp.If(this=when, true=then) for when, then in branches], default=default)


def _decode(node: exp.DecodeCase, dialect: Dialect) -> exp.Expression | None:
    x, *rest = node.expressions
    if len(rest) < 2 or any(isinstance(each, exp.Null) for each in rest[: len(rest) // 2 * 2 : 2]):  # there NULL is NULL
        return None
    return _case(list(zip(rest[::2], rest[1::2], strict=False)), rest[-1] if len(rest) % 2 else None, x)


def _nvl2(node: exp.Nvl2, dialect: Dialect) -> exp.Expression:
    there = exp.Not(this=exp.Paren(this=exp.Is(this=node.this, expression=exp.Null())))
    return _case([(there, node.args["true"])], node.args.get("false"))


def _range_bucket(node: exp.RangeBucket, dialect: Dialect) -> exp.Expression | None:
    """How many of the numbers, which rise, are at most x; NULL where x is."""
    ends = node.expression.expressions if isinstance(node.expression, exp.Array) else []
    if not ends or any(not isinstance(each, exp.Literal) or each.is_string for each in ends):
        return None
    if [float(each.this) for each in ends] != sorted(float(each.this) for each in ends):
        return None
    found = [(exp.LT(this=node.this.copy(), expression=end.copy()), exp.Literal.number(place)) for place, end in enumerate(ends)]
    last = (exp.GTE(this=node.this.copy(), expression=ends[-1].copy()), exp.Literal.number(len(ends)))
    return _case([*found, last], None)


def _any(node: exp.EQ, dialect: Dialect) -> exp.Expression | None:
    right = node.expression
    if not isinstance(right, exp.Any):
        return None
    if isinstance(right.this, exp.Subquery):
        return exp.In(this=node.this, query=right.this)
    found = right.this.unnest()
    return exp.In(this=node.this, expressions=found.expressions) if isinstance(found, exp.Array) and found.expressions else None


def _in(node: exp.In, dialect: Dialect) -> exp.Expression | None:
    unnest = node.args.get("unnest")
    inner = unnest.expressions if isinstance(unnest, exp.Unnest) and not unnest.args.get("alias") else []
    if len(inner) != 1 or not isinstance(inner[0], exp.Array) or not inner[0].expressions:
        return None
    return exp.In(this=node.this, expressions=inner[0].expressions)


def _of_all(node: exp.Max | exp.Min, dialect: Dialect) -> exp.Expression | None:
    """The largest of the different values is the largest; the largest of several columns is no aggregate in SQLite."""
    inner = node.this
    if node.expressions and dialect == "sqlite":
        return (exp.Greatest if isinstance(node, exp.Max) else exp.Least)(this=inner, expressions=node.expressions)
    return type(node)(this=inner.expressions[0]) if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1 else None


def _window(node: exp.Window, dialect: Dialect) -> exp.Expression | None:
    inner = node.this
    if not isinstance(inner, exp.Anonymous) or str(inner.this).upper() != "RATIO_TO_REPORT" or len(inner.expressions) != 1:
        return None
    whole = node.copy()
    whole.set("this", exp.Sum(this=inner.expressions[0].copy()))
    return exp.Paren(this=exp.Div(this=exp.Paren(this=inner.expressions[0]), expression=whole))


def _list(node: exp.GroupConcat, dialect: Dialect) -> exp.Expression | None:
    """STRING_AGG and LISTAGG without a separator have the one of their dialect."""
    if node.args.get("separator") is not None:
        return None
    found = node.copy()
    found.set("separator", exp.Literal.string("" if dialect in ("snowflake", "redshift", "oracle") else ","))
    return found


def _operator(kind: type[exp.Binary]) -> Callable[[exp.Expression, Dialect], exp.Expression]:
    return lambda node, _: exp.Paren(this=kind(this=exp.Paren(this=node.this), expression=exp.Paren(this=node.expression)))


_CLAMPED: dict[str, type[exp.Expression]] = {
    "VAR_POP": exp.VariancePop,
    "VAR_SAMP": exp.Variance,
    "VARIANCE": exp.Variance,
    "STDDEV_POP": exp.StddevPop,
    "STDDEV_SAMP": exp.StddevSamp,
    "STDDEV": exp.Stddev,
}


def _bounded_rows(name: str, given: list[exp.Expression]) -> exp.Expression | None:
    """An aggregate of clamped values; its bounds come last."""
    ends = given[-1].expression if given and isinstance(given[-1], exp.Kwarg) else None
    if not isinstance(ends, exp.Tuple) or len(ends.expressions) != 2 or len(given) not in (2, 3):
        return None
    value = exp.Anonymous(this="CLAMP", expressions=[given[0], *ends.expressions])
    if name in ("PERCENTILE_CONT", "QUANTILE") and len(given) == 3:
        return exp.Quantile(this=value, quantile=given[1])
    return _CLAMPED[name](this=value) if name in _CLAMPED and len(given) == 2 else None


def _anonymous(node: exp.Anonymous, dialect: Dialect) -> exp.Expression | None:
    name, given = str(node.this).upper(), node.expressions
    if name in _ROWS:
        return _bounded_rows(_ROWS[name], given)
    if len(given) == 1:
        (x,) = given
        if name == "STD":
            return exp.Stddev(this=x)
        if name in _MEANS:
            return exp.Avg(this=x)
        if name in _SUMS:
            return exp.Sum(this=x)
        if name == "TOTAL" and dialect == "sqlite":
            return exp.Coalesce(this=exp.Sum(this=x), expressions=[exp.Literal.number(0)])
        if name in ("GEOMEAN", "GEOMETRIC_MEAN"):
            return exp.Exp(this=exp.Avg(this=exp.Ln(this=x)))
        if name == "WEEKDAY" and dialect in ("mysql", "spark", "databricks"):
            return exp.Paren(
                this=exp.Sub(this=exp.Extract(this=exp.var("ISODOW"), expression=x), expression=exp.Literal.number(1))
            )
        if name == "WEEKDAY" and dialect in (None, "duckdb"):
            return exp.Extract(this=exp.var("DOW"), expression=x)
    if name == "LISTAGG" and len(given) in (1, 2):
        return (
            _list(exp.GroupConcat(this=given[0]), dialect)
            if len(given) == 1
            else exp.GroupConcat(this=given[0], separator=given[1])
        )
    if len(given) == 2:
        if name == "REGEXP_MATCHES" and dialect in (None, "duckdb"):
            return _matches(given[0], _text(given[1]), dialect)
        part = _text(given[0])
        if name == "DATEPART" and part is not None and re.fullmatch("[A-Za-z]{1,12}", part):
            return spelled(exp.Extract(this=exp.var(part.upper()), expression=given[1]), dialect)
    if len(given) == 3 and name in ("MAKE_DATE", "DATE_FROM_PARTS"):
        return date_of(*given)
    return None


_CHANGES: dict[type[exp.Expression], Callable[..., exp.Expression | None]] = {
    exp.StartsWith: lambda node, _: _begins(node.this, _text(node.expression)),
    exp.EndsWith: lambda node, _: _ends(node.this, _text(node.expression)),
    exp.Contains: lambda node, _: _contains(node.this, _text(node.expression)),
    exp.Escape: _escaped,
    exp.Like: _backslash,
    exp.RegexpLike: lambda node, dialect: None if node.args.get("flag") else _matches(node.this, _text(node.expression), dialect),
    exp.RegexpILike: lambda node, dialect: _matches(exp.Lower(this=node.this), (_text(node.expression) or "").lower(), dialect),
    exp.RegexpFullMatch: _similar,
    exp.SimilarTo: _similar,
    exp.DateTrunc: _truncation,
    exp.LastDay: _last_day,
    exp.Week: _week,
    exp.WeekOfYear: _week,
    exp.Extract: _extract,
    exp.DateFromParts: lambda node, _: date_of(*(node.args.get(part) for part in ("year", "month", "day"))),
    exp.StrToDate: _read_day,
    exp.TsOrDsToDate: _constant_day,
    exp.TimeToStr: _of_day,
    exp.TsOrDsDiff: lambda node, _: exp.DateDiff(
        this=_day(node.this), expression=_day(node.expression), unit=node.args.get("unit")
    ),
    exp.DecodeCase: _decode,
    exp.Nvl2: _nvl2,
    exp.RangeBucket: _range_bucket,
    exp.EQ: _any,
    exp.In: _in,
    exp.Max: _of_all,
    exp.Min: _of_all,
    exp.Window: _window,
    exp.ApproxDistinct: lambda node, _: exp.Count(this=exp.Distinct(expressions=[node.this])),
    exp.GroupConcat: _list,
    exp.SafeAdd: _operator(exp.Add),
    exp.SafeSubtract: _operator(exp.Sub),
    exp.SafeMultiply: _operator(exp.Mul),
    exp.SafeNegate: lambda node, _: exp.Paren(this=exp.Neg(this=exp.Paren(this=node.this))),
    exp.Anonymous: _anonymous,
}
"""By the kind of the node."""
