"""The matrix mechanism: structured strategies against written-out matrices, sensitivities, errors, margins, the search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.errors import InvalidParameter
from cloister.noise._optimise import level_strategies, tree_weights, wavelet_weights
from cloister.noise.matrix import MatrixMechanism, best_strategy, sum_of_laplace
from cloister.noise.random import Random
from cloister.noise.strategies import Product, Strategy, Tree, Wavelet, Written
from cloister.noise.trees import level_energies
from cloister.noise.workloads import Each, Factor, Prefixes, Questions, Ranges, Total, Workload
from cloister.privacy.guarantee import ZCDP, ApproxDP, PureDP

STRATEGIES: list[Strategy] = [
    Tree(7, 7, (1, 0)),
    Tree(7, 7, (1, 1)),
    Tree(7, 2, (1, 1, 1, 1)),
    Tree(7, 3, (5, 0, 2)),
    Tree(8, 2, (3, 1, 4, 1)),
    Wavelet(7, (1, 1, 1, 1)),
    Wavelet(8, (5, 3, 2, 7)),
    Written([[2, 0, 0], [0, 1, -1], [1, 1, 1], [0, 0, 3]]),
]
FACTORS: list[Factor] = [Each(7), Total(7), Prefixes(7), Ranges(7), Questions(np.arange(21).reshape(3, 7) % 4 - 1)]


def written(strategy: Strategy) -> np.ndarray:
    return strategy.apply(np.eye(strategy.cells, dtype=np.int64))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_a_structured_strategy_is_its_matrix(strategy: Strategy) -> None:
    matrix = written(strategy)
    assert matrix.shape == (strategy.rows, strategy.cells)
    assert np.linalg.matrix_rank(matrix) == strategy.cells
    assert strategy.l1 == np.abs(matrix).sum(axis=0).max()
    assert strategy.l2_squared == (matrix**2).sum(axis=0).max()
    answers = np.random.default_rng(1).integers(-9, 9, (strategy.rows, 2))
    padded = strategy.cells != getattr(strategy, "padded", strategy.cells)
    if not padded:
        assert strategy.reconstruct(answers) == pytest.approx(np.linalg.pinv(matrix) @ answers)
        for factor in (Prefixes(strategy.cells), Ranges(strategy.cells)):
            weights = factor.dense() @ np.linalg.pinv(matrix)
            assert strategy.coefficients(factor.dense()) == pytest.approx(weights)
            assert strategy.energy(factor) == pytest.approx((weights**2).sum())


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_reconstruction_is_unbiased_and_its_weights_are_what_it_does(strategy: Strategy) -> None:
    """For padded trees too, whose least squares is over the padded cells."""
    cells = np.arange(strategy.cells) ** 2
    assert strategy.reconstruct(strategy.apply(cells)) == pytest.approx(cells)
    answers = np.random.default_rng(2).standard_normal(strategy.rows)
    factor = Prefixes(strategy.cells)
    assert strategy.coefficients(factor.dense()) @ answers == pytest.approx(factor.apply(strategy.reconstruct(answers)))
    assert strategy.energy(factor) == pytest.approx((strategy.coefficients(factor.dense()) ** 2).sum())


@pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: type(factor).__name__)
def test_a_factor_is_its_matrix(factor: Factor) -> None:
    dense = factor.dense().astype(float)
    assert dense.shape == (factor.rows, factor.cells)
    assert factor.gram() == pytest.approx(dense.T @ dense)
    cells = np.random.default_rng(3).integers(0, 9, (7, 2))
    assert factor.apply(cells) == pytest.approx(dense @ cells)
    assert np.concatenate([factor.part(0, 1), factor.part(1, factor.rows)]) == pytest.approx(dense)
    for size in (1, 2, 3, 5, 7, 9):
        blocks = [dense[:, first : first + size].sum(axis=1) for first in range(0, 7, size)]
        assert factor.block_energy(size) == pytest.approx(sum((block**2).sum() for block in blocks))
    assert sum(level_energies(factor, 2, 3)) == pytest.approx((dense**2).sum())


def test_a_product_is_the_kronecker_product() -> None:
    product = Product((Tree(3, 3, (2, 1)), Wavelet(4, (1, 2, 3))))
    matrix = np.kron(*(written(factor) for factor in product.factors))
    assert (product.l1, product.l2_squared) == (np.abs(matrix).sum(axis=0).max(), (matrix**2).sum(axis=0).max())
    cells = np.arange(12)
    assert product.apply(cells).ravel() == pytest.approx(matrix @ cells)
    factors = (Prefixes(3), Ranges(4))
    weights = np.kron(*(factor.dense() for factor in factors)) @ np.linalg.pinv(matrix)
    second, fourth = product.moments(factors)
    assert second == pytest.approx((weights**2).sum(axis=1))
    assert fourth == pytest.approx((weights**4).sum(axis=1))
    assert product.energy(factors) == pytest.approx((weights**2).sum())
    workload = Workload.of(*factors) + Workload.of(Total(3), Each(4))
    assert workload.answers(cells) == pytest.approx(
        np.concatenate([np.kron(*(factor.dense() for factor in factors)) @ cells, cells.reshape(3, 4).sum(axis=0)])
    )


def test_answers_of_a_strategy_are_exact_for_counts_of_any_size() -> None:
    cells = [2**61, 2**61, 1, 2**61]
    for strategy in (Tree(4, 2, (1000, 1, 1)), Wavelet(4, (3, 3, 5)), Written(np.eye(4, dtype=int) * 9 + 1)):
        matrix = written(strategy).tolist()
        assert strategy.apply(np.array(cells)).tolist() == [sum(a * x for a, x in zip(row, cells, strict=True)) for row in matrix]


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP("0.5")])
def test_the_noise_pays_for_the_strategys_sensitivity(guarantee: PureDP | ZCDP) -> None:
    mechanism = MatrixMechanism(
        workload=Workload.of(Prefixes(8), Each(3)),
        strategy=Product((Tree(8, 2, (1, 1, 1, 1)), Tree(3, 3, (1, 2)))),
        guarantee=guarantee,
        sensitivity=2,
    )
    assert mechanism.noise.guarantee == guarantee
    if isinstance(guarantee, PureDP):
        assert mechanism.noise.scale == 2 * 4 * 3
    else:
        assert mechanism.noise.scale_squared == 4 * 4 * 5
    assert mechanism.variances().sum() == pytest.approx(mechanism.total_variance)
    assert mechanism.variance == pytest.approx(mechanism.variances().mean())


@pytest.mark.parametrize("guarantee", [PureDP(1), ZCDP("0.5")])
def test_errors_are_those_observed_and_margins_cover(guarantee: PureDP | ZCDP) -> None:
    mechanism = MatrixMechanism.best(Workload.of(Prefixes(16)) + Workload.of(Total(16)), guarantee)
    random, cells = Random.deterministic(6), np.arange(16)
    truth = mechanism.workload.answers(cells)
    errors = np.array([mechanism.release(cells, random=random) for _ in range(4000)]) - truth
    assert (errors**2).mean() == pytest.approx(mechanism.variance, rel=0.06)
    assert errors.var(axis=0) == pytest.approx(mechanism.variances(), rel=0.2)
    inside = (np.abs(errors) <= mechanism.margin(0.95)).mean(axis=0)
    assert inside == pytest.approx(0.95, abs=0.021)  # 6 deviations
    assert inside.mean() == pytest.approx(0.95, abs=0.006)


def test_released_answers_agree_with_one_table() -> None:
    mechanism = MatrixMechanism.best(Workload.of(Ranges(6)), PureDP(1))
    released = dict(
        zip(zip(*np.triu_indices(6), strict=True), mechanism.release([5] * 6, random=Random.deterministic(1)), strict=True)
    )
    assert released[0, 2] + released[3, 5] == pytest.approx(released[0, 5])


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("cells", [5, 32])
@pytest.mark.parametrize("kind", [Each, Total, Prefixes, Ranges])
def test_the_best_strategy_beats_every_candidate_and_no_bound(pure: bool, cells: int, kind: type) -> None:
    factor = kind(cells)

    def error(strategy: Strategy) -> float:
        return strategy.energy(factor) * (strategy.l1**2 if pure else strategy.l2_squared)

    (best,) = best_strategy(Workload.of(factor), pure=pure).factors
    candidates = [
        *level_strategies(cells, lambda b, h: level_energies(factor, b, h), pure=pure),
        Tree(cells, 2, (1,) * (math.ceil(math.log2(cells)) + 1)),
        Wavelet(cells, (1,) * (math.ceil(math.log2(cells)) + 1)),
    ]
    assert error(best) <= min(error(candidate) for candidate in candidates) * (1 + 1e-6)
    # the singular value bound holds for L2 sensitivity, and so for L1, which is never smaller (Li & Miklau 2013)
    singular = np.sqrt(np.maximum(np.linalg.eigvalsh(factor.gram()), 0)).sum() ** 2 / cells
    assert error(best) >= singular * (1 - 1e-9)
    if not pure:
        assert error(best) <= 1.15 * singular


def test_the_search_finds_what_is_known() -> None:
    for pure in (True, False):
        assert best_strategy(Workload.of(Each(9)), pure=pure).factors[0].energy(Each(9)) == pytest.approx(9)
        total = best_strategy(Workload.of(Total(64)), pure=pure)
        assert total.energy([Total(64)]) * (total.l1**2 if pure else total.l2_squared) < 1.01
    two = best_strategy(Workload.of(Total(10), Each(3)), pure=True)
    assert two.energy([Total(10), Each(3)]) * two.l1**2 < 3 * 1.02


def test_fitted_weights_beat_equal_ones() -> None:
    factor = Ranges(64)
    energies = level_energies(factor, 2, 6)
    for pure in (True, False):
        pairs = [
            (Tree(64, 2, tree_weights(energies, 2, pure=pure)), Tree(64, 2, (1,) * 7)),
            (Wavelet(64, wavelet_weights(energies, pure=pure)), Wavelet(64, (1,) * 7)),
        ]
        for fitted, equal in pairs:
            errors = [item.energy(factor) * (item.l1**2 if pure else item.l2_squared) for item in (fitted, equal)]
            assert errors[0] < errors[1]


def test_ten_thousand_cells_on_one_axis() -> None:
    workload = Workload.of(Prefixes(10_000))
    mechanism = MatrixMechanism.best(workload, ZCDP("0.5"))
    alone = MatrixMechanism(workload=workload, strategy=Tree(10_000, 10_000, (1, 0)), guarantee=ZCDP("0.5"))
    assert alone.total_variance == pytest.approx(10_000 * 10_001 / 2, rel=1e-6)
    assert mechanism.variance < alone.variance / 200
    released = mechanism.release(np.ones(10_000, dtype=int), random=Random.deterministic(1))
    error = float(((released - np.arange(1, 10_001)) ** 2).mean())
    assert 0.2 < error / mechanism.variance < 5


def test_ten_thousand_cells_on_two_axes() -> None:
    workload = Workload.of(Prefixes(100), Total(100))
    mechanism = MatrixMechanism.best(workload, PureDP(1))
    assert workload.cells == 10_000
    assert mechanism.strategy.shape == (100, 100)
    assert mechanism.noise.guarantee == PureDP(1)


def test_quantiles_of_sums_of_laplace() -> None:
    from scipy import stats

    assert sum_of_laplace(1, 0.95) == pytest.approx(-math.log(0.05) / math.sqrt(2))
    assert sum_of_laplace(math.inf, 0.99) == pytest.approx(stats.norm.ppf(0.995))
    # two equal Laplace numbers: P(|S| > m) = (1 + m/2)e^(−m) at scale 1, variance 4
    m = 2 * sum_of_laplace(2, 0.95)
    assert (1 + m / 2) * math.exp(-m) == pytest.approx(0.05, rel=1e-3)
    assert sum_of_laplace(1e4, 0.95) == pytest.approx(1.96, abs=1e-3)


def test_refusals() -> None:
    workload = Workload.of(Each(4))
    for strategy in (Tree(5, 5, (1, 0)), Product((Tree(2, 2, (1, 0)), Tree(2, 2, (1, 0))))):
        with pytest.raises(InvalidParameter):
            MatrixMechanism(workload=workload, strategy=strategy, guarantee=PureDP(1))
    for guarantee in (ApproxDP(1, "1e-6"), PureDP(0), ZCDP(0), ZCDP(1, "1e-6")):
        with pytest.raises(InvalidParameter):
            MatrixMechanism.best(workload, guarantee)  # type: ignore[arg-type]
    for levels in ((1, 1), (0, 1, 1), (1, -1, 1), (1, 1, 0.5)):
        with pytest.raises(InvalidParameter):
            Tree(4, 2, levels)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Wavelet(4, (1, 0, 1))
    for matrix in ([[1, 1]], [[1, 1], [1, 1]], [[0.5]], [1]):
        with pytest.raises(InvalidParameter):
            Written(matrix)
    with pytest.raises(InvalidParameter):
        Workload.of(Each(4)) + Workload.of(Each(5))
    with pytest.raises(InvalidParameter):
        Questions([[float("nan")]])
    with pytest.raises(InvalidParameter):
        Ranges(10_000).dense()
    with pytest.raises(InvalidParameter) as caught:
        MatrixMechanism.best(workload, PureDP(1)).release([1, 2, 3])
    assert "[1, 2, 3]" not in str(caught.value)


def test_a_strategy_of_huge_numbers_never_wraps() -> None:
    """A sum beyond 64 bits is a Python integer: answers that wrapped would be 2⁶⁴ apart between neighbours."""
    matrix = 2**60 * np.ones((8, 8), dtype=np.int64) + 2**59 * np.eye(8, dtype=np.int64)
    strategy = Written(matrix * 2)
    for cells in (np.ones(8, dtype=np.int64), np.arange(8) - 4, np.full(8, 2**40)):
        assert strategy.apply(cells).tolist() == (matrix.astype(object) * 2 @ cells.astype(object)).tolist()
    assert strategy.l1 == 8 * 2**61 + 2**60
