"""The numbers that the worked examples quote from Adult and from articles, checked against the files and the formulas."""

from __future__ import annotations

import csv
import gzip
import math
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import cloister as cl
from cloister.noise import BinaryResponse, DiscreteLaplace, Exponential, Random
from cloister.privacy import LaplaceRelease, LossAccountant, PureDP, optimal, optimal_delta
from cloister.session import histogram, marginal

ROOT = Path(__file__).resolve().parents[2]
LEARN = ROOT / "docs" / "learn"
CANDIDATES = [Path(os.environ["CLOISTER_DATA"])] if "CLOISTER_DATA" in os.environ else [ROOT.parent / "shared" / "data"]
DATA = next((folder for folder in CANDIDATES if (folder / "adult" / "adult_train.csv.gz").is_file()), None)
needs_data = pytest.mark.skipif(DATA is None, reason="no adult/adult_train.csv.gz: set CLOISTER_DATA to the folder that holds it")

DECADES = {10: 1657, 20: 8054, 30: 8613, 40: 7175, 50: 4418, 60: 2015, 70: 508, 80: 78, 90: 43}
MARITAL = {
    "Married-civ-spouse": 22379,
    "Never-married": 16117,
    "Divorced": 6633,
    "Separated": 1530,
    "Widowed": 1518,
    "Married-spouse-absent": 628,
    "Married-AF-spouse": 37,
}
SURE = 1 - 1e-9  # the confidence of each bound below: a false alarm once in 10⁸ runs of this file or less


@cache
def column(name: str, *files: str) -> list[str]:
    """One column of the Adult files."""
    assert DATA is not None
    found: list[str] = []
    for file in files:
        with gzip.open(DATA / "adult" / file, "rt", encoding="utf-8") as lines:
            found += [row[name] for row in csv.DictReader(lines)]
    return found


def ages() -> list[int]:
    return [int(age) for age in column("age", "adult_train.csv.gz")]


@needs_data
def test_the_counts_of_the_page_on_local_privacy_are_those_of_the_rows() -> None:
    text = (LEARN / "local-privacy.md").read_text(encoding="utf-8")
    for name in ("occupation", "race"):
        counts = Counter(column(name, "adult_train.csv.gz"))
        assert all(f'"{value}": {count}' in text for value, count in counts.items())
    decades = Counter(age // 10 * 10 for age in ages())
    assert all(f"{decade}: {count}" in text for decade, count in decades.items())


@needs_data
def test_how_many_of_the_training_rows_are_over_50() -> None:
    held = ages()
    assert (len(held), sum(age > 50 for age in held)) == (32561, 6460)
    adult = cl.PrivateTable({"age": held}, columns={"age": cl.Integer(17, 90)})
    for spend in ("0.1", "0.001"):
        with cl.Session({"adult": adult}, budget=PureDP(1)) as session:
            answer = session.sql("SELECT COUNT(*) AS n FROM adult WHERE age > 50", spend=spend)
            assert abs(answer["n"][0] - 6460) <= answer.margin(SURE)["n"][0]


@needs_data
def test_ages_by_decade() -> None:
    held = ages()
    assert dict(sorted(Counter(age // 10 * 10 for age in held).items())) == DECADES
    adult = cl.PrivateTable({"age": held}, columns={"age": cl.Integer(10, 99)})
    with cl.Session({"adult": adult}, budget=PureDP(1), random=Random.deterministic(1)) as session:
        answer = session.measure(histogram("adult", "age", [*range(10, 100, 10), 99]), spend="0.1")
    assert answer.num_rows == len(DECADES)
    off = [abs(noisy - true) for noisy, true in zip(answer["count"], DECADES.values(), strict=True)]
    assert max(off) <= answer.margin(SURE)["count"][0]
    assert any(off)


@needs_data
def test_marital_states_and_their_10_000_draws() -> None:
    held = column("marital-status", "adult_train.csv.gz", "adult_test.csv.gz")
    assert len(held) == 48842
    assert dict(Counter(held)) == MARITAL
    adult = cl.PrivateTable({"state": held}, columns={"state": cl.Category(list(MARITAL))})
    with cl.Session({"adult": adult}, budget=PureDP(1)) as session:
        answer = session.measure(marginal("adult", ["state"]), spend="0.1")
        margin = answer.margin(SURE)["count"][0]
    assert all(abs(noisy - true) <= margin for noisy, true in zip(answer["count"], MARITAL.values(), strict=True))


@needs_data
def test_the_pages_rebuild_the_ages_of_the_file() -> None:
    held = ages()
    for page in ("counting", "histograms"):
        written = re.search(r"histogram_of_ages = (\{.*\})", (LEARN / f"{page}.md").read_text(encoding="utf-8"))
        assert written is not None
        rebuilt = {int(age): int(count) for age, count in re.findall(r"(\d+): (\d+)", written.group(1))}
        assert sum(rebuilt.values()) == len(held)
        for low in (*range(10, 100, 10), 51):
            high = low + 10 if low % 10 == 0 else 200
            assert sum(count for age, count in rebuilt.items() if low <= age < high) == sum(low <= age < high for age in held)


@needs_data
def test_the_cells_that_occur_and_who_never_married() -> None:
    """What the page on synthetic data quotes, and the counts that it rebuilds its table from."""
    names = ("age", "education", "occupation", "marital-status")
    train = dict(zip(names, (column(name, "adult_train.csv.gz") for name in names), strict=True))
    whole = dict(zip(names, (column(name, "adult_train.csv.gz", "adult_test.csv.gz") for name in names), strict=True))

    def cells(rows: dict[str, list[str]], *chosen: str) -> Counter[tuple[str, ...]]:
        return Counter(zip(*(rows[name] for name in chosen), strict=True))

    assert [len(cells(rows, "age", "marital-status")) for rows in (train, whole)] == [396, 418]
    assert [len(cells(rows, "education", "occupation")) for rows in (train, whole)] == [217, 225]
    assert sum(work != "?" for _, work in cells(train, "education", "occupation")) == 201
    triples = cells(train, "age", "occupation", "marital-status")
    assert (len(triples), sum(count == 1 for count in triples.values())) == (3175, 916)
    assert len(cells(whole, "age", "occupation", "marital-status")) == 3580
    held, alone = Counter(ages()), cells(train, "age", "marital-status")
    page = (LEARN / "synthetic-data.md").read_text(encoding="utf-8")
    told = [
        [int(each) for each in re.findall(rf'{name} = """([^"]+)"""', page)[0].split()] for name in ("by_age", "never_married")
    ]
    assert told == [[held[age] for age in range(17, 91)], [alone[(str(age), "Never-married")] for age in range(17, 91)]]


def test_the_draws_that_a_script_prints_are_of_a_thousandth() -> None:
    law = Exponential(epsilon="0.001").probabilities(list(MARITAL.values()))
    assert round(law[0], 3) == 0.958
    draws = Exponential(epsilon="0.001").sample(10_000, list(MARITAL.values()), random=Random.deterministic(1))
    spread = math.sqrt(10_000 * law[0] * (1 - law[0]))
    for first in (9545, int((draws == 0).sum())):  # the published draw, and ours
        assert abs(first - 10_000 * law[0]) < 5 * spread
    for epsilon in ("0.0009", "0.0012"):
        other = Exponential(epsilon=epsilon).probabilities(list(MARITAL.values()))[0]
        assert abs(9545 - 10_000 * other) > 3 * math.sqrt(10_000 * other * (1 - other))


def test_sports_and_diagnoses() -> None:
    football = [Exponential(epsilon=epsilon).probabilities([49, 25, 6, 2])[0] for epsilon in ("0.01", "0.1", "1")]
    assert [round(football[0], 3), round(football[1], 3), round(football[2], 5)] == [0.287, 0.661, 0.99999]
    table = {"0": (0.333, 0.333, 0.333), "0.1": (0.628, 0.140, 0.231), "0.5": (0.993, 0.0005, 0.0067)}
    for epsilon, expected in table.items():
        assert Exponential(epsilon=epsilon).probabilities([50, 20, 30]).tolist() == pytest.approx(expected, abs=6e-4)


def test_coins_and_averages() -> None:
    assert float(BinaryResponse(truth="1/2").guarantee.epsilon) == pytest.approx(math.log(3), abs=1e-12)
    assert float(BinaryResponse(truth="0.8", coin="0.8").guarantee.epsilon) == pytest.approx(math.log(21), abs=1e-12)
    variances = [DiscreteLaplace.for_epsilon(epsilon).variance for epsilon in ("0.1", "0.2", "0.3")]
    assert sum(variances[:2]) / 4 == pytest.approx(62.5, abs=0.1)
    assert 1 / sum(1 / variance for variance in variances[:2]) == pytest.approx(40, abs=0.2)
    assert variances[2] == pytest.approx(22.2, abs=0.2)


def test_the_popular_form_of_advanced_composition_is_impossible() -> None:
    claimed = 2 * math.sqrt(2 * 500 * math.log(1e5))
    assert claimed == pytest.approx(214.59, abs=0.01)
    assert float(optimal(PureDP(1), 500, "1e-5").epsilon) == pytest.approx(311.8, abs=0.05)
    assert optimal_delta(PureDP(1), 500, "214.59") > 0.5
    laplace = LossAccountant.of([LaplaceRelease(scale=1)] * 500)
    assert 258.2 <= float(laplace.to_approx("1e-5").epsilon) < 258.5
    assert 0.039 <= float(laplace.delta("214.59")) < 0.041
