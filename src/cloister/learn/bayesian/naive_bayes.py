"""Naive Bayes: for numbers (`GaussianNB`), for categories (`CategoricalNB`), for both (`MixedNB`).

The classes' counts, sums, sums of squares and counts of values are released with noise, once; the model follows from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from cloister.errors import InvalidParameter, MissingBound
from cloister.learn.bayesian.bayes import GaussianParts, noisy_gaussian, plain_gaussian, prior_of
from cloister.learn.bayesian.categories import Values, category_counts, log_shares, places_of
from cloister.learn.bayesian.class_margins import Measured
from cloister.learn.bayesian.class_tables import ClassCounts, from_table, of_counts
from cloister.learn.bayesian.moments import ClassMoments, Floats, class_moments, least_count, noisy_class_moments
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Box, Rows, box_of, classes_of, row_products
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.groups import grouped
from cloister.learn.frame.margins import wider_quantile
from cloister.learn.frame.parameters import Limit, Limits
from cloister.noise import Allowance, Random
from cloister.session import Measurer, Spending
from cloister.tables import Category


class _NaiveBayes(ClassifierMixin, PrivateModel):  # type: ignore[misc]
    """What the three have in common: some features are numbers, the others categories.

    Guarantee: a share of the allowance pays for the numbers (`moments.noisy_class_moments`), the rest for the categories
    (`categories.category_counts`), in proportion to how many features there are of each; all that is learned is post-processing.
    """

    learned_names: ClassVar[tuple[str, ...]] = (
        "classes_",
        "class_count_",
        "class_count_noise_",
        "class_count_step_",
        "class_prior_",
        "numbers_",
        "theta_",
        "var_",
        "theta_noise_",
        "var_noise_",
        "measured_",
        "measured_noise_",
        "low_",
        "high_",
        "categories_",
        "feature_log_prob_",
    )
    class_count_step_: float = 0.0
    measured_noise_: Floats | None = None
    var_smoothing: float = 1e-9
    alpha: float = 1.0
    told_by_features: ClassVar[tuple[str, ...]] = ("groups",)
    limits: ClassVar[Limits] = {"var_smoothing": Limit(instead=1e-9, most=1e9), "alpha": Limit(instead=1.0, most=1e9)}

    # ── learning ─────────────────────────────────────────────────────────────────────────────────

    def _kinds(self, X: Floats | None, features: int) -> list[Values | None]:
        """For each feature its declared values; None where it is a number."""
        return [None] * features

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        assert rows.y is not None
        kinds = self._kinds(rows.X if allowance is None else None, rows.X.shape[1])
        names = [str(name) for name in getattr(self, "feature_names_in_", ())]
        found = grouped(len(kinds), getattr(self, "groups", None), names, rows.box)
        groups = [each for each in found if len(each) > 1 and all(kinds[at] is None for at in each)]
        single = [(place, kind) for place, kind in enumerate(kinds) if not any(place in each for each in groups)]
        numbers, listed = [at for at, kind in single if kind is None], [(at, kind) for at, kind in single if kind is not None]
        values = [*(kind.values for _, kind in listed), *(np.arange(float(len(each))) for each in groups)]
        codes = [*(rows.X[:, at] for at, _ in listed), *(_code_of(rows.X[:, list(each)]) for each in groups)]
        box = Box(low=rows.box.low[numbers], high=rows.box.high[numbers])
        X, y, classes = rows.X[:, numbers], rows.y, len(self.classes_)
        shares: list[Any] = [None, None]
        if allowance is not None:
            if numbers:
                what = "class counts, sums and sums of squares"
                portion = f"{len(numbers)}/{len(numbers) + len(values)}"
                shares[0] = allowance.share(what, portion) if values else allowance.rest(what)
            if values:
                shares[1] = allowance.rest("counts of categories")
        random: Random | None = self.random
        counts = category_counts(np.array(codes).T, y, classes, values, share=shares[1], random=random)
        if allowance is None:
            moments = class_moments(X, y, classes, box)
            parts = plain_gaussian(X, moments, y, self.var_smoothing)
        elif numbers:
            moments = noisy_class_moments(X, y, classes, box, share=shares[0], random=random)
            parts = noisy_gaussian(moments, box)
        else:
            moments = of_counts(counts, classes)
            parts = noisy_gaussian(moments, box)
        places = [(at, 1, tuple(kind.values.tolist())) for at, kind in listed] + [(each[0], len(each), ()) for each in groups]
        self._keep(moments, parts, box, numbers, counts, places)
        if allowance is None and self.bounds is None:
            self.low_, self.high_ = np.full(len(numbers), -np.inf), np.full(len(numbers), np.inf)

    def _learn_table(
        self, session: Measurer, table: str, encoder: Encoder, target: Any, spend: Spending, purpose: str
    ) -> Allowance:
        """By the table's own engine (`class_tables.py`)."""
        self.classes_ = classes_of(self.classes)
        found = from_table(session, table, encoder, target, list(self.classes), spend, purpose)
        whole = box_of(encoder.bounds, features=len(encoder.names))
        numbers, places, at = [], [], 0
        for _, domain in encoder.columns:
            width = len(domain.values()) if isinstance(domain, Category) else 1
            if isinstance(domain, Category):
                places.append((at, width, ()))
            else:
                numbers.append(at)
            at += width
        box = Box(low=whole.low[numbers], high=whole.high[numbers])
        self._keep(found.numbers, noisy_gaussian(found.numbers, box), box, numbers, found.categories, places)
        return found.allowance

    def _keep(
        self,
        moments: ClassMoments,
        parts: GaussianParts,
        box: Box,
        numbers: Sequence[int],
        counts: Sequence[ClassCounts],
        places: Sequence[tuple[int, int, tuple[float, ...]]],
    ) -> None:
        self.class_count_ = moments.sizes
        self.class_count_noise_ = float(np.sqrt(moments.size_variance))
        self.class_prior_ = prior_of(moments.sizes, least_count(moments) if moments.size_variance else 0.0)
        self.numbers_ = np.array(numbers, dtype=np.int64)
        self.theta_, self.var_ = parts.means, parts.variances
        self.theta_noise_, self.var_noise_ = parts.mean_noise, parts.variance_noise
        measured = Measured.of(moments)
        self.class_count_step_, self.measured_, self.measured_noise_ = moments.size_step, measured.numbers, measured.noises
        self.low_, self.high_ = box.low, box.high
        self.categories_ = tuple(places)
        self.feature_log_prob_ = tuple(log_shares(each, self.class_prior_, self.alpha) for each in counts)

    # ── what it says ─────────────────────────────────────────────────────────────────────────────

    def _joint_log_likelihood(self, X: Floats) -> Floats:
        """log P(class) + log P(row | class), a column a class."""
        numbers = np.clip(X[:, self.numbers_], self.low_, self.high_)
        with np.errstate(divide="ignore"):
            found = np.repeat(np.log(self.class_prior_)[None, :], len(X), axis=0)
        for label in range(len(self.classes_)):
            if len(self.numbers_) and self.class_prior_[label] > 0:
                squares = (numbers - self.theta_[label]) ** 2 / self.var_[label]
                found[:, label] -= 0.5 * (squares + np.log(2 * np.pi * self.var_[label])).sum(axis=1)
        for (at, width, values), logs in zip(self.categories_, self.feature_log_prob_, strict=True):
            if width > 1 or not values:
                found += row_products(X[:, at : at + width], logs.T)
            else:
                places = places_of(X[:, at], np.asarray(values))
                found += np.where(places[:, None] >= 0, logs.T[places], 0.0)
        return found

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class | row), a column a class in the order of `classes_`."""
        joint = self._joint_log_likelihood(self._asked(X))
        top = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> Floats:
        """P(class | row), a column a class in the order of `classes_`."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        found = self._joint_log_likelihood(self._asked(X)).argmax(axis=1)
        return np.asarray(self.classes_[found])

    def margin(self, confidence: float = 0.95) -> Mapping[str, Floats]:
        """How far the noise may have moved what was learned, with that confidence for each number: half-widths for "class_count",
        "theta" and "var".

        What would have been learned without noise lies within: also where values were drawn together, and where the noise in the
        means was added to variances (`bayes.py`), since the half-widths are about what is shown. `class_margins.py` says how.
        """
        counts = self.class_count_noise_ * wider_quantile(confidence) + self.class_count_step_ / 2
        found = {"class_count": np.full(len(self.class_count_), counts)}
        if self.measured_ is None or self.measured_noise_ is None:  # of an older version, which kept no more than this
            wide = wider_quantile(confidence)
            return {**found, "theta": wide * self.theta_noise_, "var": wide * self.var_noise_}
        if not self.class_count_noise_:
            return {**found, "theta": np.zeros_like(self.theta_), "var": np.zeros_like(self.var_)}
        measured, box = Measured(numbers=self.measured_, noises=self.measured_noise_), Box(low=self.low_, high=self.high_)
        half = box.width / 2
        least, most = (box.middle + half * end for end in measured.means(confidence))
        found["theta"] = np.maximum(self.theta_ - least, most - self.theta_)
        least, most = (half**2 * end for end in measured.variances(confidence))
        found["var"] = np.maximum(self.var_ - least, most - self.var_)
        return found


@dataclass(kw_only=True, eq=False, repr=False)
class GaussianNB(_NaiveBayes):
    """Gaussian naive Bayes: in each class each feature is normal, by itself. A category is none: it has a share of each value
    instead, as in `MixedNB`.

    Guarantee: ε-DP, or (ε, δ)-DP with a δ, for one row more or less; one release of class counts, sums and sums of squares
    (`cloister.learn.bayesian.moments.noisy_class_moments`: noise for a cube under ε, Gaussian with a δ), and, with a share of the
    budget as large as their part of the columns, one of the counts of each category; all else is post-processing. Assumes
    bounds that were declared, and classes that were declared. A row with a gap counts for nothing where it is of arrays; of a
    table it counts in each column in which it has a value.

    Parameters: `bounds` (lowest and highest values of the features), `classes` (0 and 1 when left out), `var_smoothing` (as in
    scikit-learn; without privacy alone: with it, the noise says how much variances are floored). `groups`: the 0-or-1 features
    that one category was written as, by their places, or the names of categories of a frame's columns. Columns that are called
    `sex=F` and `sex=M`, and a table's categories, are categories by themselves (`groups=[]`: none is).

    After `fit`: `classes_`, `class_count_`, `class_prior_`, `theta_`, `var_` (as in scikit-learn), and `margin()` for how much
    noise lies in them.

    References: Vaidya, Shafiq, Basu & Hong (2013), differentially private naive Bayes classification.

    >>> model = GaussianNB(epsilon=1, bounds=(0, 1)).fit([[0.1], [0.9]] * 500, [0, 1] * 500)
    >>> model.predict([[0.0], [1.0]]).tolist(), model.theta_.shape
    ([0, 1], (2, 1))
    """

    _stored: ClassVar[str] = "GaussianNB"

    classes: Any = None
    groups: Any = None
    var_smoothing: float = 1e-9


class _WithCategories(_NaiveBayes):
    """Some features have declared values."""

    categories: Any

    def _declared(self, features: int) -> list[Any]:
        if self.categories is None:
            return [None] * features
        if isinstance(self.categories, Mapping):
            return [self.categories.get(place) for place in range(features)]
        if isinstance(self.categories, int | np.integer):
            return [self.categories] * features
        declared = list(self.categories)
        if len(declared) != features:
            raise InvalidParameter(
                "categories is invalid",
                why=f"it speaks of {len(declared)} features, and there are {features}",
                instead=f"categories={[2] * min(features, 4)}",
            )
        return declared

    def _box(self, X: Floats) -> Box:
        """Values that are not declared stay what they are, and count for nothing; numbers are clipped."""
        kinds = self._kinds(X if not self.private else None, X.shape[1])
        listed = np.array([kind is not None for kind in kinds], dtype=bool)
        if listed.all():
            return Box(low=np.full(len(kinds), -np.inf), high=np.full(len(kinds), np.inf))
        box = super()._box(X)
        return Box(low=np.where(listed, -np.inf, box.low), high=np.where(listed, np.inf, box.high))


@dataclass(kw_only=True, eq=False, repr=False)
class CategoricalNB(_WithCategories):
    """Naive Bayes for categories: in each class each feature has its own shares of values.

    Guarantee: ε-DP, or (ε, δ)-DP with a δ, for one row more or less; one release of counts by class and value
    (`cloister.learn.bayesian.categories.category_counts`), of which all else is post-processing.

    Parameters: `categories`: for each feature the list of its values (numbers), or how many there are (0, 1, …); one number
    stands for all features, None for a number within `bounds` (as in `MixedNB`, and from a table). A value that is not declared
    counts for nothing. `alpha`: rows that are added to each value, as in scikit-learn; at least one deviation of the noise is.
    `groups`: as in `GaussianNB`; with them alone, all other features are numbers.

    >>> model = CategoricalNB(epsilon=1, categories=[2]).fit([[0], [1]] * 500, [0, 1] * 500)
    >>> model.predict([[0], [1]]).tolist()
    [0, 1]
    """

    _stored: ClassVar[str] = "CategoricalNB"

    categories: Any = None
    classes: Any = None
    groups: Any = None
    alpha: float = 1.0

    def _kinds(self, X: Floats | None, features: int) -> list[Values | None]:
        if self.categories is None and self.groups is None and X is not None:
            return [Values.of(np.unique(column)) for column in X.T]
        if self.categories is None and self.groups is None:
            raise MissingBound(
                "categories= is missing",
                why="the values of a category are declared, never looked up in the data",
                instead=f"categories={[2] * min(features, 4)}",
            )
        return [None if one is None else Values.of(one) for one in self._declared(features)]


@dataclass(kw_only=True, eq=False, repr=False)
class MixedNB(_WithCategories):
    """Naive Bayes for numbers and categories together.

    Guarantee: ε-DP, or (ε, δ)-DP with a δ, for one row more or less. The numbers and the categories are released each with a
    share in proportion to their features (see `GaussianNB` and `CategoricalNB`); the shares add up.

    Parameters: `categories`: for each feature None (a number), the list of its values, or how many there are; or a mapping from
    the feature's place to that. `bounds` are those of the numbers; at the places of categories they say nothing. `groups`: as in
    `GaussianNB`.

    >>> model = MixedNB(epsilon=1, bounds=(0, 1), categories={1: 2}).fit([[0.1, 0], [0.9, 1]] * 500, [0, 1] * 500)
    >>> model.predict([[0.0, 0], [1.0, 1]]).tolist()
    [0, 1]
    """

    _stored: ClassVar[str] = "MixedNB"

    categories: Any = None
    classes: Any = None
    groups: Any = None
    alpha: float = 1.0
    var_smoothing: float = 1e-9

    def _kinds(self, X: Floats | None, features: int) -> list[Values | None]:
        return [None if one is None else Values.of(one) for one in self._declared(features)]


def _code_of(block: Floats) -> Floats:
    """Which of the 0-or-1 features of a category is 1; −1, which counts for nothing, where none is."""
    return np.where(block.max(axis=1) > 0.5, block.argmax(axis=1), -1).astype(np.float64)
