"""`cloister anonymize`: small tables in memory, large ones through DuckDB, and nothing half written."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from cloister.anonymize import Anonymizer
from cloister.cli import anonymize as command
from cloister.cli.anonymize import model_of
from cloister.cli.main import cli
from cloister.errors import CloisterError, InvalidParameter

ASKED = ["--quasi", "age,town", "--model", "k=3", "--search", "mondrian"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{20 + number * 7 % 40},{'Ulm' if number % 3 else 'Bonn'},person {number}" for number in range(60)]
    path.write_text("\n".join(["age,town,name", *rows]), encoding="utf-8")
    return path


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["anonymize", *map(str, words)], catch_exceptions=False)


def refused(*words: object) -> CloisterError:
    with pytest.raises(CloisterError) as found:
        CliRunner().invoke(cli, ["anonymize", *map(str, words)], catch_exceptions=False, standalone_mode=False)
    assert found.value.instead
    return found.value


def test_what_stays_as_it_is_is_told_once_in_the_words_of_the_command(people: Path) -> None:
    """No warning of Python is printed besides, with a line of code and its parameters."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        said = run(people, *ASKED)
    assert "if others also know 'name'" in said.output.replace("If", "if")
    assert not [each for each in told if "name" in str(each.message)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_large_table_becomes_what_a_small_one_becomes(people: Path, tmp_path: Path, ending: str) -> None:
    found = []
    for way in ("--in-memory", "--larger-than-memory"):
        out = tmp_path / f"released{way}.{ending}"
        said = run(people, *ASKED, "--identifying", "name", way, "-o", out, "--json")
        assert said.exit_code == 0
        report = json.loads(said.stdout)
        assert report["models"][0]["holds"]
        assert report["dropped"] == ["name"]
        found.append(sorted((pl.read_csv(out) if ending == "csv" else pl.read_parquet(out)).rows()))
    assert found[0] == found[1]


def test_moments_are_written_alike_both_ways(tmp_path: Path) -> None:
    source = tmp_path / "people.csv"
    source.write_text("age,seen\n" + "".join(f"{30 + i},2024-01-0{1 + i}T03:04:05{'.5' * i}\n" for i in (0, 1) * 2))
    for way in ("--in-memory", "--larger-than-memory"):
        out = tmp_path / "released.csv"
        run(source, "--quasi", "age", "--model", "k=2", "--search", "mondrian", way, "--out", out)
        first, *rows = out.read_text().split("\n")[:-1]
        cells = sorted(row.partition(",")[2] for row in rows)
        assert (first, cells[0], cells[3][:21]) == ("age,seen", "2024-01-01 03:04:05", "2024-01-02 03:04:05.5")


def test_a_large_file_is_never_read_into_memory(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_LARGE", {".csv": 100})

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Anonymizer, "fit_transform", refuse)
    out = tmp_path / "released.parquet"
    said = run(people, *ASKED, "--identifying", "name", "--out", out, "--memory-limit", "200MiB")
    assert "3-anonymity" in said.output
    assert pl.read_parquet(out).height == 60


def test_what_needs_the_table_in_memory_says_so(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "released.csv"
    assert "--out is missing" in str(refused(people, *ASKED, "--larger-than-memory"))
    certified = [*ASKED, "--out", out, "--certificate", tmp_path / "certificate.txt", "--larger-than-memory"]
    assert "--certificate wants" in str(refused(people, *certified))
    grouped = ["--quasi", "age,town", "--search", "microaggregation", "--out", out, "--larger-than-memory"]
    assert "microaggregation wants" in str(refused(people, *grouped))
    assert "no such folder" in str(refused(people, *ASKED, "--out", tmp_path / "none" / "released.csv"))
    assert [path.name for path in tmp_path.iterdir()] == ["people.csv"]


@pytest.mark.parametrize("way", ["--in-memory", "--larger-than-memory"])
def test_ended_by_a_signal_nothing_is_left(people: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    out = tmp_path / "released.csv"
    out.write_text("of yesterday", encoding="utf-8")

    def update(*, description: str, completed: float) -> None:
        if description in ("writing", "cutting"):
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(command, "progress_bar", lambda *_, **__: nullcontext(update))
    before = signal.getsignal(signal.SIGTERM)
    said = run(people, *ASKED, "--identifying", "name", way, "--out", out)
    assert said.exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
    assert out.read_text(encoding="utf-8") == "of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "released.csv"]


@pytest.fixture
def computed(tmp_path: Path) -> Path:
    """Texts that a spreadsheet would compute, numbers that are negative, and numbers that are texts."""
    path = tmp_path / "computed.csv"
    towns = ["=1+1", "@SUM(A1)", "-A1", "+B2", "Ulm", "\tBonn"]
    rows = [
        f'{30 + number % 2},"{towns[number % 6]}",{-5 - number % 2},-{number % 3}{"x" if number % 3 else ""}'
        for number in range(60)
    ]
    path.write_text("\n".join(["age,town,pay,@note", *rows]), encoding="utf-8")
    return path


ASKED_OF_COMPUTED = ["--quasi", "age", "--sensitive", "pay", "--model", "k=3", "--search", "mondrian"]


def test_values_stay_as_they_are_for_programs_and_the_command_names_what_a_spreadsheet_computes(
    computed: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    said = run(computed, *ASKED_OF_COMPUTED, "--out", out)
    assert set(pl.read_csv(out)["town"].to_list()) == set(pl.read_csv(computed)["town"].to_list())
    assert "a spreadsheet would compute texts in 'town', '@note'" in said.stderr
    assert "--for-spreadsheets" in said.stderr
    assert "spreadsheet" not in run(computed, *ASKED_OF_COMPUTED, "--identifying", "town,@note", "--out", out).stderr


@pytest.mark.parametrize("to", ["file", "standard output"])
def test_for_spreadsheets_no_text_is_computed_and_numbers_stay(computed: Path, tmp_path: Path, to: str) -> None:
    out, paper = tmp_path / "out.csv", tmp_path / "paper.json"
    where = ["--out", out] if to == "file" else []
    said = run(computed, *ASKED_OF_COMPUTED, *where, "--for-spreadsheets", "--certificate", paper)
    assert "a spreadsheet would" not in said.stderr
    body = out.read_bytes() if to == "file" else said.stdout_bytes
    found = pl.read_csv(body)
    assert set(found["town"].to_list()) == {"'=1+1", "'@SUM(A1)", "'-A1", "'+B2", "Ulm", "'\tBonn"}
    assert set(found["pay"].to_list()) == {-5, -6}
    assert set(found["'@note"].to_list()) == {"-0", "'-1x", "'-2x"}
    told = json.loads(paper.read_text(encoding="utf-8"))
    assert told["digest"] == hashlib.sha256(body).hexdigest()
    assert told["made"]["an apostrophe before texts that a spreadsheet would compute"] == "town, @note"


def test_for_spreadsheets_is_of_csv_in_memory(computed: Path, tmp_path: Path) -> None:
    asked = [computed, *ASKED_OF_COMPUTED, "--for-spreadsheets"]
    assert "CSV alone" in refused(*asked, "--out", tmp_path / "out.parquet").why
    assert "--for-spreadsheets" in refused(*asked, "--out", tmp_path / "out.csv", "--larger-than-memory").why


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("k=5", "5-anonymity"),
        ("l=3", "3-diversity"),
        ("l=2.5:entropy", "entropy 2.5-diversity"),
        ("l=3:recursive:2", "recursive (2, 3)-diversity"),
        ("t=0.2", "0.2-closeness"),
        ("t=0.2:ordered", "0.2-closeness (ordered)"),
        ("beta=1", "1-likeness"),
        ("beta=1:enhanced", "enhanced 1-likeness"),
        ("delta=2", "2-disclosure privacy"),
        ("alpha=0.5:5", "(0.5, 5)-anonymity"),
    ],
)
def test_every_model_can_be_written(text: str, name: str) -> None:
    assert model_of(text).name == name


@pytest.mark.parametrize(
    "text", ["k", "k=", "k=5:6", "l=3:recursive", "l=3:odd", "t=x", "beta=1:basic:2", "alpha=0.5", "m=3", "k=1e400", ""]
)
def test_no_model(text: str) -> None:
    with pytest.raises(InvalidParameter):
        model_of(text)
