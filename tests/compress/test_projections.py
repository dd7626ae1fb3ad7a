"""Projections against the equations that they solve, scikit-learn's suite, and each other."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.utils.estimator_checks import check_estimator

from cloister.compress import (
    DCA,
    DUCA,
    KDCA,
    LDA,
    MDR,
    MDS,
    PCA,
    RUCA,
    KernelPCA,
    MultiplicativeNoise,
    RandomProjection,
    Rounded,
    Scatter,
)
from cloister.compress.drawing import normal
from cloister.compress.projections import NoSecret
from cloister.compress.scatter import positive
from cloister.errors import InvalidParameter
from cloister.noise import Random
from cloister.privacy import PureDP

Floats = npt.NDArray[np.float64]


def drawn(rows: int, columns: int, seed: int = 1) -> Floats:
    return normal(rows * columns, Random.deterministic(seed)).reshape(rows, columns)


def classes(rows: int = 90, columns: int = 5, seed: int = 1) -> tuple[Floats, Any, Any]:
    """Three classes of use along the first column, two of the secret along the second."""
    use, secret = np.arange(rows) % 3, np.arange(rows) // 3 % 2
    X = drawn(rows, columns, seed) * np.linspace(1, 2, columns)
    X[:, 0] += 3 * use
    X[:, 1] += 4 * secret + use
    return X, use, secret


@pytest.mark.parametrize(
    "made",
    [
        PCA(),
        LDA(),
        DCA(),
        RUCA(),
        MDR(),
        DUCA(),
        KernelPCA(),
        KDCA(),
        MDS(),
        RandomProjection(random_state=1),
        RandomProjection(kind="sparse", random_state=1),
        RandomProjection(kind="hadamard", random_state=1),
        MultiplicativeNoise(random_state=1),
        Rounded(levels=3),
    ],
    ids=repr,
)
def test_it_passes_the_whole_suite_of_scikit_learn(made: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = check_estimator(made, on_fail=None, on_skip=None)
    assert {each["check_name"]: str(each["exception"]) for each in outcomes if each["status"] == "failed"} == {}
    assert sum(each["status"] == "passed" for each in outcomes) >= 40


@pytest.mark.parametrize(
    ("made", "above", "below"),
    [
        (PCA(3), lambda s, u, p, one: s, lambda s, u, p, one: one),
        (LDA(2, rho=2.0), lambda s, u, p, one: u, lambda s, u, p, one: s - u + 2 * one),
        (DCA(4, rho=2.0, rho_prime=-0.3), lambda s, u, p, one: u - 0.3 * one, lambda s, u, p, one: s + 2 * one),
        (
            RUCA(4, rho=2.0, rho_prime=0.3, rho_p=5.0),
            lambda s, u, p, one: u + 0.3 * one,
            lambda s, u, p, one: s + 2 * one + 5 * p,
        ),
        (MDR(4, rho=2.0, rho_prime=0.3), lambda s, u, p, one: u + 0.3 * one, lambda s, u, p, one: p + 2 * one),
        (DUCA(4, alpha=2.0, beta=3.0), lambda s, u, p, one: 2 * u - 3 * p, lambda s, u, p, one: one),
    ],
    ids=lambda each: repr(each) if hasattr(each, "fit") else "",
)
def test_directions_solve_their_eigenproblem_and_come_in_order(made: Any, above: Any, below: Any) -> None:
    X, use, secret = classes()
    scatter = Scatter.of_rows(X, use, secret)
    parts = scatter.total, scatter.utility, scatter.private, np.eye(X.shape[1])
    model = made.fit(X, use, secret)
    for value, direction in zip(model.eigenvalues_, model.components_, strict=True):
        np.testing.assert_allclose(above(*parts) @ direction, value * (below(*parts) @ direction), atol=1e-7)
        assert np.linalg.norm(direction) == pytest.approx(1)
    assert (np.diff(model.eigenvalues_) <= 1e-12).all()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X)) @ model.components_.T, X @ model.components_.T)


def test_scatters_are_sums_of_squares_about_means() -> None:
    X, use, secret = classes()
    scatter = Scatter.of_rows(X, use, secret)
    np.testing.assert_allclose(scatter.total, sum(np.outer(row, row) for row in X - X.mean(axis=0)))
    within = sum(
        (X[secret == each] - X[secret == each].mean(axis=0)).T @ (X[secret == each] - X[secret == each].mean(axis=0))
        for each in (0, 1)
    )
    np.testing.assert_allclose(scatter.total - scatter.private, within)


def test_principal_components_are_those_of_scikit_learn() -> None:
    from sklearn import decomposition

    X = drawn(50, 6)
    np.testing.assert_allclose(np.abs(PCA(4).fit_transform(X)), np.abs(decomposition.PCA(4).fit_transform(X)), atol=1e-9)


def test_the_directions_of_the_published_code_and_of_fisher() -> None:
    """Published: (S_B + S_W + (ρ + ρ′)I, S_W + ρI), λ = 1 + λ′. At ρ = ρ′ = 0 those of LDA, 1 + λ_LDA = 1/(1 − λ)."""
    from scipy.linalg import eigh

    X, use, _ = classes()
    scatter = Scatter.of_rows(X, use)
    assert scatter.utility is not None
    within, one = scatter.total - scatter.utility, np.eye(5)
    _, theirs = eigh(scatter.total + (10 - 0.05) * one, within + 10 * one)
    ours = DCA(5, rho=10 - 0.05, rho_prime=-0.05).fit(X, use)
    theirs = (theirs / np.linalg.norm(theirs, axis=0))[:, ::-1]
    np.testing.assert_allclose(np.abs((ours.components_ * theirs.T).sum(axis=1)), 1, atol=1e-9)
    fisher, plain = LDA(rho=0).fit(X, use), DCA(2, rho=0, rho_prime=1e-12).fit(X, use)
    np.testing.assert_allclose(1 + fisher.eigenvalues_, 1 / (1 - plain.eigenvalues_), rtol=1e-6)


def test_rows_of_more_columns_than_rows_are_solved_in_their_own_space() -> None:
    """Faces: the same directions as from the whole matrices; beyond them, any in which rows do not differ, at ρ′/ρ."""
    X, use, secret = classes(rows=12, columns=30)
    scatter = Scatter.of_rows(X, use, secret)
    assert scatter.basis is not None
    assert scatter.basis.shape == (11, 30)
    whole = Scatter(
        mean=scatter.mean,
        classes=3,
        **{name: scatter.basis.T @ getattr(scatter, name) @ scatter.basis for name in ("total", "utility", "private")},
    )
    for made in (DCA(2, rho=3, rho_prime=-0.1), RUCA(6, rho=3, rho_prime=-0.1), MDR(2, rho=1), DUCA(2)):
        narrow, wide = type(made)(**made.get_params()).fit_scatter(scatter), made.fit_scatter(whole)
        np.testing.assert_allclose(narrow.eigenvalues_, wide.eigenvalues_, atol=1e-9)
        np.testing.assert_allclose(np.abs((narrow.components_ * wide.components_).sum(axis=1)), 1, atol=1e-6)
    hidden = DCA(9, rho=3, rho_prime=0.1).fit(X, use)
    assert (np.ptp(hidden.transform(X), axis=0)[2:] < 1e-9).all(), "what varies least comes next"
    np.testing.assert_allclose(hidden.components_[2:] @ hidden.components_[2:].T, np.eye(7), atol=1e-9)
    np.testing.assert_allclose(hidden.eigenvalues_[2:], 0.1 / 3)
    everything = DCA(30, rho=3, rho_prime=-0.1).fit(X, use)
    np.testing.assert_allclose(everything.inverse_transform(everything.transform(X)), X, atol=1e-6)


def test_what_separates_the_secret_is_avoided_the_more_the_more_it_weighs() -> None:
    X, use, secret = classes(600)
    kept = []
    for weight in (0.0, 1.0, 10.0, 1000.0):
        direction = RUCA(1, rho=1.0, rho_prime=0.0, rho_p=weight).fit(X, use, secret).components_[0]
        scatter = Scatter.of_rows(X, use, secret)
        kept.append(float(direction @ scatter.private @ direction / (direction @ scatter.total @ direction)))  # type: ignore[operator]
    assert kept[0] > kept[1] > kept[2] > kept[3]
    same = DCA(1, rho=1.0, rho_prime=0.0).fit(X, use)
    np.testing.assert_allclose(RUCA(1, rho=1.0, rho_prime=0.0, rho_p=0).fit(X, use, secret).components_, same.components_)


def test_kernels() -> None:
    from sklearn.decomposition import KernelPCA as Theirs

    X, use, _ = classes()
    ours = KernelPCA(3, gamma=0.05).fit(X)
    theirs = Theirs(3, kernel="rbf", gamma=0.05).fit(X)
    new = drawn(7, 5, seed=3)
    np.testing.assert_allclose(np.abs(ours.transform(new)), np.abs(theirs.transform(new)), atol=1e-9)
    linear = KDCA(2, kernel="linear", rho=1.0, rho_prime=0.1).fit(X, use)
    plain = DCA(2, rho=1.0, rho_prime=0.1).fit(X, use)
    np.testing.assert_allclose(np.abs(linear.transform(new)), np.abs(plain.transform(new)), atol=1e-8)
    np.testing.assert_allclose(np.abs(MDS(3).fit_transform(X)), np.abs(PCA(3).fit_transform(X)), atol=1e-7)
    np.testing.assert_allclose(np.abs(MDS(3).fit(X).transform(new)), np.abs(PCA(3).fit(X).transform(new)), atol=1e-7)


@pytest.mark.parametrize("kind", ["gaussian", "sparse", "hadamard"])
def test_random_directions_keep_distances_as_far_as_they_say(kind: Any) -> None:
    """With 40 fixed seeds: 0.4 of them may fail at 99 %; more than 8 do with probability below 1e-8."""
    X = drawn(8, 256)
    failed = 0
    for seed in range(40):
        model = RandomProjection(200, kind=kind, random_state=seed).fit(X)
        z, most = model.transform(X), model.distortion(len(X))
        one, other = np.triu_indices(len(X), 1)
        ratio = ((z[one] - z[other]) ** 2).sum(axis=1) / ((X[one] - X[other]) ** 2).sum(axis=1)
        failed += bool((np.abs(ratio - 1) > most).any())
        assert 0 < most < 1
    assert failed <= 8


@pytest.mark.parametrize("kind", ["gaussian", "sparse", "hadamard"])
def test_one_direction_keeps_distances_as_far_as_it_says(kind: Any) -> None:
    """With 20 fixed seeds: 0.2 of them may fail at 99 %; more than 5 do with probability below 1e-8."""
    X, failed = drawn(200, 200), 0
    for seed in range(20):
        z = (model := RandomProjection(1, kind=kind, random_state=seed).fit(X)).transform(X)
        one, other = np.triu_indices(len(X), 1)
        ratio = (z[one] - z[other])[:, 0] ** 2 / ((X[one] - X[other]) ** 2).sum(axis=1)
        failed += bool((np.abs(ratio - 1) > model.distortion(len(X))).any())
    assert failed <= 5


def test_multiplied_noise_leaves_moments() -> None:
    X = np.abs(drawn(40_000, 2)) + 1
    noise = MultiplicativeNoise(0.4, random_state=5).fit(X)
    mean, variance = noise.moments(noise.transform(X))
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=0.02)
    np.testing.assert_allclose(variance, X.var(axis=0), rtol=0.25)
    assert MultiplicativeNoise().fit([[0.0, 5.0]]).transform([[0.0, 5.0]])[0, 0] == 0


def test_levels_tell_no_more_than_their_number() -> None:
    X, use, secret = classes(300)
    model = Rounded(RUCA(2), levels=3).fit(X, use, secret)
    z = model.transform(X)
    assert [len(np.unique(column)) for column in z.T] == [3, 3]
    assert not hasattr(Rounded(KDCA()), "inverse_transform")
    assert Rounded(DCA(), levels=2, n_components=1).fit(X, use).transform(X * 1e9).shape == (300, 1)


@pytest.mark.parametrize(
    ("made", "how", "why"),
    [
        (PCA(9), {}, "from 1 to the 5 columns"),
        (PCA(True), {}, "from 1 to the 5 columns"),
        (LDA(3), {"utility": "use"}, "3 classes have 2 directions"),
        (DCA(3, rho_prime=0), {"utility": "use"}, "nothing orders the others"),
        (DCA(), {}, "requires y"),
        (RUCA(), {"private": "secret"}, "requires y"),
        (DCA(), {"utility": np.zeros(90)}, "one class"),
        (DCA(), {"utility": np.zeros(5)}, "one label for each of 90 rows"),
        (DCA(), {"utility": np.array([np.nan, 1.0] * 45)}, "NaN"),
        (DCA(rho=-1), {"utility": "use"}, "0 or more"),
        (DCA(rho="x"), {"utility": "use"}, "it is a number"),  # type: ignore[arg-type]
        (RUCA(rho_p=np.inf), {"utility": "use", "private": "secret"}, "0 or more"),
        (KernelPCA(kernel="cosines"), {}, "known are rbf"),
        (RandomProjection(kind="dense"), {}, "known are gaussian"),  # type: ignore[arg-type]
        (MultiplicativeNoise(0), {}, "up to 5"),
        (Rounded(levels=1), {}, "from 2 to 1,000"),
    ],
)
def test_what_cannot_be_is_refused_in_its_own_words(made: Any, how: dict[str, Any], why: str) -> None:
    X, use, secret = classes()
    named = {"use": use, "secret": secret}
    given = {name: named[each] if isinstance(each, str) else each for name, each in how.items()}
    with pytest.raises(InvalidParameter, match=why):
        made.fit(X, **given)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("made", [DCA(rho=0, rho_prime=0), DCA(rho=0), LDA(rho=0), RUCA(rho=0)], ids=repr)
def test_equal_columns_need_a_regulariser(made: Any, seed: int) -> None:
    """Rounding leaves a little of the direction in which they differ; columns of other scales are no equal ones."""
    X, use, secret = classes(rows=30 + 7 * seed, columns=4, seed=seed + 1)
    X = X * 10.0 ** (np.arange(4) % 3 - 1) + 100 * seed
    with pytest.raises(InvalidParameter, match="singular"):
        made.fit(np.column_stack([X, X[:, seed % 4]]), use, secret)
    few = np.arange(0, 16, 4) + np.arange(4) % 3
    with pytest.raises(InvalidParameter, match="singular"):
        made.fit(np.column_stack([X[few], X[few, 1]]), use[few], [0, 1, 1, 0])
    assert np.isfinite(made.fit(X * [1e-6, 1, 1e6, 1], use, secret).components_).all()


@pytest.mark.parametrize("made", [LDA(), DCA(), RUCA(), MDR(), DUCA(), PCA(1)], ids=repr)
@pytest.mark.parametrize("noise", [0, 1, 30, 1e3, 1e6, -1e6])
def test_scatters_that_noise_spoiled_are_solved_all_the_same(made: Any, noise: float) -> None:
    """They were paid for. Noise may leave more between the classes than in all, or no variance at all."""
    X, use, secret = classes()
    exact = Scatter.of_rows(X, use, secret)
    assert exact.utility is not None
    assert exact.private is not None
    for seed in range(20):
        e = drawn(5, 5, seed + 1) * noise - (noise < 0) * 1e7 * np.eye(5)
        more = drawn(5, 2, seed + 1) * abs(noise) ** 0.5
        between = {"utility": exact.utility + more @ more.T, "private": exact.private + more[:, :1] @ more[:, :1].T}
        spoiled = replace(exact, total=positive(exact.total + e + e.T), cost=PureDP(1), **between)
        found = made.fit_scatter(spoiled)
        np.testing.assert_allclose(np.linalg.norm(found.components_, axis=1), 1)


def test_without_a_secret_none_is_hidden_and_that_is_said() -> None:
    X, use, secret = classes()
    with pytest.warns(NoSecret, match=r"fit\(X, utility, private\)"):
        alone = RUCA(1, rho=1.0, rho_prime=0.0).fit(X, use)
    np.testing.assert_allclose(alone.components_, DCA(1, rho=1.0, rho_prime=0.0).fit(X, use).components_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RUCA(1).fit(X, use, secret)


def test_a_column_without_variance_needs_a_regulariser() -> None:
    X, use, _ = classes()
    X[:, 3] = 7
    with pytest.raises(InvalidParameter, match="singular"):
        LDA(rho=0).fit(X, use)
    assert np.isfinite(LDA().fit(X, use).transform(X)).all()
    assert PCA().fit_transform([[5.0, 5.0]] * 3).tolist() == [[0, 0]] * 3
    with pytest.raises(InvalidParameter, match="needs 2 columns"):
        PCA(2).fit(X).inverse_transform([[1.0]])
    with pytest.raises(InvalidParameter, match="alike to the kernel"):
        KernelPCA().fit([[5.0, 5.0]] * 3)
