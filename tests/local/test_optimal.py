"""The optimal piecewise mechanism: the published law, the least distance of all windows, and what is biased and what is not."""

from __future__ import annotations

import math
from dataclasses import replace
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
    assert mechanism.mean(reports) == replace(inner.mean(reports), bias=mechanism.cut)
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


@pytest.mark.statistical
def test_several_coordinates_are_told_of_by_lot_each_at_its_share_of_epsilon() -> None:
    """40,000 rows of three numbers at ε = 6, of which two are told: means of moved numbers within 5.5 deviations, as stated."""
    mechanism, n = OptimalPiecewise(0, 10, 6, dimensions=3), 40_000
    single = OptimalPiecewise(0, 10, 3)
    assert (mechanism.picks, mechanism.cut, mechanism.window) == (2, single.cut, single.window)
    assert single.distance() == mechanism.distance()
    reports = mechanism.randomize(np.tile([1.5, 5.0, 0.0], (n, 1)), random=Random.deterministic(5))
    assert reports.shape == (n, 2)
    means = mechanism.mean(reports)
    assert (abs(means.value - [1.5, 5.0, mechanism.cut]) < 5.5 * np.sqrt(means.variance)).all()
    assert means[0].bias == means.bias == mechanism.cut
    assert (abs(means.value - [1.5, 5.0, 0.0]) < means.margin(0.999)).all()
    assert means.variance == pytest.approx([mechanism.variance(n, value) for value in (1.5, 5.0, 0.0)], rel=0.05)
    read = mechanism.read(reports)
    assert read.shape == (n, 3)
    assert (np.isnan(read).sum(axis=1) == 1).all()
    away = np.nanmean(abs(read - [1.5, 5.0, 0.0]), axis=0)
    assert away == pytest.approx([mechanism.distance(value) for value in (1.5, 5.0, 0.0)], rel=0.05)
    assert mechanism.spread(reports, coordinate=1).value == pytest.approx(0, abs=0.5)
    for rows in ([[1.0, 2.0]], [1.0, 2.0, 3.0], [[1.0, 2.0, math.nan]], [[1.0, 2.0, 11.0]]):
        with pytest.raises(InvalidParameter):
            mechanism.randomize(rows)
    assert mechanism.randomize([]).shape == (0, 2)


@pytest.mark.parametrize("grid", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("epsilon", ["0.000001", "0.01", "1", "5", "20", "40"])
def test_the_channel_keeps_epsilon_and_means_are_unbiased_at_every_grid_and_epsilon(grid: int, epsilon: str) -> None:
    """By enumeration: of the points of the grid, the mean of what a report is read as, and its variance."""
    mechanism = OptimalPiecewise(-3, 7, epsilon, grid=grid)
    found = audit_channel(mechanism.channel())
    assert found.epsilon <= float(epsilon)
    law = np.array(mechanism.channel(), dtype=float)
    points = mechanism.interval.low + mechanism.interval.span * np.arange(grid + 1) / grid
    parts = mechanism.interval.low + mechanism.interval.span * mechanism._firsts
    assert abs(law @ parts - points).max() < 1e-9 * max(1.0, abs(parts).max())
    stated = [mechanism.variance(1, point) for point in points.tolist()]
    assert law @ (parts**2) - points**2 == pytest.approx(stated, rel=1e-6, abs=1e-6)
    assert min(stated) >= 0
    assert mechanism.variance() >= max(stated) * (1 - 1e-9)


def test_a_margin_is_a_number_at_the_largest_epsilon() -> None:
    for made in (Piecewise, OptimalPiecewise):
        mechanism = made(0, 10, 40, grid=10)
        mean = mechanism.mean(mechanism.randomize([3] * 100, random=Random.deterministic(1)))
        assert 0 <= mean.margin(0.95) < 1
        assert mean.bias == (mechanism.cut if made is OptimalPiecewise else 0)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", ["1", "4"])
@pytest.mark.parametrize("shape", ["low", "high", "ends", "even"])
def test_margins_hold_the_truth_wherever_people_stand(shape: str, epsilon: str) -> None:
    """40 surveys of 2,000 people, most of them nearer to an end than reports can tell: all of a mean's 95 % intervals hold, since
    what is hidden is in them (a mean without it was held in none); so those of spreads, quantiles and shapes. Seeded."""
    mechanism, random = OptimalPiecewise(0, 100, epsilon), Random.deterministic(8)
    grid = (np.arange(2000) + 0.5) / 2000
    people = {"low": 100 * grid**4, "high": 100 - 100 * grid**4, "ends": np.where(grid < 0.5, 0.0, 100.0), "even": 100 * grid}[
        shape
    ]
    held = {"mean": 0, "spread": 0, "without": 0}
    for _ in range(40):
        reports = mechanism.randomize(people, random=random)
        mean, spread = mechanism.mean(reports), mechanism.spread(reports)
        held["mean"] += abs(mean.value - people.mean()) <= mean.margin(0.95)
        held["without"] += abs(mean.value - people.mean()) <= replace(mean, bias=0.0).margin(0.95)
        held["spread"] += abs(spread.value - people.var()) <= spread.margin(0.95)
    assert min(held["mean"], held["spread"]) >= 38
    assert (held["without"] < 10) == (shape in ("low", "high"))
    found = mechanism.distribution(reports)
    for name, number, truth in (
        ("mean", found.mean, people.mean()),
        ("variance", found.variance, people.var()),
        ("lower", found.quantile("0.1"), np.quantile(people, 0.1)),
        ("upper", found.quantile("0.9"), np.quantile(people, 0.9)),
    ):
        assert abs(number.value - truth) <= number.margin(0.999), name


def test_a_histogram_does_not_part_people_who_are_told_apart_by_nothing() -> None:
    mechanism = OptimalPiecewise(0, 100, 2)
    reports = mechanism.randomize(np.zeros(4000), random=Random.deterministic(2))
    shape = mechanism.distribution(reports)
    found = shape.histogram(4)
    assert (found.values[0][0], found.values[-1][1]) == pytest.approx((0.0, 100.0))
    assert abs(found.counts[0] - 4000) < found.margin(0.999)[0]
    for bins in ([0, 5, 100], [0, shape.points[0], 100], [0, 50, 95, 100]):
        with pytest.raises(InvalidParameter, match="not told apart"):
            shape.histogram(bins)
    assert shape.histogram([0, 50, 100]).counts.sum() == pytest.approx(4000)


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
    for reports in (None, 5, "5", [1.5], [[1]]):
        with pytest.raises(InvalidParameter, match="flat list of whole numbers"):
            mechanism.read(reports)
    assert mechanism.read([]).shape == (0,)
    assert mechanism.read([True]) == mechanism.read([1])
    for people in (0, -1, 1.5, "a"):
        with pytest.raises(InvalidParameter, match="whole number of people"):
            mechanism.variance(people)  # type: ignore[arg-type]
    for arguments in ((1, 0, 1), (0, 1, 0), (0, 1, 50)):
        with pytest.raises(InvalidParameter):
            OptimalPiecewise(*arguments)
