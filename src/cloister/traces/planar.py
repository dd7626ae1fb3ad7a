"""Geo-indistinguishability: one place is hidden among the places near it, on the phone itself.

The guarantee is a rate, ε a metre: two places d metres apart are told apart with εd at most (Andrés, Bordenabe,
Chatzikokolakis & Palamidessi 2013). It is no differential privacy until a diameter is declared, and adds up with its own
kind alone.

Noise is drawn on the whole infinite lattice, P(z) ∝ exp(−ε·step·‖z‖) for z in ℤ², and added to the lattice point nearest to the
place. Its normaliser is the same wherever the place is. A law that is cut off at the edge of a region and scaled up again has a
normaliser of its own for every place, and costs up to 2ε; so what lies outside is clamped *after* the draw.

Proof that the draws have this law. Coordinates i, j are proposed as independent discrete Laplace numbers of rate λ =
ε·step·408/577, and kept with probability exp(−(ε·step·√(i² + j²) − λ(|i| + |j|))): the product is proportional to
exp(−ε·step·√(i² + j²)). The exponent is not negative, since |i| + |j| ≤ √2·√(i² + j²) and 408/577 < 1/√2. The coin is
decided in floating point where that is certain, and by integer bounds of the irrational exponent where it is not. More than
three proposals of four are kept. ∎
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
from cloister.privacy.guarantee import PureDP
from cloister.privacy.rational import Exact, exact_nonnegative, exact_positive, text_of

Points = npt.NDArray[np.float64]

_DIAGONAL = Fraction(408, 577)
_SLACK = 2.0**-44
_SMALLEST = Fraction(1, 2**30)


@dataclass(frozen=True, slots=True, init=False)
class GeoIndistinguishability:
    """ε a metre: P[M(x) ∈ S] ≤ e^(ε·d(x, x′)) · P[M(x′) ∈ S] for all places x, x′ and sets S of reports.

    >>> GeoIndistinguishability("0.01") + GeoIndistinguishability("0.02")
    GeoIndistinguishability(epsilon='0.03')
    >>> GeoIndistinguishability("0.01").within(500)
    PureDP(epsilon='5')
    """

    epsilon: Fraction

    def __init__(self, epsilon: Exact) -> None:
        set_fields(self, epsilon=exact_nonnegative(epsilon, "epsilon"))

    def __add__(self, other: GeoIndistinguishability) -> GeoIndistinguishability:
        if not isinstance(other, GeoIndistinguishability):
            raise NotConvertible(
                f"{self} was not added to {other}",
                why="a rate a metre says nothing of an ε until a diameter is declared",
                instead=f'GeoIndistinguishability("{text_of(self.epsilon)}").within(diameter)',
            )
        return GeoIndistinguishability(self.epsilon + other.epsilon)

    __radd__ = __add__

    def __mul__(self, times: int) -> GeoIndistinguishability:
        return GeoIndistinguishability(self.epsilon * whole(times, "times", least=0))

    def __le__(self, other: GeoIndistinguishability) -> bool:
        return self.epsilon <= other.epsilon if isinstance(other, GeoIndistinguishability) else NotImplemented

    def within(self, diameter: Exact) -> PureDP:
        """The ε of local privacy for someone who is known to be in a region of this declared diameter, in metres."""
        return PureDP(self.epsilon * exact_positive(diameter, "diameter"))

    def __repr__(self) -> str:
        return f"GeoIndistinguishability(epsilon={text_of(self.epsilon)!r})"

    def __str__(self) -> str:
        return f"ε = {text_of(self.epsilon)} a metre"


@dataclass(frozen=True, slots=True, init=False)
class PlanarLaplace:
    """Planar Laplace noise on a lattice of `step` metres.

    Guarantee: `guarantee`, ε a metre between lattice points; a place is first moved to the nearest one, by at most step/√2, so
    two places d metres apart are told apart with ε(d + √2·step) at most. Theorem: Andrés et al. (2013), with a
    constant normaliser. Proof: P(z | x) ∝ exp(−ε·‖z − x‖) on the whole lattice, so the ratio for x and x′ is at most
    exp(ε(‖z − x′‖ − ‖z − x‖)) ≤ exp(ε‖x − x′‖); clamping to `box` and `remap` are post-processing.

    Error: `mean_error` 2/ε metres on average, and `radius(confidence)`, those of the plane, of which a lattice with small steps
    differs by less than a step. A report of every place of a day costs as many ε: see `PermanentReports`.

    >>> mechanism = PlanarLaplace(epsilon="0.02", step=1)
    >>> mechanism.release([[350.0, 120.0]], random=Random.deterministic(1)).shape, mechanism.mean_error
    ((1, 2), 100.0)
    >>> round(mechanism.radius("0.95"))
    237
    """

    epsilon: Fraction
    step: Fraction
    box: tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]] | None

    def __init__(self, epsilon: Exact, *, step: Exact = 1, box: Any = None) -> None:
        """`box` is ((least x, least y), (greatest x, greatest y)) in metres: reports outside are moved to its edge."""
        rate, grid = exact_positive(epsilon, "epsilon"), exact_positive(step, "step")
        if not _SMALLEST <= rate * grid <= 64:
            raise InvalidParameter(
                "step is invalid", why="ε·step must lie between 2⁻³⁰ and 64", instead="a step of about a hundredth of 1/ε"
            )
        set_fields(self, epsilon=rate, step=grid, box=None if box is None else _box(box))

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """ε a metre, for one report."""
        return GeoIndistinguishability(self.epsilon)

    @property
    def mean_error(self) -> float:
        """The mean distance of a report from the place: 2/ε."""
        return float(2 / self.epsilon)

    def radius(self, confidence: Exact = "0.95") -> float:
        """The distance that a report keeps within with this probability: r with 1 − (1 + εr)·e^(−εr) = confidence."""
        wanted = confidence_level(confidence)
        low, high = 0.0, 2.0
        while 1 - (1 + high) * math.exp(-high) < wanted:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if 1 - (1 + middle) * math.exp(-middle) < wanted else (low, middle)
        return high / float(self.epsilon)

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
        places = _points(points)
        exact = np.rint(places / float(self.step)).astype(np.int64)
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
        seen, known = _points(reports), _points(places)
        prior = np.ones(len(known)) if weights is None else np.asarray(weights, dtype=np.float64)
        if prior.shape != (len(known),) or not (prior >= 0).all() or not prior.sum() > 0:
            raise InvalidParameter(
                "weights is invalid", why="there must be one for each place, none below 0 and one above", instead="weights=[1, 2]"
            )
        distance = np.hypot(*(seen[:, None, axis] - known[None, :, axis] for axis in (0, 1)))
        exponent = -float(self.epsilon) * (distance - distance.min(axis=1, keepdims=True))
        posterior = prior * np.exp(exponent)
        return np.asarray(posterior @ known / posterior.sum(axis=1, keepdims=True))


@dataclass
class PermanentReports:
    """One report for each place, kept for good: who goes home every evening reports one noisy home, not a cloud around it.

    A place is a cell of `size` metres, and what is reported is the noisy middle of the cell: so a report tells of the cell
    alone, and staying within it tells nothing. Guarantee: `guarantee` so far, ε a metre for every distinct place that was
    reported; it stays with the person and is added to nothing else. Which reports are equal shows which places are.

    >>> phone = PermanentReports(PlanarLaplace("0.01"), size=200)
    >>> home = phone.report(1010.0, 730.0)
    >>> phone.report(1040.0, 700.0) == home, phone.report(5000.0, 5000.0) == home, phone.guarantee
    (True, False, GeoIndistinguishability(epsilon='0.02'))
    """

    mechanism: PlanarLaplace
    size: float
    kept: dict[tuple[int, int], tuple[float, float]] = field(default_factory=dict)
    """The memory, by cell. It belongs to the person: it tells where they were."""

    def __post_init__(self) -> None:
        exact_positive(self.size, "size")

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What all reports so far add up to."""
        return self.mechanism.guarantee * len(self.kept)

    def report(self, x: float, y: float, *, random: Random | None = None) -> tuple[float, float]:
        """The report of a place: a new one where it was never reported."""
        ((east, north),) = _points([[x, y]])
        cell = (math.floor(east / self.size), math.floor(north / self.size))
        if cell not in self.kept:
            middle = [[(cell[0] + 0.5) * self.size, (cell[1] + 0.5) * self.size]]
            ((found_x, found_y),) = self.mechanism.release(middle, random=random).tolist()
            self.kept[cell] = (found_x, found_y)
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


def _points(points: Any) -> Points:
    try:
        found = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 2 or found.shape[1] != 2 or not np.isfinite(found).all() or (np.abs(found) > 1e9).any():
        raise InvalidParameter(
            "points is invalid", why="it must be rows of two finite numbers, in metres", instead="[[350.0, 120.0]]"
        )
    return found


def _box(box: Any) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction]]:
    try:
        (left, bottom), (right, top) = box
        found = (
            (Fraction(str(left)), Fraction(str(bottom))),
            (Fraction(str(right)), Fraction(str(top))),
        )
    except (TypeError, ValueError):
        found = ((Fraction(0), Fraction(0)), (Fraction(0), Fraction(0)))
    if not (found[0][0] < found[1][0] and found[0][1] < found[1][1]):
        raise InvalidParameter(
            "box is invalid", why="it must be the lower left and the upper right corner", instead="box=((0, 0), (5000, 5000))"
        )
    return found
