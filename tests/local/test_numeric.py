"""What all numeric mechanisms have in common: unbiased means, the variances of the table, margins, merging, what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from cloister.attacks import audit
from cloister.errors import InvalidParameter
from cloister.local import CircularPiecewise, Duchi, Hybrid, LocalLaplace, NumericMechanism, Piecewise, Sketch
from cloister.noise import Random
from cloister.privacy import PureDP
from tests.local.numbers import ALL, LINEAR, MANY, parts

TABLE = {
    "0.5": (32, 16.67, 21.22, 16.67),
    "1": (8, 4.683, 5.224, 4.289),
    "2": (2, 1.724, 1.228, 1.042),
    "4": (0.5, 1.076, 0.241, 0.219),
}
"""The worst variance of a person's part in a mean on [−1, 1]: Laplace, Duchi, Piecewise, Hybrid."""


@pytest.mark.parametrize("epsilon", TABLE)
def test_the_variances_of_the_table(epsilon: str) -> None:
    for made, variance in zip((LocalLaplace, Duchi, Piecewise, Hybrid), TABLE[epsilon], strict=True):
        assert made(-1, 1, epsilon).variance() == pytest.approx(variance, rel=0.0025)


@pytest.mark.parametrize("epsilon", ["0.3", "1", "2.5", "6"])
@pytest.mark.parametrize("t", [-1.0, 0.0, 0.3, 1.0])
def test_the_closed_forms(epsilon: str, t: float) -> None:
    e, half = math.exp(float(epsilon)), math.exp(float(epsilon) / 2)
    assert Duchi(epsilon=epsilon).variance(1, t) == pytest.approx(((e + 1) / (e - 1)) ** 2 - t**2, rel=1e-9)
    closed = t**2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    assert Piecewise(epsilon=epsilon).variance(1, t) == pytest.approx(closed, rel=0.003)
    assert Piecewise(epsilon=epsilon, grid=1 << 16).variance(1, t) == pytest.approx(closed, rel=1e-4)
    assert LocalLaplace(epsilon=epsilon).variance(1, t) == pytest.approx(8 / float(epsilon) ** 2, rel=1e-3)


def test_who_wins_where() -> None:
    """Duchi below about 1.29, Piecewise above; Laplace beats Duchi above about 2.3 and never Piecewise; Hybrid is never worse."""
    for hundredths in (*range(5, 600, 35), *range(120, 140, 5), *range(225, 245, 5)):  # closely where they cross
        epsilon = hundredths / 100
        laplace, duchi, piecewise, hybrid = (
            each(epsilon=epsilon).variance() for each in (LocalLaplace, Duchi, Piecewise, Hybrid)
        )
        assert (duchi < piecewise) == (epsilon < 1.29)
        assert (laplace < duchi) == (epsilon > 2.31)
        assert piecewise < laplace
        assert hybrid <= min(duchi, piecewise) * 1.0001


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
@pytest.mark.parametrize("made", LINEAR)
def test_the_mean_squared_error_is_the_stated_one(made: type[NumericMechanism], epsilon: str) -> None:
    """200,000 people a value. A part has a kurtosis of at most 6 (Laplace): the mean square has a relative standard deviation of
    at most 0.5 %, so 3 % is 6 of them; a mean has 6 of its own. False alarms: below 10⁻⁸ a case."""
    mechanism = made(-1, 1, epsilon)
    random, truth = Random.deterministic(11), (-1.0, 0.31, 1.0)
    found = parts(mechanism, np.concatenate([mechanism.randomize(np.full(200_000, t), random=random) for t in truth]))
    for t, each in zip(truth, found.reshape(len(truth), -1), strict=True):
        errors = each - t
        assert np.mean(errors**2) == pytest.approx(mechanism.variance(1, t), rel=0.03)
        assert abs(np.mean(errors)) < 6 * math.sqrt(mechanism.variance(200_000, t))


@pytest.mark.statistical
@pytest.mark.parametrize("made", LINEAR)
def test_margins_hold_the_mean(made: type[NumericMechanism]) -> None:
    """300 surveys at 90 %: at least 245 of 300 hold it but for 10⁻⁶ (binomial), and for these margins not more than 293."""
    mechanism, random = made(0, 10, 1), Random.deterministic(5)
    values = np.linspace(1, 9, 2000)
    inside = 0
    for _ in range(300):
        mean = mechanism.mean(mechanism.randomize(values, random=random))
        inside += abs(mean.value - 5) < mean.margin("0.9")
    assert 245 <= inside <= 293


@pytest.mark.statistical
@pytest.mark.parametrize("made", MANY)
@pytest.mark.parametrize(("epsilon", "dimensions"), [("1", 4), ("6", 4), ("1", 7), ("2", 20)])
def test_several_dimensions_are_unbiased_with_the_stated_variance(
    made: type[NumericMechanism], epsilon: str, dimensions: int
) -> None:
    """Each person holds the same vector; 60 means of 500 people a coordinate. 6 standard deviations: false alarms below 10⁻⁶."""
    mechanism, random = made(-1, 1, epsilon, dimensions=dimensions), Random.deterministic(8)  # type: ignore[call-arg]
    truth = np.linspace(-0.9, 0.9, dimensions)
    runs, people = 60, 500 * dimensions
    found = [mechanism.mean(mechanism.randomize(np.tile(truth, (people, 1)), random=random)) for _ in range(runs)]
    values = np.array([each.value for each in found])
    stated = np.array([mechanism.variance(people, float(t)) for t in truth])
    assert bool((np.abs(values.mean(axis=0) - truth) < 6 * np.sqrt(stated / runs)).all())
    squares = ((values - truth) ** 2 / stated).mean()
    assert squares == pytest.approx(1, abs=6 * math.sqrt(2 / (runs * dimensions)) + 0.03)
    told = np.array([each.variance for each in found]).mean(axis=0) / stated
    assert told.min() > 0.85
    assert told.max() < 1.25  # of few reports it is bounded from above


@pytest.mark.parametrize("made", ALL)
def test_sketches_of_streams_and_servers_add_up(made: type[NumericMechanism]) -> None:
    mechanism = made(0, 5, 1)
    reports = mechanism.randomize(np.linspace(0, 5, 1000), random=Random.deterministic(2))
    whole = mechanism.aggregate(reports)
    merged = mechanism.aggregate(reports[:300]) + Sketch.from_json(mechanism.aggregate(reports[300:]).to_json())
    assert merged == whole
    assert mechanism.mean(merged) == mechanism.mean(reports)
    assert merged.n == 1000
    with pytest.raises(InvalidParameter, match="different protocols"):
        whole + made(0, 6, 1).aggregate([])
    with pytest.raises(InvalidParameter, match="another protocol, interval"):
        made(0, 5, 2).mean(whole)


@pytest.mark.parametrize("made", ALL)
def test_reports_are_whole_numbers_and_checked(made: type[NumericMechanism]) -> None:
    mechanism = made(0, 5, 1)
    reports = mechanism.randomize([0, 2.5, 5], random=Random.deterministic(2))
    assert reports.dtype.kind in "iu"
    assert mechanism.valid(reports).all()
    assert not mechanism.valid(np.array([-1 << 40, 1 << 40])).any()
    assert json.loads(json.dumps(dict(mechanism.client))) == dict(mechanism.client)
    assert 1 <= mechanism.report_size <= 64
    for wrong in ([1 << 40], [0.5], [[1, 2]], ["1"]):
        with pytest.raises(InvalidParameter, match="reports are invalid"):
            mechanism.aggregate(wrong)


@pytest.mark.parametrize("made", ALL)
def test_nobody_answered(made: type[NumericMechanism]) -> None:
    mechanism = made(0, 5, 1)
    assert len(mechanism.randomize([])) == 0
    assert mechanism.aggregate([]).n == 0
    with pytest.raises(InvalidParameter, match="nobody answered"):
        mechanism.mean([])


@pytest.mark.parametrize("made", ALL)
@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([math.nan], "NaN"),
        ([math.inf], "outside"),
        ([-math.inf], "outside"),
        ([7_734_001], "outside"),
        ([-1e-300], "outside"),
        ([10**400], "outside"),
        ([None], "NaN"),
        (["1"], "list of numbers"),
        ("123", "list of numbers"),
        ([1j], "list of numbers"),
        ([[1.0, 2.0]], "flat list"),
        (3.0, "list of numbers"),
    ],
)
def test_bad_values_are_refused_without_being_told(made: type[NumericMechanism], values: object, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as caught:
        made(0, 5, 1).randomize(values)
    assert "7734001" not in str(caught.value)
    assert "e-300" not in str(caught.value)


@pytest.mark.parametrize("made", ALL)
def test_clip_moves_to_the_nearer_end(made: type[NumericMechanism]) -> None:
    mechanism = made(0, 5, 20)
    here, there = (
        mechanism.randomize(values, clip=True, random=Random.deterministic(4)) for values in ([-math.inf, 10**400, 99], [0, 5, 5])
    )
    assert here.tolist() == there.tolist()
    with pytest.raises(InvalidParameter, match="NaN"):
        mechanism.randomize([math.nan], clip=True)


@pytest.mark.parametrize("made", ALL)
@pytest.mark.parametrize(
    ("low", "high", "epsilon", "why"),
    [
        (1, 0, 1, "less than"),
        (1, 1, 1, "no width"),
        (math.nan, 1, 1, "not a finite number"),
        (-math.inf, 1, 1, "not a finite number"),
        ("-1e308", "1e308", 1, "far apart"),
        (0, 10**400, 1, "far apart"),
        (0, "1e-320", 1, "no room"),
        ("1", "1.00000000000000000001", 1, "no room"),
        (0, 1, 0, "greater than 0"),
        (0, 1, 41, "the truth"),
        (0, 1, "1e-7", "nothing"),
    ],
)
def test_bad_intervals_and_epsilons(made: type[NumericMechanism], low: object, high: object, epsilon: object, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        made(low, high, epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("made", MANY)
def test_bad_dimensions(made: type[NumericMechanism]) -> None:
    for dimensions in (0, -1, 1.5, True, 1 << 20):
        with pytest.raises(InvalidParameter, match="dimensions"):
            made(0, 1, 1, dimensions=dimensions)  # type: ignore[arg-type]
    mechanism = made(0, 1, 1, dimensions=3)
    with pytest.raises(InvalidParameter, match="rows of 3"):
        mechanism.randomize([[0.5, 0.5]])
    with pytest.raises(InvalidParameter, match="rows of 3"):
        mechanism.randomize([0.5])
    assert mechanism.mean(mechanism.randomize([[0.1, 0.5, 0.9]] * 50)).margin(0.9).shape == (3,)
    assert len(mechanism.randomize(np.zeros((0, 3)))) == 0


@pytest.mark.parametrize("made", ALL)
@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "40"])
def test_the_ends_of_what_epsilon_may_be(made: type[NumericMechanism], epsilon: str) -> None:
    mechanism = made(0, 5, epsilon)
    reports = mechanism.randomize(np.linspace(1, 4, 200), random=Random.deterministic(3))
    mean = mechanism.mean(mechanism.aggregate(reports))
    assert math.isfinite(mean.value)
    if epsilon == "40":
        assert mean.value == pytest.approx(2.5, abs=0.1 if made is not Duchi else 1)


@pytest.mark.parametrize(("low", "high"), [("-1e74", "1e74"), (0, "1e-74"), ("1e15", "1000000000000001"), (-5, "1e-5")])
@pytest.mark.parametrize("made", LINEAR)
def test_floats_of_any_size(made: type[NumericMechanism], low: object, high: object) -> None:
    mechanism = made(low, high, 8)  # type: ignore[arg-type]
    ends = mechanism.interval
    middle = ends.low + ends.span / 2
    values = np.array([ends.low, middle, ends.high] * 2000)
    found = mechanism.mean(mechanism.randomize(values, random=Random.deterministic(1))).value
    assert abs(found - float(np.mean(values / 3) * 3)) < 0.06 * ends.span


@pytest.mark.statistical
@pytest.mark.parametrize("made", ALL)
def test_an_audit_by_sampling_finds_no_more_than_was_promised(made: type[NumericMechanism]) -> None:
    """The bound holds with confidence 1 − 10⁻⁹; a circle's far ends are its opposite points."""
    mechanism = made(0, 2, 1)

    def run(value: float, n: int, random: Random) -> object:
        return mechanism.randomize(np.full(n, value), random=random)

    right = 1.0 if made is ALL[-1] else 2.0
    found = audit(run, 0.0, right, runs=400_000, random=Random.deterministic(3))
    assert not found.contradicts(PureDP(1))
    assert found.epsilon > 0.8


def test_randomness_is_the_packages_own() -> None:
    with pytest.raises(InvalidParameter, match="Random"):
        Piecewise().randomize([0.5], random=np.random.default_rng(1))  # type: ignore[arg-type]


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 8])
def test_a_circles_margin_covers_and_has_little_of_peoples_own_variety_in_it(epsilon: float) -> None:
    """300 surveys of 1,000 people at two places, five hours apart: 95 % of margins cover, less 5.5 deviations (7 %). At ε = 8,
    where reports tell how people differ, the stated variance is at most twice the true one; with their variety it was twenty
    times that."""
    clock, random = CircularPiecewise(0, 24, epsilon, grid=256), Random.deterministic(9)
    people, errors, stated, covered = np.repeat([22.0, 3.0], 500), [], [], []
    for _ in range(300):
        found = clock.mean(clock.randomize(people, random=random))
        errors.append((found.value - 0.5 + 12) % 24 - 12)
        stated.append(found.variance)
        covered.append(abs(errors[-1]) <= found.margin(0.95))
    assert np.mean(covered) > 0.88
    assert abs(np.mean(errors)) < 5.5 * np.std(errors) / 300**0.5
    if epsilon == 8:
        assert np.mean(stated) < 2 * np.var(errors)
