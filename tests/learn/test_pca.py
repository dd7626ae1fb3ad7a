"""Principal components: the twin without noise, sensitivities by brute force, the sampler's law, nasty rows, tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.decomposition import PCA as Plain  # noqa: N811
from sklearn.utils.estimator_checks import estimator_checks_generator

import cloister as cl
from cloister.errors import CloisterError, InvalidParameter, MissingBound
from cloister.learn.clustering.noisy_mean import Spread
from cloister.learn.decomposition import pca
from cloister.learn.decomposition.pca import METHODS, PCA, _measured
from cloister.learn.decomposition.power import _product
from cloister.learn.decomposition.products import noisy_lengths
from cloister.learn.decomposition.second_moments import BITS, gaussian_moments, laplace_moments, moment_steps
from cloister.learn.decomposition.subspaces import bingham, chosen_components, epsilon_of_choice
from cloister.learn.frame.ball import reach_of
from cloister.learn.frame.portable import load
from cloister.noise import Random
from cloister.noise.allowance import Allowance
from cloister.privacy import ZCDP, ApproxDP, PureDP

DELTA = {"gaussian": "1e-6", "power": "1e-6", "wishart": "1e-4", "exponential": None, "laplace": None}


def flat(rows: int, seed: int = 0) -> np.ndarray:
    """Rows of [−1, 1]⁴ that vary much along one direction, less along another, and little else."""
    generator = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(np.array([[1.0, 2, 0, 1], [0, 1, 1, 3], [2, 0, 1, 0], [1, 1, 1, 1]]))
    return np.clip(0.1 + generator.normal(size=(rows, 4)) * [0.3, 0.15, 0.02, 0.02] @ turn.T, -1, 1)


def captured(X: np.ndarray, components: np.ndarray) -> float:
    """The variance along the components, as a part of the greatest that so many can have."""
    spread = np.cov(X.T)
    return float(np.trace(components @ spread @ components.T) / np.linalg.eigvalsh(spread)[::-1][: len(components)].sum())


@pytest.mark.parametrize(
    "check", [pytest.param(pair, id=pair[1].func.__name__) for pair in estimator_checks_generator(PCA(privacy=None))]
)
def test_the_twin_without_noise_passes_the_checks_of_scikit_learn(check: tuple) -> None:
    estimator, test = check
    test(estimator)


def test_the_twin_without_noise_finds_what_scikit_learn_finds() -> None:
    X = flat(300)
    ours, theirs = PCA(2, privacy=None).fit(X), Plain(2).fit(X)
    assert ours.components_ == pytest.approx(theirs.components_)
    assert ours.transform(X) == pytest.approx(theirs.transform(X))
    assert ours.explained_variance_ratio_ == pytest.approx(theirs.explained_variance_ratio_)


@pytest.mark.parametrize("method", METHODS)
def test_every_way_finds_the_plane_where_noise_is_small(method: str) -> None:
    X = flat(40_000)
    model = PCA(2, epsilon=4, delta=DELTA[method], bounds=(-1, 1), method=method, random=Random.deterministic(1)).fit(X)
    assert captured(X, model.components_) > 0.99
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(2), abs=1e-9)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=0.2)
    assert model.mean_ == pytest.approx(X.mean(axis=0), abs=0.05)
    assert model.method_ == method
    back = model.inverse_transform(model.transform(X))
    assert float(((back - X) ** 2).sum()) < 0.1 * float(((X - X.mean(axis=0)) ** 2).sum())


def test_a_row_changes_the_moments_by_no_more_than_the_noise_is_for() -> None:
    generator = np.random.default_rng(2)
    rows = np.concatenate([generator.normal(size=(30, 5)), np.full((1, 5), 9.0), np.eye(5)[:1] * 9])
    whole, reach = moment_steps(rows, radius=1.5), float(reach_of(5, BITS))
    upper, longest, widest = np.triu_indices(5), 0.0, 0.0
    for row in range(len(rows)):
        change = np.abs(whole - moment_steps(np.delete(rows, row, axis=0), radius=1.5)).astype(float)
        longest = max(longest, float((change**2).sum()))  # both triangles: the weights of `gaussian_moments`
        widest = max(widest, float(change[upper].sum()))
    assert 0.99 * reach**4 < longest <= reach**4
    assert 0.98 * 3 * reach**2 < widest <= 3 * reach**2


def test_the_noise_of_moments_is_as_wide_as_it_is_said_to_be() -> None:
    zero = np.zeros((8, 8), dtype=np.int64)
    diagonal, outer = np.eye(8, dtype=bool), np.triu(np.ones((8, 8), dtype=bool), 1)
    share = Allowance(ApproxDP(1, "1e-6")).rest("moments")
    drawn = [gaussian_moments(zero, share, Random.deterministic(seed)) for seed in range(300)]
    noise, variance = np.array([noisy for noisy, _ in drawn]), drawn[0][1]
    assert (noise == noise.transpose(0, 2, 1)).all()
    # 2,400 and 8,400 normal numbers: deviations of the mean square of 2.9 % and 1.6 %; 18 % and 10 % are six of them
    assert (noise[:, diagonal] ** 2).mean() / variance == pytest.approx(1.0, rel=0.18)
    assert (noise[:, outer] ** 2).mean() / variance == pytest.approx(0.5, rel=0.1)
    pure = Allowance(PureDP(1)).rest("moments")
    drawn = [laplace_moments(zero, pure, Random.deterministic(seed)) for seed in range(300)]
    noise, variance = np.array([noisy for noisy, _ in drawn]), drawn[0][1]
    # 10,800 Laplace numbers: sqrt(5/10800) = 2.2 %; 13 % is six of them
    assert (noise[:, diagonal | outer] ** 2).mean() / variance == pytest.approx(1.0, rel=0.13)


@pytest.mark.parametrize("gap", [0.0, 1.5, 12.0])
def test_the_sampler_has_the_law_that_it_claims(gap: float) -> None:
    """In two dimensions the squared cosine to the first axis has density ∝ exp(gap·c)/sqrt(c(1 − c)): its mean is an integral."""
    random, angles = Random.deterministic(7), (np.arange(200_000) + 0.5) * np.pi / 200_000
    weights = np.exp(gap * np.cos(angles) ** 2)
    mean = float((weights * np.cos(angles) ** 2).sum() / weights.sum())
    spread = float((weights * (np.cos(angles) ** 2 - mean) ** 2).sum() / weights.sum()) ** 0.5
    draws = np.array([bingham(np.diag([gap, 0.0]), random)[0] ** 2 for _ in range(1000)])
    assert abs(draws.mean() - mean) < 6 * spread / 1000**0.5


def test_the_choice_is_as_private_as_it_is_charged() -> None:
    """On a circle the densities of neighbours can be worked out: no ratio is beyond e^ε, and one row reaches half of that."""
    angles = (np.arange(20_000) + 0.5) * np.pi / 20_000
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    generator, worst = np.random.default_rng(5), 0.0
    for _ in range(50):
        rows = generator.normal(size=(20, 2))
        rows /= np.maximum(1.0, np.sqrt((rows**2).sum(axis=1)))[:, None]
        densities = []
        for kept in (rows, rows[1:]):
            scores = np.exp(1.0 * np.einsum("ij,jk,ik->i", directions, kept.T @ kept, directions))
            densities.append(scores / scores.sum())
        worst = max(worst, float(np.abs(np.log(densities[0] / densities[1])).max()))
    assert 0.4 < worst <= 1.0


def test_components_are_orthonormal_and_a_choice_costs_an_eighth_of_its_square() -> None:
    allowance = Allowance(ZCDP("0.5"))
    shares = [allowance.share(str(place), "0.25") for place in range(4)]
    assert float(epsilon_of_choice(shares[0])) ** 2 / 8 == pytest.approx(0.125)
    assert epsilon_of_choice(shares[0]) ** 2 / 8 <= Fraction(1, 8)
    found = chosen_components(np.diag([4.0, 3, 2, 1]) * 10**6, reach_squared=1.0, shares=shares, random=Random.deterministic(1))
    assert np.abs(found) == pytest.approx(np.eye(4), abs=0.05)
    assert found @ found.T == pytest.approx(np.eye(4), abs=1e-12)


def test_products_are_exact_beyond_what_floating_point_holds() -> None:
    generator = np.random.default_rng(1)
    moments, steps = generator.integers(-(2**50), 2**50, (6, 6)), generator.integers(-1024, 1025, (6, 3))
    assert (_product(moments, steps).astype(object) == moments.astype(object) @ steps.astype(object)).all()


def test_the_way_follows_from_public_facts() -> None:
    X = flat(50)
    ways = {}
    for count, delta in ((1, None), (4, None), (2, "1e-6")):
        model = PCA(count, epsilon=1, delta=delta, bounds=(-1, 1), random=Random.deterministic(1)).fit(X)
        ways[count, delta] = model.method_
        assert sum(line.portion for line in model.spent_) == 1
    assert ways == {(1, None): "exponential", (4, None): "laplace", (2, "1e-6"): "gaussian"}


NASTY = {
    "no row": np.empty((0, 4)),
    "one row": np.full((1, 4), 0.5),
    "missing": np.array([[np.nan, 0.1, 0.2, 0.3], [0.3, 0.1, 0.2, 0.3]]),
    "infinite": np.array([[np.inf, -np.inf, 0.2, 0.1], [0.3, 0.1, 0.2, 0.1]]),
    "huge": np.full((5, 4), 1e300),
    "constant": np.full((50, 4), 0.25),
}


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", ["0.001", 1, 100])
def test_no_rows_and_no_noise_break_it(name: str, method: str, epsilon) -> None:
    if method == "wishart" and epsilon != 1:
        epsilon = 2  # its range is between floating point's two ends: see the next test
    parameters = {"bounds": (-1, 1), "method": method, "delta": DELTA[method], "random": Random.deterministic(3)}
    model = PCA(2, epsilon=epsilon, **parameters).fit(NASTY[name])
    assert model.components_ @ model.components_.T == pytest.approx(np.eye(2), abs=1e-6)
    assert ((model.explained_variance_ratio_ >= 0) & (model.explained_variance_ratio_ <= 1)).all()
    assert (np.abs(model.mean_) <= 1).all()
    assert (model.margin(0.9) > 0).all()


@pytest.mark.parametrize(("epsilon", "delta"), [("0.2", "1e-9"), (100, "1e-4")])
def test_wishart_noise_that_floating_point_cannot_vouch_for_is_refused(epsilon, delta: str) -> None:
    with pytest.raises(InvalidParameter, match="floating point"):
        PCA(2, epsilon=epsilon, delta=delta, bounds=(-1, 1), method="wishart").fit(NASTY["constant"])


def test_a_box_without_width_has_nothing_to_learn() -> None:
    model = PCA(2, epsilon=1, bounds=([1, 2, 3], [1, 2, 3]), random=Random.deterministic(1)).fit([[1.0, 2.0, 3.0]] * 9)
    assert model.explained_variance_.tolist() == [0.0, 0.0]
    assert sum(line.portion for line in model.spent_) == 1


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"bounds": None}, MissingBound),
        ({"n_components": 5}, InvalidParameter),
        ({"n_components": 0}, InvalidParameter),
        ({"method": "lanczos"}, InvalidParameter),
        ({"method": "wishart"}, InvalidParameter),
        ({"method": "gaussian"}, InvalidParameter),
        ({"method": "power"}, InvalidParameter),
        ({"radius": 0}, InvalidParameter),
        ({"epsilon": -1}, CloisterError),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict, kind: type) -> None:
    with pytest.raises(kind):
        PCA(**({"n_components": 2, "bounds": (-1, 1)} | parameters)).fit(flat(30))


def test_centred_rows_pay_for_no_mean() -> None:
    X = flat(2000) - 0.1
    model = PCA(1, epsilon=1, bounds=(-1, 1), centered=True, random=Random.deterministic(1)).fit(X)
    assert model.mean_.tolist() == [0.0] * 4
    assert "mean" not in {line.what for line in model.spent_}


def test_it_is_the_same_after_writing_and_reading() -> None:
    X = flat(400)
    model = PCA(2, epsilon=1, bounds=(-1, 1), random=Random.deterministic(5)).fit(X)
    again = load(model.to_json())
    assert (again.transform(X) == model.transform(X)).all()
    assert again.method_ == model.method_
    assert model.get_feature_names_out().tolist() == ["pca0", "pca1"]


def test_it_learns_from_a_table_and_is_charged() -> None:
    X = flat(2000)
    columns = {name: cl.Real(-1, 1, step="0.001") for name in "abcd"}
    table = cl.PrivateTable({name: X[:, place].round(3).tolist() for place, name in enumerate("abcd")}, columns)
    with cl.Session({"people": table}, budget=cl.PureDP(10)) as session:
        model = PCA(2, epsilon=5).fit_table(session, "people", features=["a", "b", "c", "d"])
        assert str(session.spent) == "ε = 5"
    assert captured(X, model.components_) > 0.8


@pytest.mark.parametrize("budget", [cl.PureDP(10), cl.ZCDP(10)])
def test_the_engine_of_a_table_can_make_the_moments(budget) -> None:
    X = flat(5000)
    columns = {name: cl.Real(-1, 1, step="0.001") for name in "abcd"}
    rows = {name: X[:, place].round(3).tolist() for place, name in enumerate("abcd")}
    table = cl.PrivateTable(rows, columns)
    with cl.Session({"people": table}, budget=budget) as session:
        model = PCA(2, method="moments").fit_table(session, "people", features=["a", "b", "c", "d"], spend=5)
        assert session.spent == type(budget)(5)
        assert model.guarantee_ == session.spent
    assert model.method_ == "moments"
    assert captured(X, model.components_) > 0.95
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-12  # two shares are rounded before they are added
    assert load(model.to_json()).mean_ == pytest.approx(X.mean(axis=0), abs=0.02)


def test_the_moments_of_a_table_are_for_tables() -> None:
    with pytest.raises(InvalidParameter):
        PCA(2, method="moments", bounds=(-1, 1)).fit(flat(20))


def test_measured_directions_keep_their_sensitivity_with_their_rounding() -> None:
    generator, directions = np.random.default_rng(3), np.linalg.qr(np.random.default_rng(4).normal(size=(40, 40)))[0]
    share = Allowance(PureDP(10**9)).rest("variances")
    most = (2**20 + 20 + 1 + 40 / 16) * (1.0 * 2.0**-20)
    rows = generator.normal(size=(200, 40))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    whole = _measured(rows, directions, radius=1.0, share=share, random=Random.deterministic(1)).known.squares
    for row in range(200):
        left = _measured(
            np.delete(rows, row, axis=0), directions, radius=1.0, share=share, random=Random.deterministic(1)
        ).known.squares
        alone = _measured(rows[[row]], directions, radius=1.0, share=share, random=Random.deterministic(1)).known.squares
        assert np.allclose(whole - left, alone, atol=2e-10, rtol=0)  # steps are 1e-6 wide: the others stay to the last step
        assert np.abs(alone).sum() <= most


def test_bounds_whose_squares_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="narrower"):
        PCA(1, bounds=(-1e-155, 1e-155), centered=True).fit(np.zeros((5, 2)))


def test_a_wrong_number_of_components_is_refused_whatever_the_method_counts_in() -> None:
    """The currency of choices follows from their number, and is worked out before anything else."""
    for wrong in ("many", [2], 0):
        model = PCA(n_components=wrong, method="exponential", epsilon=1, delta="1e-6", bounds=(-1, 1))  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="n_components"):
            model.fit(flat(100))


def test_the_total_variance_is_that_of_narrow_rows() -> None:
    """A ball has a least radius, but what is said of the rows' spread has no floor."""
    draw = np.random.default_rng(1)
    X = np.clip(draw.normal(0, 0.01, (20_000, 4)), -1, 1)
    model = PCA(2, epsilon=1e5, bounds=(-1, 1), random=Random.deterministic(1)).fit(X)
    assert model.total_variance_ == pytest.approx(X.var(axis=0).sum(), rel=0.05)
    assert model.explained_variance_ratio_.sum() == pytest.approx(0.5, abs=0.05)


NARROW = np.array([10_000.0, 1, 1, 1])


@pytest.mark.parametrize("method", ["gaussian", "laplace", "wishart"])
def test_narrow_columns_are_found_beside_a_wide_one(method: str) -> None:
    """Three columns are a ten-thousandth as wide as the first, and two of them go together: the second direction."""
    draw = np.random.default_rng(2)
    both = draw.normal(0, 0.25, (100_000, 1))
    X = np.clip(np.hstack([draw.uniform(-1, 1, (100_000, 1)), both, both, draw.normal(0, 0.03, (100_000, 1))]), -1, 1) * NARROW
    random = Random.deterministic(1)
    model = PCA(2, epsilon=4, delta=DELTA[method], bounds=(-NARROW, NARROW), method=method, random=random).fit(X)
    exact = np.linalg.eigh(np.cov(X.T))[1].T[::-1][:2]
    assert np.abs((model.components_ * exact).sum(axis=1)).min() > 0.98
    assert model.total_variance_ == pytest.approx(np.var(X[:, 0]), rel=0.1)
    again, along = load(model.to_json()), np.var(X @ model.components_.T, axis=0)
    assert (again.margin() == model.margin()).all()
    assert (np.abs(model.explained_variance_ - along) <= model.margin()).all()
    assert model.margin()[1] < 2 * along[1]


def test_a_row_of_columns_of_several_widths_changes_the_moments_by_no_more_than_the_noise_is_for(monkeypatch) -> None:
    """At any released mean and spread: those of the neighbours are held alike."""
    draw, seen = np.random.default_rng(3), []
    spread = Spread(0.4, 12.0, 1.0, 30.0, 1.0)
    monkeypatch.setattr(pca, "spread_of", lambda *given, **more: spread)
    monkeypatch.setattr(pca, "moment_steps", lambda rows, **more: seen.append(moment_steps(rows, **more)) or seen[-1])
    X = np.vstack([draw.uniform(-1, 1, (30, 4)) * NARROW, NARROW])
    model = PCA(bounds=(-NARROW, NARROW), centered=True, method="laplace", random=Random.deterministic(1))
    for rows in (X, *(np.delete(X, row, axis=0) for row in range(len(X)))):
        model.fit(rows)
    reach, upper = float(reach_of(4, BITS)), np.triu_indices(4)
    change = np.abs(np.array(seen[1:]) - seen[0]).astype(float)
    assert 0.9 * reach**4 < (change**2).sum(axis=(1, 2)).max() <= reach**4
    assert np.array([each[upper].sum() for each in change]).max() <= 2.5 * reach**2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wide", [1.0, 100.0], ids=["rows along a line", "a column that is wide"])
def test_the_margin_holds_where_one_direction_has_most_of_the_variance(method: str, wide: float) -> None:
    """A ball for ten columns that vary alike cut off a fifth of a variance that only few rows are far along."""
    draw = np.random.default_rng(4)
    line = draw.normal(0, 0.2, (60_000, 1))
    X = np.clip(np.hstack([line * wide, (line if wide == 1 else 0) + draw.normal(0, 0.02, (60_000, 9))]), -wide, wide)
    high = np.array([wide, *[1.0] * 9])
    model = PCA(1, epsilon=2, delta=DELTA[method], bounds=(-high, high), method=method, random=Random.deterministic(1)).fit(X)
    along = np.var(X @ model.components_[0], ddof=1)
    assert model.explained_variance_[0] == pytest.approx(along, rel=0.02)
    assert abs(model.explained_variance_[0] - along) <= model.margin(0.999)[0]


def test_a_row_falls_into_one_cell_of_the_histogram_that_the_ball_is_made_of(monkeypatch) -> None:
    """At any released mean and spread: its cells, and what other rows fall into, are the neighbours' too."""
    seen: list[tuple[np.ndarray, float]] = []
    monkeypatch.setattr(pca, "spread_of", lambda *given, **more: Spread(0.4, 12.0, 1.0, 30.0, 1.0))
    monkeypatch.setattr(pca, "noisy_lengths", lambda parts, **more: seen.extend(parts) or noisy_lengths(parts, **more))
    X = np.vstack([np.random.default_rng(3).uniform(-1, 1, (30, 4)) * NARROW, NARROW])
    model = PCA(bounds=(-NARROW, NARROW), centered=True, method="laplace", random=Random.deterministic(1))
    for rows in (X, *(np.delete(X, row, axis=0) for row in range(len(X)))):
        model.fit(rows)
    (whole, most), *others = seen
    assert {each for _, each in others} == {most}
    assert all((lengths == np.delete(whole, row)).all() for row, (lengths, _) in enumerate(others))
    assert [str(share.what) for share in model.spent_] == ["number of rows", "spread", "lengths", "second moments"]


def test_the_noise_of_the_histogram_alone_hardly_ever_widens_the_ball(monkeypatch) -> None:
    """Sixteen noisy cells added up passed 6 deviations of one of them in a tenth of all fits."""
    monkeypatch.setattr(pca, "spread_of", lambda *given, **more: Spread(0.05, 12.0, 1.0, 30.0, 1.0))
    rows, wide = np.zeros((2, 30)), 0
    for seed in range(100):
        model = PCA(1, epsilon=1, delta="1e-6", bounds=(-1, 1), centered=True, random=Random.deterministic(seed)).fit(rows)
        wide += model.radius_**2 > 1.01 * 1.6 * 0.05
    assert wide <= 3


def test_the_ball_is_not_widened_for_less_than_the_noise_that_it_costs() -> None:
    """Three factors in thirty columns, which Laplace noise nearly hides: a wider ball had the worse directions."""
    draw = np.random.default_rng(5)
    turn = draw.normal(size=(3, 30)) * np.array([[0.3], [0.2], [0.1]])
    X = np.clip(draw.normal(size=(5000, 3)) @ turn + draw.normal(0, 0.05, (5000, 30)), -3, 3)
    fits = [PCA(3, epsilon=1, bounds=(-3, 3), method="laplace", random=Random.deterministic(seed)).fit(X) for seed in range(8)]
    assert np.mean([captured(X, model.components_) for model in fits]) > 0.905
