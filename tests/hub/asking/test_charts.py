"""The chart of an answer: of any number of rows, page after page; as a file; and what it says of cells that say nothing."""

from __future__ import annotations

import csv
import html
import io
import re
import xml.etree.ElementTree as ET
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np

from cloister.session.examples import small_release
from cloister.session.releases.frames import Series
from tests.hub.asking.conftest import BY_SEX, MAY, Stage
from tests.hub.asking.test_exported import read
from tests.hub.asking.test_pages import kept
from tests.hub.web.browser import strict

CODES = [f"I{number:03}" for number in range(150)]


def coded(stage: Stage) -> str:
    """An answer of a hundred and fifty groups."""
    declaration = {"columns": {"code": {"kind": "category", "values": CODES}}, "size": 300}
    row = stage.house.sample_data_set("coded", owner=stage.owner, rows={"code": CODES * 2}, declaration=declaration)
    stage.house.grant(row, stage.ana, by=stage.owner, actions=MAY)
    number: str = stage.ask("SELECT code, COUNT(*) AS n FROM coded GROUP BY code", "0.5")["id"]
    return number


def keys(svg: bytes) -> set[str]:
    return set(re.findall(r">(I\d{3})<", svg.decode()))


def test_a_chart_of_many_rows_is_paged_and_none_is_lost(stage: Stage):
    number = coded(stage)
    page = stage.ana.client.get(f"/releases/{number}").text
    strict(page)
    sources = [html.unescape(each) for each in re.findall(r'src="(/releases/[^"]+chart[^"]+)"', page)]
    assert len(sources) == 3
    assert "page 3 of 3" in page
    shown = [stage.ana.client.get(each) for each in sources]
    assert [each.status_code for each in shown] == [200] * 3
    for each in shown:
        ET.fromstring(each.content)
    assert set().union(*(keys(each.content) for each in shown)) == set(CODES)
    assert keys(shown[0].content) == set(CODES[:60])
    assert stage.ana.client.get(f"/releases/{number}/chart.svg?page=4").status_code == 404
    assert page.index("<figure") < page.index("<tbody"), "not below a long table"
    printed = stage.ana.client.get(f"/releases/{number}/print").text
    assert printed.count('<img class="chart"') == 3


def test_a_chart_leaves_whole_as_svg_and_png(stage: Stage):
    number = coded(stage)
    svg, png = (stage.ana.client.get(f"/releases/{number}/download/{form}") for form in ("svg", "png"))
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert keys(svg.content) == set(CODES)
    assert png.content.startswith(b"\x89PNG\r\n")
    assert stage.house.person("analyst").client.get(f"/releases/{number}/download/svg").status_code == 404
    told = stage.ask(BY_SEX, "0.5")
    page = stage.ana.client.get(f"/releases/{told['id']}").text
    assert f"/releases/{told['id']}/download/png" in page
    assert page.index("<figure") > page.index("<tbody")
    one = stage.ask("SELECT COUNT(*) AS n FROM people", "0.1")["id"]
    assert stage.ana.client.get(f"/releases/{one}/download/svg").status_code == 422


def doubtful(values: list[Any], keys_: list[Any]) -> Any:
    release = small_release()
    [name], [key] = release.readings, release.groups
    reading = replace(release.readings[name], values=np.array(values))
    return replace(release, readings={name: reading}, groups={key: Series("text", np.array(keys_, dtype=object))})


def test_a_count_below_zero_is_marked_and_explained(stage: Stage):
    number = kept(stage, doubtful([-50, 100], ["F", "M"]))
    page = stage.ana.client.get(f"/releases/{number}").text
    strict(page)
    assert page.count("This value is not possible") == 1
    assert "A count below zero stands for a small one" in page
    assert "Hollow or crossed marks" in page
    plain = stage.ana.client.get(f"/releases/{kept(stage, doubtful([50, 100], ['F', 'M']))}").text
    assert "below zero" not in plain
    assert "Hollow" not in plain


def test_null_reads_the_same_everywhere(stage: Stage):
    number = kept(stage, doubtful([50, 100], [None, ""]))
    page = stage.ana.client.get(f"/releases/{number}").text
    assert ">NULL</span>" in page
    assert ">NULL<" in stage.ana.client.get(f"/releases/{number}/chart.svg").text
    files = {form: stage.ana.client.get(f"/releases/{number}/download/{form}").content for form in ("csv", "xlsx")}
    with zipfile.ZipFile(io.BytesIO(files["csv"])) as archive:
        lines = list(csv.reader(io.StringIO(archive.read("release.csv").decode())))
    assert [line[0] for line in lines[1:]] == ["NULL", ""]
    assert [line[0] for line in read(files["xlsx"])[0][1:]] == ["NULL", ""]


def test_a_chart_that_no_file_holds_is_saved_by_the_page(stage: Stage) -> None:
    codes = [f"I{number:03}" for number in range(700)]
    declared = {"columns": {"code": {"kind": "category", "values": codes}}}
    coded = stage.house.sample_data_set("coded", owner=stage.owner, declaration=declared, rows={"code": codes * 2})
    stage.house.grant(coded, stage.ana, by=stage.owner, actions=MAY)
    number = stage.ask("SELECT code, COUNT(*) AS n FROM coded GROUP BY code", "0.9")["id"]
    page = stage.ana.client.get(f"/releases/{number}").text
    assert "/download/svg" not in page
    assert "/download/png" not in page
    assert "A file holds a chart of at most 600 rows" in page
    links = re.findall(r'<a href="([^"]+)" download="release-[^"]+-(\d+).svg">', page)
    assert [place for _, place in links] == [str(place) for place in range(1, 13)]
    last = stage.ana.client.get(html.unescape(links[-1][0]))
    assert last.headers["content-type"].startswith("image/svg+xml")
    assert "I699" in last.text
    assert stage.ana.client.get(f"/releases/{number}/download/svg").status_code == 422


def test_truth_values_read_the_same_in_the_chart_and_in_the_table(stage: Stage):
    declaration = {"columns": {"smokes": {"kind": "boolean"}}, "size": 40}
    row = stage.house.sample_data_set("smokers", owner=stage.owner, rows={"smokes": [True, False] * 20}, declaration=declaration)
    stage.house.grant(row, stage.ana, by=stage.owner, actions=MAY)
    number = stage.ask("SELECT smokes, COUNT(*) AS n FROM smokers GROUP BY smokes", "0.5")["id"]
    for language, words in (("en", ("no", "yes")), ("zh-CN", ("否", "是"))):
        drawn = [
            stage.ana.client.get(f"/releases/{number}/{each}", headers={"Accept-Language": language}).text
            for each in ("chart.svg", "download/svg")
        ]
        for svg in drawn:
            assert all(f">{word}<" in svg for word in words)
            assert "True" not in svg
            assert "False" not in svg


def test_a_category_that_is_called_null_is_told_apart_everywhere(stage: Stage) -> None:
    number = kept(stage, doubtful([50, 100], [None, "NULL"]))
    assert "NULL (missing)" in stage.ana.client.get(f"/releases/{number}").text
    assert ">NULL (missing)<" in stage.ana.client.get(f"/releases/{number}/chart.svg").text
    files = {form: stage.ana.client.get(f"/releases/{number}/download/{form}").content for form in ("csv", "xlsx")}
    with zipfile.ZipFile(io.BytesIO(files["csv"])) as archive:
        lines = list(csv.reader(io.StringIO(archive.read("release.csv").decode())))
    assert [line[0] for line in lines[1:]] == ["NULL (missing)", "NULL"]
    assert [line[0] for line in read(files["xlsx"])[0][1:]] == ["NULL (missing)", "NULL"]
