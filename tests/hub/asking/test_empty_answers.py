"""An answer whose groups are all gone was charged like any other: its page, its chart, its margins and all of its files open."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from cloister.session import Release
from tests.hub.asking.conftest import Stage
from tests.hub.web.browser import strict

STATISTICS = "COUNT(*) AS n, AVG(age) AS mean, MEDIAN(age) AS middle, MAX(age) AS top, MODE(sex) AS mode, STDDEV(age) AS spread"
GONE = f"SELECT sex, {STATISTICS} FROM people GROUP BY sex HAVING COUNT(*) > 100000"
ROLLED = "SELECT sex, COUNT(*) AS n, SUM(age) AS s FROM people GROUP BY ROLLUP (sex) HAVING COUNT(*) > 100000"


@pytest.mark.parametrize("sql", [GONE, ROLLED])
def test_it_opens_in_every_way(stage: Stage, sql: str):
    told = stage.ask(sql, "0.5")
    number = told["id"]
    page = stage.ana.client.get(f"/releases/{number}")
    assert page.status_code == 200
    strict(page.text)
    drawn = stage.ana.client.get(f"/releases/{number}/chart.svg")
    assert (drawn.status_code, drawn.headers["content-type"]) == (200, "image/svg+xml")
    assert "no group is left to show" in drawn.text
    for path in (f"/releases/{number}", f"/releases/{number}/margins", f"/releases/{number}/margins?joint=true"):
        assert stage.get(path).status_code == 200
    files = {
        form: stage.ana.client.get(f"/releases/{number}/download/{form}")
        for form in ("csv", "xlsx", "parquet", "readable", "json")
    }
    assert {form: answer.status_code for form, answer in files.items()} == dict.fromkeys(files, 200)
    with zipfile.ZipFile(io.BytesIO(files["csv"].content)) as archive:
        lines = archive.read("release.csv").decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("sex,n,n_margin,")
    assert json.loads(files["readable"].content)["columns"]["n"] == []
    assert Release.from_json(files["json"].text).to_pydict()["n"] == []
