"""Variances, covariances, correlations and regression lines from noisy moments, with margins from noisy values alone.

Everything is worked out in p = (x − low)/W in [0, 1]. Let n, μ = Σp/n and so on be the noisy numbers, n*, μ*, … the true
ones, and a, b, c, s, u the noises in Σ(p − μ*), Σ(q − ν*), Σ(p − μ*)(q − ν*), Σ(p − μ*)², Σ(q − ν*)²: linear in the noises of
the raws, with weights that the rows fix. Since n·(μ − μ*) = a and n·(ν − ν*) = b, moving the centres from the true to the noisy
means takes ab/n off the noisy centred sum C, and these are identities, with the noisy n:

    Σ*(p − μ*)(q − ν*) = C − c + ab/n
    covariance* − C/d  = (−c + (C/d)·e + ab/n)/d*  d = n or n − 1, and e the noise in the count
    C − βS             = (c − βs) − a(b − βa)/n    for the true slope β = C*/S*, where S is C with p for q

The first order is a weighted sum of noises, whose half-width is known; what is left out is bounded by products of radii
(`linearised.py`). Slopes, intercepts and correlations have Fieller's interval: all values for which the last line, or its like,
can hold, however far S is from sure. Where the count is not at least twice the radius of its noise, and where the result could
be anything within its range anyway, the margin is the longer way to an end of the range.

What this neglects: the half-widths are those of the noises about the noisy means, not about the true ones. By the triangle
inequality of standard deviations they differ by the deviation of ab/n or so, for which the products of radii, each at a higher
confidence, leave more than enough. The tests of coverage run from 1 to 100,000 rows a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from cloister.session.planning.moments import Moments, centred
from cloister.session.releases.formulas import Formula, Reading, fieller, mean_of
from cloister.session.releases.frames import Kind, Series
from cloister.session.releases.linearised import Certainty, Floats, Linearised, Weights, fieller_ends
from cloister.session.releases.uncertainty import half_widths

Part: TypeAlias = Literal[
    "mean", "variance", "deviation", "covariance", "correlation", "r2", "slope", "intercept", "sxx", "syy", "sxy", "avgx", "avgy"
]


@dataclass(frozen=True, kw_only=True)
class Moment(Formula):
    """One number made of the moments of one column, or of two."""

    kind: Kind = "real"
    moments: Moments
    part: Part
    lows: tuple[float, ...]
    """The lower bounds of the columns, as values."""
    widths: tuple[float, ...]
    """The widths of their ranges, as values."""
    sample: bool = True
    tops: tuple[float, ...] = (1.0, 1.0)
    """The largest share that the bounds of each column allow: 0 for a column of one value, whose width is taken as one step."""

    @property
    def raws(self) -> tuple[str, ...]:
        """All raws of the block."""
        return tuple(self.moments.raw(place) for place in self.moments.places)

    @property
    def bounds(self) -> tuple[float, float]:
        """By declaration: the column's own bounds for a mean, [−1, 1] for a correlation, nothing below 0 for squares."""
        if self.part in ("mean", "avgx", "avgy"):
            side = 1 if self.part == "avgy" else 0
            return self.lows[side], self.lows[side] + self.widths[side] * self.tops[side]
        if self.part == "correlation":
            return -1.0, 1.0
        if self.part == "r2":
            return 0.0, 1.0
        return (0.0 if self.part in ("variance", "deviation", "sxx", "syy") else -np.inf), np.inf

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column, within what is possible."""
        return Series("real", self.linearised(readings, self._certainty(readings, 0.95)).value)

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The half-width of the interval of each cell; Fieller's for a mean."""
        certainty = self._certainty(readings, confidence)
        if self.part in ("mean", "avgx", "avgy"):
            return self._fieller(_Noisy(self.moments, readings, certainty), 1 if self.part == "avgy" else 0, confidence)
        shown = self.series(readings).values
        if self.part == "deviation":
            return self._of_root(readings, certainty, shown)
        if self.part in ("slope", "intercept", "correlation", "r2"):
            low, high = self._ends(_Noisy(self.moments, readings, certainty))
            return np.maximum(shown - low, high - shown)
        return certainty.margin_about(self.linearised(readings, certainty), shown)

    def linearised(self, readings: Mapping[str, Reading], certainty: Certainty) -> Linearised:
        """The number with the noises that lie in it."""
        noisy = _Noisy(self.moments, readings, certainty)
        if self.part in ("mean", "avgx", "avgy"):
            side = 1 if self.part == "avgy" else 0
            return _times(noisy.mean(side, self.tops[side]), self.widths[side], self.lows[side])
        if self.part in ("variance", "deviation"):
            squared = _times(noisy.covariance(0, 0, 1 if self.sample else 0), self.widths[0] ** 2)
            return _root(squared, certainty) if self.part == "deviation" else squared
        if self.part == "covariance":
            return _times(noisy.covariance(0, 1, 1 if self.sample else 0), self.widths[0] * self.widths[1])
        if self.part in ("sxx", "syy", "sxy"):
            one, other = {"sxx": (0, 0), "syy": (1, 1), "sxy": (0, 1)}[self.part]
            return _times(noisy.centred_sum(one, other), self.widths[one] * self.widths[other])
        if self.part in ("correlation", "r2"):
            found = noisy.correlation()
            return _squared(found, certainty) if self.part == "r2" else found
        slope = noisy.slope()
        if self.part == "slope":
            return _times(slope, self.widths[1] / self.widths[0])
        return _times(noisy.height(slope, -self.lows[0] / self.widths[0]), self.widths[1], self.lows[1])

    def _certainty(self, readings: Mapping[str, Reading], confidence: float) -> Certainty:
        return Certainty({name: readings[name].terms for name in self.raws}, confidence)

    def _of_root(self, readings: Mapping[str, Reading], certainty: Certainty, shown: Floats) -> Floats:
        """The longer arm of the interval that √ makes of the interval of the variance."""
        inner = _times(_Noisy(self.moments, readings, certainty).covariance(0, 0, 1 if self.sample else 0), self.widths[0] ** 2)
        margin = certainty.margin(inner)
        low, high = np.sqrt(np.maximum(inner.value - margin, 0.0)), np.sqrt(inner.value + margin)
        return np.maximum(shown - low, high - shown)

    def _ends(self, noisy: _Noisy) -> tuple[Floats, Floats]:
        """Fieller's interval of a number of the line."""
        if self.part in ("correlation", "r2"):
            low, high = noisy.ends_of_correlation()
            if self.part == "correlation":
                return low, high
            across = (low < 0) & (high > 0)
            return np.where(across, 0.0, np.minimum(low**2, high**2)), np.maximum(low**2, high**2)
        if self.part == "slope":
            low, high = noisy.ends_of_slope()
            return low * self.widths[1] / self.widths[0], high * self.widths[1] / self.widths[0]
        low, high = noisy.ends_of_height(-self.lows[0] / self.widths[0])
        return self.lows[1] + low * self.widths[1], self.lows[1] + high * self.widths[1]

    def _fieller(self, noisy: _Noisy, side: int, confidence: float) -> Floats:
        terms, shares = noisy.certainty.terms, np.linspace(0.0, 1.0, 33)
        zero, one = noisy.power(), noisy.power(side)
        weights = self.moments.weights({one: np.ones(33), zero: -shares})
        low, high = fieller(noisy.moments[one], noisy.moments[zero], half_widths(weights, terms, confidence))
        share, top = noisy.mean(side, self.tops[side]).value, self.tops[side]
        return np.maximum(share - np.minimum(low, top), np.minimum(high, top) - share) * self.widths[side]


class _Noisy:
    """The noisy moments of all groups, and the numbers that are made of them."""

    def __init__(self, moments: Moments, readings: Mapping[str, Reading], certainty: Certainty) -> None:
        self.of = moments
        self.certainty = certainty
        self.moments = moments.values(readings)
        self.count = self.moments[self.power()]
        size = certainty.radius(moments.weights({self.power(): np.ones_like(self.count)}))
        self.least = np.maximum(self.count - size, 0.0)
        self.most = np.maximum(self.count + size, 2.0)
        self.sure = self.least > np.maximum(self.count / 2, 2.0)
        self.safe = np.where(self.sure, self.count, 4.0)
        self.tight = np.where(self.sure, self.least, 3.0)
        self.means = [
            np.where(self.sure, self.moments[self.power(side)] / self.safe, 0.5) if each.degree else None
            for side, each in enumerate(moments.sides)
        ]

    def power(self, *sides: int) -> tuple[int, ...]:
        """The exponents of a product of columns."""
        return tuple(sides.count(side) for side in range(len(self.of.sides)))

    def mean(self, side: int, top: float) -> Linearised:
        """μ of one column."""
        unit = np.ones(1)
        total, count = (
            {name: float(each[0]) for name, each in self.of.weights({power: unit}).items()}
            for power in (self.power(side), self.power())
        )
        return mean_of(self.moments[self.power(side)], self.count, total, count, self.certainty, top)

    def about(self, side: int) -> dict[str, Floats]:
        """The weights of the noise in Σ(p − μ)."""
        return self.of.weights(self.line(side))

    def mean_of(self, side: int) -> Floats:
        found = self.means[side]
        assert found is not None
        return found

    def product(self, one: int, other: int) -> dict[tuple[int, ...], Floats]:
        """(p − μ)(q − ν) as a polynomial in all columns of the block."""
        short = centred(self.mean_of(one), None if one == other else self.mean_of(other))
        if one != other:
            return short
        return {self.power(*[one] * power[0]): factor for power, factor in short.items()}

    def total(self, polynomial: Mapping[tuple[int, ...], Floats]) -> Floats:
        """The noisy sum of a polynomial over the rows."""
        return np.asarray(sum(factor * self.moments[power] for power, factor in polynomial.items()))

    def second(self, one: int, other: int) -> Floats:
        """The radius of ab/n."""
        return self.certainty.radius(self.about(one)) * self.certainty.radius(self.about(other)) / self.safe

    def covariance(self, one: int, other: int, less: int) -> Linearised:
        """Σ(p − μ)(q − ν)/(n − less); a quarter of the count over the divisor is the most that is possible. Where the noise hides
        how many rows there are, a variance is that of an even spread over the range, a third of the most: half of the most errs
        by twice as much where people are spread less than evenly."""
        polynomial, divisor, tight = self.product(one, other), self.safe - less, self.tight - less
        rows = np.maximum(np.where(self.sure, self.least, 2.0), 2.0)
        most = rows / (rows - less) / 4
        middle = most / 3 if one == other else 0.0
        value = np.where(self.sure, self.total(polynomial) / divisor, middle)
        weights = self.of.weights({**polynomial, self.power(): polynomial[self.power()] - value})
        rest = self.certainty.radius(weights) * (1 / tight - 1 / divisor) + self.second(one, other) / tight
        found = self._known({name: weight / divisor for name, weight in weights.items()}, value, rest)
        return found.within(0.0 if one == other else -most, most, self.certainty)

    def centred_sum(self, one: int, other: int) -> Linearised:
        """Σ(p − μ)(q − ν): at most a quarter of the count."""
        polynomial = self.product(one, other)
        found = self._known(self.of.weights(polynomial), self.total(polynomial), self.second(one, other))
        return found.within(0.0 if one == other else -self.most / 4, self.most / 4, self.certainty)

    def correlation(self) -> Linearised:
        """r = C/√(SU): the first order of its error is (c − r/2·(ks + u/k))/√(SU) with k = √(U/S). With relative errors of at
        most a half, what is left out is at most 0.66 times the squares of those of S and U and ¾ of the products, since |(1 −
        x)^−½ − 1 − x/2| ≤ 0.66x² for |x| ≤ ½."""
        across, mine, theirs = self.product(0, 1), self.product(0, 0), self.product(1, 1)
        cross, left, right = self.total(across), self.total(mine), self.total(theirs)
        good = self.sure & (left > 0) & (right > 0)
        left, right = np.where(good, left, 1.0), np.where(good, right, 1.0)
        root, k = np.sqrt(left * right), np.sqrt(right / left)
        value = np.where(good, cross / root, 0.0)
        inner = _polynomial((np.ones_like(k), across), (-value * k / 2, mine), (-value / k / 2, theirs))
        seconds = self.second(0, 1), self.second(0, 0), self.second(1, 1)
        radii = [
            (self.certainty.radius(self.of.weights(each)) + second) / size
            for each, second, size in zip((across, mine, theirs), seconds, (root, left, right), strict=True)
        ]
        good &= (radii[1] < 0.5) & (radii[2] < 0.5)
        products = seconds[0] / root + np.abs(value) / 2 * (seconds[1] / left + seconds[2] / right)
        squares = np.abs(value) * (0.66 * (radii[1] ** 2 + radii[2] ** 2) + 0.75 * radii[1] * radii[2])
        rest = products + squares + 0.75 * radii[0] * (radii[1] + radii[2])
        weights = {name: weight / root for name, weight in self.of.weights(inner).items()}
        return self._known(weights, value, rest, good).within(-1.0, 1.0, self.certainty)

    def slope(self) -> Linearised:
        """β = C/S; infinite margins where S may be 0."""
        across, mine = self.product(0, 1), self.product(0, 0)
        cross, left = self.total(across), self.total(mine)
        least = left - self.certainty.radius(self.of.weights(mine)) - self.second(0, 0)
        good = self.sure & (least > 0)
        left, least = np.where(good, left, 1.0), np.where(good, least, 1.0)
        value = np.where(good, cross / left, 0.0)
        weights = self.of.weights(_polynomial((np.ones_like(value), across), (-value, mine)))
        rest = self.certainty.radius(weights) * (1 / least - 1 / left)
        rest = rest + (self.second(0, 1) + np.abs(value) * self.second(0, 0)) / least
        return self._known({name: weight / left for name, weight in weights.items()}, value, rest, good, np.inf)

    def ends_of_slope(self) -> tuple[Floats, Floats]:
        """All β with |C − βS| ≤ the half-width of c − βs and the radii of a and b − βa over n: the true one is among them."""
        across, mine = self.product(0, 1), self.product(0, 0)
        cross, left = self.total(across), self.total(mine)
        moved = self.certainty.radius(self.about(0)) / self.safe

        def width(slope: Floats) -> Floats:
            first = self.certainty.first(self.of.weights(_polynomial((np.ones_like(slope), across), (-slope, mine))))
            return first + moved * self.certainty.radius(self.beside(slope))

        return self._ends(cross, left, width)

    def ends_of_height(self, at: float) -> tuple[Floats, Floats]:
        """All heights ν + D of the line at a place which the rows allow. With z = at − μ the true height is

            ν + D = ν + β(z + a/n) − b/n,   so   β(z + a/n) = D + b/n,

        and C − βS = (c − βs) − a(b − βa)/n times z + a/n is (the terms of third order cancel)

            Cz − DS = (zc − Ds + (Sb − Ca)/n) + (ca − sb)/n − a(zb − Da)/n,

        where ca − sb = (c − γs)a − s(b − γa) for any γ, as the noisy slope.
        """
        across, mine = self.product(0, 1), self.product(0, 0)
        cross, left = self.total(across), self.total(mine)
        away, unit = at - self.mean_of(0), np.ones_like(cross)
        steep = np.where(left > 0, cross / np.where(left > 0, left, 1.0), 0.0)
        radius = self.certainty.radius
        along, error = radius(self.about(0)), self.of.weights(_polynomial((unit, across), (-steep, mine)))
        products = (radius(error) * along + radius(self.of.weights(mine)) * radius(self.beside(steep))) / self.safe
        level = _polynomial((left / self.safe, self.line(1)), (-cross / self.safe, self.line(0)))

        def width(above: Floats) -> Floats:
            first = self.of.weights(_polynomial((away, across), (-above, mine), (unit, level)))
            tilted = self.of.weights(_polynomial((away, self.line(1)), (-above, self.line(0))))
            return self.certainty.first(first) + products + along * radius(tilted) / self.safe

        low, high = self._ends(cross * away, left, width)
        return self.mean_of(1) + low, self.mean_of(1) + high

    def ends_of_correlation(self) -> tuple[Floats, Floats]:
        """All ρ which the rows allow. With k = √(U/S) and M = √(SU) of noisy sums, X = kS* and Y = U*/k of true ones:

            √(S*U*) = (X + Y)/2 − gap,   0 ≤ gap = (√X − √Y)²/2 ≤ (X − Y)²/2(X + Y),
            X − Y = −(ks − u/k) + (ka − b)(ka + b)/kn,   X + Y ≥ 2M − (ks + u/k),

        and C* = ρ√(S*U*) becomes C − ρM = c − ρ(ks + u/k)/2 − (ab − ρ(ka² + b²/k)/2)/n − ρ·gap, where with σ the sign of ρ
        the third part is (1 − |ρ|)ab/n − |ρ|·σ(ka − σb)²/2kn.
        """
        across, mine, theirs = self.product(0, 1), self.product(0, 0), self.product(1, 1)
        cross, left, right = self.total(across), self.total(mine), self.total(theirs)
        good = (left > 0) & (right > 0)
        left, right = np.where(good, left, 1.0), np.where(good, right, 1.0)
        root, k = np.sqrt(left * right), np.sqrt(right / left)
        radius, unit = self.certainty.radius, np.ones_like(cross)
        apart, together = (
            radius(self.of.weights(_polynomial((k, self.line(0)), (sign * unit, self.line(1))))) for sign in (-1, 1)
        )
        uneven = radius(self.of.weights(_polynomial((k, mine), (-1 / k, theirs)))) + apart * together / (k * self.safe)
        least = 2 * root - radius(self.of.weights(_polynomial((k, mine), (1 / k, theirs))))
        good &= least > 0
        gap = uneven**2 / (2 * np.where(good, least, 1.0))
        product = self.second(0, 1)

        def width(rho: Floats) -> Floats:
            first = self.of.weights(_polynomial((unit, across), (-rho * k / 2, mine), (-rho / k / 2, theirs)))
            square = np.where(rho < 0, together, apart) ** 2 / (2 * k * self.safe)
            found: Floats = self.certainty.first(first) + np.abs(1 - np.abs(rho)) * product + np.abs(rho) * (square + gap)
            return found

        low, high = self._ends(cross, root, width, good, 1.0)
        return low, high

    def line(self, side: int) -> dict[tuple[int, ...], Floats]:
        """p − μ as a polynomial."""
        return {self.power(side): np.ones_like(self.count), self.power(): -self.mean_of(side)}

    def beside(self, slope: Floats) -> dict[str, Floats]:
        """The weights of the noise b − βa."""
        return self.of.weights(_polynomial((np.ones_like(slope), self.line(1)), (-slope, self.line(0))))

    def _ends(
        self, above: Floats, below: Floats, width: Callable[[Floats], Floats], good: np.ndarray | None = None, far: float = np.inf
    ) -> tuple[Floats, Floats]:
        """Fieller's interval of above/below within [−far, far]; all of that where the count or `below` is not sure."""
        sure = self.sure & (below > 0) if good is None else self.sure & (below > 0) & good
        if not sure.any():
            return np.full_like(above, -far), np.full_like(above, far)
        divisor = np.where(sure, below, 1.0)
        low, high = fieller_ends(np.where(sure, above, 0.0) / divisor, divisor, width, -far, far)
        return np.where(sure, low, -far), np.where(sure, high, far)

    def height(self, slope: Linearised, at: float) -> Linearised:
        """ν + β(at − μ), the line's height: with the line's own error δ, the truth is off by −(b − βa)/n* − δ(μ − at) + δa/n*."""
        mean, across = self.mean_of(0), self.mean_of(1)
        good = self.sure & np.isfinite(slope.rest)
        away = np.where(good, mean - at, 0.0)
        unit = np.ones_like(mean)
        level = {self.power(1): unit, self.power(0): -slope.value, self.power(): slope.value * mean - across}
        noise = self.of.weights(level)
        weights = {
            name: noise.get(name, 0.0) / self.safe - away * slope.weights.get(name, 0.0) for name in {**noise, **slope.weights}
        }
        rests = np.where(good, slope.rest, 0.0)
        rest = self.certainty.radius(noise) * (1 / self.tight - 1 / self.safe) + np.abs(away) * rests
        reach = self.certainty.radius(slope.weights) + rests
        rest = rest + reach * self.certainty.radius(self.about(0)) / self.tight
        return self._known(weights, across - slope.value * away, rest, good, np.inf)

    def _known(
        self, weights: Weights, value: Floats, rest: Floats, good: np.ndarray | None = None, otherwise: float = 1e300
    ) -> Linearised:
        """The number where it is sure; elsewhere nothing is known of it but its range."""
        sure = self.sure if good is None else good
        kept = {name: np.where(sure, weight, 0.0) for name, weight in weights.items()}
        return Linearised(value, kept, np.where(sure, rest, otherwise))


def _polynomial(*parts: tuple[Floats, Mapping[tuple[int, ...], Floats]]) -> dict[tuple[int, ...], Floats]:
    """A sum of multiples of polynomials."""
    found: dict[tuple[int, ...], Floats] = {}
    for factor, polynomial in parts:
        for power, coefficient in polynomial.items():
            found[power] = found.get(power, 0.0) + factor * coefficient
    return found


def _times(number: Linearised, factor: float, offset: float = 0.0) -> Linearised:
    """offset + factor · number."""
    weights = {name: weight * factor for name, weight in number.weights.items()}
    return Linearised(offset + factor * number.value, weights, number.rest * abs(factor))


def _root(number: Linearised, certainty: Certainty) -> Linearised:
    """|√t − √v − (t − v)/2√v| ≤ (t − v)²/2v^1.5; and |√t − √v| ≤ √|t − v|, which is less where v is small."""
    value, reach = np.maximum(number.value, 0.0), number.reach(certainty)
    root = np.sqrt(value)
    good = reach < value
    safe = np.where(good, root, 1.0)
    weights = {name: np.where(good, weight / (2 * safe), 0.0) for name, weight in number.weights.items()}
    rest = np.where(good, number.rest / (2 * safe) + reach**2 / (2 * safe**3), np.sqrt(reach))
    return Linearised(root, weights, rest)


def _squared(number: Linearised, certainty: Certainty) -> Linearised:
    """t² − v² = 2v(t − v) + (t − v)²."""
    weights = {name: 2 * number.value * weight for name, weight in number.weights.items()}
    rest = 2 * np.abs(number.value) * number.rest + number.reach(certainty) ** 2
    return Linearised(number.value**2, weights, rest).within(0.0, 1.0, certainty)
