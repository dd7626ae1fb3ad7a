"""What may stand above the cut: every kind of node, and every part of one. Anything else is refused by name.

The functions are those whose result follows from their arguments alone: no clock, no chance, no setting, no file, no catalogue,
and none that makes a value much longer than its arguments. Names of tables and columns never reach the engine: each is
resolved here, and written again.
"""

import re
from fractions import Fraction
from typing import Any

from sqlglot import exp

from cloister.query.constants import NUMBERS, TEXTS, number_of
from cloister.query.grammar import PLAIN
from cloister.query.refusals import clipped, refused, shown, unsupported

_NONE: frozenset[str] = frozenset()
_ONE, _TWO = frozenset({"this"}), frozenset({"this", "expression"})
_KINDS: dict[type[exp.Expression], frozenset[str]] = {
    **PLAIN,
    **dict.fromkeys((exp.Pi, exp.Star, exp.PercentRank, exp.CumeDist), _NONE),
    **dict.fromkeys((exp.Subquery, exp.Ntile, exp.FirstValue, exp.LastValue, exp.Cbrt, exp.Degrees, exp.Radians), _ONE),
    **dict.fromkeys((exp.Sin, exp.Cos, exp.Tan, exp.Asin, exp.Acos, exp.Atan, exp.Tanh, exp.Sinh, exp.Cosh, exp.Dayname), _ONE),
    **dict.fromkeys((exp.LogicalAnd, exp.LogicalOr), _ONE),
    **dict.fromkeys((exp.Atan2, exp.ILike, exp.StartsWith), _TWO),
    exp.TimeToStr: frozenset({"this", "format"}),
    exp.Window: frozenset({"this", "partition_by", "order", "spec", "alias", "over"}),
    exp.WindowSpec: frozenset({"kind", "start", "start_side", "end", "end_side"}),
    exp.Lag: frozenset({"this", "offset", "default"}),
    exp.Lead: frozenset({"this", "offset", "default"}),
    exp.NthValue: frozenset({"this", "offset"}),
    exp.Grouping: frozenset({"expressions"}),
    exp.GroupConcat: frozenset({"this", "separator"}),
}
AGGREGATES: dict[type[exp.Expression], str] = {
    exp.Count: "count",
    exp.CountIf: "count_if",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Median: "median",
    exp.Quantile: "quantile_cont",
    exp.PercentileCont: "quantile_cont",
    exp.PercentileDisc: "quantile_disc",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev_samp",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
    exp.Corr: "corr",
    exp.CovarPop: "covar_pop",
    exp.CovarSamp: "covar_samp",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.GroupConcat: "string_agg",
}
"""Aggregates over answers, by the name that the engine has for each."""
WINDOWS: dict[type[exp.Expression], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
    exp.Ntile: "ntile",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.LastValue: "last_value",
    exp.NthValue: "nth_value",
}
"""Functions that need OVER, likewise."""
LIMITS = frozenset({"limit", "offset"})
SELECT = frozenset(
    {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset", "distinct", "with_"}
    | {"qualify", "windows"}
)
_WORD = re.compile(r"[A-Za-z_]{1,20}")
"""A unit of time, or the like: the one thing that is in the engine's text as it was written."""
_CASTS = frozenset({*NUMBERS, *TEXTS, exp.DataType.Type.DATE, exp.DataType.Type.BOOLEAN})
_LONGEST_FORMAT = 100
_LARGEST = 10**300  # beyond it, and below one over it, a double is infinite, or 0
_LINE = "a function of the SQL reference"


def check(node: exp.Expression) -> None:
    """Refuse a node that is not on the list, or that has a part which is not read.

    >>> import sqlglot
    >>> check(sqlglot.parse_one("SQRT(n)"))
    >>> check(sqlglot.parse_one("RAND()"))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: 'RAND()' is not supported: it is not on the list of what may be done with an answer.
      Instead: a function of the SQL reference
    """
    known = _KINDS.get(type(node))
    if known is None:
        raise refused(f"{named(node)} is not supported", "it is not on the list of what may be done with an answer", _LINE)
    for part, value in node.args.items():
        if _is_there(value) and part not in known:
            raise unsupported(f"{part.strip('_').upper()} in {node.key.upper()}", _LINE)
    if isinstance(node, exp.Literal) and not node.is_string:
        text = node.this
        value = number_of(text)
        if value and not Fraction(1, _LARGEST) <= value <= _LARGEST:
            raise refused(f"The constant {clipped(text)} is invalid", "it is too long, too large or no number", _LINE)
    if isinstance(node, exp.Cast | exp.TryCast) and node.to.this not in _CASTS:
        raise unsupported(f"The type {shown(node.to)}", "CAST(n AS DOUBLE)")
    if isinstance(node, exp.TimeToStr) and not is_short(node.args.get("format")):
        raise unsupported("A long format", "STRFTIME(day, '%Y-%m')")
    if isinstance(node, exp.Var) and _WORD.fullmatch(node.name) is None:
        raise unsupported(f"The word {clipped(node.name)}", _LINE)
    if isinstance(node, exp.Interval) and not isinstance(node.this, exp.Literal):
        raise unsupported(f"The interval {shown(node)}", "INTERVAL '3' MONTH")
    if isinstance(node, exp.Ntile) and not re.fullmatch("[1-9][0-9]*", node.this.sql()):
        raise refused("This NTILE is not supported", "its number of groups is not a constant from 1", "NTILE(4)")
    if isinstance(node, exp.WindowSpec):
        for part in ("start", "end"):
            bound = node.args.get(part)
            if isinstance(bound, exp.Expression) and not isinstance(bound, exp.Literal):
                raise unsupported("A frame that is not of constants", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW")


def is_short(written: Any) -> bool:
    """Whether a format is a text that is written out, and no longer than one may be."""
    return isinstance(written, exp.Literal) and written.is_string and len(written.this) <= _LONGEST_FORMAT


def named(node: exp.Expression) -> str:
    """What a node is called in its refusal: a function that the parser does not know by its name."""
    return f"The function {clipped(str(node.name))}" if isinstance(node, exp.Anonymous) else shown(node)


def parts_of(query: exp.Expression, known: frozenset[str], what: str) -> None:
    """Refuse a query with a clause that is not read."""
    for part, value in query.args.items():
        if _is_there(value) and part not in known:
            raise unsupported(f"{part.strip('_').upper()} in {what}", "SELECT … FROM … WHERE … GROUP BY … ORDER BY …")


def _is_there(value: Any) -> bool:
    return not (value is None or value is False or (isinstance(value, list) and not value))
