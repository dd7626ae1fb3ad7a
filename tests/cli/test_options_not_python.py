"""What a command says of wrong options: other options, lines of a declarations file, and no Python."""

from __future__ import annotations

import io
import re
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

from cloister.cli import main
from cloister.voices import pieces_of

TABLES = """
[tables.staff]
source = "staff.csv"

[tables.staff.columns]
age = { kind = "integer", low = 17, high = 90 }
rank = { kind = "category", values = ["a", "b"] }
note = { kind = "text" }

[budgets]
staff = { epsilon = "1" }
"""
QUERY = ("--tables", "tables.toml", "--ledger", "budget.db")
COUNT, MEAN = "SELECT COUNT(*) AS n FROM staff", "SELECT AVG(age) AS a FROM staff"
LEARN = ("learn", "staff.csv", "--bounds", "age=17:90,rank=a|b", "--features", "age")
WRONG = [
    ("query", COUNT, *QUERY),
    ("query", COUNT, "--spend", "x", *QUERY),
    ("query", COUNT, "--spend", "0", *QUERY),
    ("query", COUNT, "--spend", "-1", *QUERY),
    ("query", COUNT, "--spend", "5", *QUERY),
    ("query", COUNT, "--spend", "1", "--within", "3", *QUERY),
    ("query", COUNT, "--within", "0", *QUERY),
    ("query", MEAN, "--within", "1", *QUERY),
    ("query", MEAN, "--within", "0.00001", "--pilot", "x", *QUERY),
    ("query", COUNT, "--spend", "0.1", "--pilot", "0.1", *QUERY),
    ("query", COUNT, "--spend", "0.1", "--dialect", "klingon", *QUERY),
    ("query", "SELECT MAX(age) FROM staff", "--spend", "0.1", *QUERY),
    ("query", "SELECT note, COUNT(*) AS n FROM staff GROUP BY note", "--spend", "0.1", *QUERY),
    ("query", "SELECT AVG(rank) AS a FROM staff", "--spend", "0.1", *QUERY),
    ("query", "SELECT COUNT(*) FROM nowhere", "--spend", "0.1", *QUERY),
    ("query", "SELECT", "--spend", "0.1", *QUERY),
    ("explain", COUNT, "--spend", "x", *QUERY),
    (*LEARN, "--model", "GaussianNB", "--target", "rank", "--epsilon", "x"),
    (*LEARN, "--model", "GaussianNB", "--target", "rank", "--epsilon", "0"),
    (*LEARN, "--model", "GaussianNB", "--target", "rank", "--delta", "2"),
    (*LEARN, "--model", "GaussianNB", "--target", "age"),
    (*LEARN, "--model", "GaussianNB"),
    (*LEARN, "--model", "KMeans", "--set", "n_clusters=0"),
    (*LEARN, "--model", "KMeans", "--set", "method=fastest"),
    (*LEARN, "--model", "KMeans", "--set", "nothing=1"),
    (*LEARN, "--model", "PCA", "--set", "n_components=9"),
    (*LEARN, "--model", "LinearRegression", "--target", "rank"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "k=0"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "l=0", "--sensitive", "rank"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "t=9", "--sensitive", "rank"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "l=2"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "k=2", "--suppression", "2"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "k=2", "--metric", "beauty"),
    ("anonymize", "staff.csv", "--quasi", "age,age", "--model", "k=2"),
    ("anonymize", "staff.csv", "--quasi", "height", "--model", "k=2"),
    ("anonymize", "staff.csv", "--quasi", "age", "--model", "k=2", "--sensitive", "age"),
    ("risk", "staff.csv", "--quasi", "height"),
    ("mine", "itemsets", "staff.csv", "--min-support", "7"),
    ("mine", "itemsets", "staff.csv", "--min-support", "x"),
    ("mine", "rules", "staff.csv", "--min-support", "0.5", "--min-confidence", "7"),
    ("ledger", "raise", "budget.db", "staff", "--epsilon", "0.1", "--who", "board", "--why", "less"),
    ("ledger", "raise", "budget.db", "nobody", "--epsilon", "2", "--who", "board", "--why", "more"),
    ("audit", "laplace", "--epsilon", "x"),
    ("audit", "laplace", "--epsilon", "1", "--confidence", "2"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A CSV, its declarations, and a ledger."""
    (tmp_path / "staff.csv").write_text("age,rank,note\n" + "30,a,x\n50,b,y\n" * 30)
    (tmp_path / "tables.toml").write_text(TABLES)
    said(tmp_path, "query", COUNT, "--spend", "0.1", *QUERY)
    return tmp_path


def said(folder: Path, *words: str) -> tuple[object, str]:
    """How a command ended, and what it wrote to its errors."""
    out, err, ended = io.StringIO(), io.StringIO(), None
    nobody, line = patch.object(sys, "stdin", io.StringIO()), patch.object(sys, "argv", ["cloister", *words])
    with chdir(folder), nobody, line, redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            ended = end.code
    return ended, err.getvalue()


def test_wrong_options_are_answered_with_options(folder: Path) -> None:
    left, heard = [], []
    for words in WRONG:
        ended, text = said(folder, *words)
        if ended != 1:
            continue
        heard.append(words)
        plain = re.sub(r"--(?:set|model|bounds|hierarchy) '?\S+'?|[kltαβδcw]=|'[^']*'", "", text)
        if pieces_of(plain) or re.search(r"\b(?:cl|session)\.\w|\bpeople\b", plain) or "Internal" in text:
            left.append((words, text))
    assert not left, left
    assert len(heard) > 0.8 * len(WRONG), [words for words in WRONG if words not in heard]


def test_the_line_to_write_is_a_command_or_another_option(folder: Path) -> None:
    said(folder, "survey", "make", "--example", "--out", "questions.toml")
    said(folder, "survey", "make", "questions.toml", "--out", "exams.json")
    model = ("anonymize", "staff.csv", "--quasi", "age", "--sensitive", "rank", "--model")
    for words, line in (
        (("survey", "respond", "questions.toml", "--level", "open"), "cloister survey make questions.toml --out exams.json"),
        (("survey", "collect", "exams.json", "--tally", "tables.toml"), "--tally with the name of a file that is not there"),
        ((*model, "t=0,3"), "--model t=0.3"),
        ((*model, "k=2,l=3"), "--model k=5"),
        ((*model, "beta=x"), "--model k=5"),
    ):
        ended, text = said(folder, *words)
        assert ended == 1
        assert f"Instead: {line}" in text, text
    (folder / "staff.csv").unlink()
    assert 'Instead: source = "…", a path' in said(folder, "rows", "tables.toml")[1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("query", COUNT, "--spend", "x"), "--spend x is invalid"),
        (("query", COUNT, "--spend", "x"), "Instead: --spend 0."),
        (("query", MEAN, "--within", "1"), "--pilot 0.01"),
        (("query", COUNT, "--spend", "5"), "a smaller --spend"),
    ],
)
def test_the_line_to_write_is_an_option_of_the_command(folder: Path, words: tuple[str, ...], line: str) -> None:
    ended, text = said(folder, *words, *QUERY)
    assert ended == 1
    assert line in text, text
