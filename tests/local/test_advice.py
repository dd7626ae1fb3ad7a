"""Which protocol is named for which question, and what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import choose
from cloister.local.protocols.advice import _NEAR
from cloister.noise import Random


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3"])
@pytest.mark.parametrize("size", [3, 4, 10, 50, 128, 1000])
def test_nothing_is_better_by_more_than_what_counts(size: int, epsilon: str) -> None:
    advice = choose(size, epsilon=epsilon, people=10_000)
    assert advice.best.margin <= _NEAR * min(option.margin for option in advice.options)
    assert advice.oracle is advice.best.oracle
    assert [option.margin for option in advice.options[1:]] == sorted(option.margin for option in advice.options[1:])


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2"])
def test_direct_encoding_beats_bits_up_to_its_bound(epsilon: str) -> None:
    """d < 3e^ε + 2, by the variances: so it is said of very many people. With few, margins cross a little earlier. Subset
    selection, which is direct encoding where one value is picked, is never behind."""
    bound = 3 * math.exp(float(epsilon)) + 2
    for size, better in ((int(bound), True), (int(bound) + 2, False)):
        margins = {option.name: option.margin for option in choose(size, epsilon=epsilon, people=10**8).options}
        assert (margins["direct encoding"] < margins["optimised unary encoding"]) is better
        assert margins["subset selection"] <= margins["direct encoding"] * (1 + 1e-9)
    assert choose(3, epsilon=epsilon, people=1000).name == "direct encoding"


def test_among_equals_the_shortest_report_wins() -> None:
    advice = choose(1000, epsilon=1, people=10_000)
    equals = [option for option in advice.options if option.margin <= _NEAR * min(each.margin for each in advice.options)]
    assert advice.best.report_size == min(option.report_size for option in equals)


def test_reports_as_long_as_the_domain_are_not_tried_on_millions() -> None:
    names = {option.name for option in choose(range(1_000_000), epsilon=1, people=1000).options}
    assert names == {"direct encoding", "optimal local hashing", "Hadamard response"}


def test_it_says_why_and_shows_all() -> None:
    advice = choose(["a", "b", "c", "d", "e"], epsilon=1, people=5_000)
    told = str(advice)
    assert told.startswith(advice.name)
    assert all(option.name in told for option in advice.options)
    drawn = advice.chart().to_dict()
    assert len(drawn["layer"]) == 2
    assert f"{advice.best.margin:.2%}" in advice.why


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("people", [10, 300])
def test_margins_of_options_are_those_of_their_results(size: int, people: int) -> None:
    """One value in turn is held by nobody: its margins, of all protocols, have the planned one in their middle."""
    random = Random.deterministic(people)
    for option in choose(size, epsilon=1, people=people).options:
        told = []
        for run in range(100):
            places = np.arange(people) % (size - 1)
            reports = option.oracle.randomize((run + 1 + places) % size, random=random)
            told.append(option.oracle.estimate(option.oracle.aggregate(reports)).margin()[run % size] / people)
        assert float(np.median(told)) == pytest.approx(option.margin, rel=0.1), option.name


@pytest.mark.parametrize("people", [0, -1, 1.5, True, "many"])
def test_people_are_counted(people: object) -> None:
    with pytest.raises(InvalidParameter, match="how many will answer"):
        choose(["a", "b"], people=people)  # type: ignore[arg-type]


@pytest.mark.parametrize("domain", [0, 1, [], ["a"], "text", None, ["a", "a"]])
def test_a_domain_that_is_none_is_refused(domain: object) -> None:
    with pytest.raises(InvalidParameter, match="domain"):
        choose(domain)
