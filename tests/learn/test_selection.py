"""Choosing privately: what is chosen, what it costs, and that the number of tries stays hidden."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from cloister.errors import InvalidParameter
from cloister.learn.assessment.curve import price_of_privacy
from cloister.learn.assessment.evaluation import fit_and_score, split
from cloister.learn.assessment.selection import PrivateSearch, Stopping, cross_validate
from cloister.learn.bayesian.naive_bayes import GaussianNB
from cloister.learn.frame.examples import Threshold
from cloister.learn.frame.scaling import BoundedScaler
from cloister.learn.linear_models.linear import LinearRegression
from cloister.learn.networks.neural import NeuralClassifier
from cloister.noise import Random
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.tiers import by_day_and_night

COUNT = 4000
X = ((np.arange(COUNT) * 0.618034) % 1).reshape(-1, 1)
Y = (X[:, 0] > 0.5).astype(int)
GRID = {"at": ["0.1", "0.3", "0.5", "0.7", "0.9"]}


def search(**further: Any) -> PrivateSearch:
    return PrivateSearch(
        Threshold(bounds=(0, 1)), GRID, **{"epsilon": 1, "random": Random.deterministic(3), "tries": 40, **further}
    )


@pytest.mark.parametrize("method", ["stopping", "parts"])
def test_the_best_setting_is_found(method: Any) -> None:
    """Half at random misses the best in 40 tries with a fifth each once in thousands of searches; these are seeded."""
    found = search(method=method).fit(X, Y)
    assert found.best_params_ == {"at": "0.5"}
    assert (found.predict(X) == Y).mean() > 0.99
    assert found.guarantee_ == found.best_estimator_.guarantee_ == PureDP(1)
    assert sum((line.portion for line in found.spent_), Fraction(0)) == 1
    assert found.marked_
    assert found.best_estimator_.marked_
    assert all(line.what in found.report() for line in found.spent_)
    assert "at = '0.5'" in found.report()


@pytest.mark.parametrize(("law", "times"), [("logarithmic", 2), ("geometric", 3)])
def test_what_one_try_may_promise(law: Any, times: int) -> None:
    stopping = Stopping(law=law, tries=50)
    assert stopping.one_try(PureDP("0.6")) == PureDP(Fraction(6, 10) / times)
    found = search(law=law).fit(X, Y)
    assert [line.amount for line in found.spent_] == [Fraction(1, times), 1 - Fraction(1, times)]


@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_a_best_score_carries_what_the_search_cost(law: Any, delta: str | None) -> None:
    """It was chosen by all tries: shown alone it costs as much as beside the model (the next test has an exact loss)."""
    found = search(law=law, delta=delta).fit(X, Y)
    assert found.best_score_.guarantee == found.guarantee_ == (PureDP(1) if delta is None else ApproxDP(1, delta))
    assert found.best_score_.spent == found.spent_
    assert str(found.guarantee_) in str(found.best_score_)


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_loss_of_a_best_score_alone_exceeds_that_of_one_try(law: Any) -> None:
    """By the definition, for noisy hits that one row moves by 1: the greatest ratio of the law of the best of K discrete Laplace
    numbers lies above the ε of one try and within what the score says."""
    stopping, epsilon = Stopping(law=law, tries=40), 0.5
    z = np.arange(-60, 61)
    logs = []
    for truth in (0, 1):
        one = np.exp(-epsilon * abs(z - truth))
        one /= one.sum()
        above = np.append(np.cumsum(one[::-1])[::-1][1:], 0.0)
        logs.append(_log_of_best(one, above, float(stopping.gamma), stopping.eta))
    loss = float(np.abs(logs[0] - logs[1])[5:-5].max())
    assert 1.5 * epsilon < loss <= (2 + stopping.eta) * epsilon


@pytest.mark.statistical
@by_day_and_night("searches", 40, 80)
@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_margin_of_a_best_score_covers_the_best(law: Any, searches: int) -> None:
    """Twelve settings that are equally good, of whose scores the best is kept; where 95 % cover, fewer than 29 of 40 searches, or
    64 of 80, do with a probability below 1e-6. The margin of one try covers fewer."""
    random = Random.deterministic(12)
    x, y = X[:1200], np.arange(1200) % 2  # nothing to be learned: each setting is right in half of the rows
    covered = alone = 0
    for _ in range(searches):
        model = PrivateSearch(Threshold(bounds=(0, 1)), {"at": ["0.5"] * 12}, epsilon="0.2", tries=20, law=law, random=random)
        score = model.fit(x, y).best_score_
        off = abs(score.value - 0.5)
        covered += off <= score.margin(0.95)
        alone += off <= replace(score, tries=1).margin(0.95)
    assert covered >= {40: 29, 80: 64}[searches]
    assert alone < covered


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_rényi_cost_follows_the_theorem(law: Any) -> None:
    """Papernot & Steinke (2022), Theorem 2, worked out anew, at the best λ̂ of a fine grid."""
    stopping = Stopping(law=law, tries=30)
    eta, gamma, rho = stopping.eta, float(stopping.gamma), 0.01
    expected = 1 / gamma if eta else (1 / gamma - 1) / math.log(1 / gamma)
    curve = stopping.curve(Fraction("0.01"))
    hats = np.exp(np.linspace(0, 10, 20_001))
    for order, found in list(zip(curve.orders, curve.divergences, strict=True))[::6]:
        alpha = float(order)
        whole = (
            rho * alpha
            + (1 + eta) * ((1 - 1 / hats) * hats * rho + math.log(1 / gamma) / hats)
            + math.log(expected) / (alpha - 1)
        )
        assert float(found) == pytest.approx(whole.min(), rel=1e-6)
        assert float(found) >= whole.min() * (1 - 1e-6)


def _log_of_best(chance: Any, above: Any, gamma: float, eta: int) -> Any:
    """ln P(the best of K tries is this outcome): from the chance of one try for it, and for a better one. Outcomes of a small
    chance each: by the derivative of the generating function of K where `chance` is a density."""
    here = gamma + (1 - gamma) * (above + chance)  # 1 − (1 − γ)·P(worse)
    if eta:  # γ·chance / (here · (here less (1 − γ)·chance))
        return np.log(gamma * chance / (here * (gamma + (1 - gamma) * above)))
    return np.log(-np.log1p(-(1 - gamma) * chance / here) / math.log(1 / gamma))


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_best_of_pure_tries_is_as_private_as_is_said(law: Any) -> None:
    """By the definition: the greatest ratio over tries of few outcomes, which comes near what is said and never above it."""
    generator, found = np.random.default_rng(4), 0.0
    stopping = Stopping(law=law, tries=2000)
    gamma = float(stopping.gamma)
    for _ in range(4000):
        one = generator.dirichlet(np.ones(3)) * 10 ** generator.uniform(-6, 0, 3)
        one /= one.sum()
        other = one * np.exp(generator.choice([-0.5, 0.5], 3) * generator.uniform(0.1, 2))
        other /= other.sum()
        epsilon = np.abs(np.log(one / other)).max()
        if epsilon > 1e-3:
            logs = [_log_of_best(q, np.cumsum(q[::-1])[::-1] - q, gamma, stopping.eta) for q in (one, other)]
            found = max(found, float(np.abs(logs[0] - logs[1]).max() / epsilon))
    assert 0.9 * (2 + stopping.eta) < found <= 2 + stopping.eta


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
@pytest.mark.parametrize("rho", ["0.001", "0.1"])
def test_the_best_of_gaussian_tries_is_as_private_as_is_said(law: Any, rho: str) -> None:
    """By the definition: the Rényi divergence of the best of K normal numbers, whose mean is moved either way, by integration."""
    stopping = Stopping(law=law, tries=20)
    curve, mu = stopping.curve(Fraction(rho)), math.sqrt(2 * float(rho))
    gamma, ratios = float(stopping.gamma), []

    def logarithms(z: Any, mean: float) -> Any:
        better = np.array([0.5 * math.erfc(value / math.sqrt(2)) for value in (z - mean).tolist()])
        of_one = -0.5 * (z - mean) ** 2 - 0.5 * math.log(2 * math.pi)
        inner = np.log(gamma + (1 - gamma) * better)
        if stopping.eta:
            return of_one + math.log(gamma) - 2 * inner
        return of_one + math.log((1 - gamma) / math.log(1 / gamma)) - inner

    for order, said in list(zip(curve.orders, curve.divergences, strict=True))[::12]:
        alpha = float(order)
        if alpha * mu > 30:
            continue
        z = np.linspace(-12 - alpha * mu, 12 + alpha * mu, 20_001)
        for one, other in ((0.0, mu), (mu, 0.0)):
            logs = alpha * logarithms(z, one) - (alpha - 1) * logarithms(z, other)
            divergence = (logs.max() + math.log(np.exp(logs - logs.max()).sum() * (z[1] - z[0]))) / (alpha - 1)
            ratios.append(divergence / float(said))
    assert 0.3 < max(ratios) <= 1


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_with_a_delta_a_try_gets_what_the_curve_leaves(law: Any) -> None:
    stopping, whole = Stopping(law=law, tries=20), ApproxDP(1, "1e-6")
    one = stopping.one_try(whole)
    assert isinstance(one, ZCDP)
    assert stopping.curve(one.rho).to_approx("1e-6").epsilon <= 1
    assert stopping.curve(one.rho * Fraction("1.01")).to_approx("1e-6").epsilon > 1
    found = search(law=law, delta="1e-6", epsilon=2).fit(X, Y)
    assert found.guarantee_ == ApproxDP(2, "1e-6")
    assert found.spent_[0].currency == "rho"


@pytest.mark.parametrize("law", ["logarithmic", "geometric"])
def test_the_number_of_tries_has_its_law(law: Any) -> None:
    stopping, random = Stopping(law=law, tries=6), Random.deterministic(9)
    draws = np.array([stopping.draw(random=random) for _ in range(5000)])
    gamma = float(stopping.gamma)
    k = np.arange(1, 6)
    law_of_k = gamma * (1 - gamma) ** (k - 1) if law == "geometric" else (1 - gamma) ** k / (k * math.log(1 / gamma))
    found = np.array([(draws == value).mean() for value in k])
    np.testing.assert_allclose(found, law_of_k, atol=0.036)  # seeded; above five standard deviations
    assert draws.min() == 1
    assert draws.mean() == pytest.approx(6, rel=0.15)


def test_the_number_of_tries_is_not_kept() -> None:
    """Everything that a search leaves is as large after one try as after many."""
    forms = set()
    for seed in range(12):
        found = search(random=Random.deterministic(seed), tries=30).fit(X, Y)
        forms.add(tuple(sorted(vars(found))))
        forms.add(tuple(sorted(vars(found.best_estimator_))))
    assert len(forms) == 2


@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_cross_validation_counts_every_training(delta: str | None) -> None:
    found = cross_validate(Threshold(bounds=(0, 1)), X, Y, epsilon=4, delta=delta, folds=4, random=Random.deterministic(1))
    assert found.total.value > 0.95
    assert found.total.margin() > 0
    assert [line.portion for line in found.spent] == [Fraction(4, 5), Fraction(1, 5)]
    one = found.folds[0].guarantee  # a third of 4/5 for the rows that trained, 1/5 for those that judged: the larger
    if delta is None:
        assert one == PureDP(4 * Fraction(4, 15))
    else:
        assert isinstance(one, ZCDP)
    assert found.guarantee == (PureDP(4) if delta is None else ApproxDP(4, "1e-6"))
    assert sum(score.part + score.rest for score in found.folds) == pytest.approx(COUNT, abs=200)


def test_nothing_crashes_on_few_rows() -> None:
    for count in (0, 1, 3):
        for method in ("stopping", "parts"):
            found = search(method=method, epsilon="0.01").fit(X[:count], Y[:count])  # type: ignore[arg-type]
            assert found.best_params_["at"] in GRID["at"]
        assert 0 <= cross_validate(Threshold(bounds=(0, 1)), X[:count], Y[:count]).total.value <= 1


@pytest.mark.parametrize(
    "further", [{"method": "grid"}, {"law": "poisson"}, {"tries": 1}, {"tries": 2.5}, {"epsilon": 0}, {"test": 2}]
)
def test_wrong_searches_are_refused(further: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        search(**further).fit(X, Y)


def test_only_private_models_are_searched() -> None:
    for model in (Threshold(bounds=(0, 1), privacy=None), BoundedScaler(bounds=(0, 1)), object()):
        with pytest.raises(InvalidParameter, match="private models"):
            PrivateSearch(model, GRID).fit(X, Y)
        with pytest.raises(InvalidParameter, match="private models"):
            cross_validate(model, X, Y)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="folds"):
        cross_validate(Threshold(bounds=(0, 1)), X, Y, folds=1)


def test_a_search_is_an_estimator() -> None:
    copy = clone(search())
    assert copy.get_params()["estimator__bounds"] == (0, 1)


@pytest.mark.parametrize("people", [1, 2, 3, 5])
def test_whether_a_part_has_rows_decides_on_no_error(people: int) -> None:
    """Lists of rows, of which a fold, a part or the rows to judge by may have none: that says how many there are."""
    rows, said = [[0.2]] * people, [0] * people
    for seed in range(12):
        drawn = Random.deterministic(seed)
        fit_and_score(Threshold(bounds=(0, 1), random=drawn), rows, said)
        cross_validate(Threshold(bounds=(0, 1)), rows, said, folds=3, random=drawn)
        PrivateSearch(Threshold(bounds=(0, 1)), {"at": ["0.1", "0.5"]}, method="parts", random=drawn).fit(rows, said)
        PrivateSearch(Threshold(bounds=(0, 1)), {"at": ["0.1", "0.5"]}, tries=2, random=drawn).fit(rows, said)


def test_a_target_of_another_length_is_refused_and_none_too() -> None:
    """They ended in errors of numpy and of Python."""
    rows, y = np.array([[0.2], [0.8]] * 50), [0, 1] * 50
    model = Threshold(bounds=(0, 1))
    asked: list[Any] = [partial(each, model) for each in (cross_validate, price_of_privacy, fit_and_score)]
    asked.append(PrivateSearch(model, {"at": ["0.5"]}).fit)
    for wrong in (y[:-1], None, 1):
        for ask in asked:
            with pytest.raises(InvalidParameter, match="y is invalid"):
                ask(rows, wrong)
    with pytest.raises(InvalidParameter, match="y is invalid"):
        split(rows, y[:-1])


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_frames_are_parted_whatever_package_they_are_of(package: str) -> None:
    module = pytest.importorskip(package)
    made = module.table if package == "pyarrow" else module.DataFrame
    rows, y = made({"年龄": [0.2, 0.8] * 200}), [0, 1] * 200
    found = cross_validate(Threshold(bounds=(0, 1), at="0.5"), rows, y, epsilon=5, random=Random.deterministic(1))
    assert found.total.value > 0.9


@pytest.mark.parametrize("method", ["stopping", "parts"])
@pytest.mark.parametrize(
    ("grid", "why"), [([], "a list of values"), ({"at": "0.5"}, "a list of values"), ({"no": [1]}, "no such")]
)
def test_settings_that_are_none_are_refused(method: Any, grid: Any, why: str) -> None:
    """They were errors about a generator's bound, or scikit-learn's."""
    with pytest.raises(InvalidParameter, match=why):
        PrivateSearch(Threshold(bounds=(0, 1)), grid, method=method).fit(X, Y)


@pytest.mark.parametrize("setting", ["bounds_y", "classes"])
def test_what_is_predicted_is_the_same_for_every_try(setting: str) -> None:
    """Errors are counted over the width of the target: of (0, 10) and (0, 1000) the wider was chosen."""
    model = LinearRegression(bounds=(0, 1)) if setting == "bounds_y" else GaussianNB(bounds=(0, 1))
    with pytest.raises(InvalidParameter, match="the same for every try"):
        PrivateSearch(model, {setting: [(0, 1), (0, 1000)]}, method="parts").fit(X, 10 * X[:, 0])


def test_no_tries_are_not_the_usual_ones() -> None:
    with pytest.raises(InvalidParameter, match="tries=0"):
        search(tries=0).fit(X, Y)


def test_training_leaves_something_for_judging() -> None:
    for training in (1, 2):
        with pytest.raises(InvalidParameter, match=r'judging.*\n.*training="0.8"'):
            cross_validate(Threshold(bounds=(0, 1)), X, Y, epsilon=1, training=training)
    with pytest.raises(InvalidParameter, match="training=0"):
        cross_validate(Threshold(bounds=(0, 1)), X, Y, epsilon=1, training=0)


def test_a_method_without_rho_is_validated_in_epsilon_and_delta() -> None:
    """What a sample of rows costs in ρ is not known: it was refused with a ρ that nobody had typed."""
    network = NeuralClassifier(bounds=(0, 1), steps=4, hidden=(), random=Random.deterministic(1))
    found = cross_validate(network, X, Y, epsilon=2, delta="1e-6", folds=3, random=Random.deterministic(1))
    assert found.guarantee == ApproxDP(2, "1e-6")
    assert found.folds[0].guarantee == ApproxDP("0.8", "0.4e-6"), "of two trainings of a row, each with 0.8"
    assert [(line.currency, line.amount) for line in found.spent] == [("epsilon", Fraction("1.6")), ("epsilon", Fraction("0.4"))]
    wishart = LinearRegression(method="wishart", bounds=(0, 1), bounds_y=(0, 1), random=Random.deterministic(1))
    assert cross_validate(wishart, X, Y, delta="1e-6", random=Random.deterministic(1)).guarantee == ApproxDP(1, "1e-6")


def test_tries_of_a_method_without_rho_are_refused_with_what_serves() -> None:
    how: dict[str, Any] = {"delta": "1e-6", "random": Random.deterministic(1)}
    search = PrivateSearch(NeuralClassifier(bounds=(0, 1), steps=4), {"hidden": [(), (2,)]}, **how)
    with pytest.raises(InvalidParameter, match="counted in ρ") as refused:
        search.fit(X, Y)
    assert refused.value.instead == 'method="parts"'
    assert search.set_params(method="parts").fit(X, Y).guarantee_ == ApproxDP(1, "1e-6")
    with pytest.raises(InvalidParameter, match="A pure ε = 1 is invalid"):
        search.set_params(method="stopping", delta=None).fit(X, Y)
