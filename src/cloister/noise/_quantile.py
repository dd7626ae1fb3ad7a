"""Quantiles of sums of independent Laplace numbers, between one of them and the normal law."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt


@lru_cache(maxsize=4096)
def sum_of_laplace(terms: float, confidence: float) -> float:
    """The m with P(|S| ≤ m) = confidence, for S of variance 1, the sum of `terms` equal Laplace numbers; infinitely many are
    normal.

    `terms` need not be whole: the law of characteristic function (1 + t²/2k)^(−k) exists for every k > 0. P(|S| ≤ m) is
    (2/π) ∫₀^∞ φ(t) sin(mt)/t dt (Gil-Pelaez 1951), inverted by bisection.

    >>> round(sum_of_laplace(1, 0.95), 4), round(sum_of_laplace(math.inf, 0.95), 4)
    (2.1183, 1.96)
    """
    low, high = 0.0, 2 * math.log(4 / (1 - confidence)) + 2
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (low, middle) if _inside(terms, middle) >= confidence else (middle, high)
    return high


def _inside(terms: float, m: float) -> float:
    if terms == math.inf:
        return math.erf(m / math.sqrt(2))
    if terms <= 1:
        return -math.expm1(-m * math.sqrt(2))
    # a gamma mixture of normals: of variance Γ(k)/k, whose logarithm has a smooth, light-tailed law
    x, weights = _gamma_nodes(terms)
    return float((weights * np.vectorize(math.erf)(m / np.sqrt(2 * x))).sum())


@lru_cache(maxsize=512)
def _gamma_nodes(shape: float) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    spread = 12 / math.sqrt(shape) + 4 / shape
    logs = np.linspace(-min(40 / shape, 2 * spread) - spread, spread, 401)
    density = np.exp(shape * (logs - np.exp(logs) + 1))
    return np.exp(logs), density / density.sum()
