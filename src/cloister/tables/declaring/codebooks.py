"""Codebooks that owners have already: read as drafts of a declaration, in whatever form they were written.

CSV (or lines pasted from a sheet), the JSON of a Frictionless Table Schema or Data Package, DDI Codebook XML, SQL's CREATE TABLE,
a declaration of ours (TOML or JSON), and SmartNoise's metadata. The form is told from the text. What a codebook says is what its
author published: value labels, valid ranges, missing values. What it may have counted in the rows (frequencies, the least and the
greatest value that occurs) is not read.

A refusal names line and column as sheets do, and quotes nothing but names of columns and words of the form.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloister.parsers import delimiter_of, toml_of
from cloister.printable import shown
from cloister.tables.declaring.draft import Codebook, ColumnDraft, of_declaration, refusal, said
from cloister.tables.engines.guard import tried

LONGEST = 10_000_000
_MOST = 5_000
_LONGEST_RANGE = 200
"""What is read by trying has a bound of its own: a text made for it would take hours."""
_HEADS = {
    "name column variable var field item variable_name column_name spalte 变量 列 名称": "name",
    "kind type datatype data_type format typ 类型": "kind",
    "low from min minimum lower least von 最小值": "low",
    "high to max maximum upper greatest bis 最大值": "high",
    "step precision resolution 步长": "step",
    "values categories codes levels choices range options value_labels allowed_values 取值": "values",
    "nullable null optional": "nullable",
    "reason source basis 依据": "reason",
    "missing missing_values missing_value na 缺失值": "missing",
    "about description label title question meaning 说明": "about",
}
_REDCAP = {
    "variable_/_field_name": "name",
    "field_type": "kind",
    "field_label": "about",
    "choices,_calculations,_or_slider_labels": "values",
    "text_validation_type_or_show_slider_number": "written",
    "text_validation_min": "low",
    "text_validation_max": "high",
}
"""What stands where in the data dictionary that REDCap exports."""
_REDCAP_KINDS = {
    **dict.fromkeys(("radio", "dropdown"), "category"),
    **dict.fromkeys(("yesno", "truefalse"), "boolean"),
    **dict.fromkeys(("calc", "slider"), "real"),
    **dict.fromkeys(("text", "notes", "sql", "file"), "text"),
}
_KINDS = {
    "integer": "integer int whole number,bigint smallint tinyint count counts year whole 整数",
    "real": "real float double decimal numeric number continuous num scale 数值",
    "category": "category categorical nominal ordinal factor enum choice code codes single choice 分类",
    "date": "date day datetime timestamp time 日期",
    "moment": "moment 时刻",
    "boolean": "boolean bool logical binary flag yes/no 布尔",
    "text": "text string str char varchar character free text 文本",
    "identifier": "identifier id key uuid guid 标识",
}
_NO_COLUMN = ("descriptive", "checkbox")
"""A text between questions, and a question of which each choice is a column with a name of its own."""
_WORDS = {word: kind for kind, text in _KINDS.items() for word in re.split(r"[ ,]", text)}
_END = r"([+-]?[0-9][0-9.]*|[0-9]{4}-[0-9]{2}-[0-9]{2})"
_RANGE = re.compile(rf"\s*{_END}\s*(?:\.\.+|–|—+|-|－|~|～|to|bis|至|到|:|：|…+)\s*{_END}\s*")
_YES = ("yes", "true", "1", "y", "x", "ja", "是")
_EXAMPLE = "name,kind,from,to,values,reason"


def read_codebook(text: str, *, table: str = "") -> Codebook:
    """What a codebook says, in whichever form it is; `table` says which, where it describes several.

    >>> book = read_codebook("variable;type;values;label\\nsex;code;1=male, 2=female;Sex\\nage;integer;0-120;Age in years\\n")
    >>> book.columns["sex"].values, book.columns["age"].high
    (('1', '2'), '120')
    >>> read_codebook("CREATE TABLE people (age INT CHECK (age BETWEEN 0 AND 120))").columns["age"].low
    '0'
    """
    if len(text) > LONGEST:
        raise refusal(f"it is longer than {LONGEST:,} characters", "the codebook of one table")
    plain = text.removeprefix("\ufeff").strip()
    if plain.startswith("<"):
        from cloister.tables.declaring.ddi import read_ddi

        book = read_ddi(plain)
    elif plain.startswith(("{", "[{", "[\n")):
        book = _of_json(plain, table)
    elif re.search(r"\bcreate\b[^;(]{0,200}\btable\b", plain[:100_000], re.IGNORECASE):
        from cloister.tables.declaring.create_table import read_create_table

        book = read_create_table(plain, table)
    elif re.search(r"(?m)^[ \t]*\[(tables|columns)\b", plain):
        book = _of_toml(plain, table)
    elif re.search(r"(?m)^[ \t]+type:", plain):
        from cloister.tables.declaring.metadata import read_metadata

        found = read_metadata(plain, table or None)
        columns = {name: each.describe() for name, each in found.columns.items()}
        book = replace(of_declaration(found.arguments() | {"columns": columns}), notes=found.notes)
    else:
        book = _of_lines(plain)
    if not book.columns:
        raise refusal("it describes no column", _EXAMPLE)
    if len(book.columns) > _MOST:
        raise refusal(f"it describes more than {_MOST:,} columns", "the codebook of one table")
    return book


def rows_of_codebook(rows: Iterable[Sequence[str]]) -> Codebook:
    """A codebook of lines: the first names what stands where, each other describes a column."""
    found = enumerate(rows, 1)
    heads: dict[str, int] = {}
    for _, row in found:
        if any(each.strip() for each in row):
            heads = _heads(row)
            break
    if "name" not in heads:
        raise refusal("no column of its first line is called name, column or variable", _EXAMPLE)
    columns: dict[str, ColumnDraft] = {}
    for line, row in found:
        cells = {part: row[place].strip() for part, place in heads.items() if place < len(row)}
        name = cells.get("name", "")
        if not name:
            if any(each.strip() for each in row):
                raise refusal(f"line {line}, column {letter(heads['name'])}: the name is missing", _EXAMPLE)
            continue
        if cells.get("kind", "") in _NO_COLUMN and "written" in heads:
            continue
        if "written" in heads:
            cells = _of_redcap(cells)
        if name in columns:
            raise refusal(f"line {line}, column {letter(heads['name'])}: {shown(name)[:200]!r} stands twice", "each column once")
        columns[name] = _drafted(cells, line, heads)
    return Codebook(columns=columns)


def kind_of(word: str) -> str:
    """The kind that a word of a codebook means; nothing where it is not known.

    >>> kind_of("VARCHAR(20)"), kind_of("Numeric"), kind_of("free text"), kind_of("geometry")
    ('text', 'real', 'text', '')
    """
    first = re.split(r"[\s(（]", word.strip().lower())
    return _WORDS.get(word.strip().lower()) or _WORDS.get(first[0], "")


def categories(text: str) -> tuple[str, ...]:
    """Categories as codebooks list them: by lines, semicolons or bars, else by commas, of either width; without the labels of
    codes.

    >>> categories("1 = male; 2 = female"), categories("A|B|AB|0"), categories("F, M"), categories("1＝男；2：女")
    (('1', '2'), ('A', 'B', 'AB', '0'), ('F', 'M'), ('1', '2'))
    """
    marks = next((each for each in ("\n", "\t", ";；", "|｜", ",，", "、") if re.search(f"[{each}]", text)), "\n")
    parts = re.split(f"[{marks}]", text)
    codes = [re.sub(r"^(\S[^=:＝：]{0,200}?)\s{0,20}[=:＝：]\s{0,20}\S.*$", r"\1", each.strip()) for each in parts]
    return tuple(dict.fromkeys(each for each in codes if each))


def letter(place: int) -> str:
    """A column as sheets name it, counted from 0.

    >>> letter(0), letter(27)
    ('A', 'AB')
    """
    return (letter(place // 26 - 1) if place >= 26 else "") + chr(ord("A") + place % 26)


def _heads(row: Sequence[str]) -> dict[str, int]:
    cells = [re.sub(r"[\s_]+", "_", cell.strip().lower()) for cell in row]
    known = {word: part for words, part in _HEADS.items() for word in words.split()}
    if next(iter(_REDCAP)) in cells:
        known = _REDCAP
    found: dict[str, int] = {}
    for place, cell in enumerate(cells):
        part = known.get(cell)
        if part is not None:
            found.setdefault(part, place)
    return found


def _of_redcap(cells: Mapping[str, str]) -> dict[str, str]:
    """A line of a REDCap dictionary as one of ours: a text may be checked to be a number or a day.

    >>> _of_redcap({"kind": "radio", "values": "1, Male | 2, Female"})["values"].split()
    ['1', '2']
    >>> _of_redcap({"kind": "text", "written": "date_dmy"})["kind"]
    'date'
    """
    kind = _REDCAP_KINDS.get(cells.get("kind", "").lower(), "text")
    found = {**cells, "kind": kind, "values": ""}
    if kind == "category":
        choices = (choice.partition(",")[0].strip() for choice in cells.get("values", "").split("|"))
        found["values"] = "\n".join(choices)
    elif kind == "text":
        found["kind"] = kind_of(cells.get("written", "").partition("_")[0]) or "text"
    return found


def _drafted(cells: Mapping[str, str], line: int, heads: Mapping[str, int]) -> ColumnDraft:
    word, values = cells.get("kind", ""), cells.get("values", "")
    kind = kind_of(word)
    if word and not kind:
        kinds = ", ".join(_KINDS)
        why = f"line {line}, column {letter(heads['kind'])}: the kind is not one of {kinds}"
        raise refusal(why, _EXAMPLE)
    low, high = cells.get("low", ""), cells.get("high", "")
    listed: tuple[str, ...] = ()
    within = _RANGE.fullmatch(values) if len(values) <= _LONGEST_RANGE else None
    if within is not None:  # of categories a range is no list: they stay open, and are asked for by name
        low, high = low or within[1], high or within[2]
        kind = kind or ("integer" if "." not in within[0].replace("..", "") else "real")
    elif values:
        listed = categories(values)
        codes = len(listed) > 1 and all(re.fullmatch(_END, each) for each in listed)
        if kind in ("", "category") or (kind in ("integer", "real", "date", "moment") and codes):
            kind = "category"  # a number that is neither a range nor a list of codes keeps its kind, and lacks its bounds
    missing = categories(cells.get("missing", ""))
    return ColumnDraft(
        kind=kind,
        low=low if kind != "category" else "",
        high=high if kind != "category" else "",
        step=cells.get("step", ""),
        values=tuple(each for each in listed if each not in missing) if kind == "category" else (),
        nullable=cells.get("nullable", "").lower() in _YES,
        reason=cells.get("reason", ""),
        missing=missing,
        about=cells.get("about", ""),
    )


def _of_lines(text: str) -> Codebook:
    delimiter = delimiter_of(text.partition("\n")[0], ",;\t|，；")
    rows = tried(lambda: list(csv.reader(io.StringIO(text), delimiter=delimiter)), csv.Error)
    if rows is None:
        raise refusal("a field of it is too long, or its quotes do not close", _EXAMPLE)
    return rows_of_codebook(rows)


def _of_json(text: str, table: str) -> Codebook:
    document = tried(lambda: json.loads(text), ValueError, RecursionError)
    if isinstance(document, list):
        document = {"fields": document}
    if not isinstance(document, Mapping):
        raise refusal(
            "it is neither JSON that can be read nor a list of columns", '{"fields": [{"name": "age", "type": "integer"}]}'
        )
    if isinstance(document.get("resources"), list):
        document = _resource(document["resources"], table)
    if isinstance(document.get("schema"), Mapping):
        document = document["schema"]
    if isinstance(document.get("fields"), list):
        return _frictionless(document)
    declared = document.get("declaration", document)
    return of_declaration(declared if isinstance(declared, Mapping) else {})


def _resource(resources: list[Any], table: str) -> Mapping[str, Any]:
    known = [each for each in resources if isinstance(each, Mapping) and isinstance(each.get("schema"), Mapping)]
    named = [each for each in known if each.get("name") == table]
    if len(named or known) != 1:
        raise refusal("it describes several tables, and none of this name", "the Table Schema of one of them")
    return (named or known)[0]


def _frictionless(schema: Mapping[str, Any]) -> Codebook:
    keys = schema.get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else keys if isinstance(keys, list) else []
    everywhere = _texts(schema.get("missingValues", []))
    columns = {}
    for place, each in enumerate(schema["fields"], 1):
        name = each.get("name") if isinstance(each, Mapping) else None
        if not isinstance(name, str) or not name:
            raise refusal(f"the field {place} has no name", '{"name": "age", "type": "integer"}')
        columns[name] = _field(each, name in keys and len(keys) == 1, everywhere)
    return Codebook(columns=columns)


def _field(each: Mapping[str, Any], is_key: bool, everywhere: tuple[str, ...]) -> ColumnDraft:
    rules = each.get("constraints")
    rules = rules if isinstance(rules, Mapping) else {}
    listed = rules.get("enum") or each.get("categories")
    listed = listed if isinstance(listed, list) else ()
    values = tuple(said(one.get("value", "") if isinstance(one, Mapping) else one) for one in listed)
    missing = _texts(each.get("missingValues", [])) or everywhere
    kind = kind_of(str(each.get("type", "")))
    values = tuple(one for one in values if one not in missing)
    if is_key:
        kind = "identifier"
    elif values and kind != "boolean":
        kind = "category"
    bounded = kind in ("integer", "real", "date")
    return ColumnDraft(
        kind=kind,
        low=said(rules["minimum"])[:100] if bounded and rules.get("minimum") is not None else "",
        high=said(rules["maximum"])[:100] if bounded and rules.get("maximum") is not None else "",
        values=values if kind == "category" else (),
        missing=missing,
        about=str(each.get("title") or each.get("description") or ""),
    )


def _texts(given: object) -> tuple[str, ...]:
    if not isinstance(given, list):
        return ()
    return tuple(text for each in given if (text := said(each.get("value", "") if isinstance(each, Mapping) else each)))


def _of_toml(text: str, table: str) -> Codebook:
    document = tried(lambda: toml_of(text), ValueError)
    if document is None:
        raise refusal("it is not a declarations file that can be read", "[tables.people.columns]")
    tables = document.get("tables")
    if not isinstance(tables, Mapping):
        return of_declaration(document)
    known = {name: each for name, each in tables.items() if isinstance(each, Mapping)}
    found = known.get(table) or (next(iter(known.values())) if len(known) == 1 else None)
    if found is None:
        raise refusal("it describes several tables, and none of this name", "the declaration of one of them")
    return of_declaration(found)
