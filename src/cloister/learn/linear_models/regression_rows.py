"""Linear regression from rows: which sums are released, in which order, with which shares.

Each stage is chosen by what was released before it, and pays its own share of the allowance (adaptive composition).

1. How many rows, and the mean of the target: where to take deviations from.
2. The means of the features, where there are rows enough for them to be of use (by the noisy number of rows).
3. Histograms of the lengths of the rows and of the target's deviations: the radii within which all but a few lie. A longer row
   counts with less weight, features and target alike, so that the line that it lies on stays; a longer deviation of the target
   is cut off. How few depends on the noise to come: what is lost by cutting should be less than what is gained.
4. Xᵀy, one vector of the length radius × radius.
5. XᵀX.
6. With the coefficients known, the mean of what is left of the target: the intercept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.learn.bayesian.bayes import kept_share
from cloister.learn.decomposition.products import noisy_lengths, noisy_products, radius_within
from cloister.learn.decomposition.wishart import wishart_products
from cloister.learn.frame.ball import noisy_group_sums
from cloister.learn.frame.bounds import Box, row_lengths, row_products, steps_of
from cloister.learn.frame.cube import CubeNoise
from cloister.learn.linear_models.least_squares import solved
from cloister.learn.linear_models.line_margins import Cut, Evidence, Moved
from cloister.noise import Allowance, Random, Share

Floats = npt.NDArray[np.float64]

_BITS = 20
_USEFUL = 0.1
_MOST_BEYOND = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """What features and target are measured from, and in which units: then all lie in [−1, 1]. Public."""

    origin: Floats
    scale: Floats
    target_origin: float
    target_scale: float

    @classmethod
    def of(cls, box: Box, bounds_y: tuple[float, float], *, intercept: bool) -> Frame:
        """From the middle of the bounds; without an intercept from 0."""
        low, high = bounds_y
        if intercept:
            origin, scale = box.middle, box.width / 2
            return cls(origin=origin, scale=scale, target_origin=(low + high) / 2, target_scale=(high - low) / 2)
        reach = np.maximum(np.abs(box.low), np.abs(box.high))
        return cls(
            origin=np.zeros_like(reach),
            scale=np.where(reach > 0, reach, 1.0),
            target_origin=0.0,
            target_scale=max(abs(low), abs(high)),
        )

    def features(self, X: Floats) -> Floats:
        """In [−1, 1]."""
        return np.clip((X - self.origin) / self.scale, -1.0, 1.0)

    def target(self, y: Floats) -> Floats:
        """In [−1, 1]."""
        return np.clip((y - self.target_origin) / self.target_scale, -1.0, 1.0)

    def line(self, weights: Floats, noise: Floats, height: float, height_noise: float, evidence: Evidence) -> FittedLine:
        """In the units of the data."""
        factor = self.target_scale / self.scale
        coefficients = weights * factor
        return FittedLine(
            coefficients=coefficients,
            intercept=self.target_origin + self.target_scale * height - float(coefficients @ self.origin),
            noise=noise * factor,
            intercept_noise=float(np.hypot(self.target_scale * height_noise, np.linalg.norm(noise * factor * self.origin))),
            evidence=evidence,
        )

    def ends(self, evidence: Evidence, confidence: float, *, alpha: float) -> tuple[tuple[Floats, Floats], tuple[float, float]]:
        """Between which ends coefficients and intercept lie, in the units of the data."""
        factor, ridge = self.target_scale / self.scale, alpha / self.scale**2
        coefficients = evidence.coefficients(confidence, ridge=ridge)
        low, high = evidence.intercept(-self.origin / self.scale, confidence, ridge=ridge)
        return (
            (coefficients[0] * factor, coefficients[1] * factor),
            (self.target_origin + self.target_scale * low, self.target_origin + self.target_scale * high),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedLine:
    """Coefficients and intercept, the standard deviations of the noise in them to first order, and all that was measured."""

    coefficients: Floats
    intercept: float
    noise: Floats
    intercept_noise: float
    evidence: Evidence | None = None


def portions(*, intercept: bool, centred: bool) -> dict[str, Fraction]:
    """Which part of the allowance each stage takes; the products take what is left."""
    found = {"size": Fraction(6, 100), "lengths": Fraction(8, 100), "with_target": Fraction(36, 100)}
    if intercept:
        found["height"] = Fraction(10, 100)
    if centred:
        found["centre"] = Fraction(10, 100)
    return found


def noisy_box_sums(values: Floats, *, share: Share, random: Random | None) -> tuple[Floats, float]:
    """The sums of columns of [−1, 1], with noise, and the variance of the noise in each.

    Guarantee: what the share says, for one row more or less: it moves each sum by at most 2^20 steps of 2^−20. Under ε the
    noise is that of a cube (`CubeNoise`), under μ² and ρ Gaussian (`Share.add`).
    """
    d, one = values.shape[1], 2.0**_BITS
    exact = steps_of(values, bits=_BITS).sum(axis=0)
    if share.currency == "epsilon":
        noise = CubeNoise(dimension=d, reach=2**_BITS, epsilon=share.epsilon)
        return noise.release(exact[None, :], random=random)[0] / one, noise.variance / one**2
    sizes: dict[str, Any] = {"l1": d * 2**_BITS, "l2_squared": d * 4**_BITS}
    return share.add(exact, random=random, **sizes) / one, share.variance(**sizes) / one**2


def line_of_rows(
    X: Floats,
    y: Floats,
    frame: Frame,
    allowance: Allowance,
    *,
    intercept: bool,
    alpha: float,
    wishart: bool,
    random: Random | None,
) -> FittedLine:
    """The line, with noise.

    Guarantee: what the allowance says, for one row more or less: each stage says why its share pays for it; what a stage does
    with the row (moving it by released means, weighing it by released radii) is a function of that row and of released numbers.
    """
    C, T = frame.features(X), frame.target(y)
    d = C.shape[1]
    parts = portions(intercept=intercept, centred=False)
    first = np.stack([np.ones(len(T)), T], axis=1)[:, : 2 if intercept else 1]
    share = allowance.share("number of rows, mean of the target", parts["size"])
    sums, variance = noisy_box_sums(first, share=share, random=random)
    size = steady_size(float(sums[0]), variance)
    height = float(np.clip(sums[1] / size, -1.0, 1.0)) if intercept else 0.0

    centre = np.zeros(d)
    features, features_noise = (
        np.zeros(d),
        np.full(d, 2 * size),
    )  # each within [−1, 1], so a sum is surely less than four of these
    if intercept:
        worth = _box_deviation(allowance, portions(intercept=True, centred=True)["centre"], d)
        if worth / size <= _USEFUL:
            parts = portions(intercept=True, centred=True)
            found, spread = noisy_box_sums(C, share=allowance.share("means of the features", parts["centre"]), random=random)
            squared = np.array([float(found @ found)])
            centre = np.clip(found / size * kept_share(squared, np.array([d * spread])), -1.0, 1.0)
            features, features_noise = found - sums[0] * centre, np.sqrt(spread + variance * centre**2)
    Z, T = C - centre, T - height

    longest, farthest = float(np.linalg.norm(1 + np.abs(centre))), 1 + abs(height)
    lengths = row_lengths(Z)
    share = allowance.share("lengths of the rows", parts["lengths"])
    histograms = noisy_lengths([(lengths, longest), (np.abs(T), farthest)], share=share, random=random)
    lengths_variance = share.variance(l1=2, l2_squared=2)
    left = allowance.left - parts["with_target"] - parts.get("height", Fraction(0))
    noise = _products_deviation(allowance, left, d)
    beyond = min(_MOST_BEYOND * size, 8 * noise + 4 * math.sqrt(lengths_variance))
    radius = radius_within(histograms[0], longest, beyond=beyond)
    reach = radius_within(histograms[1], farthest, beyond=beyond)
    weights = radius / np.maximum(lengths, radius)
    Z, cut = Z * weights[:, None], np.clip(T, -reach, reach) * weights

    nowhere = np.zeros(len(Z), dtype=np.int64)
    share = allowance.share("products with the target", parts["with_target"])
    slack = allowance.float_delta
    totals, target_variance, _ = noisy_group_sums(
        Z * cut[:, None], nowhere, 1, radius=radius * reach, share=share, float_delta=slack, random=random
    )
    share = allowance.share("products of the features", left)
    if wishart:
        delta = allowance.of_row(allowance.whole.delta * Fraction(3, 4))  # a quarter is the slack of the products with the target
        products = wishart_products(Z, radius=radius, share=share, delta=delta, random=random)
    else:
        products = noisy_products(Z, radius=radius, share=share, float_delta=slack, random=random)
    found_line = solved(products, totals[0], target_variance, most=size * radius**2, alpha=alpha_of(alpha, frame))
    evidence = Evidence(
        matrix=products.matrix,
        with_target=totals[0],
        entry=max(products.off, products.diagonal / 2),
        whole=products.whole,
        target=target_variance,
        moved=Moved(
            centre=centre,
            height=height,
            rows=float(sums[0]),
            rows_noise=math.sqrt(variance),
            features=features,
            features_noise=features_noise,
            target=float(sums[1] - sums[0] * height),
            target_noise=math.sqrt(variance * (1 + height**2)),
        )
        if intercept
        else None,
        cut=Cut.of(histograms, math.sqrt(lengths_variance), longest=longest, farthest=farthest, radius=radius, reach=reach),
    )
    if not intercept:
        return frame.line(found_line.weights, found_line.noise, 0.0, 0.0, evidence)
    foretold = np.clip(height + row_products(C - centre, found_line.weights), -1.0, 1.0)
    missed = np.clip(frame.target(y) - foretold, -reach, reach)
    share = allowance.rest("intercept")
    rest, variance = noisy_box_sums((missed / reach)[:, None], share=share, random=random)
    moved = float(np.clip(height + rest[0] * reach / size, -1.0, 1.0))
    return frame.line(
        found_line.weights,
        found_line.noise,
        moved - float(found_line.weights @ centre),
        math.sqrt(variance) * reach / size,
        evidence,
    )


def steady_size(noisy: float, variance: float) -> float:
    """A number of rows to divide noisy sums by: a little more than the noisy one, so that a count of mostly noise makes means
    small and not wild: n + Var/n, for an n of at least one deviation.

    >>> steady_size(100.0, 0.0), steady_size(-5.0, 100.0)
    (100.0, 20.0)
    """
    least = max(noisy, math.sqrt(variance), 1.0)
    return least + variance / least


def alpha_of(alpha: float, frame: Frame) -> float:
    """What a ridge of `alpha` in the units of the data is in those of the frame: exact where all features have one scale, else
    for the geometric mean of the scales.

    >>> frame = Frame(origin=np.zeros(2), scale=np.full(2, 2.0), target_origin=0.0, target_scale=1.0)
    >>> alpha_of(8.0, frame)
    2.0
    """
    return alpha / float(np.exp(np.mean(np.log(frame.scale**2))))


def _box_deviation(allowance: Allowance, portion: Fraction, d: int) -> float:
    """How noisy the sum of one of d columns of [−1, 1] will be: public."""
    amount = float(allowance.size * portion)
    if allowance.currency == "epsilon":
        return math.sqrt((d + 1) * (d + 2) / 3) / amount
    return math.sqrt(d / (amount if allowance.currency == "mu_squared" else 2 * amount))


def _products_deviation(allowance: Allowance, portion: Fraction, d: int) -> float:
    """How noisy a product of two features will be, in squared radii: public."""
    amount, numbers = float(allowance.size * portion), d * (d + 1) // 2
    if allowance.currency == "epsilon":
        return math.sqrt(numbers + 1) / amount
    return math.sqrt(1 / (amount if allowance.currency == "mu_squared" else 2 * amount))
