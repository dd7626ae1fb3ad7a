"""Private trees: exact scores and their sensitivities, what neighbours move, noise as declared, and how good they are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("sklearn")

from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier as TheirTree

from cloister.errors import InvalidParameter
from cloister.learn.ensembles import splits, trees
from cloister.learn.ensembles.splits import Tree, descend, grow, scores
from cloister.learn.ensembles.trees import DecisionTreeClassifier, RandomForestClassifier
from cloister.noise import Random
from cloister.noise.allowance import Share
from cloister.privacy import ZCDP, PureDP

Counts = npt.NDArray[np.int64]


def rows(n: int, seed: int, features: int = 3, classes: int = 2) -> tuple[npt.NDArray[np.float64], Counts]:
    random = Random.deterministic(seed)
    X = random.below(10**6, n * features).reshape(n, features) / 10**6
    return X, (X[:, 0] * classes).astype(np.int64)


def kept_shares(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is handed to the noise, from now on."""
    seen: list[dict[str, Any]] = []
    add = Share.add

    def spying(self: Share, values: Counts, **given: Any) -> Any:
        seen.append({"values": values.copy(), "share": self, **given})
        return add(self, values, **given)

    monkeypatch.setattr(Share, "add", spying)
    return seen


# ── scores ───────────────────────────────────────────────────────────────────────────────────────────


def all_tables(most: int) -> Counts:
    grid = np.arange(most + 1)
    return np.stack(np.meshgrid(*[grid] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


def test_a_person_moves_a_score_by_no_more_than_is_declared() -> None:
    """Every table of up to eight persons a class on one side; one person more of each class; the other side as it was."""
    tables, other = all_tables(8), np.array([3, 0, 5])
    for person in np.eye(3, dtype=np.int64):
        for criterion, reach in (("max", 1), ("gini", 2**20)):
            moved = scores(tables + person, other, criterion) - scores(tables, other, criterion)  # type: ignore[arg-type]
            assert np.abs(moved).max() == reach or criterion == "gini"
            assert np.abs(moved).max() <= reach
            if criterion == "max":
                assert moved.min() >= 0
            else:
                assert moved.min() < -0.7 * reach


def test_gini_is_the_exact_fraction_rounded_down() -> None:
    for left in all_tables(4):
        total = int(left.sum())
        exact = Fraction(int((left**2).sum()), total) if total else Fraction(0)
        assert scores(left, np.zeros(3, dtype=np.int64), "gini") == (exact * 2**20).__floor__()


def test_scores_of_very_many_persons_do_not_overflow() -> None:
    many = np.array([2**30, 2**29])
    exact = Fraction(2**60 + 2**58, 2**30 + 2**29)
    assert scores(many, many, "gini") == 2 * (exact * 2**20).__floor__()


def test_a_person_moves_the_scores_of_one_node_of_a_level_only() -> None:
    X, y = rows(60, 1)
    node = np.arange(60) % 4
    box = {"lows": np.zeros((4, 3)), "highs": np.ones((4, 3))}
    for criterion, reach in (("max", 1), ("gini", 2**20)):
        given: dict[str, Any] = {**box, "classes": 2, "bins": 8, "criterion": criterion}
        whole = splits._scores_of_level(X, y, node, **given)
        for gone in range(12):
            left = np.arange(60) != gone
            fewer = splits._scores_of_level(X[left], y[left], node[left], **given)
            touched = np.abs(whole - fewer).max(axis=(1, 2)) > 0
            assert np.flatnonzero(touched).tolist() in ([], [gone % 4])
            assert np.abs(whole - fewer).max() <= reach


def test_each_split_gets_what_its_level_may_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Fraction, Any, bool]] = []
    mechanism = splits.PermuteAndFlip

    def spying(**given: Any) -> Any:
        seen.append((given["epsilon"], given["sensitivity"], given["monotone"]))
        return mechanism(**given)

    monkeypatch.setattr(splits, "PermuteAndFlip", spying)
    X, y = rows(50, 2)
    DecisionTreeClassifier(epsilon=1, bounds=(0, 1), max_depth=2, criterion="max", random=Random.deterministic(1)).fit(X, y)
    assert seen == [(Fraction(7, 20), 1, True)]  # made once for the tree, used in each of its nodes
    seen.clear()
    RandomForestClassifier(
        epsilon=1, bounds=(0, 1), max_depth=1, n_estimators=4, persons="all", criterion="gini", random=Random.deterministic(1)
    ).fit(X, y)
    assert seen == [(Fraction(7, 40), 2**20, False)] * 4
    seen.clear()
    RandomForestClassifier(epsilon=1, bounds=(0, 1), max_depth=1, n_estimators=4, size=50, random=Random.deterministic(1)).fit(
        X, y
    )
    assert seen == [(Fraction(7, 10), 1, True)] * 4
    seen.clear()
    DecisionTreeClassifier(epsilon=1, bounds=(0, 1), max_depth=1, size=10_000, random=Random.deterministic(1)).fit(X, y)
    assert seen == [(Fraction(7, 10), 2**20, False)]  # many people: the Gini impurity, by the public size alone


# ── leaves ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("persons", "count"), [("all", 1), ("all", 5)])
def test_a_person_moves_the_leaf_counts_by_what_is_declared(monkeypatch: pytest.MonkeyPatch, persons: str, count: int) -> None:
    X, y = rows(40, 3)
    for gone in range(10):
        seen = kept_shares(monkeypatch)
        left = np.arange(40) != gone
        for A, b in ((X, y), (X[left], y[left])):
            RandomForestClassifier(
                method="random", bounds=(0, 1), n_estimators=count, persons=persons, max_depth=3, random=Random.deterministic(5)
            ).fit(A, b)
        moved = np.abs(seen[0]["values"] - seen[1]["values"])
        assert moved.sum() == seen[0]["l1"] == count
        assert (moved**2).sum() == seen[0]["l2_squared"]


def test_apart_each_person_is_in_one_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = kept_shares(monkeypatch)
    X, y = rows(500, 4)
    RandomForestClassifier(bounds=(0, 1), n_estimators=5, max_depth=2, size=500, random=Random.deterministic(1)).fit(X, y)
    by_tree = seen[0]["values"].sum(axis=(1, 2))
    assert by_tree.sum() == 500
    assert by_tree.min() > 60  # 100 ± 9: never in a fair draw but with probability 1e-5, and this draw is fixed
    assert seen[0]["l1"] == seen[0]["l2_squared"] == 1
    assert seen[0]["share"].epsilon == Fraction(3, 10)


def test_random_trees_spend_everything_on_their_leaves() -> None:
    X, y = rows(100, 5)
    given = {"epsilon": "0.5", "method": "random", "bounds": (0, 1), "random": Random.deterministic(1)}
    model = RandomForestClassifier(size=100, **given).fit(X, y)
    assert [str(line) for line in model.spent_] == ["leaf counts: ε = 0.5"]
    model = RandomForestClassifier(max_depth=3, n_estimators=2, **given).fit(X, y)
    assert [str(line) for line in model.spent_] == ["leaf counts: ε = 0.5"]
    assert [str(line) for line in RandomForestClassifier(**given).fit(X, y).spent_] == [
        "number of rows: ε = 0.025",
        "leaf counts: ε = 0.475",
    ]


def test_a_promise_in_rho_is_kept_in_rho() -> None:
    X, y = rows(100, 6)
    model = DecisionTreeClassifier(bounds=(0, 1), max_depth=2, random=Random.deterministic(1))
    model._fitted(model._checked(X, y), model._allowance(ZCDP("0.1")))
    assert {line.currency for line in model.spent_} == {"rho"}
    assert sum(line.amount for line in model.spent_) == Fraction(1, 10)


def test_leaves_are_probabilities_whatever_the_noise() -> None:
    counts = np.array([[-500.0, 3.0], [0.0, 0.0], [1e6, -1e6], [2.0, 2.0]])
    for variance in (0.0, 1.0, 1e12):
        found = trees._shrunk(counts, variance)
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)


# ── public facts ─────────────────────────────────────────────────────────────────────────────────────


def test_depth_and_trees_follow_from_public_facts() -> None:
    for n in (0, 5, 300):
        X, y = rows(n, 7)
        deep = RandomForestClassifier(epsilon=1, bounds=(0, 1), size=32_000, random=Random.deterministic(1)).fit(X, y)
        assert (deep.feature_.shape, deep.value_.shape) == ((3, 63), (3, 64, 2))
        shallow = RandomForestClassifier(epsilon="0.1", bounds=(0, 1), size=455, random=Random.deterministic(1)).fit(X, y)
        assert (shallow.depth_, len(shallow.value_)) == (1, 1)


def test_without_a_public_size_the_number_of_rows_is_counted_with_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a twentieth, and neighbours move it by one; what reads the number of rows itself gives itself away by its depth."""
    seen = kept_shares(monkeypatch)
    X, y = rows(900, 7)
    found = [
        DecisionTreeClassifier(epsilon=1, bounds=(0, 1), random=Random.deterministic(1)).fit(X[:n], y[:n]).depth_
        for n in (900, 899)
    ]
    counts = [each for each in seen if each["values"].shape == (1,)]
    assert [(each["values"].tolist(), each["l1"], each["share"].epsilon) for each in counts] == [
        ([900], 1, Fraction(1, 20)),
        ([899], 1, Fraction(1, 20)),
    ]
    assert found == [3, 3]
    random = [DecisionTreeClassifier(epsilon=1, bounds=(0, 1)).fit(X[:800], y[:800]).depth_ for _ in range(60)]
    assert set(random) == {2, 3}  # 800/100 = 2³, at the edge: whoever looks at the depth sees noise


def test_thresholds_lie_in_the_box_of_their_node() -> None:
    X, y = rows(200, 8)
    low, high = np.zeros(3), np.ones(3)
    tree = grow(
        X,
        y,
        low=low,
        high=high,
        classes=2,
        depth=5,
        bins=4,
        criterion="max",
        features=2,
        epsilon=Fraction(1, 100),
        random=Random.deterministic(1),
    )
    boxes = {0: (low, high)}
    for node in range(31):
        lows, highs = boxes[node]
        feature, threshold = tree.feature[node], tree.threshold[node]
        assert lows[feature] < threshold < highs[feature]
        up, down = highs.copy(), lows.copy()
        up[feature] = down[feature] = threshold
        boxes[2 * node + 1], boxes[2 * node + 2] = (lows, up), (down, highs)


def test_descending_goes_where_the_splits_say() -> None:
    tree = Tree(feature=np.array([0, 1, 1]), threshold=np.array([0.5, 0.25, 0.75]))
    X = np.array([[0.1, 0.2], [0.1, 0.25], [0.5, 0.7], [0.9, 0.8]])
    assert descend(X, tree, 2).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "wrong", [{"method": "best"}, {"criterion": "entropy"}, {"max_depth": 0}, {"max_depth": True}, {"bins": 1}, {"bins": 2.5}]
)
def test_parameters_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    X, y = rows(10, 9)
    with pytest.raises(InvalidParameter, match=f"{next(iter(wrong))}="):
        DecisionTreeClassifier(bounds=(0, 1), **wrong).fit(X, y)
    for more in ({"persons": "some"}, {"n_estimators": 0}, {"max_features": 0}):
        with pytest.raises(InvalidParameter, match=f"{next(iter(more))}="):
            RandomForestClassifier(bounds=(0, 1), **more).fit(X, y)


# ── how good ─────────────────────────────────────────────────────────────────────────────────────────


def cancer() -> tuple[Any, ...]:
    data = load_breast_cancer()
    order = Random.deterministic(1).permutation(569)
    train, test = order[:455], order[455:]
    return data.data[train], data.target[train], data.data[test], data.target[test]


def test_without_noise_a_stump_is_the_best_of_all_candidates() -> None:
    X, y = rows(300, 10, features=4, classes=3)
    model = DecisionTreeClassifier(privacy=None, bounds=(0, 1), max_depth=1, bins=16, classes=[0, 1, 2]).fit(X, y)
    best = max(
        sum(np.bincount(y[side]).max(initial=0) for side in (X[:, f] < t / 16, X[:, f] >= t / 16))
        for f in range(4)
        for t in range(1, 16)
    )
    side = X[:, model.feature_[0, 0]] >= model.threshold_[0, 0]
    assert np.bincount(y[side]).max() + np.bincount(y[~side]).max() == best


def test_without_noise_it_is_about_as_good_as_scikit_learns() -> None:
    X, y, X_test, y_test = cancer()
    ours = DecisionTreeClassifier(privacy=None, criterion="gini", max_depth=3, bins=64).fit(X, y).score(X_test, y_test)
    theirs = TheirTree(max_depth=3, random_state=0).fit(X, y).score(X_test, y_test)
    assert ours > theirs - 0.03


def test_at_epsilon_one_a_few_hundred_rows_are_enough() -> None:
    X, y, X_test, y_test = cancer()
    bounds = (np.zeros(30), np.ceil(load_breast_cancer().data.max(axis=0)))
    for kind in (DecisionTreeClassifier, RandomForestClassifier):
        scored = [
            kind(epsilon=1, bounds=bounds, size=455, random=Random.deterministic(seed)).fit(X, y).score(X_test, y_test)
            for seed in range(8)
        ]
        assert np.mean(scored) > 0.85


def test_with_next_to_no_budget_it_is_noise_and_says_so() -> None:
    X, y = rows(400, 11)
    models = [DecisionTreeClassifier(epsilon="1e-6", bounds=(0, 1), random=Random.deterministic(s)).fit(X, y) for s in range(20)]
    assert 0.2 < np.mean([model.score(X, y) for model in models]) < 0.8
    assert models[0].guarantee_ == PureDP("1e-6")
