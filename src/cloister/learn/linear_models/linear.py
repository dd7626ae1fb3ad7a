"""Linear and ridge regression from noisy second moments.

Which sums are released from rows, and how noise is kept small, is told in `regression_rows.py`; from a table, in
`regression_tables.py`; how coefficients follow from them without exploding, in `least_squares.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from cloister.errors import InvalidParameter
from cloister.learn.decomposition.wishart import best_currency
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows, box_of, interval_of, row_products
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.parameters import YES_OR_NO, Limit, Limits
from cloister.learn.linear_models.line_margins import Evidence
from cloister.learn.linear_models.regression_rows import FittedLine, Frame, line_of_rows, portions
from cloister.noise.allowance import Allowance, Currency
from cloister.privacy import ApproxDP, Guarantee

if TYPE_CHECKING:
    from cloister.session import Measurer
    from cloister.session.questions.spend import Spending

Floats = npt.NDArray[np.float64]

_METHODS = ("auto", "moments", "wishart")


@dataclass(kw_only=True, eq=False, repr=False)
class _Linear(RegressorMixin, PrivateModel):  # type: ignore[misc]
    """What the two have in common."""

    target_kind: ClassVar[str] = "number"
    _multiplies: ClassVar[bool] = True
    learned_names: ClassVar[tuple[str, ...]] = (
        "coef_",
        "intercept_",
        "coef_noise_",
        "intercept_noise_",
        "measured_",
        "method_",
        "low_",
        "high_",
        "bounds_y_",
    )
    alpha = 0.0
    bounds_y: Any = None
    fit_intercept: bool = True
    method: str = "auto"
    limits: ClassVar[Limits] = {
        "method": Limit(known=_METHODS, instead="auto"),
        "alpha": Limit(instead=1.0, most=1e12),
        "fit_intercept": YES_OR_NO,
    }

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """By public facts: Wishart noise and vector noise count in ε, Gaussian noise in μ²."""
        approximate = isinstance(promised, ApproxDP) and promised.delta > 0
        if self.method == "wishart" and not approximate:
            raise InvalidParameter(
                'method="wishart" is invalid', why="Wishart noise is never pure: it needs a δ", instead='delta="1e-6"'
            )
        if not isinstance(promised, ApproxDP) or not approximate:
            return None
        if self.method == "wishart":
            return "epsilon"
        parts = portions(intercept=self.fit_intercept, centred=True)
        rest = 1 - sum(parts.values(), Fraction(0))
        return best_currency(promised, self.n_features_in_, with_target=parts["with_target"], products=rest)

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        assert rows.y is not None
        y = rows.y.astype(np.float64)
        if allowance is None:
            self._keep(self._exact(rows.X, y), "moments")
            bounded = self.bounds is not None
            self.low_ = rows.box.low if bounded else np.full(rows.box.features, -np.inf)
            self.high_ = rows.box.high if bounded else np.full(rows.box.features, np.inf)
            if self.bounds_y is None:
                self.bounds_y_ = (-np.inf, np.inf)
            return
        frame = Frame.of(rows.box, self.bounds_y_, intercept=self.fit_intercept)
        way = "wishart" if self.method == "wishart" else "moments"
        line = line_of_rows(
            rows.X,
            y,
            frame,
            allowance,
            intercept=self.fit_intercept,
            alpha=self.alpha,
            wishart=way == "wishart",
            random=self.random,
        )
        self._keep(line, way)
        self.low_, self.high_ = rows.box.low, rows.box.high

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: Any, spend: Spending, purpose: str
    ) -> Allowance:
        """By the table's own engine: sums of computed columns (`regression_tables.py`)."""
        from cloister.learn.linear_models.regression_tables import line_of_table

        box = box_of(encoder.bounds, features=len(encoder.names))
        self.bounds_y_ = interval_of(self.bounds_y)
        frame = Frame.of(box, self.bounds_y_, intercept=self.fit_intercept)
        line, allowance = line_of_table(
            session, table, encoder, target, spend, frame, intercept=self.fit_intercept, alpha=self.alpha, purpose=purpose
        )
        self._keep(line, "moments")
        self.low_, self.high_ = box.low, box.high
        return allowance

    def _exact(self, X: Floats, y: Floats) -> FittedLine:
        """Least squares without noise."""
        origin = X.mean(axis=0) if self.fit_intercept else np.zeros(X.shape[1])
        height = float(y.mean()) if self.fit_intercept else 0.0
        Z, t = X - origin, y - height
        if self.alpha:
            ridged = Z.T @ Z + self.alpha * np.eye(Z.shape[1])
            coefficients = np.asarray(np.linalg.solve(ridged, Z.T @ t), dtype=np.float64)
        else:
            coefficients = np.asarray(np.linalg.lstsq(Z, t, rcond=None)[0], dtype=np.float64)
        nothing = np.zeros_like(coefficients)
        return FittedLine(
            coefficients=coefficients, intercept=height - float(coefficients @ origin), noise=nothing, intercept_noise=0.0
        )

    def _keep(self, line: FittedLine, way: str) -> None:
        self.coef_, self.intercept_ = line.coefficients, line.intercept
        self.coef_noise_, self.intercept_noise_ = line.noise, line.intercept_noise
        self.measured_ = None if line.evidence is None else line.evidence.written()
        self.method_ = way

    def predict(self, X: Any) -> Floats:
        """The target of each row, within its declared bounds."""
        asked = np.clip(self._asked(X), self.low_, self.high_)
        return np.asarray(np.clip(row_products(asked, self.coef_) + self.intercept_, *self.bounds_y_))

    def margin(self, confidence: float = 0.95) -> Mapping[str, Any]:
        """How far "coef" and "intercept" may be from those of the same model without noise, with that confidence for each number:
        half-widths, from the released numbers alone (`line_margins.py`).

        What was lost by drawing coefficients towards 0 is in them, and what may have been lost by cutting long rows short. Where
        the noise alone could have made what was measured, as with few rows, nothing is known, and they are infinite.
        """
        if self.guarantee_ is None:
            return {"coef": np.zeros_like(self.coef_), "intercept": 0.0}
        if self.measured_ is None:  # of an older version, which did not keep enough
            return {"coef": np.full_like(self.coef_, np.inf), "intercept": np.inf}
        frame = Frame.of(Box(low=self.low_, high=self.high_), self.bounds_y_, intercept=self.fit_intercept)
        found = frame.ends(Evidence.read(self.measured_), confidence, alpha=self.alpha)
        (low, high), (least, most) = found
        return {
            "coef": np.maximum(self.coef_ - low, high - self.coef_),
            "intercept": max(self.intercept_ - least, most - self.intercept_),
        }


@dataclass(kw_only=True, eq=False, repr=False)
class LinearRegression(_Linear):
    """Least squares.

    Guarantee: ε-DP, or (ε, δ)-DP with a δ, for one row more or less, from a few sums (`regression_rows.py`), each with its
    share; all that is learned is post-processing. Assumes declared bounds of features (`bounds`) and target (`bounds_y`). Two of
    the releases under a pure ε (Xᵀy and XᵀX) draw their noise in floating point where there are two features or more: each may
    add up to 10⁻¹² to δ = 0, so 2·10⁻¹² in all (`VectorMechanism.float_delta`; mostly it is some 10⁻²⁰); all other noise is
    exact. With a δ what they may add lies within it. From a table (`fit_table`) the engine adds whole noise to whole sums, and
    nothing is added to δ.

    Parameters: `method`: "auto" or "moments" (vector noise, or with a δ Gaussian noise where that is less: by ε, δ and the
    number of features), "wishart" (with a δ alone: after Sheffet 2015, but with the least degrees of freedom, which are
    private for every ε and δ by the exact curve in `noise/matrices.proof.md`, as his are for ε < 1 and δ < 1/e; the noisier one
    wherever it was compared, see `wishart.py`); `fit_intercept`.

    After `fit`: `coef_`, `intercept_`, `method_`, and `margin()` for how much noise lies in them. Coefficients are drawn
    towards 0 as far as the noise says (`least_squares.py`), so they never explode; predictions stay within `bounds_y`.

    >>> X = [[i / 500] for i in range(1000)]
    >>> model = LinearRegression(epsilon=10, bounds=(0, 2), bounds_y=(0, 4)).fit(X, [2 * x for [x] in X])
    >>> bool(abs(model.predict([[1.0]])[0] - 2) < 0.5), model.method_
    (True, 'moments')
    """

    _stored: ClassVar[str] = "LinearRegression"


@dataclass(kw_only=True, eq=False, repr=False)
class Ridge(_Linear):
    """Least squares with a penalty of alpha times the squared length of the coefficients.

    Guarantee: that of `LinearRegression` (under a pure ε floating point may add up to 2·10⁻¹² to δ = 0); the penalty is public.
    The penalty is in the units of the features; where their
    bounds differ in width, what the noise needs is in units of those widths, and `alpha` is added there for their geometric
    mean.

    >>> X = [[i / 500] for i in range(1000)]
    >>> model = Ridge(epsilon=10, alpha=1, bounds=(0, 2), bounds_y=(0, 4)).fit(X, [2 * x for [x] in X])
    >>> model.coef_.shape
    (1,)
    """

    _stored: ClassVar[str] = "Ridge"

    alpha: float = 1.0
