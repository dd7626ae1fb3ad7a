"""Classifiers that say less, and an attack before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from cloister.errors import InvalidParameter
from cloister.mining import Coarsened, attack_before_and_after
from cloister.mining.coarsened import coarser
from cloister.mining.leak import area_under_curve

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(1200, 12))
Y = np.array(["no", "perhaps", "yes"])[np.clip((X[:, 0] + DRAW.normal(size=1200)).astype(int) + 1, 0, 2)]


def forest() -> RandomForestClassifier:
    return RandomForestClassifier(40, min_samples_leaf=2, random_state=0).fit(X[:600], Y[:600])


def test_the_books_scores() -> None:
    scores = [[0.99, 0.73, 0.65]]
    assert coarser(scores, decimals=1).tolist() == [[1.0, 0.7, 0.7]]
    assert coarser(scores, decimals=0).tolist() == [[1.0, 1.0, 1.0]]
    assert coarser(scores, top=1).tolist() == [[0.99, 0.0, 0.0]]
    assert coarser(scores, top=2, decimals=1).tolist() == [[1.0, 0.7, 0.0]]
    assert coarser(scores, top=9).tolist() == scores


def test_halves_go_up_whatever_floats_say() -> None:
    for tenths in range(10):
        assert coarser([[tenths / 10 + 0.05]], decimals=1)[0, 0] == pytest.approx((tenths + 1) / 10)


def test_what_each_output_shows() -> None:
    model = forest()
    full = model.predict_proba(X)
    labels = Coarsened(model, "labels").predict_proba(X)
    assert set(np.unique(labels)) == {0.0, 1.0}
    assert (labels.sum(axis=1) == 1).all()
    assert (model.classes_[labels.argmax(axis=1)] == model.predict(X)).all()
    assert np.abs(Coarsened(model, decimals=1).predict_proba(X) - full).max() <= 0.05 + 1e-9
    top = Coarsened(model, top=1).predict_proba(X)
    assert ((top > 0).sum(axis=1) == 1).all()
    assert np.allclose(top.max(axis=1), full.max(axis=1))
    assert (Coarsened(model, decimals=1).predict(X) == model.predict(X)).all()


def test_labels_need_no_scores() -> None:
    model = LinearSVC().fit(X[:100], Y[:100])
    assert Coarsened(model, "labels").predict_proba(X[:5]).sum() == 5
    with pytest.raises(InvalidParameter, match="no predict_proba"):
        Coarsened(model, decimals=1).predict_proba(X[:5])


def test_it_is_an_estimator_of_scikit_learns_kind() -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError
    from sklearn.model_selection import cross_val_score

    wrapped = Coarsened(LogisticRegression(), decimals=1)
    with pytest.raises(NotFittedError):
        wrapped.classes_  # noqa: B018
    assert clone(wrapped).get_params()["decimals"] == 1
    assert cross_val_score(wrapped, X, Y, cv=3).mean() > 0.5
    assert (wrapped.fit(X, Y).classes_ == np.unique(Y)).all()


@pytest.mark.parametrize(
    "parameters", [{"output": "x"}, {"decimals": -1}, {"decimals": 1.5}, {"top": 0}, {"output": "labels", "top": 1}]
)
def test_wrong_outputs_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as refused:
        Coarsened(forest(), **parameters).predict_proba(X)
    assert refused.value.instead


@pytest.mark.parametrize("scores", [[0.1, 0.2], [[float("nan")]], [[float("inf")]]])
def test_scores_are_a_table_of_numbers(scores: Any) -> None:
    with pytest.raises(InvalidParameter):
        coarser(scores)


def test_the_attack_weakens_step_by_step() -> None:
    leaks = attack_before_and_after(forest(), (X[:600], Y[:600]), (X[600:], Y[600:]))
    assert [each.output for each in leaks] == ["all scores", "2 decimals", "1 decimal", "the highest", "labels only"]
    areas = {each.output: each.area for each in leaks}
    assert areas["all scores"] > areas["1 decimal"] > areas["labels only"] > 0.55
    assert leaks[0].area > 0.8
    assert len({each.accuracy for each in leaks}) == 1  # labels are the model's own
    assert "no guarantee" in str(leaks)
    assert leaks.chart().to_dict()["layer"]


def test_where_nothing_was_learnt_by_heart_nothing_is_found() -> None:
    """Members and others are the same kind of row to a model that saw neither: areas near ½, advantages within the margin."""
    model = LogisticRegression().fit(DRAW.normal(size=(50, 12)), Y[:50])
    for leak in attack_before_and_after(model, (X[:600], Y[:600]), (X[600:], Y[600:])):
        assert abs(leak.area - 0.5) < 0.08
        assert abs(leak.advantage) < leak.margin


def test_the_area_is_the_share_of_pairs() -> None:
    members, others = DRAW.integers(0, 5, 30).astype(float), DRAW.integers(0, 5, 40).astype(float)
    pairs = [(one > other) + (one == other) / 2 for one in members for other in others]
    assert area_under_curve(members, others) == pytest.approx(np.mean(pairs))


def test_rows_that_cannot_be_attacked_are_refused() -> None:
    model, good = forest(), (X[:20], Y[:20])
    for bad in ((X[:3], Y[:3]), (X[:20], Y[:19]), X, (X[:20], np.array(["other"] * 20))):
        with pytest.raises(InvalidParameter):
            attack_before_and_after(model, good, bad)  # type: ignore[arg-type]


class Guessing(BaseEstimator):  # type: ignore[misc]
    """Scores that say nothing of membership."""

    def __init__(self, scores: Any) -> None:
        self.scores, self.classes_ = scores, np.array([0, 1, 2])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, rows: Any, labels: Any) -> Any:
        return self

    def predict_proba(self, rows: Any) -> Any:
        return self.scores[np.asarray(rows)[:, 0].astype(int)]

    def predict(self, rows: Any) -> Any:
        return self.predict_proba(rows).argmax(axis=1)


def test_the_advantage_is_not_flattered_by_the_choice_of_the_attack() -> None:
    """Of 400 pairs of 8 members and 8 others of one law: the mean advantage is 0 ± 0.016, and was 0.12."""
    draw, found = np.random.default_rng(5), []
    for _ in range(400):
        model, y = Guessing(draw.dirichlet([1, 1, 1], 16)), draw.integers(0, 3, 16)
        rows = np.arange(16)[:, None]
        [leak, *_] = attack_before_and_after(model, (rows[:8], y[:8]), (rows[8:], y[8:]), outputs=[])
        found.append(leak.advantage)
    assert abs(np.mean(found)) < 5 * np.std(found) / 20
