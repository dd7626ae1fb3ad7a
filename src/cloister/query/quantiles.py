"""Lists of quantiles: a column for each.

No column of an answer holds a list, so `QUANTILE_CONT(age, [0.25, 0.75]) AS q` is two columns, `q_25` and `q_75`, by their shares
in per cent; `APPROX_QUANTILES(age, 4) AS q` is `q_0`, `q_25`, `q_50`, `q_75` and `q_100`. A place in such a list, as in
`APPROX_QUANTILES(age, 100)[OFFSET(90)]`, is one quantile. Several quantiles of one column cost as much as one.
"""

from fractions import Fraction

from sqlglot import exp

from cloister.query.options import BY_ROW
from cloister.query.refusals import refused

_MOST = 101
_NAMES = ("QUANTILE_CONT", "QUANTILE_DISC", "PERCENTILE", "APPROX_PERCENTILE", "QUANTILE")


def lists(select: exp.Select, dialect: str | None = None) -> None:
    """The SELECT with a column for each quantile of a list, changed in its place.

    >>> import sqlglot
    >>> query = sqlglot.parse_one("SELECT QUANTILE(age, ARRAY(0.25, 0.5)) AS q, APPROX_QUANTILES(age, 4)[4] AS r FROM people")
    >>> lists(query)
    >>> query.sql()
    'SELECT QUANTILE(age, 0.25) AS q_25, QUANTILE(age, 0.5) AS q_50, QUANTILE(age, 0.75) AS r FROM people'
    """
    found: list[exp.Expression] = []
    for each in select.expressions:
        inner = each.unalias()
        listed = _list(inner)
        if listed is None:
            found.append(each)
            continue
        x, shares = listed
        name = each.alias or "quantile"
        found += [exp.alias_(_quantile(x, share), f"{name}_{_per_cent(share)}", quoted=_quoted(each)) for share in shares]
    if len(found) != len(select.expressions) or any(
        one is not other for one, other in zip(found, select.expressions, strict=True)
    ):
        select.set("expressions", found)
    for bracket in list(select.find_all(exp.Bracket)):
        listed = _list(bracket.this)
        place = bracket.expressions[0] if len(bracket.expressions) == 1 else None
        if listed is None or not isinstance(place, exp.Literal) or place.is_string or not place.this.isdecimal():
            continue
        x, shares = listed
        first = bracket.args.get("offset")
        if first is None:  # our own SQL counts from 1, as DuckDB does; other parsers have made it from 0 already
            first = int(dialect is None)
        number = int(place.this) - first
        if not 0 <= number < len(shares):
            raise refused("A place in a list of quantiles is invalid", f"the list has {len(shares)}", "QUANTILE(age, 0.5)")
        bracket.replace(_quantile(x, shares[number]))


def _quoted(tree: exp.Expression) -> bool:
    alias = tree.args.get("alias")
    return bool(isinstance(alias, exp.Identifier) and alias.args.get("quoted"))


def _per_cent(share: Fraction) -> str:
    text = f"{float(share * 100):.10f}".rstrip("0").rstrip(".")
    return text.replace(".", "_")


def _quantile(x: exp.Expression, share: Fraction) -> exp.Expression:
    return exp.Quantile(this=x.copy(), quantile=exp.Literal.number(f"{float(share):.12f}".rstrip("0").rstrip(".") or "0"))


def _within_bounds(given: list[exp.Expression]) -> tuple[exp.Expression, exp.Expression | None]:
    """APPROX_QUANTILES(x, 4, contribution_bounds_per_row => (0, 100)): the clamped column, and into how many parts."""
    ends = given[2].expression if len(given) == 3 and isinstance(given[2], exp.Kwarg) else None
    if not isinstance(ends, exp.Tuple) or len(ends.expressions) != 2:
        return given[0], None
    return exp.Anonymous(this="CLAMP", expressions=[given[0], *ends.expressions]), given[1]


def _list(tree: exp.Expression) -> tuple[exp.Expression, list[Fraction]] | None:
    """The column, and the shares of the quantiles; none for a single quantile."""
    x: exp.Expression = tree.this if isinstance(tree.this, exp.Expression) else tree
    shares: exp.Expression | None = None
    marked = isinstance(tree, exp.Anonymous) and str(tree.this).upper() == BY_ROW["APPROX_QUANTILES"]
    if isinstance(tree, exp.ApproxQuantiles) or marked:
        parts = tree.expression
        if marked:
            x, parts = _within_bounds(tree.expressions)
        count = int(parts.this) if isinstance(parts, exp.Literal) and parts.this.isdecimal() else 0
        if not 1 <= count < _MOST:
            raise refused(
                "APPROX_QUANTILES is not supported", "it takes a whole number from 1 to 100", "APPROX_QUANTILES(age, 4)"
            )
        return x, [Fraction(place, count) for place in range(count + 1)]
    if isinstance(tree, exp.Quantile | exp.ApproxQuantile):
        shares = tree.args.get("quantile")
    elif isinstance(tree, exp.PercentileCont | exp.PercentileDisc):
        shares = tree.expression
    elif isinstance(tree, exp.Anonymous) and str(tree.this).upper() in _NAMES and len(tree.expressions) == 2:
        x, shares = tree.expressions
    elif isinstance(tree, exp.WithinGroup) and isinstance(tree.this, exp.PercentileCont | exp.PercentileDisc):
        shares, ordered = tree.this.this, tree.expression.expressions
        if len(ordered) != 1 or ordered[0].args.get("desc"):
            return None
        x = ordered[0].this
    if not isinstance(shares, exp.Array) or not 1 <= len(shares.expressions) <= _MOST:
        return None
    if any(not isinstance(each, exp.Literal) or each.is_string for each in shares.expressions):
        return None
    return x, [Fraction(each.this) for each in shares.expressions]
