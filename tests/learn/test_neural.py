"""A network learnt with noise: exact gradients, their sensitivity, the sample, the noise and what it costs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer

from cloister.errors import InvalidParameter
from cloister.learn.linear_models.linear import LinearRegression
from cloister.learn.networks import neural
from cloister.learn.networks.accountant import epsilon_for, noise_for
from cloister.learn.networks.neural import BITS, NeuralClassifier, clipped_sum, first_weights, probabilities, unpacked
from cloister.noise import Random
from cloister.privacy import ZCDP, ApproxDP, PureDP, for_groups
from cloister.query import Session
from cloister.tables import Boolean, Integer, PrivateTable

Floats = npt.NDArray[np.float64]


def even(count: int, seed: int) -> Floats:
    return Random.deterministic(seed).below(10**6, count) / (10**6 / 2) - 1


def problem(n: int = 30, seed: int = 1) -> tuple[list[Floats], Floats, npt.NDArray[np.int64]]:
    weights = first_weights([4, 5, 3], Random.deterministic(seed))
    return weights, even(n * 4, seed).reshape(n, 4), np.arange(n) % 3


def data(n: int = 300, seed: int = 1) -> tuple[Floats, npt.NDArray[np.int64]]:
    X = even(n * 2, seed).reshape(n, 2)
    return X, (X[:, 0] > X[:, 1]).astype(np.int64)


# ── gradients ────────────────────────────────────────────────────────────────────────────────────────


def test_unclipped_gradients_are_the_slopes_of_the_loss() -> None:
    weights, X, y = problem()
    flat = np.concatenate([one.ravel() for one in weights])

    def loss(at: Floats) -> float:
        return float(-np.log(probabilities(unpacked(at, weights), X)[np.arange(len(y)), y]).sum())

    clip = 100.0
    found = clipped_sum(weights, X, y, clip) / 2.0**BITS * clip
    small = 1e-3  # far above what a layer rounds
    for place in range(len(flat)):
        step = np.zeros_like(flat)
        step[place] = small
        slope = (loss(flat + step) - loss(flat - step)) / (2 * small)
        assert abs(found[place] - slope) < 30 * (2**-10 + 2**-13)  # a step of each factor, rounded towards 0, for each row


@pytest.mark.parametrize("bits", [12, 20, BITS])
@pytest.mark.parametrize("clip", [1e-6, 1.0, 1e6])
def test_a_row_is_never_longer_than_is_declared(clip: float, bits: int) -> None:
    """In whole numbers of any length, for usual and for huge weights and rows."""
    for size in (1.0, 30.0, 1e6):
        weights, X, y = problem(25, 2)
        weights = [one * size for one in weights]
        for row in range(25):
            moved = clipped_sum(weights, X[row : row + 1] * size, y[row : row + 1], clip, bits=bits)
            assert sum(int(value) ** 2 for value in moved) <= 4**bits


def test_clipping_uses_most_of_what_it_may() -> None:
    weights, X, y = problem(25, 3)
    for row in range(25):
        moved = clipped_sum(weights, X[row : row + 1], y[row : row + 1], 1e-3)
        assert sum(int(value) ** 2 for value in moved) > 0.99 * 4**BITS


def test_the_sum_is_exact_in_any_order_and_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    from cloister.learn.networks import neural as gradients

    weights, X, y = problem(200, 4)
    single = sum(clipped_sum(weights, X[row : row + 1], y[row : row + 1], 0.5) for row in range(200))
    np.testing.assert_array_equal(clipped_sum(weights, X, y, 0.5), single)
    order = Random.deterministic(1).permutation(200)
    np.testing.assert_array_equal(clipped_sum(weights, X[order], y[order], 0.5), single)
    monkeypatch.setattr(gradients, "_ROWS", 7)
    np.testing.assert_array_equal(clipped_sum(weights, X, y, 0.5), single)
    assert not clipped_sum(weights, X[:0], y[:0], 0.5).any()


# ── the sample and the noise ─────────────────────────────────────────────────────────────────────────


def test_each_row_takes_part_with_the_rate_on_its_own() -> None:
    """100,000 rows twice: means and their product are within six standard deviations (the draw is fixed)."""
    random, n = Random.deterministic(3), 100_000
    first, second = (neural._sample(n, Fraction(1, 4), random) for _ in range(2))
    for share, rate in ((first.mean(), 0.25), (second.mean(), 0.25), ((first & second).mean(), 0.0625)):
        assert abs(share - rate) < 6 * (rate * (1 - rate) / n) ** 0.5
    assert abs((first[1:] & first[:-1]).mean() - 0.0625) < 6 * (0.0625 / n) ** 0.5
    assert neural._sample(n, Fraction(1), random) == slice(None)


def moves(monkeypatch: pytest.MonkeyPatch, X: Any, y: Any, **given: Any) -> tuple[NeuralClassifier, Floats]:
    """What the noisy sums were, in clips."""
    seen: list[Floats] = []
    move = neural._Way.move

    def spying(self: Any, gradient: Floats) -> None:
        seen.append(gradient)
        move(self, gradient)

    monkeypatch.setattr(neural._Way, "move", spying)
    model = NeuralClassifier(bounds=(-1, 1), random=Random.deterministic(1), **given).fit(X, y)
    return model, np.array(seen)


@pytest.mark.parametrize(("epsilon", "rate"), [(1, None), (8, "0.1"), (2, 1), ("0.001", None)])
def test_noise_is_as_wide_as_the_accountant_says(monkeypatch: pytest.MonkeyPatch, epsilon: Any, rate: Any) -> None:
    """Without a row all that moves is noise: 150 steps of 162 weights, whose deviation is known to 0.5 % (standard)."""
    given = {"epsilon": epsilon, "delta": "1e-5", "rate": rate}
    model, seen = moves(monkeypatch, np.empty((0, 2)), np.empty(0), **given)
    expected = noise_for(epsilon=epsilon, delta="1e-5", rate=rate or "0.25", steps=150)
    assert model.noise_ == pytest.approx(float(expected), rel=1e-9)
    assert seen.shape == (150, 162)
    assert abs(seen.std() / model.noise_ - 1) < 0.03
    assert abs(seen.mean()) < 6 * model.noise_ / seen.size**0.5
    assert epsilon_for(noise=expected, rate=rate or "0.25", steps=150, delta="1e-5") <= Fraction(str(epsilon))


def test_without_noise_a_step_is_the_sum_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(50)
    model, seen = moves(monkeypatch, X, y, privacy=None, rate=1, steps=3, hidden=())
    weights = first_weights([2, 2], Random.deterministic(1))
    np.testing.assert_array_equal(seen[0], clipped_sum(weights, X, y, model.clip) / 2.0**BITS)
    assert model.noise_ == 0


def test_very_wide_noise_is_drawn_in_coarser_steps() -> None:
    assert neural._bits(Fraction(100)) == neural._bits(Fraction(2**16)) == BITS
    assert neural._bits(Fraction(2**20)) == BITS - 4
    with pytest.raises(InvalidParameter, match="too wide"):
        neural._bits(Fraction(2**40))


# ── what it costs ────────────────────────────────────────────────────────────────────────────────────


def test_full_participation_keeps_rho() -> None:
    X, y = data()
    model = NeuralClassifier(bounds=(-1, 1), rate=1, steps=50, random=Random.deterministic(1))
    model._fitted(model._checked(X, y), model._allowance(ZCDP("0.5")))
    assert model.noise_ == pytest.approx(50**0.5)  # ρ = steps/(2σ²)
    assert [line.currency for line in model.spent_] == ["mu_squared"]


def test_a_person_of_several_rows_is_promised_the_whole() -> None:
    model = NeuralClassifier(bounds=(-1, 1), delta="1e-5")
    allowance = model._allowance(ApproxDP(3, "1e-5"), rows=3)
    assert allowance is not None
    noise = neural._noise(allowance, Fraction(1, 4), 100)
    for_one = ApproxDP(1, epsilon_delta(noise))
    assert for_groups(for_one, 3) <= ApproxDP(3, "1e-5")
    assert for_groups(for_one, 3).delta > Fraction(9, 10**6)


def epsilon_delta(noise: Fraction) -> Fraction:
    from cloister.learn.networks.accountant import losses_of

    return losses_of(noise=noise, rate="1/4", steps=100).delta(1)


def test_a_batch_size_needs_a_public_size() -> None:
    assert NeuralClassifier(batch_size=100, size=2000)._sampling() == Fraction(1, 20)
    for wrong, why in (
        ({"batch_size": 100}, "that is private"),
        ({"batch_size": 100, "size": 50}, "it is a probability"),
        ({"batch_size": 100, "size": 1000, "rate": "0.1"}, "rate says already"),
        ({"rate": "1.5"}, "it is a probability"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            NeuralClassifier(bounds=(-1, 1), delta="1e-5", **wrong).fit(*data(20))


def test_promises_that_it_cannot_keep_are_refused() -> None:
    for rate in (None, 1):
        with pytest.raises(InvalidParameter, match="needs a δ"):
            NeuralClassifier(bounds=(-1, 1), rate=rate).fit(*data(20))
    with pytest.raises(InvalidParameter, match="rate=1"):
        NeuralClassifier(bounds=(-1, 1))._allowance(ZCDP(1))


@pytest.mark.parametrize(
    "wrong", [{"hidden": "32"}, {"hidden": (0,)}, {"hidden": (1, 1, 1, 1)}, {"steps": 0}, {"clip": 0}, {"learning_rate": -1}]
)
def test_parameters_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        NeuralClassifier(bounds=(-1, 1), delta="1e-5", **wrong).fit(*data(20))


# ── how good ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("hidden", [(), (8,), (8, 8)])
def test_it_learns(hidden: tuple[int, ...]) -> None:
    X, y = data(1500)
    private = NeuralClassifier(bounds=(-1, 1), delta="1e-6", hidden=hidden, random=Random.deterministic(1)).fit(X, y)
    assert private.score(X, y) > 0.93
    assert [one.shape for one in private.weights_] == [
        (width + 1, after) for width, after in zip((2, *hidden), (*hidden, 2), strict=True)
    ]


def test_a_hidden_layer_learns_what_no_plane_divides() -> None:
    X, _ = data(1000)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.int64)
    given: dict[str, Any] = {"privacy": None, "bounds": (-1, 1)}
    assert NeuralClassifier(hidden=(16,), steps=300, **given).fit(X, y).score(X, y) > 0.9
    assert NeuralClassifier(hidden=(), steps=300, **given).fit(X, y).score(X, y) < 0.7


def test_at_epsilon_one_a_few_hundred_rows_are_enough() -> None:
    found = load_breast_cancer()
    order = Random.deterministic(1).permutation(569)
    train, test = order[:455], order[455:]
    bounds = (np.zeros(30), np.ceil(found.data.max(axis=0)))
    model = NeuralClassifier(bounds=bounds, delta="1e-5", random=Random.deterministic(1))
    assert model.fit(found.data[train], found.target[train]).score(found.data[test], found.target[test]) > 0.87


def test_a_row_adds_the_same_in_any_company() -> None:
    generator = np.random.default_rng(3)
    for seed in range(20):
        width = int(generator.integers(20, 90))
        weights, row = first_weights([width, 10, 5, 4], Random.deterministic(seed)), generator.uniform(-1, 1, width)
        # Many a hidden number lies on a whole one, where the last bit decides.
        weights[0][-1] = np.arctanh(generator.integers(-500, 500, 10) / 1024) - (row[None] @ weights[0][:-1])[0]
        alone = clipped_sum(weights, row[None], np.array([0]), 0.01)
        for rows in (2, 3, 4, 7, 8, 23, 24, 25):
            found = clipped_sum(weights, np.tile(row, (rows, 1)), np.zeros(rows, dtype=np.int64), 0.01)
            assert (found == rows * alone).all()


@pytest.mark.parametrize("wrong", [{"learning_rate": "1e306"}, {"clip": "1e-320"}])
def test_numbers_beyond_all_use_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="from 1e-9 to 1e9"):
        NeuralClassifier(delta="1e-6", bounds=(0, 1), steps=2, **wrong).fit([[0.0], [1.0]], [0, 1])


def test_long_steps_stay_numbers() -> None:
    X, y = data(20)
    model = NeuralClassifier(delta="1e-6", bounds=(-1, 1), steps=30, learning_rate=1e9, random=Random.deterministic(1)).fit(X, y)
    assert all(np.isfinite(one).all() and np.abs(one).max() <= 2**20 for one in model.weights_)


@pytest.mark.parametrize("rate", ["0.5", 1])
def test_a_pure_budget_of_a_session_is_told_to_have_a_delta(rate: Any) -> None:
    """A delta of the estimator counts nothing there: who had written it was told to write it."""
    table = PrivateTable({"age": [30, 40] * 9, "ill": [True, False] * 9}, columns={"age": Integer(17, 90), "ill": Boolean()})
    model = NeuralClassifier(delta="1e-6", rate=rate)
    with Session({"people": table}, budget=PureDP(10)) as session, pytest.raises(InvalidParameter, match="never pure") as refused:
        model.fit_table(session, "people", features=["age"], target="ill", spend=1)
    assert "in a session, a budget of ε and δ" in refused.value.instead


@pytest.mark.parametrize("model", [NeuralClassifier(steps=2), LinearRegression()])
def test_a_target_of_one_value_is_refused_before_the_charge(model: Any) -> None:
    """A network is tried on no rows before it is charged for: it was charged, and failed."""
    table = PrivateTable({"age": [20, 60], "one": [7, 7]}, {"age": Integer(0, 99), "one": Integer(7, 7)})
    with Session({"people": table}, budget=ApproxDP(9, "1e-5")) as session:
        with pytest.raises(InvalidParameter, match="'one' is invalid: it has one value"):
            model.fit_table(session, "people", features=["age"], target="one", spend=ApproxDP(1, "1e-6"))
        assert session.spent == ApproxDP(0, 0)
