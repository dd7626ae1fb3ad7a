"""Principal components: four ways to find directions under a promise, and a fifth that is pure.

noisy_mean.py buys the mean and the spread, which fix the ball that rows are drawn into; second_moments.py, subspaces.py and
power.py are the ways.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from cloister.errors import InvalidParameter
from cloister.learn.clustering.noisy_mean import (
    NoisyMean,
    declared_radius,
    mean_of,
    noisy_size,
    size_variance,
    spread_of,
    wide_enough,
)
from cloister.learn.decomposition.covariance_tables import moments_of, question_of
from cloister.learn.decomposition.power import powered_subspace
from cloister.learn.decomposition.products import LENGTHS, noisy_lengths, radius_within
from cloister.learn.decomposition.second_moments import (
    BITS,
    gaussian_moments,
    laplace_moments,
    moment_steps,
    wishart_bits,
    wishart_moments,
)
from cloister.learn.decomposition.spectral_margins import Law, Variances
from cloister.learn.decomposition.subspaces import chosen_components
from cloister.learn.frame.ball import in_ball, projected, reach_of
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows, row_lengths
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.margins import wider_quantile
from cloister.learn.frame.parameters import RADIUS, YES_OR_NO, Limit, Limits
from cloister.noise import Random
from cloister.noise.allowance import Allowance, Currency, Share
from cloister.privacy import ZCDP, Guarantee, PureDP, zcdp_within
from cloister.privacy.rational import exact_square_root
from cloister.session import Measurer, Spending
from cloister.tables import PrivateTable
from cloister.tables.relations.day_numbers import days_as_numbers

Floats = npt.NDArray[np.float64]

METHODS = ("gaussian", "power", "exponential", "wishart", "laplace")
_SIZE, _SPREAD, _LENGTHS, _VARIANCES = Fraction(3, 100), Fraction(4, 100), Fraction(3, 100), Fraction(8, 100)
_MEAN = {"epsilon": Fraction(1, 4), "mu_squared": Fraction(1, 10), "rho": Fraction(1, 10)}
_PRODUCTS = 2
_LARGE, _CLEAR, _NARROWEST = 1_000_000, 30, 1e-12
_REACH, _FEW, _BEYOND = 1.2, 12, np.maximum(6, 3 * np.sqrt(np.arange(1, LENGTHS)))
"""In many dimensions most rows are about equally far from the mean, in few, and where few directions have most of the variance,
some are much farther. B² is at least 1.2 + 12/d times the mean squared distance, and so many times √2 as much that no more rows
are beyond than 6 deviations of the noise in a count (or 3 in the sum of the cells), or that they lose less than `_bearable`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    """Directions (one a row), what is known of the rows' squares along each but for their number, the deviation of the noise, and
    the columns' part of the divided rows' squares."""

    directions: Floats
    known: Variances
    deviation: float
    part: float = 1.0


@dataclass(eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateModel):  # type: ignore[misc]
    """Principal components of rows within declared bounds.

    Guarantee: ε, or (ε, δ), or ρ, for one row more or less (the number of rows is private). Measured are the number of rows, the
    sum (within the box, or the declared radius), the mean squared distance from the released mean, a histogram of these distances
    (a row is in one cell), and the second moments about that mean, of rows drawn into a ball, whose radius B follows from what is
    released. Each has its share. Unless a radius is declared, "gaussian", "laplace" and "wishart" first divide column i, of
    declared width wᵢ, by the public uᵢ = (wᵢ/max w)^¾ (of 0, ½, ¾, 0.9, 1 the best power over ratios of 10 to 10,000); below, z
    and B are those of the divided rows. The noisy moments are multiplied by uᵢuⱼ (post-processing), so that noise made for the
    widest column does not hide narrow ones. The ways:

    - "gaussian": the moments with symmetric Gaussian noise (Analyze Gauss; needs a δ or ρ);
    - "power": noisy products with a subspace (Hardt & Price 2014; needs a δ or ρ);
    - "exponential": components drawn one by one with density ∝ exp(ε·uᵀMu/B²), by an exact sampler (subspaces.py);
    - "wishart": the moments with Wishart noise, less its mean (needs a δ; refused for many features, where floating point could
      cost more than δ; the other measurements are pure, and ε adds: basic composition);
    - "laplace": the moments with discrete Laplace noise on their upper triangle (pure);
    - "moments" (`fit_table` only): the covariances by the table's own engine, no row in memory (covariance_tables.py);
    - "auto": "moments" for a table of numbers that is declared to have 10⁶ rows or more; else "gaussian" where there is a δ or
      ρ; else "laplace" for more components than 1.4·√d, and "exponential" for fewer, as the noise's spectral norm is some
      √2·d^1.5·B²/ε for the one, and the loss some k·d·B²/ε for the other; "laplace" also where εn (n as released) is 30·(Σu)^2.5
      or more: there its noise is far below what the rows add up to, and then its loss falls with the square of the noise.

    Sums are whole numbers, and their noise too; the sum's noise under a pure ε, the directions of "exponential" and Wishart
    noise are continuous, and the docstrings of ball.py, subspaces.py and `WishartMechanism` say what bounds the harm.

    Parameters: `n_components` (None: all); `centered` (True: the rows have mean 0 already, and nothing is paid for it);
    `radius` (no row is farther from the middle of the box, or from 0 where centred; None: the farthest corner).

    Learned: `components_`, `explained_variance_` (noisy; "gaussian", "laplace" and "wishart" read it off the noisy moments, whose
    greatest eigenvalues are too great by what the noise adds), `deviations_` (of its noise along a fixed direction, to first
    order), `measured_` (what `margin` is made of), `radius_` (divided rows farther from the mean count as drawn in to it),
    `explained_variance_ratio_`, `total_variance_`, `mean_`, `size_`, `method_`, `low_` and `high_`.

    >>> t = np.linspace(-1, 1, 3000)
    >>> model = PCA(1, epsilon=1, bounds=(-1, 1), random=Random.deterministic(1)).fit(np.column_stack([t, t]))
    >>> np.abs(model.components_).round(1).tolist()
    [[0.7, 0.7]]
    """

    _stored: ClassVar[str] = "PCA"
    target_kind: ClassVar[str] = "none"
    limits: ClassVar[Limits] = {
        "n_components": Limit(least=1, whole=True, none=True, instead=2),
        "method": Limit(known=("auto", "moments", *METHODS), instead="auto"),
        "centered": YES_OR_NO,
        "radius": RADIUS,
    }
    learned_names: ClassVar[tuple[str, ...]] = (
        "components_",
        "explained_variance_",
        "deviations_",
        "measured_",
        "radius_",
        "explained_variance_ratio_",
        "total_variance_",
        "mean_",
        "size_",
        "method_",
        "low_",
        "high_",
    )
    radius_ = math.inf

    n_components: int | None = None
    _: KW_ONLY
    method: Literal["auto", "gaussian", "power", "exponential", "wishart", "laplace", "moments"] = "auto"
    centered: bool = False
    radius: float | None = None

    def _currency_of(self, promised: Guarantee) -> Currency | None:
        """Wishart noise and Laplace noise count in ε; choices in ε, or in ρ where there are so many that ρ adds up to less."""
        if isinstance(promised, PureDP) or (promised.delta == 0 and not isinstance(promised, ZCDP)):
            return "epsilon" if self.method not in ("gaussian", "power") else "mu_squared"
        if self.method not in ("exponential", "wishart", "laplace"):
            return "mu_squared"
        if isinstance(promised, ZCDP):
            return "rho"
        if self.method == "exponential":
            rho, many = zcdp_within(epsilon=promised.epsilon, delta=promised.delta).rho, self.n_components or self.n_features_in_
            return "rho" if 8 * rho * many > promised.epsilon**2 else "epsilon"
        return "epsilon"

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        count = self.n_components or rows.X.shape[1]
        self.low_, self.high_ = rows.box.low, rows.box.high
        if allowance is None:
            self._without_noise(rows.X)
            return
        way = self._way(allowance, rows.X.shape[1])
        random = self.random
        self.size_ = noisy_size(len(rows.X), allowance.share("number of rows", _SIZE), random)
        if way == "auto":
            few = count <= 1.4 * rows.X.shape[1] ** 0.5
            exact = self.size_ * float(allowance.size) >= _CLEAR * _units(self, "laplace").sum() ** 2.5
            way = "exponential" if few and not exact else "laplace"
        self.method_ = way
        if self.centered:
            place = _about_zero(rows.box, self.radius)
        else:
            radius = declared_radius(rows.box, self.radius)
            share = allowance.share("mean", _MEAN[allowance.currency])
            place = mean_of(rows.X, rows.box, size=self.size_, radius=radius, share=share, random=random)
        self.mean_ = place.mean
        share = allowance.share("spread", _SPREAD)
        if place.most == 0:  # every declared interval is one value
            allowance.rest("nothing: no feature can vary")
            seen, farthest, nothing = None, np.zeros(1), np.eye(len(place.mean))[:count]
            found = _Found(directions=nothing, known=_known(np.zeros(count), "each laplace", 0.0, nothing), deviation=0.0)
            spread = self.radius_ = 0.0
        else:
            units = _units(self, way)
            centred, farthest = (rows.X - place.mean) / units, np.maximum(self.high_ - place.mean, place.mean - self.low_) / units
            size_noise = size_variance(allowance.lines[0])
            apart = place if units.min() == 1 else replace(place, most=float((farthest**2).sum()))
            seen = spread_of(centred, apart, size=self.size_, size_noise=size_noise, share=share, random=random)
            least, corner = (_REACH + _FEW / len(farthest)) * seen.value, float((farthest**2).sum())
            most, share = least * 2 ** (min(np.ceil(2 * np.log2(corner / least)), 16) / 2), allowance.share("lengths", _LENGTHS)
            [histogram] = noisy_lengths([(row_lengths(centred) ** 2, most)], share=share, random=random)
            loss, beyond = _bearable(way, len(farthest), allowance), _BEYOND * size_variance(share) ** 0.5
            square = radius_within(histogram, most, beyond=beyond, loss=loss)
            self.radius_ = float(min(max(least, square), corner) ** 0.5)
            found = self._found(way, in_ball(centred, self.radius_), self.radius_, count, allowance, units)
            within = min(float(found.known.squares.clip(0.0).sum()) / self.size_, place.most)
            spread = float(np.clip(seen.total * found.part / self.size_, within, place.most))  # a ball has a least radius
        about = None if self.centered else (place.sums, place.sum_noise, place.moved, rows.box.width / 2)
        ball = None if seen is None or self.radius_**2 >= float((farthest**2).sum()) * (1 - 1e-9) else tuple(seen)
        self._keep(found, spread, size_noise=size_variance(allowance.lines[0]), mean=about, ball=ball)

    def _found(self, way: str, rows: Floats, radius: float, count: int, allowance: Allowance, units: Floats) -> _Found:
        random, features, step = self.random, rows.shape[1], radius * 2.0**-BITS
        if way == "wishart":
            epsilon, delta = _wishart_budget(allowance, allowance.rest("second moments").epsilon)
            noisy, degrees, scale, step = wishart_moments(rows, radius=radius, epsilon=epsilon, delta=delta, random=random)
            return _of_moments(noisy, count, "wishart", scale, degrees, step=step, units=units)
        moments = moment_steps(rows, radius=radius)
        if way == "gaussian":
            noisy, variance = gaussian_moments(moments, allowance.rest("second moments"), random)
            return _of_moments(noisy * step**2, count, "gaussian", np.sqrt(variance) * step**2, step=step, units=units)
        if way == "laplace":
            noisy, variance = laplace_moments(moments, allowance.rest("second moments"), random)
            return _of_moments(noisy * step**2, count, "laplace", np.sqrt(variance / 2) * step**2, step=step, units=units)
        reach_squared = reach_of(features, BITS) ** 2
        last = allowance.share("variances", _VARIANCES)
        if way == "power":
            shares = _equal(allowance, "product", _PRODUCTS)
            columns = powered_subspace(moments, components=count, reach_squared=reach_squared, shares=shares, random=random)
            directions = columns.T
        else:
            shares = _equal(allowance, "component", count)
            directions = chosen_components(
                moments.astype(np.float64), reach_squared=float(reach_squared), shares=shares, random=random
            )
        return _measured(rows, directions, radius=radius, share=last, random=random)

    def _keep(
        self,
        found: _Found,
        spread: float,
        *,
        size_noise: float,
        mean: tuple[Floats, Floats, Floats, Floats] | None = None,
        ball: tuple[float, ...] | None = None,
    ) -> None:
        order, rest = np.argsort(-found.known.squares, kind="stable"), max(self.size_ - 1, 1.0)
        directions, squares, table = found.directions[order], found.known.squares[order], found.known.law == "table"
        largest = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
        self.components_ = directions * np.where(largest < 0, -1.0, 1.0)[:, None]
        self.total_variance_ = spread * self.size_ / rest
        self.explained_variance_ = np.clip(squares / rest, 0.0, self.total_variance_)
        known = replace(
            found.known,
            squares=squares / (rest if table else 1.0),
            size=self.size_,
            size_noise=size_noise,
            radius=self.radius_,
            mean=mean,
            spread=ball,
            corner=float((np.maximum(self.high_ - self.mean_, self.mean_ - self.low_) ** 2).sum()),
        )
        self.measured_ = known.written()
        self.deviations_ = np.full(len(directions), known.scale / 1.96) if table else known.deviations(found.deviation)
        self.explained_variance_ratio_ = self.explained_variance_ / (self.total_variance_ or 1.0)

    def _without_noise(self, X: Floats) -> None:
        from sklearn import decomposition

        found = decomposition.PCA(self.n_components, svd_solver="full").fit(X)
        self.components_, self.mean_ = found.components_, found.mean_
        self.explained_variance_, self.explained_variance_ratio_ = found.explained_variance_, found.explained_variance_ratio_
        self.deviations_, self.radius_ = np.zeros(len(found.components_)), math.inf
        self.total_variance_ = float(X.var(axis=0).sum() * len(X) / max(len(X) - 1, 1))
        self.method_, self.size_ = "plain", float(len(X))

    def _from_engine(self, declaration: PrivateTable, encoder: Encoder) -> bool:
        """With "moments", and "auto" where the declared size is large or the engine hands out no rows."""
        plain = len(encoder.names) == len(encoder.columns) and not self.centered and self.radius is None
        if self.method == "moments" and not plain:
            raise InvalidParameter(
                'method="moments" is invalid',
                why="the engine's covariances are of numbers about their mean, within their declared bounds",
                instead='method="auto"',
            )
        large = not declaration.abilities.rows or (declaration.size or 0) >= _LARGE
        return self.method == "moments" or (self.method == "auto" and plain and large)

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: str | None, spend: Spending, purpose: str
    ) -> Allowance:
        """By covariances from the table's engine."""
        source, columns = days_as_numbers(table, session.declared(table), encoder.columns)
        count = self.n_components or len(columns)
        answer = session.measure(question_of(source, [name for name, _ in columns]), spend, purpose=purpose)
        found = moments_of(answer.to_arrow().to_pydict(), answer.margin().to_pydict(), len(columns))
        self.low_, self.high_ = (np.array(side, dtype=np.float64) for side in encoder.bounds)
        self.method_, self.size_, self.mean_ = "moments", found.size, np.clip(found.mean, self.low_, self.high_)
        rest = max(found.size - 1, 1.0)
        self.radius_ = float(np.linalg.norm(self.high_ - self.low_))
        directions = _of_moments(found.covariance * rest, count, "table", found.widest)
        trace = float(np.clip(np.linalg.eigvalsh(found.covariance), 0.0, None).sum())  # so that no ratio is above 1
        self._keep(directions, trace * rest / found.size, size_noise=0.0)
        allowance = Allowance(answer.cost)
        allowance.rest("count, means and covariances, by the table's engine")
        return allowance

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def transform(self, X: Any) -> Floats:
        """Rows, clipped to the bounds, as their coordinates along the components."""
        return np.asarray((np.clip(self._asked(X), self.low_, self.high_) - self.mean_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Coordinates along the components as rows."""
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ + self.mean_)

    def margin(self, confidence: Any = 0.95) -> Floats:
        """A half-width of each explained variance, of the noise alone.

        Within it lies, each component by itself with that confidence, the variance of the rows along the component; and for
        "moments", and "gaussian", "laplace" and "wishart" of columns as wide as each other, also the variance along the one that
        would have been found without noise. Rows farther than `radius_` from the released mean count as drawn in to it: what
        that takes is not in it. `spectral_margins.py` says how.
        """
        if self.measured_ is None:  # without noise, or of an older version, which kept no more than this
            return np.asarray(self.deviations_ * wider_quantile(confidence))
        return Variances.read(self.measured_).margin(self.explained_variance_, confidence, self.components_)

    def check_parameters(self, allowance: Allowance | None = None) -> None:
        super().check_parameters(allowance)
        Limit(least=1, most=self.n_features_in_, whole=True, none=True, instead=1).check("n_components", self.n_components)
        if allowance is not None:
            self._way(allowance, self.n_features_in_)

    def _way(self, allowance: Allowance, features: int) -> str:
        if self.method == "auto":
            return "auto" if allowance.currency == "epsilon" else "gaussian"
        if self.method == "moments":
            why = "the engine of a table makes them: rows of its own have none"
            raise InvalidParameter('method="moments" is invalid', why=why, instead='method="auto"')
        if self.method == "wishart":
            if allowance.currency != "epsilon" or not allowance.whole.delta:
                raise InvalidParameter(
                    'method="wishart" is invalid', why="Wishart noise is private with an ε and a δ only", instead='delta="1e-5"'
                )
            epsilon, delta = _wishart_budget(allowance, allowance.size * Fraction(1, 2))
            wishart_bits(features=features, epsilon=epsilon, delta=delta)
        return str(self.method)


def _units(model: PCA, way: str) -> Floats:
    """By what columns are divided; the width of one is how far it goes from 0 where rows are centred."""
    wide = np.maximum(-model.low_, model.high_) if model.centered else model.high_ - model.low_
    apart = way in ("gaussian", "laplace", "wishart") and model.radius is None and wide.any()
    return np.maximum(wide / wide.max(), _NARROWEST) ** 0.75 if apart else np.ones_like(wide)


def _bearable(way: str, d: int, allowance: Allowance) -> float:
    """Some half of the noise's spectral norm, public, where B is 1; 0 for ways that measure squares alone, with less noise."""
    left = float(allowance.left * allowance.size)
    left = left if allowance.currency == "epsilon" else math.sqrt(left)
    return {"gaussian": math.sqrt(d / 2), "laplace": d * math.sqrt(d / 2), "wishart": 2.0 * d}.get(way, 0.0) / left


def _about_zero(box: Box, radius: float | None) -> NoisyMean:
    farthest = np.maximum(np.abs(box.low), np.abs(box.high))
    corner = wide_enough(float(farthest.max())) and float((farthest**2).sum())
    most = corner if radius is None else min(corner, declared_radius(box, radius) ** 2)
    none = np.zeros_like(box.low)
    return NoisyMean(mean=none, variance=none, most=most, sums=none, sum_noise=none, moved=none, step=none)


def _known(squares: Floats, law: Law, scale: float, directions: Floats) -> Variances:
    shape = directions.shape[1]  # the number of rows and the ball are said in `PCA._keep`
    return Variances(squares=squares, law=law, scale=float(scale), features=shape, size=0.0, size_noise=0.0, radius=0.0)


def _of_moments(
    noisy: Floats, count: int, law: Law, scale: float, degrees: int = 0, *, step: float = 0.0, units: Any = 1.0
) -> _Found:
    """`step`: to which the coordinates of rows were rounded; `units`: by which their columns had been divided."""
    whole = noisy * np.multiply.outer(units, units)
    values, vectors = np.linalg.eigh(whole)
    directions, squares = vectors[:, ::-1][:, :count].T, values[::-1][:count]
    stretch = None if np.all(units == 1) else ((directions * units) ** 2).sum(axis=1)
    known = _known(squares, law, scale, directions)
    return _Found(
        directions=directions,
        known=replace(known, degrees=degrees, rounded=math.sqrt(len(noisy)) / 2 * step, stretch=stretch),
        deviation=float(scale) * {"laplace": 2.0, "wishart": math.sqrt(2 * degrees)}.get(law, 1.0),
        part=float(np.clip(np.trace(whole) / np.trace(noisy), np.min(units) ** 2, 1.0)) if np.trace(noisy) > 0 else 1.0,
    )


def _measured(rows: Floats, directions: Floats, *, radius: float, share: Share, random: Random | None) -> _Found:
    """Noisy sums of squares along orthonormal directions that are released.

    Guarantee: the share, one row more or less: the squares along orthonormal directions sum to ‖z‖² ≤ B² in all, so they change
    by B² in the sum of sizes, and by B⁴ at most in the sum of squares; half a step is added for each, for its rounding, and for
    all that `projected` rounds (that k axes in d dimensions are no more quite orthonormal: squares grow by 1 + √(kd)·2^−24).
    """
    along = projected(rows, directions.T, reach=radius) / radius
    steps = np.rint(along**2 * 2.0**20).astype(np.int64).sum(axis=0)
    most = Fraction(2**20) + Fraction(len(directions), 2) + 1 + exact_square_root(Fraction(directions.size)) / 16
    sizes: dict[str, Any] = {"l1": most, "l2_squared": most**2}
    unit = radius**2 * 2.0**-20
    noisy = share.add(steps, random=random, **sizes) * unit
    deviation, pure = float(np.sqrt(share.variance(**sizes))) * unit, share.currency == "epsilon"
    law: Law = "each laplace" if pure else "each gaussian"
    rounded = radius**2 * (2.0**-21 + math.sqrt(directions.size) * 2.0**-24)
    found = replace(_known(noisy, law, deviation / math.sqrt(2) if pure else deviation, directions), rounded_square=rounded)
    return _Found(directions=directions, known=found, deviation=deviation)


def _equal(allowance: Allowance, what: str, many: int) -> Sequence[Share]:
    part = allowance.left / many
    return [allowance.share(f"{what} {place + 1}", part) for place in range(many)]


def _wishart_budget(allowance: Allowance, epsilon: Fraction) -> tuple[Fraction, Fraction]:
    """ε and half of δ for one row: where a person has m rows, δ grows by m·e^((m−1)ε) at most (group privacy), so it is divided
    by that, rounded up; e^x is below 3^⌈x⌉."""
    whole = Fraction(getattr(allowance.whole, "epsilon", allowance.size))
    rows = round(whole / allowance.size)
    growth = rows * 3 ** -(-(rows - 1) * whole // rows) if rows > 1 else 1
    return epsilon, Fraction(allowance.whole.delta) / (2 * Fraction(growth))
