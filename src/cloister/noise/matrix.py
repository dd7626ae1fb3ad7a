"""The matrix mechanism: ask a cleverly chosen strategy A with noise, and put the wanted questions W together by least squares.

Error ‖W A⁺‖²_F · (noise variance), with a noise scale that grows with A's sensitivity; the questions share one noise, so they
agree with each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.noise._checks import integers_or_none, level, vector
from cloister.noise._optimise import level_strategies, search_concentrated, search_pure
from cloister.noise.gaussian import DiscreteGaussian
from cloister.noise.laplace import DiscreteLaplace
from cloister.noise.mechanism import set_fields
from cloister.noise.random import Random
from cloister.noise.strategies import Product, Strategy
from cloister.noise.trees import level_energies
from cloister.noise.workloads import Factor, Workload
from cloister.privacy import ZCDP, Exact, PureDP, exact_positive

_SEARCHED = 128


@dataclass(frozen=True, init=False, eq=False)
class MatrixMechanism:
    """Answers a workload of linear questions about a table of counts through a strategy.

    Guarantee: `guarantee`, ε of pure DP or ρ of zCDP, between neighbours whose tables of counts differ by at most `sensitivity`
    in L1 (1 for unbounded neighbours with one row a unit) (Li, Miklau, Hay, McGregor & Rastogi 2015).
    Proof: A times such a difference has L1 norm at most sensitivity·l1(A) and L2 norm at most sensitivity·l2(A), by the
    triangle inequality over its unit steps; A·counts is an exact integer vector, noised by exact discrete Laplace or Gaussian
    noise for these sensitivities; the rest is post-processing.

    Error: exact. The answers are unbiased; question q has variance σ²·‖q A⁺‖² (`variances`), σ² that of the noise. `margin`
    matches the second and fourth moments of the sum of noises: exact for one noise and for equal weights, within some per cent
    between.

    >>> from cloister.noise.workloads import Prefixes
    >>> from cloister.noise.strategies import Tree
    >>> mechanism = MatrixMechanism.best(Workload.of(Prefixes(64)), PureDP(1))
    >>> alone = MatrixMechanism(workload=mechanism.workload, strategy=Product((Tree(64, 64, (1, 0)),)), guarantee=PureDP(1))
    >>> mechanism.variance < alone.variance / 1.2
    True
    """

    workload: Workload
    strategy: Product
    guarantee: PureDP | ZCDP
    sensitivity: Fraction

    def __init__(
        self, *, workload: Workload, strategy: Product | Strategy, guarantee: PureDP | ZCDP, sensitivity: Exact = 1
    ) -> None:
        product = strategy if isinstance(strategy, Product) else Product((strategy,))
        if product.shape != workload.shape:
            raise InvalidParameter(
                "strategy is invalid",
                why="it is about another table than the workload",
                instead="MatrixMechanism.best(workload, …)",
            )
        check_guarantee(guarantee)
        set_fields(
            self, workload=workload, strategy=product, guarantee=guarantee, sensitivity=exact_positive(sensitivity, "sensitivity")
        )

    @classmethod
    def best(cls, workload: Workload, guarantee: PureDP | ZCDP, *, sensitivity: Exact = 1) -> MatrixMechanism:
        """With the best strategy that the search finds for this workload and this kind of guarantee.

        >>> from cloister.noise.workloads import Each
        >>> MatrixMechanism.best(Workload.of(Each(4)), PureDP(1)).strategy.l1
        1
        """
        check_guarantee(guarantee)
        strategy = best_strategy(workload, pure=isinstance(guarantee, PureDP))
        return cls(workload=workload, strategy=strategy, guarantee=guarantee, sensitivity=sensitivity)

    @cached_property
    def noise(self) -> DiscreteLaplace | DiscreteGaussian:
        """The law of the noise of each of the strategy's answers."""
        if isinstance(self.guarantee, PureDP):
            return DiscreteLaplace.for_epsilon(self.guarantee.epsilon, sensitivity=self.sensitivity * self.strategy.l1)
        return DiscreteGaussian.for_rho(self.guarantee.rho, sensitivity_squared=self.sensitivity**2 * self.strategy.l2_squared)

    @cached_property
    def total_variance(self) -> float:
        """The sum of the variances of all questions: ‖W A⁺‖²_F times that of the noise."""
        return self.noise.variance * sum(self.strategy.energy(product) for product in self.workload.products)

    @property
    def variance(self) -> float:
        """The mean variance of a question."""
        return self.total_variance / self.workload.rows

    def variances(self) -> npt.NDArray[np.float64]:
        """The variance of each question, in the workload's order.

        >>> from cloister.noise.workloads import Prefixes
        >>> mechanism = MatrixMechanism.best(Workload.of(Prefixes(8)), ZCDP("0.5"))
        >>> bool(np.isclose(mechanism.variances().sum(), mechanism.total_variance))
        True
        """
        return self.noise.variance * self._moments[0]

    def margin(self, confidence: Exact = 0.95) -> npt.NDArray[np.float64]:
        """The half-width of the interval of each question by itself, in the workload's order.

        >>> from cloister.noise.workloads import Each
        >>> from cloister.noise.strategies import Tree
        >>> mechanism = MatrixMechanism(workload=Workload.of(Each(2)), strategy=Tree(2, 2, (1, 0)), guarantee=PureDP("0.1"))
        >>> mechanism.margin(0.95).round(1).tolist()
        [29.9, 29.9]
        """
        wanted = level(confidence)
        second, fourth = self._moments
        spread = np.sqrt(self.noise.variance * second)
        if isinstance(self.noise, DiscreteGaussian):
            return np.asarray(spread * sum_of_laplace(math.inf, wanted))
        # for k equal weights Σc⁴/(Σc²)² = 1/k
        shares = np.where(second > 0, fourth / np.maximum(second, 1e-300) ** 2, 0.0)
        grid = np.geomspace(1e-4, 1.0, 60)
        quantiles = np.array([sum_of_laplace(1 / share, wanted) for share in grid])
        return np.asarray(spread * np.interp(np.log(np.maximum(shares, 1e-4)), np.log(grid), quantiles))

    def measure(self, value: Any, *, random: Random | None = None) -> npt.NDArray[Any]:
        """The strategy's noisy answers to the private cells: all that is private happens here.

        >>> from cloister.noise.workloads import Each
        >>> from cloister.noise.strategies import Tree
        >>> from cloister.noise.random import Random
        >>> mechanism = MatrixMechanism(workload=Workload.of(Each(2)), strategy=Tree(2, 2, (1, 1)), guarantee=PureDP(99))
        >>> mechanism.measure([100, 200], random=Random.deterministic(1)).tolist()
        [100, 200, 300]
        """
        given = integers_or_none(value)  # not by numpy, which makes floats of what is beyond 64 bits
        cells = vector(value if given is None else given.reshape(-1), "value", self.workload.cells)
        return np.asarray(self.noise.release(self.strategy.apply(cells), random=random))

    def reconstruct(self, answers: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The table of cells by least squares from noisy answers, unbiased and best among linear estimates.

        >>> from cloister.noise.workloads import Each
        >>> from cloister.noise.strategies import Tree
        >>> mechanism = MatrixMechanism(workload=Workload.of(Each(2)), strategy=Tree(2, 2, (1, 1)), guarantee=PureDP(9))
        >>> mechanism.reconstruct(np.array([100, 200, 303])).round(6).tolist()
        [101.0, 201.0]
        """
        return self.strategy.reconstruct(answers)

    def release(self, value: Any, *, random: Random | None = None) -> npt.NDArray[np.float64]:
        """Answers to all questions of the workload, in its order; they are consistent with one table.

        >>> from cloister.noise.workloads import Prefixes
        >>> from cloister.noise.random import Random
        >>> MatrixMechanism.best(Workload.of(Prefixes(4)), PureDP(5)).release([9, 9, 9, 9], random=Random.deterministic(1)).shape
        (4,)
        """
        return np.asarray(self.workload.answers(self.reconstruct(self.measure(value, random=random))), dtype=np.float64)

    @cached_property
    def _moments(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        parts = [self.strategy.moments(product) for product in self.workload.products]
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def best_strategy(workload: Workload, *, pure: bool, searched: int = _SEARCHED) -> Product:
    """A product of strategies, one an axis: each axis takes the best of its candidates in turn, given the others, and then again.

    Candidates: identity, total and cells, hierarchies, the Haar wavelet, each with fitted weights, and for axes of at most
    `searched` cells what the gradient search finds. The error of a union of products is a weighted sum over products, so an
    axis sees a weighted sum of its factors.

    >>> from cloister.noise.workloads import Each
    >>> best_strategy(Workload.of(Each(5)), pure=True).factors
    (Tree(cells=5, branching=5, weights=(1, 0)),)
    """
    axes = len(workload.shape)
    chosen: list[Strategy] = [level_strategies(cells, lambda b, h: [1.0] * (h + 1), pure=pure)[0] for cells in workload.shape]
    # a single product looks the same to an axis whatever the others do; in a union the dear search waits for the last round
    rounds = [0, 0, searched] if axes > 1 and len(workload.products) > 1 else [searched]
    for dense in rounds:
        for axis in range(axes):
            shares = [
                math.prod(chosen[other].energy(product[other]) for other in range(axes) if other != axis)
                for product in workload.products
            ]
            chosen[axis] = _best_of_axis([product[axis] for product in workload.products], shares, pure=pure, searched=dense)
    return Product(tuple(chosen))


def _best_of_axis(factors: Sequence[Factor], shares: Sequence[float], *, pure: bool, searched: int) -> Strategy:
    cells = factors[0].cells

    def energies_of(branching: int, height: int) -> list[float]:
        parts = [level_energies(factor, branching, height) for factor in factors]
        return [sum(share * part[level] for share, part in zip(shares, parts, strict=True)) for level in range(height + 1)]

    candidates: list[Strategy] = list(level_strategies(cells, energies_of, pure=pure))
    if 1 < cells <= searched:
        gram = sum(share * factor.gram() for share, factor in zip(shares, factors, strict=True))
        candidates.append((search_pure if pure else search_concentrated)(np.asarray(gram)))
    errors = [
        sum(share * candidate.energy(factor) for share, factor in zip(shares, factors, strict=True))
        * float(candidate.l1**2 if pure else candidate.l2_squared)
        for candidate in candidates
    ]
    return candidates[int(np.argmin(np.round(np.array(errors) / min(errors), 9)))]


def check_guarantee(guarantee: object) -> None:
    """Refuse what the matrix mechanism cannot promise.

    >>> check_guarantee(PureDP(1))
    """
    if isinstance(guarantee, PureDP) and guarantee.epsilon > 0:
        return
    if isinstance(guarantee, ZCDP) and guarantee.rho > 0 and guarantee.delta == 0:
        return
    raise InvalidParameter("guarantee is invalid", why="it must be pure ε or ρ-zCDP, above 0", instead="PureDP(1) or ZCDP('0.5')")


@lru_cache(maxsize=4096)
def sum_of_laplace(terms: float, confidence: float) -> float:
    """The m with P(|S| ≤ m) = confidence, for S of variance 1, the sum of `terms` equal Laplace numbers; infinitely many are
    normal.

    `terms` need not be whole: the law of characteristic function (1 + t²/2k)^(−k) exists for every k > 0. P(|S| ≤ m) is
    (2/π) ∫₀^∞ φ(t) sin(mt)/t dt (Gil-Pelaez 1951), inverted by bisection.

    >>> round(sum_of_laplace(1, 0.95), 4), round(sum_of_laplace(math.inf, 0.95), 4)
    (2.1183, 1.96)
    """
    low, high = 0.0, 2 * math.log(4 / (1 - confidence)) + 2
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if _inside(terms, middle) >= confidence else (middle, high)
    return high


def _inside(terms: float, m: float) -> float:
    if terms == math.inf:
        return math.erf(m / math.sqrt(2))
    if terms <= 1:
        return -math.expm1(-m * math.sqrt(2))
    # a gamma mixture of normals: of variance Γ(k)/k, whose logarithm has a smooth, light-tailed law
    x, weights = _gamma_nodes(terms)
    return float((weights * np.vectorize(math.erf)(m / np.sqrt(2 * x))).sum())


@lru_cache(maxsize=512)
def _gamma_nodes(shape: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    spread = 12 / math.sqrt(shape) + 4 / shape
    logs = np.linspace(-min(40 / shape, 2 * spread) - spread, spread, 401)
    density = np.exp(shape * (logs - np.exp(logs) + 1))
    return np.exp(logs), density / density.sum()
