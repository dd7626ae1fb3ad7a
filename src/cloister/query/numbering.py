"""Windows over one person's rows, in a question within the question: ROW_NUMBER, RANK and DENSE_RANK in an order, and sums,
counts, means and extremes of all rows of the person beside each of them.

The usual way to cap what each person has is `… FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day) AS r FROM
visits) AS t WHERE r <= 2`. What stands over such a window follows from the person's own rows (`Numbered` argues it; an aggregate
is a join with the one row that `PerUnit` makes of them), so the partition names the person. A condition on a row number bounds
how many rows of a person count, and less noise is needed.
"""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp

from cloister.query.constants import counts_rows
from cloister.query.refusals import refused, unsupported
from cloister.query.rows import Field
from cloister.query.scalars import Reader
from cloister.tables import Numbered, PerUnit, Relation, UnitAggregate, UnitJoined

_LINE = "ROW_NUMBER() OVER (PARTITION BY patient ORDER BY day)"
_KINDS: dict[type[exp.Expression], Any] = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_AGGREGATES: dict[type[exp.Expression], Any] = {
    exp.Count: "values",
    exp.Sum: "sum",
    exp.Avg: "mean",
    exp.Min: "min",
    exp.Max: "max",
}
_OF = exp.to_identifier("numbers of rows")
"""What a number is qualified by: * stands for none of them."""


def numbered(
    expressions: Sequence[exp.Expression], qualify: exp.Expression | None, reader: Reader
) -> tuple[list[exp.Expression], exp.Expression | None]:
    """The select list and QUALIFY with a column in the place of each number; the rows that are read have these columns then."""
    known: dict[str, exp.Column] = {}

    def change(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Window):
            return node
        text = node.sql(comments=False)
        if text not in known:
            known[text] = _number(node, reader, len(known))
        return known[text].copy()

    return [each.copy().transform(change) for each in expressions], None if qualify is None else qualify.copy().transform(change)


def _number(window: exp.Window, reader: Reader, count: int) -> exp.Column:
    rows = reader.rows
    kind = _KINDS.get(type(window.this))
    order = window.args.get("order")
    keys = [each for each in window.args.get("partition_by") or () if not rows.is_unit(each)]
    if len(keys) == len(window.args.get("partition_by") or ()):
        raise refused("A number of rows is not supported", "it is not counted for each person alone", _LINE)
    if kind is None:
        return _beside(window, reader, count)
    columns = [reader.column(each) for each in keys]
    by = [(reader.column(each.this), bool(each.args.get("desc")), bool(each.args.get("nulls_first"))) for each in _parts(order)]
    source = rows.built()
    name = f"number {count + 1} of a person's rows"
    while name in source.columns:
        name += "'"
    relation = Numbered(source=source, keys=tuple(dict.fromkeys(columns)), by=tuple(by), number=name, kind=kind)
    return _named(relation, name, reader)


def _beside(window: exp.Window, reader: Reader, count: int) -> exp.Column:
    """An aggregate of all rows of the person, beside each of them."""
    rows, inner = reader.rows, window.this
    kind = _AGGREGATES.get(type(inner))
    if kind is None or window.args.get("order") is not None or len(window.args["partition_by"]) > 1 or inner.expressions:
        raise unsupported("This function over a window in a subquery", "SUM(cost) OVER (PARTITION BY patient)")
    everything = isinstance(inner, exp.Count) and counts_rows(inner.this)
    column = None if everything else reader.column(inner.this)
    source = rows.built()
    name = f"{kind} {count + 1} of a person's rows"
    while name in source.columns:
        name += "'"
    aggregate = UnitAggregate(name=name, kind="count" if everything else kind, column=column)
    return _named(UnitJoined(left=source, right=PerUnit(source=source, aggregates=(aggregate,))), name, reader)


def _named(relation: Relation, name: str, reader: Reader) -> exp.Column:
    rows = reader.rows
    rows.become(relation)
    rows.fields.append(Field(name=name, column=name, qualifiers=((_OF,),), hidden=True))
    return exp.column(exp.to_identifier(name, quoted=True), table=_OF.copy())


def _parts(order: exp.Expression | None) -> list[exp.Expression]:
    return (
        [] if order is None else [each if isinstance(each, exp.Ordered) else exp.Ordered(this=each) for each in order.expressions]
    )
