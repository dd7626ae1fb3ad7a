"""Margins of sums of noises: against closed forms, and against what the noises do."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest

import cloister as cl
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.session.releases.convolution import Kind, reach, width_of_sum
from cloister.session.releases.formulas import Ratio, Reading
from cloister.session.releases.uncertainty import Term, Terms, _of_two_laplace, half_width, half_widths, scaled, variance

CONFIDENCES = (0.5, 0.8, 0.95, 0.999, 0.9999, 1 - 1e-6, 1 - 1e-9)


def laplace(scale: float | str, weight: float = 1.0) -> Term:
    return Term(weight, DiscreteLaplace(scale=scale))


def test_no_noise_has_no_width() -> None:
    assert half_width((), 0.95) == 0
    assert half_width((laplace(3, 0.0),), 0.95) == 0


def test_one_noise_is_its_own_margin() -> None:
    assert half_width((laplace(10),), 0.95) == DiscreteLaplace(scale=10).margin(0.95)
    assert half_width((laplace(10, -2.5),), 0.95) == 2.5 * DiscreteLaplace(scale=10).margin(0.95)


def test_gaussians_add_in_squares() -> None:
    terms = (Term(3.0, DiscreteGaussian(scale=100)), Term(4.0, DiscreteGaussian(scale=100)))
    assert 1.959964 * 500 <= half_width(terms, 0.95) <= 1.003 * 1.959964 * 500
    assert variance(terms) == pytest.approx(500.0**2, rel=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 1.5, 7.0, 100.0])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_the_closed_form_of_two_laplace_laws_agrees(ratio: float, confidence: float) -> None:
    """At a scale of 10^5, where the steps of the discrete law are next to nothing."""
    truth = _of_two_laplace(1e5, 1e5 * ratio, confidence)
    found = width_of_sum((Kind(False, 1e5, 1.0, 1), Kind(False, 1e5, ratio, 1)), confidence)
    assert truth <= found <= 1.006 * truth
    assert truth <= half_width((laplace(100_000), laplace(100_000, ratio)), confidence) <= 1.003 * truth


def pmf(term: Term) -> np.ndarray:
    """The law of a weighted noise on the integers, the weight a whole number."""
    scale, weight = float(term.noise.scale), int(term.weight)
    far = int(45 * scale) + 45
    atoms = np.arange(-far, far + 1)
    heights = np.exp(-np.abs(atoms) / scale) if isinstance(term.noise, DiscreteLaplace) else np.exp(-(atoms**2) / (2 * scale**2))
    law = np.zeros(2 * far * weight + 1)
    law[::weight] = heights / heights.sum()
    return law


def exact_half_width(terms: Terms, confidences: Sequence[float]) -> list[int]:
    """By convolution of the laws themselves: none of its sums holds a negative number, so each is exact to 10^-13 of itself."""
    law = np.array([1.0])
    for term in terms:
        law = np.convolve(law, pmf(term))
    centre = len(law) // 2
    tails = 2 * np.cumsum(law[::-1])[: centre + 1][::-1]  # P(|sum| >= k), at k = 0 twice the centre
    return [next(k for k in range(centre) if tails[k + 1] <= 1 - each) for each in confidences]


def gauss(scale: float, weight: float = 1.0) -> Term:
    return Term(weight, DiscreteGaussian(scale=scale))


@pytest.mark.parametrize(
    "terms",
    [
        (laplace(2),) * 3,
        (laplace("0.3"),) * 10,
        (gauss(1),) * 5,
        (gauss(2),) * 4,
        (laplace(2), laplace(5, 3)),
        (laplace(2, 2), gauss(5, 3), laplace(7)),
        (laplace(10),) * 20,
        (*(laplace(1),) * 6, laplace(15)),
        (laplace(8), laplace(8, 7)),
        (gauss(10), laplace(2, 5)),
        (laplace(1),) * 200,
    ],
    ids=lambda terms: f"{len(terms)} noises, {terms[-1].weight} of scale {float(terms[-1].noise.scale)} last",
)
def test_sums_of_discrete_noises_against_their_convolution(terms: Terms) -> None:
    for confidence, truth in zip(CONFIDENCES, exact_half_width(terms, CONFIDENCES), strict=True):
        assert truth <= half_width(terms, confidence) <= truth * 1.01 + 1, confidence
        assert truth <= half_width(terms, confidence, True) <= truth + 1 + 0.01 * truth, confidence


@pytest.mark.parametrize("number", [2, 10, 100, 300, 1000, 3000, 10_000])
@pytest.mark.parametrize("confidence", [0.95, 0.999, 1 - 1e-9])
def test_the_width_of_many_noises_is_not_cut_off(number: int, confidence: float) -> None:
    """Noises of equal scale: a sum of Laplace noises is wider than the Gaussian of its variance here, and nears it."""
    for noise, most in ((DiscreteLaplace(scale=10), 1 + 10 / number), (DiscreteGaussian(scale=10), 1.005)):
        terms = (Term(1.0, noise),) * number
        normal = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance(terms))
        assert normal - 1 <= half_width(terms, confidence) <= normal * (most + 0.004) + 1


def test_a_thousand_noises_do_what_their_margin_says() -> None:
    """20,000 sums of 300 equal ones: 95 % ± 0.8 but for a chance below 1e-6; the generator is fixed besides."""
    noise, runs, number = DiscreteLaplace(scale=10), 20_000, 300
    sums = noise.sample(runs * number, random=Random.deterministic(3)).reshape(runs, number).sum(axis=1)
    width = half_width((Term(1.0, noise),) * number, 0.95)
    assert float(np.mean(np.abs(sums) <= width)) == pytest.approx(0.95, abs=0.008)


def test_a_wider_confidence_is_never_narrower_and_the_surest_have_a_width() -> None:
    terms = (laplace(10), laplace(3), gauss(4, 0.37))
    widths = [half_width(terms, confidence) for confidence in (0.1, *CONFIDENCES, 1 - 1e-12, 1 - 1e-14)]
    assert widths == sorted(widths)
    assert math.isfinite(widths[-1])
    assert reach((Kind(False, 10.0, 1.0, 1),), 0.05) >= 29


def laplace_tail(scales: Sequence[float], at: float) -> float:
    """P(|sum| > at) of Laplace noises of different scales: Σ_i e^(-at/b_i) Π_j≠i b_i²/(b_i² - b_j²)."""
    found = 0.0
    for one in scales:
        rest = math.prod(one**2 / (one**2 - other**2) for other in scales if other != one)
        found += rest * math.exp(-at / one)
    return found


def test_many_sums_at_once_are_never_narrower_than_the_closed_form() -> None:
    draw = random.Random(1)
    noise = (Term(1.0, DiscreteLaplace(scale=1000)),)
    sums = [[1.0, *(draw.uniform(0.05, 0.97) for _ in range(draw.randint(1, 5)))] for _ in range(40)]
    sums += [[1.0, 0.623, 0.646], [1.0, 0.123, 0.152], [1.0, 0.279, 0.428, 0.305, 0.321, 0.203, 0.427], [1.0, 0.999]]
    for weights in sums:
        if min(abs(one - other) for place, one in enumerate(weights) for other in weights[:place]) < 1e-3:
            continue  # where the closed form cancels
        names = [str(place) for place in range(len(weights))]
        given = {name: np.array([weight]) for name, weight in zip(names, weights, strict=True)}
        for confidence in (0.5, 0.8, 0.95, 0.99, 0.999, 0.9999, 1 - 1e-6):
            found = float(half_widths(given, dict.fromkeys(names, noise), confidence)[0])
            assert laplace_tail([1000 * weight for weight in weights], found) <= (1 - confidence) * (1 + 1e-6), (
                weights,
                confidence,
            )
            truth = half_width(tuple(Term(weight, noise[0].noise) for weight in weights), confidence)
            assert found <= truth * (1.12 if confidence < 0.8 else 1.06), (weights, confidence)


@pytest.mark.filterwarnings("error")
def test_a_margin_that_no_double_holds_is_infinite_and_nothing_is_printed() -> None:
    noise = (Term(1.0, DiscreteLaplace(scale=100)),)
    assert half_widths({"a": np.array([1e308])}, {"a": noise}, 0.95).tolist() == [math.inf]


@pytest.mark.parametrize("scale", ["0.3", 1, 3, 8, 20])
def test_many_sums_at_once_feel_the_steps_of_discrete_noises(scale: object) -> None:
    for noise in (DiscreteLaplace(scale=scale), DiscreteGaussian(scale=scale)):
        for weight in (0.25, 1.0, 3.0):
            for confidence in CONFIDENCES:
                found = float(half_widths({"a": np.array([weight])}, {"a": (Term(1.0, noise),)}, confidence)[0])
                # the margin is the next atom at or above: a width that reaches beyond the last atom short of it is enough
                assert found > weight * (float(noise.margin(confidence)) - 1), (noise, weight, confidence)


def test_terms_that_are_equal_are_worked_out_once() -> None:
    width_of_sum.cache_clear()
    one, other = laplace(10), Term(-1.0, DiscreteLaplace(scale=10))
    widths = {half_width(terms, 0.95) for terms in ((one, other, one), (one, one, one), (other, one, other))}
    assert len(widths) == 1
    assert width_of_sum.cache_info().misses == 1


def test_a_sum_errs_on_the_wide_side_for_small_discrete_noises() -> None:
    """P(|X + Y + Z| ≤ m) by brute force over three discrete Laplace laws of scale 2."""
    atoms = np.arange(-120, 121)
    law = np.exp(-np.abs(atoms) / 2)
    law /= law.sum()
    three = np.convolve(np.convolve(law, law), law)
    support = np.arange(-360, 361)
    for confidence in (0.8, 0.95, 0.999):
        exact = next(m for m in range(361) if three[np.abs(support) <= m].sum() >= confidence)
        found = half_width((laplace(2), laplace(2), laplace(2)), confidence, True)
        assert exact <= found <= exact + 1


@pytest.mark.parametrize("power", [-300, -200, -100, -85, 85, 100, 200, 300])
def test_a_margin_is_as_wide_in_any_unit(power: int) -> None:
    """The fourth power of a weight of 1e-90 is 0 in doubles, and that of 1e90 infinite."""
    noise = (Term(1.0, DiscreteLaplace(scale=10)),)
    given = {"a": np.array([1.0, 0.0, 0.0]), "b": np.array([2.0, 3.0, 0.0])}
    terms = {"a": noise, "b": (*noise, Term(2.0, DiscreteGaussian(scale=3)))}
    plain = half_widths(given, terms, 0.95)
    far = half_widths({name: weight * 10.0**power for name, weight in given.items()}, terms, 0.95)
    assert far.tolist() == pytest.approx((plain * 10.0**power).tolist(), rel=1e-12, abs=0)


def test_scaling_scales() -> None:
    terms = (laplace(50), laplace(80))
    assert half_width(scaled(terms, 3.0), 0.95) == pytest.approx(3 * half_width(terms, 0.95))


@pytest.mark.statistical
@pytest.mark.parametrize("true_rows", [400, 4000])
def test_fieller_intervals_cover_a_mean_as_often_as_they_say(true_rows: int) -> None:
    """40,000 means: with coverage 0.95 the share lies within ±0.0055 of it but for a chance below 1e-6; the generator is fixed
    besides."""
    runs, width, theta = 40_000, 100, 0.3
    noise = DiscreteLaplace(scale=1000)
    random = Random.deterministic(11)
    above = Reading(noise.sample(runs, random=random) + int(true_rows * width * theta), (Term(1.0, noise),))
    below = Reading(noise.sample(runs, random=random) + int(true_rows * width * (1 - theta)), (Term(1.0, noise),))
    ratio = Ratio(name="m", above="a", below="b", low=0.0, width=1.0, codes=width)
    lower, upper = ratio.interval(
        above.values.astype(float), above.values.astype(float) + below.values, above.terms, below.terms, 0.95
    )
    covered = np.mean((lower <= theta) & (theta <= upper))
    assert math.isclose(covered, 0.95, abs_tol=0.0055)


@pytest.mark.parametrize(
    ("factor", "said"),
    [("1e-200", r"e-198 ± 3\.1e-200"), ("1e150", r"e\+152 ± 3\.1e\+150"), ("1e-5", r"0\.0050\d* ± 0\.00003\d+")],
)
def test_an_answer_of_any_size_is_shown_in_a_few_digits(factor: str, said: str) -> None:
    people = cl.PrivateTable({"x": [1.0] * 500}, columns={"x": cl.Real(0, 1)})
    with cl.Session({"people": people}, budget=cl.PureDP(1), random=Random.deterministic(1)) as session:
        shown = str(session.sql(f"SELECT SUM(x) * {factor} AS s FROM people", spend=1))
    assert re.search(said, shown), shown
    assert max(map(len, shown.splitlines())) < 80
