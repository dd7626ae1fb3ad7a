"""The attacks of textbooks' first chapters: each succeeds on exact rows and answers, and fails on what noise protected."""

from __future__ import annotations

import math
import runpy
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks.answers import linear_parameters, regularisation, template_by_answers, template_by_distances
from cloister.attacks.linkage import Scoreboard
from cloister.attacks.published import Block, Printed
from cloister.errors import InvalidParameter
from cloister.noise import Random

EXAMPLE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "learn_famous_attacks.py"))


def test_seven_people_are_rebuilt_from_a_printed_block_and_no_others_explain_it() -> None:
    block = Block(values=range(91), categories=EXAMPLE["CATEGORIES"])
    found = block.rebuilt(EXAMPLE["printed"](EXAMPLE["ROWS"]), most=2)
    assert [sorted(each) for each in found] == [sorted(EXAMPLE["ROWS"])]


def test_noise_leaves_a_block_that_no_rows_explain() -> None:
    """Or, by chance, rows of others: at ε = 1 the true seven are not among ten draws' findings."""
    block = Block(values=range(116), categories=EXAMPLE["CATEGORIES"])
    for seed in range(10):
        noisy = EXAMPLE["printed"](EXAMPLE["ROWS"], 14.0, Random.deterministic(seed))
        assert sorted(EXAMPLE["ROWS"]) not in [sorted(each) for each in block.rebuilt(noisy, most=1)]


def every(people: int, values: range) -> list[list[tuple[int, str]]]:
    """All sets of so many rows."""
    return [list(each) for each in combinations_with_replacement(sorted(product(values, "FM")), people)]


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_finds_exactly_what_a_search_of_all_tables_finds(seed: int) -> None:
    """Odd groups and even ones, medians between two values, means that are rounded."""
    draw = np.random.default_rng(seed)
    people, values = int(draw.integers(3, 5)), range(7)
    rows = [(int(draw.integers(0, 7)), "FM"[draw.integers(2)]) for _ in range(people)]

    def told(rows: list[tuple[int, str]]) -> list[tuple[int, float, float]]:
        groups = [[age for age, sex in rows if wanted in ("", sex)] for wanted in ("", "F", "M")]
        return [(len(ages), round(sum(ages) / len(ages), 1), float(np.median(ages))) if ages else (0, 0, 0) for ages in groups]

    printed = [
        Printed(count=count, mean=mean if count else None, median=median if count else None, where={"sex": sex} if sex else {})
        for sex, (count, mean, median) in zip(("", "F", "M"), told(rows), strict=True)
    ]
    found = Block(values=values, categories={"sex": ("F", "M")}).rebuilt(printed, most=1000)
    alike = [each for each in every(people, values) if told(each) == told(rows)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, alike))
    assert sorted(rows) in map(sorted, found)


def test_a_contradiction_is_explained_by_nothing() -> None:
    block = Block(values=range(20), categories={"sex": ("F", "M")})
    assert block.rebuilt([Printed(count=3, mean=5), Printed(count=1, mean=19, where={"sex": "M"})]) == []
    with pytest.raises(InvalidParameter, match="everyone"):
        block.rebuilt([Printed(count=1, where={"sex": "M"})])
    with pytest.raises(InvalidParameter, match="where="):
        block.rebuilt([Printed(count=3), Printed(count=1, where={"sex": "X"})])


def test_a_few_ratings_name_people_and_counts_of_films_name_nobody() -> None:
    records = EXAMPLE["ratings"](600, 800, 1)
    right, wrong = EXAMPLE["named"](records, 4, days=14, tries=60, seed=4)
    assert right > 0.9
    assert wrong < 0.05
    none, _ = EXAMPLE["named"](records, 1, days=4000, tries=60, seed=4)
    assert none < 0.3
    rows = [(person, film) for person, record in enumerate(records) for film in record]
    table = cl.PrivateTable(
        {"person": [person for person, _ in rows], "film": [film for _, film in rows]},
        columns={"person": cl.Identifier(), "film": cl.Integer(0, 799)}, unit="person", max_rows=40,
    )  # fmt: skip
    with cl.Session({"seen": table}, budget=cl.PureDP(1)) as session:
        answer = session.sql("SELECT film, COUNT(*) AS n FROM seen WHERE film < 5 GROUP BY film", spend=1)
        assert list(answer.to_pandas().columns) == ["film", "n"]
        assert len(answer.to_pandas()) == 5


def test_a_wrong_memory_is_not_believed() -> None:
    """Somebody who is not in the file stands out from nobody."""
    records = EXAMPLE["ratings"](400, 800, 1)
    strangers, board = EXAMPLE["ratings"](60, 800, 2), Scoreboard(records=records, time_scale=14)
    named = [board.search({film: each[film] for film in list(each)[:4]}).named for each in strangers]
    assert np.mean(named) < 0.35
    for wrong in ({"records": records[:1]}, {"records": records, "time_scale": 0}):
        with pytest.raises(InvalidParameter):
            Scoreboard(**wrong)


def test_a_loyalty_card_names_the_patients_of_prescriptions() -> None:
    people = list(EXAMPLE["pharmacies"](400, 3))
    board = Scoreboard(records=[visits for _, _, visits, _ in people], time_scale=1)
    hits = [board.search(seen).record == place for place, (_, _, _, seen) in enumerate(people[:60]) if len(seen) > 2]
    assert np.mean(hits) > 0.95


def test_a_template_is_copied_by_scores_and_by_yes_and_no() -> None:
    hidden = np.random.default_rng(1).normal(0, 0.5, 12)
    asked: list[int] = []

    def distance(touch: Any) -> float:
        asked.append(1)
        return float(np.linalg.norm(touch - hidden))

    assert np.abs(template_by_distances(distance, 12) - hidden).max() < 1e-9
    assert len(asked) == 13
    opened = template_by_answers(lambda touch: bool(np.linalg.norm(touch - hidden) < 1), hidden + 0.1, bits=14)
    assert np.abs(opened - hidden).max() < 1e-3
    rough = template_by_distances(lambda touch: round(float(np.linalg.norm(touch - hidden)), 1), 12)
    assert 1e-3 < np.abs(rough - hidden).max() < 1  # rounding slows it down
    with pytest.raises(InvalidParameter, match="accepted"):
        template_by_answers(lambda touch: False, hidden)


def test_weights_and_penalty_of_a_model_are_computed_from_its_answers() -> None:
    weights, intercept = np.array([1.5, -2.0, 0.25]), -0.75
    found, constant = linear_parameters(lambda rows: 1 / (1 + np.exp(-(rows @ weights + intercept))), 3)
    np.testing.assert_allclose([*found, constant], [*weights, intercept], atol=1e-9)
    for penalty in (0.5, 4.0):
        assert math.isclose(EXAMPLE["stolen_penalty"](penalty), penalty, rel_tol=0.02)
    with pytest.raises(InvalidParameter, match="weights="):
        regularisation(np.zeros(2), np.ones(2))


@pytest.mark.slow
def test_regularisation_is_a_partial_defence() -> None:
    """The best penalty leaves members recognisable; the one that hides them has learnt nothing; ε bounds it."""
    from cloister.learn import LogisticRegression

    told, accuracy = EXAMPLE["remembered"](lambda: EXAMPLE["penalised"](1.0))
    hidden, useless = EXAMPLE["remembered"](lambda: EXAMPLE["penalised"](100.0))
    private, _ = EXAMPLE["remembered"](lambda: LogisticRegression(epsilon=1, bounds=(-1, 1)))
    assert told > 0.62
    assert accuracy > 0.74
    assert hidden < 0.6
    assert useless < 0.6
    assert private < math.e / (1 + math.e)
