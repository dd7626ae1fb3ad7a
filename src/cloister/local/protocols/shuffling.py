"""Shuffled reports: a promise that grows with the crowd, as long as nobody knows which report is whose."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter, NotConvertible
from cloister.local.frequency.oracle import FrequencyOracle, Reports
from cloister.local.protocols.coins import check_epsilon
from cloister.noise import Random
from cloister.noise.mechanism import source
from cloister.privacy import ApproxDP, Exact, PureDP, exact_positive, exact_probability, shuffled, text_of
from cloister.privacy.precision import context, down, real

_HALVINGS = 50


def shuffle(reports: Any, *, random: Random | None = None) -> Reports:
    """The same reports in a uniformly random order: what the shuffler does, whom respondents must trust for the stronger promise.

    >>> sorted(shuffle([3, 1, 2]).tolist())
    [1, 2, 3]
    """
    array = np.asarray(reports)
    if array.ndim == 0:
        raise InvalidParameter("The reports are invalid", why="they are not a list", instead="shuffle(oracle.randomize(values))")
    return np.asarray(array[source(random).permutation(len(array))])


def after_shuffling(local: Exact | FrequencyOracle, *, reports: int, delta: Exact) -> ApproxDP:
    """What n reports promise together to somebody who sees them shuffled, and nothing that says whose each is.

    Guarantee: (ε, δ)-privacy with ε = ln(1 + (e^ε₀ − 1)/(e^ε₀ + 1)·(8√(e^ε₀·ln(4/δ)/n) + 8e^ε₀/n)), for
    ε₀ ≤ ln(n/(16·ln(2/δ))). Neighbours: one respondent's value changes; how many answer is public. Theorem: Feldman, McMillan &
    Talwar (2021), Theorem 3.1. Proof sketch: a report is, with probability e^−ε₀, a clone of the first respondent's report; the
    first hides among these clones, whose number is binomial. Assumption: all use the same protocol with the same ε₀, nothing
    sent along (an address, a time, a level) tells who sent a report, and all n reports are honest: of n with m made up by
    somebody who watches, n − m count.

    Outside of the condition the theorem promises nothing, and the shuffler is refused: each report still has its own ε₀.

    >>> [f"{float(after_shuffling(1, reports=n, delta='1e-6').epsilon):.3g}" for n in (10_000, 100_000, 1_000_000)]
    ['0.214', '0.0726', '0.0235']
    """
    epsilon = check_epsilon(local.epsilon if isinstance(local, FrequencyOracle) else local)
    most = largest_local_epsilon(reports=reports, delta=delta)
    if most is None or epsilon > most:
        reach = "which no ε keeps here" if most is None else f"which is {float(most):.4g} here"
        raise NotConvertible(
            f"ε = {text_of(epsilon)} was not amplified by shuffling {reports} reports",
            why=f"the theorem wants ε ≤ ln(n/(16·ln(2/δ))), {reach}",
            instead="a smaller ε, more reports, a larger delta; or the promise of the reports themselves, without a shuffler",
        )
    return shuffled(PureDP(epsilon), reports=reports, delta=delta)


def largest_local_epsilon(*, reports: int, delta: Exact) -> Fraction | None:
    """The largest ε₀ that the theorem covers, ln(n/(16·ln(2/δ))), rounded down; None where there is none.

    >>> round(float(largest_local_epsilon(reports=10_000, delta="1e-6")), 3), largest_local_epsilon(reports=100, delta="1e-6")
    (3.763, None)
    """
    if isinstance(reports, bool) or not isinstance(reports, int | np.integer) or reports < 1:
        raise InvalidParameter("reports is invalid", why="it counts reports", instead="reports=10_000")
    slack = exact_probability(delta, "delta")
    if slack == 0:
        raise NotConvertible("δ = 0 is invalid for shuffling", why="the crowd hides only almost surely", instead='delta="1e-6"')
    number = context()
    ratio = real(Fraction(int(reports))) / (16 * number.log(real(2 / slack)))
    return down(number.log(ratio)) if ratio > 1 else None


def local_epsilon_for(target: Exact, *, reports: int, delta: Exact) -> Fraction:
    """About the largest ε₀ for which n shuffled reports keep `target`, never above it: what a survey may ask of each report.

    >>> local = local_epsilon_for("0.1", reports=100_000, delta="1e-6")
    >>> round(float(local), 3), after_shuffling(local, reports=100_000, delta="1e-6").epsilon <= Fraction("0.1")
    (1.274, True)
    """
    wanted = exact_positive(target, "target")
    most = largest_local_epsilon(reports=reports, delta=delta)
    low, high = Fraction(1, 10**6), min(most, Fraction(40)) if most is not None else Fraction(0)

    def keeps(local: Fraction) -> bool:
        return after_shuffling(local, reports=reports, delta=delta).epsilon <= wanted

    if high < low or not keeps(low):
        raise NotConvertible(
            f"ε = {text_of(wanted)} was not reached by shuffling",
            why=f"{reports} reports are too few for any ε of theirs",
            instead="more reports, a larger delta, or reports without a shuffler",
        )
    if keeps(high):
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low.limit_denominator(10**12) if keeps(low.limit_denominator(10**12)) else low
