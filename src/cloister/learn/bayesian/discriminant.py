"""Linear discriminant analysis: the means of the classes, one covariance for all of them, and Bayes' rule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from cloister.learn.bayesian.bayes import kept_share, prior_of
from cloister.learn.bayesian.class_tables import allowance_for
from cloister.learn.decomposition.products import Products, noisy_lengths, noisy_products, radius_within
from cloister.learn.frame.ball import group_sums
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows, box_of, classes_of, row_lengths, row_products, steps_of
from cloister.learn.frame.cube import CubeNoise
from cloister.learn.frame.encoding import Encoder
from cloister.learn.linear_models.least_squares import repaired
from cloister.learn.linear_models.regression_tables import Sums, centred_columns, product_sums, square_middle
from cloister.noise.allowance import Allowance
from cloister.session import Count, Measurer, Question, Release, Spending, Sum
from cloister.session.releases.uncertainty import variance
from cloister.tables import PrivateTable

Floats = npt.NDArray[np.float64]

_BITS = 20
_BEYOND = 0.03


@dataclass(kw_only=True, eq=False, repr=False)
class LinearDiscriminantAnalysis(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """Each class is normal, all with one covariance.

    Guarantee: ε-DP, or (ε, δ)-DP with a δ, for one row more or less, in three stages that add up: (1) the number of rows of
    each class and the sums of their features (a row moves 1 + d numbers of its own class by at most 1: noise for a cube under
    ε, else Gaussian); (2) a histogram of how far rows are from the released mean of their class (`products.noisy_lengths`); (3)
    the sum of the products of those differences, longer ones drawn in (`products.noisy_products`). All else is post-processing.
    Assumes declared bounds and classes. The third stage under a pure ε draws its noise in floating point where there are two
    features or more: that may add up to 10⁻¹² to δ = 0 (`VectorMechanism.float_delta`); all other noise is exact. From a table
    (`fit_table`) the engine adds whole noise to whole sums, and δ = 0 is exact.

    After `fit`: `classes_`, `class_count_`, `priors_`, `means_`, `covariance_` (repaired: positive definite), `coef_`,
    `intercept_`, the last two with a row a class.

    >>> model = LinearDiscriminantAnalysis(epsilon=1, bounds=(0, 1)).fit([[0.1], [0.3], [0.7], [0.9]] * 500, [0, 0, 1, 1] * 500)
    >>> model.predict([[0.0], [1.0]]).tolist()
    [0, 1]
    """

    _stored: ClassVar[str] = "LinearDiscriminantAnalysis"
    _multiplies: ClassVar[bool] = True
    learned_names: ClassVar[tuple[str, ...]] = (
        "classes_",
        "class_count_",
        "priors_",
        "means_",
        "covariance_",
        "coef_",
        "intercept_",
        "low_",
        "high_",
    )

    classes: Any = None

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        assert rows.y is not None
        self.low_, self.high_ = rows.box.low, rows.box.high
        if allowance is None:
            self._exact(rows.X, rows.y)
            if self.bounds is None:
                self.low_, self.high_ = np.full(rows.box.features, -np.inf), np.full(rows.box.features, np.inf)
            return
        C, y, classes = rows.box.centred(rows.X), rows.y, len(self.classes_)
        sizes, sums, spread = self._class_sums(C, y, classes, allowance)
        least = max(math.sqrt(spread), 1.0)
        means = _drawn_means(sizes, sums, spread, least)
        Z = C - means[y]
        lengths = row_lengths(Z)
        longest = float(np.linalg.norm(1 + np.abs(means).max(axis=0)))
        share = allowance.share("lengths of the rows", "0.1")
        [histogram] = noisy_lengths([(lengths, longest)], share=share, random=self.random)
        total = float(np.maximum(sizes, least).sum())
        radius = radius_within(histogram, longest, beyond=_BEYOND * total + math.sqrt(share.variance(l1=1, l2_squared=1)))
        Z = Z * (radius / np.maximum(lengths, radius))[:, None]
        share = allowance.rest("products of the features")
        products = noisy_products(Z, radius=radius, share=share, float_delta=allowance.float_delta, random=self.random)
        self._settle(sizes, least, means, products, total, radius**2 * total, rows.box)

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: Any, spend: Spending, purpose: str
    ) -> Allowance:
        """By the table's own engine: sums by class, and sums of computed products."""
        declaration = session.tables[table]
        assert isinstance(declaration, PrivateTable)
        self.classes_ = classes_of(self.classes)
        box = box_of(encoder.bounds, features=len(encoder.names))
        self.low_, self.high_ = box.low, box.high
        relation, names = centred_columns(table, declaration, encoder, [], intercept=True, known=[target])
        d = len(names)
        pairs = [(i, i) for i in range(d)] + list(combinations(range(d), 2))
        extended, statistics = product_sums(relation, names, pairs)
        by_class = Question(table=relation, by=(target,), statistics=(Count(), *(Sum(column=name, name=name) for name in names)))
        grouped, summed = session.measure_all(
            [by_class, Question(table=extended, statistics=tuple(statistics))], spend, purpose=purpose
        )
        half = box.width / 2
        sizes, sums, spread = _by_class(grouped, target, list(self.classes), names, half)
        least = max(math.sqrt(spread), 1.0)
        means = _drawn_means(sizes, sums, spread, least)
        kept = np.maximum(sizes, least)
        total = float(kept.sum())
        found, matrix, diagonal, off = Sums(summed), np.zeros((d, d)), [0.0], [0.0]
        for (one, other), statistic in zip(pairs, statistics, strict=True):
            unit = float(half[one] * half[other])
            value, noise = found.value(statistic.name, unit), found.variance(statistic.name, unit)
            if one == other:
                value += total * float(square_middle(relation.columns[names[one]])) / unit
            matrix[one, other] = matrix[other, one] = value
            (diagonal if one == other else off).append(noise)
        matrix -= (means * kept[:, None]).T @ means
        products = Products(matrix=matrix, diagonal=max(diagonal), off=max(off))
        self._settle(sizes, least, means, products, total, total * d, box)
        parts = {"class counts and sums": Fraction(d), "sums of products": Fraction(len(statistics))}
        return allowance_for(summed, parts)

    def _class_sums(
        self, C: Floats, y: npt.NDArray[np.int64], classes: int, allowance: Allowance
    ) -> tuple[Floats, Floats, float]:
        """Sizes and sums of the classes with noise, and its variance."""
        share, one = allowance.share("class counts and sums", "0.4"), 2.0**_BITS
        steps = np.concatenate([np.full((len(C), 1), 2**_BITS), steps_of(C, bits=_BITS)], axis=1)
        exact, numbers = group_sums(steps, y, classes), C.shape[1] + 1
        if share.currency == "epsilon":
            noise = CubeNoise(dimension=numbers, reach=2**_BITS, epsilon=share.epsilon)
            noisy, spread = noise.release(exact, random=self.random), noise.variance / one**2
        else:
            sizes: dict[str, Any] = {"l1": numbers * 2**_BITS, "l2_squared": numbers * 4**_BITS}
            noisy, spread = share.add(exact, random=self.random, **sizes), share.variance(**sizes) / one**2
        return noisy[:, 0] / one, noisy[:, 1:] / one, spread

    def _settle(
        self, sizes: Floats, least: float, means: Floats, products: Products, total: float, most: float, box: Box
    ) -> None:
        """Everything else, from the released numbers in the units of the box."""
        values, vectors = repaired(products, most)
        floor = 2 * math.sqrt(products.off * len(values)) + 1e-9 * total
        covariance = (vectors * np.maximum(values, floor)) @ vectors.T / total
        half = box.width / 2
        self.class_count_, self.priors_ = sizes, prior_of(sizes, least)
        self._rule(box.middle + half * means, covariance * np.outer(half, half))

    def _exact(self, X: Floats, y: npt.NDArray[np.int64]) -> None:
        """Without noise, as scikit-learn's."""
        classes = len(self.classes_)
        self.class_count_ = np.bincount(y, minlength=classes).astype(np.float64)
        self.priors_ = prior_of(self.class_count_, 0.0)
        means = np.array([X[y == label].mean(axis=0) if (y == label).any() else X.mean(axis=0) for label in range(classes)])
        Z = X - means[y]
        self._rule(means, Z.T @ Z / max(len(X) - classes, 1))

    def _rule(self, means: Floats, covariance: Floats) -> None:
        self.means_, self.covariance_ = means, covariance
        self.coef_ = means @ np.linalg.pinv(covariance, hermitian=True)
        with np.errstate(divide="ignore"):
            self.intercept_ = np.log(self.priors_) - 0.5 * (self.coef_ * means).sum(axis=1)

    def _scores(self, X: Any) -> Floats:
        asked = np.clip(self._asked(X), self.low_, self.high_)
        return np.asarray(row_products(asked, self.coef_.T) + self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """The logarithm of each class's density times its prior, up to a constant; with two classes the difference."""
        scores = self._scores(X)
        return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | row), a column a class in the order of `classes_`."""
        scores = self._scores(X)
        top = scores.max(axis=1, keepdims=True)
        return np.asarray(scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | row), a column a class in the order of `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        found = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[found])


def _drawn_means(sizes: Floats, sums: Floats, spread: float, least: float) -> Floats:
    """The means of the classes, drawn together where their differences could be noise (as in `bayes.py`)."""
    counts = np.maximum(sizes, least)[:, None]
    means = np.clip(sums / counts, -1.0, 1.0)
    prior = prior_of(sizes, least)[:, None]
    noise = spread * (1 + means**2) / counts**2
    middle = (prior * means).sum(axis=0)
    kept = kept_share((prior * (means - middle) ** 2).sum(axis=0), (prior * (1 - prior) * noise).sum(axis=0))
    return np.asarray(middle + kept * (means - middle))


def _by_class(
    release: Release, target: str, classes: Sequence[Any], names: Sequence[str], half: Floats
) -> tuple[Floats, Floats, float]:
    where = {value: place for place, value in enumerate(release.groups[target].values.tolist())}
    places = np.array([where[label] for label in classes], dtype=np.int64)
    sizes = np.asarray(release["count"], dtype=np.float64)[places]
    sums = np.stack([np.asarray(release[name], dtype=np.float64)[places] for name in names], axis=1) / half
    formulas = {formula.name: formula for formula in release.formulas}
    spreads = [
        variance(formulas[name].terms(release.readings)) / unit**2  # type: ignore[attr-defined]
        for name, unit in zip(["count", *names], [1.0, *half.tolist()], strict=True)
    ]
    return sizes, sums, float(max(spreads))
