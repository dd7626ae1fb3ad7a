"""`cloister learn`, as a person or a program would use it."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("sklearn")

from cloister.cli.bounds import domains_of_line
from cloister.cli.learn import features_of
from cloister.cli.main import cli
from cloister.errors import CloisterError, EngineError, InvalidDeclaration, InvalidParameter, UnknownColumn
from cloister.ledger import Ledger
from cloister.privacy import PureDP
from cloister.tables import Category
from tests.cli.test_cli import cloister as command

TOML = """
[tables.people]
source = "people.csv"
[tables.people.columns]
age = { kind = "integer", low = 17, high = 90 }
sex = { kind = "category", values = ["F", "M"] }
rich = { kind = "category", values = ["no", "yes"] }
"""
METADATA = """
"":
  s:
    people:
      row_privacy: True
      age:
        type: int
        lower: 17
        upper: 90
      pay:
        type: float
        lower: 0
        upper: 100
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A CSV of 2000 people, and what is declared of them."""
    lines = [f"{17 + i % 74},{'FM'[i % 2]},{(i * 7) % 100 + 0.5},{'yes' if i % 74 > 37 else 'no'}" for i in range(2000)]
    (tmp_path / "people.csv").write_text("age,sex,pay,rich\n" + "\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(TOML)
    (tmp_path / "people.yaml").write_text(METADATA)
    (tmp_path / "rows.csv").write_text("sex,age\nF,20\nM,88\nX,30\nF,\nM,1000\n")
    return tmp_path


def cloister(*arguments: str, at: Path | None = None, refused: bool = False) -> str:
    """What the command prints, or the words of its refusal; in this process, since a start costs a second."""
    with chdir(at or Path.cwd()):
        result = CliRunner().invoke(cli, ["learn", *arguments])
    if refused:
        assert isinstance(result.exception, CloisterError), result.output
        return str(result.exception)
    assert result.exception is None, result.exception
    return result.stdout


MODEL = ("people.csv", "--model", "GaussianNB", "--features", "age,sex", "--target", "rich", "--bounds", "people.toml")


def test_a_model_is_learnt_saved_carded_and_predicts(folder: Path) -> None:
    shown = cloister(*MODEL, "--epsilon", "5", "--save", "model.json", "--card", "card.md", at=folder)
    assert "ε = 5" in shown
    assert "sex=F" in shown
    assert (folder / "card.md").read_text().startswith("# GaussianNB")
    lines = cloister("--predict", "model.json", "rows.csv", at=folder).split()
    assert lines == ["prediction", "no", "yes", '""', '""', "yes"]
    found = json.loads(cloister("--predict", "model.json", "rows.csv", "--json", at=folder))
    assert found == {"prediction": ["no", "yes", None, None, "yes"]}
    cloister("--predict", "model.json", "rows.csv", "--out", "found.csv", at=folder)
    assert (folder / "found.csv").read_text().split() == lines


def test_rows_are_read_as_those_that_were_learnt_from(folder: Path) -> None:
    """With decimal commas between semicolons and days with points; a Parquet file is one in capitals, too."""
    import polars as pl

    lines = [f"{i % 28 + 1}.{i % 12 + 1}.2024;{i % 50},5;{'yes' if i % 50 > 24 else 'no'}" for i in range(2000)]
    (folder / "people.csv").write_text("day;pay;rich\n" + "\n".join(lines) + "\n")
    columns = 'day = { kind = "date", low = "2024-01-01", high = "2024-12-31" }\npay = { kind = "real", low = 0, high = 50 }'
    (folder / "days.toml").write_text(f'[columns]\n{columns}\nrich = {{ kind = "category", values = ["no", "yes"] }}\n')
    line = ("people.csv", "--model", "GaussianNB", "--features", "day,pay", "--target", "rich", "--bounds", "days.toml")
    cloister(*line, "--epsilon", "1000", "--save", "model.json", at=folder)
    (folder / "rows.csv").write_text("day;pay\n15.6.2024;1,5\n2024-06-15;45.5\n")
    pl.DataFrame({"day": ["2024-06-15"] * 2, "pay": [1.5, 45.5]}).write_parquet(folder / "ROWS.PARQUET")
    for rows in ("rows.csv", "ROWS.PARQUET"):
        assert cloister("--predict", "model.json", rows, at=folder).split() == ["prediction", "no", "yes"]


@pytest.mark.parametrize("to", ["file", "standard output"])
def test_classes_that_a_spreadsheet_would_compute_are_guarded_on_demand(folder: Path, to: str) -> None:
    (folder / "computed.csv").write_text("age,town\n" + "20,=1+1\n50,-5\n80,Ulm\n" * 500)
    line = ("computed.csv", "--model", "GaussianNB", "--features", "age", "--target", "town")
    cloister(*line, "--bounds", "age=17:90,town==1+1|-5|Ulm", "--epsilon", "9", "--save", "model.json", at=folder)
    (folder / "rows.csv").write_text("age\n20\n50\n80\n")
    asked = ("--predict", "model.json", "rows.csv", *(("--out", "found.csv") if to == "file" else ()))
    for option, said, found in (((), True, "=1+1"), (("--for-spreadsheets",), False, "'=1+1")):
        with chdir(folder):
            result = CliRunner().invoke(cli, ["learn", *asked, *option])
        assert result.exception is None, result.exception
        shown = (folder / "found.csv").read_text() if to == "file" else result.stdout
        assert shown.split() == ["prediction", found, "-5", "Ulm"]
        assert ("a spreadsheet would compute texts in 'prediction'" in result.stderr) is said


def test_a_refusal_is_one_message_and_no_trace(folder: Path) -> None:
    said = command("learn", "people.csv", "--model", "StandardScaler", "--features", "age", at=folder, code=1).stderr
    assert "not declared" in said
    assert "Traceback" not in said


def test_a_program_reads_what_was_spent(folder: Path) -> None:
    line = ("people.csv", "--model", "StandardScaler", "--features", "age,pay", "--bounds", "age=17:90,pay=0:100.0", "--json")
    document = json.loads(cloister(*line, "--epsilon", "0.3", "--delta", "1e-6", at=folder))
    assert document["guarantee"] == {"kind": "approx", "epsilon": "0.3", "delta": "0.000001"}
    assert document["features"] == ["age", "pay"]
    assert document["marked"] is False
    assert [spent["currency"] for spent in document["spent"]] == ["mu_squared", "mu_squared"]


def test_a_ledger_remembers_and_refuses(folder: Path) -> None:
    with Ledger(folder / "budget.db") as book:
        book.open("people", PureDP(1), who="owner")
    line = ("people.csv", "--model", "StandardScaler", "--features", "age", "--bounds", "people.toml", "--ledger", "budget.db")
    cloister(*line, "--epsilon", "0.6", at=folder)
    assert "people" in cloister(*line, "--epsilon", "0.7", at=folder, refused=True)
    with Ledger(folder / "budget.db") as book:
        assert book.spent("people") == PureDP("0.6")


def test_metadata_declares_numbers(folder: Path) -> None:
    line = (
        "people.csv",
        "--model",
        "QuantileClipper",
        "--features",
        "age,pay",
        "--bounds",
        "people.yaml",
        "--set",
        "bins=64",
        "--json",
    )
    assert json.loads(cloister(*line, at=folder))["features"] == ["age", "pay"]


def test_a_curve_is_drawn_and_marked(folder: Path) -> None:
    line = (*MODEL, "--curve", "--epsilons", "0.1,10", "--runs", "2", "--out", "curve.html", "--json")
    found = json.loads(cloister(*line, at=folder))
    assert [row["epsilon"] for row in found["points"]] == [0.1, 10.0, None]
    assert found["private"] is False
    assert "not private" in (folder / "curve.html").read_text()


def test_methods_are_listed() -> None:
    assert "Gaussian naive Bayes" in cloister("--list")
    names = {method["name"] for method in json.loads(cloister("--list", "--json"))}
    assert {"GaussianNB", "BoundedScaler"} <= names


def test_help_has_an_example() -> None:
    shown = cloister("--help")
    assert "cloister learn census --model GaussianNB" in shown
    assert "--predict" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "the rows are missing"),
        (("census",), "--model is missing"),
        (("census", "--model", "GaussianNB"), "--features is missing"),
        (("census", "--model", "Oracle", "--features", "age"), "known are"),
        (("people.csv", "--bounds", "people.toml", "--model", "StandardScaler", "--features", "height"), "declared are"),
        (
            ("people.csv", "--bounds", "people.toml", "--model", "StandardScaler", "--features", "age", "--target", "sex"),
            "no target",
        ),
        (MODEL[:-4] + MODEL[-2:], "learns a target"),
        ((*MODEL, "--for-spreadsheets"), "it changes CSV alone"),
        ((*MODEL, "--curve", "--for-spreadsheets"), "it changes CSV alone"),
        (("--predict", "rows.csv", "rows.csv", "--json", "--for-spreadsheets"), "it changes CSV alone"),
        ((*MODEL, "--target", "age"), "among them"),
        (("census", "--model", "StandardScaler", "--features", "age", "--set", "random=1"), "parameters of StandardScaler are"),
        (("census", "--model", "BoundedScaler", "--features", "age", "--epsilon", "1"), "no such parameter"),
        (("census", "--model", "StandardScaler", "--features", "age", "--runs", "3"), "belongs to --curve"),
        ((*MODEL, "--card", "card.pdf"), "its ending is none of .md"),
        ((*MODEL, "--save", "nodir/model.json"), "no such folder"),
        (("nothing.csv", "--model", "StandardScaler", "--features", "age"), "not declared"),
        (("nothing.csv", "--model", "StandardScaler", "--features", "age", "--bounds", "age=0:9"), "no such file"),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in cloister(*arguments, at=folder, refused=True)


@pytest.mark.parametrize(
    "line", ["age", "age=", "age=1-2", "age=1:2,age=1:3", "=1:2", "", "age=x:y", "age=1:9，sex=F|M", "a=x|y b=1|2"]
)
def test_wrong_bounds_are_refused(line: str) -> None:
    with pytest.raises(InvalidDeclaration, match="--bounds is invalid"):
        domains_of_line(line)


def test_blanks_beside_the_signs_of_bounds_are_none_of_the_values() -> None:
    """No row would hold them, and every answer would be about nobody."""
    line = "sex = Female | Male, k= 1 |2, age =17:90 , smoker = yes/no"
    assert domains_of_line(line) == domains_of_line("sex=Female|Male,k=1|2,age=17:90,smoker=yes/no")


def test_features_are_read_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('age,"a""b=c",sex,born,smoker\n1.5,2,it\'s,1970-01-03,yes\n,3,other,nonsense,no\n')
    found = features_of(path, ["age", 'a"b=c', "sex=it's", "sex=F", "born", "smoker"])
    assert found[0].tolist() == [1.5, 2.0, 1.0, 0.0, 2.0, 1.0]
    assert [str(value) for value in found[1].tolist()] == ["nan", "3.0", "nan", "nan", "nan", "0.0"]


def test_cells_of_a_prediction_are_read_as_those_that_were_learnt_from(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(" size ;plan;a=b\n1e999;007;x=y\ninf;1.0;x=y\n 4 ;+1;z\n1_0;-0;z\nNaN;1.5;\n", encoding="utf-8")
    found = features_of(path, [" size ", "plan=7", "plan=1", "plan=0", "a=b=x=y", "a=b=z"])
    assert np.array_equal(found[:, 0], [1e300, np.nan, 4, np.nan, np.nan], equal_nan=True)
    assert found[:4, 1:4].tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert found[:4, 4:].tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert np.isnan(found[4, 1:]).all()


def test_whole_numbers_to_predict_from_may_have_groups_of_three_where_learnt_ones_may(folder: Path) -> None:
    (folder / "towns.csv").write_text("people;beds;big\n" + "1.234;2.000;9\n12;1;0\n" * 50)
    bounds = "people=0:9999,beds=0:9.5,big=0:9"
    learnt = ("towns.csv", "--model", "LinearRegression", "--features", "people,beds", "--target", "big", "--bounds", bounds)
    cloister(*learnt, "--epsilon", "1000", "--save", "model.json", at=folder)
    (folder / "asked.csv").write_text("people;beds\n1.234;2.000\n1234;2\n")
    _, first, second = cloister("--predict", "model.json", "asked.csv", at=folder).split()
    assert first == second


def test_cells_of_a_parquet_file_to_predict_from_are_read_as_learning_reads_them(tmp_path: Path) -> None:
    """Truth values that pandas wrote as floats, since some were missing; lists, which no model learnt from."""
    file = tmp_path / "rows.parquet"
    duckdb.sql("SELECT unnest([1.0::DOUBLE, 0, NULL, 2, 10]) AS ok").write_parquet(str(file))
    for names, declared in ((["ok=False", "ok=True"], ()), (["ok"], (("ok", Category([False, True])),))):
        found = features_of(file, names, declared)
        assert found[0, -1] == 1
        assert found[1, -1] == 0
        assert np.isnan(found[2:]).all()
    assert features_of(file, ["ok"])[:, 0].tolist()[3:] == [2, 10]
    for cell in ("[1, 2]", "{'a': 1}", "'x'::BLOB"):
        duckdb.sql(f"SELECT {cell} AS age").write_parquet(str(file))
        with pytest.raises(InvalidParameter, match="The column 'age' is invalid: its cells are lists"):
            features_of(file, ["age"])


def test_a_header_with_blanks_is_shown_where_a_column_is_missing(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(" age ,sex\n30,F\n")
    with pytest.raises(UnknownColumn, match="'age' is missing: the model learnt from it, and the file has only ' age ', 'sex'"):
        features_of(tmp_path / "rows.csv", ["age"])


def test_a_column_whose_name_holds_a_comma_is_written_in_quotes(tmp_path: Path) -> None:
    rows, bounds = tmp_path / "people.csv", tmp_path / "bounds.json"
    rows.write_text('"pay, a month",age,sex\n' + "700,30,F\n200,40,M\n" * 50)
    number = {"kind": "integer", "low": 0, "high": 900}
    columns = {"pay, a month": number, "age": number, "sex": {"kind": "category", "values": ["F", "M"]}}
    bounds.write_text(json.dumps({"row_is_person": True, "columns": columns}))
    line = ["learn", str(rows), "--model", "GaussianNB", "--target", "sex", "--bounds", str(bounds), "--json", "--features"]
    told = CliRunner().invoke(cli, [*line, '"pay, a month",age'])
    assert json.loads(told.stdout)["columns"] == ["pay, a month", "age"]
    refused = CliRunner().invoke(cli, [*line, "pay, a month,age"]).exception
    assert isinstance(refused, CloisterError)
    assert refused.instead == """'"pay, a month",…'"""


@pytest.mark.parametrize(
    "line",
    [
        "learn people.csv --model GaussianNB --features age --target sex --bounds age=0:90,sex=F|M --save people.csv",
        "synth fit people.csv --bounds age=0:90,sex=F|M --out ./people.csv",
        "anonymize people.csv --quasi age,sex --model k=2 --out people.csv",
        "mine hide people.csv --basket age --item sex --rule F->M --min-support 0.1 --min-confidence 0.5 --out people.csv",
    ],
)
def test_the_rows_that_are_read_are_never_written_over(tmp_path: Path, line: str) -> None:
    """A model took the place of the only copy of its rows."""
    rows = "age,sex\n30,F\n40,M\n" * 20
    (tmp_path / "people.csv").write_text(rows, encoding="utf-8")
    with chdir(tmp_path):
        refused = CliRunner().invoke(cli, line.split()).exception
    assert isinstance(refused, CloisterError), refused
    assert "it is read, and would be lost" in refused.why
    assert (tmp_path / "people.csv").read_text(encoding="utf-8") == rows


def test_a_damaged_parquet_file_to_predict_from_is_refused_in_fixed_words(tmp_path: Path) -> None:
    """What the engine says of it may hold a row."""
    file = tmp_path / "people.parquet"
    duckdb.sql("SELECT range * 7919 % 97 AS age FROM range(5000)").write_parquet(str(file))
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + b"\xff" * 200 + whole[204:])
    with pytest.raises(EngineError, match=r"^The file 'people.parquet' could not be read: it is damaged") as refusal:
        features_of(file, ["age"])
    assert refusal.value.__context__ is None
