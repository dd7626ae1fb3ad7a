"""An answer outside the hub: as a workbook, on paper, as a citation."""

from __future__ import annotations

import html
import io
import re
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from cloister.errors import InvalidParameter
from cloister.hub import workbooks
from cloister.hub.workbooks import Sheet, workbook
from cloister.session.examples import small_release
from tests.hub.asking.conftest import BY_SEX, MAY, Stage
from tests.hub.asking.test_pages import kept
from tests.hub.web.browser import strict

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
HOSTILE = [
    "=1+1",
    "@SUM(A1)",
    "-2",
    "+cmd|' /C calc'!A0",
    '=HYPERLINK("http://x.example")',
    "\ufeff=1",
    "＝1",
    "_x003D_1",
    "<f>1</f>",
    "plain",
]


def read(body: bytes) -> list[list[list[Any]]]:
    """The sheets of a workbook, as the standard says that they are read: texts as text, numbers as numbers."""
    with zipfile.ZipFile(io.BytesIO(body)) as parts:
        listed = ET.fromstring(parts.read("xl/workbook.xml")).findall(f"{MAIN}sheets/{MAIN}sheet")
        assert all(b"<f" not in parts.read(each) or each == "xl/styles.xml" for each in parts.namelist())
        return [_sheet(parts.read(f"xl/worksheets/sheet{place}.xml")) for place, _ in enumerate(listed, 1)]


def _sheet(body: bytes) -> list[list[Any]]:
    found = []
    for row in ET.fromstring(body).findall(f"{MAIN}sheetData/{MAIN}row"):
        cells: list[Any] = []
        for cell in row:
            column = workbooks._named(1, len(cells))[:-1]
            while not cell.attrib["r"].startswith(column) or cell.attrib["r"] != f"{column}{row.attrib['r']}":
                cells.append(None)
                column = workbooks._named(1, len(cells))[:-1]
            cells.append(_value(cell))
        found.append(cells)
    return found


def _value(cell: ET.Element) -> Any:
    if cell.attrib.get("t") == "inlineStr":
        text = cell.findtext(f"{MAIN}is/{MAIN}t") or ""
        return re.sub(r"_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found[1], 16)), text)
    number = float(cell.findtext(f"{MAIN}v") or "")
    return bool(number) if cell.attrib.get("t") == "b" else number


def test_a_workbook_has_the_margins_and_the_provenance(stage: Stage):
    told = stage.ask(BY_SEX, "0.5", purpose="a look")
    answer = stage.get(f"/releases/{told['id']}/download/xlsx?confidence=0.9")
    assert answer.headers["content-type"] == workbooks.MEDIA_TYPE
    assert answer.headers["content-disposition"] == f'attachment; filename="release-{told["id"]}.xlsx"'
    table, facts = read(answer.content)
    margins = stage.get(f"/releases/{told['id']}/margins?confidence=0.9").json()["margins"]["n"]
    columns = told["columns"]
    assert table == [["sex", "n", "n_margin"], *map(list, zip(columns["sex"], columns["n"], margins, strict=True))]
    said = dict(facts)
    assert (said["Query"], said["Purpose"], said["Guarantee"]) == (BY_SEX, "a look", "ε = 0.5")
    assert said["Margins of error"] == "90 % confidence, of each cell by itself"
    assert said["Citation"].endswith(f"/releases/{told['id']}")
    assert said["Digest of the plan"] in stage.ana.client.get(f"/releases/{told['id']}").text
    assert answer.content == stage.get(f"/releases/{told['id']}/download/xlsx?confidence=0.9").content
    chinese = stage.ana.client.get(f"/releases/{told['id']}/download/xlsx", headers={"accept-language": "zh-CN"})
    assert dict(read(chinese.content)[1])["查询"] == BY_SEX


def test_no_cell_of_a_workbook_is_a_formula(stage: Stage):
    values = [each for each in HOSTILE if "\ufeff" not in each]
    declaration = {"columns": {"=HYPERLINK(1)": {"kind": "category", "values": values}}, "size": len(values)}
    odd = stage.house.sample_data_set("odd", owner=stage.owner, rows={"=HYPERLINK(1)": values}, declaration=declaration)
    stage.house.grant(odd, stage.ana, by=stage.owner, actions=MAY)
    told = stage.ask('SELECT "=HYPERLINK(1)", COUNT(*) AS n FROM odd GROUP BY "=HYPERLINK(1)"', purpose="=1+1")
    stage.post(f"/releases/{told['id']}/title", {"title": "=2+2"})
    table, facts = read(stage.get(f"/releases/{told['id']}/download/xlsx").content)
    assert [line[0] for line in table] == ["=HYPERLINK(1)", *told["columns"]["=HYPERLINK(1)"]]
    assert {"=1+1", "=2+2"} <= {value for _, value in facts}


def test_a_cell_is_what_it_was_and_nothing_that_can_be_computed():
    values = [
        *HOSTILE,
        3,
        -2.5,
        True,
        None,
        float("nan"),
        float("inf"),
        10**15,
        date(1900, 2, 28),
        date(2026, 3, 1),
        "a\r\nb\x01",
    ]
    [[head, *rows]] = read(workbook([Sheet(name="[a]/b", head=["=1"], rows=[[each] for each in values], widths={})]))
    shown = [line[0] if line else None for line in rows]
    assert head == ["=1"]
    assert shown[: len(HOSTILE)] == [each.replace("\ufeff", "⟨U+FEFF⟩") for each in HOSTILE]
    rest = [3, -2.5, True, None, "–", "∞", "1000000000000000", "1900-02-28", 46082, "a\nb⟨U+0001⟩"]
    assert shown[len(HOSTILE) :] == rest
    quoted = workbook([Sheet(name="a", head=["a"], rows=[[each] for each in HOSTILE], widths={})])
    with zipfile.ZipFile(io.BytesIO(quoted)) as parts:
        styles = ET.fromstring(parts.read("xl/styles.xml")).findall(f"{MAIN}cellXfs/{MAIN}xf")
        cells = list(ET.fromstring(parts.read("xl/worksheets/sheet1.xml")).iter(f"{MAIN}c"))
    marked = [bool(styles[int(cell.attrib["s"])].get("quotePrefix")) for cell in cells[1:]]
    assert marked == [True] * 7 + [False] * 3, "typed again it would be computed"


def test_a_cell_is_as_long_as_a_cell_may_be():
    """Counted as Excel counts: a character beyond the first 65,536 is two."""
    for text in ("x" * 40_000, "😀" * 40_000, "x" + "😀" * 40_000):
        [[_, [told]]] = read(workbook([Sheet(name="a", head=["a"], rows=[[text]], widths={})]))
        assert 32_765 <= len(told.encode("utf-16-le")) // 2 <= 32_767
        assert told == f"{text[: len(told) - 1]}…"


def test_a_table_that_no_sheet_holds_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workbooks, "MOST_ROWS", 3)
    with pytest.raises(InvalidParameter, match="at most 3 rows"):
        workbook([Sheet(name="a", head=["n"], rows=[[1], [2], [3]], widths={})])


def test_an_answer_on_paper_has_everything_open(stage: Stage):
    told = stage.ask(BY_SEX, "0.5", purpose="a look")
    page = stage.ana.client.get(f"/releases/{told['id']}")
    strict(page.text)
    folded = re.search(r"<details class=\"fold\"><summary>Mechanism and digest(.*?)</details>", page.text, re.DOTALL)
    assert folded is not None
    assert "Digest of the plan" in folded[1]
    assert "discrete Laplace noise" in folded[1]
    link = html.unescape(re.search(r'href="(/releases/[^"]+/print[^"]*)"', page.text)[1])
    printed = stage.ana.client.get(link.replace("0.95", "0.99")).text
    strict(printed)
    content = printed[printed.index("<h1>") :]
    assert "<details" not in content
    cited = re.search(
        r"[^>]*\(2\d{3}\)\. Count of people by sex\. Differentially private answer about people, ε = 0\.5[^<]*", printed
    )
    assert cited is not None
    assert cited[0] in page.text
    for said in (
        BY_SEX,
        "a look",
        "Digest of the plan",
        "margins of error at 99 % confidence",
        "/chart.svg?confidence=0.99",
        "Ana",
    ):
        assert said in html.unescape(content)
    assert stage.house.person("analyst").client.get(link).status_code == 404


def test_an_answer_that_protects_nobody_cites_no_guarantee(stage: Stage):
    release = small_release()
    number = kept(stage, replace(release, provenance=replace(release.provenance, marked=True)))
    page, printed = (stage.ana.client.get(f"/releases/{number}{more}").text for more in ("", "/print"))
    assert "Citation" not in page
    assert "Citation" not in printed
    assert "This answer protects nobody." in printed
    facts = dict(read(stage.ana.client.get(f"/releases/{number}/download/xlsx").content)[1])
    assert facts["Guarantee"] == "none: the noise came from a test's generator"
    assert "Citation" not in facts
