"""Naive Bayes with discrete features: what a person sends, what is made of it, what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.local import DirectEncoding, UnaryEncoding
from cloister.local.learning import LocalNaiveBayes
from cloister.noise import Random


def people(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, three features: the first tells the class nine times in ten, the second six times, the third nothing."""
    i = np.arange(n)
    classes = i % 2
    first = np.where(i // 2 % 10 < 9, classes, 1 - classes)
    second = np.where(i // 20 % 10 < 6, classes, 2)
    return np.stack([first, second, i // 200 % 4], axis=1), classes


FEATURES = [range(2), range(3), range(4)]


@pytest.mark.parametrize("negative", ["norm-sub", "one"])
@pytest.mark.parametrize("protocol", [None, DirectEncoding, UnaryEncoding])
def test_the_model_is_that_of_the_people(protocol: type[DirectEncoding] | None, negative: str) -> None:
    """40,000 people at ε = 4: shares within 0.05 of the truth, which is over 5 standard deviations."""
    rows, classes = people(40_000)
    model = LocalNaiveBayes(FEATURES, range(2), 4, protocol=protocol)
    fitted = model.fit(model.aggregate(model.randomize(rows, classes, random=Random.deterministic(1))), negative=negative)
    assert np.exp(fitted.log_classes) == pytest.approx([0.5, 0.5], abs=0.05)
    assert pytest.approx(np.array([[0.9, 0.1], [0.1, 0.9]]), abs=0.05) == np.exp(fitted.log_values[0]).T
    assert np.exp(fitted.log_values[1][:, 1]) == pytest.approx(np.array([0.0, 0.6, 0.4]), abs=0.05)
    assert fitted.log_values[2] == pytest.approx(np.log(np.full((4, 2), 0.25)), abs=0.3)
    accuracy = np.mean(np.array(fitted.predict(rows[:2000])) == classes[:2000])
    assert accuracy > 0.87


def test_sketches_of_servers_add_up() -> None:
    rows, classes = people(4000)
    model = LocalNaiveBayes(FEATURES, range(2), 3)
    reports = [model.randomize(rows[half::2], classes[half::2], random=Random.deterministic(half)) for half in (0, 1)]
    one, other = (model.aggregate(each) for each in reports)
    both = model.fit([a + b for a, b in zip(one, other, strict=True)])
    assert both.log_values[0].shape == (2, 2)
    assert sum(a.n + b.n for a, b in zip(one, other, strict=True)) == 4000 * model.picks


def test_what_a_person_sends_adds_up_to_epsilon() -> None:
    """k different features, each by an oracle at ε/k; the number of reports doesn't depend on the record."""
    model = LocalNaiveBayes([range(4)] * 10, range(2), 12)
    assert 1 < model.picks < 10
    assert all(oracle.epsilon * model.picks == 12 for oracle in model.oracles)
    reports = model.randomize([[0] * 10] * 50, [0] * 50, random=Random.deterministic(1))
    assert sum(len(each) for each in reports) == 50 * model.picks
    assert max(len(each) for each in reports) <= 50
    assert LocalNaiveBayes([range(4)] * 10, range(2), "0.5").picks == 1
    assert LocalNaiveBayes([range(4)] * 10, range(2), 100).picks >= 7


def test_noise_alone_makes_no_pattern() -> None:
    """Features that are independent of the class are drawn to independence: the mean of the tables' deviations is small."""
    rows = np.stack([np.arange(5000) % 4, np.arange(5000) // 4 % 3], axis=1)
    classes = np.arange(5000) // 12 % 2
    model = LocalNaiveBayes([range(4), range(3)], range(2), 1)
    reports = model.aggregate(model.randomize(rows, classes, random=Random.deterministic(3)))
    drawn, plain = model.fit(reports), model.fit(reports, negative="one")
    gaps = [max(np.abs(table[:, 0] - table[:, 1]).max() for table in each.log_values) for each in (drawn, plain)]
    assert gaps[0] < gaps[1]


def test_values_by_name_and_nobody() -> None:
    model = LocalNaiveBayes([["red", "blue"]], ["no", "yes"], 1)
    fitted = model.fit(model.aggregate(model.randomize([], [])))
    assert np.exp(fitted.log_classes).tolist() == [0.5, 0.5]
    assert fitted.predict([["red"]]) == ["no"]


def test_refusals() -> None:
    model = LocalNaiveBayes(FEATURES, range(2), 1)
    for rows, classes, why in (
        ([[0, 0]], [0], "each needs 3"),
        ([[0, 0, 7]], [0], "outside the domain"),
        ([[0, 0, 0]], [2], "outside the domain"),
        ([[0, 0, 0]], [0, 1], "differ in number"),
    ):
        with pytest.raises(InvalidParameter, match=why):
            model.randomize(rows, classes)
    with pytest.raises(InvalidParameter, match="no such way"):
        model.fit(model.aggregate(model.randomize([], [])), negative="zero")
    with pytest.raises(InvalidParameter, match="other features"):
        model.aggregate([[]])
    with pytest.raises(InvalidParameter, match="it is missing"):
        LocalNaiveBayes([], range(2), 1)
    for picks in (0, 4, True):
        with pytest.raises(InvalidParameter, match="picks="):
            LocalNaiveBayes(FEATURES, range(2), 1, picks=picks)
    with pytest.raises(InvalidParameter, match="greater than 0"):
        LocalNaiveBayes(FEATURES, range(2), 0)


def test_a_constant_feature_costs_nothing_and_says_nothing() -> None:
    """Declared with one value, as data sets have it: the reports are those of the others alone, and so is the model."""
    rows, classes = [["veil", "low", 0], ["veil", "high", 2]] * 2000, ["no", "yes"] * 2000
    others = LocalNaiveBayes([["low", "high"], range(3)], ["no", "yes"], epsilon=2)
    model = LocalNaiveBayes([["veil"], ["low", "high"], range(3)], ["no", "yes"], epsilon=2)
    assert (model.picks, len(model.oracles), model.guarantee) == (others.picks, 2, others.guarantee)
    fitted = model.fit(model.aggregate(model.randomize(rows, classes, random=Random.deterministic(1))))
    short = [row[1:] for row in rows]
    same = others.fit(others.aggregate(others.randomize(short, classes, random=Random.deterministic(1))))
    np.testing.assert_allclose(fitted.scores(rows[:2]), same.scores(short[:2]))
    assert fitted.predict(np.array(rows[:2], dtype=object)) == ["no", "yes"]
    with pytest.raises(InvalidParameter, match="one value"):
        LocalNaiveBayes([["veil"]], ["no", "yes"])
    with pytest.raises(InvalidParameter, match="each needs 3 values"):
        fitted.predict(short[:1])


def test_what_is_no_sketch_of_each_feature_is_refused_in_words() -> None:
    model = LocalNaiveBayes([["low", "high"], range(3)], ["no", "yes"], epsilon=2)
    sketches = model.aggregate(model.randomize([["low", 0]] * 9, ["no"] * 9, random=Random.deterministic(1)))
    calls: list[Callable[[], object]] = [
        lambda: model.fit(None),  # type: ignore[arg-type]
        lambda: model.fit(sketches[:1]),
        lambda: model.fit(sketches, negative=[]),  # type: ignore[arg-type]
        lambda: model.aggregate(None),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(InvalidParameter, match="invalid"):
            call()
