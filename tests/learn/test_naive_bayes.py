"""Naive Bayes: scikit-learn's without noise, near it with much ε, silent where all is noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn import naive_bayes as theirs

from cloister.errors import InvalidParameter, MissingBound
from cloister.learn import CategoricalNB, GaussianNB, MixedNB, load
from cloister.learn.assessment.made_up import fit_within, made_up
from cloister.learn.bayesian.bayes import noisy_gaussian
from cloister.learn.bayesian.categories import category_counts
from cloister.learn.bayesian.moments import ClassMoments
from cloister.learn.frame.bounds import box_of
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.from_tables import declare
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import PureDP
from cloister.session import Door
from cloister.tables import Boolean, Category, Integer, PrivateTable


def problem(count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, one of four rows in the second; the first feature tells them apart, the second does not."""
    generator = np.random.default_rng(8)
    y = (np.arange(count) % 4 == 0).astype(np.int64)
    X = np.column_stack([generator.normal(3 + 3 * y, 1.0), generator.normal(5, 2, count)])
    return np.clip(X, 0, 10), y


def test_without_noise_it_is_theirs() -> None:
    X, y = problem()
    ours, known = GaussianNB(privacy=None).fit(X, y), theirs.GaussianNB().fit(X, y)
    np.testing.assert_allclose(ours.theta_, known.theta_)
    np.testing.assert_allclose(ours.var_, known.var_)
    np.testing.assert_allclose(ours.class_prior_, known.class_prior_)
    np.testing.assert_allclose(ours.predict_log_proba(X), known.predict_log_proba(X), atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), known.predict(X))


def test_without_noise_categories_are_theirs() -> None:
    generator = np.random.default_rng(2)
    y = generator.integers(0, 3, 600)
    X = np.column_stack([(y + generator.integers(0, 2, 600)) % 4, generator.integers(0, 3, 600)])
    ours, known = CategoricalNB(privacy=None).fit(X, y), theirs.CategoricalNB(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), known.predict_proba(X), rtol=1e-9)
    for mine, other in zip(ours.feature_log_prob_, known.feature_log_prob_, strict=True):
        np.testing.assert_allclose(mine, other)


def test_mixed_is_both() -> None:
    X, y = problem()
    kind = (y + (np.arange(len(y)) % 5 == 0)) % 2
    whole = np.column_stack([X, kind])
    mixed = MixedNB(privacy=None, categories={2: 2}).fit(whole, y)
    numbers = theirs.GaussianNB().fit(X, y)
    kinds = theirs.CategoricalNB(alpha=1.0).fit(kind[:, None], y)
    expected = numbers.predict_log_proba(X) + kinds.predict_log_proba(kind[:, None]) - np.log(numbers.class_prior_)
    expected -= np.log(np.exp(expected).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(mixed.predict_log_proba(whole), expected, atol=1e-8)


@pytest.mark.parametrize("delta", [None, "1e-5"])
def test_with_a_usual_epsilon_it_is_near(delta: str | None) -> None:
    X, y = problem()
    model = GaussianNB(epsilon=1, delta=delta, bounds=(0, 10), random=Random.deterministic(1)).fit(X, y)
    assert model.score(X, y) > theirs.GaussianNB().fit(X, y).score(X, y) - 0.02
    truth = np.array([X[y == label].mean(axis=0) for label in (0, 1)])
    assert (np.abs(model.theta_ - truth) < 4 * model.theta_noise_).all()


@pytest.mark.parametrize("seed", range(20))
def test_where_all_is_noise_the_most_frequent_class_is_guessed(seed: int) -> None:
    """The noise of a mean is some 8 units in the middle of bounds that are 10 wide, that of a count some 300 of 3000."""
    X, y = problem()
    model = GaussianNB(epsilon="0.02", bounds=([0, -(10**6)], [10, 10**6]), random=Random.deterministic(seed)).fit(X, y)
    assert model.score(X, y) >= 0.75 - 0.01


def test_noise_without_signal_says_nothing() -> None:
    """Equal classes: what differs is noise, and most of it is drawn together."""
    generator = np.random.default_rng(1)
    kept = []
    for _ in range(200):
        sums = generator.normal(0, 10, (2, 3))
        moments = ClassMoments(
            sizes=np.full(2, 1000.0),
            counts=np.full((2, 3), 1000.0),
            sums=sums,
            squares=np.full((2, 3), 300.0) + generator.normal(0, 10, (2, 3)),
            size_variance=1.0,
            count_variance=1.0,
            sum_variance=100.0,
            square_variance=100.0,
        )
        parts = noisy_gaussian(moments, box_of((-1, 1), features=3))
        kept.append(np.abs(parts.means[1] - parts.means[0]).mean() / np.abs(sums[1] - sums[0]).mean() * 1000)
        np.testing.assert_allclose(np.log(parts.variances[1] / parts.variances[0]), 0, atol=0.12)
    assert np.mean(kept) < 0.35


def test_one_row_moves_one_count_of_each_category() -> None:
    generator = np.random.default_rng(3)
    X, y = generator.integers(0, 4, (60, 3)).astype(float), generator.integers(0, 2, 60)
    values = [np.arange(3.0), np.arange(4.0), np.array([1.0, 3.0])]

    def counted(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.concatenate([each.counts for each in category_counts(rows, labels, 2, values, share=None, random=None)], axis=1)

    whole = counted(X, y)
    moved = [np.abs(whole - counted(np.delete(X, i, axis=0), np.delete(y, i))).sum() for i in range(60)]
    assert max(moved) == 3
    assert min(moved) < 3  # undeclared values count for nothing


def test_counts_of_categories_have_the_noise_that_is_said() -> None:
    random, found = Random.deterministic(5), []
    for _ in range(2000):
        share = Allowance(PureDP(2)).rest("counts")
        [first, _] = category_counts(
            np.zeros((9, 2)), np.zeros(9, dtype=np.int64), 1, [np.arange(2.0)] * 2, share=share, random=random
        )
        found.append(first.counts[0, 0] - 9)
    assert first.variance == 2 * (2 / 2) ** 2
    assert abs(np.var(found) / (2 * np.exp(-1) / (1 - np.exp(-1)) ** 2) - 1) < 0.3


def test_margins_grow_with_the_noise() -> None:
    X, y = problem()
    wide, narrow = (
        GaussianNB(epsilon=epsilon, bounds=(0, 10), random=Random.deterministic(1)).fit(X, y).margin(0.95)
        for epsilon in ("0.5", 5)
    )
    assert (wide["theta"] > 5 * narrow["theta"]).all()
    assert wide["class_count"][0] == pytest.approx(10 * narrow["class_count"][0])
    with pytest.raises(InvalidParameter):
        GaussianNB(epsilon=1, bounds=(0, 10)).fit(X, y).margin(1.5)


def test_each_number_of_a_table_has_the_noise_of_its_own_block() -> None:
    """A step of noise is more of a narrow column than of a wide one: whichever is measured last says nothing of the others."""
    rows: dict[str, Any] = {"age": [1, 5, 9] * 40, "smokes": [True, False] * 60, "sick": [True, True, False] * 40}
    columns = {"age": Integer(0, 9), "smokes": Boolean(), "sick": Boolean()}

    def noise(*features: str) -> list[float]:
        with Door({"people": PrivateTable(rows, columns=columns)}, budget=PureDP(8)) as door:
            model = GaussianNB(epsilon=8).fit_table(door, "people", features=features, target="sick")
        return list(model.measured_noise_[:, features.index("age")])

    assert noise("age", "smokes") == noise("smokes", "age")


@pytest.mark.parametrize("features", [["age"], ["sex"], ["age", "sex"]])
def test_no_rows_and_no_noise_to_speak_of_make_classes_equally_likely(features: list[str]) -> None:
    """A spend so large that all noise is 0: nothing is divided by the number of rows."""
    columns = {"age": Integer(0, 9), "sex": Category(["F", "M"]), "sick": Boolean()}
    with Door({"people": PrivateTable({"age": [], "sex": [], "sick": []}, columns=columns)}, budget=PureDP(10**6)) as door:
        model = GaussianNB(epsilon=10**6).fit_table(door, "people", features=features, target="sick")
    np.testing.assert_allclose(model.predict_proba(np.ones((1, model.n_features_in_))), 0.5)


def test_rows_without_a_category_count_in_their_class() -> None:
    """As those without a number do: a class is not smaller where more values of a category are missing."""
    rows = {"sex": ["F", None, None, "M"] * 50, "town": ["A"] * 200, "sick": [True, True, True, False] * 50}
    columns = {"sex": Category(["F", "M"], nullable=True), "town": Category(["A", "B"]), "sick": Boolean()}
    with Door({"people": PrivateTable(rows, columns=columns)}, budget=PureDP(10**6)) as door:
        model = GaussianNB(epsilon=10**6).fit_table(door, "people", features=["sex", "town"], target="sick")
    np.testing.assert_allclose(model.class_count_, [50, 150])


@pytest.mark.parametrize("nullable", [False, True])
def test_a_number_of_a_table_is_learnt_from_the_rows_that_have_it(nullable: bool) -> None:
    """However the column is declared: of a number that two in three rows of a class lacked, the mean was that of another."""
    rows: dict[str, Any] = {
        "age": [2, None, None, 8, 6, 9] * 50,
        "size": [1, 3, 5, 2, 4, 9] * 50,
        "sick": ([True] * 3 + [False] * 3) * 50,
    }
    columns = {"age": Integer(0, 9, nullable=nullable), "size": Integer(0, 9), "sick": Boolean()}
    with Door({"people": PrivateTable(rows, columns=columns)}, budget=PureDP(10**6)) as door:
        model = GaussianNB(epsilon=10**6).fit_table(door, "people", features=["age", "size"], target="sick")
    np.testing.assert_allclose(model.class_count_, [150, 150], atol=0.1)
    np.testing.assert_allclose(model.theta_, [[23 / 3, 5], [2, 3]], atol=0.01)
    np.testing.assert_allclose(model.var_, [[14 / 9, 26 / 3], [0, 8 / 3]], atol=0.01)


def test_a_number_beside_categories_is_a_number_to_either() -> None:
    """A table's are to CategoricalNB, too: so made-up rows of it can be learnt from."""
    X, y = problem()
    X[:, 0] = X[:, 0] > 5
    how: dict[str, Any] = {"epsilon": 5, "bounds": (0, 10), "categories": [2, None]}
    one, other = (kind(**how, random=Random.deterministic(3)).fit(X, y) for kind in (CategoricalNB, MixedNB))
    assert one.numbers_.tolist() == [1]
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    with pytest.raises(MissingBound, match="bounds= is missing"):
        CategoricalNB(categories=[2, None]).fit(X, y)


def test_what_is_not_declared_is_refused() -> None:
    X, y = problem()
    with pytest.raises(MissingBound, match="never looked up"):
        CategoricalNB().fit(X, y)
    with pytest.raises(InvalidParameter, match="there are 2"):
        MixedNB(bounds=(0, 1), categories=[None, 2, 3]).fit(X, y)
    with pytest.raises(MissingBound):
        MixedNB(categories={0: 2}).fit(X, y)


def people(count: int = 3000) -> tuple[PrivateTable, np.ndarray, np.ndarray]:
    """A table with a number, a category and a text for the class."""
    generator = np.random.default_rng(4)
    y = generator.integers(0, 2, count)
    age = np.clip(generator.normal(40 + 15 * y, 8), 17, 90).round().astype(int)
    sex = (generator.random(count) < 0.3 + 0.4 * y).astype(int)
    columns = {"age": age.tolist(), "sex": np.where(sex, "M", "F").tolist(), "y": np.where(y, "yes", "no").tolist()}
    declared = {"age": Integer(17, 90), "sex": Category(["F", "M"]), "y": Category(["no", "yes"])}
    return PrivateTable(columns, columns=declared), np.column_stack([age, sex == 0, sex == 1]).astype(float), y


@pytest.mark.parametrize("kind", [GaussianNB, MixedNB])
def test_a_table_gives_what_rows_give(kind: type) -> None:
    table, X, y = people()
    with Door({"people": table}, budget=PureDP(10**6)) as door:
        model = kind(epsilon=10**6).fit_table(door, "people", features=["age", "sex"], target="y")
    assert model.feature_names_in_.tolist() == ["age", "sex=F", "sex=M"]
    labels = np.where(y, "yes", "no")
    for exact in (
        MixedNB(privacy=None, categories={1: 2}).fit(X[:, [0, 2]], labels),
        kind(privacy=None, groups=[[1, 2]]).fit(X, labels),
    ):
        asked = X if exact.n_features_in_ == 3 else X[:, [0, 2]]
        np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(asked), atol=1e-3)
    assert model.score(X, labels) > 0.8


def with_a_category(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A number that says a little, a category of eight values that says much, and the class that both speak of."""
    generator = np.random.default_rng(3)
    y = generator.integers(0, 2, rows)
    likely = np.array([[0.3, 0.02, 0.3, 0.02, 0.3, 0.02, 0.02, 0.02], [0.02, 0.3, 0.02, 0.3, 0.02, 0.3, 0.02, 0.02]])
    value = np.array([generator.choice(8, p=likely[label]) for label in y])
    return np.clip(generator.normal(4 + y, 2, rows), 0, 10), value, y


@pytest.mark.parametrize("epsilon", [None, 2])
def test_a_category_that_was_written_as_features_is_learnt_as_a_category(epsilon: int | None) -> None:
    """By `groups`, or by names, as by a column of codes: a feature of 0 and 1 is not normal."""
    number, value, y = with_a_category(3000)
    written, codes = np.column_stack([number, np.eye(8)[value]]), np.column_stack([number, value])
    told: dict[str, Any] = {"privacy": None} if epsilon is None else {"epsilon": epsilon, "random": Random.deterministic(5)}
    bounds = ([0, *[0] * 8], [10, *[1] * 8])
    group, column = [list(range(1, 9))], {1: 8}
    ours = GaussianNB(bounds=bounds, groups=group, **told).fit(written, y)
    if epsilon is not None:
        told["random"] = Random.deterministic(5)
    known = MixedNB(bounds=([0, 0], [10, 7]), categories=column, **told).fit(codes, y)
    np.testing.assert_allclose(ours.predict_log_proba(written), known.predict_log_proba(codes), rtol=1e-12)
    assert ours.score(written, y) > 0.85
    again = load(ours.to_json())
    np.testing.assert_array_equal(again.predict(written), ours.predict(written))
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(written, columns=["number", *(f"v={each}" for each in range(8))])
    for groups in (None, ["v"]):
        if epsilon is not None:
            told["random"] = Random.deterministic(5)
        named = GaussianNB(bounds=bounds, groups=groups, **told).fit(frame, y)
        np.testing.assert_array_equal(named.predict_log_proba(frame), ours.predict_log_proba(written))
    assert GaussianNB(bounds=bounds, groups=[], **told).fit(frame, y).theta_.shape == (2, 9)


@pytest.mark.parametrize("wrong", [[[0, 0]], [[0], [0]], [[3]], [[-1]], 5, ["a"]])
@pytest.mark.parametrize("kind", [GaussianNB, MixedNB])
def test_groups_that_mean_nothing_are_refused(kind: type, wrong: Any) -> None:
    with pytest.raises(InvalidParameter, match="groups"):
        kind(bounds=(0, 1), groups=wrong).fit([[0.0, 1, 1]], [0])


def test_categories_of_a_table_are_learnt_as_categories_by_themselves() -> None:
    number, value, y = with_a_category(3000)
    names = [f"v{each}" for each in range(8)]
    columns = {"number": Integer(0, 10), "value": Category(names), "y": Integer(0, 1)}
    rows = {"number": number.astype(int).tolist(), "value": [names[each] for each in value], "y": y.tolist()}
    with Door({"people": PrivateTable(rows, columns=columns)}, budget=PureDP(3), random=Random.deterministic(2)) as door:
        model = GaussianNB(epsilon=2).fit_table(door, "people", features=["number", "value"], target="y")
    assert [width for _, width, _ in model.categories_] == [8]
    assert model.theta_.shape == (2, 1)
    assert model.score(np.column_stack([number, np.eye(8)[value]]), y) > 0.85


@pytest.mark.parametrize("features", [("age", "pay", "sex"), ("sex", "age", "pay")])
def test_rows_made_up_of_categories_by_number_are_learned_in_any_order(features: tuple[str, ...]) -> None:
    """What a hub tries before it charges: a table tells the model places of 0-or-1 features, not of numbers."""
    columns = {"age": Integer(0, 90), "pay": Integer(0, 9), "sex": Category(["F", "M", "X"]), "ill": Boolean()}
    table = PrivateTable({"age": [1], "pay": [1], "sex": ["F"], "ill": [True]}, columns=columns)
    model, encoder = MixedNB(epsilon=1), Encoder.of(table.columns, features)
    declare(model, encoder, table, "ill")
    X, y = made_up(model, encoder, 30)
    fitted = fit_within(model, X, y, PureDP(1))
    assert [len(each) for each in fitted.feature_log_prob_] == [2]
    assert fitted.feature_log_prob_[0].shape == (2, 3)
    assert fitted.theta_.shape == (2, 2)


def test_margins_hold_where_the_steps_of_the_noise_are_as_large_as_itself() -> None:
    """Of a column of two values: theta lay within its 95 % margin in some 85 of 100 fits."""
    rows = {"smokes": [True, False] * 50 + [False] * 100, "sick": [True] * 100 + [False] * 100}
    tables = {"people": PrivateTable(rows, columns={"smokes": Boolean(), "sick": Boolean()})}
    held, random = [], Random.deterministic(4)
    for _ in range(80):
        with Door(tables, budget=PureDP(3), random=random) as door:
            model = GaussianNB(epsilon=3).fit_table(door, "people", features=["smokes"], target="sick")
        held.append(abs(model.theta_[1, 0] - 0.5) <= model.margin()["theta"][1, 0] + 1e-9)
    assert np.mean(held) > 0.95
