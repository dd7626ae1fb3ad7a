"""Which marginals to measure, and with what shares of one spend, so that the wanted ones come out best.

The wanted marginals need not be the measured ones: all of them follow from the finest table, whose cells are many and whose
sums are noisy, and one or two coarser tables beside it often repay what they cost. With x_S the share of marginal S, its noise
has a variance ∝ s_S²/x_S^p, where s_S is its sensitivity, p = 1 for ρ-zCDP (Gaussian noise, L2) and p = 2 for pure ε (Laplace
noise, L1). By the decomposition in `marginals.py`, the sum over the cells of the wanted marginals of their variances is

    f(x) = Σ_T a_T / λ_T,   λ_T = Σ_{S ⊇ T} x_S^p / (s_S² Π_{S∖T} n_i),   to be made least under Σ x_S = 1.

Claim. x_S ← (x_S^2p h_S)^(1/(p+1)), made to sum to 1, with h_S = Σ_{T ⊆ S} a_T / (λ_T² s_S² Π_{S∖T} n_i), never raises f.
Proof: by convexity of 1/y, for any weights π that sum to 1, 1/Σ y_S ≤ Σ π_S²/y_S, with equality where π ∝ y. With π from the x
at hand, f is at most Σ_S C_S / x'_S^p, C_S = x_S^2p h_S, and equal to it at x' = x; the least of the bound under Σ x' = 1 is at
x' ∝ C^(1/(p+1)) (majorise and minimise; Hunter & Lange 2004).

For p = 1, f is convex, and from all candidates at once the steps go to the best: f ≥ 2f(x) − max_S h_S by convexity. (With
noise that is not the same in each cell one could reach (Σ √(a_T d_T / N))², N cells of which d_T belong to effect T, the closed
form of Xiao, He, Zhang & Kifer 2023; the tests hold f against it.) For p = 2 it is not: a share counts by its square, so few
tables are measured, and the search starts from every set of candidates where these are few, else from many.

All of it is public arithmetic: whatever shares come out, they sum to 1, and a poor search would cost accuracy alone.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.session.questions.spend import Measure
from cloister.session.workloads.marginals import (
    Floats,
    Marginal,
    cell_variances,
    cells,
    check_marginals,
    effects_of,
    subsets,
    union,
)

_STEPS = 10_000  # shares are multiples of one ten-thousandth, and smaller ones are dropped
_ALL_AXES = 6  # up to so many axes every subset is a candidate
_ALL_SETS = 8  # up to so many candidates every set of them is a start
_MOST_CELLS = 10_000_000
_LITTLE = 2e-3
_NEXT_TO_NOTHING = 1e-4
_FOLLOWED = 8
_FIRST_ROUNDS = 100
_ROUNDS = 4000
_STILL = 1e-10


def best_shares(
    sizes: Sequence[int],
    wanted: Collection[Marginal],
    measure: Measure,
    *,
    sensitivities: Mapping[Marginal, int] | None = None,
    weights: Mapping[Marginal, float] | None = None,
) -> dict[Marginal, Fraction]:
    """The marginals to measure, each with its share of the spend; the shares sum to exactly 1.

    `measure` is "zcdp" for Gaussian noise under ρ, and anything else for Laplace noise under ε. `sensitivities` are those of
    each table as a whole, L2 or L1, for the tables that can be measured (None: 1 for each). `weights` says how much a cell of
    each wanted marginal counts (None: 1 for each).

    >>> best_shares((2, 16, 5), [(), (0,), (0, 1), (0, 1, 2)], "pure") == {(0, 1, 2): 1}
    False
    >>> best_shares((2,), [(0,)], "zcdp")
    {(0,): Fraction(1, 1)}
    """
    problem = _Problem(tuple(sizes), tuple(dict.fromkeys(wanted)), measure, sensitivities, weights)
    best, least = problem.best_of(problem.starts())
    while problem.power == 2:  # one table more or less than in the best set
        point, error = problem.best_of(problem.neighbours(best))
        if error >= least * (1 - _STILL):
            break
        best, least = point, error
    best = problem.simplified(best)
    found = [problem.whole(best), problem.whole(problem.even)] if problem.even is not None else [problem.whole(best)]
    errors = problem.error(np.array([[float(share) for share in shares] for shares in found]))
    chosen = found[int(np.argmin(errors))]
    return {axes: share for axes, share in zip(problem.candidates, chosen, strict=True) if share}


def total_variance(
    sizes: Sequence[int],
    wanted: Collection[Marginal],
    measure: Measure,
    shares: Mapping[Marginal, Fraction],
    *,
    sensitivities: Mapping[Marginal, int] | None = None,
    weights: Mapping[Marginal, float] | None = None,
) -> float:
    """The sum over all wanted cells of their variances, for these shares of a spend of 1, in units of the variance of one
    number of sensitivity 1 that takes all of it.

    >>> round(total_variance((2, 3), [(), (0, 1)], "pure", {(0, 1): Fraction(1)}), 9)
    12.0
    """
    power = 1 if measure == "zcdp" else 2
    noise = {axes: (sensitivities or {}).get(axes, 1) ** 2 / float(share) ** power for axes, share in shares.items()}
    found = cell_variances(sizes, noise, wanted)
    return sum((weights or {}).get(axes, 1.0) * cells(sizes, axes) * each for axes, each in found.items())


class _Problem:
    """The numbers a_T and the matrix of λ over effects and candidates; points are rows of shares."""

    def __init__(
        self,
        sizes: tuple[int, ...],
        wanted: tuple[Marginal, ...],
        measure: Measure,
        sensitivities: Mapping[Marginal, int] | None,
        weights: Mapping[Marginal, float] | None,
    ) -> None:
        check_marginals(sizes, wanted, "wanted")
        self.power = 1 if measure == "zcdp" else 2
        self.candidates = _candidates(sizes, wanted, sensitivities)
        effects = effects_of(sizes, wanted)
        self.covers: npt.NDArray[np.bool_] = np.array(
            [[set(effect) <= set(axes) for axes in self.candidates] for effect in effects]
        )
        self.told = np.array(
            [
                [1 / cells(sizes, set(axes) - set(effect)) if set(effect) <= set(axes) else 0.0 for axes in self.candidates]
                for effect in effects
            ]
        )
        norms = np.array([1.0 if sensitivities is None else float(sensitivities[axes]) for axes in self.candidates])
        self.told /= norms**2
        self.asked = np.zeros(len(effects))
        for axes in wanted:
            weight = 1.0 if weights is None else float(weights[axes])
            for place, effect in enumerate(effects):
                if set(effect) <= set(axes):
                    dimension = cells([size - 1 for size in sizes], effect)
                    self.asked[place] += weight * dimension / cells(sizes, set(axes) - set(effect))
        every = set(self.candidates)
        even = np.array([float(axes in wanted) for axes in self.candidates])
        self.even = even / even.sum() if every >= set(wanted) else None
        if not self.covers.any(axis=1).all():
            raise InvalidParameter(
                "sensitivities is invalid",
                why="the tables that it names don't hold all that is wanted",
                instead="the sensitivity of the table of all axes too",
            )

    def error(self, points: Floats) -> Floats:
        """f at each point; infinite where something wanted is not measured."""
        with np.errstate(divide="ignore"):
            found: Floats = (self.asked / (points**self.power @ self.told.T)).sum(axis=1)
        return found

    def starts(self) -> Floats:
        """Sets of candidates with equal shares, each of which measures all that is wanted."""
        number = len(self.candidates)
        if self.power == 1:
            return np.full((1, number), 1 / number)
        if number <= _ALL_SETS:
            sets = np.array([[(mask >> place) & 1 for place in range(number)] for mask in range(1, 2**number)], dtype=float)
        else:
            chosen = [np.ones(number), *np.eye(number)]
            largest = np.eye(number)[int(np.argmax(self.covers.sum(axis=0)))]
            chosen += [np.maximum(largest, one) for one in np.eye(number)]
            chosen += [np.maximum(largest, one + other) for one, other in combinations(np.eye(number)[:24], 2)]
            if self.even is not None:
                chosen += [self.even > 0, np.maximum(self.even > 0, largest)]
            sets = np.unique(np.array(chosen, dtype=float), axis=0)
        return self._feasible(sets)

    def neighbours(self, point: Floats) -> Floats:
        """The same set with one candidate more, or one less."""
        number = len(point)
        more = [np.where(np.arange(number) == place, 0.2, point) for place in range(number) if point[place] < 1 / _STEPS]
        less = [np.where(np.arange(number) == place, 0.0, point) for place in range(number) if point[place] >= 1 / _STEPS]
        return self._feasible(np.array(more + less))

    def _feasible(self, sets: Floats) -> Floats:
        sets = sets[sets.sum(axis=1) > 0]
        found = sets[((sets > 0).astype(float) @ self.covers.T.astype(float) > 0).all(axis=1)]
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def best_of(self, points: Floats) -> tuple[Floats, float]:
        """The best point that is reached from any of these, and f there; only the promising ones are followed to the end."""
        if len(points) == 0:
            return np.zeros(len(self.candidates)), np.inf
        if len(points) > _FOLLOWED:
            points = self.descend(points, rounds=_FIRST_ROUNDS)
            points = points[np.argsort(self.error(points), kind="stable")[:_FOLLOWED]]
        points = self.descend(points)
        errors = self.error(points)
        return points[int(np.argmin(errors))], float(errors.min())

    def descend(self, points: Floats, *, rounds: int = _ROUNDS) -> Floats:
        """Steps that never raise f, until it stands still; candidates with next to no share are let go on the way."""
        points, before = points.copy(), np.full(len(points), np.inf)
        for step in range(rounds):
            known = points**self.power @ self.told.T
            slope = (self.asked / known**2) @ self.told
            points = (points ** (2 * self.power) * slope) ** (1 / (self.power + 1))
            points /= points.sum(axis=1, keepdims=True)
            if step % 50 == 49:
                points = self._pruned(points)
                now = self.error(points)
                if (before - now <= _STILL * now).all():
                    break
                before = now
        return points

    def _pruned(self, points: Floats) -> Floats:
        """Without shares that will be dropped, where f is no larger for it."""
        tried = np.where(points < 0.5 / _STEPS, 0.0, points)
        tried /= tried.sum(axis=1, keepdims=True)
        better = self.error(tried) <= self.error(points)
        return np.where(better[:, None], tried, points)

    def simplified(self, point: Floats) -> Floats:
        """Without tables that take little and give next to nothing."""
        fewer = self._feasible(np.where(point < _LITTLE, 0.0, point)[None, :])
        if len(fewer) == 0:
            return point
        fewer = self.descend(fewer)
        return np.asarray(fewer[0] if self.error(fewer)[0] <= self.error(point[None, :])[0] * (1 + _NEXT_TO_NOTHING) else point)

    def whole(self, point: Floats) -> list[Fraction]:
        """Multiples of 1/_STEPS that sum to 1; what is rounded to nothing but needed keeps one."""
        parts = np.rint(point * _STEPS).astype(int)
        for needed in self.covers:
            if not parts[needed].any():
                parts[int(np.argmax(np.where(needed, point, -1.0)))] = 1
        parts[int(np.argmax(parts))] += _STEPS - int(parts.sum())
        return [Fraction(int(part), _STEPS) for part in parts]


def _candidates(
    sizes: tuple[int, ...], wanted: Collection[Marginal], sensitivities: Mapping[Marginal, int] | None
) -> list[Marginal]:
    """What may be measured: the tables that have a sensitivity; else all marginals of the axes that are wanted while these are
    few; else the wanted ones, and their unions. Tables of too many cells are left out, the wanted ones never."""
    axes = union(wanted)
    if sensitivities is not None:
        check_marginals(sizes, sensitivities.keys(), "sensitivities")
        found = set(sensitivities)
    elif len(axes) <= _ALL_AXES:
        found = set(subsets(axes))
    else:
        found = set(wanted) | {union(pair) for pair in combinations(wanted, 2)} | {axes, ()}
    found = {each for each in found if cells(sizes, each) <= _MOST_CELLS or each in wanted}
    return sorted(found, key=lambda each: (len(each), each))


def alike(sizes: Sequence[int], wanted: Collection[Marginal]) -> dict[Marginal, float]:
    """Weights for `best_shares` with which every wanted table counts the same, however many cells it has: then the coarse ones
    don't pay for the finest.

    >>> alike((2, 5), [(), (0, 1)])
    {(): 1.0, (0, 1): 0.1}
    """
    return {axes: 1 / cells(sizes, axes) for axes in dict.fromkeys(wanted)}
