"""A mixture of products fitted to noisy marginals: P(x) = Σ_k w_k Π_c p_kc(x_c).

Within a component the columns are independent, so every marginal is a sum of K outer products and is read in closed form. With
all p of all columns side by side in a matrix Q (a row a component, a column a state), all two-way marginals are the blocks of
QᵀWQ, W = diag(w): one product of matrices gives the model's tables, and another the gradient of the misfit (a table of three
columns, or of two wide ones, takes three products of its own: in a large QᵀWQ every pair stands twice, measured or not)

    Σ_S Σ_cells ψ((n·model − measured)/σ_S)   +   a penalty that draws the components' logits to their mean,

with ψ a half square for Gaussian noise, which makes it least squares weighted by inverse variances; for Laplace noise of scale b
it is |·|/b made smooth about 0 (Huber's ψ), the likelihood of that noise, which has twice the information of its square. Adam
(Kingma & Ba 2015) takes it down from several starts; the fits are averaged, which is again a mixture. How many components and
how strong a penalty follow from the number of rows over the noise, both released.

It is all post-processing of released counts: no privacy is argued here. The starts come from a fixed seed, so that the same
release gives the same model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import sqrt
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from cloister.noise import Random
from cloister.synth.measuring import Floats, Marginals, Noisy
from cloister.synth.released import best

Small = npt.NDArray[np.float32]
Zeros = Mapping[tuple[int, int], npt.NDArray[np.bool_]]

_SEED = b"where the fit of a synthetic table starts"
_REFITS = 8
_REDRAWN = b"noise of the refits behind typical margins"
_KNOWN: WeakKeyDictionary[Mixture, list[Mixture]] = WeakKeyDictionary()
_MOST_COMPONENTS = 160
_MANY = 80
_MANY_TRIPLES = 50
_LIGHT = 48  # components of a fit that only says what to measure next
_RATE = 0.5
_SPREAD = 0.6  # standard deviation of the logits at the start
_PENALTY = 0.01
_FAINT = 40
_SEEN, _FAINTER = 4, 1e-9
"""How many deviations of its noise a count is that stands out of it, and what is left of a probability beyond such counts."""
_WIDE, _LARGE = 1000, 20_000
"""How many states all columns have, and how many cells QᵀWQ for each measured pair, where each pair is fitted by itself."""
_NEAR = 0.3  # of b: where |·| is made smooth
_MOMENTS = (0.9, 0.99)
_LEAST = 1e-4
_SHARP = 1.0  # variance of a single column's count, from all tables that hold it, below which that is fitted
_SURE = 1.0  # the slope of what lies in cells that must be empty, over that of a row in a cell that is one deviation off
_LOWEST = np.float32(-18)  # of a logarithm: numbers too small for 32 bits would take a hundred times as long


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights, one a component, and for each column a matrix of probabilities: a row a component, a column a state.

    >>> mixture = Mixture(np.array([0.5, 0.5]), (np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.2, 0.8], [0.6, 0.4]])))
    >>> mixture.marginal((0, 1)).tolist(), mixture.marginal(()).tolist()
    ([[0.1, 0.4], [0.3, 0.2]], 1.0)
    """

    weights: Floats
    columns: tuple[Floats, ...]

    def marginal(self, axes: Sequence[int]) -> Floats:
        """The probability of each combination of states of these columns."""
        found = self.weights[:, None]
        for axis in axes[:-1]:
            found = (found[:, :, None] * self.columns[axis][:, None, :]).reshape(len(self.weights), -1)
        if not axes:
            return np.asarray(self.weights.sum())
        return np.asarray(found.T @ self.columns[axes[-1]]).reshape([self.columns[axis].shape[1] for axis in axes])


def components_for(signal: float) -> int:
    """How many components can be told from the noise, by the number of rows over the noise of a cell.

    >>> [components_for(signal) for signal in (1, 80, 800, 10**6)]
    [1, 13, 48, 160]
    """
    return min(max(round(math.pow(signal, 0.58)), 1), _MOST_COMPONENTS)


def components_of(found: Marginals) -> int:
    """The same for measured tables: fifty tables of three columns and more tell two and a half times as many apart. By trial: on
    Adult a classifier of rows that were measured for it gained most of a point, and beside ten such tables more did harm.

    >>> from cloister.synth.measuring import Noisy
    >>> one = Noisy(np.full((4, 4), 100.0), 50.0, False)
    >>> components_of(Marginals(sizes=(4, 4), tables={kept: one for kept in ((0,), (0, 1))}))
    23
    """
    number, triples = components_for(found.signal()), sum(len(kept) == 3 for kept in found.tables)
    return min(number * 5 // 2, _MOST_COMPONENTS) if triples >= _MANY_TRIPLES else number


def penalty_for(sizes: Sequence[int], signal: float) -> float:
    """How strongly the logits are drawn to their mean: more where columns have many states, each with few rows, and where the
    noise is large beside all rows. By trial on several tables and spends; whatever it is costs accuracy alone.

    >>> round(penalty_for((100, 2, 18), 800), 2), round(penalty_for((100, 2, 18), 8), 2)
    (0.42, 2.4)
    """
    return _PENALTY * sum(sizes) / len(sizes) * (1 + _FAINT / signal)


def on_simplex(counts: Floats, total: float) -> Floats:
    """The nearest numbers that are not negative and sum to the total: the Euclidean projection, by one sort.

    Unlike clipping at 0, which keeps half of the noise of every empty cell, it invents no rows. Beside counts of 10¹⁷ the total
    is below the last digit: what is projected is how far each lies below the largest, which gives the same.

    >>> on_simplex(np.array([6.0, 3.0, -2.0, 1.0]), 6.0).tolist()
    [4.5, 1.5, 0.0, 0.0]
    """
    counts = counts - counts.max()
    order = np.sort(counts)[::-1]
    excess = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    return np.asarray(np.maximum(counts - excess[np.flatnonzero(order > excess)[-1]], 0.0))


def independent(found: Marginals) -> Mixture:
    """Each column by itself: its noisy counts, projected on what counts of all rows can be."""
    total = max(found.rows()[0], 1.0)
    columns = tuple(on_simplex(found.tables[(place,)].counts, total)[None, :] / total for place in range(len(found.sizes)))
    return Mixture(np.ones(1), columns)


def histogram(found: Marginals, zeros: Zeros | None = None) -> Mixture:
    """The table of all columns, projected on what counts of all rows can be: a component for each combination of values of all
    columns but the widest that is left with rows."""
    total, sizes = max(found.rows()[0], 1.0), found.sizes
    counts = found.tables[tuple(range(len(sizes)))].counts.copy()
    for (one, other), empty in (zeros or {}).items():
        shape = [size if place in (one, other) else 1 for place, size in enumerate(sizes)]
        counts[np.broadcast_to(empty.reshape(shape), counts.shape)] = -np.inf
    shares = on_simplex(counts.ravel(), total).reshape(sizes) / total
    wide = int(np.argmax(sizes))
    others = sizes[:wide] + sizes[wide + 1 :]
    flat = np.moveaxis(shares, wide, -1).reshape(-1, sizes[wide])
    weights = flat.sum(axis=1)
    used = np.flatnonzero(weights)
    where = np.unravel_index(used, others) if others else ()
    columns = [np.eye(size)[at] for size, at in zip(others, where, strict=True)]
    columns.insert(wide, flat[used] / weights[used, None])
    return Mixture(weights[used] / weights.sum(), tuple(columns))


def fitted(found: Marginals, *, zeros: Zeros | None = None, progress: Callable[[str], None] = lambda _: None) -> Mixture:
    """The average of several fits to all tables that were measured; `zeros` are cells of pairs that are known to be empty."""
    if found.whole:
        return histogram(found, zeros)
    if not any(len(kept) > 1 for kept in found.tables):
        return independent(found)
    random, number = Random.derived(_SEED), components_of(found)
    starts, steps = (10, 200) if number <= _MANY else (3, 800)
    problem, fits = _Problem(found, zeros), list[Mixture]()
    for start in range(starts):
        progress(f"fitting a mixture of {number} products, start {start + 1} of {starts}")
        fits.append(problem.descend(*problem.begun(number, random), steps))
    weights = np.concatenate([each.weights / starts for each in fits])
    return Mixture(weights, tuple(np.concatenate(column) for column in zip(*(each.columns for each in fits), strict=True)))


def shortened(mixture: Mixture, found: Marginals, place: int, *, missing: bool) -> Mixture:
    """Without what stands beyond the last state of a column that stands out of its noise: together with it such states have too
    few rows to be told from none.

    >>> from cloister.synth.measuring import Noisy
    >>> found = Marginals(sizes=(3,), tables={(0,): Noisy(np.array([90.0, 3.0, 7.0]), 50.0, True)})
    >>> shortened(independent(found), found, 0, missing=False).columns[0].round(6).tolist()
    [[1.0, 0.0, 0.0]]
    """
    evidence, column = best(found, (place,)), mixture.columns[place].copy()
    assert evidence is not None
    end = column.shape[1] - missing
    seen = np.flatnonzero(evidence.counts[:end] > _SEEN * sqrt(evidence.variance))
    column[:, seen[-1] + 1 if len(seen) else end : end] *= _FAINTER
    columns = (*mixture.columns[:place], column / column.sum(axis=1, keepdims=True), *mixture.columns[place + 1 :])
    return Mixture(mixture.weights, columns)


def refitted(found: Marginals, random: Random) -> Mixture:
    """One fit from one start: what redrawn noise makes of a model, at a tenth of the time."""
    if found.whole:
        return histogram(found)
    problem, number = _Problem(found), components_of(found)
    return problem.descend(*problem.begun(number, random), 200 if number <= _MANY else 500)


def refits(found: Marginals, mixture: Mixture, progress: Callable[[str], None]) -> list[Mixture]:
    """How far apart noise alone moves fits: models of redrawn noise, from which the report tells its expected error; worked out
    once for as long as the model lives.

    The model is taken for the truth: its own tables get fresh noise of the law that was measured with, and are fitted again,
    several times. How far these fits lie from the model shows what noise does; what the model cannot express, or assumes, they
    don't show. So nothing is told from them of tables whose columns were not measured together, and no interval of an answer is
    made from them.

    Refits are post-processing of the release and cost nothing but time. Their noise comes from a fixed seed: it protects nobody,
    and the same model gives the same report.
    """
    if mixture not in _KNOWN:
        random, rows, made = Random.derived(_REDRAWN), max(found.rows()[0], 1.0), []
        for number in range(_REFITS):
            progress(f"fitting to redrawn noise, {number + 1} of {_REFITS}")
            tables = {kept: _redrawn(rows * mixture.marginal(kept), table, random) for kept, table in found.tables.items()}
            made.append(refitted(replace(found, tables=tables, rounds=()), random))
        _KNOWN[mixture] = made
    return _KNOWN[mixture]


def _redrawn(counts: Floats, table: Noisy, random: Random) -> Noisy:
    """Counts with noise of the law and size of a measured table's, from continuous laws: only its size matters here."""
    one, other = (random.uniform(counts.size) for _ in range(2))
    away = -np.log1p(-one)
    if table.laplace:
        noise = np.where(other < 0.5, away, -away) * np.sqrt(table.variance / 2)
    else:
        noise = np.sqrt(2 * away) * np.cos(2 * np.pi * other) * np.sqrt(table.variance)
    return Noisy(counts + np.rint(noise).reshape(counts.shape), table.variance, table.laplace)


class Follower:
    """One fit that goes on from where it was as tables are added: what a loop knows between its rounds."""

    def __init__(self) -> None:
        self._at: tuple[Small, Small] | None = None

    def after(self, found: Marginals, steps: int, rate: float) -> Mixture:
        """A few steps towards all that is measured by now."""
        number = min(components_for(found.signal()), _LIGHT)
        problem = _Problem(found)
        if self._at is None or len(self._at[1]) != number:
            self._at, steps, rate = problem.begun(number, Random.derived(_SEED)), 200, _RATE
        return problem.descend(*self._at, steps, rate)


@cache
def _pools() -> ThreadpoolController:
    """Those of NumPy, looked for once: that takes as long as many steps of a fit."""
    return ThreadpoolController()


class _Problem:
    """Measured tables as blocks of one matrix, in shares of all rows, and the gradient of the misfit."""

    def __init__(self, found: Marginals, zeros: Zeros | None = None, penalty: float | None = None) -> None:
        self.sizes = np.array(found.sizes)
        self.penalty = penalty_for(found.sizes, found.signal()) if penalty is None else penalty
        self.first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        self.rows = max(found.rows()[0], 1.0)
        whole = int(self.sizes.sum())
        places = [slice(first, first + size) for first, size in zip(self.first, self.sizes, strict=True)]
        apart = whole >= _WIDE and whole**2 >= _LARGE * sum(len(kept) == 2 for kept in found.tables)
        side = 0 if apart else whole
        self.pairs, self.trust = np.zeros((side, side), np.float32), np.zeros((side, side), np.float32)
        self.ones, self.one_trust = np.zeros(whole, np.float32), np.zeros(whole, np.float32)
        self.laplace = all(table.laplace for table in found.tables.values())
        self.smooth = np.float32(_NEAR / sqrt(2))  # of a standard deviation
        self.apart: dict[tuple[int, ...], _Table] = {}
        start = np.zeros(whole)
        for kept, table in found.tables.items():
            spread = sqrt(max(table.variance, 1e-6))
            if len(kept) == 3 or (len(kept) == 2 and apart):
                self.apart[kept] = _Table.of(places, kept, table.counts / self.rows, self.rows / spread)
            elif len(kept) == 1:
                where, counts = places[kept[0]], table.counts
                evidence = None if found.rounds else best(found, kept)
                if (
                    evidence is not None and evidence.variance < _SHARP
                ):  # else it would be heard twice beside pairs: worse in trials
                    counts, spread = evidence.counts, sqrt(max(evidence.variance, 1e-6))
                self.ones[where], self.one_trust[where] = counts / self.rows, self.rows / spread
                known, noise = (counts, spread) if evidence is None else (evidence.counts, sqrt(max(evidence.variance, 1e-6)))
                start[where] = np.log(np.maximum(known, noise / 2) / self.rows)
            else:
                one, other = places[kept[0]], places[kept[1]]
                self.pairs[one, other], self.pairs[other, one] = table.counts / self.rows, table.counts.T / self.rows
                self.trust[one, other] = self.trust[other, one] = self.rows / spread
        self.empty: Small | None = np.zeros((side, side), np.float32) if zeros and not apart else None
        for kept, empty in (zeros or {}).items():
            slope = (_SURE * self.one_trust.max() * empty).astype(np.float32)
            if self.empty is None:
                table = found.tables.get(kept) or Noisy(np.zeros(empty.shape), math.inf, False)
                spread = sqrt(max(table.variance, 1e-6))
                self.apart[kept] = _Table.of(places, kept, table.counts / self.rows * ~empty, self.rows / spread, slope)
                continue
            one, other = places[kept[0]], places[kept[1]]
            self.pairs[one, other][empty] = self.pairs[other, one][empty.T] = 0
            self.empty[one, other], self.empty[other, one] = slope, slope.T
        self.start = start.astype(np.float32)

    def begun(self, number: int, random: Random) -> tuple[Small, Small]:
        """Where a fit starts: logits of each component's probabilities, and logarithms of the weights."""
        uniform = (random.words(number * len(self.start)) * 2.0**-64).reshape(number, -1)
        return (self.start + _SPREAD * sqrt(12) * (uniform - 0.5)).astype(np.float32), np.zeros(number, np.float32)

    def descend(self, logits: Small, shares: Small, steps: int, rate: float = _RATE) -> Mixture:
        """One fit, from where these are, which are changed in place."""
        walks = [_Adam(logits), _Adam(shares)]
        with _pools().limit(limits=1, user_api="blas"):  # to share out products of so small matrices takes longer than they do
            for step in range(1, steps + 1):
                now = rate / 2 * (1 + float(np.cos(np.pi * step / steps))) + _LEAST
                for walk, slope in zip(walks, self.gradient(logits, shares, step / steps), strict=True):
                    walk.step(slope, now, step)
        q = self.probabilities(logits).astype(np.float64)
        q /= np.repeat(np.add.reduceat(q, self.first, axis=1), self.sizes, axis=1)
        w = np.exp(shares.astype(np.float64) - shares.max())
        return Mixture(w / w.sum(), tuple(np.split(q, self.first[1:], axis=1)))

    def probabilities(self, logits: Small) -> Small:
        """Softmax within each column."""
        largest = np.repeat(np.maximum.reduceat(logits, self.first, axis=1), self.sizes, axis=1)
        powers = np.exp(np.maximum(logits - largest, _LOWEST))
        return np.asarray(powers / np.repeat(np.add.reduceat(powers, self.first, axis=1), self.sizes, axis=1))

    def gradient(self, logits: Small, shares: Small, push: float = 1.0) -> tuple[Small, Small]:
        """The slopes of the misfit in the logits and in the logarithms of the weights; `push` of what empties cells: it grows, so
        that components part before anything is driven out of them."""
        q = self.probabilities(logits)
        w = np.exp(np.maximum(shares - shares.max(), _LOWEST))
        w /= w.sum()
        smooth = self.smooth if self.laplace else None
        slope = q * _weighed(w @ q - self.ones, self.one_trust, smooth)
        told = slope.sum(axis=1)
        if len(self.pairs):
            pairs = _weighed(q.T @ (q * w[:, None]) - self.pairs, self.trust, smooth)
            if self.empty is not None:
                pairs += np.float32(push) * self.empty
            by_pairs = q * (q @ pairs)
            slope, told = by_pairs + slope, by_pairs.sum(axis=1) / 2 + told
        for table in self.apart.values():
            told += table.told(q, w, slope, smooth, push)
        own = np.repeat(np.add.reduceat(slope, self.first, axis=1), self.sizes, axis=1)
        in_logits = w[:, None] * (slope - q * own) + np.float32(self.penalty) * (logits - logits.mean(axis=0))
        return np.asarray(in_logits), np.asarray(w * (told - w @ told))


@dataclass(frozen=True, eq=False)
class _Table:
    """A measured table of two columns or three, in shares of all rows: a row for each state of the narrower columns together."""

    places: tuple[slice, ...]
    shares: Small
    trust: np.float32
    empty: Small | None = None

    @classmethod
    def of(cls, places: Sequence[slice], kept: Sequence[int], shares: Floats, trust: float, empty: Small | None = None) -> _Table:
        """The widest column comes last, so that there are few rows."""
        order = np.argsort(shares.shape, kind="stable")
        wide = shares.shape[order[-1]]
        laid = [
            None if each is None else np.transpose(each, order).reshape(-1, wide).astype(np.float32) for each in (shares, empty)
        ]
        assert laid[0] is not None
        return cls(tuple(places[kept[place]] for place in order), laid[0], np.float32(trust), laid[1])

    def told(self, q: Small, w: Small, slope: Small, smooth: np.float32 | None, push: float) -> Small:
        """Adds what the misfit of this table says of the probabilities to their slopes; what it says of the weights."""
        one, two, wide = q[:, self.places[0]], q[:, self.places[1]], q[:, self.places[-1]]
        both = one[:, :, None] * (two[:, None, :] if len(self.places) == 3 else np.float32(1))
        flat = both.reshape(len(q), -1)
        away = _weighed((flat * w[:, None]).T @ wide - self.shares, self.trust, smooth)
        if self.empty is not None:
            away += np.float32(push) * self.empty
        upper = both * (wide @ away.T).reshape(both.shape)
        slope[:, self.places[0]] += upper.sum(axis=2)
        if len(self.places) == 3:
            slope[:, self.places[1]] += upper.sum(axis=1)
        slope[:, self.places[-1]] += wide * (flat @ away)
        return np.asarray(upper.sum(axis=(1, 2)))


def _weighed(away: npt.NDArray[Any], trust: Small | np.float32, smooth: np.float32 | None) -> Small:
    """The slope of the misfit of tables that are this far away, in place: of a half square, or of a smoothed absolute value."""
    away *= trust
    if smooth is not None:
        away /= smooth
        np.clip(away, -1, 1, out=away)
        away *= np.float32(sqrt(2))
    away *= trust
    return away


class _Adam:
    """Steps of about the same length in each coordinate, whatever its slope; the array is changed in place."""

    def __init__(self, values: Small) -> None:
        self.values, self.mean, self.square = values, np.zeros_like(values), np.zeros_like(values)

    def step(self, slope: Small, rate: float, number: int) -> None:
        first, second = _MOMENTS
        self.mean += np.float32(1 - first) * (slope - self.mean)
        self.square += np.float32(1 - second) * (slope * slope + np.float32(1e-24) - self.square)
        scale = np.sqrt(self.square / np.float32(1 - second**number)) + np.float32(1e-8)
        self.values -= np.float32(rate / (1 - first**number)) * self.mean / scale
