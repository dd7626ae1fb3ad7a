"""How large k has to be, for a sampling rate and an (ε, δ): exactly the δ of the mechanism, rounded up.

With m people in a class, each sampled with probability β, a count j is seen with probability f(j; m, β); "fewer than k" stands
for all j < k. One person more, of m, makes j more likely by f(j; m)/f(j; m − 1) = m(1 − β)/(m − j), which exceeds e^ε where
j > γm, γ = 1 − (1 − β)e^−ε. What is over is δ: h(m) = Σ (f(j; m) − e^ε·f(j; m − 1)) over j ≥ k with j > γm. One person less makes
j more likely by at most 1/(1 − β) ≤ e^ε. So the smallest δ is the largest h(m), over all m ≥ k.

Few m have to be looked at. The sum begins at j = a for all m with a − 1 ≤ γm < a (and at k for all smaller m). With one person
more, m + 1 for m, it changes by β·f(a − 1; m − 1)·(m(1 − β)/(m − a + 1) − e^ε), which is above 0 exactly where γm < a − 1. So of
all m whose sum begins at a, h is the largest at the smallest m ≥ (a − 1)/γ: one m for each a ≥ k.

Li, Qardaji and Su (2012, Theorem 5) bound h(m) by the tail Σ f(j; m) alone, as does ARX's SafePub (Bild, Kuhn and Prasser 2018).
Here the difference is kept: the same promise with a smaller k.
"""

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cloister.errors import InvalidParameter
from cloister.privacy.precision import context, down, real, up
from cloister.privacy.rational import text_of

_LARGEST_K = 100_000
_LEAST, _ENOUGH = 1e-12, Fraction(36)  # of ε: less is not worked out, and what holds for 36 holds above
_DIGITS = 40.0
"""Terms of a sum in floating point are left out from e to minus this power of the first on."""
_NEGLIGIBLE = -45
"""What is left of a sum below 10 to this power of it is bounded by a geometric series, and not added term by term."""


def largest_rate(epsilon: Fraction) -> Fraction:
    """1 − e^−ε, rounded down: with a larger sampling rate, one person less would show by more than ε.

    >>> float(largest_rate(Fraction(1)))
    0.632120558828557
    """
    return down(1 - context().exp(-real(epsilon)))


@lru_cache(maxsize=256)
def delta_of(k: int, epsilon: Fraction, rate: Fraction) -> Fraction:
    """The least δ for which sampling with `rate`, and leaving out classes of fewer than k, is (ε, δ)-DP; rounded up.

    >>> round(float(delta_of(1, Fraction(1), largest_rate(Fraction(1)))), 9)
    0.632120559
    >>> float(delta_of(20, Fraction(1), largest_rate(Fraction(1)))) < 0.003
    True
    """
    _check_rate(epsilon, rate)
    number = context()
    beta, factor = real(rate), number.exp(real(min(epsilon, _ENOUGH)))
    gamma = 1 - (1 - beta) / factor
    slope = gamma * number.log(gamma / beta) + (1 - gamma) * number.log((1 - gamma) / (1 - beta))
    best, first = number.mpf(0), k
    while True:
        people = max(first, int(number.ceil((first - 1) / gamma)))
        # h(m) is at most the tail beyond γm, and so at most e^(−m·slope) by Chernoff's bound
        if number.exp(-people * slope) <= best:
            return min(up(best), Fraction(1))
        best = max(best, _over(people, k, beta, factor, gamma))
        first += 1


@lru_cache(maxsize=256)
def least_k(epsilon: Fraction, delta: Fraction, rate: Fraction) -> int:
    """The smallest k that is enough for δ.

    >>> least_k(Fraction(1), Fraction(1, 10**6), largest_rate(Fraction(1)))
    58
    """
    _check_rate(epsilon, rate)
    if delta <= 0:
        raise InvalidParameter("delta=0 is invalid", why="a class may always be seen whole", instead='delta="1e-6"')
    low, high = 0, 1
    roughly = float(min(epsilon, _ENOUGH))
    countable = roughly > _LEAST and 0 < float(rate) < 1 and _gamma(roughly, float(rate)) < 1 and float(delta) > 0
    while not countable or _roughly(high, roughly, float(rate)) > float(delta):
        low, high = high, 2 * high
        if not countable or high > _LARGEST_K:
            raise InvalidParameter(
                f"epsilon={text_of(epsilon)}, delta={text_of(delta)} is invalid",
                why=f"no k up to {_LARGEST_K:,} is known to be enough",
                instead='sampling="0.5" with an epsilon of at least 1, a larger delta, or an epsilon between 0.1 and 4',
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _roughly(middle, roughly, float(rate)) > float(delta) else (low, middle)
    found = max(high - 1, 1)
    while delta_of(found, epsilon, rate) > delta:
        found += 1
    return found


def _check_rate(epsilon: Fraction, rate: Fraction) -> None:
    if not 0 < rate <= largest_rate(epsilon):
        raise InvalidParameter(
            f"sampling={text_of(rate)} is invalid",
            why="it is not above 0, or above 1 − e^−ε: one person less would show by more than ε",
            instead=f'sampling="{float(largest_rate(epsilon)):.4g}"',
        )


def _over(people: int, k: int, beta: Any, factor: Any, gamma: Any) -> Any:
    """h(m), from above."""
    number = context()
    first = max(k, int(number.floor(gamma * people)) + 1)
    if first > people:
        return number.mpf(0)
    odds = beta / (1 - beta)
    chance = number.mpf(math.comb(people, first)) * beta**first * (1 - beta) ** (people - first)
    total = number.mpf(0)
    for seen in range(first, people + 1):
        total += chance * (1 - factor * (people - seen) / (people * (1 - beta)))
        ratio = (people - seen) * odds / (seen + 1)
        chance *= ratio
        # later ratios are smaller, and later terms at most their chance
        if ratio < 1 and chance < total * number.mpf(10) ** _NEGLIGIBLE:
            return total + chance / (1 - ratio)
    return total


def _gamma(epsilon: float, beta: float) -> float:
    return beta * math.exp(-epsilon) - math.expm1(-epsilon)  # 1 − (1 − β)e^−ε, of the smallest numbers as well


def _roughly(k: int, epsilon: float, beta: float) -> float:
    """`delta_of` in floating point, to find the k that is then checked."""
    factor, gamma = math.exp(epsilon), _gamma(epsilon, beta)
    slope = gamma * math.log(gamma / beta) + (1 - gamma) * (math.log1p(-gamma) - math.log1p(-beta))
    odds, best, first = beta / (1 - beta), 0.0, k
    while True:
        people = max(first, math.ceil((first - 1) / gamma))
        if math.exp(-people * slope) <= best:
            return best
        start = math.lgamma(people + 1) - math.lgamma(first + 1) - math.lgamma(people - first + 1)
        start += first * math.log(beta) + (people - first) * math.log1p(-beta)
        ratio = (people - first) / (first + 1) * odds  # under 1, and smaller for each later term
        terms = min(people - first, math.ceil(_DIGITS / -math.log(ratio))) if ratio > 0 else 0
        seen = np.arange(first, first + terms + 1)
        steps = np.log((people - seen[:-1]) / (seen[:-1] + 1) * odds)
        chances = np.exp(start + np.concatenate([[0.0], np.cumsum(steps)]))
        best = max(best, float((chances * (1 - factor * (people - seen) / (people * (1 - beta)))).sum()))
        first += 1
