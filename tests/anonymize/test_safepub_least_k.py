"""The smallest k of SafePub: few sizes of a class are looked at, and the answers are those of looking at all."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from cloister.anonymize.safepub import parameters
from cloister.anonymize.safepub.parameters import delta_of, largest_rate, least_k
from cloister.errors import InvalidParameter
from cloister.privacy.precision import context, real, up


def of_every_size(k: int, epsilon: Fraction, rate: Fraction) -> Fraction:
    """The largest h(m) over all m from k on, as the definition says: term by term, up to where Chernoff bounds it."""
    number = context()
    beta, factor = real(rate), number.exp(real(epsilon))
    gamma = 1 - (1 - beta) / factor
    slope = gamma * number.log(gamma / beta) + (1 - gamma) * number.log((1 - gamma) / (1 - beta))
    best, people = number.mpf(0), k
    while number.exp(-people * slope) > best:
        first = max(k, math.floor(gamma * people) + 1)
        total = number.mpf(0)
        for seen in range(first, people + 1):
            chance = number.mpf(math.comb(people, seen)) * beta**seen * (1 - beta) ** (people - seen)
            total += chance * (1 - factor * (people - seen) / (people * (1 - beta)))
        best = max(best, total)
        people += 1
    return min(up(best), Fraction(1))


EPSILONS = (Fraction(3), Fraction(1), Fraction(1, 2), Fraction(1, 5))


@pytest.mark.parametrize(("epsilon", "share"), list(product(EPSILONS, (Fraction(1), Fraction(1, 3), Fraction(1, 20)))))
def test_the_delta_is_that_of_looking_at_every_size(epsilon: Fraction, share: Fraction) -> None:
    rate = largest_rate(epsilon) * share
    for k in (1, 2, 3, 5, 9):
        assert float(delta_of(k, epsilon, rate)) == pytest.approx(float(of_every_size(k, epsilon, rate)), rel=1e-14), k


@pytest.mark.parametrize(("epsilon", "share"), list(product(EPSILONS, (Fraction(1), Fraction(1, 3)))))
def test_it_is_the_smallest_that_is_enough(epsilon: Fraction, share: Fraction) -> None:
    rate = largest_rate(epsilon) * share
    for delta in (Fraction(1, 50), Fraction(1, 10**4)):
        k = least_k(epsilon, delta, rate)
        assert of_every_size(k, epsilon, rate) <= delta
        assert k == 1 or of_every_size(k - 1, epsilon, rate) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "k"),
    [
        (Fraction(1, 50), Fraction(1, 10**6), 28),
        (Fraction(1, 100), Fraction(1, 100), 1),
        (Fraction(1, 100), Fraction(1, 10**6), 26),
    ],
)
def test_small_epsilons_are_answered_as_before_and_after_few_sizes(
    epsilon: Fraction, delta: Fraction, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What looking at every size came to in 6, 2 and 12 seconds."""
    looked: list[int] = []
    over = parameters._over

    def counted(people: int, *rest: object) -> object:
        looked.append(people)
        return over(people, *rest)

    monkeypatch.setattr(parameters, "_over", counted)
    delta_of.cache_clear()
    assert least_k.__wrapped__(epsilon, delta, largest_rate(epsilon)) == k
    assert len(looked) < 300
    assert len(set(looked)) > 3


def test_an_epsilon_beyond_floats_needs_no_more_than_a_smaller_one() -> None:
    """Half of the rows, and all of one person's class seen with a chance of 2^−20 < 10^−6."""
    half, delta = Fraction(1, 2), Fraction(1, 10**6)
    assert [least_k(Fraction(epsilon), delta, half) for epsilon in (10, 36, 37, 800)] == [20] * 4
    assert delta_of(20, Fraction(800), half) <= delta < delta_of(19, Fraction(800), half)


@pytest.mark.parametrize("epsilon", [Fraction(10), Fraction(1, 10**14), Fraction(1, 10**17), Fraction(1, 10**30)])
def test_what_no_k_is_found_for_is_refused_with_a_line_that_works(epsilon: Fraction) -> None:
    with pytest.raises(InvalidParameter, match=r"no k up to 100,000.*\n.*sampling=\"0.5\""):
        least_k(epsilon, Fraction(1, 10**6), largest_rate(epsilon))
    assert least_k(max(epsilon, Fraction(1)), Fraction(1, 10**6), Fraction(1, 2)) < 40
