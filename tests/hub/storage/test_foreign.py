"""Files of other programs become CSV in a process of their own, which can take no more than it may, whatever the file holds."""

from __future__ import annotations

import gzip
import io
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from cloister.hub.keys import hub_keyring
from cloister.hub.storage import Limits, Reading, RefusedUpload, SeveralSheets, TableStore
from cloister.hub.storage.foreign import read_foreign
from cloister.tables.sourcing.encrypted import MemoryFile

LIMITS = Limits()
KEYS = hub_keyring(bytes(32))
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


def zipped(files: Mapping[str, str | bytes]) -> bytes:
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


def converted(tmp_path: Path, content: bytes, kind: str, name: str = "", how: Reading = Reading()) -> str:  # noqa: B008
    """What the store makes of an upload: the lines of the CSV file that is kept."""
    store = TableStore(tmp_path, KEYS)
    made = store.converted(store.receive([content], kind), how, name)
    head = store.look(made, rows=10)
    return "\n".join([",".join(each.name for each in head.columns), *(",".join(map(str, row)) for row in head.rows)])


def test_what_a_compressed_file_holds_goes_by_its_name(tmp_path: Path) -> None:
    book = xlsx({"one": [["name", "age"], ["Zoë", 39]]})
    packed = zipped({"people.XLSX": book})
    assert converted(tmp_path, packed, "zip") == "name,age\nZoë,39"
    named = io.BytesIO()
    with gzip.GzipFile("people.ods", "wb", fileobj=named) as file:
        file.write(ods([["name", "age"], ["Zoë", "39"]]))
    assert converted(tmp_path, named.getvalue(), "gz") == "name,age\nZoë,39"
    assert converted(tmp_path, gzip.compress(book), "gz", "people.xlsx.gz") == "name,age\nZoë,39"
    assert converted(tmp_path, zipped({"a.csv": "a;b\n1,5;2\n"}), "zip", how=Reading(numbers="comma")) == "a,b\n1.5,2"
    two = xlsx({"one": [["a"], [1]], "two": [["b"], [2]]})
    with pytest.raises(SeveralSheets):
        converted(tmp_path, zipped({"a.xlsx": two}), "zip")
    assert converted(tmp_path, zipped({"a.xlsx": two}), "zip", how=Reading(sheet="two")) == "b\n2"


def test_a_number_of_a_sheet_stays_one_however_its_texts_are_written(tmp_path: Path) -> None:
    """2.125 became 2125 where it was said that decimals have a comma, as the sheet shows them."""
    book = xlsx({"one": [["pay", "n"], [2.125, "1.234,5"], [0.125, "0,5"], [1.125e-7, 1000]]})
    wanted = "pay,n\n2.125,1234.5\n0.125,0.5\n1.125e-07,1000"
    assert converted(tmp_path, book, "xlsx", how=Reading(numbers="comma")) == wanted
    assert converted(tmp_path, book, "xlsx", how=Reading(numbers="point")).startswith("pay,n\n2.125,")


def test_a_parquet_file_in_an_archive_stays_one(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "people.parquet"
    parquet.write_table(pyarrow.table({"name": ["Zoë", None], "age": [39, 40]}), path)
    for packed, kind in ((zipped({"people.parquet": path.read_bytes()}), "zip"), (gzip.compress(path.read_bytes()), "gz")):
        store = TableStore(tmp_path, KEYS)
        made = store.converted(store.receive([packed], kind), Reading())
        assert made.kind == "parquet"
        assert store.look(made, rows=5).rows == (("Zoë", "39"), (None, "40"))
    broken = zipped({"people.parquet": path.read_bytes()[:-20]})
    with pytest.raises(RefusedUpload, match="it is not a Parquet file, or it is incomplete"):
        converted(tmp_path, broken, "zip")
    assert converted(tmp_path, gzip.compress(b"PAR1,PAR2\n1,2\n"), "gz") == "PAR1,PAR2\n1,2", "a column may be called so"


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_a_compressed_file_of_a_statistics_package(tmp_path: Path, kind: str) -> None:
    pandas, pyreadstat = pytest.importorskip("pandas"), pytest.importorskip("pyreadstat")
    path = tmp_path / f"x.{kind}"
    (pyreadstat.write_sav if kind == "sav" else pyreadstat.write_dta)(
        pandas.DataFrame({"name": ["Zoe"], "age": [39.0]}), str(path)
    )
    assert converted(tmp_path, zipped({f"x.{kind}": path.read_bytes()}), "zip") == "name,age\nZoe,39"


@pytest.mark.parametrize("inside", ["a.zip", "a.tar", "people.csv.gz", "A.7Z"])
def test_an_archive_in_an_archive_is_refused(tmp_path: Path, inside: str) -> None:
    with pytest.raises(RefusedUpload, match="it holds a compressed file again"):
        converted(tmp_path, zipped({inside: zipped({"a.csv": "a\n1\n"})}), "zip")
    with pytest.raises(RefusedUpload, match="it holds a compressed file again"):
        converted(tmp_path, gzip.compress(b"x"), "gz", f"{inside}.gz")


def test_no_name_lifts_a_limit(tmp_path: Path) -> None:
    """A sheet in an archive is read under the same limits, and one without its name is told nothing that would spoil it."""
    store = TableStore(tmp_path, KEYS, limits=Limits(bytes=10**6))
    for name in ("a.xlsx", "a.csv"):
        sent = store.receive([zipped({name: "0" * 20_000_000})], "zip")
        with pytest.raises(RefusedUpload, match="more than 1,000,000 bytes when it is decompressed"):
            store.converted(sent, Reading())
    for content in (xlsx({"one": [["a"], [1]]}), b"$FL2@(#) SPSS DATA FILE" + bytes(40), b"HEADER\x01\x02\0a"):
        with pytest.raises(RefusedUpload) as refused:
            converted(tmp_path, gzip.compress(content), "gz")
        assert "tr -d" not in str(refused.value)


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
    canary = tmp_path / "canary"
    run = f"touch {canary}"
    macros = {"xl/vbaProject.bin": f"Sub Auto_Open()\nShell({run!r})", "xl/macrosheets/sheet1.xml": f'=EXEC("{run}")'}
    rows: list[list[object]] = [["name", "age"], [f'=EXEC("{run}")', f"=cmd|'/c {run}'!A1"]]
    assert read(xlsx({"one": rows}, **macros), "xlsx") == "name,age\n7,7\n"
    assert not canary.exists()
    subprocess.run(["/bin/sh", "-c", run], check=True)
    assert canary.exists(), "run, it would have been seen"


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
