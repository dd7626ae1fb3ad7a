"""Second moments with Wishart noise, which keeps them positive definite, and how an (ε, δ) is spent best without it."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidParameter
from cloister.learn.decomposition.products import Products, exact_products
from cloister.noise import Random, WishartMechanism
from cloister.noise.allowance import Currency, Share
from cloister.privacy import ApproxDP, mu_squared_of_gaussian
from cloister.privacy.rational import exact_square_root

Floats = npt.NDArray[np.float64]

_MOST_BITS = 8


def wishart_products(rows: Floats, *, radius: float, share: Share, delta: Fraction, random: Random | None) -> Products:
    """XᵀX of rows no longer than the radius, with Wishart noise less its mean.

    Guarantee: (ε, δ)-DP with the share's ε and that δ, for one row more or less (`WishartMechanism.tightest`). Rows are rounded
    to whole steps of radius·2^−b, after which none is longer than 2^b + √d/2 steps: the exact integer XᵀX changes by vvᵀ for
    such a v. Half of the δ is the mechanism's; the other half covers what floating point may add
    (`WishartMechanism.float_delta`): the steps are as coarse as that needs.
    """
    d = rows.shape[1]
    bits, mechanism = _mechanism(d, share.epsilon, delta)
    exact = exact_products(np.rint(rows * (2.0**bits / radius)))
    noisy = np.asarray(mechanism.release(exact, random=random), dtype=np.float64) - float(mechanism.shift) * np.eye(d)
    unit = (radius / 2.0**bits) ** 2
    return Products(matrix=noisy * unit, diagonal=2 * mechanism.variance * unit**2, off=mechanism.variance * unit**2)


@lru_cache(maxsize=64)
def _mechanism(d: int, epsilon: Fraction, delta: Fraction) -> tuple[int, WishartMechanism]:
    """The finest rows for which floating point keeps to its half of δ, and the noise. Public facts alone."""
    for bits in range(_MOST_BITS, -1, -1):
        bound = 1 + (exact_square_root(Fraction(d)) / 2 + Fraction(1, 10**6)) / 2**bits
        try:
            mechanism = WishartMechanism.tightest(
                dimension=d, epsilon=epsilon, delta=delta / 2, bound=bound, step=Fraction(1, 4**bits)
            )
        except InvalidParameter:  # a step that is finer than the noise allows
            continue
        if mechanism.float_delta <= float(delta) / 2:
            return bits, mechanism
    raise InvalidParameter(
        'method="wishart" is invalid',
        why="its floating point could take more than half of so small a δ",
        instead='method="moments"',
    )


def best_currency(promised: ApproxDP, d: int, *, with_target: Fraction, products: Fraction) -> Currency:
    """How an (ε, δ) is spent best on Xᵀy and XᵀX of d features, with vector noise under ε alone or with Gaussian noise: by the
    variances of their entries, added up. Public facts alone.

    Wishart noise is not among the choices: its entries have variance k = m + d − 1, where m is what privacy needs, and even
    with all of ε and δ for itself it was noisier than Gaussian noise wherever the two were compared (the tests do so for
    several ε and d).

    >>> best_currency(ApproxDP(1, "1e-6"), 20, with_target=Fraction(2, 5), products=Fraction(2, 5))
    'mu_squared'
    >>> best_currency(ApproxDP(1, "1e-9"), 1, with_target=Fraction(2, 5), products=Fraction(2, 5))
    'epsilon'
    """
    mu = float(mu_squared_of_gaussian(epsilon=promised.epsilon, delta=promised.delta))
    numbers = d * (d + 1) // 2
    gaussian = 1 / (mu * float(with_target)) + 1 / (2 * mu * float(products))
    first, second = (float(promised.epsilon * portion) for portion in (with_target, products))
    pure = (d + 1) / first**2 + (numbers + 1) / (2 * second**2)
    return "mu_squared" if gaussian < pure else "epsilon"
