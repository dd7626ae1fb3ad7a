"""The fit: its gradient is that of the misfit, noise-free marginals come back, and structure is found under noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cloister.noise import Random
from cloister.synth.measuring import Marginals, Noisy
from cloister.synth.mixture import Mixture, _Problem, components_for, fitted, independent, on_simplex
from cloister.synth.workload import Method, parts_for


def marginals(
    codes: np.ndarray, sizes: tuple[int, ...], noise: float = 0.0, *, laplace: bool = False, method: Method = "pairs"
) -> Marginals:
    """The tables of some rows, with Gaussian noise of this standard deviation (of a made-up generator)."""
    random, tables = Random.deterministic(5), {}
    for kept in parts_for(sizes, method):
        shape = [sizes[place] for place in kept]
        exact = np.bincount(np.ravel_multi_index([codes[:, place] for place in kept], shape), minlength=int(np.prod(shape)))
        uniform = (random.words(12 * exact.size) * 2.0**-64).reshape(12, -1).sum(axis=0) - 6
        tables[kept] = Noisy((exact + noise * uniform).reshape(shape), noise**2, laplace)
    return Marginals(sizes=sizes, tables=tables)


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    """Four columns, of which the second follows the first, and the fourth the third."""
    number = np.arange(5000)
    first, third = number % 4, number // 7 % 3
    return np.column_stack([first, (first + (number % 10 == 0)) % 4, third, np.where(number % 5 == 0, number % 2, third % 2)])


SIZES = (4, 4, 3, 2)


@pytest.mark.parametrize("method", ["pairs", "triples"])
@pytest.mark.parametrize("laplace", [False, True])
def test_the_gradient_is_that_of_the_misfit(codes: np.ndarray, laplace: bool, method: Method) -> None:
    found = marginals(codes, SIZES, 200.0, laplace=laplace, method=method)
    problem = _Problem(found, penalty=0.3)
    for name in ("pairs", "trust", "ones", "one_trust", "start"):  # finite differences want doubles
        setattr(problem, name, getattr(problem, name).astype(np.float64))
    problem.apart = {kept: replace(each, shares=each.shares.astype(np.float64)) for kept, each in problem.apart.items()}
    ends = np.cumsum(SIZES)
    triples = [kept for kept in found.tables if len(kept) == 3]
    assert (len(triples), len(problem.apart)) == ((4, 4) if method == "triples" else (0, 0))

    def threefold(kept: tuple[int, ...], q: np.ndarray, w: np.ndarray) -> np.ndarray:
        one, two, three = (q[:, ends[place] - SIZES[place] : ends[place]] for place in kept)
        told = np.einsum("k,ka,kb,kc->abc", w, one, two, three) - found.tables[kept].counts / problem.rows
        return np.asarray(told * problem.rows / np.sqrt(found.tables[kept].variance)).ravel()

    def misfit(logits: np.ndarray, shares: np.ndarray) -> float:
        q, w = problem.probabilities(logits), np.exp(shares) / np.exp(shares).sum()
        away = np.concatenate([
            (np.triu(problem.trust > 0) * (q.T @ (q * w[:, None]) - problem.pairs) * problem.trust).ravel(),
            (w @ q - problem.ones) * problem.one_trust,
            *[threefold(kept, q, w) for kept in triples],
        ])  # fmt: skip
        near = float(problem.smooth)
        huber = np.where(abs(away) < near, away**2 / 2 / near, abs(away) - near / 2) * np.sqrt(2)
        spread = problem.penalty / 2 * ((logits - logits.mean(axis=0)) ** 2).sum()
        return float((huber if laplace else away**2 / 2).sum() + spread)

    random = Random.deterministic(2)
    logits = (random.words(5 * 13) * 2.0**-64).reshape(5, 13) - 0.5
    shares = random.words(5) * 2.0**-64
    slopes = problem.gradient(logits, shares)
    for place, (values, slope) in enumerate(zip((logits, shares), slopes, strict=True)):
        flat = values.reshape(-1)
        for cell in range(0, flat.size, 3):
            before, step = flat[cell], 1e-6
            flat[cell] = before + step
            above = misfit(logits, shares)
            flat[cell] = before - step
            below = misfit(logits, shares)
            flat[cell] = before
            assert slope.reshape(-1)[cell] == pytest.approx((above - below) / 2 / step, rel=1e-3, abs=1e-2), (place, cell)


@pytest.mark.parametrize("laplace", [False, True])
def test_wide_columns_are_fitted_pair_by_pair_to_the_same_misfit(
    codes: np.ndarray, laplace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several columns of hundreds of values: a matrix of all states by all states took most of a minute."""
    sizes, random = (600, 500), Random.deterministic(2)
    tables = {kept: Noisy(np.ones([sizes[place] for place in kept]), 50.0, laplace) for kept in ((0,), (1,), (0, 1))}
    wide = _Problem(Marginals(sizes=sizes, tables=tables))
    assert (wide.pairs.size, list(wide.apart)) == (0, [(0, 1)])
    found = marginals(codes, SIZES, 20.0, laplace=laplace)
    del found.tables[(1, 2)]  # of which it is known all the same what is empty
    zeros = {kept: np.arange(SIZES[kept[0]] * 3).reshape(-1, 3) % 4 == 0 for kept in ((0, 2), (1, 2))}
    whole = _Problem(found, zeros)
    monkeypatch.setattr("cloister.synth.mixture._WIDE", 0)
    monkeypatch.setattr("cloister.synth.mixture._LARGE", 0)
    apart, at = _Problem(found, zeros), whole.begun(5, random)
    assert (whole.pairs.size, apart.pairs.size) == (13 * 13, 0)
    for one, other in zip(whole.gradient(*at, 0.5), apart.gradient(*at, 0.5), strict=True):
        assert other == pytest.approx(one, rel=1e-4, abs=1e-4 * np.abs(one).max())


def test_marginals_without_noise_come_back(codes: np.ndarray) -> None:
    found = marginals(codes, SIZES)
    model = fitted(found)
    for kept, table in found.tables.items():
        assert np.abs(model.marginal(kept) * len(codes) - table.counts).sum() / 2 < 0.02 * len(codes), kept


def test_pairs_are_found_under_noise_that_hides_single_cells(codes: np.ndarray) -> None:
    """Total variation over all pairs: below that of the noisy tables themselves, and well below that of independent columns."""
    noisy, exact = marginals(codes, SIZES, 150.0), marginals(codes, SIZES)
    pairs = [kept for kept in exact.tables if len(kept) == 2]

    def away(shares: dict[tuple[int, ...], np.ndarray]) -> float:
        return float(np.mean([np.abs(shares[kept] - exact.tables[kept].counts / len(codes)).sum() / 2 for kept in pairs]))

    mixture, apart = fitted(noisy), independent(noisy)
    measured = away({kept: noisy.tables[kept].counts / len(codes) for kept in pairs})
    assert away({kept: mixture.marginal(kept) for kept in pairs}) < 0.9 * measured
    assert away({kept: mixture.marginal(kept) for kept in pairs}) < 0.5 * away({kept: apart.marginal(kept) for kept in pairs})


def test_triples_tell_what_pairs_do_not() -> None:
    """A third column that is the parity of two others: no pair shows it, and the mixture holds it once the triple is measured."""
    number = np.arange(4000)
    one, two = number % 2, number // 2 % 2
    rows = np.column_stack([one, two, (one + two) % 2])
    by_pairs, by_triples = (fitted(marginals(rows, (2, 2, 2), 20.0, method=method)) for method in ("pairs", "triples"))
    exact = np.bincount(np.ravel_multi_index(rows.T, (2, 2, 2)), minlength=8).reshape(2, 2, 2) / len(rows)
    away = [np.abs(model.marginal((0, 1, 2)) - exact).sum() / 2 for model in (by_pairs, by_triples)]
    assert away[0] > 0.4
    assert away[1] < 0.1


def test_the_same_release_gives_the_same_model(codes: np.ndarray) -> None:
    found = marginals(codes, SIZES, 100.0)
    one, other = fitted(found), fitted(found)
    assert (one.weights == other.weights).all()
    assert all((a == b).all() for a, b in zip(one.columns, other.columns, strict=True))


def test_what_noise_alone_says_is_still_a_distribution() -> None:
    codes = np.zeros((0, 4), dtype=np.int64)
    for model in (fitted(marginals(codes, SIZES, 1000.0)), independent(marginals(codes, SIZES, 1000.0))):
        for place, size in enumerate(SIZES):
            shares = model.marginal((place,))
            assert shares.shape == (size,)
            assert (shares >= 0).all()
            assert shares.sum() == pytest.approx(1)


def test_the_rows_are_the_inverse_variance_mean_of_all_totals() -> None:
    tables = {(0,): Noisy(np.array([60.0, 46.0]), 4.0, False), (1,): Noisy(np.array([50.0, 25.0, 25.0]), 8.0, False)}
    found = Marginals(sizes=(2, 3), tables=tables)
    assert found.rows() == (pytest.approx((106 / 8 + 100 / 24) / (1 / 8 + 1 / 24)), pytest.approx((1 / 8 + 1 / 24) ** -0.5))


def test_projecting_invents_no_rows_where_clipping_does() -> None:
    """4,595 empty cells of Laplace noise keep half a scale each when clipped at 0, and a tenth of that on the simplex."""
    words = Random.deterministic(3).words(4595) * 2.0**-64
    noise = -np.sign(words - 0.5) * np.log1p(-2 * np.abs(words - 0.5))
    counts = np.concatenate([np.full(100, 300.0), noise])
    assert 2000 < np.maximum(noise, 0).sum() < 2600
    found = on_simplex(counts, 30_000.0)
    assert found.sum() == pytest.approx(30_000)
    assert found[100:].sum() < 300


def test_counts_beyond_the_last_digit_are_projected() -> None:
    """Beside counts of 10²⁰ a total of 1 is below the last digit: nothing lay above what was taken off, a raw IndexError."""
    assert on_simplex(np.array([1e20, -3e20, 1e20]), 1.0).tolist() == [0.5, 0.0, 0.5]
    assert on_simplex(np.array([7e25, -np.inf, 2e25]), 3.0).tolist() == [3.0, 0.0, 0.0]


def test_more_rows_over_the_noise_tell_more_components() -> None:
    numbers = [components_for(signal) for signal in (0.01, 1, 10, 100, 1000, 10_000)]
    assert numbers == sorted(numbers)
    assert (numbers[0], numbers[-1]) == (1, 160)


def test_a_marginal_of_the_mixture_is_the_sum_of_those_of_more_columns() -> None:
    random = Random.deterministic(9)
    columns = tuple(random.words(3 * size).reshape(3, size) * 2.0**-64 for size in (2, 4, 3))
    mixture = Mixture(np.array([0.2, 0.3, 0.5]), tuple(column / column.sum(axis=1, keepdims=True) for column in columns))
    whole = mixture.marginal((0, 1, 2))
    np.testing.assert_allclose(whole.sum(axis=1), mixture.marginal((0, 2)))
    np.testing.assert_allclose(whole.sum(axis=(0, 2)), mixture.marginal((1,)))
