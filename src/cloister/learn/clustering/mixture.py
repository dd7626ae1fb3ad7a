"""A mixture of normal groups: a few rounds of noisy moments (DP-EM), begun at private centres."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import DensityMixin

from cloister.learn.bayesian.bayes import kept_share, prior_of
from cloister.learn.clustering.kmeans import KMeans
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.bounds import Rows, row_products
from cloister.learn.frame.parameters import Limit, Limits
from cloister.noise import Allowance, Gaussian, Random, Share, default_random
from cloister.privacy import ZCDP, PureDP
from cloister.tables.engines.row_sums import softmax

Integers = npt.NDArray[np.int64]

BITS = 20
_CHUNK = 1 << 14
_LESS = 1 - 2.0**-30
_SQUARES = math.sqrt(0.5)
"""What (u² − 1) weighs: then it spreads as much as u."""
_NARROWEST, _WIDEST = 1e-3, 1.0
"""A deviation, over half a feature's declared width."""
_FARTHEST_STEP, _LEAST_RATIO, _MOST_RATIO = 3.0, 0.04, 9.0
"""In a round a mean moves by at most so many deviations, and a variance by at most such factors."""
_SAMPLE = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """Weights, means and variances, a row a group; released or public. Of features that are scaled to [−1, 1]."""

    weights: Floats
    means: Floats
    variances: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Noisy sums of a round in each group's own units: of people, of u, of (u² − 1); and the variance of their noise.

    Rows are scaled to [−1, 1]. Each group looks at them in its own units, (row − mean)/deviation, so its noise is as narrow as
    the group is."""

    counts: Floats
    sums: Floats
    squares: Floats
    variance: float
    square_variance: float


def log_densities(X: Floats, groups: Groups) -> Floats:
    """log(weight · density) of each row in each group, each row by itself.

    >>> one = Groups(weights=np.ones(1), means=np.zeros((1, 1)), variances=np.ones((1, 1)))
    >>> log_densities(np.zeros((1, 1)), one).round(3).tolist()
    [[-0.919]]
    """
    found = np.empty((len(X), len(groups.weights)))
    for place, (weight, mean, variance) in enumerate(zip(groups.weights, groups.means, groups.variances, strict=True)):
        constant = math.log(max(weight, 1e-300)) - 0.5 * float(np.log(2 * math.pi * variance).sum())
        found[:, place] = constant - 0.5 * row_products((X - mean) ** 2, 1 / variance)
    return found


def reach_of(dimension: int, *, pure: bool) -> Fraction:
    """How long a row's (1, u, (u² − 1)/√2) may be before it is drawn in: in the sum of sizes where the promise is pure, else in
    the root of the sum of squares. Most rows of a normal group are shorter. A whole number of quarters, so it is exact.

    >>> reach_of(2, pure=True), reach_of(2, pure=False)
    (Fraction(9, 1), Fraction(17, 4))
    """
    wide = 1 + 1.5 * dimension + 3.5 * math.sqrt(dimension) if pure else math.sqrt(1 + 2 * dimension + 8 * math.sqrt(dimension))
    return Fraction(math.ceil(4 * wide), 4)


def row_moments(X: Floats, groups: Groups, *, reach: Fraction, pure: bool) -> Integers:
    """The sums over rows, exact, a row a group: responsibility · (1, u, (u² − 1)/√2), drawn in to `reach`, in steps of 2⁻²⁰.

    One row changes them by at most reach · 2²⁰ in the sum of sizes (`pure`), or that squared in the sum of squares: in a group
    by responsibility · reach at most, and responsibilities sum to 1. A step is cut towards 0, after a scaling that leaves a
    margin of 2⁻³⁰, so neither rounding nor floating point lengthens it. What a row adds follows from that row and the groups
    alone, which are released: whoever else is there.

    >>> one = Groups(weights=np.ones(1), means=np.zeros((1, 1)), variances=np.ones((1, 1)))
    >>> (row_moments(np.array([[1.0]]), one, reach=Fraction(9), pure=True) / 2**20).round(3).tolist()
    [[1.0, 1.0, 0.0]]
    """
    dimension, most = X.shape[1], float(reach)
    total = np.zeros((len(groups.weights), 2 * dimension + 1), dtype=np.int64)
    for first in range(0, len(X), _CHUNK):
        part = np.ascontiguousarray(X[first : first + _CHUNK])
        shares = softmax(log_densities(part, groups))
        for place, (mean, variance) in enumerate(zip(groups.means, groups.variances, strict=True)):
            own = _own(part, mean, variance)
            scale = shares[:, place] * _drawn_in(own, most, pure=pure) * (_LESS * 2.0**BITS)
            total[place] += np.trunc(own * scale[:, None]).astype(np.int64).sum(axis=0)
    return total


def noisy_moments(X: Floats, groups: Groups, *, share: Share, random: Random | None) -> Moments:
    """A round's release.

    Guarantee: what the share says, for one row more or less; the groups are public or released. Sensitivity: `row_moments`.
    Noise: discrete Laplace under ε, rounded Gaussian under μ² and ρ (`Share.add`). After Park, Foulds, Chaudhuri & Welling
    (2017), DP-EM, who noise the moments of every round; that a row is seen in its group's units, and drawn in there, is ours.
    """
    dimension, pure = X.shape[1], share.currency == "epsilon"
    reach = reach_of(dimension, pure=pure)
    sizes: dict[str, Any] = {"l1": reach * 2**BITS, "l2_squared": reach**2 * 4**BITS}
    steps = row_moments(X, groups, reach=reach, pure=pure)
    noisy = share.add(steps, random=random, **sizes) / 2.0**BITS
    variance = share.variance(**sizes) / 4.0**BITS
    squares = noisy[:, dimension + 1 :] / _SQUARES
    shift = _missing_squares(dimension, reach, pure)
    return Moments(
        counts=noisy[:, 0],
        sums=noisy[:, 1 : dimension + 1],
        squares=squares - shift * noisy[:, :1],
        variance=variance,
        square_variance=variance / _SQUARES**2,
    )


def moved(groups: Groups, found: Moments) -> Groups:
    """The groups after a round: post-processing of released numbers.

    A move is kept by as much as it is longer than noise alone would make it (James & Stein 1961, positive part), for means and
    for variances; so a group that is all noise stays where it was. Variances stay above 0, means within the bounds.
    """
    noise = math.sqrt(found.variance)
    counts = np.maximum(found.counts, max(2 * noise, 1.0))[:, None]
    steps = found.sums / counts
    kept = kept_share((steps**2).mean(axis=1), found.variance / counts[:, 0] ** 2)[:, None]
    steps = np.clip(kept * steps, -_FARTHEST_STEP, _FARTHEST_STEP)
    growth = found.squares / counts - steps**2
    kept = kept_share((growth**2).mean(axis=1), found.square_variance / counts[:, 0] ** 2)[:, None]
    ratio = np.clip(1 + kept * growth, _LEAST_RATIO, _MOST_RATIO)
    return Groups(
        weights=prior_of(found.counts, max(noise, 1.0)),
        means=np.clip(groups.means + np.sqrt(groups.variances) * steps, -1.0, 1.0),
        variances=np.clip(groups.variances * ratio, _NARROWEST**2, _WIDEST**2),
    )


def _own(X: Floats, mean: Floats, variance: Floats) -> Floats:
    """(1, u, (u² − 1)/√2) of each row, u in the units of a group."""
    u = (X - mean) / np.sqrt(variance)
    return np.concatenate([np.ones((len(X), 1)), u, (u**2 - 1) * _SQUARES], axis=1)


def _drawn_in(own: Floats, most: float, *, pure: bool) -> Floats:
    """The factor of each row, at most 1."""
    ones = np.ones(own.shape[1])
    lengths = row_products(np.abs(own), ones) if pure else np.sqrt(row_products(own**2, ones))
    return np.asarray(np.minimum(1.0, most / lengths))


@functools.lru_cache(maxsize=64)
def _missing_squares(dimension: int, reach: Fraction, pure: bool) -> float:
    """The mean of u² − 1 over a normal group whose far rows are drawn in, so count for less: a public number, below 0, by rows
    that are drawn from the normal law once and for all."""
    normal = Gaussian(scale=1, sensitivity=1, step="0.0001").sample(_SAMPLE * dimension, random=Random.deterministic(1))
    rows = np.asarray(normal, dtype=np.float64).reshape(_SAMPLE, dimension)
    rows /= np.sqrt((rows**2).mean(axis=0))
    factors = _drawn_in(_own(rows, np.zeros(dimension), np.ones(dimension)), float(reach), pure=pure)
    return float((factors[:, None] * (rows**2 - 1)).mean() / factors.mean())


Floats = npt.NDArray[np.float64]

_STARTS = Fraction(2, 5)
_GROWTH = Fraction(3, 2)
"""Each round gets this much more than the one before: the last one is what is released."""
_MOST_ROUNDS = 6
_ENOUGH = 14.0
"""Persons of a group over the noise of their count, from which on one more round is worth its share."""
_START_WIDTH, _LEAST_START, _ALONE = 0.5, 0.05, 0.5
"""The first deviation over the distance of the nearest centre and √d; the least; and that of a single group."""


@dataclass(eq=False, repr=False)
class GaussianMixture(DensityMixin, PrivateModel):  # type: ignore[misc]
    """Rows as a mixture of normal groups, in each of which features are independent (diagonal covariances).

    Guarantee: ε, or (ε, δ), or ρ, for one row more or less (the number of rows is private). A part of the allowance buys starts
    (`KMeans`, with its guarantee); each round then buys, for every group, Σr, Σr·u and Σr·(u² − 1), r the part of a row that the
    group has and u the row in the group's units, by the groups released before. Sensitivity: a row's (1, u, (u² − 1)/√2) is
    drawn in to a public length, and its parts sum to 1, so it moves all sums together by at most that length
    (`expectations.row_moments`). Shares add up, each round being chosen by the releases of those before it (adaptive
    composition, `Allowance`). How many rounds there are follows from public facts and the noisy sizes of the starts.
    Under a pure ε the starts' sums draw their noise in floating point: that adds to δ = 0 what `KMeans` says; all else is exact.

    After Park, Foulds, Chaudhuri & Welling (2017), DP-EM. A group that is mostly noise stays where it started; variances are
    repaired, so they are above 0 always (`expectations.moved`).

    Parameters: `n_components` (how many groups), `rounds` (None: by public facts). Learned: `weights_`, `means_`,
    `covariances_` (of the diagonal, as scikit-learn's covariance_type="diag"), `rounds_`, `low_`, `high_`.

    >>> spread = np.linspace(-0.05, 0.05, 1000)[:, None]
    >>> X = np.concatenate([0.2 + spread, 0.7 + spread])
    >>> model = GaussianMixture(2, epsilon=5, bounds=(0, 1), random=Random.deterministic(1)).fit(X)
    >>> sorted(model.means_.round(1).ravel().tolist()), model.predict_proba([[0.2]]).round(2).max()
    ([0.2, 0.7], np.float64(1.0))
    """

    _stored: ClassVar[str] = "GaussianMixture"
    target_kind: ClassVar[str] = "none"
    limits: ClassVar[Limits] = {
        "n_components": Limit(least=1, whole=True, instead=2),
        "rounds": Limit(least=1, whole=True, none=True, instead=2),
    }
    learned_names: ClassVar[tuple[str, ...]] = ("weights_", "means_", "covariances_", "rounds_", "low_", "high_")

    n_components: int = 2
    _: KW_ONLY
    rounds: int | None = None

    # ── learning ─────────────────────────────────────────────────────────────────────────────────

    def _learn(self, rows: Rows, allowance: Allowance | None) -> None:
        count, rounds = self.n_components, self.rounds
        self.low_, self.high_ = rows.box.low, rows.box.high
        if allowance is None:
            self._without_noise(rows.X, count)
            if self.bounds is None:
                self.low_, self.high_ = np.full(rows.box.features, -np.inf), np.full(rows.box.features, np.inf)
            return
        random = self.random or default_random()
        groups, size = self._starts(rows, count, allowance, random)
        scaled = np.ascontiguousarray(rows.box.centred(rows.X))
        shares = _shares(allowance, rounds, size=size / count, dimension=rows.box.features)
        for share in shares:
            groups = moved(groups, noisy_moments(scaled, groups, share=share, random=random))
        half = rows.box.width / 2
        self.weights_, self.rounds_ = groups.weights, len(shares)
        self.means_ = np.clip(rows.box.middle + half * groups.means, rows.box.low, rows.box.high)
        self.covariances_ = np.maximum(half**2 * groups.variances, np.finfo(np.float64).tiny)

    def _starts(self, rows: Rows, count: int, allowance: Allowance, random: Random) -> tuple[Groups, float]:
        """Centres by k-means, equally wide in all directions, as far as half-way to the nearest other; and the noisy size."""
        start = KMeans(count, bounds=(rows.box.low, rows.box.high), random=random)
        start._learn(rows, _alone(allowance.share("starts", _STARTS)))
        means = rows.box.centred(start.cluster_centers_)
        width = _ALONE
        if count > 1:
            apart = np.sqrt(((means[:, None] - means[None]) ** 2).sum(axis=2)) + np.diag(np.full(count, np.inf))
            width = np.clip(apart.min(axis=1) * (_START_WIDTH / math.sqrt(means.shape[1])), _LEAST_START, 1.0)[:, None]
        sizes = np.maximum(start.cluster_sizes_, 1.0)
        groups = Groups(weights=sizes / sizes.sum(), means=means, variances=np.ones_like(means) * width**2)
        return groups, float(sizes.sum())

    def _without_noise(self, X: Floats, count: int) -> None:
        from sklearn.mixture import GaussianMixture as Plain

        found = Plain(count, covariance_type="diag", n_init=3, random_state=0).fit(X)
        self.weights_, self.means_, self.covariances_ = found.weights_, found.means_, found.covariances_
        self.rounds_ = int(found.n_iter_)

    # ── what it says ─────────────────────────────────────────────────────────────────────────────

    def _logs(self, X: Any) -> Floats:
        """log(weight · density) of each row, clipped to the bounds, in each group."""
        asked = np.clip(self._asked(X), self.low_, self.high_)
        return log_densities(asked, Groups(weights=self.weights_, means=self.means_, variances=self.covariances_))

    def predict_proba(self, X: Any) -> Floats:
        """How likely each row is of each group."""
        return softmax(self._logs(X))

    def predict(self, X: Any) -> npt.NDArray[np.int64]:
        """The number of the most likely group of each row."""
        return np.asarray(self._logs(X).argmax(axis=1), dtype=np.int64)

    def score_samples(self, X: Any) -> Floats:
        """The logarithm of the density at each row."""
        logs = self._logs(X)
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`. Of private rows it is private."""
        return float(self.score_samples(X).mean())

    def sample(self, n: int = 1, *, random: Random | None = None) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Rows of the model, clipped to the bounds, and their groups. They follow from what was released, and cost nothing.

        >>> X = np.linspace(0, 1, 1000)[:, None]
        >>> rows, groups = GaussianMixture(1, bounds=(0, 1)).fit(X).sample(5)
        >>> rows.shape, groups.tolist()
        ((5, 1), [0, 0, 0, 0, 0])
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        source = random or self.random or default_random()
        Limit(least=1, whole=True, instead=2).check("n", n)
        even = source.uniform(n)
        groups = np.minimum(np.searchsorted(np.cumsum(self.weights_), even, side="right"), len(self.weights_) - 1)
        normal = Gaussian(scale=1, sensitivity=1, step="0.000001").sample(n * self.means_.shape[1], random=source)
        away = np.asarray(normal, dtype=np.float64).reshape(n, -1) * np.sqrt(self.covariances_[groups])
        return np.clip(self.means_[groups] + away, self.low_, self.high_), groups.astype(np.int64)


def _alone(share: Share) -> Allowance:
    """A share as an allowance of its own: as much of the same currency, for one row, as the share is."""
    if share.currency == "epsilon":
        return Allowance(PureDP(share.amount))
    rho = share.amount if share.currency == "rho" else share.amount / 2
    return Allowance(ZCDP(rho), currency=share.currency)


def _shares(allowance: Allowance, rounds: int | None, *, size: float, dimension: int) -> Sequence[Share]:
    """One for each round, of all that is left. By themselves as many rounds as leave the last with people well above noise.

    `size` is the noisy number of people a group.
    """
    pure, left = allowance.currency == "epsilon", allowance.left
    whole = float(allowance.size * left)
    if allowance.currency == "rho":
        whole *= 2
    reach = float(reach_of(dimension, pure=pure))
    strength = size * (whole if pure else math.sqrt(whole)) / reach
    usual = int(strength / _ENOUGH) if pure else int((strength / _ENOUGH) ** 2)
    wanted = rounds or max(1, min(usual, _MOST_ROUNDS))
    weights = [_GROWTH**place for place in range(wanted)]
    return [
        allowance.share(f"moments of round {place + 1}", left * weight / sum(weights)) for place, weight in enumerate(weights)
    ]
