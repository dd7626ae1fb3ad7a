"""Several attributes: the better way is chosen, errors are what the formulas say, margins cover, bad input."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import DirectEncoding, SeveralAttributes, UnaryEncoding
from cloister.noise import Random
from tests.tiers import by_day_and_night

DOMAINS = {"smokes": ["yes", "no"], "town": range(20)}


def test_small_epsilons_are_not_split() -> None:
    assert [SeveralAttributes(DOMAINS, epsilon).how for epsilon in ("0.1", 1, 3, 9)] == ["sampling"] * 3 + ["splitting"]
    forced = SeveralAttributes(DOMAINS, 1, how="splitting")
    assert {float(oracle.epsilon) for oracle in forced.oracles.values()} == {0.5}
    assert forced.variances["splitting"] > 1.9 * forced.variances["sampling"]
    assert str(forced.guarantee) == "ε = 1"


@by_day_and_night("runs", 500, 1_500)
@pytest.mark.parametrize("how", ["sampling", "splitting"])
def test_errors_are_what_the_formulas_say(how: str, runs: int) -> None:
    """Surveys of 20 towns: the mean of squares of so many cells is off by 5 deviations, 7 % by day and 4 % at night, with a
    probability of 6e-7; margins cover 95 % to 5.5 deviations, and more, as twenty people's are wider than the normal law's."""
    n = 400
    several = SeveralAttributes(DOMAINS, 1, how=how)
    table = {"smokes": ["yes"] * n, "town": np.arange(n) % 20}
    random = Random.deterministic(8)
    errors, smokes, covered, margins = [], [], [], []
    for _ in range(runs):
        found = several.estimate(several.aggregate(several.randomize(table, random=random)))
        assert found["town"].n == n
        errors.append(found["town"].counts - n / 20)
        margins.append(found["town"].margin(0.95))
        covered.append(abs(errors[-1]) < margins[-1])
        smokes.append(found["smokes"].counts[0] - n)
    town, share = several.oracles["town"], 1 / 20
    expected = 2 * n * town.variance(1, share) + n * share * (1 - share) if how == "sampling" else n * town.variance(1, share)
    assert np.mean(np.square(errors)) / expected == pytest.approx(1, abs=5 * (2 / (20 * runs)) ** 0.5)
    assert np.mean(covered) > 0.95 - 5.5 * (0.95 * 0.05 / (20 * runs)) ** 0.5
    assert np.mean(margins) < 1.3 * 1.96 * expected**0.5
    assert abs(np.mean(smokes)) < 5 * np.std(smokes) / runs**0.5


def test_other_protocols_and_nobody_asked() -> None:
    several = SeveralAttributes(DOMAINS, 1, oracle=UnaryEncoding)
    assert {type(oracle) for oracle in several.oracles.values()} == {UnaryEncoding}
    one = several.randomize({"smokes": ["yes"], "town": [3]}, random=Random.deterministic(1))
    assert sorted(len(reports) for reports in one.values()) == [0, 1]
    found = several.estimate(several.aggregate(one))
    unasked = next(name for name, reports in one.items() if len(reports) == 0)
    assert found[unasked].counts.tolist() == [0.0] * len(found[unasked])
    assert found[unasked].margin(0.95).tolist() == [1.0] * len(found[unasked])  # from nobody to the one person that there is


def test_bad_input_is_refused_with_its_own_message() -> None:
    several = SeveralAttributes(DOMAINS, 1)
    with pytest.raises(InvalidParameter, match="two or more"):
        SeveralAttributes({"smokes": ["yes", "no"]}, 1)
    with pytest.raises(InvalidParameter, match="there are two ways"):
        SeveralAttributes(DOMAINS, 1, how="both")
    for how, epsilon in (("splitting", 1), ("sampling", 2)):
        with pytest.raises(InvalidParameter, match="another ε"):
            SeveralAttributes(DOMAINS, 1, how=how, oracle=lambda domain, _, epsilon=epsilon: DirectEncoding(domain, epsilon))
    with pytest.raises(InvalidParameter, match="one list for each attribute"):
        several.randomize({"smokes": ["yes"]})
    with pytest.raises(InvalidParameter, match="differ in length"):
        several.randomize({"smokes": ["yes"], "town": [1, 2]})
    with pytest.raises(InvalidParameter, match="outside the domain"):
        several.randomize({"smokes": ["perhaps"], "town": [1]})
    with pytest.raises(InvalidParameter, match="of other attributes"):
        several.aggregate({"smokes": np.array([], dtype=np.int64)})
