"""Every mechanism of cloister.noise is audited where its guarantee is strained most: never more is found than is promised, and
never so little that the audit would not notice a mechanism that promises too much.

The confidence of each audit is 1 − 10⁻⁹, so the whole table gives a false alarm with probability below 10⁻⁷ on a fresh seed.
`reaches` is the share of what is promised (ε, ρ, or δ at the promised ε) that the audit must find: near 1 where the guarantee is
tight, less where the theorem itself leaves room (a split of ε between two parts, a union bound) or where runs are few because a
release takes long.

A new public mechanism without a case fails the first test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import cloister.noise
from cloister.attacks import AuditResult, audit
from cloister.noise import (
    AboveThreshold,
    BinaryResponse,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Geometric,
    KaryResponse,
    Laplace,
    MatrixMechanism,
    MultiplicativeWeights,
    PermuteAndFlip,
    ProposeTestRelease,
    Random,
    ReportNoisyMax,
    SmoothMedian,
    SparseVector,
    Staircase,
    SymmetricGaussian,
    VectorMechanism,
    WishartMechanism,
)
from cloister.noise.strategies import Tree
from cloister.noise.workloads import Each, Prefixes, Workload
from cloister.privacy.guarantee import ZCDP, Guarantee, PureDP

Runner = Callable[[Any, int, Random], Any]
FEW, MANY = 8_000, 100_000


@dataclass(frozen=True)
class Case:
    """One mechanism between two worlds."""

    mechanism: Any
    left: Any
    right: Any
    reaches: float
    run: Runner | None = None
    """How to run it; left out: as `audit` does by itself."""
    runs: int = MANY
    by_delta: bool = False
    """Whether δ at the promised ε is measured, instead of ε at the promised δ."""
    label: str = field(default="")


def at_once(mechanism: Any) -> Runner:
    """A mechanism that releases each number of an array with noise of its own: n runs in one call."""
    return lambda data, n, random: mechanism.release(np.full(n, data), random=random)


def in_turn(mechanism: Any) -> Runner:
    """One release after another."""
    return lambda data, n, random: [mechanism.release(data, random=random) for _ in range(n)]


def at_distance(mechanism: ProposeTestRelease) -> Runner:
    """The statistic and its distance from a large local sensitivity both move by one person."""
    return lambda data, n, random: [mechanism.release(data, distance=data, random=random) for _ in range(n)]


def asked(mechanism: Any, questions: list[list[int]]) -> Runner:
    """All that a reader of the stream sees: the answers, and where each comes from."""
    origins = {"hypothesis": 0, "measured": 1, "unchecked": 2}

    def once(data: list[int], random: Random) -> list[float]:
        stream = mechanism.start(data, random=random)
        answers = [stream.ask(question) for question in questions]
        return [number for answer in answers for number in (answer.value, origins[answer.origin])]

    return lambda data, n, random: np.array([once(data, random) for _ in range(n)])


LAPLACE = DiscreteLaplace(scale=1)
FINE = DiscreteLaplace(scale="0.2")
COARSE = DiscreteLaplace(scale=10**9, sensitivity=10**9)
TRIPLE = DiscreteLaplace(scale=3, sensitivity=3)
NORMAL = DiscreteGaussian(scale=1, sensitivity=3)
PAIR = DiscreteGaussian(scale=10, sensitivity_squared=1800)
REAL = Laplace(scale=2, sensitivity=2, coordinates=1)
ROUGH = Laplace(scale=2, sensitivity=1, step="0.3", coordinates=1)
SMOOTH = Gaussian(scale=1, sensitivity=3, coordinates=1)
CLAMPED = Geometric(epsilon=1, low=0, high=5)
STAIRS = Staircase(epsilon=2, sensitivity=3)
REAL_STAIRS = Staircase(epsilon=2, sensitivity=1, step="0.01")
COIN = BinaryResponse(truth="0.8", coin="0.8")
ENCODING = KaryResponse.for_epsilon(1, categories=5)
ONE_AHEAD, ALL_AHEAD = (1, *(0,) * 20), (0, *(1,) * 20)
ABOVE = AboveThreshold(epsilon=4, threshold=1)
SPARSE = SparseVector(epsilon=8, threshold=1, hits=2)
MEDIAN = SmoothMedian(lower=0, upper=64, epsilon=2, delta="0.01")
TESTED = ProposeTestRelease(epsilon=2, delta="0.01", proposed=4)
WEIGHTS = MultiplicativeWeights(cells=2, epsilon=4, size=10, threshold=3, corrections=1)
WISHART = WishartMechanism.tightest(dimension=1, epsilon=2, delta="0.1", bound=1, step="0.01")
MATRIX = SymmetricGaussian.for_rho("4.5", dimension=2, bound=1, step="0.01")
PREFIXES = MatrixMechanism.best(Workload.of(Prefixes(2)), PureDP(2))
TREE = MatrixMechanism(workload=Workload.of(Each(2)), strategy=Tree(2, 2, (1, 1)), guarantee=ZCDP("4.5"))
LINE = VectorMechanism(epsilon=2, sensitivity=1, dimension=1, step="0.01")
PLANE = VectorMechanism(epsilon=2, sensitivity=1, dimension=2, step="0.01")

CASES: dict[str, list[Case]] = {
    "AboveThreshold": [Case(ABOVE, [0, 0, 0, 1], [1, 1, 1, 0], 0.5, runs=FEW)],
    "BinaryResponse": [
        Case(COIN, True, False, 0.88, at_once(COIN)),
    ],
    "DiscreteGaussian": [
        Case(NORMAL, 0, 3, 0.5),
        Case(NORMAL, 0, 3, 0.5, at_once(NORMAL), label="release"),
        Case(PAIR, (0, 0), (30, 30), 0.4, label="two numbers"),
    ],
    "DiscreteLaplace": [
        Case(LAPLACE, 0, 1, 0.88),
        Case(LAPLACE, 100, 101, 0.88, at_once(LAPLACE), label="release"),
        Case(FINE, 0, 1, 0.84, label="ε = 5"),
        Case(COARSE, 0, 10**9, 0.84, label="a scale of 10⁹"),
        Case(TRIPLE, (0, 0, 0), (1, 1, 1), 0.68, label="three numbers"),
    ],
    "Exponential": [
        Case(Exponential(epsilon=2), ONE_AHEAD, ALL_AHEAD, 0.72),
        Case(Exponential(epsilon=2, monotone=True), ONE_AHEAD, (0,) * 21, 0.68, label="monotone"),
    ],
    "Gaussian": [Case(SMOOTH, 0.0, 3.0, 0.5, at_once(SMOOTH))],
    "Geometric": [
        Case(CLAMPED, 0, 1, 0.88, at_once(CLAMPED), label="clamped"),
        Case(Geometric(epsilon=1, sensitivity=5), 0, 5, 0.84),
    ],
    "KaryResponse": [Case(ENCODING, 0, 4, 0.83, at_once(ENCODING))],
    "Laplace": [
        Case(REAL, 0.25, 2.25, 0.84, at_once(REAL)),
        Case(ROUGH, 0.14, 1.14, 0.78, at_once(ROUGH), label="a step that does not divide"),
    ],
    "MatrixMechanism": [
        Case(PREFIXES, [5, 5], [6, 5], 0.55, runs=FEW),
        Case(TREE, [5, 5], [6, 5], 0.2, runs=FEW, label="Gaussian noise"),
    ],
    "MultiplicativeWeights": [Case(WEIGHTS, [9, 5], [10, 5], 0.2, asked(WEIGHTS, [[1, 0], [0, 1]]), runs=4_000)],
    "PermuteAndFlip": [
        Case(PermuteAndFlip(epsilon=2), ONE_AHEAD, ALL_AHEAD, 0.75),
        Case(PermuteAndFlip(epsilon=2, monotone=True), ONE_AHEAD, (0,) * 21, 0.68, label="monotone"),
    ],
    "ProposeTestRelease": [Case(TESTED, 4, 5, 0.3, at_distance(TESTED), runs=FEW)],
    "ReportNoisyMax": [
        Case(ReportNoisyMax(epsilon=2), ONE_AHEAD, ALL_AHEAD, 0.75),
        Case(ReportNoisyMax(epsilon=2, noise="gumbel"), ONE_AHEAD, ALL_AHEAD, 0.72, label="Gumbel"),
        Case(ReportNoisyMax(epsilon=2, noise="exponential"), ONE_AHEAD, ALL_AHEAD, 0.75, label="exponential"),
    ],
    "SmoothMedian": [Case(MEDIAN, [64, 0, 64], [64, 0, 64, 0], 0.25, runs=FEW)],
    "SparseVector": [Case(SPARSE, [0, 0, 1, 1], [1, 1, 0, 0], 0.25, runs=FEW)],
    "Staircase": [
        Case(STAIRS, 0, 3, 0.88),
        Case(REAL_STAIRS, 0.0, 1.0, 0.65, in_turn(REAL_STAIRS), runs=FEW, label="real numbers"),
    ],
    "SymmetricGaussian": [Case(MATRIX, [[0, 0], [0, 0]], [[100, 0], [0, 0]], 0.3, in_turn(MATRIX), runs=FEW)],
    "VectorMechanism": [
        Case(LINE, [0], [100], 0.6, in_turn(LINE), runs=FEW),
        Case(PLANE, [0, 0], [100, 0], 0.4, in_turn(PLANE), runs=FEW, label="a plane"),
    ],
    "WishartMechanism": [
        Case(WISHART, [[0]], [[100]], 0.4, in_turn(WISHART), runs=2 * FEW, by_delta=True),
    ],
}
EACH = [(name, case) for name, cases in CASES.items() for case in cases]


def mechanisms() -> list[str]:
    """The public classes that release something under a guarantee of their own; protocols aside."""
    found = []
    for name in cloister.noise.__all__:
        thing = getattr(cloister.noise, name)
        if inspect.isclass(thing) and hasattr(thing, "release") and not getattr(thing, "_is_protocol", False):
            promises = hasattr(thing, "guarantee") or "guarantee" in getattr(thing, "__annotations__", {})
            found += [name] if promises else []
    return found


def test_every_mechanism_has_an_audit() -> None:
    assert mechanisms()
    assert sorted(CASES) == sorted(mechanisms())
    assert all(type(case.mechanism).__name__ == name for name, case in EACH)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "case"), EACH, ids=[f"{name}, {case.label}" if case.label else name for name, case in EACH])
def test_the_guarantee_is_kept_and_the_audit_would_notice_if_it_were_not(name: str, case: Case) -> None:
    promised = case.mechanism.guarantee
    question = {"epsilon": promised.epsilon} if case.by_delta else {"against": promised}
    found = audit(case.run or case.mechanism, case.left, case.right, runs=case.runs, random=Random.deterministic(1), **question)
    assert not found.contradicts(promised), found
    assert share_of(promised, found, by_delta=case.by_delta) >= case.reaches, found


def share_of(promised: Guarantee, found: AuditResult, *, by_delta: bool) -> float:
    if isinstance(promised, ZCDP):
        return found.rho / float(promised.rho)
    return float(found.delta / promised.delta) if by_delta else found.epsilon / float(promised.epsilon)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("name", "case"), EACH, ids=[f"{name}, {case.label}" if case.label else name for name, case in EACH])
def test_ten_times_as_many_runs_on_fresh_randomness_find_nothing_either(name: str, case: Case) -> None:
    promised = case.mechanism.guarantee
    question = {"epsilon": promised.epsilon} if case.by_delta else {"against": promised}
    found = audit(case.run or case.mechanism, case.left, case.right, runs=10 * case.runs, **question)
    assert not found.contradicts(promised), found
    assert share_of(promised, found, by_delta=case.by_delta) >= case.reaches, found
