"""What an engine can't answer, refused by name before anything is priced: from its declared abilities alone.

An engine whose exact values exist nowhere adds up integers and noise. Most questions are sums with noise, and are asked of it
as of any other. Quantiles take the hierarchy of counts in place of a choice by exact counts (`sharing.py`). What is left is
refused here.
"""

from cloister.errors import UnsupportedQuery
from cloister.session.planning.grid import Grid
from cloister.session.questions.declared import Declared, table_name
from cloister.session.questions.question import Distinct, Persons, Question
from cloister.tables import Relation
from cloister.tables.expression.names import quoted


def check_abilities(question: Question, declaration: Declared, grid: Grid) -> None:
    """Refuse what the engine of the question's table can't answer."""
    able, name = declaration.abilities, table_name(question.table)
    if able.declared_keys_only and not grid.declared:
        key = next(axis.name for axis in grid.axes if axis.size is None)
        raise UnsupportedQuery(
            f"Grouping {name!r} by the undeclared key {key!r} is not supported",
            why="its engine counts groups that are declared in advance, and can't look which keys occur",
            instead=_declared(key, question),
        )
    for statistic in question.statistics:
        if able.additive_noise_only and isinstance(statistic, Distinct):
            column = quoted(statistic.column)
            raise UnsupportedQuery(
                f"The number of different values of {statistic.column!r} is not supported",
                why=f"the engine of {name!r} adds up parts, and the same value may be in several",
                instead=_declared(statistic.column, question)
                if able.declared_keys_only and getattr(declaration.columns.get(statistic.column), "size", 0) is None
                else f"SELECT {column}, COUNT(*) … GROUP BY {column}",
            )
        if able.parts_of_a_person > 1 and isinstance(statistic, Persons):
            raise UnsupportedQuery(
                f"The number of people in {name!r} is not supported",
                why=f"one person may be in up to {able.parts_of_a_person} parts, and would be counted in each",
                instead="COUNT(*), which counts rows",
            )
    if able.parts_of_a_person > 1 and isinstance(question.table, Relation):
        raise UnsupportedQuery(
            f"A query about what is computed from {name!r} is not supported",
            why=f"one person's rows may be in up to {able.parts_of_a_person} parts, and each part computes by itself",
            instead="single columns of the table, as in SUM and AVG",
        )


def _declared(column: str, question: Question) -> str:
    """The declaration that a key lacks; of a computed one, which nobody can declare, the kind of column that has one."""
    origins = question.table.origins(column) if isinstance(question.table, Relation) else frozenset()
    computed = origins and not any(each.endswith(f".{column}") for each in origins)
    return "a column that is a category" if computed else f'columns={{"{column}": cl.Category([…])}}'


def check_rows(name: str, declaration: Declared) -> None:
    """Refuse rows of a table whose engine hands none out."""
    if not declaration.abilities.rows:
        raise UnsupportedQuery(
            f"The rows of {name!r} are not available",
            why="its engine gives sums with noise alone, and hands no rows to a method",
            instead="a method that is made of counts and sums, such as GaussianNB, LinearRegression, KMeans or PCA"
            if not declaration.abilities.row_sums
            else 'LogisticRegression(method="gradient"), PoissonRegressor(), GaussianNB, LinearRegression, KMeans or PCA',
        )
