"""Choosing a hyper-parameter privately, and cross-validation: every training and every look at a score is counted.

Trying ten settings and keeping the best costs more than one training; how much more is what this module is about.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from cloister.errors import CloisterError, InvalidParameter
from cloister.learn.assessment.evaluation import judged, paired, split, taken
from cloister.learn.assessment.judging import judge_of, measure_of, rows_for
from cloister.learn.assessment.scores import Proportion, Score
from cloister.learn.frame.base import PrivateModel
from cloister.noise import Allowance, PermuteAndFlip, Random, Share, default_random
from cloister.privacy import ZCDP, ApproxDP, Exact, Guarantee, PureDP, RenyiCurve, exact_positive, zcdp_within

_NEVER_TRIED = ("bounds_y", "classes", "delta", "epsilon", "privacy", "random")


@dataclass(eq=False, repr=False)
class PrivateSearch(BaseEstimator):  # type: ignore[misc]
    """The best of several settings of a model, by private scores.

    `method="stopping"`: each try draws a setting, trains on one part of the rows and judges by the other; tries end at random,
    and the best is kept (`Stopping`; `law` and the mean number of `tries`, four times the settings where none is given).
    `method="parts"`: the rows for training fall into as many parts as there are settings; each trains on its own.

    Guarantee: ε, or (ε, δ), between rows that differ by one person, for the chosen model, its setting and its score together.
    Rows fall into parts by coins of their own, so one person is in one part alone. Stopping: one try promises q on either part,
    so q (parallel composition: McSherry 2009, Theorem 4), and `Stopping` says what the best of all costs: 2q or 3q where q is
    pure. The number of tries stays hidden from who cannot time the search (how long it takes speaks of how many there were).
    Parts: each model has the whole promise on its own rows, and permute-and-flip (McKenna & Sheldon 2020) chooses with ε by the
    hits on the part that is left, which one row moves by at most 1, all the same way: so the whole promise again (Chaudhuri,
    Monteleoni & Sarwate 2011, Algorithm 3, with another choice). A setting may not say `epsilon`, `delta`, `privacy`, `random`,
    `classes` or `bounds_y`.

    After `fit`: `best_estimator_`, `best_params_`, `best_score_`, `guarantee_`, `spent_`, `report()`. The score is None for
    parts: only the choice was released. For stopping it is the best of several, so a little too bright, and its margin is wider
    by that: it holds for the scores of all tries at once, since of K tries with misses of α/E[K] each, one misses with α at most
    (Wald's identity: K is drawn apart from the scores). It carries the guarantee of the whole search, as that is what it costs
    also where it is all that is shown: it was chosen by all tries.

    >>> from cloister.learn.frame.examples import Threshold
    >>> search = PrivateSearch(Threshold(bounds=(0, 1)), {"at": ["0.1", "0.5"]}, epsilon=2, method="parts")
    >>> search.fit([[0.2], [0.8]] * 400, [0, 1] * 400).best_params_
    {'at': '0.5'}
    """

    estimator: Any
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    _: KW_ONLY
    epsilon: Exact = 1
    delta: Exact | None = None
    method: Literal["stopping", "parts"] = "stopping"
    law: Law = "logarithmic"
    tries: int | None = None
    test: Exact = "0.25"
    random: Random | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Search, and keep the best model."""
        _check_model(self.estimator)
        settings = _settings(self.estimator, self.grid)
        whole: Guarantee = PureDP(self.epsilon) if self.delta in (None, 0) else ApproxDP(self.epsilon, self.delta)
        if self.method not in ("stopping", "parts"):
            raise InvalidParameter(
                f"method={self.method!r} is invalid", why='known are "stopping" and "parts"', instead='method="stopping"'
            )
        parts = split(paired(X, y, self.estimator), y, test=self.test, random=self.random)
        self.guarantee_ = whole
        self.marked_ = bool(self.random is not None and self.random.marked)
        (self._by_stopping if self.method == "stopping" else self._by_parts)(settings, whole, *parts)
        best = self.best_estimator_
        best.guarantee_, best.spent_, best.marked_ = whole, self.spent_, self.marked_  # what this model cost is the whole search
        return self

    def _by_stopping(self, settings: list[Any], whole: Guarantee, X: Any, X_test: Any, y: Any, y_test: Any) -> None:
        stopping = Stopping(law=self.law, tries=max(2, 4 * len(settings)) if self.tries is None else self.tries)
        one = stopping.one_try(whole)
        source = self.random or default_random()
        for setting in settings:
            refused = _refused_in_rho(clone(self.estimator).set_params(**setting), one, whole, X, y)
            if refused is not None:
                why = f"random tries under a δ are counted in ρ, and {refused.why}"
                raise InvalidParameter('method="stopping" is invalid', why=why, instead='method="parts"') from None
        self.best_score_: Score | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # one of each try would tell how many there were
            for _ in range(stopping.draw(random=source)):
                setting = settings[source.below_one(len(settings))]
                model = self._trained(setting, one, X, y)
                found = _scored(model, one, X_test, y_test, source)
                sign = 1 if found.name == "accuracy" else -1
                if self.best_score_ is None or sign * found.value > sign * self.best_score_.value:
                    self.best_estimator_, self.best_params_, self.best_score_ = model, dict(setting), found
        self.spent_ = _lines(one, whole, stopping)
        assert isinstance(self.best_score_, Proportion)  # the mean number of tries is `tries`, up to the rounding of γ
        self.best_score_ = replace(self.best_score_, guarantee=whole, spent=self.spent_, tries=stopping.tries + 1)

    def _by_parts(self, settings: list[Any], whole: Guarantee, X: Any, X_test: Any, y: Any, y_test: Any) -> None:
        source = self.random or default_random()
        place = source.below(len(settings), len(y))
        models, hits = [], []
        for number, setting in enumerate(settings):
            model = self._trained(setting, whole, taken(X, place == number), taken(y, place == number))
            judge = judge_of(model, _measure(model))
            features, truth = rows_for(model, X_test, y_test, judge)
            models.append(model)
            good = 0 if judge.measure == "accuracy" else 1  # the hits, or Σ(1 − e)
            hits.append(int(judge.sums(truth, judge.guesses(model, features))[good]))
        epsilon = whole.epsilon if isinstance(whole, PureDP | ApproxDP) else Fraction(0)
        choice = PermuteAndFlip(epsilon=epsilon, sensitivity=judge.reach["l1"], monotone=True)
        best = choice.release(np.array(hits), random=source)
        self.best_estimator_, self.best_params_, self.best_score_ = models[best], dict(settings[best]), None
        given = Allowance(whole)
        what = f"training each of {len(settings)} settings on its own rows, and choosing on others"
        self.spent_ = (Share(what=what, currency=given.currency, amount=given.size, portion=Fraction(1)),)

    def _trained(self, setting: Mapping[str, Any], promise: Guarantee, X: Any, y: Any) -> PrivateModel:
        model: PrivateModel = clone(self.estimator).set_params(**setting)
        model.random = self.random
        return model._fitted(model._checked(X, y), model._allowance(promise))

    def predict(self, X: Any) -> Any:
        """By the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    def report(self) -> str:
        """What was spent on what, and what stays unsaid."""
        check_is_fitted(self, "best_estimator_")
        chosen = ", ".join(f"{name} = {value!r}" for name, value in self.best_params_.items())
        lines = [f"{self.guarantee_}: {type(self.best_estimator_).__name__} with {chosen or 'no setting'}"]
        lines += [f"  {line}" for line in self.spent_]
        if self.best_score_ is not None:
            lines += [f"  {self.best_score_}: the best of several tries, and with a margin that holds for all of them"]
            lines += ["  the number of tries is not told: the promise holds for who does not know it"]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossValidation:
    """Scores of folds, the score of all of them together, and what they cost."""

    folds: tuple[Proportion, ...]
    total: Proportion
    guarantee: Guarantee
    spent: tuple[Share, ...]

    def __str__(self) -> str:
        return f"{self.total}, from {len(self.folds)} folds"


def cross_validate(
    estimator: PrivateModel,
    X: Any,
    y: Any,
    *,
    epsilon: Exact = 1,
    delta: Exact | None = None,
    folds: int = 5,
    training: Exact = "0.8",
    random: Random | None = None,
) -> CrossValidation:
    """Accuracy (or mean squared error) by folds: each row trains k − 1 models and judges one.

    Guarantee: ε, or (ε, δ), between rows that differ by one person. Rows fall into k folds by coins of their own. A row takes
    part in k − 1 trainings, each with a (k − 1)th of the share `training`, and in the score of its own fold with the rest: the
    costs add (Dwork & Roth 2014, Theorem 3.16; in ρ: Bun & Steinke 2016, Lemma 1.7), the scores of other folds being of other
    rows. One fold's score alone says something of the rows that trained its model, too: it carries the larger of the costs of
    either. So each of the k models is weaker than the one that the whole allowance would train: the score says less of that one.

    >>> from cloister.learn.frame.examples import Threshold
    >>> found = cross_validate(Threshold(bounds=(0, 1), at="0.5"), [[0.2], [0.8]] * 400, [0, 1] * 400, epsilon=5)
    >>> len(found.folds), found.total.value > 0.9
    (5, True)
    """
    _check_model(estimator)
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= 100:
        raise InvalidParameter(f"folds={folds!r} is invalid", why="there are between 2 and 100", instead="folds=5")
    source = random or default_random()
    whole: PureDP | ApproxDP = PureDP(epsilon) if delta in (None, 0) else ApproxDP(epsilon, delta)
    portion = exact_positive(training, "training")
    if portion >= 1:
        raise InvalidParameter("training= is invalid", why="the rest of the spend is for judging", instead='training="0.8"')
    X = paired(X, y, estimator)
    account: Guarantee = whole if isinstance(whole, PureDP) else ZCDP(zcdp_within(epsilon=whole.epsilon, delta=whole.delta).rho)
    if _refused_in_rho(estimator, _portion(account, portion / (folds - 1)), whole, X, y) is not None:
        account = whole  # a method that is not ρ-private: ε and δ add
    one, judging = _portion(account, portion / (folds - 1)), _portion(account, 1 - portion)
    place = source.below(folds, len(y))
    scores = []
    for fold in range(folds):
        model: PrivateModel = clone(estimator)
        model.random = random
        rest = place != fold
        model._fitted(model._checked(taken(X, rest), taken(y, rest)), model._allowance(one))
        score = _scored(model, judging, taken(X, ~rest), taken(y, ~rest), source)
        scores.append(replace(score, guarantee=judging if one <= judging else one))
    first = scores[0]
    total = Proportion(
        name=first.name,
        part=sum(each.part for each in scores),
        rest=sum(each.rest for each in scores),
        width=first.width,
        terms=(folds, folds),
        noise=first.noise,
        guarantee=whole,
        marked=first.marked,
    )
    given = Allowance(PureDP(whole.epsilon) if account is whole else account)
    spent = tuple(
        Share(what=what, currency=given.currency, amount=given.size * part, portion=part)
        for what, part in ((f"training, {folds - 1} times a row", portion), ("judging, once a row", 1 - portion))
    )
    return CrossValidation(folds=tuple(scores), total=total, guarantee=whole, spent=spent)


def _portion(account: Guarantee, portion: Fraction) -> Guarantee:
    if isinstance(account, ApproxDP):
        return ApproxDP(account.epsilon * portion, account.delta * portion)
    return ZCDP(account.rho * portion) if isinstance(account, ZCDP) else PureDP(account.epsilon * portion)


def _refused_in_rho(estimator: Any, promise: Guarantee, whole: Guarantee, X: Any, y: Any) -> CloisterError | None:
    """Why its method, which takes the whole, does not take a part of it in ρ; None where it does."""
    model: PrivateModel = clone(estimator)
    model._checked(X, y)
    try:
        model._allowance(promise)
    except CloisterError as error:
        model._allowance(whole)  # what is wrong in any currency is said
        if not isinstance(promise, ZCDP):
            raise
        return error
    return None


def _scored(model: PrivateModel, promise: Guarantee, X: Any, y: Any, source: Random) -> Proportion:
    found = judged(model, X, y, _measure(model), promise, source)
    assert isinstance(found, Proportion)
    return found


def _measure(model: PrivateModel) -> Literal["accuracy", "mean_squared_error"]:
    return "accuracy" if measure_of(model, None) == "accuracy" else "mean_squared_error"


def _lines(one: Guarantee, whole: Guarantee, stopping: Stopping) -> tuple[Share, ...]:
    if isinstance(one, PureDP) and isinstance(whole, PureDP | ApproxDP):
        part = one.epsilon / whole.epsilon
        trained = Share(what="one try: training, judging by other rows", currency="epsilon", amount=one.epsilon, portion=part)
        what = f"the best of tries, about {stopping.tries}, {stopping.law} law"
        chosen = Share(what=what, currency="epsilon", amount=whole.epsilon - one.epsilon, portion=1 - part)
        return trained, chosen
    assert isinstance(one, ZCDP)
    what = f"each of about {stopping.tries} tries, of which the best is kept, {stopping.law} law"
    return (Share(what=what, currency="rho", amount=one.rho, portion=Fraction(1)),)


def _settings(estimator: PrivateModel, grid: Any) -> list[Mapping[str, Any]]:
    """A setting may not say what is promised: without privacy a try would look up classes and bounds in the rows. Nor what the
    target is, by which scores are compared: one of wider bounds would have the lesser errors."""
    try:
        settings = list(ParameterGrid(grid))
    except (TypeError, ValueError):
        settings = []
    if not settings:
        why = "it has a list of values for each parameter that is tried"
        raise InvalidParameter("grid= is invalid", why=why, instead='PrivateSearch(Ridge(…), {"alpha": [0.1, 1]})')
    known = estimator.get_params()
    for name in sorted({name for setting in settings for name in setting}):
        if name in _NEVER_TRIED or name not in known:
            why = "it says what is promised or what is predicted, which is the same for every try"
            why = why if name in known else f"{type(estimator).__name__} has no such parameter"
            instead = "PrivateSearch(model, grid, epsilon=1)"
            raise InvalidParameter(f"The setting {name!r} is invalid", why=why, instead=instead)
    return settings


def _check_model(estimator: Any) -> None:
    if not isinstance(estimator, PrivateModel) or estimator.target_kind not in ("class", "number") or not estimator.private:
        raise InvalidParameter(
            f"{type(estimator).__name__} is invalid",
            why="the search trains private models of this library that predict classes or numbers",
            instead="PrivateSearch(GaussianNB(bounds=(0, 1)), …)",
        )


Law: TypeAlias = Literal["logarithmic", "geometric"]
_UP = 1 + 2**-40


@dataclass(frozen=True, kw_only=True)
class Stopping:
    """A number of tries K ≥ 1 with mean about `tries`: logarithmic (η = 0) or geometric (η = 1).

    Random stopping: how often to try at random, so that the best of all tries costs little more than one.

    The law of the number of tries is public, the number itself is not: who knew it could be told more than the theorem allows.

    Guarantee: let one try Q, whose parameters are drawn at random and which releases a model and its score, be private, and let
    the best of K tries be released, with its score and without K. Papernot & Steinke (2022), Theorem 2: if Q is (λ, ε)- and
    (λ̂, ε̂)-Rényi private, the whole is (λ, ε')-Rényi private with

        ε' = ε + (1 + η)(1 − 1/λ̂)ε̂ + (1 + η)·ln(1/γ)/λ̂ + ln E[K]/(λ − 1).

    As λ and λ̂ grow, a pure ε of one try becomes (2 + η)ε: 2ε for the logarithmic law and 3ε for the geometric one, which is the
    bound of Liu & Talwar (2019) for random stopping; neither depends on γ, so tries cost time alone. With ρ-zCDP tries, ε = λρ,
    and the best λ̂ = √(ln(1/γ)/ρ) leaves (1 + η)(2√(ρ·ln(1/γ)) − ρ) in the middle; (ε, δ) is read off the curve at its best order.

    >>> law = Stopping(law="logarithmic", tries=20)
    >>> law.one_try(PureDP(1)), Stopping(law="geometric", tries=20).one_try(PureDP(1))
    (PureDP(epsilon='0.5'), PureDP(epsilon='1/3'))
    """

    law: Law
    tries: int

    def __post_init__(self) -> None:
        if self.law not in ("logarithmic", "geometric"):
            raise InvalidParameter(
                f"law={self.law!r} is invalid", why='known are "logarithmic" and "geometric"', instead='law="logarithmic"'
            )
        if isinstance(self.tries, bool) or not isinstance(self.tries, int) or not 2 <= self.tries <= 100_000:
            raise InvalidParameter(
                f"tries={self.tries!r} is invalid", why="the mean number of tries lies between 2 and 100000", instead="tries=20"
            )

    @property
    def eta(self) -> int:
        """η of the truncated negative binomial law."""
        return 0 if self.law == "logarithmic" else 1

    @property
    def gamma(self) -> Fraction:
        """The probability to stop, as an exact number: 1/tries, or that for which (1/γ − 1)/ln(1/γ) is about `tries`."""
        if self.law == "geometric":
            return Fraction(1, self.tries)
        low, high = 1e-9, 1.0
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if (1 / middle - 1) / -math.log(middle) > self.tries else (low, middle)
        return Fraction(high).limit_denominator(10**7)

    def draw(self, *, random: Random | None = None) -> int:
        """K, exactly of its law: geometric by coins; logarithmic by keeping a geometric k with probability 1/k.

        >>> Stopping(law="geometric", tries=5).draw(random=Random.deterministic(1)) >= 1
        True
        """
        source = random or default_random()
        while True:
            count = _geometric(self.gamma, source)
            if self.law == "geometric" or source.below_one(count) == 0:
                return count

    def one_try(self, whole: Guarantee) -> Guarantee:
        """The most that one try may promise, if all together promise the whole."""
        match whole:
            case PureDP() | ApproxDP(delta=0):
                return PureDP(whole.epsilon / (2 + self.eta))
            case ApproxDP():
                return self._largest(whole)
        raise InvalidParameter(
            f"{whole!r} is invalid", why="the best of random tries is not ρ-private", instead='epsilon=1, delta="1e-6"'
        )

    def curve(self, rho: Fraction) -> RenyiCurve:
        """The Rényi curve of the whole, where each try is ρ-zCDP, rounded up."""
        gamma, eta = float(self.gamma), self.eta
        expected = 1 / gamma if eta else (1 / gamma - 1) / -math.log(gamma)
        size, spread = float(rho), -math.log(gamma)
        order = max(1.0, math.sqrt(spread / size))
        middle = (1 + eta) * ((order - 1) * size + spread / order)

        def divergence(alpha: Fraction) -> Fraction:
            return Fraction((float(alpha) * size + middle + math.log(expected) / (float(alpha) - 1)) * _UP)

        return RenyiCurve.of(divergence)

    def _largest(self, whole: ApproxDP) -> ZCDP:
        low, high = 0.0, float(whole.epsilon) ** 2 + float(whole.epsilon)
        for _ in range(40):
            middle = (low + high) / 2
            fits = self.curve(Fraction(middle)).to_approx(whole.delta).epsilon <= whole.epsilon
            low, high = (middle, high) if fits else (low, middle)
        rho = Fraction(math.floor(low * 2**40), 2**40)
        if rho <= 0:
            raise InvalidParameter(
                f"{whole} is invalid", why="nothing is left for a try after the cost of choosing", instead="a larger epsilon"
            )
        return ZCDP(rho)


def _geometric(stop: Fraction, source: Random) -> int:
    """The number of coins of bias `stop` until the first head."""
    count = 0
    while True:
        heads = np.flatnonzero(source.below(stop.denominator, 256) < stop.numerator)
        if len(heads):
            return count + int(heads[0]) + 1
        count += 256
