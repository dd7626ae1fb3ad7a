"""`cloister anonymize`: small tables in memory, large ones through DuckDB, and nothing half written."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner, Result

from cloister.anonymize import Anonymizer
from cloister.cli import anonymize as command
from cloister.cli.main import cli
from cloister.errors import CloisterError

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

    @contextmanager
    def terminated() -> Iterator[Callable[[str, float], None]]:
        yield lambda stage, done: os.kill(os.getpid(), signal.SIGTERM) if stage in ("writing", "cutting") else None

    monkeypatch.setattr(command, "_progress", terminated)
    before = signal.getsignal(signal.SIGTERM)
    said = run(people, *ASKED, "--identifying", "name", way, "--out", out)
    assert said.exit_code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
    assert out.read_text(encoding="utf-8") == "of yesterday"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv", "released.csv"]
