"""From noisy moments of classes to what a Gaussian naive Bayes model says of each feature: repaired, and shrunk where noise
dominates.

All of it is post-processing of released numbers, and of the variances of their noise, which are public: it costs nothing.

Where the noise is large, differences between classes are mostly noise. So for each feature the means of the classes are drawn
towards their common mean by the positive part of 1 − (what noise alone would make of the differences) / (the differences found)
(James & Stein 1961, positive part); and so are the variances, in logarithms, but for three standard deviations of noise instead
of one, since a wrong variance is worse than a wrong mean: it turns rows without evidence into strong evidence. A feature that
is all noise says nothing, and where all are, the model guesses the most frequent class.
"""

import math
from dataclasses import dataclass

import numpy as np

from cloister.learn.bayesian.moments import ClassMoments, Floats, least_count, noise_of_mean, noise_of_square
from cloister.learn.frame.bounds import Box

_VARIANCE_DEVIATIONS = 9.0
_FLOOR_DEVIATIONS = 2.0
_MEAN_DEVIATIONS = 4.0
_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianParts:
    """In the features' own units, a row a class: means and variances, and the standard deviations of the noise in them."""

    means: Floats
    variances: Floats
    mean_noise: Floats
    variance_noise: Floats


def prior_of(sizes: Floats, least: float) -> Floats:
    """The share of each class, none of them less than one that the noise would hide; equal ones where there are no rows.

    >>> prior_of(np.array([30.0, -5.0]), 10.0).tolist(), prior_of(np.zeros(2), 0.0).tolist()
    ([0.75, 0.25], [0.5, 0.5])
    """
    kept = np.maximum(sizes, least) if least or (sizes > 0).any() else np.ones(len(sizes))
    return np.asarray(kept / kept.sum())


def kept_share(found: Floats, noise: Floats) -> Floats:
    """How much of the differences is kept: the positive part of 1 − noise/found.

    >>> kept_share(np.array([4.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0])).tolist()
    [0.75, 0.0, 1.0]
    """
    with np.errstate(all="ignore"):  # both are noisy, and of any size
        return np.where(noise > 0, np.maximum(1 - noise / np.maximum(found, 1e-300 + noise * 1e-9), 0.0), 1.0)


def noisy_gaussian(moments: ClassMoments, box: Box) -> GaussianParts:
    """Means and variances from noisy moments.

    To the repaired variance of a class the variance of the noise in the means is added, four times that of the class where it is
    largest: so a feature whose means are mostly noise says little, and what is added does not itself tell classes apart.
    """
    least = least_count(moments)
    prior = prior_of(moments.sizes, least)[:, None]
    counts = np.maximum(moments.counts, least)
    means = np.clip(moments.sums / counts, -1.0, 1.0)
    squares = np.clip(moments.squares / counts, 0.0, 1.0)
    mean_noise = noise_of_mean(moments, counts, means)
    variance_noise = noise_of_square(moments, counts, squares) + 4 * means**2 * mean_noise
    spread = squares - means**2

    middle = (prior * means).sum(axis=0)
    share = kept_share((prior * (means - middle) ** 2).sum(axis=0), (prior * (1 - prior) * mean_noise).sum(axis=0))
    shrunk = middle + share * (means - middle)

    pooled = (prior * spread).sum(axis=0)
    floor = _FLOOR_DEVIATIONS * np.sqrt((prior**2 * variance_noise).sum(axis=0))
    pooled = np.clip(pooled, np.maximum(floor, _LEAST_VARIANCE), 1.0)
    found = (prior * (spread - (prior * spread).sum(axis=0)) ** 2).sum(axis=0)
    expected = (prior * (1 - prior) * variance_noise).sum(axis=0)
    strict = 1 + (_VARIANCE_DEVIATIONS - 1) / math.sqrt(max(len(prior) - 1, 1))
    share = kept_share(found, strict * expected)
    floors = np.maximum(_FLOOR_DEVIATIONS * np.sqrt(variance_noise), _LEAST_VARIANCE)
    logarithms = np.log(np.clip(spread, floors, 1.0))
    repaired = np.exp(np.log(pooled) + share * (logarithms - np.log(pooled)))

    half = box.width / 2
    return GaussianParts(
        means=box.middle + half * shrunk,
        variances=half**2 * (repaired + _MEAN_DEVIATIONS * mean_noise.max(axis=0)),
        mean_noise=half * np.sqrt(mean_noise),
        variance_noise=half**2 * np.sqrt(variance_noise),
    )


def plain_gaussian(X: Floats, moments: ClassMoments, y: Floats, smoothing: float) -> GaussianParts:
    """Means and variances without noise, by two passes; `smoothing` times the largest variance of a feature is added, as
    scikit-learn does."""
    classes, features = moments.sums.shape
    means, variances = np.zeros((classes, features)), np.zeros((classes, features))
    for label in range(classes):
        rows = X[y == label]
        if len(rows):
            means[label], variances[label] = rows.mean(axis=0), rows.var(axis=0)
    variances += smoothing * X.var(axis=0).max(initial=0.0)
    nothing = np.zeros_like(means)
    return GaussianParts(means=means, variances=variances, mean_noise=nothing, variance_noise=nothing)
