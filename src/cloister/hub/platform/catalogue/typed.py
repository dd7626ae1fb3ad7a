"""What is typed into the form of a new data set, and what it means; each thing that is wrong stands beside its field.

Texts are kept as they were typed until the data set is registered. Columns are known by their place in the file, so no name of a
field is anybody's choice.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Request

from cloister.errors import CloisterError, InvalidDeclaration, InvalidParameter, MissingBound
from cloister.hub.decisions.policy import Policy
from cloister.hub.guidance import budget_of
from cloister.hub.platform.catalogue.registering import Wanted
from cloister.hub.platform.catalogue.windows import check_cut, check_window, in_window
from cloister.hub.records.declarations import no_reason
from cloister.hub.storage import HeaderColumn
from cloister.hub.web.forms import Form, counted, form_of, listed
from cloister.printable import json_of
from cloister.privacy import Guarantee
from cloister.tables import Identifier
from cloister.tables.declaring.draft import BOUNDED, as_held
from cloister.tables.declaring.plain import domain_of
from cloister.tables.declaring.regions import geojson_of, regions_kept
from cloister.tables.declaring.table import check_events
from cloister.tables.expression.names import quotation

FIELDS = (
    "name", "title", "about", "public", "rows_are", "unit_column", "max_rows", "unit", "size", "people", "population",
    "population_new", "measure", "epsilon", "delta", "rho", "purposes", "consent", "sensitivity", "retention", "labels",
    "combinable_with", "listed", "every", "window", "date_column", "understood", "provider", "row_is_person",
    *(f"p{place}_{part}" for place in range(2) for part in
      ("name", "longitude", "latitude", "within", "property", "nullable", "reason")),
)  # fmt: skip
COLUMN_FIELDS = ("kind", "low", "high", "step", "values", "nullable", "reason", "sensitivity", "labels", "purposes")
KINDS = ("", "integer", "real", "category", "date", "moment", "boolean", "text", "identifier")
MOST_PLACES = 2
"""A form declares so many places: where a journey begins, and where it ends."""
_MOST_FIELDS = 1000 * len(COLUMN_FIELDS) + 100
_LONGEST, _LONGEST_LIST = 5_000, 200_000
_CATEGORY = re.compile(r'^[^\S\n]*"((?:[^"]|"")*)"[^\S\n]*$|^(.*)$', re.MULTILINE)


async def wide_form(request: Request) -> Form:
    """A form with a line for each of many columns."""
    await request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=2**18)
    return await form_of(request)


WideFormDep = Annotated[Form, Depends(wide_form)]


def beginning(columns: Sequence[HeaderColumn], file: str) -> dict[str, str]:
    """What the form holds at first: a name from that of the file or of the database's table, kinds from the columns'; never a
    bound.

    >>> beginning([HeaderColumn(name="age", kind="integer", suggested="Integer")], "People 2026.csv")["name"]
    'people_2026'
    >>> beginning([], "postgresql://db.example.org:5432/clinic::public.visits")["name"]
    'visits'
    """
    _, is_table, table = file.rpartition("::")
    base = table.rpartition(".")[2] if is_table else file.rpartition("/")[2].partition(".")[0]
    stem = re.sub("[^a-z0-9]+", "_", base.lower()).strip("_")
    name = stem[:63] if stem[:1].isalpha() else f"table_{stem}"[:63].rstrip("_")
    found = {"name": name, "title": "", "measure": "epsilon", "epsilon": "1"}
    kinds = {f"c{place}_kind": each.suggested.lower() for place, each in enumerate(columns)}
    return found | {field: "" if kind == "text" else kind for field, kind in kinds.items()}  # nobody's free text by default


def keep(form: Mapping[str, str], columns: int) -> dict[str, str]:
    """The fields of this form among what was sent, each of bounded length.

    >>> keep({"name": "people", "owner": "eve", "c0_kind": "text", "c9_kind": "text"}, 1)
    {'name': 'people', 'c0_kind': 'text'}
    """
    names = [*FIELDS, *(f"c{place}_{field}" for place in range(columns) for field in COLUMN_FIELDS)]
    found = {}
    for name in names:
        text = form.get(name, "")
        if len(text) > (_LONGEST_LIST if name.endswith(("_values", "_within")) else _LONGEST):
            raise InvalidParameter("The form is invalid", why=f"the field {name!r} is too long", instead="a shorter text")
        if text.strip():
            found[name] = text.replace("\r\n", "\n").strip()
    return found


def wanted_of(
    typed: Mapping[str, str], columns: Sequence[HeaderColumn], ids: Callable[[list[str]], list[str]]
) -> tuple[Wanted | None, dict[str, CloisterError]]:
    """What the owner wants; None where something is wrong, and then what is wrong by field. `ids` turns names of data sets into
    their ids.
    """
    reader = _Reader(typed, columns)
    wanted = reader.read(ids)
    return (None if reader.wrong else wanted), reader.wrong


def declaration_typed(
    typed: Mapping[str, str], columns: Sequence[HeaderColumn], before: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, dict[str, CloisterError]]:
    """The declaration alone, of a form that asks for nothing else; None where something is wrong, and then what is wrong. What
    was declared `before`, and for which the form has no room, stays: more places."""
    reader = _Reader(typed, columns)
    declaration = reader.declaration("")
    for name in [name for name, each in before["columns"].items() if each.get("kind") == "place"][MOST_PLACES:]:
        declaration["columns"].setdefault(name, before["columns"][name])
        declaration["reasons"].setdefault(name, (before.get("reasons") or {}).get(name, ""))
    return (None if reader.wrong else declaration), reader.wrong


def declared_places(
    typed: Mapping[str, str], columns: Sequence[HeaderColumn]
) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]]:
    """The places that are typed whole, with their reasons."""
    reader = _Reader(typed, columns)
    return reader.places()


def typed_of(declaration: Mapping[str, Any], columns: Sequence[HeaderColumn]) -> dict[str, str]:
    """What somebody would type into the form to declare that of these columns; what is not among them is left out.

    >>> age = HeaderColumn(name="age", kind="text", suggested="Text")
    >>> typed_of({"columns": {"age": {"kind": "integer", "low": 17, "high": 90}}, "reasons": {"age": "adults"}}, [age])
    {'rows_are': 'units', 'c0_kind': 'integer', 'c0_low': '17', 'c0_high': '90', 'c0_reason': 'adults'}
    """
    found = {"rows_are": "column" if declaration.get("unit") else "units"}
    for part in ("max_rows", "size"):
        if declaration.get(part):
            found[part] = str(declaration[part])
    reasons = declaration.get("reasons") or {}
    for place, column in enumerate(columns):
        if declaration.get("unit") == column.name:
            found["unit_column"] = str(place)
        declared = declaration["columns"].get(column.name, {})
        for part in ("kind", "low", "high", "step"):
            if declared.get(part) is not None:
                found[f"c{place}_{part}"] = str(declared[part])
        if "values" in declared:
            found[f"c{place}_values"] = lines_of(declared["values"])
        if declared.get("nullable"):
            found[f"c{place}_nullable"] = "yes"
        if reasons.get(column.name):
            found[f"c{place}_reason"] = reasons[column.name]
    return found | places_typed(declaration, {column.name: str(place) for place, column in enumerate(columns)})


def lines_of(values: Iterable[object]) -> str:
    """Categories as the form shows them, one a line: in quotes where blanks or quotes would be lost, or a line would end."""
    return "\n".join(quotation(each) if re.search(r'^["\s]|\s$|\n|^$', each) else each for each in map(str, values))


def values_of(text: str) -> list[str]:
    """The categories that the form says, one a line.

    >>> values_of('no\\r\\n yes \\n\\n""\\n" a"'), lines_of(["no", "", " a"])
    (['no', 'yes', '', ' a'], 'no\\n""\\n" a"')
    """
    found = ((each[1], (each[2] or "").strip()) for each in _CATEGORY.finditer(text))
    return [plain if quoted is None else quoted.replace('""', '"') for quoted, plain in found if plain or quoted is not None]


def places_typed(declaration: Mapping[str, Any], numbers: Mapping[str, str]) -> dict[str, str]:
    """What somebody would type for the places, by the numbers of the columns."""
    declared = {name: each for name, each in declaration["columns"].items() if each.get("kind") == "place"}
    found: dict[str, str] = {}
    for number, (name, each) in enumerate(list(declared.items())[:MOST_PLACES]):
        start, regions = f"p{number}_", each.get("regions")
        within = json_of(geojson_of(regions_kept(regions))) if regions else ", ".join(map(str, each.get("box") or ()))
        parts = {"name": name, "within": within, "nullable": "yes" if each.get("nullable") else ""}
        parts |= {part: numbers.get(each.get(part, ""), "") for part in ("longitude", "latitude")}
        parts["reason"] = (declaration.get("reasons") or {}).get(name, "")
        found |= {start + part: text for part, text in parts.items() if text}
    return found


class _Reader:
    """One reading of the form."""

    def __init__(self, typed: Mapping[str, str], columns: Sequence[HeaderColumn]) -> None:
        self._typed, self._columns = typed, columns
        self.wrong: dict[str, CloisterError] = {}

    def read(self, ids: Callable[[list[str]], list[str]]) -> Wanted:
        public = self._text("public") == "yes"
        policy = self._at("purposes", lambda: _written(policy_typed(self._typed, ids)), {})
        if not self._text("title"):
            self.wrong["title"] = InvalidParameter("The title is invalid", why="it is empty", instead="Visits 2026")
        if self._text("understood") != "yes":
            self.wrong["understood"] = InvalidParameter(
                "The form is invalid", why="the last box is not ticked", instead="read it, and tick it"
            )
        name, title = self._text("name"), self._text("title")
        population = self._text("population") or self._text("population_new")
        if public:
            return Wanted(
                name=name, title=title, about=self._text("about"), public=True, metadata={"policy": policy}, listed=True
            )
        every, label, column = self._text("every"), self._text("window"), self._chosen("date_column")
        self._at("date_column", lambda: check_cut(every, column), None)
        if every:
            self._at("window", lambda: check_window(every, label), None)
        declared: dict[str, Any] = {
            "name": name,
            "title": title,
            "population": population,
            "declaration": self.declaration(column),
        }
        if every and "window" not in self.wrong:
            declared = self._at("date_column", lambda: in_window(declared, every, label, column), declared)
        return Wanted(
            **declared,
            about=self._text("about"),
            budget=self._budget(),
            unit=self._text("unit"),
            people=self._whole("people"),
            listed=self._text("listed") == "yes",
            row_is_person=self._text("row_is_person") == "yes",
            metadata={"policy": policy, "columns": self._column_policies()},
            provider=self._text("provider"),
        )

    def _text(self, name: str) -> str:
        return self._typed.get(name, "").strip()

    def _at(self, field: str, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except CloisterError as error:
            self.wrong[field] = error
            return otherwise

    def _whole(self, name: str) -> int | None:
        return self._at(name, lambda: counted(self._text(name)), None)  # type: ignore[no-any-return]

    def _budget(self) -> Guarantee | None:
        if self._text("population") and not self._text("every"):
            return None
        measure = self._text("measure")
        if measure == "rho":
            return self._at("rho", lambda: budget_of(rho=self._text("rho")), None)  # type: ignore[no-any-return]
        delta = self._text("delta") if measure == "approx" else ""
        if measure == "approx" and not delta:
            self.wrong["delta"] = MissingBound("The budget is incomplete", why="its δ is missing", instead="1e-6")
        return self._at("epsilon", lambda: budget_of(self._text("epsilon"), delta), None)  # type: ignore[no-any-return]

    def _column_policies(self) -> dict[str, Any]:
        found = {}
        for place, column in enumerate(self._columns):
            if not self._text(f"c{place}_kind"):
                continue
            policy: dict[str, Any] = {
                part: names for part in ("purposes", "labels") if (names := listed(self._text(f"c{place}_{part}")))
            }
            if self._text(f"c{place}_sensitivity"):
                policy["sensitivity"] = self._text(f"c{place}_sensitivity")
            if policy:
                found[column.name] = self._at(f"c{place}_labels", partial(_written, policy), {})
        return found

    def _chosen(self, field: str) -> str:
        """The name of the column whose place is chosen; nothing where there is none."""
        chosen = self._text(field)
        known = chosen.isascii() and chosen.isdigit() and len(chosen) < 7 and int(chosen) < len(self._columns)
        return self._columns[int(chosen)].name if known else ""

    def declaration(self, dated: str) -> dict[str, Any]:
        """What is declared; `dated` names the date column by which windows are cut, whose bounds its window says."""
        columns, reasons = {}, {}
        for place, column in enumerate(self._columns):
            if self._text(f"c{place}_kind") == "date" and column.name == dated:
                columns[column.name] = {"kind": "date"} | {
                    end: self._text(f"c{place}_{end}") for end in ("low", "high") if self._text(f"c{place}_{end}")
                }
            elif self._text(f"c{place}_kind"):
                columns[column.name] = self._at(f"c{place}_kind", partial(self._column, place, column), {})
                reasons[column.name] = self._text(f"c{place}_reason")
        self.places(columns, reasons)
        if not columns:
            self.wrong["columns"] = InvalidDeclaration(
                "The declaration is invalid", why="every column is left out", instead="one column at least, with its bounds"
            )
        unit, most = None, None
        if self._text("rows_are") not in ("units", "column"):
            self.wrong["rows_are"] = InvalidDeclaration(
                "The unit is invalid", why="what a row is was not chosen", instead="one of the two pictures"
            )
        if self._text("rows_are") == "column":
            unit = self._chosen("unit_column") or None
            if unit is not None:
                most = self._whole("max_rows")
                if most is None and "max_rows" not in self.wrong:
                    self.wrong["max_rows"] = MissingBound(
                        "The row cap is missing", why="the number of rows of one person that count is missing", instead="10"
                    )
            else:
                self.wrong["unit_column"] = InvalidDeclaration(
                    "The unit is invalid", why="no column is chosen", instead="the column that says whose row a row is"
                )
        identifiers = [name for name, each in columns.items() if each.get("kind") == "identifier"]
        if self._text("rows_are") != "column" and identifiers and self._text("row_is_person") != "yes":
            asked = {name: Identifier() for name in identifiers}
            self._at("row_is_person", lambda: check_events(asked, None), None)
        return {"columns": columns, "unit": unit, "max_rows": most, "size": self._whole("size"), "reasons": reasons}

    def places(
        self, columns: dict[str, Any] | None = None, reasons: dict[str, str] | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The columns and reasons with those of the places."""
        columns, reasons = {} if columns is None else columns, {} if reasons is None else reasons
        for number in range(MOST_PLACES):
            self._at(f"p{number}_name", partial(self._place, f"p{number}_", columns, reasons), None)
        return columns, reasons

    def _place(self, start: str, columns: dict[str, Any], reasons: dict[str, str]) -> None:
        """Adds a place that is made of two columns, where one is typed."""
        within, name = self._text(start + "within"), self._text(start + "name")
        longitude, latitude = (self._chosen(start + part) for part in ("longitude", "latitude"))
        if not (within or longitude or latitude):
            return
        if not name or name in columns:
            why = "another column has its name" if name else "its name is missing"
            raise InvalidDeclaration("The place is invalid", why=why, instead="home")
        if not longitude or not latitude:
            raise InvalidDeclaration(
                "The place is invalid", why="the column of its longitude or latitude is not chosen", instead="choose both columns"
            )
        if not within:
            raise MissingBound(
                f"The column {name!r} needs bounds",
                why="a bound is missing, and bounds are declared, never looked up",
                instead="4.2, 51.9, 4.5, 52.1",
            )
        declared: dict[str, Any] = {"kind": "place", "longitude": longitude, "latitude": latitude}
        if within.startswith("{"):
            declared |= {"regions": within, "name": self._text(start + "property") or "name"}
        else:
            declared["box"] = listed(",".join(within.split()))
        declared["nullable"] = self._text(start + "nullable") == "yes"
        found = domain_of(name, declared, table=self._text("name") or "the table").describe()
        if not self._text(start + "reason"):
            raise no_reason(name)
        columns[name], reasons[name] = found, self._text(start + "reason")

    def _column(self, place: int, column: HeaderColumn) -> dict[str, Any]:
        kind = self._text(f"c{place}_kind")
        declared: dict[str, Any] = {"kind": kind, "nullable": self._text(f"c{place}_nullable") == "yes"}
        if kind in BOUNDED:
            for end in ("low", "high"):
                declared[end] = self._text(f"c{place}_{end}")
                if not declared[end]:
                    raise MissingBound(
                        f"The column {column.name!r} needs bounds",
                        why="a bound is missing, and bounds are declared, never looked up",
                        instead="the least and the greatest value that can be meant, such as 0 and 120",
                    )
        if kind == "real" and self._text(f"c{place}_step"):
            declared["step"] = self._text(f"c{place}_step")
        if kind == "category":
            declared["values"] = as_held(values_of(self._typed.get(f"c{place}_values", "")), column.kind)
        found = domain_of(column.name, declared, table=self._text("name") or "the table").describe()
        if kind in (*BOUNDED, "category") and not self._text(f"c{place}_reason"):
            raise no_reason(column.name)
        return found


def policy_typed(typed: Mapping[str, str], ids: Callable[[list[str]], list[str]]) -> dict[str, Any]:
    """The policy of a data set as it is typed. `ids` turns names of data sets into their ids.

    >>> policy_typed({"labels": "clinical, small", "combinable_with": "-", "retention": " "}, list)
    {'labels': ['clinical', 'small'], 'combinable_with': []}
    """
    named = {
        part: names for part in ("purposes", "consent", "labels", "combinable_with") if (names := listed(typed.get(part, "")))
    }
    policy: dict[str, Any] = dict(named)
    if "combinable_with" in named:
        policy["combinable_with"] = [] if named["combinable_with"] == ["-"] else ids(named["combinable_with"])
    return policy | {part: text for part in ("sensitivity", "retention") if (text := typed.get(part, "").strip())}


def _written(policy: dict[str, Any]) -> dict[str, Any]:
    return Policy.read(policy).to_dict()
