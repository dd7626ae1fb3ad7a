"""`cloister declare` writes a file that `cloister query` reads, from names and codebooks, and never from rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from cloister.cli.declared import load
from cloister.cli.main import cli
from cloister.errors import InvalidParameter
from cloister.tables import Category, Integer, PrivateTable

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
    assert said == "v.toml: 5 of 6 columns are declared; left to you: town\n"
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
