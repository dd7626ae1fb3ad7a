"""What the linear classifiers share: the choice of a method from released and public facts, and predicting.

Where noise goes is the method's matter: into the objective (objective.py), into every gradient (descent.py), into every gradient
and Hessian (newton.py), onto the minimum (output perturbation), or into class sums.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from cloister.errors import InvalidParameter
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Rows, classes_of
from cloister.learn.frame.margins import normal_quantile
from cloister.learn.frame.parameters import Limit, Limits
from cloister.learn.frame.vectors import as_fraction, noisy_columns, noisy_vector
from cloister.learn.linear_models import descent, newton, objective
from cloister.learn.linear_models.losses import Logistic, Loss
from cloister.learn.linear_models.minimum import minimum, steps_for
from cloister.learn.linear_models.objective import solvable
from cloister.learn.linear_models.prepared import Prepared, RowSource, prepare, scaled
from cloister.noise import Random, VectorMechanism
from cloister.noise.allowance import Allowance, Currency, Share
from cloister.privacy import Guarantee, PureDP
from cloister.tables.engines.row_sums import STEPS


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbed:
    """Released weights, and what was added to them: the scale of its length (under ε) or σ."""

    weights: Floats
    scale: float
    pure: bool

    def margin(self, confidence: float) -> float:
        """Within this length of the released weights, with that confidence, lie those without noise (of the same ridge).

        Under ε for the vector of all weights at once; under μ² for each weight apart.
        """
        if self.pure:
            mechanism = VectorMechanism(epsilon=1, sensitivity=1, dimension=self.weights.size, step="0.001")
            return mechanism.margin(confidence) * self.scale
        return normal_quantile(confidence) * self.scale


def perturbed_output(prepared: Prepared, loss: Loss, share: Share, random: Random | None, *, ridge: float) -> Perturbed:
    """The minimum of Σ loss + ½λ‖w‖², with noise.

    Guarantee: what the share says, for one person more or less. Theorem: Chaudhuri, Monteleoni & Sarwate (2011), Corollary 8,
    for sums: the minimum moves by at most c/λ, where c bounds ‖residual‖₂·‖row‖₂. Norm needed: ‖row‖₂ ≤ 1 (rows are cut). Their
    2/(nΛ) is the same for means, Λ = λ/n, and neighbours that replace a person: two moves of 1/λ each. With sums and an
    absolute λ the number n, which is private here, is not needed. Proof: both objectives are λ-strongly convex and differ by one
    term whose gradient is at most c long; at the two minima, λ‖w − w′‖ ≤ c.
    The solver's stop adds 2γ/λ, γ as `solvable` says (checked; else the weights are 0), and rounding to steps √m/2 steps for
    each of the two worlds, m the number of weights.
    """
    rows = prepared.rows / STEPS
    shape, near_enough = (prepared.dimension, loss.columns), solvable(prepared, loss)
    weights, near = minimum(
        rows,
        prepared.classes,
        loss,
        ridge=np.full((1, 1), ridge),
        linear=np.zeros(shape),
        tolerance=near_enough / 2,
        steps=steps_for(loss, ridge=ridge, people=prepared.people),
    )
    if not near:
        weights = np.zeros(shape)
    moved = (loss.length + 2 * near_enough) / ridge
    step = moved / 4096
    sensitivity = as_fraction(4096 * (1 + 1e-9) + math.sqrt(weights.size))
    bound = 2.0**50
    counted = np.clip(np.rint(weights.ravel() / step), -bound, bound).astype(np.int64)
    noisy = noisy_vector(counted, share, random, length=sensitivity)
    scale = float(share.scale(l1=sensitivity, l2_squared=sensitivity**2))
    released = noisy.reshape(shape) * step
    return Perturbed(weights=released, scale=scale * step, pure=share.currency == "epsilon")


def centroids(prepared: Prepared, classes: int, share: Share, random: Random | None) -> Floats:
    """Weights of the discriminant of equally round classes around the noisy middles; two classes give one column.

    Guarantee: what the share says, for one person more or less: a person's row, at most 1 long, is in the sum of one class
    (`vectors.noisy_columns`). All else is made of that release and of the noisy class counts.

    Error: a middle is off by about d/(ε n_c), or √d/(μ n_c). It is drawn to the common middle by as much as its noise makes up of
    its distance (James & Stein 1961), and the noise counts as spread within the class: the less is known, the more the classes'
    sizes decide.
    """
    summed = np.stack([prepared.rows[prepared.classes == one].sum(axis=0) for one in range(classes)], axis=1)
    released = noisy_columns(summed.astype(np.int64), share, random, length=Fraction(STEPS)) / STEPS
    noisy, dimension = released[:-1], len(released) - 1
    scale = float(share.scale(l1=1, l2_squared=1))
    variance = (dimension + 2) * scale**2 if share.currency == "epsilon" else scale**2
    people = _people(prepared, released[-1] / prepared.constant, variance / prepared.constant**2)
    noise = dimension * variance
    middles = noisy / people
    common = noisy.sum(axis=1) / people.sum()
    apart = middles - common[:, None]
    off = noise / people**2
    lengths = np.maximum((apart**2).sum(axis=0), 1e-12)
    kept = np.clip(1 - off / lengths, 0, 1)
    apart = apart * kept
    within = prepared.square - (common**2).sum() - float(people @ (apart**2).sum(axis=0)) / people.sum()
    spread = (max(within, 0.05) + float((off * kept).mean())) / dimension
    inner = apart / spread
    squares = _shrunk((apart**2).sum(axis=0), kept**4 * off * (4 * lengths + 2 * off) / dimension)
    constant = np.log(people / people.sum()) - squares / (2 * spread) - common @ inner
    weights = np.concatenate([inner, constant[None, :] / prepared.constant])
    return weights if classes > 2 else weights[:, 1:] - weights[:, :1]


def _people(prepared: Prepared, seen: Floats, variance: float) -> Floats:
    """Persons a class, from the class counts and from the constant of the summed rows, each by how sure it is."""
    weight = variance / (variance + prepared.count_variance)
    return np.asarray(np.maximum(weight * prepared.counts + (1 - weight) * seen, 1.0))


def _shrunk(values: Floats, variances: Floats) -> Floats:
    """Numbers drawn to their mean by as much as noise makes up of their spread.

    >>> _shrunk(np.array([1.0, 3.0]), np.array([0.5, 0.5])).tolist()
    [1.5, 2.5]
    """
    mean = values.mean()
    kept = max(0.0, 1 - float(variances.mean()) / max(float(((values - mean) ** 2).mean()), 1e-300))
    return np.asarray(mean + kept * (values - mean))


Floats = npt.NDArray[np.float64]
Method: TypeAlias = Literal["auto", "objective", "gradient", "newton", "output", "centroids"]

_METHODS = ("auto", "objective", "gradient", "newton", "output", "centroids")
_FEW = 0.7
"""The share of rows that are not drawn in where steps are few or noise is on the minimum, and a slope for the latter."""
_LEAST_RIDGE = 1e-4
_SMALL = 8
"""Up to so many features, two classes and a δ, a pure objective is better than Gaussian gradients."""
_SIGNAL = 15.0
"""Persons · ε over features (for several classes: times their square), from which on a perturbed objective beats class sums."""


@dataclass(kw_only=True, eq=False, repr=False)
class LinearClassifier(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """Linear scores with a promise; see `LogisticRegression` and `LinearSVC`."""

    target_kind: ClassVar[str] = "class"
    learned_names: ClassVar[tuple[str, ...]] = ("classes_", "coef_", "intercept_", "low_", "high_", "method_", "margins_")

    method: Method = "auto"
    ridge: float | None = None
    classes: Any = None
    limits: ClassVar[Limits] = {"method": Limit(known=_METHODS, instead="auto")}

    @abstractmethod
    def _loss(self, classes: int, *, slope: float = 1.0) -> Loss:
        """The loss that is made small; of one that can be cut, how steep it may become."""

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """Class sums, gradients and outputs take Gaussian noise where a δ is allowed; an objective is perturbed under pure ε."""
        if self.method == "objective":
            return "epsilon"
        if self.method == "newton":
            if not isinstance(self._loss(len(classes_of(self.classes))), Logistic):
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

    def check_parameters(self, allowance: Allowance | None = None) -> None:
        super().check_parameters(allowance)
        least = _LEAST_RIDGE if self.private else 0.0  # with less, floating point may not find the minimum, for some rows
        Limit(least=least, above=True, none=True, instead=1.0).check("ridge", self.ridge)

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        self.low_, self.high_ = rows.box.low, rows.box.high
        self.margins_: Floats | None = None
        classes = len(self.classes_)
        if allowance is None:
            self._learn_exactly(rows, classes)
            return
        short = self.method in ("output", "centroids") or (self.method == "gradient" and allowance.currency == "epsilon")
        prepared = prepare(rows, classes, allowance, self.random, inside=_FEW if short else 1.0)
        method = self._chosen(allowance, prepared, classes)
        loss = self._loss(classes, slope=_FEW if method == "output" else prepared.slope)
        share = allowance.rest(_WHAT[method])
        self.method_: str = method
        self.coef_, self.intercept_ = prepared.unscaled(self._weights(method, prepared, loss, share))

    def _learn_sums(self, source: RowSource, allowance: Allowance) -> None:
        """A descent whose sums over rows are asked of the engine (`descent.descend`): the very steps that it takes here."""
        self.low_, self.high_ = source.box.low, source.box.high
        self.margins_ = None
        prepared = scaled(source, allowance, inside=_FEW)
        loss = self._loss(len(self.classes_), slope=prepared.slope)
        share = allowance.rest(_WHAT["gradient"])
        self.method_ = "gradient"
        down, start = descent.planned(prepared, loss, share, most=descent.MOST_ASKED), _prior(prepared, loss)
        weights = descent.descend(prepared, loss, share, None, descent=down, start=start, sums=source)
        self.coef_, self.intercept_ = prepared.unscaled(weights)

    def _chosen(self, allowance: Allowance, prepared: Prepared, classes: int) -> Method:
        if self.method != "auto":
            return self.method
        if allowance.currency != "epsilon":
            return "gradient"
        signal = prepared.people * float(allowance.size) / prepared.dimension
        return "objective" if signal >= _SIGNAL * (1 if classes == 2 else classes**2) else "centroids"

    def _weights(self, method: Method, prepared: Prepared, loss: Loss, share: Share) -> Floats:
        if method == "centroids":
            return centroids(prepared, len(self.classes_), share, self.random)
        if method == "objective":
            numbers = prepared.dimension * loss.columns
            spent = objective.plan(loss, share.epsilon, numbers=numbers, ridge=float(self.ridge or 0.0))
            return objective.perturbed_objective(prepared, loss, self.random, plan=spent)
        if method == "gradient":
            plan = descent.planned(prepared, loss, share)
            return descent.descend(prepared, loss, share, self.random, descent=plan, start=_prior(prepared, loss))
        if method == "newton":
            assert isinstance(loss, Logistic)
            steps = newton.plan(people=prepared.people, dimension=prepared.dimension, mu=math.sqrt(share.mu_squared))
            steps = replace(steps, clip=loss.slope)
            return newton.newton_steps(prepared, loss, share, self.random, newton=steps, start=_prior(prepared, loss))
        ridge = float(self.ridge or _ridge_for_output(prepared, loss, share))
        perturbed = perturbed_output(prepared, loss, share, self.random, ridge=ridge)
        self.margins_ = prepared.scaled_margins(perturbed.margin(0.95), loss.columns)
        return perturbed.weights

    def _learn_exactly(self, rows: Rows, classes: int) -> None:
        """Without noise: the minimum itself, with an intercept that is not shrunk."""
        self._refuse_one_class(classes)
        self.method_ = "minimum"
        ridge = 4.0 if self.ridge is None else float(self.ridge)
        self.coef_, self.intercept_ = exact_line(rows, self._loss(classes), ridge=ridge)

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


def exact_line(rows: Rows, loss: Loss, *, ridge: float) -> tuple[Floats, Floats]:
    """Coefficients and intercepts of the minimum, without noise; the intercept is not shrunk."""
    X = rows.box.centred(rows.X)
    ridges = np.full((X.shape[1] + 1, 1), ridge)
    ridges[-1] = 0.0
    design = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    tolerance = 1e-7 * math.sqrt(len(X))
    weights, _ = minimum(design, np.asarray(rows.y), loss, ridge=ridges, linear=np.zeros((1, 1)), tolerance=tolerance, steps=40)
    inner = weights[:-1] * (2 / rows.box.width)[:, None]
    return np.asarray(inner.T), np.asarray(weights[-1] - rows.box.middle @ inner)


_WHAT = {
    "objective": "a perturbed objective",
    "gradient": "gradients",
    "newton": "gradients and Hessians",
    "output": "a perturbed output",
    "centroids": "sums of classes",
}


def _prior(prepared: Prepared, loss: Loss) -> Floats:
    """Weights that know the classes' sizes alone."""
    weights = np.zeros((prepared.dimension, loss.columns))
    shares = np.log(prepared.counts / prepared.counts.sum())
    weights[-1] = (shares if loss.columns > 1 else shares[1] - shares[0]) / prepared.constant
    return weights


def _ridge_for_output(prepared: Prepared, loss: Loss, share: Share) -> float:
    """A ridge that balances its own bias against the noise, by the noisy number of people."""
    scale = float(share.scale(l1=1, l2_squared=1))
    numbers = prepared.dimension * loss.columns
    length = numbers * scale if share.currency == "epsilon" else math.sqrt(numbers) * scale
    return max(1e-3, 0.1 * math.sqrt(prepared.people * length * loss.length))
