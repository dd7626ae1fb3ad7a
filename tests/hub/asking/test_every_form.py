"""Whatever was charged can be opened again, in every form: also about columns and values that an older version took."""

from __future__ import annotations

import datetime
import json
import xml.etree.ElementTree as ET
import zipfile
from io import BytesIO
from typing import Any

import pytest

from cloister.errors import InvalidDeclaration
from cloister.hub.records.declarations import check_declaration
from cloister.printable import is_printable, kept
from cloister.privacy import ApproxDP
from tests.hub.asking.conftest import MAY, Stage

NAMES = ["a\tb", "a\u202eb", "a\u2028b", "a\x01b", "a\u200db", "x" * 400, "a\ue000", "a\u200b", 'a"b\u00a0']
VALUES = ["x\u2028y", "x\u202ey", "\x07", "\ufffe", "z" * 3000, "👩‍🔬" * 60, "\u200b"]


def declared(name: str, values: list[str]) -> dict[str, Any]:
    columns = {
        name: {"kind": "category", "values": ["F", "M"]},
        "c": {"kind": "category", "values": values},
        "t": {"kind": "text"},
    }
    return {"columns": columns, "size": 300}


@pytest.mark.parametrize("name", [each for each in NAMES if not each.startswith('a"') and each != "a\u200db"])
def test_a_column_of_such_a_name_is_not_declared(name: str) -> None:
    with pytest.raises(InvalidDeclaration, match="1 to 200 characters"):
        check_declaration("people", declared(name, ["F", "M"]))


@pytest.mark.parametrize("value", [each for each in VALUES if len(each) < 50])
def test_a_category_of_such_a_text_is_not_declared(value: str) -> None:
    with pytest.raises(InvalidDeclaration, match="not printable"):
        check_declaration("people", declared("a", [value, "M"]))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_charged_can_be_opened_again_in_every_form(stage: Stage, name: str) -> None:
    rows = {name: ["F", "M"] * 150, "c": (VALUES * 50)[:300], "t": (VALUES * 50)[:300]}
    with kept():  # as an older version took them
        row = stage.house.sample_data_set(
            "old", owner=stage.owner, rows=rows, declaration=declared(name, VALUES), budget=ApproxDP(100, "1e-5")
        )
    stage.house.grant(row, stage.ana, by=stage.owner, actions=MAY)
    quoted = '"' + name.replace('"', '""') + '"'
    groups = [quoted, "c", "t"] if name == NAMES[1] else [quoted]
    for group in groups:
        sent = {"sql": f"SELECT {group}, COUNT(*) AS n FROM old GROUP BY {group}", "spend": "20"}
        first = stage.post("/questions", sent, **{"Idempotency-Key": f"key {group[:20]!r}"})
        assert first.status_code == 201, first.text
        again = stage.post("/questions", sent, **{"Idempotency-Key": f"key {group[:20]!r}"})
        assert (again.status_code, again.content) == (first.status_code, first.content)
        number = first.json()["id"]
        for path in (f"/releases/{number}", f"/releases/{number}/margins"):
            assert stage.get(path).status_code == 200, path
        for form in ("csv", "xlsx", "parquet", "readable", "json"):
            answer = stage.get(f"/releases/{number}/download/{form}")
            assert answer.status_code == 200, form
            if form in ("csv", "xlsx"):
                with zipfile.ZipFile(BytesIO(answer.content)) as files:
                    assert all(is_printable(files.read(each).decode(), lines=True) for each in files.namelist())
            elif form == "readable":
                assert is_printable(answer.text, lines=True)
                assert json.loads(answer.text)["columns"]
        page = stage.ana.client.get(f"/releases/{number}")
        assert page.status_code == 200
        assert is_printable(page.text, lines=True)
        picture = stage.ana.client.get(f"/releases/{number}/chart.svg")
        if picture.status_code != 404:  # a single bar is none
            assert picture.status_code == 200
            ET.fromstring(picture.content)
    assert stage.owner.client.get("/datasets/old").status_code == 200


@pytest.mark.parametrize("part", ["unit", "through"])
@pytest.mark.parametrize("value", [3, float("nan"), ["a"], {"a": 1}, datetime.date(2020, 1, 1)])
def test_what_is_no_text_names_no_person(part: str, value: object) -> None:
    with pytest.raises(InvalidDeclaration, match="it is not a name") as refused:
        check_declaration("people", {**declared("a", ["F", "M"]), part: value})
    assert f'{part}="patient"' in str(refused.value)
