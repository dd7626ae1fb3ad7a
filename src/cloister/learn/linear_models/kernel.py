"""A kernel machine with a guarantee: a linear classifier on random Fourier features, for what no line divides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils.metaestimators import available_if

from cloister.learn.frame.bounds import Box, Rows, box_of
from cloister.learn.frame.parameters import Limit, Limits
from cloister.learn.linear_models.linear_classes import LinearClassifier
from cloister.learn.linear_models.losses import HuberHinge, Logistic, Loss, Softmax
from cloister.learn.linear_models.random_features import drawn_frequencies, fourier_features
from cloister.noise import Random, default_random
from cloister.noise.allowance import Allowance, Currency
from cloister.privacy import Guarantee
from cloister.tables.engines.row_sums import softmax

Floats = npt.NDArray[np.float64]

_LOSSES = ("logistic", "hinge")
_WIDTH = 0.5
_USUAL = 4.0
"""γ times the number of features: the kernel of the farthest corners is then e⁻¹⁶, that of the middle and a corner e⁻⁴."""
_LEAST_GAMMA, _MOST_GAMMA, _MOST = 1e-6, 1e6, 4096


def _has_probabilities(model: KernelClassifier) -> bool:
    return bool(model.loss == "logistic")


@dataclass(kw_only=True, eq=False, repr=False)
class KernelClassifier(LinearClassifier):
    """Linear scores of random Fourier features of the kernel exp(−γ‖x − y‖²), x and y scaled by their bounds to [−1, 1].

    Guarantee: `epsilon`, `delta`, for one person (row) more or less: that of the linear learner (`LogisticRegression` for
    `loss="logistic"`, `LinearSVC` for `loss="hinge"`), method by method. Theorem: a map that is applied to each row by itself,
    and depends on no row, takes neighbours to neighbours, so what is ε-private (or (ε, δ)-private) of mapped rows is so of the
    rows. The frequencies are drawn before anything is read, and published. The norm that the learner needs holds by
    construction: m frequencies make m pairs (cos, sin)/√m, so every mapped row is 1 long, whatever γ is; the learner cuts them
    again in whole steps. The draw being of that row alone to the last bit: `random_features.fourier_features`.

    Rahimi & Recht (2007), Claim 1: with m frequencies the kernel is off by at most η everywhere in the box, but for a
    probability that falls as exp(−mη²/(4(d + 2))). Private learning by it: Rubinstein, Bartlett, Huang & Taft (2012); Chaudhuri,
    Monteleoni & Sarwate (2011), section 5. More frequencies bring the machine nearer to the kernel's, and the
    noise is 2m long under ε alone and √(2m) with a δ: so 16 do better than hundreds where rows are few.

    No support vector is kept: they would be rows. The model is the frequencies, which are random, and a weight for each.

    Parameters: `loss`; `n_components` (m, how many frequencies); `gamma` (None: 4/d for d features); `method`, `ridge` as in the
    linear learner. Learned: `frequencies_` (in turns, for rows scaled to [−1, 1]), `gamma_`, `coef_`, `intercept_`, `method_`.

    >>> angle = np.linspace(0, 60, 3000)
    >>> radius = np.where(np.arange(3000) % 2, 0.3, 0.9)
    >>> rings = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    >>> model = KernelClassifier(epsilon=1, bounds=(-1, 1), random=Random.deterministic(1)).fit(rings, np.arange(3000) % 2)
    >>> model.predict([[0.0, 0.3], [0.0, -0.9]]).tolist(), model.frequencies_.shape
    ([1, 0], (16, 2))
    """

    _stored: ClassVar[str] = "KernelClassifier"
    learned_names: ClassVar[tuple[str, ...]] = (*LinearClassifier.learned_names, "frequencies_", "gamma_")
    limits: ClassVar[Limits] = {
        **LinearClassifier.limits,
        "loss": Limit(known=_LOSSES, instead="logistic"),
        "n_components": Limit(least=1, most=_MOST, whole=True, instead=16),
        "gamma": Limit(least=_LEAST_GAMMA, most=_MOST_GAMMA, none=True, instead=0.5),
    }

    loss: Literal["logistic", "hinge"] = "logistic"
    n_components: int = 16
    gamma: float | None = None

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """That of the linear learner; its rule for few features is about those that it learns from, and these are many."""
        found = super()._currency_of(promised)
        return None if self.method == "auto" else found

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        features = rows.X.shape[1]
        self.gamma_ = _USUAL / features if self.gamma is None else float(self.gamma)
        # without privacy the same rows give the same model, as scikit-learn wants it
        random = self.random or (Random.deterministic(0) if allowance is None else default_random())
        self.frequencies_ = drawn_frequencies(int(self.n_components), features, self.gamma_, random)
        mapped = np.ascontiguousarray(fourier_features(rows.box.centred(rows.X), self.frequencies_))
        super()._learn(Rows(X=mapped, y=rows.y, box=box_of((-1, 1), features=mapped.shape[1])), allowance)
        self.low_, self.high_ = rows.box.low, rows.box.high

    def _loss(self, classes: int, *, slope: float = 1.0) -> Loss:
        if self.loss == "hinge":
            return HuberHinge(classes=classes, width=_WIDTH)
        return Logistic(slope=slope) if classes == 2 else Softmax(classes=classes)

    def decision_function(self, X: Any) -> Floats:
        """Scores: one a row for two classes (above 0: the second), else one a class."""
        scores = self._mapped(self._asked(X)) @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, a row for each row; with `loss="logistic"` alone."""
        scores = self.decision_function(X)
        return softmax(np.stack([np.zeros_like(scores), scores], axis=1) if scores.ndim == 1 else scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Its logarithm."""
        return np.asarray(np.log(np.maximum(self.predict_proba(X), math.ulp(0.0))))

    def _mapped(self, X: Floats) -> Floats:
        """Rows, clipped to the bounds, as their features."""
        return fourier_features(Box(low=self.low_, high=self.high_).centred(X), self.frequencies_)
