"""The figures on the page about learning, checked: the mortgage products, and where the files are at hand, those of Adult."""

from __future__ import annotations

import ast
import os
import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.noise import Random

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "learn" / "learning.md"
DATA = Path(os.environ.get("CLOISTER_DATA", ROOT.parent / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (DATA / "adult" / "adult_train.csv.gz").is_file(),
    reason="no adult/adult_train.csv.gz: set CLOISTER_DATA to the folder that holds it",
)


@cache
def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def shown(method: str) -> list[float]:
    """What the page prints as ours, left to right: no privacy, ε = 1, 0.1, 0.01."""
    rows = PAGE.read_text(encoding="utf-8").split(f"| {method} | published")[1]
    ours = rows.split("| ours, declared bounds |")[1].split("\n")[0]
    return [float(number) for number in re.findall(r"([\d.]+) (?:±[^|]*)?%", ours)]


def test_the_mortgage_products_are_the_published_ones() -> None:
    mortgage = example("learn_mortgage")
    missed, paid = mortgage["products"](mortgage["MISSED"], mortgage["PAID"])
    assert (round(missed, 4), round(paid, 4)) == (0.025, 0.0056)
    applicant = mortgage["coded"]([mortgage["APPLICANT"]])
    shares = [(mortgage["coded"](rows) == applicant).sum(axis=0).tolist() for rows in (mortgage["MISSED"], mortgage["PAID"])]
    assert shares == [[2, 1, 2], [1, 1, 2]]  # young, medium income, female: of four and of six, as published
    page = re.findall(r"^(?:missed|paid) = (\[.*\])$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [ast.literal_eval(rows) for rows in page] == [mortgage["MISSED"], mortgage["PAID"]]


@needs_data
@pytest.mark.parametrize("method", ["Gaussian naive Bayes", "logistic regression"])
def test_the_page_shows_what_adult_gives(method: str) -> None:
    adult = example("learn_adult")
    name = "GaussianNB" if "naive" in method else "LogisticRegression"
    kind = getattr(__import__("cloister.learn", fromlist=[name]), name)
    plain, one, tenth, hundredth = shown(method)
    assert plain == pytest.approx(100 * adult["PUBLISHED"][name][None], abs=0.005)
    assert 100 * adult["accuracies"](kind, None)[0] == pytest.approx(plain, abs=0.005)
    random = Random.deterministic(1)
    for epsilon, printed, off in (("1", one, 0.1), ("0.1", tenth, 1.0), ("0.01", hundredth, 2.5)):
        found = adult["accuracies"](kind, epsilon, 6, random=random)
        assert 100 * np.mean(found) == pytest.approx(printed, abs=off)
