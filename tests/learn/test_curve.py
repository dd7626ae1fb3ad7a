"""The price of privacy: the numbers, their spread, and the mark."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.learn.assessment.curve import Curve, Point, price_of_privacy
from cloister.learn.bayesian.naive_bayes import GaussianNB
from cloister.learn.clustering.kmeans import KMeans
from cloister.learn.decomposition.captured import captured
from cloister.learn.decomposition.pca import PCA
from cloister.learn.frame.base import PrivateModel
from cloister.learn.frame.examples import Threshold
from cloister.learn.frame.scaling import BoundedScaler
from cloister.learn.linear_models.linear import LinearRegression
from cloister.learn.linear_models.logistic import LogisticRegression
from cloister.noise import Random

X = ((np.arange(200) * 0.618034) % 1).reshape(-1, 1)
Y = (X[:, 0] > 0.5).astype(int)


@pytest.fixture(scope="module")
def curve() -> Curve:
    return price_of_privacy(
        Threshold(bounds=(0, 1)),
        X,
        Y,
        epsilons=["10", "0.01"],
        runs=8,
        rows="invented rows",
        random=Random.deterministic(5),
    )


def test_privacy_costs_more_the_less_epsilon(curve: Curve) -> None:
    assert [point.epsilon for point in curve.points] == [Fraction(1, 100), Fraction(10)]
    assert curve.plain is not None
    assert curve.plain.mean == 1.0
    assert curve.points[0].mean < 0.9 < curve.points[1].mean
    assert curve.points[0].spread > curve.points[1].spread
    assert {point.runs for point in curve.points} == {8}


def test_the_data_have_one_row_a_point(curve: Curve) -> None:
    rows = curve.data()
    assert [row["epsilon"] for row in rows] == [0.01, 10.0, None]
    values = curve.points[0].values
    assert rows[0]["mean"] == pytest.approx(np.mean(values))
    assert rows[0]["spread"] == pytest.approx(np.std(values, ddof=1))
    assert rows[0]["margin"] == pytest.approx(2.364624 * np.std(values, ddof=1) / np.sqrt(8), rel=1e-6)  # Student's t of 7
    document = json.loads(curve.to_json())
    assert document["private"] is False
    assert "not private" in document["mark"]
    assert "not private" in curve.text()


def test_the_chart_has_bars_of_error_and_the_mark(curve: Curve, tmp_path: Path) -> None:
    drawn = curve.chart().to_dict()
    text = json.dumps(drawn, ensure_ascii=False)
    assert "not private" in text
    assert "invented rows" in text
    low = min(curve.points[0].values)
    assert low >= 0
    values = drawn["layer"][0]["data"]["values"] if "data" in drawn["layer"][0] else drawn["data"]["values"]
    assert values[0]["high"] - values[0]["low"] == pytest.approx(2 * curve.points[0].spread)
    curve.chart().save(str(tmp_path / "curve.html"))
    assert (tmp_path / "curve.html").stat().st_size > 1000


def test_the_nearest_point_is_in_proportion(curve: Curve) -> None:
    assert curve.nearest(Fraction(1)) == curve.points[1]
    assert curve.nearest(Fraction(1, 50)) == curve.points[0]
    assert curve.nearest(None) is None
    single = Point(epsilon=Fraction(1), values=(0.5,))
    assert (single.spread, single.margin()) == (0.0, np.inf)


@pytest.mark.parametrize("runs", [2, 3, 10])
def test_margins_of_few_runs_cover_the_mean(runs: int) -> None:
    """1.96 standard errors held it 70, 80 and 92 times in 100. Of 20,000 a share below 0.94 has a chance below 1e-9."""
    drawn = np.random.default_rng(runs).normal(0.7, 0.05, (20_000, runs))
    points = [Point(epsilon=Fraction(1), values=tuple(values)) for values in drawn]
    assert np.mean([abs(point.mean - 0.7) <= point.margin() for point in points]) > 0.94


@pytest.mark.parametrize(("values", "told"), [((0.5,), "1 run"), ((0.93,) * 10, "10 runs, all alike")])
def test_a_single_run_and_runs_that_are_alike_tell_no_margin(values: tuple[float, ...], told: str) -> None:
    point = Point(epsilon=Fraction(1), values=values)
    curve = Curve(model="GaussianNB", measure="accuracy", rows="public rows", delta=None, plain=None, points=(point,))
    assert curve.data()[0]["margin"] is None
    assert json.loads(curve.to_json())["points"][0]["margin"] is None
    assert "±" not in curve.text()
    assert told in curve.text()


def test_wrong_curves_are_refused() -> None:
    model = Threshold(bounds=(0, 1))
    with pytest.raises(InvalidParameter, match="at least one"):
        price_of_privacy(model, X, Y, epsilons=[])
    with pytest.raises(InvalidParameter, match="between 1 and"):
        price_of_privacy(model, X, Y, runs=0)
    with pytest.raises(InvalidParameter, match="one number"):
        price_of_privacy(model, X, Y, measure="confusion")
    with pytest.raises(InvalidParameter, match="one number"):
        price_of_privacy(GaussianNB(bounds=(0, 1)), X, Y, measure="reliability")
    with pytest.raises(InvalidParameter, match="predicts neither"):
        price_of_privacy(BoundedScaler(bounds=(0, 1)), X, Y)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [KMeans(2, bounds=(0, 1)), PCA(1, bounds=(0, 1))])
def test_groups_and_directions_are_judged_by_what_they_capture(model: PrivateModel) -> None:
    rows = np.column_stack([0.8 * Y + 0.2 * X[:, 0], 0.8 * Y + 0.2 * X[::-1, 0]])
    found = price_of_privacy(model, rows, epsilons=["0.01", "100"], runs=4, random=Random.deterministic(7))
    assert found.plain is not None
    assert found.measure == "captured"
    assert found.points[0].mean < 0.9 < found.points[1].mean <= found.plain.mean + 0.01 <= 1.01
    assert "explained variance" in found.text()


def test_what_is_captured_is_told_exactly() -> None:
    rows = np.array([[0.0, 0.0], [0.0, 0.2], [1.0, 0.0], [1.0, 0.2]])
    groups = KMeans(2, privacy=None).fit(rows)
    assert captured(groups, rows) == pytest.approx(1 - 0.04 / 1.04)
    assert captured(PCA(1, privacy=None).fit(rows), rows) == pytest.approx(1 / 1.04)
    assert captured(PCA(2, privacy=None).fit(rows), rows) == pytest.approx(1 / 1.04), "the first alone counts"
    assert captured(groups, rows[:0]) == captured(groups, rows[:1]) == 0.0


def test_a_measure_of_groups_is_for_groups() -> None:
    with pytest.raises(InvalidParameter, match="for this model there are accuracy"):
        price_of_privacy(Threshold(bounds=(0, 1)), X, Y, measure="captured")
    with pytest.raises(InvalidParameter, match="neither classes nor numbers"):
        price_of_privacy(KMeans(2, bounds=(0, 1)), X, measure="accuracy")


def test_a_run_that_judges_directions_by_one_row_is_none() -> None:
    """It counted as one in which nothing is explained, and drew the mean to 0."""
    line = np.repeat(np.linspace(0, 1, 12)[:, None], 2, axis=1)
    found = price_of_privacy(PCA(1, bounds=(0, 1)), line, epsilons=[1000], runs=40, test="0.1", random=Random.deterministic(1))
    assert found.plain is not None
    assert found.plain.values == pytest.approx([1.0] * found.plain.runs)
    assert 0 < found.plain.runs < 40


def test_a_run_that_judges_nothing_is_none() -> None:
    """A part of no row has no accuracy, and one of equal targets no R²: neither a half nor nan is said of it."""
    few = price_of_privacy(
        Threshold(bounds=(0, 1), classes=[0, 1]), X[:4], Y[:4], epsilons=[1], runs=40, test="0.1", random=Random.deterministic(2)
    )
    assert few.plain is not None
    assert 0 < few.plain.runs == few.points[0].runs < 40
    assert set(few.plain.values) <= {0.0, 0.5, 1.0}
    alike = LinearRegression(bounds=(0, 1), bounds_y=(0, 1))
    with pytest.raises(InvalidParameter, match="all of one target"):
        price_of_privacy(alike, X, [0.5] * len(X), epsilons=[1], runs=3)
    with pytest.raises(InvalidParameter, match="none to judge by"):
        price_of_privacy(Threshold(bounds=(0, 1), classes=[0, 1]), X[:1], Y[:1], test="1e-9")


def test_one_epsilon_is_one_and_not_its_digits() -> None:
    """epsilons="12" was read as 1 and 2, and epsilons=1 ended in a TypeError."""
    model = Threshold(bounds=(0, 1))
    for given in ("12", 12, Fraction(12)):
        curve = price_of_privacy(model, X, Y, epsilons=given, runs=1, random=Random.deterministic(1))
        assert [point.epsilon for point in curve.points] == [Fraction(12)]


def test_a_run_that_has_one_class_to_learn_of_says_nothing() -> None:
    """On three rows such a run ended in a ValueError of scikit-learn's, or in the refusal of classes that nobody gave."""
    for model in (LogisticRegression(bounds=([0], [1])), GaussianNB(bounds=([0], [1]))):
        curve = price_of_privacy(model, [[0.2], [0.8], [0.2]], [0, 1, 0], epsilons=[1], runs=30, random=Random.deterministic(1))
        assert 0 < len(curve.points[0].values) < 30
