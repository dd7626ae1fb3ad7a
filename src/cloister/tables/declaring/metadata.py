"""SmartNoise's metadata as a declaration: what an owner has already written of a table need not be written again.

The file is read by a small reader of our own that knows nested mappings of plain values and nothing else of YAML: no anchors, no
tags, no lists. What has no counterpart here is said in a note, so that nothing of the owner's words is lost silently:

- `private_id` names the unit, `max_ids` (or `max_contrib`) the cap of rows; with `row_privacy` one row is one person.
- `lower` and `upper` are the bounds of numbers and days. A number without them is left out: bounds are declared, never looked up.
- A text's `cardinality` says how many values there are and not which, so the column is `Text()`, whose values are private.
- `clamp_counts`, `censor_dims`, `sample_max_ids`, `use_dpsu`, `missing_value` are habits of SmartNoise's own mechanisms.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.tables.declaring.columns import Boolean, Date, Domain, Integer, Real, Text

_LONGEST = 1_000_000
_DEEPEST = 8
_TABLE_WORDS = ("max_ids", "max_contrib", "row_privacy", "rows", "row_count")
_IGNORED = ("clamp_counts", "clamp_columns", "censor_dims", "sample_max_ids", "sample_max_contrib", "use_dpsu")
_COLUMN_WORDS = (
    "type",
    "lower",
    "upper",
    "nullable",
    "private_id",
    "cardinality",
    "missing_value",
    "sensitivity",
    "name",
    "selectable",
)
_LINE = "age: {type: int, lower: 0, upper: 120}, each property on a line of its own"
_KEY = re.compile(r"""^( *)("(?:[^"\\]*)"|'(?:[^'\\]*)'|[^\s:#"'][^:#"']*?) *:(?: +(.*))?$""")


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The arguments of `PrivateTable` that a metadata file gives, and notes about what it says beside them.

    >>> text = '''
    ... "":
    ...   PUMS:
    ...     PUMS:
    ...       rows: 1000
    ...       max_ids: 2
    ...       pid: {}
    ... '''
    >>> read_metadata(text.replace("{}", "") + '''        type: int
    ...         private_id: True
    ...       age:
    ...         type: int
    ...         lower: 0
    ...         upper: 100
    ... ''').arguments()["max_rows"]
    2
    """

    columns: Mapping[str, Domain]
    unit: str | None = None
    max_rows: int | None = None
    size: int | None = None
    name: str = ""
    notes: tuple[str, ...] = field(default=())

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for `PrivateTable`."""
        return {"columns": dict(self.columns), "unit": self.unit, "max_rows": self.max_rows, "size": self.size}


def read_metadata(metadata: str | Path | Mapping[str, Any], table: str | None = None) -> Metadata:
    """What a metadata file, its text, or the mapping that it holds declares of one table.

    `table` is needed where the file speaks of several: "schema.table", or the table's name alone.

    >>> people = {"": {"s": {"people": {"row_privacy": True, "sex": {"type": "string"}, "pay": {"type": "float"}}}}}
    >>> found = read_metadata(people)
    >>> found.columns, found.unit
    ({'sex': Text(nullable=False)}, None)
    >>> found.notes
    ("the column 'pay' is left out: its bounds are not declared",)
    """
    tree = metadata if isinstance(metadata, Mapping) else _mapping(_text(metadata))
    name, entries = _table(tree, table)
    return _declared(name, entries)


def _text(metadata: str | Path) -> str:
    if isinstance(metadata, Path) or "\n" not in metadata:
        try:
            with Path(metadata).open(encoding="utf-8") as file:
                metadata = file.read(_LONGEST + 1)
        except (OSError, ValueError):
            raise _refused("The metadata is invalid", "no file of that name can be read", 'metadata="people.yaml"') from None
    if len(metadata) > _LONGEST:
        raise _refused("The metadata is invalid", f"it is longer than {_LONGEST} characters", "the metadata of one table")
    return metadata


def _mapping(text: str) -> dict[str, Any]:
    """Nested mappings of plain values, one entry a line."""
    root: dict[str, Any] = {}
    open_: list[tuple[int, dict[str, Any]]] = [(-1, root)]
    for number, line in enumerate(text.splitlines(), start=1):
        plain = _uncommented(line).rstrip()
        if not plain.strip() or plain in ("---", "..."):
            continue
        match = _KEY.match(plain)
        if match is None or "\t" in line:
            raise _refused(f"Line {number} of the metadata is invalid", "it is not `name: value`", _LINE)
        indent, key, value = len(match[1]), str(_plain(match[2], number)), (match[3] or "").strip()
        while open_[-1][0] >= indent:
            open_.pop()
        if len(open_) > _DEEPEST or key in open_[-1][1]:
            raise _refused(f"Line {number} of the metadata is invalid", "it is nested too deep, or its name stands twice", _LINE)
        if value:
            open_[-1][1][key] = _plain(value, number)
            continue
        inner: dict[str, Any] = {}
        open_[-1][1][key] = inner
        open_.append((indent, inner))
    return root


def _uncommented(line: str) -> str:
    """The line up to a # that stands in no quotes, at the start or after a space."""
    quote = ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#" and (place == 0 or line[place - 1] in " \t"):
            return line[:place]
    return line


def _plain(value: str, number: int) -> Any:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'" and "\\" not in value:
        return value[1:-1]
    if value[0] in "&*!|>[{@`%\"'":
        raise _refused(f"Line {number} of the metadata is invalid", "its value is neither a plain word nor a number", _LINE)
    words = {"true": True, "yes": True, "false": False, "no": False, "null": None, "~": None}
    if value.lower() in words:
        return words[value.lower()]
    if re.fullmatch(r"[-+]?[0-9]{1,18}", value):
        return int(value)
    if re.fullmatch(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]{1,3})?", value) and len(value) < 40:
        return float(value)
    return value


def _table(tree: Mapping[str, Any], wanted: str | None) -> tuple[str, Mapping[str, Any]]:
    """The table's entries: under a collection and a schema, under a schema, or at the top."""
    found: dict[str, Mapping[str, Any]] = {}

    def walk(part: Mapping[str, Any], path: tuple[str, ...]) -> None:
        if any(isinstance(each, Mapping) and "type" in each for each in part.values()):
            found[".".join(each for each in path if each)] = part
        elif len(path) < _DEEPEST:
            for key, each in part.items():
                if isinstance(each, Mapping):
                    walk(each, (*path, str(key)))

    walk(tree, ())
    matches = [name for name in found if wanted is None or name == wanted or name.endswith(f".{wanted}")]
    if len(matches) != 1:
        raise _refused(
            "The metadata is invalid" if wanted is None else f"The table {wanted!r} is invalid",
            f"the metadata declares {', '.join(map(repr, found)) or 'no table'}",
            f'table="{next(iter(found), "people")}"',
        )
    return matches[0], found[matches[0]]


def _declared(name: str, entries: Mapping[str, Any]) -> Metadata:
    columns: dict[str, Domain] = {}
    units: list[str] = []
    notes = [f"{word} is not used: it belongs to SmartNoise's mechanisms" for word in _IGNORED if entries.get(word) is not None]
    for column, properties in entries.items():
        if column in (*_TABLE_WORDS, *_IGNORED):
            continue
        if not isinstance(properties, Mapping) or "type" not in properties:
            raise _refused(f"{column!r} is invalid", "it is neither a property of a table nor a column with a type", _LINE)
        strange = [word for word in properties if word not in _COLUMN_WORDS]
        if strange:
            raise _refused(f"{strange[0]!r} of the column {column!r} is invalid", f"known are {', '.join(_COLUMN_WORDS)}", _LINE)
        if properties.get("private_id") is True:
            units.append(column)
            continue
        domain = _domain(column, properties, notes)
        if domain is not None:
            columns[column] = domain
    rows = entries.get("rows", entries.get("row_count"))
    size = rows if isinstance(rows, int) and not isinstance(rows, bool) and rows > 0 else None
    unit, cap = _unit(entries, units, notes)
    if not columns:
        raise _refused(f"The metadata of {name!r} is invalid", "it declares no column with bounds", _LINE)
    return Metadata(columns=columns, unit=unit, max_rows=cap, size=size, name=name, notes=tuple(notes))


def _unit(entries: Mapping[str, Any], units: list[str], notes: list[str]) -> tuple[str | None, int | None]:
    by_row = entries.get("row_privacy") is True
    if by_row and units:
        notes.append(f"row_privacy makes each row a person: {', '.join(map(repr, units))} is not the unit")
    if by_row:
        return None, None
    if len(units) != 1:
        raise _refused(
            "The metadata is invalid",
            "no column, or more than one, is marked private_id, and row_privacy is not set",
            "private_id: True at the column that says whose row it is",
        )
    cap = entries.get("max_ids", entries.get("max_contrib"))
    if cap is None:
        notes.append("max_ids is not given, and SmartNoise takes it for 1: one row of a person counts")
        cap = 1
    if isinstance(cap, bool) or not isinstance(cap, int) or cap < 1:
        raise _refused("max_ids is invalid", "it must be a whole number from 1", "max_ids: 3")
    return units[0], cap


def _domain(column: str, properties: Mapping[str, Any], notes: list[str]) -> Domain | None:
    kind, nullable = str(properties["type"]).lower(), properties.get("nullable") is True
    if properties.get("missing_value") is not None:
        notes.append(f"missing_value of {column!r} is not used: a missing value is NULL")
    if properties.get("sensitivity") is not None:
        notes.append(f"sensitivity of {column!r} is not used: it follows from the bounds")
    if kind in ("string", "text"):
        return Text(nullable=nullable)
    if kind in ("boolean", "bool"):
        return Boolean(nullable=nullable)
    low, high = properties.get("lower"), properties.get("upper")
    kinds: dict[str, Callable[[], Domain]] = {
        "int": lambda: Integer(low, high, nullable=nullable),  # type: ignore[arg-type]
        "float": lambda: Real(low, high, nullable=nullable),  # type: ignore[arg-type]
        "datetime": lambda: Date(str(low)[:10], str(high)[:10], nullable=nullable),
        "date": lambda: Date(str(low)[:10], str(high)[:10], nullable=nullable),
    }
    if kind not in kinds:
        raise _refused(f"The type {kind!r} of the column {column!r} is invalid", "it is not one of SmartNoise's", _LINE)
    if low is None or high is None:
        notes.append(f"the column {column!r} is left out: its bounds are not declared")
        return None
    try:
        return kinds[kind]()
    except CloisterError as error:
        raise _refused(f"The column {column!r} is invalid", error.why, _LINE) from None


def _refused(what: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(what, why=why, instead=instead)
