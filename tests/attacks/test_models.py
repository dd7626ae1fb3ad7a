"""Every model of the catalogue is audited with a canary in a corner of its box, and searched for training rows.

The canary is the only row of its class (or has the largest target), in the corner opposite to the others, who are few: so it
moves what is learned by as much as a person can. Each audit holds at 1 − 10⁻⁹: all of this file together raises a false alarm
with a probability below 10⁻⁷ on fresh seeds. The same audit must notice a model that spends many times what is claimed, so it is
known to see what these models learn; BoundedScaler, which learns nothing of the rows, must show nothing at all.

A model without a case fails the first test.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from cloister.attacks import CanaryAudit, audit_model, corner, holds_rows
from cloister.learn import METHODS
from cloister.noise import Random
from cloister.privacy import PureDP

FEW, MANY = 400, 2_000
NEAR = np.array([[0.3, 0.4], [0.35, 0.3], [0.2, 0.45], [0.4, 0.35], [0.25, 0.3], [0.3, 0.2]])
CORNER = corner(0, 1, signs=[1, 1])


@dataclass(frozen=True)
class Case:
    """One model on a few rows, and one more."""

    parameters: dict[str, Any] = field(default_factory=dict)
    X: Any = field(default_factory=lambda: NEAR)
    y: Any = field(default_factory=lambda: np.zeros(len(NEAR)))
    canary: Any = field(default_factory=lambda: CORNER)
    fits: int = MANY
    """In each world, at night."""
    quick: bool = False
    """Whether it is audited with every commit; the whole is for the night."""
    louder: dict[str, Any] = field(default_factory=lambda: {"epsilon": 50})
    """What makes it spend fifty times as much or more; the audit must see it."""


NUMBERS = {"bounds_y": (0, 1)}
NONE_OR_ONE = np.zeros((6, 2))
BOTH, HALF = np.tile(NEAR, (4, 1)), np.arange(24) % 2
RIDGED = {"epsilon": 50, "ridge": 1}
"""Without a ridge, few rows that a line parts let these weights grow without limit where ε is large."""
STEPS = {"delta": "0.00001", "hidden": (), "steps": 40, "learning_rate": 0.1, "clip": 1}
MIDDLE = np.array([[0.5, 0.5]])
"""A row in the middle moves biases alone, so weights move by the canary; short steps, so that it is never quite learned."""
ENDS = np.repeat([[0.0, 0.0], [1.0, 1.0]], [3, 4], axis=0)
"""Any point between the ends is as good a median as any other; one row in the middle makes the upper half better."""
CASES = {
    "GaussianNB": Case(quick=True),
    "CategoricalNB": Case({"categories": [2, 2]}, NONE_OR_ONE),
    "MixedNB": Case({"categories": [2, None]}, NEAR * [0, 1]),
    "LogisticRegression": Case({}, BOTH, HALF, quick=True, louder=RIDGED),
    "LinearSVC": Case({}, BOTH, HALF, louder=RIDGED),
    "KernelClassifier": Case({"n_components": 1, "gamma": 1e-6}, BOTH, HALF, louder=RIDGED),
    "LinearDiscriminantAnalysis": Case(),
    "DecisionTreeClassifier": Case({"max_depth": 1}, quick=True),
    "RandomForestClassifier": Case({"max_depth": 1, "n_estimators": 2}),
    "GradientBoostingClassifier": Case({"rounds": 1, "bins": 2}),
    "NeuralClassifier": Case(STEPS, MIDDLE, np.zeros(1), fits=FEW, louder={"epsilon": 200, "rate": 1}),
    "LinearRegression": Case(NUMBERS, quick=True, louder={"epsilon": 200}),
    "Ridge": Case(NUMBERS, louder={"epsilon": 200}),
    "PoissonRegressor": Case(NUMBERS, y=np.arange(6) % 2, louder={"epsilon": 200}),
    "GradientBoostingRegressor": Case({**NUMBERS, "rounds": 1, "bins": 2}),
    "KMeans": Case({"n_clusters": 2, "method": "lloyd", "rounds": 2}),
    "GaussianMixture": Case({"n_components": 1, "rounds": 1}, fits=FEW),
    "PCA": Case({"n_components": 1}),
    "BoundedScaler": Case(quick=True, louder={}),
    "StandardScaler": Case(quick=True),
    "QuantileClipper": Case({"quantiles": ("0.5", "0.9")}, ENDS, canary=(0.5, 0.5)),
}
QUICK = [name for name, case in CASES.items() if case.quick]


def made(name: str, random: Random, **more: Any) -> Any:
    """One model, not fitted; skipped where what it is built on is not installed."""
    module = pytest.importorskip(METHODS[name].module)
    parameters = {"bounds": (0, 1), **CASES[name].parameters, **more}
    return getattr(module, name)(random=random, **parameters)


def audited(name: str, *, runs: int, seed: int, claims: PureDP | None = None, **more: Any) -> CanaryAudit:
    made(name, Random.deterministic(0))
    case, target = CASES[name], METHODS[name].task
    y = {"classes": case.y.astype(int), "numbers": case.y}.get(target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # six rows are few for most models
        return audit_model(
            lambda random: made(name, random, **more),
            rows=(case.X, y),
            canary=(case.canary, None if y is None else 1),
            claims=claims,
            runs=runs,
            random=Random.deterministic(seed),
        )


def test_every_model_has_a_case() -> None:
    assert sorted(CASES) == sorted(METHODS)


@pytest.mark.statistical
@pytest.mark.parametrize("name", QUICK)
def test_the_promise_is_kept(name: str) -> None:
    found = audited(name, runs=FEW, seed=1)
    assert not found.broken, found


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in QUICK if CASES[name].louder])
def test_the_audit_would_notice(name: str) -> None:
    assert audited(name, runs=FEW, seed=2, claims=PureDP(1), **CASES[name].louder).broken


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.statistical
@pytest.mark.parametrize("name", list(CASES))
def test_the_promise_is_kept_in_thousands_of_fits(name: str) -> None:
    found = audited(name, runs=CASES[name].fits, seed=3)
    assert not found.broken, found


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in CASES if METHODS[name].approximate and name != "BoundedScaler"])
def test_the_promise_with_a_delta_is_kept(name: str) -> None:
    found = audited(name, runs=CASES[name].fits, seed=4, delta="0.00001")
    assert not found.broken, found
    assert found.claims.delta > 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.louder])
def test_the_audit_would_notice_each(name: str) -> None:
    assert audited(name, runs=FEW, seed=5, claims=PureDP(1), **CASES[name].louder).broken


@pytest.mark.parametrize("privacy", ["central", None])
@pytest.mark.parametrize("name", list(CASES))
def test_no_model_holds_a_training_row(name: str, privacy: str | None) -> None:
    """Nor a row moved to [−1, 1] by its bounds, with or without noise."""
    words = Random.deterministic(6).words(40 * 12).reshape(40, 12) * 2.0**-64
    features = {"CategoricalNB": np.rint(words), "MixedNB": np.column_stack([np.rint(words[:, :1]), words[:, 1:]])}
    X = features.get(name, words)
    more = {"CategoricalNB": {"categories": [2] * 12}, "MixedNB": {"categories": [2, *[None] * 11]}}.get(name, {})
    model = made(name, Random.deterministic(7), privacy=privacy, **more)
    y = {"classes": (words[:, 0] > 0.5).astype(int), "numbers": words[:, 1]}.get(METHODS[name].task)
    fitted = model.fit(X, y)
    assert holds_rows(fitted, X, images=(2 * X - 1,)) == {}
