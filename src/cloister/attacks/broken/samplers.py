"""The right formula, drawn wrongly; and a formula whose noise can't reach where it must."""

import math
from typing import Any

from cloister.attacks.broken.draws import Floats, exponential, floating_laplace, noised
from cloister.attacks.broken.twin import ChannelTwin, Matrix, Twin
from cloister.noise import Random
from cloister.privacy.guarantee import ApproxDP, PureDP


def _floating(data: Any, n: int, random: Random) -> Floats:
    return floating_laplace(1.0, n, random) + float(data)


FLOATING_LAPLACE = Twin(
    name="Laplace noise in floating point",
    mistake="Noise is the logarithm of a uniform double, added to the value as a double: most libraries until 2012, many since.",
    reason=(
        "Some doubles are reachable from one value and not from its neighbour: their low-order bits tell which (Mironov 2012)."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=0.0,
    right=1.0,
    broken=_floating,
    mended=noised(1.0),
)


def _wishart(data: Any, n: int, random: Random) -> Floats:
    """n·A + n·W₁(2, 3/(2nε)): in one dimension, a χ² of two degrees of freedom, which is exponential noise of mean 3/ε."""
    return exponential(3.0, n, random) + float(data)


PURE_WISHART = Twin(
    name="the pure-ε Wishart",
    mistake="Wishart noise W_d(d + 1, 3/(2nε)·I) on second moments, published as ε-private (Jiang et al. 2016).",
    reason=(
        "The noise is never negative, so the support moves with the data: 28 % of one world's outputs are impossible in the"
        " other (d = 1, ε = 1)."
    ),
    claims=PureDP(1),
    truth=math.inf,
    left=7.0,
    right=8.0,
    broken=_wishart,
    mended=noised(1.0),
)

_EPSILON, _DELTA = 10.0, 1e-5


def _tail(x: float) -> float:
    return 0.5 * math.erfc(x / math.sqrt(2))


def _gaussian(sigma: float, epsilon: float = _EPSILON) -> Matrix:
    """The event on which a Gaussian of this σ loses more than ε, for a sensitivity of 1. Where ε is the least at δ, nothing else
    of it is needed: that event is the worst."""
    likely = _tail(epsilon * sigma - 1 / (2 * sigma))
    unlikely = _tail(epsilon * sigma + 1 / (2 * sigma))
    return [[likely, 1 - likely], [unlikely, 1 - unlikely]]


def _classical() -> Matrix:
    sigma = math.sqrt(2 * math.log(1.25 / _DELTA)) / _EPSILON
    low, high = _EPSILON, 2 * _EPSILON
    for _ in range(100):  # the least ε at δ
        middle = (low + high) / 2
        (likely, _), (unlikely, _) = _gaussian(sigma, middle)
        low, high = (middle, high) if likely - math.exp(middle) * unlikely > _DELTA else (low, middle)
    return _gaussian(sigma, high)


def _analytic() -> Matrix:
    low, high = 0.1, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        (likely, _), (unlikely, _) = _gaussian(middle)
        low, high = (middle, high) if likely - math.exp(_EPSILON) * unlikely > _DELTA * (1 - 1e-9) else (low, middle)
    return _gaussian(high)


CLASSICAL_GAUSSIAN = ChannelTwin(
    name="the classical Gaussian beyond ε = 1",
    mistake="σ = √(2 ln(1.25/δ))/ε at ε = 10, δ = 10⁻⁵.",
    reason=(
        "Its proof needs ε < 1. The least δ is 2.3 times the promised one here; the analytic Gaussian (Balle & Wang 2018) "
        "is right for every ε."
    ),
    claims=ApproxDP(10, "0.00001"),
    truth=10.394,
    broken=_classical,
    mended=_analytic,
)
