"""Every mechanism of cloister.noise is audited where its guarantee is strained most: never more is found than is promised, and
never so little that the audit would not notice a mechanism that promises too much.

The confidence of each audit is 1 − 10⁻⁹, so the whole table gives a false alarm with probability below 10⁻⁷ on a fresh seed.
`reaches` is the share of what is promised (ε, ρ, or δ at the promised ε) that the audit must find: near 1 where the guarantee is
tight, less where the theorem itself leaves room (a split of ε between two parts, a union bound) or where runs are few because a
release takes long.

A new public mechanism without a case fails the first test.

`WIDE` is the same promise on the numbers that a mechanism may be tempted to take its grid from: fractions, decimals, mixed
denominators, 10^±30. Those worlds are not the ones that strain the bound most, so nothing is said of what an audit must find.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cloister.noise
from cloister.attacks import AuditResult, audit
from cloister.errors import InvalidParameter
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


def less(mechanism: Any, origin: Any, scale: Any = 1) -> Runner:
    """Each release less a public number, in a public unit: the audit looks at floats, which lose what is beyond their digits."""
    return lambda data, n, random: [
        float((Fraction(each) - origin) / scale)
        for each in np.asarray(mechanism.release(np.full(n, data), random=random)).tolist()
    ]


def one_less(mechanism: Any, origin: Any, scale: Any = 1) -> Runner:
    """The same, for a mechanism that takes one number at a time."""
    return lambda data, n, random: [float((Fraction(mechanism.release(data, random=random)) - origin) / scale) for _ in range(n)]


def cells_less(mechanism: Any, origin: int, scale: Any = 1) -> Runner:
    """The same, for vectors and matrices of integers."""
    return lambda data, n, random: np.array(
        [
            [float((int(each) - origin) / scale) for each in np.asarray(release(data, random=random)).ravel().tolist()]
            for release in [getattr(mechanism, "measure", mechanism.release)]
            for _ in range(n)
        ]
    )


HUGE, TINY = 10**30, Fraction(1, 10**30)
THIRD = Fraction(1, 3)
ODD_LAPLACE = DiscreteLaplace(scale="10/7", sensitivity="5/3")
ODD_NORMAL = DiscreteGaussian(scale_squared="10/7", sensitivity="5/3")
TINY_LAPLACE = Laplace(scale=TINY, sensitivity=TINY, coordinates=1)
ODD_STEP = Laplace(scale="7/3", sensitivity="5/7", step="1/11", coordinates=1)
HUGE_LAPLACE = Laplace(scale=HUGE, sensitivity=HUGE, step=10**29, coordinates=1)
TINY_NORMAL = Gaussian(scale=TINY, sensitivity=3 * TINY, coordinates=1)
ODD_NORMAL_STEP = Gaussian(scale="7/3", sensitivity="5/7", step="1/11", coordinates=1)
TINY_STAIRS = Staircase(epsilon=1, sensitivity=TINY, step=TINY / 7)
ODD_STAIRS = Staircase(epsilon="1/3", sensitivity="5/7", step="1/11")
FAR_ABOVE = AboveThreshold(epsilon=1, threshold=HUGE)
FAR_SPARSE = SparseVector(epsilon="1/3", threshold=-HUGE, hits=2, sensitivity="5/3")
FAR_TESTED = ProposeTestRelease(epsilon="1/3", delta="0.01", proposed=10**9)
FAR_MEDIAN = SmoothMedian(lower=-(2**52), upper=2**52, epsilon="1/3", delta="0.01")
FAR_WEIGHTS = MultiplicativeWeights(cells=2, epsilon="1/3", size=10**20, threshold=3, corrections=1)
TINY_WISHART = WishartMechanism.tightest(dimension=1, epsilon="1/3", delta="0.1", bound=TINY, step=TINY**2 / 7)
TINY_MATRIX = SymmetricGaussian.for_rho("0.5", dimension=2, bound=TINY, step=TINY**2 / 100)
TINY_LINE = VectorMechanism(epsilon="1/3", sensitivity=TINY, dimension=2, step=TINY / 100)


def choices(kind: type, **more: Any) -> list[Case]:
    """A choice among utilities whose common denominator, size or digits are one world's alone."""
    fine, among = Fraction(1, 1000), 20
    whole, moved = [Fraction(1)] + [Fraction(0)] * among, [Fraction(1)] + [fine] * among
    mixed = [Fraction(1)] + [Fraction(place % 2, 1000) for place in range(among)]
    cases = [
        ("a denominator of one world alone", "1/150", fine, whole, moved),
        ("integers beside fractions", "1/150", fine, [1] + [0] * among, [1] + [fine] * among),
        ("mixed denominators", "1/150", fine, [1] + [0] * among, mixed),
        ("coprime denominators", "0.5", "0.7", [THIRD, Fraction(1, 7), Fraction(1)], [Fraction(1), Fraction(5, 7), THIRD]),
        ("decimals", "0.5", "0.25", [Decimal("0.1"), Decimal("0.2")], [Decimal("0.35"), Decimal("-0.0499999999999999999999999")]),
        ("tiny", "0.5", TINY, [Fraction(0), TINY, TINY * THIRD], [TINY, Fraction(0), TINY]),
        ("huge", "0.5", HUGE, [0, HUGE, 1], [HUGE, 0, 7]),
        ("huge and tiny", "0.5", 1, [Fraction(HUGE), HUGE + TINY, HUGE - 1], [Fraction(HUGE), HUGE - 1, HUGE - TINY]),
        ("a step that does not divide", "0.5", "5/7", [0, Fraction(5, 7)], [Fraction(5, 7), 0]),
    ]
    return [
        Case(kind(epsilon=epsilon, sensitivity=reach, **more), left, right, 0, label=label, runs=2_000 * len(left))
        for label, epsilon, reach, left, right in cases
    ]


WIDE: dict[str, list[Case]] = {
    "AboveThreshold": [Case(FAR_ABOVE, [HUGE - 1] * 3 + [HUGE], [HUGE] * 3 + [HUGE - 1], 0)],
    "BinaryResponse": [Case(odd, True, False, 0, at_once(odd)) for odd in [BinaryResponse(truth="3/7", coin="10/11")]],
    "DiscreteGaussian": [Case(ODD_NORMAL, HUGE, HUGE + 1, 0, less(ODD_NORMAL, HUGE))],
    "DiscreteLaplace": [
        Case(ODD_LAPLACE, HUGE, HUGE + 1, 0, less(ODD_LAPLACE, HUGE)),
        Case(ODD_LAPLACE, 2**63 - 1, 2**63, 0, less(ODD_LAPLACE, 2**63), label="the end of int64"),
    ],
    "Exponential": choices(Exponential),
    "Gaussian": [
        Case(TINY_NORMAL, THIRD * TINY, (3 + THIRD) * TINY, 0, less(TINY_NORMAL, 0, TINY), label="tiny"),
        Case(ODD_NORMAL_STEP, Decimal("0.1"), Decimal("0.1") + Decimal("0.714"), 0, less(ODD_NORMAL_STEP, 0), label="decimals"),
        Case(ODD_NORMAL_STEP, THIRD, THIRD + Fraction(5, 7), 0, less(ODD_NORMAL_STEP, 0), label="mixed"),
    ],
    "Geometric": [Case(odd, HUGE, HUGE + 5, 0, less(odd, HUGE)) for odd in [Geometric(epsilon="1/3", sensitivity=5)]],
    "KaryResponse": [Case(odd, 0, 2, 0, at_once(odd)) for odd in [KaryResponse(categories=3, truth="10/11")]],
    "Laplace": [
        Case(TINY_LAPLACE, THIRD * TINY, (1 + THIRD) * TINY, 0, less(TINY_LAPLACE, 0, TINY), label="tiny"),
        Case(HUGE_LAPLACE, Fraction(HUGE, 7), Fraction(8 * HUGE, 7), 0, less(HUGE_LAPLACE, 0, HUGE), label="huge"),
        Case(ODD_STEP, Decimal("0.1"), Decimal("0.1") + Decimal("0.714"), 0, less(ODD_STEP, 0), label="decimals"),
        Case(ODD_STEP, THIRD, THIRD + Fraction(5, 7), 0, less(ODD_STEP, 0), label="mixed"),
    ],
    "MatrixMechanism": [
        Case(PREFIXES, [HUGE, 5], [HUGE + 1, 5], 0, cells_less(PREFIXES, HUGE)),
        Case(PREFIXES, [2**63 - 1, -1], [2**63, -1], 0, cells_less(PREFIXES, 2**63), label="the end of int64"),
    ],
    "MultiplicativeWeights": [Case(FAR_WEIGHTS, [10**20, 5], [10**20, 6], 0, asked(FAR_WEIGHTS, [[0, 1]]))],
    "PermuteAndFlip": choices(PermuteAndFlip),
    "ProposeTestRelease": [
        Case(
            FAR_TESTED,
            0,
            10**9,
            0,
            lambda data, n, random: [FAR_TESTED.release(HUGE + data, distance=40, random=random) is None for _ in range(n)],
        )
    ],
    "ReportNoisyMax": [
        *choices(ReportNoisyMax),
        *choices(ReportNoisyMax, monotone=True)[:3],
        *choices(ReportNoisyMax, unit="1/11")[3:5],
        *choices(ReportNoisyMax, noise="gumbel")[:1],
    ],
    "SmoothMedian": [Case(FAR_MEDIAN, [HUGE, -HUGE, HUGE], [HUGE, -HUGE, HUGE, -HUGE], 0, one_less(FAR_MEDIAN, 0, 2**52))],
    "SparseVector": [Case(FAR_SPARSE, [-HUGE] * 4, [1 - HUGE, 1 - HUGE, -HUGE - 1, -HUGE - 1], 0)],
    "Staircase": [
        Case(TINY_STAIRS, THIRD * TINY, (1 + THIRD) * TINY, 0, one_less(TINY_STAIRS, 0, TINY), label="tiny"),
        Case(ODD_STAIRS, Decimal("0.1"), Decimal("0.1") + Decimal("0.714"), 0, one_less(ODD_STAIRS, 0), label="decimals"),
    ],
    "SymmetricGaussian": [
        Case(TINY_MATRIX, [[HUGE, 0], [0, 0]], [[HUGE + 100, 0], [0, 0]], 0, cells_less(TINY_MATRIX, HUGE, 100)),
    ],
    "VectorMechanism": [Case(TINY_LINE, [HUGE, 0], [HUGE + 100, 0], 0, cells_less(TINY_LINE, HUGE, 100))],
    "WishartMechanism": [Case(TINY_WISHART, [[HUGE]], [[HUGE + 7]], 0, cells_less(TINY_WISHART, HUGE, 7))],
}
EVERYWHERE = [(name, case) for name, cases in WIDE.items() for case in cases]
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
    assert sorted(CASES) == sorted(WIDE) == sorted(mechanisms())
    assert all(type(case.mechanism).__name__ == name for name, case in EACH + EVERYWHERE)


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "case"), EVERYWHERE, ids=[f"{name}, {case.label}" for name, case in EVERYWHERE])
def test_no_fraction_and_no_size_of_a_number_breaks_the_guarantee(name: str, case: Case) -> None:
    """A grid, a unit or a number of bits that follows from the data would tell the two worlds apart."""
    promised = case.mechanism.guarantee
    runs = min(case.runs, 1_000 if case.run or name in ("AboveThreshold", "SparseVector") else case.runs)
    found = audit(case.run or case.mechanism, case.left, case.right, runs=runs, random=Random.deterministic(1), against=promised)
    assert not found.contradicts(promised), found


FRACTIONS = ([Fraction(2), Fraction(3)], [Fraction(1, 2), Fraction(3)], [Decimal(2), 3], [Decimal("0.5"), 3], [2.0, 3.0])


@pytest.mark.parametrize("pair", FRACTIONS, ids=str)
@pytest.mark.parametrize(
    "release",
    [
        LAPLACE.release,
        NORMAL.release,
        CLAMPED.release,
        SPARSE.release,
        ABOVE.release,
        PREFIXES.release,
        PLANE.release,
        MEDIAN.release,
        MEDIAN.smooth_sensitivity,
        WEIGHTS.start,
        ENCODING.release,
        lambda value: STAIRS.release(value[0]),
        lambda value: TESTED.release(value[0], distance=3),
        lambda value: TESTED.release(3, distance=value[0]),
        lambda value: TESTED.release_median(value, lower=0, upper=9),
        lambda value: MATRIX.release([value, value[::-1]]),
        lambda value: WISHART.release([value[:1]]),
        lambda value: SPARSE.start().above(value[0]),
        lambda value: SparseVector(epsilon=1, threshold=value[0], hits=1),
        lambda value: PermuteAndFlip(epsilon=1).release_each(np.array([value], dtype=object)),
    ],
)
def test_integers_are_asked_for_by_type_and_never_by_value(release: Callable[[Any], Any], pair: list[Any]) -> None:
    """A fraction that happens to be whole is refused like any other: else the refusal would tell a value, and on a common
    denominator one row would decide what all others count.
    """
    with pytest.raises(InvalidParameter) as caught:
        release(pair)
    assert not any(text in str(caught.value) for text in ("1/2", "0.5", "2.0", "Fraction", "Decimal"))


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
