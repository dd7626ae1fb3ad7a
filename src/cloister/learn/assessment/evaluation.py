"""How good a model is, found out privately: accuracy, confusion matrix, reliability, mean squared error and R², with margins.

The rows that a model is judged by are as private as those that it learnt from. `split` parts rows by coins, so that training on
one part and judging by the other costs the greater of the two, and not their sum; `fit_and_score` does both.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from cloister.errors import InvalidParameter
from cloister.learn.assessment.judging import Measure, coins, judge_of, measure_of, rows_for
from cloister.learn.assessment.scores import Confusion, Determination, Proportion, Reliability, Score
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.reading import matrix_of, width_of
from cloister.noise import Allowance, Random
from cloister.privacy import ApproxDP, Exact, Guarantee, PureDP


def accuracy(
    model: Any, X: Any, y: Any, *, epsilon: Exact = 1, delta: Exact | None = None, random: Random | None = None
) -> Proportion:
    """The share of rows whose class the model says, with a margin.

    Guarantee: ε, or (ε, δ), for the rows that are judged by, one person more or less. Released are two whole numbers, the hits
    and the misses. A row is in one of them, so one person moves them by 1 in the sum of sizes and of squares: Laplace noise of
    scale 1/ε in each (Dwork & Roth 2014, Theorem 3.6), or Gaussian noise. The quotient is post-processing.

    >>> from cloister.learn.assessment.evaluation import accuracy
    >>> class Sign:
    ...     classes_ = np.array([0, 1])
    ...     def predict(self, X): return (X[:, 0] > 0).astype(int)
    >>> found = accuracy(Sign(), [[-1.0], [1.0]] * 500, [0, 1] * 500, epsilon=1)
    >>> found.value > 0.95, 0 < found.margin(0.95) < 0.1
    (True, True)
    """
    found = score(model, X, y, measure="accuracy", epsilon=epsilon, delta=delta, random=random)
    assert isinstance(found, Proportion)
    return found


def confusion_matrix(
    model: Any, X: Any, y: Any, *, epsilon: Exact = 1, delta: Exact | None = None, random: Random | None = None
) -> Confusion:
    """How many rows of each class are taken for each; with the accuracy, and what a guess of the commonest class would reach.

    Guarantee: as `accuracy`: a row is in one cell, so the sensitivity of the whole table is 1.

    >>> from cloister.learn import confusion_matrix
    >>> from cloister.learn.frame.examples import Threshold
    >>> X, y = [[0.2], [0.8]] * 500, [0, 1] * 500
    >>> found = confusion_matrix(Threshold(bounds=(0, 1)).fit(X, y), X, y, epsilon=1)
    >>> found.value.shape, found.accuracy.value > 0.9, round(found.silence.value, 1), found.worse_than_silence
    ((2, 2), True, 0.5, False)
    """
    found = score(model, X, y, measure="confusion", epsilon=epsilon, delta=delta, random=random)
    assert isinstance(found, Confusion)
    return found


def reliability(
    model: Any, X: Any, y: Any, *, epsilon: Exact = 1, delta: Exact | None = None, random: Random | None = None
) -> Reliability:
    """How often the model is right where it is how sure, by tenths of the probability of its class; with the accuracy.

    Guarantee: as `accuracy`: a row is in one tenth, right or wrong there, so the sensitivity of the whole table is 1.

    >>> from cloister.learn import GaussianNB, reliability
    >>> X, y = [[0.2], [0.8]] * 500, [0, 1] * 500
    >>> found = reliability(GaussianNB(bounds=(0, 1), epsilon=5).fit(X, y), X, y, epsilon=1)
    >>> found.value.shape, found.accuracy.value > 0.9
    ((10,), True)
    """
    found = score(model, X, y, measure="reliability", epsilon=epsilon, delta=delta, random=random)
    assert isinstance(found, Reliability)
    return found


def mean_squared_error(
    model: Any,
    X: Any,
    y: Any,
    *,
    bounds_y: Any = None,
    epsilon: Exact = 1,
    delta: Exact | None = None,
    random: Random | None = None,
) -> Proportion:
    """The mean of (y − ŷ)², target and prediction clipped to the target's declared bounds: the model's, where none are given.

    Guarantee: ε, or (ε, δ), for the rows that are judged by. With e = (y − ŷ)²/width² in [0, 1], in steps of 2⁻²⁰, Σe and
    Σ(1 − e) are released. One row moves them by e and 1 − e: by 1 in the sum of sizes, and at most 1 in that of squares.

    >>> from cloister.learn import mean_squared_error
    >>> class Half:
    ...     def predict(self, X): return np.full(len(X), 0.5)
    >>> found = mean_squared_error(Half(), [[0.0]] * 1000, [0.0, 1.0] * 500, bounds_y=(0, 1), epsilon=1)
    >>> abs(found.value - 0.25) < 0.02, found.margin() < 0.02
    (True, True)
    """
    found = score(model, X, y, measure="mean_squared_error", bounds_y=bounds_y, epsilon=epsilon, delta=delta, random=random)
    assert isinstance(found, Proportion)
    return found


def r2_score(
    model: Any,
    X: Any,
    y: Any,
    *,
    bounds_y: Any = None,
    epsilon: Exact = 1,
    delta: Exact | None = None,
    random: Random | None = None,
) -> Determination:
    """R² = 1 − Σ(y − ŷ)² / Σ(y − ȳ)², within the declared bounds of the target.

    Guarantee: ε, or (ε, δ), for the rows that are judged by. Released are Σe and Σ(1 − e) as for `mean_squared_error`, and with
    z, the target in [−1, 1], Σz and Σ(z² − ½), all in steps of 2⁻²⁰. One row moves them by at most 1 + 1 + ½ in the sum of
    sizes, and 1 + 1 + ¼ in that of squares.

    >>> from cloister.learn import r2_score
    >>> class First:
    ...     def predict(self, X): return X[:, 0]
    >>> found = r2_score(First(), [[0.0], [1.0]] * 1000, [0.0, 1.0] * 1000, bounds_y=(0, 1), epsilon=5)
    >>> found.value > 0.95
    True
    """
    found = score(model, X, y, measure="r2", bounds_y=bounds_y, epsilon=epsilon, delta=delta, random=random)
    assert isinstance(found, Determination)
    return found


def score(
    model: Any,
    X: Any,
    y: Any,
    *,
    measure: Measure | None = None,
    bounds_y: Any = None,
    epsilon: Exact = 1,
    delta: Exact | None = None,
    random: Random | None = None,
) -> Score:
    """One of the five by its name; without one, accuracy for a model of classes and R² for one of numbers."""
    promise = PureDP(epsilon) if delta in (None, 0) else ApproxDP(epsilon, delta)
    chosen = measure_of(model, measure)
    return judged(model, X, y, chosen, promise, random, bounds_y=bounds_y)


def judged(
    model: Any, X: Any, y: Any, measure: Measure, promise: Guarantee | None, random: Random | None, *, bounds_y: Any = None
) -> Score:
    """The score of a measure that fits the model, under a promise of its own."""
    judge = judge_of(model, measure, bounds_y)
    features, target = rows_for(model, X, y, judge)
    share = None if promise is None else Allowance(promise).rest(measure)
    numbers = judge.released(model, features, target, share, random)
    return judge.answer(numbers, share, promise, marked=bool(share is not None and random is not None and random.marked))


def split(X: Any, y: Any = None, *, test: Exact = "0.25", random: Random | None = None) -> tuple[Any, ...]:
    """Rows for training and rows for judging: X_train, X_test, and y_train, y_test where y is given.

    Each row falls by a coin of its own, so one person more or less changes one part and leaves the other as it is. What is
    released of the one with ε₁ and of the other with ε₂ then costs max(ε₁, ε₂) together (parallel composition: McSherry 2009,
    Theorem 4). A permutation of all rows would not do: one row more moves many others. The sizes of the parts are private.

    >>> left, right = split(np.arange(8).reshape(8, 1), test="0.5", random=Random.deterministic(1))
    >>> sorted([*left.ravel().tolist(), *right.ravel().tolist()])
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    X = in_rows(X) if y is None else paired(X, y)
    tested = coins(len(X), test, random)
    return tuple(taken(rows, part) for rows in ((X,) if y is None else (X, y)) for part in (~tested, tested))


def fit_and_score(
    model: PrivateModel, X: Any, y: Any, *, test: Exact = "0.25", measure: Measure | None = None
) -> tuple[PrivateModel, Score]:
    """Fits a copy of the model to one part of the rows and judges it by the other: both together cost what the model costs.

    Guarantee: that of the model's ε and δ. Each row is in one part (`split`), and each part is read under the whole promise.

    >>> from cloister.learn import fit_and_score
    >>> from cloister.learn.frame.examples import Threshold
    >>> model, found = fit_and_score(Threshold(bounds=(0, 1), epsilon=1), [[0.2], [0.8]] * 500, [0, 1] * 500)
    >>> str(model.guarantee_), str(found.guarantee), found.value > 0.9
    ('ε = 1', 'ε = 1', True)
    """
    measure_of(model, measure)
    X_train, X_test, y_train, y_test = split(paired(X, y, model), y, test=test, random=model.random)
    fitted: PrivateModel = clone(model).fit(X_train, y_train)
    return fitted, judged(fitted, X_test, y_test, measure_of(fitted, measure), fitted.promise(), model.random)


def in_rows(X: Any, model: Any = None) -> Any:
    """A list of rows as the matrix that it is, before coins say which are taken: no rows have as many columns as all have, and
    whether none was taken decides on no error.

    >>> in_rows([[1, 2], [3, 4]])[:0].shape, in_rows(["a", "b"])
    ((0, 2), ['a', 'b'])
    """
    width = width_of(getattr(model, "bounds", None))
    if isinstance(X, list | tuple):
        is_rows = width is not None if not X else isinstance(X[0], list | tuple | np.ndarray)
    else:
        is_rows = hasattr(X, "tocsr") or np.ndim(X) == 0  # what is no rows at all is refused there
    return matrix_of(X, features=width) if is_rows else X


def paired(X: Any, y: Any, model: Any = None) -> Any:
    """The same, where y must be as long.

    >>> paired([[1, 2], [3, 4]], [0, 1]).shape
    (2, 2)
    """
    rows = in_rows(X, model)
    if not hasattr(y, "__len__") or len(y) != len(rows):
        raise InvalidParameter(
            "y is invalid", why="it is not one column, as long as X has rows", instead="fit(X, y), one value a row"
        )
    return rows


def taken(rows: Any, kept: npt.NDArray[np.bool_]) -> Any:
    """Those rows of an array, a frame or a list."""
    places = np.flatnonzero(kept)
    if hasattr(rows, "take") and not isinstance(rows, np.ndarray):
        return rows.take(places)  # of pandas or Arrow
    return rows[places] if hasattr(rows, "shape") else [rows[place] for place in places]
