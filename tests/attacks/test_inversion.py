"""Model inversion: what a raw model tells of its own rows, and that a private one tells no more of them than of anybody."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cloister import learn
from cloister.attacks import guess_attribute, infer_attribute, likeness, reconstruct_class
from cloister.errors import InvalidParameter
from cloister.noise import Random

MARGINAL = {0: 0.5, 1: 0.5}


def people(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A hidden bit, four features that have nothing to do with it, and a target that mostly follows the first of them."""
    draws = Random.deterministic(seed).words(rows * 6).reshape(rows, 6) * 2.0**-64
    X = np.column_stack([draws[:, 0] < 0.5, draws[:, 1:5]]).astype(float)
    coin = draws[:, 5] < 0.3
    return X, ((X[:, 1] > 0.5) ^ coin ^ (coin & (X[:, 0] > 0.5))).astype(int)


def test_the_raw_tree_tells_more_of_its_rows_than_of_others_and_the_private_one_does_not() -> None:
    """4,000 guesses on each side have a spread of 0.8 %: 6 % is more than five of the spread of a difference."""
    members, others = people(4000, 1), people(4000, 2)
    raw = DecisionTreeClassifier(random_state=0).fit(*members)
    found = infer_attribute(raw, members=members, others=others, hidden=0, marginal=MARGINAL)
    assert found.advantage > 0.06
    private = learn.DecisionTreeClassifier(epsilon=1, bounds=(0, 1), random=Random.deterministic(3)).fit(*members)
    told = infer_attribute(private, members=members, others=others, hidden=0, marginal=MARGINAL)
    assert abs(told.advantage) < 0.06
    assert told.others.rate >= 0.45
    assert json.loads(json.dumps(found.as_card()))["advantage"] == found.advantage
    assert "advantage" in repr(found)


def test_the_guess_is_marginal_times_likelihood() -> None:
    class Model:
        classes_ = np.array([0, 1])

        def predict_proba(self, X: Any) -> Any:
            yes = np.where(X[:, 0] == 1, 0.8, np.where(X[:, 0] == 2, 0.5, 0.1))
            return np.stack([1 - yes, yes], axis=1)

    rows, yes = np.full((2, 1), np.nan), np.array([1, 0])  # the column is not read
    assert guess_attribute(Model(), rows, yes, hidden=0, marginal={0: 0.4, 1: 0.3, 2: 0.3}).tolist() == [1, 0]
    assert guess_attribute(Model(), rows, yes, hidden=0, marginal={0: 0.1, 1: 0.3, 2: 0.6}).tolist() == [2, 2]
    assert np.isnan(rows).all()


@pytest.fixture(scope="module")
def one_nine() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Written digits 0 to 4, and one single 9."""
    X, y = load_digits(return_X_y=True)
    few = y < 5
    nine = X[y == 9][7]
    return np.concatenate([X[few], nine[None, :]]), np.append(y[few], 9), nine


CLASSES = [0, 1, 2, 3, 4, 9]


def portrait(model: Any, X: np.ndarray, nine: np.ndarray) -> float:
    found = reconstruct_class(model, 9, low=0, high=np.full(64, 16.0))
    return likeness(found, nine, base=X.mean(axis=0))


def test_a_class_that_one_row_makes_is_drawn_from_a_raw_model_and_not_from_a_private_one(
    one_nine: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    X, y, nine = one_nine
    assert portrait(GaussianNB(var_smoothing=0.1).fit(X, y), X, nine) > 0.6
    seen = [
        portrait(
            learn.GaussianNB(epsilon=1, bounds=(0, 16), classes=CLASSES, random=Random.deterministic(seed)).fit(X, y), X, nine
        )
        for seed in range(5)
    ]
    assert max(seen) < 0.4


def test_the_search_stays_in_the_box_and_finds_a_corner() -> None:
    class Slope:
        classes_ = np.array(["low", "high"])

        def predict_proba(self, X: Any) -> Any:
            high = 1 / (1 + np.exp(-(np.asarray(X) @ [1.0, -2.0])))
            return np.stack([1 - high, high], axis=1)

    assert reconstruct_class(Slope(), "high", low=[-1, -1], high=[1, 3]).tolist() == [1, -1]
    assert reconstruct_class(Slope(), "low", low=[-1, -1], high=[1, 3]).tolist() == [-1, 3]


def test_a_model_that_knows_nothing_is_left_in_the_middle() -> None:
    class Flat:
        classes_ = np.array([0, 1])

        def predict_proba(self, X: Any) -> Any:
            return np.full((len(X), 2), 0.5)

    assert reconstruct_class(Flat(), 1, low=[0, 0], high=[1, 1]).tolist() == [0.5, 0.5]


def test_refusals() -> None:
    X, y = people(20, 1)
    model = DecisionTreeClassifier().fit(X, y)
    with pytest.raises(InvalidParameter, match="hidden="):
        guess_attribute(model, X, y, hidden=9, marginal=MARGINAL)
    with pytest.raises(InvalidParameter, match="marginal="):
        guess_attribute(model, X, y, hidden=0, marginal={0: 1})
    with pytest.raises(InvalidParameter, match="class"):
        reconstruct_class(model, 5, low=[0] * 5, high=[1] * 5)


@pytest.mark.parametrize("how", [{"hidden": "1"}, {"hidden": None}, {"hidden": True}, {"marginal": None}, {"marginal": [0, 1]}])
def test_a_feature_and_its_shares_are_asked_for_in_words(how: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"hidden=|marginal="):
        guess_attribute(None, np.zeros((2, 2)), [0, 1], **{"hidden": 1, "marginal": {0: 0.5, 1: 0.5}, **how})


def test_what_is_no_pair_of_rows_and_target_is_refused_in_words() -> None:
    X, y = people(20, 3)
    model = GaussianNB().fit(X, y)

    def infer(members: Any, marginal: Any = MARGINAL) -> None:
        infer_attribute(model, members=members, others=(X, y), hidden=0, marginal=marginal)

    for members in ((X, y[:5]), (X[:0], y[:0]), ([["a", "b"]], [0]), ([[1], [1, 2]], y), (X[:, :3], y), None):
        with pytest.raises(InvalidParameter, match=r"one value for each row|a pair|same features"):
            infer(members)
    for marginal in ({"a": 0.5, "b": 0.5}, {0: "half", 1: 0.5}, [0.5, 0.5]):
        with pytest.raises(InvalidParameter, match="marginal"):
            infer((X, y), marginal)
    for low, high in ((["a"] * 5, 1), ([0] * 4, [1] * 5), ([0] * 3, [1] * 3), (None, [1] * 5), ([-np.inf] * 5, [1] * 5)):
        with pytest.raises(InvalidParameter, match="bounds of each feature"):
            reconstruct_class(model, 1, low=low, high=high)
    for steps in ("a", None, [None]):
        with pytest.raises(InvalidParameter, match="steps are numbers"):
            reconstruct_class(model, 1, low=0, high=1, steps=steps)  # type: ignore[arg-type]
    for stranger, label in ((object(), 1), (model, [0, 1])):
        with pytest.raises(InvalidParameter, match="the model knows the class"):
            reconstruct_class(stranger, label, low=[0] * 5, high=[1] * 5)
