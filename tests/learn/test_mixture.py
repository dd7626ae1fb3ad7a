"""The mixture of normal groups: sensitivity by brute force, likelihood, repairs, nasty rows, samples, the portable form."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Plain

import cloister as cl
from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn import GaussianMixture, load, price_of_privacy
from cloister.learn.clustering.mixture import (
    Groups,
    Moments,
    _alone,
    log_densities,
    moved,
    noisy_moments,
    reach_of,
    row_moments,
    softmax,
)
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.learn.replay import moved as parts_moved
from tests.learn.replay import told


def blobs(rows: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    middles = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])
    return np.clip(middles[generator.integers(0, 3, rows)] + generator.normal(0, [0.03, 0.06], (rows, 2)), 0, 1)


def groups(count: int, dimension: int, seed: int, narrow: float = 0.1) -> Groups:
    generator = np.random.default_rng(seed)
    weights = generator.random(count) + 0.05
    means = generator.uniform(-1, 1, (count, dimension))
    return Groups(weights=weights / weights.sum(), means=means, variances=generator.uniform(narrow, 1, means.shape) ** 2)


def model(seed: int = 1, **parameters: Any) -> GaussianMixture:
    return GaussianMixture(**{"n_components": 3, "bounds": (0, 1), "random": Random.deterministic(seed), **parameters})


# ── what one row does ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("dimension", [1, 2, 7, 40])
def test_no_row_moves_the_sums_by_more_than_the_reach(dimension: int, pure: bool) -> None:
    """Rows in corners, middles and anywhere, groups as narrow as they may become; and the reach is used."""
    generator, reach, furthest = np.random.default_rng(dimension), reach_of(dimension, pure=pure), 0.0
    for seed in range(6):
        known = groups(1 + seed % 4, dimension, seed, narrow=10.0 ** -(seed % 4))
        X = generator.uniform(-1, 1, (60, dimension))
        X[::3] = np.sign(X[::3])
        whole = row_moments(X, known, reach=reach, pure=pure)
        for place in range(0, 60, 7):
            rest = row_moments(np.delete(X, place, axis=0), known, reach=reach, pure=pure)
            apart = [abs(int(step)) for step in (whole - rest).ravel()]
            size = Fraction(sum(apart)) if pure else Fraction(sum(step**2 for step in apart))
            limit = reach * 2**20 if pure else (reach * 2**20) ** 2
            assert size <= limit
            furthest = max(furthest, float(size / limit))
    assert furthest > 0.9


@pytest.mark.parametrize("promise", [PureDP(1), ApproxDP(1, "1e-5"), ZCDP("0.1")])
def test_one_row_moves_no_round_by_more_than_was_declared(promise: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rounds of a fit, under the same answers, from starts that are the same in both worlds."""
    monkeypatch.setattr(GaussianMixture, "_starts", lambda self, rows, count, allowance, random: (groups(count, 2, 5), 30.0))
    X = np.vstack([blobs(30), [[0, 0], [1, 1], [0, 1]]])

    def fit(rows: np.ndarray) -> Any:
        made = model(epsilon=1, rounds=3)
        return lambda: made._fitted(made._checked(rows, None), Allowance(promise))

    whole, furthest = told(fit(X)), 0.0
    assert [line.mechanism for line in whole] == ["add"] * 3
    for place in range(len(X)):
        furthest = max(furthest, *parts_moved(whole, told(fit(np.delete(X, place, axis=0)), whole)))
    assert 0.3 < furthest <= 1


@pytest.mark.parametrize("dimension", [1, 3, 30])
def test_what_is_worked_out_of_a_row_is_of_that_row_alone(dimension: int) -> None:
    X, known = np.random.default_rng(1).uniform(-1, 1, (67, dimension)), groups(4, dimension, 2)
    parts = softmax(log_densities(X, known))
    for start in range(0, 67, 3):
        assert (softmax(log_densities(X[start:], known)) == parts[start:]).all()
        assert (softmax(log_densities(X[start : start + 1], known)) == parts[start]).all()


def test_a_share_on_its_own_is_worth_the_same() -> None:
    for promise in (PureDP("0.7"), ApproxDP(1, "1e-5"), ZCDP("0.1")):
        share = Allowance(promise, rows=3).share("starts", "0.4")
        assert (_alone(share).currency, _alone(share).size) == (share.currency, share.amount)


# ── what is made of it ───────────────────────────────────────────────────────────────────────────


def test_without_noise_a_round_is_that_of_expectation_and_maximisation() -> None:
    """A group of normal rows in wrong units: two rounds find the units but for what far rows count less."""
    X = np.clip(np.random.default_rng(1).normal([0.2, -0.3], [0.1, 0.05], (20_000, 2)), -1, 1)
    known = Groups(weights=np.ones(1), means=np.zeros((1, 2)), variances=np.full((1, 2), 0.04))
    for _ in range(4):
        share = Allowance(PureDP(10**9)).rest("all")
        known = moved(known, noisy_moments(X, known, share=share, random=Random.deterministic(1)))
    assert known.means[0] == pytest.approx([0.2, -0.3], abs=0.005)
    assert np.sqrt(known.variances[0]) == pytest.approx([0.1, 0.05], rel=0.05)


def test_a_group_that_is_all_noise_stays_where_it_was() -> None:
    known = groups(2, 3, 1)
    found = Moments(
        counts=np.array([-40.0, 3.0]), sums=np.ones((2, 3)), squares=-np.ones((2, 3)), variance=1e4, square_variance=2e4
    )
    after = moved(known, found)
    assert (after.means == known.means).all()
    assert after.variances == pytest.approx(known.variances)
    assert (after.weights > 0).all()


def test_repaired_variances_lie_within_their_public_limits() -> None:
    known = groups(2, 3, 1)
    for size in (-1e6, 1e6):
        found = Moments(
            counts=np.full(2, 10.0),
            sums=np.full((2, 3), size),
            squares=np.full((2, 3), size),
            variance=1e-9,
            square_variance=1e-9,
        )
        after = moved(known, found)
        assert ((after.variances >= 1e-6) & (after.variances <= 1)).all()
        assert (np.abs(after.means) <= 1).all()


@pytest.mark.parametrize("promise", [{"epsilon": 4}, {"epsilon": 1, "delta": "1e-5"}])
def test_the_likelihood_comes_near_that_without_privacy(promise: dict) -> None:
    """Medians of 5 fits; one group for all has −0.1, without privacy 2.5."""
    X, other = blobs(20_000), blobs(5_000, seed=1)
    best = Plain(3, covariance_type="diag", random_state=0).fit(X).score(other)
    scores = [model(seed, **promise).fit(X).score(other) for seed in range(5)]
    assert np.median(scores) > best - 0.1
    assert max(scores) <= best + 0.02


def test_the_twin_without_noise_finds_what_scikit_learn_finds() -> None:
    X = blobs(600)
    ours, theirs = model(privacy=None, bounds=None).fit(X), Plain(3, covariance_type="diag", n_init=3, random_state=0).fit(X)
    assert ours.score_samples(X) == pytest.approx(theirs.score_samples(X))
    assert (ours.predict(X) == theirs.predict(X)).all()
    assert "NOT PRIVATE" in ours.report()


NASTY = {
    "no row": np.empty((0, 3)),
    "one row": np.array([[0.5, 0.5, 0.5]]),
    "missing": np.array([[np.nan, 0.1, 0.2], [0.3, 0.1, 0.2]]),
    "infinite": np.array([[np.inf, -np.inf, 0.2], [0.3, 0.1, 0.2]]),
    "huge": np.full((5, 3), 1e300),
    "constant": np.full((50, 3), 0.25),
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("epsilon", ["0.001", 1, 1000])
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_no_rows_and_no_noise_break_it(name: str, epsilon: Any, delta: str | None) -> None:
    fitted = model(4, epsilon=epsilon, delta=delta, rounds=2).fit(NASTY[name])
    assert fitted.means_.shape == fitted.covariances_.shape == (3, 3)
    assert ((fitted.means_ >= 0) & (fitted.means_ <= 1)).all()
    assert (fitted.covariances_ > 0).all()
    assert fitted.weights_.sum() == pytest.approx(1)
    assert (fitted.weights_ > 0).all()
    assert np.isfinite(fitted.score_samples([[0.0, 0.5, 1.0], [1, 1, 1]])).all()


def test_features_that_cannot_vary_are_kept_as_they_are() -> None:
    fitted = model(bounds=([0, 5], [1, 5])).fit([[0.1, 5.0], [0.9, 7.0]] * 40)
    assert fitted.means_[:, 1].tolist() == [5.0] * 3
    assert np.isfinite(fitted.score_samples([[0.5, 5.0]])).all()


def test_rounds_follow_from_public_and_released_facts() -> None:
    few, many = model(epsilon="0.01").fit(blobs(100)), model(epsilon=10).fit(blobs(20_000))
    assert (few.rounds_, many.rounds_) == (1, 6)
    fixed = model(rounds=3).fit(blobs(100))
    assert [line.what for line in fixed.spent_] == ["starts", *(f"moments of round {place}" for place in (1, 2, 3))]
    assert sum(line.portion for line in fixed.spent_) == 1


def test_samples_are_those_of_the_model() -> None:
    """20,000 rows: a mean is off by at most 0.06/√6000 · 5 = 0.004, a share by 5·√(0.25/20000) = 0.018."""
    fitted = model(privacy=None).fit(blobs(3000))
    rows, labels = fitted.sample(20_000, random=Random.deterministic(2))
    assert np.bincount(labels, minlength=3) / 20_000 == pytest.approx(fitted.weights_, abs=0.018)
    for place in range(3):
        assert rows[labels == place].mean(axis=0) == pytest.approx(fitted.means_[place], abs=0.004)
        assert rows[labels == place].var(axis=0) == pytest.approx(fitted.covariances_[place], rel=0.15)
    assert ((rows >= 0) & (rows <= 1)).all()
    with pytest.raises(InvalidParameter):
        fitted.sample(0)


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"bounds": None}, MissingBound),
        ({"n_components": 0}, InvalidParameter),
        ({"n_components": True}, InvalidParameter),
        ({"rounds": 0}, InvalidParameter),
        ({"epsilon": 0}, CloisterError),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, kind: type) -> None:
    with pytest.raises(kind):
        model(**parameters).fit(blobs(30))


def test_it_has_a_card_and_a_curve() -> None:
    X = blobs(3000)
    curve = price_of_privacy(model(), X, None, epsilons=["0.01", "10"], runs=3, random=Random.deterministic(2))
    assert curve.measure == "captured"
    assert curve.points[0].mean < curve.points[1].mean <= curve.plain.mean + 0.01
    card = model().fit(X).card(data="blobs", expected=curve)
    assert "moments of round 1" in card.text()


def test_it_is_the_same_after_writing_and_reading() -> None:
    X = blobs(400)
    fitted = model().fit(X)
    again = load(fitted.to_json())
    assert (again.predict_proba(X) == fitted.predict_proba(X)).all()
    assert math.isclose(again.score(X), fitted.score(X))


@pytest.mark.parametrize("promise", [PureDP(2), ApproxDP(2, "1e-6"), ZCDP("0.5")])
def test_it_learns_from_a_table_and_is_charged(promise: Any) -> None:
    X = blobs(2000).round(3)
    number = cl.Real(0, 1, step="0.001")
    table = cl.PrivateTable({"a": X[:, 0].tolist(), "b": X[:, 1].tolist()}, {"a": number, "b": number})
    with cl.Session({"people": table}, budget=promise) as session:
        fitted = GaussianMixture(3).fit_table(session, "people", features=["a", "b"], spend=promise)
        assert session.spent == promise == fitted.guarantee_
    assert fitted.means_.shape == (3, 2)
