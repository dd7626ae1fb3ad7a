"""One value in several spellings that can be seen to differ: models count them apart, so report, risk and certificate say so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner

from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, risk
from cloister.cli.main import cli

WORDS = "values of 'ill' differ in blanks, capitals or the form of their letters alone"


def people(*spellings: str) -> dict[str, list[Any]]:
    """Two classes; in each the spellings take turns."""
    return {"age": [30] * 6 + [60] * 6, "ill": [spellings[each % len(spellings)] for each in range(12)]}


@pytest.mark.parametrize(
    ("spellings", "count"),
    [
        (("gout", "Gout "), 2),
        (("gout", "GOUT", " Gout"), 3),
        (("caf\u00e9", "CAFE\u0301"), 2),
        (("gout\u00a0b", "Gout b"), 2),
        (("Straße", "STRASSE"), 2),
        (("gout", "flu"), 0),
        (("1", "2"), 0),
    ],
)
def test_how_many_values_fall_together(spellings: tuple[str, ...], count: int) -> None:
    found = risk(people(*spellings), quasi=["age"], sensitive=["ill"])
    assert found.sensitive["ill"].alike == count
    assert found.l == len(spellings)
    assert found.to_dict()["sensitive"]["ill"]["alike"] == count
    assert (f"{count} {WORDS}" in str(found)) == (count > 0)


def test_report_and_certificate_say_it_and_name_no_value() -> None:
    anonymizer = Anonymizer(quasi=["age"], sensitive=["ill"], models=[KAnonymity(2), LDiversity(2)], suppression=0)
    released = anonymizer.fit_transform(people("zoster", "Zoster "))
    assert anonymizer.report_.models[1].holds
    paper = anonymizer.certificate(released, learning=False)
    for text in (str(anonymizer.report_), str(paper), anonymizer.report_.to_html(), paper.to_html()):
        assert "values of" in text
        assert "by spelling alone" in text
    assert "zoster" not in (str(anonymizer.report_) + str(paper) + anonymizer.report_.to_html() + paper.to_html()).lower()
    assert json.loads(paper.to_json())["risk"]["sensitive"]["ill"]["alike"] == 2


def test_the_line_to_write_mends_it() -> None:
    table = pd.DataFrame(people("caf\u00e9", "Cafe\u0301 "))
    told = str(risk(table, quasi=["age"], sensitive=["ill"]))
    line = told[told.index("table['ill'] = ") :].splitlines()[0]
    exec(line, {"table": table})
    found = risk(table, quasi=["age"], sensitive=["ill"])
    assert (found.l, found.sensitive["ill"].alike) == (1, 0)


def test_values_of_suppressed_rows_count_no_more() -> None:
    table = {"age": [30] * 6 + [60], "ill": ["flu", "gout"] * 3 + ["Gout "]}
    anonymizer = Anonymizer(quasi=["age"], sensitive=["ill"], models=[KAnonymity(3)], suppression=0.2, search="mondrian")
    starred = risk({"age": ["30"] * 6 + ["*"], "ill": table["ill"]}, quasi=["age"], sensitive=["ill"])
    assert starred.sensitive["ill"].alike == 0
    anonymizer.fit_transform(table)
    assert anonymizer.report_.risk.sensitive["ill"].alike == 2


def test_the_command_says_it(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    pd.DataFrame(people("gout", "Gout ")).to_csv(path, index=False)
    said = CliRunner().invoke(cli, ["risk", str(path), "--quasi", "age", "--sensitive", "ill"], catch_exceptions=False)
    assert f"2 {WORDS}" in said.output
    told = CliRunner().invoke(
        cli, ["anonymize", str(path), "--quasi", "age", "--sensitive", "ill", "--model", "k=2", "--model", "l=2"],
        catch_exceptions=False,
    )  # fmt: skip
    assert f"2 {WORDS}" in told.stderr
