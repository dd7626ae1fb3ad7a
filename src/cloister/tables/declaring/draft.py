"""A declaration before it is whole: what a form, a codebook or a vocabulary says of columns, as texts, part by part.

A draft is public, as a declaration is. It is made of names of columns and of what people wrote about them; nothing here reads a
row. Where a part is missing it stays missing: a bound is declared, never looked up.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cloister.errors import CloisterError, InvalidDeclaration, MissingBound
from cloister.tables.declaring.columns import Domain
from cloister.tables.declaring.plain import domain_of

BOUNDED = ("integer", "real", "date", "moment")
_OF_A_KIND = ("kind", "low", "high", "step", "values", "nullable")
_OF_ANY = ("reason", "missing", "about")
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True)
class ColumnDraft:
    """What is said of one column so far; each part that is not said is empty.

    >>> ColumnDraft(kind="integer", low="0").over(ColumnDraft(low="17", high="90", reason="adults"))
    ColumnDraft(kind='integer', low='0', high='90', step='', values=(), nullable=False, reason='adults', missing=(), about='')
    """

    kind: str = ""
    low: str = ""
    high: str = ""
    step: str = ""
    values: tuple[str, ...] = ()
    nullable: bool = False
    reason: str = ""
    missing: tuple[str, ...] = ()
    """What stands for a missing value, as it is written in the rows."""
    about: str = ""

    def over(self, other: ColumnDraft) -> ColumnDraft:
        """This draft, with the other's parts where it says nothing itself; of another kind only the texts are taken."""
        same = not self.kind or not other.kind or self.kind == other.kind
        names = (*_OF_A_KIND, *_OF_ANY) if same else _OF_ANY
        return replace(self, **{name: getattr(self, name) or getattr(other, name) for name in names})

    def domain(self, column: str, source_kind: str = "text") -> Domain:
        """The declaration, of a column that its source holds as such a kind; what is missing or wrong is refused.

        >>> ColumnDraft(kind="category", values=("1", "2")).domain("sex", "integer")
        Category([1, 2])
        """
        declared: dict[str, Any] = {"kind": self.kind}
        if self.kind in BOUNDED:
            if not (self.low and self.high):
                raise MissingBound(
                    f"The column {column!r} needs bounds",
                    why="a bound is missing, and bounds are declared, never looked up",
                    instead=f'"{column}={self.kind} 0..120"',
                )
            declared |= {"low": self.low, "high": self.high}
            if self.kind == "real" and self.step:
                declared["step"] = self.step
        if self.kind == "category":
            declared["values"] = as_held(self.values, source_kind)
        return domain_of(column, declared | {"nullable": self.nullable}, table="the table")


def as_held(values: Iterable[str], kind: str) -> list[str] | list[int] | list[bool]:
    """Categories as a source of that kind holds them.

    >>> as_held(["1", "2"], "integer"), as_held(["1", "2"], "text"), as_held(["true"], "boolean")
    ([1, 2], ['1', '2'], [True])
    """
    values = list(values)
    if kind in ("integer", "huge") and all(_WHOLE.fullmatch(each) for each in values):
        return [int(each) for each in values]
    if kind == "boolean" and all(each.lower() in ("true", "false") for each in values):
        return [each.lower() == "true" for each in values]
    return values


@dataclass(frozen=True, kw_only=True)
class Codebook:
    """What a codebook says of a table: columns by name, whose rows they are, and notes of what it says that was not taken."""

    columns: Mapping[str, ColumnDraft] = field(default_factory=dict)
    unit: str = ""
    max_rows: int | None = None
    size: int | None = None
    notes: tuple[str, ...] = ()
    places: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Columns that are made of two of the table's, by name, as plain data."""
    reasons: Mapping[str, str] = field(default_factory=dict)
    """Where the box or the regions of a place come from."""

    def of(self, names: Iterable[str]) -> dict[str, ColumnDraft]:
        """What it says of these columns: under the same name, or the one name that is spelled alike.

        >>> book = Codebook(columns={"Age (years)": ColumnDraft(kind="integer")})
        >>> list(book.of(["age_years", "sex"]))
        ['age_years']
        """
        alike: dict[str, list[ColumnDraft]] = {}
        for name, draft in self.columns.items():
            alike.setdefault("_".join(words(name)), []).append(draft)
        found = {}
        for name in names:
            near = alike.get("_".join(words(name)), [])
            if name in self.columns:
                found[name] = self.columns[name]
            elif len(near) == 1:
                found[name] = near[0]
        return found


def words(name: str) -> list[str]:
    """The words of a column's name, in lower case and without accents.

    >>> words("Date_of-Birth"), words("patientAge (years)"), words("Année2026")
    (['date', 'of', 'birth'], ['patient', 'age', 'years'], ['annee', '2026'])
    """
    split = re.sub(r"(?<=[a-zß-öø-ÿ])(?=[A-Z])|(?<=[^\W\d_])(?=\d)", " ", name)
    plain = "".join(each for each in unicodedata.normalize("NFKD", split) if not unicodedata.combining(each))
    return re.findall(r"[^\W_]+", plain.lower())


def declaration_text(name: str, source: str, kinds: Mapping[str, str], book: Codebook) -> str:
    """The declarations file of the command line: what is whole as it is, and what is not as a line to finish.

    >>> drafts = {"age": ColumnDraft(kind="integer", low="0", high="120", reason="ages"), "pay": ColumnDraft(kind="real")}
    >>> print(declaration_text("people", "people.csv", {"age": "text", "pay": "text"}, Codebook(columns=drafts)))
    [tables.people]
    source = "people.csv"
    <BLANKLINE>
    [tables.people.columns]
    age = { kind = "integer", low = 0, high = 120 }
    # pay = { kind = "real", low = …, high = … }    # a bound is missing, and bounds are declared, never looked up
    <BLANKLINE>
    [tables.people.reasons]
    age = "ages"
    <BLANKLINE>
    """
    lines = [f"[tables.{_key(name)}]", f"source = {_text(source)}"]
    if book.unit:
        lines.append(f"unit = {_text(book.unit)}")
    lines += [f"{part} = {number}" for part, number in (("max_rows", book.max_rows), ("size", book.size)) if number]
    lines += ["", f"[tables.{_key(name)}.columns]"]
    reasons = []
    used = {place.get(part) for place in book.places.values() for part in ("longitude", "latitude")}
    for column, kind in kinds.items():
        draft = book.columns.get(column, ColumnDraft())
        if not draft.kind and column in used:
            continue
        if not draft.kind:
            lines.append(f"# {_key(column)} is dropped" + (f": {_comment(draft.about)}" if draft.about else ""))
            continue
        try:
            described = draft.domain(column, kind).describe()
        except CloisterError as error:
            lines.append(f"# {_key(column)} = {_unfinished(draft)}    # {_comment(error.why)}")
            continue
        parts = [f"{part} = {_value(value)}" for part, value in described.items() if value is not False]
        lines.append(f"{_key(column)} = {{ {', '.join(parts)} }}")
        if draft.reason:
            reasons.append(f"{_key(column)} = {_text(draft.reason)}")
    for column, place in book.places.items():
        parts = [f"{part} = {_value(value)}" for part, value in place.items() if value not in (False, None, [])]
        lines.append(f"{_key(column)} = {{ {', '.join(parts)} }}")
        if book.reasons.get(column):
            reasons.append(f"{_key(column)} = {_text(book.reasons[column])}")
    if reasons:
        lines += ["", f"[tables.{_key(name)}.reasons]", *reasons]
    return "\n".join(lines) + "\n"


def of_declaration(declared: Mapping[str, Any]) -> Codebook:
    """A declaration, as the hub or a file keeps it, as drafts.

    >>> of_declaration({"columns": {"age": {"kind": "integer", "low": 17, "high": 90}}, "unit": "p", "max_rows": 3}).unit
    'p'
    """
    columns, reasons = declared.get("columns"), declared.get("reasons") or {}
    if not isinstance(columns, Mapping) or not isinstance(reasons, Mapping):
        raise InvalidDeclaration("The codebook is invalid", why="it declares no column", instead='{"columns": {…}}')
    found, places = {}, {}
    for name, each in columns.items():
        each = each if isinstance(each, Mapping) else {}
        if each.get("kind") == "place":
            places[str(name)] = each
            continue
        values = each.get("values")
        parts = {part: str(each[part]) for part in ("kind", "low", "high", "step") if each.get(part) is not None}
        listed = tuple(each if isinstance(each, str) else said(each) for each in values) if isinstance(values, list) else ()
        draft = ColumnDraft(values=listed, nullable=each.get("nullable") is True, reason=str(reasons.get(name, "")))
        found[str(name)] = replace(draft, **parts)  # type: ignore[arg-type]
    most, size = declared.get("max_rows"), declared.get("size")
    return Codebook(
        columns=found,
        unit=str(declared.get("unit") or ""),
        max_rows=most if isinstance(most, int) else None,
        size=size if isinstance(size, int) else None,
        places=places,
        reasons={name: str(reasons[name]) for name in places if reasons.get(name)},
    )


def said(value: object) -> str:
    """A value of a document as it is written in a table.

    >>> said(True), said(3.0), said("F")
    ('true', '3', 'F')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def refusal(why: str, instead: str) -> InvalidDeclaration:
    """The refusal of a codebook."""
    return InvalidDeclaration("The codebook is invalid", why=why, instead=instead)


def _unfinished(draft: ColumnDraft) -> str:
    parts = [f'kind = "{draft.kind}"']
    if draft.kind in BOUNDED:
        parts += [f"{end} = {_text(text) if text else '…'}" for end, text in (("low", draft.low), ("high", draft.high))]
    if draft.kind == "category":
        parts.append(f"values = {_value(list(draft.values)) if draft.values else '[…]'}")
    return f"{{ {', '.join(parts)} }}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return str(value) if isinstance(value, int | float) else _text(str(value))
