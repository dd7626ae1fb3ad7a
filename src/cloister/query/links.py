"""What ties private sources together: the table that a key belongs to, and the refusal where nothing does."""

from __future__ import annotations

from collections.abc import Mapping

from cloister.errors import UnsupportedQuery
from cloister.query.refusals import refused
from cloister.query.sources import Item
from cloister.tables import Base, KeyJoined, PrivateTable, Projected, Relation


def linked(relation: Relation, tables: Mapping[str, object], until: str | None = None) -> Relation:
    """Rows whose units are values of another table's column, joined with that table, again and again, until they are people's, or
    belong to the values of the one column that is named."""
    while relation.through not in (None, until):
        name, _, key = relation.through.rpartition(".")
        parent = tables.get(name)
        if not isinstance(parent, PrivateTable):
            raise refused(
                f"The table of {relation.through!r} is not supported",
                "the rows belong to people through it, and the session knows no private table of that name",
                f'cl.Session({{"{name}": …}})',
            )
        new = f"{name}.{key}"
        while new in relation.columns:
            new += "'"
        assert relation.unit is not None
        right = Projected(source=Base(name=name, table=parent), names=((new, key),))
        columns = tuple((each, each) for each in relation.columns)
        whole = KeyJoined(left=relation, right=right, left_key=relation.unit, right_key=new)
        relation = Projected(source=whole, names=columns)
    return relation


def unlinked(relation: Relation, first: Item, item: Item) -> UnsupportedQuery:
    """The refusal of a source that nothing ties to those before it."""
    join = f"JOIN {item.label}{f' AS {item.called}' if item.called != item.label else ''} ON"
    if item.relation is None:
        return refused(
            f"The join with {item.label!r} is not supported",
            "no column of both is compared",
            f"{join} {first.called}.town = {item.called}.town",
        )
    bare = next((each for each in (first, item) if each.relation is not None and each.relation.unit is None), None)
    if bare is not None:
        return refused(
            f"The join of {first.label!r} and {item.label!r} is not supported",
            f"private tables are joined on the column that says whose row a row is, and {bare.label!r} declares none",
            'cl.PrivateTable(…, unit="person", max_rows=1)',
        )
    if item.relation.through is not None and relation.through is None:
        return refused(
            f"The join of {first.label!r} and {item.label!r} is not supported",
            f"the rows of {item.label!r} belong to values of {item.relation.through!r}, which is not compared",
            f"{join} {item.relation.through} = {item.called}.{item.relation.unit}",
        )
    return refused(
        f"The join of {first.label!r} and {item.label!r} is not supported",
        "private tables are joined on the column that says whose row a row is, or along a declared through=",
        f"{join} {first.called}.{relation.unit} = {item.called}.{item.relation.unit}",
    )
