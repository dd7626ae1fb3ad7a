"""Geo-indistinguishability: one place is hidden among the places near it, on the phone itself.

The guarantee is a rate, ε a metre: two places d metres apart are told apart with εd at most (Andrés, Bordenabe,
Chatzikokolakis & Palamidessi 2013), and a little more where places are rounded first. It is not differentially private until a
diameter is declared, and adds up with its own kind alone.

Noise is drawn on the whole infinite lattice, P(z) ∝ exp(−ε·step·‖z‖) for z in ℤ², and added to the lattice point nearest to the
place. Its normaliser is the same wherever the place is. A law that is cut off at the edge of a region and scaled up again has a
normaliser of its own for every place, and costs up to 2ε; so what lies outside is clamped *after* the draw.

Proof that the draws have this law. Coordinates i, j are proposed as independent discrete Laplace numbers of rate λ =
ε·step·408/577, and kept with probability exp(−(ε·step·√(i² + j²) − λ(|i| + |j|))): the product is proportional to
exp(−ε·step·√(i² + j²)). The exponent is not negative, since |i| + |j| ≤ √2·√(i² + j²) and 408/577 < 1/√2. The coin is
decided in floating point where that is certain, and by integer bounds of the irrational exponent where it is not. Three
proposals of four are kept. ∎
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter, NotConvertible
from cloister.noise import DiscreteLaplace, Random
from cloister.noise._checks import level as confidence_level
from cloister.noise._checks import whole
from cloister.noise.enclosure import Enclosure, exp_below, lies_below
from cloister.noise.mechanism import set_fields, source
from cloister.noise.random import check_count
from cloister.privacy import Exact, PureDP, exact_nonnegative, exact_positive, text_of

Points = npt.NDArray[np.float64]

_DIAGONAL = Fraction(408, 577)
_SLACK = 2.0**-44
_SMALLEST = Fraction(1, 2**30)
_ROOT_OF_TWO = Fraction("1.41422")
"""A little above √2."""
_FINEST, _COARSEST, _FURTHEST = Fraction(1, 1000), 10**6, 1e9
"""Metres of a step, and of a place: so a place lies within 2⁴⁰ steps."""


@dataclass(frozen=True, slots=True, init=False)
class GeoIndistinguishability:
    """ε a metre: P[M(x) ∈ S] ≤ e^(ε·d(x, x′) + extra) · P[M(x′) ∈ S] for all places x, x′ and sets S of reports. `extra` is what
    two places cost however near they are, because they may be rounded to two points of a grid.

    >>> GeoIndistinguishability("0.01") + GeoIndistinguishability("0.02", extra="0.1")
    GeoIndistinguishability(epsilon='0.03', extra='0.1')
    >>> GeoIndistinguishability("0.01", extra="0.1").within(500)
    PureDP(epsilon='5.1')
    """

    epsilon: Fraction
    extra: Fraction

    def __init__(self, epsilon: Exact, *, extra: Exact = 0) -> None:
        set_fields(self, epsilon=exact_nonnegative(epsilon, "epsilon"), extra=exact_nonnegative(extra, "extra"))

    def __add__(self, other: GeoIndistinguishability) -> GeoIndistinguishability:
        if not isinstance(other, GeoIndistinguishability):
            raise NotConvertible(
                f"{self} was not added to {other}",
                why="a rate a metre says nothing of an ε until a diameter is declared",
                instead=f'GeoIndistinguishability("{text_of(self.epsilon)}").within(diameter)',
            )
        return GeoIndistinguishability(self.epsilon + other.epsilon, extra=self.extra + other.extra)

    __radd__ = __add__

    def __mul__(self, times: int) -> GeoIndistinguishability:
        count = whole(times, "times", least=0)
        return GeoIndistinguishability(self.epsilon * count, extra=self.extra * count)

    def __le__(self, other: GeoIndistinguishability) -> bool:
        if not isinstance(other, GeoIndistinguishability):
            return NotImplemented
        return self.epsilon <= other.epsilon and self.extra <= other.extra

    def within(self, diameter: Exact) -> PureDP:
        """The ε of local privacy for someone who is known to be in a region of this declared diameter, in metres."""
        return PureDP(self.epsilon * exact_positive(diameter, "diameter") + self.extra)

    def __repr__(self) -> str:
        extra = f", extra={text_of(self.extra)!r}" if self.extra else ""
        return f"GeoIndistinguishability(epsilon={text_of(self.epsilon)!r}{extra})"

    def __str__(self) -> str:
        return f"ε = {text_of(self.epsilon)} a metre" + (f" and {text_of(self.extra)}" if self.extra else "")


@dataclass(frozen=True, slots=True, init=False)
class PlanarLaplace:
    """Planar Laplace noise on a lattice of `step` metres.

    Guarantee: `guarantee`, ε a metre and √2·ε·step (rounded up): ε a metre between lattice points, and a place is first moved
    to the nearest one, by at most step/√2, so two places d metres apart are told apart with ε(d + √2·step) at most. Theorem:
    Andrés et al. (2013), with a constant normaliser. Proof: P(z | x) ∝ exp(−ε·‖z − x‖) on the whole lattice, so the ratio for
    x and x′ is at most exp(ε(‖z − x′‖ − ‖z − x‖)) ≤ exp(ε‖x − x′‖). The nearest lattice point is that of rational arithmetic,
    so no rounding of floats adds to the √2·step. Clamping to `box` and `remap` are post-processing.

    Error, of a place within `box`: `mean_error` 2/ε metres on average, that of the plane, of which the lattice differs by less
    than a step; and `radius(confidence)`, with the lattice in it. A report of every place of a day costs as many ε: see
    `PermanentReports`.

    >>> mechanism = PlanarLaplace(epsilon="0.02", step=1)
    >>> mechanism.release([[350.0, 120.0]], random=Random.deterministic(1)).shape, mechanism.mean_error
    ((1, 2), 100.0)
    >>> round(mechanism.radius("0.95")), str(mechanism.guarantee)
    (240, 'ε = 0.02 a metre and 0.0282844')
    """

    epsilon: Fraction
    step: Fraction
    box: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]] | None

    def __init__(self, epsilon: Exact, *, step: Exact = 1, box: Any = None) -> None:
        """`box` is ((least x, least y), (greatest x, greatest y)) in metres: reports outside are moved to its edge."""
        rate, grid = exact_positive(epsilon, "epsilon"), exact_positive(step, "step")
        if not _SMALLEST <= rate * grid <= 1 or not _FINEST <= grid <= _COARSEST:
            raise InvalidParameter(
                "step is invalid",
                why="ε·step must lie between 2⁻³⁰ and 1, and the step between a millimetre and 10⁶ metres",
                instead="a step of about a hundredth of 1/ε",
            )
        set_fields(self, epsilon=rate, step=grid, box=None if box is None else checked_box(box))

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """ε a metre, for one report, and what the rounding to the lattice adds."""
        return GeoIndistinguishability(self.epsilon, extra=self.epsilon * self.step * _ROOT_OF_TWO)

    @property
    def mean_error(self) -> float:
        """The mean distance of a report from the place: 2/ε."""
        return float(2 / self.epsilon)

    def radius(self, confidence: Exact = "0.95") -> float:
        """A distance that a report keeps within with this probability at least: u/ε + √2·step with
        (1 + u)·e^(−u) = (1 − confidence)·e^(−√2·ε·step).

        Proof. In steps, with λ = ε·step: a point of the cell around z is at most 1/√2 further from 0 or nearer to it than z, so
        a sum of e^(−λ‖z‖) over ‖z‖ > r is at most e^(λ/√2) times the integral of e^(−λ‖x‖) over ‖x‖ > r − 1/√2, and the sum
        over all z at least e^(−λ/√2) times the whole integral: P(‖z‖ > r) ≤ e^(√2·λ)·(1 + u)·e^(−u) with u = λ(r − 1/√2). The
        place itself is moved by 1/√2 at most. ∎
        """
        lattice = math.sqrt(2) * float(self.step)
        miss = (1 - confidence_level(confidence)) * math.exp(-lattice * float(self.epsilon))
        low, high = 0.0, 2.0
        while (1 + high) * math.exp(-high) > miss:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if (1 + middle) * math.exp(-middle) > miss else (low, middle)
        return high / float(self.epsilon) + lattice

    def sample(self, n: int, *, random: Random | None = None) -> npt.NDArray[np.int64]:
        """`n` draws of the noise alone, in steps.

        >>> PlanarLaplace(1, step=1).sample(5).shape
        (5, 2)
        """
        missing, drawn = check_count(n), source(random)
        rate = self.epsilon * self.step
        parts: list[npt.NDArray[np.int64]] = [np.empty((0, 2), dtype=np.int64)]
        proposal = DiscreteLaplace(scale=1 / (rate * _DIAGONAL))
        while missing > 0:
            count = missing + (missing >> 1) + 8
            pairs = proposal.sample(2 * count, random=drawn).astype(np.int64).reshape(count, 2)
            kept = pairs[_coins(pairs, rate, drawn)][:missing]
            parts.append(kept)
            missing -= len(kept)
        return np.concatenate(parts)

    def release(self, points: Any, *, random: Random | None = None) -> Points:
        """One report for each point, in metres. A place that is reported again needs the report that it had, not a new one."""
        return self._noised(nearest(checked_points(points), self.step), random)

    def _noised(self, exact: npt.NDArray[np.int64], random: Random | None) -> Points:
        """A report for each lattice point."""
        reports = (exact + self.sample(len(exact), random=random)) * float(self.step)
        if self.box is not None:
            (left, bottom), (right, top) = self.box
            reports = np.clip(reports, [float(left), float(bottom)], [float(right), float(top)])
        return np.asarray(reports, dtype=np.float64)

    def remap(self, reports: Any, places: Any, weights: Any = None) -> Points:
        """Each report moved to where somebody who reports so is on average, for a public prior over places: post-processing, at
        no cost (Chatzikokolakis, Elsalamouny & Palamidessi 2017). It lowers the mean squared distance where the prior is right.

        >>> mechanism = PlanarLaplace("0.01")
        >>> mechanism.remap([[90.0, 40.0]], places=[[0.0, 0.0], [0.0, 50.0]]).round().tolist()
        [[0.0, 26.0]]
        """
        seen, known = checked_points(reports), checked_points(places)
        prior = np.ones(len(known)) if weights is None else np.asarray(weights, dtype=np.float64)
        if prior.shape != (len(known),) or not (np.isfinite(prior) & (prior >= 0)).all() or not prior.any():
            raise InvalidParameter(
                "weights is invalid", why="there must be one for each place, none below 0 and one above", instead="weights=[1, 2]"
            )
        known, prior = known[prior > 0], prior[prior > 0]
        distance = np.hypot(*(seen[:, None, axis] - known[None, :, axis] for axis in (0, 1)))
        logarithm = np.log(prior) - float(self.epsilon) * distance
        posterior = np.exp(logarithm - logarithm.max(axis=1, keepdims=True))
        return np.asarray(posterior @ known / posterior.sum(axis=1, keepdims=True))


@dataclass
class PermanentReports:
    """One report for each place, kept for good: who goes home every evening reports one noisy home, not a cloud around it.

    A place is a cell of `size` metres, and what is reported is the noisy middle of the cell: so a report says something about the
    cell alone, and staying within it tells nothing. Guarantee: `guarantee` so far, for every distinct place that was reported ε a
    metre and √2·ε(size + step); it stays with the person and is added to nothing else. Proof: the middles of the cells of two
    places d metres apart are at most d + √2·size apart, since each coordinate is moved by half a cell at most; the rest is
    `PlanarLaplace`. It compares days on which the same reports are equal: which reports are equal shows which places are.

    >>> phone = PermanentReports(PlanarLaplace("0.01"), size=200)
    >>> home = phone.report(1010.0, 730.0)
    >>> phone.report(1040.0, 700.0) == home, phone.report(5000.0, 5000.0) == home, phone.guarantee.epsilon
    (True, False, Fraction(1, 50))
    """

    mechanism: PlanarLaplace
    size: Exact
    kept: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """The memory, by cell. It belongs to one mechanism and one size, and to the person: it tells where they were. Store it before
    a report leaves the phone: a report that is drawn again is one more."""

    def __post_init__(self) -> None:
        self._size = exact_positive(self.size, "size")
        if self._size > _COARSEST:
            raise InvalidParameter("size is invalid", why="a cell is at most 10⁶ metres wide", instead="size=200")

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What all reports so far add up to."""
        one = self.mechanism.guarantee
        cell = GeoIndistinguishability(0, extra=one.epsilon * self._size * _ROOT_OF_TWO)
        return (one + cell) * len(self.kept)

    def report(self, x: float, y: float, *, random: Random | None = None) -> tuple[float, float]:
        """The report of a place: a new one where it was never reported."""
        ((east, north),) = checked_points([[x, y]])
        cell = (math.floor(Fraction(float(east)) / self._size), math.floor(Fraction(float(north)) / self._size))
        if cell not in self.kept:
            half, step = Fraction(1, 2), self.mechanism.step
            middle = [math.floor((index + half) * self._size / step + half) for index in cell]
            ((found_x, found_y),) = self.mechanism._noised(np.array([middle], dtype=np.int64), random).tolist()
            return self.kept.setdefault(cell, (found_x, found_y))  # of two threads, both report what the first one drew
        return self.kept[cell]


def _coins(pairs: npt.NDArray[np.int64], rate: Fraction, random: Random) -> npt.NDArray[np.bool_]:
    """For each pair (i, j): True with probability exactly exp(−(rate·√(i² + j²) − rate·408/577·(|i| + |j|))).

    The float of the exponent is right to (rate·√(i² + j²))·2⁻⁵⁰: four roundings of numbers of that size. `exp` adds 2⁻⁵⁰,
    the word's conversion and unseen bits less. What is nearer than `_SLACK` times the size, or than `_SLACK`, is left to
    the bounds.
    """
    words = random.words(len(pairs))
    sizes = np.abs(pairs).astype(np.float64)
    far = float(rate) * np.hypot(sizes[:, 0], sizes[:, 1])
    exponent = far - float(rate * _DIAGONAL) * sizes.sum(axis=1)
    gap = np.exp(-np.maximum(exponent, 0.0)) - words.astype(np.float64) * 2.0**-64
    kept = gap > 0
    for i in np.flatnonzero(np.abs(gap) <= _SLACK * (1 + far)).tolist():
        kept[i] = lies_below(int(words[i]), 64, _kept_enclosure(int(pairs[i, 0]), int(pairs[i, 1]), rate), random)
    return np.asarray(kept)


def _kept_enclosure(i: int, j: int, rate: Fraction) -> Enclosure:
    """The probability that (i, j) is kept, between integers: the root between two multiples of 2^−k, k so large that the
    bounds of the exponential are no further apart than its own.
    """
    square, diagonal = i * i + j * j, rate * _DIAGONAL * (abs(i) + abs(j))

    def enclose(bits: int) -> tuple[int, int]:
        if not square:
            return 1 << bits, 1 << bits
        places = bits + 8
        root = math.isqrt(square << 2 * places)
        nearest = max(rate * Fraction(root, 1 << places) - diagonal, Fraction(0))
        furthest = rate * Fraction(root + 1, 1 << places) - diagonal
        return exp_below(furthest, bits), min(exp_below(nearest, bits) + 2, 1 << bits)

    return enclose


def nearest(places: Points, step: Fraction) -> npt.NDArray[np.int64]:
    """The lattice point nearest to each place, in steps, by rational arithmetic where floats do not decide it: within 2⁴⁰ steps
    a quotient is off by less than 2⁻¹².

    >>> nearest(np.array([[0.0, 7.6]]), Fraction(5)).tolist()
    [[0, 2]]
    """
    quotient = places / float(step)
    found = np.rint(quotient).astype(np.int64)
    for place in zip(*np.nonzero(np.abs(np.abs(quotient - found) - 0.5) < 2.0**-10), strict=True):
        found[place] = math.floor(Fraction(float(places[place])) / step + Fraction(1, 2))
    return found


def checked_points(points: Any) -> Points:
    """Rows of two finite numbers, in metres.

    >>> checked_points([[350, 120]]).tolist()
    [[350.0, 120.0]]
    """
    try:
        given = np.asanyarray(points)  # what is masked is missing, and dates are no metres
        found: Points = np.ma.filled(given.astype(np.float64), np.nan) if given.dtype.kind in "biufO" else np.empty(0)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all() or (np.abs(found) > _FURTHEST).any():
        raise InvalidParameter(
            "points is invalid", why="it must be rows of two finite numbers, in metres", instead="[[350.0, 120.0]]"
        )
    return found


def checked_box(box: Any) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    """The lower left and the upper right corner of a region, as exact numbers.

    >>> checked_box(((0, 0), ("0.5", 1)))[1][0]
    Fraction(1, 2)
    """
    try:
        (left, bottom), (right, top) = box
        found = ((Fraction(str(left)), Fraction(str(bottom))), (Fraction(str(right)), Fraction(str(top))))
    except (TypeError, ValueError):
        found = ((Fraction(0), Fraction(0)), (Fraction(0), Fraction(0)))
    if not (found[0][0] < found[1][0] and found[0][1] < found[1][1]):
        raise InvalidParameter(
            "box is invalid", why="it must be the lower left and the upper right corner", instead="box=((0, 0), (5000, 5000))"
        )
    return found
