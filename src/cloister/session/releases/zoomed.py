"""The quantile that a `Zoom` found, and its margin from the noisy rungs alone.

Margin. D(k) = rows up to leaf k less q times all rows. The true quantile is the leaf k* with D(k* − 1) < 0 ≤ D(k*). It lies in
one range between two neighbouring cuts, first to last; D never falls, so D(first − 1) < 0 ≤ D(last). Adding up noisy rungs gives
D̂ at every cut, with w the half-width of its noise at the confidence 1 − α. The ranges with D̂(last) ≥ −w and D̂(first − 1) ≤ w
hold k* with probability at least 1 − α: each of the two fails with probability at most α/2 for the one range that holds it. The
noise is drawn after the choice and does not depend on it, so this is so for every choice. The margin is the way from the released
value to the farther end of all such ranges: then it covers k* wherever the value lies, and nothing needs to be clipped.

A ladder that is bought with little says more by the theorem of the choice: with probability 1 − β the chosen leaf misses the
quantile by at most r rows, a public number (`Zoom.missed`). Then fewer than r rows lie between it and the range that holds k*,
and a range is left out where the noisy rungs between say more than r + w′, with w′ the one-sided half-width of their noise at the
confidence 1 − (α − β − γ). And all ranges of a side are left out where D̂ beside the chosen leaf says, at the one-sided confidence
1 − γ, that k* is not there: of a leaf that holds many rows that is plain, when between it and others there may be none at all.
k* lies on one side, in one range, which is left out with probability at most α in all. Which of the two ways is taken follows
from their half-widths, which are public.

Several purchases. Each has its own choice and its own cuts. The ranges are then those between all cuts, and D̂ at the end of a
range is the mean of what each ladder has, weighted by inverse variance, at its next cut from there outwards: there D is not below
0, as it must be for the upper end, and below 0 for the lower, so the same argument holds. The theorem is used of the one purchase
that was most expensive. The released leaf is the one whose choice was bought with most, the mean of these where several were."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.session.planning.zoom import Zoom, cuts_around
from cloister.session.releases.cumulative import ROUNDING
from cloister.session.releases.formulas import Reading
from cloister.session.releases.frames import Series
from cloister.session.releases.linearised import Floats
from cloister.session.releases.quantiles import OfLeaves
from cloister.session.releases.uncertainty import Term, Terms, widths_of_counts

_EQUAL = 1e-9
_CHOICE, _SIDE = 0.25, 0.125  # of what may be missed: for the choice, where its theorem is used, and for the side
_LEAST = 0.5  # the least confidence that half-widths are worked out for


@dataclass(frozen=True, kw_only=True)
class _Ladder:
    """What one purchase found, a row a group: cuts, and how many rungs of non-empty width and how many rows lie before each."""

    chosen: npt.NDArray[np.int64]
    cuts: npt.NDArray[np.int64]
    rungs: Floats
    rows: Floats
    variance: float
    terms: Terms
    """The noises of one rung."""
    noises: tuple[Zoom, ...]

    @property
    def rate(self) -> float:
        """With how much its choice was bought."""
        return max(float(noise.selection.rate) for noise in self.noises)

    def widths(self, confidence: float) -> Floats:
        """The half-widths of so many rungs together, from none to all."""
        numbers = np.arange(self.cuts.shape[1], dtype=np.float64)
        return widths_of_counts(np.ones((len(numbers), 1)), numbers[:, None], [self.terms], confidence)

    def near(self, confidence: float) -> tuple[npt.NDArray[np.bool_], float]:
        """Which ranges may hold the quantile by the theorem of the choice, and how many rows that can tell apart."""
        miss = 1 - confidence
        [noise] = self.noises
        apart = noise.missed(1 - miss * _CHOICE) + self.widths(max(1 - 2 * miss * (1 - _CHOICE - _SIDE), _LEAST))
        middle = self.cuts.shape[1] // 2
        between = np.zeros((len(self.cuts), self.cuts.shape[1] - 1))
        rungs = np.zeros(between.shape, dtype=np.int64)
        for numbers, found in ((self.rows, between), (self.rungs, rungs)):
            found[:, middle:] = numbers[:, middle:-1] - numbers[:, middle : middle + 1]
            found[:, : middle - 1] = numbers[:, middle - 1 : middle] - numbers[:, 1:middle]
        return between <= apart[rungs] + ROUNDING * (1 + np.abs(self.rows[:, -1:])), float(apart[noise.height // 2])

    def at(self, cuts: npt.NDArray[np.int64], share: float, *, up: bool) -> tuple[Floats, Floats, Floats]:
        """D̂ and how many rungs lie before and after, for each asked cut, at the ladder's own next cut above it or below."""
        apart = (np.arange(len(self.cuts)) * (int(self.cuts.max(initial=0)) + 1))[:, None]
        own = (self.cuts + apart).ravel()
        side = "left" if up else "right"
        place = np.searchsorted(own, (cuts + apart).ravel(), side=side).reshape(cuts.shape)  # type: ignore[call-overload]
        place = place - (np.arange(len(self.cuts)) * self.cuts.shape[1])[:, None] - (0 if up else 1)
        rows, rungs = np.take_along_axis(self.rows, place, axis=1), np.take_along_axis(self.rungs, place, axis=1)
        return rows - share * self.rows[:, -1:], rungs, self.rungs[:, -1:] - rungs


@dataclass(frozen=True, kw_only=True)
class Zoomed(OfLeaves):
    """The value below which a share of the rows lies."""

    share: Fraction

    @property
    def raws(self) -> tuple[str, ...]:
        """The one raw that holds choice and ladder."""
        return (self.leaves.levels_name,)

    def series(self, readings: Mapping[str, Reading]) -> Series:
        """The released column."""
        return self._decoded(self._codes(self._ladders(readings)))

    def margins(self, readings: Mapping[str, Reading], confidence: float) -> Floats:
        """The longer way to an end of the interval; days for dates."""
        ladders = self._ladders(readings)
        best = self._best(readings, ladders)
        plausible, apart = best.near(confidence)
        first, last = best.cuts[:, :-1], best.cuts[:, 1:]
        if self._usual(ladders, confidence) <= apart:
            cuts = np.sort(np.concatenate([ladder.cuts for ladder in ladders], axis=1), axis=1)
            first, last = cuts[:, :-1], cuts[:, 1:]
            plausible = self._by_ladders(ladders, first, last, confidence)
        else:
            share, middle, sure = float(self.share), first.shape[1] // 2, max(1 - 2 * (1 - confidence) * _SIDE, _LEAST)
            own = best.cuts[:, middle : middle + 2]
            plausible[:, middle + 1 :] &= self._margin_over([best], own[:, 1:], share, sure, up=False) <= 0
            plausible[:, :middle] &= self._margin_over([best], own[:, :1], share, sure, up=True) >= 0
        plausible &= last > first
        plausible[~plausible.any(axis=1)] = True
        groups = np.arange(len(first))
        low = first[groups, plausible.argmax(axis=1)]
        high = last[groups, plausible.shape[1] - 1 - plausible[:, ::-1].argmax(axis=1)] - 1
        return self._reach(self._codes(ladders), low, high)

    def _by_ladders(
        self, ladders: list[_Ladder], first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], confidence: float
    ) -> npt.NDArray[np.bool_]:
        """Which ranges between neighbouring cuts may hold the quantile by the noisy rungs alone."""
        share, leaves = float(self.share), self.leaves.count
        found: npt.NDArray[np.bool_] = (last == leaves) | (self._margin_over(ladders, last, share, confidence, up=True) >= 0)
        found &= (first == 0) | (self._margin_over(ladders, first, share, confidence, up=False) <= 0)
        return found

    def _usual(self, ladders: list[_Ladder], confidence: float) -> float:
        """How many rows the noisy rungs alone can tell apart: the half-width in the middle, at most."""
        whole = math.fsum(1 / ladder.variance for ladder in ladders)
        half, weights = ladders[0].cuts.shape[1] // 2, [1 / ladder.variance / whole for ladder in ladders]
        sides = [weight * side for weight in weights for side in (1 - float(self.share), float(self.share))]
        terms = [ladder.terms for ladder in ladders for _ in range(2)]
        return float(widths_of_counts(np.array([sides]), np.full((1, len(sides)), float(half)), terms, confidence)[0])

    def _best(self, readings: Mapping[str, Reading], ladders: list[_Ladder]) -> _Ladder:
        """The purchase that was most expensive; where values are made up for several, one as exact with these."""
        most = max(ladders, key=lambda ladder: ladder.rate)
        if len(most.noises) == 1:
            return most
        return self._ladder(self._last(readings), [max(most.noises, key=lambda noise: noise.selection.rate)])

    def _margin_over(
        self, ladders: list[_Ladder], cuts: npt.NDArray[np.int64], share: float, confidence: float, *, up: bool
    ) -> Floats:
        """D̂ + w at upper ends, D̂ − w at lower ones."""
        whole = math.fsum(1 / ladder.variance for ladder in ladders)
        over, rungs, weights, terms = np.zeros(cuts.shape), [], [], []
        for ladder in ladders:
            weight = 1 / ladder.variance / whole
            value, before, after = ladder.at(cuts, share, up=up)
            over = over + weight * value
            rungs += [before.ravel(), after.ravel()]
            weights += [weight * (1 - share), weight * share]
            terms += [ladder.terms] * 2
        numbers, which = np.unique(np.stack(rungs, axis=1), axis=0, return_inverse=True)
        width = widths_of_counts(np.tile(weights, (len(numbers), 1)), numbers, terms, confidence)[which.ravel()].reshape(
            cuts.shape
        )
        width = width + ROUNDING * (1 + np.abs(ladders[0].rows[:, -1:]))
        found: Floats = over + width if up else over - width
        return found

    def _codes(self, ladders: list[_Ladder]) -> Floats:
        most = max(ladder.rate for ladder in ladders)
        best = [ladder.chosen for ladder in ladders if ladder.rate >= most * (1 - _EQUAL)]
        leaf = np.mean(np.array(best, dtype=np.float64), axis=0)
        inside = self.leaves.low + leaf * self.leaves.stride + (self.leaves.stride - 1) / 2
        return self._clipped(inside if self.kind == "real" else np.rint(inside))

    def _ladders(self, readings: Mapping[str, Reading]) -> list[_Ladder]:
        """One a purchase; one for all where the values are made up or borrowed, to say what one as exact would give."""
        reading = readings[self.leaves.levels_name]
        values = reading.values
        noises = [term.noise for term in reading.terms if isinstance(term.noise, Zoom)]
        if values.ndim == 3 and values.shape[1] == len(noises):
            found = [(values[:, place], [noise]) for place, noise in enumerate(noises)]
        else:
            found = [(self._last(readings), noises)]
        return [self._ladder(each, mine) for each, mine in found]

    def _last(self, readings: Mapping[str, Reading]) -> npt.NDArray[Any]:
        values = readings[self.leaves.levels_name].values
        return values[:, -1] if values.ndim == 3 else values

    def _ladder(self, values: npt.NDArray[Any], noises: list[Zoom]) -> _Ladder:
        chosen = np.clip(np.rint(values[:, 0].astype(np.float64)), 0, self.leaves.count - 1).astype(np.int64)
        cuts = cuts_around(chosen, self.leaves.count)
        real = np.diff(cuts, axis=1) > 0
        counts = np.where(real, values[:, 1:].astype(np.float64), 0.0)
        start = np.zeros((len(cuts), 1))
        squares = [1 / max(float(noise.variance), 1e-300) for noise in noises]
        whole = math.fsum(squares)
        return _Ladder(
            chosen=chosen,
            cuts=cuts,
            rungs=np.concatenate([start, np.cumsum(real, axis=1)], axis=1),
            rows=np.concatenate([start, np.cumsum(counts, axis=1)], axis=1),
            variance=1 / whole,
            terms=tuple(Term(square / whole, noise) for square, noise in zip(squares, noises, strict=True)),
            noises=tuple(noises),
        )
