"""The searches that prove nothing: their results meet the models, come near, end when told, and refuse in words."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from cloister.anonymize.metrics import METRICS
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.diversity import LDiversity
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.problem import Search
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches.border import border
from cloister.anonymize.searches.frontier import frontier
from cloister.anonymize.searches.greedy import Greedy
from cloister.anonymize.searches.lattice import OptimalLattice
from cloister.anonymize.searches.topdown import TopDown
from cloister.errors import CloisterError, InvalidParameter
from tests.anonymize.problems import every_node, problem_of, random_problem, recoded_at

MODELS: dict[str, list[PrivacyModel]] = {
    "k": [KAnonymity(3)],
    "k and l": [KAnonymity(2), LDiversity(2)],
    "k and t": [KAnonymity(2), TCloseness("0.4")],
}
SEARCHES: dict[str, Search] = {"greedy": Greedy(), "topdown": TopDown(), "topdown to a target": TopDown(target="disease")}


def published(recoded: Recoded) -> set[tuple[str, ...]]:
    """The rows as texts, to see what an attacker sees."""
    return {
        tuple(str(column.labels[column.codes[row]]) for column in recoded.columns.values())
        for row in np.flatnonzero(~recoded.suppressed)
    }


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_what_is_found_meets_the_models(search: Search, models: list[PrivacyModel]) -> None:
    for seed, limit in enumerate((0, 4, 12)):
        problem = random_problem(seed, models, limit=limit)
        if not every_node(problem):
            continue
        found = search.find(problem)
        assert problem.satisfied(found.classes).all()
        assert found.suppressed_rows <= limit
        # labels of the published table are the classes: no two codes of a column have one name
        assert found.classes.count == len(published(found))


@pytest.mark.parametrize("metric", METRICS)
def test_labels_of_several_levels_lose_no_more_than_greedy_ones(metric: str) -> None:
    for seed in range(3):
        problem = random_problem(seed, [KAnonymity(3)], limit=3, metric=metric)
        cut, levels = TopDown().find(problem), Greedy(width=3).find(problem)
        assert problem.metric.score(problem, cut) <= problem.metric.score(problem, levels) + 1e-9


def test_labels_stand_on_their_own_levels() -> None:
    """The rare trades stay joined, the frequent ones are told apart: no level of the lattice does that."""
    trades = ["cook"] * 5 + ["smith"] * 5 + ["judge", "notary"]
    table = {"trade": trades}
    levels = {"trade": [["manual", "legal", "legal", "manual"], ["*"] * 4]}  # cook, judge, notary, smith
    problem = problem_of(table, levels, [KAnonymity(2)])
    found = TopDown().find(problem)
    assert published(found) == {("cook",), ("smith",), ("legal",)}
    assert found.levels is None
    optimal = OptimalLattice().find(problem)
    assert problem.metric.score(problem, found) < problem.metric.score(problem, optimal)


def test_a_target_decides_what_is_split() -> None:
    """Two columns of which one may be split: without a target the larger gain, with one what tells of it."""
    rows = 16
    table: dict[str, list[Any]] = {
        "useful": [1, 2] * (rows // 2),
        "useless": [1, 1, 2, 2] * (rows // 4),
        "ill": ["yes", "no"] * (rows // 2),
    }
    problem = problem_of(
        table, {"useful": [["*", "*"]], "useless": [["*", "*"]]}, [KAnonymity(6)], sensitive=["ill"], weights={"useless": 2.0}
    )
    assert published(TopDown().find(problem)) == {("*", "1"), ("*", "2")}
    assert published(TopDown(target="ill").find(problem)) == {("1", "*"), ("2", "*")}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_stopped_at_once(search: Search) -> None:
    asked = count()
    problem = random_problem(6, [KAnonymity(3)], limit=4, stop=lambda: next(asked) >= 0)
    found = search.find(problem)
    assert problem.satisfied(found.classes).all()


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_models_that_cannot_be_met(search: Search) -> None:
    with pytest.raises(InvalidParameter, match="whole table as one class"):
        search.find(random_problem(1, [KAnonymity(41)]))
    table = {"name": list("abcdef"), "disease": list("xyxyxy")}
    with pytest.raises(CloisterError, match="'name' is in the way"):
        search.find(problem_of(table, {"name": [["x", "x", "x", "y", "y", "z"]]}, [KAnonymity(3)], sensitive=["disease"]))


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_an_empty_table(search: Search) -> None:
    problem = problem_of({"age": [], "disease": []}, {"age": [[]]}, [KAnonymity(5)], sensitive=["disease"])
    assert search.find(problem).classes.count == 0


@pytest.mark.parametrize(("models", "limit"), [([KAnonymity(3)], 4), ([LDiversity(1.7, kind="entropy")], 6)])
def test_the_border(models: list[PrivacyModel], limit: int) -> None:
    for seed in range(3):
        problem = random_problem(seed, models, limit=limit)
        nodes = every_node(problem)
        found = border(problem)
        assert {tuple(int(level) for level in levels) for levels in np.argwhere(found.allowed)} == set(nodes)
        for levels in found.lowest:
            assert not any(
                (*levels[:place], level - 1, *levels[place + 1 :]) in nodes for place, level in enumerate(levels) if level
            )


@pytest.mark.parametrize("highest", [False, True])
def test_the_frontier(highest: bool) -> None:
    problem = random_problem(4, [KAnonymity(2)], limit=6)
    points = []
    for levels in every_node(problem):
        recoded = recoded_at(problem, levels)
        sizes = recoded.classes.sizes
        risk = 0.0 if not len(sizes) else 1 / sizes.min() if highest else len(sizes) / sizes.sum()
        points.append((float(risk), problem.metric.score(problem, recoded)))
    choices = frontier(problem, highest=highest)
    found = {(one.highest_risk if highest else one.risk, one.loss) for one in choices}
    for risk, loss in found:
        assert not any((one <= risk and other < loss - 1e-9) or (one < risk - 1e-9 and other <= loss) for one, other in points)
    for risk, loss in points:
        assert any(one <= risk + 1e-9 and other <= loss + 1e-9 for one, other in found)


def test_a_frontier_that_is_stopped_has_something() -> None:
    asked = count()
    problem = replace(random_problem(4, [KAnonymity(2)], limit=6), stop=lambda: next(asked) > 20)
    assert frontier(problem)
