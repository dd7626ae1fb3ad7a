"""What a question in SQL touches: what its questions read, and what its text names besides.

A subquery about public tables is answered while the text is read, and is in the question as its answer; what it read was
noted then. Another subquery may select a column by name that nothing above it reads. It is not read; but the question stands only
where the column may be named, so it counts. Whether a text names a column is found by reading the text without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cloister.errors import CloisterError
from cloister.query.parse import Parsed, parse
from cloister.session import Question
from cloister.session.questions.touched import Touched
from cloister.session.state.table_registry import with_columns
from cloister.tables import PrivateTable, PublicTable

Tables = Mapping[str, PrivateTable | PublicTable]


def touched_in(parsed: Parsed, sql: str, tables: Tables, dialect: str | None, touched: Callable[[Question], Touched]) -> Touched:
    """What a text touches, as it was read, given what a question does."""
    found = Touched(parsed.publics)
    for question in parsed.questions:
        found |= touched(question)
    written = parsed.written
    for name in found:
        table = tables[name]
        if isinstance(table, PrivateTable):
            idle = [column for column in table.columns if column not in found[name] and column.lower() in written]
            found |= Touched({name: [column for column in idle if _named(sql, tables, dialect, name, table, column)]})
    return found


def _named(sql: str, tables: Tables, dialect: str | None, name: str, table: PrivateTable, column: str) -> bool:
    """Whether the text cannot be read when the table lacks the column."""
    rest = [each for each in table.columns if each != column]
    if not rest:
        return True
    try:
        parse(sql, {**tables, name: with_columns(table, rest)}, dialect)
    except CloisterError:
        return True
    return False
