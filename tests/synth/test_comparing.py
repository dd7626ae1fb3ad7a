"""The owner's comparison: exact where it counts, marked everywhere, and its attacks find a model that keeps its rows, and not one
that keeps its promise."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cloister as cl
from cloister.attacks import MembershipResult, closest_records, singling_out
from cloister.noise import Random
from cloister.synth import SyntheticModel
from cloister.synth.comparing import MARK, Comparison, density_of, guess_of, told_apart
from cloister.synth.mixture import Mixture
from tests.synth.conftest import made_up, rows

pytest.importorskip("sklearn")
MEMBERS, OTHERS = 2_000, 4_000


def part(held: dict[str, np.ndarray], where: slice) -> dict[str, np.ndarray]:
    return {name: values[where] for name, values in held.items()}


@pytest.fixture(scope="module")
def held() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Members, and others of the same population."""
    every = made_up(31, MEMBERS + OTHERS)
    return part(every, slice(MEMBERS)), part(every, slice(MEMBERS, None))


@pytest.fixture(scope="module")
def honest(held: Any) -> SyntheticModel:
    declared = {name: cl.Integer(0, 29 if name == "e" else 6) for name in held[0]}
    return cl.synth.fit_frame(held[0], declared, epsilon="0.5", delta="1e-6", random=Random.deterministic(7))


@pytest.fixture(scope="module")
def keeping_rows(honest: SyntheticModel, held: Any) -> SyntheticModel:
    """BROKEN ON PURPOSE: a component for each member, so that every row that is drawn is somebody's."""
    columns = tuple(np.eye(each.number)[held[0][each.name]] for each in honest.columns)
    return replace(honest, mixture=Mixture(np.full(MEMBERS, 1 / MEMBERS), columns))


@pytest.fixture(scope="module")
def found(honest: SyntheticModel, held: Any) -> Comparison:
    return honest.compare(held[0], others=held[1], target="f", random=Random.deterministic(1))


@pytest.fixture(scope="module")
def caught(keeping_rows: SyntheticModel, held: Any) -> Comparison:
    return keeping_rows.compare(held[0], others=held[1], target="f", random=Random.deterministic(1))


@pytest.fixture(scope="module")
def exact(sure: SyntheticModel) -> Comparison:
    """Of a table with every kind of column, and a model of next to no noise."""
    return sure.compare(rows(), random=Random.deterministic(2))


def test_distances_are_those_of_the_tables(found: Comparison, honest: SyntheticModel, held: Any) -> None:
    """Against a count by hand of the rows that the same generator draws."""
    made = honest.sample(MEMBERS, random=Random.deterministic(1))
    for each in found.orders:
        apart = {}
        for names in combinations(held[0], each.order):
            real, fake = (Counter(zip(*(side[name].tolist() for name in names), strict=True)) for side in (held[0], made))
            apart[names] = sum(abs(real[key] - fake[key]) for key in {*real, *fake}) / MEMBERS / 2
        assert each.tables == len(apart)
        assert each.mean == pytest.approx(np.mean(list(apart.values())))
        assert each.score == pytest.approx(1000 * (1 - each.mean))
        assert (each.where, each.worst) == (max(apart, key=lambda names: apart[names]), pytest.approx(max(apart.values())))
        assert 0 < each.again < each.mean
    assert found.columns["a"] == pytest.approx(
        sum(abs(int((held[0]["a"] == value).sum()) - int((made["a"] == value).sum())) for value in range(7)) / MEMBERS / 2
    )


def test_what_cannot_be_told_apart_is_said_to_be(found: Comparison, caught: Comparison, held: Any) -> None:
    """Two halves of the others are told apart by nobody; rows of a model with noise are, and so are copies: below ½, since a row
    that was learnt as real comes back as synthetic."""
    halves = [np.column_stack([values[side::2] for values in held[1].values()]) for side in (0, 1)]
    auc, propensity = told_apart(*halves, Random.deterministic(3))
    assert abs(auc - 0.5) < 0.06
    assert caught.auc < 0.4 < 0.6 < found.auc
    assert propensity < found.propensity <= 0.25


def test_regressions_and_components_stand_side_by_side(exact: Comparison, found: Comparison) -> None:
    """What synthetic rows lose of a dependence shows in the coefficient; independent columns lose all of it."""
    x = np.arange(4000) % 10
    real = {"x": x, "y": (x + np.random.default_rng(1).integers(0, 3, 4000)) % 12}
    declared = {"x": cl.Integer(0, 9), "y": cl.Integer(0, 11)}
    slopes = []
    for method in ("pairs", "independent"):
        model = cl.synth.fit_frame(real, declared, epsilon=4, method=method, random=Random.deterministic(3))
        compared = model.compare(real, random=Random.deterministic(4))
        [one] = [each for each in compared.regressed if each.response == "y"]
        slopes.append((one.real["x"], one.synthetic["x"]))
        assert compared.components is not None
        assert "principal components" in str(compared)
        assert compared.to_html().count("<circle") == 800
    assert slopes[0][1] == pytest.approx(slopes[0][0], abs=0.06)
    assert abs(slopes[1][1]) < 0.1 < 0.9 < slopes[1][0]
    assert slopes[0][0] == pytest.approx(np.corrcoef(real["x"], real["y"])[0, 1], abs=0.01)
    assert found.to_dict()["component_shares"][0][0] > 0
    assert {each.response for each in exact.regressed} == {"age", "pay", "born"}


def test_learners_stand_beside_those_trained_on_real_rows(found: Comparison, caught: Comparison, honest: SyntheticModel) -> None:
    assert [each.name for each in found.learners] == ["logistic regression", "random forest", "boosted trees"]
    for each in caught.learners:
        assert abs(each.synthetic - each.real) < 0.04, each
    assert all(each.real > found.majority for each in found.learners)
    assert found.target == "f"


def test_a_model_that_keeps_its_rows_is_caught_and_an_honest_one_is_not(found: Comparison, caught: Comparison) -> None:
    """Seeds are fixed. Of a model that tells nothing of 1,000 members and 1,000 others, an AUC above 0.6 has a probability of
    less than e^(−2·1000·0.1²) < 3·10⁻⁹ (Hoeffding's bound for the two-sample statistic)."""
    for honest, broken in zip(found.memberships, caught.memberships, strict=True):
        assert len(honest.members) == len(honest.others) == 1_000
        assert honest.auc < 0.6 < 0.75 < broken.auc
        bound = MembershipResult.most_under(found.cost, "0.01")
        assert honest.true_positives("0.01").low < bound
        assert broken.true_positives("0.01", confidence="0.999999").low > bound
    assert caught.singled.risk > 0.3 > 0.1 > found.singled.risk
    ahead = [each.closest.copies - each.closest.copies_of_others for each in (found, caught)]
    assert ahead[0] < 0.05 < 0.2 < ahead[1]
    secret = {side: each.attributes["f"] for side, each in (("honest", found), ("broken", caught))}
    assert secret["honest"].advantage < 0.08 < 0.15 < secret["broken"].advantage


def test_the_density_and_the_guess_are_those_of_the_mixture(honest: SyntheticModel) -> None:
    states = np.array([[1, 2, 0, 1, 3, 0], [5, 1, 4, 2, 28, 1]])
    small = Mixture(honest.mixture.weights, honest.mixture.columns[:3])
    whole = small.marginal((0, 1, 2))
    np.testing.assert_allclose(np.exp(density_of(small, states[:, :3])), whole[tuple(states[:, :3].T)], rtol=1e-6)
    given = whole[states[:, 0], :, states[:, 2]]
    assert guess_of(small, states[:, :3], 1).tolist() == given.argmax(axis=1).tolist()


def test_the_mark_is_on_everything(found: Comparison, tmp_path: Path) -> None:
    assert MARK in str(found)
    assert found.to_dict()["mark"] == MARK
    assert found.to_dict()["private"] is False
    page = found.to_html()
    assert page.count("NOT PRIVATE") >= 3  # title, heading, first line
    assert "<script" not in page
    assert "proves little" in page
    for ending in ("html", "json", "txt"):
        found.save(tmp_path / f"found.{ending}")
        assert "NOT PRIVATE" in (tmp_path / f"found.{ending}").read_text(encoding="utf-8")
    json.dumps(found.to_dict(), allow_nan=False)


def test_without_others_no_attack_is_run(honest: SyntheticModel, held: Any) -> None:
    alone = honest.compare(part(held[0], slice(500)), random=Random.deterministic(1))
    assert (alone.memberships, alone.singled, alone.others) == ((), None, 0)
    assert "No attack was run" in str(alone)
    assert "among those that the model was made of" in alone.to_html()


def test_every_kind_of_column_is_compared(exact: Comparison) -> None:
    """Missing values, dates, bins: rows of a model of next to no noise are nearer than the table's own, drawn again."""
    assert exact.orders[0].mean < exact.orders[0].again
    assert exact.target == "member"
    assert exact.orders[1].tables == 20  # pay × born has too many cells


@pytest.mark.parametrize("columns", [{"a": cl.Integer(0, 1)}, {"a": cl.Integer(0, 1), "b": cl.Boolean()}])
def test_tables_of_few_values_are_compared(columns: dict[str, Any]) -> None:
    """Nobody is alone in them, so nobody is singled out."""
    few = {"a": [0, 1, 1] * 100, "b": [True, False] * 150}
    model = cl.synth.fit_frame({name: few[name] for name in columns}, columns, epsilon=5, random=Random.deterministic(3))
    compared = model.compare({name: few[name] for name in columns}, others={name: few[name] for name in columns})
    assert compared.singled is None
    assert len(compared.memberships) == 2
    assert "singling" not in str(compared)
    json.dumps(compared.to_dict(), allow_nan=False)
    assert "<title>NOT PRIVATE: a title</title>" in compared.to_html(title="a title")


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        ({"target": "g"}, cl.UnknownColumn, "'g' is unknown"),
        ({"target": "e"}, cl.InvalidParameter, "more than 20 values"),
        ({"others": {name: [1] * 5 for name in "abcdef"}}, cl.InvalidParameter, "it has 5 rows"),
        ({"rows": {name: [1] for name in "abcdef"}}, cl.InvalidParameter, "fewer than 4 rows"),
        ({"rows": {"a": [1]}}, cl.CloisterError, "b"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    honest: SyntheticModel, held: Any, asked: dict[str, Any], error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        honest.compare(**{"rows": part(held[0], slice(100)), **asked})


def test_attacks_refuse_what_is_no_rows() -> None:
    with pytest.raises(cl.InvalidParameter, match="equally many"):
        singling_out(np.zeros((4, 2), int), np.zeros((4, 2), int), np.zeros((3, 2), int))
    with pytest.raises(cl.InvalidParameter, match="occurs once"):
        singling_out(np.zeros((4, 2), int), np.zeros((4, 2), int), np.zeros((4, 2), int), guesses=5)
    with pytest.raises(cl.InvalidParameter, match="numbers of states"):
        closest_records(np.zeros((4, 2)), np.zeros((4, 2), int), np.zeros((4, 2), int))


def test_rows_that_are_as_near_to_both_count_half() -> None:
    rows = np.zeros((3, 2), dtype=int)
    for some in (1, 2, 3):
        found = closest_records(rows[:some], members=rows[:1], others=rows[:1]).nearer
        assert found.rate == 0.5
        assert found.low < 0.5 < found.high
