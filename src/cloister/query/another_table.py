"""A query about one table as the same query about another: its name in FROM, and no column that is called like it."""

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from cloister.errors import CloisterError, InvalidParameter
from cloister.query.words import statement, unheard
from cloister.tables.expression.names import quoted


def about_another(sql: str, name: str, other: str) -> str:
    """The same question of another table, which is still called as before within it; every other word stays.

    >>> about_another("SELECT age, COUNT(*) AS n FROM age GROUP BY age", "age", "ages_of_some")
    'SELECT age, COUNT(*) AS n FROM ages_of_some AS age GROUP BY age'
    """
    try:
        with unheard():
            query, _ = statement(sql, None)
            scopes = traverse_scope(query)
    except CloisterError:
        raise
    except Exception:  # sqlglot fails in many ways on text that is no SQL
        raise InvalidParameter("The query is invalid", why="it is not SQL", instead="SELECT COUNT(*) AS n FROM …") from None
    places = {}
    for found in (source for scope in scopes for source in scope.sources.values() if isinstance(source, exp.Table)):
        if found.name.casefold() == name.casefold():
            called = "" if found.alias else f" AS {quoted(name)}"
            places[found.this.meta["start"]] = (found.this.meta["end"] + 1, quoted(other) + called)
    if not places:
        raise InvalidParameter("The query is invalid", why=f"it does not ask about {name}", instead=f"FROM {name}")
    for begin, (end, text) in sorted(places.items(), reverse=True):
        sql = sql[:begin] + text + sql[end:]
    return sql
