"""Classifiers that say less: labels only, rounded scores, or the highest scores alone.

A model is surer of the rows that it learnt than of others, and says so in its scores; whoever sees them can guess who was in the
training set (Shokri, Stronati, Song & Shmatikov 2017). Coarser scores tell less. They tell something, still: that a label is
right is evidence of membership by itself (Yeom, Giacomelli, Fredrikson & Jha 2018), and labels asked for around a row give back
much of its score (Choquette-Choo, Tramèr, Carlini & Papernot 2021). **There is no guarantee**: a model that promises something is
in `cloister.learn`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from cloister.errors import InvalidParameter

Floats = npt.NDArray[np.float64]


class Coarsened(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier behind a coarser output. It trains nothing: `fit` fits the model that it stands before.

    Parameters
    ----------
    model
        Any classifier of scikit-learn's kind with `predict_proba` (with "labels", `predict` is enough).
    output
        "scores", or "labels": 1 for the predicted class, 0 for the others.
    decimals
        Scores rounded to so many decimals, halves up. They need not sum to 1 any more.
    top
        Only the so many highest scores (of equals the first), 0 for the others.

    Labels are the model's own, whatever the rounding did.

    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0], [1], [2], [3]], ["no", "no", "yes", "yes"])
    >>> Coarsened(model, decimals=1).predict_proba([[1.2]]).tolist()
    [[0.6, 0.4]]
    >>> Coarsened(model, "labels").predict_proba([[1.2]]).tolist(), Coarsened(model, "labels").predict([[1.2]]).tolist()
    ([[1.0, 0.0]], ['no'])
    """

    def __init__(self, model: Any, output: str = "scores", *, decimals: int | None = None, top: int | None = None) -> None:
        self.model = model
        self.output = output
        self.decimals = decimals
        self.top = top

    def fit(self, X: Any, y: Any) -> Coarsened:
        """Fit the model itself; the rows leave no trace here."""
        self._check()
        self.model.fit(X, y)
        return self

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The model's."""
        check_is_fitted(self.model)
        return np.asarray(self.model.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self.model, "classes_")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The model's labels."""
        return np.asarray(self.model.predict(X))

    def predict_proba(self, X: Any) -> Floats:
        """The model's scores, made coarser."""
        self._check()
        if self.output == "labels":
            labels = self.predict(X)
            return np.asarray(labels[:, None] == self.classes_[None, :], dtype=np.float64)
        if not hasattr(self.model, "predict_proba"):
            raise InvalidParameter(
                f"The model {type(self.model).__name__} is invalid",
                why="it has no predict_proba to make coarser",
                instead='Coarsened(model, "labels")',
            )
        return coarser(self.model.predict_proba(X), decimals=self.decimals, top=self.top)

    def _check(self) -> None:
        if self.output not in ("scores", "labels"):
            raise InvalidParameter(
                f"output={self.output!r} is invalid", why='known are "scores" and "labels"', instead='Coarsened(model, "labels")'
            )
        if self.output == "labels" and (self.decimals is not None or self.top is not None):
            raise InvalidParameter(
                'output="labels" is invalid', why="labels have no scores to round or to pick", instead="decimals=1"
            )
        check_coarseness(self.decimals, self.top)

    @property
    def title(self) -> str:
        """What it shows, in words."""
        if self.output == "labels":
            return "labels only"
        parts = [] if self.top is None else [f"the {self.top} highest" if self.top > 1 else "the highest"]
        parts += [] if self.decimals is None else [f"{self.decimals} decimal{'s' * (self.decimals != 1)}"]
        return ", ".join(parts) or "all scores"


def coarser(scores: Any, *, decimals: int | None = None, top: int | None = None) -> Floats:
    """Scores made coarser: a row for each prediction, a column for each class.

    >>> coarser([[0.99, 0.73, 0.65]], decimals=1).tolist(), coarser([[0.99, 0.73, 0.65]], top=1).tolist()
    ([[1.0, 0.7, 0.7]], [[0.99, 0.0, 0.0]])
    """
    check_coarseness(decimals, top)
    values = np.array(scores, dtype=np.float64)
    if values.ndim != 2 or not np.isfinite(values).all():
        raise InvalidParameter(
            "The scores are invalid", why="they are a table of numbers, a row a prediction", instead="[[0.9, 0.1]]"
        )
    if top is not None:
        hidden = np.argsort(-values, axis=1, kind="stable")[:, top:]
        np.put_along_axis(values, hidden, 0.0, axis=1)
    if decimals is not None:
        steps = 10.0**decimals
        values = np.floor(values * steps + 0.5 + 1e-9) / steps  # 0.65 · 10 is 6.5, or a hair below: a half goes up
    return values


def check_coarseness(decimals: int | None, top: int | None) -> None:
    """Refuse what no output can be."""
    if decimals is not None and (isinstance(decimals, bool) or not isinstance(decimals, int) or not 0 <= decimals <= 9):
        raise InvalidParameter(f"decimals={decimals!r} is invalid", why="it is a whole number from 0 to 9", instead="decimals=1")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise InvalidParameter(f"top={top!r} is invalid", why="it is a whole number from 1 on", instead="top=1")
