"""The optimal piecewise mechanism: the published law, the least distance of all windows, and what is biased and what is not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from cloister.attacks import audit_channel
from cloister.errors import InvalidParameter
from cloister.local import OptimalPiecewise, Piecewise
from cloister.noise import Random


@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_the_channel_is_the_published_one_and_private_in_integers(epsilon: str) -> None:
    half = math.exp(float(epsilon) / 2)
    fine = OptimalPiecewise(0, 1, epsilon, grid=1 << 16).window
    assert fine.width / fine.outputs == pytest.approx(1 / (half + 1), rel=1e-3)
    assert float(fine.inside) * fine.outputs == pytest.approx(half, rel=1e-3)
    assert float(fine.outside) * fine.outputs == pytest.approx(1 / half, rel=1e-3)
    found = audit_channel(OptimalPiecewise(0, 1, epsilon, grid=8).channel())
    assert float(epsilon) * (1 - 1e-9) < found.epsilon <= float(epsilon)


def test_the_window_is_cut_at_the_ends_and_lies_around_the_truth_elsewhere() -> None:
    """In cells of the declared interval: from end to end, with its middle at the number wherever that is `cut` from an end."""
    mechanism = OptimalPiecewise(0, 12, 1, grid=8)
    window = mechanism.window
    rows = mechanism.channel()
    inner = mechanism.interval.low + mechanism.interval.span * np.arange(9) / 8
    for number, row in zip(inner, rows, strict=True):
        cells = [cell for cell, chance in enumerate(row) if chance == window.inside]
        middle = (cells[0] + cells[-1] + 1) / 2 / window.outputs * 12
        assert middle == pytest.approx(number)
    assert rows[0][0] == rows[-1][-1] == window.inside
    assert mechanism.cut == pytest.approx(mechanism.interval.low)
    assert mechanism.read(np.arange(window.outputs))[[0, -1]] == pytest.approx([6 / window.outputs, 12 - 6 / window.outputs])


def least_distance(epsilon: float, cells: int) -> float:
    """By trying all widths: the expected distance of a cut window of real probabilities, for the truth at an end, the worst."""
    found = []
    for width in range(1, cells):
        weights = np.where(np.arange(cells) < width, math.exp(epsilon), 1.0)
        found.append(float(weights / weights.sum() @ (np.arange(cells) + 0.5)) / cells)
    return min(found)


@pytest.mark.parametrize("epsilon", ["0.5", "2", "6"])
def test_no_other_window_is_nearer_in_the_worst_case(epsilon: str) -> None:
    mechanism = OptimalPiecewise(0, 1, epsilon, grid=1024)
    distances = [mechanism.distance(each) for each in np.linspace(0, 1, 101).tolist()]
    assert max(distances) == pytest.approx(mechanism.distance(), rel=1e-6)
    assert mechanism.distance() == pytest.approx(least_distance(float(epsilon), mechanism.window.outputs), rel=1e-6)
    assert mechanism.distance() == pytest.approx(1 / (math.exp(float(epsilon) / 2) + 1), rel=1e-3)
    assert mechanism.distance(0.5) == pytest.approx(mechanism.distance() / 2, rel=1e-3)


def test_it_is_the_piecewise_mechanism_on_the_inner_interval() -> None:
    mechanism = OptimalPiecewise(0, 10, 2, grid=64)
    inner = Piecewise(Fraction(mechanism.interval.low), Fraction(mechanism.interval.high), 2, grid=64)
    values = np.linspace(0, 10, 500)
    reports = mechanism.randomize(values, random=Random.deterministic(1))
    assert (reports == inner.randomize(values, clip=True, random=Random.deterministic(1))).all()
    assert mechanism.mean(reports) == inner.mean(reports)
    assert mechanism.variance() == inner.variance()
    assert mechanism.key != inner.key
    whole = Piecewise(0, 10, 2)
    assert OptimalPiecewise(0, 10, 2).variance() * (1 + math.exp(-1)) ** 2 == pytest.approx(whole.variance(), rel=1e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("value", [0.0, 1.5, 5.0, 7.0])
def test_errors_and_distances_are_as_stated(value: float) -> None:
    """60,000 reports of one person each. A mean within 6 deviations of the moved number; squares and distances within 6 standard
    errors of what is stated (each 2e-9 by the normal law)."""
    mechanism, n = OptimalPiecewise(0, 10, 1), 60_000
    reports = mechanism.randomize(np.full(n, value), random=Random.deterministic(4))
    moved = min(max(value, mechanism.cut), 10 - mechanism.cut)
    assert abs(mechanism.mean(reports).value - moved) < 6 * math.sqrt(mechanism.variance(n, value))
    parts = mechanism.interval.low + mechanism.interval.span * mechanism._firsts[reports]
    squares = (parts - moved) ** 2
    assert abs(squares.mean() - mechanism.variance(1, value)) < 6 * squares.std() / math.sqrt(n)
    away = abs(mechanism.read(reports) - value)
    assert abs(away.mean() - mechanism.distance(value)) < 6 * away.std() / math.sqrt(n)


def test_numbers_near_an_end_have_one_law_so_the_bias_can_not_be_undone() -> None:
    mechanism = OptimalPiecewise(0, 10, 1)
    near = np.linspace(0, mechanism.cut, 300)
    for values in (near, 10 - near):
        reports = mechanism.randomize(values, random=Random.deterministic(2))
        assert (reports == mechanism.randomize(np.full(300, values[0]), random=Random.deterministic(2))).all()


def test_bad_input() -> None:
    mechanism = OptimalPiecewise(0, 10, 1)
    for values in ([11.0], [-0.1], [math.nan], "5", [[1.0, 2.0]]):
        with pytest.raises(InvalidParameter):
            mechanism.randomize(values)
    assert mechanism.randomize([11.0, -3.0], clip=True).shape == (2,)
    assert mechanism.randomize([]).shape == (0,)
    for refused in (lambda: mechanism.variance(1, 11), lambda: mechanism.distance(11)):
        with pytest.raises(InvalidParameter, match="outside"):
            refused()
    with pytest.raises(InvalidParameter, match="could not come"):
        mechanism.read([mechanism.window.outputs])
    for arguments in ((1, 0, 1), (0, 1, 0), (0, 1, 50)):
        with pytest.raises(InvalidParameter):
            OptimalPiecewise(*arguments)
