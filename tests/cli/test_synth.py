"""`cloister synth`, as a person or a program would use it."""

from __future__ import annotations

import csv
import json
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("polars")

import cloister as cl
from cloister.cli.main import cli
from cloister.errors import CloisterError
from cloister.ledger import Ledger

BOUNDS = "age=17:90,sex=F|M,pay=0:100.0,rich=yes/no,born=1|2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 people in a file, 500 others, and a model of the first."""
    at = tmp_path_factory.mktemp("synth")
    lines = [
        f"{17 + i % 74},{'FM'[i % 2]},{(i * 7) % 100 + 0.5},{'true' if i % 74 > 37 else 'false'},{1 + i % 2}" for i in range(2000)
    ]
    for name, part in (("people.csv", lines[:1500]), ("others.csv", lines[1500:])):
        (at / name).write_text("age,sex,pay,rich,born\n" + "\n".join(part) + "\n")
    run("fit", "people.csv", "--bounds", BOUNDS, "--epsilon", "3", "--method", "independent", "--out", "model.json", at=at)
    return at


def run(*arguments: str, at: Path, refused: bool = False) -> str:
    with chdir(at):
        said = CliRunner().invoke(cli, ["synth", *arguments])
    if refused:
        assert isinstance(said.exception, CloisterError), said.output
        return str(said.exception)
    assert said.exit_code == 0, (said.output, said.exception)
    return said.output


def test_a_ledger_is_charged_and_the_second_fit_repeats_the_first(folder: Path) -> None:
    how = [
        "people.csv",
        "--bounds",
        BOUNDS,
        "--columns",
        "sex, rich",
        "--about",
        "sex,rich",
        "--epsilon",
        "0.5",
        "--delta",
        "1e-6",
    ]
    first = run("fit", *how, "--ledger", "budget.db", "--out", "a.json", "--report", "a.html", "--json", at=folder)
    assert json.loads(first) == {"table": "people", "method": "pairs", "cost": "ε = 0.5, δ = 0", "saved": "a.json"} | {
        "rows": json.loads(first)["rows"]
    }
    run("fit", *how, "--ledger", "budget.db", "--out", "b.json", at=folder)
    assert (folder / "a.json").read_text() == (folder / "b.json").read_text()
    assert "<title>Synthetic table of people</title>" in (folder / "a.html").read_text(encoding="utf-8")
    with Ledger(str(folder / "budget.db")) as book:
        assert len([each for each in book.charges("people") if each.state == "settled"]) == 1
    spent = run("fit", *how[:-3], "1", "--ledger", "budget.db", "--out", "c.json", at=folder, refused=True)
    assert "was refused" in spent
    assert not (folder / "c.json").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_rows_are_written(folder: Path, ending: str) -> None:
    import polars as pl

    assert "40 rows saved" in run("sample", "model.json", "--rows", "40", "--out", f"rows.{ending}", at=folder)
    read = {"csv": pl.read_csv, "parquet": pl.read_parquet, "json": pl.read_json}[ending](folder / f"rows.{ending}")
    assert (read.columns, len(read)) == (["age", "sex", "pay", "rich", "born"], 40)


def test_rows_meet_conditions(folder: Path) -> None:
    given = [part for each in ("age=60:70", "sex=F", "rich=no", "born=1|2", "pay=10:20.5") for part in ("--given", each)]
    rows = list(csv.DictReader(run("sample", "model.json", "--rows", "30", *given, at=folder).splitlines()))
    assert len(rows) == 30
    assert all(60 <= int(row["age"]) <= 70 and row["sex"] == "F" and row["rich"] == "false" for row in rows)
    assert all(10 <= float(row["pay"]) <= 20.5 for row in rows)


def test_conditions_are_read_as_people_type_them(folder: Path) -> None:
    """A truth value as files have it, blanks, and a colon as it is typed in Chinese."""
    given = [part for each in ("age = 60：70", "rich=true") for part in ("--given", each)]
    rows = list(csv.DictReader(run("sample", "model.json", "--rows", "30", *given, at=folder).splitlines()))
    assert all(60 <= int(row["age"]) <= 70 and row["rich"] == "true" for row in rows)
    assert "--given rich=False" in run("sample", "model.json", "--given", "rich=perhaps", at=folder, refused=True)


def test_missing_values_are_a_condition(folder: Path) -> None:
    held = {"a": [None, 1, 2, 3] * 50, "b": ["=1", "x"] * 100}
    cl.synth.fit_frame(held, {"a": cl.Integer(0, 9, nullable=True), "b": cl.Category(["=1", "x"])}, epsilon=9).save(
        folder / "n.json"
    )
    said = run("sample", "n.json", "--rows", "20", "--given", "a=missing", "--given", "b==1", "--for-spreadsheets", at=folder)
    assert set(said.splitlines()[1:]) == {",'=1"}


def test_answers_cost_nothing_and_say_how_sure_they_are(folder: Path) -> None:
    question = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
    assert "measured" in run("answer", "model.json", question, at=folder)
    found = json.loads(run("answer", "model.json", question, "--json", at=folder))
    assert found["sex"] == ["F", "M"]
    for low, high in zip(found["n_low"], found["n_high"], strict=True):
        assert low < high < low + 60
        assert low - 60 < 750 < high + 60  # ε = 0.6 a column: at least 36 deviations of two-sided noise, false below 1e-15


def test_a_model_is_saved_before_its_report(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is paid for."""

    def broken(*_: object) -> None:
        raise OSError("no room on the disk")

    pytest.importorskip("sklearn")
    monkeypatch.setattr("cloister.synth.report.Report.save", broken)
    how = ["--bounds", BOUNDS, "--epsilon", "3", "--method", "independent", "--out", "paid.json", "--report", "r.html"]
    with chdir(folder):
        assert CliRunner().invoke(cli, ["synth", "fit", "people.csv", *how]).exit_code != 0
    assert "expected error" in run("report", "paid.json", at=folder)


def test_the_report_is_public_and_the_comparison_is_marked(folder: Path) -> None:
    pytest.importorskip("sklearn")
    assert "expected error" in run("report", "model.json", at=folder)
    assert json.loads(run("report", "model.json", "--json", at=folder))["method"] == "independent"
    assert "saved as r.html\n" in run("report", "model.json", "--out", "r.html", at=folder)
    how = ["--compare", "people.csv", "--others", "others.csv", "--target", "rich", "--out", "owner.html"]
    assert "NOT PRIVATE" in run("report", "model.json", *how, at=folder)
    assert "NOT PRIVATE" in (folder / "owner.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("fit people.csv --out x.json", "their bounds are not declared"),
        ("fit census --method aims --out x.json", "known are auto"),
        ("fit census --columns aeg --out x.json", "'aeg' is unknown"),
        ("fit census --report x.pdf --out x.json", "ending"),
        ("sample model.json --out x.pdf", "ending"),
        ("sample model.json --given age", "the model has age"),
        ("sample model.json --given height=3", "the model has age"),
        ("sample model.json --given age=old", "'old' is not a value of"),
        ("sample model.json --given age=missing", "'missing' is not a value of"),
        ("sample model.json --given rich=maybe", "'maybe' is not a value of"),
        ("sample people.csv", "The model is invalid"),
        ("report model.json --out x.pdf", "ending"),
        ("fit people.csv --bounds age=0:99 --bins age=many --out x.json", "no number of bins"),
        ("fit people.csv --bounds age=0:99 --bins age=² --out x.json", "no number of bins"),
        ("fit people.csv --bounds age=0:99 --bins pay --out x.json", "'pay' is unknown"),
        ("fit people.csv --bounds age=0:99 --rules age>200 --out x.json", "age>200"),
        ("fit people.csv --bounds age=0:99,sex=F|M --method microaggregation --rules age>20 --out x.json", "makes no marginals"),
        ("report model.json --target rich", "it belongs to --compare"),
        ("report model.json --others others.csv", "it belongs to --compare"),
    ],
)
def test_what_cannot_be_done_is_refused(folder: Path, line: str, why: str) -> None:
    assert why in run(*line.split(), at=folder, refused=True)
    assert not (folder / "x.json").exists()


def test_rules_bins_and_calendars_are_fitted(folder: Path) -> None:
    lines = [f"{i % 1000},{i % 1000 + 5},2024-{1 + i % 12:02}-{1 + i % 28:02}" for i in range(3000)]
    (folder / "stays.csv").write_text("came,left,day\n" + "\n".join(lines) + "\n")
    bounds = "columns.json"
    numbers = {name: {"kind": "integer", "low": 0, "high": high} for name, high in (("came", 1000), ("left", 2000))}
    days = {"kind": "date", "low": "2024-01-01", "high": "2024-12-31"}
    (folder / bounds).write_text(json.dumps({"columns": numbers | {"day": days}, "row_is_person": True}))
    how = ["--bins", "came=20", "--calendar", "day", "--rules", "came <= left", "--epsilon", "5"]
    told = run("fit", "stays.csv", "--bounds", bounds, *how, "--out", "stays.json", at=folder)
    assert "rule: came <= left" in told
    model = cl.synth.load(folder / "stays.json")
    assert model.columns[0].number <= 40  # of 1,001 values; noise moves how many cuts there are
    rows = model.sample(2000)
    assert all(came <= left for came, left in zip(rows["came"], rows["left"], strict=True))


def test_gaussians_and_classes_of_k_are_made_drawn_from_and_reported(folder: Path) -> None:
    bounds = ["--bounds", "age=17:90,sex=F|M"]
    told = run("fit", "people.csv", *bounds, "--method", "microaggregation", "--out", "g.json", "--report", "g.html", at=folder)
    assert "synthetic Gaussians" in told
    assert len(run("sample", "g.json", "--rows", "7", "--given", "sex=F", at=folder).splitlines()) == 8
    assert "measured" in run("answer", "g.json", "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", at=folder)
    assert "microaggregation" in run("report", "g.json", at=folder)
    assert "compares models of marginals" in run("report", "g.json", "--compare", "people.csv", at=folder, refused=True)
    told = run("fit", "people.csv", *bounds, "--method", "k_anonymous", "--ledger", "k.db", "--out", "k.json", at=folder)
    assert "NOT PRIVATE" in told
    assert "NOT PRIVATE" in run("report", "k.json", at=folder)
    assert "NOT PRIVATE" in run("sample", "k.json", "--rows", "3", at=folder)
    with Ledger(str(folder / "k.db")) as book:
        assert [each.state for each in book.charges("people")] == ["not private"]
