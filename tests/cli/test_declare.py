"""`cloister declare` writes a file that `cloister query` reads, from names and codebooks, and never from rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloister.cli.declared import load
from cloister.cli.main import cli
from cloister.errors import InvalidParameter
from cloister.tables import Category, Integer, Moment, Place, PrivateTable

CANARY = "kestrel"


def run(*words: str, folder: Path) -> str:
    answer = CliRunner().invoke(cli, ["declare", *words], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    assert CANARY not in answer.output
    return answer.output


def test_from_names_codebook_and_line_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text(f"Patient ID,Age,dept,q1,q2,town\n1,431,{CANARY},7,9,{CANARY}\n")
    Path("book.csv").write_text("name,values\ndept,A=Surgery;B=Medicine\n")
    setting = ("--set", "q*=integer 1..5", "--set", "town=drop", "--because", "the questionnaire")
    said = run(
        "visits.csv",
        "--codebook",
        "book.csv",
        *setting,
        "--unit",
        "Patient ID",
        "--max-rows",
        "4",
        "-o",
        "v.toml",
        folder=tmp_path,
    )
    assert said == "v.toml: 5 of 6 columns are declared\n"  # a column that is dropped is decided
    text = Path("v.toml").read_text()
    assert 'dept = "the codebook book.csv"' in text
    assert CANARY not in text
    table = load(Path("v.toml"))[0]["visits"]
    assert isinstance(table, PrivateTable)
    assert (table.unit, table.max_rows) == ("Patient ID", 4)
    assert (table.columns["Age"], table.columns["q2"]) == (Integer(0, 120), Integer(1, 5))
    assert table.columns["dept"] == Category(["A", "B"])
    again = run("visits.csv", "--codebook", "v.toml", "--no-suggestions", folder=tmp_path)
    assert again == text


@pytest.mark.parametrize("words", [(), ("--unit", "patient_id"), ("--unit", "patient_id", "--max-rows", "3")])
def test_what_is_written_of_an_identifier_opens_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """It is the unit where nothing else was said: rows of one person are protected together, if it names people."""
    monkeypatch.chdir(tmp_path)
    Path("visits.csv").write_text("patient_id,age\n1,40\n1,41\n")
    said = run("visits.csv", *words, "-o", "v.toml", folder=tmp_path)
    assert ('unit = "patient_id"' in said) == (not words)
    table = load(Path("v.toml"))[0]["visits"]
    assert isinstance(table, PrivateTable)
    assert (table.unit, table.max_rows) == ("patient_id", 3 if "3" in words else 10)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--set", "nothing=integer 1..5"), "no column has such a name"),
        (("--set", "age"), "it is not columns"),
        (("--set", "age=integer many"), "is not a range"),
        (("--unit", "person"), "there is no such column"),
        (("-o", "people.csv"), "there is such a file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], why: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("age\n1\n")
    with pytest.raises(InvalidParameter, match=why):
        CliRunner().invoke(cli, ["declare", "people.csv", *words], catch_exceptions=False)


def test_places_and_moments_go_from_the_line_to_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("trips.csv").write_text("lon,lat,to_x,to_y,at\n4.3,52.0,4.4,52.05,2026-03-01T10:00\n")
    ring = [[4.3, 51.9], [4.5, 51.9], [4.5, 52.1], [4.3, 51.9]]
    feature = {"type": "Feature", "properties": {"name": "East"}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
    Path("towns.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    places = ("--set", "home=place 4.2,51.9,4.5,52.1 of lon,lat", "--set", "goal=place towns.geojson of to_x,to_y")
    moment = ("--set", "at=moment 2026-03-01..2026-03-31", "--because", "the survey's month and town")
    said = run("trips.csv", *places, *moment, "-o", "out.toml", folder=tmp_path)
    assert said == "out.toml: 5 of 5 columns are declared\n"
    text = Path("out.toml").read_text()
    assert 'goal = "the survey\'s month and town"' in text
    table = load(Path("out.toml"))[0]["trips"]
    assert isinstance(table, PrivateTable)
    assert table.columns["home"] == Place(("4.2", "51.9", "4.5", "52.1"), longitude="lon", latitude="lat")
    assert table.columns["at"] == Moment("2026-03-01", "2026-03-31")
    assert table.columns["goal"] == Place(regions=Path("towns.geojson"), longitude="to_x", latitude="to_y")
    again = run("trips.csv", "--codebook", "out.toml", "--no-suggestions", folder=tmp_path)
    assert 'home = { kind = "place", box = ["4.2", "51.9", "4.5", "52.1"], longitude = "lon", latitude = "lat" }' in again
    for wrong in (
        "home=place 4,51,5,52 of lon,nothing",
        "home=place 5,51,4,52 of lon,lat",
        "home=place nowhere.geojson of lon,lat",
    ):
        answer = CliRunner().invoke(cli, ["declare", "trips.csv", "--set", wrong])
        assert answer.exit_code != 0
        assert "Traceback" not in answer.output


def test_blanks_around_a_name_need_not_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody sees them in a file, and there was no way to type them: the options cut them away."""
    monkeypatch.chdir(tmp_path)
    Path("trips.csv").write_text('start lon, start lat,sex ,"height, in m"\n' + "4.3,52,F,1.7\n4.4,52,M,1.8\n" * 40)
    home, sex = "home=place 4.2,51.9,4.5,52.1 of start lon,start lat", "sex=category F|M"
    run("trips.csv", "--set", home, "--set", sex, "--set", '"height, in m"=real 1..2', "-o", "t.toml", folder=tmp_path)
    table = load(Path("t.toml"))[0]["trips"]
    assert isinstance(table, PrivateTable)
    assert {"height, in m", "home", "sex "} <= set(table.columns)
    assert table.columns["home"] == Place(("4.2", "51.9", "4.5", "52.1"), longitude="start lon", latitude=" start lat")
    bounds = "sex=F|M,start lon=0:9.0,start lat=0:99.0"
    learning = ("--model", "LinearRegression", "--features", "sex,start lon", "--target", " start lat", "--bounds", bounds)
    for words in (("learn", *learning), ("risk", "--quasi", "sex"), ("anonymize", "--quasi", "sex", "--out", "out.csv")):
        answer = CliRunner().invoke(cli, [words[0], "trips.csv", *words[1:]], catch_exceptions=False)
        assert answer.exit_code == 0, answer.output
