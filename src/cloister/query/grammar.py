"""Which parts of a parsed question are understood. A tree that holds anything else is refused by name before it is read.

sqlglot reads far more SQL than is answered here, and what a reader passes over changes a question without a word: `COUNT(a, b)`,
`BETWEEN SYMMETRIC`, `LIMIT 10 PERCENT`. So each kind of node is listed with those of its parts that the readers use, and so
is each function by name that sqlglot does not know.
"""

from typing import Any

from sqlglot import exp

from cloister.errors import UnsupportedQuery
from cloister.query.options import BOUNDED
from cloister.query.refusals import EXAMPLE, clipped, shown, unsupported

_NONE: frozenset[str] = frozenset()
_UNARY, _BINARY = frozenset({"this"}), frozenset({"this", "expression"})
_LIST = frozenset({"this", "expressions"})
_SELECT = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_"}
)
PLAIN: dict[type[exp.Expression], frozenset[str]] = {
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank, exp.Null), _NONE),
    **dict.fromkeys((exp.Var, exp.Where, exp.Paren, exp.Not, exp.Exists, exp.Boolean, exp.DataTypeParam, exp.Reverse), _UNARY),
    **dict.fromkeys((exp.Neg, exp.Abs, exp.Sign, exp.Sqrt, exp.Ln, exp.Exp, exp.Year, exp.Quarter, exp.Month, exp.Day), _UNARY),
    **dict.fromkeys((exp.DayOfWeek, exp.DayOfYear, exp.DayOfWeekIso, exp.Date, exp.TsOrDsToDate, exp.Lower, exp.Upper), _UNARY),
    **dict.fromkeys((exp.CountIf, exp.Median, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Variance, exp.VariancePop), _UNARY),
    **dict.fromkeys((exp.Stddev, exp.StddevPop, exp.StddevSamp), _UNARY),
    **dict.fromkeys((exp.Is, exp.Like, exp.Initcap, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT), _BINARY),
    **dict.fromkeys((exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Add, exp.Sub, exp.Mul, exp.IntDiv, exp.Mod), _BINARY),
    **dict.fromkeys((exp.Pow, exp.Log, exp.Nullif, exp.Extract, exp.Left, exp.Right, exp.Filter, exp.WithinGroup), _BINARY),
    **dict.fromkeys((exp.PercentileCont, exp.PercentileDisc, exp.CovarPop, exp.CovarSamp), _BINARY),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.DataType: frozenset({"this", "nested", "expressions"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.TryCast: frozenset({"this", "to", "safe", "requires_string"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Div: _BINARY | {"typed", "safe"},
    exp.Round: frozenset({"this", "decimals", "truncate", "casts_non_integer_decimals"}),
    exp.Trunc: frozenset({"this", "decimals"}),
    exp.Floor: frozenset({"this", "decimals"}),
    exp.Ceil: frozenset({"this", "decimals"}),
    exp.Coalesce: _LIST | {"is_nvl", "is_null"},
    exp.Greatest: _LIST | {"ignore_nulls"},
    exp.Least: _LIST | {"ignore_nulls"},
    exp.DateTrunc: frozenset({"this", "unit"}),
    exp.TimestampTrunc: frozenset({"this", "unit", "input_type_preserved"}),
    exp.DateDiff: frozenset({"this", "expression", "unit", "date_part_boundary", "big_int"}),
    exp.DateAdd: frozenset({"this", "expression", "unit"}),
    exp.DateSub: frozenset({"this", "expression", "unit"}),
    exp.Trim: frozenset({"this", "position", "expression"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Length: frozenset({"this", "binary"}),
    exp.StrPosition: frozenset({"this", "substr"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    exp.DPipe: _BINARY | {"safe"},
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.ConcatWs: frozenset({"expressions", "safe", "coalesce"}),
    exp.Translate: frozenset({"this", "from_", "to"}),
    exp.Count: frozenset({"this", "big_int"}),
    exp.Corr: _BINARY | {"null_on_zero_variance"},
    exp.Quantile: frozenset({"this", "quantile"}),
}
"""Names, constants, conditions and functions, with their parts: in a question, and above the cut (`allowed.py`) as well."""
_UNDERSTOOD: dict[type[exp.Expression], frozenset[str]] = {
    **PLAIN,
    **dict.fromkeys((exp.Qualify, exp.From, exp.Having, exp.Hour, exp.Minute, exp.TimeStrToTime, exp.Mode), _UNARY),
    **dict.fromkeys((exp.StPoint, exp.Kwarg, exp.AddMonths, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2), _BINARY),
    **dict.fromkeys((exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy, exp.RegrSxx, exp.RegrSyy, exp.RegrSxy), _BINARY),
    **dict.fromkeys((exp.Anonymous, exp.Grouping), _LIST),
    exp.Select: _SELECT | {"qualify"},
    exp.Window: frozenset({"this", "partition_by", "order", "over"}),
    exp.Union: frozenset(
        {"this", "expression", "distinct", "by_name", "side", "kind", "on", "with_", "order", "limit", "offset"}
    ),
    exp.Except: _BINARY | {"distinct"},
    exp.Intersect: _BINARY | {"distinct"},
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    exp.Subquery: frozenset({"this", "alias", "with_"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias", "joins"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Star: frozenset({"except_"}),
    exp.Group: frozenset({"expressions", "rollup", "cube", "grouping_sets"}),
    exp.Rollup: frozenset({"expressions"}),
    exp.Cube: frozenset({"expressions"}),
    exp.GroupingSets: frozenset({"expressions"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.Limit: frozenset({"expression"}),
    exp.Offset: frozenset({"expression"}),
    exp.Fetch: frozenset({"direction", "count", "limit_options"}),
    exp.LimitOptions: frozenset({"rows"}),
    exp.WidthBucket: frozenset({"this", "min_value", "max_value", "num_buckets"}),
    exp.TsOrDsAdd: frozenset({"this", "expression", "unit"}),
    exp.TimestampAdd: frozenset({"this", "expression", "unit"}),
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.Pad: frozenset({"this", "expression", "fill_pattern", "is_left"}),
    exp.ApproxQuantile: frozenset({"this", "quantile"}),
}

NUMBERINGS = (exp.RowNumber, exp.Rank, exp.DenseRank)
"""Functions over a window that number a person's rows, in a question within the question."""
OVER_PERSONS = (*NUMBERINGS, exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
"""All functions that may stand over such a window."""
_ANONYMOUS = frozenset(
    {"CLAMP", "BROUND", "ROUND_EVEN", "TRUNC", "COUNTIF", "QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE", "APPROX_PERCENTILE"}
    | {"VAR", "VARP", "STDEV", "STDEVP", "GRID", "REGION", "ST_WITHIN", "WEEKDAY"}
    | {"NEAREST", "ST_DWITHIN", "ST_MAKEENVELOPE"}
) | frozenset(BOUNDED.values())
_CONDITION = "WHERE age >= 18 AND sex = 'F'"
_PARTS: dict[tuple[type[exp.Expression], str], tuple[str, str]] = {
    (exp.Between, "symmetric"): ("BETWEEN SYMMETRIC", "age BETWEEN 25 AND 45"),
    (exp.Count, "expressions"): ("COUNT of several columns", "COUNT(age)"),
    (exp.Distinct, "on"): ("DISTINCT ON", EXAMPLE),
    (exp.Group, "all"): ("GROUP BY ALL", "GROUP BY sex, educ"),
    (exp.Group, "totals"): ("WITH TOTALS", "GROUP BY ROLLUP (sex)"),
    (exp.In, "unnest"): ("UNNEST within IN", "sex IN ('F', 'M')"),
    (exp.Limit, "expressions"): ("LIMIT … BY", "LIMIT 10"),
    (exp.Limit, "limit_options"): ("LIMIT with PERCENT, ROWS or TIES", "LIMIT 10"),
    (exp.LimitOptions, "percent"): ("PERCENT", "LIMIT 10"),
    (exp.LimitOptions, "with_ties"): ("WITH TIES", "LIMIT 10"),
    (exp.Max, "expressions"): ("MAX of several columns", "GREATEST(age, pay)"),
    (exp.Min, "expressions"): ("MIN of several columns", "LEAST(age, pay)"),
    (exp.Select, "qualify"): ("QUALIFY", "HAVING COUNT(*) > 10"),
    (exp.Select, "windows"): ("WINDOW", "GROUP BY sex"),
    (exp.Select, "laterals"): ("LATERAL", EXAMPLE),
    (exp.Select, "sample"): ("TABLESAMPLE", "WHERE …"),
    (exp.Select, "into"): ("SELECT INTO", EXAMPLE),
    (exp.Star, "replace"): ("What stands beside *", "the columns by name"),
    (exp.Star, "rename"): ("What stands beside *", "the columns by name"),
    (exp.Table, "sample"): ("TABLESAMPLE", "WHERE …"),
    (exp.Table, "pivots"): ("PIVOT", "SUM(pay) FILTER (WHERE sex = 'F')"),
    (exp.With, "recursive"): ("WITH RECURSIVE", "WITH totals AS (SELECT …) SELECT …"),
}
_NODES: dict[type[exp.Expression], tuple[str, str]] = {
    exp.Escape: ("LIKE … ESCAPE", "town LIKE 'D%'"),
    exp.ILike: ("ILIKE", "LOWER(town) LIKE 'd%'"),
    exp.Lateral: ("LATERAL", EXAMPLE),
    exp.Unnest: ("UNNEST", EXAMPLE),
    exp.Values: ("VALUES", "cl.PublicTable({…})"),
    exp.Window: ("OVER", "GROUP BY sex"),
    exp.CurrentDate: ("CURRENT_DATE", "DATE '2026-01-31': the same question must mean the same tomorrow"),
    exp.CurrentTimestamp: ("NOW()", "DATE '2026-01-31': the same question must mean the same tomorrow"),
    exp.Rand: ("RAND()", EXAMPLE),
    exp.ApproxDistinct: ("APPROX_COUNT_DISTINCT", "COUNT(DISTINCT patient), of the column that says whose row it is"),
    exp.ArrayAgg: ("ARRAY_AGG", "GROUP BY the column"),
    exp.GroupConcat: ("STRING_AGG", "GROUP BY the column"),
    exp.First: ("FIRST", "MIN(age)"),
    exp.Last: ("LAST", "MAX(age)"),
    exp.AnyValue: ("ANY_VALUE", "MODE(sex)"),
    exp.LogicalOr: ("BOOL_OR", "COUNT_IF(smoker)"),
    exp.LogicalAnd: ("BOOL_AND", "COUNT_IF(NOT smoker)"),
    exp.RegexpLike: ("A regular expression", "town LIKE 'D%'"),
    exp.ParseTime: ("A time of day", "TIME '10:30:00'"),
    exp.TimeTrunc: ("A time of day", "TIME_TRUNC(TIME(at), HOUR)"),
    exp.TsOrDsToTime: ("A time of day", "TIME_TRUNC(TIME(at), HOUR)"),
    exp.ApproxQuantiles: ("APPROX_QUANTILES", "QUANTILE(age, 0.25), QUANTILE(age, 0.5)"),
}


def part_refused(kind: type[exp.Expression], part: str) -> UnsupportedQuery:
    """The refusal of a part of a node that no reader looks at.

    >>> part_refused(exp.Select, "qualify").what
    'QUALIFY is not supported'
    """
    return unsupported(*_PARTS.get((kind, part), (f"{part.strip('_').upper()} in {kind.key.upper()}", EXAMPLE)))


def check(root: exp.Expression) -> None:
    """Refuse a tree that holds a node, or a part of a node, that no reader looks at. Iterative, since trees may be deep.

    >>> import sqlglot
    >>> check(sqlglot.parse_one("SELECT COUNT(*) FROM people"))
    >>> check(sqlglot.parse_one("SELECT COUNT(age, pay) FROM people"))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: COUNT of several columns is not supported: no privacy proof covers it.
      Instead: COUNT(age)
    """
    waiting: list[tuple[exp.Expression, bool, exp.Expression]] = [(root, False, root)]
    for node, in_where, parent in waiting:  # grows while it is walked: the outermost reason comes first
        kind = type(node)
        known = _UNDERSTOOD.get(kind)
        if known is None:
            what, instead = _NODES.get(kind, (shown(node), _CONDITION if in_where else EXAMPLE))
            raise unsupported(what, instead)
        if kind is exp.Table and not isinstance(node.this, exp.Identifier):
            raise unsupported("A function in FROM", EXAMPLE)
        if kind is exp.Window and (not isinstance(node.this, OVER_PERSONS) or node.find_ancestor(exp.Select) is root):
            raise unsupported(*_NODES[exp.Window])
        if kind in NUMBERINGS and not isinstance(parent, exp.Window):
            raise unsupported(*_NODES[exp.Window])
        if kind is exp.Order and not isinstance(parent, exp.Select | exp.SetOperation | exp.WithinGroup | exp.Window):
            raise unsupported("ORDER BY within an aggregate", "SUM(age)")
        if kind is exp.Anonymous and (not isinstance(node.this, str) or node.this.upper() not in _ANONYMOUS):
            raise unsupported(f"The function {clipped(str(node.name))}", "a function of the SQL reference")
        if kind is exp.Kwarg and not (isinstance(parent, exp.Anonymous) and parent.name.upper() in BOUNDED.values()):
            raise unsupported("A named argument", "SUM(cost, contribution_bounds_per_group => (0, 100))")
        if kind is exp.Star and node.args.get("except_") and not isinstance(parent, exp.Select | exp.Column):
            raise unsupported("What stands beside *", "the columns by name")
        if kind is exp.Qualify and parent is root:
            raise part_refused(exp.Select, "qualify")
        for part, value in node.args.items():
            if value is None or value is False or (isinstance(value, list) and not value):
                continue
            if part not in known:
                raise part_refused(kind, part)
            waiting += [(child, in_where or kind is exp.Where, node) for child in children(value)]


def children(value: Any) -> list[exp.Expression]:
    """The nodes that a part of a node holds, one or a list of them."""
    return [child for child in (value if isinstance(value, list) else [value]) if isinstance(child, exp.Expression)]
