"""What is asked at the second door, and what is refused of it from the declarations alone."""

from dataclasses import dataclass

from cloister.errors import UnsupportedQuery
from cloister.query.controls.cells import Axis
from cloister.query.controls.policy import Controls
from cloister.session import Count, Mean, Persons, Question, Sum, unknown_column
from cloister.tables import Aggregation, Expression, PrivateTable, check_aggregation


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One statistic: count, people, sum, mean, maximum or minimum; `column` is "*" for counts.

    >>> Asked(kind="sum", column="pay").name, Asked(kind="count").name, str(Asked(kind="mean", column="pay"))
    ('sum_pay', 'count', 'mean(pay)')
    """

    kind: str
    column: str = "*"
    called: str = ""

    @property
    def name(self) -> str:
        """What its column of the answer is called."""
        return self.called or (self.kind if self.column == "*" else f"{self.kind}_{self.column}")

    def __str__(self) -> str:
        return self.kind if self.column == "*" else f"{self.kind}({self.column})"


def asked_of(question: Question, table: str) -> list[Asked]:
    """The statistics of a question; what controls have no answer to is refused.

    >>> asked_of(Question(table="staff", statistics=(Count(), Mean(column="pay"))), "staff")[1].name
    'mean_pay'
    """
    if question.table != table:
        alone = isinstance(question.table, str) or set(question.table.bases()) != {table}
        raise UnsupportedQuery(
            "The query is not supported",
            why=f"these controls are of the table {table!r} alone" if alone else "under controls no column is computed",
            instead=f'Question(table="{table}", …)' if alone else "a column as it is declared",
        )
    found = []
    for each in question.statistics:
        if isinstance(each, Sum | Mean):
            found.append(Asked(kind="sum" if isinstance(each, Sum) else "mean", column=each.column, called=each.name))
        elif isinstance(each, Persons) or (isinstance(each, Count) and each.column is None):
            found.append(Asked(kind="persons" if isinstance(each, Persons) else "count", called=each.name))
        else:
            raise UnsupportedQuery(
                f"{type(each).__name__} is not supported under controls",
                why="they answer counts, numbers of people, sums and means, and extremes by session.maximum and session.minimum",
                instead="Count(), Sum(column=…) or Mean(column=…)",
            )
    return found


def check_asked(asked: list[Asked], where: Expression | None, table: str, declaration: PrivateTable, controls: Controls) -> None:
    """Refuses, from declarations alone, statistics and conditions that have no answer."""
    for each in asked:
        if each.column == "*":
            continue
        if each.column not in declaration.columns:
            raise unknown_column(each.column, table, list(declaration.columns))
        domain = declaration.columns[each.column]
        if domain.kind not in ("integer", "real", "boolean"):
            raise UnsupportedQuery(
                f"The {each.kind} of {each.column!r} is not supported",
                why=f"it is declared as {domain.kind}",
                instead="a column of numbers",
            )
        covered = controls.width(each.column) is not None or (
            controls.substitute is not None and each.column in controls.substitute.columns
        )
        if each.kind in ("maximum", "minimum") and not covered:
            raise UnsupportedQuery(
                f"The {each.kind} of {each.column!r} is not supported",
                why="it is one person's value, so it is given as a range or as a substitute only",
                instead=f'Controls(recode={{"{each.column}": 1000}})',
            )
    check_aggregation(Aggregation(None, where=where), declaration)


def check_table(axes: tuple[Axis, ...], controls: Controls, *, totals: bool) -> None:
    """Refuses tables that the controls cannot keep, from their keys alone."""
    if not axes:
        raise UnsupportedQuery("A table without keys is not supported", why="it is a count", instead="session.count()")
    why = ""
    if totals and controls.overlap is not None:
        why = "totals overlap with their cells"
    elif totals and len(axes) > 2 and controls.suppress is not None and controls.suppress.complementary:
        why = "complementary suppression is proved for one-way and two-way tables"
    if why:
        raise UnsupportedQuery("Totals are not supported", why=why, instead="session.table(by=…, totals=False)")
    if len(axes) > 2 and controls.rounding is not None and controls.rounding.kind == "controlled":
        raise UnsupportedQuery(
            "A table of three keys is not supported",
            why="controlled rounding may not exist for it",
            instead='two keys, or Rounding(kind="random")',
        )


def reads_of(where: Expression | None, axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """The columns that choose the records."""
    columns = set() if where is None else set(where.columns())
    return tuple(sorted(columns | {axis.column for axis in axes}))
