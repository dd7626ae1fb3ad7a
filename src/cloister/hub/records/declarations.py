"""What is declared of a data set, as JSON in the database and as the `PrivateTable` that questions are asked about.

{"columns": {"age": {"kind": "integer", "low": 17, "high": 90}}, "unit": "patient", "max_rows": 5, "size": 40000, "through": null,
 "during": null, "reasons": {"age": "the study takes adults up to 90"}}

A bound that is copied from the data says something about the rows. So each has its public reason beside it.
"""

from collections.abc import Mapping
from typing import Any

from cloister.errors import InvalidDeclaration, MissingBound
from cloister.hub.records.catalogue import DataSet
from cloister.printable import LONGEST_VALUE, is_text
from cloister.tables import Domain, PrivateTable, PublicTable
from cloister.tables.declaring.plain import domain_of
from cloister.tables.declaring.table import check_printable
from cloister.tables.sourcing.sources import Source

_PARTS = ("columns", "unit", "max_rows", "size", "through", "during", "reasons")
_BOUNDED = ("integer", "real", "date", "moment", "category", "place")


class _Columns(Source):
    """Names and kinds of columns, and no rows: what a declaration is checked against before anything is stored."""

    def __init__(self, schema: Mapping[str, str]) -> None:
        self.schema = dict(schema)

    def describe(self) -> str:
        """`columns`."""
        return "columns"


def domains_of(name: str, declaration: Mapping[str, Any]) -> dict[str, Domain]:
    """The columns of a declaration.

    >>> domains_of("people", {"columns": {"smoker": {"kind": "boolean"}}})
    {'smoker': Boolean(nullable=False)}
    """
    columns = declaration.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidDeclaration(
            f"The declaration of {name!r} is invalid", why="it declares no column", instead="one column at least, with its bounds"
        )
    return {column: domain_of(column, declared, table=name) for column, declared in columns.items()}


def check_declaration(name: str, declaration: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration in its one form; what is unknown or contradicts itself is refused before any row is looked at.

    >>> check_declaration("people", {"columns": {"smoker": {"kind": "boolean"}}})["unit"] is None
    True
    """
    unknown = [part for part in declaration if part not in _PARTS]
    if unknown:
        raise InvalidDeclaration(
            f"The declaration of {name!r} is invalid", why=f"{unknown[0]!r} means nothing here", instead=", ".join(_PARTS)
        )
    wrong = next((part for part in ("unit", "through") if not isinstance(declaration.get(part), str | None)), None)
    if wrong is not None:
        raise InvalidDeclaration(f"The declaration of {name!r} is invalid", why="it is not a name", instead=f'{wrong}="patient"')
    domains = domains_of(name, declaration)
    check_printable(domains, unit=declaration.get("unit"), through=declaration.get("through"))
    shown = {column: domain.describe() for column, domain in domains.items()}
    reasons = declaration.get("reasons") or {}
    if not isinstance(reasons, Mapping) or not all(isinstance(text, str) for text in reasons.values()):
        raise InvalidDeclaration(
            f"The declaration of {name!r} is invalid",
            why="its reasons are not texts",
            instead='{"age": "the study takes adults"}',
        )
    kept = {column: text for column, text in reasons.items() if column in shown and text}
    for column, text in kept.items():
        if not is_text(text, LONGEST_VALUE, lines=True):
            raise InvalidDeclaration(
                f"The reason for {column!r} is invalid",
                why=f"it is not a text of at most {LONGEST_VALUE} printable characters",
                instead="the study takes adults up to 90",
            )
    return {"columns": shown, **{part: declaration.get(part) for part in _PARTS[1:-1]}, "reasons": kept}


def check_against(name: str, declaration: Mapping[str, Any], schema: Mapping[str, str]) -> None:
    """Whether columns of these names and kinds can be declared so; no row is looked at.

    >>> check_against("people", {"columns": {"smoker": {"kind": "boolean"}}}, {"smoker": "text"})
    """
    PrivateTable(
        _Columns(schema),
        columns=domains_of(name, declaration),
        unit=declaration.get("unit"),
        max_rows=declaration.get("max_rows"),
        size=declaration.get("size"),
        through=declaration.get("through"),
        during=declaration.get("during"),
        row_is_person=True,
    )


def check_reasons(declaration: Mapping[str, Any]) -> None:
    """Every bound and every list of categories has a public reason.

    >>> check_reasons({"columns": {"age": {"kind": "integer", "low": 17, "high": 90}}})
    Traceback (most recent call last):
    cloister.errors.MissingBound: The bounds of 'age' are invalid: their public reason is missing, and a bound that is
    copied from the data is a leak.
      Instead: the public reason, such as: the study takes adults up to 90
    """
    reasons = declaration.get("reasons") or {}
    for column, declared in declaration["columns"].items():
        if declared.get("kind") in _BOUNDED and not str(reasons.get(column, "")).strip():
            raise no_reason(column)


def no_reason(column: str) -> MissingBound:
    """The refusal of bounds without a reason."""
    return MissingBound(
        f"The bounds of {column!r} are invalid",
        why="their public reason is missing, and a bound that is copied from the data is a leak",
        instead="the public reason, such as: the study takes adults up to 90",
    )


def declaration_of(table: PrivateTable) -> dict[str, Any]:
    """What a table declares, as the database keeps it."""
    return {
        "columns": {name: domain.describe() for name, domain in table.columns.items()},
        "unit": table.unit,
        "max_rows": table.max_rows,
        "size": table.size,
        "through": table.through,
        "during": None if table.during is None else table.during.plain(),
    }


def table_of(row: DataSet, source: Any, version: str) -> PrivateTable | PublicTable:
    """The table of a data set over a source of rows. Everything wrong with the declaration is found here."""
    if row.public:
        return PublicTable(source)
    declared = row.declaration
    return PrivateTable.declared(
        source,
        domains_of(row.name, declared),
        unit=declared.get("unit"),
        max_rows=declared.get("max_rows"),
        population=row.population,
        size=declared.get("size"),
        version=version,
        through=declared.get("through"),
        during=declared.get("during"),
    )
