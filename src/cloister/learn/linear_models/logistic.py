"""Logistic regression with a guarantee: two classes or several."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from cloister.learn.linear_models.linear_classes import LinearClassifier
from cloister.learn.linear_models.losses import Logistic, Loss, Softmax
from cloister.tables.engines.row_sums import softmax


@dataclass(kw_only=True, eq=False, repr=False)
class LogisticRegression(LinearClassifier):
    """Linear scores whose logistic function is a probability.

    Guarantee: `epsilon`, `delta`, for one person (row) more or less. A fifth to a quarter of it buys class counts, a radius
    and, where it is worth it, a centre of the rows (`cloister.learn.linear_models.prepared`), the rest one of::

        method        where the noise goes       pure ε                          with δ
        "objective"   into the objective         K-norm a column                 (the ε alone is spent)
        "gradient"    into every gradient's sum  vector mechanism a round        Gaussian, μ² divided by the rounds
        "newton"      into every gradient     not: Gaussian noise only        Gaussian, the gradient's and the
                      and every Hessian                                       Hessian's; two classes
        "output"      onto the minimum           vector mechanism                Gaussian
        "centroids"   into the classes' sums     K-norm a class                  Gaussian

    each proved where it is written, all under the norm ‖row‖₂ ≤ 1 of prepared rows. `method="auto"` takes, under pure ε, the
    objective where n̂·ε ≥ 15·d, for k > 2 classes 15·d·k² (n̂ the noisy count, d the features and the intercept), else the
    centroids; with a δ, gradients, but the objective for two classes and up to 8 features. What that rests on, accuracies on
    test rows (AUTO marks what is taken; no privacy: 0.965, 0.964, 0.810, 0.852)::

                            objective     gradient      output   centroids
        cancer ε = 0.5      0.86          0.82          0.85     0.83 AUTO
        cancer ε = 1        0.92          0.92          0.91     0.94 AUTO
        cancer ε = 8        0.96 AUTO     0.95          0.95     0.94
          with δ = 1e-5: 1                0.95 AUTO     0.94     0.94
                         8                0.97 AUTO     0.95     0.94
        digits ε = 1                      0.21          0.19     0.67 AUTO
        digits ε = 8        0.83          0.79          0.82     0.90 AUTO
        digits ε = 32       0.92          0.87          0.90     0.90 AUTO
        digits ε = 128      0.96 AUTO     0.90          0.91     0.90
          with δ = 1e-5: 1                0.90 AUTO     0.81     0.88
                         8                0.95 AUTO     0.90     0.90
        Adult, 5  ε = 1     0.810 AUTO    0.805         0.800    0.782
                  ε = 0.01  0.784 AUTO    0.774         0.776    0.748
          with δ = 1e-5: 1  0.810 AUTO    0.812         0.793    0.786
        Adult, all ε = 1    0.836 AUTO    0.824
          with δ = 1e-5                   0.843 AUTO

    Newton steps were no better in any of these than the descent (means of 50, 8 and 3 fits, δ = 1e-5): cancer ε = 1 0.943 and
    0.954, ε = 8 0.970 and 0.970; Adult, 5, ε = 1 0.812 and 0.812; Adult, all, ε = 1 0.841 and 0.843. So "auto" takes none.

    Coefficients are for the features as they came; rows are clipped to the bounds before they are scored. With
    `method="output"`, `margins_` holds for each coefficient how far, with 95 % confidence, the noise can have moved it.

    >>> from cloister.noise import Random
    >>> rows, classes = [[0.1], [0.2], [0.8], [0.9]] * 500, [0, 0, 1, 1] * 500
    >>> model = LogisticRegression(epsilon=1, bounds=(0, 1), random=Random.deterministic(1)).fit(rows, classes)
    >>> model.predict([[0.0], [1.0]]).tolist(), model.method_
    ([0, 1], 'objective')
    """

    _stored: ClassVar[str] = "LogisticRegression"

    def _loss(self, classes: int, *, slope: float = 1.0) -> Loss:
        return Logistic(slope=slope) if classes == 2 else Softmax(classes=classes)

    def _takes_sums(self) -> bool:
        """By gradients."""
        return self.method in ("auto", "gradient")

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """The probability of each class, a row for each row."""
        scores = self.decision_function(X)
        return softmax(np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores)

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Its logarithm."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), 1e-300)))
