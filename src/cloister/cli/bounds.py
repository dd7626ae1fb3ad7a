"""What commands are told about rows: a file of declarations, SmartNoise metadata, or bounds on the line; or a sample table.

On the line: `age=17:90,pay=0:1000.0,sex=Female|Male,smoker=yes/no`. A range of whole numbers is an integer, another range a real,
values between bars a category, and `yes/no` a truth value. In a file: TOML or JSON with a table `columns`, as of `cloister query
--tables`, or metadata as YAML or JSON.
"""

import json
import re
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from cloister.cli.declared import asked_of_events
from cloister.errors import CloisterError, InvalidDeclaration, InvalidParameter
from cloister.parsers import toml_in
from cloister.tables import Boolean, Category, Domain, Integer, PrivateTable, Real
from cloister.tables.declaring.metadata import read_metadata
from cloister.tables.declaring.plain import domain_of
from cloister.tables.engines.guard import tried
from cloister.tables.sourcing.source_factory import recognise

BOUNDS = "What the columns may hold: age=17:90,sex=F|M or a file (TOML, JSON, YAML). A sample table needs none."
"""The help of `--bounds`."""
_ANOTHER = re.compile(r"[，；;\s]\w+\s*=")
"""A column that begins within a value, behind another comma or a blank: it would be lost."""
_RANGE = re.compile(r"^(-?[0-9.]+(?:[eE][-+]?[0-9]+)?):(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)$")
_LINE = "--bounds age=17:90,sex=Female|Male"
_OPTIONS = ("columns", "reasons", "unit", "max_rows", "population", "size", "version", "source", "public", "row_is_person")
_TAKEN = ("unit", "max_rows", "population", "size")


def declared_table(data: str, bounds: str | None) -> tuple[str, PrivateTable]:
    """The table, with a name: a file with its declarations, or a sample table, which brings its own."""
    if bounds is None:
        return _sample(data)
    path = Path(data)
    if not path.is_file():
        raise InvalidParameter(
            f"The file {data!r} is invalid", why="no such file can be read", instead="cloister learn people.csv …"
        )
    name, source = re.sub(r"\W", "_", path.stem) or "rows", recognise(str(path))
    given, alike = arguments_of(bounds, name), {column.strip(): column for column in source.schema}
    columns = {name if name in source.schema else alike.get(name, name): kind for name, kind in given["columns"].items()}
    return name, PrivateTable(source, **given | {"columns": columns})


def columns_of(data: Path) -> Collection[str]:
    """The names of a file's columns; none of a sample, and of what can't be read."""
    return tried(lambda: recognise(str(data)).schema, CloisterError) or ()


def domains_of_line(line: str) -> dict[str, Domain]:
    """The declarations of a line.

    >>> domains_of_line("age=17:90,sex=F|M,smoker=yes/no")
    {'age': Integer(low=17, high=90, nullable=False), 'sex': Category(['F', 'M']), 'smoker': Boolean(nullable=False)}
    """
    domains: dict[str, Domain] = {}
    for part in line.split(","):
        column, equals, value = (each.strip() for each in part.partition("="))
        found = _RANGE.match(value)
        if not equals or not column or column in domains:
            raise _refused(f"{part.strip()!r} is not a column, =, and what it may hold, or it stands twice")
        if found is not None:
            whole = all(re.fullmatch(r"-?[0-9]+", side) for side in found.groups())
            domains[column] = Integer(int(found[1]), int(found[2])) if whole else Real(found[1], found[2])
        elif value == "yes/no":
            domains[column] = Boolean()
        elif "|" in value and not _ANOTHER.search(value):
            options = [option.strip() for option in value.split("|")]
            numbers = all(re.fullmatch(r"-?[0-9]{1,15}", option) for option in options)
            domains[column] = Category([int(option) for option in options] if numbers else options)
        else:
            raise _refused(f"{value!r} is neither low:high, nor values between bars, nor yes/no")
    return domains


def _sample(data: str) -> tuple[str, PrivateTable]:
    from cloister.samples import tables

    samples = {name: table for name, table in tables().items() if isinstance(table, PrivateTable)}
    if data not in samples:
        why, instead = f"their bounds are not declared, and they are no sample table ({', '.join(samples)})", _LINE
        raise InvalidParameter(f"The rows {data!r} are invalid", why=why, instead=instead)
    return data, samples[data]


def arguments_of(bounds: str, name: str) -> dict[str, Any]:
    """What is declared on the line or in a file, as arguments of `PrivateTable`."""
    path = Path(bounds)
    if path.suffix not in (".toml", ".json", ".yaml", ".yml"):
        return {"columns": domains_of_line(bounds)}
    if not path.is_file():
        raise _refused(f"the file {bounds!r} cannot be read")
    if path.suffix in (".yaml", ".yml"):
        return _of_metadata(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig")) if path.suffix == ".json" else toml_in(path)
    except (OSError, ValueError, RecursionError):
        raise _refused(f"{path.name} holds no {path.suffix[1:].upper()}") from None
    declared = _declared(document, name)
    if declared is None:
        return _of_metadata(document)
    columns = {column: domain_of(column, kind, table=name, folder=path.parent) for column, kind in declared["columns"].items()}
    if declared.get("row_is_person") is not True:
        asked_of_events(columns, declared.get("unit"))
    return {"columns": columns, "row_is_person": True} | {key: declared[key] for key in _TAKEN if key in declared}


def _declared(document: Any, name: str) -> Mapping[str, Any] | None:
    """The table's entry: at the top, or under `tables` by the name of the file with the rows, or the only one there."""
    if not isinstance(document, Mapping):
        raise _refused("the file holds no table")
    tables = document.get("tables")
    if isinstance(tables, Mapping) and tables:
        found = tables.get(name, next(iter(tables.values())) if len(tables) == 1 else None)
        if found is None:
            raise _refused(f"the file declares {', '.join(tables)}, and the rows are called {name!r}")
        document = found
    if not isinstance(document, Mapping) or not isinstance(document.get("columns"), Mapping):
        return None
    strange = [key for key in document if key not in (*_OPTIONS, "budgets")]
    if strange:
        raise _refused(f"{strange[0]!r} is not one of {', '.join(_OPTIONS)}")
    return document


def _of_metadata(metadata: Path | Mapping[str, Any]) -> dict[str, Any]:
    found = read_metadata(metadata)
    for note in found.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    return found.arguments()


def _refused(why: str) -> InvalidDeclaration:
    return InvalidDeclaration("--bounds is invalid", why=why, instead=_LINE)
