"""Canary audits: what keeps its promise is left alone, what doesn't is caught, with hundreds of fits.

Each audit holds at 1 − 10⁻⁹, so a run of this file on fresh seeds would raise a false alarm with a probability below 10⁻⁷.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cloister.attacks import CanaryAudit, audit_model, corner
from cloister.attacks.broken import Twin, models
from cloister.attacks.canaries import learned_numbers
from cloister.errors import InvalidParameter
from cloister.noise import DiscreteLaplace, Random
from cloister.privacy import ApproxDP, PureDP

FEW, MANY = 1_600, 4_000


class Learner:
    """A twin as an estimator: what it releases of its rows is what it learns."""

    def __init__(self, release: Callable[..., Any], data: Callable[..., Any], random: Random) -> None:
        self.release, self.data, self.random = release, data, random

    def fit(self, X: Any, y: Any) -> Learner:
        self.numbers_ = np.asarray(self.release(self.data(X, y), 1, self.random))[0]
        return self


def pairs(X: Any, y: Any) -> Any:
    return np.column_stack([X[:, 0], y])


def values(X: Any, y: Any) -> Any:
    return X[:, 0]


def rows(X: Any, y: Any) -> Any:
    return X


def counts(X: Any, y: Any) -> Any:
    return np.bincount(np.asarray(y, dtype=int), minlength=2)


Case = tuple[Twin, Callable[..., Any], Any, Any, Any]
ONES = np.ones((10, 1)), np.ones(10)
LINE = np.array([[1.0], [2.0], [6.0], [7.0]]), np.array([0, 0, 1, 1])
MIDDLE = np.full((2, 3), 0.5), np.zeros(2)
CASES: list[Case] = [
    (models.SCALED_REGRESSION, pairs, ONES, ([8.0], -1.0), None),
    (models.GRADIENT_UNCLIPPED, pairs, (np.array([[1.0], [0.5]]), np.array([1.0, -1.0])), ([3.0], -2.0), None),
    (models.NOISE_ON_THE_AVERAGE, values, (np.zeros((1, 1)), np.zeros(1)), ([1.0], 0), None),
    (models.STORES_ROWS, pairs, LINE, ([5.0], 1), None),
    (models.ONE_DRAW_FOR_ALL_CLASSES, counts, (np.zeros((42, 1)), np.repeat([0, 1], [12, 30])), ([0.0], 1), None),
    (models.SHARE_IN_EACH_FEATURE, rows, MIDDLE, ([1.0, 1.0, 1.0], 0), None),
    (models.OUTPUT_HALVED, pairs, (np.array([[1.0], [0.5], [-0.5]]), np.array([1.0, -1.0, 1.0])), ([1.0], -1.0), ([1.0], 1.0)),
]

RUNS = {models.OUTPUT_HALVED.name: MANY, models.SHARE_IN_EACH_FEATURE.name: MANY, models.NOISE_ON_THE_AVERAGE.name: 3 * MANY}
"""What needs more fits: an ε near the claim, and one that shows in rare events."""


def audited(case: Case, release: Callable[..., Any], *, seed: int, runs: int) -> CanaryAudit:
    twin, data, world, canary, instead_of = case
    return audit_model(
        lambda random: Learner(release, data, random),
        rows=world,
        canary=canary,
        instead_of=instead_of,
        claims=twin.claims,
        runs=runs,
        random=Random.deterministic(seed),
    )


def test_there_is_a_case_for_each_broken_model() -> None:
    assert [case[0].name for case in CASES] == [each.name for each in vars(models).values() if isinstance(each, Twin)]


@pytest.mark.parametrize("case", CASES, ids=[case[0].name for case in CASES])
def test_a_broken_model_is_caught_and_the_mended_one_is_not(case: Case) -> None:
    runs = RUNS.get(case[0].name, FEW)
    assert audited(case, case[0].broken, seed=1, runs=runs).broken
    assert not audited(case, case[0].mended, seed=2, runs=runs).broken


class NoisySum:
    """Learns a noisy sum with the noise for ε = 2."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def fit(self, X: Any, y: Any) -> NoisySum:
        noise = DiscreteLaplace.for_epsilon(2).sample(1, random=self.random)
        self.sums_ = {"sum": [float(np.clip(X, 0, 1).sum() + noise[0])], "name": "a sum"}
        self.guarantee_ = PureDP(2)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.sums_["sum"][0])


def test_most_of_what_there_is_gets_found_and_never_more() -> None:
    world = np.zeros((3, 1)), np.zeros(3)
    for seed in range(3):
        found = audit_model(NoisySum, rows=world, canary=([1.0], 0), runs=MANY, random=Random.deterministic(seed))
        assert 1.2 < found.epsilon <= 2
        assert (found.claims, found.broken, found.model) == (PureDP(2), False, "NoisySum")
        card = json.loads(json.dumps(found.as_card()))
        assert (card["claimed"], card["refuted"]) == ("ε = 2", False)


def test_a_claim_that_is_too_small_is_refuted_also_with_a_delta() -> None:
    world = np.zeros((3, 1)), None
    for claims in (PureDP(1), ApproxDP(1, "0.00001")):
        assert audit_model(
            NoisySum, rows=world, canary=([1.0], None), claims=claims, runs=3000, random=Random.deterministic(3)
        ).broken


def test_a_row_outside_the_bounds_is_worth_no_more_than_one_at_the_bound() -> None:
    world = np.zeros((3, 1)), np.zeros(3)
    assert not audit_model(NoisySum, rows=world, canary=([1e9], 0), runs=FEW, random=Random.deterministic(4)).broken


def test_a_shape_that_follows_the_rows_is_seen() -> None:
    class Longer:
        def fit(self, X: Any, y: Any) -> Longer:
            self.values_ = [0.0] * len(X)
            return self

    found = audit_model(lambda random: Longer(), rows=(np.zeros((3, 1)), None), canary=([0.0], None), claims=PureDP(1), runs=400)
    assert found.broken


def test_numbers_at_any_depth_and_never_a_parameter() -> None:
    class Inner:
        learned_names = ("b_",)

        def __init__(self) -> None:
            self.b_, self.random, self.c_ = 5, 7, 8

    class Outer:
        def __init__(self) -> None:
            self.scale, self.a_ = 9, {"x": [1, (2, np.array([[3.0, 4.0]]))], "y": Inner(), "z": "text", "w": None}

    assert learned_numbers(Outer()).tolist() == [1, 2, 3, 4, 5]


def test_corners() -> None:
    assert corner(0, 1, signs=[1, 1, -1]).tolist() == [1, 1, 0]


def test_refusals() -> None:
    class Silent:
        def fit(self, X: Any, y: Any) -> Silent:
            return self

    with pytest.raises(InvalidParameter, match="promises nothing"):
        audit_model(lambda random: Silent(), rows=(np.zeros((3, 1)), None), canary=([0.0], None))
    with pytest.raises(InvalidParameter, match="canary"):
        audit_model(NoisySum, rows=(np.zeros((3, 2)), None), canary=([0.0], None))
