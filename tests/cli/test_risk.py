"""`cloister risk`, as a person or a program would use it."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from cloister.cli.main import cli
from cloister.errors import CloisterError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("age,sex,ill\n30,F,flu\n30,F,gout\n45,M,flu\n45,M,flu\n")
    (tmp_path / "town.csv").write_text("age,sex\n" + "30,F\n45,M\n" * 10)
    return tmp_path


def cloister(*arguments: str, at: Path, code: int = 0, refused: bool = False) -> str:
    with chdir(at):
        said = CliRunner().invoke(cli, ["risk", *arguments])
    if refused:
        assert isinstance(said.exception, CloisterError), said.output
        return str(said.exception)
    assert said.exit_code == code, said.output
    return said.output


@pytest.mark.parametrize("name", ["people.PARQUET", "people.pq", "people.CSV.GZ"])
def test_the_ending_of_a_name_is_read_in_capitals_too(folder: Path, name: str) -> None:
    import gzip

    import polars

    if name.endswith("GZ"):
        (folder / name).write_bytes(gzip.compress((folder / "people.csv").read_bytes()))
    else:
        polars.read_csv(folder / "people.csv").write_parquet(folder / name)
    assert json.loads(cloister(name, "--quasi", "age,sex", "--json", at=folder))["k"] == 2


def test_it_answers_the_question(folder: Path) -> None:
    said = cloister("people.csv", "--quasi", "age, sex", "--sensitive", "ill", at=folder)
    assert "Everyone looks like at least 1 other in age and sex" in said
    assert "'ill' of 2 rows is disclosed all the same" in said
    assert "not differential privacy" in said


def test_a_program_reads_json(folder: Path) -> None:
    found = json.loads(cloister("people.csv", "--quasi", "age,sex", "--sensitive", "ill", "--json", at=folder))
    assert (found["k"], found["l"], found["prosecutor"], found["sensitive"]["ill"]["told"]) == (2, 1, 0.5, 2)
    listed = json.loads(cloister("people.csv", "--quasi", "age,sex", "--population", "town.csv", "--json", at=folder))
    assert (listed["journalist"], listed["population_uniques"]["how"]) == (0.1, "counted")
    sized = json.loads(cloister("people.csv", "--quasi", "age,sex", "--population", "83_000_000", "--json", at=folder))
    assert sized["population_uniques"]["people"] == 0


@pytest.mark.parametrize("ending", [".html", ".json", ".txt"])
def test_the_report_is_written(folder: Path, ending: str) -> None:
    said = cloister("people.csv", "--quasi", "age", "--report", f"risk{ending}", at=folder)
    assert f"saved as risk{ending}" in said
    text = (folder / f"risk{ending}").read_text(encoding="utf-8")
    assert "people.csv" in text or ending != ".html"
    if ending == ".json":
        assert json.loads(text)["k"] == 2


def test_a_threshold_is_an_exit_code(folder: Path) -> None:
    assert "4 rows have a chance" in cloister("people.csv", "--quasi", "age", "--threshold", "0.4", at=folder, code=1)
    cloister("people.csv", "--quasi", "age", "--threshold", "0.5", at=folder)


def test_what_cannot_be_looked_at_is_refused(folder: Path) -> None:
    assert "--quasi is missing" in cloister("people.csv", at=folder, refused=True)
    assert "the file is missing" in cloister("--quasi", "age", at=folder, refused=True)
    assert "no such column" in cloister("people.csv", "--quasi", "town", at=folder, refused=True)
    assert "its ending" in cloister("people.csv", "--quasi", "age", "--report", "risk.pdf", at=folder, refused=True)
    assert "no such file" in cloister("people.csv", "--quasi", "age", "--population", "absent.csv", at=folder, refused=True)
