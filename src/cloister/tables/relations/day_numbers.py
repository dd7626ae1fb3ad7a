"""Days as numbers, where a method sums columns: days since 1970, as codes of a column of days count them."""

from collections.abc import Sequence

from cloister.tables.declaring.columns import Date, Domain
from cloister.tables.declaring.table import PrivateTable, PublicTable
from cloister.tables.expression.scalars import Const, DateDiff, Ref
from cloister.tables.relations.relation import Base, Extended, Relation
from cloister.tables.sourcing.reading import EPOCH


def days_as_numbers(
    table: str, declaration: PrivateTable | PublicTable, columns: Sequence[tuple[str, Domain]]
) -> tuple[str | Relation, list[tuple[str, Domain]]]:
    """The table with a column of numbers beside each of dates, and these in its place.

    >>> people = PrivateTable({"born": ["1970-01-02"]}, {"born": Date("1970-01-01", "1970-01-31")})
    >>> days_as_numbers("people", people, list(people.columns.items()))[1]
    [('days of born', Integer(low=0, high=30, nullable=False))]
    """
    assert isinstance(declaration, PrivateTable)
    days = {name: free_name(f"days of {name}", declaration) for name, domain in columns if isinstance(domain, Date)}
    if not days:
        return table, list(columns)
    source = Base(name=table, table=declaration)
    relation = Extended(source=source, scalars=tuple((days[name], day_number(name)) for name in days))
    return relation, [(days.get(name, name), relation.columns[days.get(name, name)]) for name, _ in columns]


def day_number(name: str) -> DateDiff:
    """The days from 1970 to those of a column, as its codes count them."""
    return DateDiff("day", Ref(name), Const(EPOCH))


def free_name(name: str, declaration: PrivateTable) -> str:
    """A name that no declared column has."""
    while name in declaration.columns:
        name += "'"
    return name
