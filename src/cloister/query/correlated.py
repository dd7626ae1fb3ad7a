"""Subqueries that refer to the query around them, as queries that do not: tried where a query is not understood as it stands.

EXISTS (SELECT 1 FROM towns t WHERE t.town = p.town AND c)      → p.town IN (SELECT t.town FROM towns t WHERE c)
(SELECT AVG(w.cost) FROM visits w WHERE w.patient = v.patient)  → e.value, after LEFT JOIN (SELECT w.patient AS k0,
                    AVG(w.cost) AS value FROM visits w GROUP BY w.patient) AS e ON e.k0 = v.patient
EXISTS (… WHERE w.patient = v.patient AND w.ward = v.ward)      → e.value IS NOT NULL, after such a join of COUNT(*) by both
EXISTS (… AND w.cost > v.fee)                                   → e.value > v.fee, with MAX(w.cost); MIN for <
EXISTS (… AND w.ward <> v.ward)                                 → there are more wards in all than those that are v.ward
v.ward IN (SELECT w.ward … WHERE w.patient = v.patient)         → EXISTS (… AND w.ward = v.ward)

Each is the same condition for every row of the query around: these are identities of SQL, with three-valued logic where it
matters (EXISTS is never NULL, so what stands for it is not, either). Whether what results may be answered, and what it costs, is
decided where it is read: the join is one of the same person's rows, or it is refused.
"""

from collections.abc import Callable, Iterator

from sqlglot import exp

from cloister.query.conditions import conjuncts
from cloister.query.sources import Tables
from cloister.query.within import AGGREGATES
from cloister.tables import PublicTable

_MOST = 8
_EXTREMES: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.GT: exp.Max,
    exp.GTE: exp.Max,
    exp.LT: exp.Min,
    exp.LTE: exp.Min,
}
_TURNED: dict[type[exp.Expression], type[exp.Expression]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.NEQ: exp.NEQ,
}


def uncorrelated(query: exp.Query, tables: Tables) -> Iterator[exp.Query]:
    """The query in other words, with fewer references to the query around each time; none where it has none.

    >>> import sqlglot
    >>> sql = "SELECT COUNT(*) FROM a WHERE (SELECT COUNT(*) FROM b WHERE b.k = a.k) > 2"
    >>> [each.sql() for each in uncorrelated(sqlglot.parse_one(sql), {})]  # doctest: +NORMALIZE_WHITESPACE
    ['SELECT COUNT(*) FROM a LEFT JOIN (SELECT b.k AS "k0", COUNT(*) AS "value" FROM b GROUP BY b.k) AS "elsewhere 0"
     ON "elsewhere 0"."k0" = a.k WHERE COALESCE("elsewhere 0"."value", 0) > 2']
    """
    if not any(isinstance(each, exp.Exists | exp.Subquery | exp.In) for each in query.walk()):
        return
    public = {name.lower() for name, table in tables.items() if isinstance(table, PublicTable)}
    named = {each.alias.lower() for each in query.find_all(exp.CTE)}

    def of_public(inner: exp.Select) -> bool:
        return all(isinstance(each, exp.Table) and each.name.lower() in public - named for each in _sources(inner))

    first = query.copy()
    if _lists(first, of_public):
        yield first
    second = first.copy()
    if _joins(second):
        yield second
    third = first.copy()
    if _lists(third):
        yield third


def _sources(select: exp.Select) -> list[exp.Expression]:
    source = select.args.get("from_")
    return [] if source is None else [source.this, *(join.this for join in select.args.get("joins") or ())]


def _names(select: exp.Select) -> set[str]:
    return {each.alias_or_name.lower() for each in _sources(select)}


class _Inner:
    """A subquery and the SELECT around it: its conditions by whether they name a source of that."""

    def __init__(self, query: exp.Select, around: exp.Select) -> None:
        own, others = _names(query), _names(around)

        def outer(column: exp.Column) -> bool:
            table = column.table.lower()
            return bool(table) and table not in own and table in others

        self.query, self.around = query, around
        self.links: list[tuple[exp.Expression, exp.Expression]] = []
        """Equalities: (column inside, column around)."""
        self.compared: list[tuple[exp.Expression, type[exp.Expression], exp.Expression]] = []
        """Other comparisons, likewise."""
        self.rest: list[exp.Expression] = []
        self.correlated = any(outer(each) for each in query.find_all(exp.Column))
        where = query.args.get("where")
        for part in [] if where is None else conjuncts(where.this):
            inner = part.unnest() if isinstance(part, exp.Paren) else part
            if not any(outer(each) for each in inner.find_all(exp.Column)):
                self.rest.append(part)
                continue
            known = isinstance(inner, exp.Binary) and isinstance(inner, (exp.EQ, *_TURNED))
            sides = [inner.this.unnest(), inner.expression.unnest()] if known else []
            around_ = [all(map(outer, columns)) if (columns := list(side.find_all(exp.Column))) else False for side in sides]
            if around_ not in ([True, False], [False, True]):
                self.compared.append((inner, exp.Expression, inner))  # of no known kind
                continue
            inside, outside = sides if around_[1] else sides[::-1]
            if not isinstance(inside, exp.Column) or (isinstance(inner, exp.EQ) and not isinstance(outside, exp.Column)):
                self.compared.append((inner, exp.Expression, inner))
            elif isinstance(inner, exp.EQ):
                self.links.append((inside, outside))
            else:
                self.compared.append((inside, type(inner) if around_[1] else _TURNED[type(inner)], outside))
        plain = {"expressions", "from_", "joins", "where", "distinct"}
        strange = any(value and part not in plain for part, value in query.args.items())
        parts = [*query.expressions, *(query.args.get("joins") or ())]
        self.plain = not strange and not any(outer(each) for part in parts for each in part.find_all(exp.Column))

    def grouped(self, keys: list[exp.Expression], value: exp.Expression) -> exp.Select:
        """The rows inside, one for each value of the keys."""
        named = [exp.alias_(key.copy(), f"k{place}", quoted=True) for place, key in enumerate(keys)]
        found = exp.Select(expressions=[*named, exp.alias_(value, "value", quoted=True)], from_=self.query.args["from_"].copy())
        found.set("joins", [each.copy() for each in self.query.args.get("joins") or ()])
        if self.rest:
            found.set("where", exp.Where(this=exp.and_(*(each.copy() for each in self.rest), copy=False)))
        found.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        return found


def _nested(query: exp.Query) -> Iterator[tuple[exp.Expression, _Inner]]:
    """The subqueries in a WHERE that refer to the SELECT around them."""
    for node in list(query.find_all(exp.Exists, exp.Subquery, exp.In)):
        inner = node.args.get("query") if isinstance(node, exp.In) else node.this
        inner = inner.unnest() if isinstance(inner, exp.Subquery) else inner
        around = node.find_ancestor(exp.Select)
        where = node.find_ancestor(exp.Where)
        if not isinstance(inner, exp.Select) or around is None or where is None or where.parent is not around:
            continue
        if isinstance(node, exp.Subquery) and isinstance(node.parent, exp.Exists | exp.In | exp.From | exp.Join):
            continue
        if isinstance(node, exp.In):
            found = _of_in(node, inner, around)
            if found is not None:
                yield node, found
            continue
        made = _Inner(inner, around)
        if made.correlated and made.plain and made.links:
            yield node, made


def _only_true(node: exp.Expression) -> bool:
    """Whether a condition stands where rows are kept if all of it is true: NULL is as good as no there."""
    up = node.parent
    while isinstance(up, exp.Paren | exp.And):
        up = up.parent
    return isinstance(up, exp.Where)


def _of_in(node: exp.In, inner: exp.Select, around: exp.Select) -> _Inner | None:
    """(a, b) IN (SELECT c, d …), and a IN (SELECT …) that refers to the query around it, where no NULL could tell it from EXISTS:
    in a condition that is not negated."""
    written = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    if len(written) != len(inner.expressions):
        return None
    columns = [each.unalias() for each in inner.expressions]
    if not _only_true(node) or not all(isinstance(each, exp.Column) for each in (*columns, *written)):
        return None
    made = _Inner(inner, around)
    if made.correlated is isinstance(node.this, exp.Tuple) or not made.plain:
        return None
    made.links += list(zip(columns, written, strict=True))
    return made


def _missing(tree: exp.Expression) -> exp.Expression:
    return exp.Is(this=tree.copy(), expression=exp.Null())


def _there(tree: exp.Expression) -> exp.Expression:
    return exp.Not(this=_missing(tree))


def _lists(query: exp.Query, of_public: Callable[[exp.Select], bool] | None = None) -> bool:
    """EXISTS about one equal column as IN; whether there was any. With `of_public` those about public tables alone."""
    changed = False
    for node, inner in _nested(query):
        if not isinstance(node, exp.Exists) or len(inner.links) != 1 or inner.compared:
            continue
        if of_public is not None and not of_public(inner.query):
            continue
        if any(part.find(*AGGREGATES) for part in inner.query.expressions):  # without GROUP BY it has a row in any case
            continue
        (inside, outside) = inner.links[0]
        chosen = exp.Select(expressions=[inside.copy()], from_=inner.query.args["from_"].copy())
        chosen.set("joins", [each.copy() for each in inner.query.args.get("joins") or ()])
        conditions = [each.copy() for each in inner.rest]
        target: exp.Expression = node
        while isinstance(target.parent, exp.Paren):
            target = target.parent
        negated = isinstance(target.parent, exp.Not)
        told = of_public is not None and not negated and not _only_true(target)  # where NULL is another thing than no
        conditions += [_there(inside)] if negated or told else []
        if conditions:
            chosen.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
        among: exp.Expression = exp.In(this=outside.copy(), query=exp.Subquery(this=chosen))
        if negated:
            among = exp.Paren(this=exp.or_(_missing(outside), exp.Not(this=among), copy=False))
            target = target.parent
        elif told:
            among = exp.Paren(this=exp.and_(_there(outside), among, copy=False))
        target.replace(among)
        changed = True
    return changed


def _joins(query: exp.Query) -> bool:
    """Correlated subqueries as LEFT JOINs of what they say of each person; whether there was any."""
    count = 0
    for node, inner in _nested(query):
        outer = any(
            str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in inner.around.args.get("joins") or ()
        )
        if outer or count >= _MOST:
            continue
        found = _of_exists(inner, count) if isinstance(node, exp.Exists | exp.In) else _of_scalar(inner, count)
        if found is None:
            continue
        joins, condition = found
        count += len(joins)
        inner.around.set("joins", [*(inner.around.args.get("joins") or ()), *joins])
        node.replace(condition)
    return bool(count)


def _of_scalar(inner: _Inner, number: int) -> tuple[list[exp.Join], exp.Expression] | None:
    written = [each.unalias() for each in inner.query.expressions]
    if inner.compared or len(written) != 1 or not isinstance(written[0], AGGREGATES) or inner.query.args.get("distinct"):
        return None
    join, value = _joined(inner, inner.links, written[0].copy(), number)
    if isinstance(written[0], exp.Count):
        value = exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
    return [join], value


def _of_exists(inner: _Inner, number: int) -> tuple[list[exp.Join], exp.Expression] | None:
    if len(inner.compared) > 1 or any(part.find(*AGGREGATES) for part in inner.query.expressions):
        return None
    if not inner.compared:
        join, value = _joined(inner, inner.links, exp.Count(this=exp.Star()), number)
        return [join], exp.Paren(this=_there(value))
    inside, kind, outside = inner.compared[0]
    if kind is exp.NEQ:
        if not isinstance(outside, exp.Column):
            return None
        all_, value = _joined(inner, inner.links, exp.Count(this=inside.copy()), number)
        own, same = _joined(inner, [*inner.links, (inside, outside)], exp.Count(this=exp.Star()), number + 1)
        nothing = exp.Literal.number(0)
        more = exp.GT(
            this=exp.Coalesce(this=value, expressions=[nothing]), expression=exp.Coalesce(this=same, expressions=[nothing.copy()])
        )
        return [all_, own], exp.Paren(this=exp.and_(_there(outside), more, copy=False))
    if kind not in _EXTREMES:
        return None
    join, value = _joined(inner, inner.links, _EXTREMES[kind](this=inside.copy()), number)
    compared = kind(this=value.copy(), expression=outside.copy())
    return [join], exp.Paren(this=exp.and_(_there(value), _there(outside), compared, copy=False))


def _joined(
    inner: _Inner, links: list[tuple[exp.Expression, exp.Expression]], value: exp.Expression, number: int
) -> tuple[exp.Join, exp.Column]:
    """A LEFT JOIN with one row for each value of the columns inside, and what it says."""
    name = exp.to_identifier(f"elsewhere {number}", quoted=True)
    grouped = inner.grouped([inside for inside, _ in links], value)
    equal = [
        exp.EQ(this=exp.column(exp.to_identifier(f"k{place}", quoted=True), table=name.copy()), expression=outside.copy())
        for place, (_, outside) in enumerate(links)
    ]
    source = exp.Subquery(this=grouped, alias=exp.TableAlias(this=name.copy()))
    join = exp.Join(this=source, side="LEFT", on=exp.and_(*equal, copy=False))
    return join, exp.column(exp.to_identifier("value", quoted=True), table=name.copy())
