"""How many people there are of whom something holds, in other words: tried where a query is not understood as it stands.

COUNT(DISTINCT patient) FILTER (WHERE c)             → (SELECT COUNT(DISTINCT patient) FROM … WHERE … AND c)
COUNT(DISTINCT CASE WHEN c THEN patient END)         → likewise
… GROUP BY ward, where all aggregates have that c    → … WHERE … AND c GROUP BY ward

The first two are identities of SQL where nothing is grouped. With GROUP BY, declared groups are answered whether rows are in
them or not, so a condition on other columns may stand in WHERE.
"""

from collections.abc import Iterator

from sqlglot import exp

from cloister.query.aggregates import holds_aggregate, is_aggregate


def counted_apart(query: exp.Query) -> Iterator[exp.Query]:
    """The query with its conditions on whom it counts in WHERE, or in questions of their own; none where it has none.

    >>> import sqlglot
    >>> sql = "SELECT COUNT(DISTINCT who) FILTER (WHERE x > 1) AS n, COUNT(*) AS m FROM a WHERE y"
    >>> [each.sql() for each in counted_apart(sqlglot.parse_one(sql))]
    ['SELECT (SELECT COUNT(DISTINCT who) FROM a WHERE y AND x > 1) AS n, COUNT(*) AS m FROM a WHERE y']
    >>> [each.sql() for each in counted_apart(sqlglot.parse_one(sql.replace(", COUNT(*) AS m", ", k") + " GROUP BY k"))]
    ['SELECT COUNT(DISTINCT who) AS n, k FROM a WHERE y AND x > 1 GROUP BY k']
    """
    found = query.copy()
    if not isinstance(found, exp.Select) or found.args.get("from_") is None or found.args.get("distinct"):
        return
    counts = {id(node): pair for node in _own(found) for pair in [_conditional(node)] if pair is not None}
    if not counts:
        return
    if found.args.get("group") is None and found.args.get("having") is None:
        for node in [each for each in _own(found) if id(each) in counts]:
            node.replace(exp.Subquery(this=_question(found, *counts[id(node)])))
        if not any(holds_aggregate(each) for each in found.expressions):
            for part in ("from_", "joins", "where"):
                found.set(part, None)
        yield found
        return
    if found.args.get("group") is None:
        return
    aggregates = [node for node in _own(found) if is_aggregate(node) and not isinstance(node.parent, exp.Filter)]
    (_, wanted), *others = counts.values()
    columns = {each.name.lower() for each in wanted.find_all(exp.Column)}
    keys = {each.name.lower() for target in found.args["group"].expressions for each in target.find_all(exp.Column)}
    alike = len(aggregates) == len(counts) and all(condition == wanted for _, condition in others)
    if not alike or columns & keys or not keys:
        return
    for node in aggregates:
        node.replace(exp.Count(this=exp.Distinct(expressions=[counts[id(node)][0].copy()])))
    found.set("where", _both(found, wanted))
    yield found


def _own(select: exp.Select) -> list[exp.Expression]:
    """What stands in its columns, in HAVING and ORDER BY, questions within it not counted."""
    waiting = [*select.expressions, *(select.args[part] for part in ("having", "order") if select.args.get(part) is not None)]
    found = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Query):
            continue
        found.append(node)
        if _conditional(node) is None:
            waiting += list(node.iter_expressions())
    return found


def _conditional(node: exp.Expression) -> tuple[exp.Column, exp.Expression] | None:
    """Who is counted, and of whom what must hold."""
    condition = None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    distinct = node.this if isinstance(node, exp.Count) else None
    parts = distinct.expressions if isinstance(distinct, exp.Distinct) else []
    if len(parts) != 1:
        return None
    (who,) = parts
    branches = [who] if isinstance(who, exp.If) else who.args["ifs"] if isinstance(who, exp.Case) and who.this is None else []
    if condition is None and len(branches) == 1:
        default = who.args.get("default") or who.args.get("false")
        if default is not None and not isinstance(default, exp.Null):
            return None
        condition, who = branches[0].this, branches[0].args["true"]
    return (who, condition) if condition is not None and isinstance(who, exp.Column) else None


def _question(select: exp.Select, who: exp.Column, wanted: exp.Expression) -> exp.Select:
    joins = [each.copy() for each in select.args.get("joins") or ()]
    count = exp.Count(this=exp.Distinct(expressions=[who.copy()]))
    return exp.Select(expressions=[count], from_=select.args["from_"].copy(), joins=joins or None, where=_both(select, wanted))


def _both(select: exp.Select, wanted: exp.Expression) -> exp.Where:
    where = select.args.get("where")
    return exp.Where(this=wanted.copy() if where is None else exp.and_(where.this, wanted, copy=True))
