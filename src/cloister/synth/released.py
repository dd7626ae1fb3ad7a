"""What the measured tables say of a question: weighted sums of their cells, with margins, and bounds on what they don't hold.

*Measured.* A question that reads the columns U is a sum Σ_x f(x)·N_U(x) with public f, where U lies within one or more measured
tables. Each of these gives an unbiased N_U with independent noise of a known law; their inverse-variance mean is the best linear
one, and its weights are public. So the answer is off by a weighted sum of independent noises, whose half-width follows from their
variance, fourth cumulant and largest part (`session/releases/spreads.py`): it holds at the confidence that is asked for, whatever
the rows are. A mean is a ratio S/C of two such sums; |S − rC| ≤ z·sd(S − rC) holds for the true r with the same confidence
(Fieller 1954), and is solved for r.

*Sure.* A question about columns U that no table holds is bounded by the tables that hold parts of it. For each subset S of U that
was measured, Σ_x f(x)·N(x) ≤ Σ_{x_S} N_S(x_S)·max f and ≥ Σ_{x_S} N_S(x_S)·min f, over all x that agree with x_S, since no count
is negative; for counts also N(f) ≥ N(f_S) + N(f_T) − N(f_{S∩T}) where f ≥ f_S + f_T − f_{S∩T} holds cell by cell (Fréchet 1935;
Bonferroni), which is checked. Of m such bounds each takes its margin at the level α/m, so that all of them hold together with
probability 1 − α (union bound), and the narrowest may be taken. f has a least and a largest value where a bin hides which of its
values a row has.

*Chosen tables* (`choosing.py`). Whether a table is measured once more depends on what noise did to the earlier ones, so a mean
over all of them, with weights that follow from the choices, has no known law. But the noise of a round is drawn after everything
that led to it: given that a round is the j-th whose tables hold U, its own mean is off by its own, fresh noise. It is read at the
level α/2ʲ. So with probability 1 − α all readings of U hold together, however often it was measured, and one of them may be taken
by their widths. The bounds that follow from them count every subset of the columns that could have been measured, whether it was
or not. Such margins are wider than they need be: what is *measured* holds with at least the confidence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, combinations
from math import floor, log2
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.session.releases.spreads import spreads
from cloister.session.workloads.marginals import Marginal
from cloister.synth.cutting import Cut
from cloister.synth.measuring import Floats, Marginals, Noisy
from cloister.synth.pieces import Integers

Truths = npt.NDArray[np.bool_]
_MOST_SUBSETS = 2  # columns of a table that bounds are taken from: no larger ones are measured
_MOST_CHOSEN = 3  # the same where tables were chosen: whichever were, so that the count of bounds follows from the question


@dataclass(frozen=True, eq=False)
class Evidence:
    """The best linear reading of one marginal, by class, from all tables that hold it; the noise is that of one state's cell."""

    counts: Floats
    cells: Floats
    """How many cells each class has: their noises add up."""
    variance: float
    fourth: float
    largest: float
    level: float = 1.0
    """What part of the allowed failures this reading may have: all of them, unless its tables were chosen."""


@dataclass(frozen=True, eq=False)
class Functional:
    """A weighted sum of counts for each group, and what its noise is made of."""

    value: Floats
    square: Floats
    fourth: Floats
    largest: Floats
    step: Floats
    level: float
    """That of the evidence."""

    def deviations(self, confidence: float) -> Floats:
        """How many standard deviations the noise stays within at a confidence: by the continuous laws."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share, kurtosis = np.nan_to_num(self.largest / self.square), np.nan_to_num(self.fourth / self.square**2)
        return np.asarray(spreads(share, kurtosis, 1 - (1 - confidence) * self.level))

    def width(self, confidence: float) -> Floats:
        """The half-width of each sum at a confidence: and half of the widest step of the discrete law."""
        return np.asarray(np.sqrt(self.square) * self.deviations(confidence) + self.step)


def read(found: Marginals, places: Sequence[int], cuts: Mapping[int, Cut]) -> Evidence | None:
    """The marginal of these columns, by the classes of their cuts; None where no table holds them."""
    wanted = tuple(places)
    if (evidence := best(found, wanted)) is None:
        return None
    counts = evidence.counts
    for axis, place in enumerate(wanted):
        counts = cuts[place].merged(counts, axis)
    return replace(evidence, counts=counts, cells=cells_of(cuts, wanted))


def best(found: Marginals, wanted: Marginal) -> Evidence | None:
    """The same by states."""
    rounds: dict[int, list[tuple[Marginal, Noisy]]] = {}
    for kept, table in found.readings:
        if set(wanted) <= set(kept):
            rounds.setdefault(table.round, []).append((kept, table))
    levels = [0.5**turn for turn in range(1, len(rounds) + 1)] if found.rounds else [1.0]
    readings = [_mean(found, wanted, parts, level) for parts, level in zip(rounds.values(), levels, strict=False)]
    return min(readings, key=lambda each: each.variance * (1 - log2(each.level) / 4), default=None)


def margin_of(found: Marginals, kept: Marginal, confidence: float = 0.95) -> float:
    """Of one cell of a table that was measured, by all tables that hold its columns. Noise of one table is a whole number, so
    what is between two of them says nothing; not so where an earlier answer joined it (`earlier.py`).

    >>> one, two = Noisy(np.zeros(2), 50.0, False), Noisy(np.zeros((2, 2)), 50.0, False)
    >>> found = Marginals(sizes=(2, 2), tables={(0,): one, (1,): one, (0, 1): two})
    >>> margin_of(found, (0, 1)), round(margin_of(found, (0,)), 1)
    (14.0, 11.9)
    """
    evidence = best(found, kept)
    assert evidence is not None
    one = np.ones(1)
    step = one * (0.5 if evidence.variance else 0.0)
    square, fourth, largest = evidence.variance, evidence.fourth, evidence.largest
    width = float(Functional(one, one * square, one * fourth, one * largest, step, evidence.level).width(confidence)[0])
    alone = len([other for other, _ in found.readings if set(kept) <= set(other)]) == 1 and not (evidence.counts % 1).any()
    return float(floor(width)) if alone else width


def _mean(found: Marginals, wanted: Marginal, parts: Sequence[tuple[Marginal, Noisy]], level: float) -> Evidence:
    """The inverse-variance mean of what several tables say."""
    rest = [table.counts.size / np.prod([found.sizes[place] for place in wanted], dtype=float) for _, table in parts]
    trust = np.array([1 / (max(table.variance, 1e-12) * number) for (_, table), number in zip(parts, rest, strict=True)])
    trust /= trust.sum()
    counts = np.zeros([found.sizes[place] for place in wanted])
    for weight, (kept, table) in zip(trust, parts, strict=True):
        counts += weight * table.counts.sum(axis=tuple(axis for axis, place in enumerate(kept) if place not in wanted))
    noises = [(weight, number, table) for weight, number, (_, table) in zip(trust, rest, parts, strict=True)]
    return Evidence(
        counts=counts,
        cells=np.ones(counts.shape),
        variance=float(sum(weight**2 * number * table.variance for weight, number, table in noises)),
        fourth=float(sum(weight**4 * number * table.fourth for weight, number, table in noises)),
        largest=float(max(weight**2 * table.largest for weight, number, table in noises)),
        level=level,
    )


def functional(evidence: Evidence, cells: Integers, groups: Integers, weights: Floats, number: int) -> Functional:
    """Σ weight · count over the cells of each group; `cells` are flat places among the classes, each once in a group."""
    counts, sizes = evidence.counts.ravel()[cells], evidence.cells.ravel()[cells]

    def added(each: Floats) -> Floats:
        return np.bincount(groups, each, minlength=number).astype(np.float64)

    step = np.zeros(number)
    np.maximum.at(step, groups, np.abs(weights))
    return Functional(
        value=added(weights * counts),
        square=added(weights**2 * sizes) * evidence.variance,
        fourth=added(weights**4 * sizes) * evidence.fourth,
        largest=step**2 * evidence.largest,
        step=step / 2 if evidence.variance > 0 else np.zeros(number),
        level=evidence.level,
    )


def cells_of(cuts: Mapping[int, Cut], places: Sequence[int]) -> Floats:
    """How many cells of states each combination of classes has."""
    return reduce(np.multiply.outer, (cuts[place].sizes() for place in places), np.ones(()))


@dataclass(frozen=True, eq=False)
class Reading:
    """All combinations of pieces of the columns that a question reads: the grid on which conditions, groups and values live."""

    places: tuple[int, ...]
    cuts: dict[int, Cut]
    group: Integers
    """The group of each combination; -1 where it is in none, or the condition does not hold."""
    number: int
    """How many groups there are."""

    @property
    def shape(self) -> list[int]:
        """How many pieces each column has."""
        return [len(self.cuts[place].of) for place in self.places]

    def spread(self, place: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What each piece of a column has, over all combinations."""
        axis, shape = self.places.index(place), self.shape
        return np.broadcast_to(values.reshape([-1 if each == axis else 1 for each in range(len(shape))]), shape).ravel()

    def cells(self, subset: Sequence[int]) -> Integers:
        """The flat place of each combination among the classes of some columns."""
        found = np.zeros(len(self.group), dtype=np.int64)
        for place in subset:
            found = found * self.cuts[place].number + self.spread(place, self.cuts[place].of)
        return found


def projected(reading: Reading, subset: Sequence[int], weights: Floats, *, largest: bool) -> tuple[Integers, Integers, Floats]:
    """For each group and each cell of a subset of columns the largest, or the least, weight of what agrees with it: cells,
    groups, weights, those of weight 0 left out. What is in another group has the weight 0."""
    cells = reading.cells(subset)
    width_ = int(np.prod([reading.cuts[place].number for place in subset], dtype=np.int64))
    every = np.bincount(cells, minlength=width_)
    inside = reading.group >= 0
    keys = reading.group[inside] * width_ + cells[inside]
    unique, place = np.unique(keys, return_inverse=True)
    found = np.full(len(unique), -np.inf if largest else np.inf)
    (np.maximum if largest else np.minimum).at(found, place, weights[inside])
    outside = np.bincount(place, minlength=len(unique)) < every[unique % width_]
    found[outside] = (np.maximum if largest else np.minimum)(found[outside], 0.0)
    kept = found != 0
    return unique[kept] % width_, unique[kept] // width_, found[kept]


def bounds(
    found: Marginals, reading: Reading, low: Floats, high: Floats, confidence: float, *, counts: bool
) -> tuple[Floats, Floats]:
    """Bounds of Σ f·N for each group that hold together with the confidence; `low` and `high` are the least and the largest f.

    See the top of the file for the proof.
    """
    orders = [_MOST_SUBSETS, *(len(kept) for kept in found.tables if not found.whole)]
    sizes = {*range((_MOST_CHOSEN if found.rounds else max(orders)) + 1), *([len(reading.places)] if found.whole else ())}
    subsets = list(chain.from_iterable(combinations(reading.places, size) for size in sorted(sizes)))
    known = {each: evidence for each in subsets if (evidence := read(found, each, reading.cuts)) is not None}
    possible = subsets if found.rounds else list(known)
    joined = [
        (one, other)
        for one, other in combinations(possible, 2)
        if counts and set(one) | set(other) == set(reading.places) and not set(one) <= set(other) and not set(other) <= set(one)
    ]
    level = 1 - (1 - confidence) / (2 * len(possible) + 3 * len(joined))
    lows: list[Floats] = []
    highs: list[Floats] = []
    for subset, evidence in known.items():
        for weights, kept, largest in ((low, lows, False), (high, highs, True)):
            sums = functional(evidence, *projected(reading, subset, weights, largest=largest), reading.number)
            reach = sums.width(level)
            kept.append(sums.value + (reach if largest else -reach))
    for one, other in joined:
        if one in known and other in known:
            lows.append(_joined(known, reading, low, one, other, level))
    return np.max(lows, axis=0), np.min(highs, axis=0)


def _joined(
    known: dict[tuple[int, ...], Evidence],
    reading: Reading,
    weights: Floats,
    one: tuple[int, ...],
    other: tuple[int, ...],
    level: float,
) -> Floats:
    """N(f_S) + N(f_T) − N(f_{S∩T}), where it bounds f from below cell by cell; -∞ elsewhere."""
    shared = tuple(place for place in one if place in other)
    total, over = np.zeros(reading.number), np.zeros((reading.number, len(reading.group)), dtype=np.int8)
    if over.size > 5_000_000 or shared not in known:
        return np.full(reading.number, -np.inf)
    for subset, sign in ((one, 1), (other, 1), (shared, -1)):
        cells, groups, largest = projected(reading, subset, weights, largest=True)
        sums = functional(known[subset], cells, groups, largest, reading.number)
        total += sign * sums.value - sums.width(level)
        every = np.zeros((reading.number, known[subset].counts.size), dtype=np.int8)
        every[groups, cells] = sign
        over += every[:, reading.cells(subset)]
    inside = reading.group >= 0
    over[reading.group[inside], np.flatnonzero(inside)] -= weights[inside].astype(np.int8)
    return np.where((over <= 0).all(axis=1), total, -np.inf)
