"""Files of other programs become CSV in a process of their own, which can take no more than it may, whatever the file holds."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from cloister.hub.storage import Limits, Reading, RefusedUpload, SeveralSheets
from cloister.hub.storage.foreign import read_foreign
from cloister.tables.sourcing.encrypted import MemoryFile

LIMITS = Limits()
MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
LINKS = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
MANIFEST = {"META-INF/manifest.xml": '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'}
CANARY = "kestrel-71453"


def cell(place: str, value: object) -> str:
    if isinstance(value, str) and value.startswith("="):
        return f'<c r="{place}"><f>{escape(value[1:])}</f><v>7</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def sheet(rows: list[list[object]]) -> str:
    lines = (
        f'<row r="{n}">' + "".join(cell(f"{chr(65 + m)}{n}", value) for m, value in enumerate(row) if value != "") + "</row>"
        for n, row in enumerate(rows, 1)
    )
    return f"<worksheet {MAIN}><sheetData>{''.join(lines)}</sheetData></worksheet>"


def xlsx(sheets: dict[str, list[list[object]]], **more: str) -> bytes:
    """A workbook as small as one can be, with `more` files."""
    listed = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1))
    links = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>' for n in range(1, len(sheets) + 1)
    )
    links += f'<Relationship Id="rs" Type="{OFFICE}/sharedStrings" Target="sharedStrings.xml"/>' if "strings" in more else ""
    files = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r" Type="{OFFICE}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f"<workbook {MAIN} {LINKS}><sheets>{listed}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
    }
    files |= {f"xl/worksheets/s{n}.xml": sheet(rows) for n, rows in enumerate(sheets.values(), 1)}
    files |= {"xl/sharedStrings.xml" if name == "strings" else name: text for name, text in more.items()}
    return zipped(files)


def ods(rows: list[list[str]]) -> bytes:
    lines = "".join(
        "<table:table-row>"
        + "".join(f'<table:table-cell office:value-type="string"><text:p>{escape(v)}</text:p></table:table-cell>' for v in row)
        + "</table:table-row>"
        for row in rows
    )
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text"))
    content = (
        f'<office:document-content {spaces}><office:body><office:spreadsheet><table:table table:name="one">{lines}</table:table>'
    )
    content += "</office:spreadsheet></office:body></office:document-content>"
    return zipped({"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": content, **MANIFEST})


def zipped(files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def read(content: bytes, kind: str, how: Reading = Reading(), limits: Limits = LIMITS, **more: int) -> str:  # noqa: B008
    with MemoryFile() as file:
        file.write(content)
        with read_foreign(file, kind, how, limits, **more) as pieces:
            return b"".join(pieces).decode()


def why(*given: object, **more: int) -> RefusedUpload:
    with pytest.raises(RefusedUpload) as refused:
        read(*given, **more)  # type: ignore[arg-type]
    return refused.value


PEOPLE: list[list[object]] = [["name", "age", "🏔 <b>", ""], ["Zoë", 39, 1.5, ""], ["two\nlines", "=RAND()", "", ""]]


def test_a_sheet_is_read_with_the_values_that_its_formulas_had() -> None:
    assert read(xlsx({"one": PEOPLE}), "xlsx") == "name,age,🏔 <b>\nZoë,39,1.5\ntwo lines,7,\n"
    assert read(ods([["name", "age"], ["Zoë", "39"]]), "ods") == "name,age\nZoë,39\n"


def test_one_of_several_sheets_is_chosen() -> None:
    book = xlsx({"codes": [["a"], [1]], "answers & more": PEOPLE})
    several = why(book, "xlsx")
    assert isinstance(several, SeveralSheets)
    assert several.sheets == ("codes", "answers & more")
    assert read(book, "xlsx", Reading(sheet="answers & more")).startswith("name,age,")
    assert why(book, "xlsx", Reading(sheet="c")).why == "it has no sheet of that name"


def test_names_in_two_lines() -> None:
    book = xlsx({"one": [["id", "age", ""], ["", "then", "now"], [1, 30, 40]]})
    assert read(book, "xlsx", Reading(lines=2)) == "id,age then,age now\n1,30,40\n"


@pytest.mark.parametrize(
    ("rows", "place"),
    [
        ([["a", "", "c"], [1, 2, 3]], "line 1, column B: the column has no name"),
        ([["a", "A"], [1, 2]], "line 1, column B: another column has the same name"),
        ([[""], ["a", "b"], [1, 2], [1, 2, "", 4]], "line 4, column D: a value stands to the right of the last named column"),
    ],
)
def test_a_place_is_said_as_sheets_say_it(rows: list[list[object]], place: str) -> None:
    assert why(xlsx({"one": rows}), "xlsx").why == place


def test_one_compressed_file() -> None:
    assert read(gzip.compress(b"a\n1\n") + gzip.compress(b"2\n"), "gz") == "a\n1\n2\n"
    assert read(zipped({"people.csv": "a\n1\n", "__MACOSX/x": "x"}), "zip") == "a\n1\n"
    assert why(zipped({"a.csv": "a", "b.csv": "b"}), "zip").why == "it does not hold exactly one file"
    assert "damaged" in why(gzip.compress(b"a\n1\n")[:-9], "gz").why


@pytest.mark.parametrize("kind", ["gz", "zip"])
def test_a_bomb_is_stopped_when_it_begins(kind: str) -> None:
    zeros = "0" * 20_000_000
    bomb = gzip.compress(zeros.encode(), 1) if kind == "gz" else zipped({"a.csv": zeros})
    assert "more than 1,000,000 bytes when it is decompressed" in why(bomb, kind, Reading(), Limits(bytes=10**6)).why


def test_a_sheet_that_takes_too_much_memory_is_stopped() -> None:
    huge = xlsx({"one": [["a"], ["x" * 120_000_000]]})
    assert why(huge, "xlsx", Reading(), LIMITS, memory=2**28).why in (
        "reading it takes more memory than it may",
        "it is damaged, or not what its name says",
    )


def test_a_reader_that_takes_too_long_is_stopped() -> None:
    assert why(xlsx({"one": PEOPLE}), "xlsx", Reading(), LIMITS, seconds=0).why == "reading it takes longer than it may"


def test_an_entity_from_outside_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(CANARY)
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(12))
    entities = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file://{tmp_path}/secret"><!ENTITY l0 "ha">{laughs}]>'
    for name in ("e", "l12"):
        strings = f"{entities}<sst {MAIN}><si><t>a&{name};b</t></si></sst>"
        rows = f'<row r="1">{cell("A1", "name")}</row><row r="2"><c r="A2" t="s"><v>0</v></c></row>'
        table = f"<worksheet {MAIN}><sheetData>{rows}</sheetData></worksheet>"
        more = {"strings": strings, "xl/worksheets/s1.xml": table}
        try:
            told = read(xlsx({"one": []}, **more), "xlsx")
        except RefusedUpload as refused:
            told = str(refused)
        assert CANARY not in told
        assert len(told) < 200


def test_a_macro_is_not_run(tmp_path: Path) -> None:
    """Nothing here could run one: it is a file beside the sheets that nobody opens."""
    macros = {"xl/vbaProject.bin": "Sub Auto_Open()", "xl/macrosheets/sheet1.xml": '=EXEC("touch /tmp/x")'}
    assert read(xlsx({"one": PEOPLE}, **macros), "xlsx").startswith("name,age,")


@pytest.mark.parametrize("kind", ["xlsx", "ods", "sav", "dta", "sas7bdat", "xpt", "por", "zip", "gz"])
def test_what_is_no_such_file_says_no_more_than_that(kind: str) -> None:
    refused = why(f"{CANARY},b\n1,2\n".encode() * 40, kind)
    assert CANARY not in str(refused)
    assert refused.why in ("it is damaged, or not what its name says", "it has no line of names")


@pytest.mark.parametrize("kind", ["sav", "dta", "xpt"])
def test_files_of_statistics_packages(tmp_path: Path, kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    pyreadstat = pytest.importorskip("pyreadstat")
    path = tmp_path / f"x.{kind}"
    frame = pandas.DataFrame({"name": ["Zoe", ""], "age": [39.0, None]})
    write: dict[str, Callable[..., None]] = {
        "sav": pyreadstat.write_sav,
        "dta": pyreadstat.write_dta,
        "xpt": pyreadstat.write_xport,
    }
    write[kind](frame, str(path))
    assert read(path.read_bytes(), kind) == "name,age\nZoe,39\n"


def test_nothing_of_the_hub_reaches_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOISTER_SECRET", CANARY)
    seen: list[dict[str, str]] = []
    from cloister.hub.storage import foreign

    run = foreign.subprocess.Popen
    monkeypatch.setattr(foreign.subprocess, "Popen", lambda *a, **how: (seen.append(how["env"]), run(*a, **how))[1])
    read(xlsx({"one": PEOPLE}), "xlsx")
    assert CANARY not in str(seen)
