"""A counter of a stream: its running sum after every step, or that of its last steps, for one charge that is fixed before the
first.

At each step the counter publishes one integer, y = C̃·x + z: what the matrix of the horizon makes of the exact step totals
so far, and fresh exact noise. Everything that is read from it, the running sum and what is taken from differences of it, is
post-processing of the integers that are published. What is kept of the data between steps are the exact sums of bins (or of
tree nodes) and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias

import numpy as np

from cloister.errors import BudgetExceeded, InvalidParameter, MissingBound
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.noise._checks import level as confidence_level
from cloister.noise._checks import whole
from cloister.noise.matrix import sum_of_laplace
from cloister.noise.mechanism import source
from cloister.privacy import ZCDP, Exact, PureDP, exact, exact_positive, text_of
from cloister.traces.banded import WIDEST, BandedSums, banded_matrix
from cloister.traces.levels import Level, Protection, WindowLevel
from cloister.traces.square_root import RootSums, square_root_matrix
from cloister.traces.step_lock import StepLock, draft
from cloister.traces.tree import BinaryTree

Readings: TypeAlias = "float | Iterable[float] | None"
"""What came in a step: one number, many, or None."""

_WIDEST = 2**31
_LONGEST = 2**32
"""Steps of a counter; beyond some 2⁴⁰ sums of bins would pass 64 bits."""
_COARSE = 25
"""Below which variance of one number the law of sums of them is worked out, and not that of continuous ones."""
_INSTEAD = "a new Counter(…) under a charge of its own"
_DECLARED = ("epsilon", "rho", "steps", "bounds", "most", "level", "grid", "last", "apart")


class Counter:
    """Counts, or sums, what a stream holds so far, or what came in its last steps, at every step up to a declared number.

    Guarantee: `guarantee`, ρ of zCDP or ε of pure DP, between streams that are neighbours at `level`: one reading added or
    removed ("event"), all of one person's, at most `most` ("user"), or at most one reading in each of w steps in a row
    (`WindowLevel(w)`). It covers everything that the counter ever publishes. `person` is what follows for a person
    (`levels.py`), and None where nothing does. Theorem: with ρ, the square-root factorisation in whole numbers and discrete
    Gaussian noise (Canonne, Kamath & Steinke 2020, Theorem 14); with ε, the binary tree and discrete Laplace noise. Proof:
    a reading is clamped to `bounds`, so one more changes one step total by at most B = max |bounds|, and the vector C̃·x by
    at most B times a column of C̃; k readings, by the triangle inequality, by at most k·B times the longest column, in L2
    (`square_root.py`) or L1 (`tree.py`); with the banded square root, k readings of a person that are `apart` as declared
    move it by at most √k·B times a column (`banded.py`). The noise is scaled to that. The totals, their sums and products with
    weights are exact integers. Streams whose values are chosen in view of what was published are covered too: at each step the
    release moves by a number that is fixed by what came before, its divergence is that of exact noise for this number, and on
    every path their squares (or sizes) add up to no more than the bound, so all steps pass one filter of ρ (or ε) (Feldman &
    Zrnic 2021; Rogers, Roth, Ullman & Vadhan 2016).

    Error: unbiased; `margin()` for the sum after the steps so far.

    Parameters
    ----------
    epsilon, rho
        What is promised at the level; one of the two.
    steps
        How many steps are released at most. The error grows as its logarithm, so a generous number is cheap.
    bounds
        The least and the greatest that one reading may count: it is clamped to them.
    most
        How many readings one person sends at most, in all. The owner answers for it.
    level
        "event", "user" or `WindowLevel(w)`.
    grid
        The unit of readings that are no whole numbers: they are rounded to multiples of it.
    last
        With ρ: of how many steps the sum is, this one and those before it, up to 4,096; None: of all. Its error does not grow
        with `steps`.
    apart
        With ρ, at user level: by how many steps two readings of one person differ at least; the owner answers for it. The noise
        then grows with the root of `most`, where that is less.

    >>> visits = Counter(rho="0.5", steps=1000, random=Random.deterministic(1))
    >>> sums = [visits.step([1] * 20) for hour in range(100)]
    >>> abs(sums[-1] - 2000) < visits.margin("0.999") < 12
    True
    >>> print(visits)
    Counter: 100 of 1000 steps; ρ = 0.5 an event: events only, unbounded for a person
    """

    def __init__(
        self,
        *,
        epsilon: Exact | None = None,
        rho: Exact | None = None,
        steps: int,
        bounds: tuple[Exact, Exact] = (0, 1),
        most: int | None = None,
        level: Level = "event",
        grid: Exact = 1,
        last: int | None = None,
        apart: int | None = None,
        random: Random | None = None,
    ) -> None:
        self.protection = Protection.of(level, most=most, steps=steps)
        if steps > _LONGEST:
            raise InvalidParameter(
                f"steps={steps:,} is invalid", why=f"at most {_LONGEST:,} steps are counted", instead=f"steps={_LONGEST}"
            )
        self.guarantee = _promised(epsilon, rho)
        self.grid = exact_positive(grid, "grid")
        if not Fraction(1, 10**150) <= self.grid <= 10**150:
            raise InvalidParameter("grid is invalid", why="it lies between 10⁻¹⁵⁰ and 10¹⁵⁰", instead="grid=1")
        self._low, self._high = _bounds_in(bounds, self.grid)
        self.last, self.apart = (
            None if each is None else whole(each, name, least=1) for each, name in ((last, "last"), (apart, "apart"))
        )
        if (last or apart) and isinstance(self.guarantee, PureDP):
            raise InvalidParameter(
                "The counter is invalid", why="last and apart need a matrix that is known for ρ alone", instead="rho='0.5'"
            )
        if apart and level != "user":
            raise InvalidParameter(
                f"apart={apart} is invalid",
                why="it says how the readings of one person lie, and this level protects no person",
                instead='level="user", most=10',
            )
        if last and last > WIDEST:
            raise InvalidParameter(
                f"last={last} is invalid",
                why=f"a sum of up to {WIDEST:,} steps is kept",
                instead=f"last={WIDEST}, or longer steps",
            )
        self.random = source(random)
        self._now = self._chosen(max(abs(self._low), abs(self._high)))
        self._lock = StepLock(error=BudgetExceeded, instead=_INSTEAD)

    @property
    def taken(self) -> int:
        """How many steps are released."""
        return self._now.taken

    @property
    def published(self) -> int:
        """The integer that was published last."""
        return self._now.published

    @property
    def total(self) -> float:
        """The sum that was released last."""
        return self._now.total

    def _chosen(self, widest: int) -> _Mechanism:
        """The mechanism with the least noise in the last sum, for readings of at most `widest`."""
        steps, readings = self.protection.steps, self.protection.readings
        if isinstance(self.guarantee, PureDP):
            return _Laplace(self.guarantee, steps, widest * readings)
        found: list[_Mechanism] = []
        if self.last is None:
            found.append(_Gaussian(self.guarantee, steps, widest * readings))
        else:
            found.append(_BandedGaussian(self.guarantee, min(self.last, steps), self.last, (widest * readings) ** 2))
        if self.apart is not None:
            bands = min(each for each in (self.apart, self.last, steps, WIDEST) if each)
            sent = min(readings, -(-steps // self.apart))
            found.append(_BandedGaussian(self.guarantee, bands, self.last, widest**2 * sent))
        return min(found, key=lambda mechanism: mechanism.deviation(steps))

    @property
    def person(self) -> PureDP | ZCDP | None:
        """What a person is promised: the line that a population is charged. None: events only, unbounded for a person.

        >>> Counter(epsilon=1, steps=64, most=3).person
        PureDP(epsilon='3')
        >>> Counter(epsilon=1, steps=64).person is None
        True
        """
        return self.protection.person(self.guarantee)

    @property
    def noise(self) -> DiscreteGaussian | DiscreteLaplace:
        """The law of the noise of each published integer."""
        return self._now.noise

    def step(self, value: Readings = None) -> float:
        """The running sum, or that of the last steps, at the end of the next step, in which `value` came: a number, many numbers,
        or nothing.

        A reading is rounded to the grid and clamped to the bounds; what is not a number (NaN, None) counts as missing, so the
        sum without it is released. The sum of a step counts up to some 2⁶²/steps units of the grid. A step that is interrupted
        while its noise is drawn was not taken, and counts its readings once when it is taken again (`StepLock`).

        >>> counter = Counter(rho=5000, steps=10, bounds=(-5, 5), random=Random.deterministic(1))
        >>> [round(counter.step(value)) for value in (3, None, [1, 1, float("nan")], 100)]
        [3, 3, 5, 10]
        """
        units = self._units(value)
        return self._lock.take(lambda: self._drawn(units), self._keep)

    def _drawn(self, units: int) -> _Mechanism:
        """What the next step makes of the state, with its noise; nothing is changed."""
        self.protection.refuse_beyond(self.taken, "the counter was charged", _INSTEAD)
        sums = draft(self._now)
        sums.total = float(self.grid) * sums.release(units, self.random)
        return sums

    def _keep(self, drawn: _Mechanism) -> float:
        self._now = drawn
        return drawn.total

    def margin(self, confidence: Exact = "0.95") -> float:
        """The half-width of the interval of the running sum after the steps so far; of the noise alone, not of clamping.

        For ρ the variance is that of `SquareRoot.energy_bound`, which is fitted beyond 2²⁰ steps, or the banded matrix's own;
        for ε it is exact, and the
        quantile that of a sum of equal discrete Laplace numbers, or of continuous ones and half a unit where these are wide.

        >>> counter = Counter(epsilon=1, steps=1023)
        >>> counter.margin()
        0.0
        >>> _ = counter.step(1)
        >>> counter.margin("0.95") > 20
        True
        """
        wanted = confidence_level(confidence)
        now = self._now
        return float(self.grid) * now.margin(now.taken, wanted) if now.taken else 0.0

    def state(self) -> dict[str, Any]:
        """All that the next step needs, declarations included, as plain JSON. It holds exact sums: keep it as you keep the data.

        >>> counter = Counter(rho=1, steps=8)
        >>> _ = counter.step(1)
        >>> Counter.from_state(counter.state()).total == counter.total
        True
        """
        return self._told(self._now)

    def _told(self, now: _Mechanism) -> dict[str, Any]:
        level = self.protection.level
        return {
            "epsilon": text_of(self.guarantee.epsilon) if isinstance(self.guarantee, PureDP) else None,
            "rho": text_of(self.guarantee.rho) if isinstance(self.guarantee, ZCDP) else None,
            "steps": self.protection.steps,
            "bounds": [text_of(self._low * self.grid), text_of(self._high * self.grid)],
            "most": self.protection.most,
            "level": level if isinstance(level, str) else level.steps,
            "grid": text_of(self.grid),
            "last": self.last,
            "apart": self.apart,
            "taken": now.taken,
            "published": now.published,
            "total": now.total,
            "sums": now.memory.state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, random: Random | None = None) -> Counter:
        """The counter that a state is of. Two that go on from one state publish two noisy numbers of one exact one: keep one."""
        declared: dict[str, Any] = {name: state.get(name) for name in _DECLARED}  # the first counters had no last and apart
        if isinstance(declared["level"], int):
            declared["level"] = WindowLevel(declared["level"])
        counter = cls(**declared, random=random)
        now = counter._now
        now.memory.restore(state["sums"])
        now.taken, now.published, now.total = (state[name] for name in ("taken", "published", "total"))
        return counter

    def __str__(self) -> str:
        apart = "" if self.apart is None else f", at least {self.apart} steps apart"
        summed = "" if self.last is None else f", sums of the last {self.last}"
        promised = self.protection.sentence(self.guarantee, self.person)
        return f"Counter: {self.taken} of {self.protection.steps} steps{summed}; {promised}{apart}"

    def _units(self, value: Readings) -> int:
        """The step's exact total in units of the grid. What is refused follows from types alone."""
        if value is None:
            return 0
        if isinstance(value, np.ndarray):
            array = value
        else:
            array = np.array([value] if isinstance(value, int | float | np.number | np.bool_) else list(value), dtype=object)
        if array.dtype.kind == "O":
            items = [math.nan if item is None else _clamped(item) for item in array.ravel().tolist()]
            array = np.array(items, dtype=_kind_of(items))
        if array.dtype.kind == "b":
            array = array.astype(np.int64)
        if array.dtype.kind in "iu" and self.grid == 1:
            units = np.clip(array, self._low, self._high).astype(np.int64)
        elif array.dtype.kind in "iuf":
            ratio = array.astype(np.float64) / float(self.grid)
            units = np.rint(np.clip(ratio[~np.isnan(ratio)], self._low, self._high)).astype(np.int64)
        else:
            raise InvalidParameter(
                "The readings of a step are invalid", why="they must be numbers", instead="counter.step([1, 0, 1])"
            )
        most = self._now.most
        return max(-most, min(most, int(units.sum())))


class _Mechanism:
    """Sums that are published with noise of one law, what was published and what is read of it: all that changes with a step, so
    that one assignment changes it."""

    taken, published, total = 0, 0, 0.0
    changes: ClassVar[tuple[str, ...]] = ("memory",)
    most = 2**62
    noise: DiscreteGaussian | DiscreteLaplace
    memory: RootSums | BandedSums | BinaryTree

    def release(self, units: int, random: Random) -> float:
        """The next step: the sum that is read of the integer that is published, and of those before it."""
        self.taken += 1
        self.published = int(self.noise.release(self.memory.close(self.taken, units), random=random))
        return float(self.memory.read(self.taken, self.published))

    def deviation(self, taken: int) -> float:
        """Of the running sum after so many steps, where its law is about normal."""
        raise NotImplementedError

    def margin(self, taken: int, confidence: float) -> float:
        return self.deviation(taken) * sum_of_laplace(math.inf, confidence)


class _Gaussian(_Mechanism):
    """y = C̃·x + z with discrete Gaussian z, and the running sum that is read from it."""

    def __init__(self, guarantee: ZCDP, steps: int, reach: int) -> None:
        self.matrix = square_root_matrix(steps)
        self.noise = DiscreteGaussian.for_rho(guarantee.rho, sensitivity_squared=reach**2 * self.matrix.l2_squared)
        self.most, self.memory = self.matrix.most, RootSums(self.matrix)

    def deviation(self, taken: int) -> float:
        return math.sqrt(self.matrix.energy_bound(taken) * self.noise.variance) / float(self.matrix.weights[0])


class _BandedGaussian(_Mechanism):
    """The banded square root with discrete Gaussian z."""

    def __init__(self, guarantee: ZCDP, bands: int, last: int | None, reach_squared: int) -> None:
        self.matrix, self.last = banded_matrix(bands), last
        self.noise = DiscreteGaussian.for_rho(guarantee.rho, sensitivity_squared=reach_squared * self.matrix.l2_squared)
        self.memory = BandedSums(self.matrix, last=last)

    def deviation(self, taken: int) -> float:
        return math.sqrt(self.matrix.energy(taken, last=self.last) * self.noise.variance) / self.matrix.unit


class _Laplace(_Mechanism):
    """The binary tree with discrete Laplace noise."""

    def __init__(self, guarantee: PureDP, steps: int, reach: int) -> None:
        self.memory = BinaryTree(steps)
        self.noise = DiscreteLaplace.for_epsilon(guarantee.epsilon, sensitivity=reach * self.memory.levels)

    def margin(self, taken: int, confidence: float) -> float:
        terms = taken.bit_count()
        if self.noise.variance < _COARSE:
            return float(_whole_margin(float(self.noise.scale), terms, confidence))
        # half a unit: the noise is whole, and the law that is taken for it is not
        return math.sqrt(terms * self.noise.variance) * sum_of_laplace(terms, confidence) + 0.5


def _whole_margin(scale: float, terms: int, confidence: float) -> int:
    """The least m with P(|S| ≤ m) ≥ confidence, for the sum of so many discrete Laplace numbers, by their exact law.

    >>> _whole_margin(1 / math.log(2), 1, 0.9), _whole_margin(1 / math.log(2), 2, 0.9)
    (3, 5)
    """
    one = np.exp(-np.abs(np.arange(-math.ceil(45 * scale), math.ceil(45 * scale) + 1)) / scale)
    law = np.ones(1)
    for _ in range(terms):
        law = np.convolve(law, one / one.sum())
    middle = len(law) // 2
    inside = law[middle] + np.cumsum(np.concatenate([[0.0], law[middle + 1 :] + law[:middle][::-1]]))
    return int(np.searchsorted(inside, min(confidence, inside[-1])))


def _promised(epsilon: Exact | None, rho: Exact | None) -> PureDP | ZCDP:
    if epsilon is not None and rho is None:
        return PureDP(exact_positive(epsilon, "epsilon"))
    if rho is not None and epsilon is None:
        return ZCDP(exact_positive(rho, "rho"))
    raise InvalidParameter(
        "The counter is invalid", why="it needs either epsilon or rho", instead="Counter(rho='0.5', steps=4096)"
    )


def _bounds_in(bounds: tuple[Exact, Exact], grid: Fraction) -> tuple[int, int]:
    """Declared bounds in whole units of the grid."""
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        raise MissingBound("The counter was refused", why="it has no bounds of a reading", instead="Counter(…, bounds=(0, 1))")
    low, high = (exact(bound, "bounds") / grid for bound in bounds)
    if low.denominator != 1 or high.denominator != 1:
        raise InvalidParameter(
            "bounds is invalid", why=f"they are not multiples of grid={text_of(grid)}", instead="bounds=(0, 1), grid='0.01'"
        )
    if not low <= high or not (low or high) or max(abs(low), abs(high)) > _WIDEST:
        raise InvalidParameter(
            "bounds is invalid",
            why="the first must not exceed the second, one must differ from 0, and neither may pass 2³¹ units of the grid",
            instead="bounds=(0, 1)",
        )
    return int(low), int(high)


def _clamped(item: Any) -> Any:
    """A whole number as 64 bits hold it: bounds are far narrower."""
    return max(-(2**62), min(2**62, int(item))) if isinstance(item, int | np.integer) else item


def _kind_of(items: list[Any]) -> type[np.float64] | type[np.int64] | type[object]:
    """What Python's own numbers become: whole ones stay whole."""
    if all(isinstance(item, int) for item in items):
        return np.int64
    return np.float64 if all(isinstance(item, int | float | np.number | np.bool_) for item in items) else object
