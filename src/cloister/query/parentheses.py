"""Joins in parentheses: inner ones mean the same without.

(a JOIN b ON p)                    → a JOIN b ON p
(a JOIN b ON p) JOIN c ON q        → a JOIN b ON p JOIN c ON q
a JOIN (b JOIN c ON p) ON q        → b JOIN c ON p JOIN a ON q: inner joins are commutative and associative
(a JOIN b USING (k)) AS t          → (SELECT * FROM a JOIN b USING (k)) AS t

A LEFT JOIN of what is in parentheses is another question, and stays: it is refused where it is read.
"""

from sqlglot import exp

_INNER = ("", "INNER", "CROSS")


def flattened(select: exp.Select) -> None:
    """The SELECT with its joins in a row, changed in its place.

    >>> import sqlglot
    >>> query = sqlglot.parse_one("SELECT COUNT(*) FROM a JOIN (b JOIN c USING (k)) ON a.k = b.k")
    >>> flattened(query)
    >>> query.sql()
    'SELECT COUNT(*) FROM b JOIN c USING (k) JOIN a ON a.k = b.k'
    """
    source = select.args.get("from_")
    if source is None:
        return
    for place in (source, *(select.args.get("joins") or ())):
        _aliased(place)
    while (inner := _within(source.this)) is not None:
        joins = inner.args.get("joins") or []
        inner.set("joins", None)
        source.set("this", inner)
        select.set("joins", [*joins, *(select.args.get("joins") or [])])
    joins = select.args.get("joins") or []
    if len(joins) != 1 or not _inner(joins[0]) or any(each.is_star for each in select.expressions):
        return
    (join,) = joins
    inner = _within(join.this)
    if inner is not None and not join.args.get("using") and all(map(_inner, inner.args.get("joins") or [])):
        own, first = inner.args.get("joins") or [], source.this
        inner.set("joins", None)
        source.set("this", inner)
        join.set("this", first)
        select.set("joins", [*own, join])


def _inner(join: exp.Join) -> bool:
    return not join.args.get("side") and not join.args.get("method") and str(join.args.get("kind") or "").upper() in _INNER


def _within(tree: exp.Expression) -> exp.Expression | None:
    """What a parenthesis without a name holds, where that is no query: the first of its sources, which holds the joins."""
    if not isinstance(tree, exp.Subquery | exp.Paren) or tree.args.get("alias") is not None:
        return None
    inner = tree.this
    if isinstance(inner, exp.Table) or (isinstance(inner, exp.Subquery) and (inner.args.get("joins") or inner.args.get("alias"))):
        if tree.args.get("joins"):  # of the parenthesis: they follow its own
            inner.set("joins", [*(inner.args.get("joins") or []), *tree.args["joins"]])
        return inner
    return None


def _aliased(place: exp.From | exp.Join) -> None:
    """A name for the whole parenthesis: it is a query of all columns."""
    tree = place.this
    alias = tree.args.get("alias") if isinstance(tree, exp.Subquery) else None
    if alias is None or not isinstance(tree.this, exp.Table) or not tree.this.args.get("joins"):
        return
    first = tree.this
    joins = first.args["joins"]
    first.set("joins", None)
    tree.set("this", exp.Select(expressions=[exp.Star()], from_=exp.From(this=first), joins=joins))
