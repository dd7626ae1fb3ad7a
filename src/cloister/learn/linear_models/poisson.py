"""Poisson regression with a guarantee: how often something happens, by gradients."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils import Tags

from cloister.errors import InvalidParameter
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Rows, interval_of
from cloister.learn.linear_models import descent
from cloister.learn.linear_models.linear_classes import exact_line
from cloister.learn.linear_models.losses import Floats, Poisson
from cloister.learn.linear_models.prepared import Prepared, RowSource, prepare, scaled
from cloister.noise.allowance import Allowance
from cloister.tables import Date, Domain, Real
from cloister.tables.engines.row_sums import MOST_COUNTED

_FEW = 0.9
"""The share of rows that are not drawn in where steps are few."""


@dataclass(kw_only=True, eq=False, repr=False)
class PoissonRegressor(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """The logarithm of a mean count as a linear function: y ~ Poisson(exp(x·w + b)).

    Guarantee: `epsilon`, `delta`, for one person (row) more or less. A fifth to a quarter of it buys the number of people with
    the sum of their counts, a radius and, where it is worth it, a centre of the rows (`cloister.learn.linear_models.prepared`);
    the rest pays for a descent (`descent.descend`), each of whose T rounds releases one sum of residual ⊗ row. Norms: ‖row‖₂ ≤ 1
    for prepared rows, and |rate − y|/K cut to a public length, K the highest count that `bounds_y` declares; so one person moves
    the sum by at most that length. Theorem: Gaussian composition with a δ (Dong, Roth & Su 2022, Corollary 3.3), the vector
    mechanism at ε/T a round under pure ε. No rate is above K, so the exponential cannot grow; that needs no theorem.

    Residuals are cut at 4√m + 1 counts, m the noisy mean count: longer ones are rare, and the noise is as wide as the cut. Steps
    are short, since the curvature grows with the rates. Counts out of `bounds_y` count as the bound. Coefficients are for the
    features as they came. `score` is D², the part of the deviance that is explained, as that of scikit-learn's
    `PoissonRegressor`; there is no penalty, as with its `alpha=0`.

    >>> from cloister.noise import Random
    >>> rows, counts = [[0.0], [1.0]] * 2000, [1, 4, 3, 6] * 1000
    >>> model = PoissonRegressor(epsilon=1, bounds=(0, 1), bounds_y=(0, 20), random=Random.deterministic(1)).fit(rows, counts)
    >>> model.predict([[0.0], [1.0]]).round().tolist()
    [2.0, 5.0]
    """

    _stored: ClassVar[str] = "PoissonRegressor"
    _counts: ClassVar[bool] = True
    target_kind: ClassVar[str] = "number"
    learned_names: ClassVar[tuple[str, ...]] = ("coef_", "intercept_", "low_", "high_", "bounds_y_")

    bounds_y: Any = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def check_parameters(self, allowance: Allowance | None = None) -> None:
        super().check_parameters(allowance)
        if self.private or self.bounds_y is not None:
            low, high = interval_of(self.bounds_y)
            _check_counts(low, high, f"bounds_y=({low:g}, {high:g})", lambda top: f"bounds_y=(0, {top})")

    def _check_column(self, target: str, domain: Domain) -> None:
        if isinstance(domain, Date):
            raise InvalidParameter(f"target={target!r} is invalid", why="a day is not a count", instead="another target")
        (low, high), whole = self.bounds_y, not isinstance(domain, Real)
        _check_counts(low, high, f"target={target!r}", lambda top: f'columns={{"{target}": cl.Integer(0, {top})}}', whole=whole)

    def _numbers(self, y: npt.NDArray[Any]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        numbers, known = super()._numbers(y)
        if not self.private and self.bounds_y is None:
            if (numbers < 0).any():
                raise InvalidParameter("y is invalid", why="a count is never below 0", instead="bounds_y=(0, 20)")
            self.bounds_y_ = (0.0, 10 * max(self.bounds_y_[1], 1.0))
        return numbers, known

    def _takes_sums(self) -> bool:
        return True

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        self.low_, self.high_ = rows.box.low, rows.box.high
        if allowance is None:
            coefficients, intercepts = exact_line(rows, Poisson(highest=self.bounds_y_[1]), ridge=1e-9 * len(rows.X))
            self.coef_, self.intercept_ = coefficients[0], float(intercepts[0])
            return
        inside = _FEW if allowance.currency == "epsilon" else 1.0
        self._descend(prepare(rows, 1, allowance, self.random, highest=self.bounds_y_[1], inside=inside), allowance)

    def _learn_sums(self, source: RowSource, allowance: Allowance) -> None:
        """The very steps that it takes here, whose sums over rows are asked of the engine."""
        self.low_, self.high_ = source.box.low, source.box.high
        self._descend(scaled(source, allowance, inside=_FEW), allowance, source)

    def _descend(self, prepared: Prepared, allowance: Allowance, source: RowSource | None = None) -> None:
        share, highest, part = allowance.rest("gradients"), self.bounds_y_[1], prepared.counts[1] / prepared.people
        # steps by a mean that came out too low would go ever farther off
        steep = min((prepared.counts[1] + 2 * math.sqrt(prepared.count_variance)) / prepared.people, 1.0)
        loss, mean = Poisson(highest=highest, curvature=steep), highest * part
        planned = descent.planned(prepared, loss, share, most=300 if source is None else descent.MOST_ASKED)
        clip = min((4 * math.sqrt(highest * steep) + 1) / highest, 1.0)
        down = replace(planned, step=1.0, momentum=0.8, clip=clip)
        start = np.append(np.zeros(prepared.dimension - 1), math.log(mean) / prepared.constant)[:, None]
        weights = descent.descend(prepared, loss, share, self.random, descent=down, start=start, sums=source)
        coefficients, intercepts = prepared.unscaled(weights)
        self.coef_, self.intercept_ = coefficients[0], float(intercepts[0])

    def predict(self, X: Any) -> Floats:
        """The mean count of each row: at most the highest that is declared; features are clipped to their bounds."""
        scores = np.clip(self._asked(X), self.low_, self.high_) @ self.coef_ + self.intercept_
        return np.asarray(np.exp(np.clip(scores, *self.log_rates_)))

    @property
    def log_rates_(self) -> tuple[float, float]:
        """The logarithms of the least mean count that is foretold, since a deviance divides by it, and of the highest."""
        return -30.0, math.log(self.bounds_y_[1])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """D²: the part of the deviance that is explained. 1 is best; what foretells the mean of all has 0."""
        return float(d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1))


def _check_counts(low: float, high: float, what: str, instead: Callable[[int], str], *, whole: bool = True) -> None:
    """Refuse bounds of no count."""
    whole = whole and not low % 1 and not high % 1
    if whole and low >= 0 and high <= MOST_COUNTED:
        return
    raise InvalidParameter(
        f"{what} is invalid",
        why="a count is never below 0"
        if low < 0
        else f"counts up to {MOST_COUNTED:,} are learned: count in larger units"
        if whole
        else "a count is a whole number",
        instead=instead(min(max(math.ceil(high), 1), MOST_COUNTED)),
    )
