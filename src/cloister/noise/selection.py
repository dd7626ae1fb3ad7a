"""Choosing one of many candidates by private utilities: exponential mechanism, permute-and-flip, report-noisy-max, exact weights.

Utilities are exact (integers, fractions, decimals), ε and Δu are exact, and the law drawn from is exactly the stated one: machine
floating point only ever settles comparisons that its proved error cannot turn (see `selection.proof.md`). A pass over the
candidates is vectorised, a million take milliseconds, and does the same work whatever the utilities are.

The common denominator of some utilities is as private as they are. `_exact_grid` writes exact numbers on it, and only what does
not depend on that writing may follow: the exponential mechanism and permute-and-flip see the differences alone. Laplace noise
lies on a grid, so that grid is a public `unit`.

*Sensitivity* Δu: how far one unit moves the utility of any one candidate. *Monotone*: adding a unit moves all utilities the
same way (counts do). Then half the noise suffices, between unbounded neighbours only.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import IntegerArray, level, whole
from cloister.noise._exponentials import exp_floors, exponents
from cloister.noise.enclosure import exp_enclosure, lies_below
from cloister.noise.mechanism import integer_array, narrowed, set_fields
from cloister.noise.mechanism import source as source_of
from cloister.privacy import Exact, PureDP, exact_nonnegative, exact_positive

if TYPE_CHECKING:
    from cloister.noise.laplace import DiscreteLaplace
    from cloister.noise.random import Random

Name = TypeVar("Name", bound=Hashable)
Utilities: TypeAlias = Sequence[Any] | npt.NDArray[Any]
_COIN_BITS = 53


@dataclass(frozen=True, slots=True, init=False)
class _Selection:
    """What the three mechanisms share: parameters, the guarantee, and the reading of utilities."""

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, *, epsilon: Exact, sensitivity: Exact = 1, monotone: bool = False) -> None:
        set_fields(
            self,
            epsilon=exact_nonnegative(epsilon, "epsilon"),
            sensitivity=exact_positive(sensitivity, "sensitivity"),
            monotone=bool(monotone),
        )

    @property
    def guarantee(self) -> PureDP:
        """ε-differential privacy: between unbounded neighbours where `monotone`, else between those Δu was stated for."""
        return PureDP(self.epsilon)

    @property
    def rate(self) -> Fraction:
        """What multiplies a utility in the exponent: ε/2Δu, or ε/Δu where utilities are monotone."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    @overload
    def release(self, utilities: Mapping[Name, Any], *, random: Random | None = None) -> Name: ...
    @overload
    def release(self, utilities: Utilities, *, random: Random | None = None) -> int: ...

    def release(self, utilities: Mapping[Name, Any] | Utilities, *, random: Random | None = None) -> Name | int:
        """One candidate: its place in a sequence, its name in a mapping. The mapping's names and their order must be public."""
        if isinstance(utilities, Mapping):
            names = list(utilities)
            chosen: Name = names[self._draw(list(utilities.values()), 1, random)[0]]
            return chosen
        return int(self._draw(utilities, 1, random)[0])

    def sample(self, n: int, utilities: Utilities, *, random: Random | None = None) -> npt.NDArray[np.int64]:
        """n independent choices from the same utilities: for studies of the law. Releasing them all costs n times the
        guarantee.
        """
        return self._draw(utilities, whole(n, "n", least=0), random)

    def _draw(self, utilities: Utilities, n: int, random: Random | None) -> npt.NDArray[np.int64]:
        raise NotImplementedError

    def _gaps(self, utilities: Utilities) -> tuple[IntegerArray, Fraction]:
        """How far each candidate lies below the best, in units of a grid, and the rate for one unit. The law follows from their
        products alone, and so not from the grid.
        """
        grid, unit = _read(utilities)
        if grid.dtype == object:
            return max(grid.tolist()) - grid, self.rate * unit
        best = np.uint64(int(grid.max()) % 2**64)
        return best - grid.astype(np.uint64), self.rate * unit  # arithmetic modulo 2⁶⁴: exact, since every gap is below 2⁶⁴


@dataclass(frozen=True, slots=True, init=False)
class Exponential(_Selection):
    """The exponential mechanism: P(r) ∝ exp(ε·u(r) / 2Δu), or exp(ε·u(r) / Δu) for monotone utilities.

    Guarantee: ε-DP (McSherry & Talwar 2007, Theorem 6; Dwork & Roth 2014, Theorem 3.10), between the neighbours that Δu was
    stated for. Proof: u(r) moves by at most Δu, so the numerator by a factor e^(ε/2) at most, and so does the sum of all
    numerators. Monotone utilities move numerator and sum the same way, so their quotient moves by one factor only, and the
    exponent may be doubled.

    Error: u* − u(released) exceeds t with probability at most (n−1)e^(−λt) / (1 + (n−1)e^(−λt)), where λ is `rate` and n counts
    the candidates; that is attained when all others lie at t. The permute-and-flip mechanism is never worse: prefer it, unless
    this very law is wanted.

    >>> mechanism = Exponential(epsilon="0.1")
    >>> mechanism.probabilities([50, 20, 30]).round(3).tolist()
    [0.629, 0.14, 0.231]
    >>> from cloister.noise.random import Random
    >>> Exponential(epsilon=20).release({"cancer": 50, "HIV": 20, "HPV": 30}, random=Random.deterministic(1))
    'cancer'
    """

    def probabilities(self, utilities: Utilities) -> npt.NDArray[np.float64]:
        """The law itself, in floating point. It is as private as the utilities: for public examples and tests only."""
        weights = np.exp(-exponents(*self._gaps(utilities)))
        return np.asarray(weights / math.fsum(weights.tolist()))

    def margin(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """The least m with P(best utility − released utility <= m) >= confidence for all utilities of that many candidates.

        >>> round(Exponential(epsilon=1).margin(0.95, candidates=100), 2)
        15.08
        """
        wanted, others = level(confidence), whole(candidates, "candidates", least=1) - 1
        odds = others * wanted / (1 - wanted)
        if odds <= 1:
            return 0.0
        return math.log(odds) / float(self.rate) if self.rate else math.inf

    def _draw(self, utilities: Utilities, n: int, random: Random | None) -> npt.NDArray[np.int64]:
        source = source_of(random)
        gaps, rate = self._gaps(utilities)
        bits = min(50, 62 - len(gaps).bit_length())
        low, high = exp_floors(gaps, rate, bits)
        ends = np.cumsum(high)
        chosen = np.empty(n, dtype=np.int64)
        missing = np.arange(n)
        while len(missing):
            points = source.below(int(ends[-1]), len(missing)).astype(np.int64)
            places = np.searchsorted(ends, points, side="right")
            offsets = points - (ends[places] - high[places])
            accepted = offsets < low[places]
            for index in np.flatnonzero(~accepted).tolist():  # one in about 2²⁰ for a million candidates
                place = int(places[index])
                accepted[index] = lies_below(int(offsets[index]), bits, exp_enclosure(rate * int(gaps[place])), source)
            chosen[missing[accepted]] = places[accepted]
            missing = missing[~accepted]
        return chosen


@dataclass(frozen=True, slots=True, init=False)
class PermuteAndFlip(_Selection):
    """Permute-and-flip: visit the candidates in random order, throw for each a coin of bias exp(−λ(u* − u(r))), take the first
    head.

    It is also report-noisy-max with exponential noise (Ding, Kifer, Steinke et al. 2021). λ is `rate`: ε/2Δu, or ε/Δu for
    monotone utilities.

    Guarantee: ε-DP (McKenna & Sheldon 2020). Its expected error is never above the exponential mechanism's and up to half of
    it. Proof through the second form: fix the noise of all others; r wins if its own noise E passes a threshold s, and P(E > s)
    = min(1, e^(−λs)). Between neighbours s moves by at most 2Δu (by Δu where all utilities move the same way), so this
    probability by a factor e^ε at most.

    The first head of a uniformly random order is uniform among all heads, so all coins are thrown at once: the work tells
    nothing.

    >>> mechanism = PermuteAndFlip(epsilon="0.1")
    >>> mechanism.probabilities([50, 20, 30]).round(3).tolist()
    [0.732, 0.098, 0.17]
    """

    def probabilities(self, utilities: Utilities) -> npt.NDArray[np.float64]:
        """The law itself: P(r) = p_r · ∫₀¹ Π_{j≠r} (1 − p_j + p_j t) dt, by Gauss–Legendre quadrature, exact for polynomials of
        that degree.
        """
        heads = np.exp(-exponents(*self._gaps(utilities)))
        if len(heads) > 1000:
            raise InvalidParameter(
                "The law was not computed", why="it takes cubic time", instead="at most 1000 candidates, or .sample(n, utilities)"
            )
        nodes, weights = np.polynomial.legendre.leggauss(len(heads) // 2 + 1)
        t = (nodes + 1) / 2
        factors = 1 - np.outer(heads, 1 - t)
        with np.errstate(divide="ignore"):
            logs = np.log(factors)
        rest = np.exp(logs.sum(axis=0) - logs)
        return np.asarray(heads * (rest @ weights) / 2)

    def margin(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """The least m with P(best utility − released utility <= m) >= confidence for all utilities of that many candidates.

        Worst when all others lie at the same p = e^(−λm): the best then wins with probability (1 − (1−p)ⁿ)/np.

        >>> PermuteAndFlip(epsilon=1).margin(candidates=100) < Exponential(epsilon=1).margin(candidates=100)
        True
        """
        wanted, count = level(confidence), whole(candidates, "candidates", least=1)
        if 1 / count >= wanted:
            return 0.0
        if not self.rate:
            return math.inf
        low, high = 0.0, 800.0  # of λm
        for _ in range(200):
            middle = (low + high) / 2
            p = math.exp(-middle)
            wins = -math.expm1(count * math.log1p(-p)) / (count * p) if p < 1 else 1 / count
            low, high = (low, middle) if wins >= wanted else (middle, high)
        return high / float(self.rate)

    def release_each(self, tables: npt.NDArray[np.int64], *, random: Random | None = None) -> npt.NDArray[np.int64]:
        """One candidate for each row of a table of whole utilities, each drawn as `release` draws it, all of them at once.

        Guarantee: each row costs ε; all together cost ε where neighbours differ in one row (parallel composition).

        >>> from cloister.noise.random import Random
        >>> mechanism = PermuteAndFlip(epsilon=20)
        >>> mechanism.release_each(np.array([[50, 20], [20, 30]]), random=Random.deterministic(1)).tolist()
        [0, 1]
        """
        if tables.ndim != 2 or tables.dtype != np.int64 or not tables.shape[1]:
            raise InvalidParameter(
                "The utilities are invalid", why="they are a table of whole numbers, a row a choice", instead="release(utilities)"
            )
        source, found = source_of(random), np.empty(len(tables), dtype=np.int64)
        for rows in _batches(*tables.shape):
            grid = tables[rows].astype(np.uint64)  # arithmetic modulo 2⁶⁴, as in `_gaps`
            best = tables[rows].max(axis=1, keepdims=True).astype(np.uint64)
            found[rows] = _one_of(self._heads(best - grid, self.rate, source), source)
        return found

    def _draw(self, utilities: Utilities, n: int, random: Random | None) -> npt.NDArray[np.int64]:
        source = source_of(random)
        gaps, rate = self._gaps(utilities)
        chosen = np.empty(n, dtype=np.int64)
        for rows in _batches(n, len(gaps)):
            chosen[rows] = _one_of(self._heads(gaps, rate, source, rows.stop - rows.start), source)
        return chosen

    def _heads(self, gaps: IntegerArray, rate: Fraction, source: Random, times: int | None = None) -> npt.NDArray[np.bool_]:
        """A coin for each gap of a table, or for each of one list so many times: which are heads."""
        low, high = exp_floors(gaps, rate, _COIN_BITS)
        shape = gaps.shape if times is None else (times, len(gaps))
        prefixes = (source.words(shape[0] * shape[1]) >> np.uint64(64 - _COIN_BITS)).astype(np.int64).reshape(shape)
        heads = prefixes < low
        open_ = np.argwhere((prefixes >= low) & (prefixes < high)).tolist()
        every = np.broadcast_to(gaps, shape)
        for row, place in open_:
            heads[row, place] = lies_below(
                int(prefixes[row, place]), _COIN_BITS, exp_enclosure(rate * int(every[row, place])), source
            )
        return heads


@dataclass(frozen=True, slots=True, init=False)
class ReportNoisyMax(_Selection):
    """Report-noisy-max: add independent noise to every utility, and tell only which came out on top.

    - `noise="laplace"`: discrete Laplace of scale 1/λ on the multiples of `unit`; ties broken uniformly.
    - `noise="gumbel"`: Gumbel noise of scale 1/λ *is* the exponential mechanism (Durfee & Rogers 2019), and is drawn
      as that.
    - `noise="exponential"`: *is* permute-and-flip (Ding et al. 2021), and is drawn as that.

    λ is `rate`: ε/2Δ, or ε/Δ for monotone utilities; Δ is `sensitivity`, for Laplace noise rounded up to whole units.

    `unit` is public, like Δu. Utilities are rounded to its multiples (halves upwards), whatever they are. Left out, it is 1/q for
    a Δu of p/q: whole numbers and multiples of Δu lose nothing. For finer utilities state a finer one.

    Guarantee: ε-DP (Dwork & Roth 2014, Claim 3.9, for monotone utilities and continuous noise). Proof for the discrete law: two
    utilities that differ by at most Δu are at most k = ⌈Δu/unit⌉ units apart after rounding, and rounding keeps their order. Fix
    a random order that breaks ties, and the noise of all others; r wins if its own noise Z, a whole number of units, is at least
    a threshold s. Between neighbours s moves by at most 2k (k where monotone), and P(Z ≥ s) ≤ e^(λ′d) P(Z ≥ s + d) for the
    discrete Laplace law of scale 1/λ′ = 2k/ε (k/ε) units, whose tail falls by a factor of e^(−λ′) a step at most. A mixture over
    orders keeps the bound. Choosing uniformly among the tied is that mixture. The grid must be the same for neighbours: on the
    common denominator of *these* utilities the claim is false.

    >>> from cloister.noise.random import Random
    >>> ReportNoisyMax(epsilon=10).release([3, 9, 1], random=Random.deterministic(1))
    1
    >>> ReportNoisyMax(epsilon=1, sensitivity="0.25", unit="0.1").rate  # a quarter becomes three tenths
    Fraction(5, 3)
    """

    noise: Literal["laplace", "gumbel", "exponential"]
    unit: Fraction

    def __init__(
        self,
        *,
        epsilon: Exact,
        sensitivity: Exact = 1,
        monotone: bool = False,
        noise: Literal["laplace", "gumbel", "exponential"] = "laplace",
        unit: Exact | None = None,
    ) -> None:
        if noise not in ("laplace", "gumbel", "exponential"):
            raise InvalidParameter(
                f"noise={noise!r} is invalid", why="it names no variant", instead='noise="laplace", "gumbel" or "exponential"'
            )
        if noise == "laplace":
            exact_positive(epsilon, "epsilon")
        _Selection.__init__(self, epsilon=epsilon, sensitivity=sensitivity, monotone=monotone)
        usual = Fraction(1, self.sensitivity.denominator)
        step = usual if unit is None else exact_positive(unit, "unit")
        if noise != "laplace" and step != usual:
            raise InvalidParameter(
                f"unit={unit} is invalid", why="only Laplace noise lies on a grid", instead=f"ReportNoisyMax(noise={noise!r}, …)"
            )
        set_fields(self, noise=noise, unit=step)

    @property
    def rate(self) -> Fraction:
        """What multiplies a utility in the exponent: ε/2Δ, or ε/Δ where utilities are monotone; Δ in whole units, rounded up."""
        reach = self.unit * math.ceil(self.sensitivity / self.unit)
        return self.epsilon / (reach if self.monotone else 2 * reach)

    def margin(self, confidence: Exact = 0.95, *, candidates: int) -> float:
        """An m with P(best utility − released utility <= m) >= confidence for all utilities of that many candidates.

        Exact for the other two; for Laplace noise by the union bound: all but the best rise by at most m − w, and the best
        falls by at most w. A unit is added for the rounding of two utilities by half a unit each.

        >>> ReportNoisyMax(epsilon=1).margin(candidates=10) > Exponential(epsilon=1).margin(candidates=10)
        True
        """
        if self.noise != "laplace":
            return self._twin().margin(confidence, candidates=candidates)
        wanted, count = level(confidence), whole(candidates, "candidates", least=1)
        if count == 1:
            return 0.0
        # P(Z >= t) < e^(−λt) for t >= 0, on a grid of any unit; each side takes half of the failure
        miss = 1 - wanted
        return (math.log(2 / miss) + math.log(2 * (count - 1) / miss)) / float(self.rate) + float(self.unit)

    def _twin(self) -> Exponential | PermuteAndFlip:
        kind = Exponential if self.noise == "gumbel" else PermuteAndFlip
        return kind(epsilon=self.epsilon, sensitivity=self.sensitivity, monotone=self.monotone)

    def _draw(self, utilities: Utilities, n: int, random: Random | None) -> npt.NDArray[np.int64]:
        if self.noise != "laplace":
            return self._twin()._draw(utilities, n, random)
        source = source_of(random)
        places = _in_units(*_read(utilities), self.unit)
        noise = self._noise
        chosen = np.empty(n, dtype=np.int64)
        for rows in _batches(n, len(places)):
            noisy = np.asarray(noise.release(np.tile(places, (rows.stop - rows.start, 1)), random=source))
            chosen[rows] = _one_of(noisy == noisy.max(axis=1, keepdims=True), source)
        return chosen

    @property
    def _noise(self) -> DiscreteLaplace:
        """In units: a law of the declared parameters alone."""
        from cloister.noise.laplace import DiscreteLaplace

        return DiscreteLaplace(scale=1 / (self.rate * self.unit))


def categorical(weights: Sequence[Exact], n: int, *, random: Random | None = None) -> npt.NDArray[np.int64]:
    """n places drawn with probabilities exactly proportional to rational weights.

    >>> from cloister.noise.random import Random
    >>> categorical([0, "1/3", 0], 2, random=Random.deterministic(1)).tolist()
    [1, 1]
    """
    exacts = [exact_nonnegative(weight, "weight") for weight in weights]
    if not any(exacts):
        raise InvalidParameter("The weights are invalid", why="at least one must be greater than 0", instead="weights=[1, 2, 1]")
    grid, _ = _exact_grid(exacts, "weights")
    source = source_of(random)
    total = sum(grid.tolist())
    kind = object if total >= 2**63 else np.int64
    ends = np.cumsum(grid.astype(kind))
    return np.searchsorted(ends, source.below(total, whole(n, "n", least=0)).astype(kind), side="right").astype(np.int64)


def _read(utilities: Utilities) -> tuple[IntegerArray, Fraction]:
    grid, unit = _exact_grid(utilities, "utilities")
    if grid.ndim != 1 or grid.size == 0:
        raise InvalidParameter(
            "utilities is invalid", why="it must be one list with at least one candidate", instead="utilities=[50, 20, 30]"
        )
    return grid, unit


def _exact_grid(values: object, name: str) -> tuple[IntegerArray, Fraction]:
    """Exact numbers as integers times one rational: their product says what the numbers are, and either alone says too much."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    if isinstance(values, Sequence) and any(isinstance(item, Fraction | Decimal) for item in values):
        if not all(_is_exact(item) for item in values):
            raise InvalidParameter(
                f"{name} is invalid", why="it mixes exact numbers with others", instead=f"{name}=[Fraction(1, 2), 3]"
            )
        fractions = [_wide(item) for item in values]
        denominator = math.lcm(*(item.denominator for item in fractions))
        return integer_array([int(item * denominator) for item in fractions]), Fraction(1, denominator)
    try:
        return integer_array(values), Fraction(1)
    except InvalidParameter:
        raise InvalidParameter(
            f"{name} is invalid",
            why="it must be made of integers, fractions or decimals; a floating-point number is not one",
            instead=f"{name} in whole steps, numpy.rint(x / step).astype(int), with the sensitivity in steps too",
        ) from None


def _is_exact(item: object) -> bool:
    if isinstance(item, Decimal):
        return item.is_finite()
    return isinstance(item, int | Fraction | np.integer) and not isinstance(item, bool)


def _wide(item: Any) -> Fraction:
    """The same number in Python's own integers: numpy's, and fractions that were made of them, overflow in silence.

    >>> _wide(np.int8(100)) * 3
    Fraction(300, 1)
    """
    return Fraction(item) if isinstance(item, Decimal) else Fraction(int(item.numerator), int(item.denominator))


def _in_units(grid: IntegerArray, grain: Fraction, unit: Fraction) -> IntegerArray:
    """grid·grain rounded to whole units, halves upwards, exactly.

    >>> _in_units(np.array([-5, 4, 5]), Fraction(1, 10), Fraction(1)).tolist()
    [0, 0, 1]
    """
    ratio = grain / unit
    if ratio == 1:
        return grid
    over, under = 2 * ratio.numerator, ratio.denominator
    return narrowed(np.array([(over * place + under) // (2 * under) for place in grid.tolist()], dtype=object))


def _batches(n: int, width: int) -> list[slice]:
    """Rows at a time, such that a batch of n × width numbers stays within some megabytes."""
    step = max(1, (1 << 20) // width)
    return [slice(first, min(n, first + step)) for first in range(0, n, step)]


def _one_of(marked: npt.NDArray[np.bool_], source: Random) -> npt.NDArray[np.int64]:
    """In each row, one of its marked places, uniformly."""
    counts = marked.sum(axis=1)
    ranks = np.empty(len(counts), dtype=np.int64)
    for count in np.unique(counts).tolist():
        rows = np.flatnonzero(counts == count)
        ranks[rows] = source.below(count, len(rows))
    places: npt.NDArray[np.int64] = np.argmax(np.cumsum(marked, axis=1) > ranks[:, None], axis=1).astype(np.int64)
    return places
