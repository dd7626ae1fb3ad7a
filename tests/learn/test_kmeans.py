"""k-means: the twin without noise, the sums' sensitivity by brute force, the noise, nasty rows, tables, and the portable form."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans as Plain
from sklearn.utils.estimator_checks import estimator_checks_generator

import cloister as cl
from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn.clustering.kmeans import KMeans
from cloister.learn.clustering.kmeans_plan import plan_of
from cloister.learn.clustering.lloyd import measured, nearest
from cloister.learn.clustering.noisy_mean import mean_of
from cloister.learn.frame.ball import group_sums, noisy_group_sums, projected, reach_of, steps_in_ball
from cloister.learn.frame.bounds import box_of
from cloister.learn.frame.portable import load
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP
from tests.tiers import by_day_and_night

EXPECTED: dict[str, str] = {}


def blobs(rows: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    middles = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])
    return np.clip(middles[generator.integers(0, 3, rows)] + generator.normal(0, 0.03, (rows, 2)), 0, 1)


@pytest.mark.parametrize(
    "check", [pytest.param(pair, id=pair[1].func.__name__) for pair in estimator_checks_generator(KMeans(privacy=None))]
)
def test_the_twin_without_noise_passes_the_checks_of_scikit_learn(check: tuple) -> None:
    estimator, test = check
    test(estimator)


def test_the_twin_without_noise_finds_what_scikit_learn_finds() -> None:
    X = blobs(500)
    ours, theirs = KMeans(3, privacy=None).fit(X), Plain(3, n_init=10, random_state=0).fit(X)
    assert -ours.score(X) == pytest.approx(theirs.inertia_)
    assert ours.guarantee_ is None
    assert "NOT PRIVATE" in ours.report()


@pytest.mark.parametrize("method", ["auto", "lloyd", "coreset"])
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_far_groups_are_found_where_noise_is_small(method: str, delta: str | None) -> None:
    X = blobs(30_000)
    model = KMeans(3, epsilon=20, delta=delta, bounds=(0, 1), method=method, random=Random.deterministic(1)).fit(X)
    best = -Plain(3, n_init=10, random_state=0).fit(X).inertia_
    one = -float(((X - X.mean(axis=0)) ** 2).sum())
    part = 0.4 if method == "lloyd" else 0.8  # plain rounds may end where two groups share a centre, as they do without noise
    assert model.score(X) > one + part * (best - one)
    assert model.marked_


@pytest.mark.parametrize("bits", [5, 12, 20])
def test_a_row_changes_one_sum_by_no_more_than_the_reach(bits: int) -> None:
    generator = np.random.default_rng(3)
    rows = generator.normal(size=(60, 7)) * generator.choice([0.01, 1, 1e6], size=(60, 1))
    steps, labels = steps_in_ball(rows, radius=2.5, bits=bits), generator.integers(0, 4, 60)
    whole = group_sums(steps, labels, 4)
    longest = 0.0
    for row in range(60):
        less = group_sums(np.delete(steps, row, axis=0), np.delete(labels, row), 4)
        changed = np.flatnonzero((whole != less).any(axis=1))
        assert set(changed) <= {labels[row]}
        longest = max(longest, float(((whole - less).astype(float) ** 2).sum()))
    reach = float(reach_of(7, bits))
    assert longest <= reach**2
    assert longest > (2.0**bits - 3) ** 2  # the bound is not idle


@pytest.mark.parametrize(
    ("whole", "wide"), [(PureDP(1), 3.0), (ApproxDP(1, "1e-6"), 3.0), (ZCDP("0.1"), 3.0), (PureDP("1e-4"), 3.0)]
)
def test_the_noise_of_sums_is_as_wide_as_it_is_said_to_be(whole, wide: float) -> None:
    share = Allowance(whole).rest("sums")
    labels = np.zeros(0, dtype=np.int64)
    draws = np.array(
        [
            noisy_group_sums(np.empty((0, 6)), labels, 5, radius=wide, share=share, random=Random.deterministic(seed))[0]
            for seed in range(400)
        ]
    )
    _, variance, _ = noisy_group_sums(np.empty((0, 6)), labels, 5, radius=wide, share=share, random=Random.deterministic(0))
    # 12,000 numbers: the relative deviation of the mean square is below sqrt(5/12000) = 2 %; 12 % is six of them
    assert float((draws**2).mean()) / variance == pytest.approx(1.0, rel=0.12)


def test_shares_add_up_to_the_whole() -> None:
    model = KMeans(3, epsilon=1, bounds=(0, 1), random=Random.deterministic(2)).fit(blobs(2000))
    assert sum(line.amount for line in model.spent_) == 1
    assert str(model.guarantee_) == "ε = 1"


def test_the_number_of_rows_decides_only_by_its_noisy_value() -> None:
    share = Allowance(PureDP(1)).share("number of rows", "0.03")
    one = plan_of(share, size=1797.0, clusters=10, features=64, method="auto", rounds=None)
    assert (one.rounds, one.dimension, one.cells) == (1, 45, 1)
    more = plan_of(share, size=1e6, clusters=10, features=64, method="auto", rounds=None)
    assert more.dimension == 64
    assert more.rounds > 1


def test_counts_and_sums_are_those_of_the_nearest_centre() -> None:
    X, allowance = blobs(3000) - 0.5, Allowance(PureDP(10**6))
    centres = np.array([[-0.3, -0.3], [0.3, -0.3], [0.0, 0.3]])
    count, total = allowance.share("counts", "0.5"), allowance.rest("sums")
    cells = measured(X, centres, size=3000.0, radius=1.0, count=count, total=total, random=Random.deterministic(1))
    labels = nearest(X, centres)
    assert cells.counts == pytest.approx(np.bincount(labels), abs=1e-3)
    assert cells.means == pytest.approx(np.array([X[labels == j].mean(axis=0) for j in range(3)]), abs=1e-3)


def test_the_mean_squared_distance_never_exceeds_its_public_ceiling() -> None:
    box = box_of(([0, -3], [1, 5]), features=2)
    generator = np.random.default_rng(1)
    for seed in range(20):
        X = np.where(generator.random((200, 2)) < generator.random(2), box.low, box.high)
        share = Allowance(PureDP(10**6)).rest("mean")
        place = mean_of(X, box, size=200.0, radius=9.0, share=share, random=Random.deterministic(seed))
        assert ((X - X.mean(axis=0)) ** 2).sum() / 200 <= place.most * (1 + 1e-3)
        assert place.mean == pytest.approx(X.mean(axis=0), abs=1e-3)


NASTY = {
    "no row": np.empty((0, 3)),
    "one row": np.array([[0.5, 0.5, 0.5]]),
    "missing": np.array([[np.nan, 0.1, 0.2], [0.3, 0.1, 0.2]]),
    "infinite": np.array([[np.inf, -np.inf, 0.2], [0.3, 0.1, 0.2]]),
    "huge": np.full((5, 3), 1e300),
    "constant": np.full((50, 3), 0.25),
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("epsilon", ["0.001", 1, 1000])
@pytest.mark.parametrize("delta", [None, "1e-6"])
@pytest.mark.parametrize("method", ["auto", "coreset"])
def test_no_rows_and_no_noise_break_it(name: str, epsilon, delta: str | None, method: str) -> None:
    model = KMeans(4, epsilon=epsilon, delta=delta, bounds=(0, 1), method=method, random=Random.deterministic(4)).fit(NASTY[name])
    assert model.cluster_centers_.shape == model.deviations_.shape == (4, 3)
    assert np.isfinite(model.cluster_centers_).all()
    assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()
    assert (model.margin(0.95) >= 0).all()


def test_features_that_cannot_vary_are_kept_as_they_are() -> None:
    model = KMeans(2, epsilon=1, bounds=([0, 5], [1, 5]), random=Random.deterministic(1)).fit([[0.1, 5.0], [0.9, 7.0]] * 40)
    assert model.cluster_centers_[:, 1].tolist() == [5.0, 5.0]
    none = KMeans(2, epsilon=1, bounds=([1, 5], [1, 5]), random=Random.deterministic(1)).fit([[1.0, 5.0]] * 40)
    assert none.cluster_centers_.tolist() == [[1.0, 5.0], [1.0, 5.0]]
    assert sum(line.portion for line in none.spent_) == 1


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"bounds": None}, MissingBound),
        ({"n_clusters": 0}, InvalidParameter),
        ({"n_clusters": True}, InvalidParameter),
        ({"method": "elkan"}, InvalidParameter),
        ({"rounds": 0}, InvalidParameter),
        ({"radius": -1}, InvalidParameter),
        ({"epsilon": 0}, CloisterError),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, kind: type) -> None:
    with pytest.raises(kind):
        KMeans(**({"n_clusters": 3, "bounds": (0, 1)} | parameters)).fit(blobs(30))


def test_a_declared_radius_lessens_the_noise() -> None:
    box, share = box_of((0, 1), features=16), Allowance(PureDP(1)).rest("mean")
    wide = mean_of(np.full((9, 16), 0.5), box, size=9.0, radius=2.0, share=share, random=Random.deterministic(1))
    narrow = mean_of(np.full((9, 16), 0.5), box, size=9.0, radius=0.5, share=share, random=Random.deterministic(1))
    assert narrow.variance.sum() < wide.variance.sum() / 10


def test_it_is_the_same_after_writing_and_reading() -> None:
    X = blobs(400)
    model = KMeans(3, epsilon=1, bounds=(0, 1), random=Random.deterministic(5)).fit(X)
    again = load(model.to_json())
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert again.transform(X[:5]).shape == (5, 3)
    assert clone(model).get_params()["n_clusters"] == 3
    assert model.get_feature_names_out().tolist() == ["kmeans0", "kmeans1", "kmeans2"]


def test_it_learns_from_a_table_and_is_charged() -> None:
    X = blobs(2000)
    table = cl.PrivateTable(
        {"a": X[:, 0].round(3).tolist(), "b": X[:, 1].round(3).tolist()},
        {"a": cl.Real(0, 1, step="0.001"), "b": cl.Real(0, 1, step="0.001")},
    )
    with cl.Session({"people": table}, budget=cl.PureDP(10)) as session:
        model = KMeans(3, epsilon=5).fit_table(session, "people", features=["a", "b"])
        assert str(session.spent) == "ε = 5"
    assert model.cluster_centers_.shape == (3, 2)
    assert sum(line.amount for line in model.spent_) == Fraction(5)
    assert model.fit_predict(X).shape == (2000,)


@by_day_and_night("ties", 50, 200)
def test_a_tie_of_many_rows_breaks_the_same_way_with_one_row_more(ties: int) -> None:
    generator = np.random.default_rng(1)
    plenty = Allowance(PureDP(10**6))
    for number in range(ties):
        dimension = int(generator.integers(20, 40))
        row, apart = generator.normal(size=(2, dimension)) / dimension
        centres = np.vstack([row + apart, row - apart, *generator.normal(size=(5, dimension))])
        for rows in (3, 7, 23):
            portion = Fraction(1, 10_000)
            seen = [
                measured(
                    np.tile(row, (many, 1)),
                    centres,
                    size=1.0,
                    radius=1.0,
                    count=plenty.share("counts", portion),
                    total=plenty.share("sums", portion),
                    random=Random.deterministic(number),
                ).counts
                for many in (rows, rows + 1)
            ]
            assert np.abs(seen[1] - seen[0]).sum() <= 1


def test_a_projected_row_is_the_same_in_any_company() -> None:
    generator = np.random.default_rng(1)
    for dimension in (30, 64):
        X, axes = generator.normal(size=(60, dimension)), np.linalg.qr(generator.normal(size=(dimension, 10)))[0]
        whole = projected(X, axes, reach=20.0)
        assert np.allclose(whole, X @ axes, atol=1e-5)
        for rows in range(1, 60):
            assert (projected(X[:rows], axes, reach=20.0) == whole[:rows]).all()


@pytest.mark.parametrize("narrow", [{"bounds": (0, 1e-155)}, {"bounds": (0, 1), "radius": 1e-155}])
def test_lengths_whose_squares_are_no_numbers_are_refused(narrow: dict) -> None:
    with pytest.raises(InvalidParameter, match="narrower"):
        KMeans(2, **narrow).fit(np.zeros((5, 2)))


def test_a_small_group_is_found_where_it_is() -> None:
    """A group of 2 % was counted as a tenth of an even share at any budget, and drawn to the middle."""
    draw = np.random.default_rng(1)
    at = np.array([[-0.6, -0.6], [0.6, -0.6], [0.0, 0.7]])
    X = np.clip(at[draw.choice(3, 20_000, p=[0.6, 0.385, 0.015])] + draw.normal(0, 0.05, (20_000, 2)), -1, 1)
    model = KMeans(3, epsilon=1000, bounds=(-1, 1), random=Random.deterministic(1)).fit(X)
    nearest = np.abs(model.cluster_centers_ - at[2]).sum(axis=1).argmin()
    assert model.cluster_centers_[nearest] == pytest.approx(at[2], abs=0.02)
    assert model.cluster_sizes_[nearest] == pytest.approx((X[:, 1] > 0.3).sum(), abs=5)
