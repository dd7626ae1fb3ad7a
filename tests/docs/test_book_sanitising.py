"""The figures on the page about sanitising, checked: of employees and a made-up census, and of Adult where it is at hand."""

from __future__ import annotations

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.anonymize import Anonymizer, KAnonymity, LDiversity, TCloseness, attack_tables, risk
from cloister.noise import Random

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "learn" / "sanitising.md"
STEPS = ("k = 3", "and l = 2", "and t = 0.2")


@cache
def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


needs_data = pytest.mark.skipif(
    not example("learn_sanitising_adult")["FILE"].is_file(),
    reason="no adult/adult.csv.gz: set CLOISTER_DATA to the folder that holds it",
)


def shown(what: str, whose: str) -> list[float]:
    """A row of the page's table on Adult: what stands under k, l and t."""
    rows = PAGE.read_text(encoding="utf-8").split(f"| {what} | published |")[1]
    line = rows.split("\n")[0] if whose == "published" else rows.split("| | ours |")[1].split("\n")[0]
    return [float(number.replace(",", "")) for number in re.findall(r"[\d.,]+", line)]


@needs_data
@pytest.mark.parametrize("whose", ["published", "ours"])
def test_the_page_shows_what_adult_gives(whose: str) -> None:
    adult = example("learn_sanitising_adult")
    table = adult["people"]()
    assert len(table["rich"]) == 48_842
    assert round(float(np.mean(table["rich"])), 2) == 0.24
    classes = [
        adult["published"](table, name) if whose == "published" else adult["ours"](table, adult["STEPS"][name]) for name in STEPS
    ]
    assert [len(each) for each in classes] == shown("classes", whose)
    assert whose == "ours" or shown("classes", whose) == [500, 309, 114], "those that the notebook prints"
    lost = [100 * adult["penalty"](table, each) for each in classes]
    assert lost == pytest.approx(shown("what is lost (certainty penalty)", whose), rel=0.005, abs=0.005)
    assert [adult["told"](table, each) for each in classes] == shown("people whose income is told", whose)
    assert f"{max(map(len, classes[2])):,}" in PAGE.read_text(encoding="utf-8")
    assert all(sum(map(len, each)) == 48_842 and min(map(len, each)) >= 3 for each in classes)
    assert adult["distance"](table, classes[2]) <= 0.2 < adult["distance"](table, classes[1])


@needs_data
def test_who_stands_alone_in_adult() -> None:
    import csv
    import gzip

    with gzip.open(example("learn_sanitising_adult")["FILE"], "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    adult = {name: [row[name] for row in rows] for name in rows[0]}
    said = PAGE.read_text(encoding="utf-8")
    every = [name for name in adult if name != "income"]
    rest = [name for name in every if name not in ("fnlwgt", "relationship")]
    others = [name for name in rest if name not in ("age", "race")]
    assert len(others) == 10
    for columns, count in ((every, 48_731), (rest, 35_649), (others, 16_183)):
        assert risk(adult, quasi=columns).sample_uniques == count
        assert f"{count:,}" in said
    adult["age"] = [int(age) for age in adult["age"]]
    five = Anonymizer(quasi=["age", "sex"], sensitive=["income"], models=[KAnonymity(5)])
    five.recode({name: adult[name] for name in ("age", "sex", "income")})
    assert five.report_.risk.k == 5
    assert (five.report_.suppressed, five.report_.risk.sensitive["income"].told) == (18, 2_067)
    assert "18 people are left out" in said
    assert "2,067 people" in said


def test_the_made_up_census_keeps_its_shares_under_each_step() -> None:
    adult = example("learn_sanitising_adult")
    table = adult["people"](made_up=True)
    overall = float(np.mean(table["rich"]))
    assert round(overall, 2) == 0.24
    asked = [KAnonymity(3), LDiversity(2), TCloseness("0.2")]
    classes = adult["ours"](table, asked)
    rich = np.array(table["rich"])
    assert sum(int(rich[rows].sum()) for rows in classes) == int(rich.sum())
    assert max(abs(float(rich[rows].mean()) - overall) for rows in classes) <= 0.2
    assert adult["told"](table, classes) == 0
    assert adult["told"](table, adult["ours"](table, [KAnonymity(3)])) > 1_000


def test_the_staff_of_the_script_is_that_of_the_page() -> None:
    names: dict[str, Any] = {}
    block = re.search(r"^staff = \{.*?^\}", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert block is not None
    exec(block.group(), names)
    assert names["staff"] == example("learn_sanitising")["STAFF"]


def test_each_step_falls_to_the_next_attack() -> None:
    script = example("learn_sanitising")
    staff = script["STAFF"]
    dropped = {name: column for name, column in staff.items() if name != "name"}
    linkage, homogeneity, *_ = attack_tables(staff, dropped, quasi=script["KNOWN"], sensitive=["absent"], learning=False)
    assert (linkage.success, homogeneity.success) == (1, 1)

    released, program = script["staff_table"]([KAnonymity(3)])
    linkage, homogeneity, *_ = program.certificate(released, learning=False).attacks
    assert (linkage.success, homogeneity.success) == (pytest.approx(1 / 3), 3 / 12)

    released, program = script["staff_table"]([KAnonymity(3), LDiversity(2)])
    assert program.certificate(released, learning=False).attacks[1].success == 0

    both = script["both_releases"]()
    assert (both.success, both.baseline) == (pytest.approx(5 / 12), 0)


def test_anatomy_gives_each_person_three_reasons() -> None:
    pieces = example("learn_sanitising")["torn"](Random.deterministic(20))
    assert sorted(pieces.quasi["age"]) == sorted(example("learn_sanitising")["STAFF"]["age"])
    for group in range(pieces.groups):
        held = [reason for own, reason in zip(pieces.sensitive["group"], pieces.sensitive["absent"], strict=True) if own == group]
        assert sorted(held) == ["burnout", "flu", "injury"]
    assert pieces.probability * 3 == 1


def test_labels_weaken_the_attack_and_rounding_hardly_does() -> None:
    full, rounded, highest, labels = example("learn_sanitising_outputs")["attacked"]()
    assert full.area > 0.7
    assert full.area - rounded.area < 0.02
    assert full.area - highest.area < 0.02
    assert labels.area < 0.6
    assert labels.advantage < full.advantage
