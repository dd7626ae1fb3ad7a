"""How people's numbers are spread, from reports: expectation–maximisation, and what is read of it with margins."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.local.frequency.estimates import Estimate, Number, Spread, half_width
from cloister.local.numbers.functionals import Channel
from cloister.local.numbers.interval import Floats
from cloister.noise import Random
from cloister.noise.mechanism import check_confidence
from cloister.privacy.rational import Exact, exact

_MOST_ROUNDS = 2000
_KNOTS = 129
_CLOSE = 1e-6
"""How much the noise of a mean counts beside its error: next to nothing, since a mean is followed to the end."""
_SURELY = Fraction(999_999_998, 1_000_000_000)
"""The confidence of six deviations."""
_REPLICAS = 40
_BEHIND = 0.1
_DRAWN = 1 << 16

Map = Callable[[Floats], Floats]


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The estimated shares of people at the points of a grid.

    The estimate is the fixed point of expectation–maximisation with the smoothing (1, 2, 1)/4 after each round (Li et al. 2020):
    the most likely shares, kept from following the noise. It uses reports and public facts only: post-processing.

    Margins don't come from the estimate, which leans towards smoothness: they are what the reports say of a bin, a mean or a
    quantile by linear functionals (`functionals`), whatever people's numbers are, and chance (`half_width`). What can't be told
    apart is in them: of a bin of few people, or one that is narrower than the noise, little is known, and the margin says so.
    Only the mean direction on a circle has the margin of a parametric bootstrap: 40 sets of reports, made from the estimate with
    a fixed seed (there is nothing to protect in them), are read in the same way; their variance counts, and twice their bias,
    since the estimate has been smoothed once and has less to lose by it than the truth had. Where only the mean or the variance
    is asked, `mean` and `spread` of the mechanism are unbiased.

    >>> from cloister.local import SquareWave
    >>> mechanism = SquareWave(0, 100, epsilon=2)
    >>> ages = [20, 30, 40, 50] * 5000
    >>> shape = mechanism.distribution(mechanism.randomize(ages, random=Random.deterministic(1)))
    >>> median = shape.quantile("0.5")
    >>> 30 < median.value < 40, 0 < median.margin(0.95) < 8
    (True, True)
    """

    points: Floats
    shares: Floats
    n: int
    circular: bool
    forward: Map
    back: Map
    epsilon: float
    reports: npt.NDArray[np.int64]
    """How many there are of each cell."""
    hidden: float = 0.0
    """How far beyond the first and the last point people may be who are shown there. Margins of numbers hold that."""
    left_out: float = 0.0
    """The share of people who were not asked for this number, by lot."""

    @classmethod
    def fit(
        cls,
        counts: npt.NDArray[np.int64],
        *,
        points: Floats,
        forward: Map,
        back: Map,
        epsilon: float,
        circular: bool = False,
        left_out: float = 0.0,
    ) -> Distribution:
        """The distribution of which a histogram of reports is most likely."""
        rows = counts.astype(np.float64)[None, :]
        shares = maximise(rows, forward, back, len(points), epsilon=epsilon, circular=circular)[0]
        n = int(counts.sum())
        return cls(
            points=points,
            shares=shares,
            n=n,
            circular=circular,
            forward=forward,
            back=back,
            epsilon=epsilon,
            reports=counts,
            left_out=left_out,
        )

    @property
    def mean(self) -> Number:
        """The mean; on a circle the mean direction."""
        if self.circular:
            return self._direction
        found = self._close(float(self.shares @ self.points), self.points)
        return replace(found, bias=found.bias + self.hidden)

    @property
    def variance(self) -> Number:
        """The variance of people's numbers."""
        self._on_a_line("variance")
        mean = float(self.shares @ self.points)
        squares = (self.points - mean) ** 2
        found = self._close(float(self.shares @ squares), squares, coarse=(self.points[1] - self.points[0]) ** 2 / 4)
        spread = Spread(
            value=found.value,
            variance=found.variance,
            n=self.n,
            part=found.part,
            bias=found.bias,
            mean=self._close(mean, self.points),
            most=float(self.points[-1] - self.points[0]) ** 2 / 4,
        )
        return taken_off(spread, self.hidden)

    def quantile(self, q: Exact) -> Number:
        """The number that the share `q` of people lie below."""
        self._on_a_line("quantile")
        share = float(exact(q, "q"))
        if not 0 <= share <= 1:
            raise InvalidParameter(f"q={q} is invalid", why="it is a share of people", instead='quantile("0.5"), the median')

        knots = np.linspace(self._edges[0], self._edges[-1], _KNOTS)
        slope, ridge = self._finest
        above, below = (
            self._channel.read(np.stack([self._ramp(-np.inf, knot, slope * side) for knot in knots]), ridge) for side in (1, -1)
        )
        return Quantile(
            value=float(np.interp(share, self._below(self.shares), self._edges)),
            variance=0.0,
            n=self.n,
            share=share,
            knots=knots,
            least=below.low,
            most=above.high,
            chance=np.maximum(above.variance, below.variance),
            step=max(above.part, below.part),
            hidden=self.hidden,
        )

    def histogram(self, bins: int | Sequence[float] = 10) -> Estimate:
        """How many people lie in each bin: `bins` of equal width, or their edges. People who are `hidden` beyond the first or the
        last point are in the first and in the last bin, which can't be parted there."""
        edges = np.linspace(self._edges[0], self._edges[-1], bins + 1) if isinstance(bins, int) else np.asarray(bins, dtype=float)
        if len(edges) < 2 or not bool((np.diff(edges) > 0).all()):
            raise InvalidParameter(
                "bins= is invalid",
                why="they are a number from 1 on, or edges that increase",
                instead="bins=10, or bins=[0, 1, 5]",
            )

        if self.hidden:
            edges = self._beyond(edges)

        counts = self.n * np.diff(np.interp(edges, self._edges, self._below(self.shares)))
        slope, ridge = self._finest
        pairs = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
        above, below = (
            self._channel.read(np.stack([self._ramp(*each, slope * side) for each in pairs]), ridge) for side in (1, -1)
        )
        return Estimate(
            counts=counts,
            n=self.n,
            variances=self.n**2 * np.maximum(above.variance, below.variance),
            values=tuple(pairs),
            raw=counts,
            part=self.n * max(above.part, below.part),
            bias=np.maximum(np.maximum(self.n * above.high - counts, counts - self.n * below.low), 0.0),
        )

    @cached_property
    def _channel(self) -> Channel:
        return Channel(
            forward=self.forward,
            back=self.back,
            points=len(self.points),
            reports=self.reports.astype(np.float64),
            left_out=self.left_out,
        )

    @cached_property
    def _finest(self) -> tuple[float, float]:
        """How steep the functions are that stand for a bin, and how closely they are followed: by one half of all."""
        first, last = self._edges[0], self._edges[-1]
        start, middle = (first + (last - first) / 4 if self.circular else -np.inf), (first + last) / 2
        return self._channel.finest(lambda slope: np.stack([self._ramp(start, middle, slope * side) for side in (1, -1)]))

    def _ramp(self, low: float, high: float, slope: float) -> Floats:
        """At each point, 1 within `low` to `high` and 0 elsewhere, with a slope (a share of the interval) on the outer side of
        each end, or on the inner one, where it is below 0: nowhere below, or nowhere above, the bin. A step of the grid is left
        between, since that is how far a coin may move a number."""
        first, last = self._edges[0], self._edges[-1]
        if self.circular:
            turn = last - first
            away = (self.points - (low + high) / 2 + turn / 2) % turn - turn / 2
            beyond = np.abs(away) - (high - low) / 2
        else:
            low, high = (-np.inf if low <= first else low), (np.inf if high >= last else high)
            beyond = np.maximum(low - self.points, self.points - high)
        step, wide = self.points[1] - self.points[0], abs(slope) * (last - first)
        outer = 1 - (beyond - step) / wide if slope > 0 else -(beyond + step) / wide
        return np.asarray(np.clip(outer, 0.0, 1.0), dtype=np.float64)

    def _close(self, value: float, numbers: Floats, *, coarse: float = 0.0) -> Number:
        """The mean of these numbers of the points, read as `value`, with its margin."""
        read = self._channel.read(numbers[None, :], _CLOSE)
        bias = max(float(read.high[0]) - value, value - float(read.low[0]), 0.0) + coarse
        return Number(value=value, variance=float(read.variance[0]), n=self.n, part=read.part, bias=bias)

    def _beyond(self, edges: Floats) -> Floats:
        """The edges of a histogram, the first and the last of them where the people are who are shown at the ends."""
        first, last = self._edges[0], self._edges[-1]
        low, high = first - self.hidden, last + self.hidden
        found = edges.copy()
        found[0], found[-1] = low if found[0] == first else found[0], high if found[-1] == last else found[-1]
        if bool((((low < found) & (found <= first)) | ((last <= found) & (found < high))).any()):
            raise InvalidParameter(
                "bins= is invalid",
                why=f"below {first:g} and above {last:g} people are not told apart",
                instead=f"bins=[{low:g}, {(low + high) / 2:g}, {high:g}]",
            )
        return found

    @cached_property
    def _edges(self) -> Floats:
        """Where the people of one point end and those of the next begin: half-way, and the ends of the interval."""
        if self.circular:
            return np.append(self.points, 2 * self.points[-1] - self.points[-2])
        return np.concatenate([self.points[:1], (self.points[:-1] + self.points[1:]) / 2, self.points[-1:]])

    def _below(self, shares: Floats) -> Floats:
        return np.concatenate([np.zeros((*shares.shape[:-1], 1)), np.cumsum(shares, axis=-1)], axis=-1)

    @property
    def _direction(self) -> Direction:
        turn = float(self._edges[-1] - self._edges[0])
        places = np.exp(2j * np.pi * (self.points - self.points[0]) / turn)
        mean = complex(self.shares @ places)
        length = abs(mean)
        away = (self._replicas @ places - mean) * (mean.conjugate() / length if length else 1.0)
        across, along = float(_doubt(away.imag)), float(_doubt(away.real))
        return Direction(
            value=float(self.points[0] + np.angle(mean) / (2 * np.pi) % 1.0 * turn),
            variance=across * (turn / (2 * math.pi * length)) ** 2 if length else math.inf,
            n=self.n,
            length=length,
            across=across,
            along=along,
            span=turn,
        )

    def _on_a_line(self, what: str) -> None:
        if self.circular:
            raise InvalidParameter(
                f"No {what} was read", why="a circle has no first and no last place", instead=".mean, .histogram()"
            )

    @cached_property
    def _replicas(self) -> Floats:
        cells = self.forward(self.shares)
        counts = _redrawn(np.maximum(cells, 0.0) / cells.sum(), self.n)
        size = len(self.points)
        return maximise(counts, self.forward, self.back, size, epsilon=self.epsilon, circular=self.circular)


@dataclass(frozen=True, kw_only=True)
class Quantile(Number):
    """An estimated quantile. Its interval holds all numbers below which, as far as the reports say, its share of people may lie:
    at each knot that share is from `least` to `most`, but for chance."""

    share: float
    knots: Floats = field(compare=False)
    least: Floats = field(compare=False)
    most: Floats = field(compare=False)
    chance: Floats = field(compare=False)
    """The variance of either."""
    step: float
    """By how much one report moves either at the most."""
    hidden: float

    def margin(self, confidence: Exact = 0.95) -> float:
        """The half-width of its interval: to the farther end."""
        wide = half_width(confidence, self.chance, part=self.step)
        last = len(self.knots) - 1
        low = int(np.flatnonzero(np.append(self.most + wide >= self.share, True))[0]) - 1
        high = int(np.flatnonzero(np.append(True, self.least - wide <= self.share))[-1])
        ends = self.knots[max(low, 0)], self.knots[min(high, last)]
        beyond = self.hidden if low <= 0 or high >= last else 0.0
        return float(max(self.value - ends[0], ends[1] - self.value, 0.0)) + beyond


@dataclass(frozen=True, kw_only=True)
class Direction(Number):
    """An estimated mean direction: that of a mean vector, of which both parts are noisy.

    Let a be the part of the estimated vector v across the true direction, and b the part along it. Where |a| ≤ w and b > 0, the
    true direction is within arcsin(w/‖v‖) of the estimated one (Fieller 1954). a is beyond w in nine tenths of what may be
    missed. In a tenth of it the noise along is so large that b could be below 0 though ‖v‖² > w² + u²; of shorter vectors
    nothing is known, and the margin is half of the circle.

    >>> tell = lambda length: Direction(value=0.0, variance=1.0, n=100, length=length, across=0.01, along=0.01, span=24.0)
    >>> [round(tell(length).margin(0.95), 2) for length in (0.3, 0.35, 0.7, 7.0)]
    [12.0, 2.33, 1.11, 0.11]
    """

    length: float
    """Of the estimated vector, where 1 is that of people who are all in one place."""
    across: float
    along: float
    """The variances of its two parts."""
    span: float
    """The whole circle."""

    def margin(self, confidence: Exact = 0.95) -> float:
        """The half-width of its interval; half of the circle where there may be no direction."""
        miss = 1 - float(check_confidence(confidence))
        wide = float(half_width(1 - miss * (1 - _BEHIND), np.asarray(self.across), part=self.part))
        back = float(half_width(1 - 2 * miss * _BEHIND, np.asarray(self.along), part=self.part))
        if self.length <= math.hypot(wide, back):
            return self.span / 2
        return self.span * math.asin(wide / self.length) / (2 * math.pi)


def taken_off(variance: Number, hidden: float) -> Number:
    """A variance of numbers each of which was moved inwards by at most `hidden`: the true deviation is at most that much larger,
    and no smaller, since moving into an interval brings no two numbers further apart.

    >>> round(taken_off(Number(value=4.0, variance=0.0, n=1), 0.5).bias, 2)
    2.25
    """
    most = variance.most if isinstance(variance, Spread) else math.inf
    deviation = math.sqrt(max(min(variance.value + variance.margin(_SURELY), most), 0.0))
    return replace(variance, bias=hidden * (2 * deviation + hidden))


def _doubt(away: Floats) -> Floats:
    """Of how far the replicas are away: their variance, and the square of twice their bias."""
    return np.asarray(away.var(axis=0) + (2 * away.mean(axis=0)) ** 2, dtype=np.float64)


def maximise(counts: Floats, forward: Map, back: Map, size: int, *, epsilon: float, circular: bool = False) -> Floats:
    """Smoothed expectation–maximisation for each row of counts, from equal shares. A row is ready where a round adds less than
    e^ε/1000 to its log-likelihood, or after 2000 rounds.

    >>> same = lambda x: x
    >>> maximise(np.array([[0.0, 0.0, 9.0, 0.0]]), same, same, 4, epsilon=1.0).round(2).tolist()
    [[0.0, 0.25, 0.5, 0.25]]
    """
    out = np.full((len(counts), size), 1.0 / size)
    n = counts.sum(axis=-1, keepdims=True)
    enough, best = 1e-3 * math.exp(min(epsilon, 20.0)), np.full(len(counts), -np.inf)
    left = np.arange(len(counts))
    for _ in range(_MOST_ROUNDS):
        cells = np.maximum(forward(out[left]), 1e-300)
        likelihood = (counts[left] * np.log(cells)).sum(axis=-1)
        better = likelihood - best[left] >= enough
        best[left] = likelihood
        left, cells = left[better], cells[better]
        if not left.size:
            break
        raised = np.maximum(out[left] * back(counts[left] / cells) / n[left], 0.0)
        out[left] = _smoothed(raised, circular)
    return out


def _smoothed(shares: Floats, circular: bool) -> Floats:
    """(1, 2, 1)/4; at an end of the interval, what would leave it stays."""
    left, right = np.roll(shares, 1, axis=-1), np.roll(shares, -1, axis=-1)
    if not circular:
        left[..., 0], right[..., -1] = shares[..., 0], shares[..., -1]
    return np.asarray((left + 2 * shares + right) / 4, dtype=np.float64)


def _redrawn(cells: Floats, n: int) -> Floats:
    """Histograms of n reports with these probabilities: drawn one by one for few, by the normal law for many (of the same means
    and covariances: n·(diag(p) − ppᵀ))."""
    random = Random.deterministic(1)
    out = np.empty((_REPLICAS, len(cells)))
    below = np.cumsum(cells)
    for row in out:
        if n <= _DRAWN:
            places = np.searchsorted(below, _uniform(n, random) * below[-1], side="right")
            row[:] = np.bincount(np.minimum(places, len(cells) - 1), minlength=len(cells))
            continue
        angles, radii = _uniform(len(cells), random), np.sqrt(-2 * np.log(_uniform(len(cells), random)))
        noise = np.sqrt(n * cells) * radii * np.cos(2 * np.pi * angles)
        row[:] = np.maximum(n * cells + noise - cells * noise.sum(), 0.0)
    return out


def _uniform(n: int, random: Random) -> Floats:
    return np.asarray(((random.words(n) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53, dtype=np.float64)
