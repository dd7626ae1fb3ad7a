"""Tables as a workbook that Excel, LibreOffice and Numbers open (Office Open XML, ECMA-376), in the few parts that it needs.

No cell is ever computed: a text is an inline string, never a formula (no part has an `<f>`), and one that a spreadsheet would
compute if it were typed again is marked as quoted, so that editing it leaves it a text. Numbers are written as they are; what a
spreadsheet has no number for (a whole number of more digits than it keeps, a day before its calendar begins) is a text.
"""

import io
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from cloister.errors import InvalidParameter
from cloister.hub.spreadsheets import is_formula
from cloister.printable import escape, shown

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384
_LONGEST = 32_767
"""Characters of a cell."""
_DIGITS = 10**15
"""Numbers from here on lose digits in a spreadsheet."""
_BEGINS, _DAY_ZERO = date(1900, 3, 1), date(1899, 12, 30)
"""From here on every program counts days alike: the calendar of 1900 has a 29 February that never was."""
_WRITTEN = (1980, 1, 1, 0, 0, 0)
_HEAD, _TEXT, _QUOTED, _DATE, _WRAPPED = 1, 2, 3, 4, 5
"""Places in `_STYLES`."""
_STYLES = (
    '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    '<numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/></numFmts>'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="6">'
    '<xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="49" fontId="1" fillId="0" borderId="0" xfId="0" quotePrefix="1" applyNumberFormat="1" applyFont="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1" applyNumberFormat="1"/>'
    '<xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    '<xf numFmtId="49" fontId="0" fillId="0" borderId="0" xfId="0" quotePrefix="1" applyNumberFormat="1" applyAlignment="1">'
    '<alignment vertical="top" wrapText="1"/></xf>'
    "</cellXfs>"
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles>'
    "</styleSheet>"
)
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PARTS = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_ESCAPED = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_LINE_END = re.compile(r"\r\n?")
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\]")


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One table of a workbook: `head` stands above the rows and stays in view; without one it is a list of facts, whose texts may
    take several lines."""

    name: str
    head: Sequence[str] = ()
    rows: Iterable[Sequence[Any]]
    widths: Mapping[int, int]
    """By column from 0, in characters."""


def workbook(sheets: Sequence[Sheet]) -> bytes:
    """The file. The same sheets are the same bytes.

    >>> made = workbook([Sheet(name="Answer", head=["a"], rows=[["=1+1"], [2]], widths={0: 12})])
    >>> with zipfile.ZipFile(io.BytesIO(made)) as parts:
    ...     told = parts.read("xl/worksheets/sheet1.xml").decode()
    >>> "<f>" in told, '<c r="A2" s="3" t="inlineStr"><is><t xml:space="preserve">=1+1</t></is></c>' in told
    (False, True)
    """
    names = [_NOT_IN_NAMES.sub(" ", shown(each.name)).strip("' ")[:31] or f"{place}" for place, each in enumerate(sheets, 1)]
    places = range(1, len(sheets) + 1)
    of_sheets = "".join(
        f'<Override PartName="/xl/worksheets/sheet{place}.xml" ContentType="{_PARTS}.worksheet+xml"/>' for place in places
    )
    listed = "".join(
        f'<sheet name="{escape(name)}" sheetId="{place}" r:id="rId{place}"/>' for place, name in zip(places, names, strict=True)
    )
    ties = "".join(_tie(f"rId{place}", "worksheet", f"worksheets/sheet{place}.xml") for place in places)
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_PARTS}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_PARTS}.styles+xml"/>{of_sheets}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f"{_tie('rId1', 'officeDocument', 'xl/workbook.xml')}</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{ties}'
        f"{_tie('rId0', 'styles', 'styles.xml')}</Relationships>",
        "xl/styles.xml": _STYLES,
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(_entry(name), _XML + text)
        for place, each in zip(places, sheets, strict=True):
            with archive.open(_entry(f"xl/worksheets/sheet{place}.xml"), "w") as part:
                for piece in _sheet(each):
                    part.write(piece.encode())
    return whole.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _WRITTEN)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _tie(number: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'


def _sheet(sheet: Sheet) -> Iterator[str]:
    """The part of one sheet, in pieces."""
    yield f'{_XML}<worksheet xmlns="{_MAIN}">'
    if sheet.head:
        pane = '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        yield f'<sheetViews><sheetView workbookViewId="0">{pane}</sheetView></sheetViews>'
    if sheet.widths:
        wide = "".join(
            f'<col min="{place + 1}" max="{place + 1}" width="{width}" customWidth="1"/>'
            for place, width in sorted(sheet.widths.items())
        )
        yield f"<cols>{wide}</cols>"
    yield "<sheetData>"
    if sheet.head:
        yield _row(1, [_text(_named(1, place), each, _HEAD) for place, each in enumerate(sheet.head)])
    for number, row in enumerate(sheet.rows, 2 if sheet.head else 1):
        if number > MOST_ROWS or len(row) > MOST_COLUMNS:
            raise InvalidParameter(
                "The file was not made",
                why=f"a workbook holds at most {MOST_ROWS:,} rows and {MOST_COLUMNS:,} columns",
                instead="the form csv, which has every row",
            )
        yield _row(number, [_cell(_named(number, place), each, facts=not sheet.head) for place, each in enumerate(row)])
    yield "</sheetData></worksheet>"


def _row(number: int, cells: Iterable[str]) -> str:
    return f'<row r="{number}">{"".join(cells)}</row>'


def _named(row: int, column: int) -> str:
    """The name of a cell.

    >>> _named(1, 0), _named(2, 25), _named(3, 26), _named(1, 16_383)
    ('A1', 'Z2', 'AA3', 'XFD1')
    """
    letters, rest = "", column + 1
    while rest:
        rest, letter = divmod(rest - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return f"{letters}{row}"


def _cell(name: str, value: Any, *, facts: bool) -> str:
    """One cell; nothing for None, and a dash for a number that is not known."""
    if value is None:
        return ""
    if value != value:
        return _text(name, "–", _TEXT)  # not known, which an empty cell would not say
    if isinstance(value, bool):
        return f'<c r="{name}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, int | float) and abs(value) < (_DIGITS if isinstance(value, int) else math.inf):
        return f'<c r="{name}"><v>{value!r}</v></c>'
    if isinstance(value, float):
        return _text(name, "∞" if value > 0 else "-∞", _TEXT)
    if isinstance(value, date) and not isinstance(value, datetime) and value >= _BEGINS:
        return f'<c r="{name}" s="{_DATE}"><v>{(value - _DAY_ZERO).days}</v></c>'
    text = str(value)
    return _text(name, text, _WRAPPED if facts else _QUOTED if is_formula(text) else _TEXT)


def _text(name: str, text: str, style: int) -> str:
    """A text: printable, of the characters that XML has, and none of it an escape of the format's own (`_x000A_`)."""
    told = shown(text, lines=True)
    units = told.encode("utf-16-le", "surrogatepass")  # by which a cell is as long as it may be
    if len(units) > 2 * _LONGEST:
        told = f"{units[: 2 * _LONGEST - 2].decode('utf-16-le', 'ignore')}…"
    told = _ESCAPED.sub("_x005F_", _LINE_END.sub("\n", told))
    return f'<c r="{name}" s="{style}" t="inlineStr"><is><t xml:space="preserve">{escape(told)}</t></is></c>'
