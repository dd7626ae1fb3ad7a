"""Private gradient descent: one person changes each round's sum by what is declared, and others cannot show in a row's part."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.learn import LogisticRegression
from cloister.learn.linear_models import descent as module
from cloister.learn.linear_models.descent import Descent, descend, plan, plan_pure
from cloister.learn.linear_models.losses import HuberHinge, Logistic, Loss, Softmax
from cloister.learn.linear_models.minimum import minimum
from cloister.learn.linear_models.prepared import Prepared
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP
from cloister.tables.engines.row_sums import STEPS
from tests.learn.test_objective import ready

LOSSES = [Logistic(), Logistic(slope=0.7), Softmax(classes=3), HuberHinge(classes=2), HuberHinge(classes=3)]
DOWN = Descent(rounds=6, step=4.0, momentum=0.8)


def without(given: Prepared, row: int | None) -> Prepared:
    kept = np.arange(len(given.rows)) != row
    parts = {name: getattr(given, name) for name in given.__dataclass_fields__}
    return Prepared(**{**parts, "rows": given.rows[kept], "classes": given.classes[kept]})


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_each_round_changes_by_at_most_what_its_noise_is_for(loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[np.ndarray, Fraction]] = []
    following: list[np.ndarray] = []

    def noised(values: np.ndarray, share: Any, random: Any, *, length: Fraction) -> np.ndarray:
        seen.append((values, length))
        if len(following) < len(seen):
            following.append(values + 1000.0 * len(seen))
        return following[len(seen) - 1]  # neighbours are given the same releases

    monkeypatch.setattr(module, "noisy_vector", noised)
    given, worlds = ready(loss, 80), []
    for row in (None, *range(80)):
        seen.clear()
        start = np.full((given.dimension, loss.columns), 0.3)
        descend(without(given, row), loss, Allowance(ApproxDP(1, "1e-5")).rest("x"), None, descent=DOWN, start=start)
        worlds.append(list(seen))
    worst = 0.0
    for other in worlds[1:]:
        for (values, length), (fewer, same) in zip(worlds[0], other, strict=True):
            assert length == same
            assert values.dtype == np.int64
            changed = float(np.linalg.norm(values - fewer))
            assert changed <= length
            worst = max(worst, changed / float(length))
    assert worst > 0.5


@pytest.mark.parametrize("whole", [ApproxDP(1, "1e-5"), ZCDP("0.1"), PureDP(1)], ids=repr)
def test_rounds_share_what_there_is(whole: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shares: list[Any] = []
    monkeypatch.setattr(
        module, "noisy_vector", lambda values, share, random, length: shares.append(share) or np.zeros(values.shape)
    )
    given, share = ready(Logistic()), Allowance(whole).rest("x")
    descend(given, Logistic(), share, None, descent=DOWN, start=np.zeros((given.dimension, 1)))
    assert len(shares) == 6
    assert sum(each.amount for each in shares) == share.amount


@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_with_little_noise_it_goes_to_the_minimum(loss: Loss) -> None:
    given = ready(loss, 300)
    share = Allowance(ApproxDP(10**9, "1e-5")).rest("x")
    start = np.zeros((given.dimension, loss.columns))
    down = Descent(rounds=2000, step=4.0, momentum=0.9, clip=2.0)
    weights = descend(given, loss, share, Random.deterministic(1), descent=down, start=start)
    exact, _ = minimum(
        given.rows / STEPS, given.classes, loss, ridge=np.full((1, 1), 1e-4), linear=np.zeros((1, 1)), tolerance=1e-9
    )
    scores, best = (given.rows / STEPS @ w for w in (weights, exact))
    assert loss.value(scores, given.classes) <= loss.value(best, given.classes) * 1.002


@pytest.mark.parametrize("rounds", [40, 300], ids=["sites", "here"])
@pytest.mark.parametrize(("spread", "copies"), [(1.0, 1), (0.1, 1), (1.0, 8), (0.1, 8)])
def test_probabilities_are_those_of_a_fit_without_privacy(spread: float, copies: int, rounds: int, monkeypatch: Any) -> None:
    """Of one feature, in all of its bounds or at one end of them, once or in eight copies: where rows are most alike."""
    draw = np.random.default_rng(5)
    x = draw.uniform(1 - spread, 1, size=8000)
    p = 1 / (1 + np.exp(-(x - 1 + spread / 2) / spread * 2))
    X, y = np.repeat(x[:, None], copies, axis=1), (draw.uniform(size=8000) < p).astype(int)
    planned = module.planned
    monkeypatch.setattr(module, "planned", lambda given, loss, share: planned(given, loss, share, most=rounds))
    model = LogisticRegression(epsilon=20, delta="1e-6", bounds=(0, 1), method="gradient", random=Random.deterministic(1)).fit(
        X, y
    )
    assert np.abs(model.predict_proba(X)[:, 1] - p).mean() < 0.05


def test_scores_of_a_row_do_not_depend_on_the_others() -> None:
    draw = np.random.default_rng(1)
    rows = draw.integers(-STEPS, STEPS, size=(501, 37)).astype(np.float64)
    weights = draw.normal(size=(37, 3)) * 10.0 ** draw.uniform(-3, 3, size=(37, 3))
    fine = 52 - 14 - 6
    whole = module.exact_scores(rows, weights, fine)
    assert (whole == np.concatenate([module.exact_scores(rows[place : place + 1], weights, fine) for place in range(501)])).all()


def test_plans_follow_from_released_and_public_facts() -> None:
    assert plan(people=10, dimension=100, mu=0.01).rounds == 5
    assert plan(people=10**9, dimension=10, mu=5).rounds == 300
    assert plan_pure(people=10, numbers=1000, epsilon=0.1).rounds == 1
    rounds = [plan(people=n, dimension=50, mu=0.5).rounds for n in (100, 1000, 10_000)]
    assert rounds == sorted(rounds)
