"""What the linear classifiers share: the choice of a method from released and public facts, and predicting.

Where noise goes is the method's matter: into the objective (objective.py), into every gradient (descent.py), into every gradient
and Hessian (newton.py), onto the minimum (output.py), or into class sums (centroids.py).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from cloister.errors import InvalidParameter
from cloister.learn.frame.base import PrivateModel, Rows, classes_of
from cloister.learn.linear_models import descent, newton, objective
from cloister.learn.linear_models.centroids import centroids
from cloister.learn.linear_models.losses import Logistic, Loss
from cloister.learn.linear_models.minimum import minimum
from cloister.learn.linear_models.output import perturbed_output
from cloister.learn.linear_models.prepared import Prepared, prepare
from cloister.noise.allowance import Allowance, Currency, Share
from cloister.privacy import Guarantee, PureDP

Floats = npt.NDArray[np.float64]
Method: TypeAlias = Literal["auto", "objective", "gradient", "newton", "output", "centroids"]

_METHODS = ("auto", "objective", "gradient", "newton", "output", "centroids")
_LEAST_RIDGE = 1e-4
_SMALL = 8
"""Up to so many features, two classes and a δ, a pure objective is better than Gaussian gradients."""
_SIGNAL = 15.0
"""Persons · ε over features (for several classes: times their square), from which on a perturbed objective beats class sums."""


class LinearClassifier(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """Linear scores with a promise; see `LogisticRegression` and `LinearSVC`."""

    _target: ClassVar[str] = "class"
    _learned: ClassVar[tuple[str, ...]] = ("classes_", "coef_", "intercept_", "low_", "high_", "method_", "margins_")

    classes: Any
    method: Any
    ridge: Any

    @abstractmethod
    def _loss(self, classes: int, *, private: bool) -> Loss:
        """The loss that is made small."""

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """Class sums, gradients and outputs take Gaussian noise where a δ is allowed; an objective is perturbed under pure ε."""
        self._check_parameters()
        if self.method == "objective":
            return "epsilon"
        if self.method == "newton":
            if not isinstance(self._loss(len(classes_of(self.classes)), private=True), Logistic):
                raise InvalidParameter(
                    'method="newton" is invalid',
                    why="its Hessian is that of a logistic loss of two classes",
                    instead='method="gradient"',
                )
            return "mu_squared"
        if self.method != "auto" or isinstance(promised, PureDP):
            return None
        few = self.n_features_in_ <= _SMALL and len(classes_of(self.classes)) == 2
        return "epsilon" if few and hasattr(promised, "epsilon") else None

    def _check_parameters(self) -> None:
        if self.method not in _METHODS:
            raise InvalidParameter(
                f"method={self.method!r} is invalid", why=f"known are {', '.join(_METHODS)}", instead='method="auto"'
            )
        least = _LEAST_RIDGE if self.private else 0.0  # with less, floating point may not find the minimum, for some rows
        if self.ridge is not None and not (isinstance(self.ridge, int | float) and least < self.ridge < math.inf):
            raise InvalidParameter(
                f"ridge={self.ridge!r} is invalid", why=f"it is a number above {least:g}, or None", instead="ridge=1.0"
            )

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        self._check_parameters()
        self.low_, self.high_ = rows.box.low, rows.box.high
        self.margins_: Floats | None = None
        classes = len(self.classes_)
        if allowance is None:
            self._learn_exactly(rows, classes)
            return
        prepared = prepare(rows, classes, allowance, self.random)
        loss = self._loss(classes, private=True)
        method = self._chosen(allowance, prepared, classes)
        share = allowance.rest(_WHAT[method])
        self.method_: str = method
        self.coef_, self.intercept_ = prepared.unscaled(self._weights(method, prepared, loss, share))

    def _chosen(self, allowance: Allowance, prepared: Prepared, classes: int) -> Method:
        if self.method != "auto":
            return self.method  # type: ignore[no-any-return]
        if allowance.currency != "epsilon":
            return "gradient"
        signal = prepared.persons * float(allowance.size) / prepared.dimension
        return "objective" if signal >= _SIGNAL * (1 if classes == 2 else classes**2) else "centroids"

    def _weights(self, method: Method, prepared: Prepared, loss: Loss, share: Share) -> Floats:
        if method == "centroids":
            return centroids(prepared, len(self.classes_), share, self.random)
        if method == "objective":
            numbers = prepared.dimension * loss.columns
            spent = objective.plan(loss, share.epsilon, numbers=numbers, ridge=float(self.ridge or 0.0))
            return objective.perturbed_objective(prepared, loss, self.random, plan=spent)
        if method == "gradient":
            plan = _descent(prepared, loss, share)
            return descent.descend(prepared, loss, share, self.random, descent=plan, start=_prior(prepared, loss))
        if method == "newton":
            assert isinstance(loss, Logistic)
            steps = newton.plan(persons=prepared.persons, dimension=prepared.dimension, mu=math.sqrt(share.mu_squared))
            return newton.newton_steps(prepared, loss, share, self.random, newton=steps, start=_prior(prepared, loss))
        ridge = float(self.ridge or _ridge_for_output(prepared, loss, share))
        perturbed = perturbed_output(prepared, loss, share, self.random, ridge=ridge)
        self.margins_ = prepared.scaled_margins(perturbed.margin(0.95), loss.columns)
        return perturbed.weights

    def _learn_exactly(self, rows: Rows, classes: int) -> None:
        """Without noise: the minimum itself, with an intercept that is not shrunk."""
        self._refuse_one_class(classes)
        y = np.asarray(rows.y, dtype=np.int64)
        X = rows.box.centred(rows.X)
        loss = self._loss(classes, private=False)
        ridge = np.full((X.shape[1] + 1, 1), 4.0 if self.ridge is None else float(self.ridge))
        ridge[-1] = 0.0
        design = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        weights, _ = minimum(
            design,
            y,
            loss,
            ridge=ridge,
            linear=np.zeros((1, 1)),
            tolerance=1e-7 * math.sqrt(len(X)),
            steps=40,
        )
        inner = weights[:-1] * (2 / rows.box.width)[:, None]
        self.method_ = "minimum"
        self.coef_, self.intercept_ = np.asarray(inner.T), np.asarray(weights[-1] - rows.box.middle @ inner)

    def _refuse_one_class(self, classes: int) -> None:
        if classes < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes, and the data holds 1 class")

    def decision_function(self, X: Any) -> Floats:
        """Scores: one a row for two classes (above 0: the second), else one a class."""
        scores = np.clip(self._asked(X), self.low_, self.high_) @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class of each row; features are clipped to their bounds."""
        scores = self.decision_function(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])


_WHAT = {
    "objective": "a perturbed objective",
    "gradient": "gradients",
    "newton": "gradients and Hessians",
    "output": "a perturbed output",
    "centroids": "sums of classes",
}


def _descent(prepared: Prepared, loss: Loss, share: Share) -> descent.Descent:
    if share.currency == "epsilon":
        return descent.plan_pure(
            persons=prepared.persons, numbers=prepared.dimension * loss.columns, epsilon=float(share.epsilon)
        )
    return descent.plan(persons=prepared.persons, dimension=prepared.dimension, mu=math.sqrt(share.mu_squared))


def _prior(prepared: Prepared, loss: Loss) -> Floats:
    """Weights that know the classes' sizes alone."""
    weights = np.zeros((prepared.dimension, loss.columns))
    shares = np.log(prepared.counts / prepared.counts.sum())
    weights[-1] = (shares if loss.columns > 1 else shares[1] - shares[0]) / prepared.constant
    return weights


def _ridge_for_output(prepared: Prepared, loss: Loss, share: Share) -> float:
    """A ridge that balances its own bias against the noise, by the noisy number of persons."""
    scale = float(share.scale(l1=1, l2_squared=1))
    numbers = prepared.dimension * loss.columns
    length = numbers * scale if share.currency == "epsilon" else math.sqrt(numbers) * scale
    return max(1e-3, 0.1 * math.sqrt(prepared.persons * length * loss.length))
