"""Drawn rows: every state as often as it should be, columns independent within a component, conditions met."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cloister as cl
import cloister.synth.drawing as drawing
from cloister.noise import Random
from cloister.synth.drawing import conditioned, drawn
from cloister.synth.mixture import Mixture
from cloister.synth.states import States

STATES = [States("a", cl.Integer(0, 1)), States("b", cl.Integer(0, 2))]
MIXTURE = Mixture(np.array([0.25, 0.75]), (np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.5, 0.5, 0.0], [0.0, 0.25, 0.75]])))


def rows(n: int, seed: int = 1) -> np.ndarray:
    return np.column_stack(drawn(MIXTURE, STATES, [each.pieces for each in STATES], n, Random.deterministic(seed)))


def test_rows_follow_the_mixture() -> None:
    codes = rows(200_000)
    found = np.bincount(codes[:, 0] * 3 + codes[:, 1], minlength=6).reshape(2, 3) / len(codes)
    np.testing.assert_allclose(found, MIXTURE.marginal((0, 1)), atol=0.004)
    assert found[0, 2] == pytest.approx(0.75 * 0.2 * 0.75, abs=0.004)


def test_each_column_is_stratified() -> None:
    """A state is off its expected number by at most one row a component: independent rows would be off by some 45."""
    codes = rows(10_000)
    for place in (0, 1):
        counts = np.bincount(codes[:, place], minlength=STATES[place].number)
        assert (np.abs(counts - 10_000 * MIXTURE.marginal((place,))) <= 4).all()


def test_one_row_has_the_law_of_the_mixture() -> None:
    """Stratifying is no bias: over many tables of one row each cell comes up as often as it should."""
    random = Random.deterministic(4)
    pieces = [each.pieces for each in STATES]
    drawn_once = np.array([np.ravel(drawn(MIXTURE, STATES, pieces, 1, random)) for _ in range(3000)])
    found = np.bincount(drawn_once[:, 0] * 3 + drawn_once[:, 1], minlength=6) / 3000
    np.testing.assert_allclose(found, MIXTURE.marginal((0, 1)).ravel(), atol=5 * 0.5 / 3000**0.5)


def test_no_rows_is_an_empty_table() -> None:
    assert rows(0).shape == (0, 2)


def test_conditions_weigh_the_components() -> None:
    within, share = conditioned(MIXTURE, STATES, {0: STATES[0].given(1)})
    assert share == pytest.approx(MIXTURE.marginal((0,))[1])
    np.testing.assert_allclose(within.marginal((1,)), MIXTURE.marginal((0, 1))[1] / share)


def test_values_inside_a_bin_are_all_drawn_alike() -> None:
    states = [States("pay", cl.Integer(0, 99), cl.Binned("pay", [0, 10, 100]))]
    mixture = Mixture(np.ones(1), (np.array([[0.5, 0.5]]),))
    [codes] = drawn(mixture, states, [states[0].pieces], 20_000, Random.deterministic(6))
    counts = np.bincount(codes, minlength=100)
    assert counts[:10].sum() == 10_000
    assert (np.abs(counts[:10] - 1000) < 6 * 1000**0.5).all()
    assert (np.abs(counts[10:] - 10_000 / 90) < 6 * (10_000 / 90) ** 0.5).all()


def test_long_tables_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "_AT_ONCE", 3000)
    codes = rows(10_000)
    assert codes.shape == (10_000, 2)
    for place in (0, 1):
        counts = np.bincount(codes[:, place], minlength=STATES[place].number)
        assert (np.abs(counts - 10_000 * MIXTURE.marginal((place,))) <= 4 * 4).all()


def test_columns_are_independent_within_a_component_and_rows_of_each_other() -> None:
    """Chi-square of 6 degrees of freedom; beyond 39 with a probability of 10⁻⁶ where columns are independent."""
    states = [States("a", cl.Integer(0, 2)), States("b", cl.Integer(0, 3))]
    mixture = Mixture(np.ones(1), (np.array([[0.5, 0.3, 0.2]]), np.array([[0.1, 0.2, 0.3, 0.4]])))
    one, other = drawn(mixture, states, [each.pieces for each in states], 100_000, Random.deterministic(9))
    expected = 100_000 * mixture.marginal((0, 1))
    for right, left in ((one, other), (one[1:], other[:-1]), (one[2:], other[:-2])):
        found = np.bincount(right * 4 + left, minlength=12).reshape(3, 4)
        assert ((found - expected) ** 2 / expected).sum() < 39
    equal = float(np.mean(one[1:] == one[:-1]))
    assert equal == pytest.approx(0.25 + 0.09 + 0.04, abs=5 * (0.38 * 0.62 / 100_000) ** 0.5)


@pytest.mark.parametrize("given", [5, [("sex", "F")], {1: 1}])
def test_conditions_that_name_no_columns_are_refused(given: Any) -> None:
    model = cl.synth.fit_frame({"sex": ["F", "M"] * 50}, {"sex": cl.Category(["F", "M"])}, epsilon=1)
    with pytest.raises(cl.CloisterError, match=r"given=|unknown"):
        model.sample(3, given=given)
