"""Tables declared in a TOML file, for the command line.

[tables.people]
source = "people.csv"
unit = "person"
max_rows = 3

[tables.people.columns]
age = { kind = "integer", low = 17, high = 90 }
sex = { kind = "category", values = ["Female", "Male"] }
home = { kind = "place", regions = "districts.geojson", longitude = "lon", latitude = "lat" }    # or box = [4.2, 51.9, 4.5, 52.1]

[tables.people.reasons]               # where bounds come from, for readers
age = "the register takes adults"

[budgets]
people = { epsilon = "1" }            # or { epsilon = "1", delta = "1e-6" }, or { rho = "0.01" }
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloister.errors import CloisterError, InvalidDeclaration
from cloister.parsers import toml_in
from cloister.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from cloister.tables import Domain, PrivateTable, PublicTable
from cloister.tables.declaring.plain import domain_of
from cloister.tables.declaring.table import check_events

_OPTIONS: dict[str, tuple[type, str]] = {
    "source": (str, "a text"),
    "columns": (dict, "a table"),
    "reasons": (dict, "a table"),
    "unit": (str, "a text"),
    "max_rows": (int, "a whole number"),
    "population": (str, "a text"),
    "size": (int, "a whole number"),
    "version": (str, "a text"),
    "during": (list, "a column with a first and a last day"),
    "public": (bool, "true or false"),
    "row_is_person": (bool, "true or false"),
}
_PASSED = ("unit", "max_rows", "population", "size", "version", "during", "row_is_person")
_NUMBER = (str, int, float)


def load(path: Path) -> tuple[dict[str, PrivateTable | PublicTable], dict[str, Guarantee]]:
    """The tables and budgets of a declarations file; paths in it are relative to it."""
    try:
        document = toml_in(path)
    except OSError:
        raise _unreadable(path, "no such file can be read") from None
    except ValueError as error:  # no UTF-8, no TOML, a number of five thousand digits
        raise _unreadable(path, str(error)) from None
    tables = document.get("tables")
    if not isinstance(tables, Mapping) or not tables:
        raise _unreadable(path, "it declares no table")
    budgets = document.get("budgets", {})
    if not isinstance(budgets, Mapping):
        raise _unreadable(path, "its budgets are not a table", '[budgets]\npeople = { epsilon = "1" }')
    guarantees = {name: budget_of(name, budget) for name, budget in budgets.items()}
    return {name: _table(name, table, path.parent) for name, table in tables.items()}, guarantees


def _unreadable(path: Path, why: str, instead: str = '[tables.people]\nsource = "people.csv"') -> InvalidDeclaration:
    return InvalidDeclaration(f"The file {path.name} is invalid", why=why, instead=instead)


def _table(name: str, declared: Any, folder: Path) -> PrivateTable | PublicTable:
    if not isinstance(declared, Mapping):
        raise _wrong(name, "it is not a table", f"[tables.{name}]")
    unknown = [option for option in declared if option not in _OPTIONS]
    if unknown:
        raise _wrong(name, f"{unknown[0]!r} is not one of {', '.join(_OPTIONS)}", 'source = "people.csv"')
    if "source" not in declared:
        raise _wrong(name, "it names no source", 'source = "people.csv"')
    for option, value in declared.items():
        kind, words = _OPTIONS[option]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise _wrong(name, f"{option} is not {words}", f"{option} = …")
    source = declared["source"]
    if "://" not in source:
        source = str(folder / source)
        if not Path(source).is_file():
            raise _wrong(name, f"its source {source!r} is not there", 'source = "…", a path from the folder of this file')
    public, kinds = declared.get("public"), declared.get("columns", {})
    columns = {} if public else {column: domain_of(column, kind, table=name, folder=folder) for column, kind in kinds.items()}
    options = {option: declared[option] for option in _PASSED if option in declared}
    if not public and not options.get("row_is_person"):
        asked_of_events(columns, options.get("unit"))
    try:
        return PublicTable(source) if public else PrivateTable(source, columns=columns, **options)
    except CloisterError as error:  # of several tables it is said of which
        raise type(error)(f"The table {name!r}: {error.what}", why=error.why, instead=error.instead) from None


def asked_of_events(columns: Mapping[str, Domain], unit: str | None) -> None:
    """A table of events that is declared as one row per person is asked about by name, in the words of a declarations file."""
    try:
        check_events(columns, unit)
    except InvalidDeclaration as error:
        instead = 'unit = "person" and max_rows = 10; or row_is_person = true where each row is all of one person'
        raise InvalidDeclaration("The unit is invalid", why=error.why, instead=instead) from None


def budget_of(population: str, declared: Any) -> Guarantee:
    """The budget that plain data stand for."""
    numbers = isinstance(declared, Mapping) and all(
        isinstance(value, _NUMBER) and not isinstance(value, bool) for value in declared.values()
    )
    if numbers and "rho" in declared:
        return ZCDP(declared["rho"], declared.get("delta", 0))
    if numbers and "epsilon" in declared:
        return ApproxDP(declared["epsilon"], declared["delta"]) if "delta" in declared else PureDP(declared["epsilon"])
    raise InvalidDeclaration(
        f"The budget of {population!r} is invalid",
        why="it names neither epsilon nor rho, or not as numbers",
        instead=f'{population} = {{ epsilon = "1" }}',
    )


def _wrong(table: str, why: str, instead: str) -> InvalidDeclaration:
    return InvalidDeclaration(f"The declaration of table {table!r} is invalid", why=why, instead=instead)
