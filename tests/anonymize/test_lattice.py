"""The optimal search against every node of small lattices, for each metric, model and limit; and what it says when it cannot."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from cloister.anonymize.metrics import METRICS, Discernibility, Metric
from cloister.anonymize.metrics.named import _Squares
from cloister.anonymize.models.base import PrivacyModel
from cloister.anonymize.models.closeness import TCloseness
from cloister.anonymize.models.diversity import LDiversity
from cloister.anonymize.models.k import KAnonymity
from cloister.anonymize.models.presence import DeltaPresence
from cloister.anonymize.problem import Problem
from cloister.anonymize.recoding import Recoded
from cloister.anonymize.searches import counting, tables
from cloister.anonymize.searches.counting import Counter
from cloister.anonymize.searches.greedy import Greedy
from cloister.anonymize.searches.lattice import OptimalLattice
from cloister.errors import CloisterError, InvalidParameter
from tests.anonymize.problems import every_node, problem_of, random_problem, recoded_at
from tests.tiers import by_day_and_night

MODELS: dict[str, list[PrivacyModel]] = {
    "k": [KAnonymity(3)],
    "k and l": [KAnonymity(2), LDiversity(2)],
    "entropy l": [LDiversity(1.7, kind="entropy")],
    "k and t": [KAnonymity(2), TCloseness("0.35")],
}


def score_of(problem: Problem, search: Any) -> float:
    """What a search's result scores, as any recoding, after its rows were checked."""
    found = search.find(problem)
    assert found.suppressed_rows <= problem.limit
    assert problem.satisfied(found.classes).all()
    return problem.metric.score(problem, found)


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("metric", METRICS)
def test_the_best_of_all(metric: str, models: list[PrivacyModel]) -> None:
    for seed, limit in enumerate((0, 3, 10, 40)):
        problem = random_problem(seed, models, metric=metric, limit=limit)
        nodes = every_node(problem)
        if not nodes:
            with pytest.raises(CloisterError):
                OptimalLattice().find(problem)
            continue
        best = min(score for score, _ in nodes.values())
        found = OptimalLattice().find(problem)
        assert found.levels is not None
        assert found.proof is not None
        assert found.proof.optimal
        assert found.proof.bound == pytest.approx(best, rel=1e-9, abs=1e-12)
        levels = tuple(found.levels.values())
        assert nodes[levels][0] == pytest.approx(best, rel=1e-9, abs=1e-12)
        assert found.suppressed.tolist() == recoded_at(problem, levels).suppressed.tolist()
        boxes = score_of(problem, OptimalLattice(most_nodes=1))
        assert boxes == pytest.approx(best, rel=1e-9, abs=1e-12)
        greedy = Greedy().find(problem)
        assert greedy.proof is not None
        assert greedy.proof.bound is not None
        assert greedy.proof.bound <= best * (1 + 1e-9) <= problem.metric.score(problem, greedy) * (1 + 1e-9) ** 2


@pytest.mark.parametrize("metric", METRICS)
def test_scores_and_floors_of_nodes(metric: str) -> None:
    """The score from classes is the score from rows, and no floor is above what stands on or over it."""
    problem = random_problem(7, [KAnonymity(3)], metric=metric, limit=40, weights={"age": 2.0, "town": 0.5})
    ready = problem.metric.on_lattice(problem)
    assert ready is not None
    counter = Counter(problem)
    nodes = every_node(problem)
    floors = {}
    for levels, (score, lost) in nodes.items():
        node = counter.node(levels)
        kept = counter.satisfied(node)
        assert int(node.sizes[~kept].sum()) == lost
        assert ready.score(node, kept) == pytest.approx(score, rel=1e-9, abs=1e-12)
        by_levels = float(ready.floors([np.array(level) for level in levels]))
        floors[levels] = max(by_levels, ready.floor(node))
    for low, floor in floors.items():
        for high, (score, _) in nodes.items():
            if all(one <= other for one, other in zip(low, high, strict=True)):
                assert floor <= score + 1e-9


@pytest.mark.parametrize("metric", METRICS)
def test_lost_rows_alone_may_cost_too_much(metric: str) -> None:
    """Where a metric says how many rows may be lost for a score, no node that loses more has a better one."""
    problem = random_problem(8, [KAnonymity(4)], metric=metric, limit=40)
    ready = problem.metric.on_lattice(problem)
    assert ready is not None
    nodes = every_node(problem)
    for best, _ in nodes.values():
        most = ready.most_lost(best)
        assert all(score >= best for score, lost in nodes.values() if lost > most)
    costs = [lost > ready.most_lost(score + 1e-9) for score, lost in nodes.values()]
    assert not any(costs)
    assert ready.most_lost(0.0) < 0 if metric == "discernibility" else ready.most_lost(0.0) == np.inf


def test_nodes_that_lose_too_much_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many rows that may be suppressed the optimum stays, and fewer nodes are judged."""
    fewer = 0
    for seed in range(12):
        problem = random_problem(seed, [KAnonymity(3)], rows=60, metric="discernibility", limit=60)
        with monkeypatch.context() as patch:
            patch.setattr(_Squares, "most_lost", lambda self, best: np.inf)
            plain = OptimalLattice().find(problem)
        found = OptimalLattice().find(problem)
        assert found.levels == plain.levels
        assert (found.suppressed == plain.suppressed).all()
        assert found.proof is not None
        assert plain.proof is not None
        assert found.proof.bound == plain.proof.bound == min(score for score, _ in every_node(problem).values())
        judged, all_judged = (int(proof.what.split(" of ")[0]) for proof in (found.proof, plain.proof))
        assert judged <= all_judged
        fewer += judged < all_judged
    assert fewer


def test_wide_codes_count_as_packed_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(3, [KAnonymity(2), LDiversity(2), TCloseness("0.4")], limit=5)
    packed = {levels: counted(Counter(problem), levels) for levels in every_node(replace(problem, limit=40))}
    monkeypatch.setattr(tables, "_BITS", 4)
    wide = Counter(problem)
    for levels, found in packed.items():
        assert counted(wide, levels) == found


def counted(counter: Counter, levels: tuple[int, ...]) -> list[Any]:
    """Labels, sizes and verdict of each class."""
    node = counter.node(levels)
    labels = [node.codes(column).tolist() for column in range(len(levels))]
    return sorted(zip(*labels, node.sizes.tolist(), counter.satisfied(node).tolist(), strict=True))


def test_tables_are_let_go_and_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(5, [KAnonymity(3)], limit=4)
    best = score_of(problem, OptimalLattice())
    monkeypatch.setattr(counting, "_MOST_KEPT", 20)
    assert score_of(problem, OptimalLattice()) == best


def test_presence_is_counted_with_its_rows() -> None:
    problem = random_problem(4, [KAnonymity(2), DeltaPresence("0.1", "0.9")], limit=6)
    marked = np.arange(problem.table.rows) % 3 > 0
    problem = replace(problem, research=marked)
    nodes = every_node(problem)
    assert score_of(problem, OptimalLattice()) == pytest.approx(min(score for score, _ in nodes.values()))


class Odd(Metric):
    """A metric that knows nothing of lattices, and is not monotone."""

    name = "odd"

    def score(self, problem: Problem, recoded: Recoded) -> float:
        """Some number of the levels."""
        assert recoded.levels is not None
        return float(sum((place + 2) * level % 5 for place, level in enumerate(recoded.levels.values())))


@pytest.mark.parametrize("limit", [0, 6])
def test_a_metric_of_ones_own(limit: int) -> None:
    problem = random_problem(2, [KAnonymity(3)], metric=Odd(), limit=limit)
    best = min(score for score, _ in every_node(problem).values())
    for search in (OptimalLattice(), OptimalLattice(most_nodes=1)):
        assert score_of(problem, search) == best


def test_weights_move_the_optimum() -> None:
    heavy = [
        OptimalLattice().find(random_problem(1, [KAnonymity(4)], weights={column: 100.0})).levels for column in ("age", "town")
    ]
    assert heavy[0] is not None
    assert heavy[1] is not None
    assert heavy[0]["age"] <= heavy[1]["age"]
    assert heavy[1]["town"] <= heavy[0]["town"]
    assert heavy[0] != heavy[1]


def test_an_empty_table() -> None:
    problem = problem_of({"age": [], "sex": []}, {"age": [[]], "sex": [[]]}, [KAnonymity(5)])
    for metric in METRICS.values():
        found = OptimalLattice().find(replace(problem, metric=metric))
        assert found.levels == {"age": 0, "sex": 0}
        assert metric.score(problem, found) == (0 if metric.name != "average class size" else 0.0)


def test_one_row() -> None:
    table, levels = {"age": [31]}, {"age": [["*"]]}
    assert OptimalLattice().find(problem_of(table, levels, [KAnonymity(1)])).levels == {"age": 0}
    with pytest.raises(InvalidParameter, match="whole table as one class"):
        OptimalLattice().find(problem_of(table, levels, [KAnonymity(2)]))
    gone = OptimalLattice().find(problem_of(table, levels, [KAnonymity(2)], limit=1))
    assert gone.suppressed.tolist() == [True]


def test_columns_that_say_nothing() -> None:
    """All values missing, and all the same."""
    problem = problem_of(
        {"a": [None] * 6, "b": ["x"] * 6, "c": [1, 1, 1, 2, 2, 2]},
        {"a": [["*"]], "b": [["*"]], "c": [["*", "*"]]},
        [KAnonymity(3)],
    )
    for metric in METRICS.values():
        assert OptimalLattice().find(replace(problem, metric=metric)).levels == {"a": 0, "b": 0, "c": 0}


def test_k_as_large_as_the_table_and_larger() -> None:
    table, levels = {"age": list(range(8))}, {"age": [["low"] * 4 + ["high"] * 4, ["*"] * 8]}
    assert OptimalLattice().find(problem_of(table, levels, [KAnonymity(8)])).levels == {"age": 2}
    with pytest.raises(InvalidParameter, match="k = 8") as refused:
        OptimalLattice().find(problem_of(table, levels, [KAnonymity(9)]))
    assert "suppression" in refused.value.instead
    assert OptimalLattice().find(problem_of(table, levels, [KAnonymity(9)], limit=8)).suppressed.all()


@by_day_and_night("rows", 200_000, 1_000_000)
def test_a_million_distinct_values(rows: int) -> None:
    codes = np.arange(rows)
    table = {"number": codes.tolist(), "half": (codes % 2).tolist()}
    levels: dict[str, Any] = {"number": [(codes // 1000).tolist(), ["*"] * rows], "half": [["*", "*"]]}
    found = OptimalLattice().find(problem_of(table, levels, [KAnonymity(5)], metric="discernibility"))
    assert found.levels == {"number": 1, "half": 0}
    assert found.classes.count == 2 * rows // 1000


def test_more_columns_than_bits() -> None:
    """Twelve columns of 64 values: keys need 72 bits, and two rows differ only in the first and the last."""
    draw = np.random.default_rng(3)
    table = {f"c{place}": draw.integers(0, 64, 30).tolist() for place in range(12)}
    table["c0"][:2], table["c11"][:2] = [0, 1], [0, 1]
    sizes = {name: len(set(values)) for name, values in table.items()}
    problem = problem_of(table, {name: [["*"] * size] for name, size in sizes.items()}, [KAnonymity(2)], limit=20)
    found = OptimalLattice().find(problem)
    small = every_node(replace(problem, quasi=problem.quasi[:6]))
    assert found.proof is not None
    assert found.proof.optimal
    assert len(small) < 2**6
    assert score_of(replace(problem, quasi=problem.quasi[:6]), OptimalLattice()) == pytest.approx(
        min(one for one, _ in small.values())
    )


@pytest.mark.parametrize("most_nodes", [1, 1_000_000])
def test_an_interrupted_search_has_its_best_so_far(most_nodes: int) -> None:
    asked = count()
    problem = random_problem(6, [KAnonymity(3)], limit=4, metric=Discernibility(), stop=lambda: next(asked) > 3)
    best = min(score for score, _ in every_node(problem).values())
    found = OptimalLattice(most_nodes=most_nodes).find(problem)
    assert found.proof is not None
    assert found.proof.bound is not None
    assert not found.proof.optimal
    assert found.proof.bound <= best <= problem.metric.score(problem, found)
    assert "judged in the time" in found.proof.what


def test_no_time_at_all() -> None:
    problem = random_problem(6, [KAnonymity(3)], limit=4, seconds=0.0)
    for search in (OptimalLattice(), OptimalLattice(most_nodes=1), Greedy()):
        found = search.find(problem)
        assert problem.satisfied(found.classes).all()
        assert found.proof is not None
        assert not found.proof.optimal


def test_interrupted_before_anything_was_found() -> None:
    """The top is not allowed, a node below it is: entropy ℓ-diversity is not monotone where rows may be suppressed."""
    table = {"g": ["a"] * 4 + ["b"], "s": ["x", "y", "x", "y", "z"]}
    problem = problem_of(table, {"g": [["*", "*"]]}, [LDiversity(1.9, kind="entropy")], limit=1, sensitive=["s"])
    assert OptimalLattice().find(problem).levels is not None
    told: list[float] = []
    problem = replace(problem, progress=lambda stage, done: told.append(done))
    OptimalLattice().find(problem)
    assert told
    assert told[-1] == 1.0
    assert all(0 <= done <= 1 for done in told)


def test_what_is_in_the_way() -> None:
    table = {"name": list("abcdef"), "sex": list("MMMFFF")}
    problem = problem_of(table, {"name": [["x", "x", "x", "y", "y", "z"]], "sex": [["*", "*"]]}, [KAnonymity(3)])
    with pytest.raises(InvalidParameter) as refused:
        OptimalLattice().find(problem)
    assert "'name' is in the way" in refused.value.why
    assert "3 of 6 rows" in refused.value.why
    assert 'suppression="0.5000"' in refused.value.instead
    allowed = OptimalLattice().find(replace(problem, limit=3))
    assert allowed.suppressed_rows == 3


def test_what_is_in_the_way_together() -> None:
    table = {"one": list("aabb"), "two": list("cdcd"), "three": list("xxxx")}
    same = {"one": [["a", "b"]], "two": [["c", "d"]], "three": [["x"]]}
    with pytest.raises(InvalidParameter, match="several columns") as refused:
        OptimalLattice().find(problem_of(table, same, [KAnonymity(4)]))
    assert "'one' (2 labels), 'two' (2 labels)" in refused.value.why


def test_a_model_that_the_whole_table_misses() -> None:
    problem = random_problem(1, [LDiversity(9)], limit=3)
    with pytest.raises(InvalidParameter, match="whole table as one class"):
        OptimalLattice().find(problem)
