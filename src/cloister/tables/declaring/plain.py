"""Declarations as plain data: what a file, a form or a database keeps of a column, and the declaration that it stands for.

`domain.describe()` writes the form that `domain_of` reads: `{"kind": "integer", "low": 17, "high": 90}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cloister.errors import InvalidDeclaration
from cloister.tables.declaring.columns import Boolean, Category, Date, Domain, Integer, Real, Text
from cloister.tables.declaring.identifier import Identifier

KINDS: Mapping[str, tuple[Callable[..., Domain], tuple[str, ...]]] = {
    "integer": (Integer, ("low", "high")),
    "real": (Real, ("low", "high", "step")),
    "category": (Category, ("values",)),
    "date": (Date, ("low", "high")),
    "boolean": (Boolean, ()),
    "text": (Text, ()),
    "identifier": (Identifier, ()),
}
"""The kinds of columns, each with what has to be said of it (a step may be left out)."""
_KEYWORDS = ("step", "nullable")


def domain_of(column: str, declared: Any, *, table: str) -> Domain:
    """The declaration that plain data stand for; what is wrong with them is refused with the table's name.

    >>> domain_of("age", {"kind": "integer", "low": 17, "high": 90}, table="people")
    Integer(low=17, high=90, nullable=False)
    """
    kind = declared.get("kind") if isinstance(declared, Mapping) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise _wrong(
            table,
            f"the column {column!r} has no kind among {', '.join(KINDS)}",
            f'{column} = {{ kind = "integer", low = 0, high = 99 }}',
        )
    make, names = KINDS[kind]
    known = {"kind", "nullable", *names}
    unknown = [option for option in declared if option not in known]
    if unknown:
        raise _wrong(table, f"{unknown[0]!r} means nothing for a column of kind {kind!r}", f"{', '.join(sorted(known))}")
    missing = [option for option in names if option not in declared and option != "step"]
    if missing:
        raise _wrong(table, f"the column {column!r} lacks {missing[0]!r}", f"{missing[0]} = …")
    for option, value in declared.items():
        if isinstance(value, dict) or (isinstance(value, list) and option != "values"):
            raise _wrong(table, f"{option} of the column {column!r} is not one value", f"{option} = …")
    positional = [declared[option] for option in names if option != "step"]
    keywords = {option: declared[option] for option in _KEYWORDS if option in declared}
    return make(*positional, **keywords)


def _wrong(table: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"The declaration of table {table!r} is invalid", why=why, instead=instead)
