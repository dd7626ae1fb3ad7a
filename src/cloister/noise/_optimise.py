"""The gradient searches behind `best_strategy`: weights of levels, and whole strategies for one axis of up to some hundred cells.

All of it is public arithmetic on the workload, in floating point. Its result is rounded to integers, and the sensitivity is
then taken from those integers: a poor search costs accuracy, never privacy.
"""

import math
from collections.abc import Callable, Sequence
from math import gcd

import numpy as np

from cloister.noise.strategies import Written
from cloister.noise.trees import Tree, Wavelet, height_of
from cloister.noise.workloads import Matrix

_GRID = 1 << 10
_FINE = 1 << 20


def tree_weights(energies: Sequence[float], branching: int, *, pure: bool) -> tuple[int, ...]:
    """Integer weights for the levels of a tree: the least of S(w)²·Σ t_l/λ_l(w), S the L1 or L2 sensitivity, by gradient.

    >>> tree_weights([0.0, 0.0, 16.0], 4, pure=True)
    (1, 0, 1024)
    """
    t, sizes = np.asarray(energies), float(branching) ** np.arange(len(energies))

    def value_and_slope(theta: Matrix) -> tuple[float, Matrix]:
        weights = theta**2
        values = np.cumsum(weights**2 * sizes)
        error = float((t / values).sum())
        # d(Σ t/λ)/dw_j = −Σ_{l ≥ j} t_l/λ_l² · 2 w_j s_j
        falls = -np.cumsum((t / values**2)[::-1])[::-1] * 2 * weights * sizes
        reach = weights.sum() if pure else math.sqrt(float((weights**2).sum()))
        rises = np.ones_like(weights) if pure else weights / reach
        slope = 2 * rises / reach + falls / error  # of the logarithm
        return math.log(reach**2 * error), slope * 2 * theta

    theta = adam(value_and_slope, np.ones(len(t)), steps=600, rate=0.02)
    weights = theta**2
    weights[0] = max(weights[0], weights.max() / _GRID)
    return _whole_weights(weights, floor=0)


def wavelet_weights(energies: Sequence[float], *, pure: bool) -> tuple[int, ...]:
    """Integer weights for the Haar wavelet, in closed form: w³ ∝ t/s for the L1 sensitivity, w⁴ ∝ t/s for L2.

    >>> wavelet_weights([1.0, 1.0, 1.0], pure=False)
    (1024, 861, 861)
    """
    top = len(energies) - 1
    shares = [energy / 2 ** min(level + 1, top) for level, energy in enumerate(energies)]
    return _whole_weights(np.asarray(shares) ** (1 / 3 if pure else 1 / 4), floor=1)


def level_strategies(cells: int, energies_of: Callable[[int, int], Sequence[float]], *, pure: bool) -> list[Tree | Wavelet]:
    """Identity, total and cells, hierarchies of several branchings with equal and with fitted weights, and the fitted Haar
    wavelet.

    >>> len(level_strategies(8, lambda branching, height: [1.0] * (height + 1), pure=True)) > 5
    True
    """
    found: list[Tree | Wavelet] = [Tree(cells, max(2, cells), (1,) + (0,) * (cells > 1))]
    if cells == 1:
        return found
    for branching in sorted({*range(2, min(17, cells)), round(math.sqrt(cells)) + 1, cells}):
        if branching < 2:
            continue
        height = height_of(cells, branching)
        found.append(Tree(cells, branching, (1,) * (height + 1)))
        found.append(Tree(cells, branching, tree_weights(energies_of(branching, height), branching, pure=pure)))
    height = height_of(cells, 2)
    found.append(Wavelet(cells, wavelet_weights(energies_of(2, height), pure=pure)))
    return found


def search_pure(gram: Matrix) -> Written:
    """A strategy for the L1 sensitivity: A = [I; Θ]·D, Θ ≥ 0 with few rows, D such that all columns sum to 1 (McKenna et al.
    2018, OPT₀).

    With d = 1 + column sums of Θ, G_d = diag(d)·G·diag(d) and B = I + ΘᵀΘ, the error is f = tr(G_d B⁻¹), and
    ∂f/∂Θ = −2 Θ B⁻¹ G_d B⁻¹ + 1·rᵀ with r = 2 (G ∘ B⁻¹) d.

    >>> search_pure(np.ones((4, 4)) + np.eye(4)).cells
    4
    """
    n = len(gram)
    extra = max(1, n // 8)
    start = np.sqrt(np.modf(np.arange(1, extra * n + 1).reshape(extra, n) * (math.sqrt(5) - 1) / 2)[0])
    scaled = gram / np.trace(gram)

    def value_and_slope(phi: Matrix) -> tuple[float, Matrix]:
        theta = phi**2
        inverse = np.linalg.inv(np.eye(n) + theta.T @ theta)
        d = 1 + theta.sum(axis=0)
        weighted = scaled * np.outer(d, d)
        error = float(np.einsum("ij,ij->", weighted, inverse))
        slope = -2 * theta @ (inverse @ weighted @ inverse) + 2 * ((scaled * inverse) @ d)
        return math.log(error), slope / error * 2 * phi

    theta = adam(value_and_slope, start, steps=300, rate=0.03) ** 2
    d = 1 + theta.sum(axis=0)
    return _written(np.concatenate([np.diag(1 / d), theta / d]))


def search_concentrated(gram: Matrix) -> Written:
    """The best strategy for the L2 sensitivity: min tr(X⁻¹G) over positive definite X = AᵀA with unit diagonal, a convex problem.

    At the optimum X = D^(−½)(D^½ G D^½)^½ D^(−½) for a diagonal D of multipliers v; v ← diag((D^½ G D^½)^½) converges to it
    (Denisov, McMahan, Rush, Smith & Thakurta 2022).

    >>> search_concentrated(np.ones((4, 4)) + np.eye(4)).cells
    4
    """
    n = len(gram)
    scaled = gram * (n / np.trace(gram)) + 1e-9 * np.eye(n)
    multipliers = np.sqrt(np.diag(scaled))
    for _ in range(80):
        root = np.sqrt(multipliers)
        values, vectors = np.linalg.eigh(scaled * np.outer(root, root))
        half = (vectors * np.sqrt(np.maximum(values, 1e-18))) @ vectors.T
        ratio = np.diag(half) / multipliers
        if np.abs(ratio - 1).max() < 1e-5:
            break
        multipliers = np.diag(half).copy()
    X = half / np.outer(root, root)
    values, vectors = np.linalg.eigh(X)
    return _written((vectors * np.sqrt(np.maximum(values, 1e-12))) @ vectors.T)


def adam(value_and_slope: Callable[[Matrix], tuple[float, Matrix]], start: Matrix, *, steps: int, rate: float) -> Matrix:
    """The best point that Adam (Kingma & Ba 2015) meets, with a rate that falls to zero.

    >>> bool(abs(adam(lambda x: (float(x[0] ** 2), 2 * x), np.ones(1), steps=300, rate=0.1)[0]) < 0.01)
    True
    """
    point, best, least = start.astype(np.float64), start, math.inf
    mean, square = np.zeros_like(point), np.zeros_like(point)
    for step in range(1, steps + 1):
        value, slope = value_and_slope(point)
        if value < least:
            least, best = value, point.copy()
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope**2
        pace = rate * (1 - (step - 1) / steps)
        point = point - pace * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-12)
    return np.asarray(best)


def _whole_weights(weights: Matrix, *, floor: int) -> tuple[int, ...]:
    top = float(weights.max())
    numbers = [max(floor, round(float(weight) / top * _GRID)) for weight in weights] if top > 0 else [1] * len(weights)
    common = gcd(*numbers)
    return tuple(number // common for number in numbers)


def _written(matrix: Matrix) -> Written:
    return Written(np.rint(matrix / np.abs(matrix).max() * _FINE).astype(np.int64))
