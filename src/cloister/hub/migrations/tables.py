"""How the steps write tables: a column is a word, `name:kind` and signs.

A kind is a number (a text of at most so many letters), or one of `KINDS`. The signs: `*` part of the primary key, `?` may be
NULL, `!` each value once, `#` with an index; `>table` points to that table's id, `>table.column` to another column. Names of
constraints and indexes follow the convention of `hub/database.py`.
"""

import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

from cloister.hub.database import UTCDateTime

KINDS = {
    "big": sa.BigInteger,
    "bool": sa.Boolean,
    "bytes": sa.LargeBinary,
    "double": sa.Double,
    "float": sa.Float,
    "int": sa.Integer,
    "json": sa.JSON,
    "text": sa.String,
    "time": UTCDateTime,
}


def create_table(
    name: str, columns: str, *, unique: Sequence[str] = (), autoincrement: bool = True, with_rowid: bool = True
) -> None:
    """Create a table. `unique`: columns that are unique together; `autoincrement`: a database may number rows where the key is
    one integer; `with_rowid`: SQLite may number them in the order in which they come."""
    words, items = [_read(each) for each in columns.split()], list[Any]()
    for each, kind, signs, to in words:
        type_ = sa.String(int(kind)) if kind.isdigit() else KINDS[kind]()
        items.append(sa.Column(each, type_, nullable="?" in signs, autoincrement="auto" if autoincrement else False))
        items += [sa.ForeignKeyConstraint([each], [to if "." in to else f"{to}.id"])] if to else []
        items += [sa.UniqueConstraint(each)] if "!" in signs else []
    items.append(sa.PrimaryKeyConstraint(*[each for each, _, signs, _ in words if "*" in signs]))
    items += [sa.UniqueConstraint(*unique)] if unique else []
    op.create_table(name, *items, **({} if with_rowid else {"sqlite_with_rowid": False}))
    for each, _, signs, _ in words:
        if "#" in signs:
            op.create_index(op.f(f"ix_{name}_{each}"), name, [each])


def _read(word: str) -> tuple[str, str, str, str]:
    """A column's name, kind, signs, and what it points to.

    >>> _read("id:32*"), _read("person:32#>person")
    (('id', '32', '*', ''), ('person', '32', '#', 'person'))
    """
    found = re.fullmatch(r"(\w+):(\w+)([*?!#]*)(?:>([\w.]+))?", word)
    if found is None:
        raise ValueError(f"{word!r} is not a column. Write name:kind and signs")
    name, kind, signs, to = found.groups("")
    return name, kind, signs, to
