"""Counts of categories by class, with noise, and what a naive Bayes model makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.learn.bayesian.bayes import kept_share
from cloister.learn.bayesian.class_tables import ClassCounts
from cloister.learn.bayesian.moments import Floats
from cloister.noise import Random, Share


@dataclass(frozen=True, kw_only=True, eq=False)
class Values:
    """The declared values of a categorical feature, in their order."""

    values: Floats

    @classmethod
    def of(cls, declared: Any) -> Values:
        """A list of numbers, or how many: 0, 1, 2, …

        >>> Values.of(3).values.tolist(), Values.of([1, 5]).values.tolist()
        ([0.0, 1.0, 2.0], [1.0, 5.0])
        """
        values = np.arange(int(declared)) if np.ndim(declared) == 0 else np.asarray(list(declared))
        if not len(values):
            raise InvalidParameter(f"categories={declared!r} is invalid", why="a category has a value", instead="categories=[2]")
        return cls(values=np.sort(values.astype(np.float64)))


def places_of(column: Floats, values: Floats) -> npt.NDArray[np.int64]:
    """The place of each number among the values; −1 where it is none of them.

    >>> places_of(np.array([5.0, 2.0, 1.0]), np.array([1.0, 5.0])).tolist()
    [1, -1, 0]
    """
    places = np.minimum(np.searchsorted(values, column), len(values) - 1)
    return np.where(values[places] == column, places, -1)


def category_counts(
    X: Floats, y: npt.NDArray[np.int64], classes: int, values: list[Floats], *, share: Share | None, random: Random | None
) -> tuple[ClassCounts, ...]:
    """How many rows of each class have each value, for all categorical features.

    Guarantee: what the share says, for one row more or less. It is in one class, and has at most one value of each of the d
    features: it moves d counts by 1, so l1 = d and l2² = d (Dwork & Roth 2014, Section 3.3; discrete Laplace or Gaussian noise,
    `Share.add`).
    """
    if not values:
        return ()
    exact = []
    for column, known in zip(X.T, values, strict=True):
        places = places_of(column, known)
        held = places >= 0
        exact.append(
            np.bincount(y[held] * len(known) + places[held], minlength=classes * len(known)).reshape(classes, len(known))
        )
    whole = np.concatenate(exact, axis=1).astype(np.int64)
    variance = 0.0
    noisy = whole.astype(np.float64)
    if share is not None:
        noisy = share.add(whole, l1=len(values), l2_squared=len(values), random=random)
        variance = share.variance(l1=len(values), l2_squared=len(values))
    ends = np.cumsum([len(known) for known in values])[:-1]
    return tuple(ClassCounts(counts=part, variance=variance) for part in np.split(noisy, ends, axis=1))


def log_shares(found: ClassCounts, prior: Floats, smoothing: float) -> Floats:
    """log P(value | class), smoothed by so many rows a value, and drawn towards the value's share in all classes where the noise
    dominates the differences (as in `bayes.py`). Post-processing.

    >>> counts = ClassCounts(counts=np.array([[8.0, 0.0], [2.0, 6.0]]), variance=0.0)
    >>> np.exp(log_shares(counts, np.array([0.5, 0.5]), 1.0)).round(3).tolist()
    [[0.9, 0.1], [0.3, 0.7]]
    """
    deviation = math.sqrt(found.variance)
    counts = np.maximum(found.counts, 0.0) + max(smoothing, deviation)
    sizes = counts.sum(axis=1, keepdims=True)
    shares = counts / sizes
    weights = prior[:, None]
    pooled = (weights * shares).sum(axis=0)
    noise = found.variance / sizes**2
    expected = (weights * (1 - weights) * noise).sum() * shares.shape[1]
    share = kept_share(np.array([(weights * (shares - pooled) ** 2).sum()]), np.array([expected]))
    return np.asarray(np.log(pooled + share * (shares - pooled)))
