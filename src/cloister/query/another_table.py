"""A query about one table as the same query about another: its name in FROM, and no column that is called like it."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from cloister.errors import InvalidParameter


def about_another(sql: str, table: str, other: str) -> str:
    """The same question of another table, which is still called as before within it.

    >>> about_another("SELECT age, COUNT(*) AS n FROM age GROUP BY age", "age", "ages_of_some")
    'SELECT age, COUNT(*) AS n FROM ages_of_some AS age GROUP BY age'
    """
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.errors.SqlglotError:
        raise InvalidParameter("The query is invalid", why="it is not SQL", instead="SELECT COUNT(*) AS n FROM …") from None
    for found in list(tree.find_all(exp.Table)):
        if found.name.casefold() == table.casefold():
            found.set("this", exp.to_identifier(other))
            if not found.alias:
                found.set("alias", exp.TableAlias(this=exp.to_identifier(table)))
    return str(tree.sql(dialect="duckdb"))
