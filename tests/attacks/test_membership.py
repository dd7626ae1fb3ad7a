"""Membership inference: the scores are those of the paper, the rates are counted right, and the raw tree falls where the private
one does not."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from cloister import learn
from cloister.attacks import MembershipResult, Shadows, membership, train_shadows
from cloister.attacks.confidences import class_logits, confidence_of
from cloister.attacks.scores import rate_of
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import ZCDP, ApproxDP, PureDP


def drawn(*shape: int, seed: int = 1) -> np.ndarray:
    """Standard normal numbers."""
    words = Random.deterministic(seed).words(int(np.prod(shape))).reshape(shape)
    return np.asarray(norm.ppf((words >> np.uint64(11)) * 2.0**-53 + 2.0**-54))


@pytest.fixture(scope="module")
def diabetes() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_diabetes(return_X_y=True)
    return X, (y > 140).astype(int)


def raw(X: Any, y: Any) -> Any:
    return DecisionTreeClassifier(random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def raw_shadows(diabetes: tuple[np.ndarray, np.ndarray]) -> Shadows:
    return train_shadows(raw, *diabetes, models=96, random=Random.deterministic(1))


# ── the scores ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def shadows() -> Shadows:
    said = drawn(90, 5)
    member = drawn(90, 5, seed=2) > 0
    return Shadows(confidences=said + 2.0 * member, member=member)


def test_the_online_score_is_the_ratio_of_two_normal_densities(shadows: Shadows) -> None:
    said, member = shadows.confidences[0], shadows.member[1:]
    expected = []
    for row in range(5):
        with_row, without = (shadows.confidences[1:, row][side[:, row]] for side in (member, ~member))
        laws = [norm(each.mean(), np.hypot(each.std(), 1e-3)) for each in (with_row, without)]
        expected.append(laws[0].logpdf(said[row]) - laws[1].logpdf(said[row]))
    found = shadows.attacked(1, "online")
    assert sorted([*found.members, *found.others]) == pytest.approx(sorted(expected))


def test_the_offline_score_uses_only_models_that_had_not_the_row(shadows: Shadows) -> None:
    member = shadows.member[1:]
    expected = []
    for row in range(5):
        without = shadows.confidences[1:, row][~member[:, row]]
        expected.append((shadows.confidences[0, row] - without.mean()) / np.hypot(without.std(), 1e-3))
    found = shadows.attacked(1, "offline")
    assert sorted([*found.members, *found.others]) == pytest.approx(sorted(expected))
    moved = Shadows(confidences=shadows.confidences.copy(), member=shadows.member)
    moved.confidences[1:][member] += 7.0
    again = moved.attacked(1, "offline")
    assert sorted([*again.members, *again.others]) == pytest.approx(sorted(expected))


def test_few_shadows_share_one_spread() -> None:
    said, member = drawn(12, 4), np.tile([[True], [False]], (6, 4))
    member[0] = [True, True, False, False]
    found = Shadows(confidences=said, member=member).attacked(1, "offline")
    without = said[1::2]
    spread = np.hypot(np.sqrt(without.var(axis=0).mean()), 1e-3)
    expected = (said[0] - without.mean(axis=0)) / spread
    assert (sorted(found.members), sorted(found.others)) == (
        pytest.approx(sorted(expected[:2])),
        pytest.approx(sorted(expected[2:])),
    )


def test_the_loss_attack_is_the_confidence_itself(shadows: Shadows) -> None:
    found = shadows.attacked(2, "loss")
    assert sorted([*found.members, *found.others]) == sorted(shadows.confidences[:2].ravel())


def test_each_row_is_in_half_of_the_models_and_halves_differ() -> None:
    X = np.arange(40.0)[:, None]
    shadows = train_shadows(lambda X, y: _Mean(), X, X[:, 0], models=10, random=Random.deterministic(3))
    assert shadows.member.sum(axis=0).tolist() == [5] * 40
    assert len({tuple(column) for column in shadows.member.T.tolist()}) > 10


class _Mean:
    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


# ── the rates ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("rounded", [False, True])
def test_rates_by_brute_force(rounded: bool) -> None:
    members, others = drawn(300) + 0.5, drawn(500, seed=2)
    if rounded:  # many ties
        members, others = members.round(), others.round()
    found = MembershipResult(attack="x", members=members, others=others)
    truth = np.repeat([1, 0], [300, 500])
    assert found.auc == pytest.approx(roc_auc_score(truth, np.concatenate([members, others])))
    thresholds = np.concatenate([members, others, [np.inf]])
    pairs = [((others >= each).mean(), (members >= each).mean()) for each in thresholds]
    for at in ("0", "0.001", "0.01", "0.1", "0.5"):
        best = max(true for false, true in pairs if false <= float(at))
        assert found.true_positives(at).rate == pytest.approx(best)
        assert found.false_positives(at).rate <= float(at)
    assert found.balanced_accuracy == pytest.approx(max((true + 1 - false) / 2 for false, true in pairs))
    false, true = found.roc()
    assert (np.diff(false) >= 0).all()
    assert (np.diff(true) >= 0).all()
    assert (false[-1], true[-1]) == (1.0, 1.0)


def test_the_interval_is_clopper_and_pearsons() -> None:
    from scipy.stats import binomtest

    expected = binomtest(7, 1000).proportion_ci(confidence_level=0.95, method="exact")
    found = rate_of(7, 1000)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-6)
    assert found.confidence == Fraction(19, 20)


def test_what_a_guarantee_allows() -> None:
    most = MembershipResult.most_under
    assert most(PureDP(1), "0.001") == pytest.approx(np.e / 1000)
    assert most(ApproxDP(1, "0.01"), "0.001") == pytest.approx(np.e / 1000 + 0.01)
    assert most(PureDP(1), "0.9") == pytest.approx(1 - 0.1 / np.e)
    assert most(PureDP(1000), "0.001") == 1.0
    assert 0.001 < most(ZCDP("0.01"), "0.001") < 0.01


def test_a_card_is_plain_and_a_picture_has_two_logarithmic_axes(shadows: Shadows) -> None:
    found = shadows.attacked(4)
    card = json.loads(json.dumps(found.as_card()))
    assert card["true_positives_at_0.001"] == found.true_positives("0.001").rate
    low, high = card["true_positives_at_0.001_interval"]
    assert low <= card["true_positives_at_0.001"] <= high
    assert "likelihood ratio" in repr(found)
    drawn_as = found.plot(shadows.attacked(4, "loss"), names=("ratio", "loss")).to_dict()
    curves = drawn_as["layer"][1]
    assert [curves["encoding"][axis]["scale"]["type"] for axis in ("x", "y")] == ["log", "log"]
    assert {row["model"] for row in curves["data"]["values"]} == {"ratio", "loss"}
    assert min(row["false"] for row in curves["data"]["values"]) > 0


# ── what is looked at ────────────────────────────────────────────────────────────────────────────


class _Told:
    """Tells what it was told."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, X: Any) -> Any:
        return np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])


def test_the_confidence_is_the_logit_of_the_true_class() -> None:
    found = confidence_of(_Told(), np.zeros((2, 1)), ["b", "b"])
    assert found[0] == pytest.approx(np.log(0.3 / 0.7))
    assert found[1] == class_logits(_Told(), np.zeros((2, 1))).max()
    assert np.isfinite(class_logits(_Told(), np.zeros((2, 1)))).all()


def test_models_without_probabilities(diabetes: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = diabetes
    vectors = LinearSVC().fit(X, y)
    assert ((confidence_of(vectors, X, y) > 0) == (vectors.predict(X) == y)).all()
    many = LinearSVC().fit(X, y + (X[:, 2] > 0))
    assert ((confidence_of(many, X, y) > 0) == (many.predict(X) == y)).all()
    line = LinearRegression().fit(X, y)
    assert confidence_of(line, X, y) == pytest.approx(-np.square(line.predict(X) - y))
    groups = KMeans(n_clusters=2, n_init=1, random_state=0).fit(X)
    assert confidence_of(groups, X[:3], None) == pytest.approx(-np.square(groups.transform(X[:3]).min(axis=1)))


# ── raw and private ──────────────────────────────────────────────────────────────────────────────


def test_the_raw_tree_falls(raw_shadows: Shadows) -> None:
    """Twenty times as many members as false alarms; and the loss alone sees the overfitting, but nobody for certain."""
    ratio, loss = raw_shadows.attacked(32), raw_shadows.attacked(32, "loss")
    assert ratio.true_positives("0.001").low > MembershipResult.most_under(PureDP(1), "0.001") * 4
    assert ratio.auc > 0.7
    assert loss.balanced_accuracy > 0.65
    assert loss.true_positives("0.001").rate == 0


def test_the_private_tree_does_not(diabetes: tuple[np.ndarray, np.ndarray]) -> None:
    """Nothing above what ε = 1 lets any attack find. (The seed is fixed; on fresh ones the six intervals would fail with a
    probability below 10⁻⁶ together.)
    """
    random = Random.deterministic(5)

    def private(X: Any, y: Any) -> Any:
        return learn.DecisionTreeClassifier(epsilon=1, bounds=(-0.2, 0.2), random=random).fit(X, y)

    trained = train_shadows(private, *diabetes, models=80, random=random)
    for attack in ("online", "offline", "loss"):
        found = trained.attacked(24, attack)
        for at in ("0.001", "0.01"):
            assert found.true_positives(at, confidence="0.9999999").low <= MembershipResult.most_under(PureDP(1), at)
        assert found.auc < 0.55


def test_nothing_is_found_of_a_model_that_does_not_look() -> None:
    """Noise alone: 4,000 scores of members and of others. The AUC has a spread of 0.0065: 0.46–0.54 is six of them."""
    random = Random.deterministic(9)

    class Noise:
        def predict(self, X: Any) -> Any:
            return random.words(len(X)) * 2.0**-64

    found = membership(lambda X, y: Noise(), np.zeros((500, 1)), np.zeros(500), shadows=40, targets=16, random=random)
    assert 0.46 < found.auc < 0.54
    assert found.true_positives("0.01", confidence="0.9999999").low <= 0.01


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────


def test_refusals(shadows: Shadows) -> None:
    X, y = np.zeros((10, 1)), np.zeros(10)
    with pytest.raises(InvalidParameter, match="attack="):
        membership(raw, X, y, attack="psychic")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="rows"):
        membership(raw, X, y[:3])
    with pytest.raises(InvalidParameter, match="models"):
        train_shadows(raw, X, y, models=2)
    with pytest.raises(InvalidParameter, match="targets="):
        shadows.attacked(90)
    with pytest.raises(InvalidParameter, match="scores"):
        MembershipResult(attack="x", members=np.array([]), others=np.array([1.0]))
    with pytest.raises(InvalidParameter, match="names="):
        shadows.attacked(1).plot(names=("a", "b"))
    with pytest.raises(InvalidParameter, match="every class"):
        confidence_of(_Told(), np.zeros((2, 1)), ["d", "a"])
    with pytest.raises(InvalidParameter, match="predict"):
        confidence_of(object(), X, y)


@pytest.mark.parametrize(
    "changed", [{"fit": None}, {"X": [[1], [1, 2]]}, {"targets": "8"}, {"shadows": None}, {"attack": ["loss"]}, {"y": 1}]
)
def test_what_is_no_attack_is_refused_in_words(changed: dict[str, Any]) -> None:
    given: dict[str, Any] = {"fit": lambda X, y: None, "X": np.zeros((9, 1)), "y": np.zeros(9)} | changed
    with pytest.raises(InvalidParameter, match="invalid"):
        membership(given.pop("fit"), given.pop("X"), given.pop("y"), **given)
