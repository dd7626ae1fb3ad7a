"""The finite channel with a window: its exact privacy, its draws word by word, its moments by two routes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.attacks.broken import twin, useless
from cloister.errors import InvalidParameter
from cloister.local.numbers.window import Window, straight_window, turning_window
from cloister.local.protocols.coins import odds_below
from cloister.noise import Random
from tests.local.words import Scripted

WINDOWS = [straight_window(8, width, Fraction(epsilon)) for width in (1, 5, 8) for epsilon in ("1/1000", 1, 5)]
WINDOWS += [turning_window(8, width, Fraction(epsilon)) for width in (1, 3, 7) for epsilon in ("1/1000", 1, 5)]


@pytest.mark.parametrize("window", WINDOWS)
def test_the_channel_is_private_in_integers_and_nearly_tight(window: Window) -> None:
    found = audit_channel(window.rows())
    assert found.ratio == window.odds
    nearest = min((Fraction(1, 1000), Fraction(1), Fraction(5)), key=lambda each: abs(float(each) - found.epsilon))
    assert window.odds <= odds_below(nearest)
    assert found.epsilon == pytest.approx(float(nearest), rel=1e-12)
    assert all(sum(row) == 1 for row in window.rows())


@pytest.mark.parametrize("steps", [1024, 1 << 20])
@pytest.mark.parametrize("epsilon", ["1e-6", "0.7", "40"])
def test_large_channels_are_private_in_integers(steps: int, epsilon: str) -> None:
    window = straight_window(steps, max(1, round(steps / odds_below(Fraction(epsilon) / 2))), Fraction(epsilon))
    assert 1 < window.odds <= odds_below(Fraction(epsilon))


@pytest.mark.parametrize("window", WINDOWS)
def test_draws_follow_the_words(window: Window) -> None:
    """For each point: coin, place in the window, place outside of it; all three words are used in either case."""
    for point in range(window.inputs):
        start = (point + window.shift) % window.outputs
        near = [(start + each) % window.outputs for each in range(window.width)]
        far = [cell for cell in range(window.outputs) if cell not in near]
        for coin, expected, size in ((0, near, window.width), (2**64 - 1, far, window.outputs - window.width)):
            reached = []
            for place in range(size):
                words = [coin, place if coin == 0 else 0, 0 if coin == 0 else place]
                source = Scripted(words)
                reached.append(int(window.draw(np.array([point]), source)[0]))
                assert source.left == 0
            assert sorted(reached) == sorted(expected)


@pytest.mark.statistical
@pytest.mark.parametrize("window", [WINDOWS[4], WINDOWS[-4]])
def test_draws_have_the_laws_of_the_channel(window: Window) -> None:
    """Chi-square at 10⁻⁷ for each point."""
    from scipy import stats

    for point, row in enumerate(window.rows()):
        drawn = window.draw(np.full(100_000, point), Random.deterministic(point))
        counts = np.bincount(drawn, minlength=window.outputs)
        assert stats.chisquare(counts, np.array(row, dtype=float) * 100_000).pvalue > 1e-7


@pytest.mark.parametrize("window", [each for each in WINDOWS if not each.circular])
def test_moments_against_the_written_channel(window: Window) -> None:
    rows = np.array(window.rows(), dtype=float)
    points = np.arange(window.inputs)
    scale = np.abs(rows) @ np.abs(window.firsts)
    assert np.allclose(rows @ window.firsts, points, atol=1e-11 * scale.max())
    assert np.allclose(rows @ window.seconds, points**2, atol=1e-10 * (np.abs(rows) @ np.abs(window.seconds)).max())


@pytest.mark.parametrize("window", WINDOWS)
def test_forward_and_back_are_the_channel(window: Window) -> None:
    rows = np.array(window.rows(), dtype=float)
    shares = np.random.default_rng(1).dirichlet(np.ones(window.inputs), size=3)
    numbers = np.random.default_rng(2).normal(size=(3, window.outputs))
    assert np.allclose(window.forward(shares), shares @ rows)
    assert np.allclose(window.back(numbers), numbers @ rows.T)


def test_a_large_channel_is_not_written_out() -> None:
    with pytest.raises(InvalidParameter, match="coarser grid"):
        straight_window(1024, 100, Fraction(1)).rows()


def test_the_tail_by_a_fair_coin_is_caught_and_the_union_is_not() -> None:
    """The published mistake, against which the union of both tails stands: the density ratio has no bound, a mean of ½ comes out
    as 1.03. Ours at the same place is exactly e^ε and unbiased."""
    broken = twin("piecewise, with the tail chosen by a coin")
    assert broken.audit(random=Random.deterministic(1)).contradicts(broken.claims)
    assert useless.piecewise_by_coin_mean(0.5, 1) == pytest.approx(1.03, abs=0.005)
    window = straight_window(16, round(16 * math.exp(-0.5)), Fraction(1))
    assert float(window.forward(np.eye(17)[12]) @ window.firsts) / 16 == pytest.approx(0.75)
    assert audit_channel(window.rows()).epsilon <= 1
