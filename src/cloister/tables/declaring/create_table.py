"""SQL's CREATE TABLE as a codebook: types, CHECK constraints, enumerations, what is said to be NULL, and the primary
key.

A constraint holds for every row that the database lets in, so it is public with the schema. Only plain conjunctions are read:
`CHECK (age BETWEEN 0 AND 120 AND sex IN ('F', 'M'))`. What a constraint says in another way is a note.
"""

import re
from dataclasses import replace
from functools import partial
from typing import Any

from cloister.tables.declaring.draft import Codebook, ColumnDraft, refusal
from cloister.tables.engines.guard import tried

_DIALECTS = ("postgres", "mysql", "duckdb", "tsql", "oracle")
_LONGEST = 50_000
PARTLY = "a CHECK says more than bounds and lists, and was not taken whole"
_EXAMPLE = "CREATE TABLE people (age INT CHECK (age BETWEEN 0 AND 120))"


def read_create_table(text: str, table: str = "") -> Codebook:
    """What the statement declares; `table` says which, where there are several.

    >>> book = read_create_table("CREATE TABLE p (id UUID PRIMARY KEY, sex TEXT CHECK (sex IN ('F', 'M')), born DATE)")
    >>> [(name, draft.kind, draft.values) for name, draft in book.columns.items()]
    [('id', 'identifier', ()), ('sex', 'category', ('F', 'M')), ('born', 'date', ())]
    """
    from sqlglot import exp

    created = _created(text)
    named = [each for each in created if each.this.this.name.lower() == table.lower()]
    if len(named or created) != 1:
        raise refusal("it creates several tables, and none of this name", _EXAMPLE)
    create = (named or created)[0]
    columns: dict[str, ColumnDraft] = {}
    for each in create.this.expressions:
        if isinstance(each, exp.ColumnDef):
            columns[each.name] = _column(each)
    for each in create.this.find_all(exp.PrimaryKey):
        if len(each.expressions) == 1:
            _say(columns, each.expressions[0].name, kind="identifier", low="", high="", values=())
    checks = [_parts(each.this) for each in create.find_all(exp.CheckColumnConstraint, exp.Check)]
    taken = [_constrained(part, columns) for parts in checks for part in parts]
    notes = () if all(taken) else (PARTLY,)
    return Codebook(columns=columns, notes=notes)


def _created(text: str) -> list[Any]:
    """The statements that create a table, in the first dialect in which there are any."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if len(text) > _LONGEST:
        raise refusal(f"it is longer than {_LONGEST:,} characters", "the CREATE TABLE alone")
    for dialect in _DIALECTS:
        read = partial(sqlglot.parse, text, read=dialect)
        found = [each for each in tried(read, SqlglotError, RecursionError) or () if isinstance(each, exp.Create)]
        if created := [each for each in found if isinstance(each.this, exp.Schema)]:
            return created
    raise refusal("it has no CREATE TABLE that can be read", _EXAMPLE)


def _column(column: Any) -> ColumnDraft:
    from sqlglot import exp

    kinds = [each.kind for each in column.constraints]
    declared = column.args.get("kind")
    kind, values = _kind(declared)
    if any(isinstance(each, exp.PrimaryKeyColumnConstraint) for each in kinds):
        kind, values = "identifier", ()
    said = next((each.this.name for each in kinds if isinstance(each, exp.CommentColumnConstraint)), "")
    step = ""
    if (
        kind == "real"
        and declared is not None
        and declared.this.name in ("DECIMAL", "NUMERIC")
        and len(declared.expressions) == 2
    ):
        places = declared.expressions[1].name
        step = f"0.{'0' * (int(places) - 1)}1" if places in "123456" else "1" if places == "0" else ""
    nullable = any(isinstance(each, exp.NotNullColumnConstraint) and bool(each.args.get("allow_null")) for each in kinds)
    return ColumnDraft(kind=kind, values=values, step=step, nullable=nullable, about=said)


def _kind(declared: Any) -> tuple[str, tuple[str, ...]]:
    from sqlglot import exp

    if declared is None:
        return "", ()
    sort, sizes = declared.this, tuple(each.name for each in declared.expressions)
    if sort == exp.DataType.Type.ENUM:
        return "category", sizes
    name = sort.name if hasattr(sort, "name") else ""
    if name in ("BOOLEAN", "BIT") or (name == "TINYINT" and sizes == ("1",)):  # as MySQL writes a truth value
        return "boolean", ()
    if sort in exp.DataType.INTEGER_TYPES or name == "YEAR" or name.endswith("SERIAL"):
        return "integer", ()
    if sort in exp.DataType.REAL_TYPES:
        return "real", ()
    if sort in exp.DataType.TEMPORAL_TYPES and not name.startswith("TIME_") and name not in ("TIME", "TIMETZ"):
        return "date", ()
    return ("identifier" if name in ("UUID", "UNIQUEIDENTIFIER") else "text" if re.search("CHAR|TEXT", name) else ""), ()


def _parts(condition: Any) -> list[Any]:
    from sqlglot import exp

    condition = condition.unnest()
    if not isinstance(condition, exp.And):
        return [condition]
    return [part for each in condition.flatten() for part in _parts(each)]  # one call deeper for brackets alone


def _constrained(part: Any, columns: dict[str, ColumnDraft]) -> bool:
    """Whether a part of a condition was taken: BETWEEN, IN, = ANY of a list, or one of the four comparisons."""
    from sqlglot import exp

    if not isinstance(part.this, exp.Column):
        return False
    name = part.this.name
    if isinstance(part, exp.Between):
        low, high = _literal(part.args["low"]), _literal(part.args["high"])
        return bool(low and high) and _say(columns, name, low=low, high=high)
    if isinstance(part, exp.In):
        values = tuple(_literal(each) for each in part.expressions)
        return bool(values) and all(values) and _say(columns, name, kind="category", values=values, low="", high="", step="")
    bound = _literal(part.expression) if isinstance(part, exp.Binary) else ""
    if isinstance(part, exp.GTE | exp.GT):
        return bool(bound) and _say(columns, name, low=bound)
    return isinstance(part, exp.LTE | exp.LT) and bool(bound) and _say(columns, name, high=bound)


def _literal(value: Any) -> str:
    from sqlglot import exp

    if isinstance(value, exp.Cast):
        value = value.this
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    return value.name if isinstance(value, exp.Literal) else ""


def _say(columns: dict[str, ColumnDraft], name: str, **parts: Any) -> bool:
    found = next((each for each in columns if each.lower() == name.lower()), None)
    if found is None:
        return False
    if "kind" not in parts and columns[found].kind not in ("integer", "real", "date"):
        return False
    columns[found] = replace(columns[found], **parts)
    return True
