"""The command line, as a person or a program would use it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import click
import pytest

from cloister.cli import main
from cloister.installed import edition
from cloister.ledger import Ledger
from cloister.privacy import PureDP

TABLES = """
[tables.people]
source = "people.csv"

[tables.people.columns]
age = { kind = "integer", low = 17, high = 90 }
sex = { kind = "category", values = ["F", "M"] }
pay = { kind = "real", low = 0, high = 100, step = 0.5 }

[budgets]
people = { epsilon = "1" }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A CSV of 60 people and its declarations."""
    (tmp_path / "people.csv").write_text("age,sex,pay\n" + "30,F,10.5\n50,M,20\n" * 30)
    (tmp_path / "tables.toml").write_text(TABLES)
    return tmp_path


def started(*arguments: str, at: Path | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    finished = subprocess.run(
        [sys.executable, "-m", "cloister", *arguments],
        capture_output=True,
        text=True,
        cwd=at,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert finished.returncode == code, finished.stderr
    return finished


def cloister(*arguments: str, at: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The same by its entry point in this process, where what it imports is imported once for all tests."""
    out, err, ended = io.StringIO(), io.StringIO(), 0
    nobody, line = patch.object(sys, "stdin", io.StringIO()), patch.object(sys, "argv", ["cloister", *arguments])
    with chdir(at), nobody, line, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            ended = int(end.code or 0)
    assert ended == code, err.getvalue()
    return subprocess.CompletedProcess(arguments, ended, out.getvalue(), err.getvalue())


def test_the_demo_in_a_terminal_prints_an_answer_with_its_error_and_cost(tmp_path: Path) -> None:
    shown = started("demo", "--terminal", "--once").stdout
    assert "±" in shown
    assert "cost ε = 0.1" in shown
    assert "left of the budget: ε = 0.9" in shown
    assert json.loads(cloister("demo", "--terminal", "--json", at=tmp_path).stdout)["columns"]["sex"] == ["Female", "Male"]


def test_query_explain_and_ledger_work_on_declared_files(folder: Path) -> None:
    sql = "SELECT sex, COUNT(*) AS n, AVG(pay) AS pay FROM people GROUP BY sex"
    common = ("--tables", "tables.toml", "--ledger", "budget.db")
    assert "nothing was spent" in cloister("explain", sql, "--spend", "0.4", *common, at=folder).stdout
    answer = json.loads(
        started("query", sql, "--spend", "0.4", *common, "--json", "--who", "ada", "--purpose", "a look", at=folder).stdout
    )
    assert answer["columns"]["sex"] == ["F", "M"]
    assert answer["margin95"]["n"][0] > 0
    assert answer["cost"] == {"people": "ε = 0.4"}
    charges = json.loads(cloister("ledger", "show", "budget.db", "people", "--json", at=folder).stdout)
    assert [(charge["who"], charge["cost"], charge["state"], charge["purpose"]) for charge in charges] == [
        ("ada", "ε = 0.4", "settled", "a look")
    ]
    assert "none changed" in cloister("ledger", "verify", "budget.db", at=folder).stdout
    assert "ε = 0.6" in cloister("ledger", "show", "budget.db", at=folder).stdout


def test_a_refusal_is_one_message_and_exit_code_1(folder: Path) -> None:
    common = ("--tables", "tables.toml", "--ledger", "budget.db")
    refused = cloister("query", "SELECT COUNT(*) FROM people", "--spend", "2", *common, at=folder, code=1)
    assert refused.stderr.startswith("BudgetExceeded: ")
    assert "Traceback" not in refused.stderr
    assert refused.stdout == ""
    cloister("ledger", "raise", "budget.db", "people", "--epsilon", "3", "--who", "board", "--why", "approved", at=folder)
    assert "count_star" in cloister("query", "SELECT COUNT(*) FROM people", "--spend", "2", *common, at=folder).stdout


def test_csv_and_chart(folder: Path) -> None:
    shown = cloister(
        "query", "SELECT sex, COUNT(*) AS n FROM census GROUP BY sex", "--spend", "1", "--csv", "--chart", "c.html", at=folder
    ).stdout
    assert shown.splitlines()[0] == "sex,n,n_margin95"
    assert len(shown.splitlines()) == 3
    assert "vega" in (folder / "c.html").read_text().lower()


COMPUTED = """
[tables.sold]
source = "sold.csv"
columns.town = { kind = "category", values = ["=1+1", "@SUM(A1)", "-A1", "-5", "Ulm"] }

[budgets]
sold = { epsilon = "9" }
"""


def test_csv_that_a_spreadsheet_would_compute_is_told_of_and_is_guarded_on_demand(tmp_path: Path) -> None:
    (tmp_path / "sold.csv").write_text("town\n" + "=1+1\n@SUM(A1)\n-A1\n-5\nUlm\n" * 20)
    (tmp_path / "sold.toml").write_text(COMPUTED)
    asked = ("query", 'SELECT town, COUNT(*) AS "=n" FROM sold GROUP BY town', "--spend", "3", "--tables", "sold.toml", "--csv")
    plain = cloister(*asked, at=tmp_path)
    assert "a spreadsheet would compute texts in 'town', '=n', '=n_margin95': they are written as they are" in plain.stderr
    assert "Instead: --for-spreadsheets" in plain.stderr
    head, *lines = csv.reader(io.StringIO(plain.stdout))
    assert (head, [line[0] for line in lines]) == (["town", "=n", "=n_margin95"], ["=1+1", "@SUM(A1)", "-A1", "-5", "Ulm"])
    guarded = cloister(*asked, "--for-spreadsheets", at=tmp_path)
    assert "a spreadsheet" not in guarded.stderr
    head, *lines = csv.reader(io.StringIO(guarded.stdout))
    assert (head, [line[0] for line in lines]) == (["town", "'=n", "'=n_margin95"], ["'=1+1", "'@SUM(A1)", "'-A1", "-5", "Ulm"])
    assert all(float(margin) > 0 for _, _, margin in lines)
    harmless = cloister("query", "SELECT COUNT(*) AS n FROM sold", *asked[2:], at=tmp_path)
    assert "a spreadsheet" not in harmless.stderr


def test_an_answer_is_printed_in_one_form(folder: Path) -> None:
    asked = ("query", "SELECT COUNT(*) AS n FROM people", "--spend", "0.1", "--tables", "tables.toml", "--ledger", "b.db")
    refused = cloister(*asked, "--json", "--csv", at=folder, code=1)
    assert "--json and --csv together are invalid" in refused.stderr
    assert not (folder / "b.db").exists(), "nothing was asked"


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv", "--json")])
def test_for_spreadsheets_is_of_csv(folder: Path, form: tuple[str, ...]) -> None:
    asked = ("query", "SELECT COUNT(*) AS n FROM people", "--spend", "0.1", "--tables", "tables.toml", "--ledger", "b.db", *form)
    refused = cloister(*asked, "--for-spreadsheets", at=folder, code=1)
    assert "--for-spreadsheets is invalid: it changes CSV alone." in refused.stderr
    assert not (folder / "b.db").exists(), "nothing was asked"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('colour = { kind = "category" }', "values"),
        ('age = { kind = "whole" }', "kind"),
        ('age = { kind = "integer", low = 9, high = 1 }', "lower bound"),
        ('age = { kind = "integer", low = 1, high = 9, step = 2 }', "step"),
        ('elsewhere = { kind = "text" }', "elsewhere"),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(folder: Path, line: str, said: str) -> None:
    (folder / "wrong.toml").write_text(f'[tables.people]\nsource = "people.csv"\n[tables.people.columns]\n{line}\n')
    refused = cloister(
        "query", "SELECT COUNT(*) FROM people", "--spend", "1", "--budget", "1", "--tables", "wrong.toml", at=folder, code=1
    )
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_events_are_not_opened_as_persons_without_a_word(folder: Path) -> None:
    """An identifier and no unit: the file has to say that each row is all of one person."""
    told = '[tables.people]\nsource = "people.csv"\n{}\n[tables.people.columns]\nsex = {{ kind = "identifier" }}\n'
    asking = ("query", "SELECT COUNT(*) FROM people", "--spend", "1", "--budget", "1", "--tables", "events.toml")
    (folder / "events.toml").write_text(told.format(""))
    refused = cloister(*asking, at=folder, code=1)
    assert "'sex' may name events" in refused.stderr
    assert "row_is_person = true" in refused.stderr
    for line in ("row_is_person = true", 'unit = "age"\nmax_rows = 2'):
        (folder / "events.toml").write_text(told.format(line))
        assert "Warning" not in cloister(*asking, at=folder).stderr


def test_every_command_has_help_with_an_example() -> None:
    from cloister.cli import cli

    def walk(command: object, path: str) -> None:
        nested = getattr(command, "commands", {})
        for name, inner in nested.items():
            walk(inner, f"{path} {name}")
        assert f"{path}" in (command.help or ""), path  # type: ignore[attr-defined]

    walk(cli, "cloister")


def test_versions() -> None:
    assert "cloister" in json.loads(started("version", "--json").stdout)
    assert started("--version").stdout == f"cloister {edition()}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budgets = 3\n[tables.people]\nsource = 'people.csv'", "budgets"),
        ("tables = 3", "declares no table"),
        ("tables.people = 3", "not a table"),
        ("tables.people.source = ['people.csv']", "source is not a text"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns = 3", "columns is not a table"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.age = 3", "kind"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.age = { kind = ['a'] }", "kind"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.age = { kind = 'integer', low = [1], high = {} }", "low"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.age = { kind = 'integer', low = 'x', high = 3 }", "low"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.sex = { kind = 'category', values = 3 }", "Category"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.sex = { kind = 'category', values = [[1], {}] }", "ategor"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.sex = { kind = 'date', low = 1, high = true }", ""),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.sex = { kind = 'text', nullable = 'x' }", "nullable"),
        ("[tables.people]\nsource = 'people.csv'\nunit = ['age']\nmax_rows = 3", "unit is not a text"),
        ("[tables.people]\nsource = 'people.csv'\nunit = 'age'\nmax_rows = true", "max_rows is not a whole number"),
        ("[tables.people]\nsource = 'people.csv'\nsize = '9'", "size is not a whole number"),
        ("[tables.people]\nsource = 'people.csv'\nduring = 'day'", "during is not a column with a first and a last day"),
        ("[tables.people]\nsource = 'people.csv'\ncolumns.age = { kind = 'text' }\nduring = [1, {}, []]", "during="),
        (
            "[tables.people]\nsource = 'people.csv'\ncolumns.age = { kind = 'text' }\nduring = ['x', 2026-01-01, 2026-01-31]",
            "has only",
        ),
        ("[tables.people]\nsource = 'people.csv'\npublic = 'yes'", "public is not true or false"),
        ("[tables.people]\nsource = 'people.csv'\n[budgets]\npeople = 1", "neither epsilon nor rho"),
        ("[tables.people]\nsource = 'people.csv'\n[budgets]\npeople = { epsilon = [1] }", "not as numbers"),
        ("[tables.people]\nsource = 'people.csv'\n[budgets]\npeople = { epsilon = 1, delta = true }", "not as numbers"),
        ("[tables.people]\nsource = 'people.csv'\n[budgets]\npeople = { epsilon = nan }", "nan"),
        ("size = " + "9" * 5_000, "is invalid"),
        ("a = " + "[" * 5_000, "is invalid"),
        ("\0", "is invalid"),
    ],
)
def test_whatever_a_declarations_file_holds_it_is_read_or_refused(folder: Path, text: str, said: str) -> None:
    from cloister import CloisterError
    from cloister.cli.declared import load

    (folder / "wrong.toml").write_text(text)
    with pytest.raises(CloisterError) as refusal:
        load(folder / "wrong.toml")
    assert said in str(refusal.value)


def fails(*arguments: object, **options: object) -> None:
    raise ValueError("row 17: Ada, 36, diagnosis 5")


@pytest.mark.parametrize("debug", ["", "0", "1"])
def test_a_failure_of_our_own_is_one_line_without_a_word_of_the_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], debug: str
) -> None:
    monkeypatch.setattr("cloister.cli.demo_hub.run_demo", fails)
    monkeypatch.setattr(sys, "argv", ["cloister", "demo", "--terminal", "--once"])
    monkeypatch.setenv("CLOISTER_DEBUG", debug)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1].startswith("InternalError: cloister failed (ValueError); please report it.")
    assert ("Traceback" in said.err) == (debug == "1")
    assert ("Ada" in said.err) == (debug == "1")
    assert debug == "1" or len(said.err.splitlines()) == 1


def test_a_full_disk_is_said_in_words(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        made = [sys.executable, "-m", "cloister", "version"]
        ended = subprocess.run(made, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    assert ended.returncode == 1
    assert ended.stderr.startswith("EngineError: The command ended early: no space left on device.")


def test_a_command_line_that_cannot_be_read_is_refused_as_any_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cloister", "version", "--loud"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1, "2 is for failures of our own"
    assert "No such option" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "told"), [(click.Abort, "nothing was done"), (KeyboardInterrupt, "stays charged")])
def test_a_no_to_a_question_is_told_apart_from_an_interruption(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: type[BaseException], told: str
) -> None:
    def ended(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("cloister.cli.demo_hub.run_demo", ended)
    monkeypatch.setattr(sys, "argv", ["cloister", "demo", "--terminal", "--once"])
    with pytest.raises(SystemExit) as found:
        main()
    assert (found.value.code != 0, told in capsys.readouterr().err) == (True, True)


def gone(*arguments: object, **options: object) -> None:
    raise BrokenPipeError


def test_a_reader_that_is_gone_leaves_the_streams_of_a_caller_open(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("cloister.cli.demo_hub.run_demo", gone)
    monkeypatch.setattr(sys, "argv", ["cloister", "demo", "--terminal", "--once"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    print("still heard")
    print("still heard", file=sys.stderr)
    assert capsys.readouterr() == ("still heard\n", "still heard\n")


def test_a_ledger_put_back_from_a_backup_is_frozen_until_its_losses_are_entered(folder: Path) -> None:
    common = ("--tables", "tables.toml", "--ledger", "budget.db")
    cloister("query", "SELECT COUNT(*) FROM people", "--spend", "0.2", *common, at=folder)
    copy = {path.name: path.read_bytes() for path in folder.glob("budget.db*") if not path.name.endswith(("head", "key"))}
    cloister("query", "SELECT SUM(age) FROM people", "--spend", "0.3", *common, at=folder)
    for path in folder.glob("budget.db*"):
        if not path.name.endswith(("head", "key")):
            path.unlink()
    for name, content in copy.items():
        (folder / name).write_bytes(content)
    assert "frozen" in cloister("ledger", "show", "budget.db", at=folder).stdout
    cloister("query", "SELECT SUM(pay) FROM people", "--spend", "0.1", *common, at=folder, code=1)
    why = ("--who", "board", "--why", "backup")
    assert "0.5" in cloister("ledger", "restore", "budget.db", *why, at=folder, code=1).stderr
    cloister("ledger", "restore", "budget.db", "--loss", "people=0.4", *why, at=folder, code=1)
    for wrong in ("people=x", "people=-1", "people=", "people", "towns=1"):
        said = cloister("ledger", "restore", "budget.db", "--loss", wrong, *why, at=folder, code=1).stderr
        assert f"--loss {wrong} is invalid" in said
        assert "Instead: --loss people=" in said
    assert "ε = 0.4 left" in cloister("ledger", "restore", "budget.db", "--loss", "people=0.6", *why, at=folder).stdout
    assert "none changed" in cloister("ledger", "verify", "budget.db", at=folder).stdout


def test_what_nothing_bounds_has_no_cost_and_no_rest(folder: Path) -> None:
    with Ledger(str(folder / "budget.db")) as ledger:
        ledger.open("people", PureDP(1), who="ada")
        ledger.note_not_private("people", who="ada", what="an anonymised table")
    [charge] = json.loads(cloister("ledger", "show", "budget.db", "people", "--json", at=folder).stdout)
    assert charge["cost"] == "not private"
    assert "spent unbounded of ε = 1; unbounded is left" in cloister("ledger", "show", "budget.db", "people", at=folder).stdout
    [row] = json.loads(cloister("ledger", "show", "budget.db", "--json", at=folder).stdout)
    assert (row["spent"], row["remaining"]) == ("unbounded", "unbounded")


def test_a_ledger_that_is_not_there_is_not_made(folder: Path) -> None:
    assert "no such file" in cloister("ledger", "show", "other.db", at=folder, code=1).stderr
    assert not (folder / "other.db").exists()


@pytest.mark.parametrize(("chart", "words"), [("gone/answer.html", "no such folder"), ("answer.xyz", "its ending is none of")])
def test_a_chart_that_cannot_be_written_is_refused_before_the_charge(folder: Path, chart: str, words: str) -> None:
    asked = ("query", "SELECT COUNT(*) AS n FROM people", "--spend", "0.1", "--tables", "tables.toml", "--ledger", "b.db")
    assert words in cloister(*asked, "--chart", chart, at=folder, code=1).stderr
    assert not (folder / "b.db").exists(), "nothing was asked"
    assert "n" in cloister(*asked, "--chart", "answer.html", at=folder).stdout
    assert (folder / "answer.html").exists()


def test_json_has_null_where_nothing_is_known(tmp_path: Path) -> None:
    """JSON has neither NaN nor Infinity: a margin that is not known, or has no end, stopped every reader but Python's."""

    def refused(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    asked = "SELECT education, MODE(sex) AS m, COUNT(*) / COUNT_IF(age > 89) AS r FROM census GROUP BY education"
    ways = (("query", asked, "--spend", "0.001"), ("explain", asked, "--spend", "0.001"), ("explain", asked))
    answer, plan, spends = (json.loads(cloister(*way, "--json", at=tmp_path).stdout, parse_constant=refused) for way in ways)
    assert answer["margin95"]["m"] == answer["margin95"]["r"] == [None] * 16
    assert plan["margin"] == {"m": None, "r": None}
    assert spends["r"][0] is None


def test_an_owner_sees_how_the_rows_of_a_file_are_read(folder: Path) -> None:
    """A name in Latin-1 is no text, and its line is left out of every answer, which may not say so."""
    (folder / "latin.csv").write_bytes("name,age\nJosé,30\nAnna,40\nMüller,50\nBob,99\n".encode("latin-1"))
    lines = [
        "latin: 2 rows",
        "  2 lines are left out: quotes, fields or UTF-8 are wrong",
        "  age: 1 of 2 values are moved to a bound, such as '99' (1)",
    ]
    assert cloister("rows", "latin.csv", "--bounds", "age=17:90", at=folder).stdout.splitlines() == lines
    (folder / "latin.toml").write_text(
        '[tables.latin]\nsource = "latin.csv"\n[tables.latin.columns]\nage = { kind = "integer", low = 17, high = 90 }\n',
        encoding="utf-8",
    )
    assert cloister("rows", "latin.toml", at=folder).stdout.splitlines() == lines
    told = json.loads(cloister("rows", "latin.toml", "--json", at=folder).stdout)
    assert told["left_out"]["malformed"] == 2
    assert "declares its tables" in cloister("rows", "latin.toml", "--bounds", "age=1:2", at=folder, code=1).stderr
    assert "no such file can be read" in cloister("rows", "absent.toml", at=folder, code=1).stderr


def test_numbers_that_may_be_thousands_are_told(tmp_path: Path) -> None:
    """Between semicolons 2.000 is two, unless numbers are whole, and 2,000 is two for sure."""
    (tmp_path / "people.csv").write_text("pay;beds\n999,5;2.000\n2.000;3.000\n1.5;4\n2,000;1\n")
    words = ("rows", "people.csv", "--bounds", "pay=0:9999.0,beds=0:9000")
    assert cloister(*words, at=tmp_path).stdout.splitlines() == [
        "people: 4 rows",
        "  pay: 1 values of the file look like 2.000, read as 2: if not, write 2000",
    ]
    assert json.loads(cloister(*words, "--json", at=tmp_path).stdout)["doubtful"] == {"pay": 1}


def test_a_column_of_which_nothing_is_read_is_told_with_what_would_be(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("smokes,born,age,sex\nja,31/12/1984,31 J.,m\nnein,1/2/1990,45,w\n,,,m\n")
    columns = 'smokes = { kind = "boolean" }\nborn = { kind = "date", low = "1900-01-01", high = "2026-12-31" }\n'
    columns += 'age = { kind = "integer", low = 0, high = 120 }\nsex = { kind = "category", values = ["F", "M"] }\n'
    (tmp_path / "people.toml").write_text(f'[tables.people]\nsource = "people.csv"\n[tables.people.columns]\n{columns}')
    assert [line for line in cloister("rows", "people.toml", at=tmp_path).stdout.splitlines() if "none" in line] == [
        "  smokes: none of its values is read: write yes or no, or declare it as the codebook has it",
        "  born: none of its values is read: write 2026-12-31, or declare it as the codebook has it",
        "  sex: none of its values is read: write what is declared, or declare it as the codebook has it",
    ]
