"""k-means by a table's engine: the nearest centre as a column, one person's part, the charge, and no row in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.cluster import KMeans as Plain

import cloister as cl
from cloister.errors import BudgetExceeded, CloisterError, InvalidParameter
from cloister.learn.clustering.kmeans import KMeans
from cloister.learn.clustering.kmeans_tables import Sight, _whole_forms, place_of_table, round_of_table
from cloister.learn.frame.budget_account import BudgetAccount
from cloister.learn.frame.encoding import Encoder
from cloister.learn.frame.portable import load
from cloister.noise import DiscreteGaussian, DiscreteLaplace, Random
from cloister.privacy import ZCDP, ApproxDP, PureDP
from cloister.session.questions.spend import amount_of
from cloister.tables import Related
from tests.tiers import by_day_and_night

STEP = "0.001"
MIDDLES = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.8]])


def nearest_in_steps(sight: Sight, centres: npt.NDArray[np.float64], rows: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """What `nearest_cell` gives for rows that lie on the steps of the features: the same whole numbers, without an engine."""
    coefficients, constants, grids = _whole_forms(sight, centres)
    steps = np.rint(rows / np.array([float(grid) for grid in grids])).astype(np.int64).astype(object)
    scores = steps @ coefficients.T.astype(object) + constants.astype(object)
    return np.asarray((scores * len(centres) + np.arange(len(centres))).argmax(axis=1), dtype=np.int64)


def blobs(rows: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.clip(MIDDLES[generator.integers(0, 3, rows)] + generator.normal(0, 0.03, (rows, 2)), 0, 1).round(3)


def table_of(X: np.ndarray, **about: Any) -> cl.PrivateTable:
    columns = {"ab"[place]: X[:, place].tolist() for place in range(2)}
    return cl.PrivateTable(columns, {name: cl.Real(0, 1, step=STEP) for name in columns}, **about)


def fitted(table: cl.PrivateTable, clusters: int, budget: Any, spend: Any, seed: int = 1, **about: Any) -> KMeans:
    with cl.Session({"people": table}, budget=budget, random=Random.deterministic(seed)) as session:
        return KMeans(clusters, method="engine", **about).fit_table(session, "people", features=["a", "b"], spend=spend)


def inertia(model: KMeans, X: np.ndarray) -> float:
    return float(((X[:, None] - model.cluster_centers_[None]) ** 2).sum(axis=2).min(axis=1).sum())


BUDGETS = [(PureDP(100), PureDP(20)), (ZCDP(100), ZCDP(20)), (ApproxDP(100, "1e-3"), ApproxDP(20, "1e-5"))]


@pytest.mark.parametrize(("budget", "spend"), BUDGETS, ids=["pure", "zcdp", "approx"])
def test_far_groups_are_found_and_the_charge_is_the_promise(budget: Any, spend: Any) -> None:
    X = blobs(6000)
    with cl.Session({"people": table_of(X)}, budget=budget, random=Random.deterministic(1)) as session:
        model = KMeans(3, method="engine").fit_table(session, "people", features=["a", "b"], spend=spend)
        spent = session.spent
    assert spent == model.guarantee_
    assert spent <= spend  # a δ that no noise needed is not charged
    assert amount_of(spent) == 20
    assert sum(line.portion for line in model.spent_) == 1
    assert len(model.spent_) == model.rounds_ + 1
    assert inertia(model, X) < 1.1 * Plain(3, n_init=10, random_state=0).fit(X).inertia_
    assert model.marked_
    again = load(model.to_json())
    assert again.cluster_centers_.tolist() == model.cluster_centers_.tolist()


def test_what_was_bought_before_is_told_and_not_paid_again() -> None:
    with cl.Session({"people": table_of(blobs(400))}, budget=PureDP(20), random=Random.deterministic(1)) as session:
        first = KMeans(2, method="engine").fit_table(session, "people", features=["a", "b"], spend=5)
        again = KMeans(2, method="engine").fit_table(session, "people", features=["a", "b"], spend=1)
        assert first.guarantee_ == PureDP(5)
        assert session.spent == PureDP("5.9")  # where the rows lie was bought with 0.5 already
        assert again.guarantee_ == PureDP("1.4")
    assert again.spent_[0].amount == Fraction(1, 2)
    assert sum(line.amount for line in again.spent_) == Fraction(14, 10)


def test_rounds_that_were_interrupted_are_not_paid_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins where it began, so each round that was charged is asked, and answered, once more for nothing; in a later session
    and as often as one likes."""
    rounds, about = 0, {"features": ["a", "b"], "spend": PureDP(5)}

    def stopped_once(*asked: Any, **more: Any) -> Any:
        nonlocal rounds
        rounds += 1
        if rounds == 3:
            raise KeyboardInterrupt
        return round_of_table(*asked, **more)

    monkeypatch.setattr("cloister.learn.clustering.kmeans_tables.round_of_table", stopped_once)
    models = []
    for way in range(3):
        table = table_of(blobs(400), version="1")
        with cl.Session({"people": table}, budget=PureDP(20), ledger=tmp_path / "ledger.db") as session:
            if way == 0:
                with pytest.raises(KeyboardInterrupt):
                    KMeans(3, method="engine").fit_table(session, "people", **about)
                assert 0 < session.spent.epsilon < 5
            models.append(KMeans(3, method="engine").fit_table(session, "people", **about))
            assert session.spent == PureDP(5)
    assert all(np.array_equal(models[0].cluster_centers_, each.cluster_centers_) for each in models)


def test_it_is_no_worse_than_the_way_by_rows() -> None:
    X = blobs(20_000)
    one = float(((X - X.mean(axis=0)) ** 2).sum())
    engine = np.mean([inertia(fitted(table_of(X), 3, PureDP(9), 1, seed), X) for seed in range(3)])
    rows = np.mean(
        [inertia(KMeans(3, epsilon=1, bounds=(0, 1), random=Random.deterministic(seed)).fit(X), X) for seed in range(3)]
    )
    assert engine < rows + 0.05 * one


def test_no_row_comes_into_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows could come by `run`, and by `Prepared.rows`: neither is called. What an engine hands over is a number a cell."""
    table, seen = table_of(blobs(3000)), []
    with cl.Session({"people": table}, budget=PureDP(1)) as session:
        kind = type(session.prepared("people"))

    def refused(*given: Any, **more: Any) -> Any:
        raise AssertionError("rows were asked for")

    aggregate = Related.aggregate

    def counted(self: Any, *given: Any, **more: Any) -> Any:
        groups = aggregate(self, *given, **more)
        seen.append(max(len(values) for values in groups.values.values()))
        return groups

    monkeypatch.setattr(kind, "rows", refused)
    monkeypatch.setattr(Related, "aggregate", counted)
    with cl.Session({"people": table}, budget=PureDP(10)) as session:
        model = KMeans(3).fit_table(session, "people", features=["a", "b"], spend=5)
        assert len(seen) > model.rounds_
        assert max(seen) <= 8 * 3  # cells, however many rows there are
        with pytest.raises(CloisterError):  # by rows: what that would look like here
            KMeans(3, method="lloyd").fit_table(session, "people", features=["a", "b"], spend=1)


def test_a_table_that_is_declared_small_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = cl.Session.run
    monkeypatch.setattr(cl.Session, "run", lambda self, *given, **more: calls.append(1) or run(self, *given, **more))
    for size, expected in ((300, 1), (100_000, 0), (None, 0)):
        calls.clear()
        with cl.Session({"people": table_of(blobs(300), size=size)}, budget=PureDP(10)) as session:
            KMeans(3).fit_table(session, "people", features=["a", "b"], spend=1)
            assert session.spent == PureDP(1)
        assert len(calls) == expected


@contextmanager
def listening(answers: list[np.ndarray] | None) -> Iterator[list[tuple[np.ndarray, Any]]]:
    """What noise is added to, and which; with answers, those are given back in its place."""
    heard: list[tuple[np.ndarray, Any]] = []

    def told(self: Any, values: Any, *, random: Any = None) -> Any:
        heard.append((np.array(values, dtype=object), self))
        return np.array(values) if answers is None else answers[len(heard) - 1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "release", told)
        patch.setattr(DiscreteGaussian, "release", told)
        yield heard


def lost(one: Sequence[tuple[np.ndarray, Any]], other: Sequence[tuple[np.ndarray, Any]]) -> float:
    """The ε, or the ρ, that lies between two records of what noise was added to."""
    total = 0.0
    for (values, noise), (others, same) in zip(one, other, strict=True):
        assert noise == same
        apart = [abs(int(step)) for step in (values - others).ravel().tolist()]
        if isinstance(noise, DiscreteLaplace):
            total += float(sum(apart) / noise.scale)
        else:
            total += float(sum(step**2 for step in apart) / (2 * noise.scale_squared))
    return total


@pytest.mark.parametrize(("budget", "spend"), [(PureDP(5), Fraction(1)), (ZCDP(5), Fraction(1))], ids=["pure", "zcdp"])
@pytest.mark.parametrize("rows_each", [1, 3])
@by_day_and_night("persons", 5, 14)
def test_one_person_moves_a_round_by_no_more_than_its_portion(persons: int, budget: Any, spend: Fraction, rows_each: int) -> None:
    """Corners, ties, missing and strange values; a person with several rows, in one cell or in many; and none of it is idle."""
    generator = np.random.default_rng(4)
    X = generator.choice([0.0, 1.0, 0.5, 0.25, -7.0, 9.0], size=(persons * rows_each, 2))
    X[3, 0] = np.nan
    X[-rows_each:] = [1.0, 1.0]
    who = np.repeat(np.arange(persons), rows_each)
    centres = np.array([[-0.3, -0.3], [0.3, 0.3], [0.3, -0.3], [-0.3, 0.3]])
    columns = {name: cl.Real(0, 1, step=STEP, nullable=True) for name in "ab"}

    def records(kept: np.ndarray, answers: list[np.ndarray] | None) -> list[tuple[np.ndarray, Any]]:
        data = {"who": [f"p{one}" for one in who[kept]], "a": X[kept, 0].tolist(), "b": X[kept, 1].tolist()}
        table = cl.PrivateTable(data, columns, unit="who", max_rows=rows_each)
        with cl.Session({"t": table}, budget=budget) as session, listening(answers) as heard:
            account = BudgetAccount.of(session, "t", spend, "")
            sight = place_of_table(account, "t", Encoder.of(table.columns, ["a", "b"]), Fraction(1, 4))
            round_of_table(account, sight, centres, Fraction(3, 4), "round", reach=1.0)
        return heard

    everyone = np.ones(len(X), dtype=bool)
    whole = records(everyone, None)
    said = [values for values, _ in whole]
    losses = [lost(whole, records(who != one, said)) for one in range(persons)]
    assert max(losses) <= float(spend) * (1 + 1e-9)
    assert max(losses) > 0.3 * float(spend)


def sight_of(table: cl.PrivateTable, session: Any, names: list[str]) -> Sight:
    account = BudgetAccount.of(session, "t", 10**6, "")
    return place_of_table(account, "t", Encoder.of(table.columns, names), Fraction(1, 10))


def test_cells_and_sums_are_those_of_the_nearest_centre() -> None:
    generator = np.random.default_rng(2)
    data = {
        "year": generator.integers(1950, 2020, 2000).tolist(),
        "pay": (generator.integers(0, 40_000, 2000) / 4).tolist(),
        "smoker": (generator.random(2000) < 0.3).tolist(),
        "sex": generator.choice(["F", "M", "X"], 2000).tolist(),
        "same": [7] * 2000,
    }
    declared = {
        "year": cl.Integer(1950, 2020),
        "pay": cl.Real("0.1", "10000.1", step="0.25"),
        "smoker": cl.Boolean(),
        "sex": cl.Category(["F", "M", "X"]),
        "same": cl.Integer(7, 7),
    }
    table, names = cl.PrivateTable(data, declared), list(declared)
    with cl.Session({"t": table}, budget=PureDP(10**9), random=Random.deterministic(1)) as session:
        sight = sight_of(table, session, names)
        assert sight.active.tolist() == [True] * 6 + [False]
        assert sight.size == 2000
        centres = generator.normal(size=(17, 6)) * np.sqrt(sight.variances[sight.active])
        account = BudgetAccount.of(session, "t", 10**8, "")
        cells, _ = round_of_table(account, sight, centres, Fraction(1), "round", reach=100.0)
    sexes = np.array(data["sex"])
    pays = 0.1 + np.clip(np.rint((np.array(data["pay"]) - 0.1) / 0.25), 0, 40_000) * 0.25
    rows = np.column_stack([data["year"], pays, data["smoker"], *(sexes == one for one in "FMX")]).astype(float)
    mean = sight.mean[sight.active]
    assert mean == pytest.approx(rows.mean(axis=0), rel=1e-3, abs=1e-3)
    labels = nearest_in_steps(sight, centres, rows)
    distances = ((rows[:, None] - mean - centres[None]) ** 2).sum(axis=2)
    best = distances.min(axis=1)
    assert (distances[np.arange(2000), labels] <= best + 1e-6 * (1 + best)).all()
    counts = np.bincount(labels, minlength=17)
    assert counts.sum() == 2000
    kept = counts > 0.11 * 2000 / 17  # smaller cells are held up
    assert kept.sum() > 3
    assert cells.counts[kept] == pytest.approx(counts[kept], abs=1e-3)
    means = np.array([rows[labels == one].mean(axis=0) - mean for one in np.flatnonzero(kept)])
    assert cells.means[kept] == pytest.approx(means, rel=1e-3, abs=0.05)


NASTY: dict[str, dict[str, list[Any]]] = {
    "no row": {"a": [], "b": []},
    "one row": {"a": [0.5], "b": [0.5]},
    "missing": {"a": [None, 0.3, float("nan")], "b": [0.1, None, 0.2]},
    "out of bounds": {"a": [float("inf"), -5.0, 1e300], "b": [-1e300, 7.0, 0.5]},
    "constant": {"a": [0.25] * 40, "b": [0.25] * 40},
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("spend", ["0.001", 1, 1000])
def test_no_rows_and_no_noise_break_it(name: str, spend: Any) -> None:
    import pyarrow

    data = pyarrow.table({key: pyarrow.array(values, pyarrow.float64()) for key, values in NASTY[name].items()})
    table = cl.PrivateTable(data, {key: cl.Real(0, 1, step=STEP, nullable=key == "b") for key in "ab"})
    model = fitted(table, 4, PureDP(10**4), spend)
    assert model.cluster_centers_.shape == model.deviations_.shape == (4, 2)
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite(model.deviations_).all()
    assert ((model.cluster_centers_ >= 0) & (model.cluster_centers_ <= 1)).all()
    assert (model.cluster_sizes_ > 0).all()


@pytest.mark.parametrize("clusters", [1, 2, 12])
@pytest.mark.parametrize("rounds", [None, 1, 3])
def test_any_number_of_clusters_and_rounds(clusters: int, rounds: int | None) -> None:
    model = fitted(table_of(blobs(500)), clusters, PureDP(100), 50, rounds=rounds)
    assert model.cluster_centers_.shape == (clusters, 2)
    assert rounds is None or model.rounds_ == rounds
    assert model.guarantee_ == PureDP(50)


def test_features_that_cannot_vary_are_kept_as_they_are() -> None:
    data = {"a": [0.1, 0.9] * 40, "b": [5] * 80}
    table = cl.PrivateTable(data, {"a": cl.Real(0, 1, step=STEP), "b": cl.Integer(5, 5)})
    assert fitted(table, 2, PureDP(10), 5).cluster_centers_[:, 1].tolist() == [5.0, 5.0]
    still = cl.PrivateTable({"a": [1] * 9, "b": [5] * 9}, {"a": cl.Integer(1, 1), "b": cl.Integer(5, 5)})
    model = fitted(still, 2, PureDP(10), 5)
    assert model.cluster_centers_.tolist() == [[1.0, 5.0], [1.0, 5.0]]
    assert (model.rounds_, model.guarantee_) == (0, PureDP(5))


def test_what_the_engine_cannot_do_is_refused_or_read() -> None:
    with pytest.raises(InvalidParameter, match="arrays have no engine"):
        KMeans(2, method="engine", bounds=(0, 1)).fit(blobs(20))
    with cl.Session({"people": table_of(blobs(60))}, budget=PureDP(3)) as session:
        for wrong in ({"radius": 0.5}, {"n_clusters": 1001}):
            with pytest.raises(InvalidParameter, match="products"):
                KMeans(**wrong, method="engine").fit_table(session, "people", features=["a", "b"], spend=1)
        assert KMeans(2, radius=0.5).fit_table(session, "people", features=["a", "b"], spend=1).guarantee_ == PureDP(1)
        spent = session.spent
        with pytest.raises(BudgetExceeded, match="is left"):
            KMeans(2).fit_table(session, "people", features=["a", "b"], spend="2.5")
        assert session.spent == spent  # refused before anything was measured


def test_deviations_say_how_far_the_noise_moves_a_sum() -> None:
    """Three hundred cells are three hundred draws. Laplace noise's mean square has a deviation of √(5/n): six of them."""
    X = blobs(4000)
    with cl.Session({"t": table_of(X)}, budget=PureDP(10**9), random=Random.deterministic(1)) as session:
        sight = sight_of(session.tables["t"], session, ["a", "b"])
        centres = np.random.default_rng(1).uniform(-0.4, 0.4, (300, 2))
        account = BudgetAccount.of(session, "t", 3, "")
        cells, own = round_of_table(account, sight, centres, Fraction(1), "round", reach=9.0)
    labels = nearest_in_steps(sight, centres, X)
    exact = np.array([(X[labels == one] - sight.mean).sum(axis=0) for one in range(300)])
    noise = cells.means * cells.counts[:, None] - exact
    assert (noise**2).mean(axis=0) == pytest.approx(own, rel=6 * math.sqrt(5 / 300))
    assert own[0] == pytest.approx(2 * (3 / 3 * (1 - sight.mean[0])) ** 2, rel=0.2)  # L1 over three columns, half a box wide
