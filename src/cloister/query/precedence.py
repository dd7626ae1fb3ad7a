"""Where the parser groups operators otherwise than SQL does, the question must say with parentheses what it means.

sqlglot reads `x - 1 % 3` as (x - 1) % 3 and `p = q IS NULL` as p = (q IS NULL); standard SQL reads x - (1 % 3) and
(p = q) IS NULL. It reads `a UNION b INTERSECT c` from the left, where SQL intersects first. No guess is taken: without
parentheses they are refused by name.
"""

from collections.abc import Iterable

from sqlglot import exp

from cloister.query.refusals import refused, shown

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.Between, exp.In)


def check_precedence(root: exp.Expression) -> None:
    """Refuse operators whose grouping is not the same everywhere.

    >>> import sqlglot
    >>> check_precedence(sqlglot.parse_one("SELECT SUM(x - (1 % 3)) FROM t WHERE (p = q) IS NULL"))
    >>> check_precedence(sqlglot.parse_one("SELECT SUM(x - 1 % 3) FROM t"))
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: 'x - 1 % 3' is not supported: without parentheses it is not read alike everywhere.
      Instead: x - (1 % 3)
    """
    for node in root.walk():
        if isinstance(node, exp.Mod):
            if isinstance(node.this, exp.Add | exp.Sub) or isinstance(node.expression, _ARITHMETIC):
                raise _unclear(node, "x - (1 % 3)")
        elif isinstance(node, exp.Intersect):
            if any(isinstance(each, exp.Union | exp.Except) for each in (node.this, node.expression)):
                raise _unclear(node, "SELECT … UNION (SELECT … INTERSECT SELECT …)")
        elif isinstance(node, exp.Is | exp.NullSafeEQ | exp.NullSafeNEQ):
            outer = node.parent.parent if isinstance(node.parent, exp.Not) and isinstance(node, exp.Is) else node.parent
            near = [outer, node.this, node.expression]
            if any(isinstance(each, _COMPARISONS) for each in near) or isinstance(node.this, exp.Is):
                raise _unclear(outer if isinstance(outer, _COMPARISONS) else node, "(p = q) IS NULL")


def check_names(root: exp.Expression, tables: Iterable[str]) -> None:
    """Refuse a name in WITH that differs from a table's in case alone: which of the two a quoted name means is not read alike.

    >>> import sqlglot
    >>> check_names(sqlglot.parse_one("WITH People AS (SELECT 1 AS x) SELECT x FROM People"), ["people"])
    Traceback (most recent call last):
    ...
    cloister.errors.UnsupportedQuery: The name 'People' is not supported: the table 'people' differs from it in case alone.
      Instead: another name in WITH
    """
    for each in root.find_all(exp.CTE):
        other = next((name for name in tables if name != each.alias and name.lower() == each.alias.lower()), None)
        if other is not None:
            why = f"the table {other!r} differs from it in case alone"
            raise refused(f"The name {each.alias!r} is not supported", why, "another name in WITH")


def _unclear(tree: exp.Expression, instead: str) -> Exception:
    return refused(f"{shown(tree)} is not supported", "without parentheses it is not read alike everywhere", instead)
